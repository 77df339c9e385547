/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mark - a mark with its owner's status as JSON and back.
 *
 * Invariant: what is formatted parses again, to the same mark; a mark that
 * nobody could read would take its worker ID away from everyone.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "json_out.h"
#include "mark.h"

#define TAG_TEXT_MAX 33
#define RATE_MAX INT64_C(1000000000000)
#define INSTANT_MS_MAX INT64_C(253402300799999) /* end of the year 9999 */

static bool
owner_valid(const char *owner)
{
	for (; *owner != '\0'; owner++)
		if (*owner < 0x21 || *owner > 0x7e || *owner == '"' ||
		    *owner == '\\')
			return (false);
	return (true);
}

static bool
parse_word(const char *digits, uint64_t *out)
{
	uint64_t v = 0;

	for (int i = 0; i < 16; i++) {
		char c = digits[i];

		if (c >= '0' && c <= '9')
			v = v << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v << 4 | (uint64_t)(c - 'a' + 10);
		else
			return (false);
	}
	*out = v;
	return (true);
}

static bool
parse_tag(const char *text, struct tag *out)
{
	return (strlen(text) == TAG_TEXT_MAX - 1 &&
		parse_word(text, &out->word[0]) &&
		parse_word(text + 16, &out->word[1]));
}

static int
get_mark(const struct json_at *at, struct mark *m)
{
	char tag[TAG_TEXT_MAX];

	if (json_get_i64(at, "ceiling_tick", -MARK_CEILING_MAX,
		MARK_CEILING_MAX, &m->ceiling) != 0 ||
	    json_get_text(at, "owner", m->owner, sizeof(m->owner)) != 0 ||
	    json_get_text(at, "tag", tag, sizeof(tag)) != 0)
		return (-1);
	if (!owner_valid(m->owner)) {
		doc_error_set(at->err, "owner: this is no name of a claim");
		return (-1);
	}
	if (!parse_tag(tag, &m->tag)) {
		doc_error_set(at->err, "tag: must be 32 hexadecimal digits");
		return (-1);
	}
	return (0);
}

/* For people: one that is odd is none. */
static void
get_rate(const struct json_at *at, struct agent_status *st)
{
	struct json_at quiet = *at;

	quiet.err = NULL;
	st->has_rate =
	    json_has(at, "ids_per_s") &&
	    json_get_i64(&quiet, "ids_per_s", 0, RATE_MAX, &st->ids_per_s) == 0;
}

/* What the owner's clock was found to be; all of it or nothing. */
static int
get_offset(const struct json_at *at, struct agent_status *st)
{
	st->has_offset = json_has(at, "offset_us");
	if (!st->has_offset)
		return (0);
	if (json_get_i64(at, "offset_us", -MARK_OFFSET_US_MAX,
		MARK_OFFSET_US_MAX, &st->offset_us) != 0 ||
	    json_get_i64(
		at, "error_us", 0, MARK_OFFSET_US_MAX, &st->error_us) != 0 ||
	    json_get_i64(at, "stamp_ms", 0, INSTANT_MS_MAX, &st->stamp_ms) !=
		0 ||
	    json_get_i64(at, "epoch", 0, INT32_MAX, &st->epoch) != 0)
		return (-1);
	return (json_get_i64(at, "skew_us", -MARK_OFFSET_US_MAX,
	    MARK_OFFSET_US_MAX, &st->skew_us));
}

static int
get_status(const struct json_at *top, struct agent_status *st)
{
	char boot_id[UUID_TEXT_MAX];
	struct json_at at;

	if (json_get_object(top, "status", "status.", &at) != 0 ||
	    json_get_label(&at, "state", st->state, sizeof(st->state)) != 0 ||
	    json_get_label(&at, "reason", st->reason, sizeof(st->reason)) !=
		0 ||
	    json_get_label(&at, "host", st->host, sizeof(st->host)) != 0 ||
	    json_get_label(&at, "version", st->version, sizeof(st->version)) !=
		0 ||
	    json_get_i64(&at, "pid", 0, INT32_MAX, &st->pid) != 0 ||
	    json_get_text(&at, "boot_id", boot_id, sizeof(boot_id)) != 0)
		return (-1);
	if (st->state[0] == '\0') {
		doc_error_set(at.err, "status.state: it is empty");
		return (-1);
	}
	if (!uuid_parse(boot_id, st->boot_id)) {
		doc_error_set(at.err, "status.boot_id: must be a UUID");
		return (-1);
	}
	get_rate(&at, st);
	return (get_offset(&at, st));
}

int
mark_parse(const char *text, size_t length, struct mark *out,
    struct agent_status *st, struct doc_error *err)
{
	struct mark m = { 0 };
	struct agent_status status = { 0 };
	struct json_at at = { NULL, "", err };
	cJSON *doc = json_read(text, length, err);
	int rc;

	if (doc == NULL)
		return (-1);
	at.object = doc;
	rc = get_mark(&at, &m);
	at.err = NULL;
	if (st != NULL && get_status(&at, &status) != 0)
		status = (struct agent_status){ 0 };
	cJSON_Delete(doc);
	if (rc != 0)
		return (-1);
	*out = m;
	if (st != NULL)
		*st = status;
	return (0);
}

static int64_t
clamp(int64_t v, int64_t min, int64_t max)
{
	return (v < min ? min : v > max ? max : v);
}

static int64_t
clamp_offset(int64_t us)
{
	return (clamp(us, -MARK_OFFSET_US_MAX, MARK_OFFSET_US_MAX));
}

static void
put_offset(struct json_out *o, const struct agent_status *st)
{
	if (!st->has_offset)
		return;
	json_put_i64(o, "offset_us", clamp_offset(st->offset_us));
	json_put_i64(o, "error_us", clamp(st->error_us, 0, MARK_OFFSET_US_MAX));
	json_put_i64(o, "stamp_ms", clamp(st->stamp_ms, 0, INSTANT_MS_MAX));
	json_put_i64(o, "epoch", clamp(st->epoch, 0, INT32_MAX));
	json_put_i64(o, "skew_us", clamp_offset(st->skew_us));
}

static void
put_status(struct json_out *o, const struct agent_status *st)
{
	char boot_id[UUID_TEXT_MAX];

	uuid_format(st->boot_id, boot_id);
	json_open(o, "status", '{');
	json_put_text(o, "state", st->state);
	json_put_text(o, "reason", st->reason);
	json_put_text(o, "host", st->host);
	json_put_text(o, "version", st->version);
	json_put_number(o, "pid", clamp(st->pid, 0, INT32_MAX));
	json_put_text(o, "boot_id", boot_id);
	if (st->has_rate)
		json_put_number(
		    o, "ids_per_s", clamp(st->ids_per_s, 0, RATE_MAX));
	put_offset(o, st);
	json_close(o, '}');
}

int
mark_format(
    const struct mark *m, const struct agent_status *st, char *buf, size_t n)
{
	char tag[TAG_TEXT_MAX];
	struct json_out o;

	if (m->ceiling > MARK_CEILING_MAX || m->ceiling < -MARK_CEILING_MAX ||
	    !owner_valid(m->owner))
		return (-1);
	(void)snprintf(tag, sizeof(tag), "%016" PRIx64 "%016" PRIx64,
	    m->tag.word[0], m->tag.word[1]);
	json_out_buffer(&o, buf, n);
	json_open(&o, NULL, '{');
	json_put_i64(&o, "ceiling_tick", m->ceiling);
	json_put_text(&o, "owner", m->owner);
	json_put_text(&o, "tag", tag);
	if (st != NULL)
		put_status(&o, st);
	json_close(&o, '}');
	return (json_out_end(&o));
}

int
claim_doc_parse(const char *text, size_t length, struct agent_status *st,
    struct doc_error *err)
{
	struct agent_status status = { 0 };
	struct json_at at = { NULL, "", err };
	cJSON *doc = json_read(text, length, err);
	int rc;

	if (doc == NULL)
		return (-1);
	at.object = doc;
	rc = get_status(&at, &status);
	cJSON_Delete(doc);
	if (rc != 0)
		return (-1);
	*st = status;
	return (0);
}

int
claim_doc_format(const struct agent_status *st, char *buf, size_t n)
{
	struct json_out o;

	json_out_buffer(&o, buf, n);
	json_open(&o, NULL, '{');
	put_status(&o, st);
	json_close(&o, '}');
	return (json_out_end(&o));
}
