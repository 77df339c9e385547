/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_docs - documents from strangers: what is read, what is refused with one
 * line, and that what is written reads back the same.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dice.h"
#include "firn-wire.h"
#include "fleet.h"
#include "layout.h"
#include "mark.h"
#include "notice.h"
#include "realm.h"
#include "status.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ROUNDS 20000

#define UUID_TEXT "0f8fad5b-d9cb-469f-a165-70867728950e"
#define CLAIM UUID_TEXT "-w-0000001041"
#define TAG "00112233445566778899aabbccddeeff"

#define LAYOUT                                                    \
	"{\"name\":\"firn\",\"time_bits\":41,\"worker_bits\":10," \
	"\"sequence_bits\":12,\"datacenter_bits\":0,"             \
	"\"sequence_above_worker\":false}"
#define REALM                                                               \
	"{\"format\":1,\"uuid\":\"" UUID_TEXT "\","                         \
	"\"generation\":\"1-9f3a21c4\",\"layout\":" LAYOUT ","              \
	"\"epoch_ms\":\"1735689600000\",\"tick_ms\":1,"                     \
	"\"not_before_ms\":\"1735689670000\",\"reserve_max_ms\":\"60000\"," \
	"\"workers\":{\"first\":0,\"last\":1023}}"

#define STATUS                                                              \
	"{\"state\":\"serving\",\"reason\":\"\",\"host\":\"alpha\","        \
	"\"version\":\"0.1.0\",\"pid\":4242,\"boot_id\":\"" UUID_TEXT "\"," \
	"\"offset_us\":\"-1500\",\"error_us\":\"300\","                     \
	"\"stamp_ms\":\"1735689700000\",\"epoch\":\"7\","                   \
	"\"skew_us\":\"20\"}"
#define MARK_BUT(ceiling, owner, tag) \
	"{\"ceiling_tick\":" ceiling ",\"owner\":" owner ",\"tag\":" tag "}"
#define MARK                                                    \
	"{\"ceiling_tick\":\"123456789012\",\"owner\":\"" CLAIM \
	"\",\"tag\":\"" TAG "\",\"status\":" STATUS "}"

static const char good_realm[] = REALM;
static const char good_mark[] = MARK;

/* One line, printable, that says something. */
static void
assert_one_line(const struct doc_error *err)
{
	assert_true(strlen(err->text) > 0);
	assert_true(strlen(err->text) < sizeof(err->text));
	for (const char *p = err->text; *p != '\0'; p++)
		assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
}

/*
 * A copy that ends where it ends: a byte read past it is one that the
 * address sanitizer sees.
 */
static char *
exact_copy(const char *text, size_t length)
{
	char *copy = malloc(length > 0 ? length : 1);

	assert_non_null(copy);
	memcpy(copy, text, length);
	return (copy);
}

struct fault_case {
	const char *text;
	const char *fault; /* NULL: nothing is wrong */
	const char *why;
};

/* ---- the realm ----------------------------------------------------------------- */

/* The good contract with one part of it replaced. */
struct change_case {
	const char *from, *to;
	const char *fault; /* NULL: it is still good */
	const char *why;
};

#define GENERATION_FAULT                                                 \
	"generation: must be a number and eight hexadecimal digits, as " \
	"1-9f3a21c4"
#define FORMAT_FAULT "format: must be a whole number from 1 to 2147483647"
#define NOT_BEFORE_FAULT \
	"not_before_ms: must be a whole number from 0 to 253402300799999"

#define WIDE_REALM(last)                                               \
	"{\"format\":1,\"uuid\":\"" UUID_TEXT "\","                    \
	"\"generation\":\"1-9f3a21c4\",\"layout\":{\"name\":\"wide\"," \
	"\"time_bits\":41,\"worker_bits\":21,\"sequence_bits\":1,"     \
	"\"datacenter_bits\":0,\"sequence_above_worker\":false},"      \
	"\"epoch_ms\":\"0\",\"tick_ms\":1,\"not_before_ms\":\"0\","    \
	"\"reserve_max_ms\":1000,\"workers\":{\"first\":0,\"last\":" last "}}"

static const struct change_case realm_cases[] = {
	{ "", "", NULL, "a good one" },
	{ "\"1735689600000\"", "1735689600000", NULL, "a number for a string" },
	{ "\"tick_ms\":1", "\"tick_ms\":\"1\"", NULL, "the reverse" },
	{ "\"tick_ms\":1", "\"tick_ms\":1,\"later\":{\"a\":[1]}", NULL,
	    "unknown key" },
	{ ":1,", ":1,\"Format\":2,", NULL, "another key: case counts" },
	{ REALM, "[]", "this is no JSON object", "a list" },
	{ REALM, "{}", "format: it is missing", "empty" },
	{ "\"format\":1", "\"format\":0", FORMAT_FAULT, "format 0" },
	{ "\"format\":1", "\"format\":1e400", FORMAT_FAULT,
	    "infinity to a double" },
	{ "\"format\":1", "\"format\":null", FORMAT_FAULT, "null" },
	{ "\"format\":1", "\"format\":1,\"format\":2",
	    "format: this key stands there twice", "which of the two?" },
	{ "0f8fad5b", "0F8FAD5B", "uuid: must be a UUID in lower case",
	    "upper case" },
	{ "0f8fad5b", "0f8fad5b0", "uuid: longer than 36 bytes", "too long" },
	{ "\"" UUID_TEXT "\"", "7", "uuid: must be a string", "a number" },
	{ "1-9f3a21c4", "0-9f3a21c4", GENERATION_FAULT, "generation 0" },
	{ "1-9f3a21c4", "1-9f3a21c4/..", GENERATION_FAULT,
	    "a way out of the path" },
	{ "1-9f3a21c4", "01-9f3a21c4", GENERATION_FAULT, "leading zero" },
	{ "1-9f3a21c4", "1-9F3A21C4", GENERATION_FAULT, "upper case" },
	{ "1-9f3a21c4", "1-9f3a\\n1c4", "generation: must be printable ASCII",
	    "a line break" },
	{ REALM, WIDE_REALM("1048575"), NULL, "as many worker IDs as can be" },
	{ REALM, WIDE_REALM("1048576"), "workers: more than 1048576",
	    "one more" },
	{ LAYOUT, "\"firn\"", "layout: must be an object", "a name" },
	{ "\"time_bits\":41", "\"time_bits\":43",
	    "layout: 43/10/12 bits (time, worker, sequence), 0 of the worker's "
	    "for the datacenter, do not make an ID",
	    "65 bits" },
	{ "\"time_bits\":41", "\"time_bits\":297",
	    "layout.time_bits: must be a whole number from 0 to 64",
	    "41 modulo 256" },
	{ "\"name\"", "\"\\u006eame\":\"y\",\"name\"",
	    "name: this key stands there twice", "twice in two spellings" },
	{ ":false", ":0", "layout.sequence_above_worker: must be true or false",
	    "0" },
	{ "\"firn\"", "\"sixteen-long-one\"",
	    "layout.name: longer than 15 bytes", "long name" },
	{ "\"tick_ms\":1", "\"tick_ms\":0",
	    "tick_ms: must be a whole number from 1 to 3600000", "tick 0" },
	{ "1735689600000", "-1",
	    "epoch_ms: must be a whole number from 0 to 253402300799999",
	    "before 1970" },
	{ "\"1735689670000\"", "1.5", NOT_BEFORE_FAULT, "a fraction" },
	{ "\"1735689670000\"", "\"9223372036854775808\"", NOT_BEFORE_FAULT,
	    "2^63" },
	{ "\"1735689670000\"", "9223372036854775808", NOT_BEFORE_FAULT,
	    "2^63 as a number" },
	{ "1735689670000", " 1", NOT_BEFORE_FAULT, "a blank" },
	{ "1735689670000", "0x10", NOT_BEFORE_FAULT, "hexadecimal" },
	{ "\"60000\"", "\"999\"",
	    "reserve_max_ms: must be a whole number from 1000 to 86400000",
	    "window too short" },
	{ "1023", "1024", "workers.last: must be a whole number from 0 to 1023",
	    "outside the layout" },
	{ "\"first\":0", "\"first\":-1",
	    "workers.first: must be a whole number from 0 to 1023",
	    "below the layout" },
	{ "\"first\":0,\"last\":1023", "\"first\":8,\"last\":7",
	    "workers: first (8) is above last (7)", "none" },
};

/* A copy of the good contract in which `to` stands for the first `from`. */
static char *
changed_realm(const struct change_case *c, size_t *length)
{
	const char *at = strstr(good_realm, c->from);
	size_t before, n = strlen(c->to);
	char *text;

	assert_non_null(at);
	before = (size_t)(at - good_realm);
	*length = strlen(good_realm) - strlen(c->from) + n;
	text = malloc(*length);
	assert_non_null(text);
	memcpy(text, good_realm, before);
	memcpy(text + before, c->to, n);
	memcpy(text + before + n, at + strlen(c->from), *length - before - n);
	return (text);
}

static void
test_realm(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(realm_cases); i++) {
		const struct change_case *c = &realm_cases[i];
		struct contract k = { .format = 99 };
		struct doc_error err = { "" };
		size_t length;
		char *text = changed_realm(c, &length);
		int rc = realm_parse(text, length, &k, &err);

		free(text);
		if (rc != (c->fault == NULL ? 0 : -1) ||
		    strcmp(err.text, c->fault != NULL ? c->fault : "") != 0)
			fail_msg("%s: %d \"%s\"", c->why, rc, err.text);
		assert_int_equal(k.format, rc == 0 ? 1 : 99);
	}
}

static void
test_realm_too_new(void **state)
{
	struct doc_error err;
	struct contract k;

	(void)state;
	assert_int_equal(
	    realm_parse("{\"format\":2,\"layout\":7}", 23, &k, &err),
	    REALM_TOO_NEW);
	assert_int_equal(k.format, 2);
	assert_string_equal(
	    err.text, "format: 2 is newer than 1, the one this program knows");
}

/* The longest contract there is fits, and comes back the same. */
static void
test_realm_round(void **state)
{
	struct contract k = {
		.format = REALM_FORMAT,
		.generation = INT64_C(9999999999),
		.generation_text = "9999999999-ffffffff",
		.layout = { .size = (uint32_t)sizeof(k.layout),
		    .time_bits = 32,
		    .worker_bits = 31,
		    .sequence_bits = 1,
		    .datacenter_bits = 31,
		    .flags = FIRN_SEQUENCE_ABOVE_WORKER,
		    .tick_ms = 3600000,
		    .epoch_ms = INT64_C(253402300799999),
		    .name = "\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"" },
		.not_before_ms = INT64_C(253402300799999),
		.reserve_max_ms = 86400000,
		.worker_first = 2146435072,
		.worker_last = 2147483647,
	};
	char buf[REALM_DOC_MAX];
	struct contract back;
	struct doc_error err;
	int length;

	(void)state;
	memset(k.uuid, 0xfe, sizeof(k.uuid));
	length = realm_format(&k, buf, sizeof(buf));
	assert_int_equal(length, (int)strlen(buf));
	if (realm_parse(buf, (size_t)length, &back, &err) != 0)
		fail_msg("%s", err.text);
	assert_memory_equal(k.uuid, back.uuid, sizeof(k.uuid));
	assert_int_equal(k.generation, back.generation);
	assert_string_equal(k.generation_text, back.generation_text);
	assert_true(layout_equal(&k.layout, &back.layout));
	assert_int_equal(k.layout.datacenter_bits, back.layout.datacenter_bits);
	assert_string_equal(k.layout.name, back.layout.name);
	assert_int_equal(k.not_before_ms, back.not_before_ms);
	assert_int_equal(k.reserve_max_ms, back.reserve_max_ms);
	assert_int_equal(k.worker_first, back.worker_first);
	assert_int_equal(k.worker_last, back.worker_last);
	assert_int_equal(realm_format(&k, buf, (size_t)length), -1);
}

static void
test_realm_name(void **state)
{
	char name[80];

	(void)state;
	assert_true(realm_name_valid("default"));
	assert_true(realm_name_valid("..."));
	assert_true(realm_name_valid("A.b_c-9"));
	assert_false(realm_name_valid(""));
	assert_false(realm_name_valid("."));
	assert_false(realm_name_valid(".."));
	assert_false(realm_name_valid("a/b"));
	assert_false(realm_name_valid("a b"));
	assert_false(realm_name_valid("\xc3\xa9"));
	memset(name, 'x', sizeof(name));
	name[63] = '\0';
	assert_true(realm_name_valid(name));
	name[63] = 'x';
	name[64] = '\0';
	assert_false(realm_name_valid(name));
}

/* ---- the mark ------------------------------------------------------------------ */

#define CEILING_FAULT                                                        \
	"ceiling_tick: must be a whole number from -4611686018427387903 to " \
	"4611686018427387903"

static const struct fault_case mark_cases[] = {
	{ MARK_BUT("\"5\"", "\"a\"", "\"" TAG "\""), NULL, "no status" },
	{ MARK_BUT("\"-1\"", "\"\"", "\"" TAG "\""), NULL,
	    "below the first tick, nobody's" },
	{ MARK_BUT("2147483648", "\"a\"", "\"" TAG "\""), NULL,
	    "past cJSON's valueint" },
	{ MARK_BUT("\"4611686018427387903\"", "\"a\"", "\"" TAG "\""), NULL,
	    "the last tick of all" },
	{ MARK_BUT("\"4611686018427387904\"", "\"a\"", "\"" TAG "\""),
	    CEILING_FAULT, "past it" },
	{ MARK_BUT("9007199254740991", "\"a\"", "\"" TAG "\""), NULL,
	    "2^53 - 1" },
	{ MARK_BUT("9007199254740993", "\"a\"", "\"" TAG "\""), CEILING_FAULT,
	    "2^53 + 1, to a double 2^53: a mark one lower" },
	{ MARK_BUT("1e400", "\"a\"", "\"" TAG "\""), CEILING_FAULT,
	    "infinity" },
	{ MARK_BUT("\"\"", "\"a\"", "\"" TAG "\""), CEILING_FAULT, "empty" },
	{ MARK_BUT("true", "\"a\"", "\"" TAG "\""), CEILING_FAULT, "a word" },
	{ MARK_BUT("1", "\"a b\"", "\"" TAG "\""),
	    "owner: this is no name of a claim", "a blank" },
	{ MARK_BUT("1", "\"a\\u001bb\"", "\"" TAG "\""),
	    "owner: must be printable ASCII", "an escape sequence" },
	{ MARK_BUT("1",
	      "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	      "aaaaaaaaaaaaaaaaaaaa\"",
	      "\"" TAG "\""),
	    "owner: longer than 79 bytes", "80" },
	{ MARK_BUT("1", "\"a\"", "\"00112233445566778899aabbccddeef\""),
	    "tag: must be 32 hexadecimal digits", "31" },
	{ MARK_BUT("1", "\"a\"", "\"00112233445566778899AABBCCDDEEFF\""),
	    "tag: must be 32 hexadecimal digits", "upper case" },
	{ "{\"ceiling_tick\":\"1\",\"owner\":\"a\"}", "tag: it is missing",
	    "no tag" },
	{ "{\"ceiling_tick\":\"1\",\"ceiling_tick\":\"2\"}",
	    "ceiling_tick: this key stands there twice", "which?" },
	{ "not json", "line 1, column 1: a value should stand here",
	    "not JSON" },
};

static void
test_mark(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(mark_cases); i++) {
		const struct fault_case *c = &mark_cases[i];
		size_t length = strlen(c->text);
		char *copy = exact_copy(c->text, length);
		struct doc_error err = { "" };
		struct agent_status st = { .pid = 7 };
		struct mark m = { .ceiling = 77 };
		int rc = mark_parse(copy, length, &m, &st, &err);

		if (rc != (c->fault == NULL ? 0 : -1) ||
		    strcmp(err.text, c->fault != NULL ? c->fault : "") != 0)
			fail_msg("%s: %d \"%s\"", c->why, rc, err.text);
		assert_int_equal(rc, mark_parse(copy, length, &m, NULL, NULL));
		if (rc == 0)
			assert_int_equal(st.pid, 0);
		else
			assert_int_equal(m.ceiling, 77);
		free(copy);
	}
}

/* A status that is odd in any way is none; the mark holds all the same. */
#define ODD(state, pid, boot_id, rest)                                      \
	"{\"state\":\"" state "\",\"reason\":\"\",\"host\":\"\","           \
	"\"version\":\"\",\"pid\":" pid ",\"boot_id\":\"" boot_id "\"" rest \
	"}"

static void
test_mark_status(void **state)
{
	static const char *const odd[] = {
		"null",
		"7",
		"[]",
		"{}",
		"{\"state\":\"serving\"}",
		ODD("", "1", UUID_TEXT, ""),
		ODD("s", "-1", UUID_TEXT, ""),
		ODD("s", "1", "x", ""),
		/* an offset without its stamp would be judged as fresh */
		ODD("s", "1", UUID_TEXT,
		    ",\"offset_us\":\"1\",\"error_us\":\"1\""),
		/* sums of such offsets would overflow */
		ODD("s", "1", UUID_TEXT,
		    ",\"offset_us\":\"4000000000000001\","
		    "\"error_us\":\"1\",\"stamp_ms\":\"1\","
		    "\"epoch\":\"1\",\"skew_us\":\"1\""),
	};
	char text[1000];
	struct agent_status st, none = { 0 };
	struct mark m;
	struct doc_error err;

	(void)state;
	for (size_t i = 0; i < COUNT(odd); i++) {
		int length = snprintf(text, sizeof(text),
		    "{\"ceiling_tick\":\"5\",\"owner\":\"a\",\"tag\":\"" TAG
		    "\",\"status\":%s}",
		    odd[i]);

		memset(&st, 0xff, sizeof(st));
		assert_int_equal(
		    mark_parse(text, (size_t)length, &m, &st, &err), 0);
		assert_int_equal(m.ceiling, 5);
		assert_memory_equal(&st, &none, sizeof(st));
	}
	assert_int_equal(
	    mark_parse(good_mark, strlen(good_mark), &m, &st, &err), 0);
	assert_int_equal(m.ceiling, INT64_C(123456789012));
	assert_true(m.tag.word[0] == UINT64_C(0x0011223344556677));
	assert_true(m.tag.word[1] == UINT64_C(0x8899aabbccddeeff));
	assert_string_equal(m.owner, CLAIM);
	assert_string_equal(st.state, "serving");
	assert_string_equal(st.host, "alpha");
	assert_true(st.has_offset);
	assert_int_equal(st.offset_us, -1500);
	assert_int_equal(st.stamp_ms, INT64_C(1735689700000));
	assert_int_equal(st.epoch, 7);
	assert_int_equal(st.skew_us, 20);
}

/*
 * No number of a document is one that a double has spoiled, or would: each
 * stands once in place of each value, and none of them passes for another.
 */
static const struct {
	const char *text, *why;
} bad_numbers[] = {
	{ "1e400", "infinity" },
	{ "-1e400", "the other one" },
	{ "1.5", "a fraction" },
	{ "9007199254740992", "2^53: its neighbour reads the same" },
	{ "9007199254740993", "2^53 + 1" },
	{ "9223372036854775807", "2^63 - 1, to a double 2^63" },
	{ "9223372036854775808", "2^63" },
	{ "18446744073709551616", "2^64" },
	{ "-9223372036854775809", "below -2^63" },
	{ "\"9223372036854775808\"", "2^63 as a string" },
	{ "\"18446744073709551616\"", "2^64: 0 to who wraps" },
	{ "\"18446744073709551617\"", "2^64 + 1: 1 to who wraps" },
	{ "\"1e3\"", "an exponent in a string" },
	{ "\"0x10\"", "hexadecimal" },
	{ "\"01\"", "a leading zero" },
	{ "\"+1\"", "a plus" },
	{ "\" 1\"", "a blank" },
	{ "\"1 \"", "a blank behind" },
	{ "\"-0\"", "less than nothing" },
	{ "\"\"", "no digits" },
	{ "true", "a word" },
	{ "[1]", "a list" },
	{ "{\"1\":1}", "an object" },
};

/* A copy of a good document in which `value` is that of its first `key`. */
static size_t
with_number(const char *good, const char *key, const char *value, char *text,
    size_t size)
{
	char quoted[40];
	const char *at, *rest;
	int n;

	(void)snprintf(quoted, sizeof(quoted), "\"%s\":", key);
	at = strstr(good, quoted);
	assert_non_null(at);
	at += strlen(quoted);
	rest = at + strcspn(at, ",}");
	n = snprintf(
	    text, size, "%.*s%s%s", (int)(at - good), good, value, rest);
	assert_true(n > 0 && (size_t)n < size);
	return ((size_t)n);
}

static void
test_numbers(void **state)
{
	static const char *const of_realm[] = { "format", "epoch_ms", "tick_ms",
		"not_before_ms", "reserve_max_ms", "first", "last", "time_bits",
		"worker_bits", "sequence_bits", "datacenter_bits" };
	static const char *const of_status[] = { "pid", "offset_us", "error_us",
		"stamp_ms", "epoch", "skew_us" };
	static const char good_claim[] = "{\"status\":" STATUS "}";
	struct agent_status st;
	struct doc_error err;
	struct contract k;
	struct mark m;
	char text[1000];
	size_t n;

	(void)state;
	for (size_t i = 0; i < COUNT(bad_numbers); i++) {
		const char *v = bad_numbers[i].text;

		for (size_t j = 0; j < COUNT(of_realm); j++) {
			n = with_number(
			    good_realm, of_realm[j], v, text, sizeof(text));
			if (realm_parse(text, n, &k, &err) != -1 ||
			    strstr(err.text, of_realm[j]) == NULL)
				fail_msg("realm: %s: %s: %s", of_realm[j],
				    bad_numbers[i].why, err.text);
		}
		for (size_t j = 0; j < COUNT(of_status); j++) {
			n = with_number(
			    good_claim, of_status[j], v, text, sizeof(text));
			if (claim_doc_parse(text, n, &st, &err) != -1 ||
			    strstr(err.text, of_status[j]) == NULL)
				fail_msg("claim: %s: %s: %s", of_status[j],
				    bad_numbers[i].why, err.text);
			n = with_number(
			    good_mark, of_status[j], v, text, sizeof(text));
			assert_int_equal(mark_parse(text, n, &m, &st, &err), 0);
			assert_string_equal(st.state, "");
			assert_false(st.has_offset);
		}
		n = with_number(
		    good_mark, "ceiling_tick", v, text, sizeof(text));
		if (mark_parse(text, n, &m, &st, &err) != -1 ||
		    strcmp(err.text, CEILING_FAULT) != 0)
			fail_msg("mark: %s: %s", bad_numbers[i].why, err.text);
	}
}

/* What is good comes out to the last digit, as a double would not. */
static void
test_exact(void **state)
{
	static const struct {
		const char *text;
		int64_t value;
	} cases[] = {
		{ "\"9007199254740993\"", INT64_C(9007199254740993) },
		{ "\"4611686018427387903\"", INT64_C(4611686018427387903) },
		{ "\"-4611686018427387903\"", INT64_C(-4611686018427387903) },
		{ "\"4611686018427387901\"", INT64_C(4611686018427387901) },
		{ "9007199254740991", INT64_C(9007199254740991) },
		{ "-9007199254740991", INT64_C(-9007199254740991) },
		{ "2147483648", INT64_C(2147483648) }, /* past valueint */
		{ "1e3", 1000 },
	};
	struct doc_error err;
	struct mark m;
	char text[1000];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		size_t n = with_number(good_mark, "ceiling_tick", cases[i].text,
		    text, sizeof(text));

		assert_int_equal(mark_parse(text, n, &m, NULL, &err), 0);
		if (m.ceiling != cases[i].value)
			fail_msg("%s: %" PRId64, cases[i].text, m.ceiling);
	}
}

/* What others leave in ZooKeeper, whole, to each of the parsers. */
static void
test_foreign(void **state)
{
	static char deep[60000], large[1048000];
	const struct {
		const char *text;
		size_t length;
		const char *fault, *why;
	} cases[] = {
		{ "", 0, "it is empty", "nothing" },
		{ NULL, 10 << 20, "10485760 bytes are too many: at most 65536",
		    "too large even to be handed on" },
		{ large, sizeof(large),
		    "1048000 bytes are too many: at most 65536",
		    "almost a megabyte" },
		{ deep, sizeof(deep),
		    "line 1, column 17: it is nested too deep", "deep" },
		{ "\xff\xfe", 2, "line 1, column 1: a value should stand here",
		    "no text" },
		{ "<xml/>", 6, "line 1, column 1: a value should stand here",
		    "not JSON" },
		{ "{\"a\":{\"b\":1,\"b\":2}}", 19,
		    "b: this key stands there twice", "twice, further down" },
		{ "[]", 2, "this is no JSON object", "a list" },
		{ "7", 1, "this is no JSON object", "a number" },
		{ "null", 4, "this is no JSON object", "null" },
		{ "{\"a\":1}\0{}", 10,
		    "line 1, column 8: nothing should follow here",
		    "a NUL, and more" },
	};
	struct agent_status st;
	struct contract k;
	struct mark m;

	(void)state;
	memset(deep, '[', sizeof(deep));
	memset(large, ' ', sizeof(large));
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct doc_error err[3] = { { "" } };
		bool good = realm_parse(cases[i].text, cases[i].length, &k,
				&err[0]) == -1 &&
			    mark_parse(cases[i].text, cases[i].length, &m, &st,
				&err[1]) == -1 &&
			    claim_doc_parse(cases[i].text, cases[i].length, &st,
				&err[2]) == -1;

		for (size_t j = 0; j < 3; j++)
			good = good && strcmp(err[j].text, cases[i].fault) == 0;
		if (!good)
			fail_msg("%s: %s", cases[i].why, err[0].text);
	}
}

/* Names from strangers steer no terminal and are cut to their room. */
static void
test_mark_labels(void **state)
{
	const char text[] =
	    "{\"status\":{\"state\":\"a-state-that-is-too-long\","
	    "\"reason\":\"\\u001b[31m\\n\",\"host\":\"h\xc3\xa9\","
	    "\"version\":\"\",\"pid\":\"1\",\"boot_id\":\"" UUID_TEXT "\"}}";
	struct agent_status st;
	struct doc_error err;

	(void)state;
	assert_int_equal(claim_doc_parse(text, sizeof(text) - 1, &st, &err), 0);
	assert_string_equal(st.state, "a-state-that-is");
	assert_string_equal(st.reason, "?[31m?");
	assert_string_equal(st.host, "h??");
	assert_false(st.has_offset);
	assert_int_equal(claim_doc_parse("{}", 2, &st, &err), -1);
	assert_string_equal(err.text, "status: it is missing");
	assert_int_equal(claim_doc_parse("", 0, &st, &err), -1);
}

static void
fill(char *text, size_t size)
{
	memset(text, '"', size - 1);
	text[size - 1] = '\0';
}

static struct agent_status
longest_status(void)
{
	struct agent_status st = {
		.pid = INT32_MAX,
		.has_offset = true,
		.offset_us = INT64_MIN,
		.error_us = INT64_MAX,
		.stamp_ms = INT64_MAX,
		.epoch = INT64_MAX,
		.skew_us = INT64_MIN,
	};

	fill(st.state, sizeof(st.state));
	fill(st.reason, sizeof(st.reason));
	fill(st.host, sizeof(st.host));
	fill(st.version, sizeof(st.version));
	memset(st.boot_id, 0xff, sizeof(st.boot_id));
	return (st);
}

static void
test_mark_round(void **state)
{
	struct agent_status st = longest_status(), back_st;
	struct mark m = { .ceiling = -MARK_CEILING_MAX,
		.tag = { { UINT64_MAX, 1 } } };
	char buf[MARK_DOC_MAX];
	struct doc_error err;
	struct mark back;
	int length;

	(void)state;
	memset(m.owner, 'x', sizeof(m.owner) - 1);
	length = mark_format(&m, &st, buf, sizeof(buf));
	assert_int_equal(length, (int)strlen(buf));
	if (mark_parse(buf, (size_t)length, &back, &back_st, &err) != 0)
		fail_msg("%s", err.text);
	assert_memory_equal(&m, &back, sizeof(m));
	/* A clock past all bounds is written as far off as can be. */
	assert_true(back_st.has_offset);
	assert_int_equal(back_st.offset_us, -MARK_OFFSET_US_MAX);
	assert_int_equal(back_st.error_us, MARK_OFFSET_US_MAX);
	assert_string_equal(st.host, back_st.host);
	assert_memory_equal(st.boot_id, back_st.boot_id, UUID_BYTES);
	length = claim_doc_format(&st, buf, sizeof(buf));
	assert_true(length > 0);
	assert_int_equal(
	    claim_doc_parse(buf, (size_t)length, &back_st, &err), 0);
	assert_string_equal(st.reason, back_st.reason);
	/* What nobody could read is not written. */
	m.ceiling = MARK_CEILING_MAX + 1;
	assert_int_equal(mark_format(&m, NULL, buf, sizeof(buf)), -1);
	m.ceiling = 1;
	m.owner[3] = '\n';
	assert_int_equal(mark_format(&m, NULL, buf, sizeof(buf)), -1);
}

/* ---- the status ---------------------------------------------------------------- */

static struct status_doc
longest_status_doc(void)
{
	struct status_doc d = {
		.epoch_ms = INT64_MIN,
		.tick_ms = INT64_MIN,
		.worker = UINT64_MAX - 1,
		.counter = INT64_MAX,
		.mark_ms = INT64_MIN,
		.window_left_ms = INT64_MIN,
		.has_skew = true,
		.skew_ms = INT64_MIN,
		.has_offset = true,
		.offset_ms = INT64_MIN,
		.error_ms = INT64_MIN,
		.peers = INT64_MIN,
		.has_kernel = true,
		.kernel_error_ms = INT64_MIN,
		.issued = UINT64_MAX,
		.clients = UINT64_MAX,
		.batches = UINT64_MAX,
		.refusals = UINT64_MAX,
		.denied = UINT64_MAX,
		.limited = UINT64_MAX,
		.config_reloads = UINT64_MAX,
		.config_reload_failures = UINT64_MAX,
		.pid = INT64_MIN,
	};

	fill(d.state, sizeof(d.state));
	fill(d.reason, sizeof(d.reason));
	fill(d.words, sizeof(d.words));
	fill(d.realm, sizeof(d.realm));
	fill(d.uuid, sizeof(d.uuid));
	fill(d.generation, sizeof(d.generation));
	fill(d.layout, sizeof(d.layout));
	fill(d.bits, sizeof(d.bits));
	fill(d.claim, sizeof(d.claim));
	fill(d.source, sizeof(d.source));
	fill(d.kernel_leap, sizeof(d.kernel_leap));
	fill(d.version, sizeof(d.version));
	return (d);
}

/* The longest document stays below the wire's limit, and reads back whole. */
static void
test_status_longest(void **state)
{
	struct status_doc d = longest_status_doc(), back;
	char buf[WIRE_STATUS_MAX];
	struct doc_error err;
	int length;

	(void)state;
	length = status_format(&d, buf, sizeof(buf));
	assert_true(length > 0 && length < WIRE_STATUS_MAX);
	if (status_parse(buf, (size_t)length, &back, &err) != 0)
		fail_msg("%s", err.text);
	assert_string_equal(d.words, back.words);
	assert_string_equal(d.claim, back.claim);
	assert_string_equal(d.source, back.source);
	assert_true(d.worker == back.worker && d.issued == back.issued);
	assert_true(d.refusals == back.refusals && back.has_skew);
	assert_true(back.has_offset && d.error_ms == back.error_ms);
	assert_true(d.mark_ms == back.mark_ms && d.skew_ms == back.skew_ms);
	assert_true(d.counter == back.counter && d.peers == back.peers);
	assert_true(back.has_kernel && !back.kernel_synchronized);
	assert_true(d.kernel_error_ms == back.kernel_error_ms);
	assert_string_equal(d.kernel_leap, back.kernel_leap);
}

static void
test_status_text(void **state)
{
	struct status_doc d = { .state = "claiming",
		.reason = "no_realm",
		.words = "no_realm: none",
		.realm = "default",
		.worker = NO_WORKER,
		.counter = -1,
		.pid = 9,
		.version = "0.1.0" };
	char buf[WIRE_STATUS_MAX];
	struct status_doc back;
	struct doc_error err;
	int length;

	(void)state;
	length = status_format(&d, buf, sizeof(buf));
	assert_string_equal(buf,
	    "{\"state\":\"claiming\",\"reason\":\"no_realm\","
	    "\"words\":\"no_realm: none\",\"realm\":\"default\",\"uuid\":null,"
	    "\"generation\":null,\"layout\":null,\"bits\":null,"
	    "\"epoch_ms\":null,\"tick_ms\":null,\"worker\":null,"
	    "\"claim\":null,\"counter\":null,\"mark_ms\":null,"
	    "\"window_left_ms\":null,\"source\":null,\"connected\":false,"
	    "\"skew_ms\":null,"
	    "\"offset_ms\":null,\"error_ms\":null,\"peers\":0,"
	    "\"kernel_synchronized\":null,\"kernel_error_ms\":null,"
	    "\"kernel_leap\":null,\"issued\":\"0\","
	    "\"clients\":\"0\",\"batches\":\"0\",\"refusals\":\"0\","
	    "\"denied\":\"0\",\"limited\":\"0\","
	    "\"config_reloads\":\"0\",\"config_reload_failures\":\"0\","
	    "\"pid\":9,"
	    "\"version\":\"0.1.0\"}");
	assert_int_equal(status_parse(buf, (size_t)length, &back, &err), 0);
	assert_true(back.worker == NO_WORKER);
	assert_int_equal(back.counter, -1);
	assert_false(back.has_skew);
	/* An older agent's: what it does not say stays empty. */
	assert_int_equal(
	    status_parse("{\"state\":\"serving\"}", 19, &back, &err), 0);
	assert_true(back.worker == NO_WORKER);
	assert_int_equal(status_parse("{}", 2, &back, &err), -1);
	assert_string_equal(err.text, "state: it is missing");
	assert_int_equal(
	    status_parse("{\"state\":\"s\",\"peers\":1.5}", 25, &back, &err),
	    -1);
	assert_one_line(&err);
}

/* ---- the fleet ----------------------------------------------------------------- */

static void
test_fleet(void **state)
{
	static const struct fleet_row rows[] = {
		{ .worker = 17,
		    .host = "al\"pha",
		    .pid = 4242,
		    .state = "serving",
		    .has_skew = true,
		    .skew_ms = -3,
		    .has_error = true,
		    .error_ms = 1,
		    .has_mark = true,
		    .mark_lead_ms = 58000,
		    .version = "0.1.0",
		    .claim = CLAIM },
		{ .worker = NO_WORKER },
	};
	static const struct fleet_alert alerts[] = {
		{ "workers_low", FLEET_CRITICAL, "", NO_WORKER, "none is free",
		    "" },
		{ "skew_warn", FLEET_WARNING, "alpha", 17, "0.6 s ahead",
		    "2026-11-30T12:00:00.000Z" },
	};
	struct fleet f = { rows, 2, alerts, 2, true, 4, 9, 1022,
		{ CLAIM, "alpha", 250 } };
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	struct doc_error err;

	(void)state;
	assert_non_null(out);
	assert_int_equal(fleet_print(&f, out), 0);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(doc_check(text, length, &err), 0);
	assert_string_equal(text,
	    "{\"agents\":[{\"worker\":17,\"host\":\"al\\\"pha\",\"pid\":4242,"
	    "\"state\":\"serving\",\"reason\":\"\",\"skew_ms\":-3,"
	    "\"error_ms\":1,\"mark_lead_ms\":58000,\"version\":\"0.1.0\","
	    "\"claim\":\"" CLAIM "\"},"
	    "{\"worker\":null,\"host\":null,\"pid\":null,\"state\":null,"
	    "\"reason\":\"\",\"skew_ms\":null,\"error_ms\":null,"
	    "\"mark_lead_ms\":null,\"version\":null,\"claim\":null}],"
	    "\"mean_offset_ms\":4,\"spread_ms\":9,\"alerts\":["
	    "{\"kind\":\"workers_low\",\"severity\":\"critical\",\"host\":null,"
	    "\"worker\":null,\"since\":null,\"text\":\"none is free\"},"
	    "{\"kind\":\"skew_warn\",\"severity\":\"warning\","
	    "\"host\":\"alpha\",\"worker\":17,"
	    "\"since\":\"2026-11-30T12:00:00.000Z\","
	    "\"text\":\"0.6 s ahead\"}],"
	    "\"free_workers\":1022,\"auditor\":{\"claim\":\"" CLAIM "\","
	    "\"host\":\"alpha\",\"age_ms\":250}}\n");
	free(text);
	assert_true(fleet_is_critical(&f));
	f.alerts = alerts + 1;
	f.nalerts = 1;
	assert_false(fleet_is_critical(&f));
}

/* A full disk is an error, not half a document and success. */
static void
test_fleet_full(void **state)
{
	struct fleet f = { 0 };
	FILE *out = fopen("/dev/full", "we");

	(void)state;
	if (out == NULL)
		skip();
	assert_int_equal(fleet_print(&f, out), -1);
	(void)fclose(out);
}

/* ---- random damage ------------------------------------------------------------- */

/* What strangers like to put into the middle of things. */
static const char *const splinters[] = { "1e400", "9223372036854775808", "1.5",
	"-1", "\"0x10\"", "\" 1\"", "[[[[[[[[[[[[[[[[[[", "\\u0000", "null",
	"{}", "\xff", "\"", ",", "\"format\":2,", "-", "0", "\\ud800" };

static size_t
damage(struct dice *d, char *text, size_t length, size_t room)
{
	const char *s = splinters[dice_below(d, COUNT(splinters))];
	size_t at = (size_t)dice_below(d, length + 1), n = strlen(s);

	switch (dice_below(d, 5)) {
	case 0: /* another byte */
		if (at < length)
			text[at] = (char)dice_below(d, 256);
		return (length);
	case 1: /* cut */
		return (at);
	case 2: /* a part is gone */
		n = (size_t)dice_below(d, length - at + 1);
		memmove(text + at, text + at + n, length - at - n);
		return (length - n);
	case 3: /* a digit grows */
		for (; at < length; at++)
			if (text[at] >= '0' && text[at] <= '9') {
				s = "999";
				break;
			}
		n = strlen(s);
		break;
	default:
		break;
	}
	if (length + n > room)
		return (length);
	memmove(text + at + n, text + at, length - at);
	memcpy(text + at, s, n);
	return (length + n);
}

static void
check_realm_result(const char *text, size_t length)
{
	struct doc_error err = { "" };
	struct contract k;
	int rc = realm_parse(text, length, &k, &err);

	if (rc != 0) {
		assert_one_line(&err);
		return;
	}
	assert_int_equal(k.format, REALM_FORMAT);
	assert_true(layout_valid(&k.layout));
	assert_true(k.generation >= 1);
	assert_true(k.not_before_ms >= 0);
	assert_true(k.reserve_max_ms >= REALM_RESERVE_MAX_MS_LOW &&
		    k.reserve_max_ms <= REALM_RESERVE_MAX_MS_HIGH);
	assert_true(k.worker_first <= k.worker_last &&
		    k.worker_last <= layout_worker_max(&k.layout) &&
		    k.worker_last - k.worker_first < WORKERS_MAX);
}

static void
check_mark_result(const char *text, size_t length)
{
	struct doc_error err = { "" };
	char buf[MARK_DOC_MAX];
	struct agent_status st;
	struct mark m;

	if (mark_parse(text, length, &m, &st, &err) != 0) {
		assert_one_line(&err);
		return;
	}
	assert_true(
	    m.ceiling >= -MARK_CEILING_MAX && m.ceiling <= MARK_CEILING_MAX);
	assert_true(memchr(m.owner, '\0', sizeof(m.owner)) != NULL);
	assert_true(memchr(st.host, '\0', sizeof(st.host)) != NULL);
	assert_true(st.pid >= 0);
	if (st.has_offset)
		assert_true(st.offset_us >= -MARK_OFFSET_US_MAX &&
			    st.offset_us <= MARK_OFFSET_US_MAX &&
			    st.epoch >= 0 && st.stamp_ms >= 0);
	/* What was read can be written: a takeover does just that. */
	assert_true(mark_format(&m, &st, buf, sizeof(buf)) > 0);
}

static void
check_status_result(const char *text, size_t length)
{
	struct doc_error err = { "" };
	struct status_doc d;

	if (status_parse(text, length, &d, &err) != 0)
		assert_one_line(&err);
	else
		assert_true(memchr(d.words, '\0', sizeof(d.words)) != NULL);
}

static void
test_damage(void **state)
{
	static const char good_status[] =
	    "{\"state\":\"serving\",\"worker\":17,\"issued\":\"12\","
	    "\"skew_ms\":-3,\"connected\":true,\"words\":\"all is well\"}";
	static const char *const seeds[] = { good_realm, good_mark,
		good_status };
	struct dice d = dice_open("docs");

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		size_t which = (size_t)dice_below(&d, COUNT(seeds));
		char text[2000], *copy;
		size_t length = strlen(seeds[which]);
		uint64_t hits = 1 + dice_below(&d, 4);

		memcpy(text, seeds[which], length);
		while (hits-- > 0)
			length = damage(&d, text, length, sizeof(text));
		copy = exact_copy(text, length);
		check_realm_result(copy, length);
		check_mark_result(copy, length);
		check_status_result(copy, length);
		free(copy);
	}
}

/* What alert_command reads: 64 bits as text, null for what is not known. */
static void
test_notice(void **state)
{
	struct notice x = {
		.kind = "agent_stale",
		.severity = "warning",
		.raised = true,
		.realm = "r",
		.host = "h",
		.worker = UINT64_MAX - 1,
		.since_ms = INT64_MAX,
		.has_value = true,
		.value = INT64_MIN,
		.text = "two\nlines, \"quoted\"",
	};
	char buf[NOTICE_DOC_MAX], host[256], text[2 * NOTICE_TEXT_MAX];

	(void)state;
	assert_true(notice_format(&x, buf, sizeof(buf)) > 0);
	assert_string_equal(buf,
	    "{\"kind\":\"agent_stale\",\"severity\":\"warning\","
	    "\"state\":\"raised\",\"realm\":\"r\",\"host\":\"h\","
	    "\"worker\":\"18446744073709551614\","
	    "\"since\":\"9223372036854775807\","
	    "\"figures\":{\"value\":\"-9223372036854775808\","
	    "\"limit\":null},\"text\":\"two?lines, \\\"quoted\\\"\","
	    "\"runbook\":\"contrib/RUNBOOK.md#agent_stale\"}\n");

	memset(host, '"', sizeof(host) - 1);
	host[sizeof(host) - 1] = '\0';
	memset(text, '"', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	x.host = host;
	x.text = text; /* it is cut */
	assert_true(notice_format(&x, buf, sizeof(buf)) > 0);
	assert_int_equal(notice_format(&x, buf, 300), -1);
	x.raised = false;
	x.host = "";
	x.worker = NO_WORKER;
	assert_true(notice_format(&x, buf, sizeof(buf)) > 0);
	assert_non_null(
	    strstr(buf, "\"state\":\"cleared\",\"realm\":\"r\",\"host\":null,"
			"\"worker\":null,"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_realm),
		cmocka_unit_test(test_realm_too_new),
		cmocka_unit_test(test_realm_round),
		cmocka_unit_test(test_realm_name),
		cmocka_unit_test(test_mark),
		cmocka_unit_test(test_mark_status),
		cmocka_unit_test(test_mark_labels),
		cmocka_unit_test(test_mark_round),
		cmocka_unit_test(test_status_longest),
		cmocka_unit_test(test_status_text),
		cmocka_unit_test(test_fleet),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_foreign),
		cmocka_unit_test(test_fleet_full),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_notice),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
