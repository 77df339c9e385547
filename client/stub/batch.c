/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch - the handle's stock of runs and the threads' parts of it.
 *
 * Invariant: an ID leaves the stock once, to one taker, in rising order.
 */
#include <string.h>

#include "batch.h"
#include "layout.h"

#define GRAIN_GROWTH 4
#define GRAIN_SOON_NS INT64_C(10000000) /* came back soon: grow */

uint64_t
part_drop(struct part *p)
{
	uint64_t left = part_left(p);

	part_set(p->end, part_get(p->next));
	part_set(p->seen_ns, 0);
	return (left);
}

bool
part_young(struct part *p, const struct moment *now)
{
	if (now->mono_ns < part_get(p->mono_until_ns) &&
	    now->real_ns < part_get(p->real_until_ns)) {
		part_set(p->seen_ns, now->mono_ns);
		return (true);
	}
	return (false);
}

size_t
part_take_many(struct part *p, uint64_t *ids, size_t n)
{
	uint64_t left = part_left(p), next = part_get(p->next);
	uint64_t stride = part_get(p->stride);

	if (n > left)
		n = (size_t)left;
	for (size_t i = 0; i < n; i++)
		ids[i] = next + i * stride;
	part_set(p->next, next + n * stride);
	return (n);
}

void
part_claim(struct part *p, uint64_t owner, int32_t tid)
{
	(void)part_drop(p);
	part_set(p->grain, 0);
	part_set(p->refilled_ns, 0);
	part_set(p->tid, tid);
	part_set(p->owner, owner);
}

bool
batch_check_run(const struct firn_layout *l, const struct wire_run *run,
    uint64_t above, uint64_t *last)
{
	struct firn_parts parts = { .size = (uint32_t)sizeof(parts) };

	if (run->count == 0 || run->first <= above ||
	    run->stride != layout_stride(l))
		return (false);
	if (firn_decode(l, run->first, &parts) != FIRN_OK)
		return (false);
	/* within the sequence's field: so tick and worker stay the same */
	if (run->count - 1 > layout_sequence_max(l) - parts.sequence)
		return (false);
	*last = run->first + run->stride * (run->count - 1);
	return (true);
}

bool
batch_add(struct batch *b, const struct batch_run *run)
{
	if (b->n == BATCH_RUNS)
		return (false);
	b->runs[(b->head + b->n) % BATCH_RUNS] = *run;
	b->n++;
	b->left += run->run.count;
	return (true);
}

static void
batch_pop(struct batch *b)
{
	b->left -= b->runs[b->head].run.count;
	b->head = (b->head + 1) % BATCH_RUNS;
	b->n--;
}

uint64_t
batch_trim(struct batch *b, uint64_t generation, const struct moment *now)
{
	uint64_t before = b->left;

	while (b->n > 0) {
		const struct batch_run *r = &b->runs[b->head];

		if (r->generation == generation &&
		    now->mono_ns < r->mono_until_ns &&
		    now->real_ns < r->real_until_ns)
			break;
		batch_pop(b);
	}
	return (before - b->left);
}

/* Takes n IDs off the first run, which has them. */
static void
batch_cut(struct batch *b, uint32_t n)
{
	struct wire_run *r = &b->runs[b->head].run;

	r->first += r->stride * n;
	r->count -= n;
	b->left -= n;
	if (r->count == 0)
		batch_pop(b);
}

size_t
batch_take(struct batch *b, uint64_t *ids, size_t n)
{
	size_t done = 0;

	while (done < n && b->n > 0) {
		const struct wire_run *r = &b->runs[b->head].run;
		uint64_t first = r->first, stride = r->stride;
		uint32_t k = r->count;

		if (k > n - done)
			k = (uint32_t)(n - done);
		for (uint32_t i = 0; i < k; i++)
			ids[done + i] = first + i * stride;
		done += k;
		batch_cut(b, k);
	}
	return (done);
}

/* How many IDs the thread gets this time. */
static uint64_t
batch_grain(const struct batch *b, const struct part *p, int64_t mono_ns)
{
	int64_t away_ns = mono_ns - part_get(p->refilled_ns);
	uint64_t grain = part_get(p->grain);
	uint64_t most = b->granted / BATCH_PARTS;

	if (away_ns <= GRAIN_SOON_NS)
		grain = grain * GRAIN_GROWTH + 1;
	else if (away_ns > BATCH_SPAN_NS)
		grain = 0;
	return (grain < most ? grain : most);
}

uint64_t
batch_share(struct batch *b, struct part *p, const struct moment *now)
{
	const struct batch_run *r = &b->runs[b->head];
	uint64_t grain = batch_grain(b, p, now->mono_ns);
	uint32_t k;

	part_set(p->grain, grain);
	part_set(p->refilled_ns, now->mono_ns);
	if (grain == 0 || b->n == 0)
		return (0);
	k = grain < r->run.count ? (uint32_t)grain : r->run.count;
	part_set(p->seen_ns, 0); /* the deadlines are new: compare them */
	part_set(p->mono_until_ns, r->mono_until_ns);
	part_set(p->real_until_ns, r->real_until_ns);
	part_set(p->next, r->run.first);
	part_set(p->stride, r->run.stride);
	part_set(p->end, r->run.first + k * r->run.stride);
	batch_cut(b, k);
	return (k);
}

uint32_t
demand_want(const struct demand *d, int64_t now_ns, uint32_t max)
{
	int64_t elapsed_ns = now_ns - d->since_ns;
	uint64_t want, most = (uint64_t)d->asked * BATCH_GROWTH;

	if (d->since_ns == 0)
		return (1);
	if (elapsed_ns < 1000)
		elapsed_ns = 1000;
	want = d->used * (uint64_t)BATCH_SPAN_NS / (uint64_t)elapsed_ns;
	if (want > most)
		want = most;
	if (want > max)
		want = max;
	return (want > 0 ? (uint32_t)want : 1);
}

void
demand_sent(struct demand *d, int64_t now_ns, uint32_t count)
{
	d->since_ns = now_ns;
	d->used = 0;
	d->asked = count;
}
