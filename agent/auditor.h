/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auditor - the fleet as one node, /firn/REALM/fleet: every agent reads it
 * with each renewal, one of them sweeps and writes it every audit_ms.
 *
 * Who that is needs no agreement: the agent with the oldest live claim is due
 * first, whoever wrote last is due next, anybody else only when the node has
 * grown old; and it is written by compare-and-set on the version that was
 * read before the sweep, so nothing newer is ever overwritten.
 */
#ifndef AUDITOR_H
#define AUDITOR_H

#include "audit.h"
#include "conf.h"
#include "foreign.h"
#include "skew.h"
#include "zk.h"

struct auditor;

/* What it works with; all of it is the caller's. */
struct auditor_where {
	struct zk *zk; /* connected */
	const char *realm, *workers, *marks; /* paths */
	const struct contract *k;
	const char *own_claim;
	const char *host;
	const struct skew *skew; /* own measurements: ZooKeeper's clock */
	struct foreign *foreign;
};

/* NULL: out of memory. */
struct auditor *auditor_open(const struct conf *conf);
void auditor_close(struct auditor *a);

/* Whoever else is told of the alerts that this agent's summaries raise and
 * clear; nobody if it was never called. */
typedef void auditor_alert_fn(
    void *arg, const struct audit_alert *x, bool raised);
void auditor_on_alert(struct auditor *a, auditor_alert_fn *fn, void *arg);

/* An own write came back: the node is to be read. */
void auditor_poke(struct auditor *a);

/* Does what there is to do; cheap otherwise. */
void auditor_run(
    struct auditor *a, mono_t now, const struct auditor_where *where);

/* When auditor_run() has something to do, at the latest. */
mono_t auditor_wake(const struct auditor *a);

/* Offers a reply; true if it was the auditor's. */
bool auditor_reply(struct auditor *a, const struct zk_event *ev, mono_t now);

/* The connection is gone: replies no longer come. */
void auditor_disconnected(struct auditor *a);

/* Is the node being read?  Then what it says is awaited. */
bool auditor_reading(const struct auditor *a);

/* The summary as last read or written, of this realm; NULL: none. */
const struct audit *auditor_summary(const struct auditor *a);

/*
 * Once for each summary that is of another generation or uuid than the own
 * contract: the realm is to be read again.
 */
bool auditor_saw_other_realm(struct auditor *a);

/* For the eyes of people and of /metrics. */
struct auditor_figures {
	const struct audit *summary; /* NULL: none */
	int64_t age_ms; /* since it was written or first seen here */
	bool own; /* this agent wrote it */
	uint64_t sweeps; /* that came to their end */
	uint64_t writes;
	uint64_t conflicts; /* another one was faster */
	uint64_t failures; /* sweeps and writes of no result */
	int64_t sweep_ms; /* how long the last one took; 0: none yet */
	uint64_t sweep_reads; /* of the last one */
};
void auditor_figures(
    const struct auditor *a, mono_t now, struct auditor_figures *out);

#endif
