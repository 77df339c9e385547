/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_conn - what must not depend on the peers: accept goes on when it can,
 * and only then, and the log does not grow with what they do.
 *
 * accept4() and clock_gettime() are this file's, so that an error or a minute
 * is there when a case wants it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "conn.h"
#include "firn-wire.h"
#include "listener.h"
#include "log.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define PAUSE_MS 60000 /* no case lives to see it end by itself */

static int accept_errors[4]; /* what the next calls fail with; 0: they work */
static unsigned accept_calls;
static time_t skipped_s;

int
accept4(int fd, struct sockaddr *addr, socklen_t *length, int flags)
{
	int error = accept_errors[0];

	accept_calls++;
	memmove(accept_errors, accept_errors + 1,
	    sizeof(accept_errors) - sizeof(accept_errors[0]));
	if (error == 0)
		return ((int)syscall(SYS_accept4, fd, addr, length, flags));
	errno = error;
	return (-1);
}

int
clock_gettime(clockid_t id, struct timespec *ts)
{
	int rc = (int)syscall(SYS_clock_gettime, id, ts);

	ts->tv_sec += skipped_s;
	return (rc);
}

/* ---- accept ------------------------------------------------------------- */

struct place {
	struct event_base *base;
	struct listener *listener;
	char dir[64], path[96];
	unsigned accepted;
	bool keeps;
	int kept[8]; /* by keeps */
};

static void
on_accept(void *arg, int fd, const struct listener_peer *peer)
{
	struct place *p = arg;

	(void)peer;
	if (p->keeps)
		p->kept[p->accepted] = fd;
	else
		close(fd);
	p->accepted++;
}

static void
turn(struct event_base *base)
{
	for (int i = 0; i < 4; i++)
		assert_true(event_base_loop(base, EVLOOP_NONBLOCK) >= 0);
}

static void
place_open(struct place *p)
{
	struct listener_conf conf = { p->path, "0660", "", PAUSE_MS };
	struct listener_error err;

	memset(p, 0, sizeof(*p));
	memset(accept_errors, 0, sizeof(accept_errors));
	strcpy(p->dir, "/tmp/firn-test-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	assert_int_equal(chmod(p->dir, 0755), 0);
	snprintf(p->path, sizeof(p->path), "%s/s", p->dir);
	p->base = event_base_new();
	assert_non_null(p->base);
	assert_int_equal(listener_open(&p->listener, p->base, &conf, &err), 0);
	assert_int_equal(listener_start(p->listener, on_accept, p), 0);
	turn(p->base);
	accept_calls = 0;
}

static void
place_close(struct place *p)
{
	char lock[112];

	listener_close(p->listener);
	event_base_free(p->base);
	snprintf(lock, sizeof(lock), "%s.lock", p->path);
	(void)unlink(lock);
	assert_int_equal(rmdir(p->dir), 0);
}

static int
dial(const struct place *p)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	memcpy(sun.sun_path, p->path, strlen(p->path) + 1);
	assert_int_equal(connect(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	return (fd);
}

/*
 * Whatever accept says and would say again at once: one call, then a pause,
 * which ends when a descriptor is free, and not before.
 */
static void
test_pause(void **state)
{
	static const int errors[] = { EMFILE, ENFILE, ENOBUFS, ENOMEM, EPERM,
		EACCES, EOPNOTSUPP };
	struct place p;
	int fds[3];

	(void)state;
	for (size_t i = 0; i < COUNT(errors); i++) {
		place_open(&p);
		for (size_t k = 0; k < COUNT(fds); k++)
			fds[k] = dial(&p);
		accept_errors[0] = accept_errors[1] = errors[i];
		turn(p.base);
		assert_int_equal(accept_calls, 1);
		assert_true(listener_starved(p.listener));
		/* still none: one look for each that leaves, a pause again */
		listener_resume(p.listener);
		listener_resume(p.listener);
		assert_int_equal(accept_calls, 1);
		turn(p.base);
		assert_int_equal(accept_calls, 2);
		assert_int_equal(p.accepted, 0);
		/* there are some: all who waited are in at once */
		listener_resume(p.listener);
		turn(p.base);
		assert_int_equal(p.accepted, COUNT(fds));
		assert_false(listener_starved(p.listener));
		/* and with no pause there is none to end */
		accept_calls = 0;
		listener_resume(p.listener);
		turn(p.base);
		assert_int_equal(accept_calls, 0);
		for (size_t k = 0; k < COUNT(fds); k++)
			close(fds[k]);
		listener_stop(p.listener);
		listener_resume(p.listener);
		place_close(&p);
	}
}

/* An interrupted call, or one who is gone already, costs nobody a pause. */
static void
test_no_pause(void **state)
{
	struct place p;
	int fd;

	(void)state;
	place_open(&p);
	fd = dial(&p);
	accept_errors[0] = EINTR;
	accept_errors[1] = accept_errors[2] = ECONNABORTED;
	turn(p.base);
	assert_int_equal(p.accepted, 1);
	assert_false(listener_starved(p.listener));
	close(fd);
	place_close(&p);
}

/* The last descriptors are ZooKeeper's and the files', not the clients'. */
static void
test_spare(void **state)
{
	struct rlimit old, low;
	struct place p;
	int fds[3], filler[256], n = 0;

	(void)state;
	place_open(&p);
	p.keeps = true;
	for (size_t k = 0; k < COUNT(fds); k++)
		fds[k] = dial(&p);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = old;
	low.rlim_cur = 256;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	do { /* one is left below the last 16 */
		filler[n] = dup(fds[0]);
		assert_in_range(filler[n], 0, 238);
	} while (filler[n++] < 238);
	turn(p.base);
	assert_int_equal(p.accepted, 2);
	assert_true(listener_starved(p.listener));
	listener_resume(p.listener); /* somebody left, and it is taken again */
	turn(p.base);
	assert_int_equal(p.accepted, 2);
	close(p.kept[0]);
	listener_resume(p.listener);
	turn(p.base);
	assert_int_equal(p.accepted, 3);
	assert_false(listener_starved(p.listener));
	close(p.kept[1]);
	close(p.kept[2]);
	while (n > 0)
		close(filler[--n]);
	for (size_t k = 0; k < COUNT(fds); k++)
		close(fds[k]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	place_close(&p);
}

/* ---- the log --------------------------------------------------------------- */

static FILE *lines;
static int old_stderr;

static void
capture(void)
{
	lines = tmpfile();
	assert_non_null(lines);
	old_stderr = dup(STDERR_FILENO);
	assert_true(dup2(fileno(lines), STDERR_FILENO) >= 0);
	log_open(LOG_LEVEL_INFO);
}

/* Ends it; how many lines hold `what`, and the last of them. */
static unsigned
captured(const char *what, char last[256])
{
	unsigned n = 0;
	char line[256];

	assert_true(dup2(old_stderr, STDERR_FILENO) >= 0);
	close(old_stderr);
	rewind(lines);
	while (fgets(line, sizeof(line), lines) != NULL) {
		if (strstr(line, what) == NULL)
			continue;
		n++;
		memcpy(last, line, sizeof(line));
	}
	(void)fclose(lines);
	return (n);
}

static mono_t
on_wake(void *arg)
{
	(void)arg;
	return ((mono_t){ NS_PER_S });
}

static enum conn_verdict
on_request(void *arg, struct conn *c, const struct wire_request *rq)
{
	(void)arg;
	(void)c;
	(void)rq;
	return (CONN_DROP);
}

static void
on_closed(void *arg)
{
	bool *open = arg;

	*open = false;
}

/* One peer that sends what makes its connection close. */
static void
bad_peer(struct event_base *base, uint64_t number, uint8_t version)
{
	static const struct conn_calls calls = { on_wake, on_request,
		on_closed };
	const struct conn_peer peer = { number, 1000, 4242 };
	const struct wire_request rq = { .version = version, .type = 99 };
	uint8_t frame[WIRE_REQUEST_SIZE];
	bool open = true;
	int fds[2];

	assert_int_equal(
	    socketpair(
		AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds),
	    0);
	assert_non_null(conn_open(base, fds[0], &peer, &calls, &open));
	wire_put_request(frame, &rq);
	assert_int_equal(
	    write(fds[1], frame, sizeof(frame)), (ssize_t)sizeof(frame));
	turn(base);
	assert_false(open);
	close(fds[1]);
}

static void
test_log_is_bounded(void **state)
{
	struct event_base *base = event_base_new();
	char last[256] = "";

	(void)state;
	skipped_s += 3600;
	capture();
	for (unsigned i = 0; i < 1000; i++)
		bad_peer(base, i, (uint8_t)(i % 2));
	assert_int_equal(captured("closed", last), LOG_PEER_LINES);

	/* a minute later the next line comes, after the number of the rest */
	capture();
	skipped_s += 59;
	log_tell_lost();
	skipped_s += 2;
	log_tell_lost();
	log_tell_lost();
	bad_peer(base, 1000, 1);
	assert_int_equal(captured("closed", last), 1);

	capture();
	for (unsigned i = 0; i < 100; i++)
		bad_peer(base, i, 1);
	skipped_s += 61;
	log_info("another"); /* any line brings it */
	assert_int_equal(captured("left out", last), 1);
	assert_non_null(strstr(last, "71 more lines"));

	/* each level has its own, and other lines are not counted */
	capture();
	errno = 4711;
	for (unsigned i = 0; i < 100; i++) {
		log_peer(LOG_LEVEL_INFO, "line %u", i);
		log_peer(LOG_LEVEL_DEBUG, "line %u", i);
		log_info("line %u", i);
	}
	log_peer(LOG_LEVEL_WARN, "line");
	assert_int_equal(errno, 4711);
	assert_int_equal(captured("line", last), 100 + LOG_PEER_LINES + 1);
	event_base_free(base);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pause),
		cmocka_unit_test(test_no_pause),
		cmocka_unit_test(test_spare),
		cmocka_unit_test(test_log_is_bounded),
	};

	log_open(LOG_LEVEL_ERROR);
	return (cmocka_run_group_tests(tests, NULL, NULL));
}
