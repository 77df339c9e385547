/* SPDX-License-Identifier: Apache-2.0 */
/*
 * realm - the contract of a realm as JSON and back.
 *
 * Invariant: a contract that was parsed is one that the core can work on:
 * valid layout, worker IDs inside it, all numbers in their ranges.
 */
#include <inttypes.h>
#include <string.h>

#include "json.h"
#include "json_out.h"
#include "layout.h"
#include "realm.h"

#define INSTANT_MS_MAX INT64_C(253402300799999) /* end of the year 9999 */
#define TICK_MS_MAX 3600000
#define GENERATION_DIGITS_MAX 10
#define TAG_DIGITS 8

bool
realm_name_valid(const char *name)
{
	size_t n = 0;

	for (; name[n] != '\0'; n++) {
		char c = name[n];

		if (n + 1 >= REALM_NAME_MAX)
			return (false);
		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
		    !(c >= '0' && c <= '9') && c != '.' && c != '_' && c != '-')
			return (false);
	}
	return (n > 0 && strcmp(name, ".") != 0 && strcmp(name, "..") != 0);
}

/* "1-9f3a21c4": it becomes a part of paths, so nothing else will do. */
static bool
parse_generation(const char *text, int64_t *number)
{
	size_t digits = strspn(text, "0123456789");
	char copy[GENERATION_DIGITS_MAX + 1] = "";

	if (digits < 1 || digits > GENERATION_DIGITS_MAX || text[digits] != '-')
		return (false);
	if (strspn(text + digits + 1, "0123456789abcdef") != TAG_DIGITS ||
	    text[digits + 1 + TAG_DIGITS] != '\0')
		return (false);
	memcpy(copy, text, digits);
	return (doc_parse_i64(copy, number) && *number > 0);
}

static int
get_names(const struct json_at *at, struct contract *k)
{
	char uuid[UUID_TEXT_MAX];

	if (json_get_text(at, "uuid", uuid, sizeof(uuid)) != 0 ||
	    json_get_text(at, "generation", k->generation_text,
		sizeof(k->generation_text)) != 0)
		return (-1);
	if (!uuid_parse(uuid, k->uuid)) {
		doc_error_set(at->err, "uuid: must be a UUID in lower case");
		return (-1);
	}
	if (!parse_generation(k->generation_text, &k->generation)) {
		doc_error_set(at->err, "generation: must be a number and eight "
				       "hexadecimal digits, as 1-9f3a21c4");
		return (-1);
	}
	return (0);
}

static int
get_bits(const struct json_at *at, const char *key, uint8_t *out)
{
	int64_t v;

	if (json_get_i64(at, key, 0, 64, &v) != 0)
		return (-1);
	*out = (uint8_t)v;
	return (0);
}

static int
get_layout(const struct json_at *top, struct firn_layout *l)
{
	struct json_at at;
	int64_t tick_ms;
	bool above;

	l->size = (uint32_t)sizeof(*l);
	if (json_get_object(top, "layout", "layout.", &at) != 0 ||
	    json_get_text(&at, "name", l->name, sizeof(l->name)) != 0 ||
	    get_bits(&at, "time_bits", &l->time_bits) != 0 ||
	    get_bits(&at, "worker_bits", &l->worker_bits) != 0 ||
	    get_bits(&at, "sequence_bits", &l->sequence_bits) != 0 ||
	    get_bits(&at, "datacenter_bits", &l->datacenter_bits) != 0 ||
	    json_get_bool(&at, "sequence_above_worker", &above) != 0 ||
	    json_get_i64(top, "tick_ms", 1, TICK_MS_MAX, &tick_ms) != 0 ||
	    json_get_i64(top, "epoch_ms", 0, INSTANT_MS_MAX, &l->epoch_ms) != 0)
		return (-1);
	l->flags = above ? FIRN_SEQUENCE_ABOVE_WORKER : 0;
	l->tick_ms = (uint32_t)tick_ms;
	if (!layout_valid(l)) {
		doc_error_set(top->err,
		    "layout: %u/%u/%u bits (time, worker, "
		    "sequence), %u of the worker's for the datacenter, do not "
		    "make an ID",
		    l->time_bits, l->worker_bits, l->sequence_bits,
		    l->datacenter_bits);
		return (-1);
	}
	return (0);
}

static int
get_workers(const struct json_at *top, struct contract *k)
{
	uint64_t max = layout_worker_max(&k->layout);
	struct json_at at;

	if (json_get_object(top, "workers", "workers.", &at) != 0 ||
	    json_get_u64(&at, "first", max, &k->worker_first) != 0 ||
	    json_get_u64(&at, "last", max, &k->worker_last) != 0)
		return (-1);
	if (k->worker_first > k->worker_last) {
		doc_error_set(top->err,
		    "workers: first (%" PRIu64 ") is above last (%" PRIu64 ")",
		    k->worker_first, k->worker_last);
		return (-1);
	}
	if (k->worker_last - k->worker_first >= WORKERS_MAX) {
		doc_error_set(
		    top->err, "workers: more than %" PRIu64, WORKERS_MAX);
		return (-1);
	}
	return (0);
}

static int
get_contract(const struct json_at *at, struct contract *k)
{
	if (json_get_i64(at, "format", 1, INT32_MAX, &k->format) != 0)
		return (-1);
	if (k->format > REALM_FORMAT) {
		doc_error_set(at->err,
		    "format: %" PRId64 " is newer than %d, the one this "
		    "program knows",
		    k->format, REALM_FORMAT);
		return (REALM_TOO_NEW);
	}
	if (get_names(at, k) != 0 || get_layout(at, &k->layout) != 0 ||
	    json_get_i64(at, "not_before_ms", 0, INSTANT_MS_MAX,
		&k->not_before_ms) != 0 ||
	    json_get_i64(at, "reserve_max_ms", REALM_RESERVE_MAX_MS_LOW,
		REALM_RESERVE_MAX_MS_HIGH, &k->reserve_max_ms) != 0)
		return (-1);
	return (get_workers(at, k));
}

int
realm_parse(const char *text, size_t length, struct contract *out,
    struct doc_error *err)
{
	struct contract k = { 0 };
	struct json_at at = { NULL, "", err };
	cJSON *doc = json_read(text, length, err);
	int rc;

	if (doc == NULL)
		return (-1);
	at.object = doc;
	rc = get_contract(&at, &k);
	cJSON_Delete(doc);
	if (rc == REALM_TOO_NEW)
		*out = (struct contract){ .format = k.format };
	else if (rc == 0)
		*out = k;
	return (rc);
}

static void
put_layout(struct json_out *o, const struct firn_layout *l)
{
	json_open(o, "layout", '{');
	json_put_text(o, "name", l->name);
	json_put_number(o, "time_bits", l->time_bits);
	json_put_number(o, "worker_bits", l->worker_bits);
	json_put_number(o, "sequence_bits", l->sequence_bits);
	json_put_number(o, "datacenter_bits", l->datacenter_bits);
	json_put_bool(o, "sequence_above_worker",
	    (l->flags & FIRN_SEQUENCE_ABOVE_WORKER) != 0);
	json_close(o, '}');
}

int
realm_format(const struct contract *k, char *buf, size_t n)
{
	char uuid[UUID_TEXT_MAX];
	struct json_out o;

	uuid_format(k->uuid, uuid);
	json_out_buffer(&o, buf, n);
	json_open(&o, NULL, '{');
	json_put_number(&o, "format", k->format);
	json_put_text(&o, "uuid", uuid);
	json_put_text(&o, "generation", k->generation_text);
	put_layout(&o, &k->layout);
	json_put_i64(&o, "epoch_ms", k->layout.epoch_ms);
	json_put_number(&o, "tick_ms", k->layout.tick_ms);
	json_put_i64(&o, "not_before_ms", k->not_before_ms);
	json_put_i64(&o, "reserve_max_ms", k->reserve_max_ms);
	json_open(&o, "workers", '{');
	json_put_number(&o, "first", (int64_t)k->worker_first);
	json_put_number(&o, "last", (int64_t)k->worker_last);
	json_close(&o, '}');
	json_close(&o, '}');
	return (json_out_end(&o));
}
