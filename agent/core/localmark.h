/* SPDX-License-Identifier: Apache-2.0 */
/*
 * localmark - the local mark on file, written ahead: nothing is issued above
 * it.
 *
 * Invariant: `confirmed` is on file and only goes up while a window stands.
 */
#ifndef LOCALMARK_H
#define LOCALMARK_H

#include "types.h"

struct localmark {
	bool used; /* false: no file, the window alone decides */
	int64_t confirmed; /* tick */
	int64_t pending; /* being written, or NO_TICK */
	int64_t ahead; /* ticks to write ahead of the present one */
};

void localmark_init(
    struct localmark *m, bool used, int64_t confirmed, int64_t ahead);

/*
 * Must a record be written now?  Then *out is the mark to write, at most
 * ceiling; ahead of time, when half of what stood ahead is used.
 */
bool localmark_due(
    const struct localmark *m, int64_t now, int64_t ceiling, int64_t *out);
void localmark_writing(struct localmark *m, int64_t mark);
void localmark_wrote(struct localmark *m, bool good);

/* The last tick that may be issued, given the window's ceiling. */
int64_t localmark_limit(const struct localmark *m, int64_t ceiling);

#endif
