/* SPDX-License-Identifier: Apache-2.0 */
/*
 * KSUIDs: the format's own examples, faults and their places, and over random
 * numbers the digits of a schoolbook division.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <string.h>
#include <cmocka.h>

#include "dice.h"
#include "ksuid.h"
#include "school.h"

#define WORLDS 20000

static const char alphabet[] =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

static void
known_texts(void **state)
{
	static const struct {
		const char *text;
		int64_t unix_s;
		uint64_t high, low;
	} cases[] = {
		{ "000000000000000000000000000", INT64_C(1400000000), 0, 0 },
		{ "aWgEPTl1tmebfsQzFP4bxwgy80V", INT64_C(5694967295),
		    UINT64_MAX, UINT64_MAX },
		{ "0ujtsYcgvSTl8PAuAdqWYSMnLOv", INT64_C(1507608047),
		    UINT64_C(0xB5A1CD34B5F99D11),
		    UINT64_C(0x54FB6853345C9735) },
		{ "0uk1Hbc9dQ9pxyTqJ93IUrfhdGq", INT64_C(1507611700),
		    UINT64_C(0x9850EEEC191BF4FF),
		    UINT64_C(0x26F99315CE43B0C8) },
	};
	unsigned char ksuid[20];
	char text[FIRN_KSUID_TEXT_MAX];
	int64_t ms;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		print_message("%s\n", cases[i].text);
		assert_int_equal(
		    firn_ksuid_parse(cases[i].text, ksuid, NULL), 0);
		assert_true(bytes_get64(ksuid + 4) == cases[i].high);
		assert_true(bytes_get64(ksuid + 12) == cases[i].low);
		assert_int_equal(firn_ksuid_time(ksuid, &ms), 0);
		assert_true(ms == cases[i].unix_s * 1000);
		assert_int_equal(
		    firn_ksuid_format(ksuid, text, sizeof(text)), 0);
		assert_string_equal(text, cases[i].text);
	}
}

static void
faults_have_their_place(void **state)
{
	static const struct {
		const char *text;
		int err;
		size_t where;
		const char *why;
	} cases[] = {
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaa", FIRN_ERANGE, 1,
		    "over 160 bits" },
		{ "aWgEPTl1tmebfsQzFP4bxwgy80W", FIRN_ERANGE, 26,
		    "over by one" },
		{ "zzzzzzzzzzzzzzzzzzzzzzzzzzz", FIRN_ERANGE, 0, "highest" },
		{ "aWgEPTl1tmebfsQzFP4bxwgy80!", FIRN_EINVAL, 26, "alphabet" },
		{ "123", FIRN_EINVAL, 3, "length" },
		{ "", FIRN_EINVAL, 0, "nothing" },
		{ "0ujtsYcgvSTl8PAuAdqWYSMnLO", FIRN_EINVAL, 26, "one less" },
		{ "0ujtsYcgvSTl8PAuAdqWYSMnLOvv", FIRN_EINVAL, 27, "one more" },
		{ "0ujtsYcgvSTl8PAu-dqWYSMnLOv", FIRN_EINVAL, 16, "hyphen" },
		{ " ujtsYcgvSTl8PAuAdqWYSMnLOv", FIRN_EINVAL, 0, "space" },
		{ "zzzzzzzzzzzzzzzzzzzzzzzzzz_", FIRN_EINVAL, 26,
		    "form is judged before value" },
	};
	unsigned char out[20], before[20];

	(void)state;
	memset(out, 0x5a, sizeof(out));
	memcpy(before, out, sizeof(out));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t where = 99;

		print_message("%s\n", cases[i].why);
		assert_int_equal(
		    firn_ksuid_parse(cases[i].text, out, &where), cases[i].err);
		assert_int_equal(where, cases[i].where);
		assert_memory_equal(out, before, sizeof(out));
	}
	assert_int_equal(firn_ksuid_parse(NULL, out, NULL), FIRN_EINVAL);
}

static void
bounds_of_a_second(void **state)
{
	static const int64_t out_of[] = { INT64_C(1399999999999),
		INT64_C(5694967296000), -1, INT64_MIN, INT64_MAX };
	unsigned char a[20], b[20];
	char text[FIRN_KSUID_TEXT_MAX];
	int64_t ms = 0;

	(void)state;
	assert_int_equal(firn_ksuid_floor(INT64_C(1507608047999), a), 0);
	assert_int_equal(firn_ksuid_ceiling(INT64_C(1507608047000), b), 0);
	assert_true(firn_ksuid_compare(a, b) < 0);
	assert_int_equal(firn_ksuid_compare(b, b), 0);
	assert_int_equal(firn_ksuid_time(a, &ms), 0);
	assert_true(ms == INT64_C(1507608047000));
	assert_int_equal(firn_ksuid_floor(INT64_C(1507608048000), a), 0);
	assert_true(firn_ksuid_compare(a, b) > 0);
	assert_int_equal(firn_ksuid_ceiling(INT64_C(5694967295999), a), 0);
	assert_int_equal(firn_ksuid_format(a, text, sizeof(text)), 0);
	assert_string_equal(text, "aWgEPTl1tmebfsQzFP4bxwgy80V");
	for (size_t i = 0; i < sizeof(out_of) / sizeof(out_of[0]); i++)
		assert_int_equal(firn_ksuid_floor(out_of[i], a), FIRN_ERANGE);
	assert_int_equal(firn_ksuid_floor(0, NULL), FIRN_EINVAL);
	assert_int_equal(firn_ksuid_format(a, text, 27), FIRN_ERANGE);
	assert_int_equal(firn_ksuid_format(NULL, text, 28), FIRN_EINVAL);
	assert_int_equal(firn_ksuid_time(NULL, &ms), FIRN_EINVAL);
}

static void
same_as_at_school(void **state)
{
	struct dice d = dice_open("same_as_at_school");

	(void)state;
	for (int i = 0; i < WORLDS; i++) {
		unsigned char ksuid[20], other[20], n[20];
		char text[FIRN_KSUID_TEXT_MAX], second[FIRN_KSUID_TEXT_MAX];
		char bad;
		size_t at = (size_t)dice_below(&d, 27), where = 99;

		bytes_put32(ksuid, (uint32_t)dice_number(&d));
		bytes_put64(ksuid + 4, dice_number(&d));
		bytes_put64(ksuid + 12, dice_number(&d));
		memcpy(n, ksuid, 20);
		memcpy(other, ksuid, 20);
		other[dice_below(&d, 20)] ^=
		    (unsigned char)(1 << dice_below(&d, 8));
		assert_int_equal(
		    firn_ksuid_format(ksuid, text, sizeof(text)), 0);
		assert_int_equal(
		    firn_ksuid_format(other, second, sizeof(second)), 0);
		assert_int_equal(firn_ksuid_compare(ksuid, other) < 0,
		    strcmp(text, second) < 0);
		for (size_t k = 27; k > 0; k--)
			assert_int_equal(
			    text[k - 1], alphabet[school_divide(n, 20, 62)]);
		assert_int_equal(firn_ksuid_parse(text, n, NULL), 0);
		assert_memory_equal(ksuid, n, 20);
		do
			bad = (char)dice_range(&d, -128, 127);
		while (bad == '\0' || strchr(alphabet, bad) != NULL);
		text[at] = bad;
		assert_int_equal(
		    firn_ksuid_parse(text, n, &where), FIRN_EINVAL);
		assert_int_equal(where, at);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_texts),
		cmocka_unit_test(faults_have_their_place),
		cmocka_unit_test(bounds_of_a_second),
		cmocka_unit_test(same_as_at_school),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
