/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_file - the configuration file: JSON with comments into struct conf.
 *
 * Invariant: nothing is waited for: it is read while the agent serves, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "conf_key.h"
#include "json.h"

#define PATH_SHOWN 100 /* of the file, in an error */
#define KEY_SHOWN 64
#define WHAT_MAX (PATH_SHOWN + DOC_ERROR_MAX + 4)

/* A long path loses its beginning, which says least. */
static const char *
shown(const char *path)
{
	size_t n = strlen(path);

	return (n > PATH_SHOWN ? path + n - PATH_SHOWN : path);
}

/* Want of memory or descriptors is nothing that an editor can mend. */
static int
exit_status(int error)
{
	return (error == ENOMEM || error == EMFILE || error == ENFILE
		    ? 1
		    : EX_CONFIG);
}

/* Reads at most DOC_SIZE_MAX + 1 bytes: then doc_check() says "too many". */
static int
read_bytes(FILE *file, const char *path, char **text, size_t *length,
    struct doc_error *err)
{
	*text = malloc(DOC_SIZE_MAX + 2);
	if (*text == NULL) {
		doc_error_set(err, "%s: out of memory", shown(path));
		return (exit_status(ENOMEM));
	}
	*length = fread(*text, 1, DOC_SIZE_MAX + 1, file);
	if (ferror(file)) {
		doc_error_set(err, "%s: %s", shown(path), strerror(errno));
		free(*text);
		return (EX_CONFIG);
	}
	(*text)[*length] = '\0';
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

/* One entry of a list and what parts it; false: it is none, or has no room. */
static bool
put_entry(const cJSON *item, const struct conf_key *k, char *buf, size_t size)
{
	size_t used = strlen(buf);
	const char *comma = used == 0 ? "" : k->words ? " " : ",";
	int64_t v;
	int n;

	if (k->words && cJSON_IsString(item) &&
	    strchr(item->valuestring, ' ') != NULL)
		return (false); /* it would be two */
	if (json_exact(item, &v))
		n = snprintf(buf + used, size - used, "%s%" PRId64, comma, v);
	else if (cJSON_IsString(item) && item->valuestring[0] != '\0')
		n = snprintf(
		    buf + used, size - used, "%s%s", comma, item->valuestring);
	else
		return (false);
	return (n > 0 && (size_t)n < size - used);
}

static const char *
list_text(const cJSON *list, const struct conf_key *k, char *buf, size_t size)
{
	buf[0] = '\0';
	for (const cJSON *i = list->child; i != NULL; i = i->next)
		if (!put_entry(i, k, buf, size))
			return (NULL);
	return (buf);
}

/*
 * Text stays text; a number is one for a key that takes one, and an epoch; a
 * list of IDs and names becomes text.
 */
static const char *
value_text(const cJSON *item, const struct conf_key *k, char *buf, size_t size)
{
	int64_t v;

	if (k->size > 0 && cJSON_IsString(item))
		return (item->valuestring);
	if (k->list || k->words)
		return (
		    cJSON_IsArray(item) ? list_text(item, k, buf, size) : NULL);
	if (k->size > 0 && strcmp(k->name, "epoch") != 0)
		return (NULL);
	if (!json_exact(item, &v))
		return (NULL);
	(void)snprintf(buf, size, "%" PRId64, v);
	return (buf);
}

static void
say_type(const struct conf_key *k, const char *what, struct doc_error *err)
{
	if (k->list)
		doc_error_set(err,
		    "%s: must be a list of numbers and names, at most %zu "
		    "bytes in all",
		    what, k->size - 1);
	else if (k->words)
		doc_error_set(err,
		    "%s: must be a string, or a list of words without blanks",
		    what);
	else if (k->size > 0)
		doc_error_set(err, "%s: must be a string", what);
	else
		doc_error_set(err,
		    "%s: must be a whole number from %" PRId64 " to %" PRId64
		    "%s%s, without quotes",
		    what, k->min, k->max, k->unit[0] != '\0' ? " " : "",
		    k->unit);
}

/*
 * Where the key stands: text is JSON, checked, and an object.  The start, if
 * it was written with escapes.
 */
static size_t
find_place(const char *text, size_t length, const char *name)
{
	size_t n = strlen(name), start;
	int depth = 0;

	for (size_t i = 0; i < length; i++) {
		if (text[i] == '{' || text[i] == '[')
			depth++;
		else if (text[i] == '}' || text[i] == ']')
			depth--;
		if (text[i] != '"')
			continue;
		for (start = i++; i < length && text[i] != '"'; i++)
			if (text[i] == '\\')
				i++;
		if (depth == 1 && i - start - 1 == n &&
		    memcmp(text + start + 1, name, n) == 0 &&
		    text[i + 1 + strspn(text + i + 1, " \t\r\n")] == ':')
			return (start);
	}
	return (0);
}

/* "FILE: line 3, column 7: KEY", the beginning of what is wrong with it. */
static void
name_key(char what[WHAT_MAX], const char *path, const char *text, size_t length,
    const char *key)
{
	char name[KEY_SHOWN + 1];
	struct doc_error place;

	(void)snprintf(name, sizeof(name), "%s", key);
	doc_error_at(&place, text, find_place(text, length, key), name);
	(void)snprintf(what, WHAT_MAX, "%s: %s", shown(path), place.text);
}

static int
set_item(
    struct conf *c, const cJSON *item, const char *what, struct doc_error *err)
{
	const struct conf_key *k = find_key(item->string);
	char buf[CONF_LIST_MAX];
	const char *text;

	if (k == NULL) {
		doc_error_set(err, "%s: there is no such key", what);
		return (EX_CONFIG);
	}
	text = value_text(item, k, buf, sizeof(buf));
	if (text != NULL)
		return (conf_set(c, k, text, CONF_FILE, what, err));
	say_type(k, what, err);
	return (EX_CONFIG);
}

static int
set_items(struct conf *c, char *text, size_t length, const char *path,
    struct doc_error *err)
{
	struct doc_error fault = { "" };
	char what[WHAT_MAX];
	cJSON *doc = NULL;
	int rc = 0;

	errno = 0;
	if (doc_blank_comments(text, length, &fault) == 0)
		doc = json_read(text, length, &fault);
	if (doc == NULL) {
		doc_error_set(
		    err, "%s: %.*s", shown(path), PATH_SHOWN, fault.text);
		return (exit_status(errno));
	}
	for (const cJSON *i = doc->child; i != NULL && rc == 0; i = i->next) {
		name_key(what, path, text, length, i->string);
		rc = set_item(c, i, what, err);
	}
	cJSON_Delete(doc);
	return (rc);
}

/*
 * A regular file alone: a pipe would hang a reload, and could be read but
 * once.  NULL with errno, 0 for something else than a file.
 */
static FILE *
open_regular(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	FILE *file = NULL;
	struct stat st;
	int error;

	if (fd == -1)
		return (NULL);
	if (fstat(fd, &st) == -1)
		error = errno;
	else if (!S_ISREG(st.st_mode))
		error = S_ISDIR(st.st_mode) ? EISDIR : 0;
	else {
		file = fdopen(fd, "r");
		error = errno;
	}
	if (file == NULL) {
		(void)close(fd);
		errno = error;
	}
	return (file);
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
	file = open_regular(path);
	if (file == NULL && errno == ENOENT && optional)
		return (0);
	if (file == NULL) {
		rc = exit_status(errno);
		doc_error_set(err, "%s: %s", shown(path),
		    errno != 0 ? strerror(errno) : "not a regular file");
		return (rc);
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
