/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim - the state machine: what each reply means.  claim-next.c has the
 * other half: what to ask for in each state.
 *
 * Invariant: c->state is written by claim_enter() alone.
 */
#include <assert.h>
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

static void remember_ghost(struct claim *c, const char *name);

void
claim_resume(struct claim *c, const struct claim_past *past)
{
	c->has_past = true;
	c->past = *past;
	c->hint = past->worker;
	if (past->claim[0] != '\0')
		remember_ghost(c, past->claim);
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

/* splitmix64: spreads retries and choices, names nothing. */
static uint64_t
jitter_next(struct claim *c)
{
	uint64_t z = (c->jitter += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (z ^ (z >> 31));
}

/* From half of it to all of it: base doubled with each try, at most limit. */
static mono_t
back_off(struct claim *c, mono_t now, unsigned tries, int64_t base_ms,
    int64_t limit_ms)
{
	int64_t ms = base_ms << (tries < 16 ? tries : 16);

	if (ms > limit_ms)
		ms = limit_ms;
	ms = ms / 2 + (int64_t)(jitter_next(c) % (uint64_t)(ms / 2 + 1));
	return (mono_add_ms(now, ms));
}

static void
retry_way(struct claim *c, struct claim_now now)
{
	c->way.wait = back_off(c, now.boot, c->way.tries++, 100, 5000);
}

int64_t
claim_tick(const struct claim *c, int64_t unix_ms)
{
	int64_t tick = layout_tick_of(&c->k.layout, unix_ms);
	int64_t last = (int64_t)layout_tick_max(&c->k.layout);

	if (tick < NO_TICK) /* before the epoch: nothing can have been issued */
		return (NO_TICK);
	return (tick < last ? tick : last);
}

bool
claim_realm_usable(const struct claim *c)
{
	return (c->realm_fresh && c->fault == REALM_GOOD);
}

/* ---- ghosts: own nodes that must not stand ---------------------------- */

static void
remember_ghost(struct claim *c, const char *name)
{
	size_t n = strlen(name);

	if (n >= CLAIM_PREFIX_MAX) /* a whole name: without the counter */
		n = CLAIM_PREFIX_MAX - 1;
	for (unsigned i = 0; i < c->nghosts; i++) {
		if (strncmp(c->ghosts[i], name, UUID_TEXT_MAX - 1) == 0)
			return;
	}
	if (c->nghosts == CLAIM_GHOSTS) {
		memmove(c->ghosts[0], c->ghosts[1],
		    sizeof(c->ghosts) - sizeof(c->ghosts[0]));
		c->nghosts--;
	}
	memset(c->ghosts[c->nghosts], 0, CLAIM_PREFIX_MAX);
	/* The UUID alone tells them apart. */
	memcpy(c->ghosts[c->nghosts++], name, UUID_TEXT_MAX - 1);
}

static bool
is_ghost(const struct claim *c, const char *name)
{
	for (unsigned i = 0; i < c->nghosts; i++) {
		if (strncmp(c->ghosts[i], name, UUID_TEXT_MAX - 1) == 0)
			return (true);
	}
	return (false);
}

static void
forget_node(struct claim *c)
{
	if (c->node[0] != '\0')
		remember_ghost(c, c->node);
	c->node[0] = '\0';
	c->node_worker = NO_WORKER;
	c->watched = false;
}

static void
clear(struct claim *c, const char *name, const char *generation,
    enum claim_state after, const char *cause)
{
	memcpy(c->victim_generation, generation, GENERATION_MAX);
	memset(c->victim, 0, sizeof(c->victim));
	memcpy(c->victim, name, strnlen(name, CLAIM_NAME_MAX - 1));
	c->after = after;
	claim_enter(c, CLAIM_CLEARING, cause);
}

/* ---- windows ----------------------------------------------------------- */

/* The mark is no longer ours to write; its window is good to its end. */
static void
freeze_own(struct claim *c)
{
	if (c->has_own && c->own.owned &&
	    (!c->has_old || c->own.ceiling > c->old.ceiling)) {
		c->old = c->own;
		if (c->old.floor < c->not_before)
			c->old.floor = c->not_before;
		c->has_old = c->old.ceiling > c->old.floor;
	}
	c->has_own = false;
	c->want = NO_WORKER;
}

/* Nothing more may be issued on its worker ID. */
static void
void_own(struct claim *c)
{
	c->has_own = false;
	c->has_old = false;
	c->want = NO_WORKER;
}

/* A mark that this process has seen was deleted: it never makes it again. */
static void
remember_gone(struct claim *c, uint64_t worker)
{
	if (c->ngone == CLAIM_GONE) {
		memmove(
		    c->gone, c->gone + 1, sizeof(c->gone) - sizeof(c->gone[0]));
		c->ngone--;
	}
	c->gone[c->ngone++] = worker;
}

static bool
is_gone(const struct claim *c, uint64_t worker)
{
	for (unsigned i = 0; i < c->ngone; i++) {
		if (c->gone[i] == worker)
			return (true);
	}
	return (false);
}

bool
claim_owns(const struct claim *c)
{
	return (c->has_own && c->own.owned);
}

/* Gives the ID of the own node up and walks on. */
static void
walk_on(struct claim *c, struct claim_now now, const char *cause)
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
		clear(c, c->node, c->node_generation, after, cause);
	else
		claim_enter(c, after, cause);
	(void)now;
}

static void
lose_mark(struct claim *c, struct claim_now now, enum window_news news)
{
	const char *cause = "the mark names another owner";

	if (news == WINDOW_TWIN) {
		cause = "another process lives under this claim's name";
		c->twins++;
		void_own(c);
	} else if (news == WINDOW_GONE) {
		cause = "the mark was deleted";
		c->marks_deleted++;
		c->marks_deleted_worker = c->own.worker;
		remember_gone(c, c->own.worker);
		freeze_own(c);
	} else
		freeze_own(c);
	c->given_up = 0;
	c->rounds = 0;
	c->renew.busy = false;
	if (c->stopping)
		claim_enter(c, CLAIM_LEAVING, cause);
	else if (c->state == CLAIM_AWAY || c->state == CLAIM_LOOKING)
		return;
	else if (c->node[0] != '\0')
		clear(c, c->node, c->node_generation, CLAIM_SETTLING, cause);
	else
		claim_enter(c, CLAIM_SETTLING, cause);
	(void)now;
}

static void
realm_went_back(struct claim *c)
{
	if (c->stopping) {
		claim_enter(c, CLAIM_STOPPED, "ZooKeeper's data went back");
	} else if (c->fault != REALM_BACK) {
		c->fault = REALM_BACK;
		claim_enter(c, CLAIM_LOOKING, "ZooKeeper's data went back");
	}
}

/* ---- connections -------------------------------------------------------- */

static void
drop_lanes(struct claim *c)
{
	if (c->way.busy && c->way.kind == OP_CREATE)
		assert(c->attempt[0] != '\0');
	if (c->has_own && c->own.ndoubts > 0)
		c->own.reread = true;
	c->way.busy = c->renew.busy = false;
	c->way.tries = c->renew.tries = 0;
	c->renew.wait = (mono_t){ 0 };
}

void
claim_connected(struct claim *c, struct claim_now now, int64_t session)
{
	if (c->session != 0 && session != c->session)
		claim_session_lost(c, now);
	c->connected = true;
	if (c->session != session)
		c->realm_fresh = false;
	c->session = session;
	if (c->stopping || c->state == CLAIM_STOPPED)
		return;
	claim_enter(c, claim_realm_usable(c) ? CLAIM_SETTLING : CLAIM_LOOKING,
	    "connected");
}

void
claim_disconnected(struct claim *c, struct claim_now now)
{
	(void)now;
	c->connected = false;
	drop_lanes(c);
	if (c->state != CLAIM_STOPPED)
		claim_enter(c, c->stopping ? CLAIM_STOPPED : CLAIM_AWAY,
		    "connection lost");
}

void
claim_session_lost(struct claim *c, struct claim_now now)
{
	claim_disconnected(c, now);
	c->session = 0;
	c->realm_fresh = false;
	c->watched = false;
	forget_node(c);
	c->hold = false;
	/* A mark that was not ours yet: start over. */
	if (c->has_own && !c->own.owned)
		c->has_own = false;
	c->want = claim_owns(c) ? c->own.worker : NO_WORKER;
}

void
claim_watch_fired(struct claim *c, struct claim_now now)
{
	(void)now;
	if (c->stopping) /* what was read before will do for that */
		return;
	c->watched = false;
	c->realm_fresh = false;
	if (c->connected && !c->way.busy)
		claim_enter(c, CLAIM_LOOKING, "a watch fired");
}

/* ---- replies: realm ----------------------------------------------------- */

static enum realm_fault
judge_contract(const struct claim *c, const struct contract *k)
{
	if (c->realm_known && memcmp(c->k.uuid, k->uuid, UUID_BYTES) != 0)
		return (REALM_OTHER);
	if (k->format > REALM_FORMAT)
		return (REALM_UNFIT);
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
	freeze_own(c);
	forget_node(c);
	c->nghosts = c->ngone = 0;
	c->seen = NO_WORKER;
	c->attempt[0] = '\0';
	c->given_up = c->rounds = 0;
	c->hold = c->counter_end = false;
	c->zxid = 0;
	c->renew.busy = false;
}

static void
on_realm(struct claim *c, struct claim_now now, const struct claim_result *r)
{
	enum realm_fault fault;
	char old_node[CLAIM_NAME_MAX], old_generation[GENERATION_MAX];

	if (r->rc == RC_NONODE || r->rc == RC_GARBLED) {
		if (c->fault == REALM_GOOD || !c->realm_known)
			c->fault =
			    r->rc == RC_NONODE ? REALM_MISSING : REALM_GARBLED;
		c->realm_fresh = false;
		c->way.wait = back_off(c, now.boot, 0, 1000, 1000);
		return;
	}
	if (r->rc != RC_OK) {
		retry_way(c, now);
		return;
	}
	fault = judge_contract(c, r->contract);
	c->fault = fault;
	if (fault != REALM_GOOD) {
		c->way.wait = back_off(c, now.boot, 0, 1000, 1000);
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
		clear(c, old_node, old_generation, CLAIM_SETTLING,
		    "a new generation of the realm");
	else
		claim_enter(c, CLAIM_SETTLING, "realm read");
}

/* ---- replies: claims ---------------------------------------------------- */

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

/* Is there an older claim of the own node's worker ID, by another? */
static bool
has_older(const struct claim *c, const struct claim_result *r)
{
	struct claim_name mine, other;

	if (!claim_name_parse(c->node, &mine))
		return (true);
	for (size_t i = 0; i < r->nnames; i++) {
		if (!claim_name_parse(r->names[i], &other) ||
		    is_ghost(c, r->names[i]))
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
		walk_on(c, now, "the claim is outside the usable worker IDs");
	else if (c->yields && c->has_past && c->past.resume &&
		 c->past.worker == c->node_worker)
		claim_enter(c, CLAIM_READING, "the mark may name its past");
	else if (c->yields)
		walk_on(c, now, "an older claim has this worker ID");
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
			remember_ghost(c, name);
		}
		if (is_ghost(c, name)) {
			clear(c, name, c->k.generation_text, CLAIM_SETTLING,
			    "a node of this agent's past");
			return (true);
		}
	}
	/* Not there: after sync, in this session, it never will be. */
	if (c->attempt[0] != '\0')
		remember_ghost(c, c->attempt);
	c->attempt[0] = '\0';
	return (false);
}

static void
on_list(struct claim *c, struct claim_now now, const struct claim_result *r)
{
	uint64_t usable = c->k.worker_last - c->k.worker_first + 1;

	if (r->rc != RC_OK) {
		retry_way(c, now);
		if (r->rc ==
		    RC_NONODE) /* the tree is gone: look at the realm */
			c->realm_fresh = false;
		return;
	}
	if (settle_attempt(c, r))
		return;
	if (c->node[0] != '\0' && !is_listed(r, c->node))
		forget_node(c);
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
		c->way.wait = back_off(c, now.boot, c->rounds++, 2000, 30000);
	} else if (c->state == CLAIM_FULL)
		claim_enter(c, CLAIM_SWEEPING, "a worker ID is free");
	else {
		if (c->hint != NO_WORKER)
			c->want = c->hint; /* for once */
		c->hint = NO_WORKER;
		claim_enter(c, CLAIM_CREATING, "claims");
	}
}

static void
on_create(struct claim *c, struct claim_now now, const struct claim_result *r)
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
		clear(c, c->node, c->node_generation, CLAIM_SETTLING,
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
		retry_way(c, now);
		return;
	case RC_NONODE:
		c->realm_fresh = false;
		/* FALLTHROUGH */
	case RC_BADVERSION:
	case RC_GARBLED:
	case RC_REFUSED:
		c->attempt[0] = '\0';
		claim_enter(c, CLAIM_SETTLING, "the claim's creation failed");
		retry_way(c, now);
		return;
	}
}

static void
on_delete(struct claim *c, struct claim_now now, const struct claim_result *r)
{
	if (r->rc != RC_OK && r->rc != RC_NONODE) {
		retry_way(c, now);
		return;
	}
	if (strcmp(c->victim, c->node) == 0)
		forget_node(c);
	if (c->state == CLAIM_LEAVING) {
		claim_enter(c, CLAIM_STOPPED, "claim deleted");
		return;
	}
	claim_enter(c, c->after, "node deleted");
	if (c->state == CLAIM_SWEEPING && c->rounds > 1)
		c->way.wait = back_off(c, now.boot, c->rounds - 2, 500, 30000);
}

static void
on_watch(struct claim *c, struct claim_now now, const struct claim_result *r)
{
	if (r->rc == RC_OK)
		c->watched = true;
	else if (r->rc == RC_NONODE) {
		forget_node(c);
		claim_enter(c, CLAIM_SETTLING, "the claim is gone");
	} else
		retry_way(c, now);
}

/* ---- replies: marks ----------------------------------------------------- */

static int64_t
far_ahead(const struct claim *c, struct claim_now now)
{
	return (claim_tick(
	    c, now.unix_ms + c->k.reserve_max_ms + c->conf.skew_refuse_ms));
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

/* The mark names the process before this one, which is gone: its lock is ours. */
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

static void
on_mark(struct claim *c, struct claim_now now, const struct claim_result *r)
{
	int64_t limit = claim_tick(c, now.unix_ms + c->conf.claim_wait_ms);

	if (c->yields && (r->rc == RC_NONODE || r->rc == RC_OK) &&
	    (r->mark == NULL || !is_past(c, r->mark))) {
		walk_on(c, now, "an older claim has this worker ID");
		return;
	}
	if (r->rc == RC_NONODE) {
		if (c->seen == c->node_worker && !is_gone(c, c->seen))
			remember_gone(c, c->seen);
		if (is_gone(c, c->node_worker) &&
		    c->conf.force_worker == NO_WORKER)
			walk_on(c, now, "its mark was deleted");
		else
			claim_enter(c, CLAIM_COUNTING, "no mark");
		return;
	}
	if (r->rc == RC_GARBLED) {
		walk_on(c, now, "the mark makes no sense");
		return;
	}
	if (r->rc != RC_OK) {
		retry_way(c, now);
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
			walk_on(
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

static bool
any_deleted(const struct claim_result *r)
{
	return (r->stat.cversion != r->stat.num_children);
}

static void
on_count(struct claim *c, struct claim_now now, const struct claim_result *r)
{
	int64_t ceiling = c->not_before;
	bool deleted;

	if (r->rc != RC_OK) {
		retry_way(c, now);
		return;
	}
	deleted = any_deleted(r);
	if (deleted) {
		c->marks_deleted++;
		c->marks_deleted_worker = c->node_worker;
		if (ceiling < far_ahead(c, now))
			ceiling = far_ahead(c, now);
		if (c->state == CLAIM_COUNTING && !c->hold &&
		    c->conf.force_worker == NO_WORKER) {
			walk_on(c, now, "the mark may have been deleted");
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

/* What a write of the take-over, or the look after it, has said. */
static void
taken(struct claim *c, struct claim_now now, enum window_news news)
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
		retry_way(c, now);
		return;
	case WINDOW_BACK:
		realm_went_back(c);
		return;
	case WINDOW_TWIN:
	case WINDOW_OTHER:
	case WINDOW_GONE:
		c->has_own = false;
		claim_enter(c, CLAIM_READING, "the mark changed meanwhile");
		return;
	}
}

static void
renewed(struct claim *c, struct claim_now now, enum window_news news)
{
	switch (news) {
	case WINDOW_CONFIRMED:
		c->renewals++;
		c->renew.tries = 0;
		if (c->own.ceiling > c->own.floor) {
			c->long_window = true;
			c->had_window = true;
		}
		/* A renewal that was under way leaves the window open. */
		if (c->state == CLAIM_LOWERING &&
		    c->own.ceiling == c->own.floor)
			claim_enter(c, CLAIM_LEAVING, "mark lowered");
		return;
	case WINDOW_SAME:
		c->renew_at = now.boot; /* it did not land: write again */
		return;
	case WINDOW_DOUBT:
		c->renewals_lost++;
		c->renew.wait =
		    back_off(c, now.boot, c->renew.tries++, 20, 1000);
		return;
	case WINDOW_BACK:
		realm_went_back(c);
		return;
	case WINDOW_TWIN:
	case WINDOW_OTHER:
	case WINDOW_GONE:
		lose_mark(c, now, news);
		return;
	}
}

static enum write_outcome
outcome_of(enum claim_rc rc)
{
	switch (rc) {
	case RC_OK:
		return (WROTE_OK);
	case RC_NONODE:
		return (WROTE_NONODE);
	case RC_NODEEXISTS:
	case RC_BADVERSION:
		return (WROTE_BADVERSION);
	case RC_GARBLED:
	case RC_REFUSED:
	case RC_UNKNOWN:
		return (WROTE_UNKNOWN);
	}
	return (WROTE_UNKNOWN);
}

/* A reply about the mark in hand: of a write, or of a look. */
static enum window_news
mark_news(struct claim *c, struct claim_now now, const struct claim_lane *lane,
    const struct claim_result *r)
{
	enum window_news news;

	(void)now;
	if (lane->kind != OP_GET_MARK)
		return (window_wrote(&c->own, lane->tag, outcome_of(r->rc),
		    r->stat.version, r->stat.czxid));
	if (r->rc == RC_NONODE)
		return (window_read(&c->own, NULL, 0, 0));
	if (r->rc == RC_GARBLED && r->stat.version > c->own.version)
		return (WINDOW_OTHER); /* somebody else wrote it */
	if (r->rc != RC_OK)
		return (WINDOW_DOUBT);
	news = window_read(&c->own, r->mark, r->stat.version, r->stat.czxid);
	/* An own write is one too if its reply was lost. */
	if (news == WINDOW_CONFIRMED && r->stat.mzxid < c->sent_zxid)
		return (WINDOW_BACK);
	return (news);
}

/* ---- sweep -------------------------------------------------------------- */

/* What a free ID's mark stands at, as far as that can be known; or never. */
static int64_t
row_ceiling(const struct claim *c, struct claim_now now,
    const struct claim_result *r, size_t i)
{
	int64_t ceiling = r->rows[i].ceiling;

	if (ceiling != NO_TICK)
		return (ceiling);
	if (is_gone(c, r->rows[i].worker))
		return (INT64_MAX);
	return (any_deleted(r) ? far_ahead(c, now) : NO_TICK);
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
		    jitter_next(c) % ++equal != 0)
			continue;
		c->want = r->rows[i].worker;
		c->hold_ceiling = ceiling;
	}
}

static void
on_sweep(struct claim *c, struct claim_now now, const struct claim_result *r)
{
	int64_t limit = claim_tick(c, now.unix_ms + c->conf.claim_wait_ms);
	int64_t lowest = INT64_MAX;

	if (r->rc != RC_OK) {
		retry_way(c, now);
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
		claim_enter(c, CLAIM_FULL, "no worker ID is free");
		c->way.wait = back_off(c, now.boot, c->rounds++, 2000, 30000);
		return;
	}
	c->hold = lowest > limit;
	claim_enter(c, CLAIM_CREATING,
	    c->hold ? "all free marks are ahead: takes one least ahead"
		    : "names the free worker ID with the lowest mark");
}

/* Only its owner writes a claim: each lost reply is one version more. */
static void
on_said(struct claim *c, const struct claim_result *r)
{
	if (r->rc == RC_OK)
		c->said = r->stat.version;
	else if (r->rc == RC_BADVERSION)
		c->said++;
	else if (r->rc == RC_NONODE) {
		forget_node(c);
		claim_enter(c, CLAIM_SETTLING, "the claim is gone");
	}
}

/* ---- dispatch ----------------------------------------------------------- */

/* An own write's zxid must be the highest; what was read only raises it. */
static void
watch_zxid(
    struct claim *c, enum claim_op_kind kind, const struct claim_result *r)
{
	bool own =
	    kind == OP_CREATE || kind == OP_CREATE_MARK || kind == OP_SET_MARK;

	if (r->rc != RC_OK || kind == OP_GET_REALM)
		return;
	if (own && r->stat.mzxid != 0 && r->stat.mzxid < c->zxid)
		realm_went_back(c);
	else if (r->stat.mzxid > c->zxid)
		c->zxid = r->stat.mzxid;
}

static void
on_way(struct claim *c, struct claim_now now, const struct claim_result *r)
{
	struct claim_lane *lane = &c->way;

	switch (lane->kind) {
	case OP_NONE:
		break;
	case OP_GET_REALM:
		on_realm(c, now, r);
		break;
	case OP_LIST:
		on_list(c, now, r);
		break;
	case OP_CREATE:
		on_create(c, now, r);
		break;
	case OP_DELETE:
		on_delete(c, now, r);
		break;
	case OP_WATCH:
		on_watch(c, now, r);
		break;
	case OP_GET_MARK:
		if (c->state == CLAIM_READING)
			on_mark(c, now, r);
		else
			taken(c, now, mark_news(c, now, lane, r));
		break;
	case OP_STAT_MARKS:
		on_count(c, now, r);
		break;
	case OP_CREATE_MARK:
	case OP_SET_MARK:
		taken(c, now, mark_news(c, now, lane, r));
		break;
	case OP_SWEEP:
		on_sweep(c, now, r);
		break;
	case OP_SET_CLAIM:
		on_said(c, r);
		break;
	}
}

void
claim_result(
    struct claim *c, struct claim_now now, const struct claim_result *r)
{
	if (c->way.busy && c->way.id == r->id) {
		c->way.busy = false;
		on_way(c, now, r);
		watch_zxid(c, c->way.kind, r);
		/* A watch may have fired while this was under way. */
		if (!c->realm_fresh && c->connected && !c->stopping &&
		    c->state != CLAIM_AWAY && c->state != CLAIM_CLEARING)
			claim_enter(
			    c, CLAIM_LOOKING, "the realm may have changed");
	} else if (c->renew.busy && c->renew.id == r->id) {
		c->renew.busy = false;
		if (!c->realm_fresh && !c->stopping && claim_owns(c)) {
			/*
			 * The realm changed before this was done (a session
			 * tells a watch first): if that was a new generation,
			 * the write no longer counts.  Look again after it.
			 */
			c->own.reread = true;
			return;
		}
		renewed(c, now, mark_news(c, now, &c->renew, r));
		watch_zxid(c, c->renew.kind, r);
	}
}

void
claim_stop(struct claim *c, struct claim_now now, int64_t last_tick)
{
	(void)now;
	c->stopping = true;
	c->last_tick = last_tick;
	c->has_old = false;
	c->way.busy = false; /* its reply means nothing any more */
	if (!c->connected || !claim_realm_usable(c))
		claim_enter(c, CLAIM_STOPPED, "stopped without ZooKeeper");
	else
		claim_enter(c, claim_owns(c) ? CLAIM_LOWERING : CLAIM_LEAVING,
		    "stopping");
}

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
	if (w == NULL)
		return;
	gate->worker = w->worker;
	gate->floor = w->floor;
	if (gate->floor < c->not_before) /* in the old window too */
		gate->floor = c->not_before;
	gate->ceiling = w->ceiling;
}
