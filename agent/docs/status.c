/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status - the document of `firn status` as JSON and back.
 *
 * Invariant: a text takes at most twice its bytes, so that the longest
 * document stays below WIRE_STATUS_MAX.
 */
#include <string.h>

#include "json.h"
#include "json_out.h"
#include "status.h"

/* Strings, so that no reader's double spoils them. */
static void
put_i64_or_null(struct json_out *o, const char *key, bool known, int64_t v)
{
	if (known)
		json_put_i64(o, key, v);
	else
		json_put_null(o, key);
}

static void
put_contract(struct json_out *o, const struct status_doc *d)
{
	json_put_text_or_null(o, "realm", d->realm);
	json_put_text_or_null(o, "uuid", d->uuid);
	json_put_text_or_null(o, "generation", d->generation);
	json_put_text_or_null(o, "layout", d->layout);
	json_put_text_or_null(o, "bits", d->bits);
	put_i64_or_null(o, "epoch_ms", d->bits[0] != '\0', d->epoch_ms);
	json_put_number_or_null(o, "tick_ms", d->bits[0] != '\0', d->tick_ms);
}

static void
put_lease(struct json_out *o, const struct status_doc *d)
{
	if (d->worker == NO_WORKER)
		json_put_null(o, "worker");
	else if (d->worker > INT64_MAX)
		json_put_u64(o, "worker", d->worker);
	else
		json_put_number(o, "worker", (int64_t)d->worker);
	json_put_text_or_null(o, "claim", d->claim);
	put_i64_or_null(o, "counter", d->counter >= 0, d->counter);
	put_i64_or_null(o, "mark_ms", d->mark_ms != 0, d->mark_ms);
	json_put_number_or_null(
	    o, "window_left_ms", d->mark_ms != 0, d->window_left_ms);
	json_put_text_or_null(o, "source", d->source);
	json_put_bool(o, "connected", d->connected);
	json_put_number_or_null(o, "skew_ms", d->has_skew, d->skew_ms);
	json_put_number_or_null(o, "offset_ms", d->has_offset, d->offset_ms);
	json_put_number_or_null(o, "error_ms", d->has_offset, d->error_ms);
	json_put_number(o, "peers", d->peers);
	if (d->has_kernel)
		json_put_bool(o, "kernel_synchronized", d->kernel_synchronized);
	else
		json_put_null(o, "kernel_synchronized");
	json_put_number_or_null(
	    o, "kernel_error_ms", d->has_kernel, d->kernel_error_ms);
	json_put_text_or_null(o, "kernel_leap", d->kernel_leap);
}

int
status_format(const struct status_doc *d, char *buf, size_t n)
{
	struct json_out o;

	json_out_buffer(&o, buf, n);
	json_open(&o, NULL, '{');
	json_put_text(&o, "state", d->state);
	json_put_text(&o, "reason", d->reason);
	json_put_text(&o, "words", d->words);
	put_contract(&o, d);
	put_lease(&o, d);
	json_put_u64(&o, "issued", d->issued);
	json_put_u64(&o, "clients", d->clients);
	json_put_u64(&o, "batches", d->batches);
	json_put_u64(&o, "refusals", d->refusals);
	json_put_u64(&o, "denied", d->denied);
	json_put_u64(&o, "limited", d->limited);
	json_put_u64(&o, "config_reloads", d->config_reloads);
	json_put_u64(&o, "config_reload_failures", d->config_reload_failures);
	json_put_number(&o, "pid", d->pid);
	json_put_text(&o, "version", d->version);
	json_close(&o, '}');
	return (json_out_end(&o));
}

static int
get_text(const struct json_at *at, const char *key, char *out, size_t size)
{
	return (json_has(at, key) ? json_get_label(at, key, out, size) : 0);
}

static int
get_i64(const struct json_at *at, const char *key, int64_t *out)
{
	if (!json_has(at, key))
		return (0);
	return (json_get_i64(at, key, INT64_MIN, INT64_MAX, out));
}

static int
get_u64(const struct json_at *at, const char *key, uint64_t *out)
{
	if (!json_has(at, key))
		return (0);
	return (json_get_u64(at, key, UINT64_MAX, out));
}

static int
get_words(const struct json_at *at, struct status_doc *d)
{
	if (json_get_label(at, "state", d->state, sizeof(d->state)) != 0 ||
	    get_text(at, "reason", d->reason, sizeof(d->reason)) != 0 ||
	    get_text(at, "words", d->words, sizeof(d->words)) != 0 ||
	    get_text(at, "realm", d->realm, sizeof(d->realm)) != 0 ||
	    get_text(at, "uuid", d->uuid, sizeof(d->uuid)) != 0 ||
	    get_text(at, "generation", d->generation, sizeof(d->generation)) !=
		0 ||
	    get_text(at, "layout", d->layout, sizeof(d->layout)) != 0 ||
	    get_text(at, "bits", d->bits, sizeof(d->bits)) != 0 ||
	    get_text(at, "claim", d->claim, sizeof(d->claim)) != 0 ||
	    get_text(at, "source", d->source, sizeof(d->source)) != 0)
		return (-1);
	return (get_text(at, "version", d->version, sizeof(d->version)));
}

static int
get_kernel(const struct json_at *at, struct status_doc *d)
{
	d->has_kernel = json_has(at, "kernel_synchronized");
	if (d->has_kernel && json_get_bool(at, "kernel_synchronized",
				 &d->kernel_synchronized) != 0)
		return (-1);
	if (get_i64(at, "kernel_error_ms", &d->kernel_error_ms) != 0)
		return (-1);
	return (get_text(
	    at, "kernel_leap", d->kernel_leap, sizeof(d->kernel_leap)));
}

static int
get_figures(const struct json_at *at, struct status_doc *d)
{
	if (get_i64(at, "epoch_ms", &d->epoch_ms) != 0 ||
	    get_i64(at, "tick_ms", &d->tick_ms) != 0 ||
	    get_u64(at, "worker", &d->worker) != 0 ||
	    get_i64(at, "counter", &d->counter) != 0 ||
	    get_i64(at, "mark_ms", &d->mark_ms) != 0 ||
	    get_i64(at, "window_left_ms", &d->window_left_ms) != 0 ||
	    get_i64(at, "skew_ms", &d->skew_ms) != 0 ||
	    get_i64(at, "offset_ms", &d->offset_ms) != 0 ||
	    get_i64(at, "error_ms", &d->error_ms) != 0 ||
	    get_i64(at, "peers", &d->peers) != 0 ||
	    get_u64(at, "issued", &d->issued) != 0 ||
	    get_u64(at, "clients", &d->clients) != 0 ||
	    get_u64(at, "batches", &d->batches) != 0 ||
	    get_u64(at, "refusals", &d->refusals) != 0 ||
	    get_u64(at, "denied", &d->denied) != 0 ||
	    get_u64(at, "limited", &d->limited) != 0 ||
	    get_u64(at, "config_reloads", &d->config_reloads) != 0 ||
	    get_u64(at, "config_reload_failures", &d->config_reload_failures) !=
		0 ||
	    get_i64(at, "pid", &d->pid) != 0)
		return (-1);
	d->has_skew = json_has(at, "skew_ms");
	d->has_offset = json_has(at, "offset_ms");
	if (!json_has(at, "connected"))
		return (0);
	return (json_get_bool(at, "connected", &d->connected));
}

int
status_parse(const char *text, size_t length, struct status_doc *out,
    struct doc_error *err)
{
	struct status_doc d = { .worker = NO_WORKER, .counter = -1 };
	struct json_at at = { NULL, "", err };
	cJSON *doc = json_read(text, length, err);
	int rc;

	if (doc == NULL)
		return (-1);
	at.object = doc;
	rc = get_words(&at, &d);
	if (rc == 0)
		rc = get_kernel(&at, &d);
	if (rc == 0)
		rc = get_figures(&at, &d);
	cJSON_Delete(doc);
	if (rc == 0)
		*out = d;
	return (rc);
}
