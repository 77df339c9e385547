/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim-next - what to ask ZooKeeper for in each state.  Two lanes, one
 * operation in each: the way to a worker ID, and the renewal of the mark in
 * hand, which goes on whatever becomes of the claim node.
 *
 * Invariant: nothing but a clean stop's one write asks for a lower ceiling,
 * and no mark is written unless the contract was read in this session.
 */
#include <assert.h>
#include <string.h>

#include "claim-private.h"

static void
begin(struct claim *c, struct claim_lane *lane, enum claim_op_kind kind,
    struct claim_op *op)
{
	memset(op, 0, sizeof(*op));
	op->kind = kind;
	op->id = ++c->last_id;
	op->worker = NO_WORKER;
	memcpy(op->generation, c->k.generation_text, GENERATION_MAX);
	lane->busy = true;
	lane->id = op->id;
	lane->kind = kind;
}

static struct tag
tag_of(const struct entropy *rnd)
{
	return ((struct tag){ { rnd->word[0], rnd->word[1] } });
}

/* Version 4, RFC 9562 section 5.4. */
static void
uuid_of(const struct entropy *rnd, uint8_t uuid[UUID_BYTES])
{
	memcpy(uuid, rnd->word + 2, UUID_BYTES);
	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40);
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
}

/* A look at the mark in hand, or a write of it that expects its version. */
static void
begin_look(struct claim *c, struct claim_lane *lane, struct claim_op *op)
{
	begin(c, lane, OP_GET_MARK, op);
	memcpy(op->generation, c->own_generation, GENERATION_MAX);
	op->worker = c->own.worker;
}

static void
begin_write(struct claim *c, struct claim_lane *lane, int64_t ceiling,
    const struct entropy *rnd, struct claim_op *op)
{
	const char *owner = c->node[0] != '\0' ? c->node : c->own.owner;

	lane->tag = tag_of(rnd);
	if (c->own.ndoubts == 0)
		c->sent_zxid = c->zxid;
	begin(c, lane, c->own.version < 0 ? OP_CREATE_MARK : OP_SET_MARK, op);
	memcpy(op->generation, c->own_generation, GENERATION_MAX);
	op->worker = c->own.worker;
	if (c->state == CLAIM_LOWERING)
		op->version = window_write_lower(
		    &c->own, c->last_tick, c->not_before, lane->tag, &op->mark);
	else
		op->version =
		    window_write(&c->own, owner, ceiling, lane->tag, &op->mark);
}

static void
begin_create(struct claim *c, const struct entropy *rnd, struct claim_op *op)
{
	uint8_t uuid[UUID_BYTES];

	begin(c, &c->way, OP_CREATE, op);
	uuid_of(rnd, uuid);
	claim_name_prefix(uuid, c->want, op->name);
	memcpy(c->attempt, op->name, sizeof(c->attempt));
	c->attempt_session = c->session;
}

static void
begin_named(struct claim *c, enum claim_op_kind kind, const char *name,
    const char *generation, struct claim_op *op)
{
	begin(c, &c->way, kind, op);
	memcpy(op->generation, generation, GENERATION_MAX);
	memcpy(op->name, name, CLAIM_NAME_MAX);
}

static bool
next_take(struct claim *c, const struct entropy *rnd, struct claim_op *op)
{
	if (c->own.reread)
		begin_look(c, &c->way, op);
	else
		begin_write(c, &c->way, c->own.ceiling, rnd, op);
	return (true);
}

static bool
next_way(struct claim *c, struct claim_now now, const struct entropy *rnd,
    struct claim_op *op)
{
	if (c->way.busy)
		return (false);
	if (c->state == CLAIM_HOLDING && mono_reached(now.boot, c->say_at)) {
		/* Without a mark of its own the claim speaks for its clock. */
		c->say_at = mono_add_ms(now.boot, c->conf.renew_ms);
		begin_named(c, OP_SET_CLAIM, c->node, c->node_generation, op);
		op->version = c->said;
		return (true);
	}
	if (!mono_reached(now.boot, c->way.wait))
		return (false);
	switch (c->state) {
	case CLAIM_AWAY:
	case CLAIM_STOPPED:
	case CLAIM_LOWERING: /* the renewal's lane does it */
		return (false);
	case CLAIM_LOOKING:
		begin(c, &c->way, OP_GET_REALM, op);
		return (true);
	case CLAIM_SETTLING:
	case CLAIM_FULL:
		begin(c, &c->way, OP_LIST, op);
		return (true);
	case CLAIM_CLEARING:
		begin_named(c, OP_DELETE, c->victim, c->victim_generation, op);
		return (true);
	case CLAIM_CREATING:
		begin_create(c, rnd, op);
		return (true);
	case CLAIM_HOLDING:
		/* The time has come (see below): read it again. */
		claim_enter(c, CLAIM_READING, "looks at the mark again");
		/* FALLTHROUGH */
	case CLAIM_READING:
		begin(c, &c->way, OP_GET_MARK, op);
		op->worker = c->node_worker;
		return (true);
	case CLAIM_COUNTING:
	case CLAIM_VERIFYING:
		begin(c, &c->way, OP_STAT_MARKS, op);
		return (true);
	case CLAIM_TAKING:
		return (next_take(c, rnd, op));
	case CLAIM_SWEEPING:
		begin(c, &c->way, OP_SWEEP, op);
		return (true);
	case CLAIM_STANDING:
		if (c->watched || c->node[0] == '\0')
			return (false);
		begin_named(c, OP_WATCH, c->node, c->node_generation, op);
		return (true);
	case CLAIM_LEAVING:
		if (c->node[0] == '\0') {
			claim_enter(c, CLAIM_STOPPED, "stopped");
			return (false);
		}
		memcpy(c->victim, c->node, sizeof(c->victim));
		begin_named(c, OP_DELETE, c->node, c->node_generation, op);
		return (true);
	}
	return (false);
}

/* Verified first: until then the mark that was made may still be raised. */
static bool
may_renew(const struct claim *c)
{
	return (claim_owns(c) && !c->renew.busy && claim_realm_usable(c) &&
		c->state != CLAIM_TAKING && c->state != CLAIM_VERIFYING &&
		c->state != CLAIM_STOPPED && c->state != CLAIM_LEAVING &&
		strcmp(c->own_generation, c->k.generation_text) == 0);
}

static bool
next_renewal(struct claim *c, struct claim_now now, const struct entropy *rnd,
    struct claim_op *op)
{
	int64_t ms;

	if (!may_renew(c) || !mono_reached(now.boot, c->renew.wait))
		return (false);
	if (c->own.reread) {
		begin_look(c, &c->renew, op);
		return (true);
	}
	if (c->state != CLAIM_LOWERING && !mono_reached(now.boot, c->renew_at))
		return (false);
	ms = c->conf.reserve_ms < c->k.reserve_max_ms ? c->conf.reserve_ms
						      : c->k.reserve_max_ms;
	if (!c->long_window && ms > 3 * c->conf.renew_ms)
		ms = 3 * c->conf.renew_ms;
	c->renew_at = mono_add_ms(now.boot, c->conf.renew_ms);
	/* Refused by its peers it goes on measuring, and moves nothing. */
	begin_write(c, &c->renew,
	    c->still ? NO_TICK : claim_tick(c, now.unix_ms + ms), rnd, op);
	return (true);
}

bool
claim_next(struct claim *c, struct claim_now now, const struct entropy *rnd,
    struct claim_op *op)
{
	if (!c->connected)
		return (false);
	return (next_renewal(c, now, rnd, op) || next_way(c, now, rnd, op));
}

mono_t
claim_wake(const struct claim *c)
{
	mono_t when = MONO_NEVER;

	if (!c->connected)
		return (when);
	if (may_renew(c)) {
		when = c->renew.wait;
		if (!c->own.reread && c->state != CLAIM_LOWERING &&
		    c->renew_at.ns > when.ns)
			when = c->renew_at;
	}
	if (!c->way.busy && c->state != CLAIM_AWAY &&
	    c->state != CLAIM_STOPPED && c->state != CLAIM_LOWERING &&
	    !(c->state == CLAIM_STANDING &&
		(c->watched || c->node[0] == '\0')) &&
	    c->way.wait.ns < when.ns)
		when = c->way.wait;
	if (!c->way.busy && c->state == CLAIM_HOLDING && c->say_at.ns < when.ns)
		when = c->say_at;
	return (when);
}
