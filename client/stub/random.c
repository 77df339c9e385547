/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random - a small pool of the kernel's random bytes.
 *
 * Invariant: a byte that was given out is erased from the pool.
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "random.h"

static bool
random_refill(struct random_pool *r)
{
	ssize_t n;

	do
		n = getrandom(r->bytes, sizeof(r->bytes), GRND_NONBLOCK);
	while (n == -1 && errno == EINTR);
	if (n != (ssize_t)sizeof(r->bytes))
		return (false);
	r->left = sizeof(r->bytes);
	return (true);
}

bool
random_bytes(struct random_pool *r, void *p, size_t n)
{
	uint8_t *to = p;

	while (n > 0) {
		if (r->left == 0 && !random_refill(r))
			return (false);
		size_t k = n < r->left ? n : r->left;
		uint8_t *from = r->bytes + sizeof(r->bytes) - r->left;

		memcpy(to, from, k);
		explicit_bzero(from, k);
		r->left -= (uint32_t)k;
		to += k;
		n -= k;
	}
	return (true);
}

uint64_t
random_number(struct random_pool *r)
{
	struct timespec ts;
	uint64_t v;

	if (random_bytes(r, &v, sizeof(v)))
		return (v);
	/* early boot, or a sandbox: the time does for a cookie */
	clock_gettime(CLOCK_MONOTONIC, &ts);
	v = (uint64_t)ts.tv_sec * UINT64_C(1000000007) + (uint64_t)ts.tv_nsec;
	v ^= (uint64_t)(uintptr_t)r;
	return ((v ^ (v >> 29)) * UINT64_C(0x9e3779b97f4a7c15));
}
