/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_out - writing JSON into a buffer or a file.
 *
 * Invariant: used < size, and buf holds a NUL at used after each call.
 */
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "json_out.h"

#define EXACT_MAX INT64_C(9007199254740991) /* 2^53 - 1 */

void
json_out_buffer(struct json_out *o, char *buf, size_t size)
{
	*o = (struct json_out){ .buf = buf, .size = size, .full = size == 0 };
	if (size > 0)
		buf[0] = '\0';
}

void
json_out_file(struct json_out *o, FILE *file)
{
	*o = (struct json_out){ .file = file };
}

static void
put(struct json_out *o, const char *text, size_t n)
{
	if (o->full)
		return;
	if (o->file != NULL) {
		o->full = fwrite(text, 1, n, o->file) != n;
		o->used += n;
		return;
	}
	if (n >= o->size - o->used) {
		o->full = true;
		return;
	}
	memcpy(o->buf + o->used, text, n);
	o->used += n;
	o->buf[o->used] = '\0';
}

static void
put_string(struct json_out *o, const char *text)
{
	size_t left = strlen(text);

	put(o, "\"", 1);
	while (left > 0) {
		size_t n = doc_utf8_length(text, left);

		if (*text == '"' || *text == '\\')
			put(o, "\\", 1);
		if (n == 0 || (unsigned char)*text < 0x20 || *text == 0x7f) {
			put(o, "?", 1);
			n = 1;
		} else {
			put(o, text, n);
		}
		text += n;
		left -= n;
	}
	put(o, "\"", 1);
}

static void
put_key(struct json_out *o, const char *key)
{
	if (o->comma)
		put(o, ",", 1);
	o->comma = true;
	if (key == NULL)
		return;
	put_string(o, key);
	put(o, ":", 1);
}

void
json_open(struct json_out *o, const char *key, char bracket)
{
	put_key(o, key);
	put(o, &bracket, 1);
	o->comma = false;
}

void
json_close(struct json_out *o, char bracket)
{
	put(o, &bracket, 1);
	o->comma = true;
}

void
json_put_text(struct json_out *o, const char *key, const char *text)
{
	put_key(o, key);
	put_string(o, text);
}

void
json_put_bool(struct json_out *o, const char *key, bool v)
{
	const char *word = v ? "true" : "false";

	put_key(o, key);
	put(o, word, strlen(word));
}

void
json_put_null(struct json_out *o, const char *key)
{
	put_key(o, key);
	put(o, "null", 4);
}

void
json_put_i64(struct json_out *o, const char *key, int64_t v)
{
	char digits[24];

	(void)snprintf(digits, sizeof(digits), "%" PRId64, v);
	json_put_text(o, key, digits);
}

void
json_put_u64(struct json_out *o, const char *key, uint64_t v)
{
	char digits[24];

	(void)snprintf(digits, sizeof(digits), "%" PRIu64, v);
	json_put_text(o, key, digits);
}

void
json_put_number(struct json_out *o, const char *key, int64_t v)
{
	char digits[24];

	if (v > EXACT_MAX || v < -EXACT_MAX) {
		json_put_i64(o, key, v);
		return;
	}
	(void)snprintf(digits, sizeof(digits), "%" PRId64, v);
	put_key(o, key);
	put(o, digits, strlen(digits));
}

void
json_put_text_or_null(struct json_out *o, const char *key, const char *text)
{
	if (text[0] != '\0')
		json_put_text(o, key, text);
	else
		json_put_null(o, key);
}

void
json_put_number_or_null(
    struct json_out *o, const char *key, bool known, int64_t v)
{
	if (known)
		json_put_number(o, key, v);
	else
		json_put_null(o, key);
}

int
json_out_end(struct json_out *o)
{
	if (o->file != NULL && ferror(o->file))
		o->full = true;
	if (o->full || o->used > INT_MAX)
		return (-1);
	return ((int)o->used);
}
