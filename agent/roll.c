/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roll - the whole fleet row by row, read for as long as somebody looks.
 *
 * Invariant: one reading at a time, twice in each audit_ms at most, however
 * many ask and however often.
 */
#include "roll.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "survey.h"

#define LOOK_MS 15000 /* so long after a question somebody still looks */
#define KEEP_MS 60000 /* so long what was read is kept */

struct roll {
	const struct conf *conf;
	struct survey *survey; /* NULL: none is under way */
	struct survey_memory memory;
	int64_t survey_ms; /* ZooKeeper's clock as it began */
	mono_t now, started;
	mono_t asked; /* MONO_NEVER: nobody ever did */
	mono_t due;
	struct audit_member *members;
	size_t n, all;
	int64_t read_ms;
	mono_t read_at;
};

struct roll *
roll_open(const struct conf *conf)
{
	struct roll *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return (NULL);
	r->conf = conf;
	r->asked = MONO_NEVER;
	return (r);
}

static void
forget(struct roll *r)
{
	free(r->members);
	r->members = NULL;
	r->n = r->all = 0;
}

void
roll_close(struct roll *r)
{
	if (r == NULL)
		return;
	survey_cancel(r->survey);
	survey_forget(&r->memory);
	forget(r);
	free(r);
}

void
roll_disconnected(struct roll *r)
{
	survey_cancel(r->survey);
	r->survey = NULL;
}

/* ---- when ------------------------------------------------------------------- */

static bool
asked_within(const struct roll *r, mono_t now, int64_t ms)
{
	return (r->asked.ns != MONO_NEVER.ns &&
		!mono_reached(now, mono_add_ms(r->asked, ms)));
}

void
roll_ask(struct roll *r, mono_t now)
{
	r->asked = now;
}

mono_t
roll_wake(const struct roll *r)
{
	if (r->survey != NULL || r->asked.ns == MONO_NEVER.ns)
		return (MONO_NEVER);
	if (asked_within(r, r->now, LOOK_MS))
		return (r->due);
	return (
	    r->members == NULL ? MONO_NEVER : mono_add_ms(r->asked, KEEP_MS));
}

/* ---- the reading ------------------------------------------------------------ */

static void
on_surveyed(void *arg, const struct survey_result *s)
{
	struct roll *r = arg;
	size_t n = s->n < ROLL_ROWS_MAX ? s->n : ROLL_ROWS_MAX;
	struct audit_member *members;

	r->survey = NULL; /* frees itself */
	if (!s->good) {
		log_debug("roll: the fleet was not read to its end");
		return;
	}
	members = calloc(n + 1, sizeof(*members));
	if (members == NULL)
		return;
	if (n > 0)
		memcpy(members, s->members, n * sizeof(*members));
	forget(r);
	r->members = members;
	r->n = n;
	r->all = s->n;
	r->read_ms = r->survey_ms;
	r->read_at = r->started;
	log_debug("roll: %zu agents in %" PRId64 " ms, for a page", s->n,
	    mono_diff_ms(r->now, r->started));
}

static void
start(struct roll *r, const struct auditor_where *w)
{
	const struct skew_sample *own = &w->skew->own;
	const struct survey_where where = {
		.zk = w->zk,
		.workers = w->workers,
		.marks = w->marks,
		.k = w->k,
		.now_ms =
		    add_sat(own->stamp_ms, mono_diff_ms(r->now, own->when)),
		.wait_ms = r->conf->claim_wait_ms,
		.memory = &r->memory,
		.foreign = w->foreign,
		.claims_only = true,
	};

	r->survey_ms = where.now_ms;
	r->started = r->now;
	r->due = mono_add_ms(r->now, r->conf->audit_ms / 2);
	r->survey = survey_start(&where, on_surveyed, r);
}

void
roll_run(struct roll *r, mono_t now, const struct auditor_where *where)
{
	r->now = now;
	if (r->survey != NULL)
		return;
	if (!asked_within(r, now, KEEP_MS))
		forget(r);
	if (asked_within(r, now, LOOK_MS) && mono_reached(now, r->due))
		start(r, where);
}

bool
roll_reply(struct roll *r, const struct zk_event *ev, mono_t now)
{
	r->now = now;
	return (r->survey != NULL && survey_reply(r->survey, ev));
}

void
roll_view(const struct roll *r, mono_t now, struct roll_view *out)
{
	*out = (struct roll_view){ .members = r->members,
		.n = r->n,
		.all = r->all,
		.age_ms = mono_diff_ms(now, r->read_at),
		.now_ms = add_sat(r->read_ms, mono_diff_ms(now, r->read_at)) };
}
