/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world-disaster - ZooKeeper's data goes back, or is lost.
 *
 * Invariant: but for careless operators, data goes back only where every agent
 * remembers enough to notice, and none starts that would not.
 */
#include <string.h>

#include "world-private.h"

void
world_copy_data(struct world *w)
{
	if (w->w.roll_back_ms == 0)
		return;
	world_again(w, EV_COPY, COPY_NS / NS_PER_MS);
	if (w->z.missing || w->went_back)
		return;
	if (w->ncopies == COPIES) {
		keeper_free(&w->copies[0]);
		memmove(w->copies, w->copies + 1,
		    (COPIES - 1) * sizeof(w->copies[0]));
		w->ncopies--;
	}
	keeper_copy(&w->z, &w->copies[w->ncopies++]);
}

/* The servers go down and come up, for each host at its own time. */
static void
cut_for_a_while(struct world *w)
{
	for (unsigned i = 0; i < w->w.hosts; i++)
		world_cut_link(w, i,
		    world_between(w, 1, world_odds(w, 800) ? 3000 : 40000));
}

/*
 * A process that knows nothing of this tree's time after the copy, or so
 * little that others' writes hide it, would take what is gone for never done.
 */
static bool
remembers(const struct world *w, const struct contract *k, int64_t zxid)
{
	return (k->generation == w->z.k.generation && zxid > w->known_zxid);
}

static bool
all_remember(const struct world *w)
{
	for (unsigned i = 0; i < w->w.hosts; i++) {
		const struct host *h = &w->hosts[i];

		if (h->running && !remembers(w, &h->claim.k, h->claim.zxid))
			return (false);
	}
	return (true);
}

/* May it start now?  Only with a record that remembers. */
bool
world_may_boot(const struct world *w, const struct host *h)
{
	const struct instant in = world_clock_of(w, h);

	if (!w->went_back)
		return (true);
	return (world_may_resume(h, wall_ms(in.wall) + 10000) &&
		remembers(w, &h->file.contract, h->file.zxid));
}

void
world_roll_back(struct world *w)
{
	const struct keeper *copy;

	if (w->w.roll_back_ms == 0)
		return;
	if (w->went_back || w->z.missing || w->ncopies == 0) {
		world_again(w, EV_ROLL_BACK, w->w.roll_back_ms);
		return;
	}
	copy = &w->copies[world_roll(w) % w->ncopies];
	w->known_zxid = copy->zxid + 8 * (int64_t)w->w.hosts;
	if (!w->w.careless && !all_remember(w)) {
		world_again(w, EV_ROLL_BACK, 500);
		return;
	}
	world_again(w, EV_ROLL_BACK, w->w.roll_back_ms);
	w->t.rollbacks++;
	keeper_restore(&w->z, copy, w->next_session);
	cut_for_a_while(w);
	if (w->w.careless)
		return;
	w->went_back = true;
	world_again(w, EV_RENEW, (unsigned)world_between(w, 100, 90000));
}

void
world_wipe(struct world *w)
{
	if (w->w.wipe_ms == 0)
		return;
	world_again(w, EV_WIPE, w->w.wipe_ms);
	if (w->went_back || w->z.missing)
		return;
	w->t.wipes++;
	keeper_wipe(&w->z, w->next_session);
	cut_for_a_while(w);
	world_again(w, EV_RENEW, (unsigned)world_between(w, 100, 90000));
}
