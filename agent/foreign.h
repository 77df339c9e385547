/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign - what others left among the nodes of a realm and nobody can use:
 * told, each node once, and remembered if it is too large to be read again
 * and again.
 *
 * Invariant: at most FOREIGN_MAX lines an hour, whatever anybody writes.
 */
#ifndef FOREIGN_H
#define FOREIGN_H

#include "doc.h"
#include "types.h"
#include "zk.h"

#define FOREIGN_MAX 64
#define FOREIGN_NAMES_MAX 8 /* with more, names are not told one by one */

struct foreign_node {
	uint64_t path, fault; /* hashes; fault 0: mended */
	bool large;
};

struct foreign {
	struct foreign_node node[FOREIGN_MAX];
	size_t n;
	unsigned lines;
	bool full_said;
	mono_t until; /* then all of it is forgotten, and may be told again */
};

/* "PATH: what", unless that was the last that was told of this node. */
void foreign_tell(struct foreign *f, const char *path, const char *what);

/*
 * As above, of a node whose reading went wrong: not allowed, refused, or its
 * data will not do, as err says.
 */
void foreign_tell_reply(struct foreign *f, const char *path,
    const struct zk_event *ev, const struct doc_error *err);

/*
 * Of a list of the claims' parent.  A few names that are no claim's are told
 * one by one, thousands in one line.
 */
void foreign_tell_names(
    struct foreign *f, const char *workers, const struct zk_event *ev);

/* It is good now: what is wrong with it next is news. */
void foreign_mended(struct foreign *f, const char *path);

/* Ask for its size first: it was larger than any document of ours. */
bool foreign_is_large(struct foreign *f, const char *path);

/* Is it (still) too large?  Of a reply to zk_get() or zk_exists(). */
bool foreign_too_large(const struct zk_event *ev);

#endif
