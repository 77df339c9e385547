/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clients - everybody who is connected, and the way of one request: bytes →
 * serve → reply.
 *
 * Invariant: requests that wait for a tick are answered in the order of their
 * arrival: while there are any, a new one goes behind them without being
 * asked.
 */
#include "clients.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <event2/event.h>

#include "access.h"
#include "answer.h"
#include "conn.h"
#include "firn-wire.h"
#include "listener.h"
#include "log.h"
#include "quota.h"
#include "sysclock.h"

#define RETRY_MS 1000 /* of what only time or an operator mends */

struct client {
	struct clients *owner;
	struct conn *conn;
	struct listener_peer peer;
	int fd; /* the conn's own: only to ask who is at its other end */
	bool queued; /* in owner->waiting */
	bool resumed; /* its head request is asked again, ahead of the queue */
	TAILQ_ENTRY(client) all, wait;
};
TAILQ_HEAD(client_list, client);

struct clients {
	struct clients_host host;
	int tick_fd; /* a timer: the next tick, for those who wait.  The loop's
		      * own are too coarse, or cost a call each turn. */
	struct event *tick;
	struct client_list all, waiting;
	uint64_t n, numbered, batches;
	unsigned nwaiting;
	bool full; /* max_clients was reached */
	struct quota quota;
	struct access_lines denied_lines, limited_lines;
	uint64_t denied, limited, turned_away;
	bool draining;
	struct entropy pool;
	unsigned pool_left;
};

static struct answer_view
view(const struct clients *cs)
{
	return ((struct answer_view){ cs->host.conf, cs->host.serve,
	    cs->host.clk, cs->host.lease, cs->host.now });
}

static mono_t
on_wake(void *arg)
{
	struct client *cl = arg;

	cl->owner->host.wake(cl->owner->host.arg);
	return (cl->owner->host.now->boot);
}

/* ---- requests that wait for a tick ------------------------------------------ */

static void
queue_remove(struct client *cl)
{
	if (!cl->queued)
		return;
	TAILQ_REMOVE(&cl->owner->waiting, cl, wait);
	cl->owner->nwaiting--;
	cl->queued = false;
}

static void
queue_add(struct client *cl, bool head)
{
	assert(!cl->queued);
	if (head)
		TAILQ_INSERT_HEAD(&cl->owner->waiting, cl, wait);
	else
		TAILQ_INSERT_TAIL(&cl->owner->waiting, cl, wait);
	cl->owner->nwaiting++;
	cl->queued = true;
}

/* The tick that all who wait have to wait for. */
static void
arm_tick(struct clients *cs, mono_t when)
{
	int64_t ns = when.ns - cs->host.now->boot.ns;
	struct itimerspec at = { 0 };

	if (ns <= 0)
		ns = NS_PER_MS; /* an instant that is past must not spin */
	at.it_value.tv_sec = ns / NS_PER_S;
	at.it_value.tv_nsec = ns % NS_PER_S;
	if (timerfd_settime(cs->tick_fd, 0, &at, NULL) == -1)
		log_warn("the timer of the next tick");
}

/*
 * Serves from the head until one has to wait again: then so would all behind
 * it.  Each turn takes one client out, so it ends.
 */
static void
serve_waiting(struct clients *cs)
{
	struct client *cl;

	while ((cl = TAILQ_FIRST(&cs->waiting)) != NULL) {
		queue_remove(cl);
		cl->resumed = true;
		conn_resume(cl->conn, cs->host.now->boot);
		/* Still resumed at the head: it waits.  It may be gone, too. */
		if (TAILQ_FIRST(&cs->waiting) == cl && cl->resumed)
			break;
	}
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct clients *cs = arg;

	uint64_t expirations;

	(void)what;
	(void)!read(fd, &expirations, sizeof(expirations));
	cs->host.wake(cs->host.arg);
	serve_waiting(cs);
}

/* ---- one request ------------------------------------------------------------ */

/* Only a random start of the sequence needs any. */
static uint64_t
next_random(struct clients *cs)
{
	if (!cs->host.serve->gen.random_start)
		return (0);
	if (cs->pool_left == 0) {
		sysclock_entropy(&cs->pool);
		cs->pool_left =
		    sizeof(cs->pool.word) / sizeof(cs->pool.word[0]);
	}
	return (cs->pool.word[--cs->pool_left]);
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
refuse(struct clients *cs, struct conn *c, const struct wire_request *rq,
    enum gate_reason reason, int64_t retry_after_ms, int64_t figure)
{
	const struct answer_view v = view(cs);
	uint8_t body[ANSWER_REFUSAL_MAX];
	char words[WIRE_TEXT_MAX + 1];

	answer_words(&v, reason, figure, words, sizeof(words));
	return (put(c, rq, (unsigned)reason, body,
	    answer_put_refusal(body, retry_after_ms, words)));
}

/* This user has had its share of the second; the connection stays. */
static enum conn_verdict
refuse_over_rate(
    struct client *cl, struct conn *c, const struct wire_request *rq)
{
	struct clients *cs = cl->owner;
	mono_t now = cs->host.now->boot;
	uint8_t body[ANSWER_REFUSAL_MAX];
	char words[WIRE_TEXT_MAX + 1];

	cs->limited++;
	snprintf(words, sizeof(words),
	    "too_many: uid %" PRIu32 " is over max_ids_per_second %" PRId64,
	    cl->peer.uid, cs->host.conf->max_ids_per_second);
	if (access_may_say(&cs->limited_lines, cl->peer.uid, now))
		log_peer(LOG_LEVEL_WARN, "%s", words);
	return (put(c, rq, WIRE_TOO_MANY, body,
	    answer_put_refusal(body,
		quota_retry_ms(&cs->quota, cl->peer.uid, rq->count, now),
		words)));
}

static enum conn_verdict
wait_tick(struct client *cl, bool resumed, mono_t when)
{
	queue_add(cl, resumed);
	cl->resumed = resumed;
	arm_tick(cl->owner, when);
	return (CONN_WAIT);
}

static enum conn_verdict
request_batch(struct client *cl, struct conn *c, const struct wire_request *rq)
{
	struct clients *cs = cl->owner;
	struct serve_request sr = { .after = rq->after };
	struct serve_answer answer;
	uint8_t body[ANSWER_BATCH_MAX];
	mono_t now = cs->host.now->boot;
	bool resumed = cl->resumed;

	cl->resumed = false;
	sr.count = quota_left(&cs->quota, cl->peer.uid, rq->count, now);
	if (sr.count == 0)
		return (refuse_over_rate(cl, c, rq));
	if (!cs->draining && !resumed && !TAILQ_EMPTY(&cs->waiting)) {
		queue_add(cl, false); /* the timer runs already */
		return (CONN_WAIT);
	}
	sr.waiting = cs->nwaiting;
	sr.others = (unsigned)(cs->n - 1);
	sr.random = next_random(cs);
	serve_batch(cs->host.serve, cs->host.clk, cs->host.now, &sr, &answer);
	switch (answer.verdict) {
	case SERVE_GRANT:
		cs->batches++;
		quota_take(&cs->quota, cl->peer.uid, answer.grant.granted, now);
		return (put(c, rq, WIRE_OK, body,
		    answer_put_batch(body, &answer.grant, cs->host.now->boot,
			cs->host.conf->ttl_ms)));
	case SERVE_REFUSE:
		return (refuse(cs, c, rq, answer.reason, answer.retry_after_ms,
		    answer.figure));
	case SERVE_WAIT:
		return (wait_tick(cl, resumed, answer.when));
	}
	return (CONN_DROP);
}

static enum conn_verdict
request_contract(
    struct clients *cs, struct conn *c, const struct wire_request *rq)
{
	const struct answer_view v = view(cs);
	uint8_t body[WIRE_CONTRACT_SIZE];

	if (!cs->host.serve->gate.realm_known)
		return (refuse(cs, c, rq, GATE_NO_REALM, RETRY_MS, 0));
	return (put(c, rq, WIRE_OK, body, answer_put_contract(body, &v)));
}

void
clients_status(const struct clients *cs, struct status_doc *d)
{
	const struct answer_view v = view(cs);

	answer_fill_status(&v, cs->n, cs->batches, d);
	d->denied = cs->denied;
	d->limited = cs->limited;
	cs->host.status(cs->host.arg, d);
}

uint64_t
clients_served(const struct clients *cs)
{
	return (cs->batches);
}

static enum conn_verdict
request_status(
    struct clients *cs, struct conn *c, const struct wire_request *rq)
{
	struct status_doc d;
	char text[WIRE_STATUS_MAX];
	int length;

	clients_status(cs, &d);
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
		return (request_contract(cl->owner, c, rq));
	case WIRE_STATUS:
		return (request_status(cl->owner, c, rq));
	}
	return (CONN_DROP);
}

/* ---- clients ---------------------------------------------------------------- */

static void
on_closed(void *arg)
{
	struct client *cl = arg;
	struct clients *cs = cl->owner;

	queue_remove(cl);
	TAILQ_REMOVE(&cs->all, cl, all);
	cs->n--;
	listener_resume(cs->host.listener);
	free(cl);
	if (cs->draining && cs->n == 0)
		cs->host.empty(cs->host.arg);
}

static const struct conn_calls calls = { on_wake, on_request, on_closed };

/* One clear reply, no connection: what the socket takes at once, or nothing. */
static void
turn_away(int fd, enum wire_reason reason, int64_t retry_ms, const char *words)
{
	uint8_t frame[WIRE_HEADER_SIZE + ANSWER_REFUSAL_MAX];
	struct wire_header h = { .version = WIRE_VERSION,
		.status = (uint16_t)reason };

	h.length =
	    answer_put_refusal(frame + WIRE_HEADER_SIZE, retry_ms, words);
	wire_put_header(frame, &h);
	(void)!send(fd, frame, WIRE_HEADER_SIZE + h.length,
	    MSG_DONTWAIT | MSG_NOSIGNAL);
	close(fd);
}

static void
turn_away_full(struct clients *cs, int fd)
{
	char words[WIRE_TEXT_MAX + 1];

	snprintf(words, sizeof(words),
	    "too_many: %" PRIu64 " clients are connected, max_clients is "
	    "%" PRId64,
	    cs->n, cs->host.conf->max_clients);
	if (!cs->full)
		log_peer(LOG_LEVEL_WARN, "%s", words);
	cs->full = true;
	cs->turned_away++;
	turn_away(fd, WIRE_TOO_MANY, RETRY_MS, words);
}

/* Only an operator can mend it: there is no sense in trying again. */
static void
turn_away_denied(struct clients *cs, int fd, const struct listener_peer *peer)
{
	char words[WIRE_TEXT_MAX + 1];

	cs->denied++;
	access_words(cs->host.conf, peer, words, sizeof(words));
	if (access_may_say(&cs->denied_lines, peer->uid, cs->host.now->boot))
		log_peer(LOG_LEVEL_WARN, "pid %" PRId32 ": %s",
		    (int32_t)peer->pid, words);
	turn_away(fd, WIRE_NOT_ALLOWED, 0, words);
}

static void
on_accept(void *arg, int fd, const struct listener_peer *peer)
{
	struct clients *cs = arg;
	struct conn_peer who = { .uid = peer->uid, .pid = peer->pid };
	struct client *cl;

	if (!access_allows(cs->host.conf, fd, peer)) {
		turn_away_denied(cs, fd, peer);
		return;
	}
	if (cs->n >= (uint64_t)cs->host.conf->max_clients) {
		turn_away_full(cs, fd);
		return;
	}
	who.number = ++cs->numbered;
	cl = calloc(1, sizeof(*cl));
	if (cl == NULL) {
		log_peer(LOG_LEVEL_WARN, "no memory for a connection");
		close(fd);
		return;
	}
	cl->owner = cs;
	cl->peer = *peer;
	cl->fd = fd;
	cl->conn = conn_open(cs->host.base, fd, &who, &calls, cl);
	if (cl->conn == NULL) {
		log_peer(LOG_LEVEL_WARN, "no memory for a connection");
		free(cl);
		return;
	}
	TAILQ_INSERT_TAIL(&cs->all, cl, all);
	cs->n++;
}

/* Safe against the one that goes away under its hands, and no other. */
static void
each_client(struct clients *cs, void (*fn)(struct client *cl))
{
	struct client *cl, *next;

	for (cl = TAILQ_FIRST(&cs->all); cl != NULL; cl = next) {
		next = TAILQ_NEXT(cl, all);
		fn(cl);
	}
}

static void
client_check(struct client *cl)
{
	(void)conn_check(cl->conn, cl->owner->host.now->boot);
}

static void
client_drain(struct client *cl)
{
	queue_remove(cl);
	conn_drain(cl->conn, cl->owner->host.now->boot);
}

static void
client_close(struct client *cl)
{
	conn_close(cl->conn);
}

/* A list that was cut lets go those whom it no longer holds. */
static void
client_admit(struct client *cl)
{
	struct clients *cs = cl->owner;
	char words[WIRE_TEXT_MAX + 1];

	if (access_allows(cs->host.conf, cl->fd, &cl->peer))
		return;
	cs->denied++;
	access_words(cs->host.conf, &cl->peer, words, sizeof(words));
	if (access_may_say(&cs->denied_lines, cl->peer.uid, cs->host.now->boot))
		log_peer(LOG_LEVEL_WARN, "pid %" PRId32 ": %s, disconnected",
		    (int32_t)cl->peer.pid, words);
	conn_close(cl->conn);
}

/* ---- life --------------------------------------------------------------------- */

struct clients *
clients_open(const struct clients_host *host)
{
	struct clients *cs = calloc(1, sizeof(*cs));

	if (cs == NULL)
		return (NULL);
	cs->host = *host;
	quota_init(&cs->quota, host->conf->max_ids_per_second, host->now->boot);
	TAILQ_INIT(&cs->all);
	TAILQ_INIT(&cs->waiting);
	cs->tick_fd =
	    timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (cs->tick_fd == -1) {
		clients_close(cs);
		return (NULL);
	}
	cs->tick = event_new(
	    host->base, cs->tick_fd, EV_READ | EV_PERSIST, on_tick, cs);
	if (cs->tick == NULL || event_add(cs->tick, NULL) == -1 ||
	    listener_start(host->listener, on_accept, cs) == -1) {
		clients_close(cs);
		return (NULL);
	}
	return (cs);
}

void
clients_look(struct clients *cs)
{
	listener_look(cs->host.listener);
	each_client(cs, client_check);
	serve_waiting(
	    cs); /* no wait is for ever, whatever became of its timer */
	if (cs->full && cs->n < (uint64_t)cs->host.conf->max_clients) {
		cs->full = false;
		log_peer(LOG_LEVEL_WARN, "clients: below max_clients again");
	}
}

void
clients_reload(struct clients *cs)
{
	quota_set_rate(
	    &cs->quota, cs->host.conf->max_ids_per_second, cs->host.now->boot);
	each_client(cs, client_admit);
}

uint64_t
clients_count(const struct clients *cs)
{
	return (cs->n);
}

void
clients_figures(const struct clients *cs, struct clients_figures *out)
{
	*out = (struct clients_figures){
		.connected = cs->n,
		.accepted = cs->numbered,
		.denied = cs->denied,
		.full = cs->turned_away,
		.batches = cs->batches,
		.limited = cs->limited,
		.received = conn_traffic()->received,
		.sent = conn_traffic()->sent,
	};
}

void
clients_drain(struct clients *cs)
{
	cs->draining = true;
	listener_stop(cs->host.listener);
	each_client(cs, client_drain);
}

void
clients_cut(struct clients *cs)
{
	each_client(cs, client_close);
}

void
clients_close(struct clients *cs)
{
	if (cs == NULL)
		return;
	cs->draining = false; /* nobody is told */
	each_client(cs, client_close);
	if (cs->tick != NULL)
		event_free(cs->tick);
	if (cs->tick_fd != -1)
		close(cs->tick_fd);
	free(cs);
}
