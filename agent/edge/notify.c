/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify - tells the service manager how the agent is.
 *
 * Invariant: it never blocks; what the manager's socket does not take at once
 * is owed and sent later, the newest only.
 */
#include "notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "log.h"

#define RETRY_MS 100 /* the manager is behind with reading */
#define BROKEN_RETRY_MS 1000 /* there is nobody for the moment */
#define WATCHDOG_USEC_LEAST 2000 /* half of less is no timer of ours */

enum {
	OWE_RELOADING = 1,
	OWE_READY = 2,
	OWE_STATUS = 4,
	OWE_STOPPING = 8,
	OWE_WATCHDOG = 16
};

struct notify {
	struct sockaddr_un to;
	socklen_t to_length;
	int fd; /* -1: there is nobody to tell */
	unsigned owed;
	int64_t reloading_us; /* when the reload began */
	int64_t watchdog_us; /* 0: none */
	bool broken; /* it was logged that nothing arrives */
	char status[NOTIFY_STATUS_MAX + 1];
	struct event *retry, *feed; /* timers */
};

/* ---- the environment ----------------------------------------------------- */

/* False: no address that can be used. */
static bool
parse_address(struct notify *n, const char *text)
{
	size_t length = strlen(text);

	if ((text[0] != '/' && text[0] != '@') || length < 2 ||
	    length >= sizeof(n->to.sun_path))
		return (false);
	n->to.sun_family = AF_UNIX;
	memcpy(n->to.sun_path, text, length);
	if (text[0] == '@') /* an abstract name has no end but its length */
		n->to.sun_path[0] = '\0';
	n->to_length =
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
	return (true);
}

/* A decimal number, whole; -1 if it is not. */
static int64_t
parse_number(const char *text)
{
	char *end;
	long long v;

	errno = 0;
	v = strtoll(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0)
		return (-1);
	return (v);
}

static int64_t
watchdog_us(void)
{
	const char *usec = getenv("WATCHDOG_USEC");
	const char *pid = getenv("WATCHDOG_PID");
	int64_t us;

	if (usec == NULL || (pid != NULL && parse_number(pid) != getpid()))
		return (0);
	us = parse_number(usec);
	if (us < WATCHDOG_USEC_LEAST) {
		log_warnx("WATCHDOG_USEC \"%s\" is not understood", usec);
		return (0);
	}
	return (us);
}

static void
read_environment(struct notify *n)
{
	const char *address = getenv("NOTIFY_SOCKET");

	n->watchdog_us = watchdog_us();
	if (address != NULL && address[0] == '\0')
		address = NULL;
	if (address != NULL && !parse_address(n, address)) {
		log_warnx("NOTIFY_SOCKET \"%s\": no address of a Unix socket, "
			  "nobody is told",
		    address);
	} else if (address != NULL) {
		n->fd = socket(
		    AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (n->fd == -1)
			log_warn("NOTIFY_SOCKET %s", address);
	}
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

/* ---- sending --------------------------------------------------------------- */

static void
arm(struct event *timer, int64_t us)
{
	const struct timeval tv = { .tv_sec = us / 1000000,
		.tv_usec = us % 1000000 };

	if (event_add(timer, &tv) == -1)
		log_warnx("no memory for a timer of the service manager's");
}

/* All that is owed as one datagram; returns its length. */
static size_t
compose(const struct notify *n, char *buf, size_t size)
{
	bool reloading =
	    (n->owed & (OWE_RELOADING | OWE_READY)) == OWE_RELOADING;
	char since[64] = "";

	if (reloading)
		snprintf(since, sizeof(since),
		    "RELOADING=1\nMONOTONIC_USEC=%" PRId64 "\n",
		    n->reloading_us);
	snprintf(buf, size, "%s%s%s%s%s%s%s", since,
	    (n->owed & OWE_READY) != 0 ? "READY=1\n" : "",
	    (n->owed & OWE_STOPPING) != 0 ? "STOPPING=1\n" : "",
	    (n->owed & OWE_WATCHDOG) != 0 ? "WATCHDOG=1\n" : "",
	    (n->owed & OWE_STATUS) != 0 ? "STATUS=" : "",
	    (n->owed & OWE_STATUS) != 0 ? n->status : "",
	    (n->owed & OWE_STATUS) != 0 ? "\n" : "");
	return (strlen(buf));
}

static void
pay(struct notify *n)
{
	char text[NOTIFY_STATUS_MAX + 160];
	size_t length;

	if (n->fd == -1 || n->owed == 0)
		return;
	length = compose(n, text, sizeof(text));
	if (sendto(n->fd, text, length, MSG_NOSIGNAL | MSG_DONTWAIT,
		(const struct sockaddr *)&n->to,
		n->to_length) == (ssize_t)length) {
		n->owed = 0;
		n->broken = false;
		return;
	}
	/* A manager that is being replaced has no socket for a moment. */
	if (errno != EAGAIN && errno != EINTR && !n->broken) {
		log_warn("the service manager cannot be told");
		n->broken = true;
	}
	arm(n->retry, (n->broken ? BROKEN_RETRY_MS : RETRY_MS) * 1000);
}

static void
owe(struct notify *n, unsigned what)
{
	if (n->fd == -1)
		return;
	n->owed |= what;
	pay(n);
}

static void
on_retry(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	pay(arg);
}

static void
on_feed(evutil_socket_t fd, short what, void *arg)
{
	struct notify *n = arg;

	(void)fd;
	(void)what;
	arm(n->feed, n->watchdog_us / 2);
	owe(n, OWE_WATCHDOG);
}

/* ---- what is told ------------------------------------------------------------ */

void
notify_ready(struct notify *n)
{
	if (n->fd == -1)
		return;
	if (n->watchdog_us != 0 && !event_pending(n->feed, EV_TIMEOUT, NULL))
		arm(n->feed, n->watchdog_us / 2);
	owe(n, OWE_READY);
}

void
notify_reloading(struct notify *n)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_MONOTONIC, &ts) == -1)
		return; /* and so is the READY that follows no news */
	n->reloading_us = (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
	n->owed &= ~(unsigned)OWE_READY; /* of before */
	owe(n, OWE_RELOADING);
}

void
notify_stopping(struct notify *n)
{
	owe(n, OWE_STOPPING);
}

void
notify_status(struct notify *n, const char *text)
{
	char line[NOTIFY_STATUS_MAX + 1];

	snprintf(line, sizeof(line), "%s", text);
	line[strcspn(line, "\n")] = '\0'; /* or it would say more than STATUS */
	if (strcmp(line, n->status) == 0)
		return;
	strcpy(n->status, line);
	owe(n, OWE_STATUS);
}

/* ---- life -------------------------------------------------------------------- */

struct notify *
notify_open(struct event_base *base)
{
	struct notify *n = calloc(1, sizeof(*n));

	if (n == NULL)
		return (NULL);
	n->fd = -1;
	n->retry = evtimer_new(base, on_retry, n);
	n->feed = evtimer_new(base, on_feed, n);
	if (n->retry == NULL || n->feed == NULL) {
		notify_close(n);
		return (NULL);
	}
	read_environment(n);
	return (n);
}

void
notify_close(struct notify *n)
{
	if (n == NULL)
		return;
	if (n->retry != NULL)
		event_free(n->retry);
	if (n->feed != NULL)
		event_free(n->feed);
	if (n->fd != -1)
		close(n->fd);
	free(n);
}
