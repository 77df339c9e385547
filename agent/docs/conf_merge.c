/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_merge - a configuration read anew into the one in use.
 *
 * Invariant: all of it is taken that needs no restart, or nothing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "conf_key.h"

static bool
is_same(
    const struct conf_key *k, const struct conf *left, const struct conf *right)
{
	if (k->size > 0)
		return (strcmp(conf_text(left, k), conf_text(right, k)) == 0);
	return (conf_number(left, k) == conf_number(right, k));
}

static void
show(const struct conf *c, const struct conf_key *k, char out[CONF_SHOWN_MAX])
{
	int n;

	if (k->size == 0) {
		(void)snprintf(
		    out, CONF_SHOWN_MAX, "%" PRId64, conf_number(c, k));
		return;
	}
	n = snprintf(out, CONF_SHOWN_MAX, "\"%s\"", conf_text(c, k));
	if (n >= CONF_SHOWN_MAX)
		memcpy(out + CONF_SHOWN_MAX - 5, "...\"", 5);
}

static void
take(struct conf *c, const struct conf_key *k, const struct conf *fresh)
{
	size_t n = k->size > 0 ? k->size : sizeof(int64_t);

	memcpy((char *)c + k->offset, (const char *)fresh + k->offset, n);
	c->source[k - conf_keys] = fresh->source[k - conf_keys];
}

int
conf_merge(struct conf *c, const struct conf *fresh, conf_changed_fn *changed,
    void *arg, struct doc_error *err)
{
	struct conf *merged = malloc(sizeof(*merged));

	if (merged == NULL) {
		doc_error_set(err, "out of memory");
		return (EX_CONFIG);
	}
	*merged = *c;
	for (size_t i = 0; i < conf_nkeys; i++)
		if (conf_keys[i].reload)
			take(merged, &conf_keys[i], fresh);
	merged->uids = fresh->uids;
	merged->gids = fresh->gids;
	memcpy(merged->path, fresh->path, sizeof(merged->path));
	if (conf_check_together(merged, err) != 0) {
		free(merged);
		return (EX_CONFIG);
	}
	for (size_t i = 0; i < conf_nkeys; i++) {
		const struct conf_key *k = &conf_keys[i];
		struct conf_change change = { k->name, k->reload, "", "" };

		if (is_same(k, c, fresh))
			continue;
		show(c, k, change.from);
		show(fresh, k, change.to);
		changed(arg, &change);
	}
	*c = *merged;
	free(merged);
	return (0);
}
