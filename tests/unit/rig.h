/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rig - an agent's claim with a script in place of the shell: each operation
 * is expected by its kind, and then done, lost, refused or left open.  What
 * is done is done by the simulator's ZooKeeper.
 */
#ifndef RIG_H
#define RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../sim/keeper.h"
#include "claim.h"
#include "layout.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define RIG_START_MS INT64_C(1767225600000) /* 2026-01-01 */
#define RIG_RENEW_MS 3000
#define RIG_RESERVE_MS 60000
#define RIG_WORKERS 16

struct agent {
	struct claim c;
	struct claim_conf conf;
	struct keeper *z;
	int64_t session, skew_ms;
	uint64_t dice;
	struct entropy rnd; /* handed in last */
	uint64_t scratch[16];
};

static struct keeper rig_z;
static int64_t rig_ms; /* virtual time */
static int64_t rig_sessions;

static const char *const rig_kinds[] = {
	[OP_NONE] = "nothing",
	[OP_GET_REALM] = "GET_REALM",
	[OP_LIST] = "LIST",
	[OP_CREATE] = "CREATE",
	[OP_DELETE] = "DELETE",
	[OP_WATCH] = "WATCH",
	[OP_GET_MARK] = "GET_MARK",
	[OP_STAT_MARKS] = "STAT_MARKS",
	[OP_CREATE_MARK] = "CREATE_MARK",
	[OP_SET_MARK] = "SET_MARK",
	[OP_SWEEP] = "SWEEP",
	[OP_SET_CLAIM] = "SET_CLAIM",
};

static inline struct contract
rig_contract(uint64_t workers)
{
	return ((struct contract){
	    .format = 1,
	    .uuid = { 7 },
	    .generation = 1,
	    .generation_text = "1-00000001",
	    .reserve_max_ms = RIG_RESERVE_MS,
	    .worker_first = 0,
	    .worker_last = workers - 1,
	    .layout = { .size = sizeof(struct firn_layout),
		.time_bits = 41,
		.worker_bits = 10,
		.sequence_bits = 12,
		.tick_ms = 1,
		.epoch_ms = INT64_C(1735689600000),
		.name = "firn" },
	});
}

/* A fresh world for each test. */
static inline int
rig_setup(void **state)
{
	struct contract k = rig_contract(RIG_WORKERS);

	(void)state;
	keeper_make(&rig_z, &k, false);
	rig_ms = 1000;
	rig_sessions = 0;
	return (0);
}

static inline int
rig_teardown(void **state)
{
	(void)state;
	keeper_free(&rig_z);
	return (0);
}

static inline struct claim_now
now_of(const struct agent *a)
{
	return ((struct claim_now){
	    .boot = { rig_ms * NS_PER_MS },
	    .unix_ms = RIG_START_MS + rig_ms + a->skew_ms,
	});
}

static inline int64_t
tick_now(const struct agent *a)
{
	return (now_of(a).unix_ms - INT64_C(1735689600000));
}

static inline void
agent_init(struct agent *a, uint64_t seed)
{
	memset(a, 0, sizeof(*a));
	a->z = &rig_z;
	a->dice = seed;
	a->conf = (struct claim_conf){ .renew_ms = RIG_RENEW_MS,
		.reserve_ms = RIG_RESERVE_MS,
		.claim_wait_ms = 2000,
		.skew_refuse_ms = 10000,
		.force_worker = NO_WORKER,
		.scratch = a->scratch };
	claim_init(&a->c, &a->conf, seed);
}

static inline void
agent_connect(struct agent *a)
{
	a->session = ++rig_sessions;
	claim_connected(&a->c, now_of(a), a->session);
}

/* What it asks for now; kind OP_NONE if nothing. */
static inline struct claim_op
next_op(struct agent *a)
{
	struct claim_op op = { .kind = OP_NONE };

	for (size_t i = 0; i < 4; i++)
		a->rnd.word[i] = ++a->dice * UINT64_C(0x9e3779b97f4a7c15);
	if (!claim_next(&a->c, now_of(a), &a->rnd, &op))
		op.kind = OP_NONE;
	return (op);
}

#define expect(a, kind) expect_at(a, kind, __FILE__, __LINE__)

static inline struct claim_op
expect_at(struct agent *a, enum claim_op_kind kind, const char *file, int line)
{
	struct claim_op op = next_op(a);

	if (op.kind != kind) {
		print_error("%s in state %s, not %s\n", rig_kinds[op.kind],
		    claim_state_name(a->c.state), rig_kinds[kind]);
		_fail(file, line);
	}
	return (op);
}

#define quiet(a) ((void)expect_at(a, OP_NONE, __FILE__, __LINE__))

#define state_is(a, s) \
	assert_string_equal(claim_state_name((a)->c.state), claim_state_name(s))

/* The reply says only this. */
static inline void
answer(struct agent *a, struct claim_op op, enum claim_rc rc)
{
	struct claim_result r = { .id = op.id, .rc = rc };

	claim_result(&a->c, now_of(a), &r);
}

/* Done, and answered. */
static inline void
ok(struct agent *a, struct claim_op op)
{
	struct keeper_reply r;

	keeper_do(a->z, a->session, &op, &r);
	claim_result(&a->c, now_of(a), &r.r);
	keeper_reply_free(&r);
}

/* Done, with nobody told. */
static inline void
landed(struct agent *a, struct claim_op op)
{
	struct keeper_reply r;

	keeper_do(a->z, a->session, &op, &r);
	keeper_reply_free(&r);
}

/* Done, and the reply lost. */
static inline void
lost(struct agent *a, struct claim_op op)
{
	landed(a, op);
	answer(a, op, RC_UNKNOWN);
}

#define GO(a, ...)                                                \
	go_at(a, (const enum claim_op_kind[]){ __VA_ARGS__ },     \
	    sizeof((const enum claim_op_kind[]){ __VA_ARGS__ }) / \
		sizeof(enum claim_op_kind),                       \
	    __FILE__, __LINE__)

/* Expects these one after the other, each of them done and answered. */
static inline void
go_at(struct agent *a, const enum claim_op_kind *kinds, size_t n,
    const char *file, int line)
{
	for (size_t i = 0; i < n; i++)
		ok(a, expect_at(a, kinds[i], file, line));
}

/* Everything that it asks for is done, until it is quiet. */
static inline void
settle(struct agent *a)
{
	for (int i = 0; i < 200; i++) {
		struct claim_op op = next_op(a);

		if (op.kind == OP_NONE)
			return;
		ok(a, op);
	}
	fail_msg("never quiet: %s", claim_state_name(a->c.state));
}

/* ... for so long, woken when it wants to be. */
static inline void
live(struct agent *a, int64_t ms)
{
	int64_t end = rig_ms + ms;

	for (;;) {
		mono_t wake;
		int64_t at;

		settle(a);
		wake = claim_wake(&a->c);
		at = wake.ns / NS_PER_MS + (wake.ns % NS_PER_MS != 0);
		if (at <= rig_ms)
			at = rig_ms + 1;
		if (wake.ns == MONO_NEVER.ns || at > end)
			break;
		rig_ms = at;
	}
	rig_ms = end;
	settle(a);
}

static inline struct gate
facts(struct agent *a)
{
	struct gate g = { 0 };

	claim_facts(&a->c, now_of(a), &g);
	return (g);
}

/* May this agent issue this tick? */
static inline bool
issues(struct agent *a, int64_t tick)
{
	struct gate g = facts(a);

	return (g.window && !g.realm_changed && tick > g.floor &&
		tick <= g.ceiling);
}

/* Whether it would serve now, or after its floor has been passed. */
static inline bool
serves(struct agent *a)
{
	return (issues(a, tick_now(a)));
}

/* From nothing to a standing claim with its short window. */
static inline void
stand(struct agent *a, uint64_t seed)
{
	agent_init(a, seed);
	agent_connect(a);
	live(a, 10);
	state_is(a, CLAIM_STANDING);
	assert_true(serves(a));
}

static inline size_t
nodes_of_session(int64_t session)
{
	size_t n = 0;

	for (size_t i = 0; i < rig_z.nclaims; i++)
		n += rig_z.claims[i].session == session;
	return (n);
}

static inline struct keeper_mark *
mark_at(uint64_t worker)
{
	return (&rig_z.trees[rig_z.ntrees - 1].marks[worker]);
}

/* A stranger's claim with the counter's present value, or by name. */
static inline void
strangers_claim(int64_t session, uint64_t worker)
{
	static uint8_t uuid[UUID_BYTES] = { 0xee };
	struct claim_op op = { .kind = OP_CREATE };
	struct keeper_reply r;

	uuid[15]++;
	memcpy(op.generation, rig_z.k.generation_text, GENERATION_MAX);
	claim_name_prefix(uuid, worker, op.name);
	keeper_do(&rig_z, session, &op, &r);
	assert_int_equal(r.r.rc, RC_OK);
	keeper_reply_free(&r);
}

/* A stranger's mark with this ceiling, made or moved as ZooKeeper does. */
static inline void
strangers_mark(uint64_t worker, int64_t ceiling)
{
	struct keeper_mark *m = mark_at(worker);
	struct claim_op op = { .kind = m->exists ? OP_SET_MARK : OP_CREATE_MARK,
		.worker = worker,
		.version = m->version };
	struct keeper_reply r;
	static uint64_t n;

	memcpy(op.generation, rig_z.k.generation_text, GENERATION_MAX);
	op.mark.ceiling = ceiling;
	op.mark.tag.word[0] = ++n;
	(void)snprintf(
	    op.mark.owner, sizeof(op.mark.owner), "%s", "a stranger's");
	keeper_do(&rig_z, 9999, &op, &r);
	assert_int_equal(r.r.rc, RC_OK);
	keeper_reply_free(&r);
}

#endif
