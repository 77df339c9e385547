/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text forms: known texts, faults and their places, and over random IDs that
 * what is written reads back, sorts alike, and bears no corruption.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <cmocka.h>

#include "base62.h"
#include "crockford.h"
#include "dice.h"
#include "text.h"

#define WORLDS 20000
#define FORMS 4

static const struct {
	const char *name;
	size_t width; /* 0: varies */
	const char *alphabet;
} forms[FORMS] = {
	[FIRN_DECIMAL] = { "decimal", 0, "0123456789" },
	[FIRN_HEX] = { "hex", 16, "0123456789abcdefABCDEF" },
	[FIRN_BASE62] = { "base62", 11,
	    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	    "abcdefghijklmnopqrstuvwxyz" },
	[FIRN_CROCKFORD] = { "crockford", 13,
	    "0123456789ABCDEFGHJKMNPQRSTVWXYZ" },
};

static uint64_t
must_parse(const char *text, enum firn_format format)
{
	uint64_t id = 42;
	size_t where = 99;

	assert_int_equal(firn_parse_id(text, format, &id, &where), 0);
	assert_int_equal(where, 99);
	return (id);
}

static void
must_refuse(const char *text, enum firn_format format, int err, size_t at)
{
	uint64_t id = 42;
	size_t where = 99;

	assert_int_equal(firn_parse_id(text, format, &id, &where), err);
	assert_int_equal(where, at);
	assert_int_equal(firn_parse_id(text, format, &id, NULL), err);
	assert_int_equal(id, 42);
}

/* ---- known texts --------------------------------------------------------- */

static void
known_texts(void **state)
{
	static const struct {
		uint64_t id;
		const char *text[FORMS];
		const char *why;
	} cases[] = {
		{ 0,
		    { "0", "0000000000000000", "00000000000", "0000000000000" },
		    "nothing but zeros" },
		{ 61,
		    { "61", "000000000000003d", "0000000000z",
			"000000000001X" },
		    "the last digit of base62" },
		{ 62,
		    { "62", "000000000000003e", "00000000010",
			"000000000001Y" },
		    "its first carry" },
		{ 31,
		    { "31", "000000000000001f", "0000000000V",
			"000000000000Z" },
		    "the last digit of Crockford" },
		{ 32,
		    { "32", "0000000000000020", "0000000000W",
			"0000000000010" },
		    "its first carry" },
		{ UINT64_C(9007199254740991),
		    { "9007199254740991", "001fffffffffffff", "00fFgnDxSe7",
			"007ZZZZZZZZZZ" },
		    "2^53 - 1, JavaScript's last exact integer" },
		{ UINT64_C(1541815603606036480),
		    { "1541815603606036480", "1565a11f6217a000", "1ptWyK4WgZU",
			"1ASD13XH1F800" },
		    "a tweet" },
		{ UINT64_C(9223372036854775807),
		    { "9223372036854775807", "7fffffffffffffff", "AzL8n0Y58m7",
			"7ZZZZZZZZZZZZ" },
		    "the highest of 63 bits" },
		{ UINT64_C(9223372036854775808),
		    { "9223372036854775808", "8000000000000000", "AzL8n0Y58m8",
			"8000000000000" },
		    "the sign bit" },
		{ UINT64_MAX,
		    { "18446744073709551615", "ffffffffffffffff", "LygHa16AHYF",
			"FZZZZZZZZZZZZ" },
		    "the highest of 64 bits" },
	};
	char buf[FIRN_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		print_message("%s\n", cases[i].why);
		for (unsigned f = 0; f < FORMS; f++) {
			assert_int_equal(
			    firn_format_id(cases[i].id, (enum firn_format)f,
				buf, sizeof(buf)),
			    0);
			assert_string_equal(buf, cases[i].text[f]);
			assert_true(must_parse(buf, (enum firn_format)f) ==
				    cases[i].id);
		}
	}
}

static void
faults_have_their_place(void **state)
{
	static const struct {
		enum firn_format format;
		const char *text;
		int err;
		size_t where;
		const char *why;
	} cases[] = {
		/* one more than the highest */
		{ FIRN_DECIMAL, "18446744073709551616", FIRN_ERANGE, 19,
		    "over by one: the last digit" },
		{ FIRN_BASE62, "LygHa16AHYG", FIRN_ERANGE, 10, "over by one" },
		{ FIRN_CROCKFORD, "G000000000000", FIRN_ERANGE, 0,
		    "over by one: 65 bits" },
		/* far more */
		{ FIRN_DECIMAL, "99999999999999999999", FIRN_ERANGE, 0,
		    "20 digits, wraps several times" },
		{ FIRN_DECIMAL, "18446744083709551615", FIRN_ERANGE, 9,
		    "the first digit that is too high" },
		{ FIRN_BASE62, "zzzzzzzzzzz", FIRN_ERANGE, 0, "highest text" },
		{ FIRN_BASE62, "M0000000000", FIRN_ERANGE, 0, "first digit" },
		{ FIRN_BASE62, "Lz000000000", FIRN_ERANGE, 1, "second digit" },
		{ FIRN_CROCKFORD, "ZZZZZZZZZZZZZ", FIRN_ERANGE, 0, "highest" },
		/* width */
		{ FIRN_DECIMAL, "", FIRN_EINVAL, 0, "nothing" },
		{ FIRN_HEX, "", FIRN_EINVAL, 0, "nothing" },
		{ FIRN_BASE62, "", FIRN_EINVAL, 0, "nothing" },
		{ FIRN_CROCKFORD, "", FIRN_EINVAL, 0, "nothing" },
		{ FIRN_DECIMAL, "100000000000000000000", FIRN_EINVAL, 20,
		    "21 digits" },
		{ FIRN_HEX, "10000000000000000", FIRN_EINVAL, 16, "17 digits" },
		{ FIRN_HEX, "00000000000000001", FIRN_EINVAL, 16,
		    "17 digits, though 1" },
		{ FIRN_BASE62, "AzL8n0Y58m", FIRN_EINVAL, 10, "10 wide" },
		{ FIRN_BASE62, "AzL8n0Y58m7A", FIRN_EINVAL, 11, "12 wide" },
		{ FIRN_BASE62, "0AzL8n0Y58m7", FIRN_EINVAL, 11, "12 wide" },
		{ FIRN_CROCKFORD, "7ZZZZZZZZZZZ", FIRN_EINVAL, 12, "12 wide" },
		{ FIRN_CROCKFORD, "7ZZZZZZZZZZZZZ", FIRN_EINVAL, 13,
		    "14 wide" },
		/* leading zeros */
		{ FIRN_DECIMAL, "01", FIRN_EINVAL, 0, "leading zero" },
		{ FIRN_DECIMAL, "00", FIRN_EINVAL, 0, "zero twice" },
		{ FIRN_DECIMAL, "018446744073709551616", FIRN_EINVAL, 20,
		    "too long comes before the zero" },
		/* before and after */
		{ FIRN_DECIMAL, "+1", FIRN_EINVAL, 0, "a sign" },
		{ FIRN_DECIMAL, "-1", FIRN_EINVAL, 0, "a sign" },
		{ FIRN_DECIMAL, " 1", FIRN_EINVAL, 0, "a space before" },
		{ FIRN_DECIMAL, "1 ", FIRN_EINVAL, 1, "a space after" },
		{ FIRN_DECIMAL, "1\n", FIRN_EINVAL, 1, "a line end" },
		{ FIRN_DECIMAL, "1.0", FIRN_EINVAL, 1, "a fraction" },
		{ FIRN_DECIMAL, "1e3", FIRN_EINVAL, 1, "an exponent" },
		{ FIRN_DECIMAL, "1,000", FIRN_EINVAL, 1, "grouped" },
		{ FIRN_DECIMAL, "0x10", FIRN_EINVAL, 1, "hex" },
		{ FIRN_HEX, "0x10", FIRN_EINVAL, 1, "no prefix" },
		{ FIRN_HEX, "12g4", FIRN_EINVAL, 2, "no hex digit" },
		{ FIRN_DECIMAL, "\xd9\xa1", FIRN_EINVAL, 0, "Arabic digits" },
		{ FIRN_BASE62, "AzL8n0Y5-m7", FIRN_EINVAL, 8, "base64url's" },
		{ FIRN_BASE62, "AzL8n0Y58\xc3\xa4", FIRN_EINVAL, 9, "UTF-8" },
		/* the strict Crockford alphabet */
		{ FIRN_CROCKFORD, "7zZZZZZZZZZZZ", FIRN_EINVAL, 1, "lower" },
		{ FIRN_CROCKFORD, "7ZOZZZZZZZZZZ", FIRN_EINVAL, 2, "O" },
		{ FIRN_CROCKFORD, "7ZZIZZZZZZZZZ", FIRN_EINVAL, 3, "I" },
		{ FIRN_CROCKFORD, "7ZZZLZZZZZZZZ", FIRN_EINVAL, 4, "L" },
		{ FIRN_CROCKFORD, "7ZZZZUZZZZZZZ", FIRN_EINVAL, 5, "U" },
		{ FIRN_CROCKFORD, "7-ZZZZZZZZZZZ", FIRN_EINVAL, 1, "hyphen" },
		{ FIRN_CROCKFORD, "ZZZZZZZZZZZZ*", FIRN_EINVAL, 12,
		    "form is judged before value" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		print_message("%s \"%s\": %s\n", forms[cases[i].format].name,
		    cases[i].text, cases[i].why);
		must_refuse(cases[i].text, cases[i].format, cases[i].err,
		    cases[i].where);
	}
}

static void
hex_of_either_case_and_any_width(void **state)
{
	(void)state;
	assert_int_equal(must_parse("0", FIRN_HEX), 0);
	assert_int_equal(must_parse("00", FIRN_HEX), 0);
	assert_int_equal(must_parse("1F", FIRN_HEX), 31);
	assert_int_equal(must_parse("aBcDeF", FIRN_HEX), 0xabcdef);
	assert_true(must_parse("FFFFFFFFFFFFFFFF", FIRN_HEX) == UINT64_MAX);
}

static void
bad_arguments_are_refused(void **state)
{
	static const int unknown[] = { -1, FORMS, INT_MAX };
	char buf[FIRN_TEXT_MAX] = "untouched";

	(void)state;
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		enum firn_format f = (enum firn_format)unknown[i];

		assert_null(text_radix(f));
		assert_int_equal(
		    firn_format_id(1, f, buf, sizeof(buf)), FIRN_EINVAL);
		must_refuse("1", f, FIRN_EINVAL, 0);
	}
	must_refuse(NULL, FIRN_DECIMAL, FIRN_EINVAL, 0);
	assert_int_equal(
	    firn_parse_id("1", FIRN_DECIMAL, NULL, NULL), FIRN_EINVAL);
	assert_int_equal(firn_format_id(1, FIRN_DECIMAL, NULL, 0), FIRN_EINVAL);
	assert_int_equal(firn_format_id(1, FIRN_DECIMAL, buf, 0), FIRN_ERANGE);
	assert_string_equal(buf, "untouched");
}

static void
a_buffer_is_enough_or_untouched(void **state)
{
	static const size_t needs[FORMS] = { 21, 17, 12, 14 };

	(void)state;
	for (unsigned f = 0; f < FORMS; f++) {
		enum firn_format form = (enum firn_format)f;

		for (size_t n = 0; n <= FIRN_TEXT_MAX; n++) {
			char buf[FIRN_TEXT_MAX + 1];
			int err;

			memset(buf, '#', sizeof(buf));
			err = firn_format_id(UINT64_MAX, form, buf, n);
			assert_int_equal(err, n < needs[f] ? FIRN_ERANGE : 0);
			/* nothing beyond the NUL, nothing at all on error */
			for (size_t i = err == 0 ? needs[f] : 0;
			     i < sizeof(buf); i++)
				assert_int_equal(buf[i], '#');
		}
	}
}

/* ---- properties ---------------------------------------------------------- */

static void
texts_read_back(void **state)
{
	struct dice d = dice_open(__func__);
	char buf[FIRN_TEXT_MAX];

	(void)state;
	for (int i = 0; i < WORLDS; i++) {
		uint64_t id = dice_number(&d);

		for (unsigned f = 0; f < FORMS; f++) {
			enum firn_format form = (enum firn_format)f;

			assert_int_equal(
			    firn_format_id(id, form, buf, sizeof(buf)), 0);
			if (forms[f].width > 0)
				assert_int_equal(strlen(buf), forms[f].width);
			assert_true(must_parse(buf, form) == id);
		}
	}
}

static int
sign(int v)
{
	return ((v > 0) - (v < 0));
}

static void
fixed_widths_sort_as_ids(void **state)
{
	struct dice d = dice_open(__func__);
	char one[FIRN_TEXT_MAX], two[FIRN_TEXT_MAX];

	(void)state;
	for (int i = 0; i < WORLDS; i++) {
		uint64_t a = dice_number(&d);
		uint64_t b = dice_below(&d, 2) == 0 ? a + 1 : dice_number(&d);

		for (unsigned f = FIRN_HEX; f < FORMS; f++) {
			enum firn_format form = (enum firn_format)f;

			assert_int_equal(
			    firn_format_id(a, form, one, sizeof(one)), 0);
			assert_int_equal(
			    firn_format_id(b, form, two, sizeof(two)), 0);
			assert_int_equal(
			    sign(strcmp(one, two)), (a > b) - (a < b));
		}
	}
}

/* Every character that is no digit, at every place of a text. */
static void
corruption_is_refused_at_its_place(void **state)
{
	struct dice d = dice_open(__func__);
	char buf[FIRN_TEXT_MAX];
	unsigned refused = 0;

	(void)state;
	for (int i = 0; i < 20; i++) {
		uint64_t id = i == 0 ? UINT64_MAX : dice_number(&d);

		for (unsigned f = 0; f < FORMS; f++) {
			enum firn_format form = (enum firn_format)f;
			size_t len;

			assert_int_equal(
			    firn_format_id(id, form, buf, sizeof(buf)), 0);
			len = strlen(buf);
			for (size_t at = 0; at < len; at++) {
				char was = buf[at];

				for (int c = 1; c < 256; c++) {
					if (strchr(forms[f].alphabet, c) !=
					    NULL)
						continue;
					buf[at] = (char)c;
					must_refuse(buf, form, FIRN_EINVAL, at);
					refused++;
				}
				buf[at] = was;
			}
		}
	}
	assert_true(refused > 100000);
}

/* A text cut short is missing something at its end, if its width is fixed. */
static void
a_short_text_is_refused_at_its_end(void **state)
{
	struct dice d = dice_open(__func__);
	char buf[FIRN_TEXT_MAX];

	(void)state;
	for (int i = 0; i < WORLDS / 10; i++) {
		for (unsigned f = FIRN_BASE62; f < FORMS; f++) {
			enum firn_format form = (enum firn_format)f;
			size_t len = dice_below(&d, forms[f].width);

			assert_int_equal(firn_format_id(dice_number(&d), form,
					     buf, sizeof(buf)),
			    0);
			buf[len] = '\0';
			must_refuse(buf, form, FIRN_EINVAL, len);
		}
	}
}

/*
 * Random digits, so that about half of the full-width texts are over 64 bits,
 * against 128-bit sums.  The place of an overflow is the first digit that
 * zeros after it could not make good.
 */
static void
values_agree_with_wide_arithmetic(void **state)
{
	static const unsigned bases[FORMS] = { 10, 16, 62, 32 };
	static const unsigned widths[FORMS] = { 20, 16, 11, 13 };
	struct dice d = dice_open(__func__);
	unsigned read = 0, over = 0;

	(void)state;
	for (int i = 0; i < WORLDS; i++) {
		unsigned f = (unsigned)dice_below(&d, FORMS);
		unsigned width = widths[f], at = 99;
		unsigned __int128 v = 0, power = 1;
		char buf[FIRN_TEXT_MAX] = "";

		for (unsigned k = 1; k < width; k++)
			power *= bases[f];
		for (unsigned k = 0; k < width; k++, power /= bases[f]) {
			unsigned top = k == 0 ? bases[f] / 2 : bases[f];
			uint64_t digit = dice_below(&d, top);

			if (f == FIRN_DECIMAL && k == 0)
				digit = 1 + digit % 2;
			buf[k] = forms[f].alphabet[digit];
			v += digit * power;
			if (v > UINT64_MAX && at == 99)
				at = k;
		}
		if (v > UINT64_MAX) {
			must_refuse(buf, (enum firn_format)f, FIRN_ERANGE, at);
			over++;
		} else {
			assert_true(must_parse(buf, (enum firn_format)f) == v);
			read++;
		}
	}
	assert_true(read > WORLDS / 10 && over > WORLDS / 10);
}

/* Digits next to the limit, and any number of them, against strtoull(). */
static void
decimal_and_hex_agree_with_strtoull(void **state)
{
	static const char limit[] = "18446744073709551615";
	struct dice d = dice_open(__func__);
	unsigned read = 0, over = 0;

	(void)state;
	for (int i = 0; i < WORLDS; i++) {
		bool hex = dice_below(&d, 2) == 0;
		enum firn_format form = hex ? FIRN_HEX : FIRN_DECIMAL;
		size_t len = (size_t)dice_range(&d, 1, hex ? 16 : 20);
		char buf[FIRN_TEXT_MAX] = "";
		unsigned long long v;

		for (size_t k = 0; k < len; k++)
			buf[k] =
			    forms[form].alphabet[dice_below(&d, hex ? 22 : 10)];
		if (!hex && dice_below(&d, 2) == 0) {
			memcpy(buf, limit, sizeof(limit));
			buf[dice_below(&d, 20)] =
			    (char)('0' + dice_below(&d, 10));
		}
		if (!hex && buf[0] == '0' && buf[1] != '\0')
			buf[0] = '1';
		errno = 0;
		v = strtoull(buf, NULL, hex ? 16 : 10);
		if (errno == ERANGE) {
			uint64_t id;

			assert_int_equal(
			    firn_parse_id(buf, form, &id, NULL), FIRN_ERANGE);
			over++;
		} else {
			assert_true(must_parse(buf, form) == v);
			read++;
		}
	}
	assert_true(read > WORLDS / 10 && over > WORLDS / 100);
}

/* ---- lenient Crockford --------------------------------------------------- */

static void
lenient_crockford(void **state)
{
	static const struct {
		const char *text;
		int err;
		uint64_t id;
		size_t where;
		const char *why;
	} cases[] = {
		{ "1ASD13XH1F800", 0, UINT64_C(1541815603606036480), 0,
		    "canonical" },
		{ "1asd13xh1f800", 0, UINT64_C(1541815603606036480), 0,
		    "lower case" },
		{ "iasdl3xhLf8oO", 0, UINT64_C(1541815603606036480), 0,
		    "i and l for 1, o for 0" },
		{ "1ASD-13XH-1F80-0", 0, UINT64_C(1541815603606036480), 0,
		    "hyphens between" },
		{ "-1ASD13XH--1F800-", 0, UINT64_C(1541815603606036480), 0,
		    "hyphens anywhere" },
		{ "1ASD13XU1F800", FIRN_EINVAL, 0, 7, "U is nobody's" },
		{ "1ASD-13Xu1F800", FIRN_EINVAL, 0, 8, "the given offset" },
		{ "1ASD-13XH 1F800", FIRN_EINVAL, 0, 9, "a space" },
		{ "1ASD-13XH-1F80", FIRN_EINVAL, 0, 14, "one missing" },
		{ "1ASD-13XH-1F80-00", FIRN_EINVAL, 0, 16, "one too many" },
		{ "1ASD13XH1F800*", FIRN_EINVAL, 0, 13, "and no digit" },
		{ "-g-000000000000", FIRN_ERANGE, 0, 1, "65 bits" },
		{ "", FIRN_EINVAL, 0, 0, "nothing" },
		{ "---", FIRN_EINVAL, 0, 3, "hyphens only" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t id = 42;
		size_t where = 99;

		print_message("\"%s\": %s\n", cases[i].text, cases[i].why);
		assert_int_equal(
		    crockford_parse_lenient(cases[i].text, &id, &where),
		    cases[i].err);
		assert_int_equal(id, cases[i].err == 0 ? cases[i].id : 42);
		assert_int_equal(
		    where, cases[i].err == 0 ? 99 : cases[i].where);
		assert_int_equal(
		    crockford_parse_lenient(cases[i].text, &id, NULL),
		    cases[i].err);
	}
}

static void
lenient_crockford_checks_its_arguments(void **state)
{
	uint64_t id;
	size_t where = 99;

	(void)state;
	assert_int_equal(
	    crockford_parse_lenient(NULL, &id, &where), FIRN_EINVAL);
	assert_int_equal(where, 0);
	assert_int_equal(
	    crockford_parse_lenient("0000000000000", NULL, NULL), FIRN_EINVAL);
}

/* However a person writes it, it is the same ID. */
static void
lenient_crockford_reads_any_hand(void **state)
{
	static const char zeros[] = "0oO", ones[] = "1iIlL";
	struct dice d = dice_open(__func__);

	(void)state;
	for (int i = 0; i < WORLDS; i++) {
		uint64_t id = dice_number(&d), again;
		char strict[FIRN_TEXT_MAX], text[64];
		size_t n = 0;

		assert_int_equal(
		    firn_format_id(id, FIRN_CROCKFORD, strict, sizeof(strict)),
		    0);
		for (size_t k = 0; strict[k] != '\0'; k++) {
			char c = strict[k];

			if (dice_below(&d, 4) == 0)
				text[n++] = '-';
			if (c == '0')
				c = zeros[dice_below(&d, 3)];
			else if (c == '1')
				c = ones[dice_below(&d, 5)];
			else if (c >= 'A' && dice_below(&d, 2) == 0)
				c = (char)(c - 'A' + 'a');
			text[n++] = c;
		}
		text[n] = '\0';
		assert_int_equal(
		    crockford_parse_lenient(text, &again, NULL), 0);
		assert_true(again == id);
	}
}

static void
digits_and_values_are_inverse(void **state)
{
	(void)state;
	for (unsigned f = 0; f < FORMS; f++) {
		const struct radix *r = text_radix((enum firn_format)f);
		unsigned digits = 0;

		assert_int_equal(strlen(r->digits), r->base);
		for (unsigned v = 0; v < r->base; v++)
			assert_int_equal(radix_digit(r, r->digits[v]), v);
		for (int c = 0; c < 256; c++)
			digits += radix_digit(r, (char)c) >= 0;
		assert_int_equal(digits, strlen(forms[f].alphabet));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_texts),
		cmocka_unit_test(faults_have_their_place),
		cmocka_unit_test(hex_of_either_case_and_any_width),
		cmocka_unit_test(bad_arguments_are_refused),
		cmocka_unit_test(a_buffer_is_enough_or_untouched),
		cmocka_unit_test(texts_read_back),
		cmocka_unit_test(fixed_widths_sort_as_ids),
		cmocka_unit_test(corruption_is_refused_at_its_place),
		cmocka_unit_test(a_short_text_is_refused_at_its_end),
		cmocka_unit_test(values_agree_with_wide_arithmetic),
		cmocka_unit_test(decimal_and_hex_agree_with_strtoull),
		cmocka_unit_test(lenient_crockford),
		cmocka_unit_test(lenient_crockford_checks_its_arguments),
		cmocka_unit_test(lenient_crockford_reads_any_hand),
		cmocka_unit_test(digits_and_values_are_inverse),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
