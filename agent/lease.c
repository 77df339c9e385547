/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease - joins claim to ZooKeeper: events and replies go into the claim,
 * its operations come out and are carried out, its facts go to the gate.
 *
 * Invariant: each lane of the claim has at most one operation under way, and
 * each gets exactly one result.
 */
#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alone.h"
#include "claim.h"
#include "judge.h"
#include "layout.h"
#include "lease.h"
#include "log.h"
#include "mark.h"
#include "realm.h"
#include "rfc3339.h"
#include "sweep.h"
#include "sysclock.h"
#ifdef FIRN_TESTING
#include "testing.h"
#endif
#include "zk.h"

#define PATH_MAX_TEXT 256
#define LANES 2
#define SCRATCH_WORDS (WORKERS_MAX / 64)

/* An operation of the claim that is under way. */
struct pending {
	uint64_t zk_op; /* 0: none (or a sweep) */
	struct claim_op op;
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
	bool ended; /* issuing has ended, the file has its last word */
	struct zk *zk;
	struct event *timer;
	struct claim claim;
	struct pending pending[LANES];
	struct sweep *sweep;
	uint32_t sweep_id;
	uint64_t *scratch;
	bool realm_told; /* serve has been initialised */
	struct contract seen; /* last contract read, good or not */
	struct agent_status status;
	char fault_words[DOC_ERROR_MAX + 40]; /* "" while the realm is good */
	char complaint[DOC_ERROR_MAX + 40]; /* last one logged, once each */
	uint64_t marks_deleted_told, twins_told;
	bool counter_end_told;
	void (*stopped)(void *arg);
	void *stopped_arg;
	struct event *stop_timer;
};

static void lease_run(struct lease *l, const struct instant *now);
static void say_realm(struct lease *l);
static void on_judged(void *arg);

/* ---- words --------------------------------------------------------------- */

static void
say_state(
    void *arg, enum claim_state from, enum claim_state to, const char *cause)
{
	const struct lease *l = arg;
	bool news = to == CLAIM_STANDING || to == CLAIM_FULL ||
		    to == CLAIM_HOLDING || to == CLAIM_STOPPED ||
		    (to == CLAIM_AWAY && from != CLAIM_AWAY) ||
		    (to == CLAIM_CLEARING && from != CLAIM_LEAVING);
	char worker[24] = "-";

	if (l->claim.node_worker != NO_WORKER)
		(void)snprintf(
		    worker, sizeof(worker), "%" PRIu64, l->claim.node_worker);
	if (news)
		log_info("claim %s: %s -> %s: %s", worker,
		    claim_state_name(from), claim_state_name(to), cause);
	else
		log_debug("claim %s: %s -> %s: %s", worker,
		    claim_state_name(from), claim_state_name(to), cause);
	if (to == CLAIM_FULL)
		log_warnx("claim: no worker ID to be had: %" PRIu64
			  " taken, %" PRIu64 " quarantined",
		    l->claim.taken, l->claim.quarantined);
}

/* The same complaint again and again is one line. */
static void
complain(struct lease *l, const char *path, const char *what)
{
	char text[sizeof(l->complaint)];

	(void)snprintf(text, sizeof(text), "%s: %s", path, what);
	if (strcmp(text, l->complaint) == 0)
		return;
	memcpy(l->complaint, text, sizeof(text));
	log_warnx("%s", text);
}

static const char *
fault_text(enum realm_fault fault)
{
	switch (fault) {
	case REALM_GOOD:
	case REALM_UNREAD:
		return ("");
	case REALM_MISSING:
		return ("does not exist: `firn realm create` makes it");
	case REALM_GARBLED:
		return ("its contract makes no sense");
	case REALM_OTHER:
		return ("is another realm than at start: its uuid or layout "
			"differs");
	case REALM_BACK:
		return ("ZooKeeper's data went back: restore it with a higher "
			"generation (`firn realm renew`)");
	case REALM_UNFIT:
		return ("does not fit the configuration");
	}
	return ("");
}

static void
say_news(struct lease *l)
{
	const struct claim *c = &l->claim;

	if (c->twins != l->twins_told) {
		l->twins_told = c->twins;
		log_warnx("claim: another process lives under this claim's "
			  "name: its worker ID is given up");
		hold_forget(l->hold);
	}
	say_realm(l);
}

static void
say_realm(struct lease *l)
{
	const struct claim *c = &l->claim;
	char words[sizeof(l->fault_words)] = "";

	if (c->fault != REALM_GOOD && c->fault != REALM_UNREAD)
		(void)snprintf(words, sizeof(words), "realm %s: %s",
		    l->conf->realm, fault_text(c->fault));
	if (strcmp(words, l->fault_words) != 0) {
		if (words[0] != '\0')
			log_warnx("%s", words);
		else
			log_info("realm %s: good, generation %s",
			    l->conf->realm, c->k.generation_text);
		memcpy(l->fault_words, words, sizeof(words));
	}
	if (c->marks_deleted != l->marks_deleted_told) {
		l->marks_deleted_told = c->marks_deleted;
		log_warnx("alert marks_deleted: realm %s: the mark of worker "
			  "ID %" PRIu64 " may have been deleted; its next "
			  "owner waits until all old windows are over",
		    l->conf->realm, c->marks_deleted_worker);
	}
	if (c->counter_end && !l->counter_end_told)
		log_warnx("alert counter_end: realm %s: the counter of claims "
			  "has ended: run `firn realm renew`",
		    l->conf->realm);
	l->counter_end_told = c->counter_end;
}

/* ---- paths and documents ------------------------------------------------- */

static void
realm_path(const struct lease *l, char *path)
{
	(void)snprintf(path, PATH_MAX_TEXT, "/firn/%s", l->conf->realm);
}

static void
workers_path(const struct lease *l, const struct claim_op *op, char *path)
{
	(void)snprintf(path, PATH_MAX_TEXT, "/firn/%s/workers.%s",
	    l->conf->realm, op->generation);
}

static void
node_path(const struct lease *l, const struct claim_op *op, char *path)
{
	(void)snprintf(path, PATH_MAX_TEXT, "/firn/%s/workers.%s/%s",
	    l->conf->realm, op->generation, op->name);
}

static void
marks_path(const struct lease *l, const struct claim_op *op, char *path)
{
	(void)snprintf(path, PATH_MAX_TEXT, "/firn/%s/marks.%s", l->conf->realm,
	    op->generation);
}

static void
mark_path(const struct lease *l, const struct claim_op *op, char *path)
{
	(void)snprintf(path, PATH_MAX_TEXT, "/firn/%s/marks.%s/%04" PRIu64,
	    l->conf->realm, op->generation, op->worker);
}

/* ---- time ---------------------------------------------------------------- */

static struct claim_now
claim_time(const struct lease *l, const struct instant *now)
{
	return ((struct claim_now){
	    .boot = now->boot, .unix_ms = wall_ms(clock_now(l->clk, now)) });
}

/* ---- operations out ------------------------------------------------------ */

static void
refresh_status(struct lease *l, const struct instant *now)
{
	enum gate_reason reason = serve_state(l->serve, l->clk, now);
	const char *state = "refusing";

	if (reason == GATE_ALLOW)
		state = l->claim.connected ? "serving" : "isolated";
	else if (reason == GATE_DRAINING)
		state = "draining";
	else if (reason == GATE_NO_CLAIM)
		state = "claiming";
	(void)snprintf(l->status.state, sizeof(l->status.state), "%s", state);
	(void)snprintf(l->status.reason, sizeof(l->status.reason), "%s",
	    reason == GATE_ALLOW ? "" : gate_reason_name(reason));
}

static uint64_t
submit_create_claim(struct lease *l, const struct claim_op *op)
{
	char path[PATH_MAX_TEXT], doc[MARK_DOC_MAX];
	int n = claim_doc_format(&l->status, doc, sizeof(doc));

	node_path(l, op, path);
	return (n < 0 ? 0 : zk_create(l->zk, path, doc, (size_t)n, true));
}

static uint64_t
submit_status(struct lease *l, const struct claim_op *op)
{
	char path[PATH_MAX_TEXT], doc[MARK_DOC_MAX];
	int n = claim_doc_format(&l->status, doc, sizeof(doc));

	node_path(l, op, path);
	return (n < 0 ? 0 : zk_set(l->zk, path, doc, (size_t)n, op->version));
}

static uint64_t
submit_mark(struct lease *l, const struct claim_op *op)
{
	char path[PATH_MAX_TEXT], doc[MARK_DOC_MAX];
	int n = mark_format(&op->mark, &l->status, doc, sizeof(doc));

	if (n < 0)
		return (0);
	mark_path(l, op, path);
	if (op->kind == OP_CREATE_MARK)
		return (zk_create(l->zk, path, doc, (size_t)n, false));
	return (zk_set(l->zk, path, doc, (size_t)n, op->version));
}

static void on_swept(void *arg, const struct sweep_result *r);

static bool
submit_sweep(struct lease *l, const struct claim_op *op)
{
	char workers[PATH_MAX_TEXT], marks[PATH_MAX_TEXT];

	workers_path(l, op, workers);
	marks_path(l, op, marks);
	sweep_cancel(l->sweep);
	l->sweep = sweep_start(
	    l->zk, workers, marks, &l->claim.k, l->scratch, on_swept, l);
	l->sweep_id = op->id;
	return (l->sweep != NULL);
}

static uint64_t
submit(struct lease *l, const struct claim_op *op)
{
	char path[PATH_MAX_TEXT];

	switch (op->kind) {
	case OP_NONE:
	case OP_SWEEP:
		return (0);
	case OP_GET_REALM:
		/* A lagging server's answer would look as if data went back. */
		realm_path(l, path);
		if (zk_sync(l->zk, path) == 0)
			return (0);
		return (zk_get(l->zk, path, true));
	case OP_LIST:
		/* One session's replies come in order. */
		workers_path(l, op, path);
		if (zk_sync(l->zk, path) == 0)
			return (0);
		return (zk_list(l->zk, path));
	case OP_CREATE:
		return (submit_create_claim(l, op));
	case OP_SET_CLAIM:
		return (submit_status(l, op));
	case OP_DELETE:
		node_path(l, op, path);
		return (zk_delete(l->zk, path, -1));
	case OP_WATCH:
		node_path(l, op, path);
		return (zk_exists(l->zk, path, true));
	case OP_GET_MARK:
		mark_path(l, op, path);
		return (zk_get(l->zk, path, false));
	case OP_STAT_MARKS:
		marks_path(l, op, path);
		return (zk_exists(l->zk, path, false));
	case OP_CREATE_MARK:
	case OP_SET_MARK:
		return (submit_mark(l, op));
	}
	return (0);
}

static struct pending *
pending_free(struct lease *l)
{
	for (size_t i = 0; i < LANES; i++) {
		if (l->pending[i].zk_op == 0)
			return (&l->pending[i]);
	}
	/* A lane was given up (a stop, a lost mark): its reply is nobody's. */
	return (&l->pending[0]);
}

static void
carry_out(struct lease *l, const struct instant *now, const struct claim_op *op)
{
	struct claim_result r = { .id = op->id, .rc = RC_REFUSED };
	struct pending *p;
	uint64_t zk_op;

	if (op->kind == OP_SWEEP) {
		if (!submit_sweep(l, op))
			claim_result(&l->claim, claim_time(l, now), &r);
		return;
	}
	zk_op = submit(l, op);
	if (zk_op == 0) {
		claim_result(&l->claim, claim_time(l, now), &r);
		return;
	}
	p = pending_free(l);
	p->zk_op = zk_op;
	p->op = *op;
}

static void
arm_timer(struct lease *l, const struct instant *now)
{
	mono_t when = claim_wake(&l->claim);
	mono_t judging = judge_wake(l->judge);
	struct timeval tv;
	int64_t us;

	if (l->claim.connected && judging.ns < when.ns)
		when = judging;
	us = (when.ns - now->boot.ns) / 1000 + 1;

	if (when.ns == MONO_NEVER.ns) {
		(void)event_del(l->timer);
		return;
	}
	if (us < 0)
		us = 0;
	tv.tv_sec = us / 1000000;
	tv.tv_usec = us % 1000000;
	(void)evtimer_add(l->timer, &tv);
}

static void
tell_serve(struct lease *l)
{
	const struct claim *c = &l->claim;
	struct gate gate = l->serve->gate;

	if (l->realm_told || !c->realm_known)
		return;
	l->realm_told = true;
	serve_init(l->serve, &c->k.layout,
	    strcmp(l->conf->sequence_start, "random") == 0,
	    l->conf->max_lead_ms, l->conf->skew_refuse_ms);
	l->serve->gate = gate;
}

static void
tell_stopped(struct lease *l)
{
	void (*stopped)(void *) = l->stopped;

	if (stopped == NULL)
		return;
	l->stopped = NULL;
	(void)event_del(l->stop_timer);
	stopped(l->stopped_arg);
}

/* Reads the peers, once there is a claim of one's own among theirs. */
static void
run_judge(struct lease *l, const struct instant *now)
{
	char workers[PATH_MAX_TEXT], marks[PATH_MAX_TEXT];
	struct claim_op op = { .kind = OP_NONE };
	struct judge_where where = { .zk = l->zk,
		.workers = workers,
		.marks = marks,
		.k = &l->claim.k,
		.own_claim = l->claim.node };

	if (!l->claim.connected || !l->claim.realm_known)
		return;
	memcpy(
	    op.generation, l->claim.k.generation_text, sizeof(op.generation));
	workers_path(l, &op, workers);
	marks_path(l, &op, marks);
	judge_run(l->judge, now->boot, &where);
}

static void
lease_run(struct lease *l, const struct instant *now)
{
	struct claim_op op;
	struct entropy rnd;

	for (;;) {
		sysclock_entropy(&rnd);
		if (!claim_next(&l->claim, claim_time(l, now), &rnd, &op))
			break;
		lease_update(l, now); /* the facts as they are now */
		refresh_status(l, now);
		carry_out(l, now, &op);
	}
#ifdef FIRN_TESTING
	testing_step(&l->claim);
#endif
	run_judge(l, now);
	tell_serve(l);
	lease_update(l, now);
	say_news(l);
	arm_timer(l, now);
	if (l->claim.state == CLAIM_STOPPED)
		tell_stopped(l);
}

/* ---- replies in ---------------------------------------------------------- */

static enum claim_rc
rc_of(enum zk_rc rc)
{
	switch (rc) {
	case ZK_OK:
		return (RC_OK);
	case ZK_NONODE:
		return (RC_NONODE);
	case ZK_NODEEXISTS:
		return (RC_NODEEXISTS);
	case ZK_BADVERSION:
		return (RC_BADVERSION);
	case ZK_NOTEMPTY:
	case ZK_NOAUTH:
	case ZK_REFUSED:
		return (RC_REFUSED);
	case ZK_UNKNOWN:
		return (RC_UNKNOWN);
	}
	return (RC_UNKNOWN);
}

static bool
is_own_write(enum claim_op_kind kind)
{
	return (kind == OP_CREATE || kind == OP_SET_CLAIM ||
		kind == OP_CREATE_MARK || kind == OP_SET_MARK);
}

static const char *
last_part(const char *path)
{
	const char *slash = path == NULL ? NULL : strrchr(path, '/');

	return (slash == NULL ? path : slash + 1);
}

/* What read data says, into the result; garbled data gets its line. */
static void
read_data(struct lease *l, const struct claim_op *op, const struct zk_event *ev,
    struct mark *mark, struct claim_result *r)
{
	struct doc_error err;
	char path[PATH_MAX_TEXT];
	int rc = 0;

	if (op->kind == OP_GET_REALM) {
		realm_path(l, path);
		rc = realm_parse(ev->data, ev->length, &l->seen, &err);
		r->contract = &l->seen;
		if (rc == REALM_TOO_NEW) /* the claim judges by the format */
			rc = 0;
	} else if (op->kind == OP_GET_MARK) {
		mark_path(l, op, path);
		rc = mark_parse(ev->data, ev->length, mark, NULL, &err);
		r->mark = mark;
	}
	if (rc == 0)
		return;
	complain(l, path, err.text);
	r->rc = RC_GARBLED;
}

static void
give_result(struct lease *l, const struct instant *now,
    const struct claim_op *op, const struct zk_event *ev)
{
	struct mark mark;
	struct claim_result r = {
		.id = op->id,
		.rc = rc_of(ev->rc),
		.stat = {
			.czxid = ev->stat.czxid,
			.mzxid = ev->stat.mzxid,
			.version = ev->stat.version,
			.cversion = ev->stat.cversion,
			.num_children = ev->stat.num_children,
		},
		.names = ev->names,
		.nnames = ev->nnames,
		.name = last_part(ev->path),
	};

	if (r.rc == RC_REFUSED) {
		char words[64];

		(void)snprintf(words, sizeof(words),
		    "ZooKeeper refused an operation (%d)", ev->code);
		complain(l, l->conf->realm, words);
	}
	if (r.rc == RC_OK)
		read_data(l, op, ev, &mark, &r);
	if (r.rc == RC_OK && is_own_write(op->kind))
		judge_sample(l->judge, ev, &l->status);
	claim_result(&l->claim, claim_time(l, now), &r);
}

static void
on_swept(void *arg, const struct sweep_result *s)
{
	struct lease *l = arg;
	struct instant now;
	struct claim_result r = {
		.id = l->sweep_id,
		.rc = s->rc,
		.stat = s->marks_stat,
		.rows = s->rows,
		.nrows = s->nrows,
		.taken = s->taken,
	};

	sysclock_read(&now);
	l->sweep = NULL; /* frees itself */
	claim_result(&l->claim, claim_time(l, &now), &r);
}

static void
on_reply(struct lease *l, const struct instant *now, const struct zk_event *ev)
{
	if (l->sweep != NULL && sweep_reply(l->sweep, ev))
		return;
	if (judge_reply(l->judge, ev, now->boot))
		return;
	for (size_t i = 0; i < LANES; i++) {
		struct claim_op op = l->pending[i].op;

		if (l->pending[i].zk_op != ev->op)
			continue;
		l->pending[i].zk_op = 0;
		give_result(l, now, &op, ev);
		return;
	}
}

static void
drop_pending(struct lease *l)
{
	sweep_cancel(l->sweep);
	l->sweep = NULL;
	judge_disconnected(l->judge);
	memset(l->pending, 0, sizeof(l->pending));
}

static void
on_zk(void *arg, const struct zk_event *ev)
{
	struct lease *l = arg;
	struct instant now;
	struct claim_now t;

	sysclock_read(&now);
	(void)clock_observe(l->clk, &now);
	t = claim_time(l, &now);
	switch (ev->kind) {
	case ZK_CONNECTED:
		claim_connected(&l->claim, t, ev->session);
		break;
	case ZK_DISCONNECTED:
		drop_pending(l);
		claim_disconnected(&l->claim, t);
		break;
	case ZK_SESSION_LOST:
		drop_pending(l);
		claim_session_lost(&l->claim, t);
		break;
	case ZK_WATCH:
		claim_watch_fired(&l->claim, t);
		break;
	case ZK_REPLY:
		on_reply(l, &now, ev);
		break;
	}
	lease_run(l, &now);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct lease *l = arg;
	struct instant now;

	(void)fd;
	(void)what;
	sysclock_read(&now);
	(void)clock_observe(l->clk, &now);
	lease_run(l, &now);
}

/* ---- open, stop, close --------------------------------------------------- */

static void
claim_settings(struct lease *l, struct claim_conf *cc)
{
	const struct conf *conf = l->conf;
	size_t where;

	memset(cc, 0, sizeof(*cc));
	cc->renew_ms = conf->renew_ms;
	cc->reserve_ms = conf->reserve_ms;
	cc->claim_wait_ms = conf->claim_wait_ms;
	if (strcmp(conf->on_step, "logical") == 0 &&
	    conf->logical_lead_ms > cc->claim_wait_ms)
		cc->claim_wait_ms = conf->logical_lead_ms;
	cc->skew_refuse_ms = conf->skew_refuse_ms;
	cc->force_worker = NO_WORKER;
	cc->scratch = l->scratch;
	cc->changed = say_state;
	cc->arg = l;
	if (conf->layout[0] != '\0')
		cc->has_layout =
		    firn_layout_preset(conf->layout, &cc->layout) == 0 ||
		    layout_parse_bits(conf->layout, &cc->layout, &where) == 0;
	if (conf->epoch[0] != '\0')
		cc->has_epoch = rfc3339_parse_or_ms(conf->epoch,
				    &cc->layout.epoch_ms, NULL) == 0;
#ifdef FIRN_TESTING
	testing_conf(cc);
#endif
}

static void
describe_self(struct lease *l)
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	char text[UUID_TEXT_MAX];

	if (f != NULL) {
		if (fgets(text, sizeof(text), f) == NULL ||
		    !uuid_parse(text, l->status.boot_id))
			log_warnx("boot ID: not readable");
		(void)fclose(f);
	}
#ifdef FIRN_TESTING
	testing_boot_id(l->status.boot_id);
#endif
	if (gethostname(l->status.host, sizeof(l->status.host) - 1) != 0)
		(void)snprintf(l->status.host, sizeof(l->status.host), "?");
	l->status.pid = getpid();
	(void)snprintf(
	    l->status.version, sizeof(l->status.version), "%s", firn_version());
	(void)snprintf(l->status.state, sizeof(l->status.state), "claiming");
}

static void
on_stop_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	log_warnx("stop: ZooKeeper did not answer; the mark stays as it is");
	tell_stopped(arg);
}

/* What the process before this one left. */
static void
take_over_state(struct lease *l, const struct instant *now)
{
	const struct state_record *r = hold_record(l->hold);
	enum state_found found = hold_found(l->hold);
	struct clock_conf clock_conf = l->clk->conf;
	struct claim_past past;

	if (found == STATE_NONE || found == STATE_GARBLED ||
	    strcmp(r->realm, l->conf->realm) != 0)
		return;
	if (found == STATE_RESUME) {
		/* A step made meanwhile is seen as a step. */
		clock_resume(l->clk, &clock_conf, now, r->base_ns);
		judge_resume(l->judge, r->skew_refused, r->skew_us);
	}
	if (l->is_alone)
		return;
	memset(&past, 0, sizeof(past));
	past.contract = r->contract;
	past.worker = r->worker;
	past.ceiling = r->ceiling;
	past.local_mark = r->local_mark;
	past.zxid = r->zxid;
	memcpy(past.claim, r->claim, sizeof(past.claim));
	past.same_home = found == STATE_RESUME;
	past.resume = past.same_home && r->open &&
		      layout_tick_of(&r->contract.layout,
			  wall_ms(clock_now(l->clk, now))) <= r->ceiling;
	claim_resume(&l->claim, &past);
	if (past.resume)
		log_info("state: goes on as worker ID %" PRIu64
			 " in the window of claim %s",
		    past.worker, past.claim);
}

static int
open_alone(struct lease *l, struct doc_error *err)
{
	int rc = alone_make(&l->alone, l->conf, l->hold, err);

	if (rc != 0)
		return (rc);
	/* The claim sleeps; the contract and the questions are its. */
	l->claim.k = l->alone.k;
	l->claim.realm_known = true;
	l->claim.fault = REALM_GOOD;
	if (l->alone.lost)
		log_warnx("state_lost: %s", l->alone.lost_words);
	log_info("worker ID %" PRIu64 " without ZooKeeper: that no other host "
		 "has it is the operator's word",
	    l->alone.worker);
	return (0);
}

static bool
open_parts(struct lease *l)
{
	l->scratch = calloc(SCRATCH_WORDS, sizeof(*l->scratch));
	l->timer = evtimer_new(l->base, on_timer, l);
	l->stop_timer = evtimer_new(l->base, on_stop_timer, l);
	describe_self(l);
	l->judge = judge_open(l->conf, l->clk, l->status.boot_id, on_judged, l);
	return (l->scratch != NULL && l->timer != NULL &&
		l->stop_timer != NULL && l->judge != NULL);
}

static bool
open_zookeeper(struct lease *l)
{
	const struct zk_conf zc = {
		.hosts = l->conf->zookeeper,
		.session_ms = (int)l->conf->session_ms,
		.deadline_ms = (int)l->conf->op_deadline_ms,
	};

	l->zk = zk_open(l->base, &zc, on_zk, l);
	return (l->zk != NULL);
}

struct lease *
lease_open(struct event_base *base, const struct conf *conf,
    struct serve *serve, struct clock *clk, struct hold *hold,
    struct doc_error *err)
{
	struct lease *l = calloc(1, sizeof(*l));
	struct claim_conf cc;
	struct instant now;
	struct entropy rnd;

	doc_error_set(err, "out of memory");
	if (l == NULL)
		return (NULL);
	l->base = base;
	l->conf = conf;
	l->serve = serve;
	l->clk = clk;
	l->hold = hold;
	l->is_alone = conf_is_alone(conf);
	sysclock_read(&now);
	if (!open_parts(l)) {
		lease_close(l);
		return (NULL);
	}
	claim_settings(l, &cc);
	sysclock_entropy(&rnd);
	claim_init(&l->claim, &cc, rnd.word[0]);
	take_over_state(l, &now);
	if (l->is_alone ? open_alone(l, err) != 0 : !open_zookeeper(l)) {
		lease_close(l);
		return (NULL);
	}
	tell_serve(l);
	lease_update(l, &now);
	return (l);
}

/* ---- each wake-up -------------------------------------------------------- */

static void
update_alone(struct lease *l, const struct instant *now)
{
	int64_t tick =
	    layout_tick_of(&l->alone.k.layout, wall_ms(clock_now(l->clk, now)));
	struct state_record r;

	if (l->clk->verdict == CLOCK_LEAP) {
		log_warnx("alert clock_step: the clock went ahead by %" PRId64
			  " ms, followed: there are no peers",
		    l->clk->diff_ns / NS_PER_MS);
		clock_follow(l->clk, now);
	}
	if (!l->alone.lost) {
		alone_record(&l->alone, l->conf, l->clk->base_ns, &r);
		hold_update(l->hold, now->boot, tick, &r);
	}
	alone_facts(&l->alone, l->hold, tick, &l->serve->gate);
}

/* Nothing is issued above the local mark on file. */
static void
update_file(struct lease *l, const struct instant *now, const struct window *w)
{
	const struct skew *skew = judge_skew(l->judge);
	struct gate *gate = &l->serve->gate;
	int64_t tick =
	    layout_tick_of(&l->claim.k.layout, wall_ms(clock_now(l->clk, now)));
	int64_t last = l->realm_told ? l->serve->gen.last_tick : NO_TICK;
	struct state_record r = {
		.contract = l->claim.k,
		.open = true,
		.ceiling = w->ceiling,
		.version = w->version,
		/* While there was no file only the window held. */
		.local_mark = w->floor > last ? w->floor : last,
		.worker = w->worker,
		.zxid = l->claim.zxid,
		.skew_refused = skew->refused,
		.skew_us = skew->skew_us,
		.base_ns = l->clk->base_ns,
	};

	if (l->stopped != NULL || l->ended)
		return;
	memcpy(r.realm, l->conf->realm, sizeof(r.realm));
	memcpy(r.claim, w->owner, sizeof(r.claim));
	hold_update(l->hold, now->boot, tick, &r);
	gate->on_file = hold_limits(l->hold, &gate->local_mark);
	gate->state_failed = hold_failed(l->hold);
}

/* Nothing was issued of the wall clock's present tick, or later. */
static bool
is_past_all_issued(const struct lease *l, const struct instant *now)
{
	return (!l->realm_told ||
		layout_tick_of(&l->claim.k.layout, wall_ms(now->wall)) >
		    l->serve->gen.last_tick);
}

/* The clock asks for a measurement of where it stands. */
static void
measure_now(struct lease *l, const struct instant *now)
{
	const struct timeval at_once = { 0, 0 };

	l->claim.renew_at = now->boot;
	(void)evtimer_add(l->timer, &at_once);
}

void
lease_update(struct lease *l, const struct instant *now)
{
	struct gate *gate = &l->serve->gate;
	const struct window *w;
	struct claim_now t;

	if (l->is_alone) {
		update_alone(l, now);
		return;
	}
	if (judge_leap(l->judge, now, l->claim.connected) ||
	    (is_past_all_issued(l, now) && judge_repair(l->judge, now)))
		measure_now(l, now);
	t = claim_time(l, now);
	claim_facts(&l->claim, t, gate);
	gate->realm_known = gate->realm_known && l->realm_told;
	gate->clock_skew = judge_refuses(l->judge);
	gate->state_failed = false;
	w = claim_window(&l->claim, t);
	if (w != NULL)
		update_file(l, now, w);
	if (judge_waits(l->judge)) /* not before the clock was judged */
		gate->window = gate->had_window = false;
}

static void
on_judged(void *arg)
{
	struct lease *l = arg;

	claim_hold_still(&l->claim, judge_refuses(l->judge));
}

/* ---- stop ---------------------------------------------------------------- */

/* The file no longer names the window before its mark is lowered. */
static void
end_file(struct lease *l, int64_t last_tick)
{
	bool lowers =
	    l->claim.connected && l->claim.has_own && l->claim.own.owned;

	l->ended = true;
	if (hold_end(l->hold, last_tick, !lowers) || !lowers)
		return;
	log_warnx("stop: the state file cannot be closed: "
		  "the mark stays as it is");
	l->claim.has_own = false;
}

void
lease_stop(struct lease *l, void (*done)(void *arg), void *arg)
{
	int64_t last_tick = l->realm_told ? l->serve->gen.last_tick : NO_TICK;
	int64_t ms = 2 * l->conf->op_deadline_ms;
	const struct timeval tv = { ms / 1000, ms % 1000 * 1000 };
	struct instant now;

	sysclock_read(&now);
	end_file(l, last_tick);
	if (l->is_alone) {
		done(arg);
		return;
	}
	l->stopped = done;
	l->stopped_arg = arg;
	(void)evtimer_add(l->stop_timer, &tv);
	claim_stop(&l->claim, claim_time(l, &now), last_tick);
	lease_run(l, &now);
}

void
lease_close(struct lease *l)
{
	if (l == NULL)
		return;
	sweep_cancel(l->sweep);
	judge_close(l->judge);
	if (l->zk != NULL)
		zk_close(l->zk);
	if (l->timer != NULL)
		event_free(l->timer);
	if (l->stop_timer != NULL)
		event_free(l->stop_timer);
	free(l->scratch);
	free(l);
}

/* ---- questions ----------------------------------------------------------- */

bool
lease_fits(const struct lease *l, char *words, size_t n)
{
	char has[LAYOUT_TEXT_MAX];

	if (l->claim.fault != REALM_UNFIT)
		return (true);
	if (l->seen.format > REALM_FORMAT) {
		(void)snprintf(words, n,
		    "realm %s: format %" PRId64 ", this firnd knows %d",
		    l->conf->realm, l->seen.format, REALM_FORMAT);
		return (false);
	}
	layout_format_bits(&l->seen.layout, has);
	(void)snprintf(words, n,
	    "realm %s has layout %s, epoch_ms %" PRId64
	    "; configured are layout '%s', epoch '%s'",
	    l->conf->realm, has, l->seen.layout.epoch_ms, l->conf->layout,
	    l->conf->epoch);
	return (false);
}

const char *
lease_lost_words(const struct lease *l)
{
	return (l->alone.lost_words);
}

const struct skew *
lease_skew(const struct lease *l)
{
	return (judge_skew(l->judge));
}

bool
lease_is_alone(const struct lease *l)
{
	return (l->is_alone);
}

const uint8_t *
lease_uuid(const struct lease *l)
{
	return (l->claim.k.uuid);
}

static void
status_window(
    const struct lease *l, const struct instant *now, struct status_doc *out)
{
	const struct gate *g = &l->serve->gate;
	int64_t end;

	if (!g->window)
		return;
	out->worker = g->worker;
	if (l->is_alone) /* bounded by nothing but the layout */
		return;
	end = layout_tick_start_ms(&l->claim.k.layout, g->ceiling + 1);
	out->mark_ms = end;
	out->window_left_ms = end - wall_ms(clock_now(l->clk, now));
	if (out->window_left_ms < 0)
		out->window_left_ms = 0;
}

void
lease_status(
    const struct lease *l, const struct instant *now, struct status_doc *out)
{
	const struct claim *c = &l->claim;
	struct claim_name cn;

	(void)snprintf(out->realm, sizeof(out->realm), "%s", l->conf->realm);
	out->worker = NO_WORKER;
	out->counter = -1;
	(void)snprintf(
	    out->source, sizeof(out->source), "%s", l->conf->worker_source);
	out->connected = c->connected;
	if (c->realm_known) {
		uuid_format(c->k.uuid, out->uuid);
		memcpy(out->generation, c->k.generation_text,
		    sizeof(out->generation));
		memcpy(out->layout, c->k.layout.name, sizeof(out->layout));
		layout_format_bits(&c->k.layout, out->bits);
		out->epoch_ms = c->k.layout.epoch_ms;
		out->tick_ms = c->k.layout.tick_ms;
	}
	memcpy(out->claim, c->node, sizeof(out->claim));
	if (claim_name_parse(c->node, &cn))
		out->counter = cn.counter;
	status_window(l, now, out);
	judge_status(l->judge, out);
}
