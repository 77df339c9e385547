/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world-issue - clients ask for IDs, and each ID is booked.
 *
 * Invariant: only what a copied process issues before it can know goes
 * unbooked.
 */
#include <inttypes.h>
#include <stdio.h>

#include "world-private.h"

/*
 * Copied, and no write of the mark that was sent since has been settled, or
 * its old window still stands.
 */
static bool
is_unsettled(const struct host *h)
{
	return (h->running && h->twin != 0 &&
		(h->claim.has_old ||
		    (h->claim.has_own && h->claim.renewals + h->claim.twins <=
					     h->twin_settled)));
}

/*
 * Until each of the two has renewed once they repeat each other: nothing
 * inside can tell, and the page of promises says so.
 */
static bool
in_twin_time(struct world *w, struct host *h)
{
	struct host *other;

	if (h->twin == 0)
		return (false);
	other = &w->hosts[h->twin - 1];
	if (is_unsettled(h) || (other->twin == 1 + (unsigned)(h - w->hosts) &&
				   is_unsettled(other)))
		return (true);
	h->twin = 0;
	return (false);
}

static unsigned
book_run(struct world *w, const struct firn_parts *p, const struct run *r)
{
	unsigned again = ledger_book(
	    w->ledger, p->worker, p->tick, (unsigned)p->sequence, r->count);

	w->t.repeats += again;
	return (again);
}

static void
book(
    struct world *w, struct host *h, uint64_t *after, const struct gen_grant *g)
{
	const struct firn_layout *l = &w->z.k.layout;
	bool twins = in_twin_time(w, h);

	for (unsigned i = 0; i < g->nruns; i++) {
		struct firn_parts p;
		const struct run *r = &g->runs[i];

		if (firn_decode(l, r->first, &p) != 0 ||
		    (w->w.force_worker != NO_WORKER &&
			p.worker != w->w.force_worker)) {
			w->t.outside++;
			continue;
		}
		if (r->first <= *after)
			w->t.decreases++;
		*after = r->first + (r->count - 1) * r->stride;
		w->t.ids += r->count;
		if (twins)
			continue;
		if (book_run(w, &p, r) > 0)
			(void)fprintf(stderr,
			    "sim: at %.3f s host %td repeats worker %" PRIu64
			    " tick %" PRIu64 " sequence %" PRIu64 "\n",
			    (double)w->now / 1e9 - 1000, h - w->hosts, p.worker,
			    p.tick, p.sequence);
	}
}

/* One request of one client; false: it was not granted. */
static bool
ask(struct world *w, struct host *h, uint64_t *after, uint32_t count)
{
	struct serve_answer a;
	struct serve_request rq = {
		.count = count,
		.after = *after,
		.random = world_roll(w),
		.waiting = world_odds(w, 100) ? 3 : 0,
	};
	struct instant in;
	struct claim_now t = world_time_of(w, h, &in);

	world_update_facts(h, t);
	serve_batch(&h->serve, &h->clock, &in, &rq, &a);
	if (a.verdict == SERVE_GRANT)
		book(w, h, after, &a.grant);
	else if (a.verdict == SERVE_REFUSE)
		w->t.refusals[a.reason & 15]++;
	return (a.verdict == SERVE_GRANT);
}

void
world_issue(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];
	uint64_t *after = &h->after[world_roll(w) % CLIENTS];

	if (!h->served)
		return;
	if (world_odds(w, 2)) /* a new handle */
		*after = 0;
	(void)ask(w, h, after,
	    (uint32_t)world_between(w, 1, world_odds(w, 100) ? 400 : 20));
	if (!w->w.restless || !world_odds(w, 10))
		return;
	/* A burst takes all that may be had, and is the end of the process. */
	while (ask(w, h, after, 1000))
		continue;
	if (!h->claim.stopping && world_odds(w, 500))
		world_file_trouble(w, i);
}
