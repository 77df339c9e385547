/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_stub - what an ID costs the application, against the agent that
 * listens on $FIRN_SOCKET; one measurement a run, named by the first argument.
 */
#include <errno.h>
#include <pthread.h>

#include "bench.h"
#include "firn.h"

#define MANY 4096
#define CHECKED 2000000 /* IDs of each thread that are compared */
#define SHORTS 1000
#define METER_NS INT64_C(1000000)

static struct firn *handle;
static uint64_t last;

static void __attribute__((noreturn)) fail(const char *what)
{
	fprintf(stderr, "bench_stub: %s\n", what);
	exit(1);
}

/* Out of line, so that the loops pay for a comparison only. */
static void __attribute__((noinline, cold)) fail_with(int rc, struct firn *f)
{
	char why[256] = "";

	(void)firn_why(f, why, sizeof(why));
	fprintf(stderr, "bench_stub: %s: %s\n", firn_errname(rc), why);
	exit(69);
}

static inline void
check(int rc, struct firn *f)
{
	if (__builtin_expect(rc != FIRN_OK, 0))
		fail_with(rc, f);
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
	int64_t cpu_ns;
	uint64_t *ids; /* room for CHECKED of them */
};

static void *
looper_main(void *arg)
{
	struct looper *l = arg;
	uint64_t id, before = 0, taken = 0;
	int64_t start_cpu_ns = cpu_ns();

	while (now_ns() < l->until_ns) {
		for (int i = 0; i < BENCH_CHUNK; i++) {
			check(firn_next(l->f, &id), l->f);
			if (id <= before)
				fail("IDs fell");
			before = id;
		}
		taken += BENCH_CHUNK;
	}
	l->taken = taken;
	l->cpu_ns = cpu_ns() - start_cpu_ns;
	return (NULL);
}

static void *
collector_main(void *arg)
{
	struct looper *l = arg;

	for (size_t i = 0; i < CHECKED; i++)
		check(firn_next(l->f, &l->ids[i]), l->f);
	return (NULL);
}

static void
join_threads(struct looper *l, unsigned threads, void *(*run)(void *))
{
	pthread_t t[2];

	for (unsigned i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, run, &l[i]) != 0)
			fail("no thread");
	for (unsigned i = 0; i < threads; i++)
		(void)pthread_join(t[i], NULL);
}

/* IDs a nanosecond. */
static double
loop_threads(unsigned threads)
{
	struct firn *f = open_handle(0);
	int64_t start_ns = now_ns();
	struct looper l[2] = {
		{ .f = f, .until_ns = start_ns + BENCH_LOOP_NS },
		{ .f = f, .until_ns = start_ns + BENCH_LOOP_NS },
	};
	double rate;

	join_threads(l, threads, looper_main);
	if (threads == 1)
		row("next_1_thread_cpu",
		    (double)l[0].cpu_ns / (double)l[0].taken);
	rate =
	    (double)(l[0].taken + l[1].taken) / (double)(now_ns() - start_ns);
	firn_close(f);
	return (rate);
}

/* Each thread's IDs rise, so those that both have are found by merging. */
static size_t
count_twice(const uint64_t *a, const uint64_t *b)
{
	size_t twice = 0;

	for (size_t i = 1; i < CHECKED; i++)
		if (a[i] <= a[i - 1] || b[i] <= b[i - 1])
			fail("IDs fell");
	for (size_t i = 0, k = 0; i < CHECKED && k < CHECKED;) {
		if (a[i] == b[k]) {
			twice++;
			i++;
			k++;
		} else if (a[i] < b[k]) {
			i++;
		} else {
			k++;
		}
	}
	return (twice);
}

static void
bench_cached(void)
{
	static uint64_t ids[2][CHECKED];
	struct firn *f = open_handle(0);
	struct looper l[2] = {
		{ .f = f, .ids = ids[0] },
		{ .f = f, .ids = ids[1] },
	};
	double one = loop_threads(1), two = loop_threads(2);

	join_threads(l, 2, collector_main);
	row("next_1_thread", 1 / one);
	row("next_2_threads", 1 / two);
	row("next_2_threads_gain", two / one);
	row("next_2_threads_twice", (double)count_twice(l[0].ids, l[1].ids));
	firn_close(f);
}

static void
bench_many(void)
{
	static uint64_t ids[MANY];
	int64_t start_ns = now_ns(), took_ns;
	uint64_t taken = 0;
	size_t got;

	handle = open_handle(0);
	do {
		check(firn_next_many(handle, ids, MANY, &got), handle);
		taken += got;
		took_ns = now_ns() - start_ns;
	} while (took_ns < BENCH_LOOP_NS);
	row("next_many_4096", (double)took_ns / (double)taken);
}

/* ---- tails ---- */

static void
take_next(void *arg)
{
	uint64_t id;

	(void)arg;
	check(firn_next(handle, &id), handle);
	if (id <= last)
		fail("IDs fell");
	last = id;
}

static void
take_nothing(void *arg)
{
	(void)arg;
}

/* What a short program pays: open, one ID, close. */
static void
take_short(void *arg)
{
	struct firn *f = open_handle(0);
	uint64_t id;

	(void)arg;
	check(firn_next(f, &id), f);
	firn_close(f);
}

static uint64_t
refills_of_handle(void)
{
	struct firn_stats s = { .size = sizeof(s) };

	check(firn_get_stats(handle, &s), handle);
	return (s.refills);
}

static void
bench_paced_next(void)
{
	handle = open_handle(0);
	bench_paced("paced", take_next, NULL, refills_of_handle);
}

static void
bench_control(void)
{
	bench_paced("control", take_nothing, NULL, NULL);
}

static void
bench_uncached(void)
{
	handle = open_handle(1);
	bench_calls("uncached", BENCH_CALLS, take_next, NULL);
}

static void
bench_short(void)
{
	bench_calls("short", SHORTS, take_short, NULL);
}

/* For callgrind.sh, which counts the instructions of so many calls. */
static void
bench_count(long n, uint32_t max_batch)
{
	handle = open_handle(max_batch);
	for (long i = 0; i < n; i++)
		take_next(NULL);
}

/* ---- with others, between two instants of CLOCK_MONOTONIC ---- */

static void
sleep_until(int64_t ns)
{
	struct timespec ts = { .tv_sec = (time_t)(ns / 1000000000),
		.tv_nsec = (long)(ns % 1000000000) };

	while (
	    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

/* As many as there are; warm before the start. */
static void
bench_greedy(int64_t start_ns, int64_t end_ns)
{
	uint64_t taken = 0;
	int64_t t;

	handle = open_handle(0);
	while ((t = now_ns()) < end_ns) {
		for (int i = 0; i < 64; i++)
			take_next(NULL);
		if (t >= start_ns)
			taken += 64;
	}
	row("greedy_ids", (double)taken);
}

/* One each millisecond. */
static void
bench_meter(int64_t start_ns, int64_t end_ns)
{
	static struct histogram h;

	handle = open_handle(0);
	for (int64_t due = start_ns; due < end_ns; due += METER_NS) {
		int64_t t;

		sleep_until(due);
		t = now_ns();
		take_next(NULL);
		histogram_add(&h, (uint64_t)(now_ns() - t));
		if (now_ns() - due > METER_NS) /* do not catch up */
			due += (now_ns() - due) / METER_NS * METER_NS;
	}
	row_tail("meter", &h);
	row("meter_ids", (double)h.total);
}

static const struct {
	const char *name;
	void (*run)(void);
} simple[] = {
	{ "cached", bench_cached },
	{ "many", bench_many },
	{ "paced", bench_paced_next },
	{ "control", bench_control },
	{ "uncached", bench_uncached },
	{ "short", bench_short },
};

int
main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(simple) / sizeof(simple[0]); i++) {
		if (argc == 2 && strcmp(argv[1], simple[i].name) == 0) {
			simple[i].run();
			return (0);
		}
	}
	if (argc == 4 && strcmp(argv[1], "greedy") == 0)
		bench_greedy(atoll(argv[2]), atoll(argv[3]));
	else if (argc == 4 && strcmp(argv[1], "meter") == 0)
		bench_meter(atoll(argv[2]), atoll(argv[3]));
	else if (argc == 4 && strcmp(argv[1], "count") == 0)
		bench_count(atol(argv[2]), (uint32_t)atol(argv[3]));
	else
		fail("cached, many, paced, control, uncached, short, "
		     "greedy START END, meter START END, count N BATCH");
	return (0);
}
