/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch - IDs in memory: the handle's stock of runs, the part of it that each
 * thread takes for itself, and how many to ask for next.  Pure: no clock, no
 * I/O, no lock.
 *
 * Invariant: an ID leaves the stock once, to one taker, in rising order.
 *
 * All-zero is a valid, empty state of each struct here, since they live in
 * pages that a fork wipes.
 */
#ifndef BATCH_H
#define BATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "firn-wire.h"

#define BATCH_RUNS (2 * WIRE_RUNS_MAX)
#define BATCH_SPAN_NS INT64_C(20000000) /* demand that one request covers */
#define BATCH_GROWTH 8 /* most growth from one request to the next */
#define BATCH_PARTS 8 /* a thread takes at most one such part of a batch */

/* The two coarse clocks; only in this pair do they notice a suspend. */
struct moment {
	int64_t mono_ns; /* CLOCK_MONOTONIC_COARSE: stands still in suspend */
	int64_t real_ns; /* CLOCK_REALTIME_COARSE: can be set back */
};

/* ---- one thread's part ---- */

/*
 * Only the thread that owns the part uses it, so relaxed accesses are enough
 * and no instruction on the way of an ID is a locked one.  They are atomic
 * since the part of a thread that has ended goes to another thread without a
 * join between them: the new owner claims it under the handle's lock and
 * begins by emptying it, so it relies on nothing the old one wrote.
 *
 * owner is a token that no other thread, and no process that came by fork
 * from this one, ever got: a thread whose part was wiped or given away finds
 * another token (or 0) and takes nothing.
 */
struct part {
	_Atomic uint64_t owner; /* 0: free */
	_Atomic uint64_t next, end, stride; /* empty: next == end */
	_Atomic int64_t seen_ns; /* mono_ns when the deadlines last held */
	_Atomic int64_t mono_until_ns, real_until_ns;
	_Atomic uint64_t grain; /* how many to take the next time */
	_Atomic int64_t refilled_ns; /* mono_ns of the last time */
	_Atomic int32_t tid; /* the owner's */
} __attribute__((aligned(128)));

#define part_get(field) atomic_load_explicit(&(field), memory_order_relaxed)
#define part_set(field, v) \
	atomic_store_explicit(&(field), (v), memory_order_relaxed)

/*
 * Are the IDs of the part known to be young enough at mono_ns?  If the coarse
 * clock stands where it stood when both deadlines were last compared, no
 * timer interrupt has come since, so no suspend either (freezing alone takes
 * many), and both would compare the same: one clock is read instead of two.
 */
static inline bool
part_seen(const struct part *p, int64_t mono_ns)
{
	return (part_get(p->seen_ns) == mono_ns);
}

/*
 * Takes one ID.  The caller owns the part and knows it to be young.  One store
 * is all that it costs; `end` may have wrapped, so it is never ordered.
 */
static inline bool
part_take(struct part *p, uint64_t *id)
{
	uint64_t next = part_get(p->next);

	if (next == part_get(p->end))
		return (false);
	part_set(p->next, next + part_get(p->stride));
	*id = next;
	return (true);
}

/* IDs that the part holds, young or not. */
static inline uint64_t
part_left(const struct part *p)
{
	uint64_t span = part_get(p->end) - part_get(p->next);

	return (span == 0 ? 0 : span / part_get(p->stride));
}

/* Compares both deadlines; false if one has passed. */
bool part_young(struct part *p, const struct moment *now);

/* Empties the part, with the handle's lock held; how many IDs it had. */
uint64_t part_drop(struct part *p);

/* Takes up to n IDs, likewise; returns how many. */
size_t part_take_many(struct part *p, uint64_t *ids, size_t n);

/* Makes the part the given owner's, and empty. */
void part_claim(struct part *p, uint64_t owner, int32_t tid);

/* ---- the stock ---- */

struct batch_run {
	struct wire_run run;
	uint64_t generation;
	int64_t mono_until_ns, real_until_ns;
};

/* A ring: runs[head], ..., n of them. */
struct batch {
	struct batch_run runs[BATCH_RUNS];
	uint32_t head, n;
	uint64_t left; /* IDs in all runs */
	uint64_t granted; /* IDs of the last reply */
};

/*
 * Is the run one that an honest agent can send: IDs of this layout, its
 * stride, within one tick and one worker, not past the tick's last sequence,
 * all above `above`?  *last is its highest ID.
 */
bool batch_check_run(const struct firn_layout *l, const struct wire_run *run,
    uint64_t above, uint64_t *last);

/* Adds a checked run; false if there is no room. */
bool batch_add(struct batch *b, const struct batch_run *run);

/* Drops what is too old, or was received by another process; how many IDs. */
uint64_t batch_trim(
    struct batch *b, uint64_t generation, const struct moment *now);

/* Takes up to n IDs; returns how many. */
size_t batch_take(struct batch *b, uint64_t *ids, size_t n);

/*
 * Moves IDs of one run into an empty part: more, the sooner the thread comes
 * back for them, none if it has not come for BATCH_SPAN_NS.  Returns how many.
 */
uint64_t batch_share(struct batch *b, struct part *p, const struct moment *now);

/* ---- how many to ask for ---- */

struct demand {
	int64_t since_ns; /* when the last request was sent; 0: never */
	uint64_t used; /* IDs taken from the stock since */
	uint32_t asked; /* count of that request */
};

/* What BATCH_SPAN_NS of the present demand are, from 1 to max. */
uint32_t demand_want(const struct demand *d, int64_t now_ns, uint32_t max);

/* A request for count was sent: a new period begins. */
void demand_sent(struct demand *d, int64_t now_ns, uint32_t count);

#endif
