/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_generator - runs of IDs: each once, only up, within what is allowed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dice.h"
#include "generator.h"
#include "layout.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct firn_layout
preset(const char *name)
{
	struct firn_layout l;

	assert_int_equal(firn_layout_preset(name, &l), 0);
	return (l);
}

static struct firn_layout
bits(const char *text)
{
	struct firn_layout l;
	size_t where;

	assert_int_equal(layout_parse_bits(text, &l, &where), 0);
	assert_true(layout_valid(&l));
	return (l);
}

static uint64_t
id_of(const struct firn_layout *l, int64_t tick, uint64_t worker, uint64_t seq)
{
	uint64_t id = 0;

	assert_true(layout_compose(l, (uint64_t)tick, worker, seq, &id));
	return (id);
}

static struct generator
open_with(const struct firn_layout *l, uint64_t worker)
{
	struct generator g;

	generator_init(&g, l, false);
	generator_set_worker(&g, worker);
	return (g);
}

/* Takes n of ticks now..last, all that fits. */
static enum gen_result
take(struct generator *g, int64_t now, int64_t last, uint32_t n,
    struct gen_grant *out)
{
	struct gen_limits limits = { now, 0, last };

	return (generator_take(g, &limits, 0, n, GEN_NO_SHARE, 0, out));
}

/* ---- one tick after another --------------------------------------------------- */

static void
test_one_after_another(void **state)
{
	struct firn_layout l = preset("firn");
	struct generator g = open_with(&l, 17);
	struct gen_grant out;

	(void)state;
	assert_int_equal(take(&g, 1000, 1000, 3, &out), GEN_OK);
	assert_int_equal(out.nruns, 1);
	assert_int_equal(out.granted, 3);
	assert_int_equal(out.runs[0].first, id_of(&l, 1000, 17, 0));
	assert_int_equal(out.runs[0].stride, 1);
	assert_int_equal(take(&g, 1000, 1000, 2, &out), GEN_OK);
	assert_int_equal(out.runs[0].first, id_of(&l, 1000, 17, 3));
	/* a later tick begins at 0, and an earlier one never comes back */
	assert_int_equal(take(&g, 1003, 1003, 1, &out), GEN_OK);
	assert_int_equal(out.runs[0].first, id_of(&l, 1003, 17, 0));
	assert_int_equal(take(&g, 1001, 1003, 1, &out), GEN_OK);
	assert_int_equal(out.runs[0].first, id_of(&l, 1003, 17, 1));
	assert_int_equal(take(&g, 1001, 1002, 1, &out), GEN_FULL);
	assert_int_equal(out.when, 1003);
	assert_int_equal(out.nruns + out.granted, 0);
	assert_int_equal(g.issued, 7);
}

static void
test_full_tick(void **state)
{
	struct firn_layout l = preset("firn");
	struct generator g = open_with(&l, 17);
	struct gen_grant out;

	(void)state;
	assert_int_equal(generator_left(&g, 1000), 4096);
	assert_int_equal(take(&g, 1000, 1000, 5000, &out), GEN_OK);
	assert_int_equal(out.nruns, 1);
	assert_int_equal(out.granted, 4096);
	assert_int_equal(generator_left(&g, 1000), 0);
	assert_int_equal(generator_left(&g, 999), 0);
	assert_int_equal(generator_left(&g, 1001), 4096);
	assert_int_equal(take(&g, 1000, 1000, 1, &out), GEN_FULL);
	assert_int_equal(out.when, 1001);
	assert_int_equal(g.exhausted, 1);
	assert_int_equal(g.borrowed, 0);
}

/* One run a tick, the present one first, each used up before the next. */
static void
test_borrowing(void **state)
{
	struct firn_layout l = preset("firn");
	struct generator g = open_with(&l, 17);
	struct gen_grant out;

	(void)state;
	assert_int_equal(take(&g, 1000, 1005, 1, &out), GEN_OK);
	assert_int_equal(take(&g, 1000, 1005, 10000, &out), GEN_OK);
	assert_int_equal(out.nruns, 3);
	assert_int_equal(out.runs[0].first, id_of(&l, 1000, 17, 1));
	assert_int_equal(out.runs[0].count, 4095);
	assert_int_equal(out.runs[1].first, id_of(&l, 1001, 17, 0));
	assert_int_equal(out.runs[1].count, 4096);
	assert_int_equal(out.runs[2].first, id_of(&l, 1002, 17, 0));
	assert_int_equal(out.runs[2].count, 10000 - 4095 - 4096);
	assert_int_equal(g.borrowed, 2); /* ticks */
	/* all that may be borrowed, and no more */
	assert_int_equal(take(&g, 1000, 1005, 1000000, &out), GEN_OK);
	assert_int_equal(out.granted, 6 * 4096 - 10001);
	assert_int_equal(take(&g, 1000, 1005, 1, &out), GEN_FULL);
	assert_int_equal(out.when, 1006);
}

/* A tick that was begun before its turn counts once, however it is used. */
static void
test_borrowed_ticks_are_counted(void **state)
{
	struct firn_layout l = preset("firn");
	struct generator g = open_with(&l, 17);
	struct gen_grant out;

	(void)state;
	assert_int_equal(take(&g, 1000, 1005, 4000, &out), GEN_OK);
	assert_int_equal(g.borrowed, 0);
	assert_int_equal(take(&g, 1000, 1005, 97, &out), GEN_OK);
	assert_int_equal(g.borrowed, 1);
	assert_int_equal(take(&g, 1000, 1005, 4000, &out), GEN_OK);
	assert_int_equal(g.borrowed, 1);
	assert_int_equal(take(&g, 1000, 1005, 3 * 4096, &out), GEN_OK);
	assert_int_equal(g.borrowed, 4);
	assert_int_equal(g.exhausted, 4);
	/* its turn has come: it was counted */
	assert_int_equal(take(&g, 1004, 1009, 1, &out), GEN_OK);
	assert_int_equal(take(&g, 1005, 1009, 1, &out), GEN_OK);
	assert_int_equal(g.borrowed, 4);
}

static void
test_sixteen_runs(void **state)
{
	struct firn_layout l = preset("js53");
	struct generator g = open_with(&l, 3);
	struct gen_grant out;

	(void)state;
	assert_int_equal(take(&g, 50, 1000, 1000000, &out), GEN_OK);
	assert_int_equal(out.nruns, GEN_RUNS_MAX);
	assert_int_equal(out.granted, GEN_RUNS_MAX * 256);
	assert_int_equal(take(&g, 50, 1000, 1, &out), GEN_OK);
	assert_int_equal(out.runs[0].first, id_of(&l, 66, 3, 0));
}

/* Sonyflake: the sequence lies above the worker, so a run has a stride. */
static void
test_stride(void **state)
{
	struct firn_layout l = preset("sonyflake");
	struct generator g = open_with(&l, 4711);
	struct gen_grant out;

	(void)state;
	assert_int_equal(take(&g, 9, 10, 300, &out), GEN_OK);
	assert_int_equal(out.nruns, 2);
	assert_int_equal(out.runs[0].stride, 65536);
	assert_int_equal(out.runs[0].first, (9u << 24) + 4711);
	assert_int_equal(out.runs[0].count, 256);
	assert_int_equal(out.runs[1].first, (10u << 24) + 4711);
	assert_int_equal(out.runs[1].count, 44);
}

/* ---- another worker ID ----------------------------------------------------------- */

static void
test_worker_change(void **state)
{
	struct firn_layout l = preset("firn");
	struct generator g = open_with(&l, 900);
	struct gen_grant out;

	(void)state;
	assert_int_equal(take(&g, 1000, 1000, 7, &out), GEN_OK);
	/* the same: nothing changes */
	generator_set_worker(&g, 900);
	assert_int_equal(take(&g, 1000, 1000, 1, &out), GEN_OK);
	assert_int_equal(out.runs[0].first, id_of(&l, 1000, 900, 7));
	/* a lower one in the same tick would go down, a higher one not: both
	 * wait, so that what the old owner hands back is all that it issued */
	generator_set_worker(&g, 3);
	assert_int_equal(generator_left(&g, 1000), 0);
	assert_int_equal(generator_left(&g, 1001), 4096);
	assert_int_equal(take(&g, 1000, 1000, 1, &out), GEN_FULL);
	assert_int_equal(out.when, 1001);
	generator_set_worker(&g, 1023);
	assert_int_equal(take(&g, 1000, 1000, 1, &out), GEN_FULL);
	/* and back: the tick stays closed */
	generator_set_worker(&g, 900);
	assert_int_equal(take(&g, 1000, 1000, 1, &out), GEN_FULL);
	assert_int_equal(take(&g, 1000, 1001, 1, &out), GEN_OK);
	assert_int_equal(out.runs[0].first, id_of(&l, 1001, 900, 0));
}

static void
test_worker_does_not_fit(void **state)
{
	struct firn_layout l = preset("firn");
	struct generator g = open_with(&l, 1024);
	struct gen_grant out;

	(void)state;
	assert_int_equal(take(&g, 1000, 1005, 10, &out), GEN_END);
	assert_int_equal(out.granted, 0);
	generator_init(&g, &l, false);
	assert_int_equal(take(&g, 1000, 1005, 10, &out), GEN_END);
	generator_set_worker(&g, 1023);
	assert_int_equal(take(&g, 1000, 1005, 10, &out), GEN_OK);
	assert_int_equal(out.runs[0].first, id_of(&l, 1000, 1023, 0));
}

/* ---- shares ------------------------------------------------------------------------ */

static void
test_share(void **state)
{
	struct firn_layout l = preset("firn");
	struct generator g = open_with(&l, 17);
	struct gen_limits limits = { 1000, 0, 1005 };
	struct gen_grant out;

	(void)state;
	/* capped, and no second tick although the lead would allow it */
	assert_int_equal(
	    generator_take(&g, &limits, 0, 1000000, 2048, 0, &out), GEN_OK);
	assert_int_equal(out.granted, 2048);
	assert_int_equal(out.nruns, 1);
	/* what is left of the tick goes to the next in line */
	assert_int_equal(
	    generator_take(&g, &limits, 0, 1, 1024, 0, &out), GEN_OK);
	assert_int_equal(out.runs[0].first, id_of(&l, 1000, 17, 2048));
	/* none is one */
	assert_int_equal(generator_take(&g, &limits, 0, 9, 0, 0, &out), GEN_OK);
	assert_int_equal(out.granted, 1);
	/* exactly what was left: that was the share, no more */
	assert_int_equal(
	    generator_take(&g, &limits, 0, 9999, 4096 - 2050, 0, &out), GEN_OK);
	assert_int_equal(out.nruns, 1);
	assert_int_equal(generator_tick(&g, &limits), 1001);
}

/* ---- after -------------------------------------------------------------------------- */

struct after_row {
	int64_t tick;
	uint64_t worker, seq; /* of `after` */
	enum gen_result result;
	int64_t first_tick; /* of the grant, or .when */
	uint64_t first_seq;
	const char *why;
};

/* worker 17 has issued 1000/0..9; now 1000, last 1005 */
static const struct after_row after_rows[] = {
	{ 999, 17, 4095, GEN_OK, 1000, 10, "earlier tick: nothing to do" },
	{ 1000, 17, 5, GEN_OK, 1000, 10, "own, already passed" },
	{ 1000, 17, 9, GEN_OK, 1000, 10, "own last: the next" },
	{ 1000, 17, 10, GEN_OK, 1000, 11, "strictly above" },
	{ 1000, 17, 4095, GEN_OK, 1001, 0, "nothing above it in its tick" },
	{ 1000, 16, 4095, GEN_OK, 1000, 10, "lower worker: all of ours above" },
	{ 1000, 18, 0, GEN_OK, 1001, 0, "higher worker: a later tick" },
	{ 1003, 17, 7, GEN_OK, 1003, 8, "ahead, within the lead" },
	{ 1003, 18, 7, GEN_OK, 1004, 0, "ahead, of another worker" },
	{ 1005, 17, 4094, GEN_OK, 1005, 4095, "the very last allowed" },
	{ 1005, 17, 4095, GEN_AFTER, 1006, 0, "one beyond" },
	{ 1005, 18, 0, GEN_AFTER, 1006, 0, "only a later tick would do" },
	{ 1006, 0, 0, GEN_AFTER, 1007, 0, "beyond what is allowed" },
	{ 90000, 17, 0, GEN_AFTER, 90001, 0, "far beyond" },
	{ (INT64_C(1) << 41) - 1, 1023, 4095, GEN_AFTER, INT64_C(1) << 41, 0,
	    "the layout's last" },
};

static void
test_after(void **state)
{
	struct firn_layout l = preset("firn");

	(void)state;
	for (size_t i = 0; i < COUNT(after_rows); i++) {
		const struct after_row *row = &after_rows[i];
		struct generator g = open_with(&l, 17);
		struct gen_limits limits = { 1000, 0, 1005 };
		uint64_t after = id_of(&l, row->tick, row->worker, row->seq);
		struct gen_grant out;

		print_message("%s\n", row->why);
		assert_int_equal(take(&g, 1000, 1000, 10, &out), GEN_OK);
		assert_int_equal(generator_take(&g, &limits, after, 1,
				     GEN_NO_SHARE, 0, &out),
		    row->result);
		if (row->result != GEN_OK) {
			assert_int_equal(out.when, row->first_tick);
			assert_int_equal(g.last_tick, 1000);
			continue;
		}
		assert_int_equal(out.runs[0].first,
		    id_of(&l, row->first_tick, 17, row->first_seq));
		assert_true(out.runs[0].first > after);
	}
}

/* The tick is used up as well: which of the two has to be waited for? */
static void
test_after_and_full(void **state)
{
	struct firn_layout l = preset("firn");
	struct generator g = open_with(&l, 17);
	struct gen_limits limits = { 1000, 0, 1000 };
	struct gen_grant out;

	(void)state;
	assert_int_equal(take(&g, 1000, 1000, 4096, &out), GEN_OK);
	assert_int_equal(generator_take(&g, &limits, id_of(&l, 1000, 17, 4095),
			     1, GEN_NO_SHARE, 0, &out),
	    GEN_FULL);
	assert_int_equal(out.when, 1001);
	assert_int_equal(generator_take(&g, &limits, id_of(&l, 5000, 17, 0), 1,
			     GEN_NO_SHARE, 0, &out),
	    GEN_AFTER);
	assert_int_equal(out.when, 5001);
	/* no ID of this layout at all: bits above it */
	assert_int_equal(
	    generator_take(&g, &limits, UINT64_MAX, 1, GEN_NO_SHARE, 0, &out),
	    GEN_AFTER);
	assert_int_equal(out.when, INT64_C(1) << 41);
}

static void
test_after_sequence_above_worker(void **state)
{
	struct firn_layout l = preset("sonyflake");
	static const struct {
		uint64_t worker, seq, want;
	} rows[] = { { 4710, 7, 7 }, { 4711, 7, 8 }, { 4712, 7, 8 },
		{ 4712, 254, 255 } };

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct generator g = open_with(&l, 4711);
		struct gen_limits limits = { 50, 0, 50 };
		struct gen_grant out;

		assert_int_equal(generator_take(&g, &limits,
				     id_of(&l, 50, rows[i].worker, rows[i].seq),
				     1, GEN_NO_SHARE, 0, &out),
		    GEN_OK);
		assert_int_equal(
		    out.runs[0].first, id_of(&l, 50, 4711, rows[i].want));
	}
}

/* ---- the ends of the fields ------------------------------------------------------------ */

static void
test_floor_and_end(void **state)
{
	struct firn_layout l = preset("firn");
	struct generator g = open_with(&l, 17);
	int64_t end = (INT64_C(1) << 41) - 1;
	struct gen_limits limits = { 1000, 1003, 1002 };
	struct gen_grant out;

	(void)state;
	/* the floor has not passed yet */
	assert_int_equal(
	    generator_take(&g, &limits, 0, 1, GEN_NO_SHARE, 0, &out), GEN_FULL);
	assert_int_equal(out.when, 1003);
	limits.last = 1005;
	assert_int_equal(
	    generator_take(&g, &limits, 0, 1, GEN_NO_SHARE, 0, &out), GEN_OK);
	assert_int_equal(out.runs[0].first, id_of(&l, 1003, 17, 0));
	/* the last tick, whatever the limits say */
	assert_int_equal(take(&g, end, INT64_MAX, 5000, &out), GEN_OK);
	assert_int_equal(out.granted, 4096);
	assert_int_equal(out.runs[0].first + 4095, id_of(&l, end, 17, 4095));
	assert_int_equal(take(&g, end, INT64_MAX, 1, &out), GEN_END);
	assert_int_equal(take(&g, end, end, 1, &out), GEN_END);
	assert_int_equal(generator_left(&g, end + 1), 0);
}

/* Odd splits: nothing spills over, nothing overflows. */
static void
test_odd_layouts(void **state)
{
	static const char *const splits[] = { "1/0/63", "1/62/1", "62/0/2",
		"62/1/1", "1/0/1", "32/0/32", "20/20/24" };

	(void)state;
	for (size_t i = 0; i < COUNT(splits); i++) {
		struct firn_layout l = bits(splits[i]);
		uint64_t worker = layout_worker_max(&l);
		int64_t end = (int64_t)layout_tick_max(&l);
		struct generator g = open_with(&l, worker);
		struct gen_grant out;

		assert_int_equal(take(&g, end - 1, end - 1, 1, &out), GEN_OK);
		assert_int_equal(
		    out.runs[0].first, id_of(&l, end - 1, worker, 0));
		assert_int_equal(
		    take(&g, end, INT64_MAX, UINT32_MAX, &out), GEN_OK);
		assert_int_equal(out.runs[0].first, id_of(&l, end, worker, 0));
		if (l.sequence_bits < 32) {
			assert_int_equal(
			    out.granted, layout_sequence_max(&l) + 1);
			assert_int_equal(
			    take(&g, end, INT64_MAX, 1, &out), GEN_END);
		}
	}
}

/* ---- random starts ------------------------------------------------------------------------ */

static uint64_t
sequence_of(const struct firn_layout *l, uint64_t id)
{
	struct firn_parts p = { .size = sizeof(p) };

	assert_int_equal(firn_decode(l, id, &p), 0);
	return (p.sequence);
}

/* At low rates each remainder gets its part: id % 8 here. */
static void
test_random_start_spreads(void **state)
{
	struct firn_layout l = preset("firn");
	struct dice d = dice_open("random start");
	unsigned hits[8] = { 0 };
	bool upper = false;
	struct generator g;

	(void)state;
	generator_init(&g, &l, true);
	generator_set_worker(&g, 17);
	for (int64_t t = 0; t < 80000; t += 10) {
		struct gen_limits limits = { t, 0, t + 5 };
		struct gen_grant out;

		assert_int_equal(generator_take(&g, &limits, 0, 1, GEN_NO_SHARE,
				     dice_next(&d), &out),
		    GEN_OK);
		hits[out.runs[0].first % 8]++;
		if (sequence_of(&l, out.runs[0].first) >= 2048)
			upper = true;
	}
	assert_true(upper);
	/* 1000 each; nine standard deviations */
	for (size_t i = 0; i < COUNT(hits); i++)
		assert_in_range(hits[i], 730, 1270);
}

/* Whatever the seed: the request fits, and a tick without a next is half. */
static void
test_random_start_leaves_room(void **state)
{
	static const uint64_t seeds[] = { 0, 1, 2047, 2048, 4095, 4096,
		UINT64_MAX };
	static const uint32_t counts[] = { 1, 2, 2048, 4095, 4096, 5000 };
	struct firn_layout l = preset("firn");

	(void)state;
	for (size_t i = 0; i < COUNT(seeds) * COUNT(counts) * 2; i++) {
		uint32_t count = counts[i / 2 % COUNT(counts)];
		bool lead = i % 2 == 1;
		struct gen_limits limits = { 1000, 0, lead ? 1005 : 1000 };
		struct gen_grant out;
		struct generator g;

		generator_init(&g, &l, true);
		generator_set_worker(&g, 17);
		assert_int_equal(
		    generator_take(&g, &limits, 0, count, GEN_NO_SHARE,
			seeds[i / 2 / COUNT(counts)], &out),
		    GEN_OK);
		assert_int_equal(
		    out.runs[0].count, count < 4096 ? count : 4096);
		if (!lead)
			assert_true(sequence_of(&l, out.runs[0].first) < 2048);
	}
}

/* A busy agent loses one tick's part to a random start, then none. */
static void
test_random_start_under_load(void **state)
{
	struct firn_layout l = preset("firn");
	struct dice d = dice_open("random start under load");
	struct generator g;
	uint64_t before;

	(void)state;
	generator_init(&g, &l, true);
	generator_set_worker(&g, 17);
	for (int64_t t = 0; t < 200; t++) {
		struct gen_limits limits = { t, 0, t };
		struct gen_grant out;

		before = g.issued;
		while (generator_take(&g, &limits, 0, 100, GEN_NO_SHARE,
			   dice_next(&d), &out) == GEN_OK)
			;
		assert_true(g.issued - before >= (t == 0 ? 2048 : 4096));
	}
}

/* ---- random worlds --------------------------------------------------------------------------- */

/* What a world has seen, for the promises to be held against. */
struct world {
	struct dice *d;
	struct generator g;
	int64_t now;
	uint64_t highest; /* ID */
	bool any;
	int64_t closed; /* the last tick of the worker ID before */
};

static void
check_grant(struct world *w, const struct gen_limits *limits, uint64_t after,
    uint32_t count, uint64_t share, const struct gen_grant *out)
{
	uint64_t sum = 0;
	int64_t tick_before = NO_TICK;

	assert_in_range(out->nruns, 1, GEN_RUNS_MAX);
	for (unsigned i = 0; i < out->nruns; i++) {
		const struct run *r = &out->runs[i];
		uint64_t last = r->first + (r->count - 1) * r->stride;
		uint64_t tick, worker, seq, tick2, worker2, seq2;

		assert_true(r->count >= 1 && r->count <= share);
		assert_true(!w->any || r->first > w->highest);
		assert_true(r->first > after || after == 0);
		assert_true(
		    layout_split(&w->g.layout, r->first, &tick, &worker, &seq));
		assert_true(
		    layout_split(&w->g.layout, last, &tick2, &worker2, &seq2));
		assert_true(tick == tick2 && seq2 - seq == r->count - 1);
		assert_true(worker == w->g.worker && worker2 == w->g.worker);
		assert_true((int64_t)tick >= limits->first &&
			    (int64_t)tick >= limits->now &&
			    (int64_t)tick <= limits->last);
		assert_true((int64_t)tick > tick_before);
		assert_true((int64_t)tick > w->closed);
		tick_before = (int64_t)tick;
		w->highest = last;
		w->any = true;
		sum += r->count;
	}
	assert_int_equal(sum, out->granted);
	assert_true(sum <= count);
}

/* An ID not far from the present tick, of any worker; or anything. */
static uint64_t
random_after(struct world *w)
{
	const struct firn_layout *l = &w->g.layout;
	int64_t tick = w->now + dice_range(w->d, -4, 8);
	uint64_t id = 0;

	switch (dice_below(w->d, 4)) {
	case 0:
		return (w->any ? w->highest : 0);
	case 1:
		if (dice_below(w->d, 20) == 0)
			return (dice_number(w->d));
		(void)layout_compose(l, (uint64_t)(tick > 0 ? tick : 0),
		    dice_below(w->d, layout_worker_max(l) + 1),
		    dice_below(w->d, layout_sequence_max(l) + 1), &id);
		return (id);
	}
	return (0);
}

static void
world_turn(struct world *w)
{
	uint64_t after = random_after(w), share = GEN_NO_SHARE;
	uint32_t count =
	    (uint32_t)dice_range(w->d, 1, 1 << dice_below(w->d, 14));
	struct gen_limits limits = { .now = w->now };
	int64_t held = w->g.last_tick;
	enum gen_result r;
	struct gen_grant out;

	if (dice_below(w->d, 3) == 0)
		w->now += dice_range(w->d, -2, 4);
	if (w->now < 0)
		w->now = 0;
	if (dice_below(w->d, 200) == 0) {
		uint64_t old = w->g.worker;

		generator_set_worker(&w->g,
		    dice_below(w->d, layout_worker_max(&w->g.layout) + 1));
		if (old != w->g.worker)
			w->closed = w->g.last_tick;
	}
	limits.now = w->now;
	limits.first = dice_range(w->d, w->now - 9, w->now + 2);
	limits.last = dice_range(w->d, w->now - 1, w->now + 5);
	if (dice_below(w->d, 2) == 0)
		share = dice_below(w->d, 600) + 1;
	r = generator_take(
	    &w->g, &limits, after, count, share, dice_next(w->d), &out);
	if (r == GEN_OK) {
		check_grant(w, &limits, after, count, share, &out);
		return;
	}
	/* a refusal changes nothing, and names a tick that is not allowed */
	assert_int_equal(out.granted, 0);
	assert_int_equal(w->g.last_tick, held);
	assert_true(r == GEN_END || out.when > limits.last);
}

/* .when is no guess: with that tick allowed the same request is served. */
static void
world_wait(struct world *w)
{
	struct gen_limits limits = { w->now, 0, w->now };
	uint64_t after = random_after(w);
	struct generator copy = w->g;
	struct gen_grant out;
	enum gen_result r =
	    generator_take(&copy, &limits, after, 1, GEN_NO_SHARE, 0, &out);

	if ((r != GEN_FULL && r != GEN_AFTER) ||
	    out.when > (int64_t)layout_tick_max(&copy.layout))
		return;
	limits.last = limits.now = out.when;
	r = generator_take(&copy, &limits, after, 1, GEN_NO_SHARE, 0, &out);
	assert_int_equal(r, GEN_OK);
}

static void
test_random_worlds(void **state)
{
	static const char *const layouts[] = { "firn", "js53", "sonyflake",
		"discord", "instagram" };
	struct dice d = dice_open("generator");
	uint64_t issued = 0;

	(void)state;
	for (size_t i = 0; i < 6 * COUNT(layouts); i++) {
		struct firn_layout l = preset(layouts[i % COUNT(layouts)]);
		struct world w = { .d = &d, .closed = NO_TICK };

		generator_init(&w.g, &l, i % 2 == 1);
		generator_set_worker(&w.g, 5);
		w.now = dice_range(&d, 0, 1000);
		for (int n = 0; n < 5000; n++) {
			world_turn(&w);
			if (n % 16 == 0)
				world_wait(&w);
		}
		issued += w.g.issued;
	}
	print_message("%" PRIu64 " IDs\n", issued);
	assert_true(issued > 1000000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_after_another),
		cmocka_unit_test(test_full_tick),
		cmocka_unit_test(test_borrowing),
		cmocka_unit_test(test_borrowed_ticks_are_counted),
		cmocka_unit_test(test_sixteen_runs),
		cmocka_unit_test(test_stride),
		cmocka_unit_test(test_worker_change),
		cmocka_unit_test(test_worker_does_not_fit),
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_after),
		cmocka_unit_test(test_after_and_full),
		cmocka_unit_test(test_after_sequence_above_worker),
		cmocka_unit_test(test_floor_and_end),
		cmocka_unit_test(test_odd_layouts),
		cmocka_unit_test(test_random_start_spreads),
		cmocka_unit_test(test_random_start_leaves_room),
		cmocka_unit_test(test_random_start_under_load),
		cmocka_unit_test(test_random_worlds),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
