/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idloop - an event loop that takes IDs with firn_try_next() and waits on
 * firn_poll_fd() alone: epoll by hand, or libevent.
 *
 * idloop epoll|libevent SOCKET PREFIX
 *
 * Ends at SIGTERM.  A pause is made only when there is no agent.
 */
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/epoll.h>

#include <event2/event.h>

#include "idtool.h"

#define TIMEOUT_MS 60000 /* a call that used it would be seen */
#define BATCH 4 /* so that it often has to wait */
#define AWAY_MS 5
#define ROUND 64 /* IDs in one go, then the loop's turn */

static struct firn *handle;
static struct idfile file;
static uint64_t taken, waits, away;
static int64_t longest_ns;
static atomic_bool stopping;

static void
on_term(int sig)
{
	(void)sig;
	stopping = true;
}

/* Takes what is there; FIRN_OK: there may be more. */
static int
take_some(void)
{
	for (int i = 0; i < ROUND; i++) {
		int64_t before = mono_ns(), took;
		uint64_t id;
		int rc = firn_try_next(handle, &id);

		took = mono_ns() - before;
		if (took > longest_ns)
			longest_ns = took;
		if (rc == FIRN_EAGAIN)
			waits++;
		else if (rc == FIRN_EAWAY || rc == FIRN_EREFUSED)
			away++;
		else if (rc != 0)
			die_firn(handle, "firn_try_next", rc);
		if (rc != 0)
			return (rc);
		idfile_put(&file, id);
		taken++;
	}
	idfile_flush(&file);
	return (FIRN_OK);
}

/* What to wait for: a descriptor (its events in *events), or -1 for a pause. */
static int
wait_for(int rc, short *events)
{
	int fd = rc == FIRN_EAGAIN ? firn_poll_fd(handle, events) : -1;

	return (fd >= 0 ? fd : -1);
}

/* ---- epoll ---- */

static void
run_epoll(void)
{
	int set = epoll_create1(EPOLL_CLOEXEC);

	while (!stopping) {
		struct epoll_event e = { 0 };
		short events = 0;
		int rc = take_some(), fd, on;

		if (rc == FIRN_OK)
			continue;
		fd = wait_for(rc, &events);
		if (fd == -1) {
			(void)epoll_wait(set, &e, 1, AWAY_MS);
			continue;
		}
		/* POLLIN and POLLOUT are EPOLLIN and EPOLLOUT */
		e.events = (uint32_t)events | EPOLLONESHOT;
		on = epoll_ctl(set, EPOLL_CTL_ADD, fd, &e);
		if (on == -1 && errno == EEXIST)
			on = epoll_ctl(set, EPOLL_CTL_MOD, fd, &e);
		if (on == -1)
			die("epoll_ctl");
		(void)epoll_wait(set, &e, 1, -1);
	}
	close(set);
}

/* ---- libevent ---- */

static struct event_base *base;
static struct event *ready;

static void
on_ready(evutil_socket_t unused, short what, void *arg)
{
	const struct timeval pause = { 0, AWAY_MS * 1000 };
	const struct timeval now = { 0, 0 };
	short events = 0, want = 0;
	int rc = take_some(), fd;

	(void)unused;
	(void)what;
	(void)arg;
	fd = wait_for(rc, &events);
	if ((events & POLLIN) != 0)
		want |= EV_READ;
	if ((events & POLLOUT) != 0)
		want |= EV_WRITE;
	event_del(ready);
	event_assign(
	    ready, base, fd, fd == -1 ? EV_TIMEOUT : want, on_ready, NULL);
	event_add(ready, fd >= 0 ? NULL : rc == FIRN_OK ? &now : &pause);
}

static void
on_term_event(evutil_socket_t sig, short what, void *arg)
{
	(void)sig;
	(void)what;
	(void)arg;
	event_base_loopbreak(base);
}

static void
run_libevent(void)
{
	const struct timeval now = { 0, 0 };
	struct event *term;

	base = event_base_new();
	if (base == NULL)
		die("event_base_new");
	term = evsignal_new(base, SIGTERM, on_term_event, NULL);
	ready = event_new(base, -1, EV_TIMEOUT, on_ready, NULL);
	if (term == NULL || ready == NULL || event_add(term, NULL) != 0 ||
	    event_add(ready, &now) != 0)
		die("event_add");
	event_base_dispatch(base);
	event_free(term);
	event_free(ready);
	event_base_free(base);
}

int
main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_term };
	struct firn_options o = {
		.size = sizeof(o), .timeout_ms = TIMEOUT_MS, .max_batch = BATCH
	};

	if (argc != 4)
		return (64);
	o.socket = argv[2];
	if (sigaction(SIGTERM, &sa, NULL) == -1 || firn_open(&handle, &o) != 0)
		die("start");
	idfile_open(&file, argv[3], 0, 0);
	if (strcmp(argv[1], "epoll") == 0)
		run_epoll();
	else
		run_libevent();
	idfile_flush(&file);
	firn_close(handle);
	printf("{\"taken\": %" PRIu64 ", \"waits\": %" PRIu64
	       ", \"away\": %" PRIu64 ", \"longest_ms\": %.3f}\n",
	    taken, waits, away, (double)longest_ns / 1e6);
	return (0);
}
