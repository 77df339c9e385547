/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim - the state itself: how it begins, how it changes, and what of it the
 * gate is told.  Of the other claim-*.c, claim-events takes in what the shell
 * tells, claim-next says what to ask for, the rest what a reply means.
 *
 * Invariant: c->state is written by claim_enter() alone.
 */
#include <string.h>

#include "claim-private.h"
#include "layout.h"

static const char *const state_names[] = {
	[CLAIM_AWAY] = "away",
	[CLAIM_LOOKING] = "looking",
	[CLAIM_SETTLING] = "settling",
	[CLAIM_CLEARING] = "clearing",
	[CLAIM_CREATING] = "creating",
	[CLAIM_READING] = "reading",
	[CLAIM_COUNTING] = "counting",
	[CLAIM_TAKING] = "taking",
	[CLAIM_VERIFYING] = "verifying",
	[CLAIM_HOLDING] = "holding",
	[CLAIM_SWEEPING] = "sweeping",
	[CLAIM_FULL] = "full",
	[CLAIM_STANDING] = "standing",
	[CLAIM_LOWERING] = "lowering",
	[CLAIM_LEAVING] = "leaving",
	[CLAIM_STOPPED] = "stopped",
};

const char *
claim_state_name(enum claim_state s)
{
	return (state_names[s]);
}

void
claim_enter(struct claim *c, enum claim_state to, const char *cause)
{
	enum claim_state from = c->state;

	if (from == to)
		return;
	c->state = to;
	c->way.wait = (mono_t){ 0 };
	c->way.tries = 0;
	if (c->conf.changed != NULL)
		c->conf.changed(c->conf.arg, from, to, cause);
}

void
claim_realm_went_back(struct claim *c)
{
	if (c->stopping) {
		claim_enter(c, CLAIM_STOPPED, "ZooKeeper's data went back");
	} else if (c->fault != REALM_BACK) {
		c->fault = REALM_BACK;
		claim_enter(c, CLAIM_LOOKING, "ZooKeeper's data went back");
	}
}

bool
claim_realm_usable(const struct claim *c)
{
	return (c->realm_fresh && c->fault == REALM_GOOD);
}

bool
claim_owns(const struct claim *c)
{
	return (c->has_own && c->own.owned);
}

void
claim_init(struct claim *c, const struct claim_conf *conf, uint64_t seed)
{
	memset(c, 0, sizeof(*c));
	c->conf = *conf;
	c->state = CLAIM_AWAY;
	c->jitter = seed;
	c->node_worker = c->want = c->seen = c->hint = NO_WORKER;
	c->fault = REALM_UNREAD;
	c->last_tick = NO_TICK;
}

void
claim_resume(struct claim *c, const struct claim_past *past)
{
	c->has_past = true;
	c->past = *past;
	c->hint = past->worker;
	if (past->claim[0] != '\0')
		claim_remember_ghost(c, past->claim);
	if (!past->resume)
		return;
	c->realm_known = true;
	c->k = past->contract;
	c->not_before = claim_tick(c, c->k.not_before_ms);
	c->zxid = past->zxid;
	window_begin(&c->old, past->worker, past->local_mark, 0, 0);
	c->old.ceiling = c->old.highest = past->ceiling;
	if (c->old.floor < c->not_before)
		c->old.floor = c->not_before;
	c->old.owned = true;
	memcpy(c->old.owner, past->claim, sizeof(c->old.owner));
	c->has_old = c->old.ceiling > c->old.floor;
	c->had_window = c->long_window = true;
}

void
claim_hold_still(struct claim *c, bool still)
{
	c->still = still;
}

/* ---- connections -------------------------------------------------------- */

/* ---- dispatch ----------------------------------------------------------- */

/* ---- facts for the gate ------------------------------------------------- */

const struct window *
claim_window(struct claim *c, struct claim_now now)
{
	if (!c->realm_known)
		return (NULL);
	/* The old window goes on until the new one can issue. */
	if (c->has_old) {
		int64_t tick = claim_tick(c, now.unix_ms);

		if (tick <= c->old.ceiling &&
		    !(claim_owns(c) && window_holds(&c->own, tick) &&
			tick > c->not_before))
			return (&c->old);
		c->has_old = false;
	}
	if (claim_owns(c) && c->own.ceiling > c->own.floor)
		return (&c->own);
	return (NULL);
}

const char *
claim_window_owner(const struct claim *c, const struct window *w)
{
	/*
	 * One that was taken over from others goes on above what they may have
	 * issued: its name frees no tick of the window before.
	 */
	if (claim_owns(c) && c->own.worker == w->worker &&
	    c->own.floor <= w->floor)
		return (c->own.owner);
	return (w->owner);
}

/*
 * There is no window, but a mark that is ours, or is waited for: so far ahead
 * that it need not be raised yet.
 */
static void
later_facts(const struct claim *c, struct gate *gate)
{
	gate->later = true;
	if (claim_owns(c)) {
		gate->later_worker = c->own.worker;
		gate->later_floor = c->own.floor;
	} else if (c->state == CLAIM_HOLDING && c->hold) {
		gate->later_worker = c->node_worker;
		gate->later_floor = c->hold_ceiling;
	} else
		gate->later = false;
	if (gate->later_floor < c->not_before)
		gate->later_floor = c->not_before;
}

void
claim_facts(struct claim *c, struct claim_now now, struct gate *gate)
{
	const struct window *w = claim_window(c, now);

	gate->realm_known = c->realm_known;
	gate->realm_changed = c->fault == REALM_OTHER || c->fault == REALM_BACK;
	gate->had_window = c->had_window;
	gate->window = w != NULL;
	if (c->realm_known)
		gate->tick_max = (int64_t)layout_tick_max(&c->k.layout);
	gate->later = false;
	if (w == NULL) {
		later_facts(c, gate);
		return;
	}
	gate->worker = w->worker;
	gate->floor = w->floor;
	if (gate->floor < c->not_before) /* in the old window too */
		gate->floor = c->not_before;
	gate->ceiling = w->ceiling;
}
