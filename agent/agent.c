/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent - the wiring: the clock, what is done now and then, start and stop.
 *
 * Invariant: at each wake-up the clocks are read once, then the clock is
 * judged, then the lease's facts are brought up to date, then requests are
 * served, all with that one instant.
 */
#include "agent.h"

#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <event2/event.h>

#include "alert.h"
#include "answer.h"
#include "clients.h"
#include "firn-wire.h"
#include "herald.h"
#include "lease.h"
#include "listener.h"
#include "log.h"
#include "loop.h"
#include "metrics.h"
#include "notify.h"
#include "page.h"
#include "reload.h"
#include "summary.h"
#include "sysclock.h"
#include "tell.h"
#include "web.h"

#define REMIND_MS 60000 /* a line while it refuses */
#define FIRST_REMIND_MS 10000
/*
 * Slow peers, the clock, the lease while all is quiet.  Besides this one each
 * second, an agent that nobody asks is woken once a renew_ms by its lease's
 * timer and by the replies of a write and a read, and the auditor by one more
 * timer and the replies of its sweep, once an audit_ms.  ZooKeeper's two
 * threads wake for these same operations, and for a ping where there are none
 * within a third of the session.  tests/e2e/test_idle.py counts.
 */
#define LOOK_MS 1000
#define EXIT_CONFIG 78
#define US_PER_MS 1000
#define OTHER_DESCRIPTORS 64 /* of ZooKeeper, the loop, logs */

struct agent {
	struct event_base *base;
	const struct conf *conf;
	struct listener *listener;
	struct notify *notify;
	struct lease *lease;
	struct reload reload;

	struct serve serve;
	struct clock clk;
	struct instant now; /* of this wake-up */
	struct clients *clients;
	struct web *web; /* NULL: off */
	enum gate_reason reason; /* as last logged */
	bool reason_told; /* anything of it, yet */
	mono_t remind_at;
	enum clock_verdict noted; /* the same; the lease observes it, too */
	struct tell tell;
	struct alert alert;
	struct herald herald;
	bool config_good; /* when it was last read */
	int64_t config_ms, start_ms; /* Unix time: last read and good, start */

	struct event *look, *drained; /* timers */
	struct event *sigterm, *sigint, *sighup;
	bool draining, stopping;
	int status;
};

static struct answer_view
view(const struct agent *a)
{
	return ((struct answer_view){
	    a->conf, &a->serve, &a->clk, a->lease, &a->now });
}

/* ---- each wake-up ---------------------------------------------------------- */

static const char *
verdict_name(enum clock_verdict v)
{
	switch (v) {
	case CLOCK_GOOD:
		return ("good");
	case CLOCK_BACK:
		return ("back");
	case CLOCK_LEAP:
		return ("leap");
	case CLOCK_AHEAD:
		return ("ahead");
	}
	return ("?");
}

/* One line a change: old, new, cause.  Of a leap the judge has its own. */
static void
note_clock(struct agent *a)
{
	const struct answer_view v = view(a);
	enum clock_verdict old = a->noted;
	char words[WIRE_TEXT_MAX + 1];

	a->noted = a->clk.verdict;
	if (a->noted == CLOCK_LEAP || old == CLOCK_LEAP) {
		log_debug("clock: %s -> %s", verdict_name(old),
		    verdict_name(a->noted));
		return;
	}
	if (a->noted == CLOCK_BACK)
		answer_words(&v, GATE_CLOCK_BACK, 0, words, sizeof(words));
	else
		snprintf(words, sizeof(words),
		    "it is %" PRId64 " ms off the agent's time",
		    a->clk.diff_ns / NS_PER_MS);
	log_warnx("%sclock: %s -> %s: %s",
	    a->noted == CLOCK_BACK ? "alert clock_step: " : "",
	    verdict_name(old), verdict_name(a->noted), words);
}

static void
observe_clock(struct agent *a)
{
	(void)clock_observe(&a->clk, &a->now);
	if (a->clk.verdict != a->noted)
		note_clock(a);
}

static void
wake_with(
    struct agent *a, void (*lease)(struct lease *l, const struct instant *now))
{
	sysclock_read(&a->now);
	observe_clock(a);
	lease(a->lease, &a->now);
	/* The lease begins the gate afresh when it learns the realm. */
	a->serve.gate.draining = a->draining;
}

static void
wake(struct agent *a)
{
	wake_with(a, lease_update);
}

/* For a request: what one ms does not change is left alone. */
static void
on_wake(void *arg)
{
	wake_with(arg, lease_refresh);
}

/* ---- stop --------------------------------------------------------------------- */

static void
on_stopped(void *arg)
{
	struct agent *a = arg;

	log_info("stopped");
	(void)event_base_loopbreak(a->base);
}

/* The last connection is gone: the lease may lower its mark. */
static void
finish(struct agent *a)
{
	if (a->stopping)
		return;
	a->stopping = true;
	(void)event_del(a->drained);
	lease_stop(a->lease, on_stopped, a);
}

static void
on_empty(void *arg)
{
	finish(arg);
}

static void
on_drained(evutil_socket_t fd, short what, void *arg)
{
	struct agent *a = arg;

	(void)fd;
	(void)what;
	log_info("drain: %" PRIu64 " connections did not end within %" PRId64
		 " ms, closed",
	    clients_count(a->clients), a->conf->drain_ms);
	clients_cut(a->clients);
	finish(a);
}

static void
drain(struct agent *a, int status)
{
	const struct answer_view v = view(a);
	const struct timeval tv = { .tv_sec = a->conf->drain_ms / 1000,
		.tv_usec = a->conf->drain_ms % 1000 * 1000 };

	a->draining = true;
	a->status = status;
	notify_stopping(a->notify);
	wake(a);
	tell_state(&a->tell, &v);
	clients_drain(a->clients);
	if (clients_count(a->clients) == 0)
		finish(a);
	else if (event_add(a->drained, &tv) == -1)
		on_drained(-1, 0, a);
}

static void
on_terminate(evutil_socket_t sig, short what, void *arg)
{
	struct agent *a = arg;

	(void)what;
	if (a->draining) {
		log_warnx("signal %d again: exits at once", (int)sig);
		_exit(1);
	}
	log_info("signal %d: drains", (int)sig);
	drain(a, 0);
}

/* ---- now and then --------------------------------------------------------------- */

static void
remind(struct agent *a, const char *words)
{
	if (a->reason == GATE_ALLOW || !mono_reached(a->now.boot, a->remind_at))
		return;
	log_warnx("still refuses: %s", words);
	a->remind_at = mono_add_ms(a->now.boot, REMIND_MS);
	a->reason_told = true;
}

/* One line a change: old, new, cause. */
static void
note_reason(struct agent *a)
{
	enum gate_reason reason = serve_state(&a->serve, &a->clk, &a->now);
	const struct answer_view v = view(a);
	const char *old =
	    a->reason_told ? gate_reason_name(a->reason) : "starting";
	char words[WIRE_TEXT_MAX + 1];

	answer_words(&v, reason, 0, words, sizeof(words));
	if (reason == a->reason) {
		remind(a, words);
		return;
	}
	if (reason == GATE_ALLOW)
		log_info("gate: %s -> serves, worker ID %" PRIu64, old,
		    a->serve.gate.worker);
	else if (a->reason == GATE_ALLOW)
		log_warnx("gate: serves -> refuses, %s", words);
	else
		log_info("gate: %s -> %s", old, words);
	a->remind_at = mono_add_ms(a->now.boot, REMIND_MS);
	a->reason_told = true;
	a->reason = reason;
}

static void
on_look(evutil_socket_t fd, short what, void *arg)
{
	struct agent *a = arg;
	const struct answer_view v = view(a);
	char words[WIRE_TEXT_MAX + 1];

	(void)fd;
	(void)what;
	log_tell_lost();
	wake(a);
	clients_look(a->clients);
	web_look(a->web);
	tell_state(&a->tell, &v);
	alert_judge(&a->alert, &v);
	herald_look(&a->herald, &a->alert.alarms, &v);
	if (a->draining)
		return;
	note_reason(a);
	if (!lease_fits(a->lease, words, sizeof(words))) {
		log_error("%s", words);
		drain(a, EXIT_CONFIG);
	}
}

/* ---- the configuration ------------------------------------------------------ */

static int64_t
logical_lead_ms(const struct conf *conf)
{
	return (conf->logical_lead_ms != 0 ? conf->logical_lead_ms
					   : conf->max_lead_ms);
}

static struct clock_conf
clock_conf(const struct conf *conf)
{
	struct clock_conf k = { .tolerance_ms = conf->step_tolerance_ms,
		.logical_lead_ms = logical_lead_ms(conf) };

	if (strcmp(conf->on_step, "fail") == 0)
		k.policy = STEP_FAIL;
	else if (strcmp(conf->on_step, "logical") == 0)
		k.policy = STEP_LOGICAL;
	else
		k.policy = STEP_WAIT;
	return (k);
}

/* Says early what would else be a pause of accept under load. */
static void
check_descriptors(const struct conf *conf)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && conf->max_clients > 0 &&
	    rl.rlim_cur < (rlim_t)conf->max_clients + OTHER_DESCRIPTORS)
		log_warnx("max_clients is %" PRId64 " but the limit of open "
			  "files is %" PRIu64 ": accept will pause before",
		    conf->max_clients, (uint64_t)rl.rlim_cur);
}

/* Whoever keeps copies of keys; all others look at the one in use. */
static void
tell_reloaded(struct agent *a)
{
	wake(a);
	a->clk.conf.logical_lead_ms = logical_lead_ms(a->conf);
	lease_reload(a->lease);
	clients_reload(a->clients);
	check_descriptors(a->conf);
}

static void
on_reload(evutil_socket_t sig, short what, void *arg)
{
	struct agent *a = arg;

	(void)sig;
	(void)what;
	notify_reloading(a->notify);
	a->config_good = reload_run(&a->reload);
	if (a->config_good) {
		tell_reloaded(a);
		a->config_ms = wall_ms(a->now.wall);
	}
	notify_ready(a->notify);
}

static void
on_status(void *arg, struct status_doc *d)
{
	const struct agent *a = arg;

	d->config_reloads = a->reload.done;
	d->config_reload_failures = a->reload.failed;
}

/* ---- life --------------------------------------------------------------------- */

static bool
open_events(struct agent *a)
{
	const struct timeval tv = { .tv_sec = LOOK_MS / 1000,
		.tv_usec = LOOK_MS % 1000 * 1000 };

	a->look = event_new(a->base, -1, EV_PERSIST, on_look, a);
	a->drained = evtimer_new(a->base, on_drained, a);
	a->sigterm = evsignal_new(a->base, SIGTERM, on_terminate, a);
	a->sigint = evsignal_new(a->base, SIGINT, on_terminate, a);
	a->sighup = evsignal_new(a->base, SIGHUP, on_reload, a);
	return (
	    a->look != NULL && a->drained != NULL && a->sigterm != NULL &&
	    a->sigint != NULL && a->sighup != NULL &&
	    event_add(a->look, &tv) == 0 && event_add(a->sigterm, NULL) == 0 &&
	    event_add(a->sigint, NULL) == 0 && event_add(a->sighup, NULL) == 0);
}

struct agent *
agent_open(struct event_base *base, struct conf *conf,
    struct listener *listener, struct notify *notify, int argc, char **argv)
{
	const struct clock_conf k = clock_conf(conf);
	struct agent *a = calloc(1, sizeof(*a));

	if (a == NULL)
		return (NULL);
	check_descriptors(conf);
	a->base = base;
	a->conf = conf;
	a->listener = listener;
	a->notify = notify;
	tell_init(&a->tell, notify);
	a->reload = (struct reload){ .conf = conf, .argc = argc, .argv = argv };
	a->reason = GATE_NO_REALM;
	sysclock_read(&a->now);
	clock_start(&a->clk, &k, &a->now);
	a->remind_at = mono_add_ms(a->now.boot, FIRST_REMIND_MS);
	alert_init(&a->alert, a->now.boot);
	a->config_good = true;
	a->config_ms = a->start_ms = wall_ms(a->now.wall);
	if (!open_events(a) || !herald_open(&a->herald, base, conf)) {
		agent_close(a);
		return (NULL);
	}
	return (a);
}

struct serve *
agent_serve(struct agent *a)
{
	return (&a->serve);
}

struct clock *
agent_clock(struct agent *a)
{
	return (&a->clk);
}

/* What HTTP asks for, at a wake-up of its own. */
static void
on_web_status(void *arg, struct status_doc *d)
{
	struct agent *a = arg;

	wake(a);
	clients_status(a->clients, d);
}

static int
on_web_metrics(void *arg, char *buf, size_t n)
{
	struct agent *a = arg;
	const struct answer_view v = view(a);
	struct status_doc d;
	struct metrics_view m = { .conf = a->conf,
		.status = &d,
		.serve = &a->serve,
		.clk = &a->clk,
		.skew = lease_skew(a->lease),
		.alarms = &a->alert.alarms,
		.alone = lease_is_alone(a->lease),
		.config_good = a->config_good,
		.config_ms = a->config_ms,
		.start_ms = a->start_ms };

	on_web_status(a, &d);
	alert_judge(&a->alert, &v);
	lease_figures(a->lease, &a->now, &m.lease);
	auditor_figures(lease_auditor(a->lease), a->now.boot, &m.fleet);
	clients_figures(a->clients, &m.clients);
	usage_read(&m.usage);
	return (metrics_format(&m, buf, n));
}

/* The summary as it was last read, whoever wrote it. */
static int
on_web_fleet(void *arg, char *buf, size_t n)
{
	const struct agent *a = arg;
	const struct audit *fleet = auditor_summary(lease_auditor(a->lease));

	return (fleet == NULL ? 0 : summary_format(fleet, buf, n));
}

/* The fleet as rows: all of them if they are known, else the worst. */
static struct row *
make_rows(struct agent *a, const struct auditor_figures *f, struct page_view *v)
{
	struct roll_view roll;
	struct row *rows;

	lease_roll(a->lease, &a->now, &roll);
	v->whole = roll.members != NULL;
	v->rows_age_ms = roll.age_ms;
	v->nrows = v->whole ? roll.n : 0;
	v->all = v->whole ? roll.all : 0;
	if (!v->whole && f->summary != NULL) {
		v->nrows = f->summary->nworst;
		v->all = (size_t)f->summary->agents;
	}
	rows = calloc(v->nrows + 1, sizeof(*rows));
	if (rows == NULL)
		v->nrows = 0;
	for (size_t i = 0; i < v->nrows && v->whole; i++)
		row_of_member(
		    &rows[i], &roll.members[i], roll.now_ms, &v->limits);
	for (size_t i = 0; i < v->nrows && !v->whole; i++)
		row_of_worst(
		    &rows[i], &f->summary->worst[i], f->age_ms, &v->limits);
	rows_sort(rows, v->nrows);
	v->rows = rows;
	return (rows);
}

/* The page with a nonce, its figures without. */
static int
format_page(struct agent *a, const char *nonce, char *buf, size_t n)
{
	const struct conf *c = a->conf;
	struct auditor_figures f;
	struct status_doc d;
	struct page_view v = { .status = &d,
		.limits = { .warn_us = c->skew_warn_ms * US_PER_MS,
		    .stale_ms = c->session_ms / 2 * 3 + c->renew_ms } };
	struct row *rows;
	int length;

	on_web_status(a, &d);
	auditor_figures(lease_auditor(a->lease), a->now.boot, &f);
	v.fleet = f.summary;
	v.fleet_age_ms = f.age_ms;
	rows = make_rows(a, &f, &v);
	length = nonce != NULL ? page_format(&v, nonce, buf, n)
			       : page_data_format(&v, buf, n);
	free(rows);
	return (length);
}

static int
on_web_agents(void *arg, char *buf, size_t n)
{
	return (format_page(arg, NULL, buf, n));
}

static int
on_web_page(void *arg, const char *nonce, char *buf, size_t n)
{
	return (format_page(arg, nonce, buf, n));
}

int
agent_run(struct agent *a, struct lease *lease, struct web *web)
{
	const struct web_host host = { on_web_status, on_web_metrics,
		on_web_fleet, on_web_agents, on_web_page, a };

	a->lease = lease;
	a->web = web;
	lease_on_alert(lease, herald_fleet, &a->herald);
	a->status = 1; /* unless a drain says otherwise */
	a->clients = clients_open(
	    &(struct clients_host){ a->base, a->conf, a->listener, lease,
		&a->serve, &a->clk, &a->now, on_wake, on_empty, on_status, a });
	if (a->clients == NULL || !web_start(web, a->base, &host)) {
		log_error("no memory to accept connections");
		return (1);
	}
	log_info("firnd %s listens on %s, realm \"%s\"", FIRN_VERSION,
	    listener_path(a->listener), a->conf->realm);
	notify_ready(a->notify);
	event_active(a->look, EV_TIMEOUT, 0); /* the first thing in the loop */
	if (loop_run(a->base, a->clients) == -1)
		log_error("the event loop failed");
	return (a->status);
}

static void
free_event(struct event *ev)
{
	if (ev != NULL)
		event_free(ev);
}

void
agent_close(struct agent *a)
{
	if (a == NULL)
		return;
	clients_close(a->clients);
	herald_close(&a->herald);
	free_event(a->look);
	free_event(a->drained);
	free_event(a->sigterm);
	free_event(a->sigint);
	free_event(a->sighup);
	free(a);
}
