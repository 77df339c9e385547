/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window - the ticks that may be issued on one worker ID.
 *
 * Why no tick repeats: every write expects the version that the last confirmed
 * one left, so writes of two owners are ordered, and whoever writes after us
 * has read a ceiling at least as high as ours.  All writes in doubt expect
 * the same version: at most one of them can ever land, and none once the
 * version has moved on without carrying one of their tags.
 */
#include <assert.h>
#include <string.h>

#include "window.h"

static bool
tag_equal(struct tag a, struct tag b)
{
	return (a.word[0] == b.word[0] && a.word[1] == b.word[1]);
}

void
window_begin(struct window *w, uint64_t worker, int64_t ceiling,
    int32_t version, int64_t czxid)
{
	memset(w, 0, sizeof(*w));
	w->worker = worker;
	w->floor = w->ceiling = w->highest = ceiling;
	w->version = version;
	w->czxid = czxid;
}

void
window_lower_floor(struct window *w, int64_t floor)
{
	if (floor < w->floor)
		w->floor = floor;
}

bool
window_sane(const struct window *w)
{
	return (w->floor <= w->ceiling && w->ceiling <= w->highest &&
		w->version >= -1 && w->ndoubts <= WINDOW_DOUBTS &&
		(!w->owned || w->version >= 0));
}

bool
window_holds(const struct window *w, int64_t tick)
{
	return (w->owned && tick > w->floor && tick <= w->ceiling);
}

static int32_t
submit(struct window *w, int64_t ceiling, bool lowers, struct tag tag,
    struct mark *out)
{
	/*
	 * Forgetting the oldest doubt is safe: should that write have landed,
	 * its tag is taken for a stranger's and the worker ID is given up.
	 */
	if (w->ndoubts == WINDOW_DOUBTS) {
		memmove(w->doubt, w->doubt + 1,
		    (WINDOW_DOUBTS - 1) * sizeof(w->doubt[0]));
		w->ndoubts--;
	}
	w->doubt[w->ndoubts++] =
	    (struct doubt){ .tag = tag, .ceiling = ceiling, .lowers = lowers };
	memset(out, 0, sizeof(*out));
	memcpy(out->owner, w->owner, sizeof(out->owner));
	out->ceiling = ceiling;
	out->tag = tag;
	return (w->version);
}

int32_t
window_write(struct window *w, const char *owner, int64_t ceiling,
    struct tag tag, struct mark *out)
{
	size_t n = strlen(owner);

	assert(n < sizeof(w->owner));
	if (strcmp(w->owner, owner) != 0) {
		memcpy(w->former, w->owner, sizeof(w->former));
		memset(w->owner, 0, sizeof(w->owner));
		memcpy(w->owner, owner, n);
	} /* else it may be w->owner itself */
	return (submit(w, max64(w->highest, ceiling), false, tag, out));
}

int32_t
window_write_lower(struct window *w, int64_t last_tick, int64_t not_before,
    struct tag tag, struct mark *out)
{
	return (submit(
	    w, max64(w->floor, max64(last_tick, not_before)), true, tag, out));
}

static int
find_doubt(const struct window *w, struct tag tag)
{
	for (unsigned i = 0; i < w->ndoubts; i++) {
		if (tag_equal(w->doubt[i].tag, tag))
			return ((int)i);
	}
	return (-1);
}

static enum window_news
confirm(struct window *w, unsigned i, int32_t version, int64_t czxid)
{
	const struct doubt d = w->doubt[i];

	w->ndoubts = 0; /* the others expected the version that is gone */
	w->reread = false;
	w->version = version;
	w->czxid = czxid;
	w->owned = true;
	w->ceiling = d.ceiling;
	if (d.lowers) /* issuing has ended: an empty window */
		w->floor = w->highest = d.ceiling;
	w->highest = max64(w->highest, d.ceiling);
	assert(window_sane(w));
	return (WINDOW_CONFIRMED);
}

enum window_news
window_wrote(struct window *w, struct tag tag, enum write_outcome outcome,
    int32_t version, int64_t czxid)
{
	int i = find_doubt(w, tag);

	if (i < 0) /* settled by a read meanwhile */
		return (WINDOW_SAME);
	switch (outcome) {
	case WROTE_OK:
		/* A node deleted and made again counts versions from 0: a
		 * success on it is none. */
		if (w->version >= 0 && w->czxid != 0 && czxid != w->czxid)
			return (WINDOW_GONE);
		return (confirm(w, (unsigned)i, version, czxid));
	case WROTE_BADVERSION:
		w->ndoubts--;
		memmove(w->doubt + i, w->doubt + i + 1,
		    (w->ndoubts - (unsigned)i) * sizeof(w->doubt[0]));
		if (w->ndoubts == 0 && w->owned)
			return (WINDOW_TWIN);
		w->reread = true;
		return (WINDOW_DOUBT);
	case WROTE_NONODE:
		return (WINDOW_GONE);
	case WROTE_UNKNOWN:
		w->reread = true;
		return (WINDOW_DOUBT);
	}
	return (WINDOW_DOUBT);
}

/* Ours, be it the name that stands or the one in doubt. */
static bool
own_name(const struct window *w, const char *owner)
{
	return (strcmp(owner, w->owner) == 0 ||
		(w->former[0] != '\0' && strcmp(owner, w->former) == 0));
}

enum window_news
window_read(
    struct window *w, const struct mark *mark, int32_t version, int64_t czxid)
{
	int i;

	if (mark == NULL) {
		w->reread = false;
		return (w->version < 0 ? WINDOW_SAME : WINDOW_GONE);
	}
	if (w->version >= 0 && w->czxid != 0 && czxid != w->czxid)
		return (WINDOW_GONE);
	if (version < w->version)
		return (WINDOW_BACK);
	if (version == w->version) { /* none has landed so far */
		w->reread = false;
		return (WINDOW_SAME);
	}
	i = find_doubt(w, mark->tag);
	if (i >= 0 && version == w->version + 1)
		return (confirm(w, (unsigned)i, version, czxid));
	return (
	    w->owned && own_name(w, mark->owner) ? WINDOW_TWIN : WINDOW_OTHER);
}
