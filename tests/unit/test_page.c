/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_page - the page for a browser: what is in it, nothing unescaped, and
 * room for the worst that a summary can hold.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "page.h"

#define ROOM 131072 /* of the agent's buffer */

static char text[ROOM];
static struct audit fleet;
static struct status_doc status;

static void
fill(char *to, size_t size, char c)
{
	memset(to, c, size - 1);
	to[size - 1] = '\0';
}

/* All lists full, and each text as long as it can be. */
static void
make(char c)
{
	memset(&fleet, 0, sizeof(fleet));
	memset(&status, 0, sizeof(status));
	status.worker = UINT64_MAX - 1;
	fill(status.state, sizeof(status.state), c);
	fill(status.words, sizeof(status.words), c);
	fill(status.realm, sizeof(status.realm), c);
	fill(status.bits, sizeof(status.bits), c);
	fill(status.version, sizeof(status.version), c);
	fill(fleet.auditor_host, sizeof(fleet.auditor_host), c);
	fleet.agents = fleet.hosts = UINT64_MAX;
	fleet.spread_us = INT64_MIN;
	fleet.nworst = AUDIT_WORST_MAX;
	for (size_t i = 0; i < AUDIT_WORST_MAX; i++) {
		struct audit_worst *w = &fleet.worst[i];

		w->worker = UINT64_MAX;
		fill(w->host, sizeof(w->host), c);
		fill(w->state, sizeof(w->state), c);
		fill(w->reason, sizeof(w->reason), c);
		w->has_skew = true;
		w->skew_us = INT64_MIN;
		w->stale_ms = INT64_MAX;
	}
	fleet.nalerts = AUDIT_ALERTS_MAX;
	for (size_t i = 0; i < AUDIT_ALERTS_MAX; i++) {
		fleet.alerts[i].kind = AUDIT_AGENT_STALE;
		fleet.alerts[i].worker = UINT64_MAX;
		fill(fleet.alerts[i].host, sizeof(fleet.alerts[i].host), c);
		fleet.alerts[i].value = INT64_MIN;
	}
}

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
			assert_true(page_format(&status, &fleet, 0, text,
					sizeof(text)) > 0);
			n[j] = 0;
			for (const char *p = text; *p != '\0'; p++)
				n[j] += *p == odd[i];
			if (j == 1 && odd[i] == '&') /* begins each escape */
				assert_null(strstr(text, "&&"));
		}
		if (odd[i] != '&')
			assert_int_equal(n[0], n[1]);
	}
}

static void
test_the_worst_fits(void **state)
{
	int n;

	(void)state;
	make('"');
	n = page_format(&status, &fleet, INT64_MAX, text, sizeof(text));
	print_message("the longest page has %d bytes\n", n);
	assert_true(n > 0 && n < ROOM);
	assert_int_equal(strlen(text), (size_t)n);
}

static void
test_what_is_in_it(void **state)
{
	static const char *const parts[] = { "<h1>orders</h1>",
		"<th>Worker ID<td>17\n", "As summed up 3 s ago by host-a.",
		"critical: workers_low: 0 of 1024 worker IDs are free",
		"<th>serving<td>2\n", "1022 free",
		"<td>host-b<td>refusing<td>clock_skew<td>+1.500 s<td>\n" };

	(void)state;
	memset(&fleet, 0, sizeof(fleet));
	memset(&status, 0, sizeof(status));
	strcpy(status.realm, "orders");
	strcpy(status.state, "serving");
	status.worker = 17;
	strcpy(fleet.auditor_host, "host-a");
	fleet.states[AUDIT_SERVING] = 2;
	fleet.free.count = 1022;
	fleet.nalerts = 1;
	fleet.alerts[0].kind = AUDIT_WORKERS_LOW;
	fleet.alerts[0].critical = true;
	fleet.alerts[0].limit = 1024;
	fleet.nworst = 1;
	fleet.worst[0].worker = 9;
	strcpy(fleet.worst[0].host, "host-b");
	strcpy(fleet.worst[0].state, "refusing");
	strcpy(fleet.worst[0].reason, "clock_skew");
	fleet.worst[0].has_skew = true;
	fleet.worst[0].skew_us = 1500000;
	assert_true(page_format(&status, &fleet, 3999, text, sizeof(text)) > 0);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(text, parts[i]) == NULL)
			fail_msg("no \"%s\" in %s", parts[i], text);
	status.worker = NO_WORKER;
	assert_true(page_format(&status, NULL, 0, text, sizeof(text)) > 0);
	assert_non_null(strstr(text, "Nobody has summed it up yet."));
	assert_non_null(strstr(text, "<th>Worker ID<td>none\n"));
}

/* All of it or -1, at any size, and no byte beyond. */
static void
test_any_size(void **state)
{
	int whole, n;
	char *buf;

	(void)state;
	test_what_is_in_it(state);
	whole = page_format(&status, &fleet, 0, text, sizeof(text));
	for (int size = 0; size <= whole + 1; size++) {
		buf = malloc((size_t)size + 1);
		assert_non_null(buf);
		buf[size] = 0x2a;
		n = page_format(&status, &fleet, 0, buf, (size_t)size);
		assert_int_equal(n, size > whole ? whole : -1);
		assert_int_equal(buf[size], 0x2a);
		free(buf);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_unescaped),
		cmocka_unit_test(test_the_worst_fits),
		cmocka_unit_test(test_what_is_in_it),
		cmocka_unit_test(test_any_size),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
