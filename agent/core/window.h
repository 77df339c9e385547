/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window - the ticks that an agent may issue on one worker ID, as its mark in
 * ZooKeeper allows.
 *
 * Invariant: ticks are issued only in (floor, ceiling]; ceiling is one that
 * ZooKeeper confirmed by a compare-and-set of ours, floor the one that the
 * mark held when that chain of writes began.  A write that has no reply yet,
 * or an unclear one, is in doubt and changes nothing.
 */
#ifndef WINDOW_H
#define WINDOW_H

#include "records.h"
#include "types.h"

#define WINDOW_DOUBTS 8

struct doubt {
	struct tag tag;
	int64_t ceiling;
	bool lowers; /* the write of a clean stop */
};

struct window {
	bool owned; /* the mark carries a write of ours, see version */
	uint64_t worker;
	char owner[CLAIM_NAME_MAX]; /* the name our last write carried */
	char former[CLAIM_NAME_MAX]; /* the one before; "" if none */
	int64_t floor;
	int64_t ceiling; /* == floor: nothing may be issued yet */
	int64_t highest; /* highest ceiling ever confirmed or read */
	int32_t version; /* the next write expects it; -1: expects no node */
	int64_t czxid; /* of the node; 0 while unknown */
	bool reread; /* a write is in doubt: read before writing again */
	struct doubt doubt[WINDOW_DOUBTS];
	unsigned ndoubts;
};

/* What came of a write. */
enum write_outcome {
	WROTE_OK,
	WROTE_BADVERSION, /* also NODEEXISTS, where no node was expected */
	WROTE_NONODE,
	WROTE_UNKNOWN, /* no reply, or one that leaves it open */
};

/* What that, or a read after it, says of the window. */
enum window_news {
	WINDOW_SAME, /* nothing changed */
	WINDOW_CONFIRMED, /* a write of ours stands: ceiling is its */
	WINDOW_DOUBT, /* read the mark before anything else */
	WINDOW_TWIN, /* another process lives under this name: stop */
	WINDOW_OTHER, /* the mark names another owner */
	WINDOW_GONE, /* the mark was deleted */
	WINDOW_BACK, /* ZooKeeper's data went back */
};

/* Starts from a mark as read (version >= 0), or from none (-1). */
void window_begin(struct window *w, uint64_t worker, int64_t ceiling,
    int32_t version, int64_t czxid);

/*
 * After window_begin() on a mark that names the process before this one, which
 * is gone and issued nothing above `floor`: the ticks above that are free.
 */
void window_lower_floor(struct window *w, int64_t floor);

/*
 * Prepares a write under `owner` that asks for `ceiling`; it will carry
 * max(highest, ceiling).  Returns the version that it must expect (-1:
 * create the node).
 */
int32_t window_write(struct window *w, const char *owner, int64_t ceiling,
    struct tag tag, struct mark *out);

/*
 * Prepares the one write that may lower the mark, for a clean stop after
 * issuing on this worker ID has ended for good: max(floor, last_tick,
 * not_before).
 */
int32_t window_write_lower(struct window *w, int64_t last_tick,
    int64_t not_before, struct tag tag, struct mark *out);

/* The reply to the write with this tag; version and czxid if WROTE_OK. */
enum window_news window_wrote(struct window *w, struct tag tag,
    enum write_outcome outcome, int32_t version, int64_t czxid);

/* The mark as read again; mark is NULL if there is no node. */
enum window_news window_read(
    struct window *w, const struct mark *mark, int32_t version, int64_t czxid);

/* True if this tick may be issued. */
bool window_holds(const struct window *w, int64_t tick);

/* The invariant, for asserts and tests. */
bool window_sane(const struct window *w);

#endif
