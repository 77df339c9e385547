/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_claim - the way to a worker ID, step by step: each operation is pinned,
 * and each may be lost, refused, or cut short.
 */
#include "rig.h"

/* ---- first start --------------------------------------------------------------- */

static void
test_first_start(void **state)
{
	struct agent a;
	struct claim_op op;
	struct claim_name n;

	(void)state;
	agent_init(&a, 1);
	quiet(&a); /* not connected: nothing may be sent */
	assert_true(claim_wake(&a.c).ns == MONO_NEVER.ns);
	assert_false(facts(&a).realm_known);
	agent_connect(&a);
	op = expect(&a, OP_GET_REALM);
	quiet(&a); /* one at a time */
	ok(&a, op);
	assert_true(facts(&a).realm_known);
	GO(&a, OP_LIST);
	op = expect(&a, OP_CREATE);
	assert_string_equal(op.generation, "1-00000001");
	ok(&a, op);
	assert_true(claim_name_parse(a.c.node, &n));
	assert_false(n.named);
	assert_int_equal(n.counter, 0);
	GO(&a, OP_LIST);
	op = expect(&a, OP_GET_MARK);
	assert_int_equal(op.worker, 0);
	ok(&a, op);
	GO(&a, OP_STAT_MARKS);
	op = expect(&a, OP_CREATE_MARK);
	assert_int_equal(
	    op.mark.ceiling, 0 - INT64_C(1)); /* before the epoch */
	assert_string_equal(op.mark.owner, a.c.node);
	ok(&a, op);
	GO(&a, OP_STAT_MARKS); /* none was deleted meanwhile */
	state_is(&a, CLAIM_STANDING);
	assert_false(facts(&a).window); /* it fences; it allows nothing */
	op = expect(&a, OP_SET_MARK);
	assert_int_equal(op.version, 0);
	GO(&a, OP_WATCH);
	assert_false(facts(&a).window);
	ok(&a, op);
	assert_true(serves(&a));
	assert_true(facts(&a).had_window);
	quiet(&a);
	assert_int_equal(rig_z.creates, 1);
}

static void
test_takes_a_mark_over(void **state)
{
	struct agent a;
	struct claim_op op;
	int64_t ceiling;

	(void)state;
	agent_init(&a, 1);
	ceiling = tick_now(&a) + 1500; /* ahead, but less than claim_wait_ms */
	strangers_mark(0, ceiling);
	agent_connect(&a);
	GO(&a, OP_GET_REALM, OP_LIST, OP_CREATE, OP_LIST, OP_GET_MARK);
	op = expect(&a, OP_SET_MARK);
	assert_int_equal(op.version, 0);
	assert_int_equal(op.mark.ceiling, ceiling); /* it leaves the ceiling */
	assert_string_equal(op.mark.owner, a.c.node);
	ok(&a, op);
	GO(&a, OP_SET_MARK, OP_WATCH);
	assert_int_equal(facts(&a).floor, ceiling);
	assert_false(issues(&a, ceiling));
	assert_true(issues(&a, ceiling + 1));
}

/* Names and tags hold the very bytes that were handed in: no second source. */
static void
test_entropy(void **state)
{
	struct agent a;
	uint8_t uuid[UUID_BYTES];
	char prefix[CLAIM_PREFIX_MAX];
	unsigned writes = 0;

	(void)state;
	agent_init(&a, 5);
	agent_connect(&a);
	for (int i = 0; i < 40; i++) {
		struct claim_op op = next_op(&a);

		if (op.kind == OP_CREATE) {
			memcpy(uuid, a.rnd.word + 2, UUID_BYTES);
			uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40);
			uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
			claim_name_prefix(uuid, NO_WORKER, prefix);
			assert_string_equal(op.name, prefix);
			writes++;
		}
		if (op.kind == OP_SET_MARK || op.kind == OP_CREATE_MARK) {
			assert_true(op.mark.tag.word[0] == a.rnd.word[0]);
			assert_true(op.mark.tag.word[1] == a.rnd.word[1]);
			writes++;
		}
		if (op.kind != OP_NONE)
			ok(&a, op);
		rig_ms += 500;
	}
	assert_true(writes > 5);
}

/* ---- who withdraws ---------------------------------------------------------------- */

static void
test_older_claim_wins(void **state)
{
	struct agent a;
	struct claim_op op;

	(void)state;
	strangers_claim(99, NO_WORKER); /* counter 0 */
	rig_z.counter = RIG_WORKERS; /* the same remainder */
	agent_init(&a, 1);
	agent_connect(&a);
	GO(&a, OP_GET_REALM, OP_LIST, OP_CREATE, OP_LIST);
	op = expect(&a, OP_DELETE);
	assert_non_null(strstr(op.name, "-w-0000000016"));
	ok(&a, op);
	GO(&a, OP_CREATE, OP_LIST);
	assert_int_equal(a.c.node_worker, 1);
	op = expect(&a, OP_GET_MARK);
	assert_int_equal(op.worker, 1);
}

static void
test_older_by_name_wins(void **state)
{
	struct agent a;

	(void)state;
	strangers_claim(99, 1); /* names worker 1; counter 0 */
	agent_init(&a, 1);
	agent_connect(&a);
	GO(&a, OP_GET_REALM, OP_LIST, OP_CREATE); /* counter 1 */
	assert_int_equal(a.c.node_worker, 1);
	GO(&a, OP_LIST, OP_DELETE, OP_CREATE, OP_LIST, OP_GET_MARK);
	assert_int_equal(a.c.node_worker, 2);
}

static void
test_younger_claim_does_not(void **state)
{
	struct agent a;

	(void)state;
	agent_init(&a, 1);
	agent_connect(&a);
	GO(&a, OP_GET_REALM, OP_LIST, OP_CREATE);
	strangers_claim(99, a.c.node_worker);
	rig_z.counter = RIG_WORKERS;
	strangers_claim(99, NO_WORKER);
	GO(&a, OP_LIST, OP_GET_MARK);
}

/* Nodes that are nobody's claim do not count. */
static void
test_strange_nodes(void **state)
{
	struct agent a;

	(void)state;
	strangers_claim(99, NO_WORKER);
	(void)snprintf(rig_z.claims[0].name, CLAIM_NAME_MAX, ".keep");
	rig_z.counter = 0;
	stand(&a, 1);
	assert_int_equal(a.c.node_worker, 0);
}

/* ---- the walk ---------------------------------------------------------------------- */

/* A mark just so far ahead is waited for; one tick more, and it is left. */
static void
test_mark_ahead(void **state)
{
	struct agent a;

	(void)state;
	agent_init(&a, 1);
	strangers_mark(0, tick_now(&a) + 2001);
	strangers_mark(1, tick_now(&a) + 2000);
	agent_connect(&a);
	GO(&a, OP_GET_REALM, OP_LIST, OP_CREATE, OP_LIST, OP_GET_MARK);
	GO(&a, OP_DELETE); /* gives it up */
	GO(&a, OP_CREATE, OP_LIST, OP_GET_MARK, OP_SET_MARK);
	state_is(&a, CLAIM_STANDING);
	assert_int_equal(a.c.own.worker, 1);
}

/* Marks 0 to 7 are ahead: eight IDs given up, then one sweep. */
static void
walk_eight(struct agent *a)
{
	GO(a, OP_GET_REALM, OP_LIST);
	for (int i = 0; i < CLAIM_WALK_MAX; i++)
		GO(a, OP_CREATE, OP_LIST, OP_GET_MARK, OP_DELETE);
	assert_int_equal(a->c.claims_created, CLAIM_WALK_MAX);
}

static void
test_walk_then_sweep(void **state)
{
	struct agent a;
	struct claim_op op;
	struct claim_name n;

	(void)state;
	agent_init(&a, 1);
	for (uint64_t i = 0; i < RIG_WORKERS; i++)
		strangers_mark(i, tick_now(&a) + (i < 8 ? 50000 : -100));
	strangers_mark(13, tick_now(&a) - 700); /* the lowest */
	strangers_claim(99, 12); /* lower still, but taken */
	strangers_mark(12, tick_now(&a) - 900);
	rig_z.counter = 0;
	agent_connect(&a);
	walk_eight(&a);
	GO(&a, OP_SWEEP);
	assert_int_equal(a.c.quarantined, 8);
	assert_int_equal(a.c.free_ids, 15);
	op = expect(&a, OP_CREATE);
	assert_non_null(strstr(op.name, "-w0013-"));
	ok(&a, op);
	assert_true(claim_name_parse(a.c.node, &n));
	assert_true(n.named);
	GO(&a, OP_LIST, OP_GET_MARK, OP_SET_MARK);
	state_is(&a, CLAIM_STANDING);
	assert_int_equal(a.c.own.worker, 13);
}

/* An ID without a mark was never used: there is none lower. */
static void
test_sweep_prefers_unused(void **state)
{
	struct agent a;
	struct claim_op op;

	(void)state;
	agent_init(&a, 1);
	for (uint64_t i = 0; i < RIG_WORKERS; i++) {
		if (i != 10)
			strangers_mark(
			    i, i < 8 ? tick_now(&a) + 50000 : INT64_C(3));
	}
	agent_connect(&a);
	walk_eight(&a);
	GO(&a, OP_SWEEP);
	op = expect(&a, OP_CREATE);
	assert_non_null(strstr(op.name, "-w0010-"));
}

static void
test_random_among_equals(void **state)
{
	unsigned seen[RIG_WORKERS] = { 0 };

	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct agent a;

		agent_init(&a, seed);
		for (uint64_t i = 0; i < RIG_WORKERS; i++)
			strangers_mark(
			    i, i < 8 ? tick_now(&a) + 50000 : INT64_C(5));
		agent_connect(&a);
		walk_eight(&a);
		GO(&a, OP_SWEEP);
		assert_true(a.c.want >= 8 && a.c.want < RIG_WORKERS);
		seen[a.c.want]++;
		(void)rig_teardown(state);
		(void)rig_setup(state);
	}
	for (size_t i = 8; i < RIG_WORKERS; i++)
		assert_in_range(seen[i], 20, 90); /* 50, give or take */
}

/* All marks are ahead: holds the one least ahead, and waits for it. */
static void
test_hold(void **state)
{
	struct agent a;
	struct claim_op op;
	int64_t ceiling;

	(void)state;
	agent_init(&a, 1);
	for (uint64_t i = 0; i < RIG_WORKERS; i++)
		strangers_mark(i, tick_now(&a) + 50000 + (int64_t)i);
	ceiling = tick_now(&a) + 20000;
	strangers_mark(11, ceiling);
	agent_connect(&a);
	walk_eight(&a);
	GO(&a, OP_SWEEP);
	assert_int_equal(a.c.quarantined, RIG_WORKERS);
	GO(&a, OP_CREATE, OP_LIST, OP_GET_MARK);
	state_is(&a, CLAIM_HOLDING);
	assert_int_equal(a.c.node_worker, 11);
	/* Without a mark of its own its claim says how its clock is. */
	op = expect(&a, OP_SET_CLAIM);
	assert_string_equal(op.name, a.c.node);
	ok(&a, op);
	quiet(&a);
	assert_int_equal(
	    mono_diff_ms(claim_wake(&a.c), now_of(&a).boot), RIG_RENEW_MS);
	/* Not before the mark is no more than claim_wait_ms ahead. */
	rig_ms += 17999;
	answer(&a, expect(&a, OP_SET_CLAIM), RC_UNKNOWN);
	quiet(&a);
	assert_int_equal(mono_diff_ms(claim_wake(&a.c), now_of(&a).boot), 1);
	rig_ms++;
	GO(&a, OP_GET_MARK, OP_SET_MARK);
	state_is(&a, CLAIM_STANDING);
	settle(&a);
	assert_int_equal(facts(&a).floor, ceiling);
}

/* The clock went back while it waited: it waits on. */
static void
test_hold_clock_back(void **state)
{
	struct agent a;

	(void)state;
	agent_init(&a, 1);
	for (uint64_t i = 0; i < RIG_WORKERS; i++)
		strangers_mark(i, tick_now(&a) + 50000);
	agent_connect(&a);
	walk_eight(&a);
	GO(&a, OP_SWEEP, OP_CREATE, OP_LIST, OP_GET_MARK);
	state_is(&a, CLAIM_HOLDING);
	rig_ms += 48000;
	a.skew_ms = -10000;
	GO(&a, OP_SET_CLAIM, OP_GET_MARK);
	state_is(&a, CLAIM_HOLDING);
	rig_ms += 10000;
	GO(&a, OP_SET_CLAIM, OP_GET_MARK, OP_SET_MARK);
	state_is(&a, CLAIM_STANDING);
}

/* Whom it waited for has come back and moved the mark on: give it up. */
static void
test_hold_moved_on(void **state)
{
	struct agent a;

	(void)state;
	agent_init(&a, 1);
	for (uint64_t i = 0; i < RIG_WORKERS; i++)
		strangers_mark(i, tick_now(&a) + 50000);
	agent_connect(&a);
	walk_eight(&a);
	GO(&a, OP_SWEEP, OP_CREATE, OP_LIST, OP_GET_MARK);
	state_is(&a, CLAIM_HOLDING);
	strangers_mark(a.c.node_worker, tick_now(&a) + 100000);
	rig_ms += 48000;
	GO(&a, OP_SET_CLAIM, OP_GET_MARK, OP_DELETE);
	state_is(&a, CLAIM_SWEEPING); /* not another walk */
	live(&a, 3000);
	state_is(&a, CLAIM_STANDING);
	assert_int_equal(rig_z.creates, CLAIM_WALK_MAX + 2);
}

/* A mark that lies ages ahead overflows no timer. */
static void
test_hold_for_ages(void **state)
{
	struct agent a;

	(void)state;
	rig_z.k.layout.tick_ms = 3600000;
	agent_init(&a, 1);
	for (uint64_t i = 0; i < RIG_WORKERS; i++)
		strangers_mark(i, (INT64_C(1) << 62) - 1);
	agent_connect(&a);
	walk_eight(&a);
	GO(&a, OP_SWEEP, OP_CREATE, OP_LIST, OP_GET_MARK);
	state_is(&a, CLAIM_HOLDING);
	rig_ms += INT64_C(1000) * 86400000;
	GO(&a, OP_SET_CLAIM);
	quiet(&a);
}

/* ---- a full realm -------------------------------------------------------------------- */

static void
test_full(void **state)
{
	struct agent a;
	int64_t last = 0, waits = 0;

	(void)state;
	for (uint64_t i = 0; i < RIG_WORKERS; i++)
		strangers_claim(100 + (int64_t)i, NO_WORKER);
	agent_init(&a, 1);
	agent_connect(&a);
	GO(&a, OP_GET_REALM, OP_LIST);
	state_is(&a, CLAIM_FULL);
	assert_int_equal(a.c.taken, RIG_WORKERS);
	assert_int_equal(a.c.free_ids, 0);
	for (int i = 0; i < 30; i++) {
		int64_t ms = mono_diff_ms(claim_wake(&a.c), now_of(&a).boot);

		quiet(&a);
		assert_in_range(ms, 1000, 30000); /* with jitter */
		waits += ms != last;
		last = ms;
		if (i > 6)
			assert_true(ms >= 15000);
		rig_ms += ms + 1;
		GO(&a, OP_LIST);
		state_is(&a, CLAIM_FULL);
	}
	assert_true(waits > 20);
	assert_int_equal(rig_z.creates, RIG_WORKERS); /* creates nothing */
	/* One leaves; its mark is free to be taken. */
	keeper_end_session(&rig_z, 105);
	rig_ms += 30001;
	GO(&a, OP_LIST, OP_SWEEP, OP_CREATE, OP_LIST, OP_GET_MARK);
	settle(&a);
	state_is(&a, CLAIM_STANDING);
	assert_int_equal(a.c.own.worker, 5);
}

/* ---- creation in doubt ------------------------------------------------------------------ */

static void
test_lost_create_is_adopted(void **state)
{
	struct agent a;

	(void)state;
	agent_init(&a, 1);
	agent_connect(&a);
	GO(&a, OP_GET_REALM, OP_LIST);
	lost(&a, expect(&a, OP_CREATE));
	quiet(&a); /* a short back-off */
	rig_ms += 101;
	GO(&a, OP_LIST);
	assert_int_equal(a.c.node_worker, 0); /* by its UUID */
	GO(&a, OP_GET_MARK);
	assert_int_equal(rig_z.creates, 1);
	assert_int_equal(rig_z.nclaims, 1);
}

static void
test_lost_create_was_never_done(void **state)
{
	struct agent a;
	struct claim_op first, second;

	(void)state;
	agent_init(&a, 1);
	agent_connect(&a);
	GO(&a, OP_GET_REALM, OP_LIST);
	first = expect(&a, OP_CREATE);
	answer(&a, first, RC_UNKNOWN);
	rig_ms += 101;
	GO(&a, OP_LIST);
	second = expect(&a, OP_CREATE);
	assert_string_not_equal(first.name, second.name); /* a fresh UUID */
	ok(&a, second);
	GO(&a, OP_LIST, OP_GET_MARK);
}

/* In another session it is a ghost, and goes before anything is created. */
static void
test_lost_create_in_another_session(void **state)
{
	struct agent a;
	struct claim_op create, op;

	(void)state;
	agent_init(&a, 1);
	agent_connect(&a);
	GO(&a, OP_GET_REALM, OP_LIST);
	create = expect(&a, OP_CREATE);
	landed(&a, create);
	claim_disconnected(&a.c, now_of(&a));
	claim_session_lost(&a.c, now_of(&a));
	quiet(&a);
	agent_connect(&a);
	GO(&a, OP_GET_REALM, OP_LIST);
	op = expect(&a, OP_DELETE);
	assert_memory_equal(op.name, create.name, strlen(create.name));
	ok(&a, op);
	GO(&a, OP_LIST, OP_CREATE, OP_LIST, OP_GET_MARK);
	assert_int_equal(rig_z.nclaims, 1);
}

/* It lands only after the new session has looked: an orphan, found later. */
static void
test_orphan_found_later(void **state)
{
	struct agent a;
	struct claim_op create;
	int64_t before;

	(void)state;
	agent_init(&a, 1);
	agent_connect(&a);
	before = a.session;
	GO(&a, OP_GET_REALM, OP_LIST);
	create = expect(&a, OP_CREATE);
	claim_session_lost(&a.c, now_of(&a));
	agent_connect(&a);
	GO(&a, OP_GET_REALM, OP_LIST, OP_CREATE);
	{
		struct keeper_reply r; /* the old session's packet arrives */

		keeper_do(&rig_z, before, &create, &r);
		keeper_reply_free(&r);
	}
	assert_int_equal(rig_z.nclaims, 2);
	GO(&a, OP_LIST, OP_DELETE, OP_LIST, OP_GET_MARK);
	assert_int_equal(rig_z.nclaims, 1);
	assert_int_equal(nodes_of_session(a.session), 1);
}

/* Deletes are retried until NONODE: no orphan of a walk. */
static void
test_delete_is_retried(void **state)
{
	struct agent a;

	(void)state;
	strangers_claim(99, NO_WORKER);
	rig_z.counter = RIG_WORKERS;
	agent_init(&a, 1);
	agent_connect(&a);
	GO(&a, OP_GET_REALM, OP_LIST, OP_CREATE, OP_LIST);
	for (int i = 0; i < 5; i++) {
		answer(&a, expect(&a, OP_DELETE), RC_UNKNOWN);
		quiet(&a);
		rig_ms += 5000;
	}
	lost(&a, expect(&a, OP_DELETE)); /* done, but who knows */
	rig_ms += 5000;
	answer(&a, expect(&a, OP_DELETE), RC_NONODE);
	GO(&a, OP_CREATE);
	assert_int_equal(rig_z.nclaims, 2);
}

/* ---- the counter's end --------------------------------------------------------------------- */

/* 0: ZNODEEXISTS; 1: a name that does not parse; 2: so, with a lost reply. */
static void
end_of_counter(struct agent *a, int how)
{
	struct claim_op op = expect(a, OP_CREATE);
	struct keeper_reply r;

	if (how == 0) {
		answer(a, op, RC_NODEEXISTS);
		return;
	}
	keeper_do(a->z, a->session, &op, &r);
	(void)snprintf(a->z->claims[a->z->nclaims - 1].name, CLAIM_NAME_MAX,
	    "%.63s-2147483648", op.name);
	memcpy(r.name, a->z->claims[a->z->nclaims - 1].name, CLAIM_NAME_MAX);
	claim_result(&a->c, now_of(a), &r.r);
	keeper_reply_free(&r);
	op = expect(a, OP_DELETE); /* of no use to anybody */
	assert_string_equal(op.name, a->z->claims[a->z->nclaims - 1].name);
	ok(a, op);
}

static void
test_counter_end(void **state)
{
	for (int how = 0; how < 2; how++) {
		struct agent a;

		agent_init(&a, 1);
		agent_connect(&a);
		GO(&a, OP_GET_REALM, OP_LIST);
		end_of_counter(&a, how);
		GO(&a, OP_LIST);
		state_is(&a, CLAIM_FULL); /* no claim is to be had */
		assert_true(a.c.counter_end);
		live(&a, 100000);
		state_is(&a, CLAIM_FULL);
		assert_int_equal(rig_z.nclaims, 0);
		assert_int_equal(rig_z.creates, how); /* no more attempts */
		/* The operator renews the realm. */
		keeper_renew(&rig_z, 0);
		claim_watch_fired(&a.c, now_of(&a));
		settle(&a);
		state_is(&a, CLAIM_STANDING);
		assert_false(a.c.counter_end);
		(void)rig_teardown(state);
		(void)rig_setup(state);
	}
}

/* It keeps what it has: the mark is renewed without a claim. */
static void
test_counter_end_keeps(void **state)
{
	for (int how = 0; how < 2; how++) {
		struct agent a;
		int64_t ceiling;

		stand(&a, 1);
		keeper_end_session(&rig_z, a.session);
		claim_session_lost(&a.c, now_of(&a));
		agent_connect(&a);
		GO(&a, OP_GET_REALM, OP_LIST);
		end_of_counter(&a, how);
		GO(&a, OP_LIST);
		state_is(&a, CLAIM_STANDING);
		live(&a, 10000);
		ceiling = facts(&a).ceiling;
		live(&a, 100000);
		assert_true(serves(&a));
		assert_true(facts(&a).ceiling > ceiling + 90000);
		assert_int_equal(rig_z.nclaims, 0);
		(void)rig_teardown(state);
		(void)rig_setup(state);
	}
}

/* The last number itself is a good one. */
static void
test_counter_last(void **state)
{
	struct agent a;

	(void)state;
	rig_z.counter = INT32_MAX;
	stand(&a, 1);
	assert_int_equal(a.c.own.worker, INT32_MAX % RIG_WORKERS);
	assert_false(a.c.counter_end);
}

/* ---- forced: for tests of the mark ------------------------------------------------------------ */

static void
test_forced(void **state)
{
	struct agent a, b;

	(void)state;
	agent_init(&a, 1);
	a.conf.force_worker = 3;
	claim_init(&a.c, &a.conf, 1);
	agent_connect(&a);
	live(&a, 10);
	agent_init(&b, 2);
	b.conf.force_worker = 3;
	claim_init(&b.c, &b.conf, 2);
	agent_connect(&b);
	live(&b, 10);
	/* Both claim it; the mark names the later one. */
	assert_int_equal(a.c.own.worker, 3);
	assert_int_equal(b.c.own.worker, 3);
	assert_true(facts(&b).floor >= facts(&a).ceiling);
}

/* ---- every step, every fault --------------------------------------------------------------------- */

enum fault {
	LOST, /* done; the reply is lost */
	NEVER, /* not done; no reply */
	REFUSED, /* definitely not done */
	DENIED, /* ... by the node's access list */
	CUT, /* done; connection lost and back, same session */
	CUT_BEFORE, /* not done; so */
	NEW_SESSION, /* done; another session, the old one ends later */
	NEW_SESSION_DEAD, /* not done; another session, the old one has ended */
	SILENT, /* done; the session changes without a word */
	WATCH, /* the watch fires while it is under way, then the reply */
	WATCH_BEFORE, /* the watch fires just before it is asked for */
	FAULTS,
};

static const char *const fault_names[] = { "lost", "never done", "refused",
	"denied", "cut, done", "cut, not done", "new session",
	"new session, old ended", "silent session change", "watch meanwhile",
	"watch before" };

static void
strike(struct agent *a, struct claim_op op, enum fault f)
{
	int64_t before = a->session;

	switch (f) {
	case LOST:
		lost(a, op);
		return;
	case NEVER:
		answer(a, op, RC_UNKNOWN);
		return;
	case REFUSED:
		answer(a, op, RC_REFUSED);
		return;
	case DENIED:
		answer(a, op, RC_DENIED);
		return;
	case CUT:
		landed(a, op);
		/* FALLTHROUGH */
	case CUT_BEFORE:
		claim_disconnected(&a->c, now_of(a));
		quiet(a);
		claim_connected(&a->c, now_of(a), a->session);
		return;
	case NEW_SESSION:
		landed(a, op);
		claim_session_lost(&a->c, now_of(a));
		agent_connect(a);
		return;
	case NEW_SESSION_DEAD:
		keeper_end_session(a->z, before);
		claim_disconnected(&a->c, now_of(a));
		claim_session_lost(&a->c, now_of(a));
		agent_connect(a);
		return;
	case SILENT:
		landed(a, op);
		agent_connect(a);
		return;
	case WATCH:
		claim_watch_fired(&a->c, now_of(a));
		ok(a, op);
		return;
	case WATCH_BEFORE:
	case FAULTS:
		return;
	}
}

/*
 * Runs until quiet with one fault at the n-th operation; false if there was
 * no such operation.
 */
static bool
run_with_fault(struct agent *a, int n, enum fault f)
{
	bool struck = false;
	int seen = 0;

	for (int i = 0; i < 400; i++) {
		struct claim_op op;

		if (seen == n && !struck && f == WATCH_BEFORE) {
			claim_watch_fired(&a->c, now_of(a));
			struck = true;
		}
		op = next_op(a);
		if (op.kind == OP_NONE) {
			rig_ms += 50;
			continue;
		}
		if (seen++ == n && f != WATCH_BEFORE) {
			strike(a, op, f);
			struck = true;
		} else
			ok(a, op);
	}
	return (struck);
}

static void
check_standing(struct agent *a, const char *what, int n, enum fault f)
{
	if (a->c.state != CLAIM_STANDING || !serves(a) ||
	    nodes_of_session(a->session) != 1 ||
	    strcmp(mark_at(a->c.own.worker)->mark.owner, a->c.node) != 0)
		fail_msg("%s, operation %d %s: %s, %zu nodes, serves %d", what,
		    n, fault_names[f], claim_state_name(a->c.state),
		    nodes_of_session(a->session), serves(a));
}

static void
test_each_fault_at_first_start(void **state)
{
	for (enum fault f = LOST; f < FAULTS; f++) {
		int n = 0;

		for (;; n++) {
			struct agent a;

			(void)rig_teardown(state);
			(void)rig_setup(state);
			agent_init(&a, 1);
			agent_connect(&a);
			if (!run_with_fault(&a, n, f) || n > 12)
				break;
			check_standing(&a, "first start", n, f);
			/* Nodes of a session that still lives are cleared. */
			assert_int_equal(rig_z.nclaims, 1);
		}
		assert_true(n > 10); /* renewals too */
	}
}

static void
test_each_fault_at_take_over(void **state)
{
	for (enum fault f = LOST; f < FAULTS; f++) {
		for (int n = 0; n < 10; n++) {
			struct agent a;
			int64_t ceiling;

			(void)rig_teardown(state);
			(void)rig_setup(state);
			agent_init(&a, 1);
			ceiling = tick_now(&a) + 1000;
			for (uint64_t i = 0; i < RIG_WORKERS; i++)
				strangers_mark(i, ceiling);
			agent_connect(&a);
			assert_true(run_with_fault(&a, n, f));
			check_standing(&a, "take-over", n, f);
			assert_true(facts(&a).floor >= ceiling);
		}
	}
}

/* After expiry: the same worker ID, by name, whatever happens. */
static void
test_each_fault_at_return(void **state)
{
	for (enum fault f = LOST; f < FAULTS; f++) {
		for (int n = 0; n < 7; n++) {
			struct agent a;
			uint64_t worker;
			struct claim_name cn;

			(void)rig_teardown(state);
			(void)rig_setup(state);
			strangers_claim(99, NO_WORKER);
			stand(&a, 1);
			worker = a.c.own.worker;
			live(&a, 10000);
			claim_session_lost(&a.c, now_of(&a));
			agent_connect(&a);
			assert_true(run_with_fault(&a, n, f));
			check_standing(&a, "return", n, f);
			assert_int_equal(a.c.own.worker, worker);
			assert_true(claim_name_parse(a.c.node, &cn));
			assert_true(cn.named && cn.wanted == worker);
			assert_int_equal(rig_z.nclaims, 2);
		}
	}
}

/* Through a walk and a sweep. */
static void
test_each_fault_at_sweep(void **state)
{
	for (enum fault f = LOST; f < FAULTS; f++) {
		for (int n = 2; n < 44; n++) {
			struct agent a;

			(void)rig_teardown(state);
			(void)rig_setup(state);
			agent_init(&a, 1);
			for (uint64_t i = 0; i < 12; i++)
				strangers_mark(i, tick_now(&a) + 50000);
			agent_connect(&a);
			if (!run_with_fault(&a, n, f))
				fail_msg("no operation %d", n);
			check_standing(&a, "sweep", n, f);
			assert_int_equal(rig_z.nclaims, 1);
		}
	}
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, rig_setup, rig_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_first_start),
		TEST(test_takes_a_mark_over),
		TEST(test_entropy),
		TEST(test_older_claim_wins),
		TEST(test_older_by_name_wins),
		TEST(test_younger_claim_does_not),
		TEST(test_strange_nodes),
		TEST(test_mark_ahead),
		TEST(test_walk_then_sweep),
		TEST(test_sweep_prefers_unused),
		TEST(test_random_among_equals),
		TEST(test_hold),
		TEST(test_hold_clock_back),
		TEST(test_hold_moved_on),
		TEST(test_hold_for_ages),
		TEST(test_full),
		TEST(test_lost_create_is_adopted),
		TEST(test_lost_create_was_never_done),
		TEST(test_lost_create_in_another_session),
		TEST(test_orphan_found_later),
		TEST(test_delete_is_retried),
		TEST(test_counter_end),
		TEST(test_counter_end_keeps),
		TEST(test_counter_last),
		TEST(test_forced),
		TEST(test_each_fault_at_first_start),
		TEST(test_each_fault_at_take_over),
		TEST(test_each_fault_at_return),
		TEST(test_each_fault_at_sweep),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
