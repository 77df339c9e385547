/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_claim_mark - the mark in hand: renewals and their replies, twins,
 * other owners, deleted marks, expired sessions, and the clean stop.
 */
#include "rig.h"

/* ---- renewals ------------------------------------------------------------------- */

static void
test_windows_grow(void **state)
{
	struct agent a;
	int64_t start;

	(void)state;
	agent_init(&a, 1);
	agent_connect(&a);
	start = tick_now(&a);
	settle(&a);
	/* The first one is short: a crash loop leaves little ahead. */
	assert_int_equal(facts(&a).ceiling, start + 3 * RIG_RENEW_MS);
	rig_ms += RIG_RENEW_MS - 1;
	quiet(&a);
	rig_ms++;
	GO(&a, OP_SET_MARK);
	quiet(&a);
	assert_int_equal(
	    facts(&a).ceiling, start + RIG_RENEW_MS + RIG_RESERVE_MS);
	assert_int_equal(facts(&a).floor, NO_TICK);
	assert_int_equal(
	    mono_diff_ms(claim_wake(&a.c), now_of(&a).boot), RIG_RENEW_MS);
}

static void
test_reserve_is_capped(void **state)
{
	struct agent a;

	(void)state;
	agent_init(&a, 1);
	a.conf.reserve_ms = 3600000; /* the realm allows less */
	claim_init(&a.c, &a.conf, 1);
	agent_connect(&a);
	live(&a, RIG_RENEW_MS);
	assert_int_equal(facts(&a).ceiling, tick_now(&a) + RIG_RESERVE_MS);

	/* Shorter than three renewals: no first window is longer than that. */
	(void)rig_teardown(state);
	(void)rig_setup(state);
	agent_init(&a, 1);
	a.conf.reserve_ms = 5000;
	claim_init(&a.c, &a.conf, 1);
	agent_connect(&a);
	settle(&a);
	assert_int_equal(facts(&a).ceiling, tick_now(&a) + 5000);
}

static void
test_clock_back_never_lowers(void **state)
{
	struct agent a;
	struct claim_op op;
	int64_t ceiling;

	(void)state;
	stand(&a, 1);
	live(&a, RIG_RENEW_MS);
	ceiling = facts(&a).ceiling;
	a.skew_ms = -3600000;
	rig_ms += RIG_RENEW_MS;
	op = expect(&a, OP_SET_MARK);
	assert_int_equal(op.mark.ceiling, ceiling);
	ok(&a, op);
	assert_int_equal(facts(&a).ceiling, ceiling);
}

/* Standing with a long window, and a renewal just asked for. */
static struct claim_op
renewal_under_way(struct agent *a)
{
	stand(a, 1);
	live(a, RIG_RENEW_MS);
	rig_ms += RIG_RENEW_MS;
	return (expect(a, OP_SET_MARK));
}

static void
test_renewal_lost(void **state)
{
	struct agent a;
	struct claim_op op = renewal_under_way(&a);
	int64_t ceiling = facts(&a).ceiling;

	(void)state;
	lost(&a, op);
	assert_int_equal(facts(&a).ceiling, ceiling); /* the old one */
	assert_true(serves(&a));
	rig_ms += 20;
	GO(&a, OP_GET_MARK);
	assert_int_equal(facts(&a).ceiling, op.mark.ceiling);
	assert_int_equal(a.c.twins, 0);
	quiet(&a);
}

static void
test_renewal_never_done(void **state)
{
	struct agent a;
	struct claim_op op = renewal_under_way(&a);
	int64_t ceiling = facts(&a).ceiling;

	(void)state;
	answer(&a, op, RC_UNKNOWN);
	rig_ms += 20;
	GO(&a, OP_GET_MARK);
	assert_int_equal(facts(&a).ceiling, ceiling);
	GO(&a, OP_SET_MARK); /* at once */
	assert_true(facts(&a).ceiling > ceiling);
}

/* It lands after the look: the next write is refused, and finds it. */
static void
test_renewal_lands_late(void **state)
{
	struct agent a;
	struct claim_op first = renewal_under_way(&a);

	(void)state;
	answer(&a, first, RC_UNKNOWN);
	rig_ms += 20;
	GO(&a, OP_GET_MARK);
	landed(&a, first);
	rig_ms += 5; /* the second asks for more */
	GO(&a, OP_SET_MARK); /* BADVERSION */
	rig_ms += 40;
	GO(&a, OP_GET_MARK);
	assert_int_equal(a.c.twins, 0);
	assert_int_equal(facts(&a).ceiling, first.mark.ceiling);
	live(&a, RIG_RENEW_MS);
	assert_int_equal(a.c.own.worker, 0);
	assert_true(facts(&a).ceiling > first.mark.ceiling);
}

/* Every look and every write goes wrong for a while: IDs go on. */
static void
test_renewal_fails_for_long(void **state)
{
	static const enum claim_rc rcs[] = { RC_UNKNOWN, RC_REFUSED,
		RC_UNKNOWN };
	struct agent a;
	int64_t ceiling;
	unsigned asked = 0;

	(void)state;
	stand(&a, 1);
	live(&a, RIG_RENEW_MS);
	ceiling = facts(&a).ceiling;
	for (int i = 0; i < 300; i++) {
		struct claim_op op = next_op(&a);

		if (op.kind != OP_NONE) {
			answer(&a, op, rcs[asked++ % COUNT(rcs)]);
			assert_int_equal(
			    op.kind, asked == 1 ? OP_SET_MARK : OP_GET_MARK);
		}
		rig_ms += 100;
		assert_int_equal(facts(&a).ceiling, ceiling);
	}
	assert_in_range(asked, 20, 100); /* with back-off */
	assert_true(serves(&a));
	live(&a, 2000);
	assert_true(facts(&a).ceiling > ceiling);
	assert_int_equal(a.c.own.worker, 0);
}

/* ---- the claim may go, the window stays --------------------------------------------- */

static void
test_keeps_its_worker_id(void **state)
{
	struct agent a;
	struct claim_op op, renewal;
	struct gate before, after;
	char old[CLAIM_NAME_MAX];

	(void)state;
	strangers_claim(99, NO_WORKER); /* so that the worker ID is 1 */
	stand(&a, 1);
	live(&a, 10000);
	before = facts(&a);
	memcpy(old, a.c.node, sizeof(old));
	keeper_end_session(&rig_z, a.session);
	claim_session_lost(&a.c, now_of(&a));
	quiet(&a);
	assert_true(serves(&a)); /* isolated */
	/* Somebody older wants it: whom the mark names stays. */
	rig_z.counter = RIG_WORKERS + 1;
	strangers_claim(98, NO_WORKER);
	rig_ms += 15000;
	agent_connect(&a);
	GO(&a, OP_GET_REALM);
	renewal = expect(&a, OP_SET_MARK); /* claim or no claim */
	assert_string_equal(renewal.mark.owner, old);
	GO(&a, OP_LIST);
	op = expect(&a, OP_CREATE);
	assert_non_null(strstr(op.name, "-w0001-"));
	ok(&a, renewal);
	ok(&a, op);
	GO(&a, OP_LIST);
	state_is(&a, CLAIM_STANDING);
	GO(&a, OP_WATCH);
	after = facts(&a);
	assert_int_equal(after.worker, before.worker);
	assert_int_equal(after.floor, before.floor); /* nothing changed over */
	assert_true(after.ceiling > before.ceiling);
	/* From now on under the new name. */
	rig_ms += RIG_RENEW_MS;
	op = expect(&a, OP_SET_MARK);
	assert_string_equal(op.mark.owner, a.c.node);
}

/* The old session lives on: its node is this agent's own ghost. */
static void
test_own_ghost(void **state)
{
	struct agent a;
	struct claim_op op;
	char old[CLAIM_NAME_MAX];

	(void)state;
	stand(&a, 1);
	memcpy(old, a.c.node, sizeof(old));
	claim_session_lost(&a.c, now_of(&a));
	agent_connect(&a);
	GO(&a, OP_GET_REALM, OP_LIST);
	op = expect(&a, OP_DELETE);
	assert_string_equal(op.name, old);
	ok(&a, op);
	GO(&a, OP_LIST, OP_CREATE, OP_LIST);
	state_is(&a, CLAIM_STANDING);
	assert_int_equal(rig_z.nclaims, 1);
	assert_int_equal(a.c.own.worker, 0);
}

/* Its claim cannot be made for minutes: the mark is renewed all the same. */
static void
test_renews_without_a_claim(void **state)
{
	struct agent a;

	(void)state;
	stand(&a, 1);
	keeper_end_session(&rig_z, a.session);
	claim_session_lost(&a.c, now_of(&a));
	agent_connect(&a);
	for (int i = 0; i < 3000; i++) {
		struct claim_op op = next_op(&a);

		if (op.kind == OP_CREATE)
			answer(&a, op, RC_REFUSED);
		else if (op.kind != OP_NONE)
			ok(&a, op);
		rig_ms += 50;
		assert_true(serves(&a));
	}
	assert_int_equal(rig_z.nclaims, 0);
	assert_true(facts(&a).ceiling > tick_now(&a) + 50000);
}

/* An operator deletes the claim: the watch says so. */
static void
test_claim_lost_is_noticed(void **state)
{
	struct agent a;

	(void)state;
	stand(&a, 1);
	keeper_end_session(&rig_z, a.session);
	rig_z.dead[a.session] = 0; /* only the node went */
	claim_watch_fired(&a.c, now_of(&a));
	assert_true(serves(&a));
	GO(&a, OP_GET_REALM, OP_LIST, OP_CREATE, OP_LIST, OP_WATCH);
	assert_int_equal(a.c.own.worker, 0);
	assert_int_equal(nodes_of_session(a.session), 1);
	/* It went before the watch was set. */
	a.c.watched = false;
	rig_z.nclaims = 0;
	GO(&a, OP_WATCH);
	GO(&a, OP_LIST, OP_CREATE, OP_LIST, OP_WATCH);
	assert_int_equal(nodes_of_session(a.session), 1);
}

/* ---- twins and other owners ------------------------------------------------------------ */

/* A copy of the whole process: one of the two stops at its first renewal. */
static void
test_twin(void **state)
{
	struct agent a, b;
	struct claim_op op;

	(void)state;
	stand(&a, 1);
	live(&a, RIG_RENEW_MS);
	b = a;
	b.dice = 777; /* the kernel's bytes differ */
	rig_ms += RIG_RENEW_MS;
	GO(&b, OP_SET_MARK);
	assert_true(serves(&a)); /* nothing inside can tell, so far */
	op = expect(&a, OP_SET_MARK);
	ok(&a, op); /* BADVERSION, and nothing in doubt */
	assert_false(facts(&a).window);
	assert_int_equal(a.c.twins, 1);
	/* It claims anew, on another worker ID. */
	live(&a, 5000);
	live(&b, 5000);
	state_is(&a, CLAIM_STANDING);
	assert_int_not_equal(a.c.own.worker, b.c.own.worker);
	assert_true(serves(&a));
	assert_true(serves(&b));
	assert_int_equal(b.c.own.worker, 0);
}

/* So if the reply was lost: a foreign tag under the own name. */
static void
test_twin_in_doubt(void **state)
{
	struct agent a, b;

	(void)state;
	stand(&a, 1);
	live(&a, RIG_RENEW_MS);
	b = a;
	b.dice = 777;
	rig_ms += RIG_RENEW_MS;
	GO(&b, OP_SET_MARK);
	lost(&a, expect(&a, OP_SET_MARK));
	assert_true(serves(&a));
	rig_ms += 20;
	GO(&a, OP_GET_MARK);
	assert_false(facts(&a).window);
	assert_int_equal(a.c.twins, 1);
}

/* Another owner, told by a look: the old window is good to its end. */
static void
test_other_owner(void **state)
{
	struct agent a;
	struct claim_op op = renewal_under_way(&a);
	struct gate old = facts(&a), g;
	bool changed = false;

	(void)state;
	answer(&a, op, RC_UNKNOWN);
	strangers_mark(0, facts(&a).ceiling);
	/* The next ID's mark is a little ahead: it cannot issue yet. */
	strangers_mark(1, tick_now(&a) + 1900);
	rig_ms += 20;
	GO(&a, OP_GET_MARK);
	assert_true(serves(&a));
	assert_int_equal(a.c.twins, 0);
	for (int i = 0; i < 40; i++) {
		live(&a, 100);
		g = facts(&a);
		assert_true(serves(&a)); /* without a gap */
		if (g.worker == 0) {
			assert_false(changed); /* never back */
			assert_int_equal(g.ceiling, old.ceiling);
		} else {
			changed = true;
			assert_int_equal(g.worker, 1);
			assert_true(tick_now(&a) > g.floor);
		}
	}
	assert_true(changed);
	state_is(&a, CLAIM_STANDING);
	assert_int_equal(nodes_of_session(a.session), 1);
	/* The stranger's mark was left alone. */
	assert_int_equal(mark_at(0)->version, 3);
}

/* The old window is not extended: it ends where it ended. */
static void
test_old_window_ends(void **state)
{
	struct agent a;
	struct claim_op op = renewal_under_way(&a);
	int64_t ceiling = facts(&a).ceiling;

	(void)state;
	answer(&a, op, RC_UNKNOWN);
	for (uint64_t i = 0; i < RIG_WORKERS; i++)
		strangers_mark(i, tick_now(&a) + 200000);
	live(&a, 50000);
	assert_true(serves(&a));
	assert_int_equal(facts(&a).ceiling, ceiling);
	live(&a, ceiling - tick_now(&a));
	assert_true(serves(&a));
	live(&a, 1);
	assert_false(serves(&a));
	live(&a, 200000);
	assert_true(serves(&a));
}

/* ---- deleted marks ----------------------------------------------------------------------- */

static void
test_mark_deleted(void **state)
{
	struct agent a;
	int64_t ceiling;

	(void)state;
	stand(&a, 1);
	live(&a, RIG_RENEW_MS);
	ceiling = facts(&a).ceiling;
	keeper_delete_mark(&rig_z, 0);
	rig_ms += RIG_RENEW_MS;
	GO(&a, OP_SET_MARK); /* NONODE */
	assert_int_equal(a.c.marks_deleted, 1);
	assert_int_equal(a.c.marks_deleted_worker, 0);
	assert_true(serves(&a)); /* nobody starts below that window */
	assert_int_equal(facts(&a).ceiling, ceiling);
	GO(&a, OP_DELETE, OP_LIST, OP_CREATE, OP_LIST);
	live(&a, 200000);
	assert_true(serves(&a));
	assert_int_not_equal(a.c.own.worker, 0);
	/* An agent never re-creates one that it has seen. */
	assert_false(mark_at(0)->exists);
	/* One deletion is told once, however many IDs were without a mark. */
	assert_int_equal(a.c.marks_deleted, 1);
	assert_int_equal(a.c.marks_deleted_worker, 0);
	assert_int_equal(a.c.deletions, 1);
	/* The next one is another. */
	keeper_delete_mark(&rig_z, a.c.own.worker);
	live(&a, 200000);
	assert_true(serves(&a));
	assert_int_equal(a.c.marks_deleted, 2);
}

/* Who is kept waiting by a mark that lies ahead can say until when. */
static void
test_deleted_says_until_when(void **state)
{
	struct agent a;
	struct gate g;

	(void)state;
	rig_z.k.worker_last = 1;
	stand(&a, 1);
	live(&a, RIG_RENEW_MS);
	assert_false(facts(&a).later);
	keeper_delete_mark(&rig_z, a.c.own.worker);
	rig_ms += RIG_RESERVE_MS + 1000; /* and nobody has renewed for long */
	live(&a, 5000);
	g = facts(&a);
	assert_false(g.window);
	assert_true(g.had_window);
	assert_true(g.later);
	assert_int_equal(g.later_worker, 1);
	assert_true(g.later_floor > tick_now(&a) + 10000);
	rig_ms += g.later_floor - tick_now(&a) - 10; /* a tick is a ms */
	live(&a, 5);
	assert_false(serves(&a));
	live(&a, 100);
	assert_true(serves(&a));
	assert_false(facts(&a).later);
}

/* With the marks' count off, a missing mark starts beyond every window. */
static void
test_deleted_rule(void **state)
{
	struct agent a;
	struct claim_op op;
	int64_t far;

	(void)state;
	rig_z.k.worker_last = 0; /* one only */
	strangers_mark(0, 5);
	keeper_delete_mark(&rig_z, 0);
	agent_init(&a, 1);
	agent_connect(&a);
	for (;;) {
		op = next_op(&a);
		if (op.kind == OP_CREATE_MARK)
			break;
		if (op.kind != OP_NONE)
			ok(&a, op);
		else
			rig_ms += 50;
		assert_true(rig_ms < 100000);
	}
	far = tick_now(&a) + RIG_RESERVE_MS + 10000;
	assert_int_equal(op.mark.ceiling, far);
	assert_true(a.c.marks_deleted > 0);
	ok(&a, op);
	live(&a, 60000);
	assert_false(serves(&a));
	live(&a, 15000);
	assert_true(serves(&a));
	assert_true(facts(&a).floor >= far);
}

/* None was ever deleted: then not_before will do. */
static void
test_missing_mark(void **state)
{
	struct agent a;

	(void)state;
	for (uint64_t i = 1; i < RIG_WORKERS; i++)
		strangers_mark(i, 5);
	stand(&a, 1);
	assert_int_equal(a.c.own.worker, 0);
	assert_int_equal(facts(&a).floor, NO_TICK);
	assert_int_equal(a.c.marks_deleted, 0);
}

/* Deleted just between the count and the creation: raised. */
static void
test_deleted_in_between(void **state)
{
	struct agent a;
	struct claim_op op;

	(void)state;
	strangers_mark(0, 5);
	agent_init(&a, 1);
	rig_z.counter = 1;
	agent_connect(&a);
	GO(&a, OP_GET_REALM, OP_LIST, OP_CREATE, OP_LIST, OP_GET_MARK,
	    OP_STAT_MARKS);
	op = expect(&a, OP_CREATE_MARK);
	keeper_delete_mark(&rig_z, 0); /* it might have been this one */
	ok(&a, op);
	GO(&a, OP_STAT_MARKS);
	state_is(&a, CLAIM_TAKING);
	op = expect(&a, OP_SET_MARK);
	assert_int_equal(
	    op.mark.ceiling, tick_now(&a) + RIG_RESERVE_MS + 10000);
	ok(&a, op);
	settle(&a);
	assert_false(serves(&a));
	live(&a, 75000);
	assert_true(serves(&a));
}

/* Somebody makes it again: versions start at 0, and an old write fits. */
static void
test_mark_made_again(void **state)
{
	struct agent a;
	struct claim_op op = renewal_under_way(&a);

	(void)state;
	keeper_delete_mark(&rig_z, 0);
	strangers_mark(0, 1);
	while (mark_at(0)->version < op.version)
		strangers_mark(0, 1);
	ok(&a, op); /* a success on a node that is not ours */
	assert_false(a.c.has_own);
	live(&a, 200000);
	assert_true(serves(&a));
}

/*
 * One worker ID, and its mark is deleted under its owner: this process never
 * makes it again; another may, beyond every window.
 */
static void
test_never_makes_a_seen_mark(void **state)
{
	struct agent a, b;

	(void)state;
	rig_z.k.worker_last = 0;
	stand(&a, 1);
	live(&a, RIG_RENEW_MS);
	keeper_delete_mark(&rig_z, 0);
	for (int i = 0; i < 4000; i++) {
		struct claim_op op = next_op(&a);

		assert_int_not_equal(op.kind, OP_CREATE_MARK);
		if (op.kind != OP_NONE)
			ok(&a, op);
		else
			rig_ms += 100;
	}
	assert_false(serves(&a));
	assert_true(rig_z.creates < 60); /* and does not storm */
	keeper_end_session(&rig_z, a.session);
	agent_init(&b, 2);
	agent_connect(&b);
	live(&b, 100000);
	assert_true(serves(&b));
}

/* ---- the clean stop ------------------------------------------------------------------------ */

static void
test_stop(void **state)
{
	struct agent a, b;
	struct claim_op op;
	int64_t last;

	(void)state;
	stand(&a, 1);
	live(&a, RIG_RENEW_MS + 500);
	last = tick_now(&a);
	claim_stop(&a.c, now_of(&a), last);
	state_is(&a, CLAIM_LOWERING);
	op = expect(&a, OP_SET_MARK);
	assert_int_equal(op.mark.ceiling, last);
	quiet(&a); /* its node stays until the mark is lowered */
	ok(&a, op);
	state_is(&a, CLAIM_LEAVING);
	GO(&a, OP_DELETE);
	state_is(&a, CLAIM_STOPPED);
	quiet(&a);
	assert_true(claim_wake(&a.c).ns == MONO_NEVER.ns);
	assert_int_equal(rig_z.nclaims, 0);
	/* The next one goes on just above. */
	rig_z.counter = 0;
	rig_ms += 2;
	stand(&b, 2);
	assert_int_equal(facts(&b).worker, 0);
	assert_int_equal(facts(&b).floor, last);
}

static const struct {
	const char *why;
	int64_t ceiling; /* as taken over */
	int64_t last, not_before, lowered;
} stops[] = {
	/* ticks from now */
	{ "nothing issued: the predecessor's stand", 1500, INT64_MIN, INT64_MIN,
	    1500 },
	{ "last issued long ago, on another worker ID", 1500, -9999, INT64_MIN,
	    1500 },
	{ "the last tick issued", -5, 70, INT64_MIN, 70 },
	{ "the realm's floor", -5, 70, 90, 90 },
	{ "the realm's floor, nothing issued", -5, INT64_MIN, 90, 90 },
};

static void
test_stop_lowers_to(void **state)
{
	for (size_t i = 0; i < COUNT(stops); i++) {
		struct agent a;
		struct claim_op op;
		int64_t t;

		(void)rig_teardown(state);
		(void)rig_setup(state);
		agent_init(&a, 1);
		t = tick_now(&a);
		strangers_mark(0, t + stops[i].ceiling);
		if (stops[i].not_before != INT64_MIN)
			rig_z.k.not_before_ms =
			    now_of(&a).unix_ms + stops[i].not_before;
		agent_connect(&a);
		settle(&a);
		state_is(&a, CLAIM_STANDING);
		claim_stop(&a.c, now_of(&a),
		    stops[i].last == INT64_MIN ? NO_TICK : t + stops[i].last);
		op = expect(&a, OP_SET_MARK);
		if (op.mark.ceiling != t + stops[i].lowered)
			fail_msg("%s: %jd", stops[i].why,
			    (intmax_t)(op.mark.ceiling - t));
	}
}

/* The lowering's reply is lost: looked at, and not believed before. */
static void
test_stop_lost_reply(void **state)
{
	for (int done = 0; done < 2; done++) {
		struct agent a;
		struct claim_op op;
		int64_t last;

		(void)rig_teardown(state);
		(void)rig_setup(state);
		stand(&a, 1);
		last = tick_now(&a);
		claim_stop(&a.c, now_of(&a), last);
		op = expect(&a, OP_SET_MARK);
		if (done)
			lost(&a, op);
		else
			answer(&a, op, RC_UNKNOWN);
		state_is(&a, CLAIM_LOWERING);
		rig_ms += 20;
		GO(&a, OP_GET_MARK);
		if (!done)
			GO(&a, OP_SET_MARK);
		GO(&a, OP_DELETE);
		state_is(&a, CLAIM_STOPPED);
		assert_int_equal(mark_at(0)->mark.ceiling, last);
	}
}

/* A renewal is under way when the stop comes: it is awaited, then lowered. */
static void
test_stop_with_a_renewal_under_way(void **state)
{
	for (int how = 0; how < 3; how++) {
		struct agent a;
		struct claim_op renewal;
		int64_t last;

		(void)rig_teardown(state);
		(void)rig_setup(state);
		renewal = renewal_under_way(&a);
		last = tick_now(&a);
		claim_stop(&a.c, now_of(&a), last);
		quiet(&a);
		if (how == 0)
			ok(&a, renewal);
		else if (how == 1)
			lost(&a, renewal);
		else
			answer(&a, renewal, RC_UNKNOWN);
		state_is(&a, CLAIM_LOWERING); /* wide open, so far */
		if (how > 0) {
			rig_ms += 20;
			GO(&a, OP_GET_MARK);
			state_is(&a, CLAIM_LOWERING);
		}
		if (how == 2) {
			/* It lands only now, before the lowering. */
			landed(&a, renewal);
			GO(&a, OP_SET_MARK); /* BADVERSION */
			rig_ms += 100;
			GO(&a, OP_GET_MARK);
			state_is(&a, CLAIM_LOWERING);
		}
		GO(&a, OP_SET_MARK, OP_DELETE);
		state_is(&a, CLAIM_STOPPED);
		assert_int_equal(mark_at(0)->mark.ceiling, last);
	}
}

static void
test_stop_away(void **state)
{
	struct agent a;
	int64_t ceiling;

	(void)state;
	stand(&a, 1);
	ceiling = mark_at(0)->mark.ceiling;
	claim_disconnected(&a.c, now_of(&a));
	claim_stop(&a.c, now_of(&a), tick_now(&a));
	state_is(&a, CLAIM_STOPPED); /* nobody waits for ZooKeeper */
	claim_connected(&a.c, now_of(&a), a.session);
	quiet(&a);
	assert_int_equal(mark_at(0)->mark.ceiling, ceiling);

	/* The connection goes while it is being lowered. */
	(void)rig_teardown(state);
	(void)rig_setup(state);
	stand(&a, 1);
	claim_stop(&a.c, now_of(&a), tick_now(&a));
	(void)expect(&a, OP_SET_MARK);
	claim_disconnected(&a.c, now_of(&a));
	state_is(&a, CLAIM_STOPPED);
}

/* Stopped before it owns anything: only its node goes. */
static void
test_stop_early(void **state)
{
	for (int n = 0; n < 9; n++) {
		struct agent a;
		bool lowered = false;

		(void)rig_teardown(state);
		(void)rig_setup(state);
		strangers_mark(0, 5);
		agent_init(&a, 1);
		agent_connect(&a);
		for (int i = 0; i < n; i++) {
			struct claim_op op = next_op(&a);

			if (op.kind != OP_NONE)
				ok(&a, op);
		}
		(void)next_op(&a); /* one is under way */
		claim_stop(&a.c, now_of(&a), NO_TICK);
		for (int i = 0; i < 50 && a.c.state != CLAIM_STOPPED; i++) {
			struct claim_op op = next_op(&a);

			if (op.kind == OP_NONE) {
				if (a.c.renew.busy)
					answer(&a,
					    (struct claim_op){
						.id = a.c.renew.id },
					    RC_UNKNOWN);
				rig_ms += 100;
				continue;
			}
			assert_int_not_equal(op.kind, OP_CREATE);
			lowered = lowered || op.kind == OP_SET_MARK;
			ok(&a, op);
		}
		state_is(&a, CLAIM_STOPPED);
		assert_int_equal(rig_z.nclaims, 0);
		/* No lower than what it had found. */
		assert_true(mark_at(0)->mark.ceiling >= 5);
		if (lowered)
			assert_int_equal(mark_at(0)->mark.ceiling, 5);
	}
}

/* Deleting its node fails: retried until there is none. */
static void
test_stop_delete_lost(void **state)
{
	struct agent a;

	(void)state;
	stand(&a, 1);
	claim_stop(&a.c, now_of(&a), tick_now(&a));
	GO(&a, OP_SET_MARK);
	answer(&a, expect(&a, OP_DELETE), RC_UNKNOWN);
	state_is(&a, CLAIM_LEAVING);
	quiet(&a);
	rig_ms += 200;
	lost(&a, expect(&a, OP_DELETE));
	rig_ms += 500;
	GO(&a, OP_DELETE); /* NONODE */
	state_is(&a, CLAIM_STOPPED);
}

/* The mark is another's by now: not lowered. */
static void
test_stop_of_a_twin(void **state)
{
	struct agent a;

	(void)state;
	stand(&a, 1);
	strangers_mark(0, tick_now(&a) + 90000);
	claim_stop(&a.c, now_of(&a), tick_now(&a));
	GO(&a, OP_SET_MARK); /* BADVERSION */
	GO(&a, OP_DELETE);
	state_is(&a, CLAIM_STOPPED);
	assert_int_equal(mark_at(0)->mark.ceiling, tick_now(&a) + 90000);
}

/* What changes in the realm meanwhile is of no interest. */
static void
test_stop_goes_on_through_a_watch(void **state)
{
	struct agent a;
	struct claim_op op;
	int64_t last;

	(void)state;
	stand(&a, 1);
	last = tick_now(&a);
	claim_stop(&a.c, now_of(&a), last);
	op = expect(&a, OP_SET_MARK);
	claim_watch_fired(&a.c, now_of(&a));
	ok(&a, op);
	GO(&a, OP_DELETE);
	state_is(&a, CLAIM_STOPPED);
	assert_int_equal(mark_at(0)->mark.ceiling, last);
}

/* ---- from a state file ------------------------------------------------------------------ */

/* What the file of this agent would hold, with IDs up to `local` issued. */
static struct claim_past
past_of(const struct agent *a, bool resume, int64_t local)
{
	struct claim_past p = { .contract = a->c.k,
		.same_home = resume,
		.resume = resume,
		.worker = a->c.own.worker,
		.ceiling = a->c.own.ceiling,
		.local_mark = local,
		.zxid = a->c.zxid };

	memcpy(p.claim, a->c.node, sizeof(p.claim));
	return (p);
}

/* Killed and started again, ZooKeeper away, then back. */
static void
test_resume(void **state)
{
	struct agent a, b;
	struct claim_past past;
	struct claim_op op;

	(void)state;
	strangers_claim(99, NO_WORKER);
	stand(&a, 1);
	live(&a, RIG_RENEW_MS);
	past = past_of(&a, true, tick_now(&a) + 5);
	agent_init(&b, 2);
	claim_resume(&b.c, &past);
	assert_false(issues(&b, past.local_mark));
	assert_true(issues(&b, past.local_mark + 1));
	assert_true(issues(&b, past.ceiling));
	assert_false(issues(&b, past.ceiling + 1));
	rig_ms += 20000;
	/* An older claim wants the ID: whom the mark names stays. */
	rig_z.counter = 1 + RIG_WORKERS;
	strangers_claim(98, NO_WORKER);
	agent_connect(&b);
	GO(&b, OP_GET_REALM, OP_LIST);
	op = expect(&b, OP_DELETE); /* its own ghost */
	assert_string_equal(op.name, a.c.node);
	ok(&b, op);
	GO(&b, OP_LIST);
	op = expect(&b, OP_CREATE);
	assert_non_null(strstr(op.name, "-w0001-"));
	ok(&b, op);
	GO(&b, OP_LIST, OP_GET_MARK);
	op = expect(&b, OP_SET_MARK); /* under a new name, not grown */
	assert_int_equal(op.mark.ceiling, past.ceiling);
	assert_string_equal(op.mark.owner, b.c.node);
	ok(&b, op);
	state_is(&b, CLAIM_STANDING);
	for (int i = 0; i < 60; i++) {
		live(&b, 1000);
		assert_true(serves(&b)); /* without a gap */
		assert_int_equal(facts(&b).worker, 1);
	}
	assert_int_equal(facts(&b).floor, past.local_mark);
	/* The process before, if it woke: its next write is refused. */
	GO(&a, OP_SET_MARK);
	assert_false(facts(&a).window);
}

/* The mark names another by now: the ID is his, the window still ours. */
static void
test_resume_too_late(void **state)
{
	struct agent a, b;
	struct claim_past past;

	(void)state;
	stand(&a, 1);
	live(&a, RIG_RENEW_MS);
	past = past_of(&a, true, tick_now(&a));
	keeper_end_session(&rig_z, a.session);
	strangers_mark(0, past.ceiling + 30000);
	rig_z.counter = RIG_WORKERS;
	strangers_claim(99, NO_WORKER); /* older, and the mark is not ours */
	agent_init(&b, 2);
	claim_resume(&b.c, &past);
	rig_ms += 1000;
	agent_connect(&b);
	GO(&b, OP_GET_REALM, OP_LIST, OP_CREATE, OP_LIST, OP_GET_MARK);
	assert_true(serves(&b));
	live(&b, 5000);
	state_is(&b, CLAIM_STANDING);
	assert_int_not_equal(b.c.own.worker, 0);
	assert_true(serves(&b));
	assert_int_equal(
	    rig_z.trees[0].marks[0].mark.ceiling, past.ceiling + 30000);
}

/*
 * Another had the ID meanwhile, and is gone: the mark is taken over from him
 * while the window on file still stands.  What the file then says must not
 * tell the next process that his ticks are free.
 */
static void
test_resume_after_a_stranger(void **state)
{
	struct agent a, b, c;
	struct claim_past past;
	const struct window *w;
	int64_t his;

	(void)state;
	stand(&a, 1);
	live(&a, RIG_RENEW_MS);
	past = past_of(&a, true, tick_now(&a));
	keeper_end_session(&rig_z, a.session);
	his = past.ceiling + 1500; /* his clock is ahead, and he has issued */
	strangers_mark(0, his);
	rig_ms += past.ceiling - tick_now(&a) - 100;
	agent_init(&b, 2);
	claim_resume(&b.c, &past);
	assert_string_equal(claim_window_owner(&b.c, &b.c.old), past.claim);
	agent_connect(&b);
	settle(&b);
	state_is(&b, CLAIM_STANDING);
	assert_int_equal(b.c.own.worker, 0);
	assert_int_equal(b.c.own.floor, his);
	w = claim_window(&b.c, now_of(&b));
	assert_ptr_equal(w, &b.c.old);

	/* Killed here; what b has kept on file beside the old window. */
	past.local_mark = tick_now(&b);
	memcpy(past.claim, claim_window_owner(&b.c, w), sizeof(past.claim));
	keeper_end_session(&rig_z, b.session);
	agent_init(&c, 3);
	claim_resume(&c.c, &past);
	agent_connect(&c);
	settle(&c);
	for (int64_t t = past.ceiling + 1; t <= his; t++) {
		rig_ms++;
		assert_false(facts(&c).worker == 0 && issues(&c, t));
	}
}

/*
 * The mark was lost, and the connection before the node was deleted: the mark
 * is not taken over again under the name that the file may still hold.
 */
static void
test_a_name_serves_once(void **state)
{
	struct agent a;
	struct claim_op op;
	char name[CLAIM_NAME_MAX];

	(void)state;
	stand(&a, 1);
	memcpy(name, a.c.node, sizeof(name));
	rig_ms += RIG_RENEW_MS;
	op = expect(&a, OP_SET_MARK);
	answer(&a, op, RC_UNKNOWN); /* never done */
	strangers_mark(0, a.c.own.ceiling + 500);
	rig_ms += 2000;
	GO(&a, OP_GET_MARK);
	op = expect(&a, OP_DELETE); /* not done either */
	assert_string_equal(op.name, name);
	claim_disconnected(&a.c, now_of(&a));
	claim_connected(&a.c, now_of(&a), a.session);
	rig_ms = a.c.old.ceiling - tick_now(&a) + rig_ms - 100;
	GO(&a, OP_LIST);
	op = expect(&a, OP_DELETE);
	assert_string_equal(op.name, name);
	ok(&a, op);
	settle(&a);
	state_is(&a, CLAIM_STANDING);
	assert_string_not_equal(a.c.node, name);
}

/* Doubt forbids resuming; it never forbids respecting a mark. */
static void
test_past_is_a_floor(void **state)
{
	struct agent a, b;
	struct claim_past past;

	(void)state;
	stand(&a, 1);
	past = past_of(&a, false, tick_now(&a));
	past.ceiling = tick_now(&a) + 40000; /* ZooKeeper's has gone back */
	claim_stop(&a.c, now_of(&a), tick_now(&a));
	settle(&a);
	agent_init(&b, 2);
	claim_resume(&b.c, &past);
	assert_false(facts(&b).window);
	assert_false(facts(&b).realm_known);
	rig_ms += 10;
	agent_connect(&b);
	live(&b, 100);
	assert_int_equal(b.c.own.worker, 0); /* asked for first */
	assert_false(serves(&b));
	assert_true(mark_at(0)->mark.ceiling >= past.ceiling);
	live(&b, 41000);
	assert_true(serves(&b));
	assert_int_equal(facts(&b).floor, past.ceiling);

	/* Of another realm: its ticks say nothing here. */
	(void)rig_teardown(state);
	(void)rig_setup(state);
	past.contract.uuid[3] = 9;
	agent_init(&b, 3);
	claim_resume(&b.c, &past);
	agent_connect(&b);
	live(&b, 100);
	assert_true(serves(&b));
}

/* Refused by its peers: it measures on, and moves nothing, and walks not. */
static void
test_hold_still(void **state)
{
	struct agent a;
	struct claim_op op;
	int64_t ceiling;

	(void)state;
	stand(&a, 1);
	live(&a, RIG_RENEW_MS);
	ceiling = facts(&a).ceiling;
	claim_hold_still(&a.c, true);
	for (int i = 0; i < 5; i++) {
		rig_ms += RIG_RENEW_MS;
		op = expect(&a, OP_SET_MARK);
		assert_int_equal(op.mark.ceiling, ceiling);
		ok(&a, op);
	}
	claim_hold_still(&a.c, false);
	rig_ms += RIG_RENEW_MS;
	GO(&a, OP_SET_MARK);
	assert_int_equal(facts(&a).ceiling, tick_now(&a) + RIG_RESERVE_MS);

	/* Before it owns one: its claim stays, however far the mark. */
	(void)rig_teardown(state);
	(void)rig_setup(state);
	agent_init(&a, 2);
	a.skew_ms = -3600000;
	for (uint64_t i = 0; i < RIG_WORKERS; i++)
		strangers_mark(i, tick_now(&a) + 3600000);
	claim_hold_still(&a.c, true);
	agent_connect(&a);
	live(&a, 30000);
	state_is(&a, CLAIM_HOLDING);
	assert_int_equal(rig_z.creates, 1);
	a.skew_ms = 0; /* mended */
	claim_hold_still(&a.c, false);
	live(&a, 2000);
	state_is(&a, CLAIM_STANDING);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, rig_setup, rig_teardown)

/* ---- access lists ------------------------------------------------------------------ */

/* Marks below `unread` may not be read, those below `unwritten` not written. */
static void
live_denied(struct agent *a, uint64_t unread, uint64_t unwritten, int64_t ms)
{
	int64_t end = rig_ms + ms;

	while (rig_ms < end) {
		struct claim_op op = next_op(a);
		bool denied = (op.kind == OP_GET_MARK && op.worker < unread) ||
			      (op.kind == OP_SET_MARK && op.worker < unwritten);

		if (op.kind == OP_NONE)
			rig_ms += 20;
		else if (denied)
			answer(a, op, RC_DENIED);
		else
			ok(a, op);
	}
}

/* Fifteen of sixteen may not be used: it comes to the last in the end. */
static void
test_walks_past_denied_marks(void **state)
{
	struct agent a;

	(void)state;
	for (uint64_t w = 0; w < RIG_WORKERS; w++)
		strangers_mark(w, 0);
	agent_init(&a, 1);
	agent_connect(&a);
	live_denied(&a, 7, 15, 300000);
	state_is(&a, CLAIM_STANDING);
	assert_int_equal(a.c.own.worker, 15);
	assert_true(serves(&a));
	assert_int_equal(rig_z.nclaims, 1);
}

/* None may be used: no haste; and as soon as one may, it is found. */
static void
test_all_marks_denied(void **state)
{
	struct agent a;
	uint64_t made;

	(void)state;
	for (uint64_t w = 0; w < RIG_WORKERS; w++)
		strangers_mark(w, 0);
	agent_init(&a, 1);
	agent_connect(&a);
	live_denied(&a, 0, RIG_WORKERS, 60000);
	assert_false(serves(&a));
	made = a.c.claims_created;
	live_denied(&a, 0, RIG_WORKERS, 600000);
	/* a minute holds a few, not hundreds */
	assert_in_range(a.c.claims_created - made, 1, 100);
	live_denied(&a, 0, 3, 120000);
	assert_true(serves(&a));
	assert_true(a.c.own.worker >= 3);
}

/* The mark in hand: the window is used up, and goes on when it is mended. */
static void
test_own_mark_denied(void **state)
{
	struct agent a;
	int64_t ceiling;

	(void)state;
	stand(&a, 1);
	live(&a, 10000);
	ceiling = facts(&a).ceiling;
	live_denied(&a, RIG_WORKERS, RIG_WORKERS, 50000);
	assert_true(serves(&a));
	live_denied(&a, RIG_WORKERS, RIG_WORKERS, 30000);
	assert_false(serves(&a));
	assert_int_equal(facts(&a).ceiling, ceiling);
	assert_int_equal(a.c.own.worker, 0);
	live(&a, 5000);
	assert_true(serves(&a));
	assert_int_equal(a.c.own.worker, 0);
	assert_int_equal(a.c.twins, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_windows_grow),
		TEST(test_reserve_is_capped),
		TEST(test_clock_back_never_lowers),
		TEST(test_renewal_lost),
		TEST(test_renewal_never_done),
		TEST(test_renewal_lands_late),
		TEST(test_renewal_fails_for_long),
		TEST(test_keeps_its_worker_id),
		TEST(test_own_ghost),
		TEST(test_renews_without_a_claim),
		TEST(test_claim_lost_is_noticed),
		TEST(test_twin),
		TEST(test_twin_in_doubt),
		TEST(test_other_owner),
		TEST(test_old_window_ends),
		TEST(test_mark_deleted),
		TEST(test_deleted_says_until_when),
		TEST(test_deleted_rule),
		TEST(test_missing_mark),
		TEST(test_deleted_in_between),
		TEST(test_mark_made_again),
		TEST(test_never_makes_a_seen_mark),
		TEST(test_stop),
		TEST(test_stop_lowers_to),
		TEST(test_stop_lost_reply),
		TEST(test_stop_with_a_renewal_under_way),
		TEST(test_stop_away),
		TEST(test_stop_early),
		TEST(test_stop_delete_lost),
		TEST(test_stop_of_a_twin),
		TEST(test_stop_goes_on_through_a_watch),
		TEST(test_resume),
		TEST(test_resume_too_late),
		TEST(test_resume_after_a_stranger),
		TEST(test_a_name_serves_once),
		TEST(test_past_is_a_floor),
		TEST(test_hold_still),
		TEST(test_walks_past_denied_marks),
		TEST(test_all_marks_denied),
		TEST(test_own_mark_denied),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
