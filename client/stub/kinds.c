/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinds - makes UUIDs, ULIDs and KSUIDs: no agent, no lock, one state a
 * thread.
 *
 * Invariant: of one thread's UUIDv7s, ULIDs and KSUIDs each is above the one
 * before; a random byte is used once and erased.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "kinds.h"
#include "ksuid.h"
#include "ulid.h"
#include "uuid.h"
#include "vdso.h"

/* ---- random numbers ---- */

static int __attribute__((noinline, cold)) refill(struct kinds *k)
{
	if (!random_fill(k->source, k->pool, sizeof(k->pool)))
		return (FIRN_ERANDOM);
	k->left = sizeof(k->pool);
	return (FIRN_OK);
}

/* Are there n bytes in the pool?  What is left of it is not used then. */
static inline int
need(struct kinds *k, uint32_t n)
{
	return (__builtin_expect(k->left >= n, 1) ? FIRN_OK : refill(k));
}

/* Both take of the bytes that need() has seen, and erase what they take. */
static inline uint64_t
draw64(struct kinds *k)
{
	uint8_t *from = k->pool + sizeof(k->pool) - k->left;
	uint64_t v;

	memcpy(&v, from, sizeof(v));
	memset(from, 0, sizeof(v));
	k->left -= (uint32_t)sizeof(v);
	return (v);
}

static inline uint32_t
draw32(struct kinds *k)
{
	uint8_t *from = k->pool + sizeof(k->pool) - k->left;
	uint32_t v;

	memcpy(&v, from, sizeof(v));
	memset(from, 0, sizeof(v));
	k->left -= (uint32_t)sizeof(v);
	return (v);
}

/* ---- one ID ---- */

static inline int
make_uuid4(struct kinds *k, unsigned char out[16])
{
	uint64_t high, low;

	if (need(k, 16) != 0)
		return (FIRN_ERANDOM);
	high = draw64(k);
	low = draw64(k);
	uuid4_stamp(&high, &low);
	bytes_put64(out, high);
	bytes_put64(out + 8, low);
	return (FIRN_OK);
}

/* A tick that has not begun yet, with 127 random bits or fewer. */
static int __attribute__((noinline)) begin(struct kinds *k, struct rising *r,
    const struct rising_shape *s, uint64_t tick)
{
	uint64_t high;

	if (need(k, 16) != 0)
		return (FIRN_ERANDOM);
	high = draw64(k);
	return (
	    rising_begin(r, s, tick, high, draw64(k)) ? FIRN_OK : FIRN_ERANGE);
}

/*
 * The step is 1 to 2^32, so that who has seen an ID cannot name the next one.
 * 2^41 of the longest steps fit behind the guard bit; then the timestamp goes
 * one ms ahead of the clock.
 */
static inline int
make_uuid7(struct kinds *k, int64_t unix_ms, unsigned char out[16])
{
	struct rising *r = &k->uuid7;
	int rc;

	if (unix_ms < 0)
		return (FIRN_ERANGE);
	if (rising_is_new(r, (uint64_t)unix_ms)) {
		rc = begin(k, r, &uuid7_shape, (uint64_t)unix_ms);
		if (rc != 0)
			return (rc);
	} else {
		if (need(k, 4) != 0)
			return (FIRN_ERANDOM);
		if (!rising_add(r, &uuid7_shape, (uint64_t)draw32(k) + 1)) {
			rc = begin(k, r, &uuid7_shape, r->until);
			if (rc != 0)
				return (rc);
		}
	}
	uuid7_compose(out, r->until - 1, r->high, r->low);
	return (FIRN_OK);
}

/* The step is 1, and a span that is used up an error: so the specification. */
static inline int
make_ulid(struct kinds *k, int64_t unix_ms, unsigned char out[16])
{
	struct rising *r = &k->ulid;
	int rc;

	if (unix_ms < 0)
		return (FIRN_ERANGE);
	if (rising_is_new(r, (uint64_t)unix_ms)) {
		rc = begin(k, r, &ulid_shape, (uint64_t)unix_ms);
		if (rc != 0)
			return (rc);
	} else if (!rising_add(r, &ulid_shape, 1)) {
		return (FIRN_ERANGE);
	}
	ulid_compose(out, r->until - 1, r->high, r->low);
	return (FIRN_OK);
}

/* The step is 1 to 2^62; 2^65 such fit behind the guard bit. */
static inline int
make_ksuid(struct kinds *k, int64_t unix_ms, unsigned char out[20])
{
	struct rising *r = &k->ksuid;
	uint64_t second;
	int rc;

	if (!ksuid_second(unix_ms, &second))
		return (FIRN_ERANGE);
	if (need(k, 8) != 0)
		return (FIRN_ERANDOM);
	if (rising_is_new(r, second) ||
	    !rising_add(r, &ksuid_shape, (draw64(k) >> 2) + 1)) {
		rc = begin(
		    k, r, &ksuid_shape, second >= r->until ? second : r->until);
		if (rc != 0)
			return (rc);
	}
	ksuid_compose(out, r->until - 1, r->high, r->low);
	return (FIRN_OK);
}

/* The same, for tests that own the clock. */

int
kinds_uuid4(struct kinds *k, unsigned char out[16])
{
	return (make_uuid4(k, out));
}

int
kinds_uuid7(struct kinds *k, int64_t unix_ms, unsigned char out[16])
{
	return (make_uuid7(k, unix_ms, out));
}

int
kinds_ulid(struct kinds *k, int64_t unix_ms, unsigned char out[16])
{
	return (make_ulid(k, unix_ms, out));
}

int
kinds_ksuid(struct kinds *k, int64_t unix_ms, unsigned char out[20])
{
	return (make_ksuid(k, unix_ms, out));
}

/* ---- the thread's state ---- */

struct mine {
	struct kinds *kinds;
	struct random_source source;
};

static _Thread_local struct mine mine
    __attribute__((tls_model("initial-exec")));

/* Of this process, found once; the same in each of its threads. */
static _Atomic(vdso_clock) wall_clock;
static _Atomic uint32_t key_known; /* the key's number, and 1 */
static atomic_bool unwiped; /* the kernel does not wipe */

static void
state_free(void *arg)
{
	(void)munmap(arg, sizeof(struct kinds));
	random_source_close(&mine.source);
	mine.kinds = NULL;
}

/* The key whose destructor frees a thread's state; no lock, so fork is safe. */
static bool
find_key(pthread_key_t *key)
{
	uint32_t known = atomic_load(&key_known);

	if (known == 0) {
		if (pthread_key_create(key, state_free) != 0)
			return (false);
		if (atomic_compare_exchange_strong(
			&key_known, &known, (uint32_t)*key + 1))
			return (true);
		(void)pthread_key_delete(*key); /* another thread was first */
	}
	*key = (pthread_key_t)(known - 1);
	return (true);
}

static struct kinds *
state_make(void)
{
	pthread_key_t key;
	void *pages;

	if (!find_key(&key))
		return (NULL);
	pages = mmap(NULL, sizeof(struct kinds), PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		return (NULL);
	if (pthread_setspecific(key, pages) != 0) {
		(void)munmap(pages, sizeof(struct kinds));
		return (NULL);
	}
	if (madvise(pages, sizeof(struct kinds), MADV_WIPEONFORK) != 0)
		atomic_store(&unwiped, true);
	atomic_store(&wall_clock, vdso_find_clock());
	mine.kinds = pages;
	return (pages);
}

/* New, wiped, or where the kernel does not wipe: is it still this process's? */
static struct kinds *__attribute__((noinline, cold)) state_check(void)
{
	struct kinds *k = mine.kinds != NULL ? mine.kinds : state_make();
	pid_t pid;

	if (k == NULL)
		return (NULL);
	pid = getpid();
	if (k->pid != pid)
		memset(k, 0, sizeof(*k));
	k->pid = pid;
	k->source = &mine.source;
	return (k);
}

static inline struct kinds *
state(void)
{
	struct kinds *k = mine.kinds;

	/* source: 0 in a page that was wiped */
	if (__builtin_expect(
		k != NULL && k->source != NULL &&
		    !atomic_load_explicit(&unwiped, memory_order_relaxed),
		1))
		return (k);
	return (state_check());
}

/*
 * The kernel's coarse clock: late by at most one of its ticks, and a fourth of
 * what an ID may cost where the exact one is half of it.  RFC 9562, section
 * 6.1, leaves how exact a timestamp is to its maker.
 */
static inline bool
wall_ms(int64_t *ms)
{
	struct timespec ts;

	if (atomic_load_explicit(&wall_clock, memory_order_relaxed)(
		CLOCK_REALTIME_COARSE, &ts) != 0)
		return (false);
	*ms = (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
	return (true);
}

/* ---- the public functions ---- */

int
firn_uuid4(unsigned char out[16])
{
	struct kinds *k = state();

	if (out == NULL)
		return (FIRN_EINVAL);
	return (k == NULL ? FIRN_ENOMEM : make_uuid4(k, out));
}

/* No array lies on these stacks, so a canary would guard nothing. */
#if defined(__has_attribute)
#if __has_attribute(no_stack_protector)
#define NO_CANARY __attribute__((no_stack_protector))
#endif
#endif
#ifndef NO_CANARY
#define NO_CANARY
#endif

typedef int (*kinds_make)(struct kinds *k, int64_t unix_ms, unsigned char *out);

static inline __attribute__((always_inline)) int
make(kinds_make one, unsigned char *out)
{
	struct kinds *k = state();
	int64_t ms;

	if (out == NULL)
		return (FIRN_EINVAL);
	if (k == NULL)
		return (FIRN_ENOMEM);
	return (wall_ms(&ms) ? one(k, ms, out) : FIRN_ERANGE);
}

NO_CANARY int
firn_uuid7(unsigned char out[16])
{
	return (make(make_uuid7, out));
}

NO_CANARY int
firn_ulid(unsigned char out[16])
{
	return (make(make_ulid, out));
}

NO_CANARY int
firn_ksuid(unsigned char out[20])
{
	return (make(make_ksuid, out));
}
