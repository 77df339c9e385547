/* SPDX-License-Identifier: Apache-2.0 */
/*
 * firn-spin - is it worth while to look again at once before sleeping?  Pure.
 *
 * A reply that comes within a few microseconds is had sooner by looking for it
 * than by a sleep, which costs about as much again to wake from.  Both sides
 * of the socket ask here: the stub when it has sent a request, the agent when
 * it has answered some.  What nobody is served by must cost nobody much: each
 * look in vain halves how often it is done, down to one wait in 256.
 *
 * Invariant: at most SPIN_NS of the processor a wait; all-zero is a first
 * state, so it may lie in pages that a fork wipes.
 */
#ifndef FIRN_SPIN_H
#define FIRN_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#define SPIN_NS INT64_C(15000) /* about what a sleep and a wake-up take */
#define SPIN_DOUBT_MAX 8

struct spin {
	uint32_t doubt; /* looks in vain, less those that were not */
	uint32_t skip; /* waits to go without one */
};

/* Before a wait: look for up to SPIN_NS?  Then spin_ended() is owed. */
static inline bool
spin_begins(struct spin *s)
{
	if (s->skip == 0)
		return (true);
	s->skip--;
	return (false);
}

/* The look is over: did what was looked for come? */
static inline void
spin_ended(struct spin *s, bool came)
{
	if (!came && s->doubt < SPIN_DOUBT_MAX)
		s->doubt++;
	else if (came && s->doubt > 0)
		s->doubt--;
	s->skip = (UINT32_C(1) << s->doubt) - 1;
}

#endif
