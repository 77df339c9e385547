/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve - the way of one request: clock, gate, generator, verdict.
 *
 * Invariant: the generator is asked only after the gate has allowed, and only
 * for ticks that the gate has allowed.  Whatever is not granted is refused
 * with a reason, or waits for an instant that is near.
 */
#include "serve.h"

#include <assert.h>
#include <string.h>

#include "layout.h"

/* A wait for longer than this and a tick is a refusal: clients have limits. */
#define WAIT_MAX_MS 100

/*
 * While others are connected, a tick of two of these or more is open by half
 * when it begins, and by a bit more with each of these.
 */
#define OPEN_STEP_MS 10

#define RETRY_NO_REALM_MS 50
#define RETRY_NO_CLAIM_MS 50
#define RETRY_WINDOW_SPENT_MS 250
#define RETRY_STATE_FAILED_MS 1000
#define RETRY_DRAINING_MS 100
#define RETRY_MAX_MS INT64_C(4294967295) /* the protocol's field */

/* One request's view of the time. */
struct view {
	wall_t own;
	int64_t now; /* tick */
	int64_t lead; /* ticks that may be borrowed */
	int64_t hold; /* ticks that the own time may be held back by */
	struct gate gate;
	struct gen_limits limits; /* once the gate allows */
};

void
serve_init(struct serve *s, const struct firn_layout *layout, bool random_start,
    int64_t max_lead_ms, int64_t refuse_ms)
{
	memset(s, 0, sizeof(*s));
	generator_init(&s->gen, layout, random_start);
	s->gate.worker = NO_WORKER;
	s->gate.floor = NO_TICK;
	s->gate.ceiling = NO_TICK;
	s->gate.tick_max = (int64_t)layout_tick_max(layout);
	s->max_lead_ms = max_lead_ms;
	s->refuse_ms = refuse_ms;
}

static void
view_take(struct view *v, const struct serve *s, const struct clock *clk,
    const struct instant *now)
{
	const struct firn_layout *l = &s->gen.layout;
	int64_t tick_ms = (int64_t)l->tick_ms;

	memset(v, 0, sizeof(*v));
	v->gate = s->gate;
	v->gate.clock = clk->verdict;
	v->own = clock_now(clk, now);
	if (tick_ms == 0) {
		/* serve_init() comes with the contract */
		assert(!s->gate.realm_known);
		return;
	}
	v->now = layout_tick_of(l, wall_ms(v->own));
	v->lead = s->max_lead_ms / tick_ms;
	v->hold = add_sat(clk->conf.tolerance_ms, tick_ms - 1) / tick_ms;
}

/* How long until `tick` may be used, borrowing included; in ns, 0 at least. */
static int64_t
wait_ns(const struct serve *s, const struct view *v, int64_t tick)
{
	int64_t ms = layout_tick_start_ms(&s->gen.layout, tick - v->lead);
	int64_t ns = sub_sat(ms_to_ns(ms), v->own.ns);

	return (ns > 0 ? ns : 0);
}

static bool
is_near(const struct serve *s, int64_t ns)
{
	return (ns <= ms_to_ns(WAIT_MAX_MS + (int64_t)s->gen.layout.tick_ms));
}

/*
 * The gate's verdict; and a window whose ticks all lie in the future, further
 * than a request can wait, is none yet.
 */
static enum gate_reason
view_check(struct view *v, const struct serve *s)
{
	struct gen_limits *l = &v->limits;
	enum gate_reason r;

	l->now = v->now;
	r = gate_check(&v->gate, v->now, v->lead, &l->first, &l->last);
	if ((r == GATE_NO_CLAIM || r == GATE_WINDOW_SPENT) && v->gate.later)
		l->first = v->gate.later_floor + 1;
	if (r != GATE_ALLOW)
		return (r);
	if (v->gate.worker > layout_worker_max(&s->gen.layout))
		return (GATE_NO_CLAIM);
	if (!is_near(s, wait_ns(s, v, l->first)))
		return (s->gen.last_tick == NO_TICK ? GATE_NO_CLAIM
						    : GATE_WINDOW_SPENT);
	return (GATE_ALLOW);
}

/*
 * A clock that is held back within its tolerance goes on in the last tick,
 * which then lies further ahead than may be borrowed.
 */
static void
view_hold(struct view *v, const struct generator *gen)
{
	int64_t held = gen->last_tick;

	if (held > v->limits.last && held <= v->gate.ceiling &&
	    held - v->limits.last <= v->hold)
		v->limits.last = held;
}

static void
refuse(struct serve *s, struct serve_answer *out, enum gate_reason reason,
    int64_t retry_ms, int64_t figure)
{
	if (retry_ms > RETRY_MAX_MS)
		retry_ms = RETRY_MAX_MS;
	out->verdict = SERVE_REFUSE;
	out->reason = reason;
	out->retry_after_ms = retry_ms;
	out->figure = figure;
	s->refusals[reason]++;
	s->last_reason = reason;
}

/* No tick may be used: says why, and when it is worth another try. */
static void
refuse_gate(struct serve *s, const struct view *v, const struct clock *clk,
    enum gate_reason reason, struct serve_answer *out)
{
	const struct firn_layout *l = &s->gen.layout;
	int64_t own_ms = wall_ms(v->own), ms = 0;

	switch (reason) {
	case GATE_ALLOW:
	case GATE_NO_REALM:
		refuse(s, out, reason, RETRY_NO_REALM_MS, 0);
		return;
	case GATE_NO_CLAIM:
	case GATE_WINDOW_SPENT:
		if (v->limits.first > v->now)
			ms = ns_to_ms_up(wait_ns(s, v, v->limits.first));
		refuse(s, out, reason,
		    max64(ms, reason == GATE_NO_CLAIM ? RETRY_NO_CLAIM_MS
						      : RETRY_WINDOW_SPENT_MS),
		    ms);
		return;
	case GATE_STATE_FAILED:
		refuse(s, out, reason, RETRY_STATE_FAILED_MS, 0);
		return;
	case GATE_DRAINING:
		refuse(s, out, reason, RETRY_DRAINING_MS, 0);
		return;
	case GATE_CLOCK_BACK:
		ms = clock_back_ms(clk);
		refuse(s, out, reason, ms, ms);
		return;
	case GATE_CLOCK_AHEAD:
		refuse(s, out, reason, 0, clk->diff_ns / NS_PER_MS);
		return;
	case GATE_BEFORE_EPOCH:
		ms = sub_sat(l->epoch_ms, own_ms);
		refuse(s, out, reason, ms, ms);
		return;
	case GATE_EPOCH_ENDED:
		refuse(s, out, reason, 0,
		    max64(sub_sat(own_ms, layout_end_ms(l)), 0));
		return;
	case GATE_REALM_CHANGED:
	case GATE_STATE_LOST:
	case GATE_CLOCK_SKEW:
		refuse(s, out, reason, 0, 0);
		return;
	}
}

/*
 * The ticks in hand are used up.  The next one is waited for if it comes by
 * itself and soon; beyond the ceiling only a renewal brings it.
 */
static void
answer_full(struct serve *s, const struct view *v, const struct instant *now,
    int64_t tick, struct serve_answer *out)
{
	int64_t ns = wait_ns(s, v, tick);

	if (tick > v->gate.ceiling) {
		refuse(s, out, GATE_WINDOW_SPENT, RETRY_WINDOW_SPENT_MS, 0);
	} else if (!is_near(s, ns)) {
		refuse(
		    s, out, GATE_CLOCK_BACK, ns_to_ms_up(ns), ns_to_ms_up(ns));
	} else {
		out->verdict = SERVE_WAIT;
		out->when = (mono_t){ add_sat(now->boot.ns, ns) };
	}
}

static int64_t
tick_of(const struct firn_layout *l, uint64_t id)
{
	return ((int64_t)(id >> ((unsigned)l->worker_bits + l->sequence_bits)));
}

/* Until `tick` is the present one, without borrowing. */
static void
refuse_until(struct serve *s, const struct view *v, int64_t tick,
    struct serve_answer *out)
{
	int64_t start_ms = layout_tick_start_ms(&s->gen.layout, tick);
	int64_t ms = ns_to_ms_up(sub_sat(ms_to_ns(start_ms), v->own.ns));

	ms = max64(ms, 1);
	refuse(s, out, GATE_CLOCK_BACK, ms, ms);
}

/*
 * The handle has IDs from later than may be issued here: another clock, or
 * this one before it went back.  Far ahead it is refused for good.
 */
static void
answer_after(struct serve *s, const struct view *v, int64_t tick,
    struct serve_answer *out)
{
	int64_t ms = ns_to_ms_up(wait_ns(s, v, tick));

	/* Within the lead: then the layout or the window ends before it. */
	if (ms == 0 && tick > v->gate.tick_max)
		refuse(s, out, GATE_EPOCH_ENDED, 0, 0);
	else if (ms == 0)
		refuse(s, out, GATE_WINDOW_SPENT, RETRY_WINDOW_SPENT_MS, 0);
	else
		refuse(s, out, GATE_CLOCK_BACK, ms > s->refuse_ms ? 0 : ms, ms);
}

/*
 * To go on above such an `after`, IDs would have to be skipped that others
 * may want, as many as a peer cares to claim.  An honest handle has one only
 * in the ticks in which it changed from another agent to this one.
 */
static bool
skips_others(
    const struct serve *s, const struct view *v, const struct serve_request *rq)
{
	const struct generator *gen = &s->gen;
	const struct firn_layout *l = &gen->layout;
	int64_t tick = generator_tick(gen, &v->limits);
	int64_t after_tick = tick_of(l, rq->after);
	uint64_t next = 0;

	if (rq->others == 0 || rq->after == 0 || after_tick < tick ||
	    after_tick > v->limits.last)
		return (false); /* the last is the generator's to refuse */
	return (after_tick > tick ||
		(layout_compose(l, (uint64_t)tick, gen->worker,
		     tick == gen->last_tick ? gen->next : 0, &next) &&
		    rq->after >= next));
}

/*
 * How many sequences of the tick at hand are not open yet, for the sake of
 * those who come later in it, and how long until it is fewer.  A tick that
 * was borrowed before its turn, or is held, is open.
 */
static uint64_t
closed_of(const struct serve *s, const struct view *v, int64_t tick,
    int64_t *fewer_ns)
{
	const struct firn_layout *l = &s->gen.layout;
	int64_t steps = (int64_t)l->tick_ms / OPEN_STEP_MS;
	int64_t step_ns = OPEN_STEP_MS * NS_PER_MS;
	int64_t start_ms = layout_tick_start_ms(l, tick - v->lead);
	int64_t in_ns = sub_sat(v->own.ns, ms_to_ns(start_ms));
	uint64_t half = (layout_sequence_max(l) + 1) / 2;

	if (steps < 2 || tick > v->limits.last || in_ns < 0 ||
	    in_ns >= (steps - 1) * step_ns || half > UINT32_MAX)
		return (0);
	*fewer_ns = step_ns - in_ns % step_ns;
	return (
	    half * (uint64_t)(steps - 1 - in_ns / step_ns) / (uint64_t)steps);
}

/*
 * A request's part of the tick at hand while others wait for one too, or may
 * come; 0: it has to wait for so long until more is open.
 */
static uint64_t
share_of(const struct serve *s, const struct view *v,
    const struct serve_request *rq, int64_t *wait)
{
	int64_t tick = generator_tick(&s->gen, &v->limits);
	uint64_t left = generator_left(&s->gen, tick), closed = 0;

	if (rq->others > 0)
		closed = closed_of(s, v, tick, wait);
	if (closed == 0 && rq->waiting == 0)
		return (GEN_NO_SHARE);
	if (closed > 0 && left <= closed)
		return (0);
	left = (left - closed) / ((uint64_t)rq->waiting + 1);
	return (left > 0 ? left : 1);
}

static void
answer_take(struct serve *s, const struct view *v, const struct instant *now,
    const struct serve_request *rq, struct serve_answer *out)
{
	uint32_t count = rq->count > 0 ? rq->count : 1;
	int64_t ns = 0;
	uint64_t share = share_of(s, v, rq, &ns);

	if (skips_others(s, v, rq)) {
		refuse_until(s, v, tick_of(&s->gen.layout, rq->after) + 1, out);
		return;
	}
	if (share == 0) {
		out->verdict = SERVE_WAIT;
		out->when = (mono_t){ add_sat(now->boot.ns, ns) };
		return;
	}
	switch (generator_take(&s->gen, &v->limits, rq->after, count, share,
	    rq->random, &out->grant)) {
	case GEN_OK:
		out->verdict = SERVE_GRANT;
		s->last_reason = GATE_ALLOW;
		return;
	case GEN_FULL:
		answer_full(s, v, now, out->grant.when, out);
		return;
	case GEN_AFTER:
		answer_after(s, v, out->grant.when, out);
		return;
	case GEN_END:
		refuse(s, out, GATE_EPOCH_ENDED, 0, 0);
		return;
	}
}

void
serve_batch(struct serve *s, const struct clock *clk, const struct instant *now,
    const struct serve_request *rq, struct serve_answer *out)
{
	struct view v;
	enum gate_reason reason;

	memset(out, 0, sizeof(*out));
	view_take(&v, s, clk, now);
	reason = view_check(&v, s);
	if (reason != GATE_ALLOW) {
		refuse_gate(s, &v, clk, reason, out);
		return;
	}
	generator_set_worker(&s->gen, v.gate.worker);
	view_hold(&v, &s->gen);
	answer_take(s, &v, now, rq, out);
}

enum gate_reason
serve_state(
    const struct serve *s, const struct clock *clk, const struct instant *now)
{
	struct view v;

	view_take(&v, s, clk, now);
	return (view_check(&v, s));
}
