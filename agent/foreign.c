/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign - what others left among the nodes of a realm and nobody can use.
 *
 * Invariant: a node has one entry; who has none is not known to be odd.
 */
#include <stdio.h>
#include <string.h>

#include "foreign.h"
#include "log.h"
#include "records.h"
#include "sysclock.h"

#define FORGET_MS 3600000

/* FNV-1a, never 0.  Two that are taken for one: a line less, no more. */
static uint64_t
hash_of(const char *text)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *text != '\0'; text++)
		h = (h ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
	return (h != 0 ? h : 1);
}

static struct foreign_node *
find(struct foreign *f, const char *path)
{
	uint64_t h;

	if (f->n == 0)
		return (NULL);
	h = hash_of(path);
	for (size_t i = 0; i < f->n; i++) {
		if (f->node[i].path == h)
			return (&f->node[i]);
	}
	return (NULL);
}

static void
forget_old(struct foreign *f)
{
	struct instant now;

	sysclock_read(&now);
	if (!mono_reached(now.boot, f->until))
		return;
	memset(f, 0, sizeof(*f));
	f->until = mono_add_ms(now.boot, FORGET_MS);
}

/* The entry of a node that is to be told; NULL: it is no news. */
static struct foreign_node *
news(struct foreign *f, const char *path, const char *what)
{
	struct foreign_node *node;
	uint64_t fault = hash_of(what);

	forget_old(f);
	node = find(f, path);
	if (node != NULL && node->fault == fault)
		return (NULL);
	if (f->lines == FOREIGN_MAX || (node == NULL && f->n == FOREIGN_MAX)) {
		if (!f->full_said)
			log_warnx("%s: %s; and no more is said of nodes that "
				  "make no sense, for up to an hour",
			    path, what);
		f->full_said = true;
		return (NULL);
	}
	if (node == NULL) {
		node = &f->node[f->n++];
		node->path = hash_of(path);
	}
	node->fault = fault;
	f->lines++;
	return (node);
}

void
foreign_tell(struct foreign *f, const char *path, const char *what)
{
	if (news(f, path, what) != NULL)
		log_warnx("%s: %s", path, what);
}

bool
foreign_too_large(const struct zk_event *ev)
{
	return (ev->rc == ZK_OK && ev->stat.data_length > DOC_SIZE_MAX);
}

void
foreign_tell_reply(struct foreign *f, const char *path,
    const struct zk_event *ev, const struct doc_error *err)
{
	struct foreign_node *node;
	char words[64];

	if (ev->rc == ZK_OK)
		foreign_tell(f, path, err->text);
	else if (ev->rc == ZK_NOAUTH)
		foreign_tell(f, path, "not allowed (its access list)");
	else {
		(void)snprintf(words, sizeof(words),
		    "ZooKeeper refused an operation (%d)", ev->code);
		foreign_tell(f, path, words);
	}
	node = find(f, path);
	if (node != NULL)
		node->large = foreign_too_large(ev);
}

void
foreign_mended(struct foreign *f, const char *path)
{
	struct foreign_node *node = find(f, path);

	if (node == NULL)
		return;
	node->fault = 0;
	node->large = false;
}

bool
foreign_is_large(struct foreign *f, const char *path)
{
	struct foreign_node *node = find(f, path);

	return (node != NULL && node->large);
}

void
foreign_tell_names(
    struct foreign *f, const char *workers, const struct zk_event *ev)
{
	char path[512];
	struct claim_name cn;
	size_t n = 0;

	for (size_t i = 0; i < ev->nnames; i++) {
		if (!claim_name_parse(ev->names[i], &cn))
			n++;
	}
	if (n > FOREIGN_NAMES_MAX)
		foreign_tell(
		    f, workers, "many nodes there are no claims: passed over");
	for (size_t i = 0; n <= FOREIGN_NAMES_MAX && i < ev->nnames; i++) {
		if (claim_name_parse(ev->names[i], &cn))
			continue;
		(void)snprintf(
		    path, sizeof(path), "%s/%s", workers, ev->names[i]);
		foreign_tell(f, path, "its name is no claim's: passed over");
	}
}
