/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle - whose memory it is: makes the state of a handle this process's own
 * before anything is done with it.
 *
 * Invariant: nothing of a parent's is used in a child that has memory of its
 * own.
 */
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "handle.h"

/*
 * Where the kernel does not wipe: a child finds its parent's state, nothing
 * of which is its own, and empties it before anything else.  Whether it
 * shares that memory (vfork) cannot be told here; such a child may only exec.
 */
static void
handle_own(struct firn *f)
{
	uint64_t pid = (uint64_t)getpid(), seen;

	while ((seen = atomic_load(&f->home)) != pid * 2) {
		if (seen == pid * 2 + 1) {
			sched_yield(); /* another thread is at it */
		} else if (atomic_compare_exchange_strong(
			       &f->home, &seen, pid * 2 + 1)) {
			memset(f->shared, 0, sizeof(*f->shared));
			atomic_store(&f->home, pid * 2);
		}
	}
}

void
handle_enter(struct firn *f)
{
	struct shared *sh = f->shared;

	if (!f->cached)
		handle_own(f);
	latch_lock(&sh->latch);
	if (sh->generation != 0)
		return;
	/* new, or wiped: the socket, if there is one, is the parent's */
	transport_disown(&f->socket);
	sh->generation = atomic_fetch_add(&f->generations, 1) + 1;
	sh->pid = getpid();
}

void
handle_leave(struct firn *f)
{
	latch_unlock(&f->shared->latch);
}
