/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim-take - the way from a claim node to a mark of our own: read, or counted
 * and made, then taken over.
 *
 * Invariant: a window begins no lower than what may have been issued before.
 */
#include <string.h>

#include "claim-private.h"
#include "layout.h"

int64_t
claim_far_ahead(const struct claim *c, struct claim_now now)
{
	return (claim_tick(
	    c, now.unix_ms + c->k.reserve_max_ms + c->conf.skew_refuse_ms));
}

bool
claim_any_deleted(const struct claim_result *r)
{
	return (r->stat.cversion != r->stat.num_children);
}

/*
 * Each deletion is news once, not at each worker ID that has no mark.  A mark
 * that was made and deleted has changed the children twice.
 */
static void
count_deletions(struct claim *c, const struct claim_result *r)
{
	int64_t changes =
	    (int64_t)r->stat.cversion - (int64_t)r->stat.num_children;

	if (c->deletions * 2 == changes)
		return;
	c->deletions = changes / 2;
	c->marks_deleted++;
	c->marks_deleted_worker = c->node_worker;
}

/* Saturates: a mark may lie ages ahead. */
static int64_t
ticks_to_ms(const struct claim *c, int64_t ticks)
{
	int64_t ms;

	if (__builtin_mul_overflow(ticks, (int64_t)c->k.layout.tick_ms, &ms))
		return (INT64_MAX);
	return (ms);
}

/* The mark names the process before this one, gone as its lock is ours. */
static bool
is_past(const struct claim *c, const struct mark *mark)
{
	return (c->has_past && c->past.same_home &&
		strcmp(mark->owner, c->past.claim) == 0);
}

/* A readable ceiling for the worker ID in hand is a floor. */
static int64_t
past_floor(const struct claim *c, int64_t ceiling)
{
	if (c->has_past && c->past.worker == c->node_worker &&
	    c->past.ceiling > ceiling)
		return (c->past.ceiling);
	return (ceiling);
}

static void
hold(struct claim *c, struct claim_now now, const char *cause)
{
	if (c->state != CLAIM_HOLDING)
		c->say_at = now.boot;
	claim_enter(c, CLAIM_HOLDING, cause);
}

void
claim_on_mark(
    struct claim *c, struct claim_now now, const struct claim_result *r)
{
	int64_t limit = claim_tick(c, now.unix_ms + c->conf.claim_wait_ms);

	if (c->yields && (r->rc == RC_NONODE || r->rc == RC_OK) &&
	    (r->mark == NULL || !is_past(c, r->mark))) {
		claim_walk_on(c, now, "an older claim has this worker ID");
		return;
	}
	if (r->rc == RC_NONODE) {
		if (c->seen == c->node_worker && !claim_is_gone(c, c->seen))
			claim_remember_gone(c, c->seen);
		if (claim_is_gone(c, c->node_worker) &&
		    c->conf.force_worker == NO_WORKER)
			claim_walk_on(c, now, "its mark was deleted");
		else
			claim_enter(c, CLAIM_COUNTING, "no mark");
		return;
	}
	if (r->rc == RC_GARBLED || r->rc == RC_DENIED) {
		claim_walk_on(c, now,
		    r->rc == RC_GARBLED ? "the mark makes no sense"
					: "the mark may not be read");
		return;
	}
	if (r->rc != RC_OK) {
		claim_retry_way(c, now);
		return;
	}
	c->seen = c->node_worker;
	if (limit <
	    c->not_before) /* all marks are as far ahead: wait on this */
		limit = c->not_before;
	if (r->mark->ceiling > limit && !is_past(c, r->mark) &&
	    c->conf.force_worker == NO_WORKER) {
		if (c->still) { /* the own clock is off: others are not */
			hold(
			    c, now, "the mark is ahead of a clock that is off");
			c->way.wait = mono_add_ms(now.boot, 1000);
			return;
		}
		if (!c->hold || r->mark->ceiling > c->hold_ceiling) {
			claim_walk_on(
			    c, now, "the mark is ahead: a window may stand");
			return;
		}
		hold(c, now, "waits for the mark to be passed");
		c->way.wait = mono_add_ms(
		    now.boot, ticks_to_ms(c, sub_sat(r->mark->ceiling, limit)));
		return;
	}
	window_begin(&c->own, c->node_worker, past_floor(c, r->mark->ceiling),
	    r->stat.version, r->stat.czxid);
	if (is_past(c, r->mark)) /* goes on where that one ended */
		window_lower_floor(&c->own, c->past.local_mark);
	memcpy(c->own_generation, c->k.generation_text, GENERATION_MAX);
	c->has_own = true;
	c->made = false;
	claim_enter(c, CLAIM_TAKING, "takes the mark over");
}

void
claim_on_count(
    struct claim *c, struct claim_now now, const struct claim_result *r)
{
	int64_t ceiling = c->not_before;
	bool deleted;

	if (r->rc != RC_OK) {
		claim_retry_way(c, now);
		return;
	}
	deleted = claim_any_deleted(r);
	if (deleted) {
		count_deletions(c, r);
		if (ceiling < claim_far_ahead(c, now))
			ceiling = claim_far_ahead(c, now);
		if (c->state == CLAIM_COUNTING && !c->hold &&
		    c->conf.force_worker == NO_WORKER) {
			claim_walk_on(c, now, "the mark may have been deleted");
			return;
		}
	}
	if (c->state == CLAIM_VERIFYING) {
		if (deleted && ceiling > c->own.ceiling) {
			/* Deleted between our look and our creation. */
			window_begin(&c->own, c->node_worker, ceiling,
			    c->own.version, c->own.czxid);
			c->made = false;
			claim_enter(c, CLAIM_TAKING, "raises the mark it made");
		} else {
			c->given_up = c->rounds = 0;
			claim_enter(c, CLAIM_STANDING, "mark created");
		}
		return;
	}
	window_begin(&c->own, c->node_worker, past_floor(c, ceiling), -1, 0);
	memcpy(c->own_generation, c->k.generation_text, GENERATION_MAX);
	c->has_own = true;
	c->made = true;
	claim_enter(c, CLAIM_TAKING, "creates the mark");
}

/*
 * A mark that was read may not be written, or read again: another ID has one
 * that may.  Not so of a mark that this agent made: it may have to be raised
 * before anybody goes by it.
 */
bool
claim_take_denied(
    struct claim *c, struct claim_now now, const struct claim_result *r)
{
	if (r->rc != RC_DENIED || c->state != CLAIM_TAKING || c->own.owned ||
	    c->seen != c->own.worker)
		return (false);
	claim_remember_denied(c, c->own.worker);
	claim_walk_on(c, now, "the mark may not be written");
	return (true);
}

/* What a write of the take-over, or the look after it, has said. */
void
claim_on_take(struct claim *c, struct claim_now now, enum window_news news)
{
	switch (news) {
	case WINDOW_CONFIRMED:
		c->renew_at = now.boot;
		c->renew.wait = (mono_t){ 0 };
		if (c->made) {
			claim_enter(c, CLAIM_VERIFYING, "mark created");
			return;
		}
		c->given_up = c->rounds = 0;
		claim_enter(c, CLAIM_STANDING, "mark taken over");
		return;
	case WINDOW_SAME: /* write again */
	case WINDOW_DOUBT: /* look */
		claim_retry_way(c, now);
		return;
	case WINDOW_BACK:
		claim_realm_went_back(c);
		return;
	case WINDOW_TWIN:
	case WINDOW_OTHER:
	case WINDOW_GONE:
		c->has_own = false;
		claim_enter(c, CLAIM_READING, "the mark changed meanwhile");
		return;
	}
}
