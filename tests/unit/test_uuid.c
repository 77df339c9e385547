/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UUIDs: the examples of RFC 9562, faults and their places, and over random
 * bytes and broken texts the same verdict as libuuid's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <ctype.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>
#include <cmocka.h>

#include "dice.h"
#include "uuid.h"

#define WORLDS 20000

static void
must_parse(const char *text, unsigned char out[16])
{
	size_t where = 99;

	assert_int_equal(firn_uuid_parse(text, out, &where), 0);
	assert_int_equal(where, 99);
}

static void
must_refuse(const char *text, size_t at)
{
	unsigned char out[16], before[16];
	size_t where = 99;

	memset(out, 0x5a, sizeof(out));
	memcpy(before, out, sizeof(out));
	assert_int_equal(firn_uuid_parse(text, out, &where), FIRN_EINVAL);
	assert_int_equal(where, at);
	assert_int_equal(firn_uuid_parse(text, out, NULL), FIRN_EINVAL);
	assert_memory_equal(out, before, sizeof(out));
}

/* RFC 9562, appendix A: a version 4 out of 128 random bits, a version 7. */
static void
examples_of_the_rfc(void **state)
{
	static const unsigned char random[16] = { 0x91, 0x91, 0x08, 0xf7, 0x52,
		0xd1, 0x33, 0x20, 0x5b, 0xac, 0xf8, 0x47, 0xdb, 0x41, 0x48,
		0xa8 };
	uint64_t high = bytes_get64(random), low = bytes_get64(random + 8);
	unsigned char uuid[16], read[16];
	char text[FIRN_UUID_TEXT_MAX];
	int64_t ms = 0;

	(void)state;
	uuid4_stamp(&high, &low);
	bytes_put64(uuid, high);
	bytes_put64(uuid + 8, low);
	assert_int_equal(firn_uuid_format(uuid, text, sizeof(text)), 0);
	assert_string_equal(text, "919108f7-52d1-4320-9bac-f847db4148a8");
	assert_int_equal(firn_uuid_version(uuid), 4);
	assert_int_equal(firn_uuid_time(uuid, &ms), FIRN_EINVAL);

	uuid7_compose(
	    uuid, UINT64_C(1645557742000), 0xcc3, UINT64_C(0x18c4dc0c0c07398f));
	must_parse("017F22E2-79B0-7CC3-98C4-DC0C0C07398F", read);
	assert_memory_equal(uuid, read, 16);
	assert_int_equal(firn_uuid_version(read), 7);
	assert_int_equal(firn_uuid_time(read, &ms), 0);
	assert_true(ms == INT64_C(1645557742000));
	assert_int_equal(firn_uuid_format(read, text, sizeof(text)), 0);
	assert_string_equal(text, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
}

static void
bounds_of_an_instant(void **state)
{
	static const int64_t out_of[] = { -1, INT64_MIN, INT64_C(1) << 48,
		INT64_MAX };
	unsigned char a[16], b[16];
	char text[FIRN_UUID_TEXT_MAX];
	int64_t ms = 0;

	(void)state;
	assert_int_equal(firn_uuid7_floor(INT64_C(1672633600637), a), 0);
	assert_int_equal(firn_uuid_format(a, text, sizeof(text)), 0);
	assert_string_equal(text, "018570bb-4a7d-7000-8000-000000000000");
	assert_int_equal(firn_uuid7_ceiling(INT64_C(1672633600637), b), 0);
	assert_int_equal(firn_uuid_format(b, text, sizeof(text)), 0);
	assert_string_equal(text, "018570bb-4a7d-7fff-bfff-ffffffffffff");
	assert_true(firn_uuid_compare(a, b) < 0);
	assert_int_equal(firn_uuid7_floor(INT64_C(1672633600638), a), 0);
	assert_true(firn_uuid_compare(a, b) > 0);
	assert_int_equal(firn_uuid_compare(a, a), 0);
	assert_int_equal(firn_uuid7_ceiling((INT64_C(1) << 48) - 1, a), 0);
	assert_int_equal(firn_uuid_time(a, &ms), 0);
	assert_true(ms == (INT64_C(1) << 48) - 1);
	for (size_t i = 0; i < sizeof(out_of) / sizeof(out_of[0]); i++) {
		assert_int_equal(firn_uuid7_floor(out_of[i], a), FIRN_ERANGE);
		assert_int_equal(firn_uuid7_ceiling(out_of[i], a), FIRN_ERANGE);
	}
}

static void
forms_that_the_rfc_allows(void **state)
{
	static const char *const texts[] = {
		"919108f7-52d1-4320-9bac-f847db4148a8",
		"919108F7-52D1-4320-9BAC-F847DB4148A8",
		"919108F7-52d1-4320-9BAC-f847DB4148a8",
		"urn:uuid:919108f7-52d1-4320-9bac-f847db4148a8",
		"URN:UUID:919108f7-52d1-4320-9bac-f847db4148a8",
		"{919108f7-52d1-4320-9bac-f847db4148a8}",
	};
	unsigned char first[16], other[16];

	(void)state;
	must_parse(texts[0], first);
	for (size_t i = 1; i < sizeof(texts) / sizeof(texts[0]); i++) {
		must_parse(texts[i], other);
		assert_memory_equal(first, other, 16);
	}
	must_parse("00000000-0000-0000-0000-000000000000", other);
	assert_int_equal(firn_uuid_version(other), FIRN_EINVAL);
	must_parse("ffffffff-ffff-ffff-ffff-ffffffffffff", other);
	assert_int_equal(firn_uuid_version(other), FIRN_EINVAL);
}

static void
faults_have_their_place(void **state)
{
	static const struct {
		const char *text;
		size_t where;
		const char *why;
	} cases[] = {
		{ "", 0, "nothing" },
		{ "9", 1, "one digit" },
		{ "919108f7-52d1-4320-9bac-f847db4148a", 35, "a digit less" },
		{ "919108f7-52d1-4320-9bac-f847db4148a80", 36, "one more" },
		{ "919108f752d143209bacf847db4148a8", 8, "no hyphens" },
		{ "919108f-752d1-4320-9bac-f847db4148a8", 7, "hyphen early" },
		{ "919108f70-52d1-4320-9bac-f847db4148a8", 8, "hyphen late" },
		{ "g19108f7-52d1-4320-9bac-f847db4148a8", 0, "no hex digit" },
		{ "919108f7-52d1-4320-9bac-f847db4148aG", 35,
		    "nor at the end" },
		{ " 919108f7-52d1-4320-9bac-f847db4148a8", 0, "space before" },
		{ "919108f7-52d1-4320-9bac-f847db4148a8 ", 36, "space after" },
		{ "919108f7-52d1-4320-9bac-f847db4148a8}", 36, "half a brace" },
		{ "{919108f7-52d1-4320-9bac-f847db4148a8", 37, "other half" },
		{ "{919108f7-52d1-4320-9bac-f847db4148a8)", 37, "other kind" },
		{ "{919108f7-52d1-4320-9bac-f847db4148a8}}", 38, "surplus" },
		{ "{{919108f7-52d1-4320-9bac-f847db4148a8}}", 1, "twice" },
		{ "{}", 1, "empty braces" },
		{ "urn:uuid:", 9, "a prefix alone" },
		{ "urn:uuid", 8, "not all of it" },
		{ "urn:oid:1.2.3", 4, "another URN" },
		{ "uuid:919108f7-52d1-4320-9bac-f847db4148a8", 1, "no urn" },
		{ "urn:uuid:{919108f7-52d1-4320-9bac-f847db4148a8}", 9,
		    "both" },
		{ "919108f7_52d1_4320_9bac_f847db4148a8", 8, "underscores" },
		{ "\xef\xbc\x99", 0, "a wide nine" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		print_message("%s\n", cases[i].why);
		must_refuse(cases[i].text, cases[i].where);
	}
}

static void
wrong_arguments(void **state)
{
	static const char good[] = "919108f7-52d1-4320-9bac-f847db4148a8";
	unsigned char uuid[16] = { 0 };
	char text[FIRN_UUID_TEXT_MAX] = "x";
	int64_t ms;

	(void)state;
	assert_int_equal(firn_uuid_parse(NULL, uuid, NULL), FIRN_EINVAL);
	assert_int_equal(firn_uuid_parse(good, NULL, NULL), FIRN_EINVAL);
	assert_int_equal(firn_uuid_format(NULL, text, 37), FIRN_EINVAL);
	assert_int_equal(firn_uuid_format(uuid, NULL, 37), FIRN_EINVAL);
	assert_int_equal(firn_uuid_format(uuid, text, 36), FIRN_ERANGE);
	assert_string_equal(text, "x");
	assert_int_equal(firn_uuid_version(NULL), FIRN_EINVAL);
	assert_int_equal(firn_uuid_time(NULL, &ms), FIRN_EINVAL);
	assert_int_equal(firn_uuid7_floor(0, NULL), FIRN_EINVAL);
	assert_int_equal(firn_uuid7_ceiling(0, NULL), FIRN_EINVAL);
}

/* ---- beside libuuid ---- */

typedef int (*parse_fn)(const char *text, unsigned char *uuid);
typedef void (*unparse_fn)(const unsigned char *uuid, char *text);

/* A text with up to two characters changed, taken out or put in. */
static void
break_text(struct dice *d, char *text)
{
	static const char some[] = "0123456789abcdefABCDEFgz-_{} .:\x7f\xc3";

	for (uint64_t n = dice_below(d, 3); n > 0; n--) {
		size_t len = strlen(text);
		size_t at = (size_t)dice_below(d, len + 1);
		char c = some[dice_below(d, sizeof(some) - 1)];

		switch (dice_below(d, 4)) {
		case 0:
			if (at < len)
				memmove(text + at, text + at + 1, len - at);
			break;
		case 1:
			memmove(text + at + 1, text + at, len - at + 1);
			text[at] = c;
			break;
		case 2:
			if (at < len)
				text[at] =
				    (char)toupper((unsigned char)text[at]);
			break;
		default:
			if (at < len)
				text[at] = c;
			break;
		}
	}
}

static void
same_as_libuuid(void **state)
{
	void *so = dlopen("libuuid.so.1", RTLD_NOW);
	struct dice d = dice_open("same_as_libuuid");
	unparse_fn unparse;
	parse_fn parse;
	unsigned refused = 0;

	(void)state;
	if (so == NULL)
		fail_msg("libuuid.so.1 is missing (Debian package libuuid1)");
	*(void **)&parse = dlsym(so, "uuid_parse");
	*(void **)&unparse = dlsym(so, "uuid_unparse_lower");
	assert_true(parse != NULL && unparse != NULL);
	for (int i = 0; i < WORLDS; i++) {
		unsigned char uuid[16], ours[16], theirs[16];
		char text[48], other[48];
		int err, their_err;

		bytes_put64(uuid, dice_number(&d));
		bytes_put64(uuid + 8, dice_number(&d));
		assert_int_equal(firn_uuid_format(uuid, text, 37), 0);
		unparse(uuid, other);
		assert_string_equal(text, other);
		break_text(&d, text);
		err = firn_uuid_parse(text, ours, NULL);
		their_err = parse(text, theirs);
		/* braces are the one thing that we take more */
		if (text[0] == '{')
			continue;
		if ((err == 0) != (their_err == 0))
			fail_msg("\"%s\": %d and %d", text, err, their_err);
		if (err == 0)
			assert_memory_equal(ours, theirs, 16);
		refused += err != 0;
	}
	assert_true(refused > WORLDS / 10 && refused < WORLDS / 10 * 9);
	dlclose(so);
}

/* Bytes and texts sort alike, and each reads back. */
static void
texts_sort_as_bytes(void **state)
{
	struct dice d = dice_open("texts_sort_as_bytes");

	(void)state;
	for (int i = 0; i < WORLDS; i++) {
		unsigned char a[16], b[16], again[16];
		char ta[FIRN_UUID_TEXT_MAX], tb[FIRN_UUID_TEXT_MAX];

		bytes_put64(a, dice_number(&d));
		bytes_put64(a + 8, dice_number(&d));
		memcpy(b, a, 16);
		b[dice_below(&d, 16)] ^=
		    (unsigned char)(1 << dice_below(&d, 8));
		assert_int_equal(firn_uuid_format(a, ta, sizeof(ta)), 0);
		assert_int_equal(firn_uuid_format(b, tb, sizeof(tb)), 0);
		assert_int_equal(
		    firn_uuid_compare(a, b) < 0, strcmp(ta, tb) < 0);
		must_parse(tb, again);
		assert_memory_equal(b, again, 16);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(examples_of_the_rfc),
		cmocka_unit_test(bounds_of_an_instant),
		cmocka_unit_test(forms_that_the_rfc_allows),
		cmocka_unit_test(faults_have_their_place),
		cmocka_unit_test(wrong_arguments),
		cmocka_unit_test(same_as_libuuid),
		cmocka_unit_test(texts_sort_as_bytes),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
