/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_clock - steps of the wall clock, and what the own time makes of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "clock.h"
#include "dice.h"
#include "generator.h"
#include "layout.h"

#define BASE_MS INT64_C(1767225600000)
#define TOLERANCE_MS 5
#define HOUR_MS INT64_C(3600000)
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* A host: boot time, and a wall clock that is set apart from it. */
struct host {
	struct clock clock;
	int64_t boot_ns, offset_ns; /* wall = BASE + boot + offset */
	int64_t error_ns;
};

static struct instant
host_read(const struct host *h)
{
	return ((struct instant){
	    .boot = { h->boot_ns },
	    .wall = { BASE_MS * NS_PER_MS + h->boot_ns + h->offset_ns },
	    .error_ns = h->error_ns,
	});
}

static void
host_start(struct host *h, enum step_policy policy, int64_t lead_ms)
{
	struct clock_conf conf = { policy, TOLERANCE_MS, lead_ms };
	struct instant now;

	*h = (struct host){ .boot_ns = 1000 * NS_PER_S };
	now = host_read(h);
	clock_start(&h->clock, &conf, &now);
}

static void
host_pass(struct host *h, int64_t ms)
{
	h->boot_ns += ms * NS_PER_MS;
}

static bool
host_observe(struct host *h)
{
	struct instant now = host_read(h);

	return (clock_observe(&h->clock, &now));
}

/* The wall clock is set by so much, and that is seen at once. */
static bool
host_step(struct host *h, int64_t ms)
{
	h->offset_ns += ms * NS_PER_MS;
	return (host_observe(h));
}

/* Own time, in ms since the host was started and without a step. */
static int64_t
host_lead_ms(const struct host *h)
{
	struct instant now = host_read(h);
	int64_t own = clock_now(&h->clock, &now).ns;

	return ((own - BASE_MS * NS_PER_MS - h->boot_ns) / NS_PER_MS);
}

static struct firn_layout
preset(const char *name)
{
	struct firn_layout l;

	assert_int_equal(firn_layout_preset(name, &l), 0);
	return (l);
}

/* ---- one generator, clock offsets per request ---------------------------- */

struct step_row {
	int64_t offset_ms;
	uint64_t tolerant; /* sequence */
	uint64_t strict; /* sequence, if it does not refuse */
	int64_t back_ms; /* strict: how far back it refuses */
	int64_t held_ms; /* tolerant: the tick's offset */
};

static const struct step_row step_rows[] = {
	{ 0, 0, 0, 0, 0 },
	{ 0, 1, 1, 0, 0 },
	{ 0, 2, 2, 0, 0 },
	{ 1, 0, 0, 0, 1 },
	{ 2, 0, 0, 0, 2 },
	{ 4, 0, 0, 0, 4 },
	{ 7, 0, 0, 0, 7 },
	{ 2, 1, 0, 5, 7 }, /* back by the tolerance: held, or refused */
	{ 7, 2, 1, 0, 7 }, /* the same tick again: on in its sequence */
	{ 8, 0, 0, 0, 8 },
	{ 10, 0, 0, 0, 10 },
	{ 12, 0, 0, 0, 12 },
};

/* One ID from the present tick, or the held one. */
static uint64_t
take_one(struct generator *gen, int64_t tick)
{
	struct gen_limits limits = { tick, 0, tick };
	struct gen_grant grant;

	if (gen->last_tick > limits.last)
		limits.last = gen->last_tick;
	assert_int_equal(
	    generator_take(gen, &limits, 0, 1, GEN_NO_SHARE, 0, &grant),
	    GEN_OK);
	return (grant.runs[0].first);
}

static void
check_step_row(struct host *h, struct generator *gen,
    const struct step_row *row, bool strict)
{
	struct firn_parts parts = { .size = sizeof(parts) };
	struct instant now;
	int64_t tick;

	h->offset_ns = row->offset_ms * NS_PER_MS;
	(void)host_observe(h);
	now = host_read(h);
	if (strict && row->back_ms > 0) {
		assert_int_equal(h->clock.verdict, CLOCK_BACK);
		assert_int_equal(clock_back_ms(&h->clock), row->back_ms);
		return;
	}
	assert_int_equal(h->clock.verdict, CLOCK_GOOD);
	tick =
	    layout_tick_of(&gen->layout, wall_ms(clock_now(&h->clock, &now)));
	assert_int_equal(
	    firn_decode(&gen->layout, take_one(gen, tick), &parts), 0);
	assert_int_equal(parts.worker, 835);
	assert_int_equal(parts.sequence, strict ? row->strict : row->tolerant);
	assert_int_equal(
	    parts.unix_ms, BASE_MS + h->boot_ns / NS_PER_MS + row->held_ms);
}

static void
test_step_rows(void **state)
{
	static const char *const layouts[] = { "twitter", "firn" };

	(void)state;
	for (size_t i = 0; i < 2 * COUNT(layouts); i++) {
		bool strict = i % 2 == 1;
		struct firn_layout l = preset(layouts[i / 2]);
		struct generator gen;
		struct host h;

		host_start(&h, strict ? STEP_FAIL : STEP_WAIT, 0);
		generator_init(&gen, &l, false);
		generator_set_worker(&gen, 835);
		for (size_t r = 0; r < COUNT(step_rows); r++)
			check_step_row(&h, &gen, &step_rows[r], strict);
	}
}

/* ---- one step, each policy ------------------------------------------------ */

struct case_row {
	enum step_policy policy;
	int64_t lead_ms, step_ms, error_ms;
	enum clock_verdict verdict;
	int64_t own_ms; /* own time afterwards, against no step */
	int64_t back_ms; /* until it may be used again */
	const char *why;
};

static const struct case_row case_rows[] = {
	{ STEP_WAIT, 0, 0, 0, CLOCK_GOOD, 0, 0, "no step" },
	{ STEP_WAIT, 0, 3, 0, CLOCK_GOOD, 3, 0, "ahead: into the base" },
	{ STEP_WAIT, 0, 5, 0, CLOCK_GOOD, 5, 0, "ahead by the tolerance" },
	{ STEP_WAIT, 0, 6, 0, CLOCK_LEAP, 0, 0, "further: base kept" },
	{ STEP_WAIT, 0, -5, 0, CLOCK_GOOD, -5, 0, "back: own is the wall's" },
	{ STEP_WAIT, 0, -6, 0, CLOCK_BACK, 0, 6, "further: stands still" },
	{ STEP_WAIT, 0, -HOUR_MS, 0, CLOCK_BACK, 0, HOUR_MS, "an hour" },
	{ STEP_WAIT, 9999, -6, 0, CLOCK_BACK, 0, 6, "lead is for logical" },
	{ STEP_FAIL, 0, 5, 0, CLOCK_GOOD, 5, 0, "ahead is no failure" },
	{ STEP_FAIL, 0, 6, 0, CLOCK_LEAP, 0, 0, "ahead, judged as well" },
	{ STEP_FAIL, 0, -1, 0, CLOCK_BACK, 0, 1, "no step back is small" },
	{ STEP_FAIL, 0, -HOUR_MS, 0, CLOCK_BACK, 0, HOUR_MS, "same" },
	{ STEP_LOGICAL, 0, -5, 0, CLOCK_GOOD, 0, 0, "counts on" },
	{ STEP_LOGICAL, 0, -6, 0, CLOCK_BACK, 0, 1, "no lead: tolerance" },
	{ STEP_LOGICAL, 100, -100, 0, CLOCK_GOOD, 0, 0, "counts on, ahead" },
	{ STEP_LOGICAL, 100, -130, 0, CLOCK_BACK, 0, 30, "until the lead" },
	{ STEP_LOGICAL, 100, 6, 0, CLOCK_LEAP, 0, 0, "ahead as the others" },
	/* the reading's error: only what is certain counts */
	{ STEP_WAIT, 0, 12, 8, CLOCK_GOOD, 4, 0, "8 to 16, or 4: taken" },
	{ STEP_WAIT, 0, 12, 6, CLOCK_LEAP, 0, 0, "6 at least" },
	{ STEP_WAIT, 0, -12, 8, CLOCK_GOOD, -4, 0, "4 back for certain" },
	{ STEP_WAIT, 0, -12, 6, CLOCK_BACK, 0, 12, "6 back at least" },
	{ STEP_WAIT, 0, -HOUR_MS, HOUR_MS, CLOCK_GOOD, 0, 0,
	    "stopped between the two readings: says nothing" },
	{ STEP_FAIL, 0, -3, 3, CLOCK_GOOD, 0, 0, "not certain: no failure" },
	{ STEP_FAIL, 0, -4, 3, CLOCK_BACK, 0, 4, "certain" },
};

static void
test_steps(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(case_rows); i++) {
		const struct case_row *row = &case_rows[i];
		struct host h;

		print_message("%s\n", row->why);
		host_start(&h, row->policy, row->lead_ms);
		h.error_ns = row->error_ms * NS_PER_MS;
		assert_int_equal(
		    host_step(&h, row->step_ms), row->verdict != CLOCK_GOOD);
		assert_int_equal(h.clock.verdict, row->verdict);
		assert_int_equal(host_lead_ms(&h), row->own_ms);
		assert_int_equal(clock_back_ms(&h.clock), row->back_ms);
		assert_int_equal(
		    h.clock.steps_back, row->verdict == CLOCK_BACK);
		assert_int_equal(
		    h.clock.steps_ahead, row->verdict == CLOCK_LEAP);
	}
}

/* Back by 100: refused to the millisecond, then from the wall clock. */
static void
test_back_until_caught_up(void **state)
{
	static const enum step_policy policies[] = { STEP_WAIT, STEP_FAIL };

	(void)state;
	for (size_t i = 0; i < COUNT(policies); i++) {
		struct host h;

		host_start(&h, policies[i], 0);
		assert_true(host_step(&h, -100));
		for (int64_t left = 100; left > 0; left--) {
			assert_int_equal(h.clock.verdict, CLOCK_BACK);
			assert_int_equal(clock_back_ms(&h.clock), left);
			host_pass(&h, 1);
			assert_int_equal(host_observe(&h), left == 1);
		}
		assert_int_equal(h.clock.verdict, CLOCK_GOOD);
		assert_int_equal(host_lead_ms(&h), -100);
		assert_int_equal(h.clock.diff_ns, 0);
	}
}

/*
 * Caught up by an uncertain reading: the own time begins at its lower end, so
 * that the next, certain one is no step back.
 */
static void
test_caught_up_uncertain(void **state)
{
	struct host h;

	(void)state;
	host_start(&h, STEP_FAIL, 0);
	assert_true(host_step(&h, -100));
	host_pass(&h, 110);
	h.error_ns = 2 * NS_PER_MS;
	assert_true(host_observe(&h));
	assert_int_equal(host_lead_ms(&h), -102);
	h.error_ns = 0;
	assert_false(host_observe(&h));
	assert_int_equal(host_lead_ms(&h), -100);
	/* but never below where the wall clock went back */
	assert_true(host_step(&h, -100));
	host_pass(&h, 101);
	h.error_ns = 2 * NS_PER_MS;
	assert_true(host_observe(&h));
	assert_int_equal(host_lead_ms(&h), -201);
}

/* Counting on ahead of the wall clock comes to rest on it, in the end. */
static void
test_logical_returns(void **state)
{
	struct host h;

	(void)state;
	host_start(&h, STEP_LOGICAL, 100);
	assert_true(host_step(&h, -150));
	host_pass(&h, 49);
	assert_false(host_observe(&h));
	assert_int_equal(clock_back_ms(&h.clock), 1);
	host_pass(&h, 1);
	assert_true(host_observe(&h));
	/* 100 ahead of the wall clock, where it was when that went back */
	assert_int_equal(host_lead_ms(&h), -50);
	for (int s = 0; s < 101; s++) {
		host_pass(&h, 1000);
		assert_false(host_observe(&h));
	}
	assert_int_equal(host_lead_ms(&h), -150);
}

/* The wall clock is put right again while it is refused. */
static void
test_back_and_forth(void **state)
{
	struct host h;

	(void)state;
	host_start(&h, STEP_WAIT, 0);
	assert_true(host_step(&h, -HOUR_MS));
	host_pass(&h, 60000);
	assert_false(host_step(&h, -HOUR_MS));
	assert_int_equal(clock_back_ms(&h.clock), 2 * HOUR_MS - 60000);
	assert_true(host_step(&h, 2 * HOUR_MS));
	assert_int_equal(h.clock.verdict, CLOCK_GOOD);
	assert_int_equal(host_lead_ms(&h), 0);
	/* back, then far ahead: that is a leap, and judged as one */
	assert_true(host_step(&h, -HOUR_MS));
	assert_true(host_step(&h, 2 * HOUR_MS));
	assert_int_equal(h.clock.verdict, CLOCK_LEAP);
	assert_int_equal(host_lead_ms(&h), 0);
	assert_int_equal(h.clock.steps_back, 2);
	assert_int_equal(h.clock.steps_ahead, 1);
}

/* ---- leaps ----------------------------------------------------------------- */

/* A host 30 s slow is put right: the repairing step must not be refused. */
static void
test_leap_followed(void **state)
{
	struct instant now;
	struct host h;

	(void)state;
	host_start(&h, STEP_WAIT, 0);
	assert_true(host_step(&h, 30000));
	assert_int_equal(h.clock.verdict, CLOCK_LEAP);
	host_pass(&h, 200);
	assert_false(host_observe(&h));
	now = host_read(&h);
	clock_follow(&h.clock, &now);
	assert_int_equal(h.clock.verdict, CLOCK_GOOD);
	assert_int_equal(host_lead_ms(&h), 30000);
	assert_int_equal(h.clock.diff_ns, 0);
	assert_int_equal(h.clock.steps_ahead, 1);
	host_pass(&h, 1000);
	assert_false(host_observe(&h));
}

/* The peers say that the old time is the right one. */
static void
test_leap_kept(void **state)
{
	struct host h;

	(void)state;
	host_start(&h, STEP_WAIT, 0);
	assert_true(host_step(&h, 30000));
	clock_keep(&h.clock);
	for (int i = 0; i < 100; i++) {
		host_pass(&h, 3000);
		assert_false(host_observe(&h));
		assert_int_equal(h.clock.verdict, CLOCK_GOOD);
		assert_int_equal(host_lead_ms(&h), 0);
	}
	/* another step is another question */
	assert_true(host_step(&h, 6));
	assert_int_equal(h.clock.verdict, CLOCK_LEAP);
	assert_int_equal(h.clock.steps_ahead, 2);
	clock_keep(&h.clock);
	/* so is one part of the way back */
	assert_true(host_step(&h, -6));
	assert_int_equal(h.clock.verdict, CLOCK_LEAP);
	clock_keep(&h.clock);
	/* the wall clock comes home: nothing is left of it */
	assert_false(host_step(&h, -30000));
	assert_int_equal(h.clock.verdict, CLOCK_GOOD);
	assert_int_equal(host_lead_ms(&h), 0);
	assert_true(host_step(&h, 30000));
	assert_int_equal(h.clock.verdict, CLOCK_LEAP);
}

static void
test_leap_refused(void **state)
{
	struct instant now;
	struct host h;

	(void)state;
	host_start(&h, STEP_WAIT, 0);
	/* only a leap can be judged */
	clock_refuse_leap(&h.clock);
	assert_int_equal(h.clock.verdict, CLOCK_GOOD);
	assert_true(host_step(&h, -50));
	clock_keep(&h.clock);
	assert_int_equal(h.clock.verdict, CLOCK_BACK);
	assert_true(host_step(&h, 50));
	assert_true(host_step(&h, HOUR_MS));
	clock_refuse_leap(&h.clock);
	assert_int_equal(h.clock.verdict, CLOCK_AHEAD);
	host_pass(&h, 10000);
	assert_false(host_observe(&h));
	assert_int_equal(h.clock.verdict, CLOCK_AHEAD);
	/* a later measurement may say otherwise, either way */
	clock_keep(&h.clock);
	assert_int_equal(h.clock.verdict, CLOCK_GOOD);
	clock_refuse_leap(&h.clock);
	now = host_read(&h);
	clock_follow(&h.clock, &now);
	assert_int_equal(h.clock.verdict, CLOCK_GOOD);
	assert_int_equal(host_lead_ms(&h), HOUR_MS);
	/* refused, and the wall clock goes home by itself */
	assert_true(host_step(&h, HOUR_MS));
	clock_refuse_leap(&h.clock);
	assert_true(host_step(&h, -HOUR_MS + 1));
	assert_int_equal(h.clock.verdict, CLOCK_GOOD);
}

/* Told to follow a wall clock that has meanwhile gone back: it does not. */
static void
test_follow_is_no_way_back(void **state)
{
	struct instant now;
	struct host h;

	(void)state;
	host_start(&h, STEP_WAIT, 0);
	assert_true(host_step(&h, 30000));
	h.offset_ns = -40000 * NS_PER_MS;
	now = host_read(&h);
	clock_follow(&h.clock, &now);
	assert_int_equal(h.clock.verdict, CLOCK_BACK);
	assert_int_equal(clock_back_ms(&h.clock), 40000);
	clock_follow(&h.clock, &now);
	assert_int_equal(h.clock.verdict, CLOCK_BACK);
	/* ahead again: followed at a word */
	h.offset_ns = 50000 * NS_PER_MS;
	now = host_read(&h);
	clock_follow(&h.clock, &now);
	assert_int_equal(h.clock.verdict, CLOCK_GOOD);
	assert_int_equal(host_lead_ms(&h), 50000);
}

/* ---- small steps, slew, suspend -------------------------------------------- */

/* Six times 2 ms back within a second: together they are a step. */
static void
test_small_steps_add_up(void **state)
{
	struct host h;
	int n = 0;

	(void)state;
	host_start(&h, STEP_WAIT, 0);
	while (h.clock.verdict == CLOCK_GOOD && n < 10) {
		host_pass(&h, 150);
		(void)host_step(&h, -2);
		n++;
	}
	assert_int_equal(n, 3);
	assert_int_equal(h.clock.verdict, CLOCK_BACK);
}

/* Many small ones ahead are followed one by one: the own time is the wall's. */
static void
test_small_steps_ahead(void **state)
{
	struct host h;

	(void)state;
	host_start(&h, STEP_FAIL, 0);
	for (int i = 1; i <= 1000; i++) {
		host_pass(&h, 10);
		assert_false(host_step(&h, 4));
		assert_int_equal(host_lead_ms(&h), 4 * i);
	}
}

/* NTP's largest slew, for a day, looked at at odd times. */
static void
test_slew(void **state)
{
	static const enum step_policy policies[] = { STEP_WAIT, STEP_FAIL,
		STEP_LOGICAL };

	(void)state;
	for (size_t i = 0; i < 2 * COUNT(policies); i++) {
		int64_t ppm = i % 2 == 0 ? 500 : -500;
		int64_t passed_ms = 0, step_ms = 0;
		struct host h;

		host_start(&h, policies[i / 2], 0);
		while (passed_ms < 24 * HOUR_MS) {
			step_ms = step_ms % 2999 + 37;
			host_pass(&h, step_ms);
			passed_ms += step_ms;
			h.offset_ns = passed_ms * ppm; /* ns a ms */
			assert_false(host_observe(&h));
			assert_int_equal(h.clock.verdict, CLOCK_GOOD);
			/* the own time is the wall clock's, to the ns */
			assert_int_equal(h.clock.diff_ns, 0);
		}
		assert_int_equal(h.clock.steps_back + h.clock.steps_ahead, 0);
	}
}

static void
test_suspend(void **state)
{
	struct host h;

	(void)state;
	host_start(&h, STEP_FAIL, 0);
	host_pass(&h, 8 * HOUR_MS);
	assert_false(host_observe(&h));
	assert_int_equal(h.clock.verdict, CLOCK_GOOD);
	assert_int_equal(host_lead_ms(&h), 0);
	/* a step during the sleep is one, however long that was */
	host_pass(&h, 8 * HOUR_MS);
	assert_true(host_step(&h, -20));
	assert_int_equal(h.clock.verdict, CLOCK_BACK);
}

/* 23:59:60: the wall clock says one second twice, or runs slow for a day. */
static void
test_leap_second(void **state)
{
	int64_t passed_ms = 0;
	struct host h;

	(void)state;
	host_start(&h, STEP_WAIT, 0);
	host_pass(&h, 5000);
	assert_false(host_observe(&h));
	assert_true(host_step(&h, -1000));
	assert_int_equal(h.clock.verdict, CLOCK_BACK);
	assert_int_equal(clock_back_ms(&h.clock), 1000);
	host_pass(&h, 999);
	assert_false(host_observe(&h));
	host_pass(&h, 1);
	assert_true(host_observe(&h));
	assert_int_equal(h.clock.verdict, CLOCK_GOOD);
	assert_int_equal(h.clock.steps_back, 1);

	host_start(&h, STEP_WAIT, 0); /* smeared over a day */
	while (passed_ms < 24 * HOUR_MS) {
		host_pass(&h, 1000);
		passed_ms += 1000;
		h.offset_ns = -passed_ms * NS_PER_S / (24 * HOUR_MS);
		assert_false(host_observe(&h));
		assert_int_equal(h.clock.diff_ns, 0);
	}
	assert_int_equal(h.clock.steps_back, 0);
}

/* Five percent off is no slew: fast is followed, slow is seen as a step. */
static void
test_drift(void **state)
{
	int64_t own_ms = 0;
	bool back = false;
	struct host h;

	(void)state;
	host_start(&h, STEP_WAIT, 0);
	for (int i = 0; i < 1200; i++) {
		host_pass(&h, 50);
		h.offset_ns += 50 * NS_PER_MS / 20;
		assert_false(host_observe(&h));
		assert_int_equal(h.clock.diff_ns, 0);
	}
	host_start(&h, STEP_WAIT, 0);
	for (int i = 0; i < 1200; i++) {
		int64_t now_ms;

		host_pass(&h, 50);
		h.offset_ns -= 50 * NS_PER_MS / 20;
		(void)host_observe(&h);
		now_ms = host_lead_ms(&h) + h.boot_ns / NS_PER_MS;
		back = back || h.clock.verdict == CLOCK_BACK;
		/* never back by more than the tolerance, never far ahead */
		assert_true(now_ms >= own_ms - TOLERANCE_MS);
		if (h.clock.verdict == CLOCK_GOOD)
			assert_true(
			    h.clock.diff_ns >= -TOLERANCE_MS * NS_PER_MS);
		own_ms = now_ms > own_ms ? now_ms : own_ms;
	}
	assert_true(back);
}

/* The wall clock stands; own time stands with it, and goes on with it. */
static void
test_wall_stands_still(void **state)
{
	int64_t lead_ms;
	struct host h;

	(void)state;
	host_start(&h, STEP_WAIT, 0);
	host_pass(&h, 10000);
	h.offset_ns -= 10000 * NS_PER_MS;
	assert_true(host_observe(&h));
	assert_int_equal(h.clock.verdict, CLOCK_BACK);
	lead_ms = host_lead_ms(&h);
	host_pass(&h, 5000);
	h.offset_ns -= 5000 * NS_PER_MS;
	assert_false(host_observe(&h));
	assert_int_equal(host_lead_ms(&h), lead_ms - 5000); /* it stands */
	assert_true(host_step(&h, 15000)); /* set right */
	assert_int_equal(h.clock.verdict, CLOCK_GOOD);
}

/* Back once more while it waits: the wait is that much longer. */
static void
test_back_inside_a_wait(void **state)
{
	struct host h;

	(void)state;
	host_start(&h, STEP_WAIT, 0);
	assert_true(host_step(&h, -100));
	host_pass(&h, 50);
	assert_false(host_step(&h, -100));
	assert_int_equal(clock_back_ms(&h.clock), 150);
	host_pass(&h, 149);
	assert_false(host_observe(&h));
	host_pass(&h, 1);
	assert_true(host_observe(&h));
	assert_int_equal(h.clock.verdict, CLOCK_GOOD);
}

/* A new process of the same boot sees the step made while nobody looked. */
static void
test_resume(void **state)
{
	static const struct {
		int64_t step_ms;
		enum clock_verdict verdict;
	} rows[] = { { 0, CLOCK_GOOD }, { 4, CLOCK_GOOD }, { 8000, CLOCK_LEAP },
		{ -8000, CLOCK_BACK } };

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct instant now;
		struct clock c;
		struct host h;

		host_start(&h, STEP_WAIT, 0);
		host_pass(&h, 700);
		h.offset_ns = rows[i].step_ms * NS_PER_MS;
		now = host_read(&h);
		clock_resume(&c, &h.clock.conf, &now, h.clock.base_ns);
		assert_int_equal(c.verdict, rows[i].verdict);
	}
}

/* ---- extremes ---------------------------------------------------------------- */

static const int64_t extremes[] = { INT64_MIN, INT64_MIN + 1,
	-HOUR_MS *NS_PER_MS, -1, 0, 1, BASE_MS *NS_PER_MS,
	INT64_C(4102444800) * NS_PER_S, INT64_MAX - 1, INT64_MAX };

/* Nothing overflows, whatever the clocks say; the sanitizer looks on. */
static void
test_extremes(void **state)
{
	size_t n = COUNT(extremes);

	(void)state;
	for (size_t i = 0; i < n * n * n * 3; i++) {
		struct instant a = { { 0 }, { extremes[i % n] }, 0 };
		struct instant b = { { extremes[i / n % n] },
			{ extremes[i / n / n % n] }, INT64_MAX };
		struct clock_conf conf = {
			.policy = (enum step_policy)(i / n / n / n),
			.tolerance_ms = INT64_MAX,
			.logical_lead_ms = i % 2 == 0 ? 0 : INT64_MAX,
		};
		struct clock c;

		clock_start(&c, &conf, &a);
		for (int k = 0; k < 3; k++) {
			(void)clock_observe(&c, &b);
			(void)clock_now(&c, &b);
			assert_true(clock_back_ms(&c) >= 0);
			clock_keep(&c);
			clock_refuse_leap(&c);
			clock_follow(&c, &b);
			b.error_ns = 0;
			c.conf.tolerance_ms = TOLERANCE_MS;
		}
	}
	assert_int_equal(
	    wall_ms((wall_t){ INT64_MIN }), INT64_C(-9223372036855));
	assert_int_equal(wall_ms((wall_t){ -1 }), -1);
	assert_int_equal(wall_ms((wall_t){ -NS_PER_MS }), -1);
	assert_int_equal(mono_add_ms(MONO_NEVER, 1).ns, INT64_MAX);
}

/* A wall clock of 1970 that is then set right; and one of the far future. */
static void
test_far_clocks(void **state)
{
	struct host h;

	(void)state;
	host_start(&h, STEP_WAIT, 0);
	assert_true(host_step(&h, -BASE_MS));
	assert_int_equal(h.clock.verdict, CLOCK_BACK);
	assert_int_equal(clock_back_ms(&h.clock), BASE_MS);
	assert_true(host_step(&h, BASE_MS));
	assert_int_equal(h.clock.verdict, CLOCK_GOOD);
	h.offset_ns = INT64_MAX - BASE_MS * NS_PER_MS - h.boot_ns;
	assert_true(host_observe(&h));
	assert_int_equal(h.clock.verdict, CLOCK_LEAP);
	assert_int_equal(host_lead_ms(&h), 0);
}

/* ---- random worlds ----------------------------------------------------------- */

static void
random_event(struct dice *d, struct host *h)
{
	static const int64_t sizes_ms[] = { 1, 5, 8, 50, 5000, 3600000 };
	int64_t size = sizes_ms[dice_below(d, COUNT(sizes_ms))] * NS_PER_MS;

	host_pass(h, dice_range(d, 0, 40));
	h->error_ns = dice_below(d, 4) == 0 ? dice_range(d, 0, 20000000) : 0;
	switch (dice_below(d, 12)) {
	case 0:
		h->offset_ns += dice_range(d, -size, size);
		break;
	case 1:
		h->offset_ns = 0;
		break;
	case 2:
		host_pass(h, dice_range(d, 0, 5000));
		break;
	case 3:
		clock_keep(&h->clock);
		break;
	case 4:
		clock_refuse_leap(&h->clock);
		break;
	}
}

/*
 * While it may be used the own time never goes back, but for the hold; and it
 * is the wall clock's, or ahead of it by no more than its policy says.
 */
static void
check_world(struct dice *d, enum step_policy policy, int64_t lead_ms)
{
	int64_t highest = INT64_MIN, hold = 0, ahead = 0;
	struct host h;

	if (policy == STEP_WAIT)
		hold = TOLERANCE_MS * NS_PER_MS;
	if (policy == STEP_LOGICAL)
		ahead = lead_ms > TOLERANCE_MS ? lead_ms : TOLERANCE_MS;
	host_start(&h, policy, lead_ms);
	for (int i = 0; i < 3000; i++) {
		struct instant now;
		int64_t own;

		random_event(d, &h);
		now = host_read(&h);
		if (dice_below(d, 50) == 0)
			clock_follow(&h.clock, &now);
		else
			(void)clock_observe(&h.clock, &now);
		own = clock_now(&h.clock, &now).ns;
		if (own > highest)
			highest = own;
		assert_true(own >= highest - hold);
		if (h.clock.verdict != CLOCK_GOOD)
			continue;
		assert_true(
		    own <= now.wall.ns + now.error_ns + ahead * NS_PER_MS);
		if (!h.clock.judged)
			assert_true(
			    now.wall.ns - own <=
			    2 * now.error_ns + TOLERANCE_MS * NS_PER_MS);
	}
}

static void
test_random_worlds(void **state)
{
	struct dice d = dice_open("clock");

	(void)state;
	for (int i = 0; i < 40; i++) {
		check_world(&d, STEP_WAIT, 0);
		check_world(&d, STEP_FAIL, 0);
		check_world(&d, STEP_LOGICAL, dice_range(&d, 0, 1000));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_step_rows),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_back_until_caught_up),
		cmocka_unit_test(test_caught_up_uncertain),
		cmocka_unit_test(test_logical_returns),
		cmocka_unit_test(test_back_and_forth),
		cmocka_unit_test(test_leap_followed),
		cmocka_unit_test(test_leap_kept),
		cmocka_unit_test(test_leap_refused),
		cmocka_unit_test(test_follow_is_no_way_back),
		cmocka_unit_test(test_small_steps_add_up),
		cmocka_unit_test(test_small_steps_ahead),
		cmocka_unit_test(test_slew),
		cmocka_unit_test(test_suspend),
		cmocka_unit_test(test_leap_second),
		cmocka_unit_test(test_drift),
		cmocka_unit_test(test_wall_stands_still),
		cmocka_unit_test(test_back_inside_a_wait),
		cmocka_unit_test(test_resume),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_far_clocks),
		cmocka_unit_test(test_random_worlds),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
