/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit - a fleet's claims and what they say, put together into one bounded
 * summary: counts, the clocks, worker IDs, alerts.
 *
 * Invariant: whatever the members say, each list of a summary is bounded, and
 * no text in it holds a character that JSON would escape.
 */
#ifndef AUDIT_H
#define AUDIT_H

#include "records.h"
#include "types.h"

#define AUDIT_MEMBERS_MAX 65536 /* more claims are not looked at */
#define AUDIT_LEFT_MAX 64
#define AUDIT_WORST_MAX 100
#define AUDIT_RANGES_MAX 192
#define AUDIT_DOUBLES_MAX 16
#define AUDIT_ALERTS_MAX 24
#define AUDIT_STALE_MAX 12 /* alerts of one kind that names agents */
#define AUDIT_ENDING_MS (INT64_C(365) * 86400000)

/* One live claim, and what its mark (or else its node) says. */
struct audit_member {
	char claim[CLAIM_NAME_MAX];
	uint64_t worker;
	uint32_t counter;
	int64_t written_ms; /* ZooKeeper's stamp of that; 0: not known */
	struct agent_status status; /* state "": it says nothing */
	bool has_window;
	int64_t window_ms; /* end of its window; for people */
};

struct audit_input {
	const struct contract *k;
	const struct audit_member *members;
	size_t n; /* at most AUDIT_MEMBERS_MAX */
	uint32_t *order; /* scratch, n of them */
	const uint64_t *quarantined; /* bits, from worker_first on */
	int64_t now_ms; /* ZooKeeper's clock as the sweep began */
	int64_t epoch; /* its leader's */
	int64_t fresh_ms; /* 3 x renew_ms: an older offset does not count */
	int64_t stale_ms; /* who wrote before that is stale */
	int64_t audit_ms; /* from one sweep to the next */
	int64_t warn_ms; /* skew_warn_ms */
	int64_t marks_deleted; /* children of the marks' parent, ever */
};

enum audit_state {
	AUDIT_SERVING,
	AUDIT_ISOLATED,
	AUDIT_REFUSING,
	AUDIT_CLAIMING,
	AUDIT_DRAINING,
	AUDIT_SILENT, /* it says nothing that is known */
	AUDIT_STATES,
};

/* A host whose clock is too far from the median to be in the average. */
struct audit_left {
	uint8_t boot_id[UUID_BYTES];
	uint64_t worker;
	int64_t offset_us;
};

/* An agent that does not serve, or whose clock or renewals are not right. */
struct audit_worst {
	uint64_t worker;
	char host[HOST_NAME_MAX_TEXT];
	char state[16], reason[24];
	bool has_skew;
	int64_t skew_us, error_us;
	int64_t stale_ms; /* since its last write; 0: that is not long ago */
};

struct audit_ranges {
	uint64_t count; /* worker IDs */
	uint64_t first[AUDIT_RANGES_MAX], last[AUDIT_RANGES_MAX];
	size_t n;
	uint64_t more; /* worker IDs in none of these ranges */
};

enum audit_kind {
	AUDIT_AGENT_STALE, /* value: ms since its last write */
	AUDIT_DUPLICATE_CLAIM, /* value: claims of that worker ID */
	AUDIT_WORKERS_LOW, /* value: free, limit: usable */
	AUDIT_EPOCH_ENDING, /* limit: Unix ms after the last tick; value: the
			     * same, or earlier that of the sign bit */
	AUDIT_FLEET_SKEW, /* value: spread in ms */
	AUDIT_MARKS_DELETED, /* value: how many */
	AUDIT_KINDS,
};

struct audit_alert {
	enum audit_kind kind;
	bool critical; /* else a warning */
	uint64_t worker; /* NO_WORKER: the fleet's */
	char host[HOST_NAME_MAX_TEXT];
	int64_t since_ms, seen_ms; /* first, last; ZooKeeper's clock */
	int64_t value, limit;
};

struct audit {
	/* the realm's */
	uint8_t uuid[UUID_BYTES];
	char generation[GENERATION_MAX];
	int64_t not_before_ms;
	/* the sweep's; who swept is filled in by the auditor */
	char auditor[CLAIM_NAME_MAX];
	char auditor_host[HOST_NAME_MAX_TEXT];
	int64_t took_ms;
	int64_t audit_ms; /* when the next one is to be expected */
	int64_t swept_ms; /* input's now_ms */
	int64_t epoch;
	char oldest[CLAIM_NAME_MAX]; /* the oldest live claim; "": none */
	/* agents */
	uint64_t agents; /* claims */
	uint64_t states[AUDIT_STATES];
	uint64_t stale; /* have not written for stale_ms */
	struct audit_worst worst[AUDIT_WORST_MAX];
	size_t nworst;
	/* clocks: one voice a host, against ZooKeeper's */
	uint64_t hosts; /* whose offset is fresh */
	uint64_t count; /* of these within warn_ms of the median */
	int64_t median_us;
	int64_t sum_us; /* of offset - median, over `count` */
	int64_t oldest_stamp_ms; /* of `hosts` */
	int64_t spread_us; /* of `hosts` */
	struct audit_left left[AUDIT_LEFT_MAX];
	size_t nleft;
	uint64_t nleft_all;
	/* worker IDs that claims may use */
	struct audit_ranges taken, quarantined, free;
	char doubles[AUDIT_DOUBLES_MAX][CLAIM_NAME_MAX]; /* younger claims */
	size_t ndoubles;
	int64_t marks_deleted;
	struct audit_alert alerts[AUDIT_ALERTS_MAX];
	size_t nalerts;
};

/*
 * Sums up.  before: the summary that stood, for what must be seen twice and
 * for how long alerts have stood; NULL: none.
 */
void audit_reckon(const struct audit_input *in, const struct audit *before,
    struct audit *out);

/*
 * The average of the other hosts' clocks.  own_offset_us: what the own mark
 * said then.  False: nobody else was counted.
 */
bool audit_average(const struct audit *a, int64_t own_offset_us,
    int64_t warn_ms, int64_t *average_us, uint64_t *counted);

/* Does one of the same kind and worker ID stand in it?  NULL: no. */
const struct audit_alert *audit_find(
    const struct audit *a, enum audit_kind kind, uint64_t worker);

bool audit_is_critical(const struct audit *a);

/* Is so few so low?  And with none left it is critical. */
bool audit_workers_low(uint64_t left, uint64_t usable);

const char *audit_kind_name(enum audit_kind k);
const char *audit_state_name(enum audit_state s);

#endif
