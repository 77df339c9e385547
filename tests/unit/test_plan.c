/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan's arithmetic: ends, rates and moves of layouts, the load of a
 * fleet, odds of collisions as published, durations, numbers as text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "budget.h"
#include "dice.h"
#include "layout.h"

#define WORLDS 20000
#define YEAR_MS (INT64_C(365) * 86400000)

static struct firn_layout
layout(const char *text)
{
	struct firn_layout l;

	if (firn_layout_preset(text, &l) != 0)
		assert_int_equal(layout_parse_bits(text, &l, NULL), 0);
	return (l);
}

/* Ends and sign bits as the specifications of each preset have them. */
static void
presets_have_their_budgets(void **state)
{
	static const struct {
		const char *name;
		int64_t last_ms, sign_ms, unsafe_ms; /* 0: never */
		uint64_t workers, agents, worker_rate, fleet_rate;
		int64_t span_tenths;
	} cases[] = {
		/* 2^53 is 2^31 ms after the epoch: 24.9 days */
		{ "firn", 3934712855551, 0, 1735689600000 + 2147483648, 1024,
		    768, 4096000, 4194304000, 697 },
		{ "twitter", 3487858230208, 0, 1288834974657 + 2147483648, 1024,
		    768, 4096000, 4194304000, 697 },
		{ "discord", 5818116911103, 3619093655552,
		    1420070400000 + 2147483648, 1024, 768, 4096000, 4194304000,
		    1394 },
		/* 23 bits below the time: 2^30 ms */
		{ "instagram", 3513243277272, 2413731649497,
		    1314220021721 + 1073741824, 8192, 6144, 1024000, 8388608000,
		    697 },
		/* 24 bits: 2^29 ticks of 10 ms */
		{ "sonyflake", 6907087738879, 0, 1409529600000 + 5368709120,
		    65536, 49152, 25600, 1677721600, 1742 },
		{ "js53", 1735689600000 + 2748779069439, 0, 0, 128, 96, 25600,
		    3276800, 871 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct firn_layout l = layout(cases[i].name);
		struct budget b;

		budget_of(&l, &b);
		print_message("%s\n", cases[i].name);
		assert_int_equal(b.last_ms, cases[i].last_ms);
		assert_int_equal(b.has_sign, cases[i].sign_ms != 0);
		assert_int_equal(b.sign_ms, cases[i].sign_ms);
		assert_int_equal(b.has_unsafe, cases[i].unsafe_ms != 0);
		assert_int_equal(b.unsafe_ms, cases[i].unsafe_ms);
		assert_int_equal(b.workers, cases[i].workers);
		assert_int_equal(b.agents, cases[i].agents);
		assert_int_equal(b.worker_rate, cases[i].worker_rate);
		assert_int_equal(b.fleet_rate, cases[i].fleet_rate);
		assert_int_equal(b.span_tenths, cases[i].span_tenths);
	}
}

/* Whatever the layout: 2^53 is passed at that instant and not before. */
static void
unsafe_is_exact(void **state)
{
	struct dice d = dice_open(__func__);
	unsigned never = 0, passed = 0;

	(void)state;
	for (int i = 0; i < WORLDS; i++) {
		unsigned total = (unsigned)dice_range(&d, 40, 64);
		unsigned time = (unsigned)dice_range(&d, 10, total - 1);
		unsigned worker = (unsigned)dice_below(&d, total - time);
		struct firn_layout l = layout("firn");
		struct budget b;
		uint64_t id;

		l.time_bits = (uint8_t)time;
		l.worker_bits = (uint8_t)worker;
		l.sequence_bits = (uint8_t)(total - time - worker);
		if (!layout_valid(&l))
			continue;
		budget_of(&l, &b);
		assert_int_equal(b.has_unsafe, total > 53);
		if (!b.has_unsafe) {
			never++;
			continue;
		}
		passed++;
		if (total - time > 53) {
			assert_int_equal(b.unsafe_ms, l.epoch_ms);
			continue;
		}
		assert_int_equal(firn_id_floor(&l, b.unsafe_ms, &id), 0);
		assert_true(id == UINT64_C(1) << 53);
	}
	assert_true(never > WORLDS / 10 && passed > WORLDS / 10);
}

static void
rates_do_not_overflow(void **state)
{
	struct firn_layout l = layout("1/0/63");
	struct budget b;

	(void)state;
	budget_of(&l, &b);
	assert_true(b.worker_rate == UINT64_MAX && b.fleet_rate == UINT64_MAX);
	assert_int_equal(b.agents, 0); /* one of one leaves no quarter */
	l.tick_ms = 3600000;
	budget_of(&l, &b);
	assert_true(
	    b.worker_rate == UINT64_C(9223372036854775808) / 3600000 * 1000);
	l = layout("1/62/1");
	budget_of(&l, &b);
	assert_true(b.workers == UINT64_C(1) << 62);
	assert_int_equal(b.agents, 1 << 20); /* what a realm can have */
}

static void
a_bit_is_moved(void **state)
{
	struct firn_layout l = layout("41/5+5/12"), m;

	(void)state;
	assert_true(budget_move_bit(&l, BUDGET_TIME, BUDGET_WORKER, &m));
	assert_int_equal(m.time_bits, 40);
	assert_int_equal(m.worker_bits, 11);
	assert_int_equal(m.sequence_bits, 12);
	assert_true(budget_move_bit(&l, BUDGET_SEQUENCE, BUDGET_TIME, &m));
	assert_int_equal(m.time_bits, 42);
	assert_int_equal(m.sequence_bits, 11);
	l = layout("41/10+0/12");
	assert_true(budget_move_bit(&l, BUDGET_WORKER, BUDGET_TIME, &m));
	assert_int_equal(m.datacenter_bits, 9);
	/* nothing to take, or what must stay */
	l = layout("62/0/1");
	assert_false(budget_move_bit(&l, BUDGET_WORKER, BUDGET_TIME, &m));
	assert_false(budget_move_bit(&l, BUDGET_SEQUENCE, BUDGET_WORKER, &m));
	l = layout("62/1/1");
	assert_false(budget_move_bit(&l, BUDGET_WORKER, BUDGET_TIME, &m));
	assert_false(budget_move_bit(&l, BUDGET_TIME, BUDGET_TIME, &m));
}

/* firnd(8): 333 writes a second and 12 GB of log a day with 1000 agents. */
static void
a_fleet_has_its_load(void **state)
{
	struct budget_load load;

	(void)state;
	budget_load(1000, &load);
	assert_int_equal(load.write_tenths, 3334);
	assert_int_equal(load.read_tenths, 3333 + 1002);
	assert_int_equal(load.log_bytes / 1000000000, 12);
	budget_load(0, &load);
	assert_int_equal(load.write_tenths, 1);
}

/*
 * At 1,000,000 a second for a year: about 1 in 10,000,000,000 for UUIDv4, in
 * 77,000,000 for ULID, in 1,200,000 for UUIDv7.
 */
static void
odds_are_the_published_ones(void **state)
{
	static const struct {
		const char *kind;
		double one_in, digits; /* what the published text is cut to */
	} cases[] = {
		{ "UUIDv4", 1e10, 1e10 },
		{ "ULID", 77e6, 1e6 },
		{ "UUIDv7", 1.2e6, 1e5 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct budget_kind *k = budget_kinds;
		double off;

		while (strcmp(k->name, cases[i].kind) != 0)
			assert_true(++k < budget_kinds + BUDGET_KINDS);
		off = 1 / budget_collisions(k, 1000000, YEAR_MS) -
		      cases[i].one_in;
		print_message("%s: off by %.0f\n", k->name, off);
		assert_true(
		    off < cases[i].digits / 2 && off > -cases[i].digits / 2);
	}
}

/* Twice the rate: four times the odds; twice as long: four times, or two. */
static void
odds_grow_as_they_should(void **state)
{
	(void)state;
	for (int i = 0; i < BUDGET_KINDS; i++) {
		const struct budget_kind *k = &budget_kinds[i];
		double one = budget_collisions(k, 1000, YEAR_MS);
		double rate = budget_collisions(k, 2000, YEAR_MS) / one;
		double lasts = budget_collisions(k, 1000, 2 * YEAR_MS) / one;
		double want = k->unit_ms > 0 ? 2 : 4;

		assert_true(rate > 3.999 && rate < 4.001);
		assert_true(lasts > want - 0.001 && lasts < want + 0.001);
	}
}

static void
durations_are_read(void **state)
{
	static const struct {
		const char *text;
		int64_t ms; /* -1: none */
	} cases[] = {
		{ "1s", 1000 },
		{ "90m", 5400000 },
		{ "12h", 43200000 },
		{ "90d", INT64_C(7776000000) },
		{ "1y", YEAR_MS },
		{ "10000y", 10000 * YEAR_MS },
		{ "10028y", -1 },
		{ "999999999999999s", -1 },
		{ "9999999999999999s", -1 },
		{ "0s", -1 },
		{ "1", -1 },
		{ "", -1 },
		{ "y", -1 },
		{ "1y ", -1 },
		{ "1w", -1 },
		{ "-1d", -1 },
		{ "1.5h", -1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t ms = 0;

		print_message("\"%s\"\n", cases[i].text);
		assert_int_equal(
		    budget_duration(cases[i].text, &ms), cases[i].ms >= 0);
		if (cases[i].ms >= 0)
			assert_int_equal(ms, cases[i].ms);
	}
}

static void
numbers_are_written(void **state)
{
	static const struct {
		double v;
		const char *plain, *marks;
	} cases[] = {
		{ 0.4, "0", "0" },
		{ 7, "7", "7" },
		{ 99.4, "99", "99" },
		{ 99.6, "100", "100" },
		{ 12345, "12000", "12,000" },
		{ 76668188, "77000000", "77,000,000" },
		{ 1.0678e10, "11000000000", "11,000,000,000" },
		{ 9.96e14, "1000000000000000", "1.0 x 10^15" },
		{ 1.4e27, "1400000000000000000000000000", "1.4 x 10^27" },
	};
	char text[64], group[BUDGET_NUMBER_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		budget_round(cases[i].v, false, text, sizeof(text));
		assert_string_equal(text, cases[i].plain);
		budget_round(cases[i].v, true, text, sizeof(text));
		assert_string_equal(text, cases[i].marks);
	}
	budget_group(0, group);
	assert_string_equal(group, "0");
	budget_group(999, group);
	assert_string_equal(group, "999");
	budget_group(1000, group);
	assert_string_equal(group, "1,000");
	budget_group(UINT64_MAX, group);
	assert_string_equal(group, "18,446,744,073,709,551,615");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(presets_have_their_budgets),
		cmocka_unit_test(unsafe_is_exact),
		cmocka_unit_test(rates_do_not_overflow),
		cmocka_unit_test(a_bit_is_moved),
		cmocka_unit_test(a_fleet_has_its_load),
		cmocka_unit_test(odds_are_the_published_ones),
		cmocka_unit_test(odds_grow_as_they_should),
		cmocka_unit_test(durations_are_read),
		cmocka_unit_test(numbers_are_written),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
