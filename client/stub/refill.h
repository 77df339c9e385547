/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refill - what a call does when memory has nothing for it: connect, ask,
 * wait, try again, until the deadline.
 *
 * Invariant: one thread at a time leads (uses the transport), the others
 * wait for its result with their own deadlines; whoever leads and leaves, for
 * whatever reason, wakes them, and one of them leads on.
 */
#ifndef REFILL_H
#define REFILL_H

#include "handle.h"

enum refill_goal {
	REFILL_IDS, /* a batch */
	REFILL_LAYOUT, /* the contract */
};

/* One call of the application. */
struct call {
	enum refill_goal goal;
	bool patient; /* waits timeout_ms; else only for a reply under way */
	bool begun; /* deadline_ns is set */
	bool asked; /* an attempt was made for this call */
	bool fresh; /* out: a batch came, its age just measured */
	uint32_t need; /* IDs that the call could use */
	int64_t deadline_ns; /* CLOCK_MONOTONIC */
};

/*
 * Called with the latch held; returns with it held, having let go of it
 * while waiting.  FIRN_OK: something has changed, look again.
 */
int refill(struct firn *f, struct call *c) __attribute__((warn_unused_result));

/*
 * Sends the next request, if the stock has run below its mark and none is
 * under way.  Never waits; called with the latch held.
 */
void refill_ahead(struct firn *f);

/*
 * Ends the handle: every call that waits inside, or would begin to, gets
 * FIRN_EINVAL.  Never waits; called with the latch held.
 */
void refill_end(struct firn *f);

#endif
