/* SPDX-License-Identifier: Apache-2.0 */
/* lease-private - what the parts of lease share; for nobody else. */
#ifndef LEASE_PRIVATE_H
#define LEASE_PRIVATE_H

#include "alone.h"
#include "auditor.h"
#include "claim.h"
#include "foreign.h"
#include "judge.h"
#include "lease.h"
#include "roll.h"
#include "sweep.h"
#include "sysclock.h"
#include "zk.h"

#define LEASE_PATH_MAX 256
#define LEASE_LANES 2

/* An operation of the claim that is under way. */
struct pending {
	uint64_t zk_op; /* 0: none (or a sweep) */
	struct claim_op op;
};

/* When the gate's facts were last written. */
struct lease_moment {
	int64_t boot_ms, own_ms;
	enum clock_verdict verdict;
};

struct lease {
	struct event_base *base;
	const struct conf *conf;
	struct serve *serve;
	struct clock *clk;
	struct hold *hold;
	bool is_alone; /* no ZooKeeper: zk is NULL, the claim sleeps */
	struct alone alone;
	struct judge *judge;
	struct auditor *auditor;
	struct roll *roll;
	struct sysclock_kernel kernel; /* of kernel_at */
	mono_t kernel_at;
	struct lease_moment updated;
	bool ended; /* issuing has ended, the file has its last word */
	struct zk *zk;
	struct event *timer;
	struct claim claim;
	struct pending pending[LEASE_LANES];
	struct sweep *sweep;
	uint32_t sweep_id;
	uint64_t *scratch;
	bool realm_told; /* serve has been initialised */
	struct contract seen; /* last contract read, good or not */
	struct agent_status status;
	uint64_t rate_issued; /* as of rate_at, for status.ids_per_s */
	mono_t rate_at;
	char fault_words[DOC_ERROR_MAX + 40]; /* "" while the realm is good */
	struct doc_error garbled; /* what is wrong with the contract */
	bool realm_large; /* too large to be read again and again */
	struct foreign foreign; /* nodes that make no sense */
	uint64_t marks_deleted_told, twins_told;
	bool counter_end_told;
	struct lease_figures figures; /* what counts up */
	enum lease_cause cause; /* of the next claim */
	void (*stopped)(void *arg);
	void *stopped_arg;
	struct event *stop_timer;
};

/* The own time, as the claim wants it. */
static inline struct claim_now
lease_time(const struct lease *l, const struct instant *now)
{
	return ((struct claim_now){
	    .boot = now->boot, .unix_ms = wall_ms(clock_now(l->clk, now)) });
}

/* lease-reload: what a claim goes by, of the configuration. */
void lease_set_times(const struct lease *l, struct claim_conf *cc);

/* lease-ops.c: carries an operation out; hears what came of it. */
void lease_carry_out(
    struct lease *l, const struct instant *now, const struct claim_op *op);
void lease_on_reply(
    struct lease *l, const struct instant *now, const struct zk_event *ev);
void lease_drop_pending(struct lease *l);
void lease_realm_path(const struct lease *l, char *path);
void lease_workers_path(
    const struct lease *l, const struct claim_op *op, char *path);
void lease_marks_path(
    const struct lease *l, const struct claim_op *op, char *path);

/* lease-figures.c: what counts up. */
void lease_count_event(struct lease *l, const struct zk_event *ev);
void lease_count_reply(struct lease *l, const struct claim_op *op,
    const struct zk_event *ev, enum claim_rc rc);
void lease_count_dropped(struct lease *l);

/* lease-say.c: lines for people. */
void lease_say_state(
    void *arg, enum claim_state from, enum claim_state to, const char *cause);
void lease_say_news(struct lease *l);

#endif
