/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_claim_realm - the contract: missing, garbled, unfit, another one, one
 * that went back, a new generation; and what ZooKeeper's zxid gives away.
 */
#include "rig.h"

/* ---- a realm that may not be used --------------------------------------------------- */

static void
test_missing(void **state)
{
	static const enum claim_rc rcs[] = { RC_NONODE, RC_GARBLED };
	static const enum realm_fault faults[] = { REALM_MISSING,
		REALM_GARBLED };

	for (size_t i = 0; i < COUNT(rcs); i++) {
		struct agent a;

		(void)rig_teardown(state);
		(void)rig_setup(state);
		agent_init(&a, 1);
		assert_int_equal(a.c.fault, REALM_UNREAD);
		agent_connect(&a);
		for (int n = 0; n < 5; n++) {
			int64_t ms;

			answer(&a, expect(&a, OP_GET_REALM), rcs[i]);
			assert_int_equal(a.c.fault, faults[i]);
			assert_false(facts(&a).realm_known);
			assert_false(facts(&a).realm_changed);
			quiet(&a); /* creates no realm; looks again */
			ms = mono_diff_ms(claim_wake(&a.c), now_of(&a).boot);
			assert_in_range(ms, 500, 1000);
			rig_ms += ms + 1;
		}
		live(&a, 10);
		state_is(&a, CLAIM_STANDING);
		assert_true(serves(&a));
	}
}

/* Nothing is known of it: the look is repeated, nothing is concluded. */
static void
test_look_lost(void **state)
{
	struct agent a;

	(void)state;
	agent_init(&a, 1);
	agent_connect(&a);
	for (int n = 0; n < 10; n++) {
		answer(&a, expect(&a, OP_GET_REALM),
		    n % 2 ? RC_UNKNOWN : RC_REFUSED);
		assert_int_equal(a.c.fault, REALM_UNREAD);
		quiet(&a);
		rig_ms += 5001;
	}
	GO(&a, OP_GET_REALM, OP_LIST);
}

static const struct {
	const char *why;
	int bits[3]; /* configured: time, worker, sequence; 0: none */
	int64_t epoch; /* configured; 0: none */
	uint32_t tick_ms, flags; /* configured */
	int64_t format; /* the realm's */
	bool fits;
} fits[] = {
	{ "nothing configured", { 0 }, 0, 0, 0, 1, true },
	{ "a format above ours", { 0 }, 0, 0, 0, 2, false },
	{ "the same layout", { 41, 10, 12 }, 0, 1, 0, 1, true },
	{ "the same, with the epoch", { 41, 10, 12 }, INT64_C(1735689600000), 1,
	    0, 1, true },
	{ "only the epoch", { 0 }, INT64_C(1735689600000), 0, 0, 1, true },
	{ "another epoch", { 0 }, INT64_C(1735689600001), 0, 0, 1, false },
	{ "the same bits, another epoch", { 41, 10, 12 },
	    INT64_C(1288834974657), 1, 0, 1, false },
	{ "other bits", { 41, 12, 10 }, 0, 1, 0, 1, false },
	{ "less time", { 40, 10, 12 }, 0, 1, 0, 1, false },
	{ "another tick", { 41, 10, 12 }, 0, 10, 0, 1, false },
	{ "the other order", { 41, 10, 12 }, 0, 1, FIRN_SEQUENCE_ABOVE_WORKER,
	    1, false },
};

static void
test_fits(void **state)
{
	for (size_t i = 0; i < COUNT(fits); i++) {
		struct agent a;

		(void)rig_teardown(state);
		(void)rig_setup(state);
		rig_z.k.format = fits[i].format;
		agent_init(&a, 1);
		a.conf.layout = (struct firn_layout){
			.size = sizeof(a.conf.layout),
			.time_bits = (uint8_t)fits[i].bits[0],
			.worker_bits = (uint8_t)fits[i].bits[1],
			.sequence_bits = (uint8_t)fits[i].bits[2],
			.tick_ms = fits[i].tick_ms,
			.flags = fits[i].flags,
			.epoch_ms = fits[i].epoch,
		};
		a.conf.has_layout = fits[i].bits[0] != 0;
		a.conf.has_epoch = fits[i].epoch != 0;
		claim_init(&a.c, &a.conf, 1);
		agent_connect(&a);
		live(&a, 10);
		if (serves(&a) != fits[i].fits)
			fail_msg("%s", fits[i].why);
		if (!fits[i].fits) {
			assert_int_equal(a.c.fault, REALM_UNFIT);
			assert_int_equal(rig_z.creates + rig_z.writes, 0);
		}
	}
}

/* ---- a realm that changes under a standing claim --------------------------------------- */

/* The realm's node is written, and the watch tells. */
static void
realm_becomes(struct agent *a, const struct contract *k)
{
	rig_z.k = *k;
	claim_watch_fired(&a->c, now_of(a));
}

static void
test_other_uuid(void **state)
{
	struct contract k = rig_contract(RIG_WORKERS), other = k;
	struct agent a;
	uint64_t writes;

	(void)state;
	stand(&a, 1);
	other.uuid[0] = 8;
	realm_becomes(&a, &other);
	assert_true(serves(&a));
	GO(&a, OP_GET_REALM);
	assert_true(facts(&a).realm_changed); /* at once */
	writes = rig_z.writes;
	live(&a, 30000);
	assert_true(facts(&a).realm_changed);
	assert_int_equal(rig_z.writes, writes); /* and touches nothing */
	/* That it goes away is no proof of anything. */
	rig_ms += 1001;
	answer(&a, expect(&a, OP_GET_REALM), RC_NONODE);
	assert_true(facts(&a).realm_changed);
	/* The right one is back. */
	realm_becomes(&a, &k);
	live(&a, 2000);
	assert_false(facts(&a).realm_changed);
	assert_true(serves(&a));
	state_is(&a, CLAIM_STANDING);
}

/* On a new session too: it was not there to be told. */
static void
test_other_uuid_on_new_session(void **state)
{
	struct agent a;

	(void)state;
	stand(&a, 1);
	claim_session_lost(&a.c, now_of(&a));
	rig_z.k.uuid[0] = 8;
	agent_connect(&a);
	assert_true(serves(&a));
	GO(&a, OP_GET_REALM);
	assert_true(facts(&a).realm_changed);
	rig_ms += 20000;
	GO(&a, OP_GET_REALM); /* nothing else */
}

/* Wiped: IDs go on within the window, and not past it. */
static void
test_wiped(void **state)
{
	struct agent a;
	int64_t ceiling;

	(void)state;
	stand(&a, 1);
	live(&a, RIG_RENEW_MS);
	ceiling = facts(&a).ceiling;
	claim_session_lost(&a.c, now_of(&a));
	agent_connect(&a);
	for (int i = 0; i < 700; i++) {
		struct claim_op op = next_op(&a);

		if (op.kind != OP_NONE) {
			assert_int_equal(op.kind, OP_GET_REALM);
			answer(&a, op, RC_NONODE);
		}
		assert_false(facts(&a).realm_changed);
		assert_int_equal(serves(&a), tick_now(&a) <= ceiling);
		rig_ms += 100;
	}
	/* Restored with --after-loss: by itself, above not_before. */
	keeper_renew(&rig_z, now_of(&a).unix_ms + 70000);
	live(&a, 69000);
	assert_false(serves(&a));
	live(&a, 2000);
	assert_true(serves(&a));
}

static void
test_unfit_later(void **state)
{
	struct contract k = rig_contract(RIG_WORKERS), newer = k;
	struct agent a;
	uint64_t writes;

	(void)state;
	stand(&a, 1);
	newer.format = 2;
	realm_becomes(&a, &newer);
	GO(&a, OP_GET_REALM);
	assert_int_equal(a.c.fault, REALM_UNFIT);
	writes = rig_z.writes;
	live(&a, 20000);
	assert_int_equal(rig_z.writes, writes);
}

static void
test_layout_changed(void **state)
{
	struct contract k = rig_contract(RIG_WORKERS);
	struct agent a;

	(void)state;
	stand(&a, 1);
	k.layout.sequence_bits = 10; /* under the same uuid: not the realm */
	realm_becomes(&a, &k);
	GO(&a, OP_GET_REALM);
	assert_true(facts(&a).realm_changed);
}

/* ---- generations ------------------------------------------------------------------------- */

static void
test_generation_raised(void **state)
{
	struct agent a;
	struct claim_op op;
	char old[CLAIM_NAME_MAX];
	int64_t ceiling, not_before;

	(void)state;
	stand(&a, 1);
	live(&a, RIG_RENEW_MS);
	memcpy(old, a.c.node, sizeof(old));
	ceiling = facts(&a).ceiling;
	not_before = tick_now(&a) + 10000;
	keeper_renew(&rig_z, now_of(&a).unix_ms + 10000);
	claim_watch_fired(&a.c, now_of(&a));
	GO(&a, OP_GET_REALM);
	op = expect(&a, OP_DELETE); /* its claim in the old tree */
	assert_string_equal(op.name, old);
	assert_string_equal(op.generation, "1-00000001");
	ok(&a, op);
	op = expect(&a, OP_LIST);
	assert_string_equal(op.generation, "2-00000002");
	ok(&a, op);
	op = expect(&a, OP_CREATE);
	assert_null(strstr(op.name, "-w0")); /* a fresh number */
	ok(&a, op);
	live(&a, 100);
	state_is(&a, CLAIM_STANDING);
	assert_string_equal(a.c.own_generation, "2-00000002");
	/* Whatever is issued lies above not_before, in the old window too. */
	assert_int_equal(facts(&a).floor, not_before);
	assert_true(ceiling > not_before);
	assert_false(serves(&a));
	live(&a, 10001);
	assert_true(serves(&a));
	assert_int_equal(rig_z.trees[0].marks[0].mark.ceiling, ceiling);
	assert_int_equal(a.c.k.generation, 2);
}

static void
test_generation_went_back(void **state)
{
	struct contract first = rig_contract(RIG_WORKERS), second;
	struct agent a;

	(void)state;
	stand(&a, 1);
	keeper_renew(&rig_z, 0);
	second = rig_z.k;
	claim_watch_fired(&a.c, now_of(&a));
	live(&a, 5000);
	assert_true(serves(&a));
	realm_becomes(&a, &first);
	GO(&a, OP_GET_REALM);
	assert_true(facts(&a).realm_changed);
	/* It comes again: the data still went back. */
	realm_becomes(&a, &second);
	live(&a, 5000);
	assert_true(facts(&a).realm_changed);
	/* Only the next heals it. */
	keeper_renew(&rig_z, 0);
	claim_watch_fired(&a.c, now_of(&a));
	live(&a, 20000);
	assert_false(facts(&a).realm_changed);
	assert_true(serves(&a));
}

/* The same number with another tag: two operators, two trees. */
static void
test_generation_tag(void **state)
{
	struct contract k = rig_contract(RIG_WORKERS);
	struct agent a;

	(void)state;
	stand(&a, 1);
	memcpy(k.generation_text, "1-0000beef", 11);
	realm_becomes(&a, &k);
	GO(&a, OP_GET_REALM);
	assert_true(facts(&a).realm_changed);
}

/* ---- not_before ---------------------------------------------------------------------------- */

static void
test_not_before(void **state)
{
	struct agent a;
	int64_t not_before;

	(void)state;
	agent_init(&a, 1);
	not_before = tick_now(&a) + 70000;
	rig_z.k.not_before_ms = now_of(&a).unix_ms + 70000;
	agent_connect(&a);
	GO(&a, OP_GET_REALM, OP_LIST, OP_CREATE, OP_LIST, OP_GET_MARK,
	    OP_STAT_MARKS);
	{
		struct claim_op op = expect(&a, OP_CREATE_MARK);

		assert_int_equal(op.mark.ceiling, not_before);
		ok(&a, op);
	}
	live(&a, 100);
	assert_false(facts(&a).window); /* nothing to grow yet: but */
	assert_true(facts(&a).later);
	assert_int_equal(facts(&a).later_worker, 0);
	assert_int_equal(facts(&a).later_floor, not_before);
	live(&a, 69899);
	assert_false(issues(&a, not_before));
	assert_false(serves(&a));
	live(&a, 10);
	assert_true(serves(&a));
	assert_false(issues(&a, not_before)); /* its whole tick is out */
}

/* Marks as far ahead as not_before are no reason to walk. */
static void
test_not_before_is_no_window(void **state)
{
	struct agent a;

	(void)state;
	agent_init(&a, 1);
	rig_z.k.not_before_ms = now_of(&a).unix_ms + 70000;
	for (uint64_t i = 0; i < RIG_WORKERS; i++)
		strangers_mark(i, tick_now(&a) + 70000);
	agent_connect(&a);
	settle(&a);
	state_is(&a, CLAIM_STANDING);
	assert_int_equal(rig_z.creates, 1);
}

static void
test_not_before_raised(void **state)
{
	struct agent a;
	int64_t t;

	(void)state;
	stand(&a, 1);
	live(&a, RIG_RENEW_MS);
	t = tick_now(&a);
	rig_z.k.not_before_ms = now_of(&a).unix_ms + 5000;
	claim_watch_fired(&a.c, now_of(&a));
	GO(&a, OP_GET_REALM);
	assert_false(issues(&a, t + 5000));
	assert_true(issues(&a, t + 5001));
	live(&a, 5001);
	assert_true(serves(&a));
	/* The stop leaves no mark below it. */
	rig_z.k.not_before_ms = now_of(&a).unix_ms + 9000;
	claim_watch_fired(&a.c, now_of(&a));
	settle(&a);
	claim_stop(&a.c, now_of(&a), tick_now(&a));
	settle(&a);
	state_is(&a, CLAIM_STOPPED);
	assert_int_equal(mark_at(0)->mark.ceiling, tick_now(&a) + 9000);
}

/* ---- watches and renewals ------------------------------------------------------------------- */

/* Nothing is written between the watch and the look. */
static void
test_no_write_before_the_look(void **state)
{
	struct agent a;
	struct claim_op op;

	(void)state;
	stand(&a, 1);
	rig_ms += RIG_RENEW_MS;
	claim_watch_fired(&a.c, now_of(&a));
	op = expect(&a, OP_GET_REALM);
	quiet(&a);
	ok(&a, op);
	GO(&a, OP_SET_MARK);
}

/*
 * A renewal was under way when the watch fired: if that was a new generation,
 * the write went into the old tree, and others issue in the new one.
 */
static void
test_renewal_after_a_watch(void **state)
{
	for (int renewed = 0; renewed < 2; renewed++) {
		struct agent a;
		struct claim_op op;
		int64_t ceiling;

		(void)rig_teardown(state);
		(void)rig_setup(state);
		stand(&a, 1);
		live(&a, RIG_RENEW_MS);
		ceiling = facts(&a).ceiling;
		rig_ms += RIG_RENEW_MS;
		op = expect(&a, OP_SET_MARK);
		if (renewed)
			keeper_renew(&rig_z, now_of(&a).unix_ms + 70000);
		claim_watch_fired(&a.c, now_of(&a));
		ok(&a, op);
		assert_int_equal(facts(&a).ceiling, ceiling);
		GO(&a, OP_GET_REALM);
		settle(&a);
		if (renewed) {
			assert_false(serves(&a));
			assert_true(facts(&a).floor > op.mark.ceiling);
		} else {
			live(&a, 1000);
			assert_true(facts(&a).ceiling >= op.mark.ceiling);
			assert_int_equal(a.c.twins, 0);
		}
	}
}

/* The watch fires while each of the steps is under way. */
static void
test_watch_while_busy(void **state)
{
	for (int n = 0; n < 8; n++) {
		struct agent a;
		struct claim_op op;

		(void)rig_teardown(state);
		(void)rig_setup(state);
		strangers_mark(0, 5);
		agent_init(&a, 1);
		agent_connect(&a);
		for (int i = 0; i < n; i++)
			ok(&a, next_op(&a));
		op = next_op(&a);
		assert_int_not_equal(op.kind, OP_NONE);
		rig_z.k.not_before_ms = now_of(&a).unix_ms + 5000;
		claim_watch_fired(&a.c, now_of(&a));
		ok(&a, op);
		live(&a, 100);
		state_is(&a, CLAIM_STANDING);
		if (n > 0) /* n == 0: the look itself was under way */
			assert_int_equal(
			    a.c.k.not_before_ms, rig_z.k.not_before_ms);
		assert_false(serves(&a));
	}
}

/* ---- ZooKeeper's data went back --------------------------------------------------------------- */

/* An own write with a lower zxid than was seen. */
static void
test_zxid_went_back(void **state)
{
	struct agent a;
	int64_t highest;

	(void)state;
	stand(&a, 1);
	live(&a, 10000);
	highest = rig_z.zxid;
	rig_z.zxid = 2; /* a snapshot restored, with this mark in it */
	rig_ms += RIG_RENEW_MS;
	GO(&a, OP_SET_MARK);
	assert_true(facts(&a).realm_changed);
	live(&a, 10000);
	assert_true(facts(&a).realm_changed);
	/* Also once zxid has caught up, and on a new session. */
	rig_z.zxid = highest + 1000;
	live(&a, 10000);
	assert_true(facts(&a).realm_changed);
	claim_session_lost(&a.c, now_of(&a));
	agent_connect(&a);
	live(&a, 10000);
	assert_true(facts(&a).realm_changed);
	/* The generation rises: it goes on above not_before. */
	rig_z.zxid = 2; /* may be low: another tree */
	keeper_renew(&rig_z, now_of(&a).unix_ms + 70000);
	live(&a, 60000);
	assert_false(facts(&a).realm_changed);
	assert_false(serves(&a));
	live(&a, 12000);
	assert_true(serves(&a));
}

/* At its claim's creation already. */
static void
test_zxid_went_back_at_create(void **state)
{
	struct agent a;

	(void)state;
	stand(&a, 1);
	live(&a, 10000);
	claim_session_lost(&a.c, now_of(&a));
	keeper_end_session(&rig_z, a.session);
	rig_z.zxid = 2;
	agent_connect(&a);
	a.c.renew_at = mono_add_ms(now_of(&a).boot, 1000); /* not first */
	GO(&a, OP_GET_REALM, OP_LIST, OP_CREATE);
	assert_true(facts(&a).realm_changed);
}

/* The mark itself shows an older version. */
static void
test_version_went_back(void **state)
{
	struct agent a;

	(void)state;
	stand(&a, 1);
	live(&a, 10000);
	mark_at(0)->version--;
	rig_ms += RIG_RENEW_MS;
	answer(&a, expect(&a, OP_SET_MARK), RC_UNKNOWN);
	rig_ms += 20;
	GO(&a, OP_GET_MARK);
	assert_true(facts(&a).realm_changed);
}

/* What was only read never accuses: a server may lag behind. */
static void
test_old_reads_are_fine(void **state)
{
	struct agent a;
	struct claim_op op;
	struct claim_result r = { .rc = RC_OK };

	(void)state;
	strangers_mark(0, 5);
	agent_init(&a, 1);
	agent_connect(&a);
	GO(&a, OP_GET_REALM, OP_LIST, OP_CREATE);
	op = expect(&a, OP_LIST);
	r.id = op.id;
	r.stat.mzxid = 1;
	r.names = (const char *[]){ a.c.node };
	r.nnames = 1;
	claim_result(&a.c, now_of(&a), &r);
	assert_false(facts(&a).realm_changed);
	live(&a, 10);
	assert_true(serves(&a));
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, rig_setup, rig_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_missing),
		TEST(test_look_lost),
		TEST(test_fits),
		TEST(test_other_uuid),
		TEST(test_other_uuid_on_new_session),
		TEST(test_wiped),
		TEST(test_unfit_later),
		TEST(test_layout_changed),
		TEST(test_generation_raised),
		TEST(test_generation_went_back),
		TEST(test_generation_tag),
		TEST(test_not_before),
		TEST(test_not_before_is_no_window),
		TEST(test_not_before_raised),
		TEST(test_no_write_before_the_look),
		TEST(test_renewal_after_a_watch),
		TEST(test_watch_while_busy),
		TEST(test_zxid_went_back),
		TEST(test_zxid_went_back_at_create),
		TEST(test_version_went_back),
		TEST(test_old_reads_are_fine),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
