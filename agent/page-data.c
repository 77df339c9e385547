/* SPDX-License-Identifier: Apache-2.0 */
/* page-data - what the page shows as JSON, by which it updates itself. */
#include <limits.h>

#include "json_out.h"
#include "page-private.h"

#define TAIL_ROOM 128 /* for what comes after the rows */
#define ROW_ROOM 768 /* the longest row */

static void
put_figures(struct json_out *o, const struct page_view *v)
{
	struct page_figure figures[PAGE_FIGURES];

	page_figures(v, figures);
	json_open(o, "figures", '[');
	for (size_t i = 0; i < PAGE_FIGURES; i++) {
		json_open(o, NULL, '{');
		json_put_text(o, "name", figures[i].name);
		json_put_text(o, "value", figures[i].value);
		json_put_text(o, "note", figures[i].note);
		json_close(o, '}');
	}
	json_close(o, ']');
}

static void
put_alerts(struct json_out *o, const struct page_view *v)
{
	struct page_alert alerts[PAGE_ALERTS_MAX];
	size_t n = page_alerts(v, alerts);

	json_open(o, "alerts", '[');
	for (size_t i = 0; i < n; i++) {
		json_open(o, NULL, '{');
		json_put_text(
		    o, "severity", alerts[i].critical ? "critical" : "warning");
		json_put_text(o, "kind", alerts[i].kind);
		json_put_text(o, "text", alerts[i].text);
		json_put_text_or_null(o, "since", alerts[i].since);
		json_close(o, '}');
	}
	json_close(o, ']');
}

static void
put_row(struct json_out *o, const struct row *r)
{
	json_open(o, NULL, '{');
	json_put_text(o, "level", row_level_name(r->level));
	json_put_number(o, "worker", (int64_t)r->worker);
	json_put_text(o, "host", r->host);
	json_put_text(o, "state", r->state);
	json_put_text(o, "reason", r->reason);
	json_put_number_or_null(o, "skew_us", r->has_skew, r->skew_us);
	json_put_number_or_null(o, "error_us", r->has_skew, r->error_us);
	json_put_number_or_null(o, "left_ms", r->has_left, r->left_ms);
	json_put_number_or_null(o, "ids_per_s", r->has_rate, r->ids_per_s);
	json_put_number_or_null(o, "age_ms", r->has_age, r->age_ms);
	json_close(o, '}');
}

static size_t
put_rows(struct json_out *o, const struct page_view *v)
{
	size_t i = 0;

	json_open(o, "agents", '[');
	for (; i < v->nrows && o->size - o->used > ROW_ROOM + TAIL_ROOM; i++)
		put_row(o, &v->rows[i]);
	json_close(o, ']');
	return (i);
}

int
page_data_format(const struct page_view *v, char *buf, size_t n)
{
	char note[PAGE_TEXT_MAX], self[2 * PAGE_TEXT_MAX];
	struct json_out o;
	size_t shown;

	page_note(v, note);
	page_self(v, self);
	json_out_buffer(&o, buf, n);
	json_open(&o, NULL, '{');
	json_put_text(&o, "realm", v->status->realm);
	json_put_text(&o, "note", note);
	json_put_text(&o, "self", self);
	put_figures(&o, v);
	put_alerts(&o, v);
	json_put_bool(&o, "whole", v->whole);
	shown = put_rows(&o, v);
	json_put_number(
	    &o, "more", (int64_t)(v->all > shown ? v->all - shown : 0));
	json_close(&o, '}');
	return (json_out_end(&o));
}
