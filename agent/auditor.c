/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auditor - reads /firn/REALM/fleet, and writes it when it is one's turn.
 *
 * Invariant: one read, sweep or write at a time; a write carries the version
 * that was read before its sweep began, or creates the node.
 */
#include <stdio.h>
#include <stdlib.h>

#include "audit-turn.h"
#include "auditor-private.h"
#include "summary.h"

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

/* ---- outside --------------------------------------------------------------- */

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
	a->other_realm = a->has_summary && !audit_is_of(a->stands, &a->k);
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
	auditor_read_node(a);
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
		auditor_written(a, ev);
		return (true);
	}
	a->step = STEP_IDLE;
	auditor_take_node(a, ev);
	if (!a->known || !a->sweeps_next || !mono_reached(a->now, a->due))
		return (true);
	if (a->other_realm && audit_is_ahead(a->stands, &a->k)) {
		a->other_told = false;
		a->due = mono_add_ms(a->now, a->conf->audit_ms);
	} else
		auditor_start_sweep(a);
	return (true);
}

bool
auditor_reply(struct auditor *a, const struct zk_event *ev, mono_t now)
{
	a->now = now;
	return (own_reply(a, ev));
}

/* ---- questions ------------------------------------------------------------- */

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
