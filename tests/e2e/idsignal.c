/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idsignal - an application whose threads are interrupted a thousand times a
 * second, without SA_RESTART, in whatever they do with libfirn.
 *
 * idsignal SOCKET PREFIX CALLS THREADS [no-wipe]
 *
 * Ends after so many calls of each thread, or at SIGTERM if that is 0.
 * With no-wipe (one thread) each call asks for exactly what it gives out, so
 * the agent's count of IDs issued must be that of the files.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "idtool.h"

#define TIMEOUT_MS 60000
#define THREADS_MAX 16
#define MANY 3000

struct thread {
	pthread_t thread;
	unsigned number, seed;
	uint64_t calls;
	struct idfile shared, own; /* of the common handle, of handles each
				    * for one ID */
};

static const char *path, *prefix;
static struct firn *handle;
static bool wipes = true;
static uint64_t calls_each;
static atomic_bool stopping;
static atomic_ullong ticks;

static void
on_tick(int sig)
{
	(void)sig;
	ticks++;
}

static void
on_term(int sig)
{
	(void)sig;
	stopping = true;
}

/* A timer of this thread's own. */
static timer_t
tick_start(void)
{
	struct sigevent ev = { .sigev_notify = SIGEV_THREAD_ID,
		.sigev_signo = SIGRTMIN };
	struct itimerspec every = { { 0, NS_PER_MS }, { 0, NS_PER_MS } };
	timer_t timer;

	ev._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &ev, &timer) == -1 ||
	    timer_settime(timer, 0, &every, NULL) == -1)
		die("timer_create");
	return (timer);
}

static void
must(struct firn *f, const char *what, int rc)
{
	if (rc != 0)
		die_firn(f, what, rc);
}

static void
call_next(struct thread *t)
{
	for (int i = 0; i < 100; i++) {
		uint64_t id;

		must(handle, "firn_next", firn_next(handle, &id));
		idfile_put(&t->shared, id);
	}
}

static void
call_many(struct thread *t)
{
	static _Thread_local uint64_t ids[MANY];
	size_t n = 1 + (size_t)rand_r(&t->seed) % MANY, got;

	must(handle, "firn_next_many", firn_next_many(handle, ids, n, &got));
	if (got == 0)
		die("success without an ID");
	for (size_t i = 0; i < got; i++)
		idfile_put(&t->shared, ids[i]);
}

/* Other threads may take the reply, so it does not wait for ever. */
static void
call_try(struct thread *t)
{
	uint64_t id;
	int rc;

	while ((rc = firn_try_next(handle, &id)) != 0) {
		struct pollfd p = { .fd = -1 };

		if (rc != FIRN_EAGAIN && rc != FIRN_EAWAY)
			die_firn(handle, "firn_try_next", rc);
		p.fd = firn_poll_fd(handle, &p.events);
		(void)poll(&p, 1, 10);
	}
	idfile_put(&t->shared, id);
}

static void
call_open(struct thread *t)
{
	struct firn *f = handle_open(path, TIMEOUT_MS, 0);
	struct firn_layout l;
	uint64_t id;

	must(f, "firn_get_layout", firn_get_layout(f, &l));
	must(f, "firn_next", firn_next(f, &id));
	idfile_put(&t->own, id);
	firn_close(f);
}

static void *
thread_main(void *arg)
{
	struct thread *t = arg;
	timer_t timer = tick_start();

	while (!stopping && (calls_each == 0 || t->calls < calls_each)) {
		switch (rand_r(&t->seed) % 5) {
		case 0:
			call_next(t);
			break;
		case 1:
			call_many(t);
			break;
		case 2:
			call_try(t);
			break;
		case 3:
			call_open(t);
			break;
		case 4: /* so that what is in memory grows old */
			sleep_ns(rand_r(&t->seed) % (10 * NS_PER_MS));
			break;
		}
		t->calls++;
	}
	timer_delete(timer);
	idfile_flush(&t->shared);
	idfile_flush(&t->own);
	return (NULL);
}

int
main(int argc, char **argv)
{
	static struct thread threads[THREADS_MAX];
	struct sigaction sa = { .sa_handler = on_tick }; /* no SA_RESTART */
	struct sigaction term = { .sa_handler = on_term };
	unsigned n, seed = (unsigned)getpid();
	uint64_t calls = 0;

	if (argc < 5)
		return (64);
	path = argv[1];
	prefix = argv[2];
	n = (unsigned)strtoul(argv[4], NULL, 10);
	if (n == 0 || n > THREADS_MAX)
		return (64);
	if (argc > 5) {
		wipes = false;
		refuse_wiping();
	}
	if (sigaction(SIGRTMIN, &sa, NULL) == -1 ||
	    sigaction(SIGTERM, &term, NULL) == -1)
		die("sigaction");
	fprintf(stderr, "seed %u\n", seed);
	handle = handle_open(path, TIMEOUT_MS, wipes ? 20 : TIMEOUT_MS);
	calls_each = strtoull(argv[3], NULL, 10);
	for (unsigned i = 0; i < n; i++) {
		threads[i].number = i;
		threads[i].seed = seed + i;
		idfile_open(&threads[i].shared, prefix, 0, i);
		idfile_open(&threads[i].own, prefix, 1, i);
		if (pthread_create(&threads[i].thread, NULL, thread_main,
			&threads[i]) != 0)
			die("pthread_create");
	}
	for (unsigned i = 0; i < n; i++) {
		(void)pthread_join(threads[i].thread, NULL);
		calls += threads[i].calls;
	}
	firn_close(handle);
	printf("{\"calls\": %" PRIu64 ", \"ticks\": %llu}\n", calls, ticks);
	return (0);
}
