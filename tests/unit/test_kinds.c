/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generators of UUIDs, ULIDs and KSUIDs: always up, whatever the clock does;
 * full counters; random bytes that are used once; children of every kind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "dice.h"
#include "kinds.h"
#include "ksuid.h"
#include "ulid.h"
#include "uuid.h"

#define WORLDS 200
#define STEPS 2000

static struct random_source source;

static const struct kind {
	const char *name;
	size_t size;
	int64_t tick_ms;
	int (*at)(struct kinds *k, int64_t unix_ms, unsigned char *out);
	int (*now)(unsigned char *out);
	int (*time)(const unsigned char *id, int64_t *unix_ms);
	size_t guard; /* the byte of the guard bit, */
	unsigned bit; /* and which it is */
} kinds[] = {
	{ "uuid7", 16, 1, kinds_uuid7, firn_uuid7, firn_uuid_time, 6, 0x08 },
	{ "ulid", 16, 1, kinds_ulid, firn_ulid, firn_ulid_time, 6, 0x80 },
	{ "ksuid", 20, 1000, kinds_ksuid, firn_ksuid, firn_ksuid_time, 4,
	    0x80 },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* A clock that stands, crawls, leaps and goes back. */
static int64_t
move_clock(struct dice *d, int64_t ms)
{
	switch (dice_below(d, 16)) {
	case 0:
		return (ms - (int64_t)dice_below(d, 100));
	case 1:
		return (ms - (int64_t)dice_below(d, INT64_C(86400000)));
	case 2:
		return (ms + (int64_t)dice_below(d, 5000));
	case 3:
	case 4:
		return (ms + 1);
	}
	return (ms);
}

static void
always_up(void **state)
{
	struct dice d = dice_open("always_up");

	(void)state;
	for (int w = 0; w < WORLDS; w++) {
		const struct kind *kind = &kinds[dice_below(&d, KINDS)];
		struct kinds k = { .source = &source };
		int64_t ms = INT64_C(1780000000000) +
			     (int64_t)dice_below(&d, INT64_C(100000000000));
		int64_t highest = 0;
		unsigned char before[20] = { 0 }, id[20];

		for (int i = 0; i < STEPS; i++) {
			int64_t at = 0;

			ms = move_clock(&d, ms);
			highest = ms > highest ? ms : highest;
			assert_int_equal(kind->at(&k, ms, id), 0);
			assert_true(memcmp(before, id, kind->size) < 0);
			/* never before nor after the highest time it saw */
			assert_int_equal(kind->time(id, &at), 0);
			assert_true(at == highest - highest % kind->tick_ms);
			memcpy(before, id, sizeof(id));
			if (kind->at == kinds_uuid7)
				assert_int_equal(firn_uuid_version(id), 7);
		}
	}
}

/* The first ID of each tick has a 0 for guard; all other bits come up. */
static void
guard_bit(void **state)
{
	(void)state;
	for (size_t n = 0; n < KINDS; n++) {
		const struct kind *kind = &kinds[n];
		struct kinds k = { .source = &source };
		unsigned char all[20] = { 0 }, none[20], id[20];
		int64_t ms = INT64_C(1780000000000);

		memset(none, 0xff, sizeof(none));
		for (int i = 0; i < 2000; i++) {
			ms += kind->tick_ms;
			assert_int_equal(kind->at(&k, ms, id), 0);
			assert_int_equal(id[kind->guard] & kind->bit, 0);
			for (size_t b = kind->guard; b < kind->size; b++) {
				all[b] |= id[b];
				none[b] &= id[b];
			}
		}
		/* (2^-2000 for any of them) */
		assert_int_equal(
		    all[kind->guard] & (kind->bit - 1), kind->bit - 1);
		for (size_t b = kind->guard + 1; b < kind->size; b++) {
			bool variant = kind->at == kinds_uuid7 && b == 8;

			assert_int_equal(all[b], variant ? 0xbf : 0xff);
			assert_int_equal(none[b], variant ? 0x80 : 0);
		}
	}
}

/* A counter that is used up: what firn.h says of each kind. */
static void
overflow(void **state)
{
	struct kinds k = { .source = &source };
	int64_t ms = INT64_C(1780000000000), at = 0;
	unsigned char id[20], last[20];

	(void)state;
	k.uuid7 = (struct rising){ (uint64_t)ms + 1, rising_mask(12),
		rising_mask(62) };
	assert_int_equal(kinds_uuid7(&k, ms, id), 0);
	assert_int_equal(firn_uuid_time(id, &at), 0);
	assert_true(at == ms + 1);
	assert_int_equal(kinds_uuid7(&k, ms, id), 0);
	assert_int_equal(firn_uuid_time(id, &at), 0);
	assert_true(at == ms + 1);

	k.ulid = (struct rising){ (uint64_t)ms + 1, rising_mask(16),
		UINT64_MAX - 1 };
	assert_int_equal(kinds_ulid(&k, ms, id), 0);
	assert_int_equal(firn_ulid_ceiling(ms, last), 0);
	assert_memory_equal(id, last, 16);
	assert_int_equal(kinds_ulid(&k, ms, id), FIRN_ERANGE);
	assert_int_equal(kinds_ulid(&k, ms - 1, id), FIRN_ERANGE);
	assert_int_equal(kinds_ulid(&k, ms + 1, id), 0);

	k.ksuid = (struct rising){ (uint64_t)(ms / 1000 - KSUID_EPOCH_S) + 1,
		UINT64_MAX, UINT64_MAX };
	assert_int_equal(kinds_ksuid(&k, ms, id), 0);
	assert_int_equal(firn_ksuid_time(id, &at), 0);
	assert_true(at == ms + 1000);
}

/* At the end of a kind's time nothing is given, nor before its beginning. */
static void
ends_of_time(void **state)
{
	struct kinds k = { .source = &source };
	int64_t last7 = (INT64_C(1) << 48) - 1, last = INT64_C(5694967295999);
	unsigned char id[20];

	(void)state;
	assert_int_equal(kinds_uuid7(&k, -1, id), FIRN_ERANGE);
	assert_int_equal(kinds_uuid7(&k, 0, id), 0);
	assert_int_equal(kinds_ulid(&k, INT64_MIN, id), FIRN_ERANGE);
	assert_int_equal(
	    kinds_ksuid(&k, INT64_C(1399999999999), id), FIRN_ERANGE);
	assert_int_equal(kinds_uuid7(&k, last7 + 1, id), FIRN_ERANGE);
	assert_int_equal(kinds_uuid7(&k, last7, id), 0);
	k.uuid7.high = rising_mask(12);
	k.uuid7.low = rising_mask(62);
	assert_int_equal(kinds_uuid7(&k, last7, id), FIRN_ERANGE);
	assert_int_equal(kinds_ulid(&k, last7 + 1, id), FIRN_ERANGE);
	assert_int_equal(kinds_ksuid(&k, last, id), 0);
	assert_int_equal(kinds_ksuid(&k, last + 1, id), FIRN_ERANGE);
}

/* What was drawn is gone from the pool. */
static void
used_bytes_are_erased(void **state)
{
	struct kinds k = { .source = &source };
	unsigned char id[20];

	(void)state;
	for (int i = 0; i < 500; i++) {
		assert_int_equal(kinds_uuid4(&k, id), 0);
		assert_int_equal(firn_uuid_version(id), 4);
		assert_int_equal(kinds_uuid7(&k, 1000, id), 0);
		assert_int_equal(
		    kinds_ksuid(&k, INT64_C(1780000000000), id), 0);
		for (size_t b = 0; b < sizeof(k.pool) - k.left; b++)
			assert_int_equal(k.pool[b], 0);
	}
}

/* The system call does where the kernel has no other way. */
static void
without_the_kernels_short_way(void **state)
{
	struct random_source none = { .state = NULL, .mapped = 4096 };
	uint8_t a[5000] = { 0 }, b[5000] = { 0 };

	(void)state;
	assert_true(random_fill(&none, a, sizeof(a)));
	assert_true(random_fill(&source, b, sizeof(b)));
	assert_memory_not_equal(a, b, sizeof(a));
	/* the end was filled, too: 16 zeros are one in 2^128 */
	assert_memory_not_equal(a + 4984, (uint8_t[16]){ 0 }, 16);
	assert_memory_not_equal(b + 4984, (uint8_t[16]){ 0 }, 16);
}

/* ---- threads and children ---- */

#define THREADS 4
#define EACH 20000

struct taken {
	unsigned char (*ids)[20];
	const struct kind *kind;
};

static void *
take(void *arg)
{
	struct taken *t = arg;

	for (size_t i = 0; i < EACH; i++) {
		if (t->kind->now(t->ids[i]) != 0 ||
		    (i > 0 && memcmp(t->ids[i - 1], t->ids[i], 20) >= 0))
			return (arg);
	}
	return (NULL);
}

static int
compare(const void *a, const void *b)
{
	return (memcmp(a, b, 20));
}

static void
threads_share_nothing(void **state)
{
	static unsigned char ids[THREADS * EACH][20];

	(void)state;
	for (size_t n = 0; n < KINDS; n++) {
		struct taken taken[THREADS];
		pthread_t threads[THREADS];
		void *bad;

		memset(ids, 0, sizeof(ids));
		for (size_t i = 0; i < THREADS; i++) {
			taken[i] = (struct taken){ ids + i * EACH, &kinds[n] };
			assert_int_equal(
			    pthread_create(&threads[i], NULL, take, &taken[i]),
			    0);
		}
		for (size_t i = 0; i < THREADS; i++) {
			assert_int_equal(pthread_join(threads[i], &bad), 0);
			assert_null(bad);
		}
		qsort(ids, THREADS * EACH, 20, compare);
		for (size_t i = 1; i < THREADS * EACH; i++)
			assert_true(memcmp(ids[i - 1], ids[i], 20) < 0);
	}
}

static pid_t
plain_clone(void)
{
	return ((pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
}

#define CHILD_IDS 48 /* a family member writes at most PIPE_BUF at once */
#define FAMILY (4 * CHILD_IDS)

/* Four kinds, some of each, into a buffer: v4 too, which only luck repeats. */
static bool
take_some(unsigned char ids[][20])
{
	memset(ids, 0, FAMILY * sizeof(ids[0]));
	for (size_t i = 0; i < CHILD_IDS; i++) {
		if (firn_uuid4(ids[4 * i]) != 0 || firn_uuid7(ids[4 * i + 1]) ||
		    firn_ulid(ids[4 * i + 2]) != 0 ||
		    firn_ksuid(ids[4 * i + 3]) != 0)
			return (false);
	}
	return (true);
}

static void
read_all(int fd, void *to, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t k = read(fd, (char *)to + at, n - at);

		assert_true(k > 0);
		at += (size_t)k;
	}
}

/* A child and a child of its own, and the parent, take at the same time. */
static void
check_family(pid_t (*start)(void))
{
	static unsigned char ids[3 * FAMILY][20];
	int fds[2], status;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	assert_true(take_some(ids)); /* so that there is something to wipe */
	pid = start();
	assert_true(pid >= 0);
	if (pid == 0) {
		pid_t inner = start();
		bool good = inner >= 0 && take_some(ids) &&
			    write(fds[1], ids, sizeof(ids[0]) * FAMILY) ==
				(ssize_t)(sizeof(ids[0]) * FAMILY);

		if (inner > 0)
			good = good && waitpid(inner, &status, 0) == inner &&
			       status == 0;
		_exit(good ? 0 : 1);
	}
	assert_true(take_some(ids));
	read_all(fds[0], ids + FAMILY, 2 * FAMILY * sizeof(ids[0]));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(fds[0]);
	close(fds[1]);
	qsort(ids, 3 * FAMILY, 20, compare);
	for (size_t i = 1; i < 3 * FAMILY; i++)
		assert_true(memcmp(ids[i - 1], ids[i], 20) < 0);
}

static void
children_have_their_own(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		check_family(fork);
		check_family(_Fork);
		check_family(plain_clone);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(always_up),
		cmocka_unit_test(guard_bit),
		cmocka_unit_test(overflow),
		cmocka_unit_test(ends_of_time),
		cmocka_unit_test(used_bytes_are_erased),
		cmocka_unit_test(without_the_kernels_short_way),
		cmocka_unit_test(threads_share_nothing),
		cmocka_unit_test(children_have_their_own),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
