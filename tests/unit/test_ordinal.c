/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_ordinal - names and the worker IDs at their ends; realm uuids, pinned
 * for ever: another one would be another realm to every handle.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dice.h"
#include "layout.h"
#include "ordinal.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define UNTOUCHED 4711
#define ROUNDS 20000

static struct firn_layout
layout_of(uint8_t time_bits, uint8_t worker_bits, uint8_t sequence_bits)
{
	return ((struct firn_layout){ .size = sizeof(struct firn_layout),
	    .time_bits = time_bits,
	    .worker_bits = worker_bits,
	    .sequence_bits = sequence_bits,
	    .tick_ms = 1,
	    .epoch_ms = LAYOUT_EPOCH_MS,
	    .name = "custom" });
}

struct name_case {
	const char *name;
	uint8_t worker_bits;
	enum ordinal_result result;
	uint64_t worker;
	const char *why;
};

static const struct name_case name_cases[] = {
	{ "ids-7", 10, ORDINAL_OK, 7, "a pod of a set" },
	{ "ids-0", 10, ORDINAL_OK, 0, "its first" },
	{ "7", 10, ORDINAL_OK, 7, "a variable that holds the pod index" },
	{ "ids-007", 10, ORDINAL_OK, 7, "zeros in front are no octal" },
	{ "web3", 10, ORDINAL_OK, 3, "no hyphen needed" },
	{ "rack2-web13", 10, ORDINAL_OK, 13, "only the end counts" },
	{ "ids--7", 10, ORDINAL_OK, 7, "a hyphen is no sign" },
	{ "ids-1023", 10, ORDINAL_OK, 1023, "largest worker ID" },
	{ "ids-1024", 10, ORDINAL_TOO_LARGE, 1024, "one past it" },
	{ "ids-0", 0, ORDINAL_OK, 0, "no worker bits: zero alone" },
	{ "ids-1", 0, ORDINAL_TOO_LARGE, 1, "... and nothing else" },
	{ "", 10, ORDINAL_EMPTY, UNTOUCHED, "a variable that is not set" },
	{ "ids", 10, ORDINAL_NO_DIGITS, UNTOUCHED, "no number" },
	{ "ids-", 10, ORDINAL_NO_DIGITS, UNTOUCHED, "a number cut off" },
	{ "ids-7.example.com", 10, ORDINAL_NO_DIGITS, UNTOUCHED,
	    "a number in the middle is somebody else's" },
	{ "ids-7 ", 10, ORDINAL_NO_DIGITS, UNTOUCHED, "a blank behind it" },
	{ "ids-7\n", 10, ORDINAL_NO_DIGITS, UNTOUCHED, "a line break" },
	{ "ids-\xd9\xa7", 10, ORDINAL_NO_DIGITS, UNTOUCHED,
	    "a seven that is not ASCII" },
	{ "ids-18446744073709551615", 10, ORDINAL_TOO_LARGE, UINT64_MAX,
	    "the largest number" },
	{ "ids-18446744073709551616", 10, ORDINAL_OVERFLOW, UNTOUCHED,
	    "one past it, which would wrap to 0" },
	{ "ids-18446744073709551623", 10, ORDINAL_OVERFLOW, UNTOUCHED,
	    "which would wrap to 7" },
	{ "ids-99999999999999999999999999", 10, ORDINAL_OVERFLOW, UNTOUCHED,
	    "far past it" },
	{ "00000000000000000000000000000005", 10, ORDINAL_OK, 5,
	    "many digits, a small number" },
};

static void
test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(name_cases); i++) {
		const struct name_case *c = &name_cases[i];
		struct firn_layout l = layout_of(41, c->worker_bits, 12);
		uint64_t worker = UNTOUCHED;
		enum ordinal_result r = ordinal_parse(c->name, &l, &worker);

		if (r != c->result || worker != c->worker)
			fail_msg("\"%s\" (%s): %d, %" PRIu64, c->name, c->why,
			    r, worker);
	}
}

/* Each has words of its own, that follow the name. */
static void
test_words(void **state)
{
	const enum ordinal_result all[] = { ORDINAL_OK, ORDINAL_EMPTY,
		ORDINAL_NO_DIGITS, ORDINAL_OVERFLOW, ORDINAL_TOO_LARGE };

	(void)state;
	for (size_t i = 0; i < COUNT(all); i++) {
		const char *text = ordinal_text(all[i]);

		assert_true(strncmp(text, "ends ", 5) == 0 ||
			    strncmp(text, "does ", 5) == 0 ||
			    strncmp(text, "is ", 3) == 0);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(text, ordinal_text(all[j]));
	}
}

static void
test_any_number_behind_any_name(void **state)
{
	struct dice d = dice_open("ordinal");
	struct firn_layout l = layout_of(1, 62, 1);

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t n = dice_number(&d), worker = UNTOUCHED;
		char name[64];
		enum ordinal_result r;

		(void)snprintf(name, sizeof(name), "%.*s%0*" PRIu64,
		    (int)dice_below(&d, 8), "a9-b.8_c", (int)dice_below(&d, 24),
		    n);
		/* digits of the name's own part would join it */
		if (name[0] == 'a' && name[1] == '9' && name[2] != '-')
			continue;
		if (strncmp(name, "a9-b.8", 6) == 0 && name[6] != '_')
			continue;
		r = ordinal_parse(name, &l, &worker);
		assert_int_equal(r,
		    n > layout_worker_max(&l) ? ORDINAL_TOO_LARGE : ORDINAL_OK);
		assert_true(worker == n);
	}
}

/* ---- the realm's uuid -------------------------------------------------------- */

struct uuid_case {
	const char *realm;
	uint8_t time_bits, worker_bits, sequence_bits;
	uint32_t flags, tick_ms;
	int64_t epoch_ms;
	const char *uuid; /* worked out by another program */
};

static const struct uuid_case uuid_cases[] = {
	{ "default", 41, 10, 12, 0, 1, 1735689600000,
	    "004e95ef-c4f3-88c3-b2a9-76568635d84f" },
	{ "orders", 41, 10, 12, 0, 1, 1288834974657,
	    "6037f996-bccb-8f38-916c-4b8d1fd20422" },
	{ "default", 39, 16, 8, FIRN_SEQUENCE_ABOVE_WORKER, 10, 1409529600000,
	    "7e4b0ade-8aae-823d-98e1-a2d689ab2948" },
	{ "a", 62, 0, 1, 0, 3600000, 0,
	    "5046b0bf-6ed5-81cc-91fd-8dd8d612fbd8" },
};

static void
test_uuids_stay_what_they_are(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(uuid_cases); i++) {
		const struct uuid_case *c = &uuid_cases[i];
		struct firn_layout l =
		    layout_of(c->time_bits, c->worker_bits, c->sequence_bits);
		uint8_t uuid[UUID_BYTES];
		char text[UUID_TEXT_MAX];

		l.flags = c->flags;
		l.tick_ms = c->tick_ms;
		l.epoch_ms = c->epoch_ms;
		ordinal_realm_uuid(c->realm, &l, uuid);
		uuid_format(uuid, text);
		assert_string_equal(text, c->uuid);
	}
}

/* The same ID space, the same uuid; another, another. */
static void
test_uuid_follows_the_id_space(void **state)
{
	struct firn_layout l = layout_of(41, 10, 12), other[7];
	uint8_t uuid[UUID_BYTES], again[UUID_BYTES];

	(void)state;
	ordinal_realm_uuid("default", &l, uuid);

	other[0] = l;
	strcpy(other[0].name, "firn");
	other[0].datacenter_bits = 5;
	assert_true(layout_equal(&l, &other[0]));
	ordinal_realm_uuid("default", &other[0], again);
	assert_memory_equal(uuid, again, UUID_BYTES);

	for (size_t i = 0; i < COUNT(other); i++)
		other[i] = l;
	other[0].time_bits = 40;
	other[1].worker_bits = 1; /* 41/1/12 and 41/11/2 */
	other[2].sequence_bits = 11;
	other[3].flags = FIRN_SEQUENCE_ABOVE_WORKER;
	other[4].tick_ms = 10;
	other[5].epoch_ms++;
	other[6].worker_bits = 11;
	other[6].sequence_bits = 2;
	for (size_t i = 0; i < COUNT(other); i++) {
		assert_false(layout_equal(&l, &other[i]));
		ordinal_realm_uuid("default", &other[i], again);
		assert_memory_not_equal(uuid, again, UUID_BYTES);
	}
	ordinal_realm_uuid("defaulu", &l, again);
	assert_memory_not_equal(uuid, again, UUID_BYTES);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_any_number_behind_any_name),
		cmocka_unit_test(test_uuids_stay_what_they_are),
		cmocka_unit_test(test_uuid_follows_the_id_space),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
