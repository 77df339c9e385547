/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_auditor - who writes the fleet's node and when, what it says of it, and
 * what becomes of writes that others overtake or whose reply is lost: one or
 * two agents at a pretended ZooKeeper.
 */
#include "fakezk.h"

#include <inttypes.h>

#include "auditor.h"
#include "dice.h"
#include "mark.h"
#include "names.h"
#include "summary.h"

#define REALM "/firn/r"
#define FLEET REALM "/fleet"
#define WORKERS REALM "/workers.1-0"
#define MARKS REALM "/marks.1-0"
#define START_MS INT64_C(1767225600000) /* 2026-01-01 */
#define EPOCH_MS INT64_C(1735689600000)
#define AUDIT_MS 10000
#define STEPS_MAX 1000

static struct conf conf;
static struct contract contract;
static struct skew skew; /* of every agent: they have one clock */
static struct foreign foreign;
static int64_t boot_ms;

/* One agent, as its lease sees it. */
struct agent {
	struct auditor *a;
	struct zk zk;
	char claim[CLAIM_NAME_MAX];
	char told[400]; /* alerts */
};

static struct agent one, two;

static void
put_agent(uint64_t n)
{
	struct agent_status st = { .state = "serving",
		.host = "h",
		.version = "0",
		.pid = 1,
		.boot_id = { (uint8_t)n } };
	struct mark mark = { .ceiling = fake.now_ms + 60000 - EPOCH_MS };
	char path[FAKE_PATH_MAX], doc[MARK_DOC_MAX];
	int length;

	(void)snprintf(path, sizeof(path), WORKERS "/%s", claim_of(n));
	if (fake_find(path) == NULL)
		fake_put(path, "", 0);
	(void)snprintf(mark.owner, sizeof(mark.owner), "%s", claim_of(n));
	length = mark_format(&mark, &st, doc, sizeof(doc));
	assert_true(length > 0);
	(void)snprintf(path, sizeof(path), MARKS "/%04" PRIu64, n);
	fake_put(path, doc, (size_t)length);
}

static void
on_alert(void *arg, const struct audit_alert *x, bool raised)
{
	struct agent *g = arg;
	size_t at = strlen(g->told);

	(void)snprintf(g->told + at, sizeof(g->told) - at, "%s%s%s",
	    at > 0 ? " " : "", raised ? "+" : "-", audit_kind_name(x->kind));
}

static void
agent_open(struct agent *g, uint64_t n)
{
	memset(g, 0, sizeof(*g));
	g->a = auditor_open(&conf);
	assert_non_null(g->a);
	auditor_on_alert(g->a, on_alert, g);
	(void)snprintf(g->claim, sizeof(g->claim), "%s", claim_of(n));
	put_agent(n);
}

static void
agent_close(struct agent *g)
{
	auditor_close(g->a);
	fake_drop(&g->zk);
	g->a = NULL;
}

static int
setup(void **state)
{
	(void)state;
	fake_reset(START_MS);
	boot_ms = 1000;
	conf = (struct conf){ .audit_ms = AUDIT_MS,
		.renew_ms = 3000,
		.session_ms = 10000,
		.claim_wait_ms = 2000,
		.skew_warn_ms = 500 };
	contract = (struct contract){ .format = 1,
		.uuid = { 7 },
		.generation = 1,
		.generation_text = "1-0",
		.worker_last = 63,
		.layout = { .size = sizeof(struct firn_layout),
		    .time_bits = 41,
		    .worker_bits = 10,
		    .sequence_bits = 12,
		    .tick_ms = 1,
		    .epoch_ms = EPOCH_MS } };
	memset(&skew, 0, sizeof(skew));
	skew.has_own = true;
	skew.own.stamp_ms = START_MS;
	skew.own.when = (mono_t){ boot_ms * NS_PER_MS };
	memset(&foreign, 0, sizeof(foreign));
	fake_put(WORKERS, "", 0);
	fake_put(MARKS, "", 0);
	fake_find(WORKERS)->cversion = fake_find(MARKS)->cversion = 0;
	agent_open(&one, 1);
	agent_open(&two, 2);
	return (0);
}

static int
teardown(void **state)
{
	(void)state;
	agent_close(&one);
	agent_close(&two);
	fake_reset(0);
	return (0);
}

/* ---- time passes ------------------------------------------------------------- */

static mono_t
now(void)
{
	return ((mono_t){ boot_ms * NS_PER_MS });
}

/* Both renew their marks meanwhile, whoever of them audits. */
static void
pass(int64_t ms)
{
	int64_t before_ms = boot_ms;

	boot_ms += ms;
	fake.now_ms += ms;
	if (boot_ms / 3000 == before_ms / 3000)
		return;
	put_agent(1);
	put_agent(2);
}

static void
run(struct agent *g)
{
	const struct auditor_where where = { .zk = &g->zk,
		.realm = REALM,
		.workers = WORKERS,
		.marks = MARKS,
		.k = &contract,
		.own_claim = g->claim,
		.host = "h",
		.skew = &skew,
		.foreign = &foreign };

	auditor_run(g->a, now(), &where);
}

/* As a renewal does. */
static void
poke(struct agent *g)
{
	auditor_poke(g->a);
	run(g);
}

static bool
on_reply(void *arg, const struct zk_event *ev)
{
	struct agent *g = arg;

	return (auditor_reply(g->a, ev, now()));
}

static void
answer(struct agent *g, enum fake_end end)
{
	(void)fake_answer(&g->zk, 0, end, on_reply, g);
	run(g);
}

static enum fake_kind
next_kind(const struct agent *g)
{
	assert_true(g->zk.nopen > 0);
	return (g->zk.open[0].kind);
}

/* Answers whatever it asks for, until it asks for this, or for nothing. */
static bool
until(struct agent *g, enum fake_kind kind)
{
	for (int i = 0; i < STEPS_MAX; i++) {
		if (g->zk.nopen == 0)
			return (false);
		if (next_kind(g) == kind)
			return (true);
		answer(g, FAKE_DONE);
	}
	fail_msg("it goes on for ever");
	return (false);
}

static void
settle(struct agent *g)
{
	while (g->zk.nopen > 0)
		answer(g, FAKE_DONE);
}

/* So long, woken when it wants to be, with a renewal each 3 s. */
static void
live(struct agent *g, int64_t ms)
{
	for (int64_t at = 0; at < ms; at += 100) {
		pass(100);
		if (boot_ms % 3000 == 0)
			poke(g);
		else if (mono_reached(now(), auditor_wake(g->a)))
			run(g);
		settle(g);
	}
}

static struct auditor_figures
figures(const struct agent *g)
{
	struct auditor_figures f;

	auditor_figures(g->a, now(), &f);
	return (f);
}

/* ---- what stands in the node --------------------------------------------------- */

static const struct audit *
node(void)
{
	static struct audit a;
	const struct fake_node *n = fake_find(FLEET);
	struct doc_error err;

	assert_non_null(n);
	assert_int_equal(summary_parse(n->data, n->length, &a, &err), 0);
	return (&a);
}

/* Somebody else's, of so many ms ago. */
static void
put_summary(const char *auditor, const char *oldest, int64_t age_ms)
{
	static struct audit a;
	static char doc[SUMMARY_DOC_MAX];
	int length;

	memset(&a, 0, sizeof(a));
	memcpy(a.uuid, contract.uuid, UUID_BYTES);
	(void)snprintf(a.generation, sizeof(a.generation), "1-0");
	(void)snprintf(a.auditor, sizeof(a.auditor), "%s", auditor);
	(void)snprintf(a.oldest, sizeof(a.oldest), "%s", oldest);
	a.swept_ms = fake.now_ms - age_ms;
	length = summary_format(&a, doc, sizeof(doc));
	assert_true(length > 0);
	fake_put(FLEET, doc, (size_t)length)->mtime_ms = a.swept_ms;
}

/* A node among the marks that was made and deleted. */
static void
delete_a_mark(void)
{
	fake_put(MARKS "/junk", "", 0);
	fake_remove(MARKS "/junk");
}

/* ---- one agent --------------------------------------------------------------------- */

static void
missing_node_is_made(void **state)
{
	(void)state;
	assert_null(auditor_summary(one.a));
	live(&one, AUDIT_MS);
	assert_int_equal(one.zk.asked[FAKE_CREATE], 1);
	assert_string_equal(node()->auditor, claim_of(1));
	assert_int_equal(node()->agents, 2);
	assert_non_null(auditor_summary(one.a));
	assert_true(figures(&one).own);
}

static void
oldest_sweeps_once_a_period(void **state)
{
	(void)state;
	live(&one, AUDIT_MS);
	for (int i = 0; i < 5; i++) {
		int32_t version = fake_find(FLEET)->version;

		live(&one, AUDIT_MS);
		assert_int_equal(fake_find(FLEET)->version, version + 1);
	}
	assert_int_equal(figures(&one).writes, 6);
	assert_int_equal(figures(&one).conflicts, 0);
	assert_int_equal(figures(&one).failures, 0);
}

static void
anybody_else_reads_and_that_is_all(void **state)
{
	(void)state;
	for (int i = 0; i < 30; i++) {
		put_summary(claim_of(1), claim_of(1), 0);
		live(&two, 3000);
	}
	assert_int_equal(two.zk.asked[FAKE_GET], 30);
	assert_int_equal(two.zk.asked[FAKE_LIST], 0);
	assert_int_equal(two.zk.asked[FAKE_SET], 0);
	assert_int_equal(auditor_summary(two.a)->swept_ms, fake.now_ms - 3000);
	assert_false(figures(&two).own);
}

static void
silence_makes_another_one_sweep(void **state)
{
	(void)state;
	put_summary(claim_of(1), claim_of(1), 0);
	live(&two, 2 * AUDIT_MS - 100);
	assert_int_equal(two.zk.asked[FAKE_SET], 0);
	live(&two, AUDIT_MS);
	assert_string_equal(node()->auditor, claim_of(2));
}

static void
woken_late_it_sees_that_it_is_late(void **state)
{
	(void)state;
	put_summary(claim_of(1), claim_of(1), 0);
	poke(&two);
	settle(&two);
	pass(10 * AUDIT_MS); /* stopped */
	put_summary("another", claim_of(1), 10);
	run(&two);
	settle(&two);
	assert_int_equal(two.zk.asked[FAKE_LIST], 0);
	assert_string_equal(node()->auditor, "another");
}

static void
one_thing_at_a_time(void **state)
{
	(void)state;
	pass(AUDIT_MS);
	poke(&one);
	assert_true(auditor_reading(one.a));
	for (int i = 0; i < 3; i++)
		poke(&one);
	assert_int_equal(one.zk.nopen, 1);
	assert_int_equal(auditor_wake(one.a).ns, MONO_NEVER.ns);
}

static void
without_a_measurement_or_a_claim_nothing(void **state)
{
	(void)state;
	skew.has_own = false;
	poke(&one);
	skew.has_own = true;
	one.claim[0] = '\0';
	poke(&one);
	assert_int_equal(one.zk.nopen, 0);
}

static void
garbage_is_overwritten(void **state)
{
	static char junk[DOC_SIZE_MAX + 1];

	(void)state;
	fake_put(FLEET, "{", 1);
	live(&one, AUDIT_MS);
	assert_string_equal(node()->auditor, claim_of(1));
	fake_put(FLEET, "", 0); /* as `firn realm create` leaves it */
	live(&one, AUDIT_MS);
	assert_string_equal(node()->auditor, claim_of(1));
	fake_put(FLEET, junk, sizeof(junk));
	live(&one, AUDIT_MS);
	assert_string_equal(node()->auditor, claim_of(1));
}

static void
one_that_may_not_be_read_is_left_alone(void **state)
{
	(void)state;
	put_summary(claim_of(2), claim_of(2), 0);
	fake_find(FLEET)->denied = true;
	live(&one, 4 * AUDIT_MS);
	assert_int_equal(one.zk.asked[FAKE_SET], 0);
	assert_null(auditor_summary(one.a));
	fake_find(FLEET)->denied = false;
	live(&one, 3 * AUDIT_MS);
	assert_non_null(auditor_summary(one.a));
}

/* ---- alerts ---------------------------------------------------------------------------- */

static void
raised_once_by_who_wrote_it(void **state)
{
	(void)state;
	live(&one, AUDIT_MS);
	delete_a_mark();
	live(&one, 3 * AUDIT_MS);
	poke(&two);
	settle(&two);
	assert_string_equal(one.told, "+marks_deleted");
	assert_string_equal(two.told, "");
	live(&two, 3 * AUDIT_MS); /* the first one is gone: the other goes on */
	assert_string_equal(node()->auditor, claim_of(2));
	assert_int_equal(node()->alerts[0].kind, AUDIT_MARKS_DELETED);
	assert_string_equal(two.told, "");
}

static void
cleared_once(void **state)
{
	(void)state;
	contract.worker_last = 2; /* of 0, 1 and 2 one is free; less is not */
	live(&one, AUDIT_MS);
	put_agent(0);
	live(&one, AUDIT_MS);
	assert_string_equal(one.told, "+workers_low");
	fake_remove(WORKERS "/00000000-0000-4000-8000-000000000000"
			    "-w-0000000000");
	pass(60000); /* its mark is past */
	live(&one, 4 * AUDIT_MS);
	assert_string_equal(one.told, "+workers_low -workers_low");
}

/* ---- writes that go wrong ----------------------------------------------------------------- */

/* To the point where a summary with an alert is about to be written. */
static void
about_to_write(struct agent *g)
{
	live(g, AUDIT_MS);
	delete_a_mark();
	pass(2 * AUDIT_MS);
	run(g);
	assert_true(until(g, FAKE_SET));
}

static void
overtaken_it_gives_way(void **state)
{
	int64_t swept_ms;

	(void)state;
	about_to_write(&one);
	put_summary(claim_of(2), claim_of(1), 0);
	swept_ms = node()->swept_ms;
	answer(&one, FAKE_DONE);
	settle(&one);
	assert_int_equal(figures(&one).conflicts, 1);
	assert_string_equal(node()->auditor, claim_of(2));
	assert_int_equal(auditor_summary(one.a)->swept_ms, swept_ms);
	assert_string_equal(one.told, ""); /* that is the other one's to say */
	assert_false(figures(&one).own);
}

static void
deleted_meanwhile_it_is_made_again(void **state)
{
	(void)state;
	about_to_write(&one);
	fake_remove(FLEET);
	answer(&one, FAKE_DONE);
	settle(&one);
	live(&one, AUDIT_MS);
	assert_string_equal(node()->auditor, claim_of(1));
	assert_string_equal(one.told, "+marks_deleted");
}

static void
lost_reply_of_a_write_that_was_done(void **state)
{
	(void)state;
	about_to_write(&one);
	answer(&one, FAKE_LOST);
	assert_string_equal(one.told, ""); /* who knows? */
	settle(&one);
	assert_string_equal(one.told, "+marks_deleted");
	assert_true(figures(&one).own);
	live(&one, 3 * AUDIT_MS);
	assert_string_equal(one.told, "+marks_deleted");
}

static void
lost_reply_of_a_write_that_was_not(void **state)
{
	(void)state;
	about_to_write(&one);
	answer(&one, FAKE_UNDONE);
	assert_true(until(&one, FAKE_GET));
	put_summary(claim_of(2), claim_of(1), 0);
	settle(&one);
	assert_string_equal(one.told, "");
	live(&one, 3 * AUDIT_MS);
	assert_string_equal(one.told, "+marks_deleted");
}

static void
connection_goes_while_it_writes(void **state)
{
	(void)state;
	about_to_write(&one);
	fake_put(FLEET, one.zk.open[0].data, one.zk.open[0].length);
	auditor_disconnected(one.a); /* the write has landed all the same */
	fake_drop(&one.zk);
	assert_int_equal(auditor_wake(one.a).ns, MONO_NEVER.ns);
	live(&one, 3000);
	assert_string_equal(one.told, "+marks_deleted");
}

static void
refused_write_is_tried_again_in_a_period(void **state)
{
	(void)state;
	about_to_write(&one);
	answer(&one, FAKE_REFUSED);
	assert_int_equal(one.zk.nopen, 0);
	assert_int_equal(figures(&one).failures, 1);
	assert_in_range(mono_diff_ms(auditor_wake(one.a), now()), AUDIT_MS,
	    AUDIT_MS / 2 * 3);
	live(&one, 2 * AUDIT_MS);
	assert_string_equal(one.told, "+marks_deleted");
}

static void
sweep_that_fails_writes_nothing(void **state)
{
	int32_t version;

	(void)state;
	live(&one, AUDIT_MS);
	version = fake_find(FLEET)->version;
	pass(2 * AUDIT_MS);
	run(&one);
	assert_true(until(&one, FAKE_LIST));
	answer(&one, FAKE_UNDONE);
	settle(&one);
	assert_int_equal(fake_find(FLEET)->version, version);
	assert_int_equal(figures(&one).failures, 1);
	assert_non_null(auditor_summary(one.a)); /* what stood stands */
}

/* ---- another generation ------------------------------------------------------------------- */

static void
later_generation_is_told_once_and_not_overwritten(void **state)
{
	static struct audit a;
	static char doc[SUMMARY_DOC_MAX];
	int length;

	(void)state;
	live(&one, AUDIT_MS);
	a = *node();
	(void)snprintf(a.generation, sizeof(a.generation), "2-1");
	length = summary_format(&a, doc, sizeof(doc));
	fake_put(FLEET, doc, (size_t)length);
	poke(&one);
	settle(&one);
	assert_null(auditor_summary(one.a));
	assert_true(auditor_saw_other_realm(one.a));
	assert_false(auditor_saw_other_realm(one.a));
	live(&one, 4 * AUDIT_MS);
	assert_string_equal(node()->generation, "2-1");
	assert_true(auditor_saw_other_realm(one.a)); /* again, while it stays */
	contract.generation = 2; /* read meanwhile */
	memcpy(contract.generation_text, "2-1", 4);
	live(&one, 2 * AUDIT_MS);
	assert_non_null(auditor_summary(one.a));
}

static void
earlier_generation_is_overwritten(void **state)
{
	(void)state;
	live(&one, AUDIT_MS);
	contract.generation = 2;
	memcpy(contract.generation_text, "2-1", 4);
	poke(&one);
	settle(&one);
	assert_null(auditor_summary(one.a)); /* of a tree that is gone */
	live(&one, 2 * AUDIT_MS);
	assert_string_equal(node()->generation, "2-1");
}

/* ---- two of them ---------------------------------------------------------------------------- */

/*
 * Two agents whose operations are answered in any order, after any time, lost
 * or not: what stands never goes back, whoever wrote it, and it goes on.
 */
static void
two_at_once_do_no_harm(void **state)
{
	struct dice d = dice_open("two");
	int64_t swept_ms = 0;
	uint64_t told = 0;

	(void)state;
	for (int i = 0; i < 5000; i++) {
		struct agent *g = dice_below(&d, 2) == 0 ? &one : &two;
		uint64_t chance = dice_below(&d, 20);

		/* sometimes so long that it is the turn of both */
		pass(dice_range(&d, 0, chance == 4 ? 3 * AUDIT_MS : 300));
		if (chance == 0)
			poke(g);
		else
			run(g);
		if (chance == 1 && dice_below(&d, 20) == 0) {
			auditor_disconnected(g->a);
			fake_drop(&g->zk);
		} else if (g->zk.nopen > 0)
			answer(g, chance == 2   ? FAKE_LOST
				  : chance == 3 ? FAKE_UNDONE
						: FAKE_DONE);
		if (fake_find(FLEET) == NULL)
			continue;
		assert_true(node()->swept_ms >= swept_ms);
		told += node()->swept_ms > swept_ms ? 1 : 0;
		swept_ms = node()->swept_ms;
	}
	print_message("%" PRIu64 " summaries in %" PRId64 " periods, %" PRIu64
		      " conflicts\n",
	    told, (boot_ms - 1000) / AUDIT_MS,
	    figures(&one).conflicts + figures(&two).conflicts);
	assert_true(told > 20);
	assert_true(figures(&one).writes > 0 && figures(&two).writes > 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(missing_node_is_made),
		T(oldest_sweeps_once_a_period),
		T(anybody_else_reads_and_that_is_all),
		T(silence_makes_another_one_sweep),
		T(woken_late_it_sees_that_it_is_late),
		T(one_thing_at_a_time),
		T(without_a_measurement_or_a_claim_nothing),
		T(garbage_is_overwritten),
		T(one_that_may_not_be_read_is_left_alone),
		T(raised_once_by_who_wrote_it),
		T(cleared_once),
		T(overtaken_it_gives_way),
		T(deleted_meanwhile_it_is_made_again),
		T(lost_reply_of_a_write_that_was_done),
		T(lost_reply_of_a_write_that_was_not),
		T(connection_goes_while_it_writes),
		T(refused_write_is_tried_again_in_a_period),
		T(sweep_that_fails_writes_nothing),
		T(later_generation_is_told_once_and_not_overwritten),
		T(earlier_generation_is_overwritten),
		T(two_at_once_do_no_harm),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
