/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random - the kernel's random bytes, by themselves and in a small pool.
 *
 * Invariant: all-zero is a valid, empty pool.  Kept in memory that a fork
 * wipes, it is empty in the child, so no two processes draw the same bytes.
 */
#ifndef RANDOM_H
#define RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RANDOM_POOL_SIZE 128

struct random_pool {
	uint32_t left; /* bytes not yet given out, at the end of bytes[] */
	uint8_t bytes[RANDOM_POOL_SIZE];
};

/* Fills p with n random bytes; false if the kernel has none to give yet. */
bool random_bytes(struct random_pool *r, void *p, size_t n)
    __attribute__((warn_unused_result));

/*
 * A number that differs from the last one: for cookies and jitter, which
 * need no secrecy and must go on where the kernel gives nothing.
 */
uint64_t random_number(struct random_pool *r);

/*
 * What a thread's getrandom() without a system call needs (vdso.h); NULL: not
 * asked for yet, or not to be had, so the system call does it.  The memory
 * takes care of itself in a child.
 */
struct random_source {
	void *state;
	size_t mapped; /* bytes; 0: not asked for yet */
};

/*
 * Fills p with n bytes of getrandom(2), and waits for the kernel's first seed
 * where it must, early in boot.  False: the kernel refuses (a sandbox).
 */
bool random_fill(struct random_source *s, void *p, size_t n)
    __attribute__((warn_unused_result));

/* Gives the memory back, when the thread ends. */
void random_source_close(struct random_source *s);

#endif
