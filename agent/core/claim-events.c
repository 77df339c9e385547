/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim-events - what the shell has to tell, handed to the part that it
 * concerns: connections, watches, replies, the stop.
 */
#include <assert.h>
#include <string.h>

#include "claim-private.h"

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
	claim_forget_node(c);
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
		claim_realm_went_back(c);
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
		claim_on_realm(c, now, r);
		break;
	case OP_LIST:
		claim_on_list(c, now, r);
		break;
	case OP_CREATE:
		claim_on_create(c, now, r);
		break;
	case OP_DELETE:
		claim_on_delete(c, now, r);
		break;
	case OP_WATCH:
		claim_on_watch(c, now, r);
		break;
	case OP_GET_MARK:
		if (c->state == CLAIM_READING)
			claim_on_mark(c, now, r);
		else if (!claim_take_denied(c, now, r))
			claim_on_take(c, now, claim_mark_news(c, now, lane, r));
		break;
	case OP_STAT_MARKS:
		claim_on_count(c, now, r);
		break;
	case OP_CREATE_MARK:
	case OP_SET_MARK:
		if (!claim_take_denied(c, now, r))
			claim_on_take(c, now, claim_mark_news(c, now, lane, r));
		break;
	case OP_SWEEP:
		claim_on_sweep(c, now, r);
		break;
	case OP_SET_CLAIM:
		claim_on_said(c, r);
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
		claim_on_renewal(c, now, claim_mark_news(c, now, &c->renew, r));
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
