/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latch - a lock and an event for memory that a fork wipes.
 *
 * Invariant: all-zero is "free, nobody waits", so a child that finds the
 * words wiped finds a lock it can take, whoever held it in the parent.  The
 * C library's mutex does not promise that, and its condition variable is a
 * cancellation point; a bare futex is none.
 */
#ifndef LATCH_H
#define LATCH_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct latch {
	_Atomic uint32_t word; /* 0 free, 1 held, 2 held and waited for */
	_Atomic uint32_t event; /* goes up when those who wait should look */
	_Atomic uint32_t waiters;
};

/* Both may return early for no reason: every caller looks again. */
static inline void
latch_futex_wait(
    _Atomic uint32_t *word, uint32_t value, const struct timespec *until)
{
	(void)syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, until,
	    NULL, FUTEX_BITSET_MATCH_ANY);
}

static inline void
latch_futex_wake(_Atomic uint32_t *word, int n)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

static inline void
latch_lock(struct latch *l)
{
	uint32_t seen = 0;

	if (atomic_compare_exchange_strong_explicit(
		&l->word, &seen, 1, memory_order_acquire, memory_order_relaxed))
		return;
	while (atomic_exchange_explicit(&l->word, 2, memory_order_acquire) != 0)
		latch_futex_wait(&l->word, 2, NULL);
}

static inline void
latch_unlock(struct latch *l)
{
	if (atomic_exchange_explicit(&l->word, 0, memory_order_release) == 2)
		latch_futex_wake(&l->word, 1);
}

/*
 * Lets go of the lock, waits for the event or until_ns (CLOCK_MONOTONIC), and
 * takes the lock again.
 */
static inline void
latch_wait(struct latch *l, int64_t until_ns)
{
	struct timespec until = { .tv_sec = (time_t)(until_ns / 1000000000),
		.tv_nsec = (long)(until_ns % 1000000000) };
	uint32_t seen = atomic_load_explicit(&l->event, memory_order_relaxed);

	atomic_fetch_add_explicit(&l->waiters, 1, memory_order_relaxed);
	latch_unlock(l);
	latch_futex_wait(&l->event, seen, &until);
	latch_lock(l);
	/* a child's count was wiped while its only thread stood in fork */
	if (atomic_load_explicit(&l->waiters, memory_order_relaxed) > 0)
		atomic_fetch_sub_explicit(&l->waiters, 1, memory_order_relaxed);
}

/* Tells all who wait; the lock is held. */
static inline void
latch_signal(struct latch *l)
{
	atomic_fetch_add_explicit(&l->event, 1, memory_order_relaxed);
	if (atomic_load_explicit(&l->waiters, memory_order_relaxed) > 0)
		latch_futex_wake(&l->event, INT32_MAX);
}

#endif
