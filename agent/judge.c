/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge - joins skew to ZooKeeper.
 *
 * Invariant: at most one reading of the peers is under way; each sample that
 * counts is followed by one.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"
#include "log.h"
#include "sysclock.h"

#define RETRY_MS 500 /* while no verdict can be given */
/*
 * For so many audit_ms a summary bears out: within three another agent audits
 * if the auditor has died, and until that is read nobody needs more.  (Else a
 * large fleet, all at once, would read its peers with each renewal, and keep
 * ZooKeeper too busy for the sweep that ends it.)
 */
#define SUMMARY_PERIODS 4
#define SAID_MAX 32 /* own words that are remembered */
/* A leap that moves by less is the same one: a wall clock left alone drifts. */
#define SAME_LEAP_NS (1000 * NS_PER_MS)

/* What an own write said of the own clock. */
struct said {
	int64_t stamp_ms; /* ZooKeeper's, of that write */
	bool has_offset;
	int64_t offset_us;
};

struct judge {
	const struct conf *conf;
	struct clock *clk;
	uint8_t boot_id[UUID_BYTES];
	void (*changed)(void *arg);
	void *arg;
	struct skew skew;
	struct peers *peers;
	bool due; /* a sample asks for a reading */
	mono_t retry_at;
	unsigned failures; /* readings in a row that gave no verdict */
	struct skew_others read; /* by the last one; peers 0: not to go by */
	mono_t now; /* of the reply at hand */
	int64_t base_seen_ns; /* own time's base at the last sample */
	bool leapt; /* a leap waits for the next reading of the peers */
	bool stands; /* the wall clock was left ahead ... */
	bool stands_refused; /* ... and neither time was good ... */
	int64_t stood_ns; /* ... when it was so far ahead */
	bool alone_said;
	struct said said[SAID_MAX]; /* newest last */
	size_t nsaid;
};

struct judge *
judge_open(const struct conf *conf, struct clock *clk,
    const uint8_t boot_id[UUID_BYTES], void (*changed)(void *arg), void *arg)
{
	struct judge *j = calloc(1, sizeof(*j));
	const struct skew_conf sc = {
		.warn_ms = conf->skew_warn_ms,
		.refuse_ms = conf->skew_refuse_ms,
		.fresh_ms = 3 * conf->renew_ms,
		.moved_ms = 3 * conf->audit_ms,
	};

	if (j == NULL)
		return (NULL);
	j->conf = conf;
	j->clk = clk;
	memcpy(j->boot_id, boot_id, UUID_BYTES);
	j->changed = changed;
	j->arg = arg;
	j->base_seen_ns = clk->base_ns;
	skew_init(&j->skew, &sc);
	return (j);
}

void
judge_reload(struct judge *j)
{
	j->skew.conf.warn_ms = j->conf->skew_warn_ms;
	j->skew.conf.refuse_ms = j->conf->skew_refuse_ms;
}

void
judge_close(struct judge *j)
{
	if (j == NULL)
		return;
	peers_cancel(j->peers);
	free(j);
}

void
judge_resume(struct judge *j, bool refused, int64_t skew_us)
{
	skew_resume(&j->skew, refused, skew_us);
}

/* ---- samples --------------------------------------------------------------- */

static void
publish(const struct judge *j, struct agent_status *st)
{
	st->has_offset = true;
	st->offset_us = j->skew.own.offset_us;
	st->error_us = j->skew.own.error_us;
	st->stamp_ms = j->skew.own.stamp_ms;
	st->epoch = j->skew.own.epoch;
	st->skew_us = j->skew.skew_us;
}

static void
remember_said(
    struct judge *j, const struct zk_event *ev, const struct agent_status *st)
{
	if (j->nsaid == SAID_MAX)
		memmove(j->said, j->said + 1, --j->nsaid * sizeof(j->said[0]));
	j->said[j->nsaid++] =
	    (struct said){ ev->stat.mtime_ms, st->has_offset, st->offset_us };
}

void
judge_sample(
    struct judge *j, const struct zk_event *ev, struct agent_status *st)
{
	int64_t trip_ns = ev->received_boot_ns - ev->sent_boot_ns;
	int64_t middle_ns = ev->sent_boot_ns + trip_ns / 2;
	int64_t stepped_us = (j->clk->base_ns - j->base_seen_ns) / 1000;
	/* The stamp is floored to its millisecond: its middle, give or take
	 * half of one. */
	struct skew_sample sample = {
		.offset_us = (middle_ns + j->clk->base_ns) / 1000 -
			     (ev->stat.mtime_ms * 1000 + 500),
		.error_us = trip_ns / 2000 + 500,
		.stamp_ms = ev->stat.mtime_ms,
		.epoch = ev->stat.mzxid >> 32,
		.when = { middle_ns },
	};

	if (ev->received_boot_ns == 0 || trip_ns < 0)
		return;
	remember_said(j, ev, st);
	j->base_seen_ns = j->clk->base_ns;
	if (skew_take(&j->skew, &sample, stepped_us))
		log_info("clock: ZooKeeper's clock moved (offset now %+.3f s): "
			 "the last verdict stands until the peers have "
			 "measured again",
		    (double)sample.offset_us / 1e6);
	j->due = true;
	if (j->skew.has_own)
		publish(j, st);
}

/* ---- verdicts -------------------------------------------------------------- */

static void
say_verdict(struct judge *j, const struct skew *before)
{
	char words[SKEW_WORDS_MAX];

	(void)skew_words(&j->skew, words, sizeof(words));
	if (j->skew.refused != before->refused) {
		if (j->skew.refused)
			log_warnx("alert skew_refuse: the clock is %s", words);
		else
			log_info("clock: serves again: %s", words);
	} else if (j->skew.warned != before->warned) {
		if (j->skew.warned)
			log_warnx("alert skew_warn: the clock is %s", words);
		else
			log_info("clock: within the limits again: %s", words);
	}
	if (j->skew.phase == SKEW_ALONE && !j->alone_said) {
		j->alone_said = true;
		log_info("clock: no peers to compare with; %+.3f s against "
			 "ZooKeeper's clock",
		    (double)j->skew.own.offset_us / 1e6);
	} else if (j->skew.phase == SKEW_JUDGED)
		j->alone_said = false;
}

static void
leave_again(struct judge *j)
{
	if (j->stands_refused)
		clock_refuse_leap(j->clk);
	else
		clock_keep(j->clk);
}

/* Does not follow, for now: the old time goes on, or is refused as well. */
static void
leave(struct judge *j, bool refused)
{
	j->stands = true;
	j->stands_refused = refused;
	j->stood_ns = j->clk->diff_ns;
	leave_again(j);
}

/* Also revises an earlier decision, as long as the clock is that far ahead. */
static void
decide_leap(struct judge *j, const struct instant *now)
{
	enum clock_verdict before = j->clk->verdict;
	int64_t ahead_ns = j->clk->diff_ns;
	bool asked = j->leapt;
	const char *what;

	j->leapt = false;
	if (before == CLOCK_GOOD && !j->clk->judged)
		return; /* it has come back by itself */

	if (skew_good_at(&j->skew, ahead_ns / 1000)) {
		clock_follow(j->clk, now);
		j->stands = false;
		what = "followed: it agrees with the peers";
	} else if (skew_good_at(&j->skew, 0)) {
		leave(j, false);
		what = "not followed: it leads away from the peers";
	} else {
		leave(j, true);
		what = "refused: neither time agrees with the peers";
	}
	if (asked || j->clk->verdict != before || !j->clk->judged)
		log_warnx("alert clock_step: the clock went ahead by %" PRId64
			  " ms, %s",
		    ahead_ns / NS_PER_MS, what);
}

/*
 * No verdict yet, or ZooKeeper is too busy, and the whole fleet may be about to
 * ask again: later each time, from half of it to all of it.
 */
static int64_t
back_off_ms(struct judge *j)
{
	int64_t ms = (int64_t)RETRY_MS << (j->failures < 10 ? j->failures : 10);
	struct entropy rnd;

	j->failures++;
	sysclock_entropy(&rnd);
	ms = min64(ms, max64(j->conf->audit_ms, RETRY_MS));
	return (ms / 2 + (int64_t)(rnd.word[0] % (uint64_t)(ms / 2 + 1)));
}

/* What the peers said, to go by while there is no summary. */
static void
remember_read(struct judge *j)
{
	const struct skew *s = &j->skew;

	j->read = (struct skew_others){
		.average_us = s->average_us,
		.peers = s->phase == SKEW_JUDGED ? s->peers : 0,
		.epoch = s->own.epoch,
		.swept_ms = s->own.stamp_ms,
		.oldest_stamp_ms = s->own.stamp_ms,
	};
}

static void
on_peers(void *arg, const struct peers_result *r)
{
	struct judge *j = arg;
	const struct skew before = j->skew;
	struct instant now;

	j->peers = NULL; /* frees itself */
	if (!r->good) {
		j->due = true;
		j->retry_at = mono_add_ms(j->now, back_off_ms(j));
		return;
	}
	(void)skew_judge(
	    &j->skew, j->now, r->peers, r->n, r->others, j->boot_id);
	remember_read(j);
	say_verdict(j, &before);
	if (judge_waits(j)) {
		j->due = true;
		j->retry_at = mono_add_ms(
		    j->now, min64(back_off_ms(j), j->conf->renew_ms));
		j->changed(j->arg);
		return;
	}
	j->failures = 0;
	if (j->leapt || j->clk->judged) {
		sysclock_read(&now);
		decide_leap(j, &now);
	}
	j->changed(j->arg);
}

/* ---- peers ----------------------------------------------------------------- */

/* What the own mark said when a sweep began: that is in its sum. */
static int64_t
said_at(const struct judge *j, int64_t stamp_ms)
{
	int64_t offset_us = INT64_MAX; /* nothing: nobody's clock is there */

	for (size_t i = 0; i < j->nsaid; i++)
		if (j->said[i].stamp_ms <= stamp_ms && j->said[i].has_offset)
			offset_us = j->said[i].offset_us;
	return (offset_us);
}

/* What the auditor found, if that is no older than fresh_ms. */
static bool
take_summary(const struct judge *j, const struct audit *a, int64_t fresh_ms,
    struct skew_others *out)
{
	uint64_t counted;

	if (a == NULL ||
	    sub_sat(j->skew.own.stamp_ms, a->swept_ms) > fresh_ms ||
	    !audit_average(a, said_at(j, a->swept_ms), j->conf->skew_warn_ms,
		&out->average_us, &counted))
		return (false);
	out->peers = (unsigned)counted;
	out->epoch = a->epoch;
	out->swept_ms = a->swept_ms;
	out->oldest_stamp_ms = a->oldest_stamp_ms;
	return (true);
}

/*
 * Is all well by the summary, or where there is none by the own last reading,
 * which does as long as a summary would?  Whatever is not is judged by what
 * the peers say themselves, now.
 */
static bool
is_borne_out(struct judge *j, mono_t now, const struct audit *a)
{
	int64_t fresh_ms = SUMMARY_PERIODS * j->conf->audit_ms;
	struct skew_others others;

	if (j->leapt || j->clk->judged)
		return (false);
	if (take_summary(j, a, fresh_ms, &others))
		return (skew_confirm(&j->skew, now, &others, fresh_ms));
	return (skew_confirm(&j->skew, now, &j->read, j->conf->audit_ms));
}

void
judge_run(struct judge *j, mono_t now, const struct judge_where *where)
{
	struct entropy rnd;

	if (!j->due || j->peers != NULL || !mono_reached(now, j->retry_at))
		return;
	if (is_borne_out(j, now, where->summary)) {
		j->due = false;
		return;
	}
	sysclock_entropy(&rnd);
	j->peers = peers_start(where->zk, where->workers, where->marks,
	    where->k, where->own_claim, j->boot_id, rnd.word[0], where->foreign,
	    on_peers, j);
	j->due = j->peers == NULL;
	if (j->peers == NULL)
		j->retry_at = mono_add_ms(now, RETRY_MS);
}

mono_t
judge_wake(const struct judge *j)
{
	return (j->due && j->peers == NULL ? j->retry_at : MONO_NEVER);
}

bool
judge_reply(struct judge *j, const struct zk_event *ev, mono_t now)
{
	j->now = now;
	return (j->peers != NULL && peers_reply(j->peers, ev));
}

void
judge_disconnected(struct judge *j)
{
	peers_cancel(j->peers);
	j->peers = NULL;
	j->retry_at = (mono_t){ 0 };
}

/*
 * So slow a drift needs no line and no measurement each time.  Compared with
 * where it was left, not with each step of the way.
 */
static bool
is_same_leap(const struct judge *j)
{
	int64_t moved_ns = sub_sat(j->clk->diff_ns, j->stood_ns);

	return (
	    j->stands && moved_ns < SAME_LEAP_NS && moved_ns > -SAME_LEAP_NS);
}

bool
judge_leap(struct judge *j, const struct instant *now, bool connected)
{
	if (j->clk->verdict != CLOCK_LEAP) {
		if (j->stands && !j->clk->judged) {
			j->stands = false;
			log_info("clock: it leads away no longer");
		}
		return (false);
	}
	if (is_same_leap(j)) {
		leave_again(j); /* revised with the next reading */
		return (false);
	}
	if (!connected) {
		/* Nobody to ask: the old base is good inside the window. */
		leave(j, false);
		log_warnx("alert clock_step: the clock went ahead by %" PRId64
			  " ms while ZooKeeper is away: not followed",
		    j->clk->diff_ns / NS_PER_MS);
		j->leapt = true; /* decided when it is back */
		return (false);
	}
	if (j->skew.phase == SKEW_ALONE) {
		log_warnx("alert clock_step: the clock went ahead by %" PRId64
			  " ms, followed: there are no peers",
		    j->clk->diff_ns / NS_PER_MS);
		clock_follow(j->clk, now);
		return (false);
	}
	if (j->leapt)
		return (false);
	j->leapt = true;
	j->retry_at = (mono_t){ 0 }; /* at once */
	return (true);
}

bool
judge_repair(struct judge *j, const struct instant *now)
{
	const struct clock_conf conf = j->clk->conf;
	int64_t back_ns = j->clk->diff_ns;

	if (j->clk->verdict != CLOCK_BACK || !j->skew.refused ||
	    !skew_good_at(&j->skew, back_ns / 1000))
		return (false);
	clock_start(j->clk, &conf, now);
	log_info("clock: set back by %" PRId64
		 " ms to where its peers are: goes on from there",
	    -back_ns / NS_PER_MS);
	return (true);
}

/* ---- questions ------------------------------------------------------------- */

bool
judge_refuses(const struct judge *j)
{
	return (j->skew.refused);
}

bool
judge_unsettled(const struct judge *j)
{
	return (j->leapt || j->stands);
}

bool
judge_waits(const struct judge *j)
{
	return (!skew_permits(&j->skew) && !j->skew.refused);
}

const struct skew *
judge_skew(const struct judge *j)
{
	return (&j->skew);
}

void
judge_status(const struct judge *j, struct status_doc *out)
{
	if (!j->skew.has_own)
		return;
	out->has_offset = true;
	out->offset_ms = j->skew.own.offset_us / 1000;
	out->error_ms = (j->skew.own.error_us + 999) / 1000;
	out->has_skew =
	    j->skew.phase == SKEW_JUDGED || j->skew.phase == SKEW_HELD;
	out->skew_ms = j->skew.skew_us / 1000;
	out->peers = j->skew.peers;
}
