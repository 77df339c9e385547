/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_rfc3339 - instants as text: known ones, what is refused and where, and
 * that every day of ten thousand years comes back as itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dice.h"
#include "rfc3339.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MS_PER_DAY INT64_C(86400000)
#define ROUNDS 100000

struct known {
	const char *text;
	int64_t unix_ms;
	const char *canonical; /* NULL: as text */
	const char *why;
};

/* Figures from `date -u -d TEXT +%s`. */
static const struct known known[] = {
	{ "1970-01-01T00:00:00.000Z", 0, NULL, "Unix's epoch" },
	{ "1969-12-31T23:59:59.999Z", -1, NULL, "before it" },
	{ "2025-01-01T00:00:00.000Z", INT64_C(1735689600000), NULL,
	    "firn's epoch" },
	{ "2010-11-04T01:42:54.657Z", INT64_C(1288834974657), NULL,
	    "Snowflake's epoch" },
	{ "2000-02-29T12:00:00.500Z", INT64_C(951825600500), NULL,
	    "leap day of a leap century" },
	{ "2100-03-01T00:00:00.000Z", INT64_C(4107542400000), NULL,
	    "no leap day in 2100" },
	{ "0000-01-01T00:00:00.000Z", RFC3339_MS_MIN, NULL, "the first" },
	{ "9999-12-31T23:59:59.999Z", RFC3339_MS_MAX, NULL, "the last" },
	{ "2025-01-01T00:00:00Z", INT64_C(1735689600000),
	    "2025-01-01T00:00:00.000Z", "no fraction" },
	{ "2025-01-01T00:00:00.5Z", INT64_C(1735689600500),
	    "2025-01-01T00:00:00.500Z", "one digit" },
	{ "2025-01-01T00:00:00.123999999Z", INT64_C(1735689600123),
	    "2025-01-01T00:00:00.123Z", "nine digits, cut" },
	{ "2025-01-01T02:30:00+02:30", INT64_C(1735689600000),
	    "2025-01-01T00:00:00.000Z", "east" },
	{ "2024-12-31T16:00:00-08:00", INT64_C(1735689600000),
	    "2025-01-01T00:00:00.000Z", "west, over the year" },
	{ "2025-01-01T00:00:00-00:00", INT64_C(1735689600000),
	    "2025-01-01T00:00:00.000Z", "offset unknown: UTC" },
};

static void
test_known(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(known); i++) {
		const struct known *k = &known[i];
		char text[RFC3339_TEXT_MAX];
		int64_t ms = 77;

		if (rfc3339_parse(k->text, &ms, NULL) != 0 || ms != k->unix_ms)
			fail_msg("%s: %s", k->why, k->text);
		assert_true(rfc3339_format(ms, text));
		assert_string_equal(
		    text, k->canonical != NULL ? k->canonical : k->text);
	}
}

struct refused {
	const char *text;
	int rc;
	size_t where;
	const char *why;
};

static const struct refused refused[] = {
	{ "", FIRN_EINVAL, 0, "nothing" },
	{ "2025", FIRN_EINVAL, 4, "a year" },
	{ "2025-01-01", FIRN_EINVAL, 10, "a date" },
	{ "2025-01-01T00:00Z", FIRN_EINVAL, 16, "no seconds" },
	{ "2025-01-01T00:00:00", FIRN_EINVAL, 19, "no zone" },
	{ "2025-01-01 00:00:00Z", FIRN_EINVAL, 10, "blank for T" },
	{ "2025-01-01t00:00:00Z", FIRN_EINVAL, 10, "lower case" },
	{ "2025-01-01T00:00:00z", FIRN_EINVAL, 19, "lower case" },
	{ "2025-1-01T00:00:00Z", FIRN_EINVAL, 6, "one digit" },
	{ "2025-00-01T00:00:00Z", FIRN_EINVAL, 5, "month 0" },
	{ "2025-13-01T00:00:00Z", FIRN_EINVAL, 5, "month 13" },
	{ "2025-01-00T00:00:00Z", FIRN_EINVAL, 8, "day 0" },
	{ "2025-02-29T00:00:00Z", FIRN_EINVAL, 8, "no leap year" },
	{ "2100-02-29T00:00:00Z", FIRN_EINVAL, 8, "no leap century" },
	{ "2200-02-29T00:00:00Z", FIRN_EINVAL, 8, "nor is 2200" },
	{ "2025-04-31T00:00:00Z", FIRN_EINVAL, 8, "April has 30" },
	{ "2025-01-01T24:00:00Z", FIRN_EINVAL, 11, "hour 24" },
	{ "2025-01-01T00:60:00Z", FIRN_EINVAL, 14, "minute 60" },
	{ "2016-12-31T23:59:60Z", FIRN_EINVAL, 17, "a leap second" },
	{ "2025-01-01T00:00:00.Z", FIRN_EINVAL, 20, "no digits" },
	{ "2025-01-01T00:00:00,5Z", FIRN_EINVAL, 19, "a comma" },
	{ "2025-01-01T00:00:00.1234567890Z", FIRN_EINVAL, 29, "ten digits" },
	{ "2025-01-01T00:00:00+24:00", FIRN_EINVAL, 20, "offset of a day" },
	{ "2025-01-01T00:00:00+0200", FIRN_EINVAL, 22, "no colon" },
	{ "2025-01-01T00:00:00Z ", FIRN_EINVAL, 20, "something after it" },
	{ " 2025-01-01T00:00:00Z", FIRN_EINVAL, 0, "something before it" },
	{ "+2025-01-01T00:00:00Z", FIRN_EINVAL, 0, "a sign" },
	{ "12025-01-01T00:00:00Z", FIRN_EINVAL, 4, "five digits" },
	{ "0000-01-01T00:00:00+00:01", FIRN_ERANGE, 0, "before year 0" },
	{ "9999-12-31T23:59:59-00:01", FIRN_ERANGE, 0, "after year 9999" },
};

static void
test_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(refused); i++) {
		const struct refused *r = &refused[i];
		size_t where = 777;
		int64_t ms = 77;
		int rc = rfc3339_parse(r->text, &ms, &where);

		if (rc != r->rc || where != r->where || ms != 77)
			fail_msg(
			    "%s: %s: %d at %zu", r->why, r->text, rc, where);
		assert_int_equal(rfc3339_parse(r->text, &ms, NULL), r->rc);
	}
}

static const struct refused numbers[] = {
	{ "0", 0, 0, "the epoch" },
	{ "-1", 0, 0, "before it" },
	{ "1735689600000", 0, 0, "firn's epoch" },
	{ "253402300799999", 0, 0, "the last" },
	{ "-62167219200000", 0, 0, "the first" },
	{ "2025-01-01T00:00:00Z", 0, 0, "an instant" },
	{ "253402300800000", FIRN_ERANGE, 0, "after it" },
	{ "-62167219200001", FIRN_ERANGE, 0, "before it" },
	{ "99999999999999999999999", FIRN_ERANGE, 0, "over 64 bits" },
	{ "-99999999999999999999999", FIRN_ERANGE, 0, "the same below" },
	{ "", FIRN_EINVAL, 0, "nothing" },
	{ "-", FIRN_EINVAL, 1, "a sign" },
	{ "-0", FIRN_EINVAL, 1, "no such number" },
	{ "01", FIRN_EINVAL, 0, "leading zero" },
	{ "-01", FIRN_EINVAL, 1, "leading zero" },
	{ "-5x", FIRN_EINVAL, 2, "something after it" },
	{ "1e3", FIRN_EINVAL, 1, "an exponent" },
	{ "1.5", FIRN_EINVAL, 1, "a fraction" },
	{ " 1", FIRN_EINVAL, 0, "a blank" },
	{ "0x10", FIRN_EINVAL, 1, "hexadecimal" },
	{ "now", FIRN_EINVAL, 0, "a word" },
};

static void
test_numbers(void **state)
{
	int64_t ms;

	(void)state;
	for (size_t i = 0; i < COUNT(numbers); i++) {
		const struct refused *r = &numbers[i];
		size_t where = 0;
		int rc = rfc3339_parse_or_ms(r->text, &ms, &where);

		if (rc != r->rc || where != r->where)
			fail_msg("%s: \"%s\": %d at %zu", r->why, r->text, rc,
			    where);
		assert_int_equal(
		    rfc3339_parse_or_ms(r->text, &ms, NULL), r->rc);
	}
	assert_int_equal(rfc3339_parse_or_ms("-62167219200000", &ms, NULL), 0);
	assert_true(ms == RFC3339_MS_MIN);
}

static void
test_outside(void **state)
{
	static const int64_t outside[] = { RFC3339_MS_MIN - 1,
		RFC3339_MS_MAX + 1, INT64_MIN, INT64_MAX };
	char text[RFC3339_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < COUNT(outside); i++) {
		memset(text, 'x', sizeof(text));
		assert_false(rfc3339_format(outside[i], text));
		assert_string_equal(text, "");
	}
}

/* Every day comes back as itself, and texts sort as the days do. */
static void
test_every_day(void **state)
{
	char before[RFC3339_TEXT_MAX] = "", text[RFC3339_TEXT_MAX];
	int64_t back;

	(void)state;
	for (int64_t ms = RFC3339_MS_MIN; ms < RFC3339_MS_MAX;
	     ms += MS_PER_DAY) {
		assert_true(rfc3339_format(ms, text));
		if (strcmp(before, text) >= 0)
			fail_msg("%s is followed by %s", before, text);
		if (rfc3339_parse(text, &back, NULL) != 0 || back != ms)
			fail_msg("%s", text);
		memcpy(before, text, sizeof(text));
	}
	assert_string_equal(text, "9999-12-31T00:00:00.000Z");
}

static void
test_any_instant(void **state)
{
	struct dice d = dice_open("rfc3339");
	char text[RFC3339_TEXT_MAX];
	int64_t back;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		int64_t ms = dice_range(&d, RFC3339_MS_MIN, RFC3339_MS_MAX);

		assert_true(rfc3339_format(ms, text));
		assert_int_equal(strlen(text), RFC3339_TEXT_MAX - 1);
		if (rfc3339_parse(text, &back, NULL) != 0 || back != ms)
			fail_msg("%s", text);
		/* One byte of it is another: refused, or another instant. */
		text[dice_below(&d, sizeof(text) - 1)] =
		    (char)dice_range(&d, 0x20, 0x7e);
		if (rfc3339_parse(text, &back, NULL) == 0)
			assert_true(
			    back >= RFC3339_MS_MIN && back <= RFC3339_MS_MAX);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_outside),
		cmocka_unit_test(test_every_day),
		cmocka_unit_test(test_any_instant),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
