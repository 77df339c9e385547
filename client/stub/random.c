/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random - the kernel's random bytes, by themselves and in a small pool.
 *
 * Invariant: a byte that was given out is erased from the pool.
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "random.h"
#include "vdso.h"

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

/* ---- many bytes ---- */

/* Of this process; the same in each of its threads and children. */
static _Atomic(vdso_random) quick;
static _Atomic uint32_t quick_size;

/* Asks once in a thread; a failure only means that the system call does it. */
static void
source_open(struct random_source *s)
{
	struct vdso_random_params params = { 0 };
	vdso_random found = vdso_find_random(&params);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *state;

	s->mapped = page; /* asked */
	if (found == NULL || params.state_size > page)
		return;
	state = mmap(
	    NULL, page, (int)params.mmap_prot, (int)params.mmap_flags, -1, 0);
	if (state == MAP_FAILED)
		return;
	atomic_store(&quick_size, params.state_size);
	atomic_store(&quick, found);
	s->state = state;
}

bool
random_fill(struct random_source *s, void *p, size_t n)
{
	uint8_t *to = p;

	if (s->mapped == 0)
		source_open(s);
	if (s->state != NULL && atomic_load(&quick)(to, n, 0, s->state,
				    atomic_load(&quick_size)) == (ssize_t)n)
		return (true);
	while (n > 0) {
		ssize_t k = getrandom(to, n, 0);

		if (k == -1 && errno == EINTR)
			continue;
		if (k <= 0)
			return (false);
		to += k;
		n -= (size_t)k;
	}
	return (true);
}

void
random_source_close(struct random_source *s)
{
	if (s->state != NULL)
		(void)munmap(s->state, s->mapped);
	*s = (struct random_source){ NULL, 0 };
}
