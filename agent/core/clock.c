/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock - the agent's own time, and what a step of the wall clock does to it.
 *
 * Invariant: base_ns + boot never falls.  It is raised at once, lowered only
 * by a slew slower than boot time runs, and set anew after CLOCK_BACK to no
 * less than the own time at which the wall clock went back.
 */
#include "clock.h"

#include <string.h>

/*
 * A wall clock that runs slow is followed down by at most a thousandth of
 * the time that passed: twice what NTP may slew, far less than any step.
 */
#define SLEW_DIVISOR 1000

static int64_t
own_ns(const struct clock *c, const struct instant *now)
{
	return (add_sat(c->base_ns, now->boot.ns));
}

static int64_t
tolerance_ns(const struct clock *c)
{
	return (ms_to_ns(c->conf.tolerance_ms));
}

/*
 * What remains of a difference when the error of its reading is taken off:
 * only that much of it is certain.
 */
static int64_t
certain_ns(int64_t diff_ns, int64_t error_ns)
{
	if (error_ns < 0)
		error_ns = 0;
	if (diff_ns > error_ns)
		return (diff_ns - error_ns);
	if (add_sat(diff_ns, error_ns) < 0)
		return (diff_ns + error_ns);
	return (0);
}

/* How far the wall clock may be behind without CLOCK_BACK. */
static int64_t
limit_back_ns(const struct clock *c)
{
	int64_t lead = ms_to_ns(c->conf.logical_lead_ms);

	switch (c->conf.policy) {
	case STEP_WAIT:
		return (tolerance_ns(c));
	case STEP_FAIL:
		return (0);
	case STEP_LOGICAL:
		return (lead > tolerance_ns(c) ? lead : tolerance_ns(c));
	}
	return (0);
}

/* The wall clock's reading that ends CLOCK_BACK. */
static int64_t
return_ns(const struct clock *c)
{
	if (c->conf.policy == STEP_LOGICAL)
		return (sub_sat(c->back_until.ns, limit_back_ns(c)));
	return (c->back_until.ns);
}

/* Raises the own time to `ns`; it is never lowered this way. */
static void
raise_to(struct clock *c, const struct instant *now, int64_t ns)
{
	if (ns > own_ns(c, now))
		c->base_ns = sub_sat(ns, now->boot.ns);
}

static void
start_at(struct clock *c, const struct clock_conf *conf,
    const struct instant *now, int64_t base_ns)
{
	memset(c, 0, sizeof(*c));
	c->conf = *conf;
	c->base_ns = base_ns;
	c->verdict = CLOCK_GOOD;
	c->seen = *now;
}

void
clock_start(
    struct clock *c, const struct clock_conf *conf, const struct instant *now)
{
	start_at(c, conf, now, sub_sat(now->wall.ns, now->boot.ns));
}

void
clock_resume(struct clock *c, const struct clock_conf *conf,
    const struct instant *now, int64_t base_ns)
{
	start_at(c, conf, now, base_ns);
	(void)clock_observe(c, now);
}

/*
 * Follows a slow wall clock: lowers the base by what `gap` (negative) and
 * the time since the last look allow.  Capped at the tolerance, so that a
 * step during a long silence is still one.  Returns what is left of the gap.
 */
static int64_t
slew_down(struct clock *c, int64_t gap, int64_t elapsed_ns)
{
	int64_t take = elapsed_ns / SLEW_DIVISOR;

	if (take > tolerance_ns(c))
		take = tolerance_ns(c);
	if (take < 0)
		take = 0;
	if (gap > -take)
		take = -gap;
	c->base_ns = sub_sat(c->base_ns, take);
	return (gap + take);
}

/* The wall clock is ahead by more than the tolerance. */
static enum clock_verdict
verdict_ahead(struct clock *c, int64_t gap)
{
	if (c->judged) {
		int64_t moved = sub_sat(gap, c->judged_ns);

		if (moved <= tolerance_ns(c) && moved >= -tolerance_ns(c))
			return (c->verdict);
	}
	if (c->verdict != CLOCK_LEAP)
		c->steps_ahead++;
	c->judged = false;
	return (CLOCK_LEAP);
}

/* The wall clock is level with the own time, or behind. */
static enum clock_verdict
verdict_behind(
    struct clock *c, const struct instant *now, int64_t gap, int64_t elapsed_ns)
{
	c->judged = false;
	gap = slew_down(c, gap, elapsed_ns);
	if (gap >= -limit_back_ns(c))
		return (CLOCK_GOOD);
	c->steps_back++;
	c->back_until = (wall_t){ own_ns(c, now) };
	return (CLOCK_BACK);
}

/* CLOCK_BACK, and the wall clock has caught up: by waiting, or by a step. */
static enum clock_verdict
verdict_caught_up(struct clock *c, const struct instant *now, int64_t gap)
{
	int64_t level = sub_sat(now->wall.ns, now->error_ns);

	if (gap > tolerance_ns(c))
		return (verdict_ahead(c, gap));
	c->judged = false;
	if (level < c->back_until.ns)
		level = c->back_until.ns;
	c->base_ns = sub_sat(level, now->boot.ns);
	return (CLOCK_GOOD);
}

bool
clock_observe(struct clock *c, const struct instant *now)
{
	enum clock_verdict old = c->verdict;
	int64_t elapsed_ns = sub_sat(now->boot.ns, c->seen.boot.ns);
	int64_t diff = sub_sat(now->wall.ns, own_ns(c, now));
	int64_t gap = certain_ns(diff, now->error_ns);

	if (c->verdict == CLOCK_BACK) {
		if (now->wall.ns >= return_ns(c))
			c->verdict = verdict_caught_up(c, now, gap);
	} else if (gap > tolerance_ns(c)) {
		c->verdict = verdict_ahead(c, gap);
	} else if (gap > 0) {
		c->judged = false;
		raise_to(c, now, add_sat(own_ns(c, now), gap));
		c->verdict = CLOCK_GOOD;
	} else {
		c->verdict = verdict_behind(c, now, gap, elapsed_ns);
	}
	c->seen = *now;
	c->diff_ns = sub_sat(now->wall.ns, own_ns(c, now));
	return (c->verdict != old);
}

void
clock_follow(struct clock *c, const struct instant *now)
{
	int64_t diff = sub_sat(now->wall.ns, own_ns(c, now));
	int64_t gap = certain_ns(diff, now->error_ns);

	raise_to(c, now, add_sat(own_ns(c, now), gap));
	(void)clock_observe(c, now);
}

static void
judge(struct clock *c, enum clock_verdict verdict)
{
	if (c->verdict != CLOCK_LEAP && !c->judged)
		return;
	c->judged = true;
	c->judged_ns = certain_ns(c->diff_ns, c->seen.error_ns);
	c->verdict = verdict;
}

void
clock_keep(struct clock *c)
{
	judge(c, CLOCK_GOOD);
}

void
clock_refuse_leap(struct clock *c)
{
	judge(c, CLOCK_AHEAD);
}

wall_t
clock_now(const struct clock *c, const struct instant *now)
{
	int64_t own = own_ns(c, now);
	int64_t gap = certain_ns(sub_sat(now->wall.ns, own), now->error_ns);

	if (c->verdict == CLOCK_BACK)
		return (c->back_until);
	if (c->conf.policy != STEP_WAIT || gap >= 0)
		return ((wall_t){ own });
	if (gap < -tolerance_ns(c))
		gap = -tolerance_ns(c);
	return ((wall_t){ add_sat(own, gap) });
}

int64_t
clock_back_ms(const struct clock *c)
{
	int64_t left;

	if (c->verdict != CLOCK_BACK)
		return (0);
	left = sub_sat(return_ns(c), c->seen.wall.ns);
	return (left > 0 ? ns_to_ms_up(left) : 0);
}
