/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve - the way of one request, with a virtual clock: granted, refused
 * with the right reason and figures, or told when to ask again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dice.h"
#include "layout.h"
#include "serve.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define START_MS INT64_C(1767225600000)
#define TOLERANCE_MS 5
#define LEAD_MS 5
#define REFUSE_MS 10000
#define HOUR_MS INT64_C(3600000)

/* An agent that serves: its clocks, its window of a minute. */
struct agent {
	struct serve serve;
	struct clock clock;
	int64_t boot_ns, offset_ns;
};

static struct instant
agent_read(const struct agent *a)
{
	return ((struct instant){
	    .boot = { a->boot_ns },
	    .wall = { START_MS * NS_PER_MS + a->boot_ns + a->offset_ns },
	});
}

static void
agent_observe(struct agent *a)
{
	struct instant now = agent_read(a);

	(void)clock_observe(&a->clock, &now);
}

static int64_t
agent_tick(const struct agent *a)
{
	struct instant now = agent_read(a);

	return (layout_tick_of(
	    &a->serve.gen.layout, wall_ms(clock_now(&a->clock, &now))));
}

static void
agent_pass(struct agent *a, int64_t ms)
{
	a->boot_ns += ms * NS_PER_MS;
	agent_observe(a);
}

static void
agent_step(struct agent *a, int64_t ms)
{
	a->offset_ns += ms * NS_PER_MS;
	agent_observe(a);
}

/* A preset; "second" is the default's bits with ticks of a second. */
static void
agent_start(struct agent *a, const char *name, enum step_policy policy)
{
	struct clock_conf conf = { policy, TOLERANCE_MS, 0 };
	bool second = strcmp(name, "second") == 0;
	struct firn_layout l;
	struct instant now;
	struct gate *g = &a->serve.gate;

	memset(a, 0, sizeof(*a));
	assert_int_equal(firn_layout_preset(second ? "firn" : name, &l), 0);
	if (second)
		l.tick_ms = 1000;
	if (conf.tolerance_ms < (int64_t)l.tick_ms)
		conf.tolerance_ms = (int64_t)l.tick_ms;
	a->boot_ns = 1000 * NS_PER_S;
	now = agent_read(a);
	clock_start(&a->clock, &conf, &now);
	serve_init(&a->serve, &l, false, LEAD_MS, REFUSE_MS);
	g->realm_known = g->window = g->had_window = true;
	g->worker = 17;
	g->floor = agent_tick(a) - 1;
	g->ceiling = agent_tick(a) + 60000 / (int64_t)l.tick_ms;
}

static struct serve_answer
ask_beside(struct agent *a, uint32_t count, unsigned waiting, unsigned others)
{
	struct serve_request rq = {
		.count = count, .waiting = waiting, .others = others
	};
	struct instant now = agent_read(a);
	struct serve_answer out;

	serve_batch(&a->serve, &a->clock, &now, &rq, &out);
	return (out);
}

static struct serve_answer
ask_for(struct agent *a, uint32_t count, uint64_t after, unsigned waiting)
{
	struct serve_request rq = {
		.count = count, .after = after, .waiting = waiting
	};
	struct instant now = agent_read(a);
	struct serve_answer out;

	serve_batch(&a->serve, &a->clock, &now, &rq, &out);
	return (out);
}

static struct serve_answer
ask(struct agent *a, uint32_t count)
{
	return (ask_for(a, count, 0, 0));
}

static uint64_t
id_of(const struct agent *a, int64_t tick, uint64_t worker, uint64_t seq)
{
	uint64_t id = 0;

	assert_true(layout_compose(
	    &a->serve.gen.layout, (uint64_t)tick, worker, seq, &id));
	return (id);
}

static void
expect_refusal(const struct serve_answer *out, enum gate_reason reason,
    int64_t retry_ms, int64_t figure)
{
	assert_int_equal(out->verdict, SERVE_REFUSE);
	assert_int_equal(out->reason, reason);
	assert_int_equal(out->retry_after_ms, retry_ms);
	assert_int_equal(out->figure, figure);
	assert_int_equal(out->grant.granted, 0);
}

/* ---- grants ------------------------------------------------------------------ */

static void
test_grant(void **state)
{
	struct serve_answer out;
	struct agent a;
	int64_t now;

	(void)state;
	agent_start(&a, "firn", STEP_WAIT);
	now = agent_tick(&a);
	out = ask(&a, 3);
	assert_int_equal(out.verdict, SERVE_GRANT);
	assert_int_equal(out.grant.granted, 3);
	assert_int_equal(out.grant.runs[0].first, id_of(&a, now, 17, 0));
	/* the present tick and five borrowed ones */
	out = ask(&a, 1000000);
	assert_int_equal(out.verdict, SERVE_GRANT);
	assert_int_equal(out.grant.granted, 6 * 4096 - 3);
	assert_int_equal(out.grant.nruns, 6);
	assert_int_equal(a.serve.gen.last_tick, now + LEAD_MS);
	/* none at all is answered as one */
	agent_pass(&a, 1);
	assert_int_equal(ask(&a, 0).grant.granted, 1);
	assert_int_equal(a.serve.last_reason, GATE_ALLOW);
}

/* Used up: a timer for the very instant at which the next tick is allowed. */
static void
test_wait_for_a_tick(void **state)
{
	struct serve_answer out;
	struct agent a;

	(void)state;
	agent_start(&a, "firn", STEP_WAIT);
	a.boot_ns += 300000; /* 0.3 ms into the tick */
	agent_observe(&a);
	assert_int_equal(ask(&a, 1000000).verdict, SERVE_GRANT);
	out = ask(&a, 1);
	assert_int_equal(out.verdict, SERVE_WAIT);
	assert_int_equal(out.when.ns - a.boot_ns, 700000);
	a.boot_ns = out.when.ns - 1;
	agent_observe(&a);
	assert_int_equal(ask(&a, 1).verdict, SERVE_WAIT);
	a.boot_ns = out.when.ns;
	agent_observe(&a);
	assert_int_equal(ask(&a, 1).verdict, SERVE_GRANT);
	assert_int_equal(a.serve.refusals[GATE_CLOCK_BACK], 0);
}

/* Ticks of 10 ms: a lead of 5 ms is none. */
static void
test_long_ticks(void **state)
{
	static const char *const layouts[] = { "sonyflake", "js53" };

	(void)state;
	for (size_t i = 0; i < COUNT(layouts); i++) {
		struct serve_answer out;
		struct agent a;
		int64_t now;

		agent_start(&a, layouts[i], STEP_WAIT);
		a.boot_ns += 3 * NS_PER_MS;
		agent_observe(&a);
		now = agent_tick(&a);
		out = ask(&a, 1000);
		assert_int_equal(out.grant.granted, 256);
		assert_int_equal(a.serve.gen.last_tick, now);
		out = ask(&a, 1);
		assert_int_equal(out.verdict, SERVE_WAIT);
		assert_in_range(out.when.ns - a.boot_ns, 1, 10 * NS_PER_MS);
		a.boot_ns = out.when.ns;
		agent_observe(&a);
		assert_int_equal(ask(&a, 1).verdict, SERVE_GRANT);
		assert_int_equal(a.serve.gen.last_tick, now + 1);
	}
}

/* A new worker ID is taken into use by itself, from a later tick. */
static void
test_worker_change(void **state)
{
	struct serve_answer out;
	struct agent a;
	int64_t now;

	(void)state;
	agent_start(&a, "firn", STEP_WAIT);
	now = agent_tick(&a);
	assert_int_equal(ask(&a, 5).verdict, SERVE_GRANT);
	a.serve.gate.worker = 3;
	out = ask(&a, 1);
	assert_int_equal(out.verdict, SERVE_GRANT);
	assert_int_equal(out.grant.runs[0].first, id_of(&a, now + 1, 3, 0));
	/* one that does not fit its field is no worker ID */
	a.serve.gate.worker = 1024;
	out = ask(&a, 1);
	expect_refusal(&out, GATE_NO_CLAIM, 50, 0);
}

/* ---- refusals ------------------------------------------------------------------- */

static void
test_reasons(void **state)
{
	struct serve_answer out;
	struct agent a;
	struct gate *g = &a.serve.gate;

	(void)state;
	agent_start(&a, "firn", STEP_WAIT);
	g->window = false;
	out = ask(&a, 1);
	expect_refusal(&out, GATE_WINDOW_SPENT, 250, 0);
	g->had_window = false;
	out = ask(&a, 1);
	expect_refusal(&out, GATE_NO_CLAIM, 50, 0);
	g->clock_skew = true;
	out = ask(&a, 1);
	expect_refusal(&out, GATE_CLOCK_SKEW, 0, 0);
	g->state_failed = true;
	out = ask(&a, 1);
	expect_refusal(&out, GATE_STATE_FAILED, 1000, 0);
	g->state_lost = true;
	out = ask(&a, 1);
	expect_refusal(&out, GATE_STATE_LOST, 0, 0);
	g->realm_known = false;
	out = ask(&a, 1);
	expect_refusal(&out, GATE_NO_REALM, 50, 0);
	g->realm_changed = true;
	out = ask(&a, 1);
	expect_refusal(&out, GATE_REALM_CHANGED, 0, 0);
	g->draining = true;
	out = ask(&a, 1);
	expect_refusal(&out, GATE_DRAINING, 100, 0);
	assert_int_equal(a.serve.refusals[GATE_DRAINING], 1);
	assert_int_equal(a.serve.refusals[GATE_NO_REALM], 1);
	assert_int_equal(a.serve.refusals[GATE_ALLOW], 0);
	assert_int_equal(a.serve.last_reason, GATE_DRAINING);
}

/* Before the contract is known there is no layout; status asks all the same. */
static void
test_no_contract_yet(void **state)
{
	struct serve_answer out;
	struct agent a;

	(void)state;
	agent_start(&a, "firn", STEP_WAIT);
	memset(&a.serve, 0, sizeof(a.serve));
	out = ask(&a, 1);
	expect_refusal(&out, GATE_NO_REALM, 50, 0);
	a.serve.gate.draining = true;
	out = ask(&a, 1);
	expect_refusal(&out, GATE_DRAINING, 100, 0);
}

static void
test_epoch(void **state)
{
	struct firn_layout l;
	struct serve_answer out;
	struct agent a;

	(void)state;
	agent_start(&a, "firn", STEP_WAIT);
	l = a.serve.gen.layout;
	a.serve.gen.layout.epoch_ms = START_MS + 1000 * 1000 + 1500;
	out = ask(&a, 1);
	expect_refusal(&out, GATE_BEFORE_EPOCH, 1500, 1500);
	/* a layout whose last tick was 7 ms ago */
	l.time_bits = 4;
	l.epoch_ms = START_MS + 1000 * 1000 - 16 - 7;
	serve_init(&a.serve, &l, false, LEAD_MS, REFUSE_MS);
	a.serve.gate.realm_known = true;
	out = ask(&a, 1);
	expect_refusal(&out, GATE_EPOCH_ENDED, 0, 7);
	/* and one that ends now: its last tick is served to the end */
	l.epoch_ms = START_MS + 1000 * 1000 - 15;
	serve_init(&a.serve, &l, false, LEAD_MS, REFUSE_MS);
	a.serve.gate.realm_known = a.serve.gate.window = true;
	a.serve.gate.worker = 17;
	a.serve.gate.ceiling = 1000;
	assert_int_equal(ask(&a, 5000).grant.granted, 4096);
	out = ask(&a, 1);
	expect_refusal(&out, GATE_EPOCH_ENDED, 0, 0);
	/* the same for a handle that has the layout's last ID, or nonsense */
	a.serve.gen.last_tick = NO_TICK;
	out = ask_for(&a, 1, id_of(&a, 15, 1023, 4095), 0);
	expect_refusal(&out, GATE_EPOCH_ENDED, 0, 0);
}

static void
test_window_end(void **state)
{
	struct serve_answer out;
	struct agent a;
	int64_t now;

	(void)state;
	agent_start(&a, "firn", STEP_WAIT);
	now = agent_tick(&a);
	a.serve.gate.ceiling = now + 2;
	assert_int_equal(ask(&a, 1000000).grant.granted, 3 * 4096);
	/* the next tick does not come by waiting, but by a renewal */
	out = ask(&a, 1);
	expect_refusal(&out, GATE_WINDOW_SPENT, 250, 0);
	/* a handle that is ahead of the window, not of the lead */
	out = ask_for(&a, 1, id_of(&a, now + 3, 18, 0), 0);
	expect_refusal(&out, GATE_WINDOW_SPENT, 250, 0);
	assert_int_equal(a.serve.last_reason, GATE_WINDOW_SPENT);
	a.serve.gate.ceiling = now + 60000;
	assert_int_equal(ask(&a, 1).verdict, SERVE_GRANT);
	assert_int_equal(a.serve.last_reason, GATE_ALLOW);
	agent_pass(&a, 60001);
	out = ask(&a, 1);
	expect_refusal(&out, GATE_WINDOW_SPENT, 250, 0);
}

/* The floor has to pass: near, the request waits; far, it is told so. */
static void
test_floor_ahead(void **state)
{
	struct instant now;
	struct serve_answer out;
	struct agent a;

	(void)state;
	agent_start(&a, "firn", STEP_WAIT);
	a.serve.gate.floor = agent_tick(&a) + 90;
	out = ask(&a, 1);
	assert_int_equal(out.verdict, SERVE_WAIT);
	assert_int_equal(out.when.ns - a.boot_ns, (91 - LEAD_MS) * NS_PER_MS);
	a.boot_ns = out.when.ns;
	agent_observe(&a);
	out = ask(&a, 1);
	assert_int_equal(
	    out.grant.runs[0].first, id_of(&a, a.serve.gate.floor + 1, 17, 0));

	agent_start(&a, "firn", STEP_WAIT);
	now = agent_read(&a);
	a.serve.gate.floor = agent_tick(&a) + 30000;
	out = ask(&a, 1);
	expect_refusal(&out, GATE_NO_CLAIM, 30001 - LEAD_MS, 30001 - LEAD_MS);
	assert_int_equal(serve_state(&a.serve, &a.clock, &now), GATE_NO_CLAIM);
	a.serve.gen.last_tick = agent_tick(&a);
	out = ask(&a, 1);
	expect_refusal(
	    &out, GATE_WINDOW_SPENT, 30001 - LEAD_MS, 30001 - LEAD_MS);

	/* a mark so far ahead that it does not even make a window yet */
	a.serve.gate.window = false;
	a.serve.gate.later = a.serve.gate.had_window = true;
	a.serve.gate.later_floor = agent_tick(&a) + 70000;
	out = ask(&a, 1);
	expect_refusal(
	    &out, GATE_WINDOW_SPENT, 70001 - LEAD_MS, 70001 - LEAD_MS);
	a.serve.gate.had_window = false;
	out = ask(&a, 1);
	expect_refusal(&out, GATE_NO_CLAIM, 70001 - LEAD_MS, 70001 - LEAD_MS);
	/* and passed, it needs a renewal, which no clock tells of */
	a.serve.gate.later_floor = agent_tick(&a) - 1;
	out = ask(&a, 1);
	expect_refusal(&out, GATE_NO_CLAIM, 50, 0);
	a.serve.gate.later_floor = agent_tick(&a) + 70000;
	a.serve.gate.later = false;
	out = ask(&a, 1);
	expect_refusal(&out, GATE_NO_CLAIM, 50, 0);
}

/* ---- after -------------------------------------------------------------------------- */

static void
test_after(void **state)
{
	struct serve_answer out;
	struct agent a;
	int64_t now;

	(void)state;
	agent_start(&a, "firn", STEP_WAIT);
	now = agent_tick(&a);
	/* an agent before this one had borrowed: served above it */
	out = ask_for(&a, 1, id_of(&a, now + 3, 900, 7), 0);
	assert_int_equal(out.verdict, SERVE_GRANT);
	assert_int_equal(out.grant.runs[0].first, id_of(&a, now + 4, 17, 0));
	/* ahead: the time until its tick is over may be borrowed */
	out = ask_for(&a, 1, id_of(&a, now + 100, 17, 7), 0);
	expect_refusal(&out, GATE_CLOCK_BACK, 101 - LEAD_MS, 101 - LEAD_MS);
	agent_pass(&a, out.retry_after_ms);
	out = ask_for(&a, 1, id_of(&a, now + 100, 17, 7), 0);
	assert_int_equal(out.verdict, SERVE_GRANT);
	/* further than a clock may be off: at once, no use in trying again */
	out = ask_for(&a, 1, id_of(&a, now + HOUR_MS, 17, 7), 0);
	expect_refusal(&out, GATE_CLOCK_BACK, 0, HOUR_MS + 1 - 96 - LEAD_MS);
	out = ask_for(&a, 1, UINT64_MAX, 0);
	assert_int_equal(out.verdict, SERVE_REFUSE);
	assert_int_equal(out.reason, GATE_CLOCK_BACK);
	assert_int_equal(out.retry_after_ms, 0);
	/* and others are served as before */
	assert_int_equal(ask(&a, 1).verdict, SERVE_GRANT);
}

/* ---- clocks --------------------------------------------------------------------------- */

static void
test_clock_back(void **state)
{
	struct serve_answer out;
	struct instant now;
	struct agent a;
	uint64_t last;

	(void)state;
	agent_start(&a, "firn", STEP_WAIT);
	last = ask(&a, 1).grant.runs[0].first;
	agent_step(&a, -40);
	now = agent_read(&a);
	out = ask(&a, 1);
	expect_refusal(&out, GATE_CLOCK_BACK, 40, 40);
	assert_int_equal(
	    serve_state(&a.serve, &a.clock, &now), GATE_CLOCK_BACK);
	agent_pass(&a, 39);
	out = ask(&a, 1);
	expect_refusal(&out, GATE_CLOCK_BACK, 1, 1);
	agent_pass(&a, 1);
	out = ask(&a, 1);
	assert_int_equal(out.verdict, SERVE_GRANT);
	assert_true(out.grant.runs[0].first > last);
	/* a day: the field of the protocol holds it, a year is cut */
	agent_step(&a, -24 * HOUR_MS);
	out = ask(&a, 1);
	expect_refusal(&out, GATE_CLOCK_BACK, 24 * HOUR_MS, 24 * HOUR_MS);
	agent_step(&a, -365 * 24 * HOUR_MS);
	out = ask(&a, 1);
	expect_refusal(&out, GATE_CLOCK_BACK, UINT32_MAX, 366 * 24 * HOUR_MS);
}

static void
test_clock_ahead(void **state)
{
	struct serve_answer out;
	struct agent a;
	int64_t now;

	(void)state;
	agent_start(&a, "firn", STEP_WAIT);
	now = agent_tick(&a);
	agent_step(&a, 20000);
	/* not judged yet: from the old base, in the old window */
	out = ask(&a, 1);
	assert_int_equal(out.grant.runs[0].first, id_of(&a, now, 17, 0));
	clock_refuse_leap(&a.clock);
	out = ask(&a, 1);
	expect_refusal(&out, GATE_CLOCK_AHEAD, 0, 20000);
	clock_keep(&a.clock);
	out = ask(&a, 1);
	assert_int_equal(out.grant.runs[0].first, id_of(&a, now, 17, 1));
}

/*
 * Held back within the tolerance, with nothing that may be borrowed: the last
 * tick's sequence goes on, and when it runs out the next tick is waited for.
 */
static void
test_hold(void **state)
{
	struct serve_answer out;
	struct agent a;
	int64_t held;

	(void)state;
	agent_start(&a, "firn", STEP_WAIT);
	a.serve.max_lead_ms = 0;
	held = agent_tick(&a);
	assert_int_equal(ask(&a, 1).verdict, SERVE_GRANT);
	agent_step(&a, -5);
	assert_int_equal(agent_tick(&a), held - 5);
	out = ask(&a, 10000);
	assert_int_equal(out.grant.granted, 4095);
	assert_int_equal(out.grant.runs[0].first, id_of(&a, held, 17, 1));
	out = ask(&a, 1);
	assert_int_equal(out.verdict, SERVE_WAIT);
	assert_int_equal(out.when.ns - a.boot_ns, 6 * NS_PER_MS);
	a.boot_ns = out.when.ns;
	agent_observe(&a);
	out = ask(&a, 1);
	assert_int_equal(out.grant.runs[0].first, id_of(&a, held + 1, 17, 0));
}

/* The hold never opens a tick above the ceiling, nor one far ahead. */
static void
test_hold_has_limits(void **state)
{
	struct agent a;
	int64_t now;

	(void)state;
	agent_start(&a, "firn", STEP_WAIT);
	a.serve.max_lead_ms = 0;
	now = agent_tick(&a);
	a.serve.gen.last_tick = now + TOLERANCE_MS;
	a.serve.gen.next = 1;
	generator_set_worker(&a.serve.gen, 17);
	a.serve.gen.worker_from = 0;
	assert_int_equal(ask(&a, 1).verdict, SERVE_GRANT);
	a.serve.gate.ceiling = now + TOLERANCE_MS - 1;
	assert_int_equal(ask(&a, 1).verdict, SERVE_REFUSE);
	a.serve.gate.ceiling = now + 60000;
	a.serve.gen.last_tick = now + TOLERANCE_MS + 1;
	assert_int_equal(ask(&a, 1).verdict, SERVE_WAIT);
	/* a last tick that no clock of ours explains: no endless timer */
	a.serve.gen.last_tick = now + 30000;
	assert_int_equal(ask(&a, 1).reason, GATE_CLOCK_BACK);
	assert_int_equal(ask(&a, 1).retry_after_ms, 30000);
}

/* ---- fair shares ---------------------------------------------------------------------------- */

static void
test_share(void **state)
{
	struct serve_answer out;
	struct agent a;

	(void)state;
	agent_start(&a, "firn", STEP_WAIT);
	/* three others wait: a quarter each, of one tick */
	out = ask_for(&a, 1000000, 0, 3);
	assert_int_equal(out.grant.granted, 1024);
	assert_int_equal(out.grant.nruns, 1);
	out = ask_for(&a, 1, 0, 2);
	assert_int_equal(out.grant.granted, 1);
	out = ask_for(&a, 1000000, 0, 1);
	assert_int_equal(out.grant.granted, (4096 - 1025) / 2);
	/* more who wait than IDs: one each, while there are any */
	out = ask_for(&a, 1000000, 0, 100000);
	assert_int_equal(out.grant.granted, 1);
	/* the last of them has all that is left, borrowing included */
	out = ask(&a, 1000000);
	assert_int_equal(out.grant.nruns, 6);
}

/*
 * One client asks for a million at a time, all the time; another for one.
 * Served in the order of arrival, as the shell does it, the second waits for
 * a tick at most.
 */
static void
test_one_beside_a_million(void **state)
{
	static const char *const layouts[] = { "firn", "js53" };

	(void)state;
	for (size_t i = 0; i < COUNT(layouts); i++) {
		uint64_t modest = 0, greedy = 0;
		struct serve_answer out;
		struct agent a;
		int64_t tick_ms;

		agent_start(&a, layouts[i], STEP_WAIT);
		tick_ms = (int64_t)a.serve.gen.layout.tick_ms;
		for (int n = 0; n < 1000; n++) {
			while ((out = ask(&a, 1000000)).verdict == SERVE_GRANT)
				greedy += out.grant.granted;
			assert_int_equal(out.verdict, SERVE_WAIT);
			/* the modest one comes now, and then both wait */
			out = ask(&a, 1);
			assert_int_equal(out.verdict, SERVE_WAIT);
			assert_true(
			    out.when.ns - a.boot_ns <= tick_ms * NS_PER_MS);
			a.boot_ns = out.when.ns;
			agent_observe(&a);
			out = ask_for(&a, 1000000, 0, 1);
			greedy += out.grant.granted;
			out = ask_for(&a, 1, 0, 0);
			assert_int_equal(out.verdict, SERVE_GRANT);
			modest += out.grant.granted;
		}
		assert_int_equal(modest, 1000);
		assert_true(greedy > 1000 * 255 - 256);
	}
}

/*
 * Half of a long tick is there at once, the rest with the tick's time; alone
 * one has all of it at once.
 */
static void
test_long_tick_opens(void **state)
{
	struct serve_answer out;
	struct agent a;
	uint64_t granted = 0;

	(void)state;
	agent_start(&a, "second", STEP_WAIT);
	assert_int_equal(ask_beside(&a, 1000000, 0, 0).grant.granted, 4096);

	agent_start(&a, "second", STEP_WAIT);
	out = ask_beside(&a, 1000000, 0, 1);
	assert_int_equal(out.grant.granted, 2048 + 2048 / 100 + 1);
	granted += out.grant.granted;
	out = ask_beside(&a, 1, 0, 1);
	assert_int_equal(out.verdict, SERVE_WAIT);
	assert_int_equal(out.when.ns - a.boot_ns, 10 * NS_PER_MS);
	agent_pass(&a, 3);
	out = ask_beside(&a, 1, 0, 1);
	assert_int_equal(out.verdict, SERVE_WAIT);
	assert_int_equal(out.when.ns - a.boot_ns, 7 * NS_PER_MS);
	/* the other one left: what was closed is there */
	assert_int_equal(ask_beside(&a, 1, 0, 0).grant.granted, 1);
	granted++;
	/* to the tick's end all of it goes, whoever is there */
	for (int i = 0; i < 99; i++) {
		agent_pass(&a, i == 0 ? 7 : 10);
		out = ask_beside(&a, 1000000, 0, 1);
		assert_int_equal(out.verdict, SERVE_GRANT);
		assert_int_equal(out.grant.nruns, 1);
		assert_in_range(out.grant.granted, 19, 21);
		granted += out.grant.granted;
	}
	assert_int_equal(granted, 4096);
	out = ask_beside(&a, 1, 0, 1);
	assert_int_equal(out.verdict, SERVE_WAIT);
	assert_int_equal(out.when.ns - a.boot_ns, 10 * NS_PER_MS);
	/* what is open is shared among those who wait */
	agent_pass(&a, 10);
	out = ask_beside(&a, 1000000, 3, 3);
	assert_int_equal(out.grant.granted, (2048 + 2048 / 100 + 1) / 4);
}

/* Short ticks open at once, and so does a tick that may be borrowed. */
static void
test_short_tick_is_open(void **state)
{
	struct serve_answer out;
	struct agent a;

	(void)state;
	agent_start(&a, "firn", STEP_WAIT);
	assert_int_equal(ask_beside(&a, 1000000, 0, 9).grant.granted, 6 * 4096);
	agent_start(&a, "sonyflake", STEP_WAIT);
	assert_int_equal(ask_beside(&a, 1000000, 0, 9).grant.granted, 256);
	/* two may be borrowed: then those have their turn two ticks early */
	agent_start(&a, "second", STEP_WAIT);
	a.serve.max_lead_ms = 2000;
	out = ask_beside(&a, 1000000, 0, 9);
	assert_int_equal(out.grant.granted, 3 * 4096);
	assert_int_equal(ask_beside(&a, 1, 0, 9).verdict, SERVE_WAIT);
	agent_pass(&a, 1000);
	out = ask_beside(&a, 1000000, 0, 9);
	assert_int_equal(out.grant.granted, 2048 + 2048 / 100 + 1);
}

/*
 * Who says that it has IDs from later in the tick, or from one that may be
 * borrowed, must not make the others' IDs go by; alone it harms nobody.
 */
static void
test_after_skips_nobody(void **state)
{
	struct serve_request rq = { .count = 1, .others = 1 };
	struct serve_answer out;
	struct instant now;
	struct agent a;
	int64_t tick;

	(void)state;
	agent_start(&a, "firn", STEP_WAIT);
	tick = agent_tick(&a);
	assert_int_equal(ask(&a, 10).grant.granted, 10);
	for (int64_t ahead = 0; ahead <= LEAD_MS; ahead++) {
		now = agent_read(&a);
		rq.after = id_of(&a, tick + ahead, 17, 4000);
		serve_batch(&a.serve, &a.clock, &now, &rq, &out);
		expect_refusal(&out, GATE_CLOCK_BACK, ahead + 1, ahead + 1);
	}
	/* nothing was skipped, and what it may have had is no lie */
	rq.after = id_of(&a, tick, 17, 9);
	serve_batch(&a.serve, &a.clock, &now, &rq, &out);
	assert_int_equal(out.grant.runs[0].first, id_of(&a, tick, 17, 10));
	rq.after = id_of(&a, tick, 17, 11);
	serve_batch(&a.serve, &a.clock, &now, &rq, &out);
	expect_refusal(&out, GATE_CLOCK_BACK, 1, 1);
	/* of another worker ID: all of the tick is above the one, below the other */
	rq.after = id_of(&a, tick, 16, 4095);
	serve_batch(&a.serve, &a.clock, &now, &rq, &out);
	assert_int_equal(out.grant.runs[0].first, id_of(&a, tick, 17, 11));
	rq.after = id_of(&a, tick, 18, 0);
	serve_batch(&a.serve, &a.clock, &now, &rq, &out);
	expect_refusal(&out, GATE_CLOCK_BACK, 1, 1);
	/* once the time said is over it is served */
	agent_pass(&a, 1);
	now = agent_read(&a);
	serve_batch(&a.serve, &a.clock, &now, &rq, &out);
	assert_int_equal(out.grant.runs[0].first, id_of(&a, tick + 1, 17, 0));
	/* alone, at once */
	rq = (struct serve_request){ .count = 1,
		.after = id_of(&a, tick + 1, 17, 4000) };
	serve_batch(&a.serve, &a.clock, &now, &rq, &out);
	assert_int_equal(
	    out.grant.runs[0].first, id_of(&a, tick + 1, 17, 4001));
}

/*
 * Seven that always want a million and one that wants an ID now and then, in
 * ticks of a second, served in the order of arrival: the one never waits for
 * the next tick, and nothing of the tick is lost to the others.
 */
static void
test_one_beside_seven(void **state)
{
	struct dice d = dice_open("seven");
	uint64_t greedy = 0, modest = 0;
	int64_t longest_ns = 0, asked_ns = -1, start_ns;
	struct agent a;

	(void)state;
	agent_start(&a, "second", STEP_WAIT);
	start_ns = a.boot_ns;
	for (int turn = 0; turn < 3000; turn++) {
		struct serve_answer out = { 0 };

		for (unsigned i = 0; i < 7; i++) {
			out = ask_beside(
			    &a, 1000000, 6 - i + (asked_ns >= 0 ? 1 : 0), 7);
			if (out.verdict != SERVE_GRANT)
				break;
			greedy += out.grant.granted;
		}
		if (out.verdict == SERVE_GRANT && asked_ns >= 0) {
			out = ask_beside(&a, 1, 0, 7);
			assert_int_equal(out.verdict, SERVE_GRANT);
			longest_ns = a.boot_ns - asked_ns > longest_ns
					 ? a.boot_ns - asked_ns
					 : longest_ns;
			modest++;
			asked_ns = -1;
		}
		if (asked_ns < 0 && dice_below(&d, 3) == 0)
			asked_ns = a.boot_ns;
		if (out.verdict != SERVE_WAIT)
			out = ask_beside(&a, 1000000, 0, 7);
		if (out.verdict == SERVE_GRANT) {
			greedy += out.grant.granted;
			continue;
		}
		assert_true(out.when.ns > a.boot_ns);
		a.boot_ns = out.when.ns;
		agent_observe(&a);
	}
	print_message("modest %" PRIu64 ", longest %" PRId64
		      " ms; greedy %" PRIu64 " in %" PRId64 " ms\n",
	    modest, longest_ns / NS_PER_MS, greedy,
	    (a.boot_ns - start_ns) / NS_PER_MS);
	assert_true(modest > 300);
	assert_true(longest_ns <= 30 * NS_PER_MS);
	assert_true((greedy + modest) * 1000 * NS_PER_MS >=
		    (uint64_t)(a.boot_ns - start_ns) * 4000);
}

/* ---- random worlds ---------------------------------------------------------------------------- */

/* A fleet's worth of trouble for one agent; all it ever issued goes up. */
struct world {
	struct agent a;
	struct dice *d;
	uint64_t highest, granted;
	int64_t highest_tick; /* that was allowed: now + lead, ever */
	unsigned waits, refusals;
};

static void
world_trouble(struct world *w)
{
	struct gate *g = &w->a.serve.gate;
	struct instant now;
	int64_t tick = agent_tick(&w->a);

	switch (dice_below(w->d, 40)) {
	case 0:
		w->a.offset_ns += dice_range(w->d, -7000000, 9000000);
		break;
	case 1:
		if (dice_below(w->d, 8) == 0)
			w->a.offset_ns += dice_range(w->d, -NS_PER_S, NS_PER_S);
		break;
	case 2:
		g->worker = dice_below(w->d, 100);
		g->floor = tick + dice_range(w->d, -20, 20);
		g->ceiling = g->floor + dice_range(w->d, 0, 200);
		break;
	case 3:
	case 4:
	case 5:
		if (g->ceiling < tick + 500)
			g->ceiling = tick + dice_range(w->d, 0, 500);
		if (g->ceiling < g->floor)
			g->ceiling = g->floor;
		break;
	case 6:
		g->window = dice_below(w->d, 10) > 0;
		break;
	case 7:
		g->clock_skew = dice_below(w->d, 20) == 0;
		break;
	case 8:
		now = agent_read(&w->a);
		clock_follow(&w->a.clock, &now);
		break;
	}
	if (dice_below(w->d, 3) == 0)
		w->a.boot_ns += dice_range(w->d, 0, 15000000);
	agent_observe(&w->a);
}

static void
check_runs(struct world *w, const struct serve_request *rq,
    const struct serve_answer *out)
{
	const struct gate *g = &w->a.serve.gate;
	const struct gen_grant *grant = &out->grant;
	uint32_t sum = 0;

	assert_true(w->a.clock.verdict == CLOCK_GOOD ||
		    w->a.clock.verdict == CLOCK_LEAP);
	assert_true(g->window && !g->clock_skew);
	for (unsigned i = 0; i < grant->nruns; i++) {
		const struct run *r = &grant->runs[i];
		uint64_t tick, worker, seq;

		assert_true(layout_split(
		    &w->a.serve.gen.layout, r->first, &tick, &worker, &seq));
		assert_true(worker == g->worker);
		assert_true((int64_t)tick > g->floor);
		assert_true((int64_t)tick <= g->ceiling);
		assert_true((int64_t)tick <= w->highest_tick);
		assert_true(r->first > w->highest && r->first > rq->after);
		w->highest = r->first + (r->count - 1) * r->stride;
		sum += r->count;
	}
	assert_true(sum == grant->granted && sum >= 1 && sum <= rq->count);
	w->granted += sum;
}

static void
world_ask(struct world *w)
{
	struct serve_request rq = {
		.count = (uint32_t)dice_range(
		    w->d, 1, INT64_C(1) << dice_below(w->d, 14)),
		.after = dice_below(w->d, 2) == 0 ? w->highest : 0,
		.waiting = (unsigned)dice_below(w->d, 4),
		.others = (unsigned)dice_below(w->d, 3),
		.random = dice_next(w->d),
	};
	const struct serve *s = &w->a.serve;
	struct instant now = agent_read(&w->a);
	int64_t ahead =
	    agent_tick(&w->a) + s->max_lead_ms / (int64_t)s->gen.layout.tick_ms;
	struct serve_answer out;

	if (dice_below(w->d, 10) == 0)
		rq.after = w->highest + dice_number(w->d) % (1u << 26);
	if (ahead > w->highest_tick)
		w->highest_tick = ahead;
	serve_batch(&w->a.serve, &w->a.clock, &now, &rq, &out);
	switch (out.verdict) {
	case SERVE_GRANT:
		check_runs(w, &rq, &out);
		return;
	case SERVE_WAIT:
		/* a timer that fires, and not at once: no wait spins */
		assert_true(out.when.ns > now.boot.ns);
		assert_true(out.when.ns - now.boot.ns <= 2010 * NS_PER_MS);
		w->waits++;
		return;
	case SERVE_REFUSE:
		assert_int_not_equal(out.reason, GATE_ALLOW);
		assert_true(out.retry_after_ms >= 0 && out.figure >= 0);
		w->refusals++;
		return;
	}
}

static void
test_random_worlds(void **state)
{
	static const char *const layouts[] = { "firn", "js53", "sonyflake",
		"second" };
	static const enum step_policy policies[] = { STEP_WAIT, STEP_FAIL,
		STEP_LOGICAL };
	struct dice d = dice_open("serve");
	uint64_t granted = 0, waits = 0, refusals = 0;

	(void)state;
	for (size_t i = 0; i < 36; i++) {
		struct world w = { .d = &d };

		agent_start(&w.a, layouts[i % 4], policies[i / 4 % 3]);
		w.a.serve.gen.random_start = i % 2 == 1;
		w.a.serve.max_lead_ms = dice_range(&d, 0, 30);
		for (int n = 0; n < 3000; n++) {
			world_trouble(&w);
			world_ask(&w);
		}
		granted += w.granted;
		waits += w.waits;
		refusals += w.refusals;
	}
	print_message("%" PRIu64 " IDs, %" PRIu64 " waits, %" PRIu64
		      " refusals\n",
	    granted, waits, refusals);
	assert_true(granted > 1000000);
	assert_true(waits > 1000 && refusals > 1000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grant),
		cmocka_unit_test(test_wait_for_a_tick),
		cmocka_unit_test(test_long_ticks),
		cmocka_unit_test(test_worker_change),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_no_contract_yet),
		cmocka_unit_test(test_epoch),
		cmocka_unit_test(test_window_end),
		cmocka_unit_test(test_floor_ahead),
		cmocka_unit_test(test_after),
		cmocka_unit_test(test_clock_back),
		cmocka_unit_test(test_clock_ahead),
		cmocka_unit_test(test_hold),
		cmocka_unit_test(test_hold_has_limits),
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_one_beside_a_million),
		cmocka_unit_test(test_long_tick_opens),
		cmocka_unit_test(test_short_tick_is_open),
		cmocka_unit_test(test_after_skips_nobody),
		cmocka_unit_test(test_one_beside_seven),
		cmocka_unit_test(test_random_worlds),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
