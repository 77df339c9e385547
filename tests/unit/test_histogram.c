/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The histogram of `firn bench`: every value has one bucket, buckets follow
 * each other without a gap, and a quantile is what sorting would give, at most
 * 1/32 too high.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "dice.h"
#include "histogram.h"

#define WORLDS 300
#define VALUES_MAX 2000

static void
test_buckets_have_no_gap(void **state)
{
	uint64_t lower = 0;

	(void)state;
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		uint64_t upper = histogram_upper(i);

		assert_int_equal(histogram_bucket(lower), i);
		assert_int_equal(histogram_bucket(upper), i);
		assert_true(upper - lower <= lower / HISTOGRAM_FINE);
		lower = upper + 1;
	}
	assert_int_equal(lower, 0); /* the last one ends with 2^64 - 1 */
}

static void
test_an_empty_one(void **state)
{
	static struct histogram h;

	(void)state;
	assert_int_equal(histogram_quantile(&h, 1, 2), 0);
	assert_int_equal(histogram_quantile(&h, 1, 1), 0);
}

static void
test_small_values_are_exact(void **state)
{
	static struct histogram h;

	(void)state;
	for (uint64_t v = 1; v <= 50; v++)
		histogram_add(&h, v);
	assert_int_equal(histogram_quantile(&h, 1, 2), 25);
	assert_int_equal(histogram_quantile(&h, 9, 10), 45);
	assert_int_equal(histogram_quantile(&h, 99, 100), 50);
	assert_int_equal(histogram_quantile(&h, 1, 1), 50);
	assert_int_equal(histogram_quantile(&h, 0, 1), 1);
}

static void
test_the_largest_is_exact(void **state)
{
	static struct histogram h;

	(void)state;
	histogram_add(&h, 1000003);
	assert_int_equal(histogram_quantile(&h, 1, 1), 1000003);
	histogram_add(&h, UINT64_MAX);
	assert_true(histogram_quantile(&h, 1, 1) == UINT64_MAX);
	assert_true(histogram_quantile(&h, 1, 2) >= 1000003);
}

static int
compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x < y ? -1 : x > y);
}

/* Against sorting, with values of every size, in two halves merged. */
static void
test_quantiles_are_those_of_sorting(void **state)
{
	static const uint32_t marks[][2] = { { 1, 2 }, { 9, 10 }, { 99, 100 },
		{ 999, 1000 }, { 1, 1 } };
	static uint64_t values[VALUES_MAX];
	static struct histogram halves[2];
	struct dice d = dice_open("test_histogram");

	(void)state;
	for (unsigned world = 0; world < WORLDS; world++) {
		size_t n = 1 + dice_below(&d, VALUES_MAX);

		memset(halves, 0, sizeof(halves));
		for (size_t i = 0; i < n; i++) {
			values[i] = dice_next(&d) >> dice_below(&d, 64);
			histogram_add(&halves[i % 2], values[i]);
		}
		histogram_merge(&halves[0], &halves[1]);
		qsort(values, n, sizeof(values[0]), compare);
		assert_int_equal(halves[0].total, n);
		for (size_t k = 0; k < sizeof(marks) / sizeof(marks[0]); k++) {
			size_t at =
			    (n * marks[k][0] + marks[k][1] - 1) / marks[k][1];
			uint64_t exact = values[at - 1];
			uint64_t got = histogram_quantile(
			    &halves[0], marks[k][0], marks[k][1]);

			assert_true(got >= exact);
			assert_true(got - exact <= exact / HISTOGRAM_FINE);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buckets_have_no_gap),
		cmocka_unit_test(test_an_empty_one),
		cmocka_unit_test(test_small_values_are_exact),
		cmocka_unit_test(test_the_largest_is_exact),
		cmocka_unit_test(test_quantiles_are_those_of_sorting),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
