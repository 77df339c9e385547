/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows - the agents of a fleet as the page shows them, by trouble.
 *
 * What is in them comes from others and may be anything: sums saturate, and
 * texts are cut.
 */
#include "rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define US_PER_MS 1000
#define NAMED_MAX 3 /* hosts in the words of an alert */

const char *
row_level_name(enum row_level level)
{
	switch (level) {
	case ROW_BAD:
		return ("bad");
	case ROW_WARN:
		return ("warn");
	case ROW_GOOD:
		return ("good");
	}
	return ("");
}

static int64_t
magnitude(int64_t v)
{
	if (v == INT64_MIN)
		return (INT64_MAX);
	return (v < 0 ? -v : v);
}

static bool
is_off(const struct row *r, const struct rows_limits *k)
{
	return (r->has_skew && magnitude(r->skew_us) > k->warn_us);
}

static enum row_level
level_of(const struct row *r, const struct rows_limits *k)
{
	bool serves = strcmp(r->state, "serving") == 0;

	if (r->has_age && r->age_ms > k->stale_ms)
		return (ROW_BAD);
	if (!serves && strcmp(r->state, "isolated") != 0 &&
	    strcmp(r->state, "claiming") != 0 &&
	    strcmp(r->state, "draining") != 0)
		return (ROW_BAD); /* refusing, silent, or what we do not know */
	return (!serves || is_off(r, k) ? ROW_WARN : ROW_GOOD);
}

void
row_of_member(struct row *r, const struct audit_member *m, int64_t now_ms,
    const struct rows_limits *k)
{
	const struct agent_status *st = &m->status;

	*r = (struct row){ .worker = m->worker,
		.host = st->host,
		.state = st->state[0] != '\0' ? st->state : "silent",
		.reason = st->reason,
		.has_skew = st->has_offset,
		.skew_us = st->skew_us,
		.error_us = st->error_us,
		.has_left = m->has_window,
		.has_rate = st->has_rate,
		.ids_per_s = st->ids_per_s,
		.has_age = m->written_ms > 0,
		.age_ms = max64(0, sub_sat(now_ms, m->written_ms)) };
	if (st->has_offset)
		now_ms = add_sat(now_ms, st->offset_us / US_PER_MS);
	r->left_ms = max64(0, sub_sat(m->window_ms, now_ms));
	r->level = level_of(r, k);
}

void
row_of_worst(struct row *r, const struct audit_worst *w, int64_t age_ms,
    const struct rows_limits *k)
{
	*r = (struct row){ .worker = w->worker,
		.host = w->host,
		.state = w->state[0] != '\0' ? w->state : "silent",
		.reason = w->reason,
		.has_skew = w->has_skew,
		.skew_us = w->skew_us,
		.error_us = w->error_us,
		.has_age = w->stale_ms > 0,
		.age_ms = add_sat(w->stale_ms, age_ms) };
	r->level = level_of(r, k);
}

static int
compare(const void *pa, const void *pb)
{
	const struct row *a = pa, *b = pb;
	int64_t sa = a->has_skew ? magnitude(a->skew_us) : 0;
	int64_t sb = b->has_skew ? magnitude(b->skew_us) : 0;

	if (a->level != b->level)
		return (a->level < b->level ? -1 : 1);
	if (a->level != ROW_GOOD && sa != sb)
		return (sa > sb ? -1 : 1);
	if (a->worker != b->worker)
		return (a->worker < b->worker ? -1 : 1);
	return (strcmp(a->host, b->host));
}

void
rows_sort(struct row *rows, size_t n)
{
	if (n > 0)
		qsort(rows, n, sizeof(*rows), compare);
}

/* ---- alerts ------------------------------------------------------------------- */

/* A kind of trouble while it is counted. */
struct group {
	bool critical;
	const char *kind, *what;
	uint64_t count;
	char named[ROWS_WORDS_MAX / 2];
};

static void
add_name(struct group *g, const char *host)
{
	size_t used = strlen(g->named);

	if (g->count++ < NAMED_MAX && used < sizeof(g->named))
		(void)snprintf(g->named + used, sizeof(g->named) - used,
		    "%s%.30s", used > 0 ? ", " : "",
		    host[0] != '\0' ? host : "?");
}

static void
count(struct group *groups, size_t *n, bool critical, const char *kind,
    const char *what, const char *host)
{
	size_t i = 0;

	while (i < *n && strcmp(groups[i].kind, kind) != 0)
		i++;
	if (i == ROWS_ALERTS_MAX)
		return;
	if (i == *n)
		groups[(*n)++] = (struct group){ critical, kind, what, 0, "" };
	add_name(&groups[i], host);
}

static void
describe(const struct group *g, struct rows_alert *out)
{
	out->critical = g->critical;
	(void)snprintf(out->kind, sizeof(out->kind), "%s", g->kind);
	(void)snprintf(out->text, sizeof(out->text), "%" PRIu64 " %s %s: %s%s",
	    g->count, g->count == 1 ? "agent" : "agents", g->what, g->named,
	    g->count > NAMED_MAX ? ", ..." : "");
}

size_t
rows_alerts(const struct row *rows, size_t n, const struct rows_limits *k,
    struct rows_alert out[ROWS_ALERTS_MAX])
{
	struct group groups[ROWS_ALERTS_MAX];
	size_t ngroups = 0;

	for (size_t i = 0; i < n; i++) {
		const struct row *r = &rows[i];

		if (strcmp(r->state, "refusing") == 0)
			count(groups, &ngroups, true,
			    r->reason[0] != '\0' ? r->reason : r->state,
			    "refusing to hand out IDs", r->host);
		else if (is_off(r, k))
			count(groups, &ngroups, false, "skew_warn",
			    "with a clock that is off its peers'", r->host);
	}
	for (size_t i = 0; i < ngroups; i++)
		describe(&groups[i], &out[i]);
	return (ngroups);
}
