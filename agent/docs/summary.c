/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary - a fleet's audit as JSON and back.
 *
 * Invariant: the longest one stays below SUMMARY_DOC_MAX, since every list of
 * an audit is bounded and no text in it needs an escape.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "json_out.h"
#include "rfc3339.h"
#include "summary.h"

#define RANGES_TEXT_MAX 3000
#define US_PER_MS 1000

/* ---- words --------------------------------------------------------------------- */

static void
ending_words(const struct audit_alert *a, char buf[SUMMARY_WORDS_MAX])
{
	char when[RFC3339_TEXT_MAX], last[RFC3339_TEXT_MAX];

	/* a limit below it is that of an auditor of another version */
	if (!rfc3339_format(a->value, when))
		(void)snprintf(when, sizeof(when), "an end");
	else if (a->limit > a->value && rfc3339_format(a->limit, last)) {
		(void)snprintf(buf, SUMMARY_WORDS_MAX,
		    "IDs are negative in a signed column from %s on; the "
		    "layout has ticks until %s",
		    when, last);
		return;
	}
	(void)snprintf(buf, SUMMARY_WORDS_MAX,
	    "the layout has ticks until %s: plan its successor", when);
}

void
summary_alert_words(const struct audit_alert *a, char buf[SUMMARY_WORDS_MAX])
{
	switch (a->kind) {
	case AUDIT_AGENT_STALE:
		(void)snprintf(buf, SUMMARY_WORDS_MAX,
		    "worker ID %" PRIu64 " on %s has written nothing for "
		    "%" PRId64 " ms",
		    a->worker, a->host[0] != '\0' ? a->host : "?", a->value);
		return;
	case AUDIT_DUPLICATE_CLAIM:
		(void)snprintf(buf, SUMMARY_WORDS_MAX,
		    "worker ID %" PRIu64 " is claimed twice, the second time "
		    "on %s",
		    a->worker, a->host[0] != '\0' ? a->host : "?");
		return;
	case AUDIT_WORKERS_LOW:
		(void)snprintf(buf, SUMMARY_WORDS_MAX,
		    "%" PRId64 " of %" PRId64 " worker IDs are free", a->value,
		    a->limit);
		return;
	case AUDIT_EPOCH_ENDING:
		ending_words(a, buf);
		return;
	case AUDIT_FLEET_SKEW:
		(void)snprintf(buf, SUMMARY_WORDS_MAX,
		    "the clocks are %" PRId64 " ms apart", a->value);
		return;
	case AUDIT_MARKS_DELETED:
		(void)snprintf(buf, SUMMARY_WORDS_MAX,
		    "nodes were deleted among the marks (%" PRId64
		    "): `firn realm renew` ends it",
		    a->value);
		return;
	case AUDIT_KINDS:
		break;
	}
	buf[0] = '\0';
}

/* ---- out ------------------------------------------------------------------------ */

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
put_head(struct json_out *o, const struct audit *a)
{
	char uuid[UUID_TEXT_MAX];

	uuid_format(a->uuid, uuid);
	json_put_text(o, "uuid", uuid);
	json_put_text(o, "generation", a->generation);
	json_put_i64(o, "not_before_ms", a->not_before_ms);
	json_open(o, "auditor", '{');
	json_put_text(o, "claim", a->auditor);
	json_put_text(o, "host", a->auditor_host);
	json_close(o, '}');
	json_put_text_or_null(o, "oldest", a->oldest);
	json_put_i64(o, "swept_ms", a->swept_ms);
	json_put_number(o, "took_ms", a->took_ms);
	json_put_number(o, "audit_ms", a->audit_ms);
	json_put_i64(o, "epoch", a->epoch);
}

static void
put_agents(struct json_out *o, const struct audit *a)
{
	json_open(o, "agents", '{');
	json_put_number(o, "all", (int64_t)a->agents);
	for (int s = 0; s < AUDIT_STATES; s++)
		json_put_number(o, audit_state_name((enum audit_state)s),
		    (int64_t)a->states[s]);
	json_put_number(o, "stale", (int64_t)a->stale);
	json_close(o, '}');
}

static void
put_worst(struct json_out *o, const struct audit *a)
{
	json_open(o, "worst", '[');
	for (size_t i = 0; i < a->nworst; i++) {
		const struct audit_worst *w = &a->worst[i];

		json_open(o, NULL, '{');
		put_worker(o, w->worker);
		json_put_text(o, "host", w->host);
		json_put_text(o, "state", w->state);
		json_put_text(o, "reason", w->reason);
		if (w->has_skew) {
			json_put_number(o, "skew_us", w->skew_us);
			json_put_number(o, "error_us", w->error_us);
		}
		json_put_number(o, "stale_ms", w->stale_ms);
		json_close(o, '}');
	}
	json_close(o, ']');
}

static void
put_clocks(struct json_out *o, const struct audit *a)
{
	char boot_id[UUID_TEXT_MAX];

	json_open(o, "clocks", '{');
	json_put_number(o, "hosts", (int64_t)a->hosts);
	json_put_number(o, "count", (int64_t)a->count);
	json_put_i64(o, "median_us", a->median_us);
	json_put_i64(o, "sum_us", a->sum_us);
	json_put_i64(o, "oldest_stamp_ms", a->oldest_stamp_ms);
	json_put_i64(o, "spread_us", a->spread_us);
	json_put_number(o, "left_out", (int64_t)a->nleft_all);
	json_close(o, '}');
	json_open(o, "left_out", '[');
	for (size_t i = 0; i < a->nleft; i++) {
		uuid_format(a->left[i].boot_id, boot_id);
		json_open(o, NULL, '{');
		put_worker(o, a->left[i].worker);
		json_put_text(o, "boot_id", boot_id);
		json_put_i64(o, "offset_us", a->left[i].offset_us);
		json_close(o, '}');
	}
	json_close(o, ']');
}

/* "0-17,19"; what does not fit is counted. */
static void
put_ranges(struct json_out *o, const char *key, const struct audit_ranges *r)
{
	char text[RANGES_TEXT_MAX] = "", one[48];
	uint64_t more = r->more;
	size_t used = 0;

	for (size_t i = 0; i < r->n; i++) {
		const char *comma = used > 0 ? "," : "";
		size_t length;

		if (r->first[i] == r->last[i])
			(void)snprintf(
			    one, sizeof(one), "%s%" PRIu64, comma, r->first[i]);
		else
			(void)snprintf(one, sizeof(one),
			    "%s%" PRIu64 "-%" PRIu64, comma, r->first[i],
			    r->last[i]);
		length = strlen(one);
		if (used + length >= sizeof(text)) {
			more += r->last[i] - r->first[i] + 1;
			continue;
		}
		memcpy(text + used, one, length + 1);
		used += length;
	}
	json_open(o, key, '{');
	json_put_number(o, "count", (int64_t)r->count);
	json_put_text(o, "ranges", text);
	json_put_number(o, "more", (int64_t)more);
	json_close(o, '}');
}

static void
put_workers(struct json_out *o, const struct audit *a)
{
	json_open(o, "workers", '{');
	put_ranges(o, "taken", &a->taken);
	put_ranges(o, "quarantined", &a->quarantined);
	put_ranges(o, "free", &a->free);
	json_close(o, '}');
	json_open(o, "doubles", '[');
	for (size_t i = 0; i < a->ndoubles; i++)
		json_put_text(o, NULL, a->doubles[i]);
	json_close(o, ']');
	json_put_number(o, "marks_deleted", a->marks_deleted);
}

static void
put_alerts(struct json_out *o, const struct audit *a)
{
	char words[SUMMARY_WORDS_MAX], since[RFC3339_TEXT_MAX];

	json_open(o, "alerts", '[');
	for (size_t i = 0; i < a->nalerts; i++) {
		const struct audit_alert *x = &a->alerts[i];

		if (!rfc3339_format(x->since_ms, since))
			continue;
		summary_alert_words(x, words);
		json_open(o, NULL, '{');
		json_put_text(o, "kind", audit_kind_name(x->kind));
		json_put_text(
		    o, "severity", x->critical ? "critical" : "warning");
		put_worker(o, x->worker);
		json_put_text_or_null(o, "host", x->host);
		json_put_text(o, "since", since);
		json_put_i64(o, "seen_ms", x->seen_ms);
		json_put_number(o, "value", x->value);
		json_put_number(o, "limit", x->limit);
		json_put_text(o, "text", words);
		json_close(o, '}');
	}
	json_close(o, ']');
}

int
summary_format(const struct audit *a, char *buf, size_t n)
{
	struct json_out o;

	json_out_buffer(&o, buf, n);
	json_open(&o, NULL, '{');
	put_head(&o, a);
	put_agents(&o, a);
	put_clocks(&o, a);
	put_workers(&o, a);
	put_alerts(&o, a);
	put_worst(&o, a);
	json_close(&o, '}');
	return (json_out_end(&o));
}

/* ---- in ------------------------------------------------------------------------- */

static int
get_count(const struct json_at *at, const char *key, uint64_t *out)
{
	return (json_get_u64(at, key, INT64_MAX, out));
}

static int
get_any(const struct json_at *at, const char *key, int64_t *out)
{
	return (json_get_i64(at, key, INT64_MIN, INT64_MAX, out));
}

static int
get_worker(const struct json_at *at, uint64_t *out)
{
	*out = NO_WORKER;
	if (!json_has(at, "worker"))
		return (0);
	return (json_get_u64(at, "worker", NO_WORKER - 1, out));
}

/* The items of a list that is there; NULL: none. */
static const cJSON *
first_of(const struct json_at *at, const char *key)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(at->object, key);

	return (cJSON_IsArray(list) ? list->child : NULL);
}

static int
get_head(const struct json_at *at, struct audit *a)
{
	char uuid[UUID_TEXT_MAX];
	struct json_at by;

	if (json_get_text(at, "uuid", uuid, sizeof(uuid)) != 0 ||
	    json_get_text(
		at, "generation", a->generation, sizeof(a->generation)) != 0 ||
	    get_any(at, "not_before_ms", &a->not_before_ms) != 0 ||
	    get_any(at, "swept_ms", &a->swept_ms) != 0 ||
	    get_any(at, "took_ms", &a->took_ms) != 0 ||
	    get_any(at, "audit_ms", &a->audit_ms) != 0 ||
	    get_any(at, "epoch", &a->epoch) != 0)
		return (-1);
	if (!uuid_parse(uuid, a->uuid)) {
		doc_error_set(at->err, "uuid: must be a UUID");
		return (-1);
	}
	if (json_get_object(at, "auditor", "auditor.", &by) != 0 ||
	    json_get_label(&by, "claim", a->auditor, sizeof(a->auditor)) != 0 ||
	    json_get_label(
		&by, "host", a->auditor_host, sizeof(a->auditor_host)) != 0)
		return (-1);
	if (!json_has(at, "oldest"))
		return (0);
	return (json_get_label(at, "oldest", a->oldest, sizeof(a->oldest)));
}

static int
get_agents(const struct json_at *top, struct audit *a)
{
	struct json_at at;

	if (json_get_object(top, "agents", "agents.", &at) != 0 ||
	    get_count(&at, "all", &a->agents) != 0 ||
	    get_count(&at, "stale", &a->stale) != 0)
		return (-1);
	for (int s = 0; s < AUDIT_STATES; s++)
		if (get_count(&at, audit_state_name((enum audit_state)s),
			&a->states[s]) != 0)
			return (-1);
	return (0);
}

static int
get_clocks(const struct json_at *top, struct audit *a)
{
	struct json_at at;

	if (json_get_object(top, "clocks", "clocks.", &at) != 0 ||
	    get_count(&at, "hosts", &a->hosts) != 0 ||
	    get_count(&at, "count", &a->count) != 0 ||
	    get_any(&at, "median_us", &a->median_us) != 0 ||
	    get_any(&at, "sum_us", &a->sum_us) != 0 ||
	    get_any(&at, "oldest_stamp_ms", &a->oldest_stamp_ms) != 0 ||
	    get_any(&at, "spread_us", &a->spread_us) != 0)
		return (-1);
	return (get_count(&at, "left_out", &a->nleft_all));
}

static int
get_left(const struct json_at *top, struct audit *a)
{
	for (const cJSON *i = first_of(top, "left_out");
	     i != NULL && a->nleft < AUDIT_LEFT_MAX; i = i->next) {
		struct audit_left *l = &a->left[a->nleft];
		const struct json_at at = { i, "left_out[].", top->err };
		char boot_id[UUID_TEXT_MAX];

		if (get_worker(&at, &l->worker) != 0 ||
		    get_any(&at, "offset_us", &l->offset_us) != 0 ||
		    json_get_text(&at, "boot_id", boot_id, sizeof(boot_id)) !=
			0)
			return (-1);
		if (uuid_parse(boot_id, l->boot_id))
			a->nleft++;
	}
	return (0);
}

static int
get_ranges_count(
    const struct json_at *top, const char *key, struct audit_ranges *r)
{
	struct json_at at;

	if (json_get_object(top, key, "workers.", &at) != 0)
		return (-1);
	return (get_count(&at, "count", &r->count));
}

static int
get_workers(const struct json_at *top, struct audit *a)
{
	struct json_at at;

	if (json_get_object(top, "workers", "workers.", &at) != 0 ||
	    get_ranges_count(&at, "taken", &a->taken) != 0 ||
	    get_ranges_count(&at, "quarantined", &a->quarantined) != 0 ||
	    get_ranges_count(&at, "free", &a->free) != 0 ||
	    get_any(top, "marks_deleted", &a->marks_deleted) != 0)
		return (-1);
	for (const cJSON *i = first_of(top, "doubles");
	     i != NULL && a->ndoubles < AUDIT_DOUBLES_MAX; i = i->next)
		if (cJSON_IsString(i) &&
		    strlen(i->valuestring) < CLAIM_NAME_MAX)
			(void)snprintf(a->doubles[a->ndoubles++],
			    CLAIM_NAME_MAX, "%s", i->valuestring);
	return (0);
}

static bool
parse_kind(const char *text, enum audit_kind *out)
{
	for (int k = 0; k < AUDIT_KINDS; k++) {
		if (strcmp(text, audit_kind_name((enum audit_kind)k)) != 0)
			continue;
		*out = (enum audit_kind)k;
		return (true);
	}
	return (false);
}

static int
get_alert(const struct json_at *at, struct audit *a)
{
	struct audit_alert *x = &a->alerts[a->nalerts];
	char kind[24], severity[12], since[RFC3339_TEXT_MAX];

	*x = (struct audit_alert){ .kind = AUDIT_KINDS };
	if (json_get_label(at, "kind", kind, sizeof(kind)) != 0 ||
	    json_get_label(at, "severity", severity, sizeof(severity)) != 0 ||
	    json_get_label(at, "since", since, sizeof(since)) != 0 ||
	    get_worker(at, &x->worker) != 0 ||
	    get_any(at, "seen_ms", &x->seen_ms) != 0 ||
	    get_any(at, "value", &x->value) != 0 ||
	    get_any(at, "limit", &x->limit) != 0 ||
	    (json_has(at, "host") &&
		json_get_label(at, "host", x->host, sizeof(x->host)) != 0))
		return (-1);
	x->critical = strcmp(severity, "critical") == 0;
	if (rfc3339_parse(since, &x->since_ms, NULL) == 0 &&
	    parse_kind(kind, &x->kind))
		a->nalerts++;
	return (0);
}

static int
get_worst(const struct json_at *at, struct audit *a)
{
	struct audit_worst *w = &a->worst[a->nworst];

	*w = (struct audit_worst){ .has_skew = json_has(at, "skew_us") };
	if (get_worker(at, &w->worker) != 0 ||
	    json_get_label(at, "host", w->host, sizeof(w->host)) != 0 ||
	    json_get_label(at, "state", w->state, sizeof(w->state)) != 0 ||
	    json_get_label(at, "reason", w->reason, sizeof(w->reason)) != 0 ||
	    (w->has_skew && (get_any(at, "skew_us", &w->skew_us) != 0 ||
				get_any(at, "error_us", &w->error_us) != 0)) ||
	    get_any(at, "stale_ms", &w->stale_ms) != 0)
		return (-1);
	a->nworst++;
	return (0);
}

static int
get_lists(const struct json_at *top, struct audit *a)
{
	struct json_at at = { NULL, "alerts[].", top->err };

	for (const cJSON *i = first_of(top, "alerts");
	     i != NULL && a->nalerts < AUDIT_ALERTS_MAX; i = i->next) {
		at.object = i;
		if (get_alert(&at, a) != 0)
			return (-1);
	}
	at.prefix = "worst[].";
	for (const cJSON *i = first_of(top, "worst");
	     i != NULL && a->nworst < AUDIT_WORST_MAX; i = i->next) {
		at.object = i;
		if (get_worst(&at, a) != 0)
			return (-1);
	}
	return (get_left(top, a));
}

int
summary_parse(
    const char *text, size_t length, struct audit *out, struct doc_error *err)
{
	struct json_at at = { NULL, "", err };
	cJSON *doc = json_read(text, length, err);
	int rc = -1;

	if (doc == NULL)
		return (-1);
	memset(out, 0, sizeof(*out));
	at.object = doc;
	if (get_head(&at, out) == 0 && get_agents(&at, out) == 0 &&
	    get_clocks(&at, out) == 0 && get_workers(&at, out) == 0)
		rc = get_lists(&at, out);
	cJSON_Delete(doc);
	return (rc);
}
