/* SPDX-License-Identifier: Apache-2.0 */
/*
 * skew - how far the own clock is from its peers', and whether that is too
 * far to serve (Snowflake's check of 2010).
 *
 * Invariant: the verdict changes only in skew_judge(); what is published and
 * compared are offsets against ZooKeeper's clock of one leader's epoch.
 */
#ifndef SKEW_H
#define SKEW_H

#include "records.h"
#include "types.h"

#define SKEW_SAMPLES 5
#define SKEW_PEERS_MAX 1024 /* more are not looked at */
#define SKEW_WORDS_MAX 192

struct skew_conf {
	int64_t warn_ms; /* skew_warn_ms: peers within it of the median count */
	int64_t refuse_ms; /* skew_refuse_ms */
	int64_t fresh_ms; /* 3 x renew_ms */
	int64_t moved_ms; /* 3 x audit_ms: longest a moved reference holds */
};

/* One write of the mark or the claim, as it came back. */
struct skew_sample {
	int64_t offset_us; /* own time at the middle, minus the stamp */
	int64_t error_us; /* half the round trip */
	int64_t stamp_ms; /* ZooKeeper's */
	int64_t epoch; /* leader's; 0 on a standalone server */
	mono_t when; /* middle of send and receive */
};

/* What a live claim's mark (or a claim without a mark) says of its clock. */
struct skew_peer {
	uint8_t boot_id[UUID_BYTES]; /* one vote a host */
	int64_t offset_us, error_us;
	int64_t stamp_ms, epoch;
};

enum skew_phase {
	SKEW_UNMEASURED, /* no sample yet: nothing may be issued */
	SKEW_WAITING, /* other claims, none fresh: wait, at most fresh_ms */
	SKEW_ALONE, /* no other live claim, or none fresh in time: serve */
	SKEW_JUDGED, /* by peers; or, refused and none fresh, by ZooKeeper */
	SKEW_HELD, /* the reference moved, or a resume: last verdict stands */
};

struct skew {
	struct skew_conf conf;
	enum skew_phase phase;
	bool refused; /* too far off: until below 90 % of refuse_ms */
	bool warned; /* above warn_ms */
	bool alone; /* the verdict in force was given without peers */
	bool has_own; /* own is measured */
	struct skew_sample samples[SKEW_SAMPLES]; /* newest last */
	unsigned nsamples;
	struct skew_sample own; /* the one in use, to be published: least error
	                         * of the last few, stamp of the newest */
	int64_t skew_us; /* own offset - peer average; alone: own offset */
	int64_t average_us;
	unsigned peers; /* hosts in the average; 0: it is the median itself */
	mono_t wait_until; /* for a fresh offset; MONO_NEVER: there are some */
	mono_t held_until; /* HELD */
	int64_t moved_stamp_ms; /* peers' stamps must be later */
};

void skew_init(struct skew *s, const struct skew_conf *conf);

/*
 * After skew_init(): a verdict from the state file of the same boot.  It
 * stands until there is a better one.
 */
void skew_resume(struct skew *s, bool refused, int64_t skew_us);

/*
 * Takes a sample in.  stepped_us: by how much the own time (against boot time)
 * stepped or slewed since the call before, whether or not that one's sample
 * was any good; so a jump of the offset can be told from a step of the own
 * clock.  True if the reference moved.  An error above 1 s is no sample.
 */
bool skew_take(
    struct skew *s, const struct skew_sample *sample, int64_t stepped_us);

/*
 * Judges by the peers as read now; others: other live claims exist, with or
 * without a fresh offset.  own_boot_id tells which are not others.  The order
 * of the peers does not matter.  True if the verdict (refused, warned, phase)
 * changed.
 */
bool skew_judge(struct skew *s, mono_t now, const struct skew_peer *peers,
    size_t n, bool others, const uint8_t own_boot_id[UUID_BYTES]);

/* The other hosts as an auditor found them. */
struct skew_others {
	int64_t average_us;
	unsigned peers; /* in it */
	int64_t epoch;
	int64_t swept_ms; /* when, by ZooKeeper's clock */
	int64_t oldest_stamp_ms; /* of their offsets */
};

/*
 * Does that bear the verdict out: judged by peers, neither refused nor warned?
 * Then the figures are brought up to date.  False: nothing is changed; read
 * the peers.  So nothing is ever refused on an auditor's word.
 */
bool skew_confirm(struct skew *s, mono_t now, const struct skew_others *others,
    int64_t fresh_ms);

/* May IDs be issued, as far as the skew goes? */
bool skew_permits(const struct skew *s);

/*
 * Would the skew be good if the own clock read by_us more?  (A leap.)  Alone
 * it always would: there is nobody to say otherwise.
 */
bool skew_good_at(const struct skew *s, int64_t by_us);

/*
 * "12.4 s ahead of the average of 3 peers (error 2 ms, refuses above 10 s)".
 * The length, or -1 if it was cut; SKEW_WORDS_MAX is enough.
 */
int skew_words(const struct skew *s, char *buf, size_t n);

const char *skew_phase_name(enum skew_phase p);

#endif
