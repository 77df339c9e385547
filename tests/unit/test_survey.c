/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_survey - a whole fleet, read once: claims and marks of a pretended
 * ZooKeeper, answered in any order, lost, refused.
 */
#include "fakezk.h"

#include <inttypes.h>

#include "dice.h"
#include "mark.h"
#include "names.h"
#include "survey.h"

#define WORKERS "/firn/r/workers.1-0"
#define MARKS "/firn/r/marks.1-0"
#define NOW_MS INT64_C(1767225600000) /* 2026-01-01 */
#define EPOCH_MS INT64_C(1735689600000)
#define WAIT_MS 2000
#define USABLE 256
#define IN_FLIGHT 64 /* as survey.c has it */
#define ROUNDS 32

static struct zk zk;
static struct foreign foreign;
static struct survey_memory memory;
static struct contract contract;

static struct {
	int calls;
	bool good;
	struct audit_member member[USABLE * 2];
	size_t n;
	uint64_t quarantined[USABLE / 64];
	int64_t marks_deleted;
	uint64_t reads;
} heard;

static int
setup(void **state)
{
	(void)state;
	fake_reset(NOW_MS);
	memset(&zk, 0, sizeof(zk));
	memset(&foreign, 0, sizeof(foreign));
	survey_forget(&memory);
	contract = (struct contract){ .format = 1,
		.generation = 1,
		.generation_text = "1-0",
		.worker_last = USABLE - 1,
		.layout = { .size = sizeof(struct firn_layout),
		    .time_bits = 41,
		    .worker_bits = 10,
		    .sequence_bits = 12,
		    .tick_ms = 1,
		    .epoch_ms = EPOCH_MS } };
	fake_put(WORKERS, "", 0);
	fake_put(MARKS, "", 0);
	fake_find(WORKERS)->cversion = fake_find(MARKS)->cversion = 0;
	return (0);
}

static int
teardown(void **state)
{
	(void)state;
	fake_drop(&zk);
	fake_reset(0);
	survey_forget(&memory);
	return (0);
}

/* ---- nodes ------------------------------------------------------------------- */

static struct agent_status
status_of(const char *host)
{
	struct agent_status st = { .state = "serving",
		.version = "0",
		.pid = 1,
		.boot_id = { 1 },
		.has_offset = true,
		.offset_us = 5,
		.error_us = 200,
		.stamp_ms = NOW_MS,
		.epoch = 7 };

	(void)snprintf(st.host, sizeof(st.host), "%s", host);
	return (st);
}

static const char *
path_in(const char *parent, const char *name)
{
	static char path[FAKE_PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/%s", parent, name);
	return (path);
}

static const char *
mark_path(uint64_t worker)
{
	char name[24];

	(void)snprintf(name, sizeof(name), "%04" PRIu64, worker);
	return (path_in(MARKS, name));
}

/* With a status, as an agent without a mark leaves it; or empty. */
static void
put_claim(uint64_t n, const char *host)
{
	const struct agent_status st = status_of(host != NULL ? host : "");
	char doc[MARK_DOC_MAX];
	int length = host != NULL ? claim_doc_format(&st, doc, sizeof(doc)) : 0;

	assert_true(length >= 0);
	fake_put(path_in(WORKERS, claim_of(n)), doc, (size_t)length);
}

static void
put_mark(uint64_t worker, const char *owner, const char *host, int64_t end_ms)
{
	const struct agent_status st = status_of(host);
	struct mark mark = { .ceiling = end_ms - EPOCH_MS - 1 };
	char doc[MARK_DOC_MAX];
	int length;

	(void)snprintf(mark.owner, sizeof(mark.owner), "%s", owner);
	length = mark_format(&mark, &st, doc, sizeof(doc));
	assert_true(length > 0);
	fake_put(mark_path(worker), doc, (size_t)length);
}

static void
put_agent(uint64_t n)
{
	put_claim(n, NULL);
	put_mark(n % USABLE, claim_of(n), "by its mark", NOW_MS + 60000);
}

/* ---- one survey --------------------------------------------------------------- */

static void
on_heard(void *arg, const struct survey_result *r)
{
	(void)arg;
	heard.calls++;
	heard.good = r->good;
	heard.n = r->n;
	heard.marks_deleted = r->marks_deleted;
	heard.reads = r->reads;
	if (!r->good)
		return;
	assert_true(r->n <= USABLE * 2);
	memcpy(heard.member, r->members, r->n * sizeof(r->members[0]));
	memcpy(heard.quarantined, r->quarantined, sizeof(heard.quarantined));
}

static struct survey *
start(void)
{
	const struct survey_where where = { .zk = &zk,
		.workers = WORKERS,
		.marks = MARKS,
		.k = &contract,
		.now_ms = fake.now_ms,
		.wait_ms = WAIT_MS,
		.memory = &memory,
		.foreign = &foreign };

	memset(&heard, 0, sizeof(heard));
	zk.most_open = 0;
	return (survey_start(&where, on_heard, NULL));
}

static bool
on_reply(void *arg, const struct zk_event *ev)
{
	return (survey_reply(arg, ev));
}

/* Answers in turn until it is over; how many were answered. */
static size_t
finish(struct survey *s)
{
	size_t n = 0;

	assert_non_null(s);
	for (; heard.calls == 0; n++) {
		assert_true(zk.nopen > 0);
		(void)fake_answer(&zk, 0, FAKE_DONE, on_reply, s);
	}
	assert_int_equal(heard.calls, 1);
	return (n);
}

static void
survey(void)
{
	(void)finish(start());
	assert_true(heard.good);
	assert_int_equal(zk.nopen, 0);
}

static const struct audit_member *
member(uint64_t worker)
{
	for (size_t i = 0; i < heard.n; i++)
		if (heard.member[i].worker == worker)
			return (&heard.member[i]);
	fail_msg("no member has worker ID %" PRIu64, worker);
	return (NULL);
}

static bool
is_quarantined(uint64_t worker)
{
	return ((heard.quarantined[worker / 64] >> (worker % 64) & 1) != 0);
}

/* ---- who speaks for a claim ------------------------------------------------------ */

static void
asks_for_a_sync_first(void **state)
{
	struct survey *s = start();

	(void)state;
	assert_int_equal(zk.nopen, 3);
	assert_int_equal(zk.open[0].kind, FAKE_SYNC);
	assert_int_equal(zk.open[1].kind, FAKE_LIST);
	assert_int_equal(zk.open[2].kind, FAKE_LIST);
	(void)finish(s);
	assert_true(heard.good);
	assert_int_equal(heard.n, 0);
}

static void
mark_speaks_for_its_owner(void **state)
{
	(void)state;
	put_claim(3, "by its claim");
	fake.now_ms += 7;
	put_mark(3, claim_of(3), "by its mark", NOW_MS + 60000);
	survey();
	assert_int_equal(heard.n, 1);
	assert_string_equal(member(3)->status.host, "by its mark");
	assert_int_equal(member(3)->written_ms, NOW_MS + 7);
	assert_int_equal(member(3)->counter, 3);
	assert_int_equal(heard.reads, 1);
	assert_false(is_quarantined(3)); /* it is in hand */
}

static void
claim_speaks_where_no_mark_does(void **state)
{
	(void)state;
	put_claim(1, "one without a mark");
	put_claim(2, "one whose mark is another's");
	put_mark(2, claim_of(9), "the old owner", NOW_MS);
	put_claim(3, "one whose mark is garbled");
	fake_put(mark_path(3), "{", 1);
	put_claim(4, "one whose mark may not be read");
	put_mark(4, claim_of(4), "nobody knows", NOW_MS);
	fake_find(mark_path(4))->denied = true;
	survey();
	assert_int_equal(heard.n, 4);
	assert_string_equal(member(1)->status.host, "one without a mark");
	assert_string_equal(
	    member(2)->status.host, "one whose mark is another's");
	assert_string_equal(
	    member(3)->status.host, "one whose mark is garbled");
	assert_string_equal(
	    member(4)->status.host, "one whose mark may not be read");
	assert_int_equal(heard.reads, 1 + 2 + 2 + 2);
}

static void
silent_claim_is_a_member_that_says_nothing(void **state)
{
	(void)state;
	put_claim(1, NULL);
	survey();
	assert_int_equal(heard.n, 1);
	assert_string_equal(member(1)->status.state, "");
	assert_int_equal(member(1)->written_ms, NOW_MS);
}

static void
what_is_no_claim_of_the_range_is_passed_over(void **state)
{
	char name[CLAIM_NAME_MAX];

	(void)state;
	fake_put(path_in(WORKERS, "junk"), "", 0);
	(void)snprintf(name, sizeof(name), "%.36s-w%04d-%010d", claim_of(1),
	    USABLE, 1); /* names a worker ID beyond the last */
	fake_put(path_in(WORKERS, name), "", 0);
	fake_put(path_in(MARKS, "junk"), "", 0);
	put_agent(5);
	survey();
	assert_int_equal(heard.n, 1);
	assert_int_equal(member(5)->counter, 5);
}

static void
claim_that_goes_meanwhile_is_none(void **state)
{
	struct survey *s;

	(void)state;
	put_claim(1, "stays");
	put_claim(2, "goes");
	s = start();
	for (int i = 0; i < 3; i++)
		(void)fake_answer(&zk, 0, FAKE_DONE, on_reply, s);
	fake_remove(path_in(WORKERS, claim_of(2)));
	(void)finish(s);
	assert_true(heard.good);
	assert_int_equal(heard.n, 1);
	assert_string_equal(member(1)->status.host, "stays");
}

static void
two_claims_of_one_worker_id_are_two_members(void **state)
{
	(void)state;
	put_agent(7);
	put_claim(7 + USABLE, "the younger");
	survey();
	assert_int_equal(heard.n, 2);
	assert_int_equal(heard.member[0].worker, 7);
	assert_int_equal(heard.member[1].worker, 7);
}

/* ---- marks that nobody claims ------------------------------------------------------ */

static void
quarantined_while_its_window_is_ahead(void **state)
{
	(void)state;
	put_mark(1, "gone", "h", NOW_MS + WAIT_MS);
	put_mark(2, "gone", "h", NOW_MS + WAIT_MS + 1);
	fake_put(mark_path(3), "{", 1); /* nobody can go by it */
	survey();
	assert_false(is_quarantined(0)); /* no mark at all */
	assert_false(is_quarantined(1));
	assert_true(is_quarantined(2));
	assert_true(is_quarantined(3));
	assert_int_equal(heard.reads, 3);
}

static void
marks_of_the_past_are_read_once_and_then_seldom(void **state)
{
	uint64_t reads = 0;

	(void)state;
	for (uint64_t w = 0; w < ROUNDS; w++)
		put_mark(w, "gone", "h", NOW_MS - 1000);
	put_mark(ROUNDS, "gone", "h", NOW_MS + 30000);
	survey();
	assert_int_equal(heard.reads, ROUNDS + 1);
	for (int i = 0; i < ROUNDS; i++) {
		survey();
		reads += heard.reads;
		assert_true(heard.reads <= 2);
		assert_true(is_quarantined(ROUNDS)); /* read each time */
	}
	assert_int_equal(reads, ROUNDS + ROUNDS);
}

static void
claim_in_between_makes_the_mark_news(void **state)
{
	(void)state;
	put_mark(9, "gone", "h", NOW_MS - 1000);
	survey();
	put_claim(9, NULL);
	survey(); /* its agent takes the mark over, and is killed */
	fake_remove(path_in(WORKERS, claim_of(9)));
	put_mark(9, "gone", "h", NOW_MS + 60000);
	survey();
	assert_true(is_quarantined(9));
}

static void
next_generation_remembers_nothing(void **state)
{
	(void)state;
	put_mark(9, "gone", "h", NOW_MS - 1000);
	survey();
	memcpy(contract.generation_text, "2-0", 4);
	put_mark(9, "gone", "h", NOW_MS + 60000);
	survey();
	assert_true(is_quarantined(9));
}

static void
counts_the_marks_that_were_deleted(void **state)
{
	(void)state;
	for (uint64_t w = 0; w < 5; w++)
		put_mark(w, "gone", "h", NOW_MS);
	survey();
	assert_int_equal(heard.marks_deleted, 0);
	fake_remove(mark_path(1));
	survey();
	assert_int_equal(heard.marks_deleted, 1);
	put_mark(1, "gone", "h", NOW_MS); /* made again */
	fake_remove(mark_path(2));
	survey();
	assert_int_equal(heard.marks_deleted, 2);
}

static void
too_large_a_mark_is_asked_for_its_size_from_then_on(void **state)
{
	static char junk[DOC_SIZE_MAX + 1];

	(void)state;
	put_claim(4, "its claim");
	fake_put(mark_path(4), junk, sizeof(junk));
	survey();
	assert_int_equal(zk.asked[FAKE_EXISTS], 0);
	survey();
	assert_int_equal(zk.asked[FAKE_EXISTS], 1);
	assert_string_equal(member(4)->status.host, "its claim");
	put_mark(4, claim_of(4), "by its mark", NOW_MS);
	survey(); /* sees that it is small */
	survey();
	assert_int_equal(zk.asked[FAKE_EXISTS], 2);
	assert_string_equal(member(4)->status.host, "by its mark");
}

/* ---- how it is read ------------------------------------------------------------------ */

static void
never_more_than_so_many_at_a_time(void **state)
{
	(void)state;
	for (uint64_t n = 0; n < USABLE; n++)
		put_agent(n);
	survey();
	assert_int_equal(heard.n, USABLE);
	assert_int_equal(heard.reads, USABLE);
	assert_int_equal(zk.most_open, IN_FLIGHT);
}

static void
order_of_replies_changes_nothing(void **state)
{
	struct dice d = dice_open("order");

	(void)state;
	for (uint64_t n = 0; n < 150; n++)
		put_agent(n);
	for (uint64_t n = 150; n < 180; n++)
		put_claim(n, "claim");
	for (uint64_t w = 180; w < 220; w++)
		put_mark(w, "gone", "h", NOW_MS + (w % 2 == 0 ? 60000 : -1));
	for (int round = 0; round < 50; round++) {
		struct survey *s;

		survey_forget(&memory);
		s = start();
		/* One session: the lists come before what they lead to. */
		for (int i = 0; i < 3; i++)
			(void)fake_answer(&zk, 0, FAKE_DONE, on_reply, s);
		while (heard.calls == 0)
			(void)fake_answer(&zk, (size_t)dice_below(&d, zk.nopen),
			    FAKE_DONE, on_reply, s);
		assert_true(heard.good);
		assert_int_equal(heard.n, 180);
		for (uint64_t w = 0; w < 180; w++)
			assert_string_equal(member(w)->status.host,
			    w < 150 ? "by its mark" : "claim");
		for (uint64_t w = 180; w < 220; w++)
			assert_int_equal(is_quarantined(w), w % 2 == 0);
	}
}

/* ---- what goes wrong ------------------------------------------------------------------- */

/* The i-th reply is no good: it ends, with no result, and once. */
static void
fails_at(size_t i, enum fake_end end)
{
	struct survey *s = start();

	assert_non_null(s);
	for (size_t at = 0; at < i; at++)
		(void)fake_answer(&zk, 0, FAKE_DONE, on_reply, s);
	assert_int_equal(heard.calls, 0);
	(void)fake_answer(&zk, 0, end, on_reply, s);
	assert_int_equal(heard.calls, 1);
	assert_false(heard.good);
	fake_drop(&zk);
}

static void
lost_reply_ends_it(void **state)
{
	(void)state;
	put_agent(1);
	put_agent(2);
	put_mark(3, "gone", "h", NOW_MS);
	fails_at(1, FAKE_UNDONE);
	fails_at(1, FAKE_REFUSED);
	fails_at(2, FAKE_LOST);
	fails_at(2, FAKE_REFUSED);
	for (size_t i = 3; i < 6; i++)
		fails_at(i, FAKE_UNDONE);
	survey(); /* and leaves nothing behind */
	assert_int_equal(heard.n, 2);
}

static void
connection_that_goes_ends_it(void **state)
{
	struct survey *s;

	(void)state;
	zk.away = true;
	assert_null(start());
	zk.away = false;
	put_agent(1);
	s = start();
	(void)fake_answer(&zk, 0, FAKE_DONE, on_reply, s);
	(void)fake_answer(&zk, 0, FAKE_DONE, on_reply, s);
	zk.away = true; /* so that the reads are not submitted */
	(void)fake_answer(&zk, 0, FAKE_DONE, on_reply, s);
	assert_int_equal(heard.calls, 1);
	assert_false(heard.good);
}

static void
cancelled_it_calls_nobody(void **state)
{
	struct survey *s;

	(void)state;
	put_agent(1);
	s = start();
	for (int i = 0; i < 3; i++)
		(void)fake_answer(&zk, 0, FAKE_DONE, on_reply, s);
	survey_cancel(s);
	survey_cancel(NULL);
	assert_int_equal(heard.calls, 0);
}

static void
reply_of_another_is_not_taken(void **state)
{
	struct zk_event ev = { .kind = ZK_REPLY, .op = 4711, .rc = ZK_OK };
	struct survey *s = start();

	(void)state;
	assert_false(survey_reply(s, &ev));
	(void)finish(s);
	assert_true(heard.good);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(asks_for_a_sync_first),
		T(mark_speaks_for_its_owner),
		T(claim_speaks_where_no_mark_does),
		T(silent_claim_is_a_member_that_says_nothing),
		T(what_is_no_claim_of_the_range_is_passed_over),
		T(claim_that_goes_meanwhile_is_none),
		T(two_claims_of_one_worker_id_are_two_members),
		T(quarantined_while_its_window_is_ahead),
		T(marks_of_the_past_are_read_once_and_then_seldom),
		T(claim_in_between_makes_the_mark_news),
		T(next_generation_remembers_nothing),
		T(counts_the_marks_that_were_deleted),
		T(too_large_a_mark_is_asked_for_its_size_from_then_on),
		T(never_more_than_so_many_at_a_time),
		T(order_of_replies_changes_nothing),
		T(lost_reply_ends_it),
		T(connection_that_goes_ends_it),
		T(cancelled_it_calls_nobody),
		T(reply_of_another_is_not_taken),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
