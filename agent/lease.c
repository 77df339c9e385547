/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease - joins claim to ZooKeeper: events and replies go into the claim,
 * its operations come out and are carried out (lease-ops.c), its facts go to
 * the gate.
 *
 * Invariant: the gate's facts are written here and nowhere else.
 */
#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layout.h"
#include "lease-private.h"
#include "log.h"
#include "rfc3339.h"
#include "sysclock.h"
#ifdef FIRN_TESTING
#include "testing.h"
#endif

#define SCRATCH_WORDS (WORKERS_MAX / 64)
/* The loop's clock lags by a tick of the kernel's (10 ms at most): a longer
 * wait is made longer by that, else it ends early and is begun again. */
#define TIMER_SLACK_US 10000

static void on_judged(void *arg);

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

/* Lately: over a second at least, as a rule from one renewal to the next. */
static void
refresh_rate(struct lease *l, const struct instant *now)
{
	uint64_t issued = l->serve->gen.issued;
	int64_t ms = mono_diff_ms(now->boot, l->rate_at);

	if (ms < 1000)
		return;
	l->status.has_rate = l->rate_at.ns != 0 && issued >= l->rate_issued;
	if (l->status.has_rate)
		l->status.ids_per_s =
		    (int64_t)((issued - l->rate_issued) * 1000 / (uint64_t)ms);
	l->rate_issued = issued;
	l->rate_at = now->boot;
}

static bool
may_audit(const struct lease *l)
{
	const struct claim *c = &l->claim;

	return (c->connected && c->realm_known && c->fault == REALM_GOOD &&
		c->node[0] != '\0' && judge_skew(l->judge)->has_own &&
		l->stopped == NULL && !l->ended);
}

static void
arm_timer(struct lease *l, const struct instant *now)
{
	mono_t when = claim_wake(&l->claim);
	mono_t judging = judge_wake(l->judge);
	mono_t auditing = auditor_wake(l->auditor);
	mono_t rolling = roll_wake(l->roll);
	struct timeval tv;
	int64_t us;

	/* While the summary is read the judge waits for that, and no timer. */
	if (l->claim.connected && !auditor_reading(l->auditor) &&
	    judging.ns < when.ns)
		when = judging;
	if (may_audit(l) && auditing.ns < when.ns)
		when = auditing;
	if (may_audit(l) && rolling.ns < when.ns)
		when = rolling;
	us = (when.ns - now->boot.ns) / 1000 + 1;
	if (us > TIMER_SLACK_US * 10)
		us += TIMER_SLACK_US;

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
	const struct serve was = *l->serve;

	if (l->realm_told || !c->realm_known)
		return;
	l->realm_told = true;
	serve_init(l->serve, &c->k.layout,
	    strcmp(l->conf->sequence_start, "random") == 0,
	    l->conf->max_lead_ms, l->conf->skew_refuse_ms);
	l->serve->gate = was.gate;
	memcpy(l->serve->refusals, was.refusals, sizeof(was.refusals));
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

/* What is read besides the own nodes, and only in a realm that is good. */
struct around {
	char realm[LEASE_PATH_MAX];
	char workers[LEASE_PATH_MAX], marks[LEASE_PATH_MAX];
};

static bool
look_around(const struct lease *l, struct around *out)
{
	struct claim_op op = { .kind = OP_NONE };

	if (!l->claim.connected || !l->claim.realm_known)
		return (false);
	memcpy(
	    op.generation, l->claim.k.generation_text, sizeof(op.generation));
	lease_realm_path(l, out->realm);
	lease_workers_path(l, &op, out->workers);
	lease_marks_path(l, &op, out->marks);
	return (true);
}

static void
run_auditor(
    struct lease *l, const struct instant *now, const struct around *around)
{
	const struct auditor_where where = { .zk = l->zk,
		.realm = around->realm,
		.workers = around->workers,
		.marks = around->marks,
		.k = &l->claim.k,
		.own_claim = l->claim.node,
		.host = l->status.host,
		.skew = judge_skew(l->judge),
		.foreign = &l->foreign };

	if (!may_audit(l))
		return;
	if (auditor_saw_other_realm(l->auditor))
		claim_watch_fired(&l->claim, lease_time(l, now));
	auditor_run(l->auditor, now->boot, &where);
	roll_run(l->roll, now->boot, &where);
}

/* Reads the peers, once there is a claim of one's own among theirs. */
static void
run_judge(
    struct lease *l, const struct instant *now, const struct around *around)
{
	struct judge_where where = { .zk = l->zk,
		.workers = around->workers,
		.marks = around->marks,
		.k = &l->claim.k,
		.own_claim = l->claim.node,
		.summary = auditor_summary(l->auditor),
		.foreign = &l->foreign };

	if (!auditor_reading(l->auditor)) /* it may save the reading */
		judge_run(l->judge, now->boot, &where);
}

static void
lease_run(struct lease *l, const struct instant *now)
{
	struct claim_op op;
	struct entropy rnd;
	struct around around;

	for (;;) {
		sysclock_entropy(&rnd);
		if (!claim_next(&l->claim, lease_time(l, now), &rnd, &op))
			break;
		lease_update(l, now); /* the facts as they are now */
		refresh_status(l, now);
		refresh_rate(l, now);
		lease_carry_out(l, now, &op);
	}
#ifdef FIRN_TESTING
	testing_step(&l->claim);
#endif
	if (look_around(l, &around)) {
		run_auditor(l, now, &around);
		run_judge(l, now, &around);
	}
	tell_serve(l);
	lease_update(l, now);
	lease_say_news(l);
	arm_timer(l, now);
	if (l->claim.state == CLAIM_STOPPED)
		tell_stopped(l);
}

static void
on_zk(void *arg, const struct zk_event *ev)
{
	struct lease *l = arg;
	struct instant now;
	struct claim_now t;

	sysclock_read(&now);
	(void)clock_observe(l->clk, &now);
	t = lease_time(l, &now);
	lease_count_event(l, ev);
	switch (ev->kind) {
	case ZK_CONNECTED:
		claim_connected(&l->claim, t, ev->session);
		break;
	case ZK_DISCONNECTED:
		lease_drop_pending(l);
		claim_disconnected(&l->claim, t);
		break;
	case ZK_SESSION_LOST:
		lease_drop_pending(l);
		claim_session_lost(&l->claim, t);
		break;
	case ZK_WATCH:
		claim_watch_fired(&l->claim, t);
		break;
	case ZK_REPLY:
		lease_on_reply(l, &now, ev);
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

/* A preset stands for its epoch; bits are of any, unless one is configured. */
static void
set_shape(const struct conf *conf, struct claim_conf *cc)
{
	bool preset = firn_layout_preset(conf->layout, &cc->layout) == 0;

	cc->has_layout =
	    preset || layout_parse_bits(conf->layout, &cc->layout, NULL) == 0;
	cc->has_epoch = preset;
	if (rfc3339_parse_or_ms(conf->epoch, &cc->layout.epoch_ms, NULL) == 0)
		cc->has_epoch = true;
}

static void
claim_settings(struct lease *l, struct claim_conf *cc)
{
	memset(cc, 0, sizeof(*cc));
	lease_set_times(l, cc);
	cc->force_worker = NO_WORKER;
	cc->scratch = l->scratch;
	cc->changed = lease_say_state;
	cc->arg = l;
	set_shape(l->conf, cc);
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
	    found == STATE_UNREAD || strcmp(r->realm, l->conf->realm) != 0)
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
	/* One kept without ZooKeeper names no claim, and ends with the layout. */
	past.same_home = found == STATE_RESUME && r->claim[0] != '\0';
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
	l->auditor = auditor_open(l->conf);
	l->roll = roll_open(l->conf);
	return (l->auditor != NULL && l->roll != NULL && l->scratch != NULL &&
		l->timer != NULL && l->stop_timer != NULL && l->judge != NULL);
}

static bool
open_zookeeper(struct lease *l)
{
	const struct zk_conf zc = {
		.hosts = l->conf->zookeeper,
		.session_ms = (int)l->conf->session_ms,
		.deadline_ms = (int)l->conf->op_deadline_ms,
		.auth_file = l->conf->auth_file,
		.tls = l->conf->zookeeper_tls,
		/* whatever the realm's own list is: so none is open by mistake */
		.make_closed = l->conf->auth_file[0] != '\0',
	};

	l->zk = zk_open(l->base, &zc, on_zk, l);
	return (l->zk != NULL);
}

struct lease *
lease_open(struct event_base *base, const struct conf *conf,
    struct serve *serve, struct clock *clk, struct hold *hold, int *status,
    struct doc_error *err)
{
	struct lease *l = calloc(1, sizeof(*l));
	struct claim_conf cc;
	struct instant now;
	struct entropy rnd;

	*status = 1;
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
	if (l->is_alone)
		*status = open_alone(l, err);
	else if (open_zookeeper(l))
		*status = 0;
	if (*status != 0) {
		lease_close(l);
		return (NULL);
	}
	tell_serve(l);
	lease_update(l, &now);
	return (l);
}

/* ---- each wake-up -------------------------------------------------------- */

/*
 * The base that a process after this one goes on with.  While the clock is
 * back own time stands still: it does so for that one, too, lest each restart
 * begin the wait anew.
 */
static int64_t
base_to_keep(const struct lease *l, const struct instant *now)
{
	if (l->clk->verdict == CLOCK_BACK)
		return (clock_now(l->clk, now).ns - now->boot.ns);
	return (l->clk->base_ns);
}

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
		alone_record(&l->alone, l->conf, base_to_keep(l, now), &r);
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
		.base_ns = base_to_keep(l, now),
	};

	if (l->stopped != NULL || l->ended)
		return;
	memcpy(r.realm, l->conf->realm, sizeof(r.realm));
	memcpy(r.claim, claim_window_owner(&l->claim, w), sizeof(r.claim));
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

/* Each second is enough for what is only shown. */
static void
ask_kernel(struct lease *l, const struct instant *now)
{
	if (l->kernel_at.ns != 0 &&
	    !mono_reached(now->boot, mono_add_ms(l->kernel_at, 1000)))
		return;
	l->kernel_at = now->boot;
	sysclock_kernel(&l->kernel);
}

/* All of the time that the gate's facts depend on: none is finer than a ms. */
static struct lease_moment
moment_of(const struct lease *l, const struct instant *now)
{
	return ((struct lease_moment){
	    .boot_ms = now->boot.ns / NS_PER_MS,
	    .own_ms = wall_ms(clock_now(l->clk, now)),
	    .verdict = l->clk->verdict,
	});
}

void
lease_update(struct lease *l, const struct instant *now)
{
	struct gate *gate = &l->serve->gate;
	const struct window *w;
	struct claim_now t;

	l->updated = moment_of(l, now);
	ask_kernel(l, now);
	if (l->is_alone) {
		update_alone(l, now);
		return;
	}
	if (judge_leap(l->judge, now, l->claim.connected) ||
	    (is_past_all_issued(l, now) && judge_repair(l->judge, now)))
		measure_now(l, now);
	t = lease_time(l, now);
	claim_facts(&l->claim, t, gate);
	gate->realm_known = gate->realm_known && l->realm_told;
	w = claim_window(&l->claim, t);
	if ((l->claim.fault == REALM_MISSING ||
		l->claim.fault == REALM_GARBLED) &&
	    (w == NULL ||
		layout_tick_of(&l->claim.k.layout, t.unix_ms) > w->ceiling))
		gate->realm_known = false; /* nothing else is left to say */
	gate->clock_skew = judge_refuses(l->judge);
	gate->state_failed = false;
	if (w != NULL)
		update_file(l, now, w);
	if (judge_waits(l->judge)) /* not before the clock was judged */
		gate->window = gate->had_window = false;
}

void
lease_refresh(struct lease *l, const struct instant *now)
{
	struct lease_moment m = moment_of(l, now);

	if (m.boot_ms != l->updated.boot_ms || m.own_ms != l->updated.own_ms ||
	    m.verdict != l->updated.verdict)
		lease_update(l, now);
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
	claim_stop(&l->claim, lease_time(l, &now), last_tick);
	lease_run(l, &now);
}

void
lease_close(struct lease *l)
{
	if (l == NULL)
		return;
	sweep_cancel(l->sweep);
	judge_close(l->judge);
	auditor_close(l->auditor);
	roll_close(l->roll);
	if (l->zk != NULL)
		zk_close(l->zk);
	if (l->timer != NULL)
		event_free(l->timer);
	if (l->stop_timer != NULL)
		event_free(l->stop_timer);
	free(l->scratch);
	free(l);
}
