/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench - what the measuring programs share: the clock, a row of output
 * ("name value", one a line), tails, and the loop that takes one ID each
 * microsecond.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "histogram.h"

#define BENCH_LOOP_NS INT64_C(500000000)
#define BENCH_CHUNK 1000 /* IDs between two looks at the clock */
#define BENCH_CALLS 20000 /* round trips */
#define BENCH_PACED 1000000 /* IDs, and IDs a second */
#define BENCH_LATE_NS 5000 /* from here on it is asked: preempted? */

#define BENCH_SYSCALL_NS 300 /* no call is quicker that asks the kernel */

typedef void (*bench_take)(void *arg);
typedef uint64_t (*bench_counter)(void);

static inline int64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec);
}

static inline void
row(const char *name, double value)
{
	printf("%s %.2f\n", name, value);
	fflush(stdout);
}

static inline void
row_tail(const char *name, const struct histogram *h)
{
	static const struct {
		const char *name;
		uint32_t parts, whole;
	} marks[] = { { "p50", 1, 2 }, { "p99", 99, 100 },
		{ "p99.9", 999, 1000 }, { "max", 1, 1 } };
	char text[128];

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		snprintf(text, sizeof(text), "%s_%s", name, marks[i].name);
		row(text, (double)histogram_quantile(
			      h, marks[i].parts, marks[i].whole));
	}
}

static inline int64_t
cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ((int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec);
}

/*
 * ns for one, in a loop of its own; and NAME_cpu, the time of the processor
 * alone, which a busy machine spoils less.
 */
static inline void
bench_loop(const char *name, bench_take take, void *arg)
{
	int64_t start_ns = now_ns(), start_cpu_ns = cpu_ns(), took_ns;
	double taken = 0;
	char text[96];

	do {
		for (int i = 0; i < BENCH_CHUNK; i++)
			take(arg);
		taken += BENCH_CHUNK;
		took_ns = now_ns() - start_ns;
	} while (took_ns < BENCH_LOOP_NS);
	row(name, (double)took_ns / taken);
	snprintf(text, sizeof(text), "%s_cpu", name);
	row(text, (double)(cpu_ns() - start_cpu_ns) / taken);
}

/* Each call by itself. */
static inline void
bench_calls(const char *name, size_t n, bench_take take, void *arg)
{
	static struct histogram h;

	memset(&h, 0, sizeof(h));
	for (size_t i = 0; i < n; i++) {
		int64_t t = now_ns();

		take(arg);
		histogram_add(&h, (uint64_t)(now_ns() - t));
	}
	row_tail(name, &h);
}

/* Was this thread put off its processor since the last look? */
static inline bool
bench_preempted(void)
{
	static long seen;
	long before = seen;
	struct rusage u;

	if (getrusage(RUSAGE_THREAD, &u) != 0)
		return (false);
	seen = u.ru_nivcsw;
	return (seen != before);
}

/*
 * One call each microsecond.  NAME_max is the worst of all; NAME_own that
 * without the calls in which the kernel gave the processor to another;
 * NAME_refill_max the worst of those in which `refills` (may be NULL) went up:
 * the others ask the kernel for nothing, so what delays them is not theirs.
 */
static inline void
bench_paced(const char *name, bench_take take, void *arg, bench_counter refills)
{
	static struct histogram all, own, refill;
	int64_t due_ns = now_ns(), t, ns;
	uint64_t before = refills != NULL ? refills() : 0;
	bool preempted;
	char text[96];

	memset(&all, 0, sizeof(all));
	memset(&own, 0, sizeof(own));
	memset(&refill, 0, sizeof(refill));
	(void)bench_preempted();
	for (size_t i = 0; i < BENCH_PACED; i++) {
		due_ns += 1000000000 / BENCH_PACED;
		do
			t = now_ns();
		while (t < due_ns);
		if (t - due_ns > BENCH_LATE_NS) {
			(void)bench_preempted();
			due_ns = t = now_ns(); /* do not catch up */
		}
		take(arg);
		ns = now_ns() - t;
		histogram_add(&all, (uint64_t)ns);
		preempted = ns > BENCH_LATE_NS && bench_preempted();
		if (!preempted)
			histogram_add(&own, (uint64_t)ns);
		if (ns > BENCH_SYSCALL_NS && refills != NULL &&
		    refills() != before) {
			before = refills();
			if (!preempted)
				histogram_add(&refill, (uint64_t)ns);
		}
	}
	if (refills != NULL) {
		snprintf(text, sizeof(text), "%s_refill", name);
		row_tail(text, &refill);
	}
	row_tail(name, &all);
	snprintf(text, sizeof(text), "%s_own", name);
	row(text, (double)own.max);
	snprintf(text, sizeof(text), "%s_preempted", name);
	row(text, (double)(all.total - own.total));
}

#endif
