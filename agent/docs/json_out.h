/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_out - writing JSON into a buffer or a file, without cJSON: it allocates
 * nothing and carries 64-bit numbers whole.
 *
 * Keys are the caller's own plain words (NULL inside a list).  In texts,
 * control characters and bytes that are no UTF-8 become '?', so a text takes
 * at most twice its bytes.
 */
#ifndef JSON_OUT_H
#define JSON_OUT_H

#include <stdio.h>

#include "doc.h"

struct json_out {
	FILE *file; /* if not NULL, instead of buf */
	char *buf;
	size_t size;
	size_t used;
	bool full; /* something did not fit, or the file took it not */
	bool comma; /* the next value is not the first of its container */
};

void json_out_buffer(struct json_out *o, char *buf, size_t size);
void json_out_file(struct json_out *o, FILE *file);

void json_open(struct json_out *o, const char *key, char bracket);
void json_close(struct json_out *o, char bracket);

void json_put_text(struct json_out *o, const char *key, const char *text);
void json_put_bool(struct json_out *o, const char *key, bool v);
void json_put_null(struct json_out *o, const char *key);

/* As decimal strings. */
void json_put_i64(struct json_out *o, const char *key, int64_t v);
void json_put_u64(struct json_out *o, const char *key, uint64_t v);

/* As a number; as a string where a double would spoil it. */
void json_put_number(struct json_out *o, const char *key, int64_t v);

/* null for an empty text, and for a number that is not known. */
void json_put_text_or_null(
    struct json_out *o, const char *key, const char *text);
void json_put_number_or_null(
    struct json_out *o, const char *key, bool known, int64_t v);

/* The length written, or -1 if it was not all of it. */
FIRN_CHECK_RESULT int json_out_end(struct json_out *o);

#endif
