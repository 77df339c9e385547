/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol's frames: hand-written bytes, round trips of random frames,
 * and the names of reasons, errors and the version.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <cmocka.h>

#include "dice.h"
#include "firn-wire.h"

#define WORLDS 2000

/* ---- hand-written frames: the bytes are the protocol ---------------------- */

static void
request_has_its_bytes(void **state)
{
	static const uint8_t bytes[WIRE_REQUEST_SIZE] = {
		/* version, type, flags */
		0x01, 0x02, 0x04, 0x03,
		/* count 0x08070605 */
		0x05, 0x06, 0x07, 0x08,
		/* cookie */
		0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,
		/* after */
		0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0xa8,
		/* reserved */
		0, 0, 0, 0, 0, 0, 0, 0
	};
	static const struct wire_request r = {
		.version = 1,
		.type = WIRE_CONTRACT,
		.flags = 0x0304,
		.count = 0x08070605,
		.cookie = UINT64_C(0x1817161514131211),
		.after = UINT64_C(0xa827262524232221),
	};
	uint8_t out[WIRE_REQUEST_SIZE];
	struct wire_request in;

	(void)state;
	memset(out, 0xa5, sizeof(out));
	wire_put_request(out, &r);
	assert_memory_equal(out, bytes, sizeof(bytes));
	wire_get_request(bytes, &in);
	assert_int_equal(in.version, r.version);
	assert_int_equal(in.type, r.type);
	assert_int_equal(in.flags, r.flags);
	assert_int_equal(in.count, r.count);
	assert_true(in.cookie == r.cookie);
	assert_true(in.after == r.after);
}

static void
header_has_its_bytes(void **state)
{
	static const uint8_t bytes[WIRE_HEADER_SIZE] = {
		/* version, type, status 7 */
		0x01, 0x01, 0x07, 0x00,
		/* length 0x00010203 */
		0x03, 0x02, 0x01, 0x00,
		/* cookie */
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11
	};
	static const struct wire_header h = {
		.version = 1,
		.type = WIRE_BATCH,
		.status = WIRE_CLOCK_SKEW,
		.length = 0x00010203,
		.cookie = UINT64_C(0x1122334455667788),
	};
	uint8_t out[WIRE_HEADER_SIZE];
	struct wire_header in;

	(void)state;
	memset(out, 0xa5, sizeof(out));
	wire_put_header(out, &h);
	assert_memory_equal(out, bytes, sizeof(bytes));
	wire_get_header(bytes, &in);
	assert_int_equal(in.version, h.version);
	assert_int_equal(in.type, h.type);
	assert_int_equal(in.status, h.status);
	assert_int_equal(in.length, h.length);
	assert_true(in.cookie == h.cookie);
}

static void
run_has_its_bytes(void **state)
{
	static const uint8_t bytes[WIRE_RUN_SIZE] = {
		/* first 1541815603606036480 */
		0x00, 0xa0, 0x17, 0x62, 0x1f, 0xa1, 0x65, 0x15,
		/* stride 65536 */
		0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00,
		/* count 256, zero */
		0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00
	};
	static const struct wire_run r = {
		.first = UINT64_C(1541815603606036480),
		.stride = 65536,
		.count = 256,
	};
	uint8_t out[WIRE_RUN_SIZE];
	struct wire_run in;

	(void)state;
	memset(out, 0xa5, sizeof(out));
	wire_put_run(out, &r);
	assert_memory_equal(out, bytes, sizeof(bytes));
	wire_get_run(bytes, &in);
	assert_true(in.first == r.first);
	assert_true(in.stride == r.stride);
	assert_int_equal(in.count, r.count);
}

/* Eight bytes a line, as contrib/PROTOCOL.md has them. */
/* clang-format off */
static const uint8_t contract_bytes[WIRE_CONTRACT_SIZE] = {
	/*  0 uuid */
	0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07,
	0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f,
	/* 16 bits 39 16 8, datacenter 4; flags: sequence above worker */
	39, 16, 8, 4, 0x01, 0x00, 0x00, 0x00,
	/* 24 tick of 10 ms, reserved */
	0x0a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	/* 32 epoch 1409529600000 */
	0x00, 0xd8, 0x82, 0x2e, 0x48, 0x01, 0x00, 0x00,
	/* 40 worker 500 */
	0xf4, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	/* 48 layout's name */
	's', 'o', 'n', 'y', 'f', 'l', 'a', 'k',
	'e', 0, 0, 0, 0, 0, 0, 0,
	/* 64 realm's name, and zeros to the end */
	'd', 'e', 'f', 'a', 'u', 'l', 't', 0,
};
/* clang-format on */

static struct wire_contract
sonyflake_contract(void)
{
	struct wire_contract c = { .worker = 500, .realm = "default" };

	assert_int_equal(firn_layout_preset("sonyflake", &c.layout), 0);
	c.layout.datacenter_bits = 4;
	for (unsigned i = 0; i < WIRE_UUID_SIZE; i++)
		c.uuid[i] = (uint8_t)i;
	return (c);
}

static void
contract_has_its_bytes(void **state)
{
	struct wire_contract c = sonyflake_contract(), in;
	uint8_t out[WIRE_CONTRACT_SIZE];

	(void)state;
	memset(out, 0xa5, sizeof(out));
	wire_put_contract(out, &c);
	assert_memory_equal(out, contract_bytes, sizeof(out));
	memset(&in, 0xa5, sizeof(in));
	wire_get_contract(contract_bytes, &in);
	assert_memory_equal(&in, &c, sizeof(c));
}

/* What arrives may lack its NUL; what the stub holds may not. */
static void
names_are_terminated_on_arrival(void **state)
{
	uint8_t bytes[WIRE_CONTRACT_SIZE];
	struct wire_contract in;

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	wire_get_contract(bytes, &in);
	assert_int_equal(strlen(in.layout.name), FIRN_LAYOUT_NAME_MAX - 1);
	assert_int_equal(strlen(in.realm), WIRE_REALM_MAX - 1);
	/* read as it stands, judged by layout_valid() later */
	assert_int_equal(in.layout.size, sizeof(in.layout));
	assert_int_equal(in.layout.time_bits, 'x');
}

/* ---- numbers -------------------------------------------------------------- */

static void
numbers_are_little_endian_anywhere(void **state)
{
	struct dice d = dice_open(__func__);

	(void)state;
	for (int i = 0; i < WORLDS; i++) {
		uint64_t v = dice_number(&d);
		uint8_t buf[8 + 9], *p = buf + dice_below(&d, 8);

		memset(buf, 0xa5, sizeof(buf));
		wire_put64(p, v);
		for (unsigned k = 0; k < 8; k++)
			assert_int_equal(p[k], (v >> (8 * k)) & 0xff);
		assert_int_equal(p[8], 0xa5);
		assert_true(wire_get64(p) == v);
		assert_true(wire_get32(p) == (uint32_t)v);
		assert_true(wire_get16(p) == (uint16_t)v);
		memset(buf, 0xa5, sizeof(buf));
		wire_put32(p, (uint32_t)v);
		assert_true(wire_get32(p) == (uint32_t)v);
		assert_int_equal(p[4], 0xa5);
		memset(buf, 0xa5, sizeof(buf));
		wire_put16(p, (uint16_t)v);
		assert_true(wire_get16(p) == (uint16_t)v);
		assert_int_equal(p[2], 0xa5);
	}
}

/* ---- round trips ---------------------------------------------------------- */

static void
requests_and_headers_round_trip(void **state)
{
	struct dice d = dice_open(__func__);

	(void)state;
	for (int i = 0; i < WORLDS; i++) {
		struct wire_request r = {
			.version = (uint8_t)dice_next(&d),
			.type = (uint8_t)dice_next(&d),
			.flags = (uint16_t)dice_next(&d),
			.count = (uint32_t)dice_number(&d),
			.cookie = dice_number(&d),
			.after = dice_number(&d),
		};
		struct wire_header h = {
			.version = (uint8_t)dice_next(&d),
			.type = (uint8_t)dice_next(&d),
			.status = (uint16_t)dice_next(&d),
			.length = (uint32_t)dice_number(&d),
			.cookie = dice_number(&d),
		};
		uint8_t buf[WIRE_REQUEST_SIZE];
		struct wire_request r2;
		struct wire_header h2;

		wire_put_request(buf, &r);
		wire_get_request(buf, &r2);
		assert_true(r2.version == r.version && r2.type == r.type);
		assert_true(r2.flags == r.flags && r2.count == r.count);
		assert_true(r2.cookie == r.cookie && r2.after == r.after);
		wire_put_header(buf, &h);
		wire_get_header(buf, &h2);
		assert_true(h2.version == h.version && h2.type == h.type);
		assert_true(h2.status == h.status && h2.length == h.length);
		assert_true(h2.cookie == h.cookie);
	}
}

static void
runs_and_contracts_round_trip(void **state)
{
	struct dice d = dice_open(__func__);

	(void)state;
	for (int i = 0; i < WORLDS; i++) {
		struct wire_run r = {
			.first = dice_number(&d),
			.stride = dice_number(&d),
			.count = (uint32_t)dice_number(&d),
		};
		struct wire_contract c = sonyflake_contract(), c2;
		uint8_t run[WIRE_RUN_SIZE], contract[WIRE_CONTRACT_SIZE];
		struct wire_run r2;

		c.layout.time_bits = (uint8_t)dice_next(&d);
		c.layout.worker_bits = (uint8_t)dice_next(&d);
		c.layout.sequence_bits = (uint8_t)dice_next(&d);
		c.layout.datacenter_bits = (uint8_t)dice_next(&d);
		c.layout.flags = (uint32_t)dice_number(&d);
		c.layout.tick_ms = (uint32_t)dice_number(&d);
		c.layout.epoch_ms = (int64_t)dice_number(&d);
		c.worker =
		    dice_below(&d, 4) == 0 ? WIRE_NO_WORKER : dice_number(&d);
		wire_put_run(run, &r);
		wire_get_run(run, &r2);
		assert_true(r2.first == r.first && r2.stride == r.stride);
		assert_true(r2.count == r.count);
		wire_put_contract(contract, &c);
		wire_get_contract(contract, &c2);
		assert_memory_equal(&c2, &c, sizeof(c));
	}
}

static void
sizes_fit_each_other(void **state)
{
	(void)state;
	assert_true(
	    WIRE_BATCH_SIZE + WIRE_RUNS_MAX * WIRE_RUN_SIZE <= WIRE_BODY_MAX);
	assert_true(WIRE_CONTRACT_SIZE <= WIRE_BODY_MAX);
	assert_true(WIRE_REFUSAL_SIZE + WIRE_TEXT_MAX <= WIRE_BODY_MAX);
}

/* ---- names ---------------------------------------------------------------- */

static void
reasons_have_names(void **state)
{
	static const struct {
		unsigned status;
		const char *name;
	} cases[] = {
		{ 0, "ok" },
		{ 1, "no_realm" },
		{ 2, "realm_changed" },
		{ 3, "no_claim" },
		{ 4, "window_spent" },
		{ 5, "state_lost" },
		{ 6, "state_failed" },
		{ 7, "clock_skew" },
		{ 8, "clock_back" },
		{ 9, "clock_ahead" },
		{ 10, "before_epoch" },
		{ 11, "epoch_ended" },
		{ 12, "draining" },
		{ 64, "bad_version" },
		{ 65, "not_allowed" },
		{ 66, "too_many" },
	};
	unsigned named = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(
		    wire_reason_name(cases[i].status), cases[i].name);
	/* a status has 16 bits on the wire, and none other has a name */
	for (unsigned status = 0; status <= UINT16_MAX; status++)
		named += strcmp(wire_reason_name(status), "unknown") != 0;
	assert_int_equal(named, sizeof(cases) / sizeof(cases[0]));
	assert_string_equal(wire_reason_name(UINT_MAX), "unknown");
}

static void
errors_have_names_and_sentences(void **state)
{
	static const struct {
		int err;
		const char *name;
	} cases[] = {
		{ 0, "FIRN_OK" },
		{ -1, "FIRN_EINVAL" },
		{ -2, "FIRN_ENOMEM" },
		{ -3, "FIRN_EAGAIN" },
		{ -4, "FIRN_ETIMEDOUT" },
		{ -5, "FIRN_EAWAY" },
		{ -6, "FIRN_EACCES" },
		{ -7, "FIRN_EREFUSED" },
		{ -8, "FIRN_EREALM" },
		{ -9, "FIRN_EPROTO" },
		{ -10, "FIRN_ERANGE" },
		{ -11, "FIRN_ERANDOM" },
		{ -12, "FIRN_ESEAL" },
	};
	static const int unknown[] = { 1, 42, -13, -1000, INT_MAX, INT_MIN };
	const size_t count = sizeof(cases) / sizeof(cases[0]);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(firn_errname(cases[i].err), cases[i].name);
		assert_true(strlen(firn_strerror(cases[i].err)) > 0);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(firn_strerror(cases[i].err),
			    firn_strerror(cases[k].err));
	}
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		assert_string_equal(firn_errname(unknown[i]), "unknown");
		assert_string_equal(firn_strerror(unknown[i]), "unknown error");
	}
}

static void
version_is_the_build_s(void **state)
{
	(void)state;
	assert_string_equal(firn_version(), FIRN_VERSION);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request_has_its_bytes),
		cmocka_unit_test(header_has_its_bytes),
		cmocka_unit_test(run_has_its_bytes),
		cmocka_unit_test(contract_has_its_bytes),
		cmocka_unit_test(names_are_terminated_on_arrival),
		cmocka_unit_test(numbers_are_little_endian_anywhere),
		cmocka_unit_test(requests_and_headers_round_trip),
		cmocka_unit_test(runs_and_contracts_round_trip),
		cmocka_unit_test(sizes_fit_each_other),
		cmocka_unit_test(reasons_have_names),
		cmocka_unit_test(errors_have_names_and_sentences),
		cmocka_unit_test(version_is_the_build_s),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
