/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record - what stands in the state file, as bytes and back.
 *
 * Layout: {...,"checksum":"16 digits"} newline, blanks, newline: JSON for
 * whoever looks at it.  The checksum is over all that stands before its own
 * comma; the rest has only one form.
 *
 * The checksum is FNV-1a of 64 bits.  What it is to tell is an old record
 * with a part of a new one in it, cut off anywhere, or bytes that a disk gave
 * back as zeros: no adversary, who could as well work out any other sum.
 * Each step of FNV-1a maps states one to one, so a difference, once in, goes
 * away only by a second one that fits it by chance, which 64 bits make 2^-64;
 * a change of one or two neighbouring bytes never goes unseen.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "json_out.h"
#include "layout.h"
#include "mark.h"
#include "realm.h"
#include "record.h"

#define SUM_DIGITS 16
#define SUM_HEAD ",\"checksum\":\""
#define SUM_TAIL "\"}"
#define SUM_LENGTH (sizeof(SUM_HEAD) - 1 + SUM_DIGITS + sizeof(SUM_TAIL) - 1)
#define MACHINE_DIGITS (RECORD_MACHINE_MAX - 1)

static uint64_t
sum_of(const char *bytes, size_t n)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < n; i++)
		h = (h ^ (uint8_t)bytes[i]) * UINT64_C(0x100000001b3);
	return (h);
}

/* With a NUL behind it, which the newline takes the place of. */
static void
write_sum(const char *bytes, size_t n, char out[SUM_LENGTH + 1])
{
	(void)snprintf(out, SUM_LENGTH + 1, SUM_HEAD "%016" PRIx64 SUM_TAIL,
	    sum_of(bytes, n));
}

static bool
is_plain(const char *text)
{
	for (; *text != '\0'; text++)
		if (*text < 0x20 || *text > 0x7e)
			return (false);
	return (true);
}

static bool
is_machine_id(const char *text)
{
	size_t n = strspn(text, "0123456789abcdef");

	return ((n == 0 || n == MACHINE_DIGITS) && text[n] == '\0');
}

static bool
is_tick(int64_t tick)
{
	return (tick >= -MARK_CEILING_MAX && tick <= MARK_CEILING_MAX);
}

/* ---- out ------------------------------------------------------------------- */

/* The contract's JSON, as docs/realm writes it, in the place of the "{" that
 * json_open() has put. */
static int
put_contract(struct json_out *o, const struct contract *k)
{
	int n;

	json_open(o, "contract", '{');
	if (o->full)
		return (-1);
	o->used--;
	n = realm_format(k, o->buf + o->used, o->size - o->used);
	if (n < 0)
		return (-1);
	o->used += (size_t)n;
	o->comma = true;
	return (0);
}

static void
put_window(struct json_out *o, const struct state_record *r)
{
	json_put_bool(o, "open", r->open);
	json_put_text(o, "claim", r->claim);
	json_put_i64(o, "ceiling_tick", r->ceiling);
	json_put_number(o, "version", r->version);
	json_put_i64(o, "local_mark_tick", r->local_mark);
	json_put_u64(o, "worker", r->worker);
	json_put_i64(o, "zxid", r->zxid);
	json_put_bool(o, "skew_refused", r->skew_refused);
	json_put_i64(o, "skew_us", r->skew_us);
	json_put_i64(o, "base_ns", r->base_ns);
}

static void
put_home(struct json_out *o, const struct record_home *h)
{
	char boot_id[UUID_TEXT_MAX];

	uuid_format(h->boot_id, boot_id);
	json_put_text(o, "machine_id", h->machine_id);
	json_put_text(o, "boot_id", boot_id);
	json_put_u64(o, "lock_dev", h->lock_dev);
	json_put_u64(o, "lock_ino", h->lock_ino);
}

int
record_format(const struct state_record *r, const struct record_home *h,
    char buf[RECORD_SIZE])
{
	struct json_out o;
	int n;

	if (!realm_name_valid(r->realm) || !is_plain(r->claim) ||
	    !is_tick(r->ceiling) || !is_tick(r->local_mark) ||
	    r->version < -1 || !is_machine_id(h->machine_id) ||
	    !layout_valid(&r->contract.layout))
		return (-1);
	/* Room for the sum and two newlines. */
	json_out_buffer(&o, buf, RECORD_SIZE - SUM_LENGTH - 1);
	json_open(&o, NULL, '{');
	json_put_number(&o, "format", RECORD_FORMAT);
	json_put_text(&o, "realm", r->realm);
	if (put_contract(&o, &r->contract) != 0)
		return (-1);
	put_window(&o, r);
	put_home(&o, h);
	n = json_out_end(&o);
	if (n < 0)
		return (-1);
	write_sum(buf, (size_t)n, buf + n);
	memset(buf + (size_t)n + SUM_LENGTH, ' ',
	    RECORD_SIZE - SUM_LENGTH - (size_t)n);
	buf[(size_t)n + SUM_LENGTH] = buf[RECORD_SIZE - 1] = '\n';
	return (0);
}

/* ---- in -------------------------------------------------------------------- */

/* The length of the JSON line, 0 if these are not the bytes of a record. */
static size_t
check_bytes(const char *bytes, size_t n, struct doc_error *err)
{
	char sum[SUM_LENGTH + 1];
	const char *end;
	size_t length, head;

	if (n != RECORD_SIZE) {
		if (n < RECORD_SIZE)
			doc_error_set(err, "truncated: only %zu of %d bytes", n,
			    RECORD_SIZE);
		else
			doc_error_set(
			    err, "no state: more than %d bytes", RECORD_SIZE);
		return (0);
	}
	end = memchr(bytes, '\n', n);
	length = end != NULL ? (size_t)(end - bytes) : 0;
	if (length < SUM_LENGTH) {
		doc_error_set(err, "torn or no state: there is no checksum");
		return (0);
	}
	head = length - SUM_LENGTH;
	write_sum(bytes, head, sum);
	if (memcmp(bytes + head, sum, SUM_LENGTH) != 0) {
		doc_error_set(err, "torn or damaged: the checksum is wrong");
		return (0);
	}
	for (size_t i = length + 1; i < n; i++)
		if (bytes[i] != (i == n - 1 ? '\n' : ' ')) {
			doc_error_set(err,
			    "torn or damaged: something stands behind the "
			    "record");
			return (0);
		}
	return (length);
}

static int
get_contract(const struct json_at *at, struct contract *k)
{
	struct json_at object;
	char *text;
	int rc;

	if (json_get_object(at, "contract", "contract.", &object) != 0)
		return (-1);
	text = cJSON_PrintUnformatted(object.object);
	if (text == NULL) {
		doc_error_set(at->err, "out of memory");
		return (-1);
	}
	rc = realm_parse(text, strlen(text), k, at->err);
	cJSON_free(text);
	return (rc == 0 ? 0 : -1);
}

static int
get_window(const struct json_at *at, struct state_record *r)
{
	int64_t version;

	if (json_get_bool(at, "open", &r->open) != 0 ||
	    json_get_text(at, "claim", r->claim, sizeof(r->claim)) != 0 ||
	    json_get_i64(at, "ceiling_tick", -MARK_CEILING_MAX,
		MARK_CEILING_MAX, &r->ceiling) != 0 ||
	    json_get_i64(at, "version", -1, INT32_MAX, &version) != 0 ||
	    json_get_i64(at, "local_mark_tick", -MARK_CEILING_MAX,
		MARK_CEILING_MAX, &r->local_mark) != 0)
		return (-1);
	r->version = (int32_t)version;
	if (json_get_u64(at, "worker", UINT64_MAX, &r->worker) != 0 ||
	    json_get_i64(at, "zxid", INT64_MIN, INT64_MAX, &r->zxid) != 0 ||
	    json_get_bool(at, "skew_refused", &r->skew_refused) != 0 ||
	    json_get_i64(at, "skew_us", INT64_MIN, INT64_MAX, &r->skew_us) != 0)
		return (-1);
	return (json_get_i64(at, "base_ns", INT64_MIN, INT64_MAX, &r->base_ns));
}

static int
get_home(const struct json_at *at, struct record_home *h)
{
	char boot_id[UUID_TEXT_MAX];

	if (json_get_text(
		at, "machine_id", h->machine_id, sizeof(h->machine_id)) != 0 ||
	    json_get_text(at, "boot_id", boot_id, sizeof(boot_id)) != 0)
		return (-1);
	if (!is_machine_id(h->machine_id)) {
		doc_error_set(
		    at->err, "machine_id: must be 32 hexadecimal digits");
		return (-1);
	}
	if (!uuid_parse(boot_id, h->boot_id)) {
		doc_error_set(at->err, "boot_id: must be a UUID");
		return (-1);
	}
	if (json_get_u64(at, "lock_dev", UINT64_MAX, &h->lock_dev) != 0)
		return (-1);
	return (json_get_u64(at, "lock_ino", UINT64_MAX, &h->lock_ino));
}

static int
get_record(
    const struct json_at *at, struct state_record *r, struct record_home *h)
{
	int64_t format;

	if (json_get_i64(at, "format", 1, INT32_MAX, &format) != 0)
		return (-1);
	if (format > RECORD_FORMAT) {
		doc_error_set(at->err,
		    "format: %" PRId64 " is newer than %d, the one this "
		    "program knows",
		    format, RECORD_FORMAT);
		return (-1);
	}
	if (json_get_text(at, "realm", r->realm, sizeof(r->realm)) != 0)
		return (-1);
	if (!realm_name_valid(r->realm)) {
		doc_error_set(at->err, "realm: no name of a realm");
		return (-1);
	}
	if (get_contract(at, &r->contract) != 0 || get_window(at, r) != 0)
		return (-1);
	return (get_home(at, h));
}

int
record_parse(const char *bytes, size_t n, struct state_record *r,
    struct record_home *h, struct doc_error *err)
{
	struct state_record record = { 0 };
	struct record_home home = { 0 };
	struct json_at at = { NULL, "", err };
	size_t length = check_bytes(bytes, n, err);
	cJSON *doc;
	int rc;

	if (length == 0)
		return (-1);
	doc = json_read(bytes, length, err);
	if (doc == NULL)
		return (-1);
	at.object = doc;
	rc = get_record(&at, &record, &home);
	cJSON_Delete(doc);
	if (rc != 0)
		return (-1);
	*r = record;
	*h = home;
	return (0);
}
