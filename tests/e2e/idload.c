/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idload - an application that takes IDs from libfirn with many threads (and
 * forked processes) on one handle, writes down each ID in the order in which
 * its thread got it, and counts what failed.
 *
 * Invariant: an ID is in exactly one thread's file, once per time it was
 * handed out; nothing is dropped, sorted or made unique on the way, so that
 * idcheck sees what an application would have seen.
 *
 * PREFIX.P.T.ids     64-bit IDs of thread T of process P
 * PREFIX.P.T.pairs   clock readings around single calls, and their ID
 * PREFIX.P.T.events  text: a line whenever the outcome of calls changes
 * PREFIX.progress    counters of all threads (struct progress), live
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "firn.h"

#define ERRORS_MAX 16 /* errors are small negative numbers */
#define SLOTS_MAX 1024
#define BUFFER_IDS 8192u
#define BUFFER_PAIRS 256u
#define PAIR_EVERY 512u /* calls at full speed; every call when paced */
#define MANY_MAX 65536u
#define PATH_ROOM 512
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

enum mode { MODE_NEXT, MODE_MANY, MODE_TRY };

struct pair {
	int64_t before_ns, after_ns;
	uint64_t id;
};

/* Shared by all processes and mapped from PREFIX.progress. */
struct slot {
	_Atomic uint64_t ids, calls, failed;
	_Atomic uint64_t longest_ns; /* any call */
	_Atomic int64_t last_ok_wall_ns; /* after the last call that gave one */
	_Atomic uint64_t longest_gap_ns; /* between two calls that gave one */
	_Atomic uint64_t errors[ERRORS_MAX];
	_Atomic uint64_t finished;
};

struct progress {
	struct slot slot[SLOTS_MAX];
};

struct settings {
	struct firn_options firn;
	enum mode mode;
	unsigned threads, processes, batch;
	uint64_t count; /* per thread; 0: until time is up */
	double seconds, rate;
	unsigned pause_ms; /* after an error */
	const char *prefix;
};

struct output {
	int fd;
	size_t used; /* bytes in buffer */
	uint8_t buffer[BUFFER_IDS * sizeof(uint64_t)];
};

struct thread {
	const struct settings *set;
	struct firn *handle;
	struct slot *slot;
	unsigned process, number;
	struct output ids, pairs;
	int events_fd;
	int last_error; /* of the call before: events tell changes */
	bool any_call;
	int64_t last_ok_ns; /* CLOCK_MONOTONIC */
	pthread_t tid;
};

static _Atomic int stopping; /* also set by a signal */
static struct progress *progress;
static pid_t children[SLOTS_MAX];
static unsigned nchildren;

static void
on_signal(int sig)
{
	(void)sig;
	stopping = 1;
}

static void
die(const char *what)
{
	fprintf(stderr, "idload: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t
read_clock(clockid_t id)
{
	struct timespec ts;

	if (clock_gettime(id, &ts) == -1)
		die("clock_gettime");
	return ((int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec);
}

static void
sleep_until(int64_t when_ns)
{
	struct timespec ts = { when_ns / NS_PER_S, when_ns % NS_PER_S };

	while (!stopping && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts,
				NULL) == EINTR)
		continue;
}

/* ---- files ------------------------------------------------------------- */

static void
write_all(int fd, const void *data, size_t n)
{
	const uint8_t *p = data;

	while (n > 0) {
		ssize_t k = write(fd, p, n);

		if (k == -1 && errno == EINTR)
			continue;
		if (k == -1)
			die("write");
		p += k;
		n -= (size_t)k;
	}
}

static int
open_file(const struct settings *set, unsigned process, unsigned thread,
    const char *suffix)
{
	char path[PATH_ROOM];
	int fd, n;

	n = snprintf(path, sizeof(path), "%s.%u.%u.%s", set->prefix, process,
	    thread, suffix);
	if (n < 0 || (size_t)n >= sizeof(path)) {
		errno = ENAMETOOLONG;
		die(set->prefix);
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd == -1)
		die(path);
	return (fd);
}

static void
output_flush(struct output *o)
{
	write_all(o->fd, o->buffer, o->used);
	o->used = 0;
}

static void
output_put(struct output *o, const void *data, size_t n)
{
	const uint8_t *p = data;

	while (n > 0) {
		size_t k = sizeof(o->buffer) - o->used;

		if (k > n)
			k = n;
		memcpy(o->buffer + o->used, p, k);
		o->used += k;
		p += k;
		n -= k;
		if (o->used == sizeof(o->buffer))
			output_flush(o);
	}
}

/* ---- what is counted --------------------------------------------------- */

static void
put_event(struct thread *t, int rc)
{
	char why[200] = "", line[300];
	int n;

	if (rc < 0)
		(void)firn_why(t->handle, why, sizeof(why));
	n = snprintf(line, sizeof(line), "%" PRId64 " %s %s\n",
	    read_clock(CLOCK_REALTIME) / NS_PER_MS,
	    rc == 0 ? "ok" : firn_errname(rc), why);
	write_all(t->events_fd, line, (size_t)n);
}

static void
raise_to(_Atomic uint64_t *longest, int64_t ns)
{
	if (ns > 0 && (uint64_t)ns > *longest)
		*longest = (uint64_t)ns;
}

/* Counts one call's outcome: rc, and the IDs that it gave. */
static void
count_call(
    struct thread *t, int rc, uint64_t got, int64_t before_ns, int64_t after_ns)
{
	struct slot *s = t->slot;

	s->calls++;
	s->ids += got;
	raise_to(&s->longest_ns, after_ns - before_ns);
	if (rc < 0) {
		s->failed++;
		s->errors[-rc < ERRORS_MAX ? -rc : 0]++;
	}
	if (!t->any_call || rc != t->last_error)
		put_event(t, rc);
	t->any_call = true;
	t->last_error = rc;
	if (got == 0)
		return;
	if (t->last_ok_ns != 0)
		raise_to(&s->longest_gap_ns, after_ns - t->last_ok_ns);
	t->last_ok_ns = after_ns;
	s->last_ok_wall_ns = read_clock(CLOCK_REALTIME);
}

/* ---- calls ------------------------------------------------------------- */

/*
 * firn_try_next() as an event loop would use it: poll, then again, until the
 * deadline of a call.
 */
static int
try_until(struct thread *t, uint64_t *id)
{
	int64_t deadline = read_clock(CLOCK_MONOTONIC) +
			   (int64_t)t->set->firn.timeout_ms * NS_PER_MS;
	int rc;

	while ((rc = firn_try_next(t->handle, id)) == FIRN_EAGAIN) {
		int64_t left = deadline - read_clock(CLOCK_MONOTONIC);
		struct pollfd p = { .fd = -1 };
		int fd = firn_poll_fd(t->handle, &p.events);

		if (left <= 0)
			return (FIRN_EAGAIN);
		if (fd >= 0)
			p.fd = fd;
		if (fd < 0 || left < 10 * NS_PER_MS)
			left = NS_PER_MS;
		(void)poll(&p, 1, (int)(left / NS_PER_MS));
	}
	return (rc);
}

/* One call in the mode asked for; *got IDs lie in ids[]. */
static int
take(struct thread *t, uint64_t *ids, size_t *got)
{
	size_t want = t->set->batch;
	int rc;

	if (t->set->mode == MODE_MANY) {
		uint64_t left = t->set->count - t->slot->ids;

		if (t->set->count > 0 && left < want)
			want = (size_t)left;
		return (firn_next_many(t->handle, ids, want, got));
	}
	rc = t->set->mode == MODE_NEXT ? firn_next(t->handle, ids)
				       : try_until(t, ids);
	*got = rc == 0;
	return (rc);
}

/*
 * A call between two readings of the wall clock, so that the age of its ID
 * can be judged, and counted.
 */
static void
take_timed(struct thread *t, uint64_t *ids)
{
	struct pair p;
	int64_t before_ns = read_clock(CLOCK_MONOTONIC);
	size_t got = 0;
	int rc;

	p.before_ns = read_clock(CLOCK_REALTIME);
	rc = take(t, ids, &got);
	p.after_ns = read_clock(CLOCK_REALTIME);
	count_call(t, rc, got, before_ns, read_clock(CLOCK_MONOTONIC));
	output_put(&t->ids, ids, got * sizeof(*ids));
	if (got > 0) {
		p.id = ids[0];
		output_put(&t->pairs, &p, sizeof(p));
	}
	if (rc < 0 && t->set->pause_ms > 0 && !stopping)
		(void)poll(NULL, 0, (int)t->set->pause_ms);
}

/*
 * Plain calls, as fast as they come, up to the first that fails.  The coarse
 * clock costs little and still shows a call that hung.
 */
static void
take_burst(struct thread *t, unsigned calls)
{
	int64_t before_ns = read_clock(CLOCK_MONOTONIC_COARSE), after_ns;
	uint64_t id, n = 0;
	int rc = 0;

	while (n < calls && (rc = firn_next(t->handle, &id)) == 0) {
		output_put(&t->ids, &id, sizeof(id));
		n++;
		after_ns = read_clock(CLOCK_MONOTONIC_COARSE);
		raise_to(&t->slot->longest_ns, after_ns - before_ns);
		before_ns = after_ns;
	}
	t->slot->calls += n;
	t->slot->ids += n;
	if (rc < 0)
		count_call(
		    t, rc, 0, before_ns, read_clock(CLOCK_MONOTONIC_COARSE));
	else
		t->last_ok_ns = read_clock(CLOCK_MONOTONIC);
}

static bool
more(const struct thread *t, int64_t end_ns)
{
	if (stopping)
		return (false);
	if (t->set->count > 0 && t->slot->ids >= t->set->count)
		return (false);
	return (t->set->seconds <= 0 || read_clock(CLOCK_MONOTONIC) < end_ns);
}

static void *
run_thread(void *arg)
{
	struct thread *t = arg;
	const struct settings *set = t->set;
	uint64_t *ids = malloc(MANY_MAX * sizeof(*ids));
	int64_t start_ns = read_clock(CLOCK_MONOTONIC), next_ns = start_ns;
	int64_t end_ns = start_ns + (int64_t)(set->seconds * 1e9);
	bool burst = set->mode == MODE_NEXT && set->rate <= 0;

	if (ids == NULL)
		die("malloc");
	while (more(t, end_ns)) {
		take_timed(t, ids);
		if (set->rate > 0) {
			next_ns += (int64_t)(1e9 / set->rate);
			sleep_until(next_ns);
		}
		if (burst && t->last_error == 0 &&
		    (set->count == 0 ||
			t->slot->ids + PAIR_EVERY <= set->count))
			take_burst(t, PAIR_EVERY - 1);
	}
	output_flush(&t->ids);
	output_flush(&t->pairs);
	t->slot->finished = 1;
	free(ids);
	return (NULL);
}

/* ---- processes --------------------------------------------------------- */

static struct thread *
thread_new(const struct settings *set, struct firn *handle, unsigned process,
    unsigned number)
{
	struct thread *t = calloc(1, sizeof(*t));
	unsigned slot = process * (set->threads + 1) + number;

	if (t == NULL || slot >= SLOTS_MAX)
		die("too many threads");
	t->set = set;
	t->handle = handle;
	t->slot = &progress->slot[slot];
	t->process = process;
	t->number = number;
	t->ids.fd = open_file(set, process, number, "ids");
	t->pairs.fd = open_file(set, process, number, "pairs");
	t->events_fd = open_file(set, process, number, "events");
	return (t);
}

static void
thread_free(struct thread *t)
{
	close(t->ids.fd);
	close(t->pairs.fd);
	close(t->events_fd);
	free(t);
}

/* Threads 1.. of one process; thread 0 is the one that forked. */
static void
run_threads(const struct settings *set, struct firn *handle, unsigned process)
{
	struct thread **t = calloc(set->threads, sizeof(struct thread *));

	if (t == NULL)
		die("calloc");
	for (unsigned i = 0; i < set->threads; i++) {
		t[i] = thread_new(set, handle, process, i + 1);
		errno = pthread_create(&t[i]->tid, NULL, run_thread, t[i]);
		if (errno != 0)
			die("pthread_create");
	}
	for (unsigned i = 0; i < set->threads; i++) {
		(void)pthread_join(t[i]->tid, NULL);
		thread_free(t[i]);
	}
	free(t);
}

/*
 * Fills the handle's cache before the fork, so that a child which inherits
 * cached IDs would be found out.
 */
static void
warm_up(const struct settings *set, struct firn *handle)
{
	struct thread *t = thread_new(set, handle, 0, 0);
	uint64_t ids[1];

	take_timed(t, ids);
	if (t->last_error == 0 && set->mode == MODE_NEXT)
		take_burst(t, 3000);
	output_flush(&t->ids);
	output_flush(&t->pairs);
	t->slot->finished = 1;
	thread_free(t);
}

static void
fork_children(const struct settings *set, struct firn *handle)
{
	for (unsigned p = 1; p <= set->processes; p++) {
		pid_t pid = fork();

		if (pid == -1)
			die("fork");
		if (pid == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
			run_threads(set, handle, p);
			firn_close(handle);
			exit(0);
		}
		children[nchildren++] = pid;
	}
}

static void
tell_children(void)
{
	for (unsigned i = 0; i < nchildren; i++) {
		if (children[i] > 0)
			(void)kill(children[i], SIGTERM);
	}
}

/* Waits for one child, stopping all of them once if asked to stop. */
static bool
reap_child(unsigned i, bool *told)
{
	int status;
	pid_t pid;

	for (;;) {
		if (stopping && !*told) {
			tell_children();
			*told = true;
		}
		pid = waitpid(children[i], &status, *told ? 0 : WNOHANG);
		if (pid > 0 || (pid == -1 && errno != EINTR))
			break;
		if (pid == 0)
			(void)poll(NULL, 0, 20);
	}
	children[i] = 0;
	return (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* True if every child did well. */
static bool
reap_children(void)
{
	bool good = true, told = false;

	for (unsigned i = 0; i < nchildren; i++)
		good = reap_child(i, &told) && good;
	return (good);
}

/* ---- start and summary ------------------------------------------------- */

static void
map_progress(const struct settings *set)
{
	char path[PATH_ROOM];
	int fd;

	(void)snprintf(path, sizeof(path), "%s.progress", set->prefix);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd == -1 || ftruncate(fd, (off_t)sizeof(*progress)) == -1)
		die(path);
	progress = mmap(
	    NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (progress == MAP_FAILED)
		die(path);
	close(fd);
}

static void
print_errors(void)
{
	const char *comma = "";

	printf("\"errors\": {");
	for (int e = 0; e < ERRORS_MAX; e++) {
		uint64_t n = 0;

		for (unsigned i = 0; i < SLOTS_MAX; i++)
			n += progress->slot[i].errors[e];
		if (n == 0)
			continue;
		printf("%s\"%s\": %" PRIu64, comma, firn_errname(-e), n);
		comma = ", ";
	}
	printf("}");
}

static void
print_summary(struct firn *handle, int64_t elapsed_ns)
{
	uint64_t ids = 0, calls = 0, failed = 0, longest_ns = 0, gap_ns = 0;
	char why[200] = "";

	for (unsigned i = 0; i < SLOTS_MAX; i++) {
		const struct slot *s = &progress->slot[i];

		ids += s->ids;
		calls += s->calls;
		failed += s->failed;
		if (s->longest_ns > longest_ns)
			longest_ns = s->longest_ns;
		if (s->longest_gap_ns > gap_ns)
			gap_ns = s->longest_gap_ns;
	}
	(void)firn_why(handle, why, sizeof(why));
	for (char *p = why; *p != '\0'; p++) {
		if (*p == '"' || *p == '\\' || (unsigned char)*p < ' ')
			*p = '\'';
	}
	printf("{\"ids\": %" PRIu64 ", \"calls\": %" PRIu64
	       ", \"failed\": %" PRIu64
	       ", \"longest_ms\": %.3f, \"gap_ms\": %.3f, \"seconds\": "
	       "%.3f, \"why\": \"%s\", ",
	    ids, calls, failed, (double)longest_ns / 1e6, (double)gap_ns / 1e6,
	    (double)elapsed_ns / 1e9, why);
	print_errors();
	printf("}\n");
}

static const struct option options[] = {
	{ "socket", required_argument, NULL, 's' },
	{ "realm", required_argument, NULL, 'r' },
	{ "threads", required_argument, NULL, 't' },
	{ "processes", required_argument, NULL, 'P' },
	{ "seconds", required_argument, NULL, 'S' },
	{ "count", required_argument, NULL, 'n' },
	{ "rate", required_argument, NULL, 'R' },
	{ "mode", required_argument, NULL, 'm' },
	{ "batch", required_argument, NULL, 'b' },
	{ "timeout", required_argument, NULL, 'T' },
	{ "ttl", required_argument, NULL, 'l' },
	{ "pause", required_argument, NULL, 'p' },
	{ "out", required_argument, NULL, 'o' },
	{ NULL, 0, NULL, 0 },
};

static void
usage(void)
{
	fputs("usage: idload --out PREFIX [--socket PATH] [--realm NAME]\n"
	      "           [--threads N] [--processes N] [--seconds S] "
	      "[--count N]\n"
	      "           [--rate PER_SECOND] [--mode next|many|try] "
	      "[--batch N]\n"
	      "           [--timeout MS] [--ttl MS] [--pause MS]\n"
	      "Counts and rates are per thread.  Ends at SIGTERM, too.\n",
	    stderr);
	exit(64);
}

static void
set_mode(struct settings *set, const char *name)
{
	if (strcmp(name, "next") == 0)
		set->mode = MODE_NEXT;
	else if (strcmp(name, "many") == 0)
		set->mode = MODE_MANY;
	else if (strcmp(name, "try") == 0)
		set->mode = MODE_TRY;
	else
		usage();
}

static void
set_option(struct settings *set, int o, const char *value)
{
	unsigned n = (unsigned)strtoul(value, NULL, 10);

	if (o == 's')
		set->firn.socket = value;
	else if (o == 'r')
		set->firn.realm = value;
	else if (o == 't')
		set->threads = n;
	else if (o == 'P')
		set->processes = n;
	else if (o == 'S')
		set->seconds = strtod(value, NULL);
	else if (o == 'n')
		set->count = strtoull(value, NULL, 10);
	else if (o == 'R')
		set->rate = strtod(value, NULL);
	else if (o == 'm')
		set_mode(set, value);
	else if (o == 'b')
		set->batch = n;
	else if (o == 'T')
		set->firn.timeout_ms = n;
	else if (o == 'l')
		set->firn.ttl_ms = n;
	else if (o == 'p')
		set->pause_ms = n;
	else if (o == 'o')
		set->prefix = value;
	else
		usage();
}

static void
catch_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };

	if (sigaction(SIGTERM, &sa, NULL) == -1 ||
	    sigaction(SIGINT, &sa, NULL) == -1)
		die("sigaction");
}

int
main(int argc, char **argv)
{
	struct settings set = {
		.firn = { .size = sizeof(set.firn), .timeout_ms = 1000 },
		.threads = 1,
		.batch = 1000,
		.pause_ms = 10,
	};
	struct firn *handle;
	int64_t start_ns = read_clock(CLOCK_MONOTONIC);
	int o, rc;
	bool good;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
		set_option(&set, o, optarg != NULL ? optarg : "");
	if (set.prefix == NULL || set.threads == 0 || set.batch == 0 ||
	    set.batch > MANY_MAX)
		usage();
	catch_signals();
	map_progress(&set);
	rc = firn_open(&handle, &set.firn);
	if (rc != 0) {
		fprintf(stderr, "idload: firn_open: %s\n", firn_strerror(rc));
		return (1);
	}
	if (set.processes > 0)
		warm_up(&set, handle);
	fork_children(&set, handle);
	run_threads(&set, handle, 0);
	good = reap_children();
	print_summary(handle, read_clock(CLOCK_MONOTONIC) - start_ns);
	firn_close(handle);
	return (good ? 0 : 1);
}
