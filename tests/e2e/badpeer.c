/* SPDX-License-Identifier: Apache-2.0 */
/*
 * badpeer - clients that no application should be, and a good one beside them.
 *
 * usage: badpeer KIND SOCKET [CONNECTIONS [REQUESTS]]
 *
 * Invariant: until SIGTERM every kind goes on as fast as it can; at its end
 * it prints one JSON object of what it counted.  Those that keep connections
 * print one when these stand, and the good one when it has made REQUESTS calls
 * since a SIGUSR1, of those calls.
 *
 * good      libfirn without a cache: a call about each millisecond
 * half      a part of a request, then silence
 * drip      good requests, one byte at a time
 * version   another version's frame; counts the refusals that come before
 *           the end
 * bad       requests of the right size with one thing wrong; counts the ends
 * deaf      requests, and never reads
 * mute      connects, and says nothing
 * cut       ends in the middle of a request, or does not wait for the reply
 * flood     connects and closes
 * greedy    the most IDs that a request may ask for, all the time
 * liar      says of itself that it has the last ID but one of this tick or of
 *           one that may be borrowed (layout `firn`)
 * brief     connects, has one ID, closes: REQUESTS times on each connection
 * pipeline  sends REQUESTS without reading, then reads all, then ends
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "firn-wire.h"
#include "firn.h"

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)
#define WAIT_MS 20000 /* for a reply or an end that must come */
#define SAMPLES_MAX 100000
#define CONNECTIONS_MAX 20000
#define BLOCK 64u /* requests in one send */

static volatile sig_atomic_t stopping;
static const char *path;
static unsigned nconns = 1;
static uint64_t nrequests = 1;
static int fds[CONNECTIONS_MAX];
/* What is printed: done, ended by the agent, and what went wrong. */
static uint64_t done, ended, wrong;
static uint64_t held; /* bytes of replies that lie in the kernel unread */

static void
on_signal(int sig)
{
	(void)sig;
	stopping = 1;
}

static void
die(const char *what)
{
	fprintf(stderr, "badpeer: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t
now_ns(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_MONOTONIC, &ts) == -1)
		die("clock_gettime");
	return ((int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec);
}

static void
print_counts(void)
{
	printf("{\"done\": %" PRIu64 ", \"ended\": %" PRIu64
	       ", \"wrong\": %" PRIu64 ", \"held\": %" PRIu64 "}\n",
	    done, ended, wrong, held);
	fflush(stdout);
}

/* ---- bytes ------------------------------------------------------------------ */

static int
dial(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd == -1 || fd >= CONNECTIONS_MAX + 64)
		die("socket");
	strncpy(sun.sun_path, path, sizeof(sun.sun_path) - 1);
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == -1)
		die("connect");
	return (fd);
}

static void
frame(uint8_t p[WIRE_REQUEST_SIZE], uint32_t count, uint64_t cookie)
{
	const struct wire_request rq = { .version = WIRE_VERSION,
		.type = WIRE_BATCH,
		.count = count,
		.cookie = cookie };

	wire_put_request(p, &rq);
}

/* False: it takes no more, or is gone. */
static bool
put(int fd, const uint8_t *p, size_t n)
{
	return (send(fd, p, n, MSG_NOSIGNAL) == (ssize_t)n);
}

/* Reads exactly n bytes; false: the end came first, or nothing for long. */
static bool
get(int fd, void *to, size_t n)
{
	uint8_t *p = to;

	while (n > 0) {
		struct pollfd pfd = { .fd = fd, .events = POLLIN };
		int ready = poll(&pfd, 1, WAIT_MS);
		ssize_t k;

		if (ready == -1 && errno == EINTR)
			continue;
		k = ready == 1 ? recv(fd, p, n, 0) : 0;
		if (k <= 0)
			return (false);
		p += k;
		n -= (size_t)k;
	}
	return (true);
}

/* True: the agent closed, and nothing else came. */
static bool
sees_end(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	uint8_t byte;
	int ready;

	do
		ready = poll(&pfd, 1, WAIT_MS);
	while (ready == -1 && errno == EINTR);
	return (ready == 1 && recv(fd, &byte, 1, 0) <= 0);
}

/*
 * Takes one reply to a batch request; *last is the highest ID so far.  False:
 * it is not the one that is due.
 */
static bool
get_batch(int fd, uint64_t cookie, uint64_t *last, uint64_t *ids)
{
	uint8_t p[WIRE_REPLY_MAX];
	struct wire_header h;
	struct wire_run r;

	if (!get(fd, p, WIRE_HEADER_SIZE))
		return (false);
	wire_get_header(p, &h);
	if (h.length > WIRE_BODY_MAX || !get(fd, p, h.length) ||
	    h.cookie != cookie || h.status != WIRE_OK)
		return (false);
	for (uint32_t at = WIRE_BATCH_SIZE; at < h.length;
	     at += WIRE_RUN_SIZE) {
		wire_get_run(p + at, &r);
		if (r.first <= *last || r.count == 0)
			return (false);
		*last = r.first + (r.count - 1) * r.stride;
		*ids += r.count;
	}
	return (true);
}

/* ---- the good one --------------------------------------------------------------- */

static int64_t samples[SAMPLES_MAX];
static size_t nsamples;

static int
compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x < y ? -1 : x > y);
}

static const char *why = ""; /* the last call that failed did so */

static void
print_period(void)
{
	size_t n = nsamples;

	qsort(samples, n, sizeof(samples[0]), compare);
	printf("{\"calls\": %zu, \"failed\": %" PRIu64 ", \"why\": \"%s\", "
	       "\"p50_us\": %.0f, \"p99_us\": %.0f, \"max_us\": %.0f}\n",
	    n, wrong, why, n > 0 ? (double)samples[n / 2] / 1e3 : 0,
	    n > 0 ? (double)samples[n * 99 / 100] / 1e3 : 0,
	    n > 0 ? (double)samples[n - 1] / 1e3 : 0);
	fflush(stdout);
}

static void
be_good(void)
{
	struct firn_options opt = { .size = sizeof(opt),
		.socket = path,
		.max_batch = 1,
		.timeout_ms = 5000 };
	const struct timespec pause = { .tv_nsec = NS_PER_MS };
	bool counting = false;
	sigset_t set;
	struct firn *f;

	if (firn_open(&f, &opt) != 0)
		die("firn_open");
	/* Waited for, not handled: a sanitizer may lose one to a handler. */
	if (sigemptyset(&set) == -1 || sigaddset(&set, SIGUSR1) == -1 ||
	    sigaddset(&set, SIGTERM) == -1 ||
	    sigprocmask(SIG_BLOCK, &set, NULL) == -1)
		die("sigprocmask");
	print_counts(); /* a signal is heard from now on */
	while (!stopping) {
		int64_t before = now_ns();
		uint64_t id;
		int rc = firn_next(f, &id);

		samples[nsamples++] = now_ns() - before;
		if (rc != 0) {
			wrong++;
			why = firn_errname(rc);
		}
		if (counting && nsamples >= nrequests) {
			print_period();
			counting = false;
		}
		if (nsamples == SAMPLES_MAX)
			nsamples = 0;
		switch (sigtimedwait(&set, NULL, &pause)) {
		case SIGUSR1:
			counting = true;
			wrong = 0;
			nsamples = 0;
			break;
		case SIGTERM:
			stopping = 1;
			break;
		}
	}
	firn_close(f);
}

/* ---- one connection after another -------------------------------------------------- */

static void
once_version(void)
{
	static const uint8_t other[300] = { 2, 1 };
	uint8_t p[WIRE_BODY_MAX];
	struct wire_header h;
	int fd = dial();
	bool good;

	(void)put(fd, other, done % 2 == 0 ? 1 : sizeof(other));
	good = get(fd, p, WIRE_HEADER_SIZE);
	if (good)
		wire_get_header(p, &h);
	good = good && h.status == WIRE_BAD_VERSION &&
	       h.version == WIRE_VERSION && h.length <= sizeof(p) &&
	       get(fd, p, h.length);
	wrong += !good;
	ended += sees_end(fd);
	done++;
	close(fd);
}

static void
once_bad(void)
{
	uint8_t p[WIRE_REQUEST_SIZE];
	int fd = dial();

	frame(p, 1, done);
	switch (done % 6) {
	case 0:
		wire_put32(p + 4, UINT32_MAX); /* a huge count */
		break;
	case 1:
		wire_put32(p + 4, WIRE_COUNT_MAX + 1);
		break;
	case 2:
		wire_put32(p + 4, 0);
		break;
	case 3:
		p[1] = 77; /* no such type */
		break;
	case 4:
		p[2] = 1; /* a flag */
		break;
	case 5:
		p[31] = 1; /* reserved */
		break;
	}
	wrong += !put(fd, p, sizeof(p));
	ended += sees_end(fd);
	done++;
	close(fd);
}

static void
once_cut(void)
{
	uint8_t p[WIRE_REQUEST_SIZE];
	int fd = dial();

	frame(p, 1, done);
	(void)put(fd, p, done % 2 == 0 ? sizeof(p) : 1 + done % 31);
	done++;
	close(fd);
}

static void
once_flood(void)
{
	close(dial());
	done++;
}

static void
once_brief(void)
{
	uint8_t p[WIRE_REQUEST_SIZE];
	uint64_t last = 0, ids = 0;

	for (unsigned i = 0; i < nconns; i++)
		fds[i] = dial();
	for (unsigned i = 0; i < nconns; i++) {
		frame(p, 1, i);
		if (put(fds[i], p, sizeof(p)) &&
		    get_batch(fds[i], i, &last, &ids))
			done++;
		else
			wrong++;
		close(fds[i]);
	}
	if (done + wrong >= nrequests)
		stopping = 1;
}

/* ---- many connections at once --------------------------------------------------------- */

static void
dial_all(void)
{
	for (unsigned i = 0; i < nconns; i++)
		fds[i] = dial();
	done = nconns;
	print_counts(); /* they stand */
	done = 0;
}

/* Counts those that the agent closed, until it is told to stop. */
static void
wait_for_ends(void)
{
	static struct pollfd p[CONNECTIONS_MAX];

	for (unsigned i = 0; i < nconns; i++)
		p[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
	while (!stopping && ended < nconns) {
		if (poll(p, nconns, 100) <= 0)
			continue;
		for (unsigned i = 0; i < nconns; i++) {
			uint8_t byte;

			if (p[i].revents == 0)
				continue;
			wrong += recv(p[i].fd, &byte, 1, 0) > 0;
			ended++;
			p[i].fd = -1;
		}
	}
	while (!stopping)
		(void)poll(NULL, 0, 100);
}

static void
be_half(void)
{
	uint8_t p[WIRE_REQUEST_SIZE];

	dial_all();
	frame(p, 1, 0);
	for (unsigned i = 0; i < nconns; i++)
		wrong += !put(fds[i], p, 1 + i % (WIRE_REQUEST_SIZE - 1));
	wait_for_ends();
}

static void
be_mute(void)
{
	dial_all();
	wait_for_ends();
}

static void
be_drip(void)
{
	uint8_t p[WIRE_REQUEST_SIZE];
	uint64_t last = 0, ids = 0;

	dial_all();
	for (uint64_t n = 0; !stopping; n++) {
		frame(p, 1, n);
		for (size_t at = 0; at < sizeof(p); at++) {
			for (unsigned i = 0; i < nconns; i++)
				wrong += !put(fds[i], p + at, 1);
		}
		for (unsigned i = 0; i < nconns; i++) {
			wrong += !get_batch(fds[i], n, &last, &ids);
			last = 0; /* order holds within a connection */
			done++;
		}
	}
}

static void
be_deaf(void)
{
	uint8_t p[BLOCK * WIRE_REQUEST_SIZE];
	const struct timespec pause = { .tv_nsec = NS_PER_MS };

	dial_all();
	for (unsigned i = 0; i < BLOCK; i++) {
		frame(p + (size_t)i * WIRE_REQUEST_SIZE, i % 2, i);
		/* every other one asks for the status, a long reply */
		if (i % 2 == 0)
			p[(size_t)i * WIRE_REQUEST_SIZE + 1] = WIRE_STATUS;
	}
	while (!stopping) {
		for (unsigned i = 0; i < nconns; i++) {
			ssize_t n = send(
			    fds[i], p, sizeof(p), MSG_DONTWAIT | MSG_NOSIGNAL);

			/* a part of a request would be another attack */
			if (n > 0 && n % WIRE_REQUEST_SIZE != 0)
				fds[i] = dial();
			else if (n > 0)
				done += (uint64_t)n / WIRE_REQUEST_SIZE;
		}
		(void)nanosleep(&pause, NULL);
	}
	for (unsigned i = 0; i < nconns; i++) {
		int n = 0;

		if (ioctl(fds[i], FIONREAD, &n) == 0)
			held += (uint64_t)n;
	}
}

static void
be_greedy(void)
{
	static uint64_t last[CONNECTIONS_MAX], ids;
	static struct pollfd p[CONNECTIONS_MAX];
	uint8_t rq[WIRE_REQUEST_SIZE];

	dial_all();
	frame(rq, WIRE_COUNT_MAX, 0);
	for (unsigned i = 0; i < nconns; i++) {
		p[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
		wrong += !put(fds[i], rq, sizeof(rq));
	}
	while (!stopping) {
		if (poll(p, nconns, 100) <= 0)
			continue;
		for (unsigned i = 0; i < nconns; i++) {
			if (p[i].revents == 0)
				continue;
			wrong += !get_batch(fds[i], 0, &last[i], &ids);
			wrong += !put(fds[i], rq, sizeof(rq));
			done = ids;
		}
	}
}

/* Any reply will do; true if it was a grant, and then *last is its last ID. */
static bool
get_any(int fd, uint64_t *last)
{
	uint8_t p[WIRE_REPLY_MAX];
	struct wire_header h;
	struct wire_run r;

	if (!get(fd, p, WIRE_HEADER_SIZE))
		return (false);
	wire_get_header(p, &h);
	if (h.length > WIRE_BODY_MAX || !get(fd, p, h.length))
		return (false);
	if (h.status != WIRE_OK)
		return (false);
	wire_get_run(p + WIRE_BATCH_SIZE, &r);
	*last = r.first + (r.count - 1) * r.stride;
	return (true);
}

static void
be_liar(void)
{
	uint8_t p[WIRE_REQUEST_SIZE];
	uint64_t last = 0;

	dial_all();
	for (uint64_t n = 0; !stopping; n++) {
		frame(p, 1, n);
		if (n > 0)
			wire_put64(
			    p + 16, ((last | 0xfff) - 1) + (n % 7 << 22));
		for (unsigned i = 0; i < nconns; i++)
			wrong += !put(fds[i], p, sizeof(p));
		for (unsigned i = 0; i < nconns; i++)
			done += get_any(fds[i], &last);
		if (n % 16 == 15) { /* where time is now */
			frame(p, 1, n);
			wrong += !put(fds[0], p, sizeof(p)) ||
				 !get_any(fds[0], &last);
		}
	}
}

/* ---- many requests at once ---------------------------------------------------------------- */

/*
 * Sends until nothing was taken for a while: the rest must not be lost.  The
 * kernel takes so few bytes whole or not at all.
 */
static uint64_t
send_ahead(int fd, uint64_t from, int wait_ms)
{
	uint8_t p[BLOCK * WIRE_REQUEST_SIZE];
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };

	while (from < nrequests) {
		size_t n = 0;

		for (; n < BLOCK && from + n < nrequests; n++)
			frame(p + n * WIRE_REQUEST_SIZE, 1, from + n);
		if (send(fd, p, n * WIRE_REQUEST_SIZE,
			MSG_DONTWAIT | MSG_NOSIGNAL) ==
		    (ssize_t)(n * WIRE_REQUEST_SIZE))
			from += n;
		else if (poll(&pfd, 1, wait_ms) != 1)
			break;
	}
	return (from);
}

static void
be_pipeline(void)
{
	uint64_t sent = 0, last = 0, ids = 0;
	int fd = dial();

	sent = send_ahead(fd, 0, 500);
	printf("{\"ahead\": %" PRIu64 "}\n", sent);
	fflush(stdout);
	for (done = 0; done < nrequests && wrong == 0; done++) {
		wrong += !get_batch(fd, done, &last, &ids);
		if (sent < nrequests && done + 1 == sent)
			sent = send_ahead(fd, sent, 20);
	}
	wrong += ids != nrequests;
	close(fd);
}

/* ---- start ----------------------------------------------------------------------------------- */

static const struct kind {
	const char *name;
	void (*run)(void);
	bool again; /* until it is told to stop */
} kinds[] = {
	{ "good", be_good, false },
	{ "half", be_half, false },
	{ "drip", be_drip, false },
	{ "version", once_version, true },
	{ "bad", once_bad, true },
	{ "deaf", be_deaf, false },
	{ "mute", be_mute, false },
	{ "cut", once_cut, true },
	{ "flood", once_flood, true },
	{ "greedy", be_greedy, false },
	{ "liar", be_liar, false },
	{ "brief", once_brief, true },
	{ "pipeline", be_pipeline, false },
};

static void
run(const struct kind *k)
{
	do
		k->run();
	while (k->again && !stopping);
	if (k->run != be_good)
		print_counts();
}

int
main(int argc, char **argv)
{
	const struct sigaction act = { .sa_handler = on_signal,
		.sa_flags = SA_RESTART };
	struct rlimit rl;

	if (argc < 3) {
		fputs("usage: badpeer KIND SOCKET [CONNECTIONS [REQUESTS]]\n",
		    stderr);
		return (64);
	}
	path = argv[2];
	if (argc > 3)
		nconns = (unsigned)strtoul(argv[3], NULL, 10);
	if (argc > 4)
		nrequests = strtoull(argv[4], NULL, 10);
	if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
		rl.rlim_cur = rl.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &rl);
	}
	if (nconns > CONNECTIONS_MAX || nrequests >= SAMPLES_MAX ||
	    sigaction(SIGTERM, &act, NULL) == -1)
		die("start");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].name, argv[1]) == 0) {
			run(&kinds[i]);
			return (0);
		}
	}
	fputs("badpeer: no such kind\n", stderr);
	return (64);
}
