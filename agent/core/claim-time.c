/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim-time - time in ticks, and when to try again.
 *
 * Invariant: no tick lies past the layout's last, and no wait past its limit.
 */
#include "claim-private.h"
#include "layout.h"

int64_t
claim_tick(const struct claim *c, int64_t unix_ms)
{
	int64_t tick = layout_tick_of(&c->k.layout, unix_ms);
	int64_t last = (int64_t)layout_tick_max(&c->k.layout);

	if (tick < NO_TICK) /* before the epoch: nothing can have been issued */
		return (NO_TICK);
	return (tick < last ? tick : last);
}

/* splitmix64: spreads retries and choices, names nothing. */
uint64_t
claim_next_jitter(struct claim *c)
{
	uint64_t z = (c->jitter += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (z ^ (z >> 31));
}

/* From half of it to all of it: base doubled with each try, at most limit. */
mono_t
claim_back_off(struct claim *c, mono_t now, unsigned tries, int64_t base_ms,
    int64_t limit_ms)
{
	int64_t ms = base_ms << (tries < 16 ? tries : 16);

	if (ms > limit_ms)
		ms = limit_ms;
	ms = ms / 2 + (int64_t)(claim_next_jitter(c) % (uint64_t)(ms / 2 + 1));
	return (mono_add_ms(now, ms));
}

void
claim_retry_way(struct claim *c, struct claim_now now)
{
	c->way.wait = claim_back_off(c, now.boot, c->way.tries++, 100, 5000);
}
