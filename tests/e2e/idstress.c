/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idstress - an application that does with libfirn all at once what others do
 * one at a time, and writes down each ID in the order in which its thread got
 * it from its handle.
 *
 * idstress SOCKET PREFIX SEED
 *
 * Threads come and end; each takes by turns from handles whose IDs live from
 * 1 ms to 1 s, by every call there is, and now and then from a handle of its
 * own, which it closes.  Meanwhile the process forks, and its children (with
 * threads, too) go on with the same handles.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "idtool.h"

#define TIMEOUT_MS 60000
#define HANDLES 6
#define THREADS 4
#define GENERATIONS 4 /* of threads */
#define BURSTS 60
#define SMALL_BATCH 400 /* else most of what the agent can issue is dropped */
#define MOST 300 /* IDs at once */
#define CHILD_BURSTS 15
#define FORKS 3 /* in each generation */

/* The tool's own limit: no threads in a child of a process with threads. */
#if defined(__SANITIZE_THREAD__)
#define CHILD_THREADS 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CHILD_THREADS 0
#endif
#endif
#ifndef CHILD_THREADS
#define CHILD_THREADS 2
#endif

static const uint32_t ttls_ms[HANDLES] = { 1, 3, 5, 8, 20, 1000 };

static const char *path, *prefix;
static unsigned seed, process; /* process: 0 is the parent */
static atomic_uint threads; /* of this process, so far */
static atomic_uint privates; /* handles of a thread's own, so far */
static struct firn *handles[HANDLES];

/* ---- one thread ---- */

struct thread {
	pthread_t thread;
	unsigned number, seed, bursts;
	struct idfile files[HANDLES];
};

static uint64_t
next_by_trying(struct firn *f)
{
	uint64_t id;
	int rc;

	while ((rc = firn_try_next(f, &id)) == FIRN_EAGAIN) {
		struct pollfd p = { .fd = -1 };

		p.fd = firn_poll_fd(f, &p.events);
		/* another thread may take the reply: so not for ever */
		(void)poll(&p, 1, 5);
	}
	if (rc != FIRN_OK)
		die_firn(f, "firn_try_next", rc);
	return (id);
}

static void
take_many(struct firn *f, struct idfile *file, size_t n)
{
	uint64_t ids[MOST];
	size_t got;
	int rc = firn_next_many(f, ids, n, &got);

	if (rc != FIRN_OK)
		die_firn(f, "firn_next_many", rc);
	for (size_t i = 0; i < got; i++)
		idfile_put(file, ids[i]);
}

static void
burst(struct firn *f, struct idfile *file, unsigned *dice)
{
	size_t n = 1 + (size_t)rand_r(dice) % MOST;
	uint64_t id;
	int rc;

	switch (rand_r(dice) % 4) {
	case 0:
		take_many(f, file, n);
		return;
	case 1:
		for (size_t i = 0; i < n / 8 + 1; i++)
			idfile_put(file, next_by_trying(f));
		return;
	}
	for (size_t i = 0; i < n; i++) {
		rc = firn_next(f, &id);
		if (rc != FIRN_OK)
			die_firn(f, "firn_next", rc);
		idfile_put(file, id);
	}
}

/* A handle that is closed with IDs in it; the next one may lie in its place. */
static void
private_handle(unsigned *dice)
{
	struct firn *f = handle_open(path, TIMEOUT_MS, 0);
	struct idfile file;

	idfile_open(&file, prefix, process, 100000 + privates++);
	for (int i = 0; i < 4; i++)
		burst(f, &file, dice);
	idfile_flush(&file);
	close(file.fd);
	firn_close(f);
}

static void *
thread_main(void *arg)
{
	struct thread *t = arg;

	for (unsigned i = 0; i < HANDLES; i++)
		idfile_open(
		    &t->files[i], prefix, process, t->number * HANDLES + i);
	for (unsigned i = 0; i < t->bursts; i++) {
		unsigned h = (unsigned)rand_r(&t->seed) % HANDLES;

		burst(handles[h], &t->files[h], &t->seed);
		if (i % 20 == 10)
			private_handle(&t->seed);
	}
	for (unsigned i = 0; i < HANDLES; i++) {
		idfile_flush(&t->files[i]);
		close(t->files[i].fd);
	}
	return (NULL);
}

static void
thread_init(struct thread *t, unsigned bursts)
{
	t->number = threads++;
	t->seed = seed + process * 1000 + t->number;
	t->bursts = bursts;
}

static void
thread_start(struct thread *t, unsigned bursts)
{
	thread_init(t, bursts);
	if (pthread_create(&t->thread, NULL, thread_main, t) != 0)
		die("pthread_create");
}

/* ---- processes ---- */

static void __attribute__((noreturn)) child_main(void)
{
	static struct thread own, others[CHILD_THREADS + 1];

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that failed */
	threads = privates = 0;
	for (int i = 0; i < CHILD_THREADS; i++)
		thread_start(&others[i], CHILD_BURSTS);
	thread_init(&own, CHILD_BURSTS);
	(void)thread_main(&own);
	for (int i = 0; i < CHILD_THREADS; i++)
		(void)pthread_join(others[i].thread, NULL);
	_exit(0);
}

static void
wait_children(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		int status;

		if (wait(&status) == -1)
			die("wait");
		if (status != 0) {
			fprintf(stderr, "a child: status %#x\n", status);
			_exit(1);
		}
	}
}

static void
generation(unsigned number)
{
	static struct thread t[THREADS], own;

	for (unsigned i = 0; i < THREADS; i++)
		thread_start(&t[i], BURSTS);
	for (unsigned i = 0; i < FORKS; i++) {
		thread_init(&own, BURSTS / 10);
		(void)thread_main(&own); /* so that the child has a part, too */
		switch (fork()) {
		case -1:
			die("fork");
		case 0:
			process = number * FORKS + i + 1;
			child_main();
		}
	}
	for (unsigned i = 0; i < THREADS; i++)
		(void)pthread_join(t[i].thread, NULL);
	wait_children(FORKS);
}

static void
print_stats(void)
{
	struct firn_stats sum = { 0 };

	for (unsigned i = 0; i < HANDLES; i++) {
		struct firn_stats s = { .size = sizeof(s) };

		if (firn_get_stats(handles[i], &s) != FIRN_OK)
			die("firn_get_stats");
		sum.hits += s.hits;
		sum.waits += s.waits;
		sum.refills += s.refills;
		sum.dropped += s.dropped;
		sum.reconnects += s.reconnects;
	}
	printf("{\"seed\": %u, \"hits\": %" PRIu64 ", \"waits\": %" PRIu64
	       ", \"refills\": %" PRIu64 ", \"dropped\": %" PRIu64
	       ", \"reconnects\": %" PRIu64 "}\n",
	    seed, sum.hits, sum.waits, sum.refills, sum.dropped,
	    sum.reconnects);
}

static struct firn *
shared_handle(uint32_t ttl_ms)
{
	const struct firn_options o = { .size = sizeof(o),
		.timeout_ms = TIMEOUT_MS,
		.socket = path,
		.max_batch = ttl_ms < 1000 ? SMALL_BATCH : 0,
		.ttl_ms = ttl_ms };
	struct firn *f;

	if (firn_open(&f, &o) != FIRN_OK)
		die("firn_open");
	return (f);
}

int
main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: idstress SOCKET PREFIX SEED\n");
		return (64);
	}
	path = argv[1];
	prefix = argv[2];
	seed = (unsigned)strtoul(argv[3], NULL, 10);
	for (unsigned i = 0; i < HANDLES; i++)
		handles[i] = shared_handle(ttls_ms[i]);
	for (unsigned i = 0; i < GENERATIONS; i++)
		generation(i);
	print_stats();
	for (unsigned i = 0; i < HANDLES; i++)
		firn_close(handles[i]);
	return (0);
}
