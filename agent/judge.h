/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge - is the own clock fit to serve?  Takes the samples that own writes
 * bring, reads the peers after them, gives the verdict to the gate, and
 * decides where a clock that leapt ahead may be followed.
 */
#ifndef JUDGE_H
#define JUDGE_H

#include "audit.h"
#include "clock.h"
#include "conf.h"
#include "peers.h"
#include "skew.h"
#include "status.h"

struct judge;

/* Where the peers are read. */
struct judge_where {
	struct zk *zk; /* connected */
	const char *workers, *marks; /* paths */
	const struct contract *k;
	const char *own_claim;
	const struct audit *summary; /* the auditor's; NULL: none */
	struct foreign *foreign; /* tells what makes no sense */
};

/* changed is called when a verdict has come.  NULL: out of memory. */
struct judge *judge_open(const struct conf *conf, struct clock *clk,
    const uint8_t boot_id[UUID_BYTES], void (*changed)(void *arg), void *arg);
void judge_close(struct judge *j);

/* The configuration has changed: the next judgement goes by it. */
void judge_reload(struct judge *j);

/* A verdict of the process before this one, in the same boot. */
void judge_resume(struct judge *j, bool refused, int64_t skew_us);

/* An own write came back; fills in what is to be published of the clock. */
void judge_sample(
    struct judge *j, const struct zk_event *ev, struct agent_status *st);

/*
 * Reads the peers if it is time to; cheap otherwise.  A fresh summary that
 * bears the verdict out saves the reading: no verdict changes by it alone.
 */
void judge_run(struct judge *j, mono_t now, const struct judge_where *where);

/* When judge_run() has something to do, at the latest. */
mono_t judge_wake(const struct judge *j);

/* Offers a reply; true if it was the judge's. */
bool judge_reply(struct judge *j, const struct zk_event *ev, mono_t now);

/* The connection is gone: replies no longer come. */
void judge_disconnected(struct judge *j);

/*
 * Decides on a wall clock that leapt ahead (CLOCK_LEAP), as far as that can be
 * done yet.  True: measure now.
 */
bool judge_leap(struct judge *j, const struct instant *now, bool connected);

/*
 * A clock that its peers have refused was set back to where they are: own
 * time is taken from it anew, as there is nothing to catch up with.  Only for
 * a caller that has issued nothing of now or later.  True: measure now.
 */
bool judge_repair(struct judge *j, const struct instant *now);

bool judge_refuses(const struct judge *j);
/* A leap waits for the peers, or for ZooKeeper, or is not followed. */
bool judge_unsettled(const struct judge *j);
/* Not judged yet: nothing may be issued. */
bool judge_waits(const struct judge *j);

const struct skew *judge_skew(const struct judge *j);
void judge_status(const struct judge *j, struct status_doc *out);

#endif
