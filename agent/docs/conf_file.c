/* SPDX-License-Identifier: Apache-2.0 */
/* conf_file - the configuration file: JSON with comments into struct conf. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "conf_key.h"
#include "json.h"

#define PATH_SHOWN 100 /* of the file, in an error */
#define KEY_SHOWN 64

/* A long path loses its beginning, which says least. */
static const char *
shown(const char *path)
{
	size_t n = strlen(path);

	return (n > PATH_SHOWN ? path + n - PATH_SHOWN : path);
}

/* Reads at most DOC_SIZE_MAX + 1 bytes: then doc_check() says "too many". */
static int
read_bytes(FILE *file, const char *path, char **text, size_t *length,
    struct doc_error *err)
{
	*text = malloc(DOC_SIZE_MAX + 1);
	if (*text == NULL) {
		doc_error_set(err, "%s: out of memory", shown(path));
		return (EX_CONFIG);
	}
	*length = fread(*text, 1, DOC_SIZE_MAX + 1, file);
	if (ferror(file)) {
		doc_error_set(err, "%s: %s", shown(path), strerror(errno));
		free(*text);
		return (EX_CONFIG);
	}
	return (0);
}

static const struct conf_key *
find_key(const char *name)
{
	for (size_t i = 0; i < conf_nkeys; i++)
		if (strcmp(conf_keys[i].name, name) == 0)
			return (&conf_keys[i]);
	return (NULL);
}

/* Text stays text; a number is one for a key that takes one, and an epoch. */
static const char *
value_text(const cJSON *item, const struct conf_key *k, char *digits, size_t n)
{
	int64_t v;

	if (k->size > 0 && cJSON_IsString(item))
		return (item->valuestring);
	if (k->size > 0 && strcmp(k->name, "epoch") != 0)
		return (NULL);
	if (!json_exact(item, &v))
		return (NULL);
	(void)snprintf(digits, n, "%" PRId64, v);
	return (digits);
}

static int
set_item(
    struct conf *c, const cJSON *item, const char *path, struct doc_error *err)
{
	const struct conf_key *k = find_key(item->string);
	char what[PATH_SHOWN + KEY_SHOWN + 8], digits[24];
	const char *text;

	(void)snprintf(what, sizeof(what), "%s: %.*s", shown(path), KEY_SHOWN,
	    item->string);
	if (k == NULL) {
		doc_error_set(err, "%s: there is no such key", what);
		return (EX_CONFIG);
	}
	text = value_text(item, k, digits, sizeof(digits));
	if (text != NULL)
		return (conf_set(c, k, text, CONF_FILE, what, err));
	if (k->size > 0)
		doc_error_set(err, "%s: must be a string", what);
	else
		doc_error_set(err,
		    "%s: must be a whole number from %" PRId64 " to %" PRId64
		    "%s%s, without quotes",
		    what, k->min, k->max, k->unit[0] != '\0' ? " " : "",
		    k->unit);
	return (EX_CONFIG);
}

static int
set_items(struct conf *c, char *text, size_t length, const char *path,
    struct doc_error *err)
{
	struct doc_error fault = { "" };
	cJSON *doc = NULL;
	int rc = 0;

	if (doc_blank_comments(text, length, &fault) == 0)
		doc = json_read(text, length, &fault);
	if (doc == NULL) {
		doc_error_set(
		    err, "%s: %.*s", shown(path), PATH_SHOWN, fault.text);
		return (EX_CONFIG);
	}
	for (const cJSON *i = doc->child; i != NULL && rc == 0; i = i->next)
		rc = set_item(c, i, path, err);
	cJSON_Delete(doc);
	return (rc);
}

int
conf_read_file(
    struct conf *c, const char *path, bool optional, struct doc_error *err)
{
	FILE *file;
	char *text;
	size_t length;
	int rc;

	if (strlen(path) >= sizeof(c->path)) {
		doc_error_set(err, "%s: this path is longer than %zu bytes",
		    shown(path), sizeof(c->path) - 1);
		return (EX_CONFIG);
	}
	file = fopen(path, "re");
	if (file == NULL && errno == ENOENT && optional)
		return (0);
	if (file == NULL) {
		doc_error_set(err, "%s: %s", shown(path), strerror(errno));
		return (EX_CONFIG);
	}
	rc = read_bytes(file, path, &text, &length, err);
	(void)fclose(file);
	if (rc != 0)
		return (rc);
	rc = set_items(c, text, length, path, err);
	free(text);
	if (rc == 0)
		memcpy(c->path, path, strlen(path) + 1);
	return (rc);
}
