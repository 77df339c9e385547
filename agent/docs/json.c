/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json - reading values out of a checked JSON object.
 *
 * Invariant: cJSON sees only what doc_check() has passed, and its valueint,
 * which clamps at 2^31 - 1, is never looked at.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "json.h"

#define KEY_SHOWN_MAX 40 /* of a stranger's key, in an error */

static bool
is_printable(char c)
{
	return (c >= 0x20 && c < 0x7f);
}

static void
copy_label(char *out, size_t size, const char *text)
{
	size_t i;

	for (i = 0; i + 1 < size && text[i] != '\0'; i++)
		out[i] = (char)(is_printable(text[i]) ? text[i] : '?');
	out[i] = '\0';
}

/* Quadratic, in at most DOC_KEYS_MAX keys. */
static int
check_keys(const cJSON *object, struct doc_error *err)
{
	char shown[KEY_SHOWN_MAX];
	const cJSON *a, *b;

	if (cJSON_GetArraySize(object) > DOC_KEYS_MAX) {
		doc_error_set(
		    err, "an object has more than %d keys", DOC_KEYS_MAX);
		return (-1);
	}
	for (a = object->child; a != NULL; a = a->next)
		for (b = a->next; b != NULL; b = b->next) {
			if (strcmp(a->string, b->string) != 0)
				continue;
			copy_label(shown, sizeof(shown), a->string);
			doc_error_set(
			    err, "%s: this key stands there twice", shown);
			return (-1);
		}
	return (0);
}

/* Recursive, at most DOC_DEPTH_MAX deep. */
static int
check_all_keys(const cJSON *item, struct doc_error *err)
{
	const cJSON *child;

	if (cJSON_IsObject(item) && check_keys(item, err) != 0)
		return (-1);
	for (child = item->child; child != NULL; child = child->next)
		if (check_all_keys(child, err) != 0)
			return (-1);
	return (0);
}

cJSON *
json_read(const char *text, size_t length, struct doc_error *err)
{
	cJSON *item;

	if (doc_check(text, length, err) != 0)
		return (NULL);
	item = cJSON_ParseWithLengthOpts(text, length, NULL, 0);
	if (item == NULL) {
		doc_error_set(err, "out of memory");
		return (NULL);
	}
	if (!cJSON_IsObject(item))
		doc_error_set(err, "this is no JSON object");
	else if (check_all_keys(item, err) == 0)
		return (item);
	cJSON_Delete(item);
	return (NULL);
}

/* The item, which may be null; NULL with words if there is none. */
static const cJSON *
find(const struct json_at *at, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(at->object, key);

	if (item == NULL)
		doc_error_set(at->err, "%s%s: it is missing", at->prefix, key);
	return (item);
}

bool
json_has(const struct json_at *at, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(at->object, key);

	return (item != NULL && !cJSON_IsNull(item));
}

int
json_get_object(const struct json_at *at, const char *key, const char *prefix,
    struct json_at *out)
{
	const cJSON *item = find(at, key);

	if (item == NULL)
		return (-1);
	if (!cJSON_IsObject(item)) {
		doc_error_set(
		    at->err, "%s%s: must be an object", at->prefix, key);
		return (-1);
	}
	*out = (struct json_at){ item, prefix, at->err };
	return (0);
}

bool
json_exact(const cJSON *item, int64_t *out)
{
	double v;

	if (!cJSON_IsNumber(item))
		return (false);
	v = item->valuedouble;
	/* First the range, which infinity fails: the conversion is then defined. */
	if (!(v >= -(double)JSON_EXACT_MAX && v <= (double)JSON_EXACT_MAX))
		return (false);
	if ((double)(int64_t)v != v)
		return (false);
	*out = (int64_t)v;
	return (true);
}

static bool
read_i64(const cJSON *item, int64_t *out)
{
	if (cJSON_IsString(item))
		return (doc_parse_i64(item->valuestring, out));
	return (json_exact(item, out));
}

int
json_get_i64(const struct json_at *at, const char *key, int64_t min,
    int64_t max, int64_t *out)
{
	const cJSON *item = find(at, key);
	int64_t v;

	if (item == NULL)
		return (-1);
	if (!read_i64(item, &v) || v < min || v > max) {
		doc_error_set(at->err,
		    "%s%s: must be a whole number from %" PRId64 " to %" PRId64,
		    at->prefix, key, min, max);
		return (-1);
	}
	*out = v;
	return (0);
}

int
json_get_u64(
    const struct json_at *at, const char *key, uint64_t max, uint64_t *out)
{
	const cJSON *item = find(at, key);
	int64_t small;
	uint64_t v = 0;
	bool good;

	if (item == NULL)
		return (-1);
	if (cJSON_IsString(item)) {
		good = doc_parse_u64(item->valuestring, &v);
	} else {
		good = json_exact(item, &small) && small >= 0;
		if (good)
			v = (uint64_t)small;
	}
	if (!good || v > max) {
		doc_error_set(at->err,
		    "%s%s: must be a whole number from 0 to %" PRIu64,
		    at->prefix, key, max);
		return (-1);
	}
	*out = v;
	return (0);
}

int
json_get_bool(const struct json_at *at, const char *key, bool *out)
{
	const cJSON *item = find(at, key);

	if (item == NULL)
		return (-1);
	if (!cJSON_IsBool(item)) {
		doc_error_set(
		    at->err, "%s%s: must be true or false", at->prefix, key);
		return (-1);
	}
	*out = cJSON_IsTrue(item);
	return (0);
}

static const char *
find_string(const struct json_at *at, const char *key)
{
	const cJSON *item = find(at, key);

	if (item == NULL)
		return (NULL);
	if (!cJSON_IsString(item)) {
		doc_error_set(
		    at->err, "%s%s: must be a string", at->prefix, key);
		return (NULL);
	}
	return (item->valuestring);
}

int
json_get_text(const struct json_at *at, const char *key, char *out, size_t size)
{
	const char *text = find_string(at, key);
	size_t n;

	if (text == NULL)
		return (-1);
	n = strlen(text);
	for (const char *p = text; *p != '\0'; p++)
		if (!is_printable(*p)) {
			doc_error_set(at->err, "%s%s: must be printable ASCII",
			    at->prefix, key);
			return (-1);
		}
	if (n >= size) {
		doc_error_set(at->err, "%s%s: longer than %zu bytes",
		    at->prefix, key, size - 1);
		return (-1);
	}
	memcpy(out, text, n + 1);
	return (0);
}

int
json_get_label(
    const struct json_at *at, const char *key, char *out, size_t size)
{
	const char *text = find_string(at, key);

	if (text == NULL)
		return (-1);
	copy_label(out, size, text);
	return (0);
}
