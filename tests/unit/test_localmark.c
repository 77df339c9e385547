/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_localmark - what may be issued is what stands in the file: by cases,
 * and over random worlds beside a model of the file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dice.h"
#include "localmark.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define WORLDS 2000
#define STEPS 300

struct due_case {
	int64_t confirmed, ahead, now, ceiling;
	int64_t mark; /* NO_TICK: nothing to write */
	const char *why;
};

static const struct due_case due_cases[] = {
	{ NO_TICK, 100, 0, 1000, 100, "nothing on file yet" },
	{ 100, 100, 0, 1000, NO_TICK, "all of it is ahead" },
	{ 100, 100, 49, 1000, NO_TICK, "more than half is ahead" },
	{ 100, 100, 50, 1000, 150, "half is used: ahead of time" },
	{ 100, 100, 100, 1000, 200, "the last tick is used" },
	{ 100, 100, 700, 1000, 800, "long past it, after a pause" },
	{ 100, 100, 990, 1000, 1000, "never above the ceiling" },
	{ 100, 100, 5000, 1000, 1000, "window spent: its end still counts" },
	{ 1000, 100, 5000, 1000, NO_TICK, "and is written once" },
	{ 900, 100, 5000, 800, NO_TICK, "ceiling below what stands there" },
	{ 900, 100, 300, 2000, NO_TICK, "clock behind: never goes down" },
	{ 900, 100, -5000, 2000, NO_TICK, "clock before the epoch" },
	{ NO_TICK, 100, -5000, 2000, NO_TICK, "no tick to write" },
	{ NO_TICK, 100, 0, NO_TICK, NO_TICK, "no window" },
	{ 10, 1, 9, 1000, NO_TICK, "one ahead is all there can be" },
	{ 10, 1, 10, 1000, 11, "smallest step" },
	{ 10, 0, 10, 1000, 11, "a step of none would stand still" },
	{ 10, INT64_MAX, 10, 1000, 1000, "sums stop at the end" },
	{ 10, 100, INT64_MAX, INT64_MAX, INT64_MAX, "now at the end" },
	{ INT64_MAX, 100, INT64_MIN, INT64_MAX, NO_TICK, "and differences" },
};

static void
test_due(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(due_cases); i++) {
		const struct due_case *c = &due_cases[i];
		struct localmark m;
		int64_t mark = NO_TICK;
		bool due;

		localmark_init(&m, true, c->confirmed, c->ahead);
		due = localmark_due(&m, c->now, c->ceiling, &mark);
		if (due != (c->mark != NO_TICK) || mark != c->mark)
			fail_msg("%s: %d, %" PRId64, c->why, due, mark);
	}
}

static void
test_unused_leaves_it_to_the_window(void **state)
{
	struct localmark m;
	int64_t mark = 7;

	(void)state;
	localmark_init(&m, false, NO_TICK, 100);
	assert_int_equal(localmark_limit(&m, 500), 500);
	assert_false(localmark_due(&m, 400, 500, &mark));
	assert_int_equal(mark, 7);
}

static void
test_allows_only_what_was_confirmed(void **state)
{
	struct localmark m;
	int64_t mark;

	(void)state;
	localmark_init(&m, true, 100, 100);
	assert_int_equal(localmark_limit(&m, 1000), 100);
	assert_int_equal(localmark_limit(&m, 60), 60);

	assert_true(localmark_due(&m, 90, 1000, &mark));
	localmark_writing(&m, mark);
	assert_int_equal(localmark_limit(&m, 1000), 100);
	/* one write at a time, however late it gets */
	assert_false(localmark_due(&m, 900, 1000, &mark));

	localmark_wrote(&m, false);
	assert_int_equal(localmark_limit(&m, 1000), 100);
	assert_true(localmark_due(&m, 91, 1000, &mark));
	assert_int_equal(mark, 191);

	localmark_writing(&m, mark);
	localmark_wrote(&m, true);
	assert_int_equal(localmark_limit(&m, 1000), 191);
	/* the same mark again, with other news in the record */
	localmark_writing(&m, 191);
	localmark_wrote(&m, true);
	assert_int_equal(localmark_limit(&m, 1000), 191);
	/* an answer to nothing changes nothing */
	localmark_wrote(&m, true);
	assert_int_equal(localmark_limit(&m, 1000), 191);
}

/*
 * A clock that wanders, a ceiling that mostly grows, writes that fail, and
 * crashes at any moment: the file then holds the mark of before or, if a
 * write was under way, perhaps the new one.
 */
struct world {
	struct localmark m;
	int64_t on_file, highest_issued;
	int64_t now, ceiling;
};

static void
crash(struct world *w, struct dice *d)
{
	if (w->m.pending != NO_TICK && dice_below(d, 2) == 0)
		w->on_file = w->m.pending;
	/* The successor issues above the file: what the file must cover. */
	assert_true(w->highest_issued <= w->on_file);
	localmark_init(&w->m, true, w->on_file, dice_range(d, 1, 200));
}

static void
finish_write(struct world *w, struct dice *d)
{
	int64_t before = w->m.confirmed;
	bool good = dice_below(d, 4) != 0;

	if (w->m.pending == NO_TICK)
		return;
	/* A failed write may leave the new record as well (a failed fsync
	 * after the rename): never a lower one. */
	if (good || dice_below(d, 2) == 0)
		w->on_file = w->m.pending;
	localmark_wrote(&w->m, good);
	assert_true(w->m.confirmed >= before);
	assert_true(good || w->m.confirmed == before);
}

static void
step(struct world *w, struct dice *d)
{
	int64_t limit, mark = NO_TICK;

	w->now += dice_range(d, -20, 60);
	w->ceiling += dice_range(d, -5, 80);
	switch (dice_below(d, 3)) {
	case 0:
		finish_write(w, d);
		break;
	case 1:
		if (dice_below(d, 20) == 0)
			crash(w, d);
		break;
	}
	if (localmark_due(&w->m, w->now, w->ceiling, &mark)) {
		assert_true(mark > w->m.confirmed && mark <= w->ceiling);
		assert_true(mark <= add_sat(w->now, w->m.ahead));
		assert_true(mark >= 0);
		localmark_writing(&w->m, mark);
	}
	limit = localmark_limit(&w->m, w->ceiling);
	assert_true(limit <= w->ceiling && limit <= w->on_file);
	if (w->now <= limit && w->now > w->highest_issued)
		w->highest_issued = w->now;
}

static void
test_nothing_is_issued_above_the_file(void **state)
{
	struct dice d = dice_open("localmark");
	unsigned issued = 0;

	(void)state;
	for (int i = 0; i < WORLDS; i++) {
		struct world w = { .on_file = NO_TICK,
			.highest_issued = NO_TICK };

		w.now = dice_range(&d, -100, 1000);
		w.ceiling = w.now;
		localmark_init(&w.m, true, NO_TICK, dice_range(&d, 1, 200));
		for (int j = 0; j < STEPS; j++)
			step(&w, &d);
		issued += w.highest_issued > 0 ? 1 : 0;
	}
	assert_true(issued > WORLDS / 2); /* the worlds are worth something */
}

/* With writes that take less than half of `ahead`, nobody ever waits. */
static void
test_a_steady_clock_never_meets_the_limit(void **state)
{
	struct dice d = dice_open("localmark steady");

	(void)state;
	for (int64_t ahead = 4; ahead < 300; ahead += 7) {
		struct localmark m;
		int64_t mark, done_at = 0;

		localmark_init(&m, true, ahead, ahead);
		for (int64_t now = 0; now < 2000; now++) {
			if (m.pending != NO_TICK && now >= done_at)
				localmark_wrote(&m, true);
			if (localmark_due(&m, now, 100000, &mark)) {
				localmark_writing(&m, mark);
				done_at =
				    now + dice_range(&d, 1, ahead / 2 - 1);
			}
			assert_true(now <= localmark_limit(&m, 100000));
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_due),
		cmocka_unit_test(test_unused_leaves_it_to_the_window),
		cmocka_unit_test(test_allows_only_what_was_confirmed),
		cmocka_unit_test(test_nothing_is_issued_above_the_file),
		cmocka_unit_test(test_a_steady_clock_never_meets_the_limit),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
