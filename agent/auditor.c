/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auditor - reads /firn/REALM/fleet, and writes it when it is one's turn.
 *
 * Invariant: one read, sweep or write at a time; a write carries the version
 * that was read before its sweep began, or creates the node.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "auditor.h"
#include "log.h"
#include "summary.h"
#include "survey.h"
#include "sysclock.h"

#define FLEET_PATH_MAX 256

enum auditor_step {
	STEP_IDLE,
	STEP_READING,
	STEP_SWEEPING,
	STEP_WRITING,
};

struct auditor {
	const struct conf *conf;
	enum auditor_step step;
	uint64_t op; /* of reading and writing */
	bool poked; /* read the node */
	bool sweeps_next; /* it is read because a sweep is due */
	bool known; /* what follows is known of the node */
	bool missing; /* there is none */
	int32_t version;
	mono_t seen; /* when it was written, as far as can be told */
	mono_t due; /* to sweep, unless the node changes */
	bool has_summary; /* it made sense */
	bool other_realm, other_told;
	struct audit *stands; /* as read or written last */
	struct audit *next; /* being written, or ... */
	bool in_doubt; /* ... whether it was is not known */
	struct audit *spare; /* for reading */
	char *text;
	struct survey *survey;
	struct survey_memory memory;
	bool asks_size; /* the node was too large the last time */
	/* as of the last run; paths are copies */
	char path[FLEET_PATH_MAX], workers[FLEET_PATH_MAX];
	char marks[FLEET_PATH_MAX];
	struct auditor_where where;
	struct contract k;
	char own_claim[CLAIM_NAME_MAX];
	int64_t swept_ms;
	mono_t started, now;
	struct auditor_figures figures;
	auditor_alert_fn *on_alert; /* or NULL */
	void *on_alert_arg;
};

struct auditor *
auditor_open(const struct conf *conf)
{
	struct auditor *a = calloc(1, sizeof(*a));

	if (a == NULL)
		return (NULL);
	a->conf = conf;
	a->due = MONO_NEVER;
	a->stands = calloc(1, sizeof(*a->stands));
	a->next = calloc(1, sizeof(*a->next));
	a->spare = calloc(1, sizeof(*a->spare));
	a->text = malloc(SUMMARY_DOC_MAX);
	if (a->stands == NULL || a->next == NULL || a->spare == NULL ||
	    a->text == NULL) {
		auditor_close(a);
		return (NULL);
	}
	return (a);
}

void
auditor_close(struct auditor *a)
{
	if (a == NULL)
		return;
	survey_cancel(a->survey);
	survey_forget(&a->memory);
	free(a->stands);
	free(a->next);
	free(a->spare);
	free(a->text);
	free(a);
}

void
auditor_on_alert(struct auditor *a, auditor_alert_fn *fn, void *arg)
{
	a->on_alert = fn;
	a->on_alert_arg = arg;
}

void
auditor_poke(struct auditor *a)
{
	a->poked = true;
}

void
auditor_disconnected(struct auditor *a)
{
	survey_cancel(a->survey);
	a->survey = NULL;
	if (a->step == STEP_WRITING)
		a->in_doubt = true;
	a->step = STEP_IDLE;
	a->op = 0;
	a->known = a->sweeps_next = false;
	a->due = MONO_NEVER;
}

/* ---- whose turn it is ------------------------------------------------------ */

/* ZooKeeper's clock, by the last measurement of it. */
static int64_t
zookeeper_ms(const struct skew *skew, mono_t now)
{
	return (add_sat(skew->own.stamp_ms, mono_diff_ms(now, skew->own.when)));
}

static int64_t
random_below_ms(int64_t ms)
{
	struct entropy rnd;

	sysclock_entropy(&rnd);
	return ((int64_t)(rnd.word[0] % (uint64_t)(ms + 1)));
}

static bool
is_own(const struct auditor *a, const char *claim)
{
	return (a->own_claim[0] != '\0' && strcmp(a->own_claim, claim) == 0);
}

/*
 * The oldest claim is due each audit_ms, whoever wrote last a little later (if
 * the oldest one's agent does not), the others when twice that has passed:
 * chance then says who comes first, all within three.
 */
static void
set_due(struct auditor *a)
{
	int64_t audit_ms = a->conf->audit_ms;
	int64_t wait_ms;

	if (a->missing || !a->has_summary || a->other_realm)
		wait_ms = random_below_ms(audit_ms / 2);
	else if (is_own(a, a->stands->oldest))
		wait_ms = audit_ms;
	else if (is_own(a, a->stands->auditor))
		wait_ms = audit_ms + audit_ms / 4;
	else
		wait_ms = 2 * audit_ms + random_below_ms(audit_ms / 4 * 3);
	a->due = mono_add_ms(a->seen, wait_ms);
}

/* ---- alerts ------------------------------------------------------------------ */

static void
say_alert(const struct auditor *a, const struct audit_alert *x, bool raised)
{
	char words[SUMMARY_WORDS_MAX];

	summary_alert_words(x, words);
	if (raised)
		log_warnx("alert %s: %s%s", audit_kind_name(x->kind),
		    x->critical ? "critical: " : "", words);
	else
		log_info("alert %s cleared: was: %s", audit_kind_name(x->kind),
		    words);
	if (a->on_alert != NULL)
		a->on_alert(a->on_alert_arg, x, raised);
}

/* Raised once, cleared once: by who wrote the summary where it changed. */
static void
say_alerts(const struct auditor *a, const struct audit *before,
    const struct audit *now)
{
	for (size_t i = 0; i < now->nalerts; i++) {
		const struct audit_alert *x = &now->alerts[i];
		const struct audit_alert *stood =
		    audit_find(before, x->kind, x->worker);

		if (stood == NULL || (x->critical && !stood->critical))
			say_alert(a, x, true);
	}
	for (size_t i = 0; before != NULL && i < before->nalerts; i++) {
		const struct audit_alert *x = &before->alerts[i];

		if (audit_find(now, x->kind, x->worker) == NULL)
			say_alert(a, x, false);
	}
}

/* ---- the node ------------------------------------------------------------------ */

static bool
is_of_realm(const struct auditor *a, const struct audit *s)
{
	return (memcmp(s->uuid, a->k.uuid, UUID_BYTES) == 0 &&
		strcmp(s->generation, a->k.generation_text) == 0);
}

/* Written by an agent that knows a later generation: the own is out of date. */
static bool
is_ahead(const struct auditor *a)
{
	return (a->other_realm &&
		memcmp(a->stands->uuid, a->k.uuid, UUID_BYTES) == 0 &&
		strtoll(a->stands->generation, NULL, 10) > a->k.generation);
}

/* What stood before the sweep, if it was this realm's. */
static const struct audit *
standing(const struct auditor *a)
{
	return (a->has_summary &&
			memcmp(a->stands->uuid, a->k.uuid, UUID_BYTES) == 0
		    ? a->stands
		    : NULL);
}

static void
take_stat(struct auditor *a, const struct zk_event *ev)
{
	int64_t age_ms =
	    sub_sat(zookeeper_ms(a->where.skew, a->now), ev->stat.mtime_ms);

	/* Own time alone decides from here on: clocks may step. */
	age_ms = min64(max64(age_ms, 0), 2 * a->conf->audit_ms);
	a->seen = mono_add_ms(a->now, -age_ms);
	a->version = ev->stat.version;
	a->known = true;
	a->missing = false;
}

static void
swap(struct audit **a, struct audit **b)
{
	struct audit *other = *a;

	*a = *b;
	*b = other;
}

/* What was written stands. */
static void
became(struct auditor *a)
{
	say_alerts(a, standing(a), a->next);
	swap(&a->stands, &a->next);
	a->has_summary = true;
	a->other_realm = false;
	a->in_doubt = false;
	a->figures.own = true;
	a->figures.writes++;
}

/* Was the write in doubt done after all?  Then its alerts are ours to say. */
static bool
is_next(const struct auditor *a, const struct audit *read)
{
	return (a->in_doubt && read->swept_ms == a->next->swept_ms &&
		strcmp(read->auditor, a->next->auditor) == 0);
}

static void
parse(struct auditor *a, const struct zk_event *ev)
{
	struct doc_error err = { "" };
	bool good = ev->length > 0 && ev->data != NULL &&
		    summary_parse(ev->data, ev->length, a->spare, &err) == 0;

	if (good && is_next(a, a->spare))
		became(a);
	if (good) {
		swap(&a->stands, &a->spare);
		foreign_mended(a->where.foreign, a->path);
	} else if (ev->length > 0 && !a->asks_size)
		foreign_tell_reply(a->where.foreign, a->path, ev, &err);
	a->has_summary = good;
	a->in_doubt = false;
	a->other_realm = good && !is_of_realm(a, a->stands);
	a->other_told = false;
	a->figures.own = good && is_own(a, a->stands->auditor);
}

/* Nobody may read it, or the server will not: not again before long. */
static void
give_up(struct auditor *a)
{
	a->known = a->has_summary = false;
	a->due = mono_add_ms(a->now, a->conf->audit_ms);
	a->sweeps_next = false;
}

static void
take_node(struct auditor *a, const struct zk_event *ev)
{
	bool news = !a->known || a->missing || ev->stat.version != a->version;

	a->poked = false;
	if (a->asks_size && ev->rc == ZK_OK && !foreign_too_large(ev)) {
		foreign_mended(a->where.foreign, a->path);
		a->known = false;
		a->poked = true; /* it can be read now */
		return;
	}
	if (ev->rc == ZK_NONODE) {
		news = !a->known || !a->missing;
		a->known = a->missing = true;
		a->has_summary = a->in_doubt = false;
		if (news)
			a->seen = a->now;
	} else if (ev->rc == ZK_OK && news) {
		take_stat(a, ev);
		parse(a, ev);
	} else if (ev->rc != ZK_OK) {
		if (ev->rc != ZK_UNKNOWN)
			foreign_tell_reply(a->where.foreign, a->path, ev, NULL);
		give_up(a);
		return;
	}
	if (news)
		set_due(a);
}

/* ---- the sweep -------------------------------------------------------------------- */

static void
fail(struct auditor *a, const char *what)
{
	log_debug("audit: %s", what);
	a->figures.failures++;
	a->step = STEP_IDLE;
	a->due = mono_add_ms(a->now, a->conf->audit_ms);
}

static void
write_node(struct auditor *a)
{
	int n = summary_format(a->next, a->text, SUMMARY_DOC_MAX);
	bool fits = n > 0;

	a->step = STEP_WRITING;
	a->op = 0;
	if (fits && a->missing)
		a->op =
		    zk_create(a->where.zk, a->path, a->text, (size_t)n, false);
	else if (fits)
		a->op = zk_set(
		    a->where.zk, a->path, a->text, (size_t)n, a->version);
	if (a->op == 0)
		fail(a, "the summary was not submitted");
}

static void
on_surveyed(void *arg, const struct survey_result *r)
{
	struct auditor *a = arg;
	struct audit_input in = {
		.k = &a->k,
		.members = r->members,
		.n = r->n,
		.order = r->order,
		.quarantined = r->quarantined,
		.now_ms = a->swept_ms,
		.epoch = a->where.skew->own.epoch,
		.fresh_ms = 3 * a->conf->renew_ms,
		.stale_ms = a->conf->session_ms / 2 * 3 + a->conf->renew_ms,
		.audit_ms = a->conf->audit_ms,
		.warn_ms = a->conf->skew_warn_ms,
		.marks_deleted = r->marks_deleted,
	};

	a->survey = NULL; /* frees itself */
	if (!r->good) {
		fail(a, "the sweep did not come to its end");
		return;
	}
	a->figures.sweeps++;
	a->figures.sweep_reads = r->reads;
	a->figures.sweep_ms = mono_diff_ms(a->now, a->started);
	audit_reckon(&in, standing(a), a->next);
	(void)snprintf(
	    a->next->auditor, sizeof(a->next->auditor), "%s", a->own_claim);
	(void)snprintf(a->next->auditor_host, sizeof(a->next->auditor_host),
	    "%s", a->where.host);
	a->next->took_ms = a->figures.sweep_ms;
	a->next->audit_ms = a->conf->audit_ms;
	write_node(a);
}

static void
written(struct auditor *a, const struct zk_event *ev)
{
	a->step = STEP_IDLE;
	switch (ev->rc) {
	case ZK_OK:
		a->missing = false;
		a->version = ev->stat.version;
		a->seen = a->now;
		became(a);
		set_due(a);
		return;
	case ZK_BADVERSION:
	case ZK_NODEEXISTS:
	case ZK_NONODE:
		/* Another one was faster: what it wrote is read. */
		log_debug("audit: somebody else was faster");
		a->figures.conflicts++;
		a->poked = true;
		a->due = MONO_NEVER;
		return;
	case ZK_UNKNOWN:
		a->in_doubt = true;
		a->known = false; /* so that it is parsed */
		a->poked = true;
		a->due = MONO_NEVER;
		return;
	case ZK_NOTEMPTY:
	case ZK_NOAUTH:
	case ZK_REFUSED:
		foreign_tell_reply(a->where.foreign, a->path, ev, NULL);
		fail(a, "the summary was refused");
		return;
	}
}

static void
start_sweep(struct auditor *a)
{
	const struct survey_where where = {
		.zk = a->where.zk,
		.workers = a->where.workers,
		.marks = a->where.marks,
		.k = &a->k,
		.now_ms = zookeeper_ms(a->where.skew, a->now),
		.wait_ms = a->conf->claim_wait_ms,
		.memory = &a->memory,
		.foreign = a->where.foreign,
	};

	a->swept_ms = where.now_ms;
	a->started = a->now;
	a->step = STEP_SWEEPING;
	a->survey = survey_start(&where, on_surveyed, a);
	if (a->survey == NULL)
		fail(a, "the sweep did not start");
}

/* ---- outside ------------------------------------------------------------------------ */

static void
read_node(struct auditor *a)
{
	a->asks_size = foreign_is_large(a->where.foreign, a->path);
	a->op = a->asks_size ? zk_exists(a->where.zk, a->path, false)
			     : zk_get(a->where.zk, a->path, false);
	a->poked = false;
	if (a->op != 0)
		a->step = STEP_READING;
	else
		give_up(a);
}

static void
take_where(struct auditor *a, const struct auditor_where *where)
{
	a->where = *where;
	a->k = *where->k;
	(void)snprintf(
	    a->own_claim, sizeof(a->own_claim), "%s", where->own_claim);
	(void)snprintf(a->path, sizeof(a->path), "%s/fleet", where->realm);
	(void)snprintf(a->workers, sizeof(a->workers), "%s", where->workers);
	(void)snprintf(a->marks, sizeof(a->marks), "%s", where->marks);
	a->where.workers = a->workers;
	a->where.marks = a->marks;
	/* The realm may have moved on since the node was read. */
	a->other_realm = a->has_summary && !is_of_realm(a, a->stands);
}

void
auditor_run(struct auditor *a, mono_t now, const struct auditor_where *where)
{
	a->now = now;
	if (a->step != STEP_IDLE || !where->skew->has_own ||
	    where->own_claim[0] == '\0')
		return;
	if (!a->poked && !mono_reached(now, a->due))
		return;
	take_where(a, where);
	/* Also before a sweep: whoever woke up late sees that he is late. */
	a->sweeps_next = mono_reached(now, a->due);
	read_node(a);
}

mono_t
auditor_wake(const struct auditor *a)
{
	return (a->step == STEP_IDLE ? a->due : MONO_NEVER);
}

static bool
own_reply(struct auditor *a, const struct zk_event *ev)
{
	if (a->step == STEP_SWEEPING)
		return (survey_reply(a->survey, ev));
	if (a->op == 0 || ev->op != a->op)
		return (false);
	a->op = 0;
	if (a->step == STEP_WRITING) {
		written(a, ev);
		return (true);
	}
	a->step = STEP_IDLE;
	take_node(a, ev);
	if (!a->known || !a->sweeps_next || !mono_reached(a->now, a->due))
		return (true);
	if (is_ahead(a)) {
		a->other_told = false;
		a->due = mono_add_ms(a->now, a->conf->audit_ms);
	} else
		start_sweep(a);
	return (true);
}

bool
auditor_reply(struct auditor *a, const struct zk_event *ev, mono_t now)
{
	a->now = now;
	return (own_reply(a, ev));
}

/* ---- questions -------------------------------------------------------------------- */

bool
auditor_reading(const struct auditor *a)
{
	return (a->step == STEP_READING);
}

const struct audit *
auditor_summary(const struct auditor *a)
{
	return (a->has_summary && !a->other_realm ? a->stands : NULL);
}

bool
auditor_saw_other_realm(struct auditor *a)
{
	bool news = a->other_realm && !a->other_told;

	a->other_told = a->other_realm;
	return (news);
}

void
auditor_figures(
    const struct auditor *a, mono_t now, struct auditor_figures *out)
{
	*out = a->figures;
	out->summary = auditor_summary(a);
	out->age_ms = out->summary == NULL ? 0 : mono_diff_ms(now, a->seen);
	out->own = out->own && out->summary != NULL;
}
