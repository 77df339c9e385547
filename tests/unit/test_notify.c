/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_notify - what a service manager hears, datagram by datagram.  The
 * manager is a socket of the test's; the loop is turned by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "notify.h"

#define TEXT_MAX 1024
#define HANG_S 20

struct manager {
	struct event_base *base;
	struct notify *notify;
	char dir[32], path[48];
	int fd;
};

/* ---- a manager ----------------------------------------------------------- */

static void
listen_at(struct manager *m, const char *name, bool abstract)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	size_t length = strlen(name);

	m->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_not_equal(m->fd, -1);
	memcpy(sun.sun_path + (abstract ? 1 : 0), name, length);
	assert_int_equal(
	    bind(m->fd, (const struct sockaddr *)&sun,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + length +
			    (abstract ? 1 : 0))),
	    0);
}

/* Nobody listens yet, and nothing is in the environment. */
static void
manager_open(struct manager *m)
{
	memset(m, 0, sizeof(*m));
	m->fd = -1;
	strcpy(m->dir, "/tmp/firn-test-XXXXXX");
	assert_non_null(mkdtemp(m->dir));
	snprintf(m->path, sizeof(m->path), "%s/n", m->dir);
	m->base = event_base_new();
	assert_non_null(m->base);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

static void
agent_open(struct manager *m)
{
	m->notify = notify_open(m->base);
	assert_non_null(m->notify);
}

/* The usual: a path, and an agent that was told of it. */
static void
manager_at_path(struct manager *m)
{
	manager_open(m);
	listen_at(m, m->path, false);
	assert_int_equal(setenv("NOTIFY_SOCKET", m->path, 1), 0);
}

static void
manager_close(struct manager *m)
{
	notify_close(m->notify);
	event_base_free(m->base);
	if (m->fd != -1)
		close(m->fd);
	(void)!unlink(m->path);
	(void)!rmdir(m->dir);
}

/* Datagrams in one line each, "" if there is none. */
static void
hear(const struct manager *m, char text[TEXT_MAX])
{
	ssize_t n = recv(m->fd, text, TEXT_MAX - 1, MSG_DONTWAIT);

	text[n > 0 ? n : 0] = '\0';
}

static void
expect(const struct manager *m, const char *text)
{
	char heard[TEXT_MAX];

	hear(m, heard);
	assert_string_equal(heard, text);
}

/* Turns the loop until something is heard. */
static void
hear_later(const struct manager *m, char text[TEXT_MAX])
{
	time_t end = time(NULL) + HANG_S;

	do {
		assert_true(event_base_loop(m->base, EVLOOP_ONCE) >= 0);
		hear(m, text);
	} while (text[0] == '\0' && time(NULL) < end);
	assert_string_not_equal(text, "");
}

/* ---- tests --------------------------------------------------------------- */

static void
test_told_at_a_path(void **state)
{
	struct manager m;

	(void)state;
	manager_at_path(&m);
	agent_open(&m);
	expect(&m, "");
	notify_ready(m.notify);
	expect(&m, "READY=1\n");
	notify_status(m.notify, "serving, worker ID 17");
	expect(&m, "STATUS=serving, worker ID 17\n");
	notify_stopping(m.notify);
	expect(&m, "STOPPING=1\n");
	expect(&m, "");
	manager_close(&m);
}

static void
test_told_at_an_abstract_name(void **state)
{
	struct manager m;
	char name[64];

	(void)state;
	manager_open(&m);
	snprintf(name, sizeof(name), "@firn-test-notify-%d", (int)getpid());
	listen_at(&m, name + 1, true);
	assert_int_equal(setenv("NOTIFY_SOCKET", name, 1), 0);
	agent_open(&m);
	notify_ready(m.notify);
	expect(&m, "READY=1\n");
	manager_close(&m);
}

static void
test_children_are_not_told_of_it(void **state)
{
	struct manager m;

	(void)state;
	manager_at_path(&m);
	setenv("WATCHDOG_USEC", "30000000", 1);
	setenv("WATCHDOG_PID", "1", 1);
	agent_open(&m);
	assert_null(getenv("NOTIFY_SOCKET"));
	assert_null(getenv("WATCHDOG_USEC"));
	assert_null(getenv("WATCHDOG_PID"));
	manager_close(&m);
}

static void
test_a_status_is_told_once(void **state)
{
	struct manager m;

	(void)state;
	manager_at_path(&m);
	agent_open(&m);
	notify_status(m.notify, "serving");
	expect(&m, "STATUS=serving\n");
	notify_status(m.notify, "serving");
	expect(&m, "");
	/* a text of ours must never say more than its own line */
	notify_status(m.notify, "refusing\nMAINPID=1");
	expect(&m, "STATUS=refusing\n");
	manager_close(&m);
}

static void
test_a_long_status_is_cut(void **state)
{
	struct manager m;
	char text[2 * NOTIFY_STATUS_MAX], heard[TEXT_MAX];

	(void)state;
	manager_at_path(&m);
	agent_open(&m);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	notify_status(m.notify, text);
	hear(&m, heard);
	assert_int_equal(
	    strlen(heard), strlen("STATUS=\n") + NOTIFY_STATUS_MAX);
	manager_close(&m);
}

static void
test_a_reload_says_when_it_began(void **state)
{
	struct manager m;
	struct timespec before, after;
	char heard[TEXT_MAX];
	long long us = 0;
	int end = 0;

	(void)state;
	manager_at_path(&m);
	agent_open(&m);
	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &before), 0);
	notify_reloading(m.notify);
	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &after), 0);
	hear(&m, heard);
	assert_int_equal(
	    sscanf(heard, "RELOADING=1\nMONOTONIC_USEC=%lld\n%n", &us, &end),
	    1);
	assert_int_equal(end, (int)strlen(heard));
	assert_true(us >= before.tv_sec * 1000000LL + before.tv_nsec / 1000);
	assert_true(us <= after.tv_sec * 1000000LL + after.tv_nsec / 1000);
	notify_ready(m.notify);
	expect(&m, "READY=1\n");
	manager_close(&m);
}

static void
test_the_watchdog_is_fed_by_the_loop(void **state)
{
	struct manager m;
	char heard[TEXT_MAX];
	char pid[24];

	(void)state;
	manager_at_path(&m);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("WATCHDOG_USEC", "100000", 1);
	setenv("WATCHDOG_PID", pid, 1);
	agent_open(&m);
	/* not before it is up, and not by itself */
	assert_int_equal(
	    event_base_get_num_events(m.base, EVENT_BASE_COUNT_ADDED), 0);
	notify_ready(m.notify);
	expect(&m, "READY=1\n");
	for (int i = 0; i < 3; i++) {
		hear_later(&m, heard);
		assert_string_equal(heard, "WATCHDOG=1\n");
	}
	/* again after a reload there is one timer, not two */
	notify_ready(m.notify);
	assert_int_equal(
	    event_base_get_num_events(m.base, EVENT_BASE_COUNT_ADDED), 1);
	manager_close(&m);
}

static void
test_no_watchdog_without_need(void **state)
{
	static const struct {
		const char *usec, *pid;
	} cases[] = {
		{ NULL, NULL },
		{ "100000", "1" }, /* another process's */
		{ "0", NULL },
		{ "-5", NULL },
		{ "1x", NULL },
		{ "", NULL },
		{ "99999999999999999999", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct manager m;

		manager_at_path(&m);
		if (cases[i].usec != NULL)
			setenv("WATCHDOG_USEC", cases[i].usec, 1);
		if (cases[i].pid != NULL)
			setenv("WATCHDOG_PID", cases[i].pid, 1);
		agent_open(&m);
		notify_ready(m.notify);
		expect(&m, "READY=1\n");
		assert_int_equal(
		    event_base_get_num_events(m.base, EVENT_BASE_COUNT_ADDED),
		    0);
		manager_close(&m);
	}
}

/* The queue of a manager that does not read is short, and it may hang. */
static void
test_a_full_queue_is_made_up_for(void **state)
{
	struct manager m;
	char text[32], heard[TEXT_MAX], last[TEXT_MAX] = "";
	int n = 0, i = 0;

	(void)state;
	manager_at_path(&m);
	agent_open(&m);
	/* one is owed once a timer was armed for it */
	while (event_base_get_num_events(m.base, EVENT_BASE_COUNT_ADDED) == 0) {
		snprintf(text, sizeof(text), "line %d", i++);
		notify_status(m.notify, text);
		assert_true(i < 100000);
	}
	notify_reloading(m.notify);
	notify_status(m.notify, "the last");
	notify_ready(m.notify);
	notify_stopping(m.notify);
	for (;;) {
		hear(&m, heard);
		if (heard[0] == '\0')
			break;
		strcpy(last, heard);
		n++;
	}
	assert_int_equal(n, i - 1);
	assert_true(strncmp(last, "STATUS=line", 11) == 0);
	hear_later(&m, heard);
	assert_string_equal(heard, "READY=1\nSTOPPING=1\nSTATUS=the last\n");
	expect(&m, "");
	manager_close(&m);
}

/* A manager that is being replaced hears the present state once it is back. */
static void
test_a_manager_that_comes_back(void **state)
{
	struct manager m;
	char heard[TEXT_MAX];

	(void)state;
	manager_open(&m);
	assert_int_equal(setenv("NOTIFY_SOCKET", m.path, 1), 0);
	agent_open(&m);
	notify_ready(m.notify);
	notify_status(m.notify, "claiming");
	notify_status(m.notify, "serving");
	listen_at(&m, m.path, false);
	hear_later(&m, heard);
	assert_string_equal(heard, "READY=1\nSTATUS=serving\n");
	manager_close(&m);
}

static void
test_no_manager_no_word(void **state)
{
	char longest[200];
	const char *addresses[] = { NULL, "", "@", "/", "relative", "vsock:2:1",
		longest };

	(void)state;
	memset(longest, 'x', sizeof(longest) - 1);
	longest[0] = '/';
	longest[sizeof(longest) - 1] = '\0';
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		struct manager m;

		manager_open(&m);
		if (addresses[i] != NULL)
			setenv("NOTIFY_SOCKET", addresses[i], 1);
		setenv("WATCHDOG_USEC", "100000", 1);
		agent_open(&m);
		notify_ready(m.notify);
		notify_status(m.notify, "serving");
		notify_reloading(m.notify);
		notify_stopping(m.notify);
		assert_int_equal(
		    event_base_get_num_events(m.base, EVENT_BASE_COUNT_ADDED),
		    0);
		manager_close(&m);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_told_at_a_path),
		cmocka_unit_test(test_told_at_an_abstract_name),
		cmocka_unit_test(test_children_are_not_told_of_it),
		cmocka_unit_test(test_a_status_is_told_once),
		cmocka_unit_test(test_a_long_status_is_cut),
		cmocka_unit_test(test_a_reload_says_when_it_began),
		cmocka_unit_test(test_the_watchdog_is_fed_by_the_loop),
		cmocka_unit_test(test_no_watchdog_without_need),
		cmocka_unit_test(test_a_full_queue_is_made_up_for),
		cmocka_unit_test(test_a_manager_that_comes_back),
		cmocka_unit_test(test_no_manager_no_word),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
