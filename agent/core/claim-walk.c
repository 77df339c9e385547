/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim-walk - a worker ID is given up, and another one is chosen.
 *
 * Invariant: no worker ID is chosen whose mark is known to have been deleted.
 */
#include <string.h>

#include "claim-private.h"

/* Gives the ID of the own node up and walks on. */
void
claim_walk_on(struct claim *c, struct claim_now now, const char *cause)
{
	enum claim_state after = CLAIM_CREATING;

	if (!claim_owns(c)) {
		c->has_own = false;
		c->want = NO_WORKER;
	}
	c->hold = false;
	c->given_up++;
	if (c->given_up >= CLAIM_WALK_MAX || c->rounds > 0) {
		after = CLAIM_SWEEPING;
		c->rounds++;
	}
	if (c->node[0] != '\0')
		claim_clear(c, c->node, c->node_generation, after, cause);
	else
		claim_enter(c, after, cause);
	(void)now;
}

uint64_t
claim_mark_taken(const struct contract *k, const char *const *names, size_t n,
    uint64_t *scratch)
{
	uint64_t usable = k->worker_last - k->worker_first + 1, taken = 0;

	memset(scratch, 0, (usable + 63) / 64 * sizeof(*scratch));
	for (size_t i = 0; i < n; i++) {
		struct claim_name cn;
		uint64_t worker, at;

		if (!claim_name_parse(names[i], &cn))
			continue;
		worker = claim_name_worker(&cn, k);
		if (worker == NO_WORKER)
			continue;
		at = worker - k->worker_first;
		if ((scratch[at / 64] >> (at % 64) & 1) == 0)
			taken++;
		scratch[at / 64] |= UINT64_C(1) << (at % 64);
	}
	return (taken);
}

void
claim_remember_denied(struct claim *c, uint64_t worker)
{
	if (c->ndenied == CLAIM_DENIED) {
		memmove(c->denied, c->denied + 1,
		    sizeof(c->denied) - sizeof(c->denied[0]));
		c->ndenied--;
	}
	c->denied[c->ndenied++] = worker;
}

static bool
is_denied(const struct claim *c, uint64_t worker)
{
	for (unsigned i = 0; i < c->ndenied; i++) {
		if (c->denied[i] == worker)
			return (true);
	}
	return (false);
}

/* What a free ID's mark stands at, as far as that can be known; or never. */
static int64_t
row_ceiling(const struct claim *c, struct claim_now now,
    const struct claim_result *r, size_t i)
{
	int64_t ceiling = r->rows[i].ceiling;

	if (is_denied(c, r->rows[i].worker))
		return (INT64_MAX);
	if (ceiling != NO_TICK)
		return (ceiling);
	if (claim_is_gone(c, r->rows[i].worker))
		return (INT64_MAX);
	return (claim_any_deleted(r) ? claim_far_ahead(c, now) : NO_TICK);
}

/*
 * The free ID with the lowest mark, at random among equals.  Ahead, what lies
 * within one renewal is equal: after a mass loss all marks are as far ahead,
 * and not everybody may wait for the same one.
 */
static void
choose_row(struct claim *c, struct claim_now now, const struct claim_result *r,
    int64_t lowest, int64_t limit)
{
	int64_t bar = lowest;
	uint64_t equal = 0;

	if (lowest > limit)
		bar = add_sat(
		    lowest, c->conf.renew_ms / (int64_t)c->k.layout.tick_ms);
	for (size_t i = 0; i < r->nrows; i++) {
		int64_t ceiling = row_ceiling(c, now, r, i);

		if (ceiling > bar || ceiling == INT64_MAX ||
		    claim_next_jitter(c) % ++equal != 0)
			continue;
		c->want = r->rows[i].worker;
		c->hold_ceiling = ceiling;
	}
}

void
claim_on_sweep(
    struct claim *c, struct claim_now now, const struct claim_result *r)
{
	int64_t limit = claim_tick(c, now.unix_ms + c->conf.claim_wait_ms);
	int64_t lowest = INT64_MAX;

	if (r->rc != RC_OK) {
		claim_retry_way(c, now);
		return;
	}
	if (limit < c->not_before)
		limit = c->not_before;
	c->taken = r->taken;
	c->free_ids = r->nrows;
	c->quarantined = 0;
	c->want = NO_WORKER;
	for (size_t i = 0; i < r->nrows; i++) {
		int64_t ceiling = row_ceiling(c, now, r, i);

		if (ceiling > limit)
			c->quarantined++;
		if (ceiling < lowest)
			lowest = ceiling;
	}
	choose_row(c, now, r, lowest, limit);
	if (c->want == NO_WORKER) {
		c->ndenied = 0; /* the next time they may be allowed */
		claim_enter(c, CLAIM_FULL, "no worker ID is free");
		c->way.wait =
		    claim_back_off(c, now.boot, c->rounds++, 2000, 30000);
		return;
	}
	c->hold = lowest > limit;
	claim_enter(c, CLAIM_CREATING,
	    c->hold ? "all free marks are ahead: takes one least ahead"
		    : "names the free worker ID with the lowest mark");
}
