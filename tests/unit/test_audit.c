/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fleet's summary: what it says of claims and clocks, that it agrees with
 * what each agent would find by itself, that alerts keep their beginning, and
 * that its document is never longer than 64 KiB, whatever the members say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "audit.h"
#include "dice.h"
#include "layout.h"
#include "skew.h"
#include "summary.h"

#define NOW_MS INT64_C(1767225600000)
#define EPOCH 7
#define FRESH_MS 9000
#define STALE_MS 18000
#define AUDIT_MS 10000
#define WARN_MS 500
#define MANY 8192
#define WORLDS 300

/* A fleet that tests fill in, and what came of it. */
struct fleet {
	struct contract k;
	struct audit_member *members;
	uint32_t *order;
	uint64_t *quarantined;
	struct audit_input in;
	struct audit *before, *out;
	char *text;
	int length;
};

static void
fleet_open(struct fleet *f, size_t room)
{
	memset(f, 0, sizeof(*f));
	assert_int_equal(firn_layout_preset("firn", &f->k.layout), 0);
	f->k.worker_last = 1023;
	f->k.not_before_ms = 1;
	memcpy(f->k.generation_text, "1-9f3a21c4", 11);
	f->members = calloc(room + 1, sizeof(*f->members));
	f->order = calloc(room + 1, sizeof(*f->order));
	f->quarantined = calloc(WORKERS_MAX / 64, sizeof(uint64_t));
	f->before = calloc(1, sizeof(*f->before));
	f->out = calloc(1, sizeof(*f->out));
	f->text = malloc(SUMMARY_DOC_MAX);
	assert_true(f->members != NULL && f->order != NULL &&
		    f->quarantined != NULL && f->before != NULL &&
		    f->out != NULL && f->text != NULL);
	f->in = (struct audit_input){
		.k = &f->k,
		.members = f->members,
		.order = f->order,
		.quarantined = f->quarantined,
		.now_ms = NOW_MS,
		.epoch = EPOCH,
		.fresh_ms = FRESH_MS,
		.stale_ms = STALE_MS,
		.audit_ms = AUDIT_MS,
		.warn_ms = WARN_MS,
	};
}

static void
fleet_close(struct fleet *f)
{
	free(f->members);
	free(f->order);
	free(f->quarantined);
	free(f->before);
	free(f->out);
	free(f->text);
}

static struct audit_member *
join(struct fleet *f, uint64_t worker, int64_t offset_us)
{
	struct audit_member *m = &f->members[f->in.n];

	*m = (struct audit_member){
		.worker = worker,
		.counter = (uint32_t)(1000 + f->in.n),
		.written_ms = NOW_MS - 1000,
		.status = {
			.state = "serving",
			.pid = 1,
			.has_offset = true,
			.offset_us = offset_us,
			.error_us = 900,
			.stamp_ms = NOW_MS - 2000,
			.epoch = EPOCH,
		},
	};
	(void)snprintf(m->claim, sizeof(m->claim),
	    "01234567-89ab-4def-8123-456789abcdef-w-%010" PRIu32, m->counter);
	(void)snprintf(
	    m->status.host, sizeof(m->status.host), "host%zu", f->in.n);
	memcpy(m->status.boot_id, &f->in.n, sizeof(f->in.n));
	f->in.n++;
	return (m);
}

/* Sums up, writes it, and reads it again into `before` for the next one. */
static const struct audit *
reckon(struct fleet *f, bool has_before)
{
	struct doc_error err;

	audit_reckon(&f->in, has_before ? f->before : NULL, f->out);
	f->length = summary_format(f->out, f->text, SUMMARY_DOC_MAX);
	assert_true(f->length > 0 && f->length < SUMMARY_DOC_MAX);
	if (summary_parse(f->text, (size_t)f->length, f->before, &err) != 0)
		fail_msg("%s\n%s", err.text, f->text);
	return (f->out);
}

/* ---- what it says ------------------------------------------------------------- */

static void
test_small(void **state)
{
	struct audit_member *m;
	const struct audit *a;
	struct fleet f;
	int64_t average_us;
	uint64_t counted;

	(void)state;
	fleet_open(&f, 10);
	(void)join(&f, 5, 1000);
	(void)join(&f, 3, -3000);
	(void)join(&f, 4, 11000000); /* 11 s off, refused */
	m = join(&f, 9, 2000); /* of another leader */
	m->status.epoch = EPOCH + 1;
	m = join(&f, 10, 2000); /* measured too long ago */
	m->status.stamp_ms = NOW_MS - FRESH_MS - 1;
	m->counter = 7; /* the oldest claim */
	memcpy(m->claim + 39, "0000000007", 11);
	m = join(&f, 1023, 5000); /* says nothing */
	m->status = (struct agent_status){ .state = "" };
	(void)snprintf(f.members[2].status.state, 16, "refusing");
	(void)snprintf(f.members[2].status.reason, 24, "clock_skew");
	f.members[2].status.skew_us = 11000000;
	f.quarantined[0] = UINT64_C(1) << 0 | UINT64_C(1) << 5;

	a = reckon(&f, false);
	assert_int_equal(a->agents, 6);
	assert_int_equal(a->states[AUDIT_SERVING], 4);
	assert_int_equal(a->states[AUDIT_REFUSING], 1);
	assert_int_equal(a->states[AUDIT_SILENT], 1);
	assert_string_equal(
	    a->oldest, "01234567-89ab-4def-8123-456789abcdef-w-0000000007");
	assert_int_equal(a->hosts, 3);
	/* -3, 0 (ZooKeeper's), 1, 11000: of 0 and 1 the nearer to 0 */
	assert_int_equal(a->median_us, 0);
	assert_int_equal(a->count, 2);
	assert_int_equal(a->sum_us, -2000);
	assert_int_equal(a->nleft, 1);
	assert_int_equal(a->left[0].worker, 4);
	assert_int_equal(a->spread_us, 11003000);
	assert_int_equal(a->taken.count, 6);
	assert_int_equal(a->taken.n, 3); /* 3-5, 9-10, 1023 */
	assert_int_equal(a->quarantined.count, 1); /* 5 is claimed */
	assert_int_equal(a->free.count, 1017);
	assert_int_equal(a->nworst, 2);
	assert_string_equal(a->worst[0].reason, "clock_skew");
	assert_non_null(strstr(f.text, "\"ranges\":\"3-5,9-10,1023\""));
	assert_non_null(strstr(f.text, "\"ranges\":\"0\""));

	/* The average of the others. */
	assert_true(audit_average(a, 1000, WARN_MS, &average_us, &counted));
	assert_true(average_us == -3000 && counted == 1);
	assert_true(audit_average(a, 11000000, WARN_MS, &average_us, &counted));
	assert_true(average_us == -1000 && counted == 2);
	/* read back it says the same */
	assert_true(
	    audit_average(f.before, 1000, WARN_MS, &average_us, &counted));
	assert_true(average_us == -3000 && counted == 1);
	fleet_close(&f);
}

static void
test_alone(void **state)
{
	struct fleet f;
	const struct audit *a;
	int64_t average_us;
	uint64_t counted;

	(void)state;
	fleet_open(&f, 1);
	a = reckon(&f, false);
	assert_true(a->agents == 0 && a->hosts == 0 && a->free.count == 1024);
	assert_string_equal(a->oldest, "");
	assert_false(audit_average(a, 0, WARN_MS, &average_us, &counted));
	(void)join(&f, 0, 100);
	a = reckon(&f, false);
	assert_false(audit_average(a, 100, WARN_MS, &average_us, &counted));
	fleet_close(&f);
}

/* ---- what each agent would find by itself ---------------------------------------- */

static int64_t
any_offset(struct dice *d)
{
	switch (dice_below(d, 8)) {
	case 0:
		return ((int64_t)dice_number(d)); /* anything at all */
	case 1:
		return (dice_range(d, -20000000, 20000000));
	default:
		return (dice_range(d, -700000, 700000));
	}
}

/* Two claims of one host, some silent: as skew_judge() with all marks read. */
static void
compare(struct fleet *f, struct skew_peer *peers, size_t own)
{
	const struct skew_conf conf = { WARN_MS, 10000, FRESH_MS, 30000 };
	const struct agent_status *st = &f->members[own].status;
	const struct skew_sample sample = { st->offset_us, st->error_us,
		st->stamp_ms, st->epoch, { NS_PER_S } };
	int64_t average_us = 0;
	uint64_t counted = 0;
	struct skew s;

	skew_init(&s, &conf);
	(void)skew_take(&s, &sample, 0);
	(void)skew_judge(
	    &s, (mono_t){ NS_PER_S }, peers, f->in.n, true, st->boot_id);
	if (!audit_average(
		f->out, st->offset_us, WARN_MS, &average_us, &counted)) {
		assert_int_equal(s.peers, 0);
		return;
	}
	if (s.phase != SKEW_JUDGED || s.peers != counted ||
	    s.average_us != average_us)
		fail_msg("agent %zu: %s, average %" PRId64 " of %u; summary: "
			 "%" PRId64 " of %" PRIu64,
		    own, skew_phase_name(s.phase), s.average_us, s.peers,
		    average_us, counted);
}

static void
test_as_by_oneself(void **state)
{
	struct dice d = dice_open("test_audit");
	struct skew_peer peers[64];
	struct fleet f;

	(void)state;
	fleet_open(&f, 64);
	for (unsigned world = 0; world < WORLDS * 10; world++) {
		size_t n = 1 + dice_below(&d, 64);

		f.in.n = 0;
		for (size_t i = 0; i < n; i++) {
			struct agent_status *st =
			    &join(&f, dice_below(&d, 1024), any_offset(&d))
				 ->status;

			st->stamp_ms -= dice_range(&d, 0, 3000);
			peers[i] = (struct skew_peer){
				.offset_us = st->offset_us,
				.error_us = st->error_us,
				.stamp_ms = st->stamp_ms,
				.epoch = EPOCH,
			};
			memcpy(peers[i].boot_id, st->boot_id, UUID_BYTES);
		}
		(void)reckon(&f, false);
		for (size_t i = 0; i < n; i++)
			compare(&f, peers, i);
	}
	fleet_close(&f);
}

/* ---- large ones --------------------------------------------------------------------- */

static void
test_thousands(void **state)
{
	const struct audit *a;
	struct fleet f;

	(void)state;
	fleet_open(&f, MANY);
	f.k.worker_last = MANY - 1;
	for (size_t i = 0; i < MANY; i++) {
		int64_t off_us = i % 4 == 0 ? 20000000 + (int64_t)i : 0;
		struct audit_member *m =
		    join(&f, i / 2 * 2, off_us); /* every ID twice */

		m->status.skew_us = off_us;
		(void)snprintf(
		    m->status.host, sizeof(m->status.host), "\"\\%060zu", i);
	}
	f.in.marks_deleted = INT32_MAX;
	(void)reckon(&f, false);
	a = reckon(&f, true);
	print_message("8192 claims, %" PRIu64 " outliers: %d bytes\n",
	    a->nleft_all, f.length);
	assert_int_equal(a->agents, MANY);
	assert_int_equal(a->nleft_all, 2048);
	assert_int_equal(a->count, MANY - 2048);
	assert_int_equal(a->nleft, AUDIT_LEFT_MAX);
	assert_int_equal(a->nworst, AUDIT_WORST_MAX);
	assert_int_equal(a->taken.count, MANY / 2);
	assert_int_equal(a->taken.n, AUDIT_RANGES_MAX);
	assert_int_equal(a->taken.more, MANY / 2 - AUDIT_RANGES_MAX);
	assert_int_equal(a->free.count, MANY / 2);
	assert_int_equal(a->ndoubles, AUDIT_DOUBLES_MAX);
	/* the worst are the worst */
	for (size_t i = 1; i < a->nworst; i++)
		assert_true(a->worst[i - 1].skew_us >= a->worst[i].skew_us);
	assert_int_equal(a->worst[0].skew_us, 20000000 + MANY - 4);
	fleet_close(&f);
}

static struct audit_member *
join_any(struct fleet *f, struct dice *d)
{
	static const char *const states[] = { "serving", "isolated", "refusing",
		"claiming", "draining", "", "what?", "\"\"\"\"" };
	struct audit_member *m = join(f,
	    f->k.worker_first +
		dice_below(d, f->k.worker_last - f->k.worker_first + 1),
	    any_offset(d));
	struct agent_status *st = &m->status;

	m->written_ms = NOW_MS - (int64_t)dice_below(d, 20000);
	(void)snprintf(
	    st->state, sizeof(st->state), "%s", states[dice_below(d, 8)]);
	st->skew_us = (int64_t)dice_number(d);
	st->error_us = (int64_t)dice_number(d) / 2;
	if (dice_below(d, 4) != 0)
		st->error_us = 1000;
	st->stamp_ms += dice_range(d, -9000, 9000);
	st->has_offset = dice_below(d, 10) != 0;
	for (size_t i = 0; i + 1 < sizeof(st->host); i++)
		st->host[i] = (char)(1 + dice_below(d, 255));
	memset(st->reason, '"', sizeof(st->reason) - 1);
	return (m);
}

/* Anything at all: each document fits, and reads back. */
static void
test_any(void **state)
{
	struct dice d = dice_open("test_audit, any");
	int longest = 0;
	struct fleet f;

	(void)state;
	fleet_open(&f, 3000);
	for (unsigned world = 0; world < WORLDS; world++) {
		size_t n = dice_below(&d, 1 + dice_below(&d, 3000));

		f.k.worker_first =
		    dice_below(&d, 2) == 0 ? 0 : dice_number(&d) >> 2;
		f.k.worker_last =
		    f.k.worker_first + dice_below(&d, 1 + 2 * n + 1);
		f.in.n = 0;
		f.in.marks_deleted = (int64_t)dice_below(&d, 2);
		for (size_t i = 0; i < n; i++)
			(void)join_any(&f, &d);
		for (size_t i = 0; i < 100; i++)
			f.quarantined[i] = dice_next(&d);
		(void)reckon(&f, world > 0);
		assert_int_equal(f.out->taken.count + f.out->quarantined.count +
				     f.out->free.count,
		    f.k.worker_last - f.k.worker_first + 1);
		assert_true(f.before->nalerts == f.out->nalerts);
		assert_true(f.before->sum_us == f.out->sum_us);
		longest = f.length > longest ? f.length : longest;
	}
	print_message("the longest of %d: %d bytes\n", WORLDS, longest);
	fleet_close(&f);
}

/* Every list full, every number as long as it can be. */
static void
test_longest(void **state)
{
	struct audit *a = calloc(1, sizeof(*a));
	char *text = malloc(SUMMARY_DOC_MAX);
	int length;

	(void)state;
	assert_true(a != NULL && text != NULL);
	memset(a->generation, 'g', sizeof(a->generation) - 1);
	memset(a->auditor, 'a', sizeof(a->auditor) - 1);
	memset(a->auditor_host, '"', sizeof(a->auditor_host) - 1);
	memset(a->oldest, 'a', sizeof(a->oldest) - 1);
	a->not_before_ms = a->swept_ms = a->took_ms = a->epoch = INT64_MIN;
	a->audit_ms = INT64_MIN;
	a->median_us = a->sum_us = a->oldest_stamp_ms = INT64_MIN;
	a->spread_us = a->marks_deleted = INT64_MIN;
	a->nworst = AUDIT_WORST_MAX;
	for (size_t i = 0; i < a->nworst; i++) {
		struct audit_worst *w = &a->worst[i];

		w->worker = NO_WORKER - 1;
		memset(w->host, 'h', sizeof(w->host) - 1);
		memset(w->state, 's', sizeof(w->state) - 1);
		memset(w->reason, 'r', sizeof(w->reason) - 1);
		w->has_skew = true;
		w->skew_us = w->error_us = w->stale_ms = INT64_MIN;
	}
	a->nleft = AUDIT_LEFT_MAX;
	for (size_t i = 0; i < a->nleft; i++) {
		a->left[i].worker = NO_WORKER - 1;
		a->left[i].offset_us = INT64_MIN;
	}
	a->taken.n = AUDIT_RANGES_MAX;
	for (size_t i = 0; i < AUDIT_RANGES_MAX; i++) {
		a->taken.first[i] = NO_WORKER - 2;
		a->taken.last[i] = NO_WORKER - 1;
	}
	a->free = a->quarantined = a->taken;
	a->ndoubles = AUDIT_DOUBLES_MAX;
	for (size_t i = 0; i < a->ndoubles; i++)
		memset(a->doubles[i], 'd', CLAIM_NAME_MAX - 1);
	a->nalerts = AUDIT_ALERTS_MAX;
	for (size_t i = 0; i < a->nalerts; i++) {
		a->alerts[i] = (struct audit_alert){
			.kind = AUDIT_DUPLICATE_CLAIM,
			.worker = NO_WORKER - 1,
			.seen_ms = INT64_MIN,
			.value = INT64_MIN,
			.limit = INT64_MIN,
		};
		memset(a->alerts[i].host, 'h', HOST_NAME_MAX_TEXT - 1);
	}
	length = summary_format(a, text, SUMMARY_DOC_MAX);
	print_message("the longest there can be: %d bytes\n", length);
	assert_true(length > 50000 && length < SUMMARY_DOC_MAX);
	free(a);
	free(text);
}

/* ---- alerts ----------------------------------------------------------------------------- */

static const struct audit_alert *
alert(const struct audit *a, enum audit_kind kind, uint64_t worker)
{
	const struct audit_alert *x = audit_find(a, kind, worker);

	if (x == NULL)
		fail_msg("no %s", audit_kind_name(kind));
	return (x);
}

static void
test_alerts_keep_their_beginning(void **state)
{
	char words[SUMMARY_WORDS_MAX];
	const struct audit_alert *x;
	const struct audit *a;
	struct fleet f;

	(void)state;
	fleet_open(&f, 20);
	f.k.worker_last = 9;
	for (uint64_t i = 0; i < 9; i++)
		(void)join(&f, i, 0);
	a = reckon(&f, false);
	assert_int_equal(a->nalerts, 0); /* one of ten is a tenth */
	(void)join(&f, 9, 600000);
	f.members[3].written_ms = NOW_MS - STALE_MS - 1;
	f.in.marks_deleted = 2;
	a = reckon(&f, true);
	x = alert(a, AUDIT_WORKERS_LOW, NO_WORKER);
	assert_true(x->critical && x->value == 0 && x->limit == 10);
	assert_true(x->since_ms == NOW_MS && audit_is_critical(a));
	x = alert(a, AUDIT_AGENT_STALE, 3);
	assert_true(!x->critical && x->value == STALE_MS + 1);
	assert_string_equal(x->host, "host3");
	assert_int_equal(alert(a, AUDIT_FLEET_SKEW, NO_WORKER)->value, 600);
	assert_true(alert(a, AUDIT_MARKS_DELETED, NO_WORKER)->critical);
	assert_int_equal(a->nalerts, 4);

	/* Later, by another auditor that only knows the document. */
	f.in.now_ms += 1000;
	f.members[9].status.offset_us = 460000; /* above nine tenths */
	a = reckon(&f, true);
	assert_int_equal(a->nalerts, 4);
	for (size_t i = 0; i < a->nalerts; i++)
		assert_true(a->alerts[i].since_ms == NOW_MS);
	f.members[9].status.offset_us = 440000;
	f.members[3].written_ms = NOW_MS;
	f.in.n = 8;
	f.in.now_ms += AUDIT_MS; /* at the first sweep without, they stand */
	for (size_t i = 0; i < 10; i++)
		f.members[i].status.stamp_ms = f.in.now_ms;
	a = reckon(&f, true);
	assert_int_equal(a->nalerts, 4);
	f.in.now_ms += AUDIT_MS;
	for (size_t i = 0; i < 10; i++)
		f.members[i].written_ms = f.in.now_ms;
	a = reckon(&f, true);
	assert_int_equal(a->nalerts, 1);
	summary_alert_words(alert(a, AUDIT_MARKS_DELETED, NO_WORKER), words);
	assert_non_null(strstr(words, "(2)"));
	f.in.n = 10;
	a = reckon(&f, true); /* anew */
	assert_true(
	    alert(a, AUDIT_WORKERS_LOW, NO_WORKER)->since_ms == f.in.now_ms);
	fleet_close(&f);
}

/* After a gap in which nobody could write, nobody is stale at once. */
static void
test_stale_after_an_outage(void **state)
{
	struct fleet f;

	(void)state;
	fleet_open(&f, 2);
	(void)join(&f, 1, 0);
	(void)reckon(&f, false);
	f.in.now_ms += 3 * AUDIT_MS + 1;
	assert_int_equal(reckon(&f, true)->nalerts, 0);
	f.in.now_ms += AUDIT_MS;
	assert_int_equal(
	    alert(reckon(&f, true), AUDIT_AGENT_STALE, 1)->since_ms,
	    f.in.now_ms);
	fleet_close(&f);
}

static void
test_doubles_take_two(void **state)
{
	const struct audit *a;
	struct fleet f;

	(void)state;
	fleet_open(&f, 4);
	(void)join(&f, 1, 0);
	(void)join(&f, 17, 0);
	(void)join(&f, 17, 0);
	a = reckon(&f, false);
	assert_int_equal(a->nalerts, 0);
	assert_int_equal(a->ndoubles, 1);
	assert_string_equal(a->doubles[0], f.members[2].claim);
	a = reckon(&f, true);
	assert_string_equal(alert(a, AUDIT_DUPLICATE_CLAIM, 17)->host, "host2");
	f.in.now_ms += 2 * AUDIT_MS;
	for (size_t i = 0; i < 3; i++)
		f.members[i].written_ms = f.in.now_ms;
	f.members[2].counter++; /* another claim, for the first time */
	f.members[2].claim[48]++;
	a = reckon(&f, true);
	assert_int_equal(a->nalerts, 0);
	fleet_close(&f);
}

static void
test_epoch_ends(void **state)
{
	struct fleet f;

	(void)state;
	fleet_open(&f, 1);
	f.in.now_ms = layout_end_ms(&f.k.layout) - AUDIT_ENDING_MS - 1;
	assert_int_equal(reckon(&f, false)->nalerts, 0);
	f.in.now_ms++;
	assert_false(
	    alert(reckon(&f, true), AUDIT_EPOCH_ENDING, NO_WORKER)->critical);
	fleet_close(&f);
}

/* A year before the day, not before, and no more once it has come. */
static void
test_sign_turns(void **state)
{
	const struct audit_alert *a;
	char words[SUMMARY_WORDS_MAX];
	struct fleet f;
	int64_t sign_ms;

	(void)state;
	fleet_open(&f, 1);
	assert_int_equal(firn_layout_preset("instagram", &f.k.layout), 0);
	assert_true(layout_sign_ms(&f.k.layout, &sign_ms));
	f.in.now_ms = sign_ms - AUDIT_ENDING_MS - 1;
	assert_int_equal(reckon(&f, false)->nalerts, 0);
	f.in.now_ms++;
	a = alert(reckon(&f, true), AUDIT_EPOCH_ENDING, NO_WORKER);
	assert_false(a->critical);
	summary_alert_words(a, words);
	assert_string_equal(words,
	    "IDs are negative in a signed column from 2046-06-27T17:00:49.497Z "
	    "on; the layout has ticks until 2081-04-30T12:54:37.273Z");
	f.in.now_ms = sign_ms;
	f.in.audit_ms = 1; /* nothing stands for a sweep more */
	assert_int_equal(reckon(&f, true)->nalerts, 0);
	f.in.now_ms = layout_end_ms(&f.k.layout) - AUDIT_ENDING_MS;
	a = alert(reckon(&f, true), AUDIT_EPOCH_ENDING, NO_WORKER);
	summary_alert_words(a, words);
	assert_string_equal(words,
	    "the layout has ticks until 2081-04-30T12:54:37.273Z: plan its "
	    "successor");
	fleet_close(&f);
}

/* ---- documents of strangers ----------------------------------------------------------------- */

static void
test_strangers(void **state)
{
	struct dice d = dice_open("test_audit, strangers");
	char *text = malloc(SUMMARY_DOC_MAX + 100);
	struct doc_error err;
	struct fleet f;
	unsigned taken = 0;

	(void)state;
	assert_non_null(text);
	fleet_open(&f, 20);
	for (uint64_t i = 0; i < 20; i++)
		(void)join(&f, i / 2, (int64_t)i * 1000000);
	f.in.marks_deleted = 1;
	(void)reckon(&f, false);
	(void)reckon(&f, true);
	/* a later program's: more keys, another kind of alert */
	assert_int_equal(f.text[0], '{');
	(void)snprintf(
	    text, SUMMARY_DOC_MAX + 100, "{\"new\":[{}],%s", f.text + 1);
	assert_int_equal(summary_parse(text, strlen(text), f.before, &err), 0);
	memcpy(strstr(text, "\"marks_deleted\",\"sev"), "\"marks_delayed", 14);
	if (summary_parse(text, strlen(text), f.before, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(f.before->nalerts, f.out->nalerts - 1);
	for (int n = 0; n < f.length; n++) /* cut short */
		assert_int_equal(
		    summary_parse(f.text, (size_t)n, f.before, &err), -1);
	for (unsigned i = 0; i < 20000; i++) { /* damaged */
		memcpy(text, f.text, (size_t)f.length);
		for (uint64_t k = dice_below(&d, 3); k < 3; k++)
			text[dice_below(&d, (uint64_t)f.length)] =
			    (char)dice_below(&d, 256);
		if (summary_parse(text, (size_t)f.length, f.before, &err) != 0)
			continue;
		taken++;
		assert_true(f.before->nalerts <= AUDIT_ALERTS_MAX &&
			    f.before->nworst <= AUDIT_WORST_MAX &&
			    f.before->nleft <= AUDIT_LEFT_MAX &&
			    f.before->ndoubles <= AUDIT_DOUBLES_MAX);
	}
	print_message("%u of 20000 damaged ones make sense\n", taken);
	assert_int_equal(summary_parse("{}", 2, f.before, &err), -1);
	assert_int_equal(summary_parse("", 0, f.before, &err), -1);
	free(text);
	fleet_close(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_as_by_oneself),
		cmocka_unit_test(test_thousands),
		cmocka_unit_test(test_any),
		cmocka_unit_test(test_longest),
		cmocka_unit_test(test_alerts_keep_their_beginning),
		cmocka_unit_test(test_stale_after_an_outage),
		cmocka_unit_test(test_doubles_take_two),
		cmocka_unit_test(test_epoch_ends),
		cmocka_unit_test(test_sign_turns),
		cmocka_unit_test(test_strangers),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
