/* SPDX-License-Identifier: Apache-2.0 */
/*
 * authfile - the one line "user:password" by which ZooKeeper knows an agent.
 *
 * Invariant: the password is in the caller's struct alone, for as long as the
 * caller does not wipe it.
 */
#ifndef AUTHFILE_H
#define AUTHFILE_H

#include "doc.h"

#define AUTHFILE_MAX 256 /* bytes of the line, with its NUL */

struct authfile {
	char text[AUTHFILE_MAX]; /* "user:password" */
	size_t length;
};

/*
 * Reads the file, which must be a regular one, root's or the caller's own, and
 * not to be read or written by anyone else.  0, or 1 (no memory, descriptors)
 * or 78 with one line in err that does not hold what is in the file.
 */
FIRN_CHECK_RESULT int authfile_read(
    const char *path, struct authfile *out, struct doc_error *err);

void authfile_wipe(struct authfile *a);

/*
 * The same, for the verdict alone, before a client is to read it.  From then on
 * there is no core dump of this process and no debugger of its own user's: the
 * client keeps a copy of the password for as long as it lives.
 */
FIRN_CHECK_RESULT int authfile_check(const char *path, struct doc_error *err);

#endif
