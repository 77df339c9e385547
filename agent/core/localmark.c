/* SPDX-License-Identifier: Apache-2.0 */
/*
 * localmark - the local mark on file, written ahead.
 *
 * Invariant: a mark counts only after its write came back good, so that a
 * write that is under way, failed or was cut off by a crash allows nothing.
 */
#include <assert.h>

#include "localmark.h"

void
localmark_init(struct localmark *m, bool used, int64_t confirmed, int64_t ahead)
{
	*m = (struct localmark){
		.used = used,
		/* below the first tick there is nothing to tell apart */
		.confirmed = confirmed < NO_TICK ? NO_TICK : confirmed,
		.pending = NO_TICK,
		.ahead = ahead < 1 ? 1 : ahead,
	};
}

bool
localmark_due(
    const struct localmark *m, int64_t now, int64_t ceiling, int64_t *out)
{
	int64_t mark = add_sat(now, m->ahead);

	if (!m->used || m->pending != NO_TICK)
		return (false);
	/* More than half of what was written ahead is left. */
	if (sub_sat(m->confirmed, now) > m->ahead / 2)
		return (false);
	if (mark > ceiling)
		mark = ceiling;
	if (mark <= m->confirmed)
		return (false);
	*out = mark;
	return (true);
}

void
localmark_writing(struct localmark *m, int64_t mark)
{
	/* A lower one would leave ticks allowed that the file denies. */
	assert(m->used && m->pending == NO_TICK && mark >= m->confirmed);
	m->pending = mark;
}

void
localmark_wrote(struct localmark *m, bool good)
{
	if (good && m->pending > m->confirmed)
		m->confirmed = m->pending;
	m->pending = NO_TICK;
}

int64_t
localmark_limit(const struct localmark *m, int64_t ceiling)
{
	if (!m->used || m->confirmed > ceiling)
		return (ceiling);
	return (m->confirmed);
}
