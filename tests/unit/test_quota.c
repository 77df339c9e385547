/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_quota - the rate of each uid: held exactly, in any world and at the
 * ends of every number, and nobody's affair but the uid's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dice.h"
#include "quota.h"

#define UIDS 8
#define ROUNDS 300
#define STEPS 400

static mono_t
at_ns(int64_t ns)
{
	return ((mono_t){ ns });
}

static uint32_t
take(struct quota *q, uint32_t uid, uint32_t count, mono_t now)
{
	uint32_t n = quota_left(q, uid, count, now);

	assert_true(n <= count);
	quota_take(q, uid, n, now);
	return (n);
}

/* ---- the rate ------------------------------------------------------------------ */

static void
test_no_limit(void **state)
{
	struct quota q;

	(void)state;
	quota_init(&q, 0, at_ns(0));
	for (int i = 0; i < 1000; i++)
		assert_int_equal(take(&q, 7, UINT32_MAX, at_ns(0)), UINT32_MAX);
	assert_int_equal(quota_retry_ms(&q, 7, 1, at_ns(0)), 0);
}

/* A second's worth at once, then the rate, to the nanosecond. */
static void
test_burst_then_rate(void **state)
{
	struct quota q;
	int64_t t = 5 * NS_PER_S;

	(void)state;
	quota_init(&q, 5000, at_ns(t));
	assert_int_equal(take(&q, 1000, 4000, at_ns(t)), 4000);
	assert_int_equal(take(&q, 1000, 4000, at_ns(t)), 1000);
	assert_int_equal(take(&q, 1000, 1, at_ns(t)), 0);
	assert_int_equal(take(&q, 1000, 1, at_ns(t + 199999)), 0);
	assert_int_equal(take(&q, 1000, 1, at_ns(t + 200000)), 1);
	assert_int_equal(take(&q, 1000, 1, at_ns(t + 399999)), 0);
	assert_int_equal(take(&q, 1000, 1, at_ns(t + 400000)), 1);
	/* Rest brings back one second's worth, no more. */
	t += 3600 * NS_PER_S;
	assert_int_equal(take(&q, 1000, 9000, at_ns(t)), 5000);
}

/* The rates that divide no second: over a long time not one ID is lost. */
static void
test_nothing_is_lost(void **state)
{
	static const int64_t rates[] = { 1, 3, 7, 999, 1001, 333333, 4096000 };

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct quota q;
		int64_t t = 0;
		uint64_t taken = 0;

		quota_init(&q, rates[i], at_ns(0));
		taken += take(&q, 1, UINT32_MAX, at_ns(0));
		for (int k = 1; k <= 30000; k++) { /* 1 ms and an odd bit */
			t += 1000003;
			taken += take(&q, 1, UINT32_MAX, at_ns(t));
		}
		assert_int_equal(taken,
		    rates[i] + (int64_t)((__int128)rates[i] * t / NS_PER_S));
	}
}

/*
 * Random uids, requests and pauses: in no stretch of time more than
 * rate + rate * t.  (It is enough to look at the level that a bucket with
 * no table around it would have: it never falls below zero.)
 */
static void
check_world(struct dice *d, uint32_t uids, int64_t rate)
{
	__int128 level[2 * QUOTA_UIDS]; /* billionths, exact */
	int64_t seen[2 * QUOTA_UIDS];
	int64_t t = dice_range(d, 0, INT64_C(1) << 60);
	const __int128 full = (__int128)rate * NS_PER_S;
	struct quota q;

	assert_true(uids <= 2 * QUOTA_UIDS);
	quota_init(&q, rate, at_ns(t));
	for (uint32_t i = 0; i < uids; i++) {
		level[i] = full;
		seen[i] = t;
	}
	for (int step = 0; step < STEPS; step++) {
		uint32_t u = (uint32_t)dice_below(d, uids);
		uint32_t want = (uint32_t)dice_number(d);
		uint32_t got;

		if (dice_below(d, 3) == 0)
			t += (int64_t)dice_below(d, dice_below(d, 4) == 0
							? UINT64_C(2000000000)
							: UINT64_C(5000000));
		level[u] += (__int128)(t - seen[u]) * rate;
		if (level[u] > full)
			level[u] = full;
		seen[u] = t;
		got = take(&q, u * 77777, want, at_ns(t));
		level[u] -= (__int128)got * NS_PER_S;
		assert_true(level[u] >= 0);
		/* With a bucket for each nothing is held back either. */
		if (uids <= QUOTA_UIDS && got < want)
			assert_true(level[u] < NS_PER_S);
	}
}

static void
test_random_worlds(void **state)
{
	struct dice d = dice_open("quota");

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		int64_t rate =
		    1 + (int64_t)(dice_number(&d) % (uint64_t)QUOTA_RATE_MAX);

		check_world(&d, UIDS, rate);
		check_world(&d, 2 * QUOTA_UIDS, rate);
	}
}

/* ---- each uid's own ------------------------------------------------------------ */

static void
test_others_are_not_hurt(void **state)
{
	struct quota q;
	int64_t t = 0;

	(void)state;
	quota_init(&q, 1000, at_ns(0));
	while (t < 10 * NS_PER_S) {
		(void)take(&q, 1, 1000000, at_ns(t)); /* greedy */
		t += 100 * NS_PER_MS;
		/* Within its rate: never refused. */
		assert_int_equal(take(&q, 2, 100, at_ns(t)), 100);
	}
}

/* However many uids come: who has a bucket keeps it, the others share one. */
static void
test_table_is_full(void **state)
{
	struct quota q;
	uint32_t rest = 0;
	int64_t t = NS_PER_S;

	(void)state;
	quota_init(&q, 100, at_ns(0));
	for (uint32_t u = 0; u < QUOTA_UIDS; u++)
		assert_int_equal(take(&q, u, 100, at_ns(t)), 100);
	for (uint32_t u = 0; u < 10000; u++)
		rest += take(&q, 1000000 + u, 100, at_ns(t));
	assert_int_equal(rest, 100);
	/* ... while those with one have all of theirs. */
	t += NS_PER_S / 2;
	for (uint32_t u = 0; u < QUOTA_UIDS; u++)
		assert_int_equal(take(&q, u, 100, at_ns(t)), 50);
	/*
	 * Idle ones are given up, though not to a fresh bucket: who took from
	 * the shared one a moment ago begins with what is left there.
	 */
	t += NS_PER_S;
	assert_int_equal(take(&q, 0, 100, at_ns(t)), 100);
	assert_int_equal(take(&q, 2000000, 60, at_ns(t)), 60);
	assert_int_equal(take(&q, 2000000, 100, at_ns(t)), 40);
	assert_int_equal(take(&q, 0, 100, at_ns(t)), 0);
}

/* A uid that is moved from the shared bucket to its own gains nothing. */
static void
test_moving_gains_nothing(void **state)
{
	struct quota q;

	(void)state;
	quota_init(&q, 100, at_ns(0));
	for (uint32_t u = 1; u < QUOTA_UIDS; u++)
		assert_int_equal(take(&q, u, 100, at_ns(0)), 100);
	assert_int_equal(take(&q, 0, 1, at_ns(0)), 1); /* full again first */
	assert_int_equal(take(&q, 5000, 100, at_ns(0)), 100);
	/* 10 ms: the bucket of uid 0 is full, so 5000 gets one of its own. */
	assert_int_equal(take(&q, 5000, 100, at_ns(10 * NS_PER_MS)), 1);
	assert_int_equal(take(&q, 5000, 100, at_ns(10 * NS_PER_MS)), 0);
}

/* ---- when to try again ----------------------------------------------------------- */

static void
test_retry(void **state)
{
	static const struct {
		int64_t rate;
		uint32_t count;
		int64_t ms;
	} rows[] = {
		{ 1, 1, 1000 },
		{ 1, 1000, 1000 }, /* one ID is all there ever is */
		{ 5000, 1, 1 }, /* 0.2 ms, rounded up */
		{ 5000, 25, 5 },
		{ 5000, 1000000, 50 }, /* a batch that is worth the way */
		{ 19, 1000, 53 }, /* 1/19 s, rounded up */
		{ QUOTA_RATE_MAX, UINT32_MAX, 50 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct quota q;
		int64_t ms;

		quota_init(&q, rows[i].rate, at_ns(0));
		while (take(&q, 9, UINT32_MAX, at_ns(0)) > 0)
			;
		ms = quota_retry_ms(&q, 9, rows[i].count, at_ns(0));
		assert_int_equal(ms, rows[i].ms);
		/* And then there is something. */
		assert_true(take(&q, 9, 1, at_ns(ms * NS_PER_MS)) == 1);
	}
}

/* ---- another rate ---------------------------------------------------------------- */

static void
test_set_rate(void **state)
{
	struct quota q;
	int64_t t = 0;

	(void)state;
	quota_init(&q, 1000, at_ns(t));
	assert_int_equal(take(&q, 1, 700, at_ns(t)), 700);
	quota_set_rate(&q, 100, at_ns(t)); /* lower: at most its burst */
	assert_int_equal(take(&q, 1, 1000, at_ns(t)), 100);
	assert_int_equal(take(&q, 2, 1000, at_ns(t)), 100);
	quota_set_rate(&q, 1000, at_ns(t)); /* higher: no new burst */
	assert_int_equal(take(&q, 1, 1000, at_ns(t)), 0);
	t += NS_PER_S;
	assert_int_equal(take(&q, 1, 5000, at_ns(t)), 1000);
	quota_set_rate(&q, 0, at_ns(t)); /* none */
	assert_int_equal(take(&q, 1, 5000, at_ns(t)), 5000);
	quota_set_rate(&q, 10, at_ns(t)); /* from none: all begin anew */
	assert_int_equal(take(&q, 1, 5000, at_ns(t)), 10);
}

/* ---- extremes -------------------------------------------------------------------- */

static void
test_extremes(void **state)
{
	struct quota q;

	(void)state;
	quota_init(&q, INT64_MAX, at_ns(INT64_MIN)); /* more than may be set */
	assert_int_equal(q.rate, QUOTA_RATE_MAX);
	assert_int_equal(
	    take(&q, UINT32_MAX, UINT32_MAX, at_ns(INT64_MIN)), QUOTA_RATE_MAX);
	assert_int_equal(
	    take(&q, UINT32_MAX, UINT32_MAX, at_ns(INT64_MAX)), QUOTA_RATE_MAX);
	assert_int_equal(
	    take(&q, 0, UINT32_MAX, at_ns(INT64_MAX)), QUOTA_RATE_MAX);
	/* A clock that goes back (it cannot) gives nothing, takes nothing. */
	assert_int_equal(take(&q, 0, 5, at_ns(INT64_MIN)), 0);
	assert_int_equal(take(&q, 0, 5, at_ns(0)), 0);
	quota_init(&q, -5, at_ns(0));
	assert_int_equal(take(&q, 0, 5, at_ns(0)), 5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_limit),
		cmocka_unit_test(test_burst_then_rate),
		cmocka_unit_test(test_nothing_is_lost),
		cmocka_unit_test(test_random_worlds),
		cmocka_unit_test(test_others_are_not_hurt),
		cmocka_unit_test(test_table_is_full),
		cmocka_unit_test(test_moving_gains_nothing),
		cmocka_unit_test(test_retry),
		cmocka_unit_test(test_set_rate),
		cmocka_unit_test(test_extremes),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
