/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent - the wiring: connections → serve → replies, the clock, start and
 * stop.
 *
 * Invariant: at each wake-up the clocks are read once, then the clock is
 * judged, then the lease's facts are brought up to date, then requests are
 * served, all with that one instant.  Requests that wait for a tick are
 * answered in the order of their arrival: while there are any, a new one goes
 * behind them without being asked.
 */
#include "agent.h"

#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "answer.h"
#include "conn.h"
#include "firn-wire.h"
#include "lease.h"
#include "listener.h"
#include "log.h"
#include "sysclock.h"

#define REMIND_MS 60000 /* a line while it refuses */
#define FIRST_REMIND_MS 10000
#define LOOK_MS 1000 /* slow peers, the clock, the lease while all is quiet */
#define EXIT_CONFIG 78
#define OTHER_DESCRIPTORS 64 /* of ZooKeeper, the loop, logs */

struct client {
	struct agent *agent;
	struct conn *conn;
	bool queued; /* in agent->waiting */
	bool resumed; /* its head request is asked again, ahead of the queue */
	TAILQ_ENTRY(client) all, wait;
};
TAILQ_HEAD(client_list, client);

struct agent {
	struct event_base *base;
	const struct conf *conf;
	struct listener *listener;
	struct lease *lease;
	int argc;
	char **argv;

	struct serve serve;
	struct clock clk;
	struct instant now; /* of this wake-up */
	struct entropy pool;
	unsigned pool_left;

	struct client_list clients, waiting;
	uint64_t nclients, numbered, batches;
	unsigned nwaiting;
	bool full; /* max_clients was reached */
	enum gate_reason reason; /* as last logged */
	mono_t remind_at;
	enum clock_verdict noted; /* the same; the lease observes it, too */

	struct event *look, *tick, *drained; /* timers */
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
wake(struct agent *a)
{
	sysclock_read(&a->now);
	observe_clock(a);
	lease_update(a->lease, &a->now);
	/* The lease begins the gate afresh when it learns the realm. */
	a->serve.gate.draining = a->draining;
}

static mono_t
on_wake(void *arg)
{
	struct client *cl = arg;

	wake(cl->agent);
	return (cl->agent->now.boot);
}

/* ---- requests that wait for a tick ------------------------------------------ */

static void
queue_remove(struct client *cl)
{
	if (!cl->queued)
		return;
	TAILQ_REMOVE(&cl->agent->waiting, cl, wait);
	cl->agent->nwaiting--;
	cl->queued = false;
}

static void
queue_add(struct client *cl, bool head)
{
	assert(!cl->queued);
	if (head)
		TAILQ_INSERT_HEAD(&cl->agent->waiting, cl, wait);
	else
		TAILQ_INSERT_TAIL(&cl->agent->waiting, cl, wait);
	cl->agent->nwaiting++;
	cl->queued = true;
}

/* The tick that all who wait have to wait for. */
static void
arm_tick(struct agent *a, mono_t when)
{
	int64_t us = (when.ns - a->now.boot.ns + 999) / 1000;
	struct timeval tv;

	if (us <= 0)
		us = 1000; /* an instant that is past already must not spin */
	tv.tv_sec = us / 1000000;
	tv.tv_usec = us % 1000000;
	if (event_add(a->tick, &tv) == -1)
		log_warnx("no memory for a timer; requests wait for longer");
}

/*
 * Serves from the head until one has to wait again: then so would all behind
 * it.  Each turn takes one client out, so it ends.
 */
static void
serve_waiting(struct agent *a)
{
	struct client *cl;

	while ((cl = TAILQ_FIRST(&a->waiting)) != NULL) {
		queue_remove(cl);
		cl->resumed = true;
		conn_resume(cl->conn, a->now.boot);
		/* Still resumed at the head: it waits.  It may be gone, too. */
		if (TAILQ_FIRST(&a->waiting) == cl && cl->resumed)
			break;
	}
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct agent *a = arg;

	(void)fd;
	(void)what;
	wake(a);
	serve_waiting(a);
}

/* ---- one request ------------------------------------------------------------ */

/* Only a random start of the sequence needs any. */
static uint64_t
next_random(struct agent *a)
{
	if (!a->serve.gen.random_start)
		return (0);
	if (a->pool_left == 0) {
		sysclock_entropy(&a->pool);
		a->pool_left = sizeof(a->pool.word) / sizeof(a->pool.word[0]);
	}
	return (a->pool.word[--a->pool_left]);
}

static enum conn_verdict
put(struct conn *c, const struct wire_request *rq, unsigned status,
    const void *body, uint32_t length)
{
	return (conn_reply(c, rq, (uint16_t)status, body, length)
		    ? CONN_ANSWERED
		    : CONN_DROP);
}

static enum conn_verdict
refuse(struct agent *a, struct conn *c, const struct wire_request *rq,
    enum gate_reason reason, int64_t retry_after_ms, int64_t figure)
{
	const struct answer_view v = view(a);
	uint8_t body[ANSWER_REFUSAL_MAX];
	char words[WIRE_TEXT_MAX + 1];

	answer_words(&v, reason, figure, words, sizeof(words));
	return (put(c, rq, (unsigned)reason, body,
	    answer_put_refusal(body, retry_after_ms, words)));
}

static enum conn_verdict
wait_tick(struct client *cl, bool resumed, mono_t when)
{
	queue_add(cl, resumed);
	cl->resumed = resumed;
	arm_tick(cl->agent, when);
	return (CONN_WAIT);
}

static enum conn_verdict
request_batch(struct client *cl, struct conn *c, const struct wire_request *rq)
{
	struct agent *a = cl->agent;
	struct serve_request sr = { .count = rq->count, .after = rq->after };
	struct serve_answer answer;
	uint8_t body[ANSWER_BATCH_MAX];
	bool resumed = cl->resumed;

	cl->resumed = false;
	if (!a->draining && !resumed && !TAILQ_EMPTY(&a->waiting)) {
		queue_add(cl, false); /* the timer runs already */
		return (CONN_WAIT);
	}
	sr.waiting = a->nwaiting;
	sr.random = next_random(a);
	serve_batch(&a->serve, &a->clk, &a->now, &sr, &answer);
	switch (answer.verdict) {
	case SERVE_GRANT:
		a->batches++;
		return (put(c, rq, WIRE_OK, body,
		    answer_put_batch(
			body, &answer.grant, a->now.boot, a->conf->ttl_ms)));
	case SERVE_REFUSE:
		return (refuse(a, c, rq, answer.reason, answer.retry_after_ms,
		    answer.figure));
	case SERVE_WAIT:
		return (wait_tick(cl, resumed, answer.when));
	}
	return (CONN_DROP);
}

static enum conn_verdict
request_contract(struct agent *a, struct conn *c, const struct wire_request *rq)
{
	const struct answer_view v = view(a);
	uint8_t body[WIRE_CONTRACT_SIZE];

	if (!a->serve.gate.realm_known)
		return (refuse(a, c, rq, GATE_NO_REALM, LOOK_MS, 0));
	return (put(c, rq, WIRE_OK, body, answer_put_contract(body, &v)));
}

static enum conn_verdict
request_status(struct agent *a, struct conn *c, const struct wire_request *rq)
{
	const struct answer_view v = view(a);
	struct status_doc d;
	char text[WIRE_STATUS_MAX];
	int length;

	answer_fill_status(&v, a->nclients, a->batches, &d);
	length = status_format(&d, text, sizeof(text));
	if (length < 0) {
		log_warnx("the status document does not fit a reply");
		return (CONN_DROP);
	}
	return (put(c, rq, WIRE_OK, text, (uint32_t)length));
}

static enum conn_verdict
on_request(void *arg, struct conn *c, const struct wire_request *rq)
{
	struct client *cl = arg;

	switch ((enum wire_type)rq->type) {
	case WIRE_BATCH:
		return (request_batch(cl, c, rq));
	case WIRE_CONTRACT:
		return (request_contract(cl->agent, c, rq));
	case WIRE_STATUS:
		return (request_status(cl->agent, c, rq));
	}
	return (CONN_DROP);
}

/* ---- clients ---------------------------------------------------------------- */

static void finish(struct agent *a);

static void
on_closed(void *arg)
{
	struct client *cl = arg;
	struct agent *a = cl->agent;

	queue_remove(cl);
	TAILQ_REMOVE(&a->clients, cl, all);
	a->nclients--;
	free(cl);
	if (a->draining && a->nclients == 0)
		finish(a);
}

static const struct conn_calls calls = { on_wake, on_request, on_closed };

/* One clear reply, no connection: what the socket takes at once, or nothing. */
static void
turn_away(struct agent *a, int fd)
{
	uint8_t frame[WIRE_HEADER_SIZE + ANSWER_REFUSAL_MAX];
	struct wire_header h = { .version = WIRE_VERSION,
		.status = WIRE_TOO_MANY };
	char words[WIRE_TEXT_MAX + 1];

	snprintf(words, sizeof(words),
	    "too_many: %" PRIu64 " clients are connected, max_clients is "
	    "%" PRId64,
	    a->nclients, a->conf->max_clients);
	if (!a->full)
		log_warnx("%s", words);
	a->full = true;
	h.length = answer_put_refusal(frame + WIRE_HEADER_SIZE, LOOK_MS, words);
	wire_put_header(frame, &h);
	(void)!send(fd, frame, WIRE_HEADER_SIZE + h.length,
	    MSG_DONTWAIT | MSG_NOSIGNAL);
	close(fd);
}

static void
on_accept(void *arg, int fd, const struct listener_peer *peer)
{
	struct agent *a = arg;
	struct conn_peer who = { .uid = peer->uid, .pid = peer->pid };
	struct client *cl;

	if (a->nclients >= (uint64_t)a->conf->max_clients) {
		turn_away(a, fd);
		return;
	}
	who.number = ++a->numbered;
	cl = calloc(1, sizeof(*cl));
	if (cl == NULL) {
		log_warn("no memory for a connection");
		close(fd);
		return;
	}
	cl->agent = a;
	cl->conn = conn_open(a->base, fd, &who, &calls, cl);
	if (cl->conn == NULL) {
		log_warnx("no memory for a connection");
		free(cl);
		return;
	}
	TAILQ_INSERT_TAIL(&a->clients, cl, all);
	a->nclients++;
}

/* Safe against the one that goes away under its hands, and no other. */
static void
each_client(struct agent *a, void (*fn)(struct client *cl))
{
	struct client *cl, *next;

	for (cl = TAILQ_FIRST(&a->clients); cl != NULL; cl = next) {
		next = TAILQ_NEXT(cl, all);
		fn(cl);
	}
}

static void
client_check(struct client *cl)
{
	(void)conn_check(cl->conn, cl->agent->now.boot);
}

static void
client_drain(struct client *cl)
{
	queue_remove(cl);
	conn_drain(cl->conn, cl->agent->now.boot);
}

static void
client_close(struct client *cl)
{
	conn_close(cl->conn);
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
on_drained(evutil_socket_t fd, short what, void *arg)
{
	struct agent *a = arg;

	(void)fd;
	(void)what;
	log_info("drain: %" PRIu64 " connections did not end within %" PRId64
		 " ms, closed",
	    a->nclients, a->conf->drain_ms);
	each_client(a, client_close);
	finish(a);
}

static void
drain(struct agent *a, int status)
{
	const struct timeval tv = { .tv_sec = a->conf->drain_ms / 1000,
		.tv_usec = a->conf->drain_ms % 1000 * 1000 };

	a->draining = true;
	a->status = status;
	wake(a);
	listener_stop(a->listener);
	each_client(a, client_drain);
	if (a->nclients == 0)
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

/* One line a change: old, new, cause. */
static void
note_reason(struct agent *a)
{
	enum gate_reason reason = serve_state(&a->serve, &a->clk, &a->now);
	const struct answer_view v = view(a);
	char words[WIRE_TEXT_MAX + 1];

	answer_words(&v, reason, 0, words, sizeof(words));
	if (reason != GATE_ALLOW && mono_reached(a->now.boot, a->remind_at)) {
		log_warnx("still refuses: %s", words);
		a->remind_at = mono_add_ms(a->now.boot, REMIND_MS);
	}
	if (reason == a->reason)
		return;
	a->remind_at = mono_add_ms(a->now.boot, REMIND_MS);
	if (reason == GATE_ALLOW)
		log_info("gate: %s -> serves, worker ID %" PRIu64,
		    gate_reason_name(a->reason), a->serve.gate.worker);
	else if (a->reason == GATE_ALLOW)
		log_warnx("gate: serves -> refuses, %s", words);
	else
		log_info("gate: %s -> %s", gate_reason_name(a->reason), words);
	a->reason = reason;
}

static void
on_look(evutil_socket_t fd, short what, void *arg)
{
	struct agent *a = arg;
	char words[WIRE_TEXT_MAX + 1];

	(void)fd;
	(void)what;
	wake(a);
	each_client(a, client_check);
	serve_waiting(
	    a); /* no wait is for ever, whatever became of its timer */
	if (a->full && a->nclients < (uint64_t)a->conf->max_clients) {
		a->full = false;
		log_info("clients: below max_clients again");
	}
	if (a->draining)
		return;
	note_reason(a);
	if (!lease_fits(a->lease, words, sizeof(words))) {
		log_error("%s", words);
		drain(a, EXIT_CONFIG);
	}
}

static void
on_reload(evutil_socket_t sig, short what, void *arg)
{
	struct agent *a = arg;
	struct conf *fresh = calloc(1, sizeof(*fresh));
	enum conf_action action;
	enum log_level level;
	struct doc_error err;

	(void)sig;
	(void)what;
	if (fresh == NULL)
		log_warn("reload: nothing changed");
	else if (conf_load(fresh, a->argc, a->argv, &action, &err) != 0)
		log_warnx("reload: %s; nothing changed", err.text);
	else if (log_level_parse(fresh->log_level, &level) == 0) {
		log_set_level(level);
		log_info("reload: log_level is %s; all else needs a restart",
		    fresh->log_level);
	}
	free(fresh);
}

/* ---- life --------------------------------------------------------------------- */

static struct clock_conf
clock_conf(const struct conf *conf)
{
	struct clock_conf k = { .tolerance_ms = conf->step_tolerance_ms,
		.logical_lead_ms = conf->logical_lead_ms != 0
				       ? conf->logical_lead_ms
				       : conf->max_lead_ms };

	if (strcmp(conf->on_step, "fail") == 0)
		k.policy = STEP_FAIL;
	else if (strcmp(conf->on_step, "logical") == 0)
		k.policy = STEP_LOGICAL;
	else
		k.policy = STEP_WAIT;
	return (k);
}

static bool
open_events(struct agent *a)
{
	const struct timeval tv = { .tv_sec = LOOK_MS / 1000,
		.tv_usec = LOOK_MS % 1000 * 1000 };

	a->look = event_new(a->base, -1, EV_PERSIST, on_look, a);
	a->tick = evtimer_new(a->base, on_tick, a);
	a->drained = evtimer_new(a->base, on_drained, a);
	a->sigterm = evsignal_new(a->base, SIGTERM, on_terminate, a);
	a->sigint = evsignal_new(a->base, SIGINT, on_terminate, a);
	a->sighup = evsignal_new(a->base, SIGHUP, on_reload, a);
	return (
	    a->look != NULL && a->tick != NULL && a->drained != NULL &&
	    a->sigterm != NULL && a->sigint != NULL && a->sighup != NULL &&
	    event_add(a->look, &tv) == 0 && event_add(a->sigterm, NULL) == 0 &&
	    event_add(a->sigint, NULL) == 0 && event_add(a->sighup, NULL) == 0);
}

/* Says at the start what would else be a pause of accept under load. */
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

struct agent *
agent_open(struct event_base *base, const struct conf *conf,
    struct listener *listener, int argc, char **argv)
{
	const struct clock_conf k = clock_conf(conf);
	struct agent *a = calloc(1, sizeof(*a));

	if (a == NULL)
		return (NULL);
	check_descriptors(conf);
	a->base = base;
	a->conf = conf;
	a->listener = listener;
	a->argc = argc;
	a->argv = argv;
	a->reason = GATE_NO_REALM;
	TAILQ_INIT(&a->clients);
	TAILQ_INIT(&a->waiting);
	sysclock_read(&a->now);
	clock_start(&a->clk, &k, &a->now);
	a->remind_at = mono_add_ms(a->now.boot, FIRST_REMIND_MS);
	if (!open_events(a)) {
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

int
agent_run(struct agent *a, struct lease *lease)
{
	a->lease = lease;
	a->status = 1; /* unless a drain says otherwise */
	if (listener_start(a->listener, on_accept, a) == -1) {
		log_error("no memory to accept connections");
		return (1);
	}
	log_info("firnd %s listens on %s, realm \"%s\"", FIRN_VERSION,
	    a->conf->socket, a->conf->realm);
	event_active(a->look, EV_TIMEOUT, 0); /* the first thing in the loop */
	if (event_base_dispatch(a->base) == -1)
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
	a->stopping = true; /* the lease is closed by main */
	each_client(a, client_close);
	free_event(a->look);
	free_event(a->tick);
	free_event(a->drained);
	free_event(a->sigterm);
	free_event(a->sigint);
	free_event(a->sighup);
	free(a);
}
