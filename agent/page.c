/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page - the fleet on one page for a browser: a plain table, which the script
 * in it replaces by one that updates itself.
 *
 * Invariant: no text of others is in it unescaped, and it loads nothing else.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "page-assets.h" /* made of page.css and page.js */
#include "page-private.h"

#define ROW_ROOM 1536 /* the longest row, and what comes after the rows */

struct page {
	char *buf;
	size_t size, used;
	bool full; /* something did not fit */
};

static void
put_bytes(struct page *p, const char *text, size_t n)
{
	if (p->full || n >= p->size - p->used) {
		p->full = true;
		return;
	}
	memcpy(p->buf + p->used, text, n);
	p->used += n;
	p->buf[p->used] = '\0';
}

static void
put_raw(struct page *p, const char *text)
{
	put_bytes(p, text, strlen(text));
}

__attribute__((format(printf, 2, 3))) static void
put(struct page *p, const char *format, ...)
{
	char text[PAGE_TEXT_MAX];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(text))
		p->full = true;
	else
		put_bytes(p, text, (size_t)n);
}

/* Whatever its writer put into it. */
static void
put_text(struct page *p, const char *text)
{
	while (*text != '\0') {
		size_t plain = strcspn(text, "<>&\"'");

		put_bytes(p, text, plain);
		text += plain;
		if (*text != '\0')
			put(p, "&#%d;", *text++);
	}
}

/* ---- parts ---------------------------------------------------------------------- */

static void
put_head(struct page *p, const struct page_view *v, const char *nonce)
{
	put_raw(p, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
		   "<meta charset=\"utf-8\">\n<title>");
	put_text(p, v->status->realm);
	put_raw(p, " - firn</title>\n<meta name=\"viewport\" "
		   "content=\"width=device-width, initial-scale=1\">\n"
		   "<meta name=\"color-scheme\" content=\"light dark\">\n"
		   "<link rel=\"icon\" href=\"data:,\">\n<noscript>"
		   "<meta http-equiv=\"refresh\" content=\"5\"></noscript>\n");
	put(p, "<style nonce=\"%s\">\n", nonce);
	put_raw(p, page_css);
	put_raw(p, "</style>\n</head>\n<body>\n");
}

static void
put_alerts(struct page *p, const struct page_view *v)
{
	struct page_alert alerts[PAGE_ALERTS_MAX];
	size_t n = page_alerts(v, alerts);

	put_raw(p, "<ul id=\"alerts\" aria-live=\"polite\">\n");
	if (n == 0)
		put_raw(p, "<li class=\"none\">No alert stands.\n");
	for (size_t i = 0; i < n; i++) {
		const char *severity =
		    alerts[i].critical ? "critical" : "warning";

		put(p, "<li class=\"%s\"><b>%s</b> <code>", severity, severity);
		put_text(p, alerts[i].kind);
		put_raw(p, "</code> <span>");
		put_text(p, alerts[i].text);
		put_raw(p, "</span>");
		if (alerts[i].since[0] != '\0')
			put(p, " <small>since %s</small>", alerts[i].since);
		put_raw(p, "\n");
	}
	put_raw(p, "</ul>\n");
}

static void
put_figures(struct page *p, const struct page_view *v)
{
	struct page_figure figures[PAGE_FIGURES];

	page_figures(v, figures);
	put_raw(p, "<dl id=\"figures\">\n");
	for (size_t i = 0; i < PAGE_FIGURES; i++)
		put(p, "<div><dt>%s<dd>%s<dd class=\"note\">%s</div>\n",
		    figures[i].name, figures[i].value, figures[i].note);
	put_raw(p, "</dl>\n");
}

static void
put_row(struct page *p, const struct row *r)
{
	put(p, "<tr class=\"%s\"><td>", row_level_name(r->level));
	put_text(p, r->state);
	if (r->reason[0] != '\0') {
		put_raw(p, " <i>");
		put_text(p, r->reason);
		put_raw(p, "</i>");
	}
	put(p, "<td>%" PRIu64 "<th scope=\"row\">", r->worker);
	put_text(p, r->host);
	put_raw(p, "<td>");
	if (r->has_skew)
		put(p, "%+.3f<td>%.1f", (double)r->skew_us / 1e6,
		    (double)r->error_us / 1e3);
	else
		put_raw(p, "-<td>-");
	put_raw(p, "<td>");
	if (r->has_left)
		put(p, "%" PRId64, r->left_ms / 1000);
	put_raw(p, "<td>");
	if (r->has_rate)
		put(p, "%" PRId64, r->ids_per_s);
	put_raw(p, "<td>");
	if (r->has_age)
		put(p, "%" PRId64, r->age_ms / 1000);
	put_raw(p, "\n");
}

static void
put_table(struct page *p, const struct page_view *v)
{
	static const char *const heads[] = { "State", "Worker ID", "Host",
		"Clock off by, s", "\302\261, ms", "Window left, s", "IDs/s",
		"Written, s ago" };
	size_t i = 0;

	put_raw(p, "<div id=\"wide\" role=\"region\" aria-label=\"Agents\" "
		   "tabindex=\"0\">\n<table>\n<thead><tr>");
	for (size_t h = 0; h < sizeof(heads) / sizeof(heads[0]); h++)
		put(p, "<th scope=\"col\">%s", heads[h]);
	put_raw(p, "</thead>\n<tbody id=\"rows\">\n");
	for (; i < v->nrows && !p->full && p->size - p->used > ROW_ROOM; i++)
		put_row(p, &v->rows[i]);
	put_raw(p, "</tbody>\n</table>\n</div>\n<p id=\"more\">");
	if (v->all > i)
		put(p, "%zu more agents are not in this table.", v->all - i);
	put_raw(p, "</p>\n");
}

static void
put_foot(struct page *p, const struct page_view *v, const char *nonce)
{
	char self[2 * PAGE_TEXT_MAX];

	page_self(v, self);
	put_raw(p, "</main>\n<footer><p id=\"self\">");
	put_text(p, self);
	put(p, "</p></footer>\n<script nonce=\"%s\">\n", nonce);
	put_raw(p, page_js);
	put_raw(p, "</script>\n</body>\n</html>\n");
}

/* What comes after the rows, which leave it its room. */
static size_t
foot_room(void)
{
	return (sizeof(page_js) + 16 * PAGE_TEXT_MAX);
}

int
page_format(const struct page_view *v, const char *nonce, char *buf, size_t n)
{
	struct page p = { .buf = buf, .size = n };
	char note[PAGE_TEXT_MAX];

	if (n < foot_room())
		return (-1);
	p.size = n - foot_room();
	put_head(&p, v, nonce);
	put_raw(&p, "<header><h1>");
	put_text(&p, v->status->realm);
	put_raw(&p, "</h1><p id=\"note\">");
	page_note(v, note);
	put_text(&p, note);
	put_raw(&p, "</p></header>\n<main>\n");
	put_alerts(&p, v);
	put_figures(&p, v);
	put_table(&p, v);
	p.size = n;
	put_foot(&p, v, nonce);
	return (p.full || p.used > INT_MAX ? -1 : (int)p.used);
}
