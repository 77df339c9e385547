/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_record - a record reads back as it was written, or not at all:
 * whatever a crash, a disk or a hand made of its bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dice.h"
#include "layout.h"
#include "mark.h"
#include "record.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ROUNDS 3000
#define MUTATIONS 100000

#define UUID_TEXT "0f8fad5b-d9cb-469f-a165-70867728950e"
#define MACHINE "3d1219c7c4c5404aaa1f6d2a48adfda4"

/* All of a record but its checksum, as the first version of it stood. */
#define HEAD                                                              \
	"{\"format\":1,\"realm\":\"default\",\"contract\":{\"format\":1," \
	"\"uuid\":\"" UUID_TEXT "\",\"generation\":\"1-9f3a21c4\","       \
	"\"layout\":{\"name\":\"firn\",\"time_bits\":41,"                 \
	"\"worker_bits\":10,\"sequence_bits\":12,\"datacenter_bits\":0,"  \
	"\"sequence_above_worker\":false},"                               \
	"\"epoch_ms\":\"1735689600000\",\"tick_ms\":1,"                   \
	"\"not_before_ms\":\"1735689670000\","                            \
	"\"reserve_max_ms\":\"60000\","                                   \
	"\"workers\":{\"first\":0,\"last\":1023}},"                       \
	"\"open\":true,\"claim\":\"" UUID_TEXT "-w-0000001041\","         \
	"\"ceiling_tick\":\"123456789012\",\"version\":7,"                \
	"\"local_mark_tick\":\"123456780000\",\"worker\":\"17\","         \
	"\"zxid\":\"8589934600\",\"skew_refused\":false,"                 \
	"\"skew_us\":\"-1500\",\"base_ns\":\"1735689600000000001\","      \
	"\"machine_id\":\"" MACHINE "\",\"boot_id\":\"" UUID_TEXT "\","   \
	"\"lock_dev\":\"26\",\"lock_ino\":\"18446744073709551615\""
#define SUM_OF_HEAD "c9485e3d24e92b83" /* worked out by another program */

static void
fill_uuid(uint8_t uuid[UUID_BYTES])
{
	assert_true(uuid_parse(UUID_TEXT, uuid));
}

static struct state_record
good_record(void)
{
	struct state_record r = {
		.contract = { .format = 1,
		    .generation = 1,
		    .generation_text = "1-9f3a21c4",
		    .layout = { .size = sizeof(struct firn_layout),
			.time_bits = 41,
			.worker_bits = 10,
			.sequence_bits = 12,
			.tick_ms = 1,
			.epoch_ms = LAYOUT_EPOCH_MS,
			.name = "firn" },
		    .not_before_ms = 1735689670000,
		    .reserve_max_ms = 60000,
		    .worker_last = 1023 },
		.realm = "default",
		.open = true,
		.claim = UUID_TEXT "-w-0000001041",
		.ceiling = 123456789012,
		.version = 7,
		.local_mark = 123456780000,
		.worker = 17,
		.zxid = 8589934600,
		.skew_us = -1500,
		.base_ns = 1735689600000000001,
	};

	fill_uuid(r.contract.uuid);
	return (r);
}

static struct record_home
good_home(void)
{
	struct record_home h = {
		.lock_dev = 26, .lock_ino = UINT64_MAX, .machine_id = MACHINE
	};

	fill_uuid(h.boot_id);
	return (h);
}

static void
assert_one_line(const struct doc_error *err)
{
	assert_true(strlen(err->text) > 0);
	for (const char *p = err->text; *p != '\0'; p++)
		assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
}

static void
assert_equal(const struct state_record *a, const struct state_record *b)
{
	const struct contract *k = &a->contract, *c = &b->contract;

	assert_memory_equal(k->uuid, c->uuid, UUID_BYTES);
	assert_true(k->format == c->format && k->generation == c->generation);
	assert_string_equal(k->generation_text, c->generation_text);
	assert_true(layout_equal(&k->layout, &c->layout));
	assert_string_equal(k->layout.name, c->layout.name);
	assert_int_equal(k->layout.datacenter_bits, c->layout.datacenter_bits);
	assert_true(k->not_before_ms == c->not_before_ms &&
		    k->reserve_max_ms == c->reserve_max_ms);
	assert_true(k->worker_first == c->worker_first &&
		    k->worker_last == c->worker_last);
	assert_string_equal(a->realm, b->realm);
	assert_string_equal(a->claim, b->claim);
	assert_true(a->open == b->open && a->ceiling == b->ceiling &&
		    a->version == b->version &&
		    a->local_mark == b->local_mark && a->worker == b->worker &&
		    a->zxid == b->zxid && a->skew_refused == b->skew_refused &&
		    a->skew_us == b->skew_us && a->base_ns == b->base_ns);
}

static void
assert_same_home(const struct record_home *a, const struct record_home *b)
{
	assert_true(a->lock_dev == b->lock_dev && a->lock_ino == b->lock_ino);
	assert_string_equal(a->machine_id, b->machine_id);
	assert_memory_equal(a->boot_id, b->boot_id, UUID_BYTES);
}

/* ---- what is written ------------------------------------------------------- */

static void
test_bytes_stay_what_they_are(void **state)
{
	const char line[] = HEAD ",\"checksum\":\"" SUM_OF_HEAD "\"}\n";
	struct state_record r = good_record(), back;
	struct record_home h = good_home(), home;
	char buf[RECORD_SIZE];
	struct doc_error err;

	(void)state;
	assert_int_equal(record_format(&r, &h, buf), 0);
	assert_memory_equal(buf, line, sizeof(line) - 1);
	for (size_t i = sizeof(line) - 1; i < RECORD_SIZE - 1; i++)
		assert_int_equal(buf[i], ' ');
	assert_int_equal(buf[RECORD_SIZE - 1], '\n');

	assert_int_equal(doc_check(buf, RECORD_SIZE, &err), 0);
	assert_int_equal(record_parse(buf, RECORD_SIZE, &back, &home, &err), 0);
	assert_equal(&r, &back);
	assert_same_home(&h, &home);
}

static int64_t
random_tick(struct dice *d)
{
	int64_t v = (int64_t)(dice_number(d) & (uint64_t)MARK_CEILING_MAX);

	return (dice_below(d, 2) == 0 ? v : -v);
}

/* Every field on its own, small, large, and at its ends. */
static struct state_record
random_record(struct dice *d)
{
	struct state_record r = good_record();
	struct firn_layout *l = &r.contract.layout;

	for (size_t i = 0; i < UUID_BYTES; i++)
		r.contract.uuid[i] = (uint8_t)dice_next(d);
	l->time_bits = (uint8_t)dice_range(d, 20, 41);
	l->worker_bits = (uint8_t)dice_range(d, 10, 12);
	l->datacenter_bits = (uint8_t)dice_range(d, 0, 5);
	l->sequence_bits = (uint8_t)dice_range(d, 1, 11);
	l->flags = (uint32_t)dice_below(d, 2);
	l->tick_ms = (uint32_t)dice_range(d, 1, 1000);
	l->epoch_ms = dice_range(d, 0, 1735689600000);
	r.contract.not_before_ms = dice_range(d, 0, 253402300799999);
	r.contract.worker_first = dice_below(d, 512);
	r.contract.worker_last = r.contract.worker_first + dice_below(d, 512);
	for (size_t i = 0, n = dice_below(d, CLAIM_NAME_MAX); i < n; i++) {
		r.claim[i] = (char)dice_range(d, 0x20, 0x7e);
		r.claim[i + 1] = '\0';
	}
	for (size_t i = 0, n = dice_below(d, REALM_NAME_MAX - 1) + 1; i < n;
	     i++) {
		r.realm[i] = (char)dice_range(d, 'a', 'z');
		r.realm[i + 1] = '\0';
	}
	r.open = dice_below(d, 2) == 0;
	r.skew_refused = dice_below(d, 2) == 0;
	r.ceiling = random_tick(d);
	r.local_mark = random_tick(d);
	r.version = (int32_t)(dice_number(d) & INT32_MAX) - 1;
	r.worker = dice_number(d);
	r.zxid = (int64_t)dice_number(d);
	r.skew_us = (int64_t)dice_number(d);
	r.base_ns = (int64_t)dice_number(d);
	return (r);
}

static struct record_home
random_home(struct dice *d)
{
	struct record_home h = good_home();

	h.lock_dev = dice_number(d);
	h.lock_ino = dice_number(d);
	for (size_t i = 0; i < UUID_BYTES; i++)
		h.boot_id[i] = (uint8_t)dice_next(d);
	if (dice_below(d, 4) == 0)
		h.machine_id[0] = '\0';
	return (h);
}

static void
test_reads_back_the_same(void **state)
{
	struct dice d = dice_open("record");
	struct doc_error err;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		struct state_record r = random_record(&d), back;
		struct record_home h = random_home(&d), home;
		char buf[RECORD_SIZE];

		assert_int_equal(record_format(&r, &h, buf), 0);
		if (record_parse(buf, sizeof(buf), &back, &home, &err) != 0)
			fail_msg("%s", err.text);
		assert_equal(&r, &back);
		assert_same_home(&h, &home);
	}
}

/* The longest of everything fits: a record that did not would be no state. */
static void
test_the_longest_fits(void **state)
{
	struct state_record r = good_record(), back;
	struct record_home h = good_home(), home;
	char buf[RECORD_SIZE];
	struct doc_error err;

	(void)state;
	memset(r.realm, 'r', sizeof(r.realm) - 1);
	memset(r.claim, '"', sizeof(r.claim) - 1);
	memset(r.contract.layout.name, '\\', FIRN_LAYOUT_NAME_MAX - 1);
	strcpy(r.contract.generation_text, "9999999999-9f3a21c4");
	r.contract.generation = 9999999999;
	r.contract.layout.epoch_ms = 253402300799999;
	r.contract.not_before_ms = 253402300799999;
	r.ceiling = r.local_mark = -MARK_CEILING_MAX;
	r.version = INT32_MAX;
	r.worker = UINT64_MAX;
	r.zxid = r.skew_us = r.base_ns = INT64_MIN;
	h.lock_dev = UINT64_MAX;
	assert_int_equal(record_format(&r, &h, buf), 0);
	if (record_parse(buf, sizeof(buf), &back, &home, &err) != 0)
		fail_msg("%s", err.text);
	assert_equal(&r, &back);
}

static void
test_is_not_written_if_it_would_not_be_read(void **state)
{
	struct record_home h = good_home(), odd_home = h;
	struct state_record odd[9];
	char buf[RECORD_SIZE];

	(void)state;
	for (size_t i = 0; i < COUNT(odd); i++)
		odd[i] = good_record();
	odd[0].realm[0] = '\0';
	strcpy(odd[1].realm, "a/b");
	strcpy(odd[2].claim, "a\nb");
	strcpy(odd[3].claim, "a\xffz");
	odd[4].ceiling = MARK_CEILING_MAX + 1;
	odd[5].local_mark = -MARK_CEILING_MAX - 1;
	odd[6].version = -2;
	odd[7].contract.layout.time_bits = 0;
	odd[8].contract.layout.worker_bits = 60;
	for (size_t i = 0; i < COUNT(odd); i++)
		if (record_format(&odd[i], &h, buf) != -1)
			fail_msg("odd record %zu was written", i);
	odd[0] = good_record();
	strcpy(odd_home.machine_id, "uninitialized");
	assert_int_equal(record_format(&odd[0], &odd_home, buf), -1);
	strcpy(odd_home.machine_id, "0123");
	assert_int_equal(record_format(&odd[0], &odd_home, buf), -1);
}

/* ---- what is read ------------------------------------------------------------ */

/* Other contents under a checksum that is right. */
static void
seal(char buf[RECORD_SIZE], const char *head)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	int n;

	for (const char *p = head; *p != '\0'; p++)
		h = (h ^ (uint8_t)*p) * UINT64_C(0x100000001b3);
	n = snprintf(
	    buf, RECORD_SIZE, "%s,\"checksum\":\"%016" PRIx64 "\"}", head, h);
	assert_true(n > 0 && n < RECORD_SIZE - 1);
	memset(buf + n, ' ', (size_t)(RECORD_SIZE - n));
	buf[n] = buf[RECORD_SIZE - 1] = '\n';
}

struct change_case {
	const char *from, *to;
	const char *fault; /* NULL: nothing is wrong */
	const char *why;
};

static const struct change_case changes[] = {
	{ "{\"format\":1", "{\"format\":1", NULL, "unchanged" },
	{ "\"zxid\"", "\"later\":[1,{}],\"zxid\"", NULL,
	    "a key that a later version adds" },
	{ MACHINE, "", NULL, "a host without a machine ID" },
	{ "{\"format\":1,\"realm\"", "{\"format\":2,\"realm\"",
	    "format: 2 is newer than 1, the one this program knows",
	    "a later version's" },
	{ "{\"format\":1,\"realm\"", "{\"realm\"", "format: it is missing",
	    "no format" },
	{ "\"contract\":{\"format\":1", "\"contract\":{\"format\":2",
	    "format: 2 is newer than 1, the one this program knows",
	    "a later contract" },
	{ "\"contract\":{", "\"contract\":[{}],\"x\":{",
	    "contract: must be an object", "a contract that is none" },
	{ "\"time_bits\":41", "\"time_bits\":63",
	    "layout: 63/10/12 bits (time, worker, sequence), 0 of the "
	    "worker's for the datacenter, do not make an ID",
	    "a layout that is none" },
	{ "\"default\"", "\"..\"", "realm: no name of a realm", "a path" },
	{ "\"open\":true", "\"open\":1", "open: must be true or false", "1" },
	{ "\"open\":true,", "", "open: it is missing", "not said" },
	{ "\"local_mark_tick\":\"123456780000\",", "",
	    "local_mark_tick: it is missing", "the mark itself" },
	{ "\"123456780000\"", "\"0123456780000\"",
	    "local_mark_tick: must be a whole number from "
	    "-4611686018427387903 to 4611686018427387903",
	    "a leading zero" },
	{ "\"123456789012\"", "\"4611686018427387904\"",
	    "ceiling_tick: must be a whole number from "
	    "-4611686018427387903 to 4611686018427387903",
	    "past every layout" },
	{ "\"version\":7", "\"version\":-2",
	    "version: must be a whole number from -1 to 2147483647",
	    "no version" },
	{ "\"version\":7", "\"version\":2147483648",
	    "version: must be a whole number from -1 to 2147483647",
	    "would wrap" },
	{ "\"worker\":\"17\"", "\"worker\":\"-17\"",
	    "worker: must be a whole number from 0 to 18446744073709551615",
	    "no worker ID" },
	{ MACHINE, "3d12", "machine_id: must be 32 hexadecimal digits",
	    "cut off" },
	{ "\"boot_id\":\"0f", "\"boot_id\":\"0F", "boot_id: must be a UUID",
	    "upper case" },
	{ "\"lock_ino\":", "\"lock_ino\":\"1\",\"lock_ino\":",
	    "lock_ino: this key stands there twice", "two answers" },
	{ "{\"format\":1,\"realm\"", "[\"format\",\"realm\"",
	    "line 1, column 18: a comma or ] should stand here", "no object" },
};

static void
replace(char *out, size_t n, const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);

	assert_non_null(at);
	assert_true((size_t)snprintf(out, n, "%.*s%s%s", (int)(at - text), text,
			to, at + strlen(from)) < n);
}

static void
test_contents(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(changes); i++) {
		const struct change_case *c = &changes[i];
		char head[RECORD_SIZE], buf[RECORD_SIZE];
		struct state_record r;
		struct record_home h;
		struct doc_error err = { "" };
		int rc;

		replace(head, sizeof(head), HEAD, c->from, c->to);
		seal(buf, head);
		rc = record_parse(buf, RECORD_SIZE, &r, &h, &err);
		if (rc != (c->fault == NULL ? 0 : -1))
			fail_msg("%s: %d, %s", c->why, rc, err.text);
		if (c->fault != NULL)
			assert_string_equal(err.text, c->fault);
	}
}

static void
refuse(const char *bytes, size_t n, const char *fault)
{
	struct state_record r, r_before;
	struct record_home h, h_before;
	struct doc_error err = { "" };
	char *copy = malloc(n > 0 ? n : 1);

	/* A copy that ends where it ends, for the address sanitizer. */
	assert_non_null(copy);
	memcpy(copy, bytes, n);
	memset(&r, 0x5a, sizeof(r));
	memset(&h, 0x5a, sizeof(h));
	memcpy(&r_before, &r, sizeof(r));
	memcpy(&h_before, &h, sizeof(h));
	assert_int_equal(record_parse(copy, n, &r, &h, &err), -1);
	assert_one_line(&err);
	if (fault != NULL)
		assert_string_equal(err.text, fault);
	/* Nobody works on half a record. */
	assert_memory_equal(&r, &r_before, sizeof(r));
	assert_memory_equal(&h, &h_before, sizeof(h));
	free(copy);
}

static void
test_other_sizes(void **state)
{
	struct state_record r = good_record();
	struct record_home h = good_home();
	char buf[RECORD_SIZE + 1] = "", zeros[RECORD_SIZE] = "";
	char text[DOC_ERROR_MAX];

	(void)state;
	assert_int_equal(record_format(&r, &h, buf), 0);
	for (size_t n = 0; n < RECORD_SIZE; n++) {
		snprintf(text, sizeof(text), "truncated: only %zu of %d bytes",
		    n, RECORD_SIZE);
		refuse(buf, n, text);
	}
	refuse(buf, RECORD_SIZE + 1, "no state: more than 4096 bytes");
	refuse(zeros, RECORD_SIZE, "torn or no state: there is no checksum");
	memset(zeros, '\n', RECORD_SIZE);
	refuse(zeros, RECORD_SIZE, "torn or no state: there is no checksum");
	memset(zeros, 'x', RECORD_SIZE);
	refuse(zeros, RECORD_SIZE, "torn or no state: there is no checksum");
}

/*
 * Two records, one written over the other and cut off anywhere, by a write
 * that went from front to back or the other way: one of the two, or none.
 */
static void
check_torn(const char *old, const char *new, size_t at)
{
	char buf[RECORD_SIZE];

	memcpy(buf, new, at);
	memcpy(buf + at, old + at, RECORD_SIZE - at);
	if (memcmp(buf, old, RECORD_SIZE) != 0 &&
	    memcmp(buf, new, RECORD_SIZE) != 0)
		refuse(buf, RECORD_SIZE, NULL);
}

static void
test_torn_writes(void **state)
{
	struct dice d = dice_open("record torn");

	(void)state;
	for (int i = 0; i < 8; i++) {
		struct state_record a = random_record(&d), b = a;
		struct record_home h = random_home(&d);
		char one[RECORD_SIZE], two[RECORD_SIZE];

		/* mostly the next record of the same agent */
		if (i % 2 == 0)
			b.local_mark = b.ceiling = random_tick(&d);
		else
			b = random_record(&d);
		assert_int_equal(record_format(&a, &h, one), 0);
		assert_int_equal(record_format(&b, &h, two), 0);
		for (size_t at = 1; at < RECORD_SIZE; at++) {
			check_torn(one, two, at);
			check_torn(two, one, at);
		}
	}
}

static void
mutate(char buf[RECORD_SIZE], struct dice *d, size_t line)
{
	/* mostly where something stands */
	size_t limit = dice_below(d, 8) == 0 ? RECORD_SIZE : line;
	size_t at = (size_t)dice_below(d, limit);
	size_t n = (size_t)dice_below(d, 64) + 1, from;

	if (n > RECORD_SIZE - at)
		n = RECORD_SIZE - at;
	switch (dice_below(d, 6)) {
	case 0:
		buf[at] = (char)(buf[at] ^ (1 << dice_below(d, 8)));
		break;
	case 1:
		buf[at] = (char)dice_range(d, '0', '9');
		break;
	case 2: /* a sector that never came */
		memset(buf + at, dice_below(d, 2) == 0 ? 0 : 0xff, n);
		break;
	case 3: /* a part moved on */
		memmove(buf + at, buf + dice_below(d, RECORD_SIZE - n), n);
		break;
	case 4: /* two bytes change places */
		from = (size_t)dice_below(d, limit);
		if (from != at) {
			char c = buf[at];

			buf[at] = buf[from];
			buf[from] = c;
		}
		break;
	case 5:
		for (size_t i = 0; i < n; i++)
			buf[at + i] = (char)dice_next(d);
		break;
	}
}

static void
test_mutations_are_never_believed(void **state)
{
	struct dice d = dice_open("record mutations");
	struct state_record r = good_record();
	struct record_home h = good_home();
	char good[RECORD_SIZE], buf[RECORD_SIZE];
	size_t line;

	(void)state;
	assert_int_equal(record_format(&r, &h, good), 0);
	line = (size_t)((char *)memchr(good, '\n', RECORD_SIZE) - good) + 2;
	for (int i = 0; i < MUTATIONS; i++) {
		memcpy(buf, good, RECORD_SIZE);
		for (uint64_t k = dice_below(&d, 3) + 1; k > 0; k--)
			mutate(buf, &d, line);
		if (memcmp(buf, good, RECORD_SIZE) != 0)
			refuse(buf, RECORD_SIZE, NULL);
	}
	/* Every bit of the whole of it counts, blanks included. */
	for (size_t i = 0; i < (size_t)RECORD_SIZE * 8; i++) {
		memcpy(buf, good, RECORD_SIZE);
		buf[i / 8] = (char)(buf[i / 8] ^ (1 << i % 8));
		refuse(buf, RECORD_SIZE, NULL);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_stay_what_they_are),
		cmocka_unit_test(test_reads_back_the_same),
		cmocka_unit_test(test_the_longest_fits),
		cmocka_unit_test(test_is_not_written_if_it_would_not_be_read),
		cmocka_unit_test(test_contents),
		cmocka_unit_test(test_other_sizes),
		cmocka_unit_test(test_torn_writes),
		cmocka_unit_test(test_mutations_are_never_believed),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
