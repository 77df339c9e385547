/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_batch - IDs in memory: each leaves once, in rising order, never past
 * its deadline; and how many to ask for.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "batch.h"
#include "latch.h"

#define MS INT64_C(1000000)
#define LATER INT64_MAX

static const struct firn_layout firn = {
	.size = sizeof(struct firn_layout),
	.time_bits = 41,
	.worker_bits = 10,
	.sequence_bits = 12,
	.tick_ms = 1,
	.epoch_ms = INT64_C(1735689600000),
};

static const struct firn_layout sony = {
	.size = sizeof(struct firn_layout),
	.time_bits = 39,
	.worker_bits = 16,
	.sequence_bits = 8,
	.flags = FIRN_SEQUENCE_ABOVE_WORKER,
	.tick_ms = 10,
	.epoch_ms = INT64_C(1409529600000),
};

static uint64_t
id_of(uint64_t tick, uint64_t worker, uint64_t sequence)
{
	return (tick << 22 | worker << 12 | sequence);
}

static void
test_check_run(void **state)
{
	(void)state;
	const struct {
		const char *why;
		const struct firn_layout *l;
		struct wire_run run;
		uint64_t above;
		bool good;
	} cases[] = {
		{ "one ID", &firn, { id_of(9, 3, 0), 1, 1 }, 0, true },
		{ "a whole tick", &firn, { id_of(9, 3, 0), 1, 4096 }, 0, true },
		{ "the last sequence alone", &firn, { id_of(9, 3, 4095), 1, 1 },
		    0, true },
		{ "one past the last sequence", &firn,
		    { id_of(9, 3, 4095), 1, 2 }, 0, false },
		{ "a count that wraps", &firn,
		    { id_of(9, 3, 1), 1, UINT32_MAX }, 0, false },
		{ "no IDs", &firn, { id_of(9, 3, 0), 1, 0 }, 0, false },
		{ "a wrong stride", &firn, { id_of(9, 3, 0), 2, 2 }, 0, false },
		{ "no stride", &firn, { id_of(9, 3, 0), 0, 2 }, 0, false },
		{ "just above", &firn, { id_of(9, 3, 5), 1, 2 }, id_of(9, 3, 4),
		    true },
		{ "its first known already", &firn, { id_of(9, 3, 5), 1, 2 },
		    id_of(9, 3, 5), false },
		{ "wholly below", &firn, { id_of(8, 3, 5), 1, 2 },
		    id_of(9, 3, 5), false },
		{ "a bit above the layout", &firn, { UINT64_C(1) << 63, 1, 1 },
		    0, false },
		{ "sequence above worker, one tick", &sony,
		    { UINT64_C(9) << 24 | 77, 1 << 16, 256 }, 0, true },
		{ "sequence above worker, one too many", &sony,
		    { UINT64_C(9) << 24 | 77, 1 << 16, 257 }, 0, false },
		{ "sequence above worker, contiguous", &sony,
		    { UINT64_C(9) << 24 | 77, 1, 2 }, 0, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t last = 0;
		bool good = batch_check_run(
		    cases[i].l, &cases[i].run, cases[i].above, &last);

		if (good != cases[i].good)
			fail_msg("%s: %d", cases[i].why, good);
		if (good)
			assert_true(last == cases[i].run.first +
						(cases[i].run.count - 1) *
						    cases[i].run.stride);
	}
}

static struct batch_run
run_of(uint64_t first, uint32_t count, int64_t until_ns)
{
	return ((struct batch_run){
	    .run = { .first = first, .stride = 1, .count = count },
	    .generation = 1,
	    .mono_until_ns = until_ns,
	    .real_until_ns = until_ns,
	});
}

static void
put(struct batch *b, uint64_t first, uint32_t count, int64_t until_ns)
{
	struct batch_run run = run_of(first, count, until_ns);

	assert_true(batch_add(b, &run));
	b->granted += count;
}

static void
test_take_spans_runs(void **state)
{
	(void)state;
	struct batch b = { 0 };
	uint64_t ids[8];
	const uint64_t want[] = { 10, 11, 12, 50, 51, 90 };

	put(&b, 10, 3, LATER);
	put(&b, 50, 2, LATER);
	put(&b, 90, 4, LATER);
	assert_int_equal(batch_take(&b, ids, 6), 6);
	assert_memory_equal(ids, want, sizeof(want));
	assert_int_equal(b.left, 3);
	assert_int_equal(batch_take(&b, ids, 8), 3);
	assert_int_equal(ids[2], 93);
	assert_int_equal(b.n, 0);
	assert_int_equal(batch_take(&b, ids, 8), 0);
}

static void
test_stock_is_bounded(void **state)
{
	(void)state;
	struct batch b = { 0 };
	struct batch_run run = run_of(1, 1, LATER);

	for (int i = 0; i < BATCH_RUNS; i++)
		assert_true(batch_add(&b, &run));
	assert_false(batch_add(&b, &run));
	assert_int_equal(b.left, BATCH_RUNS);
}

static void
test_trim(void **state)
{
	(void)state;
	struct batch b = { 0 };
	struct batch_run run = run_of(70, 1, LATER);
	uint64_t id;

	put(&b, 10, 3, 100);
	put(&b, 50, 2, 200);
	assert_int_equal(batch_trim(&b, 1, &(struct moment){ 99, 99 }), 0);
	assert_int_equal(b.left, 5);
	/* the deadline itself is too late; either clock is enough */
	assert_int_equal(batch_trim(&b, 1, &(struct moment){ 100, 0 }), 3);
	assert_int_equal(b.left, 2);
	assert_int_equal(batch_trim(&b, 1, &(struct moment){ 0, 200 }), 2);
	assert_int_equal(b.left, 0);
	/* another process's, whatever its age */
	run.generation = 2;
	assert_true(batch_add(&b, &run));
	assert_int_equal(batch_trim(&b, 1, &(struct moment){ 0, 0 }), 1);
	assert_int_equal(batch_take(&b, &id, 1), 0);
}

static void
test_part_deadlines(void **state)
{
	(void)state;
	static struct part p;
	struct batch b = { 0 };
	struct moment now = { 1000 * MS, 5000 * MS };
	struct batch_run run = run_of(1, 4000, 0);
	uint64_t id;

	part_claim(&p, 7, 1);
	run.mono_until_ns = 1010 * MS;
	run.real_until_ns = 5010 * MS;
	assert_true(batch_add(&b, &run));
	b.granted = 4000;
	part_set(p.grain, 100);
	part_set(p.refilled_ns, now.mono_ns);
	assert_int_equal(batch_share(&b, &p, &now), 401);
	assert_int_equal(part_left(&p), 401);
	assert_false(part_seen(&p, now.mono_ns)); /* not compared yet */
	assert_true(part_young(&p, &now));
	assert_true(part_seen(&p, now.mono_ns));
	assert_false(part_seen(&p, now.mono_ns + 1));
	assert_true(part_take(&p, &id));
	assert_int_equal(id, 1);
	/* the wall clock alone shows a suspend */
	now.real_ns = 5010 * MS;
	assert_false(part_young(&p, &now));
	assert_int_equal(part_drop(&p), 400);
	assert_int_equal(part_drop(&p), 0);
	assert_false(part_take(&p, &id));
	assert_false(part_seen(&p, now.mono_ns));
}

static void
test_grain_follows_the_thread(void **state)
{
	(void)state;
	static struct part p;
	struct batch b = { 0 };
	struct moment now = { 1000 * MS, 1000 * MS };

	put(&b, 1, 1000000, LATER);
	part_claim(&p, 7, 1);
	batch_share(&b, &p, &now);
	assert_int_equal(part_left(&p), 0); /* a first call takes one */
	now.mono_ns += 5 * MS;
	batch_share(&b, &p, &now);
	assert_int_equal(part_left(&p), 1);
	for (int i = 0; i < 10; i++) {
		now.mono_ns += 5 * MS;
		(void)part_drop(&p);
		batch_share(&b, &p, &now);
	}
	assert_int_equal(part_left(&p), 1000000 / BATCH_PARTS);
	(void)part_drop(&p);
	now.mono_ns += 21 * MS;
	batch_share(&b, &p, &now);
	assert_int_equal(part_left(&p), 0); /* now and then again */
}

static void
test_claim_empties(void **state)
{
	(void)state;
	static struct part p;
	struct batch b = { 0 };
	uint64_t id;

	put(&b, 1, 1000, LATER);
	part_claim(&p, 7, 1);
	part_set(p.grain, 100);
	batch_share(&b, &p, &(struct moment){ 1, 1 });
	assert_true(part_take(&p, &id));
	part_claim(&p, 8, 2);
	assert_false(part_take(&p, &id));
	assert_int_equal(part_get(p.owner), 8);
}

static void
test_demand(void **state)
{
	(void)state;
	const struct {
		const char *why;
		struct demand d;
		int64_t now_ms;
		uint32_t max, want;
	} cases[] = {
		{ "never asked", { 0, 0, 0 }, 500, 1000, 1 },
		{ "one a second", { 1, 1, 1 }, 1000, 1000, 1 },
		{ "100 a second: 2 in 20 ms", { 1, 10, 10 }, 100, 1000, 2 },
		{ "a million a second", { 1, 10000, 20000 }, 10, 100000,
		    20000 },
		{ "grows by steps", { 1, 10000, 16 }, 10, 100000,
		    16 * BATCH_GROWTH },
		{ "not over the limit", { 1, 10000, 20000 }, 10, 512, 512 },
		{ "nothing used", { 1, 0, 20000 }, 10, 512, 1 },
		{ "no time has passed", { 1, 5, 5 }, 0, 1000,
		    5 * BATCH_GROWTH },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t want = demand_want(
		    &cases[i].d, cases[i].now_ms * MS + 1, cases[i].max);

		if (want != cases[i].want)
			fail_msg("%s: %u, not %u", cases[i].why, want,
			    cases[i].want);
	}
	struct demand d = { 1, 500, 20 };

	demand_sent(&d, 7, 30);
	assert_true(d.since_ns == 7 && d.used == 0 && d.asked == 30);
}

/* ---- many threads on one stock ---- */

#define THREADS 4
#define EACH 20000
#define TOTAL (THREADS * EACH)

struct world {
	struct latch latch;
	struct batch batch;
	struct part parts[THREADS];
	uint64_t next;
	unsigned seed;
};

struct worker {
	struct world *w;
	int number;
	uint64_t ids[EACH];
};

/* As the stub does it: the part without the lock, the stock with it. */
static void
world_take(struct worker *me, struct part *p, size_t at, size_t n)
{
	struct world *w = me->w;
	struct moment now = { 1, 1 };
	size_t got = part_take_many(p, me->ids + at, n);

	if (got == n)
		return;
	latch_lock(&w->latch);
	while (got < n) {
		got += batch_take(&w->batch, me->ids + at + got, n - got);
		if (got == n)
			break;
		uint32_t count = 1 + (uint32_t)rand_r(&w->seed) % 500;

		put(&w->batch, w->next, count, LATER);
		w->next += count + (uint64_t)rand_r(&w->seed) % 3;
	}
	if (part_left(p) == 0)
		batch_share(&w->batch, p, &now);
	latch_unlock(&w->latch);
}

static void *
worker_main(void *arg)
{
	struct worker *me = arg;
	struct part *p = &me->w->parts[me->number];
	unsigned seed = me->w->seed + (unsigned)me->number;

	for (size_t i = 0; i < EACH;) {
		size_t n = 1;

		if (part_take(p, &me->ids[i])) {
			i++;
			continue;
		}
		if (rand_r(&seed) % 4 == 0)
			n = 1 + (size_t)rand_r(&seed) % 40;
		if (n > EACH - i)
			n = EACH - i;
		world_take(me, p, i, n);
		i += n;
	}
	return (NULL);
}

static int
compare_ids(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x < y ? -1 : x > y);
}

static void
test_threads_share_a_stock(void **state)
{
	(void)state;
	static struct world w;
	static struct worker workers[THREADS];
	static uint64_t all[TOTAL];
	pthread_t threads[THREADS];

	w.seed = (unsigned)time(NULL);
	w.next = 1;
	print_message("seed %u\n", w.seed);
	for (int i = 0; i < THREADS; i++) {
		workers[i].w = &w;
		workers[i].number = i;
		part_claim(&w.parts[i], (uint64_t)i + 1, i + 1);
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(
		    pthread_create(&threads[i], NULL, worker_main, &workers[i]),
		    0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (int i = 0; i < THREADS; i++) {
		for (size_t k = 1; k < EACH; k++)
			assert_true(workers[i].ids[k] > workers[i].ids[k - 1]);
		memcpy(all + i * EACH, workers[i].ids, sizeof(workers[i].ids));
	}
	qsort(all, TOTAL, sizeof(all[0]), compare_ids);
	for (size_t k = 1; k < TOTAL; k++)
		assert_true(all[k] != all[k - 1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_check_run),
		cmocka_unit_test(test_take_spans_runs),
		cmocka_unit_test(test_stock_is_bounded),
		cmocka_unit_test(test_trim),
		cmocka_unit_test(test_part_deadlines),
		cmocka_unit_test(test_grain_follows_the_thread),
		cmocka_unit_test(test_claim_empties),
		cmocka_unit_test(test_demand),
		cmocka_unit_test(test_threads_share_a_stock),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
