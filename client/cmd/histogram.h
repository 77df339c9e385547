/* SPDX-License-Identifier: Apache-2.0 */
/*
 * histogram - how often which duration came, in buckets that are at most 1/32
 * of their value wide.  Pure; all-zero is an empty one.
 *
 * Invariant: total is the sum of all buckets, and no value lies above max.
 */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_FINE 32 /* buckets for each doubling */
#define HISTOGRAM_BUCKETS (60 * HISTOGRAM_FINE)

struct histogram {
	uint64_t buckets[HISTOGRAM_BUCKETS];
	uint64_t total;
	uint64_t max;
};

/* Values below 2 * HISTOGRAM_FINE have a bucket each. */
static inline size_t
histogram_bucket(uint64_t v)
{
	int shift;

	if (v < HISTOGRAM_FINE)
		return ((size_t)v);
	shift = 63 - __builtin_clzll(v) - 5; /* 2^5 = HISTOGRAM_FINE */
	return ((size_t)shift * HISTOGRAM_FINE + (size_t)(v >> shift));
}

static inline void
histogram_add(struct histogram *h, uint64_t v)
{
	h->buckets[histogram_bucket(v)]++;
	h->total++;
	if (v > h->max)
		h->max = v;
}

/* The largest value that falls into the bucket. */
uint64_t histogram_upper(size_t bucket);

void histogram_merge(struct histogram *to, const struct histogram *from);

/*
 * A value that at least parts of `whole` of all values do not exceed, at most
 * 1/32 above the smallest such; 0 of an empty one.
 */
uint64_t histogram_quantile(
    const struct histogram *h, uint32_t parts, uint32_t whole);

#endif
