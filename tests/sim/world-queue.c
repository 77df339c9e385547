/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world-queue - dice, the queue of events, and the hosts' clocks.
 *
 * Invariant: events of one time come in the order in which they were pushed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "world-private.h"

void *
world_must(void *p)
{
	if (p == NULL) {
		(void)fprintf(stderr, "sim: out of memory\n");
		exit(1);
	}
	return (p);
}

uint64_t
world_roll(struct world *w)
{
	uint64_t z = (w->dice += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (z ^ (z >> 31));
}

int64_t
world_between(struct world *w, int64_t low, int64_t high)
{
	return (low + (int64_t)(world_roll(w) % (uint64_t)(high - low + 1)));
}

bool
world_odds(struct world *w, unsigned per_mille)
{
	return (world_roll(w) % 1000 < per_mille);
}

struct entropy
world_fresh(struct world *w)
{
	return ((struct entropy){
	    { world_roll(w), world_roll(w), world_roll(w), world_roll(w) } });
}

static bool
earlier(const struct event *a, const struct event *b)
{
	return (a->at != b->at ? a->at < b->at : a->order < b->order);
}

void
world_push(struct world *w, struct event e)
{
	size_t i = w->nheap++;

	if (w->nheap > w->heap_size) {
		w->heap_size = w->heap_size * 2 + 1024;
		w->heap = world_must(
		    realloc(w->heap, w->heap_size * sizeof(*w->heap)));
	}
	e.order = w->order++;
	while (i > 0 && earlier(&e, &w->heap[(i - 1) / 2])) {
		w->heap[i] = w->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	w->heap[i] = e;
}

struct event
world_pop(struct world *w)
{
	struct event top = w->heap[0], last = w->heap[--w->nheap];
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= w->nheap)
			break;
		if (child + 1 < w->nheap &&
		    earlier(&w->heap[child + 1], &w->heap[child]))
			child++;
		if (!earlier(&w->heap[child], &last))
			break;
		w->heap[i] = w->heap[child];
		i = child;
	}
	if (w->nheap > 0)
		w->heap[i] = last;
	return (top);
}

/* An event of the world's own. */
void
world_again(struct world *w, enum kind kind, unsigned ms)
{
	world_push(w, (struct event){ .at = w->now + (int64_t)ms * NS_PER_MS,
			  .kind = kind });
}

void
world_after_ms(struct world *w, enum kind kind, unsigned host, int64_t ms)
{
	const struct host *h = &w->hosts[host];

	world_push(w, (struct event){ .at = w->now + ms * NS_PER_MS,
			  .kind = kind,
			  .host = host,
			  .life = h->life,
			  .link = h->link,
			  .session = h->session });
}

struct instant
world_clock_of(const struct world *w, const struct host *h)
{
	struct instant in;

	in.boot.ns = w->now + h->boot_offset;
	in.wall.ns = START_MS * NS_PER_MS + w->now + h->wall_offset +
		     w->now / 1000000 * h->drift_ppm;
	in.error_ns = 1000;
	return (in);
}

struct claim_now
world_time_of(const struct world *w, struct host *h, struct instant *in)
{
	*in = world_clock_of(w, h);
	(void)clock_observe(&h->clock, in);
	if (h->clock.verdict == CLOCK_LEAP)
		clock_follow(&h->clock, in);
	return ((struct claim_now){
	    .boot = in->boot, .unix_ms = wall_ms(clock_now(&h->clock, in)) });
}
