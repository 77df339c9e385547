/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dice - random worlds for property tests: a seed that is printed, and taken
 * from FIRN_TEST_SEED to see the same world again.
 */
#ifndef DICE_H
#define DICE_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct dice {
	uint64_t state;
};

/* splitmix64 */
static inline uint64_t
dice_next(struct dice *d)
{
	uint64_t z = (d->state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (z ^ (z >> 31));
}

/* 0 to n - 1; n at least 1. */
static inline uint64_t
dice_below(struct dice *d, uint64_t n)
{
	return (dice_next(d) % n);
}

/* lo to hi, both possible. */
static inline int64_t
dice_range(struct dice *d, int64_t lo, int64_t hi)
{
	return (lo + (int64_t)dice_below(d, (uint64_t)(hi - lo) + 1));
}

/* All magnitudes alike: small numbers and edges come up as large ones do. */
static inline uint64_t
dice_number(struct dice *d)
{
	uint64_t v = dice_next(d) >> dice_below(d, 64);

	switch (dice_below(d, 8)) {
	case 0:
		return (UINT64_MAX - v);
	case 1:
		return (UINT64_C(1) << dice_below(d, 64));
	case 2:
		return ((UINT64_C(1) << dice_below(d, 64)) - 1);
	}
	return (v);
}

static inline struct dice
dice_open(const char *what)
{
	const char *seed = getenv("FIRN_TEST_SEED");
	struct dice d = { 0 };

	if (seed != NULL)
		d.state = strtoull(seed, NULL, 0);
	else
		d.state = (uint64_t)time(NULL) << 20 ^ (uint64_t)getpid();
	printf("%s: FIRN_TEST_SEED=%" PRIu64 "\n", what, d.state);
	return (d);
}

#endif
