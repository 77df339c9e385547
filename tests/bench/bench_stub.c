/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_stub - what an ID costs the application: from the cache with one and
 * two threads, by the array, at a steady million a second, and uncached;
 * against the agent that listens on $FIRN_SOCKET.
 *
 * One "name value unit" a line on standard output.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "firn.h"

#define LOOP_NS INT64_C(500000000)
#define CHUNK 1000 /* IDs between two looks at the clock */
#define MANY 4096
#define PACED 1000000 /* IDs, and IDs a second */
#define UNCACHED 20000

static int64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec);
}

static void
row(const char *name, double value, const char *unit)
{
	printf("%-28s %12.2f %s\n", name, value, unit);
	fflush(stdout);
}

static void
check(int rc, struct firn *f)
{
	char why[256];

	if (rc == FIRN_OK)
		return;
	(void)firn_why(f, why, sizeof(why));
	fprintf(stderr, "bench_stub: %s: %s\n", firn_errname(rc), why);
	exit(69);
}

static struct firn *
open_handle(uint32_t max_batch)
{
	struct firn_options o = {
		.size = sizeof(o),
		.timeout_ms = 5000,
		.max_batch = max_batch,
	};
	struct firn *f;

	check(firn_open(&f, &o), NULL);
	return (f);
}

/* ---- from the cache ---- */

struct looper {
	struct firn *f;
	int64_t until_ns;
	uint64_t taken;
};

static void *
looper_main(void *arg)
{
	struct looper *l = arg;
	uint64_t id, last = 0, taken = 0;

	while (now_ns() < l->until_ns) {
		for (int i = 0; i < CHUNK; i++) {
			check(firn_next(l->f, &id), l->f);
			if (id <= last) {
				fprintf(stderr, "bench_stub: IDs fell\n");
				exit(1);
			}
			last = id;
		}
		taken += CHUNK;
	}
	l->taken = taken;
	return (NULL);
}

static double
loop_threads(unsigned threads)
{
	struct firn *f = open_handle(0);
	struct looper l[2];
	pthread_t t[2];
	int64_t start_ns = now_ns(), took_ns;
	uint64_t taken = 0;

	for (unsigned i = 0; i < threads; i++) {
		l[i] =
		    (struct looper){ .f = f, .until_ns = start_ns + LOOP_NS };
		if (pthread_create(&t[i], NULL, looper_main, &l[i]) != 0)
			exit(1);
	}
	for (unsigned i = 0; i < threads; i++) {
		(void)pthread_join(t[i], NULL);
		taken += l[i].taken;
	}
	took_ns = now_ns() - start_ns;
	firn_close(f);
	return ((double)taken / (double)took_ns * 1e9);
}

static void
bench_cached(void)
{
	double one = loop_threads(1), two = loop_threads(2);

	row("next_1_thread", 1e9 / one, "ns/ID");
	row("next_2_threads", 1e9 / two, "ns/ID");
	row("next_2_threads_gain", two / one, "times");
}

static void
bench_many(void)
{
	static uint64_t ids[MANY];
	struct firn *f = open_handle(0);
	int64_t start_ns = now_ns(), took_ns;
	uint64_t taken = 0;
	size_t got;

	do {
		check(firn_next_many(f, ids, MANY, &got), f);
		taken += got;
		took_ns = now_ns() - start_ns;
	} while (took_ns < LOOP_NS);
	firn_close(f);
	row("next_many_4096", (double)took_ns / (double)taken, "ns/ID");
}

/* ---- tails ---- */

static int
compare_ns(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x < y ? -1 : x > y);
}

static void
row_tail(const char *name, int64_t *ns, size_t n)
{
	static const struct {
		const char *name;
		double share;
	} marks[] = { { "p50", 0.5 }, { "p99", 0.99 }, { "p99.9", 0.999 },
		{ "max", 1 } };
	char text[64];

	qsort(ns, n, sizeof(*ns), compare_ns);
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		size_t at = (size_t)(marks[i].share * (double)(n - 1));

		snprintf(text, sizeof(text), "%s_%s", name, marks[i].name);
		row(text, (double)ns[at], "ns");
	}
}

/*
 * One ID each microsecond, refills included; with no handle the same loop
 * takes none, to tell the stub's tail from the machine's.
 */
static void
bench_paced(struct firn *f, const char *name)
{
	static int64_t ns[PACED];
	int64_t due_ns = now_ns();
	uint64_t id = 0;

	for (size_t i = 0; i < PACED; i++) {
		int64_t t;

		due_ns += 1000000000 / PACED;
		do
			t = now_ns();
		while (t < due_ns);
		if (f != NULL)
			check(firn_next(f, &id), f);
		ns[i] = now_ns() - t;
		if (t - due_ns > 1000000) /* preempted: do not catch up */
			due_ns = t;
	}
	row_tail(name, ns, PACED);
}

static void
bench_uncached(void)
{
	static int64_t ns[UNCACHED];
	struct firn *f = open_handle(1);
	uint64_t id;

	for (size_t i = 0; i < UNCACHED; i++) {
		int64_t t = now_ns();

		check(firn_next(f, &id), f);
		ns[i] = now_ns() - t;
	}
	firn_close(f);
	row_tail("uncached", ns, UNCACHED);
}

/* What a short program pays: open, one ID, close. */
static void
bench_short(void)
{
	static int64_t ns[1000];
	uint64_t id;

	for (size_t i = 0; i < 1000; i++) {
		int64_t t = now_ns();
		struct firn *f = open_handle(0);

		check(firn_next(f, &id), f);
		firn_close(f);
		ns[i] = now_ns() - t;
	}
	row_tail("open_next_close", ns, 1000);
}

int
main(void)
{
	struct firn *f;

	bench_cached();
	bench_many();
	f = open_handle(0);
	bench_paced(f, "paced");
	firn_close(f);
	bench_paced(NULL, "paced_control");
	bench_uncached();
	bench_short();
	return (0);
}
