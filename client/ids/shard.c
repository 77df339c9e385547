/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard - which of n shards an ID belongs to.
 *
 * Invariant: the same ID and n give the same shard for ever, in every version
 * and on every machine: data lies where this function once said.
 */
#include "firn.h"

#define SHARDS_MAX INT32_MAX

/*
 * The finalizer of SplitMix64 (Steele, Lea, Flood, "Fast splittable
 * pseudorandom number generators", 2014; its constants are Stafford's variant
 * 13 of MurmurHash3's finalizer): one to one on 64 bits, and each bit of the
 * ID changes each bit of the result about every second time.
 */
static uint64_t
mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (x ^ x >> 31);
}

/*
 * x * n / 2^64, in two steps that stay inside 64 bits (multiply-shift instead
 * of a remainder: Lemire, "Fast random integer generation in an interval",
 * 2019).
 */
static uint64_t
scale(uint64_t x, uint64_t n)
{
	return (((x >> 32) * n + ((x & UINT32_MAX) * n >> 32)) >> 32);
}

int
firn_shard(uint64_t id, uint32_t n)
{
	if (n < 1 || n > SHARDS_MAX)
		return (FIRN_EINVAL);
	return ((int)scale(mix(id), n));
}
