/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page - the fleet on one page for a browser.
 *
 * Invariant: no text of others is in it unescaped, and it loads nothing.
 */
#include "page.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "summary.h"

struct page {
	char *buf;
	size_t size, used;
	bool full; /* something did not fit */
};

__attribute__((format(printf, 2, 3))) static void
put(struct page *p, const char *format, ...)
{
	va_list ap;
	int n;

	if (p->full)
		return;
	va_start(ap, format);
	n = vsnprintf(p->buf + p->used, p->size - p->used, format, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= p->size - p->used)
		p->full = true;
	else
		p->used += (size_t)n;
}

/* Whatever its writer put into it. */
static void
put_text(struct page *p, const char *text)
{
	for (; *text != '\0'; text++) {
		if (strchr("<>&\"'", *text) != NULL)
			put(p, "&#%d;", *text);
		else
			put(p, "%c", *text);
	}
}

static void
put_row(struct page *p, const char *name, const char *text)
{
	put(p, "<tr><th>%s<td>", name);
	put_text(p, text);
	put(p, "\n");
}

/* ---- parts ---------------------------------------------------------------------- */

static void
put_head(struct page *p, const struct status_doc *d)
{
	put(p, "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\">"
	       "<meta http-equiv=\"refresh\" content=\"10\">\n<title>firn: ");
	put_text(p, d->realm);
	put(p, "</title>\n<style>body{font-family:sans-serif;margin:2em}"
	       "th,td{text-align:left;padding:.2em 1em .2em 0}"
	       ".critical{color:#b00}.warning{color:#960}</style>\n<h1>");
	put_text(p, d->realm);
	put(p, "</h1>\n");
}

static void
put_agent(struct page *p, const struct status_doc *d)
{
	char worker[24] = "none";

	if (d->worker != NO_WORKER)
		(void)snprintf(worker, sizeof(worker), "%" PRIu64, d->worker);
	put(p, "<h2>This agent</h2>\n<table>\n");
	put_row(p, "State", d->state);
	if (d->words[0] != '\0')
		put_row(p, "Reason", d->words);
	put_row(p, "Worker ID", worker);
	put_row(p, "Layout", d->bits);
	put_row(p, "Version", d->version);
	put(p, "</table>\n");
}

static void
put_alerts(struct page *p, const struct audit *a)
{
	char words[SUMMARY_WORDS_MAX];

	if (a->nalerts == 0)
		put(p, "<p>No alert stands.</p>\n");
	for (size_t i = 0; i < a->nalerts; i++) {
		const char *severity =
		    a->alerts[i].critical ? "critical" : "warning";

		summary_alert_words(&a->alerts[i], words);
		put(p, "<p class=\"%s\">%s: ", severity, severity);
		put_text(p, audit_kind_name(a->alerts[i].kind));
		put(p, ": ");
		put_text(p, words);
		put(p, "</p>\n");
	}
}

static void
put_figures(struct page *p, const struct audit *a)
{
	put(p, "<table>\n<tr><th>Agents<td>%" PRIu64 "\n", a->agents);
	for (int s = 0; s < AUDIT_STATES; s++)
		put(p, "<tr><th>%s<td>%" PRIu64 "\n",
		    audit_state_name((enum audit_state)s), a->states[s]);
	put(p,
	    "<tr><th>Worker IDs<td>%" PRIu64 " taken, %" PRIu64
	    " quarantined, %" PRIu64 " free\n",
	    a->taken.count, a->quarantined.count, a->free.count);
	put(p,
	    "<tr><th>Clocks<td>%" PRIu64 " hosts, %.3f s between the two that "
	    "are furthest apart\n</table>\n",
	    a->hosts, (double)a->spread_us / 1e6);
}

/* Those that do not serve, or whose clocks or renewals are not right. */
static void
put_worst(struct page *p, const struct audit *a)
{
	if (a->nworst == 0)
		return;
	put(p, "<table>\n<tr><th>Worker ID<th>Host<th>State<th>Reason"
	       "<th>Clock<th>Silent\n");
	for (size_t i = 0; i < a->nworst; i++) {
		const struct audit_worst *w = &a->worst[i];

		put(p, "<tr><td>%" PRIu64 "<td>", w->worker);
		put_text(p, w->host);
		put(p, "<td>");
		put_text(p, w->state);
		put(p, "<td>");
		put_text(p, w->reason);
		put(p, "<td>");
		if (w->has_skew)
			put(p, "%+.3f s", (double)w->skew_us / 1e6);
		put(p, "<td>");
		if (w->stale_ms > 0)
			put(p, "%" PRId64 " s", w->stale_ms / 1000);
		put(p, "\n");
	}
	put(p, "</table>\n");
}

int
page_format(const struct status_doc *d, const struct audit *fleet,
    int64_t age_ms, char *buf, size_t n)
{
	struct page p = { .buf = buf, .size = n };

	put_head(&p, d);
	put_agent(&p, d);
	put(&p, "<h2>Fleet</h2>\n");
	if (fleet == NULL)
		put(&p, "<p>Nobody has summed it up yet.</p>\n");
	if (fleet != NULL) {
		put(&p, "<p>As summed up %" PRId64 " s ago by ", age_ms / 1000);
		put_text(&p, fleet->auditor_host);
		put(&p, ".</p>\n");
		put_alerts(&p, fleet);
		put_figures(&p, fleet);
		put_worst(&p, fleet);
	}
	return (p.full || p.used > INT_MAX ? -1 : (int)p.used);
}
