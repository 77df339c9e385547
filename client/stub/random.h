/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random - a small pool of the kernel's random bytes.
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

#endif
