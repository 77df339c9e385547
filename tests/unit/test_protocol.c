/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_protocol - contrib/PROTOCOL.md against firn-wire.h: each frame in it is
 * built again from the values that it names, and read again from its bytes.
 *
 * What an agent really says is compared by tests/e2e/test_protocol.py.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "batch.h"
#include "firn-wire.h"
#include "layout.h"

#define DOCUMENT_MAX 200000
#define FRAMES_MAX 96
#define FIELDS_MAX 24
#define BYTES_MAX 512
#define VALUE_MAX 256

struct field {
	char name[24];
	char value[VALUE_MAX]; /* all behind the "=" */
	size_t at, length; /* of its bytes */
};

struct frame {
	char kind[8]; /* request, reply */
	char name[32];
	struct field fields[FIELDS_MAX];
	unsigned nfields;
	uint8_t bytes[BYTES_MAX];
	size_t length;
};

static char document[DOCUMENT_MAX];
static struct frame frames[FRAMES_MAX];
static unsigned nframes;

/* ---- reading the document ------------------------------------------------- */

/* Takes the bytes at a line's front; what is left of the line. */
static const char *
take_bytes(struct frame *f, const char *line)
{
	unsigned byte;
	int n;

	while (sscanf(line, "%2x%n", &byte, &n) == 1 && n == 2) {
		assert_true(f->length < BYTES_MAX);
		f->bytes[f->length++] = (uint8_t)byte;
		line += 2;
		if (line[0] != ' ' || line[1] == ' ')
			break;
		line++;
	}
	return (line + strspn(line, " "));
}

static void
take_line(struct frame *f, const char *line)
{
	size_t before = f->length;
	const char *rest = take_bytes(f, line);
	struct field *field;

	if (f->length == before)
		fail_msg("%s %s: no bytes in \"%s\"", f->kind, f->name, line);
	if (*rest != '\0') {
		assert_true(f->nfields < FIELDS_MAX);
		field = &f->fields[f->nfields++];
		field->at = before;
		if (sscanf(rest, "%*[~]%23[a-z_] = %255[^\n]", field->name,
			field->value) != 2 &&
		    sscanf(rest, "%23[a-z_] = %255[^\n]", field->name,
			field->value) != 2)
			fail_msg("%s %s: \"%s\"", f->kind, f->name, rest);
	} else if (f->nfields == 0) {
		fail_msg("%s %s: bytes without a name", f->kind, f->name);
	}
	f->fields[f->nfields - 1].length += f->length - before;
}

static int
read_document(void **state)
{
	const char *top = getenv("FIRN_SRCDIR");
	struct frame *f = NULL;
	static char copy[DOCUMENT_MAX];
	char path[1000], *save = NULL;
	FILE *file;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/contrib/PROTOCOL.md",
	    top != NULL ? top : ".");
	file = fopen(path, "re");
	if (file == NULL)
		fail_msg("%s is missing", path);
	assert_true(fread(document, 1, DOCUMENT_MAX - 1, file) > 0);
	assert_true(feof(file));
	(void)fclose(file);
	memcpy(copy, document, sizeof(copy));
	for (char *l = strtok_r(copy, "\n", &save); l != NULL;
	     l = strtok_r(NULL, "\n", &save)) {
		if (strncmp(l, "```frame ", 9) == 0) {
			assert_true(nframes < FRAMES_MAX);
			f = &frames[nframes++];
			assert_int_equal(
			    sscanf(l, "```frame %7s %31s", f->kind, f->name),
			    2);
		} else if (strncmp(l, "```", 3) == 0) {
			f = NULL;
		} else if (f != NULL) {
			take_line(f, l);
		}
	}
	return (0);
}

/* ---- the values of a frame ------------------------------------------------ */

/* The i-th field of this name; a frame that lacks it fails. */
static const struct field *
find(const struct frame *f, const char *name, unsigned i)
{
	for (unsigned k = 0; k < f->nfields; k++) {
		if (strcmp(f->fields[k].name, name) == 0 && i-- == 0)
			return (&f->fields[k]);
	}
	fail_msg("%s %s has no %s", f->kind, f->name, name);
	return (NULL);
}

static uint64_t
number(const struct frame *f, const char *name, unsigned i)
{
	const struct field *field = find(f, name, i);
	char *end;
	uint64_t v = strtoull(field->value, &end, 0);

	if (end == field->value || (*end != '\0' && *end != ' '))
		fail_msg(
		    "%s %s: %s = %s", f->kind, f->name, name, field->value);
	return (v);
}

/* The words after a value: "8   clock_back". */
static const char *
words(const struct field *field)
{
	const char *p = strstr(field->value, "   ");

	return (p != NULL ? p + 3 : "");
}

/* A value in quotes; its length. */
static size_t
text(const struct frame *f, const char *name, char *out, size_t size)
{
	const struct field *field = find(f, name, 0);
	const char *end = strrchr(field->value, '"');
	size_t n;

	if (field->value[0] != '"' || end == field->value)
		fail_msg("%s %s: %s is no text", f->kind, f->name, name);
	n = (size_t)(end - field->value) - 1;
	assert_true(n < size);
	memcpy(out, field->value + 1, n);
	out[n] = '\0';
	return (n);
}

static void
same(const struct frame *f, size_t at, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (at + i >= f->length || f->bytes[at + i] != bytes[i])
			fail_msg("%s %s: byte %zu is not what its name says "
				 "(%02x)",
			    f->kind, f->name, at + i, bytes[i]);
	}
}

/* ---- the frames ------------------------------------------------------------ */

static void
check_request(const struct frame *f)
{
	struct wire_request in, r = {
		.version = (uint8_t)number(f, "version", 0),
		.type = (uint8_t)number(f, "type", 0),
		.flags = (uint16_t)number(f, "flags", 0),
		.count = (uint32_t)number(f, "count", 0),
		.cookie = number(f, "cookie", 0),
		.after = number(f, "after", 0),
	};
	uint8_t bytes[WIRE_REQUEST_SIZE];

	assert_int_equal(f->length, WIRE_REQUEST_SIZE);
	wire_put_request(bytes, &r);
	wire_put64(bytes + 24, number(f, "reserved", 0));
	same(f, 0, bytes, sizeof(bytes));
	wire_get_request(f->bytes, &in);
	assert_true(in.version == r.version && in.type == r.type);
	assert_true(in.flags == r.flags && in.count == r.count);
	assert_true(in.cookie == r.cookie && in.after == r.after);
}

static void
check_header(const struct frame *f, struct wire_header *h)
{
	const struct field *status = find(f, "status", 0);
	struct wire_header put = {
		.version = (uint8_t)number(f, "version", 0),
		.type = (uint8_t)number(f, "type", 0),
		.status = (uint16_t)number(f, "status", 0),
		.length = (uint32_t)number(f, "length", 0),
		.cookie = number(f, "cookie", 0),
	};
	uint8_t bytes[WIRE_HEADER_SIZE];

	wire_put_header(bytes, &put);
	same(f, 0, bytes, sizeof(bytes));
	wire_get_header(f->bytes, h);
	assert_int_equal(h->length, f->length - WIRE_HEADER_SIZE);
	assert_int_equal(h->version, WIRE_VERSION);
	if (strcmp(words(status), wire_reason_name(h->status)) != 0)
		fail_msg("%s: status %u is %s", f->name, h->status,
		    wire_reason_name(h->status));
}

static void
check_refusal(const struct frame *f)
{
	uint8_t bytes[WIRE_REFUSAL_SIZE];
	char said[WIRE_TEXT_MAX + 1];
	size_t n = text(f, "text", said, sizeof(said));

	wire_put32(bytes, (uint32_t)number(f, "retry_after_ms", 0));
	wire_put32(bytes + 4, (uint32_t)n);
	same(f, WIRE_HEADER_SIZE, bytes, sizeof(bytes));
	assert_int_equal(number(f, "text_length", 0), n);
	same(f, WIRE_HEADER_SIZE + WIRE_REFUSAL_SIZE, (const uint8_t *)said, n);
	assert_int_equal(f->length, WIRE_HEADER_SIZE + WIRE_REFUSAL_SIZE + n);
}

/* Is the run one that libfirn would take?  And its words are true. */
static void
check_run(const struct frame *f, unsigned i, const struct firn_layout *l,
    uint64_t *highest)
{
	const char *said = words(find(f, "first", i));
	struct firn_parts parts = { .size = (uint32_t)sizeof(parts) };
	struct wire_run in, put = {
		.first = number(f, "first", i),
		.stride = number(f, "stride", i),
		.count = (uint32_t)number(f, "count", i),
	};
	size_t at = WIRE_HEADER_SIZE + WIRE_BATCH_SIZE + i * WIRE_RUN_SIZE;
	uint8_t bytes[WIRE_RUN_SIZE];
	uint64_t tick;

	wire_put_run(bytes, &put);
	same(f, at, bytes, sizeof(bytes));
	wire_get_run(f->bytes + at, &in);
	if (!batch_check_run(l, &in, *highest, highest))
		fail_msg("%s: run %u is none of this layout", f->name, i);
	assert_int_equal(firn_decode(l, in.first, &parts), FIRN_OK);
	if (sscanf(said, "tick %" SCNu64, &tick) == 1)
		assert_true(tick == parts.tick);
}

static void
check_batch(const struct frame *f)
{
	struct firn_layout l;
	uint8_t bytes[WIRE_BATCH_SIZE];
	uint64_t highest = 0;
	unsigned runs = (unsigned)number(f, "runs", 0);

	assert_int_equal(
	    firn_layout_preset(
		strstr(f->name, "stride") != NULL ? "sonyflake" : "firn", &l),
	    FIRN_OK);
	wire_put64(bytes, number(f, "boot_ns", 0));
	wire_put32(bytes + 8, (uint32_t)number(f, "ttl_ms", 0));
	wire_put32(bytes + 12, runs);
	same(f, WIRE_HEADER_SIZE, bytes, sizeof(bytes));
	assert_int_equal(f->length,
	    WIRE_HEADER_SIZE + WIRE_BATCH_SIZE + runs * WIRE_RUN_SIZE);
	for (unsigned i = 0; i < runs; i++)
		check_run(f, i, &l, &highest);
}

static void
put_uuid(const struct frame *f, uint8_t *to)
{
	const char *p = find(f, "uuid", 0)->value;

	for (unsigned i = 0; i < WIRE_UUID_SIZE; i++) {
		unsigned byte;

		p += strspn(p, "-");
		assert_int_equal(sscanf(p, "%2x", &byte), 1);
		to[i] = (uint8_t)byte;
		p += 2;
	}
}

static void
check_contract(const struct frame *f)
{
	struct wire_contract k, in;
	struct firn_layout preset;
	uint8_t bytes[WIRE_CONTRACT_SIZE];

	memset(&k, 0, sizeof(k));
	put_uuid(f, k.uuid);
	k.layout.size = (uint32_t)sizeof(k.layout);
	k.layout.time_bits = (uint8_t)number(f, "time_bits", 0);
	k.layout.worker_bits = (uint8_t)number(f, "worker_bits", 0);
	k.layout.sequence_bits = (uint8_t)number(f, "sequence_bits", 0);
	k.layout.datacenter_bits = (uint8_t)number(f, "datacenter_bits", 0);
	k.layout.flags = (uint32_t)number(f, "flags", 0);
	k.layout.tick_ms = (uint32_t)number(f, "tick_ms", 0);
	k.layout.epoch_ms = (int64_t)number(f, "epoch_ms", 0);
	k.worker = number(f, "worker", 0);
	(void)text(f, "layout", k.layout.name, sizeof(k.layout.name));
	(void)text(f, "realm", k.realm, sizeof(k.realm));
	wire_put_contract(bytes, &k);
	assert_int_equal(f->length, WIRE_HEADER_SIZE + sizeof(bytes));
	same(f, WIRE_HEADER_SIZE, bytes, sizeof(bytes));
	wire_get_contract(f->bytes + WIRE_HEADER_SIZE, &in);
	assert_memory_equal(&in, &k, sizeof(k));
	assert_int_equal(firn_layout_preset(in.layout.name, &preset), FIRN_OK);
	assert_true(layout_equal(&in.layout, &preset));
}

static void
check_status(const struct frame *f)
{
	char said[VALUE_MAX];
	size_t n = text(f, "text", said, sizeof(said));

	same(f, WIRE_HEADER_SIZE, (const uint8_t *)said, n);
	assert_int_equal(f->length, WIRE_HEADER_SIZE + n);
}

static void
check_reply(const struct frame *f)
{
	struct wire_header h;

	check_header(f, &h);
	if (h.status != WIRE_OK) {
		check_refusal(f);
		return;
	}
	switch ((enum wire_type)h.type) {
	case WIRE_BATCH:
		check_batch(f);
		return;
	case WIRE_CONTRACT:
		check_contract(f);
		return;
	case WIRE_STATUS:
		check_status(f);
		return;
	}
	fail_msg("%s: a type that there is not", f->name);
}

static void
each_frame_is_what_it_names(void **state)
{
	unsigned requests = 0;

	(void)state;
	for (unsigned i = 0; i < nframes; i++) {
		if (strcmp(frames[i].kind, "request") == 0) {
			check_request(&frames[i]);
			requests++;
		} else {
			assert_string_equal(frames[i].kind, "reply");
			check_reply(&frames[i]);
		}
	}
	print_message(
	    "%u requests, %u replies\n", requests, nframes - requests);
	assert_true(requests >= 20 && nframes - requests >= 15);
}

/* The fields of a frame cover it without a gap, so no byte has no name. */
static void
each_byte_has_a_name(void **state)
{
	(void)state;
	for (unsigned i = 0; i < nframes; i++) {
		size_t at = 0;

		for (unsigned k = 0; k < frames[i].nfields; k++) {
			assert_int_equal(frames[i].fields[k].at, at);
			at += frames[i].fields[k].length;
		}
		assert_int_equal(at, frames[i].length);
	}
}

/* ---- the tables ------------------------------------------------------------ */

static void
must_have(const char *row)
{
	if (strstr(document, row) == NULL)
		fail_msg("PROTOCOL.md lacks \"%s\"", row);
}

static void
each_reason_is_in_the_table(void **state)
{
	char row[80];

	(void)state;
	for (unsigned s = 1; s <= UINT16_MAX; s++) {
		const char *name = wire_reason_name(s);

		(void)snprintf(row, sizeof(row), "\n| %u | `", s);
		if (strcmp(name, "unknown") == 0) {
			if (strstr(document, row) != NULL)
				fail_msg("status %u has no name here", s);
			continue;
		}
		(void)snprintf(row, sizeof(row), "\n| %u | `%s` |", s, name);
		must_have(row);
	}
}

static void
limits_are_those_of_the_header(void **state)
{
	static const struct {
		const char *what;
		unsigned value;
	} rows[] = {
		{ "length of a request, bytes", WIRE_REQUEST_SIZE },
		{ "IDs in one request", WIRE_COUNT_MAX },
		{ "runs in one batch", WIRE_RUNS_MAX },
		{ "bytes of a refusal's text", WIRE_TEXT_MAX },
		{ "bytes of a body", WIRE_BODY_MAX },
		{ "bytes of a realm's name, with its zero", WIRE_REALM_MAX },
	};
	char row[120];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		(void)snprintf(row, sizeof(row), "\n| %s | %u |", rows[i].what,
		    rows[i].value);
		must_have(row);
	}
	(void)snprintf(row, sizeof(row), "Version\nof the protocol: **%u**.",
	    WIRE_VERSION);
	must_have(row);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_frame_is_what_it_names),
		cmocka_unit_test(each_byte_has_a_name),
		cmocka_unit_test(each_reason_is_in_the_table),
		cmocka_unit_test(limits_are_those_of_the_header),
	};

	return (cmocka_run_group_tests(tests, read_document, NULL));
}
