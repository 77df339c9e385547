/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_gate - each reason to refuse, their order, and the ticks allowed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dice.h"
#include "firn-wire.h"
#include "gate.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define TICK_MAX INT64_C(1000000)

/* A gate in good order: window (100, 200]. */
static struct gate
open_gate(void)
{
	return ((struct gate){
	    .realm_known = true,
	    .had_window = true,
	    .window = true,
	    .worker = 17,
	    .floor = 100,
	    .ceiling = 200,
	    .tick_max = TICK_MAX,
	    .clock = CLOCK_GOOD,
	});
}

/* ---- the order of the reasons ----------------------------------------------- */

static void
break_drain(struct gate *g)
{
	g->draining = true;
}

static void
break_realm_changed(struct gate *g)
{
	g->realm_changed = true;
}

static void
break_realm(struct gate *g)
{
	g->realm_known = false;
}

static void
break_state_lost(struct gate *g)
{
	g->state_lost = true;
}

static void
break_state_failed(struct gate *g)
{
	g->state_failed = true;
}

static void
break_clock_back(struct gate *g)
{
	g->clock = CLOCK_BACK;
}

static void
break_skew(struct gate *g)
{
	g->clock_skew = true;
}

static void
break_window(struct gate *g)
{
	g->window = false;
}

struct reason_row {
	void (*break_it)(struct gate *g);
	enum gate_reason reason;
	const char *why_here;
};

/* Each hides those below it. */
static const struct reason_row order[] = {
	{ break_drain, GATE_DRAINING,
	    "the process ends: whatever else holds, ask the next one" },
	{ break_realm_changed, GATE_REALM_CHANGED,
	    "facts read under another realm say nothing" },
	{ break_realm, GATE_NO_REALM,
	    "no contract: there is no tick to judge" },
	{ break_state_lost, GATE_STATE_LOST,
	    "an operator has to act; the clock may mend by itself" },
	{ break_state_failed, GATE_STATE_FAILED,
	    "as above, and it may pass with the disk" },
	{ break_clock_back, GATE_CLOCK_BACK,
	    "own time stands still: skew and window are judged by it" },
	{ break_skew, GATE_CLOCK_SKEW,
	    "a wrong clock makes a window look spent, never the reverse" },
	{ break_window, GATE_WINDOW_SPENT, "all that is left to want" },
};

static void
test_order(void **state)
{
	int64_t first, last;

	(void)state;
	for (unsigned set = 1; set < 1u << COUNT(order); set++) {
		struct gate g = open_gate();
		size_t top = COUNT(order);

		for (size_t i = COUNT(order); i-- > 0;) {
			if ((set >> i & 1) == 0)
				continue;
			order[i].break_it(&g);
			top = i;
		}
		assert_int_equal(
		    gate_check(&g, 150, 5, &first, &last), order[top].reason);
	}
}

/* ---- ticks ------------------------------------------------------------------- */

struct tick_row {
	int64_t floor, ceiling, now, lead;
	enum gate_reason reason;
	int64_t first, last;
	const char *why;
};

static const struct tick_row tick_rows[] = {
	{ 100, 200, 150, 0, GATE_ALLOW, 101, 150, "no lead: up to now" },
	{ 100, 200, 150, 5, GATE_ALLOW, 101, 155, "now and the lead" },
	{ 100, 200, 198, 5, GATE_ALLOW, 101, 200, "never past the ceiling" },
	{ 100, 200, 200, 5, GATE_ALLOW, 101, 200,
	    "the ceiling itself is ours" },
	{ 100, 200, 201, 5, GATE_WINDOW_SPENT, 0, 0, "the tick above is not" },
	{ 100, 200, 100, 0, GATE_ALLOW, 101, 100, "at the floor: wait" },
	{ 100, 200, 50, 5, GATE_ALLOW, 101, 55, "below the floor: wait" },
	{ 100, 200, 101, 0, GATE_ALLOW, 101, 101, "first tick above" },
	{ 100, 100, 100, 5, GATE_WINDOW_SPENT, 0, 0, "taken over, not grown" },
	{ 100, 100, 50, 5, GATE_WINDOW_SPENT, 0, 0, "same, with time to go" },
	{ 100, 101, 101, 5, GATE_ALLOW, 101, 101, "one tick is a window" },
	{ NO_TICK, 200, 0, 0, GATE_ALLOW, 0, 0, "a new realm's first tick" },
	{ -50, 200, 0, 0, GATE_ALLOW, 0, 0, "no tick before the epoch" },
	{ 100, 200, -1, 5, GATE_BEFORE_EPOCH, 0, 0,
	    "even with a lead into it" },
	{ 100, 2000000, TICK_MAX, 5, GATE_ALLOW, 101, TICK_MAX, "last tick" },
	{ 100, 2000000, TICK_MAX + 1, 5, GATE_EPOCH_ENDED, 0, 0, "over" },
	{ 100, 200, TICK_MAX + 1, 5, GATE_EPOCH_ENDED, 0, 0,
	    "ended says more than spent" },
	{ 100, 200, 150, -5, GATE_ALLOW, 101, 150, "no lead is negative" },
	{ 100, 200, 150, INT64_MAX, GATE_ALLOW, 101, 200, "no overflow" },
	{ INT64_MIN, INT64_MAX, 150, INT64_MAX, GATE_ALLOW, 0, TICK_MAX,
	    "nor here" },
	{ INT64_MAX, INT64_MAX, 150, 5, GATE_WINDOW_SPENT, 0, 0, "nor here" },
	{ 100, 200, INT64_MIN, 5, GATE_BEFORE_EPOCH, 0, 0, "nor here" },
	{ 100, 200, INT64_MAX, 5, GATE_EPOCH_ENDED, 0, 0, "nor here" },
};

static void
test_ticks(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(tick_rows); i++) {
		const struct tick_row *row = &tick_rows[i];
		struct gate g = open_gate();
		int64_t first = 0, last = 0;

		print_message("%s\n", row->why);
		g.floor = row->floor;
		g.ceiling = row->ceiling;
		assert_int_equal(
		    gate_check(&g, row->now, row->lead, &first, &last),
		    row->reason);
		assert_int_equal(first, row->first);
		assert_int_equal(last, row->last);
	}
}

/* Never had one: no claim.  Had one: spent. */
static void
test_no_window(void **state)
{
	struct gate g = open_gate();
	int64_t first, last;

	(void)state;
	g.had_window = false;
	assert_int_equal(gate_check(&g, 150, 5, &first, &last), GATE_ALLOW);
	g.window = false;
	assert_int_equal(gate_check(&g, 150, 5, &first, &last), GATE_NO_CLAIM);
	g.window = true;
	g.ceiling = g.floor;
	assert_int_equal(gate_check(&g, 150, 5, &first, &last), GATE_NO_CLAIM);
	g.had_window = true;
	assert_int_equal(
	    gate_check(&g, 150, 5, &first, &last), GATE_WINDOW_SPENT);
}

static void
test_clock_verdicts(void **state)
{
	static const enum gate_reason want[] = {
		[CLOCK_GOOD] = GATE_ALLOW,
		[CLOCK_BACK] = GATE_CLOCK_BACK,
		[CLOCK_LEAP] = GATE_ALLOW, /* goes on from the old base */
		[CLOCK_AHEAD] = GATE_CLOCK_AHEAD,
	};
	int64_t first, last;

	(void)state;
	for (size_t i = 0; i < COUNT(want); i++) {
		struct gate g = open_gate();

		g.clock = (enum clock_verdict)i;
		assert_int_equal(
		    gate_check(&g, 150, 5, &first, &last), want[i]);
		/* a step in sight outranks the skew that it may cause */
		g.clock_skew = true;
		assert_int_equal(gate_check(&g, 150, 5, &first, &last),
		    want[i] == GATE_ALLOW ? GATE_CLOCK_SKEW : want[i]);
	}
}

static void
test_names(void **state)
{
	(void)state;
	assert_string_equal(gate_reason_name(GATE_CLOCK_SKEW), "clock_skew");
	for (unsigned r = GATE_NO_REALM; r <= GATE_DRAINING; r++) {
		assert_string_equal(
		    gate_reason_name((enum gate_reason)r), wire_reason_name(r));
		assert_string_not_equal(
		    gate_reason_name((enum gate_reason)r), "unknown");
	}
}

/* Whatever it allows lies in the window, the layout, and the lead. */
static void
test_random_gates(void **state)
{
	struct dice d = dice_open("gate");
	unsigned allowed = 0;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		int64_t now = dice_range(&d, -5, 60),
			lead = dice_range(&d, 0, 9);
		int64_t first, last;
		struct gate g = open_gate();

		g.floor = dice_range(&d, -3, 50);
		g.ceiling = dice_range(&d, -3, 50);
		g.tick_max = dice_range(&d, 20, 60);
		if (gate_check(&g, now, lead, &first, &last) != GATE_ALLOW)
			continue;
		allowed++;
		assert_true(first > g.floor && first >= 0);
		assert_true(first <= g.ceiling && now <= g.ceiling);
		assert_true(last <= g.ceiling && last <= g.tick_max);
		assert_true(last <= now + lead);
	}
	assert_true(allowed > 1000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_ticks),
		cmocka_unit_test(test_no_window),
		cmocka_unit_test(test_clock_verdicts),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_random_gates),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
