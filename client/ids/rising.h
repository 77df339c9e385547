/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rising - the part of a UUIDv7, ULID or KSUID that orders those of one tick:
 * random bits that serve as a counter (RFC 9562, section 6.2, method 2).
 * Pure: it is told the time and the random bits.
 *
 * Invariant: of what one struct rising gives, each is above the one before,
 * whatever the clock does.
 */
#ifndef RISING_H
#define RISING_H

#include <stdbool.h>
#include <stdint.h>

/* All-zero is its first state, since it lies in pages that a fork wipes. */
struct rising {
	uint64_t until; /* ticks below have begun; the last is until - 1 */
	uint64_t high, low; /* the counter, of the last one */
};

/* How wide the two halves of a counter are. */
struct rising_shape {
	unsigned high_bits; /* 2 to 64 */
	unsigned low_bits; /* 1 to 64 */
	uint64_t tick_max;
};

static inline uint64_t
rising_mask(unsigned bits)
{
	return (bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1);
}

/*
 * Has this tick not begun yet?  Else, also if the clock stands or went back,
 * the last tick stays and the counter goes on.
 */
static inline bool
rising_is_new(const struct rising *r, uint64_t tick)
{
	return (tick >= r->until);
}

/*
 * Begins a tick with random bits.  The topmost is left 0, as a guard: so the
 * counter has at least half of its span before it.  False, with nothing
 * changed, past the last tick.
 */
static inline bool
rising_begin(struct rising *r, const struct rising_shape *s, uint64_t tick,
    uint64_t high, uint64_t low)
{
	if (tick > s->tick_max)
		return (false);
	r->until = tick + 1;
	r->high = high & rising_mask(s->high_bits - 1);
	r->low = low & rising_mask(s->low_bits);
	return (true);
}

/* Adds step, at least 1; false, with nothing changed, if the span is used up. */
static inline bool
rising_add(struct rising *r, const struct rising_shape *s, uint64_t step)
{
	uint64_t low = r->low + step, high = r->high;
	bool carry = low < step || low > rising_mask(s->low_bits);

	if (carry && high++ == rising_mask(s->high_bits))
		return (false);
	r->low = low & rising_mask(s->low_bits);
	r->high = high;
	return (true);
}

#endif
