/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quota - how many IDs a second each uid may take.
 *
 * Why it holds: of any bucket, taken <= rate + rate * t - level, since level
 * grows by rate * t at most and falls by what is taken.  A uid that moves to
 * a bucket of its own takes the shared one's level along, and one that loses
 * a bucket loses a full one: neither move adds to what it may take.
 */
#include "quota.h"

#include <string.h>

#define UNIT NS_PER_S /* parts of an ID: rate * nanoseconds has no rest */
#define BATCHES_A_SECOND 20 /* of a client that wants all it may have */

static int64_t
full_level(const struct quota *q)
{
	return (q->rate * UNIT);
}

/* What has come in since; at most a second's, so no product overflows. */
static void
fill(const struct quota *q, struct quota_bucket *b, mono_t now)
{
	int64_t ns = sub_sat(now.ns, b->seen.ns);

	if (ns <= 0)
		return;
	b->seen = now;
	if (ns > NS_PER_S)
		ns = NS_PER_S;
	b->level = min64(b->level + ns * q->rate, full_level(q));
}

/* The uid's own bucket, or one to be had, or NULL. */
static struct quota_bucket *
find_own(struct quota *q, uint32_t uid, mono_t now)
{
	struct quota_bucket *spare = NULL;

	for (size_t i = 0; i < QUOTA_UIDS; i++) {
		struct quota_bucket *b = &q->bucket[i];

		if (b->used && b->uid == uid)
			return (b);
		if (!b->used && spare == NULL)
			spare = b;
	}
	for (size_t i = 0; i < QUOTA_UIDS && spare == NULL; i++) {
		fill(q, &q->bucket[i], now);
		if (q->bucket[i].level == full_level(q))
			spare = &q->bucket[i];
	}
	if (spare == NULL)
		return (NULL);
	fill(q, &q->rest, now);
	*spare = q->rest;
	spare->uid = uid;
	spare->used = true;
	return (spare);
}

static struct quota_bucket *
find(struct quota *q, uint32_t uid, mono_t now)
{
	struct quota_bucket *b = find_own(q, uid, now);

	if (b == NULL)
		b = &q->rest;
	fill(q, b, now);
	return (b);
}

void
quota_init(struct quota *q, int64_t rate, mono_t now)
{
	memset(q, 0, sizeof(*q));
	q->rate = min64(max64(rate, 0), QUOTA_RATE_MAX);
	q->rest.level = full_level(q);
	q->rest.seen = now;
}

void
quota_set_rate(struct quota *q, int64_t rate, mono_t now)
{
	if (q->rate == 0) { /* nothing was counted */
		quota_init(q, rate, now);
		return;
	}
	for (size_t i = 0; i < QUOTA_UIDS; i++)
		fill(q, &q->bucket[i], now);
	fill(q, &q->rest, now);
	q->rate = min64(max64(rate, 0), QUOTA_RATE_MAX);
	for (size_t i = 0; i < QUOTA_UIDS; i++)
		q->bucket[i].level = min64(q->bucket[i].level, full_level(q));
	q->rest.level = min64(q->rest.level, full_level(q));
}

uint32_t
quota_left(struct quota *q, uint32_t uid, uint32_t count, mono_t now)
{
	if (q->rate == 0)
		return (count);
	return ((uint32_t)min64(find(q, uid, now)->level / UNIT, count));
}

void
quota_take(struct quota *q, uint32_t uid, uint32_t count, mono_t now)
{
	struct quota_bucket *b;

	if (q->rate == 0)
		return;
	b = find(q, uid, now);
	b->level = max64(b->level - (int64_t)count * UNIT, 0);
}

int64_t
quota_retry_ms(struct quota *q, uint32_t uid, uint32_t count, mono_t now)
{
	int64_t want, lacking, ns;

	if (q->rate == 0)
		return (0);
	want = max64(min64(count, q->rate / BATCHES_A_SECOND), 1);
	lacking = want * UNIT - find(q, uid, now)->level;
	if (lacking <= 0)
		return (1);
	ns = lacking / q->rate + (lacking % q->rate > 0 ? 1 : 0);
	return (ns_to_ms_up(ns));
}
