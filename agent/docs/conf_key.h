/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_key - the table of the configuration's keys.  Private to conf and its
 * tests: the manual, the sample and the usage are held against it.
 */
#ifndef CONF_KEY_H
#define CONF_KEY_H

#include "conf.h"

struct conf_key {
	const char *name;
	const char *flag; /* "--zk", or NULL */
	const char *argument; /* of the flag, in the usage */
	const char *env; /* "FIRN_ZK", or NULL */
	size_t offset; /* in struct conf */
	size_t size; /* of a text, with its NUL; 0: a number */
	const char *fallback; /* the default, as text */
	const char *unit; /* "ms", or "" */
	int64_t min, max; /* of a number */
	/* NULL for a good text, else what it must be ("must be ...") */
	const char *(*check)(const char *text);
	bool unseen; /* a bad value may hold a secret: no error shows it */
	bool list; /* of IDs and names: a JSON list will do, too */
	bool words; /* apart by blanks: the same */
	bool reload; /* SIGHUP takes a change in; else it needs a restart */
	const char *help;
};

extern const struct conf_key conf_keys[];
extern const size_t conf_nkeys;

/*
 * Sets one key from text.  78 with "what: must be ..." in err, *c untouched,
 * if it will not do; `what` names the key as the user wrote it.
 */
FIRN_CHECK_RESULT int conf_set(struct conf *c, const struct conf_key *k,
    const char *text, enum conf_source source, const char *what,
    struct doc_error *err);

/*
 * Reads a file into *c.  0 or 78.  With `optional` a file that is not there
 * is no error, and c->path stays empty.
 */
FIRN_CHECK_RESULT int conf_read_file(
    struct conf *c, const char *path, bool optional, struct doc_error *err);

/* What no value says for itself.  0 or 78. */
FIRN_CHECK_RESULT int conf_check_together(
    const struct conf *c, struct doc_error *err);

const char *conf_text(const struct conf *c, const struct conf_key *k);
int64_t conf_number(const struct conf *c, const struct conf_key *k);

#endif
