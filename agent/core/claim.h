/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim - how an agent comes by a worker ID and keeps it: the state machine
 * over the realm, the claim node and the mark.  The shell tells it of
 * connections and replies and carries out the operations it asks for; the
 * simulator does the same with a ZooKeeper of its own.
 *
 * Invariant: a claim node only chooses a worker ID.  What may be issued is
 * said by the window of a mark that carries a confirmed write of ours.
 */
#ifndef CLAIM_H
#define CLAIM_H

#include "gate.h"
#include "records.h"
#include "types.h"
#include "window.h"

#define CLAIM_GHOSTS 8
#define CLAIM_GONE 32 /* deleted marks remembered */
#define CLAIM_DENIED 8 /* marks that may not be written */
#define CLAIM_WALK_MAX 8 /* IDs given up before the claims are swept */

enum claim_state {
	CLAIM_AWAY, /* no connection: nothing may be sent */
	CLAIM_LOOKING, /* may read the realm */
	CLAIM_SETTLING, /* may list the claims, to learn what stands */
	CLAIM_CLEARING, /* may delete one node of its own */
	CLAIM_CREATING, /* may create one claim */
	CLAIM_READING, /* first in line for an ID: may read its mark */
	CLAIM_COUNTING, /* there is none: may ask whether any was deleted */
	CLAIM_TAKING, /* may write its name into the mark */
	CLAIM_VERIFYING, /* created a mark: may ask that once more */
	CLAIM_HOLDING, /* keeps its node, says its status, waits for the mark */
	CLAIM_SWEEPING, /* may read all claims and marks, to choose an ID */
	CLAIM_FULL, /* no ID is free: may only list, with back-off */
	CLAIM_STANDING, /* claim and mark are ours */
	CLAIM_LOWERING, /* stopping: may lower the mark */
	CLAIM_LEAVING, /* stopping: may delete its node */
	CLAIM_STOPPED, /* nothing more */
};

enum claim_op_kind {
	OP_NONE,
	OP_GET_REALM, /* with a watch */
	OP_LIST, /* sync, then the names of the claims */
	OP_CREATE, /* .name: prefix; ephemeral, sequential */
	OP_DELETE, /* .name, any version */
	OP_WATCH, /* .name exists? with a watch */
	OP_GET_MARK, /* .worker */
	OP_STAT_MARKS, /* stat of the marks' parent */
	OP_CREATE_MARK, /* .worker, .mark */
	OP_SET_MARK, /* .worker, .mark, .version */
	OP_SWEEP, /* free IDs and their marks */
	OP_SET_CLAIM, /* .name, .version: own status, while it owns no mark */
};

struct claim_op {
	enum claim_op_kind kind;
	uint32_t id; /* comes back in the result */
	char generation[GENERATION_MAX]; /* part of the paths */
	char name[CLAIM_NAME_MAX];
	uint64_t worker;
	struct mark mark;
	int32_t version;
};

enum claim_rc {
	RC_OK,
	RC_NONODE,
	RC_NODEEXISTS,
	RC_BADVERSION,
	RC_GARBLED, /* read, but its data makes no sense */
	RC_DENIED, /* definitely not done: the node's access list */
	RC_REFUSED, /* definitely not done: not connected, ... */
	RC_UNKNOWN, /* may or may not have been done */
};

struct claim_stat {
	int64_t czxid, mzxid;
	int32_t version, cversion, num_children;
};

/* A free worker ID, as a sweep found it. */
struct sweep_row {
	uint64_t worker;
	int64_t ceiling; /* NO_TICK: it has no mark */
};

struct claim_result {
	uint32_t id;
	enum claim_rc rc;
	struct claim_stat stat;
	const struct contract *contract; /* GET_REALM */
	const struct mark *mark; /* GET_MARK */
	const char *name; /* CREATE: the whole node name */
	const char *const *names; /* LIST */
	size_t nnames;
	const struct sweep_row *rows; /* SWEEP: free IDs; stat: marks' parent */
	size_t nrows;
	uint64_t taken; /* SWEEP: IDs that are claimed */
};

struct claim_now {
	mono_t boot;
	int64_t unix_ms; /* own time */
};

/* Why the realm may not be used. */
enum realm_fault {
	REALM_GOOD,
	REALM_UNREAD, /* not looked at yet */
	REALM_MISSING, /* no such node, so far */
	REALM_DENIED, /* its access list does not let it be read */
	REALM_GARBLED, /* its data makes no sense */
	REALM_OTHER, /* another uuid than at start */
	REALM_BACK, /* ZooKeeper's data went back */
	REALM_UNFIT, /* contradicts the configuration, or format above ours */
};

struct claim_conf {
	int64_t renew_ms, reserve_ms, claim_wait_ms, skew_refuse_ms;
	bool has_layout, has_epoch; /* configured: the realm's must be equal */
	struct firn_layout layout;
	uint64_t force_worker; /* test builds: take this, never withdraw */
	uint64_t *scratch; /* bitmap for WORKERS_MAX bits, the caller's */
	/* One call per change of state; may be NULL. */
	void (*changed)(void *arg, enum claim_state from, enum claim_state to,
	    const char *cause);
	void *arg;
};

/* What the state file remembers of the process before this one. */
struct claim_past {
	struct contract contract;
	bool same_home; /* same boot and lock: that process is gone, and
	                 * issued nothing above local_mark */
	bool resume; /* and its window was left open: it may be used */
	char claim[CLAIM_NAME_MAX];
	uint64_t worker;
	int64_t ceiling, local_mark; /* ticks */
	int64_t zxid;
};

struct claim_lane {
	bool busy;
	uint32_t id;
	enum claim_op_kind kind;
	struct tag tag; /* of a write */
	mono_t wait; /* nothing before this */
	unsigned tries; /* failures in a row, for the back-off */
};

struct claim {
	struct claim_conf conf;
	enum claim_state state;
	bool connected;
	int64_t session;
	uint32_t last_id;
	uint64_t jitter;
	struct claim_lane way; /* realm, claim, take-over */
	struct claim_lane renew; /* the mark in hand */

	/* realm */
	bool realm_known; /* k is one */
	bool realm_fresh; /* read in this session, since the last watch */
	enum realm_fault fault;
	struct contract k;
	int64_t not_before; /* tick */
	int64_t zxid; /* highest seen under this uuid and generation */
	int64_t sent_zxid; /* ... before the oldest write in doubt was sent */

	/* claim node */
	char node[CLAIM_NAME_MAX]; /* "" if none stands */
	char node_generation[GENERATION_MAX];
	uint64_t node_worker;
	char attempt[CLAIM_PREFIX_MAX]; /* create in doubt; "" if none */
	int64_t attempt_session;
	char ghosts[CLAIM_GHOSTS][CLAIM_PREFIX_MAX];
	unsigned nghosts;
	char victim[CLAIM_NAME_MAX];
	char victim_generation[GENERATION_MAX];
	enum claim_state after; /* where CLEARING leads */
	bool watched;
	uint64_t want; /* ID to ask for by name, or NO_WORKER */
	bool hold; /* want is the one least ahead: wait for it */
	int64_t hold_ceiling;
	unsigned given_up;
	unsigned rounds; /* sweeps or full lists in a row, for the back-off */

	/* windows */
	struct window own; /* of the mark being taken over or in hand */
	bool has_own;
	char own_generation[GENERATION_MAX];
	struct window old; /* frozen: not renewed, still good to its ceiling */
	bool has_old;
	bool had_window;
	bool made; /* own began with the creation of its mark */
	bool has_past;
	struct claim_past past;
	uint64_t hint; /* worker ID to ask for first, or NO_WORKER */
	bool still; /* refused by its peers: renews without moving the mark,
	             * and does not walk */
	mono_t say_at; /* HOLDING: when to say the status again */
	int32_t said; /* version of the own node */
	uint64_t seen; /* worker ID of the mark that was read last */
	uint64_t gone[CLAIM_GONE]; /* marks seen, then deleted: never made */
	unsigned ngone;
	uint64_t denied[CLAIM_DENIED]; /* not chosen while there are others */
	unsigned ndenied;
	bool yields; /* an older claim wants the ID: only the mark keeps it */
	bool long_window; /* the first, short window has been confirmed */
	mono_t renew_at;
	int64_t last_tick; /* stopping: last tick issued */
	bool stopping;

	/* for status, log and alerts */
	bool counter_end;
	uint64_t taken, free_ids, quarantined;
	uint64_t claims_created, marks_deleted, twins, renewals, renewals_lost;
	uint64_t marks_deleted_worker;
	int64_t deletions; /* of marks in this generation, as far as known */
};

void claim_init(struct claim *c, const struct claim_conf *conf, uint64_t seed);

/*
 * Goes on from the state file, before anything else is told.  What it says of
 * a worker ID's ticks is a floor in any case; with .resume its window is good
 * to its end, and whom its mark names is this agent.
 */
void claim_resume(struct claim *c, const struct claim_past *past);

/* The skew's verdict: true while refused. */
void claim_hold_still(struct claim *c, bool still);

/* What the shell has to tell. */
void claim_connected(struct claim *c, struct claim_now now, int64_t session);
void claim_disconnected(struct claim *c, struct claim_now now);
void claim_session_lost(struct claim *c, struct claim_now now);
void claim_watch_fired(struct claim *c, struct claim_now now);
void claim_result(
    struct claim *c, struct claim_now now, const struct claim_result *r);

/*
 * The next operation to submit, if there is one: call until false.  rnd must
 * be fresh from the kernel at each call: two copies of a machine must not
 * write the same tag.
 */
bool claim_next(struct claim *c, struct claim_now now,
    const struct entropy *rnd, struct claim_op *op);

/* When claim_next() may have something without being told anything. */
mono_t claim_wake(const struct claim *c);

/* Issuing has ended for good at last_tick: lower, delete, STOPPED. */
void claim_stop(struct claim *c, struct claim_now now, int64_t last_tick);

/*
 * The window that is issued from now: the frozen old one until the own one
 * can issue; NULL: none.
 */
const struct window *claim_window(struct claim *c, struct claim_now now);

/*
 * The name to be kept on file beside this window: while the mark carries it,
 * nobody else has issued above the window's floor.
 */
const char *claim_window_owner(const struct claim *c, const struct window *w);

/* Writes the gate's realm and window. */
void claim_facts(struct claim *c, struct claim_now now, struct gate *gate);

const char *claim_state_name(enum claim_state s);

/*
 * Names → how many worker IDs are claimed; the scratch bitmap then has a bit
 * for each, from worker_first on.
 */
uint64_t claim_mark_taken(const struct contract *k, const char *const *names,
    size_t n, uint64_t *scratch);

#endif
