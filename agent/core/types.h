/* SPDX-License-Identifier: Apache-2.0 */
/*
 * types - time and small things that every part of the core uses.
 *
 * The two clocks are structs of one field, so that the compiler keeps them
 * apart.
 */
#ifndef TYPES_H
#define TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "firn.h"

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

#define NO_TICK INT64_C(-1)
#define NO_WORKER UINT64_MAX

/* CLOCK_BOOTTIME: only goes up, counts suspend. */
typedef struct {
	int64_t ns;
} mono_t;

/* Unix time. */
typedef struct {
	int64_t ns;
} wall_t;

/* One reading of both clocks, and how far apart in time they were read. */
struct instant {
	mono_t boot;
	wall_t wall;
	int64_t error_ns;
};

static inline int64_t
max64(int64_t a, int64_t b)
{
	return (a > b ? a : b);
}

static inline int64_t
min64(int64_t a, int64_t b)
{
	return (a < b ? a : b);
}

/* Sums and differences stop at the ends of int64_t: no clock can overflow. */
static inline int64_t
add_sat(int64_t a, int64_t b)
{
	int64_t r;

	if (__builtin_add_overflow(a, b, &r))
		return (b < 0 ? INT64_MIN : INT64_MAX);
	return (r);
}

static inline int64_t
sub_sat(int64_t a, int64_t b)
{
	int64_t r;

	if (__builtin_sub_overflow(a, b, &r))
		return (b > 0 ? INT64_MIN : INT64_MAX);
	return (r);
}

static inline int64_t
ms_to_ns(int64_t ms)
{
	int64_t r;

	if (__builtin_mul_overflow(ms, NS_PER_MS, &r))
		return (ms < 0 ? INT64_MIN : INT64_MAX);
	return (r);
}

/* Rounded up: a wait of that many milliseconds is never too short. */
static inline int64_t
ns_to_ms_up(int64_t ns)
{
	return (ns / NS_PER_MS + (ns % NS_PER_MS > 0 ? 1 : 0));
}

static inline mono_t
mono_add_ms(mono_t t, int64_t ms)
{
	return ((mono_t){ add_sat(t.ns, ms_to_ns(ms)) });
}

/* a - b, in whole milliseconds. */
static inline int64_t
mono_diff_ms(mono_t a, mono_t b)
{
	return (sub_sat(a.ns, b.ns) / NS_PER_MS);
}

static inline bool
mono_reached(mono_t now, mono_t when)
{
	return (now.ns >= when.ns);
}

static inline int64_t
wall_ms(wall_t t)
{
	/* floor, also before 1970 */
	return (t.ns / NS_PER_MS - (t.ns % NS_PER_MS < 0 ? 1 : 0));
}

#define MONO_NEVER ((mono_t){ INT64_MAX })

/* Random bytes that the shell hands in; fresh from the kernel each time. */
struct entropy {
	uint64_t word[4];
};

#endif
