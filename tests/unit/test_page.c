/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_page - the page for a browser and its figures: what is in them, the
 * order of the rows, nothing unescaped, and room for the worst there can be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "page.h"

#define ROOM 524288 /* of the agent's buffer */
#define ROWS 5000
#define NONCE "0123456789abcdef"

static char text[ROOM];
static struct audit fleet;
static struct status_doc status;
static struct audit_member members[ROWS];
static struct row rows[ROWS];
static struct page_view view;

static void
fill(char *to, size_t size, char c)
{
	memset(to, c, size - 1);
	to[size - 1] = '\0';
}

static void
clear(void)
{
	memset(&fleet, 0, sizeof(fleet));
	memset(&status, 0, sizeof(status));
	memset(members, 0, sizeof(members));
	view = (struct page_view){ .status = &status,
		.fleet = &fleet,
		.rows = rows,
		.whole = true,
		.limits = { .warn_us = 500000, .stale_ms = 18000 } };
}

static void
take_members(size_t n, int64_t now_ms)
{
	for (size_t i = 0; i < n; i++)
		row_of_member(&rows[i], &members[i], now_ms, &view.limits);
	rows_sort(rows, n);
	view.nrows = view.all = n;
}

/* All lists full, and each text as long as it can be. */
static void
make(char c)
{
	clear();
	status.worker = UINT64_MAX - 1;
	fill(status.state, sizeof(status.state), c);
	fill(status.words, sizeof(status.words), c);
	fill(status.realm, sizeof(status.realm), c);
	fill(status.bits, sizeof(status.bits), c);
	fill(status.version, sizeof(status.version), c);
	fill(fleet.auditor_host, sizeof(fleet.auditor_host), c);
	fleet.agents = fleet.hosts = UINT64_MAX;
	fleet.spread_us = INT64_MIN;
	for (int s = 0; s < AUDIT_STATES; s++)
		fleet.states[s] = UINT64_MAX;
	fleet.nalerts = AUDIT_ALERTS_MAX;
	for (size_t i = 0; i < AUDIT_ALERTS_MAX; i++) {
		fleet.alerts[i].kind = AUDIT_AGENT_STALE;
		fleet.alerts[i].worker = UINT64_MAX;
		fill(fleet.alerts[i].host, sizeof(fleet.alerts[i].host), c);
		fleet.alerts[i].value = INT64_MIN;
	}
	for (size_t i = 0; i < ROWS; i++) {
		struct audit_member *m = &members[i];

		m->worker = UINT64_MAX;
		fill(m->status.host, sizeof(m->status.host), c);
		fill(m->status.reason, sizeof(m->status.reason), c);
		if (i % 2 == 0)
			strcpy(m->status.state, "refusing");
		else
			fill(m->status.state, sizeof(m->status.state), c);
		m->status.has_offset = m->status.has_rate = true;
		m->status.skew_us = m->status.offset_us = INT64_MIN;
		m->status.error_us = m->status.ids_per_s = INT64_MAX;
		m->has_window = true;
		m->window_ms = INT64_MAX;
		m->written_ms = 1;
	}
	take_members(ROWS, INT64_MAX);
	view.fleet_age_ms = view.rows_age_ms = INT64_MAX;
}

/* ---- order ---------------------------------------------------------------- */

static void
add(size_t i, const char *state, const char *reason, int64_t skew_us,
    int64_t written_ms)
{
	struct audit_member *m = &members[i];

	m->worker = i;
	(void)snprintf(
	    m->status.host, sizeof(m->status.host), "host-%c", (int)('a' + i));
	(void)snprintf(m->status.state, sizeof(m->status.state), "%s", state);
	(void)snprintf(
	    m->status.reason, sizeof(m->status.reason), "%s", reason);
	m->status.has_offset = true;
	m->status.skew_us = skew_us;
	m->written_ms = written_ms;
}

#define NOW_MS INT64_C(1700000000000)

static void
make_few(void)
{
	clear();
	strcpy(status.realm, "orders");
	strcpy(status.state, "serving");
	status.worker = 17;
	strcpy(fleet.auditor_host, "host-a");
	fleet.agents = 8;
	fleet.hosts = 6;
	fleet.states[AUDIT_SERVING] = 7;
	fleet.states[AUDIT_REFUSING] = 1;
	fleet.free.count = 1022;
	fleet.nalerts = 2;
	fleet.alerts[0].kind = AUDIT_FLEET_SKEW;
	fleet.alerts[0].value = 11002;
	fleet.alerts[0].since_ms = NOW_MS;
	fleet.alerts[1].kind = AUDIT_WORKERS_LOW;
	fleet.alerts[1].critical = true;
	fleet.alerts[1].limit = 1024;
	add(0, "serving", "", 499000, NOW_MS - 1000);
	add(1, "serving", "", -3000, NOW_MS - 1000);
	add(2, "serving", "", -501000, NOW_MS - 1000); /* warns */
	add(3, "refusing", "clock_skew", 11000000, NOW_MS - 1000);
	add(4, "serving", "", 2000, NOW_MS - 18001); /* stale */
	add(5, "isolated", "", 700000, NOW_MS - 1000);
	add(6, "", "", 0, 0); /* says nothing */
	add(7, "claiming", "no_claim", 0, NOW_MS - 1000);
	members[3].has_window = true;
	members[3].window_ms = NOW_MS + 58000;
	members[3].status.offset_us = 11000000;
	members[3].status.has_rate = true;
	members[3].status.ids_per_s = 1234;
	take_members(8, NOW_MS);
}

static void
test_trouble_comes_first(void **state)
{
	static const uint64_t order[] = { 3, 4, 6, 5, 2, 7, 0, 1 };
	static const enum row_level levels[] = { ROW_BAD, ROW_BAD, ROW_BAD,
		ROW_WARN, ROW_WARN, ROW_WARN, ROW_GOOD, ROW_GOOD };
	struct rows_alert alerts[ROWS_ALERTS_MAX];

	(void)state;
	make_few();
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(rows[i].worker, order[i]);
		assert_int_equal(rows[i].level, levels[i]);
	}
	assert_int_equal(rows[0].left_ms, 47000); /* by its own clock */
	assert_false(rows[1].has_left);
	assert_int_equal(rows[1].age_ms, 18001);
	assert_string_equal(rows[2].state, "silent");
	assert_int_equal(rows_alerts(rows, 8, &view.limits, alerts), 2);
	assert_true(alerts[0].critical);
	assert_string_equal(alerts[0].kind, "clock_skew");
	assert_string_equal(
	    alerts[0].text, "1 agent refusing to hand out IDs: host-d");
	assert_false(alerts[1].critical);
	assert_string_equal(alerts[1].text,
	    "2 agents with a clock that is off its peers': host-f, host-c");
}

static void
test_many_kinds_of_trouble_are_bounded(void **state)
{
	struct rows_alert alerts[ROWS_ALERTS_MAX];

	(void)state;
	clear();
	for (size_t i = 0; i < 40; i++) {
		add(i, "refusing", "", 0, NOW_MS);
		(void)snprintf(members[i].status.reason,
		    sizeof(members[i].status.reason), "reason-%zu", i);
	}
	take_members(40, NOW_MS);
	assert_int_equal(
	    rows_alerts(rows, 40, &view.limits, alerts), ROWS_ALERTS_MAX);
	for (size_t i = 0; i < 40; i++)
		strcpy(members[i].status.reason, "clock_skew");
	take_members(40, NOW_MS);
	assert_int_equal(rows_alerts(rows, 40, &view.limits, alerts), 1);
	assert_string_equal(alerts[0].text,
	    "40 agents refusing to hand out IDs: host-a, host-b, host-c, ...");
}

/* ---- texts ---------------------------------------------------------------- */

static void
test_nothing_is_unescaped(void **state)
{
	static const char odd[] = "<>&\"'";
	size_t n[2];

	(void)state;
	for (size_t i = 0; odd[i] != '\0'; i++) {
		/* as many of the character as with harmless texts */
		for (int j = 0; j < 2; j++) {
			make(j == 0 ? 'x' : odd[i]);
			view.nrows = 20;
			assert_true(
			    page_format(&view, NONCE, text, sizeof(text)) > 0);
			n[j] = 0;
			for (const char *p = text; *p != '\0'; p++)
				n[j] += *p == odd[i];
		}
		if (odd[i] != '&') /* begins each escape */
			assert_int_equal(n[0], n[1]);
	}
}

static size_t
count(const char *what)
{
	size_t n = 0;

	for (const char *p = text; (p = strstr(p, what)) != NULL; p++)
		n++;
	return (n);
}

/* What does not fit is counted. */
static void
test_the_worst_fits(void **state)
{
	char more[64];
	size_t shown;
	int n;

	(void)state;
	make('"');
	n = page_format(&view, NONCE, text, sizeof(text));
	assert_true(n > 0 && n < ROOM);
	assert_int_equal(strlen(text), (size_t)n);
	shown = count("<tr class=");
	print_message("%zu rows of the longest kind in a page\n", shown);
	assert_true(shown > 200 && shown < ROWS);
	(void)snprintf(more, sizeof(more), "%zu more agents", ROWS - shown);
	assert_int_equal(count(more), 1);
	assert_non_null(strstr(text, "</html>\n"));

	n = page_data_format(&view, text, sizeof(text));
	assert_true(n > 0 && n < ROOM);
	shown = count("\"level\":");
	print_message("%zu rows of the longest kind in JSON\n", shown);
	assert_true(shown > 400 && shown < ROWS);
	(void)snprintf(more, sizeof(more), "\"more\":%zu}", ROWS - shown);
	assert_int_equal(count(more), 1);
}

/* As agents are: all of them. */
static void
test_two_thousand_agents_are_shown(void **state)
{
	int n, m;

	(void)state;
	clear();
	for (size_t i = 0; i < 2000; i++) {
		add(i, "serving", "", 0, NOW_MS);
		strcpy(members[i].status.host, "ids-0123.rack-7.example.com");
		members[i].has_window = members[i].status.has_rate = true;
		members[i].window_ms = NOW_MS + 59000;
	}
	take_members(2000, NOW_MS);
	n = page_format(&view, NONCE, text, sizeof(text));
	assert_int_equal(count("<tr class="), 2000);
	m = page_data_format(&view, text, sizeof(text));
	assert_int_equal(count("\"level\":"), 2000);
	print_message("2,000 agents: page %d bytes, JSON %d bytes\n", n, m);
}

static void
has(const char *const *parts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strstr(text, parts[i]) == NULL)
			fail_msg("no \"%s\" in %s", parts[i], text);
}
#define HAS(...)                                  \
	has((const char *const[]){ __VA_ARGS__ }, \
	    sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

static void
test_what_is_in_it(void **state)
{
	(void)state;
	make_few();
	view.fleet_age_ms = 3999;
	view.rows_age_ms = 2000;
	assert_true(page_format(&view, NONCE, text, sizeof(text)) > 0);
	HAS("<h1>orders</h1>",
	    "Summed up 3 s ago by host-a. All agents, read 2 s ago.",
	    "<li class=\"critical\"><b>critical</b> <code>workers_low</code> "
	    "<span>0 of 1024 worker IDs are free",
	    "<dt>Agents<dd>8<dd class=\"note\">7 serving, 1 refusing",
	    "<dt>Not serving<dd>1<", "<dd>1022<", "worker ID 17",
	    "<style nonce=\"" NONCE "\">", "<script nonce=\"" NONCE "\">",
	    "<tr class=\"bad\"><td>refusing <i>clock_skew</i><td>3"
	    "<th scope=\"row\">host-d<td>+11.000<td>0.0<td>47<td>1234<td>1\n");
	assert_true(strstr(text, "workers_low") < strstr(text, "fleet_skew"));
	assert_true(page_data_format(&view, text, sizeof(text)) > 0);
	HAS("{\"realm\":\"orders\"", "\"severity\":\"critical\"",
	    "\"since\":\"2023-11-14T22:13:20",
	    "{\"level\":\"bad\",\"worker\":3,\"host\":\"host-d\",\"state\":"
	    "\"refusing\",\"reason\":\"clock_skew\",\"skew_us\":11000000,"
	    "\"error_us\":0,\"left_ms\":47000,\"ids_per_s\":1234,"
	    "\"age_ms\":1000}",
	    "\"whole\":true", "\"more\":0}");
}

static void
test_what_is_not_known(void **state)
{
	(void)state;
	make_few();
	view.fleet = NULL;
	view.whole = false;
	view.nrows = 0;
	view.all = 3;
	status.worker = NO_WORKER;
	assert_true(page_format(&view, NONCE, text, sizeof(text)) > 0);
	HAS("Nobody has summed the fleet up yet.", "only the worst",
	    "worker ID none", "<dt>Agents<dd>-<", "No alert stands.",
	    "3 more agents are not in this table.");
	fleet.nworst = 1;
	fleet.worst[0].worker = 9;
	strcpy(fleet.worst[0].host, "host-x");
	strcpy(fleet.worst[0].state, "serving");
	fleet.worst[0].stale_ms = 20000;
	row_of_worst(&rows[0], &fleet.worst[0], 4000, &view.limits);
	assert_int_equal(rows[0].level, ROW_BAD);
	assert_int_equal(rows[0].age_ms, 24000);
	view.nrows = 1;
	assert_true(page_data_format(&view, text, sizeof(text)) > 0);
	HAS("\"skew_us\":null", "\"left_ms\":null", "\"ids_per_s\":null",
	    "\"whole\":false", "\"more\":2}");
}

/* All of it or -1, at any size, and no byte beyond. */
static void
test_any_size(void **state)
{
	int whole, n, shorter = 0;
	char *buf;

	(void)state;
	make_few();
	for (int which = 0; which < 2; which++) {
		whole = which == 0
			    ? page_format(&view, NONCE, text, sizeof(text))
			    : page_data_format(&view, text, sizeof(text));
		for (int size = 0; size <= whole + 4000; size += 7) {
			buf = malloc((size_t)size + 1);
			assert_non_null(buf);
			buf[size] = 0x2a;
			n = which == 0
				? page_format(&view, NONCE, buf, (size_t)size)
				: page_data_format(&view, buf, (size_t)size);
			assert_true(n == -1 || (n > 0 && n < size));
			assert_true(n == -1 || buf[n] == '\0');
			shorter += n != -1 && n < whole;
			assert_int_equal(buf[size], 0x2a);
			free(buf);
		}
	}
	assert_true(shorter > 0); /* with rows left out */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trouble_comes_first),
		cmocka_unit_test(test_many_kinds_of_trouble_are_bounded),
		cmocka_unit_test(test_nothing_is_unescaped),
		cmocka_unit_test(test_the_worst_fits),
		cmocka_unit_test(test_two_thousand_agents_are_shown),
		cmocka_unit_test(test_what_is_in_it),
		cmocka_unit_test(test_what_is_not_known),
		cmocka_unit_test(test_any_size),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
