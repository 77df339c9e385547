/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_records - names of claims and UUIDs: what is made, what is refused,
 * and which worker ID a claim stands for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dice.h"
#include "records.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define U "01234567-89ab-4cde-8f01-23456789abcd"

static const uint8_t uuid[UUID_BYTES] = { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab,
	0x4c, 0xde, 0x8f, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd };

/* ---- UUIDs ------------------------------------------------------------------ */

static const struct {
	const char *why, *text;
} bad_uuids[] = {
	{ "empty", "" },
	{ "cut short", "01234567-89ab-4cde-8f01-23456789abc" },
	{ "too long", U "0" },
	{ "upper case: two texts for one",
	    "01234567-89AB-4cde-8f01-23456789abcd" },
	{ "no hyphens", "0123456789ab4cde8f0123456789abcd" },
	{ "a hyphen elsewhere", "0123456-789ab-4cde-8f01-23456789abcd" },
	{ "not hex", "0123456g-89ab-4cde-8f01-23456789abcd" },
	{ "space before", " " U },
	{ "space behind", U " " },
	{ "braces", "{" U "}" },
	{ "just before the digits", "0123456/-89ab-4cde-8f01-23456789abcd" },
	{ "just behind the digits", "0123456:-89ab-4cde-8f01-23456789abcd" },
	{ "just before the letters", "0123456`-89ab-4cde-8f01-23456789abcd" },
};

static void
test_uuid(void **state)
{
	struct dice d = dice_open("uuid");
	char text[UUID_TEXT_MAX];
	uint8_t back[UUID_BYTES];

	(void)state;
	uuid_format(uuid, text);
	assert_string_equal(text, U);
	assert_true(uuid_parse(text, back));
	assert_memory_equal(back, uuid, UUID_BYTES);
	for (size_t i = 0; i < COUNT(bad_uuids); i++) {
		if (uuid_parse(bad_uuids[i].text, back))
			fail_msg("accepted: %s", bad_uuids[i].why);
	}
	for (int n = 0; n < 2000; n++) {
		uint8_t u[UUID_BYTES];

		for (size_t i = 0; i < UUID_BYTES; i++)
			u[i] = (uint8_t)dice_next(&d);
		uuid_format(u, text);
		assert_true(uuid_parse(text, back));
		assert_memory_equal(back, u, UUID_BYTES);
	}
}

/* ---- names ------------------------------------------------------------------- */

static const struct {
	const char *why;
	uint64_t worker;
	const char *prefix;
} prefixes[] = {
	{ "asks for none", NO_WORKER, U "-w-" },
	{ "four digits at least", 0, U "-w0000-" },
	{ "padded", 17, U "-w0017-" },
	{ "just four", 9999, U "-w9999-" },
	{ "five: sonyflake, instagram", 65535, U "-w65535-" },
	{ "the widest that claims may use", WORKERS_MAX - 1, U "-w1048575-" },
};

static void
test_prefixes(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(prefixes); i++) {
		char out[CLAIM_PREFIX_MAX], name[CLAIM_NAME_MAX];
		struct claim_name n;

		claim_name_prefix(uuid, prefixes[i].worker, out);
		if (strcmp(out, prefixes[i].prefix) != 0)
			fail_msg("%s: %s", prefixes[i].why, out);
		/* ZooKeeper appends; then it reads back. */
		(void)snprintf(name, sizeof(name), "%s%010u", out, 1041);
		assert_true(claim_name_parse(name, &n));
		assert_memory_equal(n.uuid, uuid, UUID_BYTES);
		assert_int_equal(n.counter, 1041);
		assert_int_equal(n.named, prefixes[i].worker != NO_WORKER);
		assert_true(n.wanted == prefixes[i].worker);
	}
}

static const struct {
	const char *why, *name;
	bool good;
	uint32_t counter;
} names[] = {
	{ "the first", U "-w-0000000000", true, 0 },
	{ "usual", U "-w-0000001041", true, 1041 },
	{ "the counter's last", U "-w-2147483647", true, 2147483647 },
	{ "beyond it", U "-w-2147483648", false, 0 },
	{ "beyond 32 bits", U "-w-4294967296", false, 0 },
	{ "what ZooKeeper makes of an overflow", U "-w--2147483648", false, 0 },
	{ "the same, small", U "-w--0000000001", false, 0 },
	{ "named, overflow", U "-w0017--2147483648", false, 0 },
	{ "nine digits", U "-w-000001041", false, 0 },
	{ "eleven digits", U "-w-00000001041", false, 0 },
	{ "no counter", U "-w-", false, 0 },
	{ "a plus", U "-w-+000001041", false, 0 },
	{ "a letter in the counter", U "-w-00000o1041", false, 0 },
	{ "a space behind", U "-w-0000001041 ", false, 0 },
	{ "named", U "-w0017-0000001041", true, 1041 },
	{ "named with three digits", U "-w017-0000001041", false, 0 },
	{ "named with a nought too many", U "-w00017-0000001041", false, 0 },
	{ "named with five", U "-w65535-0000000003", true, 3 },
	{ "named beyond 64 bits", U "-w99999999999999999999-0000000003", false,
	    0 },
	{ "named, negative", U "-w-0017-0000001041", false, 0 },
	{ "no letter w", U "-x-0000001041", false, 0 },
	{ "capital w", U "-W-0000001041", false, 0 },
	{ "no hyphen before it", U "w-0000001041", false, 0 },
	{ "no hyphen behind it", U "-w0000001041", false, 0 },
	{ "only a UUID", U, false, 0 },
	{ "no UUID", "-w-0000001041", false, 0 },
	{ "somebody's node", "lock-0000001041", false, 0 },
	{ "what keeps the directory", ".keep", false, 0 },
	{ "empty", "", false, 0 },
	{ "upper-case UUID",
	    "01234567-89AB-4cde-8f01-23456789abcd-w-0000001041", false, 0 },
};

static void
test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		struct claim_name n;

		if (claim_name_parse(names[i].name, &n) != names[i].good)
			fail_msg("%s: %s", names[i].why, names[i].name);
		if (names[i].good)
			assert_int_equal(n.counter, names[i].counter);
	}
}

/* Whatever parses gives the same text again, and a change is noticed. */
static void
test_round_trip(void **state)
{
	struct dice d = dice_open("names");
	unsigned refused = 0, accepted = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		uint64_t worker = dice_below(&d, 3) == 0
				      ? NO_WORKER
				      : dice_below(&d, WORKERS_MAX);
		uint32_t counter = (uint32_t)(dice_next(&d) >> 33);
		char name[CLAIM_NAME_MAX], again[CLAIM_NAME_MAX + 16];
		char prefix[CLAIM_PREFIX_MAX];
		struct claim_name n;

		claim_name_prefix(uuid, worker, prefix);
		(void)snprintf(
		    name, sizeof(name), "%s%010" PRIu32, prefix, counter);
		if (i % 2 == 1) /* one character at random */
			name[dice_below(&d, strlen(name))] =
			    "0123456789abcdefw-x/ A"[dice_below(&d, 22)];
		if (!claim_name_parse(name, &n)) {
			assert_int_equal(i % 2, 1);
			refused++;
			continue;
		}
		accepted++;
		claim_name_prefix(
		    n.uuid, n.named ? n.wanted : NO_WORKER, prefix);
		(void)snprintf(
		    again, sizeof(again), "%s%010" PRIu32, prefix, n.counter);
		assert_string_equal(again, name);
	}
	assert_true(refused > 1000 && accepted > 10000);
}

/* ---- the worker ID ------------------------------------------------------------ */

static const struct {
	const char *why, *name;
	uint64_t first, last, worker;
} workers[] = {
	{ "the remainder", U "-w-0000000005", 0, 1023, 5 },
	{ "once round", U "-w-0000001024", 0, 1023, 0 },
	{ "usual", U "-w-0000001041", 0, 1023, 17 },
	{ "the counter's last", U "-w-2147483647", 0, 1023, 1023 },
	{ "a part of the worker IDs: plus the first", U "-w-0000000000", 100,
	    199, 100 },
	{ "its last", U "-w-0000000099", 100, 199, 199 },
	{ "and round", U "-w-0000000100", 100, 199, 100 },
	{ "not a power of two", U "-w-2147483647", 3, 9, 3 + 2147483647 % 7 },
	{ "one only", U "-w-0000001041", 7, 7, 7 },
	{ "five digits", U "-w-0000065535", 0, 65535, 65535 },
	{ "named: the number itself", U "-w0017-0000000005", 0, 1023, 17 },
	{ "named, five digits", U "-w65535-0000000005", 0, 65535, 65535 },
	{ "named, first", U "-w0100-0000000005", 100, 199, 100 },
	{ "named, last", U "-w0199-0000000005", 100, 199, 199 },
	{ "named below", U "-w0099-0000000005", 100, 199, NO_WORKER },
	{ "named above", U "-w0200-0000000005", 100, 199, NO_WORKER },
};

static void
test_worker(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(workers); i++) {
		struct contract k = { .worker_first = workers[i].first,
			.worker_last = workers[i].last };
		struct claim_name n;

		assert_true(claim_name_parse(workers[i].name, &n));
		if (claim_name_worker(&n, &k) != workers[i].worker)
			fail_msg("%s: %" PRIu64, workers[i].why,
			    claim_name_worker(&n, &k));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_uuid),
		cmocka_unit_test(test_prefixes),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_worker),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
