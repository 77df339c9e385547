/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_audit_turn - when an agent sweeps, whose summary it is, and which
 * alerts are news.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "audit-turn.h"
#include "dice.h"

#define AUDIT_MS 10000

static struct audit before, now;
static struct contract contract;

static int
setup(void **state)
{
	(void)state;
	memset(&before, 0, sizeof(before));
	memset(&now, 0, sizeof(now));
	contract = (struct contract){
		.uuid = { 7 }, .generation = 9, .generation_text = "9-aa"
	};
	now.uuid[0] = 7;
	(void)snprintf(now.generation, sizeof(now.generation), "9-aa");
	(void)snprintf(now.oldest, sizeof(now.oldest), "old");
	(void)snprintf(now.auditor, sizeof(now.auditor), "last");
	return (0);
}

/* ---- whose turn it is --------------------------------------------------------- */

static void
oldest_then_last_then_anybody(void **state)
{
	struct dice d = dice_open("turn");
	int64_t least = INT64_MAX, most = 0;

	(void)state;
	for (int i = 0; i < 10000; i++) {
		uint64_t chance = dice_next(&d);
		int64_t other = audit_turn_ms(&now, "x", AUDIT_MS, chance);

		assert_int_equal(
		    audit_turn_ms(&now, "old", AUDIT_MS, chance), AUDIT_MS);
		assert_int_equal(audit_turn_ms(&now, "last", AUDIT_MS, chance),
		    AUDIT_MS + AUDIT_MS / 4);
		/* within three, with a quarter left for the sweep itself */
		assert_in_range(other, 2 * AUDIT_MS, 3 * AUDIT_MS - 2500);
		least = other < least ? other : least;
		most = other > most ? other : most;
	}
	assert_true(most - least > AUDIT_MS / 2); /* they do not come at once */
}

/* Whoever comes first has 300 ms to himself, but for a few. */
static void
few_of_a_thousand_come_at_once(void **state)
{
	struct dice d = dice_open("few");
	static int64_t at[1000];
	uint64_t near = 0;

	(void)state;
	for (int round = 0; round < 200; round++) {
		int64_t first = INT64_MAX;

		for (size_t i = 0; i < 1000; i++) {
			at[i] =
			    audit_turn_ms(&now, "x", AUDIT_MS, dice_next(&d));
			first = at[i] < first ? at[i] : first;
		}
		for (size_t i = 0; i < 1000; i++)
			near += at[i] <= first + 300 ? 1 : 0;
	}
	assert_true(near < 200 * 5); /* all alike: forty */
}

static void
oldest_that_wrote_last_is_the_oldest(void **state)
{
	(void)state;
	(void)snprintf(now.auditor, sizeof(now.auditor), "old");
	assert_int_equal(audit_turn_ms(&now, "old", AUDIT_MS, 5), AUDIT_MS);
}

static void
without_a_summary_soon(void **state)
{
	(void)state;
	assert_int_equal(audit_turn_ms(NULL, "x", AUDIT_MS, 0), 0);
	for (uint64_t chance = 0; chance < 20000; chance++)
		assert_in_range(audit_turn_ms(NULL, "x", AUDIT_MS, chance), 0,
		    AUDIT_MS / 2);
}

static void
nobody_is_not_the_oldest(void **state)
{
	(void)state;
	now.oldest[0] = now.auditor[0] = '\0'; /* of a fleet of none */
	assert_true(audit_turn_ms(&now, "", AUDIT_MS, 0) >= 2 * AUDIT_MS);
}

/* ---- whose it is ------------------------------------------------------------------ */

static void
of_this_realm_and_generation(void **state)
{
	(void)state;
	assert_true(audit_is_of(&now, &contract));
	assert_false(audit_is_ahead(&now, &contract));
	(void)snprintf(now.generation, sizeof(now.generation), "9-ab");
	assert_false(audit_is_of(&now, &contract));
	assert_true(audit_is_of_uuid(&now, &contract));
	now.uuid[0] = 8;
	assert_false(audit_is_of_uuid(&now, &contract));
}

static void
ahead_by_its_number_and_of_the_same_realm(void **state)
{
	static const struct {
		const char *generation;
		uint8_t uuid;
		bool ahead;
	} cases[] = {
		{ "10-00", 7, true }, /* and not by its letters */
		{ "8-ff", 7, false },
		{ "9-bb", 7, false }, /* made anew by hand */
		{ "10-00", 8, false }, /* another realm */
		{ "", 7, false },
		{ "9223372036854775808000-0", 7, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		(void)snprintf(now.generation, sizeof(now.generation), "%s",
		    cases[i].generation);
		now.uuid[0] = cases[i].uuid;
		assert_int_equal(
		    audit_is_ahead(&now, &contract), cases[i].ahead);
	}
}

/* ---- news ---------------------------------------------------------------------------- */

static char told[200];

static void
on_news(void *arg, const struct audit_alert *x, bool raised)
{
	size_t at = strlen(told);

	assert_ptr_equal(arg, told);
	(void)snprintf(told + at, sizeof(told) - at, "%s%s%d/%d",
	    at > 0 ? " " : "", raised ? "+" : "-", x->kind,
	    x->worker == NO_WORKER ? -1 : (int)x->worker);
}

static void
stand(struct audit *a, enum audit_kind kind, uint64_t worker, bool critical)
{
	a->alerts[a->nalerts++] = (struct audit_alert){
		.kind = kind, .worker = worker, .critical = critical
	};
}

static const char *
news(const struct audit *of, const struct audit *to)
{
	told[0] = '\0';
	audit_news(of, to, on_news, told);
	return (told);
}

static void
raised_and_cleared_by_kind_and_worker(void **state)
{
	(void)state;
	stand(&before, AUDIT_AGENT_STALE, 1, false);
	stand(&before, AUDIT_AGENT_STALE, 2, false);
	stand(&before, AUDIT_FLEET_SKEW, NO_WORKER, false);
	stand(&now, AUDIT_AGENT_STALE, 2, false);
	stand(&now, AUDIT_AGENT_STALE, 3, false);
	stand(&now, AUDIT_WORKERS_LOW, NO_WORKER, false);
	assert_string_equal(news(&before, &now), "+0/3 +2/-1 -0/1 -4/-1");
	assert_string_equal(news(&now, &now), "");
	assert_string_equal(news(NULL, &now), "+0/2 +0/3 +2/-1");
	assert_string_equal(news(NULL, &(struct audit){ 0 }), "");
}

static void
worse_is_news_and_better_is_not(void **state)
{
	(void)state;
	stand(&before, AUDIT_WORKERS_LOW, NO_WORKER, false);
	stand(&now, AUDIT_WORKERS_LOW, NO_WORKER, true);
	assert_string_equal(news(&before, &now), "+2/-1");
	assert_string_equal(news(&now, &before), "");
}

#define T(f) cmocka_unit_test_setup(f, setup)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(oldest_then_last_then_anybody),
		T(few_of_a_thousand_come_at_once),
		T(oldest_that_wrote_last_is_the_oldest),
		T(without_a_summary_soon),
		T(nobody_is_not_the_oldest),
		T(of_this_realm_and_generation),
		T(ahead_by_its_number_and_of_the_same_realm),
		T(raised_and_cleared_by_kind_and_worker),
		T(worse_is_news_and_better_is_not),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
