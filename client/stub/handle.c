/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle - whose memory it is: makes the state of a handle this process's own
 * before anything is done with it, and frees it when the last call is over.
 *
 * Invariant: nothing of a parent's is used in a child that has memory of its
 * own; no memory is freed while a counted call is inside.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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
handle_lock(struct firn *f)
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
handle_unlock(struct firn *f)
{
	latch_unlock(&f->shared->latch);
}

int
handle_enter(struct firn *f)
{
	int state;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (!f->cached)
		handle_own(f);
	/* before the latch, so that one who waits for it counts, too */
	atomic_fetch_add(&f->shared->inside, 1);
	handle_lock(f);
	return (state);
}

static void
handle_free(struct firn *f)
{
	transport_disown(&f->socket);
	munmap(f->shared, sizeof(*f->shared));
	free(f);
}

void
handle_leave(struct firn *f, int cancel_state)
{
	struct shared *sh = f->shared;
	bool last;

	/* zero: wiped under this call, by a fork in a signal handler */
	if (atomic_load(&sh->inside) > 0)
		atomic_fetch_sub(&sh->inside, 1);
	last = sh->closed && atomic_load(&sh->inside) == 0;
	/* not the last: from here on the handle may be gone */
	latch_unlock(&sh->latch);
	if (last)
		handle_free(f);
	(void)pthread_setcancelstate(cancel_state, NULL);
}
