/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shards: vectors that never change, the cut of a shard in two, and that IDs
 * as the agent gives them out spread evenly over any number of shards, at any
 * rate, also where each tick begins at sequence 0.  Nothing here is random:
 * the streams are the same at each run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "generator.h"
#include "layout.h"

#define SHARDS 1000
#define PER_SHARD 20 /* IDs that a shard can expect */

/* Worked out with whole numbers of any size, by the recipe in firn.h. */
static void
vectors_never_change(void **state)
{
	static const uint32_t n[] = { 1, 2, 3, 10, 16, 1000, 65536,
		2147483647 };
	static const struct {
		uint64_t id;
		int shard[sizeof(n) / sizeof(n[0])];
	} cases[] = {
		{ UINT64_C(0), { 0, 0, 0, 0, 0, 0, 0, 0 } },
		{ UINT64_C(1), { 0, 0, 1, 3, 5, 338, 22162, 726207246 } },
		{ UINT64_C(2), { 0, 1, 2, 8, 13, 858, 56274, 1843993674 } },
		{ UINT64_C(4096), { 0, 1, 2, 9, 15, 938, 61536, 2016420031 } },
		{ UINT64_C(9007199254740991),
		    { 0, 1, 2, 8, 14, 876, 57454, 1882670450 } },
		{ UINT64_C(9223372036854775807),
		    { 0, 0, 1, 3, 5, 353, 23144, 758388094 } },
		{ UINT64_C(9223372036854775808),
		    { 0, 0, 0, 1, 2, 147, 9666, 316749650 } },
		{ UINT64_C(18446744073709551615),
		    { 0, 1, 2, 7, 11, 706, 46288, 1516776189 } },
		{ UINT64_C(1541815603606036480),
		    { 0, 1, 2, 9, 15, 959, 62868, 2060080192 } },
		{ UINT64_C(175928847299117063),
		    { 0, 1, 2, 7, 12, 774, 50762, 1663399903 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (size_t j = 0; j < sizeof(n) / sizeof(n[0]); j++)
			assert_int_equal(
			    firn_shard(cases[i].id, n[j]), cases[i].shard[j]);
}

static void
bad_numbers_are_refused(void **state)
{
	(void)state;
	assert_int_equal(firn_shard(1, 0), FIRN_EINVAL);
	assert_int_equal(firn_shard(1, UINT32_C(1) << 31), FIRN_EINVAL);
	assert_int_equal(firn_shard(1, UINT32_MAX), FIRN_EINVAL);
	assert_int_equal(firn_shard(UINT64_MAX, 1), 0);
}

/* ---- IDs as the agent gives them out ----------------------------------- */

struct stream {
	const char *layout;
	uint64_t worker;
	int64_t step; /* ticks from one request to the next */
	uint32_t count; /* IDs in a request */
	const char *why;
};

static const struct stream streams[] = {
	{ "firn", 0, 1000, 1, "one ID a second: sequence always 0" },
	{ "firn", 835, 3600000, 1, "one an hour" },
	{ "firn", 835, 1, 1, "one each tick" },
	{ "firn", 7, 10, 3, "three each 10 ms: sequences 0, 1, 2" },
	{ "firn", 1023, 1, 4096, "every sequence of every tick" },
	{ "twitter", 378, 1, 100, "the lower sequences only" },
	{ "instagram", 8191, 64, 1, "one each 64 ms, all 64 bits" },
	{ "sonyflake", 65535, 1, 1, "the worker in the lowest bits" },
	{ "sonyflake", 0, 1, 256, "a worker of zeros there" },
	{ "js53", 127, 1, 1, "53 bits, one each 10 ms" },
};
#define STREAMS (sizeof(streams) / sizeof(streams[0]))

static uint64_t ids[SHARDS * PER_SHARD];

/* What an agent with sequence_start zero grants, request for request. */
static void
take(const struct stream *s)
{
	struct gen_limits limits = { .now = INT64_C(5000000000) };
	struct firn_layout l;
	struct generator g;
	size_t n = 0;

	assert_int_equal(firn_layout_preset(s->layout, &l), 0);
	generator_init(&g, &l, false);
	generator_set_worker(&g, s->worker);
	while (n < SHARDS * PER_SHARD) {
		struct gen_grant grant;

		limits.first = limits.last = limits.now;
		assert_int_equal(generator_take(&g, &limits, 0, s->count,
				     GEN_NO_SHARE, 0, &grant),
		    GEN_OK);
		for (unsigned r = 0; r < grant.nruns; r++)
			for (uint32_t i = 0;
			     i < grant.runs[r].count && n < SHARDS * PER_SHARD;
			     i++)
				ids[n++] = grant.runs[r].first +
					   i * grant.runs[r].stride;
		limits.now += s->step;
	}
}

static int
by_remainder(uint64_t id, uint32_t n)
{
	return ((int)(id % n));
}

/* Pearson's statistic over the first n * PER_SHARD IDs. */
static double
chi_square(uint32_t n, int (*shard_of)(uint64_t, uint32_t))
{
	static uint32_t counts[SHARDS];
	double sum = 0;

	memset(counts, 0, sizeof(counts));
	for (size_t i = 0; i < (size_t)n * PER_SHARD; i++)
		counts[shard_of(ids[i], n)]++;
	for (uint32_t s = 0; s < n; s++) {
		double off = (double)counts[s] - PER_SHARD;

		sum += off * off / PER_SHARD;
	}
	return (sum);
}

/*
 * Is it one that even shards could give?  With k = n - 1 its mean is k and
 * its variance 2 k; the bound is five deviations above, and some for small k.
 */
static bool
is_even(double chi, uint32_t n)
{
	double k = n - 1, over = chi - k - 15;

	return (over <= 0 || over * over <= 25 * 2 * k);
}

static void
shards_are_even(void **state)
{
	(void)state;
	for (size_t i = 0; i < STREAMS; i++) {
		double sum = 0, freedom = 0, worst = 0;

		take(&streams[i]);
		for (uint32_t n = 2; n <= SHARDS; n++) {
			double chi = chi_square(n, firn_shard);
			double per = chi / (n - 1);

			if (!is_even(chi, n))
				fail_msg("%s: %u shards, chi-square %.1f",
				    streams[i].why, (unsigned)n, chi);
			sum += chi;
			freedom += n - 1;
			worst = n > 50 && per > worst ? per : worst;
		}
		print_message("%s, %s: chi-square/freedom %.3f, worst above "
			      "50 shards %.3f\n",
		    streams[i].layout, streams[i].why, sum / freedom, worst);
		/* all n together: one in a tenth would be far too uneven */
		assert_true(sum / freedom > 0.9 && sum / freedom < 1.1);
	}
}

/* The test sees what it is for: the remainder fails it at low rates. */
static void
remainders_are_not(void **state)
{
	unsigned uneven = 0;

	(void)state;
	take(&streams[0]);
	for (uint32_t n = 2; n <= SHARDS; n++)
		uneven += !is_even(chi_square(n, by_remainder), n);
	print_message("id %% n is uneven for %u of %d numbers of shards\n",
	    uneven, SHARDS - 1);
	assert_true(uneven >= SHARDS / 2 - 1);
}

/* A shard that is cut in k gives its IDs to its own parts alone. */
static void
shards_are_cut_in_place(void **state)
{
	(void)state;
	take(&streams[2]);
	for (size_t i = 0; i < SHARDS * PER_SHARD; i++)
		for (uint32_t n = 1; n <= 40; n++) {
			uint32_t k = 2 + (uint32_t)i % 7;

			assert_int_equal(firn_shard(ids[i], n * k) / (int)k,
			    firn_shard(ids[i], n));
		}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors_never_change),
		cmocka_unit_test(bad_numbers_are_refused),
		cmocka_unit_test(shards_are_even),
		cmocka_unit_test(remainders_are_not),
		cmocka_unit_test(shards_are_cut_in_place),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
