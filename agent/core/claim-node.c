/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim-node - the claim node: listed, created, deleted, watched, given a
 * status.
 *
 * Invariant: at most one node stands as this agent's own; whatever else of its
 * past is listed goes first.
 */
#include <string.h>

#include "claim-private.h"

/* Is there an older claim of the own node's worker ID, by another? */
static bool
has_older(const struct claim *c, const struct claim_result *r)
{
	struct claim_name mine, other;

	if (!claim_name_parse(c->node, &mine))
		return (true);
	for (size_t i = 0; i < r->nnames; i++) {
		if (!claim_name_parse(r->names[i], &other) ||
		    claim_is_ghost(c, r->names[i]))
			continue;
		if (claim_name_worker(&other, &c->k) == c->node_worker &&
		    other.counter < mine.counter)
			return (true);
	}
	return (false);
}

static bool
is_listed(const struct claim_result *r, const char *name)
{
	for (size_t i = 0; i < r->nnames; i++) {
		if (strcmp(r->names[i], name) == 0)
			return (true);
	}
	return (false);
}

/* A node stands: may its worker ID be ours? */
static void
judge_node(struct claim *c, struct claim_now now, const struct claim_result *r)
{
	if (claim_owns(c) && c->own.worker == c->node_worker) {
		/* Whom the mark names stays, whatever is older. */
		c->given_up = c->rounds = 0;
		claim_enter(c, CLAIM_STANDING, "the mark names this agent");
		return;
	}
	if (c->conf.force_worker != NO_WORKER) {
		claim_enter(c, CLAIM_READING, "forced");
		return;
	}
	c->yields = has_older(c, r);
	if (c->node_worker == NO_WORKER)
		claim_walk_on(
		    c, now, "the claim is outside the usable worker IDs");
	else if (c->yields && c->has_past && c->past.resume &&
		 c->past.worker == c->node_worker)
		claim_enter(c, CLAIM_READING, "the mark may name its past");
	else if (c->yields)
		claim_walk_on(c, now, "an older claim has this worker ID");
	else
		claim_enter(c, CLAIM_READING, "first in line");
}

static void
adopt_node(struct claim *c, const char *name)
{
	struct claim_name cn;

	memset(c->node, 0, sizeof(c->node));
	memcpy(c->node, name, strnlen(name, CLAIM_NAME_MAX - 1));
	memcpy(c->node_generation, c->k.generation_text, GENERATION_MAX);
	c->node_worker = claim_name_parse(name, &cn)
			     ? claim_name_worker(&cn, &c->k)
			     : NO_WORKER;
	c->attempt[0] = '\0';
	c->watched = false;
	c->said = 0;
}

/* Learns what became of a create in doubt; true if a node must go first. */
static bool
settle_attempt(struct claim *c, const struct claim_result *r)
{
	for (size_t i = 0; i < r->nnames; i++) {
		const char *name = r->names[i];

		if (c->attempt[0] != '\0' &&
		    strncmp(name, c->attempt, UUID_TEXT_MAX - 1) == 0) {
			if (c->attempt_session == c->session) {
				adopt_node(c, name);
				continue;
			}
			claim_remember_ghost(c, name);
		}
		if (claim_is_ghost(c, name)) {
			claim_clear(c, name, c->k.generation_text,
			    CLAIM_SETTLING, "a node of this agent's past");
			return (true);
		}
	}
	/* Not there: after sync, in this session, it never will be. */
	if (c->attempt[0] != '\0')
		claim_remember_ghost(c, c->attempt);
	c->attempt[0] = '\0';
	return (false);
}

void
claim_on_list(
    struct claim *c, struct claim_now now, const struct claim_result *r)
{
	uint64_t usable = c->k.worker_last - c->k.worker_first + 1;

	if (r->rc != RC_OK) {
		claim_retry_way(c, now);
		if (r->rc ==
		    RC_NONODE) /* the tree is gone: look at the realm */
			c->realm_fresh = false;
		return;
	}
	if (settle_attempt(c, r))
		return;
	if (c->node[0] != '\0' && !is_listed(r, c->node))
		claim_forget_node(c);
	if (c->node[0] != '\0') {
		judge_node(c, now, r);
		return;
	}
	c->taken =
	    claim_mark_taken(&c->k, r->names, r->nnames, c->conf.scratch);
	c->free_ids = usable - c->taken;
	if (claim_owns(c) && c->counter_end) {
		claim_enter(
		    c, CLAIM_STANDING, "keeps its worker ID without a claim");
	} else if (claim_owns(c) || c->conf.force_worker != NO_WORKER) {
		c->want = c->conf.force_worker != NO_WORKER
			      ? c->conf.force_worker
			      : c->own.worker;
		claim_enter(c, CLAIM_CREATING, "claims the worker ID it has");
	} else if (c->free_ids == 0 || c->counter_end) {
		if (c->state != CLAIM_FULL)
			c->rounds = 0;
		claim_enter(c, CLAIM_FULL,
		    c->counter_end ? "the counter of claims has ended"
				   : "no worker ID is free");
		c->way.wait =
		    claim_back_off(c, now.boot, c->rounds++, 2000, 30000);
	} else if (c->state == CLAIM_FULL)
		claim_enter(c, CLAIM_SWEEPING, "a worker ID is free");
	else {
		if (c->hint != NO_WORKER)
			c->want = c->hint; /* for once */
		c->hint = NO_WORKER;
		claim_enter(c, CLAIM_CREATING, "claims");
	}
}

void
claim_on_create(
    struct claim *c, struct claim_now now, const struct claim_result *r)
{
	struct claim_name cn;

	switch (r->rc) {
	case RC_OK:
		c->claims_created++;
		adopt_node(c, r->name);
		if (claim_name_parse(c->node, &cn)) {
			claim_enter(c, CLAIM_SETTLING, "claim created");
			return;
		}
		c->counter_end = true;
		claim_clear(c, c->node, c->node_generation, CLAIM_SETTLING,
		    "the counter of claims has ended");
		return;
	case RC_NODEEXISTS:
		c->counter_end = true;
		c->attempt[0] = '\0';
		claim_enter(
		    c, CLAIM_SETTLING, "the counter of claims has ended");
		return;
	case RC_UNKNOWN:
		c->claims_created++; /* perhaps */
		claim_enter(
		    c, CLAIM_SETTLING, "the claim's creation is in doubt");
		claim_retry_way(c, now);
		return;
	case RC_NONODE:
		c->realm_fresh = false;
		/* FALLTHROUGH */
	case RC_BADVERSION:
	case RC_GARBLED:
	case RC_DENIED:
	case RC_REFUSED:
		c->attempt[0] = '\0';
		claim_enter(c, CLAIM_SETTLING, "the claim's creation failed");
		claim_retry_way(c, now);
		return;
	}
}

void
claim_on_delete(
    struct claim *c, struct claim_now now, const struct claim_result *r)
{
	if (r->rc != RC_OK && r->rc != RC_NONODE) {
		claim_retry_way(c, now);
		return;
	}
	if (strcmp(c->victim, c->node) == 0)
		claim_forget_node(c);
	if (c->state == CLAIM_LEAVING) {
		claim_enter(c, CLAIM_STOPPED, "claim deleted");
		return;
	}
	claim_enter(c, c->after, "node deleted");
	if (c->state == CLAIM_SWEEPING && c->rounds > 1)
		c->way.wait =
		    claim_back_off(c, now.boot, c->rounds - 2, 500, 30000);
}

void
claim_on_watch(
    struct claim *c, struct claim_now now, const struct claim_result *r)
{
	if (r->rc == RC_OK)
		c->watched = true;
	else if (r->rc == RC_NONODE) {
		claim_forget_node(c);
		claim_enter(c, CLAIM_SETTLING, "the claim is gone");
	} else
		claim_retry_way(c, now);
}

/* Only its owner writes a claim: each lost reply is one version more. */
void
claim_on_said(struct claim *c, const struct claim_result *r)
{
	if (r->rc == RC_OK)
		c->said = r->stat.version;
	else if (r->rc == RC_BADVERSION)
		c->said++;
	else if (r->rc == RC_NONODE) {
		claim_forget_node(c);
		claim_enter(c, CLAIM_SETTLING, "the claim is gone");
	}
}
