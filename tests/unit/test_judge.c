/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_judge - when an agent reads its peers: not while the auditor's summary
 * bears its clock out, and not again and again while ZooKeeper is too busy; and
 * for how long a step ahead is unsettled.
 */
#include "fakezk.h"

#include <inttypes.h>

#include "judge.h"
#include "mark.h"

#define WORKERS "/firn/r/workers.1-0"
#define MARKS "/firn/r/marks.1-0"
#define OWN "00000000-0000-4000-8000-000000000001-w-0000000001"
#define CLAIM "00000000-0000-4000-8000-%012d-w-%010d"
#define START_MS INT64_C(1767225600000) /* 2026-01-01 */
#define AUDIT_MS 10000
#define RENEW_MS 3000
#define RETRY_MS 500 /* as judge.c has it */

static const uint8_t own_boot[UUID_BYTES] = { 1 };
static struct conf conf;
static struct contract contract;
static struct foreign foreign;
static struct clock clk;
static struct judge *judge;
static struct zk zk;
static struct audit summary;
static bool has_summary;
static int64_t boot_ms, ahead_ms; /* of the wall clock */

static struct instant
now(void)
{
	return ((struct instant){
	    .boot = { boot_ms * NS_PER_MS },
	    .wall = { (fake.now_ms + ahead_ms) * NS_PER_MS },
	});
}

static void
on_changed(void *arg)
{
	(void)arg;
}

/* Another host's clock, measured just now. */
static void
put_host(uint8_t n, int64_t offset_us)
{
	struct agent_status st = { .state = "serving",
		.host = "h",
		.version = "0",
		.pid = 1,
		.boot_id = { n },
		.has_offset = true,
		.offset_us = offset_us,
		.error_us = 500,
		.stamp_ms = fake.now_ms };
	struct mark mark = {
		.ceiling = 5,
	};
	char doc[MARK_DOC_MAX], path[FAKE_PATH_MAX];
	int length;

	(void)snprintf(mark.owner, sizeof(mark.owner), CLAIM, n, n);
	(void)snprintf(path, sizeof(path), WORKERS "/" CLAIM, n, n);
	if (fake_find(path) == NULL)
		fake_put(path, "", 0);
	length = mark_format(&mark, &st, doc, sizeof(doc));
	assert_true(length > 0);
	(void)snprintf(path, sizeof(path), MARKS "/%04d", n);
	fake_put(path, doc, (size_t)length);
}

static void
put_other(int64_t offset_us)
{
	put_host(2, offset_us);
}

static int
setup(void **state)
{
	const struct clock_conf cc = {
		.policy = STEP_WAIT, .tolerance_ms = 5, .logical_lead_ms = 5
	};
	struct instant t;

	(void)state;
	fake_reset(START_MS);
	memset(&zk, 0, sizeof(zk));
	memset(&foreign, 0, sizeof(foreign));
	memset(&summary, 0, sizeof(summary));
	has_summary = false;
	boot_ms = 1000;
	ahead_ms = 0;
	conf = (struct conf){ .audit_ms = AUDIT_MS,
		.renew_ms = RENEW_MS,
		.skew_warn_ms = 500,
		.skew_refuse_ms = 10000 };
	contract = (struct contract){ .worker_last = 63 };
	t = now();
	clock_start(&clk, &cc, &t);
	judge = judge_open(&conf, &clk, own_boot, on_changed, NULL);
	assert_non_null(judge);
	fake_put(WORKERS, "", 0);
	fake_put(MARKS, "", 0);
	fake_put(WORKERS "/" OWN, "", 0);
	put_other(0);
	return (0);
}

static int
teardown(void **state)
{
	(void)state;
	judge_close(judge);
	fake_drop(&zk);
	fake_reset(0);
	return (0);
}

/* ---- time passes ------------------------------------------------------------- */

static void
run(void)
{
	const struct judge_where where = { .zk = &zk,
		.workers = WORKERS,
		.marks = MARKS,
		.k = &contract,
		.own_claim = OWN,
		.summary = has_summary ? &summary : NULL,
		.foreign = &foreign };

	judge_run(judge, now().boot, &where);
}

static void
pass(int64_t ms)
{
	struct instant t;

	boot_ms += ms;
	fake.now_ms += ms;
	t = now();
	(void)clock_observe(&clk, &t);
	(void)judge_leap(judge, &t, true);
}

/* An own write comes back, without a trip. */
static void
renew(void)
{
	int64_t boot_ns = boot_ms * NS_PER_MS;
	struct zk_event ev = { .kind = ZK_REPLY,
		.rc = ZK_OK,
		.stat = { .mtime_ms = fake.now_ms },
		.sent_boot_ns = boot_ns,
		.received_boot_ns = boot_ns };
	struct agent_status st = { .state = "serving" };

	judge_sample(judge, &ev, &st);
	run();
}

static bool
on_reply(void *arg, const struct zk_event *ev)
{
	(void)arg;
	return (judge_reply(judge, ev, now().boot));
}

static void
settle(void)
{
	while (zk.nopen > 0) {
		(void)fake_answer(&zk, 0, FAKE_DONE, on_reply, NULL);
		run();
	}
}

static uint64_t
asked(void)
{
	return (zk.asked[FAKE_LIST] + zk.asked[FAKE_GET]);
}

/* One reading of the peers, and a verdict. */
static void
be_judged(void)
{
	renew();
	settle();
	assert_int_equal(judge_skew(judge)->phase, SKEW_JUDGED);
	assert_false(judge_refuses(judge));
}

/* The auditor swept just now. */
static void
sweep(int64_t average_us)
{
	summary.hosts = summary.count = 1;
	summary.median_us = average_us;
	summary.swept_ms = summary.oldest_stamp_ms = fake.now_ms;
	has_summary = true;
}

/* ---- a summary saves the reading ---------------------------------------------- */

static void
reads_nothing_while_the_summary_is_good(void **state)
{
	uint64_t before;

	(void)state;
	be_judged();
	before = asked();
	for (int i = 0; i < 20; i++) {
		pass(RENEW_MS);
		sweep(0);
		renew();
		settle();
	}
	assert_int_equal(asked(), before);
}

/*
 * The auditor dies: until another one has written, within three periods, and
 * that was read, nobody reads the peers: a thousand agents would do it at once.
 */
static void
goes_by_an_old_summary_until_the_next_auditor_has_written(void **state)
{
	uint64_t before;

	(void)state;
	be_judged();
	pass(RENEW_MS);
	sweep(0);
	before = asked();
	for (int64_t ms = 0; ms < 3 * AUDIT_MS + 2 * RENEW_MS; ms += RENEW_MS) {
		pass(RENEW_MS);
		renew();
		assert_int_equal(asked(), before);
	}
	pass(AUDIT_MS); /* nobody audits: they look for themselves */
	put_other(0);
	renew();
	settle();
	assert_true(asked() > before);
	assert_int_equal(judge_skew(judge)->phase, SKEW_JUDGED);
}

/* Where there is no summary: as fresh as one would be. */
static void
one_reading_does_for_a_period(void **state)
{
	uint64_t before, readings = 0;

	(void)state;
	be_judged();
	for (int i = 0; i < 40; i++) {
		before = asked();
		pass(RENEW_MS);
		put_other(0);
		renew();
		settle();
		readings += asked() > before ? 1 : 0;
	}
	assert_in_range(readings, 9, 10); /* in 120 s, each 4th renewal */
	/* A clock that runs away does not wait for that. */
	before = asked();
	clk.base_ns += 700 * NS_PER_MS;
	pass(RENEW_MS);
	put_other(0);
	renew();
	assert_true(asked() > before);
}

static void
nobody_refuses_on_the_summary_alone(void **state)
{
	uint64_t before;

	(void)state;
	be_judged();
	before = asked();
	pass(RENEW_MS);
	put_other(0);
	sweep(-INT64_C(
	    60000000)); /* it says that the own clock is a minute off */
	renew();
	assert_false(judge_refuses(judge));
	assert_true(asked() > before);
	settle(); /* and the peers say that it is not */
	assert_false(judge_refuses(judge));
	pass(RENEW_MS);
	put_other(-INT64_C(60000000)); /* now they do */
	put_host(3, -INT64_C(60000000));
	put_host(4, -INT64_C(60000000));
	sweep(-INT64_C(60000000));
	renew();
	assert_false(judge_refuses(judge));
	settle();
	assert_true(judge_refuses(judge));
}

/* ---- a ZooKeeper that is too busy ------------------------------------------------ */

static void
asks_later_each_time_that_it_had_no_reply(void **state)
{
	int64_t most_ms = RETRY_MS, wait_ms;

	(void)state;
	be_judged();
	pass(AUDIT_MS + 1);
	renew();
	for (int i = 0; i < 12; i++) {
		assert_int_equal(zk.nopen, 1); /* the list */
		(void)fake_answer(&zk, 0, FAKE_UNDONE, on_reply, NULL);
		wait_ms = mono_diff_ms(judge_wake(judge), now().boot);
		assert_in_range(wait_ms, most_ms / 2, most_ms);
		run();
		assert_int_equal(zk.nopen, 0);
		pass(wait_ms);
		run();
		most_ms = most_ms * 2 < AUDIT_MS ? most_ms * 2 : AUDIT_MS;
	}
	put_other(0);
	renew();
	settle(); /* one that comes begins anew */
	pass(AUDIT_MS + 1);
	renew();
	(void)fake_answer(&zk, 0, FAKE_UNDONE, on_reply, NULL);
	assert_in_range(mono_diff_ms(judge_wake(judge), now().boot),
	    RETRY_MS / 2, RETRY_MS);
}

/* ---- a step ahead ---------------------------------------------------------------- */

static void
step_that_is_not_followed_is_unsettled_until_it_is_mended(void **state)
{
	(void)state;
	be_judged();
	assert_false(judge_unsettled(judge));
	ahead_ms = 11000;
	pass(10);
	assert_true(judge_unsettled(judge)); /* the peers have to be asked */
	put_other(0);
	renew();
	settle();
	assert_false(judge_refuses(judge));
	for (int i = 0; i < 5; i++) {
		pass(RENEW_MS);
		put_other(0);
		renew();
		settle();
		assert_true(judge_unsettled(judge)); /* it stays where it is */
		assert_int_equal(clk.verdict, CLOCK_GOOD); /* the old time */
	}
	ahead_ms = 0;
	pass(RENEW_MS);
	assert_false(judge_unsettled(judge));
}

/* Earlier failures do not make it wait. */
static void
step_is_measured_at_once(void **state)
{
	(void)state;
	be_judged();
	pass(AUDIT_MS + 1);
	renew();
	for (int i = 0; i < 6; i++) {
		(void)fake_answer(&zk, 0, FAKE_UNDONE, on_reply, NULL);
		pass(mono_diff_ms(judge_wake(judge), now().boot));
		run();
	}
	(void)fake_answer(&zk, 0, FAKE_UNDONE, on_reply, NULL);
	assert_true(
	    mono_diff_ms(judge_wake(judge), now().boot) >= AUDIT_MS / 2);
	ahead_ms = 11000;
	pass(10);
	put_other(0);
	renew();
	assert_int_equal(zk.nopen, 1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(reads_nothing_while_the_summary_is_good),
		T(goes_by_an_old_summary_until_the_next_auditor_has_written),
		T(nobody_refuses_on_the_summary_alone),
		T(asks_later_each_time_that_it_had_no_reply),
		T(one_reading_does_for_a_period),
		T(step_that_is_not_followed_is_unsettled_until_it_is_mended),
		T(step_is_measured_at_once),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
