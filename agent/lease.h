/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease - the way of a lease: ZooKeeper's events → claim → operations, and
 * from the claim the facts that the gate judges by.
 */
#ifndef LEASE_H
#define LEASE_H

#include "auditor.h"
#include "clock.h"
#include "conf.h"
#include "exposition.h"
#include "hold.h"
#include "roll.h"
#include "serve.h"
#include "skew.h"
#include "status.h"
#include "sysclock.h"
#include "types.h"

struct event_base;
struct lease;

/* Why a claim was made. */
enum lease_cause {
	LEASE_START, /* the first of this process */
	LEASE_SESSION, /* the one before ended with its session */
	LEASE_MOVED, /* it was given up, or taken away, within the session */
};
#define LEASE_CAUSES 3

/* What was counted since the start, and where things stand. */
struct lease_figures {
	/* sessions with ZooKeeper */
	uint64_t established, resumed, disconnected, expired;
	uint64_t claims[LEASE_CAUSES];
	/* writes of the mark: done, not done, no reply */
	uint64_t renewed, refused, unknown;
	struct expo_durations renewals;
	/* the rest is filled in when asked for */
	bool has_lead;
	int64_t lead_ms; /* of the mark, before the own time */
	int64_t reserve_ms; /* length of a whole window */
	bool has_end;
	int64_t end_ms; /* of the layout */
	bool has_sign;
	int64_t sign_ms; /* from when on IDs are negative, if signed */
	struct sysclock_kernel kernel;
	bool step_unsettled; /* a step is to be judged, or not followed */
};

/*
 * Starts claiming; never blocks and never fails for want of ZooKeeper.  It
 * writes serve->gate and the worker ID of serve->gen, and initialises
 * serve (serve_init) once the realm's layout is known: until then
 * gate.realm_known is false.  What the process before left in the state file
 * is gone on from; clk goes on with its base.  NULL with one line in err and
 * the exit status: 1 for want of memory, 78 (without ZooKeeper) for a
 * configuration that will not do.
 */
struct lease *lease_open(struct event_base *base, const struct conf *conf,
    struct serve *serve, struct clock *clk, struct hold *hold, int *status,
    struct doc_error *err);

/*
 * Brings the facts up to date with the time: called by the agent at each
 * wake-up before it serves.  Cheap.
 */
void lease_update(struct lease *l, const struct instant *now);

/*
 * The same for the way of a request, of which there are many in a ms: does
 * nothing if no ms has begun since, by either clock, and the clock's verdict
 * is what it was.  What an event changes, the lease brings up to date then.
 */
void lease_refresh(struct lease *l, const struct instant *now);

/* The configuration has changed: see lease-reload.c. */
void lease_reload(struct lease *l);

/*
 * The clean stop: nothing is issued any more (the caller has set
 * gate.draining); lowers the mark and deletes the claim if it can, then calls
 * done once, within the operations' deadlines.
 */
void lease_stop(struct lease *l, void (*done)(void *arg), void *arg);

void lease_close(struct lease *l);

/* False: the configuration contradicts the realm, *status (78) and words. */
bool lease_fits(const struct lease *l, char *words, size_t n);

/* Why there is no mark to go by (state_lost). */
const char *lease_lost_words(const struct lease *l);

/* The realm was found, and its contract makes no sense. */
bool lease_is_garbled(const struct lease *l);
/* May its node not be read? */
bool lease_is_denied(const struct lease *l);

/* For the words of clock_skew. */
const struct skew *lease_skew(const struct lease *l);

/* Without ZooKeeper. */
bool lease_is_alone(const struct lease *l);

/* The contract's uuid, 16 bytes, once gate.realm_known. */
const uint8_t *lease_uuid(const struct lease *l);

void lease_figures(const struct lease *l, const struct instant *now,
    struct lease_figures *out);

/* The fleet as its auditor sees it. */
const struct auditor *lease_auditor(const struct lease *l);

/* Its agents one by one, as last read; from now on they are, for a while. */
void lease_roll(
    const struct lease *l, const struct instant *now, struct roll_view *out);

/* Who is told of the fleet's alerts, see auditor_on_alert(). */
void lease_on_alert(struct lease *l, auditor_alert_fn *fn, void *arg);

/* Fills in what the lease knows; the agent adds the rest. */
void lease_status(
    const struct lease *l, const struct instant *now, struct status_doc *out);

#endif
