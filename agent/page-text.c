/* SPDX-License-Identifier: Apache-2.0 */
/* page-text - what the page says in words, in HTML and in JSON alike. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "page-private.h"

__attribute__((format(printf, 3, 4))) static void
set(char *to, size_t n, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(to, n, format, ap); /* cut, if it must be */
	va_end(ap);
}

/* ---- figures ------------------------------------------------------------------ */

/* "997 serving, 2 isolated, 1 refusing" */
static void
note_states(const struct audit *a, char *to, size_t n)
{
	size_t used = 0;

	to[0] = '\0';
	for (int s = 0; s < AUDIT_STATES && used < n; s++) {
		if (a->states[s] == 0)
			continue;
		set(to + used, n - used, "%s%" PRIu64 " %s",
		    used > 0 ? ", " : "", a->states[s],
		    audit_state_name((enum audit_state)s));
		used = strlen(to);
	}
}

static void
set_agents(const struct audit *a, struct page_figure *agents,
    struct page_figure *trouble)
{
	uint64_t serve = a->states[AUDIT_SERVING] + a->states[AUDIT_ISOLATED];

	set(agents->value, sizeof(agents->value), "%" PRIu64, a->agents);
	note_states(a, agents->note, sizeof(agents->note));
	set(trouble->value, sizeof(trouble->value), "%" PRIu64,
	    a->agents > serve ? a->agents - serve : 0);
	set(trouble->note, sizeof(trouble->note), "%" PRIu64 " silent too long",
	    a->stale);
}

void
page_figures(const struct page_view *v, struct page_figure out[PAGE_FIGURES])
{
	static const char *const names[PAGE_FIGURES] = { "Agents",
		"Not serving", "Clocks apart", "Worker IDs free" };
	const struct audit *a = v->fleet;

	for (size_t i = 0; i < PAGE_FIGURES; i++)
		out[i] = (struct page_figure){ .name = names[i], .value = "-" };
	if (a == NULL)
		return;
	set_agents(a, &out[0], &out[1]);
	if (a->hosts > 0)
		set(out[2].value, sizeof(out[2].value), "%.3f s",
		    (double)a->spread_us / 1e6);
	set(out[2].note, sizeof(out[2].note),
	    "the two furthest of %" PRIu64 " hosts", a->hosts);
	set(out[3].value, sizeof(out[3].value), "%" PRIu64, a->free.count);
	set(out[3].note, sizeof(out[3].note),
	    "%" PRIu64 " taken, %" PRIu64 " not yet free again", a->taken.count,
	    a->quarantined.count);
}

/* ---- alerts ------------------------------------------------------------------- */

/* To the second. */
static void
set_since(int64_t ms, char since[RFC3339_TEXT_MAX])
{
	char *point;

	if (!rfc3339_format(ms, since)) {
		since[0] = '\0';
		return;
	}
	point = strchr(since, '.');
	if (point != NULL && point[1] != '\0')
		memcpy(point, "Z", 2);
}

static size_t
add_fleet_alerts(
    const struct audit *a, bool critical, struct page_alert *out, size_t n)
{
	for (size_t i = 0; a != NULL && i < a->nalerts; i++) {
		const struct audit_alert *x = &a->alerts[i];
		struct page_alert *to = &out[n];
		char words[SUMMARY_WORDS_MAX];

		if (x->critical != critical)
			continue;
		*to = (struct page_alert){ .critical = critical };
		set(to->kind, sizeof(to->kind), "%s", audit_kind_name(x->kind));
		summary_alert_words(x, words);
		set(to->text, sizeof(to->text), "%s", words);
		set_since(x->since_ms, to->since);
		n++;
	}
	return (n);
}

size_t
page_alerts(const struct page_view *v, struct page_alert out[PAGE_ALERTS_MAX])
{
	struct rows_alert of_rows[ROWS_ALERTS_MAX];
	size_t n = 0;
	size_t nrows = rows_alerts(v->rows, v->nrows, &v->limits, of_rows);

	for (int critical = 1; critical >= 0; critical--) {
		n = add_fleet_alerts(v->fleet, critical != 0, out, n);
		for (size_t i = 0; i < nrows; i++) {
			if (of_rows[i].critical != (critical != 0))
				continue;
			out[n] =
			    (struct page_alert){ .critical = critical != 0 };
			set(out[n].kind, sizeof(out[n].kind), "%s",
			    of_rows[i].kind);
			set(out[n].text, sizeof(out[n].text), "%s",
			    of_rows[i].text);
			n++;
		}
	}
	return (n);
}

/* ---- lines -------------------------------------------------------------------- */

void
page_note(const struct page_view *v, char out[PAGE_TEXT_MAX])
{
	char by[PAGE_TEXT_MAX / 2] = "Nobody has summed the fleet up yet.";

	if (v->fleet != NULL)
		set(by, sizeof(by), "Summed up %" PRId64 " s ago by %.40s.",
		    v->fleet_age_ms / 1000,
		    v->fleet->auditor_host[0] != '\0' ? v->fleet->auditor_host
						      : "?");
	if (v->whole)
		set(out, PAGE_TEXT_MAX,
		    "%s All agents, read %" PRId64 " s ago.", by,
		    v->rows_age_ms / 1000);
	else
		set(out, PAGE_TEXT_MAX,
		    "%s Here are only the worst of them: the others are being "
		    "read.",
		    by);
}

void
page_self(const struct page_view *v, char out[2 * PAGE_TEXT_MAX])
{
	const struct status_doc *d = v->status;
	char worker[24] = "none";

	if (d->worker != NO_WORKER)
		set(worker, sizeof(worker), "%" PRIu64, d->worker);
	set(out, 2 * PAGE_TEXT_MAX,
	    "This agent: %s%s%s, worker ID %s, layout %s, firnd %s", d->state,
	    d->words[0] != '\0' ? ", " : "", d->words, worker, d->bits,
	    d->version);
}
