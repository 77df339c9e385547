/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json - reading values out of a checked JSON object.  Private to docs/: the
 * one header that shows cJSON.
 */
#ifndef JSON_H
#define JSON_H

#include <cjson/cJSON.h>

#include "doc.h"

/* The largest whole number that a double holds beyond doubt. */
#define JSON_EXACT_MAX INT64_C(9007199254740991) /* 2^53 - 1 */

/* An object, where it stands in its document, and where faults are told. */
struct json_at {
	const cJSON *object;
	const char *prefix; /* "" or "layout." */
	struct doc_error *err;
};

/*
 * Reads one object, strictly (doc_check(), and no key twice in any object).
 * NULL with one line in err; release with cJSON_Delete().
 */
cJSON *json_read(const char *text, size_t length, struct doc_error *err);

/* Is the key there, and not null? */
bool json_has(const struct json_at *at, const char *key);

/*
 * Each takes one value that must be there.  0, or -1 with "prefix.key: what is
 * wrong" in err and *out untouched.
 *
 * Numbers are decimal strings, or JSON numbers that are whole and at most
 * JSON_EXACT_MAX: past that a double may stand for its neighbour.
 */
FIRN_CHECK_RESULT int json_get_object(const struct json_at *at, const char *key,
    const char *prefix, struct json_at *out);
FIRN_CHECK_RESULT int json_get_i64(const struct json_at *at, const char *key,
    int64_t min, int64_t max, int64_t *out);
FIRN_CHECK_RESULT int json_get_u64(
    const struct json_at *at, const char *key, uint64_t max, uint64_t *out);
FIRN_CHECK_RESULT int json_get_bool(
    const struct json_at *at, const char *key, bool *out);

/* Text of printable ASCII that must fit into size bytes with its NUL. */
FIRN_CHECK_RESULT int json_get_text(
    const struct json_at *at, const char *key, char *out, size_t size);

/*
 * Text only to be shown: cut to size, and whatever is not printable ASCII
 * becomes '?', so that no stranger's text steers a terminal or breaks a line.
 */
FIRN_CHECK_RESULT int json_get_label(
    const struct json_at *at, const char *key, char *out, size_t size);

/* A number that is whole and exact; false if it is not (1.5, 1e400, 2^53). */
bool json_exact(const cJSON *item, int64_t *out);

#endif
