/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command's own reckoning: forms of IDs, bits for agents, ranges,
 * generations, not_before, text for a terminal; and a fleet put together out
 * of claims and marks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "census.h"
#include "dice.h"
#include "layout.h"
#include "reckon.h"

#define WORLDS 20000
#define NOW_MS INT64_C(1767225600000)
#define UUID_A "01234567-89ab-4def-8123-456789abcdef"
#define UUID_B "fedcba98-7654-4321-8fed-cba987654321"

/* ---- forms of IDs ---- */

static void
test_format(void **state)
{
	static const struct {
		const char *text;
		int format; /* -1: none */
		size_t skip;
		const char *why;
	} cases[] = {
		{ "0", FIRN_DECIMAL, 0, "the one decimal that begins with 0" },
		{ "18446744073709551615", FIRN_DECIMAL, 0, "20 digits" },
		{ "12345678901", FIRN_DECIMAL, 0, "11 digits: not Base62" },
		{ "1234567890123", FIRN_DECIMAL, 0, "13: not Crockford" },
		{ "1234567890123456", FIRN_DECIMAL, 0, "16: not hex" },
		{ "00000000001", FIRN_BASE62, 0, "no decimal begins with 0" },
		{ "0000000000001", FIRN_CROCKFORD, 0, "as above" },
		{ "0000000000000001", FIRN_HEX, 0, "as above" },
		{ "0x1", FIRN_HEX, 2, "short hex needs its mark" },
		{ "0xffffffffffffffffFF", FIRN_HEX, 2, "too long a one" },
		{ "0xg", FIRN_HEX, 2, "the parser says where" },
		{ "0xwkP3jQ9aB", FIRN_BASE62, 0, "begins like hex" },
		{ "0X2XH2M0000AB", FIRN_CROCKFORD, 0, "a digit there" },
		{ "0x", FIRN_HEX, 2, "no digit: the parser says it" },
		{ "00000000000003E8", FIRN_HEX, 0, "16 characters" },
		{ "070X2XH2M0000", FIRN_CROCKFORD, 0, "13 characters" },
		{ "0Ihlyacer4K", FIRN_BASE62, 0, "11 characters" },
		{ "", -1, 0, "nothing" },
		{ "00", -1, 0, "leading zero, and no width" },
		{ "123456789012345678901", -1, 0, "21 digits" },
		{ "abc", -1, 0, "no width" },
		{ "-1", -1, 0, "no sign" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum firn_format format = FIRN_DECIMAL;
		size_t skip = 99;
		bool known = reckon_format(cases[i].text, &format, &skip);

		if (known != (cases[i].format >= 0) ||
		    (known && ((int)format != cases[i].format ||
				  skip != cases[i].skip)))
			fail_msg("\"%s\": %s", cases[i].text, cases[i].why);
	}
}

/*
 * Whatever firn_format_id() writes is read as itself without a word about its
 * form, unless it is digits alone that make a decimal too, or Base62 that happens to be
 * 0x and hex digits.
 */
static void
test_format_found(void **state)
{
	struct dice d;
	unsigned clashes = 0;

	(void)state;
	d = dice_open("cmd");
	for (int i = 0; i < WORLDS; i++) {
		uint64_t id = dice_next(&d) >> dice_below(&d, 64), back = 0;
		enum firn_format as = (enum firn_format)dice_below(&d, 4);
		enum firn_format found;
		char text[FIRN_TEXT_MAX];
		size_t skip;

		assert_int_equal(firn_format_id(id, as, text, sizeof(text)), 0);
		assert_true(reckon_format(text, &found, &skip));
		if (found != as) {
			assert_true(found == FIRN_DECIMAL || skip == 2);
			clashes++;
			continue;
		}
		assert_int_equal(
		    firn_parse_id(text + skip, found, &back, NULL), 0);
		assert_true(back == id);
	}
	/* a hint of the clash is in --help; it must stay rare */
	assert_in_range(clashes, 0, WORLDS / 50);
}

/* ---- realms ---- */

static void
test_agents(void **state)
{
	static const struct {
		uint64_t agents;
		int bits; /* -1: too many */
	} cases[] = {
		{ 0, -1 }, /* nobody */
		{ 1, 1 }, /* one of one would leave nothing */
		{ 2, 2 },
		{ 3, 2 }, /* three of four: a quarter, exactly */
		{ 4, 3 },
		{ 768, 10 },
		{ 769, 11 }, /* 255 of 1024 left is under a quarter */
		{ 1000, 11 },
		{ 786432, 20 }, /* the most */
		{ 786433, -1 },
		{ UINT64_MAX, -1 }, /* four times that is no number */
		{ UINT64_MAX / 4 + 2, -1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct firn_layout l;
		bool fits = reckon_layout(cases[i].agents, &l);

		assert_int_equal(fits, cases[i].bits >= 0);
		if (!fits)
			continue;
		assert_int_equal(l.worker_bits, cases[i].bits);
		assert_int_equal(
		    l.time_bits + l.worker_bits + l.sequence_bits, 63);
		assert_true(layout_valid(&l));
	}
}

static void
test_range(void **state)
{
	static const struct {
		const char *text;
		bool good;
		uint64_t first, last;
		size_t where;
	} cases[] = {
		{ "0-1023", true, 0, 1023, 0 },
		{ "7", true, 7, 7, 0 },
		{ "7-7", true, 7, 7, 0 },
		{ "8-7", false, 0, 0, 2 }, /* backwards */
		{ "", false, 0, 0, 0 },
		{ "-7", false, 0, 0, 0 },
		{ "7-", false, 0, 0, 2 },
		{ "1-2-3", false, 0, 0, 2 },
		{ " 1-2", false, 0, 0, 0 },
		{ "1-18446744073709551616", false, 0, 0, 2 },
		{ "111111111111111111111111111111", false, 0, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t first = 0, last = 0;
		size_t where = 99;

		assert_int_equal(
		    reckon_range(cases[i].text, &first, &last, &where),
		    cases[i].good);
		if (cases[i].good) {
			assert_true(first == cases[i].first);
			assert_true(last == cases[i].last);
		} else {
			assert_int_equal(where, cases[i].where);
		}
	}
}

static void
test_not_before(void **state)
{
	(void)state;
	assert_true(reckon_not_before(1000, 60000, 10000) == 71000);
	/* no sum that wraps into the past */
	assert_true(
	    reckon_not_before(INT64_MAX - 5, 60000, 10000) == INT64_MAX);
}

static void
test_bits(void **state)
{
	static const struct {
		const char *text;
		int sum; /* -1: another form */
	} cases[] = {
		{ "41/10/12", 63 },
		{ "41/10/14", 65 }, /* what the words are for */
		{ "41/5+5/12", 63 },
		{ "999/999/999", 2997 },
		{ "1000/1/1", -1 },
		{ "41/10", -1 },
		{ "41/10/", -1 },
		{ "41/10/12/", -1 },
		{ "41/5+/12", -1 },
		{ "41/10/1x", -1 },
		{ "firn", -1 },
		{ "", -1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned sum;

		if (reckon_bits(cases[i].text, &sum) != (cases[i].sum >= 0))
			fail_msg("\"%s\"", cases[i].text);
		if (cases[i].sum >= 0)
			assert_int_equal(sum, cases[i].sum);
	}
}

static void
test_instant(void **state)
{
	static const struct {
		const char *text;
		int64_t unix_ms; /* -1: none */
		size_t where;
	} cases[] = {
		{ "2026-03-01", INT64_C(1772323200000), 0 },
		{ "2026-03-01T00:00:00Z", INT64_C(1772323200000), 0 },
		{ "1772323200000", INT64_C(1772323200000), 0 },
		{ "1772323200", INT64_C(1772323200), 0 }, /* 10 digits */
		{ "2026-02-29", -1, 8 }, /* no leap year */
		{ "2026-03-1", -1, 9 },
		{ "2026-03-01 ", -1, 10 },
		{ "2026/03/01", -1, 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t ms = -1;
		size_t where = 0;
		bool good = reckon_instant(cases[i].text, &ms, &where);

		if (good != (cases[i].unix_ms >= 0) || ms != cases[i].unix_ms ||
		    (!good && where != cases[i].where))
			fail_msg("\"%s\": %zu", cases[i].text, where);
	}
}

/* Local time is nobody's guess: it is told apart from plain nonsense. */
static void
test_lacks_zone(void **state)
{
	(void)state;
	assert_true(reckon_lacks_zone("2025-01-01T00:00:00"));
	assert_true(reckon_lacks_zone("2025-01-01 00:00:00"));
	assert_true(reckon_lacks_zone("2025-01-01T00:00:00.123456"));
	assert_false(reckon_lacks_zone("2025-01-01T00:00:00Z"));
	assert_false(reckon_lacks_zone("2025-01-01T00:00:00+02:00"));
	assert_false(reckon_lacks_zone("2025-01-01"));
	assert_false(reckon_lacks_zone("1735689600000"));
	assert_false(reckon_lacks_zone("2025-13-01T00:00:00"));
	assert_false(reckon_lacks_zone(""));
	assert_false(reckon_lacks_zone("yesterday, as it were, at tea time"));
}

static void
test_seconds(void **state)
{
	struct firn_layout l;

	(void)state;
	assert_int_equal(firn_layout_preset("firn", &l), 0);
	assert_true(reckon_is_seconds("1772323200", 1772323200, &l));
	/* milliseconds before the epoch, and what no layout holds */
	assert_false(reckon_is_seconds("1704067200000", 1704067200000, &l));
	assert_false(reckon_is_seconds("10", 10, &l));
	assert_false(reckon_is_seconds("9999999999", 9999999999, &l));
	assert_false(reckon_is_seconds("1970-01-21T12:18:43Z", 1772323000, &l));
}

static void
test_generation(void **state)
{
	struct contract k = { .generation = 0 };

	(void)state;
	assert_true(reckon_generation(&k, 0, 0x9f3a21c4));
	assert_string_equal(k.generation_text, "1-9f3a21c4");
	assert_true(reckon_generation(&k, 0, 0xab));
	assert_string_equal(k.generation_text, "2-000000ab");
	/* above both: the backup's and the one found */
	assert_true(reckon_generation(&k, 7, 1));
	assert_true(k.generation == 8);
	assert_string_equal(k.generation_text, "8-00000001");
	/* ten digits are the most that a reader takes */
	k.generation = 9999999999;
	assert_false(reckon_generation(&k, 0, 1));
	assert_false(reckon_generation(&k, INT64_MAX, 1));
	k.generation = 9999999998;
	assert_true(reckon_generation(&k, 0, UINT32_MAX));
	assert_string_equal(k.generation_text, "9999999999-ffffffff");
}

static void
test_escape(void **state)
{
	static const struct {
		const char *text, *safe;
	} cases[] = {
		{ "plain", "plain" },
		{ "a\x1b[31mb", "a\\x1b[31mb" }, /* would colour */
		{ "a\nb\r\t", "a\\x0ab\\x0d\\x09" }, /* one line is one */
		{ "\x7f", "\\x7f" },
		{ "\xc2\x9b"
		  "31m",
		    "\\xc2\\x9b31m" }, /* C1: a CSI in one character */
		{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" }, /* letters */
		{ "\xff\xc3", "\\xff\\xc3" }, /* no UTF-8 */
	};
	char out[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		reckon_escape(cases[i].text, out, sizeof(out));
		assert_string_equal(out, cases[i].safe);
	}
	/* never cut in the middle of an escape or a letter */
	reckon_escape("ab\x1b", out, 6);
	assert_string_equal(out, "ab");
	reckon_escape("ab\x1b", out, 7);
	assert_string_equal(out, "ab\\x1b");
	reckon_escape("a\xc3\xbc", out, 3);
	assert_string_equal(out, "a");
}

/* ---- fleets ---- */

static struct contract
contract_of(unsigned worker_bits)
{
	struct contract k = {
		.format = REALM_FORMAT,
		.generation = 1,
		.generation_text = "1-00000000",
		.worker_last = (UINT64_C(1) << worker_bits) - 1,
		.layout = {
			.size = (uint32_t)sizeof(struct firn_layout),
			.time_bits = 41,
			.worker_bits = (uint8_t)worker_bits,
			.sequence_bits = (uint8_t)(22 - worker_bits),
			.tick_ms = 1,
			.epoch_ms = LAYOUT_EPOCH_MS,
			.name = "custom",
		},
	};

	return (k);
}

static struct agent_status
status_of(const char *state, const char *host, int64_t offset_us)
{
	struct agent_status st = {
		.pid = 42,
		.has_offset = true,
		.offset_us = offset_us,
		.error_us = 1500,
		.skew_us = offset_us,
	};

	(void)snprintf(st.state, sizeof(st.state), "%s", state);
	(void)snprintf(st.host, sizeof(st.host), "%s", host);
	(void)snprintf(st.version, sizeof(st.version), "0.1.0");
	return (st);
}

static void
add_mark(struct census *c, size_t row, const char *owner, int64_t lead_ms,
    const struct agent_status *st)
{
	struct mark m = {
		.ceiling = layout_tick_of(&c->k->layout, NOW_MS + lead_ms) - 1,
	};
	char text[MARK_DOC_MAX];
	int n;

	(void)snprintf(m.owner, sizeof(m.owner), "%s", owner);
	n = mark_format(&m, st, text, sizeof(text));
	assert_true(n > 0);
	census_add_mark(c, row, text, (size_t)n, NOW_MS);
}

static void
add_claim(struct census *c, size_t row, const struct agent_status *st)
{
	char text[MARK_DOC_MAX];
	int n = claim_doc_format(st, text, sizeof(text));

	assert_true(n > 0);
	census_add_claim(c, row, text, (size_t)n);
}

static const struct fleet_alert *
alert(const struct census *c, const char *kind)
{
	for (size_t i = 0; i < c->fleet.nalerts; i++)
		if (strcmp(c->alerts[i].kind, kind) == 0)
			return (&c->alerts[i]);
	return (NULL);
}

/* Rows by worker; a mark speaks only for the claim that it names. */
static void
test_rows(void **state)
{
	static const char *const names[] = {
		UUID_A "-w-0000000009", "lost+found",
		UUID_B "-w0004-0000000011",
		UUID_A "-w9999-0000000012", /* no worker ID of this realm */
	};
	struct contract k = contract_of(6);
	struct agent_status old = status_of("claiming", "a", 0);
	struct agent_status fresh = status_of("serving", "a", 2499);
	struct agent_status other = status_of("serving", "x", 9000000);
	struct census c;

	(void)state;
	assert_true(census_open(&c, &k, names, 4));
	assert_int_equal(c.fleet.nrows, 2);
	assert_true(c.rows[0].worker == 4);
	assert_true(c.rows[1].worker == 9);
	add_claim(&c, 0, &old);
	add_claim(&c, 1, &old);
	census_drop_gone(&c);
	add_mark(&c, 0, UUID_B "-w0004-0000000011", 57000, &fresh);
	add_mark(&c, 1, UUID_B "-w-0000000001", 57000, &other);
	assert_true(census_judge(&c, &k));

	assert_string_equal(c.rows[0].state, "serving");
	assert_true(c.rows[0].has_mark);
	assert_true(c.rows[0].mark_lead_ms == 57000);
	assert_true(c.rows[0].skew_ms == 2); /* rounded, not cut */
	assert_true(c.rows[0].error_ms == 2);
	assert_string_equal(c.rows[1].state, "claiming");
	assert_false(c.rows[1].has_mark);
	assert_true(c.fleet.free_workers == 62);
	assert_true(c.fleet.spread_ms == 2);
	assert_true(c.fleet.mean_offset_ms == 1);
	/* nothing but the two names that are no claims */
	assert_int_equal(c.fleet.nalerts, 2);
	assert_string_equal(
	    c.alerts[0].text, "node lost+found: no claim of this realm");
	assert_non_null(strstr(c.alerts[1].text, names[3]));
	assert_false(fleet_is_critical(&c.fleet));
	census_close(&c);
}

/* Each node that makes no sense is one alert, and the rest is shown. */
static void
test_odd(void **state)
{
	static const char *const names[] = {
		UUID_A "-w-0000000001",
		UUID_B "-w-0000000002",
		UUID_A "-w-0000000003",
		UUID_B "-w-0000000067", /* 3 again */
		"b\033[31m",
	};
	static const char *const marks[] = { "0001", "0003", "0007", "7",
		"00007", "9999", "x" };
	static const char *const texts[] = {
		"node b?[31m: no claim of this realm",
		"claim " UUID_A "-w-0000000001: line 1, column 1: a value "
		"should stand here",
		"claim " UUID_B "-w-0000000002: not allowed (its access list)",
		("mark 0001: ceiling_tick: must be a whole number from "
		 "-4611686018427387903 to 4611686018427387903"),
		"mark 0002: not allowed (its access list)",
		"mark 0003: it is empty",
		"mark 0007: 1048000 bytes are too many: at most 65536",
		"node 7: no mark of this realm",
		"node 00007: no mark of this realm",
		"node 9999: no mark of this realm",
		"node x: no mark of this realm",
	};
	static const char high[] = "{\"ceiling_tick\":9223372036854775808,"
				   "\"owner\":\"a\",\"tag\":\"\"}";
	struct contract k = contract_of(6);
	struct agent_status good = status_of("serving", "a", 0);
	struct census c;

	(void)state;
	assert_true(census_open(&c, &k, names, 5));
	assert_int_equal(c.fleet.nrows, 4);
	census_add_claim(&c, 0, "not json", 8);
	census_add_denied_claim(&c, 1);
	add_claim(&c, 2, &good);
	add_claim(&c, 3, &good);
	census_add_mark(&c, 0, high, sizeof(high) - 1, NOW_MS);
	census_add_denied_mark(&c, 2);
	census_add_mark(&c, 2, "", 0, NOW_MS);
	census_add_mark(&c, 3, "", 0, NOW_MS); /* the same mark */
	census_add_idle_mark(&c, 7, "", 1048000);
	census_add_mark_names(&c, marks, 7);
	c.doubles[3] = false; /* not what this is about */
	assert_true(census_judge(&c, &k));
	assert_int_equal(c.fleet.nalerts, sizeof(texts) / sizeof(texts[0]));
	for (size_t i = 0; i < c.fleet.nalerts; i++) {
		assert_string_equal(c.alerts[i].text, texts[i]);
		assert_int_equal((int)c.alerts[i].severity, FLEET_WARNING);
	}
	assert_string_equal(c.rows[2].state, "serving");
	assert_false(fleet_is_critical(&c.fleet));
	census_close(&c);
}

/* Thousands are a line or a few, not thousands. */
static void
test_odd_many(void **state)
{
	static char text[300][CLAIM_NAME_MAX];
	const char *names[300];
	struct contract k = contract_of(10);
	struct census c;

	(void)state;
	for (size_t i = 0; i < 300; i++) {
		(void)snprintf(text[i], sizeof(text[i]), "other-%zu", i);
		names[i] = text[i];
	}
	assert_true(census_open(&c, &k, names, 300));
	census_add_mark_names(&c, names, 9);
	for (uint64_t i = 0; i < 200; i++)
		census_add_idle_mark(&c, i, "x", 1);
	assert_true(census_judge(&c, &k));
	assert_int_equal(c.fleet.nalerts, ODD_MAX);
	assert_string_equal(c.alerts[0].text,
	    "300 nodes, such as other-0: no claim of this realm");
	assert_string_equal(c.alerts[1].text,
	    "9 nodes, such as other-0: no mark of this realm");
	assert_string_equal(
	    c.alerts[ODD_MAX - 1].text, "139 more nodes make no sense");
	census_close(&c);
}

static void
test_garbage(void **state)
{
	static const char *const names[] = { UUID_A "-w-0000000000" };
	struct contract k = contract_of(6);
	struct census c;

	(void)state;
	assert_true(census_open(&c, &k, names, 1));
	census_add_claim(&c, 0, "{", 1);
	census_add_mark(&c, 0, "", 0, NOW_MS);
	assert_true(census_judge(&c, &k));
	assert_string_equal(c.rows[0].state, "");
	assert_false(c.rows[0].has_mark);
	assert_false(c.fleet.has_offset);
	census_close(&c);
}

static void
test_workers_low(void **state)
{
	static const struct {
		size_t agents;
		int severity; /* -1: no alert */
	} cases[] = {
		{ 0, -1 },
		{ 14, -1 }, /* 2 of 16 free: over a tenth */
		{ 15, FLEET_WARNING },
		{ 16, FLEET_CRITICAL },
	};
	struct contract k = contract_of(4);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[16][CLAIM_NAME_MAX];
		const char *names[16];
		const struct fleet_alert *a;
		struct census c;

		for (size_t j = 0; j < cases[i].agents; j++) {
			(void)snprintf(
			    text[j], sizeof(text[j]), UUID_A "-w-%010zu", j);
			names[j] = text[j];
		}
		assert_true(census_open(&c, &k, names, cases[i].agents));
		assert_true(census_judge(&c, &k));
		a = alert(&c, "workers_low");
		assert_int_equal(a != NULL, cases[i].severity >= 0);
		if (a != NULL)
			assert_int_equal((int)a->severity, cases[i].severity);
		assert_int_equal(fleet_is_critical(&c.fleet),
		    cases[i].severity == FLEET_CRITICAL);
		census_close(&c);
	}
}

/* A double claim is told if it was one at the first look too. */
static void
test_doubles(void **state)
{
	static const char *const names[] = {
		UUID_B "-w-0000000067", /* 67 mod 64: 3 again */
		UUID_A "-w-0000000003",
	};
	static const char *const others[] = {
		UUID_A "-w-0000000003",
		UUID_A "-w0003-0000000070",
	};
	struct contract k = contract_of(6);
	struct census first, second;
	const struct fleet_alert *a;

	(void)state;
	assert_true(census_open(&first, &k, names, 2));
	assert_true(census_has_doubles(&first));
	assert_string_equal(first.rows[0].claim, names[1]);

	assert_true(census_open(&second, &k, names, 2));
	census_keep_doubles(&second, &first);
	assert_true(census_judge(&second, &k));
	a = alert(&second, "duplicate_claim");
	assert_non_null(a);
	assert_true(a->worker == 3);
	assert_non_null(strstr(a->text, names[0]));
	assert_true(second.fleet.free_workers == 63);
	census_close(&second);

	assert_true(census_open(&second, &k, others, 2));
	census_keep_doubles(&second, &first);
	assert_false(census_has_doubles(&second));
	census_close(&second);
	census_close(&first);
}

static void
test_spread(void **state)
{
	static const char *const names[] = {
		UUID_A "-w-0000000001",
		UUID_B "-w-0000000002",
	};
	struct contract k = contract_of(6);

	(void)state;
	for (int64_t apart_ms = 500; apart_ms <= 501; apart_ms++) {
		struct agent_status a = status_of("serving", "a", -100000);
		struct agent_status b =
		    status_of("serving", "b", -100000 + apart_ms * 1000);
		struct census c;

		assert_true(census_open(&c, &k, names, 2));
		add_claim(&c, 0, &a);
		add_claim(&c, 1, &b);
		assert_true(census_judge(&c, &k));
		assert_true(c.fleet.spread_ms == apart_ms);
		assert_int_equal(alert(&c, "fleet_skew") != NULL,
		    apart_ms > CENSUS_SPREAD_MS);
		census_close(&c);
	}
}

/* A claim that went away between the list and its own reading. */
static void
test_gone(void **state)
{
	static const char *const names[] = {
		UUID_A "-w-0000000003",
		UUID_B "-w-0000000067",
	};
	struct contract k = contract_of(6);
	struct census c;

	(void)state;
	assert_true(census_open(&c, &k, names, 2));
	c.rows[0].worker = NO_WORKER;
	census_drop_gone(&c);
	assert_int_equal(c.fleet.nrows, 1);
	assert_string_equal(c.rows[0].claim, names[1]);
	assert_false(census_has_doubles(&c));
	census_close(&c);
}

/* What stands in the summary is shown, and since when; each alert once. */
static void
test_summary(void **state)
{
	static const char *const names[] = { UUID_A "-w-0000000003",
		UUID_B "-w-0000000067" };
	static struct audit summary; /* large */
	struct contract k = contract_of(1); /* two worker IDs */
	const struct fleet_alert *a;
	struct census c;

	(void)state;
	summary = (struct audit){ .auditor = UUID_A "-w-0000000003",
		.auditor_host = "alpha",
		.nalerts = 2 };
	summary.alerts[0] = (struct audit_alert){ .kind = AUDIT_WORKERS_LOW,
		.worker = NO_WORKER,
		.since_ms = NOW_MS,
		.value = 1,
		.limit = 2 };
	summary.alerts[1] = (struct audit_alert){ .kind = AUDIT_MARKS_DELETED,
		.critical = true,
		.worker = NO_WORKER,
		.since_ms = NOW_MS + 1,
		.value = 3 };
	k.worker_last = 0;
	assert_true(census_open(&c, &k, names, 1));
	assert_true(census_judge(&c, &k));
	assert_int_equal(c.fleet.nalerts, 1);
	assert_string_equal(alert(&c, "workers_low")->since, "");
	assert_string_equal(c.fleet.auditor.claim, "");
	census_add_summary(&c, &summary, 250);
	assert_int_equal(c.fleet.nalerts, 2);
	a = alert(&c, "workers_low");
	assert_string_equal(a->since, "2026-01-01T00:00:00.000Z");
	assert_int_equal(a->severity, FLEET_CRITICAL); /* as seen here */
	a = alert(&c, "marks_deleted");
	assert_non_null(a);
	assert_int_equal(a->severity, FLEET_CRITICAL);
	assert_non_null(strstr(a->text, "(3)"));
	assert_true(fleet_is_critical(&c.fleet));
	assert_string_equal(c.fleet.auditor.host, "alpha");
	assert_int_equal(c.fleet.auditor.age_ms, 250);
	census_close(&c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_format),
		cmocka_unit_test(test_format_found),
		cmocka_unit_test(test_agents),
		cmocka_unit_test(test_range),
		cmocka_unit_test(test_not_before),
		cmocka_unit_test(test_bits),
		cmocka_unit_test(test_instant),
		cmocka_unit_test(test_lacks_zone),
		cmocka_unit_test(test_seconds),
		cmocka_unit_test(test_generation),
		cmocka_unit_test(test_escape),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_odd),
		cmocka_unit_test(test_odd_many),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_workers_low),
		cmocka_unit_test(test_doubles),
		cmocka_unit_test(test_spread),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_summary),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
