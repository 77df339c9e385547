/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock - the agent's own time: base + CLOCK_BOOTTIME, with the base taken
 * from the wall clock.  The wall clock is compared as a whole at each
 * wake-up, never by increments.
 *
 * Invariant: own time never goes back while the verdict permits its use,
 * except by holding within the tolerance (policy wait): it is never more than
 * that below the highest own time there was.  Where the wall clock is further
 * back the verdict says so and nothing is issued.
 */
#ifndef CLOCK_H
#define CLOCK_H

#include "types.h"

enum clock_verdict {
	CLOCK_GOOD, /* own time may be used */
	CLOCK_BACK, /* the wall clock went back: refuse until caught up */
	CLOCK_LEAP, /* the wall clock went ahead: judged, not yet followed;
			* own time goes on from the old base and may be used */
	CLOCK_AHEAD, /* it went ahead, and neither time is right: refuse */
};

enum step_policy { STEP_WAIT, STEP_FAIL, STEP_LOGICAL };

struct clock_conf {
	enum step_policy policy;
	int64_t tolerance_ms; /* at least one tick */
	int64_t logical_lead_ms;
};

struct clock {
	struct clock_conf conf;
	int64_t base_ns; /* own time = base_ns + boot */
	enum clock_verdict verdict;
	int64_t diff_ns; /* wall - own time, as last seen */
	wall_t back_until; /* CLOCK_BACK: own time at which it went back */
	struct instant seen; /* the reading last observed */
	bool judged; /* by clock_keep() or clock_refuse_leap() ... */
	int64_t judged_ns; /* ... while wall - own time was this */
	uint64_t steps_back, steps_ahead;
};

/* Takes the base from the reading. */
void clock_start(
    struct clock *c, const struct clock_conf *conf, const struct instant *now);

/*
 * Goes on with the base of an earlier process of the same boot; a step made
 * meanwhile is seen as a step.
 */
void clock_resume(struct clock *c, const struct clock_conf *conf,
    const struct instant *now, int64_t base_ns);

/*
 * Compares the wall clock with the own time and brings the verdict up to
 * date; true if the verdict changed.  The error of the reading widens the
 * tolerance.
 */
bool clock_observe(struct clock *c, const struct instant *now);

/*
 * The three answers to CLOCK_LEAP, for the caller who has measured where the
 * wall clock leads.  They may be revised while the leap stands.
 *
 * follow: the wall clock is right, into the base with it; CLOCK_GOOD.  (A
 * wall clock that is not ahead is observed, no more: following it would go
 * back.)
 */
void clock_follow(struct clock *c, const struct instant *now);

/* keep: the old base is right; CLOCK_GOOD while the difference stays. */
void clock_keep(struct clock *c);

/* refuse: neither is; CLOCK_AHEAD while the difference stays. */
void clock_refuse_leap(struct clock *c);

/*
 * The own time.  With the wall clock behind it within the tolerance it is
 * the wall clock's under `wait` (the generator holds its last tick
 * meanwhile); under CLOCK_BACK it stands still.
 */
wall_t clock_now(const struct clock *c, const struct instant *now);

/* CLOCK_BACK: milliseconds until the wall clock has caught up; else 0. */
int64_t clock_back_ms(const struct clock *c);

#endif
