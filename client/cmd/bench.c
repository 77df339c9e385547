/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench - what an ID costs on this host: threads on one handle take as many
 * as they can get.
 *
 * IDs/s are all IDs over all the time, waits for the agent included.  Each ID
 * of one chunk in four is timed by itself and goes into the histogram; the
 * others are timed as a whole and say what one ID costs, without the reading
 * of the clock.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cmd.h"
#include "histogram.h"
#include "json_out.h"

#define CHUNK 1024
#define TIMED_EVERY 4 /* chunks: one is timed ID by ID */
#define THREADS_MAX 256
#define SECONDS_MAX 86400
#define LIVE_MS 200
#define PAUSE_MS 10 /* after a failed call */
#define ERRORS 16 /* more than firn.h has */

struct bench_options {
	const char *socket;
	int64_t threads;
	int64_t seconds;
	bool json;
};

static const struct cmd_option options[] = {
	CMD_OPT_SOCKET(struct bench_options),
	{ "threads", 0, CMD_NUMBER, offsetof(struct bench_options, threads),
	    "N", "so many threads on one handle; default 1", 1, THREADS_MAX },
	{ "seconds", 0, CMD_NUMBER, offsetof(struct bench_options, seconds),
	    "S", "for so long; default 5", 1, SECONDS_MAX },
	CMD_OPT_JSON(struct bench_options, "one document, without a live line"),
};

static const struct cmd_spec spec = {
	.name = "bench",
	.usage = "[--socket PATH] [--threads N] [--seconds S] [--json]",
	.text = "Takes IDs as fast as they come and shows how many there were "
		"and what one\ncosts.  The IDs are used up, and other "
		"clients of the agent share what it has.",
	.statuses = "  0   IDs came; failed calls are in the table\n"
		    "  1   standard output, threads, or bytes that are not the "
		    "protocol\n"
		    "  64  usage\n"
		    "  69  no agent on the socket\n"
		    "  75  the agent refused, or did not answer in time\n"
		    "  77  not allowed to use the socket\n"
		    "  78  the agent serves another realm than $FIRN_REALM",
	.options = options,
	.noptions = sizeof(options) / sizeof(options[0]),
	.max_arguments = 0,
};

/* One thread's share; the atomics are for the live line. */
struct worker {
	struct firn *f;
	pthread_t thread;
	_Atomic uint64_t ids; /* all */
	_Atomic uint64_t failed;
	uint64_t errors[ERRORS]; /* failed calls by -FIRN_E... */
	uint64_t last; /* the highest so far */
	bool fell; /* an ID was not above the one before */
	uint64_t bulk_ids; /* in chunks timed as a whole */
	int64_t bulk_ns;
	struct histogram latency;
};

struct totals {
	uint64_t ids, failed;
	uint64_t errors[ERRORS];
	int64_t elapsed_ns;
	double per_second, ns_per_id;
	struct histogram latency;
	bool fell;
};

static atomic_bool ending;

static void
on_signal(int number)
{
	(void)number;
	atomic_store(&ending, true);
}

static int64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec);
}

/* ---- threads ---- */

static void
note_failure(struct worker *w, int err)
{
	w->errors[-err < ERRORS ? -err : 0]++;
	atomic_fetch_add_explicit(&w->failed, 1, memory_order_relaxed);
	cmd_sleep_ms(PAUSE_MS);
}

/* At the end in the middle of a chunk: with a slow agent it takes long. */
static bool
take_one(struct worker *w)
{
	uint64_t id;
	int err;

	if (atomic_load_explicit(&ending, memory_order_relaxed))
		return (false);
	err = firn_next(w->f, &id);
	if (err != FIRN_OK) {
		note_failure(w, err);
		return (false);
	}
	if (id <= w->last)
		w->fell = true;
	w->last = id;
	return (true);
}

/* A chunk cut short says nothing about the cost. */
static unsigned
take_chunk(struct worker *w)
{
	int64_t start_ns = now_ns();

	for (unsigned i = 0; i < CHUNK; i++)
		if (!take_one(w))
			return (i);
	w->bulk_ns += now_ns() - start_ns;
	w->bulk_ids += CHUNK;
	return (CHUNK);
}

static unsigned
take_timed(struct worker *w)
{
	int64_t then_ns = now_ns();

	for (unsigned i = 0; i < CHUNK; i++) {
		int64_t t;

		if (!take_one(w))
			return (i);
		t = now_ns();
		histogram_add(&w->latency, (uint64_t)(t - then_ns));
		then_ns = t;
	}
	return (CHUNK);
}

static void
take_and_count(struct worker *w, unsigned (*take)(struct worker *w))
{
	unsigned n = take(w);

	atomic_fetch_add_explicit(&w->ids, n, memory_order_relaxed);
}

/* The timed ones first: there may be time for no others. */
static void *
worker_main(void *arg)
{
	struct worker *w = arg;

	do {
		take_and_count(w, take_timed);
		for (unsigned i = 1; i < TIMED_EVERY; i++)
			take_and_count(w, take_chunk);
	} while (!atomic_load(&ending));
	return (NULL);
}

/* ---- the live line ---- */

static void
count(struct worker *w, size_t n, uint64_t *ids, uint64_t *failed)
{
	*ids = *failed = 0;
	for (size_t i = 0; i < n; i++) {
		*ids += atomic_load_explicit(&w[i].ids, memory_order_relaxed);
		*failed +=
		    atomic_load_explicit(&w[i].failed, memory_order_relaxed);
	}
}

static void
print_live(struct worker *w, size_t n, int64_t end_ns)
{
	static uint64_t then;
	static int64_t then_ns;
	int64_t t = now_ns();
	uint64_t ids, failed;

	count(w, n, &ids, &failed);
	if (then_ns != 0)
		fprintf(stderr,
		    "\r%.3f M IDs/s, %llu failed, %lld s left \033[K",
		    (double)(ids - then) / (double)(t - then_ns) * 1e3,
		    (unsigned long long)failed,
		    (long long)((end_ns - t) / 1000000000));
	then = ids;
	then_ns = t;
}

/* Waits for the end; on a terminal it tells how things go. */
static void
watch(const struct bench_options *o, struct worker *w)
{
	bool live = !o->json && isatty(STDERR_FILENO) == 1;
	int64_t end_ns = now_ns() + o->seconds * 1000000000;
	int64_t left_ns;

	while (!atomic_load(&ending)) {
		left_ns = end_ns - now_ns();
		if (left_ns <= 0)
			break;
		cmd_sleep_ms(left_ns < LIVE_MS * INT64_C(1000000)
				 ? left_ns / 1000000 + 1
				 : LIVE_MS);
		if (live)
			print_live(w, (size_t)o->threads, end_ns);
	}
	if (live)
		fprintf(stderr, "\r\033[K");
}

/* ---- the result ---- */

static void
add_up(struct worker *w, size_t n, struct totals *t)
{
	uint64_t bulk_ids = 0;
	int64_t bulk_ns = 0;

	for (size_t i = 0; i < n; i++) {
		t->ids += atomic_load(&w[i].ids);
		t->failed += atomic_load(&w[i].failed);
		for (size_t k = 0; k < ERRORS; k++)
			t->errors[k] += w[i].errors[k];
		bulk_ids += w[i].bulk_ids;
		bulk_ns += w[i].bulk_ns;
		t->fell = t->fell || w[i].fell;
		histogram_merge(&t->latency, &w[i].latency);
	}
	if (t->ids == 0)
		return;
	t->per_second = (double)t->ids * 1e9 / (double)t->elapsed_ns;
	t->ns_per_id = bulk_ids > 0 ? (double)bulk_ns / (double)bulk_ids
				    : (double)n * 1e9 / t->per_second;
}

static const struct {
	const char *name;
	uint32_t parts, whole;
} marks[] = {
	{ "p50", 1, 2 },
	{ "p90", 9, 10 },
	{ "p99", 99, 100 },
	{ "p99.9", 999, 1000 },
	{ "max", 1, 1 },
};
#define MARKS (sizeof(marks) / sizeof(marks[0]))

static void
print_table(const struct bench_options *o, const struct totals *t)
{
	printf("threads    %lld\n", (long long)o->threads);
	printf("seconds    %.3f\n", (double)t->elapsed_ns / 1e9);
	printf("IDs        %llu\n", (unsigned long long)t->ids);
	printf("IDs/s      %.0f\n", t->per_second);
	printf("one ID     %.2f ns of a thread\n", t->ns_per_id);
	for (size_t i = 0; i < MARKS; i++)
		printf("%-10s %llu ns\n", marks[i].name,
		    (unsigned long long)histogram_quantile(
			&t->latency, marks[i].parts, marks[i].whole));
	printf("failed     %llu\n", (unsigned long long)t->failed);
	for (size_t k = 0; k < ERRORS; k++)
		if (t->errors[k] > 0)
			printf("  %-20s %llu\n", firn_errname(-(int)k),
			    (unsigned long long)t->errors[k]);
}

static void
print_json(const struct bench_options *o, const struct totals *t)
{
	struct json_out out;

	json_out_file(&out, stdout);
	json_open(&out, NULL, '{');
	json_put_number(&out, "threads", o->threads);
	json_put_number(&out, "elapsed_ms", t->elapsed_ns / 1000000);
	json_put_u64(&out, "ids", t->ids);
	json_put_u64(&out, "ids_per_second", (uint64_t)t->per_second);
	json_put_number(&out, "ps_per_id", (int64_t)(t->ns_per_id * 1e3));
	json_open(&out, "latency_ns", '{');
	for (size_t i = 0; i < MARKS; i++)
		json_put_u64(&out, marks[i].name,
		    histogram_quantile(
			&t->latency, marks[i].parts, marks[i].whole));
	json_close(&out, '}');
	json_put_u64(&out, "timed", t->latency.total);
	json_put_u64(&out, "failed", t->failed);
	json_open(&out, "errors", '{');
	for (size_t k = 0; k < ERRORS; k++)
		if (t->errors[k] > 0)
			json_put_u64(&out, firn_errname(-(int)k), t->errors[k]);
	json_close(&out, '}');
	json_close(&out, '}');
	(void)!json_out_end(&out); /* what failed is said by cmd_end() */
	printf("\n");
}

/* ---- the run ---- */

static int
run(struct firn *f, const struct bench_options *o, struct worker *w,
    struct totals *t)
{
	int64_t start_ns = now_ns();
	int64_t n = 0;

	for (; n < o->threads; n++) {
		w[n].f = f;
		if (pthread_create(&w[n].thread, NULL, worker_main, &w[n]) != 0)
			break;
	}
	if (n == o->threads)
		watch(o, w);
	atomic_store(&ending, true);
	for (int64_t i = 0; i < n; i++)
		(void)pthread_join(w[i].thread, NULL);
	if (n < o->threads)
		return (cmd_fail(CMD_FAILED, spec.name,
		    "thread %lld does not start", (long long)n + 1));
	t->elapsed_ns = now_ns() - start_ns;
	add_up(w, (size_t)n, t);
	if (t->fell)
		return (cmd_fail(CMD_FAILED, spec.name,
		    "a thread got an ID that is not above its last one"));
	return (CMD_DONE);
}

/* An ID first: without an agent there is nothing to measure. */
static int
bench(struct firn *f, const struct bench_options *o)
{
	static struct totals t;
	struct worker *w;
	uint64_t id;
	int rc = firn_next(f, &id);

	if (rc != FIRN_OK)
		return (cmd_fail_taking(spec.name, f, o->socket, rc));
	w = calloc((size_t)o->threads, sizeof(*w));
	if (w == NULL)
		return (
		    cmd_fail(CMD_FAILED, spec.name, "no memory for threads"));
	(void)signal(SIGINT, on_signal);
	(void)signal(SIGTERM, on_signal);
	rc = run(f, o, w, &t);
	free(w);
	if (rc != CMD_DONE)
		return (rc);
	if (o->json)
		print_json(o, &t);
	else
		print_table(o, &t);
	return (cmd_end(spec.name, CMD_DONE));
}

int
bench_main(int argc, char **argv)
{
	struct bench_options o = { .threads = 1, .seconds = 5 };
	struct firn_options opt = { .size = (uint32_t)sizeof(opt) };
	struct firn *f;
	int rc, first;

	rc = cmd_parse(&spec, argc, argv, &o, &first);
	if (rc != CMD_GO)
		return (rc);
	opt.socket = o.socket;
	rc = firn_open(&f, &opt);
	if (rc == FIRN_EINVAL)
		return (cmd_fail_open(spec.name, o.socket));
	if (rc != FIRN_OK)
		return (
		    cmd_fail(CMD_FAILED, spec.name, "%s", firn_strerror(rc)));
	rc = bench(f, &o);
	firn_close(f);
	return (rc);
}
