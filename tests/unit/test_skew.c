/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_skew - who refuses, who warns and who serves, in fleets of good and
 * bad clocks: by tables, over random fleets, and in simulated ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dice.h"
#include "skew.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MS INT64_C(1000) /* in microseconds */
#define S (1000 * MS)
#define H_MS INT64_C(3600000)
#define WARN_MS 500
#define REFUSE_MS 10000
#define RENEW_MS 3000
#define FRESH_MS (3 * RENEW_MS)
#define MOVED_MS 30000
#define START_MS INT64_C(1767225600000) /* ZooKeeper's clock */
#define EPOCH 7

static const struct skew_conf conf = { WARN_MS, REFUSE_MS, FRESH_MS, MOVED_MS };

static void
boot_id(uint8_t out[UUID_BYTES], uint64_t host)
{
	memset(out, 0, UUID_BYTES);
	memcpy(out, &host, sizeof(host));
}

/* Of one host: its own skew, and what it publishes. */
static const uint8_t *
own_id(void)
{
	static uint8_t id[UUID_BYTES];

	boot_id(id, UINT64_MAX);
	return (id);
}

static struct skew_peer
peer(uint64_t host, int64_t offset_us)
{
	struct skew_peer p = { .offset_us = offset_us,
		.error_us = MS,
		.stamp_ms = START_MS,
		.epoch = EPOCH };

	boot_id(p.boot_id, host);
	return (p);
}

static mono_t
at_ms(int64_t ms)
{
	return ((mono_t){ (1000000 + ms) * NS_PER_MS });
}

/* A sample taken `ms` after the start, by a good ZooKeeper's clock. */
static struct skew_sample
sample(int64_t ms, int64_t offset_us)
{
	return ((struct skew_sample){ .offset_us = offset_us,
	    .error_us = MS,
	    .stamp_ms = START_MS + ms,
	    .epoch = EPOCH,
	    .when = at_ms(ms) });
}

static struct skew
measured(int64_t offset_us)
{
	struct skew_sample sm = sample(0, offset_us);
	struct skew s;

	skew_init(&s, &conf);
	assert_false(skew_take(&s, &sm, 0));
	return (s);
}

static void
take(struct skew *s, int64_t ms, int64_t offset_us)
{
	struct skew_sample sm = sample(ms, offset_us);

	assert_false(skew_take(s, &sm, 0));
}

static bool
judge(struct skew *s, int64_t ms, const struct skew_peer *peers, size_t n)
{
	return (skew_judge(s, at_ms(ms), peers, n, true, own_id()));
}

/* One host that is `peer` number 1, stamped with the own last stamp. */
static bool
judge_by_one(struct skew *s, int64_t ms, int64_t offset_us)
{
	struct skew_peer p = peer(1, offset_us);

	p.stamp_ms = s->own.stamp_ms;
	p.epoch = s->own.epoch;
	return (judge(s, ms, &p, 1));
}

/* ---- fleets as a table --------------------------------------------------- */

#define FLEET_MAX 1000

struct group {
	unsigned n;
	int64_t offset_ms;
	bool refuses, warns;
};

static const struct {
	const char *why;
	struct group groups[3];
} fleets[] = {
	/* attack 11 */
	{ "one good, one off by 25 s: the server's clock decides",
	    { { 1, 0, false, false }, { 1, 25000, true, true } } },
	{ "a bad first agent refuses when a good one comes",
	    { { 1, -H_MS, true, true }, { 1, 0, false, false } } },
	{ "two good, one off by 11 s",
	    { { 2, 0, false, false }, { 1, 11000, true, true } } },
	{ "two good, one off by 15 s",
	    { { 2, 0, false, false }, { 1, -15000, true, true } } },
	{ "two good, one off by an hour: the good ones' other peer counts",
	    { { 2, 0, false, false }, { 1, H_MS, true, true } } },
	{ "four and four: no side has the other's majority against it",
	    { { 4, 0, false, false }, { 4, 25000, true, true } } },
	{ "450 and 450",
	    { { 450, 3, false, false }, { 450, 25000, true, true } } },
	{ "four and four, eleven seconds",
	    { { 4, 0, false, false }, { 4, -11000, true, true } } },
	{ "bad ones on both sides",
	    { { 2, 0, false, false }, { 2, 20000, true, true },
		{ 2, -20000, true, true } } },
	{ "two hosts, each as far from the server's clock: both",
	    { { 1, -12500, true, true }, { 1, 12500, true, true } } },
	{ "two hosts, 25 s apart, the server's clock nearer to one",
	    { { 1, -5000, false, true }, { 1, 20000, true, true } } },
	{ "both a little off: the middle one is the server's clock",
	    { { 1, -200, false, false }, { 1, 200, false, false } } },
	{ "5 s off: a warning, and not to the others",
	    { { 2, 0, false, false }, { 1, 5000, false, true } } },
	{ "9 s off beside one: the same",
	    { { 1, 0, false, false }, { 1, 9000, false, true } } },
	{ "at the limit, with the error taken off",
	    { { 3, 0, false, false }, { 1, 10001, false, true } } },
	{ "above it", { { 3, 0, false, false }, { 1, 10002, true, true } } },
	{ "at the limit of the warning",
	    { { 3, 0, false, false }, { 1, 500, false, false } } },
	{ "above that", { { 3, 0, false, false }, { 1, 501, false, true } } },
	{ "the server an hour off, all hosts right",
	    { { 3, H_MS, false, false } } },
	{ "the server 11 s off, two hosts right",
	    { { 2, -11000, false, false } } },
	{ "the server 11 s off, one of five hosts wrong",
	    { { 4, 11000, false, false }, { 1, 11000 + H_MS, true, true } } },
	/* The limit that DESIGN.md writes down. */
	{ "two hosts and a wrong server: the nearer to the server is believed",
	    { { 1, H_MS, true, true }, { 1, H_MS - 25000, false, false } } },
	{ "half the mean of the whole would be 7.33 s: self is not in it",
	    { { 2, 0, false, false }, { 1, 11500, true, true } } },
	{ "a majority of bad clocks and the server against one: not to be told",
	    { { 1, 30000, true, true }, { 3, 0, false, false } } },
};

struct fleet {
	struct skew_peer host[FLEET_MAX];
	size_t n;
};

static void
fleet_add(struct fleet *f, int64_t offset_us)
{
	f->host[f->n] = peer(f->n, offset_us);
	f->n++;
}

/* The verdict of host i, who sees all, itself among them. */
static struct skew
fleet_judge(const struct fleet *f, size_t i)
{
	struct skew s = measured(f->host[i].offset_us);

	s.own.error_us = f->host[i].error_us;
	(void)skew_judge(&s, at_ms(0), f->host, f->n, true, f->host[i].boot_id);
	return (s);
}

static void
test_fleets(void **state)
{
	static struct fleet f;

	(void)state;
	for (size_t c = 0; c < COUNT(fleets); c++) {
		size_t i = 0;

		f.n = 0;
		for (size_t g = 0; g < COUNT(fleets[c].groups); g++) {
			for (unsigned k = 0; k < fleets[c].groups[g].n; k++)
				fleet_add(
				    &f, fleets[c].groups[g].offset_ms * MS);
		}
		for (size_t g = 0; g < COUNT(fleets[c].groups); g++) {
			const struct group *want = &fleets[c].groups[g];
			struct skew s;

			if (want->n == 0)
				continue;
			s = fleet_judge(&f, i);
			i += want->n;
			if (s.refused == want->refuses &&
			    s.warned == want->warns && s.phase == SKEW_JUDGED)
				continue;
			fail_msg("%s: group %zu: %s, refused %d, warned %d",
			    fleets[c].why, g, skew_phase_name(s.phase),
			    s.refused, s.warned);
		}
	}
}

/* One host an hour off among 2 to 20: nobody else refuses or warns. */
static void
test_one_bad(void **state)
{
	static struct fleet f;

	(void)state;
	for (size_t good = 1; good <= 20; good++) {
		f.n = 0;
		for (size_t i = 0; i < good; i++)
			fleet_add(&f, ((int64_t)(i % 5) - 2) * 20 * MS);
		fleet_add(&f, H_MS * MS);
		for (size_t i = 0; i < f.n; i++) {
			struct skew s = fleet_judge(&f, i);

			assert_int_equal(s.refused, i == good);
			assert_int_equal(s.warned, i == good);
			assert_int_equal(s.peers, i == good ? good : good - 1);
		}
	}
}

/* An agent with four claims has one vote: its host's. */
static void
test_one_vote_a_host(void **state)
{
	struct skew_peer peers[] = { peer(1, 0), peer(2, H_MS * MS),
		peer(2, H_MS * MS), peer(2, H_MS * MS), peer(2, H_MS * MS) };
	struct skew s = measured(0);

	(void)state;
	assert_true(judge(&s, 0, peers, COUNT(peers)));
	assert_false(s.refused || s.warned);
	assert_int_equal(s.peers, 1);

	/* Its own other claims are no peers that agree. */
	s = measured(H_MS * MS);
	memcpy(peers[1].boot_id, own_id(), UUID_BYTES);
	memcpy(peers[2].boot_id, own_id(), UUID_BYTES);
	memcpy(peers[3].boot_id, own_id(), UUID_BYTES);
	memcpy(peers[4].boot_id, own_id(), UUID_BYTES);
	assert_true(judge(&s, 0, peers, COUNT(peers)));
	assert_true(s.refused);
	s = measured(H_MS * MS);
	assert_true(judge(&s, 0, peers + 1, COUNT(peers) - 1));
	assert_int_equal(s.phase, SKEW_WAITING);
}

/* Of two claims of one host the one heard of last speaks, first or second. */
static void
test_latest_of_a_host(void **state)
{
	struct skew_peer peers[] = { peer(1, 30 * S), peer(1, 0) };

	(void)state;
	peers[1].stamp_ms += 10;
	for (int turn = 0; turn < 2; turn++) {
		struct skew_peer first = peers[0];
		struct skew s = measured(0);

		(void)judge(&s, 0, peers, 2);
		assert_int_equal(s.peers, 1);
		assert_int_equal(s.average_us, 0);
		peers[0] = peers[1];
		peers[1] = first;
	}
	/* But not with one of another epoch, however late. */
	peers[0].stamp_ms = START_MS + 5000;
	peers[0].epoch = EPOCH - 1;
	for (int turn = 0; turn < 2; turn++) {
		struct skew_peer first = peers[0];
		struct skew s = measured(0);

		(void)judge(&s, 0, peers, 2);
		assert_int_equal(s.peers, 1);
		peers[0] = peers[1];
		peers[1] = first;
	}
}

static void
test_median_and_average(void **state)
{
	static const struct {
		const char *why;
		int64_t own_ms, peer_ms[4];
		size_t n;
		int64_t average_us;
		unsigned counted;
	} cases[] = {
		{ "mean of those near the median, who is not is left out", 0,
		    { 100, 200, 5000 }, 3, 150 * MS, 2 },
		{ "the middle one may be the server's", 400, { -300 }, 1,
		    -300 * MS, 1 },
		{ "at 500 ms from the median: counted", 0, { 500 }, 1, 500 * MS,
		    1 },
		{ "above: the median itself", 0, { 501 }, 1, 0, 0 },
		{ "of two middle ones the nearer to the server's", 3000,
		    { 2000, 9000 }, 2, 2000 * MS, 1 },
		{ "below it too", -3000, { -2000, -9000 }, 2, -2000 * MS, 1 },
		{ "the own vote counts in the median, not in the average", 2000,
		    { 2100, 9000, -7000 }, 3, 2100 * MS, 1 },
		{ "refused ones count in the median", 20000,
		    { 20000, 20000, 0 }, 3, 20000 * MS, 2 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct skew s = measured(cases[i].own_ms * MS);
		struct skew_peer peers[4];

		for (size_t k = 0; k < cases[i].n; k++)
			peers[k] = peer(k, cases[i].peer_ms[k] * MS);
		(void)judge(&s, 0, peers, cases[i].n);
		if (s.average_us != cases[i].average_us ||
		    s.peers != cases[i].counted ||
		    s.skew_us != cases[i].own_ms * MS - s.average_us)
			fail_msg("%s: average %" PRId64 " us of %u",
			    cases[i].why, s.average_us, s.peers);
	}
}

/* ---- what counts --------------------------------------------------------- */

static void
test_freshness(void **state)
{
	static const struct {
		const char *why;
		int64_t stamp_ms, epoch, error_us;
		bool counts;
	} cases[] = {
		{ "as old as may be", -FRESH_MS, EPOCH, MS, true },
		{ "older", -FRESH_MS - 1, EPOCH, MS, false },
		{ "as much later as may be", FRESH_MS, EPOCH, MS, true },
		{ "later than that", FRESH_MS + 1, EPOCH, MS, false },
		{ "of an earlier leader", 0, EPOCH - 1, MS, false },
		{ "of a later leader", 0, EPOCH + 1, MS, false },
		{ "of a server alone", 0, 0, MS, false },
		{ "an error of 1 s", 0, EPOCH, S, true },
		{ "an error above 1 s is no sample", 0, EPOCH, S + 1, false },
		{ "an error below 0 is none either", 0, EPOCH, -1, false },
		{ "the first day", -START_MS, EPOCH, MS, false },
		{ "the last", INT64_MAX - START_MS, EPOCH, MS, false },
		{ "the end of time", INT64_MIN, EPOCH, MS, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct skew_peer p = peer(1, 0);
		struct skew s = measured(H_MS * MS);

		p.stamp_ms = add_sat(p.stamp_ms, cases[i].stamp_ms);
		p.epoch = cases[i].epoch;
		p.error_us = cases[i].error_us;
		assert_true(judge(&s, 0, &p, 1));
		if ((s.phase == SKEW_JUDGED) != cases[i].counts)
			fail_msg(
			    "%s: %s", cases[i].why, skew_phase_name(s.phase));
	}
}

static void
test_samples(void **state)
{
	struct skew_sample sm = sample(0, 30 * S);
	struct skew s;

	(void)state;
	/* attack 18: SIGSTOP with a write in flight, +30 s give or take 30 */
	skew_init(&s, &conf);
	sm.error_us = 30 * S;
	assert_false(skew_take(&s, &sm, 0));
	assert_false(s.has_own);
	assert_false(judge_by_one(&s, 0, 0));
	assert_int_equal(s.phase, SKEW_UNMEASURED);
	assert_false(skew_permits(&s));
	sm.error_us = -1;
	assert_false(skew_take(&s, &sm, 0));
	assert_false(s.has_own);

	s = measured(0);
	sm.error_us = S + 1;
	assert_false(skew_take(&s, &sm, 0));
	assert_int_equal(s.own.offset_us, 0);
	(void)judge_by_one(&s, 0, 0);
	assert_true(skew_permits(&s));

	/* The least error of five wins, with the newest one's stamp. */
	skew_init(&s, &conf);
	for (int i = 0; i < 5; i++) {
		sm = sample(i * 10, i * MS);
		sm.error_us = i == 1 ? 2 * MS : 20 * MS;
		assert_false(skew_take(&s, &sm, 0));
	}
	assert_int_equal(s.own.offset_us, 1 * MS);
	assert_in_range(s.own.error_us, 2 * MS, 2 * MS + 100);
	assert_int_equal(s.own.stamp_ms, START_MS + 40);
	assert_int_equal(s.own.when.ns, at_ms(40).ns);
	/* Five more, and it is forgotten. */
	for (int i = 5; i < 10; i++) {
		sm = sample(i * 10, i * MS);
		sm.error_us = 20 * MS;
		assert_false(skew_take(&s, &sm, 0));
	}
	assert_int_equal(s.own.offset_us, 9 * MS);
}

/* A sample of before an outage of an hour is not the best of the last few. */
static void
test_samples_age(void **state)
{
	struct skew s = measured(0);
	struct skew_sample sm = sample(H_MS, 900 * MS);

	(void)state;
	sm.error_us = 10 * MS;
	assert_false(skew_take(&s, &sm, 0)); /* 250 ppm: drift, no move */
	assert_int_equal(s.own.offset_us, 900 * MS);
	assert_int_equal(s.own.error_us, 10 * MS);
}

static void
test_own_steps(void **state)
{
	struct skew s = measured(0);
	struct skew_sample sm;

	(void)state;
	(void)judge_by_one(&s, 0, 0);
	/* A step ends the measurement: worse but later counts. */
	sm = sample(3000, 7 * S + 20 * MS);
	sm.error_us = 30 * MS;
	assert_false(skew_take(&s, &sm, 7 * S));
	assert_int_equal(s.own.offset_us, 7 * S + 20 * MS);
	assert_int_equal(s.own.error_us, 30 * MS);
	assert_int_equal(s.phase, SKEW_JUDGED);
	/* A slew does not: the better one goes on, carried along. */
	s = measured(0);
	sm = sample(3000, 15 * MS);
	sm.error_us = 30 * MS;
	assert_false(skew_take(&s, &sm, 3 * MS));
	assert_int_equal(s.own.offset_us, 3 * MS);
	/* Steps are summed up while no sample is any good. */
	s = measured(0);
	sm = sample(3000, -40 * S);
	sm.error_us = 2 * S;
	assert_false(skew_take(&s, &sm, -12 * S));
	assert_int_equal(s.own.offset_us, -12 * S);
	sm = sample(6000, -20 * S);
	assert_false(skew_take(&s, &sm, -8 * S));
	assert_int_equal(s.own.offset_us, -20 * S);
}

/* A step that one says and nobody sees is the reference's, and the reverse. */
static void
test_whose_step(void **state)
{
	static const struct {
		const char *why;
		int64_t offset_us, stepped_us, error_us, epoch;
		bool moved;
	} cases[] = {
		{ "nothing", 0, 0, MS, EPOCH, false },
		{ "noise", 240 * MS, 0, MS, EPOCH, false },
		{ "more than noise", 260 * MS, 0, MS, EPOCH, true },
		{ "noise of a bad sample", 260 * MS, 0, 100 * MS, EPOCH,
		    false },
		{ "ahead", 20 * S, 0, MS, EPOCH, true },
		{ "back", -20 * S, 0, MS, EPOCH, true },
		{ "an own step", 20 * S, 20 * S, MS, EPOCH, false },
		{ "an own step back", -H_MS * MS, -H_MS * MS, MS, EPOCH,
		    false },
		{ "an own step that the offset does not show: both stepped", 0,
		    20 * S, MS, EPOCH, true },
		{ "half of it own", 20 * S, 10 * S, MS, EPOCH, true },
		{ "another leader, the same clock", 0, 0, MS, EPOCH + 1, true },
		{ "another leader and an own step", 5 * S, 5 * S, MS, EPOCH + 1,
		    true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct skew s = measured(0);
		struct skew_sample sm = sample(3000, cases[i].offset_us);

		(void)judge_by_one(&s, 0, 0);
		sm.error_us = cases[i].error_us;
		sm.epoch = cases[i].epoch;
		if (skew_take(&s, &sm, cases[i].stepped_us) != cases[i].moved ||
		    (s.phase == SKEW_HELD) != cases[i].moved)
			fail_msg(
			    "%s: %s", cases[i].why, skew_phase_name(s.phase));
		if (cases[i].moved) /* and no older sample competes */
			assert_int_equal(s.own.offset_us, cases[i].offset_us);
	}
}

/* ---- verdicts in time ---------------------------------------------------- */

static void
test_hysteresis(void **state)
{
	static const struct {
		int64_t skew_us;
		bool refused;
	} steps[] = {
		{ 9999 * MS, false },
		{ 10001 * MS, false }, /* 1 ms of error */
		{ 10001 * MS + 1, true },
		{ 10000 * MS, true },
		{ 9500 * MS, true },
		{ 9001 * MS, true },
		{ 9001 * MS - 1, false },
		{ 9500 * MS, false },
		{ 10001 * MS, false },
		{ -10001 * MS, false },
		{ -10001 * MS - 1, true },
		{ -9001 * MS, true },
		{ -9001 * MS + 1, false },
	};
	struct skew s = measured(0);

	(void)state;
	for (size_t i = 0; i < COUNT(steps); i++) {
		int64_t ms = (int64_t)(i + 1) * RENEW_MS;
		struct skew_sample sm = sample(ms, steps[i].skew_us);

		assert_false(skew_take(
		    &s, &sm, sub_sat(steps[i].skew_us, s.own.offset_us)));
		s.own.error_us = MS;
		s.own.offset_us = steps[i].skew_us;
		(void)judge_by_one(&s, ms, 0);
		assert_int_equal(s.skew_us, steps[i].skew_us);
		if (s.refused != steps[i].refused)
			fail_msg("step %zu: refused %d", i, s.refused);
		assert_int_equal(skew_permits(&s), !steps[i].refused);
		assert_true(s.warned);
	}
}

/* attack 18: nobody else lives; an hour from ZooKeeper's clock is no reason */
static void
test_alone(void **state)
{
	struct skew s = measured(H_MS * MS);
	char words[SKEW_WORDS_MAX];

	(void)state;
	assert_false(skew_permits(&s));
	assert_true(skew_judge(&s, at_ms(0), NULL, 0, false, own_id()));
	assert_int_equal(s.phase, SKEW_ALONE);
	assert_true(skew_permits(&s));
	assert_true(skew_words(&s, words, sizeof(words)) > 0);
	assert_string_equal(words,
	    "3600 s ahead of ZooKeeper's clock (error 1 ms),"
	    " no peer to compare with");
	/* Said once. */
	take(&s, 3000, H_MS * MS);
	assert_false(skew_judge(&s, at_ms(3000), NULL, 0, false, own_id()));
	/* A leap is followed: nobody says otherwise. */
	assert_true(skew_good_at(&s, H_MS * MS));
	/* A newcomer without an offset changes nothing, a good one does. */
	for (int64_t ms = 6000; ms < 60000; ms += 3000) {
		take(&s, ms, H_MS * MS);
		assert_false(judge(&s, ms, NULL, 0));
		assert_true(skew_permits(&s));
	}
	assert_true(judge_by_one(&s, 60000, 0));
	assert_true(s.refused);
	/* And it goes again. */
	assert_true(skew_judge(&s, at_ms(60000), NULL, 0, false, own_id()));
	assert_true(skew_permits(&s));
}

/* attack 18: others live, none fresh: a newcomer does not pass unchecked */
static void
test_none_fresh_at_start(void **state)
{
	struct skew s = measured(H_MS * MS);

	(void)state;
	assert_true(judge(&s, 0, NULL, 0));
	assert_int_equal(s.phase, SKEW_WAITING);
	assert_false(skew_good_at(&s, 0));
	for (int64_t ms = 1000; ms < FRESH_MS; ms += 1000) {
		take(&s, ms, H_MS * MS);
		assert_false(judge(&s, ms, NULL, 0));
		assert_false(skew_permits(&s));
	}
	assert_false(judge(&s, FRESH_MS - 1, NULL, 0));
	assert_true(judge(&s, FRESH_MS, NULL, 0));
	assert_int_equal(s.phase, SKEW_ALONE);
	assert_true(skew_permits(&s));

	/* Heard of in time: judged. */
	s = measured(H_MS * MS);
	assert_true(judge(&s, 0, NULL, 0));
	assert_true(judge_by_one(&s, 3000, 0));
	assert_int_equal(s.phase, SKEW_JUDGED);
	assert_true(s.refused);

	/* Nobody came in time, but the others went: serve at once. */
	s = measured(H_MS * MS);
	assert_true(judge(&s, 0, NULL, 0));
	assert_true(skew_judge(&s, at_ms(1), NULL, 0, false, own_id()));
	assert_true(skew_permits(&s));
}

/* While running: a good verdict lasts; a bad one ends with the repair. */
static void
test_none_fresh_later(void **state)
{
	struct skew s = measured(0);
	int64_t ms;

	(void)state;
	(void)judge_by_one(&s, 0, 0);
	for (ms = 3000; ms < 3000 + FRESH_MS; ms += 3000) {
		take(&s, ms, 0);
		assert_false(judge(&s, ms, NULL, 0));
		assert_int_equal(s.phase, SKEW_JUDGED);
	}
	take(&s, ms, 0);
	assert_true(judge(&s, ms, NULL, 0));
	assert_int_equal(s.phase, SKEW_ALONE);

	s = measured(H_MS * MS);
	(void)judge_by_one(&s, 0, 0);
	for (ms = 3000; ms < 100000; ms += 3000) {
		take(&s, ms, H_MS * MS);
		(void)judge(&s, ms, NULL, 0);
		assert_false(skew_permits(&s));
	}
	for (int i = 0; i < 2; i++) {
		struct skew_sample sm = sample(ms, 0);

		assert_false(skew_take(&s, &sm, i == 0 ? -H_MS * MS : 0));
		(void)judge(&s, ms, NULL, 0);
		assert_true(skew_permits(&s));
		ms += 3000;
	}
	/* Silence after an own measurement of long ago is no repair. */
	for (int i = 0; i < 2; i++) {
		const struct skew_peer peers[] = { peer(1, -3 * S),
			peer(2, -3 * S), peer(3, -3 * S) };

		s = measured(8 * S);
		(void)judge(&s, 0, peers, COUNT(peers));
		assert_true(s.refused);
		(void)judge(&s, 1000, NULL, 0);
		if (i == 1)
			take(&s, 9000, 8 * S);
		(void)judge(&s, 1000 + FRESH_MS, NULL, 0);
		assert_int_equal(skew_permits(&s), i == 1);
	}
}

/*
 * attack 13: a leader change, or the leader's clock steps.  The others'
 * offsets are from before, and then come one by one.
 */
static void
test_reference_moves(void **state)
{
	static const int64_t jumps_ms[] = { 300, 5000, 11000, 20000, H_MS,
		24 * H_MS };

	(void)state;
	for (size_t j = 0; j < COUNT(jumps_ms) * 4; j++) {
		int64_t jump = jumps_ms[j / 4] * (j % 2 == 0 ? 1 : -1);
		int64_t epoch = EPOCH + (int64_t)(j / 2 % 2);
		struct skew_peer peers[] = { peer(1, 0), peer(2, 0),
			peer(3, H_MS * MS) };
		struct skew_sample sm = sample(3000 + jump, -jump * MS);
		struct skew s = measured(0);
		int64_t late;

		(void)judge(&s, 0, peers, COUNT(peers));
		sm.epoch = epoch;
		sm.when = at_ms(3000);
		assert_true(skew_take(&s, &sm, 0));
		assert_int_equal(s.phase, SKEW_HELD);
		/* Their stamps: up to just before it. */
		for (size_t i = 0; i < COUNT(peers); i++)
			peers[i].stamp_ms = START_MS + 2990;
		(void)judge(&s, 3000, peers, COUNT(peers));
		assert_int_equal(s.phase, SKEW_HELD);
		assert_false(s.refused || s.warned);
		assert_true(skew_permits(&s));
		/* The bad host and one other are heard of; one is not. */
		late = -jump < 2 * FRESH_MS && jump < 0 && epoch == EPOCH
			   ? 4000 - jump
			   : 4000;
		for (size_t i = 1; i < COUNT(peers); i++) {
			peers[i].stamp_ms = START_MS + jump + late;
			peers[i].epoch = epoch;
			peers[i].offset_us -= jump * MS;
		}
		sm = sample(late + jump, -jump * MS);
		sm.epoch = epoch;
		sm.when = at_ms(late);
		(void)skew_take(&s, &sm, 0);
		(void)judge(&s, late, peers, COUNT(peers));
		assert_int_equal(s.phase, SKEW_HELD);
		assert_true(skew_permits(&s));
		/* All are: a verdict again. */
		peers[0] = peers[1];
		boot_id(peers[0].boot_id, 1);
		assert_true(judge(&s, late + 1, peers, COUNT(peers)));
		assert_int_equal(s.phase, SKEW_JUDGED);
		assert_false(s.refused || s.warned);
		assert_int_equal(s.peers, 2);
		assert_int_equal(s.average_us, -jump * MS);
	}
}

/* A peer that stays away ends the hold when the time is up, not before. */
static void
test_hold_ends(void **state)
{
	struct skew_peer peers[] = { peer(1, 0), peer(2, 0) };
	struct skew s = measured(0);
	struct skew_sample sm = sample(3000, 0);
	int64_t until = 3000 + MOVED_MS;

	(void)state;
	(void)judge(&s, 0, peers, 2);
	sm.epoch = peers[1].epoch = EPOCH + 1;
	assert_true(skew_take(&s, &sm, 0));
	for (int64_t ms = 6000; ms < until; ms += 3000) {
		sm = sample(ms, 0);
		sm.epoch = EPOCH + 1;
		assert_false(skew_take(&s, &sm, 0));
		peers[1].stamp_ms = START_MS + ms;
		peers[1].offset_us = H_MS * MS;
		assert_false(judge(&s, ms, peers, 2));
		assert_int_equal(s.phase, SKEW_HELD);
	}
	assert_false(judge(&s, until - 1, peers, 2));
	assert_true(judge(&s, until, peers, 2));
	assert_int_equal(s.phase, SKEW_JUDGED);

	/* Nobody comes at all: alone, since nothing speaks against it. */
	sm = sample(until, 0);
	sm.epoch = EPOCH + 2;
	sm.when = at_ms(until);
	assert_true(skew_take(&s, &sm, 0));
	assert_false(judge(&s, until, peers, 2));
	assert_false(judge(&s, until + MOVED_MS - 1, peers, 2));
	assert_true(judge(&s, until + MOVED_MS, peers, 2));
	assert_int_equal(s.phase, SKEW_ALONE);
}

/* A stamp of the very instant of the move may be from before: not later. */
static void
test_stamps_are_later(void **state)
{
	struct skew s = measured(0);
	struct skew_sample sm = sample(8000, -5 * S);

	(void)state;
	(void)judge_by_one(&s, 0, 0);
	sm.when = at_ms(3000);
	assert_true(skew_take(&s, &sm, 0));
	assert_false(judge_by_one(&s, 3000, -5 * S));
	assert_int_equal(s.phase, SKEW_HELD);
	sm.stamp_ms++;
	assert_false(skew_take(&s, &sm, 0));
	assert_true(judge_by_one(&s, 3001, -5 * S));
	assert_int_equal(s.phase, SKEW_JUDGED);
}

/* While the verdict stands, steps of the own clock are known all the same. */
static void
test_own_step_while_held(void **state)
{
	struct skew s = measured(0);
	struct skew_sample sm = sample(3000, 7 * S);

	(void)state;
	(void)judge_by_one(&s, 0, 0);
	assert_true(skew_take(&s, &sm, 0));
	assert_false(judge(&s, 3000, NULL, 0));
	assert_true(skew_permits(&s));
	sm = sample(6000, 7 * S + H_MS * MS);
	assert_false(skew_take(&s, &sm, H_MS * MS));
	assert_true(judge(&s, 6000, NULL, 0));
	assert_int_equal(s.phase, SKEW_HELD);
	assert_false(skew_permits(&s));
	sm = sample(9000, 7 * S);
	assert_false(skew_take(&s, &sm, -H_MS * MS));
	assert_true(judge(&s, 9000, NULL, 0));
	assert_true(skew_permits(&s));

	/* But one given without peers is no figure to carry along. */
	s = measured(H_MS * MS);
	(void)skew_judge(&s, at_ms(0), NULL, 0, false, own_id());
	sm = sample(3000, 2 * H_MS * MS);
	assert_true(skew_take(&s, &sm, 0));
	assert_int_equal(s.phase, SKEW_HELD);
	(void)judge(&s, 3000, NULL, 0);
	sm = sample(6000, 3 * H_MS * MS);
	assert_false(skew_take(&s, &sm, H_MS * MS));
	(void)judge(&s, 6000, NULL, 0);
	assert_true(skew_permits(&s));
	assert_true(skew_good_at(&s, H_MS * MS));
}

/* Without a verdict none stands: no hold may let a newcomer serve. */
static void
test_move_before_a_verdict(void **state)
{
	struct skew s = measured(H_MS * MS);
	struct skew_sample sm = sample(1000, 0);

	(void)state;
	assert_true(skew_take(&s, &sm, 0));
	assert_int_equal(s.phase, SKEW_UNMEASURED);
	assert_true(judge(&s, 1000, NULL, 0));
	assert_int_equal(s.phase, SKEW_WAITING);
	sm = sample(4000, H_MS * MS);
	assert_true(skew_take(&s, &sm, 0));
	assert_false(skew_permits(&s));
	/* One from before the move does not judge. */
	assert_false(judge_by_one(&s, 4000, 0));
	assert_true(judge(&s, 1000 + FRESH_MS, NULL, 0));
	assert_true(skew_permits(&s));
}

/* attack 15 (d): a resume carries the last verdict. */
static void
test_resume(void **state)
{
	struct skew s;

	(void)state;
	for (int refused = 0; refused < 2; refused++) {
		skew_init(&s, &conf);
		skew_resume(&s, refused, refused ? 40 * S : 20 * MS);
		assert_int_equal(skew_permits(&s), !refused);
		assert_false(judge_by_one(&s, 0, 0)); /* not measured */
		take(&s, 0, refused ? 40 * S : 20 * MS);
		assert_false(judge(&s, 0, NULL, 0));
		assert_int_equal(skew_permits(&s), !refused);
		assert_true(judge_by_one(&s, 1, 0));
		assert_int_equal(s.phase, SKEW_JUDGED);
		assert_int_equal(skew_permits(&s), !refused);
	}
	/* A step made before the first sample: known. */
	skew_init(&s, &conf);
	skew_resume(&s, false, 0);
	struct skew_sample sm = sample(0, H_MS * MS);
	assert_false(skew_take(&s, &sm, H_MS * MS));
	(void)judge(&s, 0, NULL, 0);
	assert_false(skew_permits(&s));
	/* Too far off and serving: it was alone. */
	skew_init(&s, &conf);
	skew_resume(&s, false, H_MS * MS);
	take(&s, 0, H_MS * MS);
	(void)judge(&s, 0, NULL, 0);
	assert_true(skew_permits(&s));
	assert_true(skew_good_at(&s, S));
	assert_false(judge(&s, FRESH_MS - 1, NULL, 0));
	assert_true(judge(&s, FRESH_MS, NULL, 0));
	assert_int_equal(s.phase, SKEW_ALONE);
}

static void
test_leap(void **state)
{
	struct skew s = measured(-30 * S);

	(void)state;
	assert_false(skew_good_at(&s, 0));
	(void)judge_by_one(&s, 0, 0);
	assert_true(s.refused);
	/* attack 12: the step that repairs it */
	assert_true(skew_good_at(&s, 30 * S));
	assert_true(skew_good_at(&s, 40 * S));
	assert_false(skew_good_at(&s, 41 * S));
	assert_false(skew_good_at(&s, 0));
	assert_false(skew_good_at(&s, INT64_MAX));
	assert_false(skew_good_at(&s, INT64_MIN));
	s = measured(0);
	(void)judge_by_one(&s, 0, 0);
	assert_true(skew_good_at(&s, 3 * S));
	assert_false(skew_good_at(&s, H_MS * MS));
}

/* ---- words --------------------------------------------------------------- */

static void
test_words(void **state)
{
	static const struct {
		int64_t own_us, peer_us;
		const char *words;
	} cases[] = {
		{ 12400 * MS, 0,
		    "12.4 s ahead of the average of 1 peer"
		    " (error 1 ms, serves again below 9 s)" },
		{ -3 * S, 0,
		    "3 s behind the average of 1 peer"
		    " (error 1 ms, refuses above 10 s)" },
		{ 20 * MS, 20 * MS,
		    "level with the average of 1 peer"
		    " (error 1 ms, refuses above 10 s)" },
		{ 50, 0,
		    "0.05 ms ahead of the average of 1 peer"
		    " (error 1 ms, refuses above 10 s)" },
		{ 1234567, 0,
		    "1.234 s ahead of the average of 1 peer"
		    " (error 1 ms, refuses above 10 s)" },
		{ 2 * S, 20 * S,
		    "level with the median"
		    " (error 1 ms, refuses above 10 s)" },
		{ 11 * S, -20 * S,
		    "11 s ahead of ZooKeeper's clock"
		    " (error 1 ms, serves again below 9 s)" },
	};
	char words[SKEW_WORDS_MAX];
	struct skew s;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		s = measured(cases[i].own_us);
		(void)judge_by_one(&s, 0, cases[i].peer_us);
		assert_int_equal(skew_words(&s, words, sizeof(words)),
		    strlen(cases[i].words));
		assert_string_equal(words, cases[i].words);
	}
	skew_init(&s, &conf);
	assert_true(skew_words(&s, words, sizeof(words)) > 0);
	assert_string_equal(words, "not measured yet");
	skew_resume(&s, true, 11 * S);
	assert_true(skew_words(&s, words, sizeof(words)) > 0);
	assert_string_equal(words,
	    "11 s ahead of the peers before the restart (error 0 ms,"
	    " serves again below 9 s), last verdict stands");
	s = measured(-1);
	(void)judge(&s, 0, NULL, 0);
	assert_true(skew_words(&s, words, sizeof(words)) > 0);
	assert_string_equal(words,
	    "0.001 ms behind ZooKeeper's clock (error 1 ms),"
	    " waiting for the offsets of peers");
	/* Cut, not overrun. */
	for (size_t n = 0; n < 40; n++) {
		memset(words, 'x', sizeof(words));
		assert_int_equal(skew_words(&s, words, n), -1);
		if (n > 0)
			assert_int_equal(strlen(words), n - 1);
		assert_int_equal(words[n], 'x');
	}
	assert_string_equal(skew_phase_name(SKEW_HELD), "held");
}

/* Longest figures there can be. */
static void
test_words_fit(void **state)
{
	char words[SKEW_WORDS_MAX];
	struct skew s;

	(void)state;
	for (int phase = 0; phase <= SKEW_HELD; phase++) {
		for (int flags = 0; flags < 16; flags++) {
			skew_init(&s, &conf);
			s.conf.refuse_ms = INT64_MAX;
			s.phase = (enum skew_phase)phase;
			s.skew_us = s.own.offset_us = INT64_MIN;
			s.own.error_us = S;
			s.peers = (flags & 1) != 0 ? UINT32_MAX : 0;
			s.refused = (flags & 2) != 0;
			s.alone = (flags & 4) != 0;
			s.has_own = (flags & 8) != 0;
			assert_true(skew_words(&s, words, sizeof(words)) > 0);
		}
	}
}

/* ---- anything may be written in a mark ----------------------------------- */

static int64_t
wild(struct dice *d)
{
	int64_t v = (int64_t)dice_number(d);

	switch (dice_below(d, 6)) {
	case 0:
		return (INT64_MIN);
	case 1:
		return (INT64_MAX);
	case 2:
		return (sub_sat(0, v));
	case 3:
		return (dice_range(d, -20 * S, 20 * S));
	}
	return (v);
}

static void
test_wild(void **state)
{
	static struct skew_peer peers[SKEW_PEERS_MAX + 9];
	struct dice d = dice_open("wild");

	(void)state;
	for (int world = 0; world < 3000; world++) {
		size_t n = dice_below(&d, world % 500 == 0 ? COUNT(peers) : 6);
		struct skew s;

		skew_init(&s, &conf);
		if (dice_below(&d, 2) == 0)
			skew_resume(&s, dice_below(&d, 2) == 0, wild(&d));
		for (int round = 0; round < 6; round++) {
			struct skew_sample sm = { wild(&d),
				dice_range(&d, -1, S + 1), wild(&d),
				dice_range(&d, 0, 1), { wild(&d) } };
			char words[SKEW_WORDS_MAX];

			(void)skew_take(&s, &sm, wild(&d));
			for (size_t i = 0; i < n; i++) {
				peers[i] =
				    peer(dice_below(&d, n) + i % 2, wild(&d));
				if (dice_below(&d, 2) == 0)
					peers[i].stamp_ms = wild(&d);
				else
					peers[i].stamp_ms =
					    add_sat(s.own.stamp_ms, 1);
				peers[i].epoch = dice_range(&d, 0, 1);
				peers[i].error_us = wild(&d);
				if (dice_below(&d, 2) == 0)
					peers[i].error_us = 1;
			}
			(void)skew_judge(&s, (mono_t){ wild(&d) }, peers, n,
			    dice_below(&d, 4) != 0, own_id());
			(void)skew_good_at(&s, wild(&d));
			assert_true(skew_words(&s, words, sizeof(words)) > 0);
			assert_false(s.refused && skew_permits(&s));
		}
	}
}

/* More hosts than have room: the first of them are looked at. */
static void
test_too_many(void **state)
{
	static struct skew_peer peers[SKEW_PEERS_MAX + 9];
	struct skew s = measured(0);

	(void)state;
	for (size_t i = 0; i < COUNT(peers); i++)
		peers[i] = peer(i, 0);
	assert_true(judge(&s, 0, peers, COUNT(peers)));
	assert_int_equal(s.peers, SKEW_PEERS_MAX);
}

/* ---- over random fleets -------------------------------------------------- */

/*
 * If most voices, ZooKeeper's among them, are within warn_ms of the truth, so
 * is the median, and the average within twice as much: none of those refuses,
 * and who is further off than that and the limit does.
 */
static void
check_majority(const struct fleet *f, int64_t truth_us)
{
	int64_t warn = WARN_MS * MS, refuse = REFUSE_MS * MS;
	size_t good = llabs(truth_us) <= warn ? 1 : 0;

	for (size_t i = 0; i < f->n; i++)
		good += llabs(f->host[i].offset_us - truth_us) <= warn;
	if (2 * good <= f->n + 1)
		return;
	for (size_t i = 0; i < f->n; i++) {
		int64_t off = llabs(f->host[i].offset_us - truth_us);
		struct skew s = fleet_judge(f, i);

		if (f->n == 1)
			continue;
		assert_int_equal(s.phase, SKEW_JUDGED);
		if (off <= warn)
			assert_false(s.refused);
		if (off > refuse + 2 * warn + f->host[i].error_us)
			assert_true(s.refused);
	}
}

static void
shuffle(struct dice *d, struct fleet *f)
{
	for (size_t i = f->n; i > 1; i--) {
		size_t k = dice_below(d, i);
		struct skew_peer p = f->host[i - 1];

		f->host[i - 1] = f->host[k];
		f->host[k] = p;
	}
}

/* The verdict is the same in any order, and with claims that repeat a host. */
static void
check_order(struct dice *d, const struct fleet *fleet)
{
	static struct fleet f;
	struct skew before, after;
	struct skew_peer me = fleet->host[dice_below(d, fleet->n)];
	struct skew s = measured(me.offset_us);

	f = *fleet;
	before = after = s;
	(void)skew_judge(&before, at_ms(0), f.host, f.n, true, me.boot_id);
	for (size_t i = dice_below(d, 4); i > 0; i--) {
		f.host[f.n] = f.host[dice_below(d, f.n)];
		/* the same, or one that the host said before */
		if (dice_below(d, 2) == 0) {
			f.host[f.n].stamp_ms -= dice_range(d, 1, FRESH_MS);
			f.host[f.n].offset_us = wild(d);
		}
		f.n++;
	}
	shuffle(d, &f);
	(void)skew_judge(&after, at_ms(0), f.host, f.n, true, me.boot_id);
	assert_int_equal(before.skew_us, after.skew_us);
	assert_int_equal(before.average_us, after.average_us);
	assert_int_equal(before.peers, after.peers);
	assert_int_equal(before.refused, after.refused);
	assert_int_equal(before.phase, after.phase);
}

static int64_t
random_offset(struct dice *d, int64_t truth_us)
{
	switch (dice_below(d, 8)) {
	case 0:
		return (truth_us + dice_range(d, -H_MS, H_MS) * MS);
	case 1:
		return (truth_us + dice_range(d, -30 * S, 30 * S));
	case 2:
		return (truth_us + dice_range(d, 8 * S, 12 * S));
	case 3:
		return (truth_us + (dice_below(d, 2) == 0 ? 1 : -1) *
				       (WARN_MS * MS + dice_range(d, -2, 2)));
	}
	return (truth_us + dice_range(d, -WARN_MS * MS, WARN_MS * MS));
}

static void
test_random_fleets(void **state)
{
	static struct fleet f;
	struct dice d = dice_open("random fleets");

	(void)state;
	for (int world = 0; world < 100000; world++) {
		size_t n = 1 + dice_below(&d, world % 1000 == 0 ? 200 : 12);
		int64_t truth_us =
		    dice_below(&d, 3) == 0 ? random_offset(&d, 0) : 0;

		f.n = 0;
		for (size_t i = 0; i < n; i++) {
			fleet_add(&f, random_offset(&d, truth_us));
			f.host[i].error_us = dice_range(&d, 0, S / 10);
		}
		check_majority(&f, truth_us);
		for (size_t i = 0; i < n; i++) {
			if (dice_below(&d, 8) == 0)
				f.host[i].stamp_ms +=
				    dice_range(&d, -2 * FRESH_MS, FRESH_MS);
		}
		check_order(&d, &f);
	}
}

/* ---- a fleet in time ----------------------------------------------------- */

/*
 * Agents renew every RENEW_MS: each write publishes what the one before it
 * measured.  Meanwhile leaders change, leaders' clocks step, hosts' clocks
 * step and are repaired, agents start anew, writes take too long.
 */
#define AGENTS_MAX 50
#define GOOD_US (20 * MS)
#define RTT_MAX_US (60 * MS)

struct sim_agent {
	struct skew skew;
	int64_t clock_us; /* off the truth */
	int64_t told_us; /* what skew has been told of that */
	int64_t next_ms;
	bool bad;
	bool up; /* its claim stands */
	int since; /* renewals since its clock was set, or it started */
	struct skew_peer said; /* by its mark */
	bool has_said;
};

struct sim {
	struct dice *d;
	struct sim_agent agent[AGENTS_MAX];
	size_t n, bad, bad_max;
	int64_t now_ms, leader_us, epoch, moved_ms, started_ms;
	bool leader_moves, restarts;
	int lost_percent;
	unsigned moves, refusals, repairs; /* that something happened at all */
};

static mono_t
sim_mono(const struct sim *w)
{
	return (at_ms(w->now_ms));
}

static void
sim_publish(struct sim_agent *a, size_t host)
{
	a->up = true;
	a->has_said = a->skew.has_own;
	a->said = (struct skew_peer){ .offset_us = a->skew.own.offset_us,
		.error_us = a->skew.own.error_us,
		.stamp_ms = a->skew.own.stamp_ms,
		.epoch = a->skew.own.epoch };
	boot_id(a->said.boot_id, host);
}

static bool
sim_measure(struct sim *w, struct sim_agent *a)
{
	int64_t rtt_us = dice_range(w->d, 100, RTT_MAX_US), stepped_us;
	int64_t at_us = w->now_ms * 1000 + dice_range(w->d, 0, rtt_us);
	int64_t stamp_ms = START_MS + (at_us + w->leader_us) / 1000;
	bool lost = (int)dice_below(w->d, 100) < w->lost_percent;
	struct skew_sample sm = {
		.error_us = lost ? 5 * S : rtt_us / 2 + MS,
		.stamp_ms = stamp_ms,
		.epoch = w->epoch,
		.when = { sim_mono(w).ns + rtt_us * 500 },
	};

	sm.offset_us = START_MS * 1000 + w->now_ms * 1000 + rtt_us / 2 +
		       a->clock_us - stamp_ms * 1000;
	if (lost)
		sm.offset_us += dice_range(w->d, -5 * S, 5 * S);
	stepped_us = a->clock_us - a->told_us;
	a->told_us = a->clock_us;
	w->moves += skew_take(&a->skew, &sm, stepped_us);
	return (!lost);
}

static void
sim_judge(struct sim *w, struct sim_agent *a, size_t host)
{
	struct skew_peer peers[AGENTS_MAX];
	uint8_t id[UUID_BYTES];
	bool others = false;
	size_t n = 0;

	boot_id(id, host);
	for (size_t i = 0; i < w->n; i++) {
		if (!w->agent[i].up || i == host)
			continue;
		others = true;
		if (w->agent[i].has_said)
			peers[n++] = w->agent[i].said;
	}
	(void)skew_judge(&a->skew, sim_mono(w), peers, n, others, id);
}

static void
sim_check(struct sim *w, const struct sim_agent *a, size_t host)
{
	char words[SKEW_WORDS_MAX];
	bool wrong;

	/* Of the first ones few are heard of yet, perhaps the wrong ones. */
	if (w->now_ms < 10000)
		return;
	(void)skew_words(&a->skew, words, sizeof(words));
	if (a->bad) {
		wrong = a->since >= 2 && skew_permits(&a->skew);
		w->refusals += a->skew.refused;
	} else if (a->since < 2) /* repaired just now */
		wrong = false;
	else
		wrong = a->skew.refused || a->skew.warned ||
			(a->since > 4 && !skew_permits(&a->skew));
	if (wrong)
		fail_msg("%zu agents, %zu bad, at %" PRId64 " ms: agent %zu,"
			 " %" PRId64 " us off, %d renewals: %s: %s",
		    w->n, w->bad, w->now_ms, host, a->clock_us, a->since,
		    skew_phase_name(a->skew.phase), words);
}

static void
sim_renew(struct sim *w, size_t host)
{
	struct sim_agent *a = &w->agent[host];

	sim_publish(a, host);
	if (sim_measure(w, a))
		a->since++;
	sim_judge(w, a, host);
	sim_check(w, a, host);
	a->next_ms = w->now_ms + RENEW_MS + dice_range(w->d, -50, 50);
}

static void
sim_set_clock(struct sim *w, struct sim_agent *a, bool bad)
{
	int64_t off = dice_below(w->d, 2) == 0
			  ? dice_range(w->d, 10200 * MS, 40 * S)
			  : dice_range(w->d, 12 * S, 2 * H_MS * MS);

	w->repairs += a->bad && !bad;
	w->bad += bad;
	w->bad -= a->bad;
	a->bad = bad;
	a->since = 0;
	if (bad)
		a->clock_us = dice_below(w->d, 2) == 0 ? off : -off;
	else
		a->clock_us = dice_range(w->d, -GOOD_US, GOOD_US);
}

/* One repaired a moment ago still says what was measured before. */
static size_t
sim_bad_voices(const struct sim *w)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n; i++)
		n += w->agent[i].bad || w->agent[i].since < 3;
	return (n);
}

static void
sim_start_agent(struct sim *w, struct sim_agent *a)
{
	skew_init(&a->skew, &conf);
	a->told_us = a->clock_us;
	a->up = a->has_said = false;
	a->since = 0;
	a->next_ms = w->now_ms + dice_range(w->d, 0, RENEW_MS);
}

static void
sim_move_leader(struct sim *w)
{
	int64_t sizes[] = { 20 * MS, 300 * MS, 3 * S, 8 * S, 12 * S, 25 * S,
		H_MS * MS };
	int64_t size = sizes[dice_below(w->d, COUNT(sizes))];

	/*
	 * There and back between two renewals is seen by some, not by all; and
	 * who starts just then does not know that the others speak of before.
	 */
	if (w->now_ms < w->moved_ms + 3 * RENEW_MS ||
	    w->now_ms < w->started_ms + 3 * RENEW_MS)
		return;
	w->moved_ms = w->now_ms;
	w->leader_us += dice_range(w->d, -size, size);
	if (dice_below(w->d, 2) == 0)
		w->epoch++;
}

static void
sim_happen(struct sim *w)
{
	struct sim_agent *a = &w->agent[dice_below(w->d, w->n)];

	switch (dice_below(w->d, 4)) {
	case 0:
		if (w->leader_moves)
			sim_move_leader(w);
		break;
	case 1:
		if (a->bad || sim_bad_voices(w) < w->bad_max)
			sim_set_clock(w, a, !a->bad);
		break;
	case 2: /* a bad clock may step and stay bad */
		if (a->bad)
			sim_set_clock(w, a, true);
		break;
	case 3:
		/* Several silent at once, and the bad ones are the most. */
		if (!w->restarts || w->now_ms < w->moved_ms + 3 * RENEW_MS ||
		    w->now_ms < w->started_ms + 3 * RENEW_MS)
			break;
		w->started_ms = w->now_ms;
		sim_start_agent(w, a);
		break;
	}
}

static void
sim_open(struct sim *w, struct dice *d, int world)
{
	*w = (struct sim){ .d = d, .epoch = EPOCH };
	w->n = 2 + dice_below(d, world % 10 == 0 ? AGENTS_MAX - 1 : 9);
	w->leader_moves = w->n > 2 && dice_below(d, 3) != 0;
	w->restarts = w->n >= 8 && dice_below(d, 2) == 0;
	/* Not both: of eight too few would be left to be heard. */
	w->lost_percent = w->n >= 8 && !w->restarts ? 5 : 0;
	/*
	 * The server's voice is one of the bad ones once its clock is off,
	 * and an agent that starts or is late says nothing for a while.
	 */
	w->bad_max = w->leader_moves ? (w->n - 2) / 2 : w->n / 2;
	if (w->restarts || w->lost_percent > 0)
		w->bad_max = w->n / 4;
	for (size_t i = 0; i < w->n; i++) {
		sim_set_clock(w, &w->agent[i],
		    w->bad < w->bad_max && dice_below(d, 4) == 0);
		sim_start_agent(w, &w->agent[i]);
	}
}

static void
sim_run(struct sim *w)
{
	int64_t happens_ms = 60000;

	for (; w->now_ms < 10 * 60000; w->now_ms += 10) {
		if (w->now_ms >= happens_ms) {
			sim_happen(w);
			happens_ms = w->now_ms + dice_range(w->d, 10, 20000);
		}
		for (size_t i = 0; i < w->n; i++) {
			if (w->agent[i].next_ms <= w->now_ms)
				sim_renew(w, i);
		}
	}
}

static void
test_fleet_in_time(void **state)
{
	struct dice d = dice_open("fleet in time");
	unsigned moves = 0, refusals = 0, repairs = 0;
	static struct sim w;

	(void)state;
	for (int world = 0; world < 150; world++) {
		sim_open(&w, &d, world);
		sim_run(&w);
		moves += w.moves;
		refusals += w.refusals;
		repairs += w.repairs;
	}
	/* It was no quiet time. */
	assert_true(moves > 1000 && refusals > 1000 && repairs > 100);
}

/* ---- an auditor's word ------------------------------------------------------ */

static struct skew_others
others_at(int64_t average_us)
{
	return ((struct skew_others){ .average_us = average_us,
	    .peers = 5,
	    .epoch = EPOCH,
	    .swept_ms = START_MS,
	    .oldest_stamp_ms = START_MS - 1 });
}

/* Judged by peers, with an offset of 100 ms, and well. */
static struct skew
judged_well(void)
{
	struct skew s = measured(100 * MS);

	(void)judge_by_one(&s, 0, 0);
	assert_true(s.phase == SKEW_JUDGED && !s.refused && !s.warned);
	return (s);
}

/* It bears a good verdict out, or says nothing at all. */
static void
test_confirm(void **state)
{
	static const struct {
		const char *why;
		int64_t average_us;
		unsigned peers;
		int64_t epoch, swept_ms, oldest_stamp_ms, now_ms;
		bool confirms;
	} cases[] = {
		{ "as it was", 50 * MS, 5, EPOCH, 0, -1, 0, true },
		{ "at the limit of a warning", -400 * MS, 5, EPOCH, 0, -1, 0,
		    true },
		{ "past it", -401 * MS, 5, EPOCH, 0, -1, 0, false },
		{ "so far that it would refuse", H_MS * MS, 5, EPOCH, 0, -1, 0,
		    false },
		{ "of nobody", 50 * MS, 0, EPOCH, 0, -1, 0, false },
		{ "of another leader's time", 50 * MS, 5, EPOCH + 1, 0, -1, 0,
		    false },
		{ "as old as may be", 50 * MS, 5, EPOCH, -20000, -20001, 0,
		    true },
		{ "older", 50 * MS, 5, EPOCH, -20001, -20002, 0, false },
		{ "of the future", 50 * MS, 5, EPOCH, 20001, 0, 0, false },
		{ "the own measurement is old", 50 * MS, 5, EPOCH, 0, -1,
		    FRESH_MS / 2, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct skew s = judged_well(), before = s;
		struct skew_others o = {
			.average_us = cases[i].average_us,
			.peers = cases[i].peers,
			.epoch = cases[i].epoch,
			.swept_ms = START_MS + cases[i].swept_ms,
			.oldest_stamp_ms = START_MS + cases[i].oldest_stamp_ms,
		};

		if (skew_confirm(&s, at_ms(cases[i].now_ms), &o, 20000) !=
		    cases[i].confirms)
			fail_msg("%s", cases[i].why);
		if (!cases[i].confirms)
			assert_memory_equal(&s, &before, sizeof(s));
		else
			assert_true(s.peers == 5 &&
				    s.skew_us == 100 * MS - o.average_us);
	}
}

/* Stamps from before a move of the reference, and states that are not well. */
static void
test_confirm_only_what_is_well(void **state)
{
	struct skew_others o = others_at(0);
	struct skew s = measured(100 * MS);
	struct skew_sample moved = sample(3000, 20 * S);

	(void)state;
	assert_false(skew_confirm(&s, at_ms(0), &o, 20000)); /* unmeasured */
	(void)judge(&s, 0, NULL, 0);
	assert_false(skew_confirm(&s, at_ms(0), &o, 20000)); /* waits */
	s = measured(600 * MS);
	(void)judge_by_one(&s, 0, 0);
	assert_true(s.warned);
	assert_false(skew_confirm(&s, at_ms(0), &o, 20000));
	o.average_us = 600 * MS; /* not even to end the warning */
	assert_false(skew_confirm(&s, at_ms(0), &o, 20000));
	s = measured(20 * S);
	(void)judge_by_one(&s, 0, 0);
	assert_true(s.refused);
	o.average_us = 20 * S; /* nor a refusal */
	assert_false(skew_confirm(&s, at_ms(0), &o, 20000));
	assert_true(s.refused);

	s = judged_well();
	assert_true(skew_take(&s, &moved, 0));
	o = others_at(20 * S);
	assert_false(skew_confirm(&s, at_ms(3000), &o, 20000)); /* held */
	(void)judge_by_one(&s, 33001, 20 * S);
	moved = sample(33000, 20 * S);
	(void)skew_take(&s, &moved, 0);
	(void)judge_by_one(&s, 33001, 20 * S);
	assert_int_equal(s.phase, SKEW_JUDGED);
	o.swept_ms = START_MS + 33000;
	o.oldest_stamp_ms = s.moved_stamp_ms; /* from before it */
	assert_false(skew_confirm(&s, at_ms(33001), &o, 20000));
	o.oldest_stamp_ms++;
	assert_true(skew_confirm(&s, at_ms(33001), &o, 20000));
}

/* Whatever an auditor says, nobody refuses, warns or comes back by it. */
static void
test_confirm_changes_no_verdict(void **state)
{
	struct dice d = dice_open("test_skew, confirm");
	unsigned confirmed = 0;

	(void)state;
	for (unsigned i = 0; i < 200000; i++) {
		struct skew s = measured(dice_range(&d, -20 * S, 20 * S));
		struct skew_others o =
		    others_at(s.own.offset_us + dice_range(&d, -1 * S, 1 * S));
		struct skew before;

		(void)judge_by_one(
		    &s, 0, s.own.offset_us + dice_range(&d, -1 * S, 1 * S));
		if (dice_below(&d, 3) == 0)
			o.average_us = (int64_t)dice_number(&d);
		if (dice_below(&d, 3) == 0)
			o.swept_ms = (int64_t)dice_number(&d);
		if (dice_below(&d, 5) == 0)
			o.oldest_stamp_ms = (int64_t)dice_number(&d);
		before = s;
		if (skew_confirm(&s, at_ms(0), &o, 20000))
			confirmed++;
		assert_true(s.refused == before.refused &&
			    s.warned == before.warned &&
			    s.phase == before.phase);
	}
	assert_true(confirmed > 1000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fleets),
		cmocka_unit_test(test_one_bad),
		cmocka_unit_test(test_one_vote_a_host),
		cmocka_unit_test(test_latest_of_a_host),
		cmocka_unit_test(test_median_and_average),
		cmocka_unit_test(test_freshness),
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_samples_age),
		cmocka_unit_test(test_own_steps),
		cmocka_unit_test(test_whose_step),
		cmocka_unit_test(test_hysteresis),
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_none_fresh_at_start),
		cmocka_unit_test(test_none_fresh_later),
		cmocka_unit_test(test_reference_moves),
		cmocka_unit_test(test_hold_ends),
		cmocka_unit_test(test_stamps_are_later),
		cmocka_unit_test(test_own_step_while_held),
		cmocka_unit_test(test_move_before_a_verdict),
		cmocka_unit_test(test_resume),
		cmocka_unit_test(test_leap),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_words_fit),
		cmocka_unit_test(test_wild),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_random_fleets),
		cmocka_unit_test(test_fleet_in_time),
		cmocka_unit_test(test_confirm),
		cmocka_unit_test(test_confirm_only_what_is_well),
		cmocka_unit_test(test_confirm_changes_no_verdict),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
