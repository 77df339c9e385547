/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ULIDs: the specification's examples, faults and their places, the one
 * after, and over random numbers the digits of a schoolbook division.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <string.h>
#include <cmocka.h>

#include "dice.h"
#include "school.h"
#include "ulid.h"

#define WORLDS 20000

static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

typedef int (*reader)(const char *text, unsigned char out[16], size_t *where);

static void
must_refuse(reader read, const char *text, int err, size_t at)
{
	unsigned char out[16], before[16];
	size_t where = 99;

	memset(out, 0x5a, sizeof(out));
	memcpy(before, out, sizeof(out));
	assert_int_equal(read(text, out, &where), err);
	assert_int_equal(where, at);
	assert_int_equal(read(text, out, NULL), err);
	assert_memory_equal(out, before, sizeof(out));
}

static void
known_texts(void **state)
{
	static const struct {
		const char *text;
		int64_t unix_ms;
		uint64_t high, low;
	} cases[] = {
		/* the specification's own, and what other libraries test */
		{ "01ARZ3NDEKTSV4RRFFQ69G5FAV", INT64_C(1469922850259),
		    UINT64_C(0x01563E3AB5D3D676),
		    UINT64_C(0x4C61EFB99302BD5B) },
		{ "01AN4Z07BY79KA1307SR9X4MV3", INT64_C(1465824320894),
		    UINT64_C(0x015549F01D7E3A66),
		    UINT64_C(0xA08C07CE13D25363) },
		{ "01BX5ZZKBKACTAV9WEVGEMMVRZ", INT64_C(1508808576371),
		    UINT64_C(0x015F4BFFCD735334),
		    UINT64_C(0xADA78EDC1D4A6F1F) },
		{ "7ZZZZZZZZZZZZZZZZZZZZZZZZZ", INT64_C(281474976710655),
		    UINT64_MAX, UINT64_MAX },
		{ "0000XSNJG0MQJHBF4QX1EFD6Y3", INT64_C(1000000000),
		    UINT64_C(0x00003B9ACA00A5E5),
		    UINT64_C(0x15BC97E85CF69BC3) },
		{ "00000000000000000000000000", 0, 0, 0 },
	};
	unsigned char ulid[16];
	char text[FIRN_ULID_TEXT_MAX];
	int64_t ms;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		print_message("%s\n", cases[i].text);
		assert_int_equal(firn_ulid_parse(cases[i].text, ulid, NULL), 0);
		assert_true(bytes_get64(ulid) == cases[i].high);
		assert_true(bytes_get64(ulid + 8) == cases[i].low);
		assert_int_equal(firn_ulid_time(ulid, &ms), 0);
		assert_true(ms == cases[i].unix_ms);
		assert_int_equal(firn_ulid_format(ulid, text, sizeof(text)), 0);
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
		{ "80000000000000000000000000", FIRN_ERANGE, 0, "129 bits" },
		{ "ZZZZZZZZZZZZZZZZZZZZZZZZZZ", FIRN_ERANGE, 0, "130 bits" },
		{ "01ARYZ6S41", FIRN_EINVAL, 10, "its time alone" },
		{ "", FIRN_EINVAL, 0, "nothing" },
		{ "01ARYZ6S4100000000000000U0", FIRN_EINVAL, 24, "U" },
		{ "01ARZ3NDEKTSV4RRFFQ69G5FA", FIRN_EINVAL, 25, "one less" },
		{ "01ARZ3NDEKTSV4RRFFQ69G5FAVV", FIRN_EINVAL, 26, "one more" },
		{ "01arz3ndektsv4rrffq69g5fav", FIRN_EINVAL, 2, "lower case" },
		{ "O1ARZ3NDEKTSV4RRFFQ69G5FAV", FIRN_EINVAL, 0, "O" },
		{ "01ARZ3NDEKTSV4RRFFQ69G5FAI", FIRN_EINVAL, 25, "I" },
		{ "0LARZ3NDEKTSV4RRFFQ69G5FAV", FIRN_EINVAL, 1, "L" },
		{ "01ARZ3NDEK-TSV4RRFFQ69G5FAV", FIRN_EINVAL, 10, "hyphen" },
		{ " 1ARZ3NDEKTSV4RRFFQ69G5FAV", FIRN_EINVAL, 0, "space" },
		{ "01ARZ3NDEKTSV4RRFFQ69G5FAV\n", FIRN_EINVAL, 26, "line" },
		{ "8ZZZZZZZZZZZZZZZZZZZZZZZZ*", FIRN_EINVAL, 25,
		    "form is judged before value" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		print_message("%s\n", cases[i].why);
		must_refuse(firn_ulid_parse, cases[i].text, cases[i].err,
		    cases[i].where);
	}
}

static void
lenient_on_request(void **state)
{
	static const char *const texts[] = {
		"01arz3ndektsv4rrffq69g5fav",
		"oiarz3ndektsv4rrffq69g5fav",
		"OLARZ3NDEK-TSV4-RRFF-Q69G5FAV",
		"--0l-ARZ3NDEKTSV4RRFFQ69G5FAV--",
	};
	unsigned char strict[16], ulid[16];

	(void)state;
	assert_int_equal(
	    firn_ulid_parse("01ARZ3NDEKTSV4RRFFQ69G5FAV", strict, NULL), 0);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(
		    firn_ulid_parse_lenient(texts[i], ulid, NULL), 0);
		assert_memory_equal(strict, ulid, 16);
	}
	must_refuse(firn_ulid_parse_lenient, "01arz3ndek-tsv4rrffq69g5fau",
	    FIRN_EINVAL, 26);
	must_refuse(firn_ulid_parse_lenient, "-8zzzzzzzzzzzzzzzzzzzzzzzzz",
	    FIRN_ERANGE, 1);
	must_refuse(firn_ulid_parse_lenient, "01arz3ndek-", FIRN_EINVAL, 11);
	must_refuse(firn_ulid_parse_lenient, "01arz3ndektsv4rrffq69g5fav-0",
	    FIRN_EINVAL, 27);
	must_refuse(firn_ulid_parse_lenient, NULL, FIRN_EINVAL, 0);
}

static void
the_one_after(void **state)
{
	unsigned char ulid[16];
	char text[FIRN_ULID_TEXT_MAX];

	(void)state;
	assert_int_equal(
	    firn_ulid_parse("01BX5ZZKBKACTAV9WEVGEMMVRZ", ulid, NULL), 0);
	assert_int_equal(firn_ulid_next(ulid, ulid), 0);
	assert_int_equal(firn_ulid_format(ulid, text, sizeof(text)), 0);
	assert_string_equal(text, "01BX5ZZKBKACTAV9WEVGEMMVS0");
	/* the carry goes through 64 bits */
	assert_int_equal(
	    firn_ulid_parse("01BX5ZZKBK000FZZZZZZZZZZZZ", ulid, NULL), 0);
	assert_int_equal(firn_ulid_next(ulid, ulid), 0);
	assert_int_equal(firn_ulid_format(ulid, text, sizeof(text)), 0);
	assert_string_equal(text, "01BX5ZZKBK000G000000000000");
	/* none within its millisecond: an error, not a wrap */
	assert_int_equal(
	    firn_ulid_parse("01BX5ZZKBKZZZZZZZZZZZZZZZZ", ulid, NULL), 0);
	assert_int_equal(firn_ulid_next(ulid, ulid), FIRN_ERANGE);
	assert_int_equal(firn_ulid_format(ulid, text, sizeof(text)), 0);
	assert_string_equal(text, "01BX5ZZKBKZZZZZZZZZZZZZZZZ");
}

static void
bounds_and_uuids(void **state)
{
	unsigned char a[16], b[16], uuid[16];
	char text[FIRN_UUID_TEXT_MAX];
	int64_t ms = 0;

	(void)state;
	assert_int_equal(firn_ulid_floor(INT64_C(1469922850259), a), 0);
	assert_int_equal(firn_ulid_format(a, text, sizeof(text)), 0);
	assert_string_equal(text, "01ARZ3NDEK0000000000000000");
	assert_int_equal(firn_ulid_ceiling(INT64_C(1469922850259), b), 0);
	assert_int_equal(firn_ulid_format(b, text, sizeof(text)), 0);
	assert_string_equal(text, "01ARZ3NDEKZZZZZZZZZZZZZZZZ");
	assert_true(firn_ulid_compare(a, b) < 0);
	assert_int_equal(firn_ulid_floor(-1, a), FIRN_ERANGE);
	assert_int_equal(firn_ulid_ceiling(INT64_C(1) << 48, a), FIRN_ERANGE);

	assert_int_equal(
	    firn_ulid_parse("01ARZ3NDEKTSV4RRFFQ69G5FAV", a, NULL), 0);
	assert_int_equal(firn_ulid_to_uuid(a, uuid), 0);
	assert_int_equal(firn_uuid_format(uuid, text, sizeof(text)), 0);
	assert_string_equal(text, "01563e3a-b5d3-d676-4c61-efb99302bd5b");
	assert_int_equal(firn_ulid_from_uuid(uuid, b), 0);
	assert_memory_equal(a, b, 16);
	/* a UUIDv7 keeps its time */
	assert_int_equal(firn_uuid7_floor(INT64_C(1672633600637), uuid), 0);
	assert_int_equal(firn_ulid_from_uuid(uuid, a), 0);
	assert_int_equal(firn_ulid_time(a, &ms), 0);
	assert_true(ms == INT64_C(1672633600637));
	assert_int_equal(firn_ulid_to_uuid(NULL, uuid), FIRN_EINVAL);
	assert_int_equal(firn_ulid_next(NULL, a), FIRN_EINVAL);
	assert_int_equal(firn_ulid_time(NULL, &ms), FIRN_EINVAL);
	assert_int_equal(firn_ulid_format(a, text, 26), FIRN_ERANGE);
	assert_int_equal(firn_ulid_format(NULL, text, 27), FIRN_EINVAL);
}

static void
same_as_at_school(void **state)
{
	struct dice d = dice_open("same_as_at_school");

	(void)state;
	for (int i = 0; i < WORLDS; i++) {
		unsigned char ulid[16], n[16], again[16];
		char text[FIRN_ULID_TEXT_MAX], bad;
		size_t at = (size_t)dice_below(&d, 26), where = 99;

		bytes_put64(ulid, dice_number(&d));
		bytes_put64(ulid + 8, dice_number(&d));
		memcpy(n, ulid, 16);
		assert_int_equal(firn_ulid_format(ulid, text, sizeof(text)), 0);
		for (size_t k = 26; k > 0; k--)
			assert_int_equal(
			    text[k - 1], alphabet[school_divide(n, 16, 32)]);
		assert_int_equal(firn_ulid_parse(text, again, NULL), 0);
		assert_memory_equal(ulid, again, 16);
		/* any byte that is no digit is found where it is */
		do
			bad = (char)dice_range(&d, -128, 127);
		while (bad == '\0' || strchr(alphabet, bad) != NULL);
		text[at] = bad;
		assert_int_equal(
		    firn_ulid_parse(text, again, &where), FIRN_EINVAL);
		assert_int_equal(where, at);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_texts),
		cmocka_unit_test(faults_have_their_place),
		cmocka_unit_test(lenient_on_request),
		cmocka_unit_test(the_one_after),
		cmocka_unit_test(bounds_and_uuids),
		cmocka_unit_test(same_as_at_school),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
