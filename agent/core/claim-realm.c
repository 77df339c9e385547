/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim-realm - the contract: judged at each look, and what a new generation
 * means.
 *
 * Invariant: no contract that is read becomes c->k unless it was found good.
 */
#include <string.h>

#include "claim-private.h"
#include "layout.h"

static enum realm_fault
judge_contract(const struct claim *c, const struct contract *k)
{
	if (k->format > REALM_FORMAT) /* nothing else of it was read */
		return (REALM_UNFIT);
	if (c->realm_known && memcmp(c->k.uuid, k->uuid, UUID_BYTES) != 0)
		return (REALM_OTHER);
	if (c->conf.has_layout) {
		struct firn_layout want = c->conf.layout;

		if (!c->conf.has_epoch)
			want.epoch_ms = k->layout.epoch_ms;
		if (!layout_equal(&want, &k->layout))
			return (REALM_UNFIT);
	} else if (c->conf.has_epoch &&
		   c->conf.layout.epoch_ms != k->layout.epoch_ms)
		return (REALM_UNFIT);
	if (!c->realm_known)
		return (REALM_GOOD);
	if (k->generation < c->k.generation)
		return (REALM_BACK);
	if (k->generation == c->k.generation &&
	    strcmp(k->generation_text, c->k.generation_text) != 0)
		return (REALM_BACK);
	if (!layout_equal(&k->layout, &c->k.layout))
		return (REALM_OTHER);
	/* Once back, only a new generation heals. */
	if (c->fault == REALM_BACK && k->generation == c->k.generation)
		return (REALM_BACK);
	return (REALM_GOOD);
}

/* A new tree: no path of the old one is used again. */
static void
change_generation(struct claim *c)
{
	claim_freeze_own(c);
	claim_forget_node(c);
	c->nghosts = c->ngone = 0;
	c->seen = NO_WORKER;
	c->attempt[0] = '\0';
	c->given_up = c->rounds = 0;
	c->hold = c->counter_end = false;
	c->zxid = 0;
	c->deletions = 0;
	c->renew.busy = false;
}

void
claim_on_realm(
    struct claim *c, struct claim_now now, const struct claim_result *r)
{
	enum realm_fault fault;
	char old_node[CLAIM_NAME_MAX], old_generation[GENERATION_MAX];

	if (r->rc == RC_NONODE || r->rc == RC_GARBLED) {
		if (c->fault == REALM_GOOD || !c->realm_known)
			c->fault =
			    r->rc == RC_NONODE ? REALM_MISSING : REALM_GARBLED;
		c->realm_fresh = false;
		c->way.wait = claim_back_off(c, now.boot, 0, 1000, 1000);
		return;
	}
	if (r->rc != RC_OK) {
		if (r->rc == RC_DENIED && !c->realm_known)
			c->fault = REALM_DENIED;
		claim_retry_way(c, now);
		return;
	}
	fault = judge_contract(c, r->contract);
	c->fault = fault;
	if (fault != REALM_GOOD) {
		c->way.wait = claim_back_off(c, now.boot, 0, 1000, 1000);
		return;
	}
	memcpy(old_node, c->node, sizeof(old_node));
	memcpy(old_generation, c->node_generation, sizeof(old_generation));
	if (c->realm_known && r->contract->generation > c->k.generation)
		change_generation(c);
	if (c->has_past &&
	    (memcmp(c->past.contract.uuid, r->contract->uuid, UUID_BYTES) !=
		    0 ||
		!layout_equal(&c->past.contract.layout, &r->contract->layout)))
		c->has_past = false; /* its ticks are another space's */
	if (!c->realm_known && c->has_past && c->past.same_home &&
	    strcmp(c->past.contract.generation_text,
		r->contract->generation_text) == 0)
		c->zxid = c->past.zxid; /* nothing may lie behind it */
	c->k = *r->contract;
	c->realm_known = c->realm_fresh = true;
	c->not_before = claim_tick(c, c->k.not_before_ms);
	if (old_node[0] != '\0' && c->node[0] == '\0')
		claim_clear(c, old_node, old_generation, CLAIM_SETTLING,
		    "a new generation of the realm");
	else
		claim_enter(c, CLAIM_SETTLING, "realm read");
}
