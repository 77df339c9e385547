/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skew - the own clock against the average of the peers'.
 *
 * Each host that says its offset against ZooKeeper's clock has one vote, the
 * own one and refused ones included; ZooKeeper's clock (0) is one voice more.
 * The median of these decides who is counted in the average.  So a host that
 * is an hour off takes nobody down, and of two that disagree the server's
 * clock decides.  What it cannot tell: two hosts and a wrong leader.
 *
 * Offsets come from others and may be anything: sums and differences saturate.
 */
#include <string.h>

#include "skew.h"

#define ERROR_MAX_US INT64_C(1000000)
/* A smaller jump of the offset is the network's, whatever warn_ms says. */
#define JUMP_MIN_US INT64_C(50000)
/* What a clock is slewed by is carried along; a step ends a measurement. */
#define STEP_MIN_US INT64_C(5000)
/*
 * A sample's error grows by a thousandth of its age, twice what NTP may slew:
 * so one from before a long outage is not better than a fresh one.
 */
#define DRIFT_DIVISOR 1000

static int64_t
magnitude(int64_t v)
{
	if (v == INT64_MIN)
		return (INT64_MAX);
	return (v < 0 ? -v : v);
}

static int64_t
ms_to_us(int64_t ms)
{
	return (ms_to_ns(ms) / 1000);
}

void
skew_init(struct skew *s, const struct skew_conf *conf)
{
	memset(s, 0, sizeof(*s));
	s->conf = *conf;
	s->phase = SKEW_UNMEASURED;
	s->wait_until = MONO_NEVER;
	s->moved_stamp_ms = INT64_MIN;
}

static bool
is_error(int64_t error_us)
{
	return (error_us >= 0 && error_us <= ERROR_MAX_US);
}

/* Refuse above the limit; once refused, serve again below 90 % of it. */
static bool
is_too_far(const struct skew *s, int64_t skew_us, bool refused_before)
{
	int64_t limit = ms_to_us(s->conf.refuse_ms);
	int64_t certain = magnitude(skew_us) - s->own.error_us;

	if (refused_before)
		return (certain >= limit / 10 * 9);
	return (certain > limit);
}

void
skew_resume(struct skew *s, bool refused, int64_t skew_us)
{
	s->refused = refused;
	s->skew_us = skew_us;
	s->warned = magnitude(skew_us) > ms_to_us(s->conf.warn_ms);
	/* Too far and yet not refused: nobody was there to compare with. */
	s->alone = !refused && is_too_far(s, skew_us, false);
	s->phase = SKEW_HELD;
	/* The first fresh offset ends it: nothing moved. */
	s->held_until = (mono_t){ INT64_MIN };
}

/* ---- own samples --------------------------------------------------------- */

static int64_t
aged_error(const struct skew_sample *sample, mono_t now)
{
	int64_t age_us = sub_sat(now.ns, sample->when.ns) / 1000;

	if (age_us < 0)
		age_us = 0;
	return (add_sat(sample->error_us, age_us / DRIFT_DIVISOR));
}

/*
 * The least error of the last few is the best measurement.  The newest sample
 * agrees with it (else the reference moved), so its stamp says as of when.
 */
static void
choose_own(struct skew *s)
{
	const struct skew_sample *newest = &s->samples[s->nsamples - 1];

	s->own = *newest;
	for (unsigned i = 0; i < s->nsamples; i++) {
		int64_t error_us = aged_error(&s->samples[i], newest->when);

		if (error_us >= s->own.error_us)
			continue;
		s->own.offset_us = s->samples[i].offset_us;
		s->own.error_us = error_us;
	}
	s->has_own = true;
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

/*
 * The own clock stepped: what was measured before holds after it, by that
 * much more.  Where in a sample a step fell is not known, so old samples do
 * not compete with new ones.
 */
static void
carry_step(struct skew *s, int64_t stepped_us)
{
	for (unsigned i = 0; i < s->nsamples; i++)
		s->samples[i].offset_us =
		    add_sat(s->samples[i].offset_us, stepped_us);
	s->own.offset_us = add_sat(s->own.offset_us, stepped_us);
	s->skew_us = add_sat(s->skew_us, stepped_us);
	if (magnitude(stepped_us) > STEP_MIN_US)
		s->nsamples = 0;
}

/*
 * A jump that peers would be warned of must be seen; half of that, so that it
 * is seen by all of them.
 */
static int64_t
jump_limit(const struct skew *s)
{
	int64_t ms = s->conf.warn_ms < s->conf.refuse_ms ? s->conf.warn_ms
							 : s->conf.refuse_ms;
	int64_t us = ms_to_us(ms) / 2;

	return (us > JUMP_MIN_US ? us : JUMP_MIN_US);
}

/* The own steps are taken out already: what is left is the reference's. */
static bool
has_moved(const struct skew *s, const struct skew_sample *sample)
{
	int64_t jump, errors;

	if (sample->epoch != s->own.epoch)
		return (true);
	jump = sub_sat(sample->offset_us, s->own.offset_us);
	errors = add_sat(sample->error_us, aged_error(&s->own, sample->when));
	return (magnitude(jump) > add_sat(jump_limit(s), errors));
}

/*
 * From which stamp on a peer's offset is one against the reference as it now
 * is.  If its clock went back, stamps from before lie ahead of the new ones:
 * up to what it would read now.  (If it went back by more than peers' stamps
 * may be apart, those are not fresh, and nobody need wait for so long.)
 */
static int64_t
later_than(const struct skew *s, const struct skew_sample *sample)
{
	int64_t errors_us = sample->error_us + s->own.error_us;
	int64_t would_be = add_sat(s->own.stamp_ms,
	    mono_diff_ms(sample->when, s->own.when) + errors_us / 1000 + 1);
	int64_t back = sub_sat(would_be, sample->stamp_ms);

	if (sample->epoch == s->own.epoch && back > 0 &&
	    back / 2 <= s->conf.fresh_ms)
		return (would_be);
	return (sample->stamp_ms);
}

/* Other hosts' offsets are from before: the last verdict stands. */
static void
hold(struct skew *s, const struct skew_sample *sample)
{
	s->moved_stamp_ms = later_than(s, sample);
	s->nsamples = 0;
	/* Without a verdict there is none to stand: the wait goes on. */
	if (s->phase == SKEW_UNMEASURED || s->phase == SKEW_WAITING)
		return;
	s->phase = SKEW_HELD;
	s->held_until = mono_add_ms(sample->when, s->conf.moved_ms);
}

bool
skew_take(struct skew *s, const struct skew_sample *sample, int64_t stepped_us)
{
	bool moved;

	carry_step(s, stepped_us);
	if (!is_error(sample->error_us))
		return (false);
	moved = s->has_own && has_moved(s, sample);
	if (moved)
		hold(s, sample);
	keep_sample(s, sample);
	return (moved);
}

/* ---- votes --------------------------------------------------------------- */

struct vote {
	int64_t offset_us;
	bool peer; /* not the own one, nor ZooKeeper's */
};

struct votes {
	struct vote vote[SKEW_PEERS_MAX + 2]; /* by offset */
	unsigned n;
	unsigned fresh; /* peers among them */
	bool complete; /* no peer is left to be heard of */
};

static void
add_vote(struct votes *v, int64_t offset_us, bool peer)
{
	unsigned at = v->n++;

	while (at > 0 && v->vote[at - 1].offset_us > offset_us) {
		v->vote[at] = v->vote[at - 1];
		at--;
	}
	v->vote[at] = (struct vote){ offset_us, peer };
}

static bool
is_fresh(const struct skew *s, const struct skew_peer *p)
{
	int64_t apart_ms = sub_sat(s->own.stamp_ms, p->stamp_ms);

	return (is_error(p->error_us) && p->epoch == s->own.epoch &&
		magnitude(apart_ms) <= s->conf.fresh_ms &&
		p->stamp_ms > s->moved_stamp_ms);
}

/* An order in which no two different ones are alike. */
static bool
is_better(
    const struct skew *s, const struct skew_peer *a, const struct skew_peer *b)
{
	bool fresh_a = is_fresh(s, a), fresh_b = is_fresh(s, b);

	if (fresh_a != fresh_b)
		return (fresh_a);
	if (a->stamp_ms != b->stamp_ms)
		return (a->stamp_ms > b->stamp_ms);
	if (a->error_us != b->error_us)
		return (a->error_us < b->error_us);
	return (a->offset_us < b->offset_us);
}

/* One vote a host: of several claims the one heard of last speaks. */
static bool
is_hosts_voice(
    const struct skew *s, const struct skew_peer *peers, size_t n, size_t i)
{
	for (size_t k = 0; k < n; k++) {
		if (k == i ||
		    memcmp(peers[k].boot_id, peers[i].boot_id, UUID_BYTES) != 0)
			continue;
		if (is_better(s, &peers[k], &peers[i]) ||
		    (k < i && !is_better(s, &peers[i], &peers[k])))
			return (false);
	}
	return (true);
}

static void
gather(const struct skew *s, const struct skew_peer *peers, size_t n,
    const uint8_t own_boot_id[UUID_BYTES], struct votes *v)
{
	v->n = v->fresh = 0;
	v->complete = true;
	add_vote(v, 0, false);
	add_vote(v, s->own.offset_us, false);
	for (size_t i = 0; i < n; i++) {
		if (memcmp(peers[i].boot_id, own_boot_id, UUID_BYTES) == 0 ||
		    !is_hosts_voice(s, peers, n, i))
			continue;
		if (!is_fresh(s, &peers[i])) {
			v->complete = false;
			continue;
		}
		add_vote(v, peers[i].offset_us, true);
		v->fresh++;
	}
}

/* Of two middle values the one nearer to ZooKeeper's clock. */
static int64_t
median(const struct votes *v)
{
	int64_t low = v->vote[(v->n - 1) / 2].offset_us;
	int64_t high = v->vote[v->n / 2].offset_us;

	return (magnitude(high) < magnitude(low) ? high : low);
}

/* The mean of the peers near the median, which cannot overflow from there. */
static int64_t
average(const struct skew *s, const struct votes *v, unsigned *counted)
{
	int64_t middle = median(v), sum = 0;

	*counted = 0;
	for (unsigned i = 0; i < v->n; i++) {
		int64_t apart = sub_sat(v->vote[i].offset_us, middle);

		if (!v->vote[i].peer ||
		    magnitude(apart) > ms_to_us(s->conf.warn_ms))
			continue;
		sum = add_sat(sum, apart);
		(*counted)++;
	}
	return (*counted > 0 ? add_sat(middle, sum / *counted) : middle);
}

/* ---- verdict ------------------------------------------------------------- */

static void
weigh(struct skew *s)
{
	s->refused = is_too_far(s, s->skew_us, s->refused);
	s->warned = magnitude(s->skew_us) > ms_to_us(s->conf.warn_ms);
}

static void
settle(struct skew *s, int64_t average_us, unsigned counted)
{
	s->phase = SKEW_JUDGED;
	s->alone = false;
	s->average_us = average_us;
	s->peers = counted;
	s->skew_us = sub_sat(s->own.offset_us, average_us);
	weigh(s);
}

static void
settle_alone(struct skew *s)
{
	s->phase = SKEW_ALONE;
	s->alone = true;
	s->average_us = 0;
	s->peers = 0;
	s->skew_us = s->own.offset_us; /* against the server's clock: told */
	s->refused = s->warned = false;
}

/*
 * Others live, and no offset of theirs was fresh for so long: serve.  But a
 * host that its peers have refused is not believed again for their silence:
 * it is judged by the one voice left, ZooKeeper's, so that it comes back when
 * it is repaired (and only on a measurement of now).
 */
static void
settle_unheard(struct skew *s, mono_t now)
{
	if (!s->refused)
		settle_alone(s);
	else if (!mono_reached(now, mono_add_ms(s->own.when, s->conf.fresh_ms)))
		settle(s, 0, 0);
}

/* The last verdict stands, but for steps of the own clock, which are known. */
static void
stand(struct skew *s)
{
	if (s->phase == SKEW_UNMEASURED)
		s->phase = SKEW_WAITING;
	else if (s->phase != SKEW_WAITING && !s->alone)
		weigh(s);
}

/*
 * After a move the last verdict stands until all peers have been heard of
 * since: of a few of them the wrong one may come first.  (Judged by those few
 * when the time is up, or when no move is what is waited for.)
 */
static bool
is_held(const struct skew *s, mono_t now, const struct votes *v)
{
	return (s->phase == SKEW_HELD && !mono_reached(now, s->held_until) &&
		(v->fresh == 0 || !v->complete));
}

/*
 * Peers that have measured a moved reference twice before the own clock has
 * once would be compared with an offset from before: a verdict needs an own
 * sample of the last renewal or the one before.
 */
static bool
is_current(const struct skew *s, mono_t now)
{
	return (
	    !mono_reached(now, mono_add_ms(s->own.when, s->conf.fresh_ms / 2)));
}

static void
judge_among(struct skew *s, mono_t now, const struct votes *v)
{
	int64_t average_us;
	unsigned counted;

	if (v->fresh > 0)
		s->wait_until = MONO_NEVER;
	else if (s->wait_until.ns == MONO_NEVER.ns)
		s->wait_until = mono_add_ms(now, s->conf.fresh_ms);
	if (is_held(s, now, v))
		stand(s);
	else if (v->fresh > 0) {
		average_us = average(s, v, &counted);
		settle(s, average_us, counted);
	} else if (mono_reached(now, s->wait_until))
		settle_unheard(s, now);
	else
		stand(s);
}

bool
skew_judge(struct skew *s, mono_t now, const struct skew_peer *peers, size_t n,
    bool others, const uint8_t own_boot_id[UUID_BYTES])
{
	const struct skew before = *s;
	struct votes v;

	if (!s->has_own)
		return (false);
	if (!others) {
		s->wait_until = MONO_NEVER;
		settle_alone(s);
	} else {
		if (n > SKEW_PEERS_MAX)
			n = SKEW_PEERS_MAX;
		gather(s, peers, n, own_boot_id, &v);
		if (!is_current(s, now))
			v.fresh = 0;
		judge_among(s, now, &v);
	}
	return (s->phase != before.phase || s->refused != before.refused ||
		s->warned != before.warned);
}

bool
skew_confirm(struct skew *s, mono_t now, const struct skew_others *others,
    int64_t fresh_ms)
{
	int64_t apart_ms = sub_sat(s->own.stamp_ms, others->swept_ms);
	int64_t skew_us = sub_sat(s->own.offset_us, others->average_us);

	if (s->phase != SKEW_JUDGED || s->refused || s->warned ||
	    others->peers == 0 || !is_current(s, now) ||
	    others->epoch != s->own.epoch || magnitude(apart_ms) > fresh_ms ||
	    others->oldest_stamp_ms <= s->moved_stamp_ms ||
	    magnitude(skew_us) > ms_to_us(s->conf.warn_ms) ||
	    is_too_far(s, skew_us, false))
		return (false);
	settle(s, others->average_us, others->peers);
	return (true);
}

static bool
has_verdict(const struct skew *s)
{
	return (s->phase != SKEW_UNMEASURED && s->phase != SKEW_WAITING);
}

bool
skew_permits(const struct skew *s)
{
	return (has_verdict(s) && !s->refused);
}

bool
skew_good_at(const struct skew *s, int64_t by_us)
{
	if (!has_verdict(s))
		return (false);
	return (s->alone || !is_too_far(s, add_sat(s->skew_us, by_us), false));
}
