/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generator - hands out runs of IDs.
 *
 * Invariant: (last_tick, next) only goes up, and each ID granted lies at or
 * above what it was before; worker_from keeps two worker IDs out of one tick.
 */
#include "generator.h"

#include <string.h>

#include "layout.h"

/* Where a request stands: the next ID would be of this tick and sequence. */
struct place {
	int64_t tick;
	uint64_t sequence; /* max + 1: used up */
};

static uint64_t
minu64(uint64_t a, uint64_t b)
{
	return (a < b ? a : b);
}

/* Sequences in a tick; at most 2^63, since a layout has a bit of time. */
static uint64_t
tick_size(const struct generator *g)
{
	return (layout_sequence_max(&g->layout) + 1);
}

static bool
is_used_up(const struct generator *g)
{
	return (g->last_tick != NO_TICK && g->next == tick_size(g));
}

void
generator_init(
    struct generator *g, const struct firn_layout *layout, bool random_start)
{
	memset(g, 0, sizeof(*g));
	g->layout = *layout;
	g->random_start = random_start;
	g->worker = NO_WORKER;
	g->last_tick = NO_TICK;
}

void
generator_set_worker(struct generator *g, uint64_t worker)
{
	if (worker == g->worker)
		return;
	g->worker = worker;
	g->worker_from = g->last_tick + 1;
}

int64_t
generator_tick(const struct generator *g, const struct gen_limits *limits)
{
	int64_t t = max64(limits->first, limits->now);

	t = max64(t, max64(g->worker_from, 0));
	t = max64(t, g->last_tick);
	if (t == g->last_tick && is_used_up(g))
		t++;
	return (t);
}

uint64_t
generator_left(const struct generator *g, int64_t tick)
{
	if (tick < 0 || tick < g->worker_from || tick < g->last_tick ||
	    tick > (int64_t)layout_tick_max(&g->layout))
		return (0);
	return (tick == g->last_tick ? tick_size(g) - g->next : tick_size(g));
}

/* The first sequence of `tick` with which an ID is above `after`. */
static uint64_t
sequence_above(const struct generator *g, int64_t tick, uint64_t after)
{
	uint64_t lowest, stride = layout_stride(&g->layout);

	if (!layout_compose(&g->layout, (uint64_t)tick, g->worker, 0, &lowest))
		return (tick_size(g));
	if (lowest > after)
		return (0);
	return (minu64((after - lowest) / stride + 1, tick_size(g)));
}

/* The tick of an ID; above the layout's last if it is none of this layout. */
static int64_t
tick_of(const struct generator *g, uint64_t id)
{
	return ((int64_t)(id >> ((unsigned)g->layout.worker_bits +
				    g->layout.sequence_bits)));
}

/* A start for a tick that no ID was issued of yet. */
static uint64_t
start_sequence(const struct generator *g, const struct gen_limits *limits,
    int64_t tick, uint32_t count, uint64_t random)
{
	uint64_t range, size = tick_size(g);

	if (!g->random_start || (is_used_up(g) && tick == g->last_tick + 1))
		return (0);
	range = size - minu64(count, size) + 1;
	if (tick >= limits->last)
		range = minu64(range, size / 2);
	return (random % range);
}

/*
 * The place of the next ID above `after`.  A sequence above 0 only ever skips
 * IDs, so whatever `after` says nothing is granted twice.
 */
static struct place
find_place(const struct generator *g, const struct gen_limits *limits,
    uint64_t after, uint32_t count, uint64_t random)
{
	struct place p = { .tick = generator_tick(g, limits) };
	unsigned shift =
	    (unsigned)g->layout.worker_bits + g->layout.sequence_bits;
	int64_t after_tick = (int64_t)(after >> shift);
	uint64_t above;

	p.tick = max64(p.tick, after_tick);
	if (p.tick > limits->last)
		return (p);
	p.sequence = p.tick == g->last_tick
			 ? g->next
			 : start_sequence(g, limits, p.tick, count, random);
	if (after == 0 || p.tick > after_tick)
		return (p);
	above = sequence_above(g, p.tick, after);
	if (above == tick_size(g))
		return ((struct place){ .tick = p.tick + 1 });
	if (above > p.sequence)
		p.sequence = above;
	return (p);
}

/* Grants one run at the place and moves on to the next; false: no fit. */
static bool
take_run(struct generator *g, const struct gen_limits *limits, struct place *p,
    uint64_t want, struct gen_grant *out)
{
	struct run *r = &out->runs[out->nruns];
	uint64_t n = minu64(want, tick_size(g) - p->sequence);

	if (!layout_compose(&g->layout, (uint64_t)p->tick, g->worker,
		p->sequence, &r->first))
		return (false);
	r->stride = layout_stride(&g->layout);
	r->count = (uint32_t)n;
	out->nruns++;
	out->granted += r->count;

	if (p->tick > limits->now && p->tick > g->last_tick)
		g->borrowed++;
	p->sequence += n;
	g->last_tick = p->tick;
	g->next = p->sequence;
	g->issued += n;
	g->runs++;
	if (is_used_up(g)) {
		g->exhausted++;
		*p = (struct place){ .tick = p->tick + 1 };
	}
	return (true);
}

/* Why nothing was granted, and from which tick on it can be. */
static enum gen_result
refuse(const struct generator *g, const struct gen_limits *limits,
    uint64_t after, struct gen_grant *out)
{
	int64_t tick_max = (int64_t)layout_tick_max(&g->layout);
	int64_t after_tick = tick_of(g, after);
	int64_t tick = generator_tick(g, limits);

	if (tick > tick_max || g->worker > layout_worker_max(&g->layout))
		return (GEN_END);
	if (tick > limits->last && after_tick <= limits->last) {
		out->when = tick;
		return (GEN_FULL);
	}
	out->when = (after_tick < tick_max ? after_tick : tick_max) + 1;
	out->when = max64(out->when, tick);
	return (GEN_AFTER);
}

enum gen_result
generator_take(struct generator *g, const struct gen_limits *limits,
    uint64_t after, uint32_t count, uint64_t share, uint64_t random,
    struct gen_grant *out)
{
	struct gen_limits l = *limits;
	struct place p;

	memset(out, 0, sizeof(*out));
	if (l.last > (int64_t)layout_tick_max(&g->layout))
		l.last = (int64_t)layout_tick_max(&g->layout);
	if (share == 0)
		share = 1;
	p = find_place(g, &l, after, count, random);
	while (p.tick <= l.last && out->granted < count &&
	       out->nruns < GEN_RUNS_MAX) {
		uint64_t want = minu64(count - out->granted, share);

		if (!take_run(g, &l, &p, want, out))
			break;
		if (out->runs[out->nruns - 1].count == share)
			break;
	}
	if (out->granted > 0)
		return (GEN_OK);
	return (refuse(g, &l, after, out));
}
