/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auditor-node - /firn/REALM/fleet, read and written.
 *
 * Invariant: what is written carries the version that was read before the
 * sweep began, or creates the node; an alert is said by who wrote it.
 */
#include <string.h>

#include "audit-turn.h"
#include "auditor-private.h"
#include "log.h"
#include "summary.h"
#include "sysclock.h"

const struct audit *
auditor_standing(const struct auditor *a)
{
	return (a->has_summary && audit_is_of_uuid(a->stands, &a->k) ? a->stands
								     : NULL);
}

static bool
is_own(const struct auditor *a, const char *claim)
{
	return (a->own_claim[0] != '\0' && strcmp(a->own_claim, claim) == 0);
}

static void
set_due(struct auditor *a)
{
	bool good = !a->missing && a->has_summary && !a->other_realm;
	struct entropy rnd;
	int64_t wait_ms;

	sysclock_entropy(&rnd);
	wait_ms = audit_turn_ms(good ? a->stands : NULL, a->own_claim,
	    a->conf->audit_ms, rnd.word[0]);
	a->due = mono_add_ms(a->seen, wait_ms);
}

void
auditor_fail(struct auditor *a, const char *what)
{
	struct entropy rnd;

	log_debug("audit: %s", what);
	a->figures.failures++;
	a->step = STEP_IDLE;
	/* Who failed together does not try again together. */
	sysclock_entropy(&rnd);
	a->due = mono_add_ms(a->now,
	    a->conf->audit_ms +
		audit_turn_ms(NULL, "", a->conf->audit_ms, rnd.word[0]));
}

/* ---- alerts ---------------------------------------------------------------- */

static void
say_alert(void *arg, const struct audit_alert *x, bool raised)
{
	const struct auditor *a = arg;
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

/* ---- read ------------------------------------------------------------------ */

static void
take_stat(struct auditor *a, const struct zk_event *ev)
{
	int64_t age_ms = sub_sat(auditor_zookeeper_ms(a), ev->stat.mtime_ms);

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
	audit_news(auditor_standing(a), a->next, say_alert, a);
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
	bool good = ev->length > 0 &&
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
	a->other_realm = good && !audit_is_of(a->stands, &a->k);
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

void
auditor_take_node(struct auditor *a, const struct zk_event *ev)
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

void
auditor_read_node(struct auditor *a)
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

/* ---- written --------------------------------------------------------------- */

void
auditor_write_node(struct auditor *a)
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
		auditor_fail(a, "the summary was not submitted");
}

void
auditor_written(struct auditor *a, const struct zk_event *ev)
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
		auditor_fail(a, "the summary was refused");
		return;
	}
}
