/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skew - the own clock against the average of the peers'.
 *
 * Each host that says its offset against ZooKeeper's clock has one vote, the
 * own one and refused ones included; ZooKeeper's clock (0) is one voice more.
 * The median of these decides who is counted in the average.  So a host that
 * is an hour off takes nobody down, and of two that disagree the server's
 * clock decides.  What it cannot tell: two hosts and a wrong leader.
 */
#include <string.h>

#include "skew.h"

#define ERROR_MAX_US INT64_C(1000000)
/* A jump of the offset below this is noise of the network. */
#define JUMP_MIN_US INT64_C(1000000)

static int64_t
magnitude(int64_t v)
{
	if (v == INT64_MIN)
		return (INT64_MAX);
	return (v < 0 ? -v : v);
}

void
skew_init(struct skew *s, const struct skew_conf *conf)
{
	memset(s, 0, sizeof(*s));
	s->conf = *conf;
	s->phase = SKEW_UNMEASURED;
}

void
skew_resume(struct skew *s, bool refused, int64_t skew_us)
{
	s->refused = refused;
	s->skew_us = skew_us;
	s->phase = SKEW_HELD;
	s->wait_until = MONO_NEVER;
	s->moved_stamp_ms = INT64_MIN;
}

/* The least error of the last few of one epoch is the best measurement. */
static void
choose_own(struct skew *s)
{
	const struct skew_sample *best = NULL;

	for (unsigned i = 0; i < s->nsamples; i++) {
		const struct skew_sample *at = &s->samples[i];

		if (best == NULL || at->error_us <= best->error_us)
			best = at;
	}
	s->own = *best;
	/* It speaks for now: the newest stamp tells how fresh it is. */
	s->own.stamp_ms = s->samples[s->nsamples - 1].stamp_ms;
	s->own.when = s->samples[s->nsamples - 1].when;
}

static void
forget_samples(struct skew *s)
{
	s->nsamples = 0;
}

static void
keep_sample(struct skew *s, const struct skew_sample *sample)
{
	if (s->nsamples == SKEW_SAMPLES) {
		memmove(s->samples, s->samples + 1,
		    (SKEW_SAMPLES - 1) * sizeof(s->samples[0]));
		s->nsamples--;
	}
	s->samples[s->nsamples++] = *sample;
	choose_own(s);
}

bool
skew_take(struct skew *s, const struct skew_sample *sample, int64_t stepped_us)
{
	bool had = s->nsamples > 0, moved = false;
	struct skew_sample last;

	if (sample->error_us < 0 || sample->error_us > ERROR_MAX_US)
		return (false);
	if (had) {
		int64_t jump;

		last = s->own;
		jump = sample->offset_us - last.offset_us - stepped_us;
		moved = sample->epoch != last.epoch ||
			magnitude(jump) >
			    JUMP_MIN_US + sample->error_us + last.error_us;
		if (moved || magnitude(stepped_us) > last.error_us)
			forget_samples(s);
	}
	keep_sample(s, sample);
	if (!moved || s->phase == SKEW_UNMEASURED)
		return (moved);
	/* Other hosts' offsets are from before: the last verdict stands. */
	s->phase = SKEW_HELD;
	s->moved_stamp_ms = sample->stamp_ms;
	s->wait_until = mono_add_ms(sample->when, s->conf.moved_ms);
	return (true);
}

/* ---- votes --------------------------------------------------------------- */

struct votes {
	int64_t offset[SKEW_PEERS_MAX + 2]; /* sorted; own and 0 included */
	unsigned n;
};

static void
add_vote(struct votes *v, int64_t offset)
{
	unsigned at = v->n++;

	while (at > 0 && v->offset[at - 1] > offset) {
		v->offset[at] = v->offset[at - 1];
		at--;
	}
	v->offset[at] = offset;
}

/* Of two middle values the one nearer to ZooKeeper's clock. */
static int64_t
median(const struct votes *v)
{
	int64_t low = v->offset[(v->n - 1) / 2], high = v->offset[v->n / 2];

	return (magnitude(high) < magnitude(low) ? high : low);
}

static bool
is_fresh(const struct skew *s, const struct skew_peer *p)
{
	int64_t age = s->own.stamp_ms - p->stamp_ms;

	if (p->epoch != s->own.epoch || magnitude(age) > s->conf.fresh_ms)
		return (false);
	/* After the reference moved: only what was measured since. */
	return (s->phase != SKEW_HELD || s->moved_stamp_ms == INT64_MIN ||
		p->stamp_ms >= s->moved_stamp_ms);
}

static bool
is_repeated(const struct skew_peer *peers, size_t i)
{
	for (size_t k = 0; k < i; k++) {
		if (memcmp(peers[k].boot_id, peers[i].boot_id, UUID_BYTES) == 0)
			return (true);
	}
	return (false);
}

static bool
counts(const struct skew *s, const struct skew_peer *peers, size_t i,
    const uint8_t own_boot_id[UUID_BYTES])
{
	return (memcmp(peers[i].boot_id, own_boot_id, UUID_BYTES) != 0 &&
		is_fresh(s, &peers[i]) && !is_repeated(peers, i));
}

/* The peer average; the number of fresh peers in *fresh. */
static int64_t
average(const struct skew *s, const struct skew_peer *peers, size_t n,
    const uint8_t own_boot_id[UUID_BYTES], unsigned *fresh, unsigned *counted)
{
	struct votes votes = { .n = 0 };
	int64_t middle, sum = 0;

	*fresh = *counted = 0;
	add_vote(&votes, 0);
	add_vote(&votes, s->own.offset_us);
	for (size_t i = 0; i < n; i++) {
		if (!counts(s, peers, i, own_boot_id))
			continue;
		add_vote(&votes, peers[i].offset_us);
		(*fresh)++;
	}
	middle = median(&votes);
	for (size_t i = 0; i < n; i++) {
		if (!counts(s, peers, i, own_boot_id) ||
		    magnitude(peers[i].offset_us - middle) >
			s->conf.warn_ms * 1000)
			continue;
		sum += peers[i].offset_us;
		(*counted)++;
	}
	return (*counted > 0 ? sum / *counted : middle);
}

/* ---- verdict ------------------------------------------------------------- */

static bool
too_far(const struct skew *s, int64_t skew_us, bool refused_before)
{
	int64_t limit = s->conf.refuse_ms * 1000;

	/* Back below 90 % only, so that it does not flap. */
	if (refused_before)
		limit = limit / 10 * 9;
	return (magnitude(skew_us) - s->own.error_us > limit);
}

static void
settle(struct skew *s, int64_t average_us, unsigned counted)
{
	s->phase = SKEW_JUDGED;
	s->average_us = average_us;
	s->skew_us = s->own.offset_us - average_us;
	s->peers = counted;
	s->refused = too_far(s, s->skew_us, s->refused);
	s->warned = magnitude(s->skew_us) > s->conf.warn_ms * 1000;
}

static void
settle_alone(struct skew *s)
{
	s->phase = SKEW_ALONE;
	s->peers = 0;
	s->average_us = 0;
	s->skew_us = s->own.offset_us; /* against the server's clock: told */
	s->refused = s->warned = false;
}

static void
wait_for_peers(struct skew *s, mono_t now)
{
	if (s->phase == SKEW_UNMEASURED) {
		s->phase = SKEW_WAITING;
		s->wait_until = mono_add_ms(now, s->conf.fresh_ms);
	} else if (s->phase != SKEW_JUDGED && mono_reached(now, s->wait_until))
		settle_alone(s);
	/* JUDGED: the last verdict stands until there is a fresh offset. */
}

bool
skew_judge(struct skew *s, mono_t now, const struct skew_peer *peers, size_t n,
    bool others, const uint8_t own_boot_id[UUID_BYTES])
{
	const struct skew before = *s;
	unsigned fresh, counted;
	int64_t average_us;

	if (s->nsamples == 0)
		return (false);
	if (n > SKEW_PEERS_MAX)
		n = SKEW_PEERS_MAX;
	if (!others) {
		settle_alone(s);
	} else {
		average_us =
		    average(s, peers, n, own_boot_id, &fresh, &counted);
		if (fresh > 0)
			settle(s, average_us, counted);
		else
			wait_for_peers(s, now);
	}
	return (s->phase != before.phase || s->refused != before.refused ||
		s->warned != before.warned);
}

bool
skew_permits(const struct skew *s)
{
	return (s->phase != SKEW_UNMEASURED && s->phase != SKEW_WAITING &&
		!s->refused);
}

bool
skew_good_at(const struct skew *s, int64_t by_us)
{
	return (s->phase != SKEW_UNMEASURED && s->phase != SKEW_WAITING &&
		!too_far(s, s->skew_us + by_us, false));
}
