/* SPDX-License-Identifier: Apache-2.0 */
/* fleet - the document of `firn fleet --json`: rows and figures as JSON. */
#include "fleet.h"
#include "json_out.h"

const char *
fleet_severity_name(enum fleet_severity s)
{
	switch (s) {
	case FLEET_INFO:
		return ("info");
	case FLEET_WARNING:
		return ("warning");
	case FLEET_CRITICAL:
		return ("critical");
	}
	return ("unknown");
}

bool
fleet_is_critical(const struct fleet *f)
{
	for (size_t i = 0; i < f->nalerts; i++)
		if (f->alerts[i].severity == FLEET_CRITICAL)
			return (true);
	return (false);
}

static void
put_worker(struct json_out *o, uint64_t worker)
{
	if (worker != NO_WORKER && worker > INT64_MAX)
		json_put_u64(o, "worker", worker);
	else
		json_put_number_or_null(
		    o, "worker", worker != NO_WORKER, (int64_t)worker);
}

static void
put_row(struct json_out *o, const struct fleet_row *r)
{
	json_open(o, NULL, '{');
	put_worker(o, r->worker);
	json_put_text_or_null(o, "host", r->host);
	json_put_number_or_null(o, "pid", r->pid > 0, r->pid);
	json_put_text_or_null(o, "state", r->state);
	json_put_text(o, "reason", r->reason);
	json_put_number_or_null(o, "skew_ms", r->has_skew, r->skew_ms);
	json_put_number_or_null(o, "error_ms", r->has_error, r->error_ms);
	json_put_number_or_null(
	    o, "mark_lead_ms", r->has_mark, r->mark_lead_ms);
	json_put_text_or_null(o, "version", r->version);
	json_put_text_or_null(o, "claim", r->claim);
	json_close(o, '}');
}

static void
put_alert(struct json_out *o, const struct fleet_alert *a)
{
	json_open(o, NULL, '{');
	json_put_text(o, "kind", a->kind);
	json_put_text(o, "severity", fleet_severity_name(a->severity));
	json_put_text_or_null(o, "host", a->host);
	put_worker(o, a->worker);
	json_put_text_or_null(o, "since", a->since);
	json_put_text(o, "text", a->text);
	json_close(o, '}');
}

static void
put_auditor(struct json_out *o, const struct fleet_auditor *a)
{
	if (a->claim[0] == '\0') {
		json_put_null(o, "auditor");
		return;
	}
	json_open(o, "auditor", '{');
	json_put_text(o, "claim", a->claim);
	json_put_text_or_null(o, "host", a->host);
	json_put_number(o, "age_ms", a->age_ms);
	json_close(o, '}');
}

int
fleet_print(const struct fleet *f, FILE *out)
{
	struct json_out o;

	json_out_file(&o, out);
	json_open(&o, NULL, '{');
	json_open(&o, "agents", '[');
	for (size_t i = 0; i < f->nrows; i++)
		put_row(&o, &f->rows[i]);
	json_close(&o, ']');
	json_put_number_or_null(
	    &o, "mean_offset_ms", f->has_offset, f->mean_offset_ms);
	json_put_number_or_null(&o, "spread_ms", f->has_offset, f->spread_ms);
	json_open(&o, "alerts", '[');
	for (size_t i = 0; i < f->nalerts; i++)
		put_alert(&o, &f->alerts[i]);
	json_close(&o, ']');
	json_put_number(&o, "free_workers", (int64_t)f->free_workers);
	put_auditor(&o, &f->auditor);
	json_close(&o, '}');
	/* Whether it has all arrived shows only when it is written out. */
	if (fputc('\n', out) == EOF || fflush(out) != 0)
		return (-1);
	return (json_out_end(&o) < 0 ? -1 : 0);
}
