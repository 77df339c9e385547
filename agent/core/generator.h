/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generator - hands out runs of IDs.
 *
 * Invariant: one last tick covers all that the agent ever issues, whatever
 * the worker ID; within a tick the sequence only goes up; a new worker ID
 * begins at a later tick.  So every ID is issued once and they only go up.
 */
#ifndef GENERATOR_H
#define GENERATOR_H

#include "types.h"

#define GEN_RUNS_MAX 16
#define GEN_NO_SHARE UINT64_MAX

/* count IDs: first, first + stride, ...; all of one tick. */
struct run {
	uint64_t first;
	uint64_t stride;
	uint32_t count;
};

struct generator {
	struct firn_layout layout;
	bool random_start; /* sequence_start: random */
	uint64_t worker; /* NO_WORKER before generator_set_worker() */
	int64_t worker_from; /* the worker ID's ticks begin here */
	int64_t last_tick; /* NO_TICK before the first ID */
	uint64_t next; /* next sequence of last_tick; may be max + 1 */
	/* counters: IDs, runs, ticks begun ahead of now, ticks used up */
	uint64_t issued, runs, borrowed, exhausted;
};

/* What the gate and the clock allow: ticks first..last, the present tick. */
struct gen_limits {
	int64_t now; /* present tick of the own time */
	int64_t first; /* lowest tick that may be issued (above the floor) */
	int64_t last; /* highest: ceiling, borrowing limit, layout's end */
};

enum gen_result {
	GEN_OK, /* at least one ID granted */
	GEN_FULL, /* nothing until a later tick is allowed: wait for .when */
	GEN_AFTER, /* nothing above `after` up to .last: wait for .when */
	GEN_END, /* the layout's last tick is used up, or the worker ID does
		    * not fit its field: nothing, ever */
};

struct gen_grant {
	struct run runs[GEN_RUNS_MAX];
	unsigned nruns;
	uint32_t granted; /* sum of the runs */
	int64_t when; /* GEN_FULL, GEN_AFTER: first tick that can serve */
};

void generator_init(
    struct generator *g, const struct firn_layout *layout, bool random_start);

/*
 * Changes the worker ID; no ID of it comes from the present last tick.  The
 * one in use: nothing changes.
 */
void generator_set_worker(struct generator *g, uint64_t worker);

/*
 * Grants up to `count` (not 0) IDs above `after` (0: none), in as few runs as
 * that takes.  A later tick is begun only when the one before is used up.
 *
 * `share`: at most so many from any one tick, and the grant ends with the
 * tick in which the share was reached; GEN_NO_SHARE: all.
 *
 * `random` seeds the first sequence of a tick with random_start.  Such a
 * start leaves room for this request and never wraps: what no longer fits
 * goes to the next tick.  So that a random start never halves what a busy
 * agent can issue, a tick that follows a used up one begins at 0, and with
 * no later tick allowed yet the start is in the lower half.
 */
enum gen_result generator_take(struct generator *g,
    const struct gen_limits *limits, uint64_t after, uint32_t count,
    uint64_t share, uint64_t random, struct gen_grant *out);

/* The tick that the next ID comes from, if it is allowed: never before now. */
int64_t generator_tick(
    const struct generator *g, const struct gen_limits *limits);

/* IDs that `tick` still has for this worker ID (a random start aside). */
uint64_t generator_left(const struct generator *g, int64_t tick);

#endif
