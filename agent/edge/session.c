/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session - which handle is the one, by mail and by time, and what is told.
 *
 * The owner's callback may close z at any point: so after each call of emit
 * nothing of a handle is touched without asking again, and z itself goes when
 * the last on_* function has returned (enter, leave).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "hosts.h"
#include "log.h"
#include "mailbox.h"
#include "servers.h"
#include "session.h"
#include "sysclock.h"

#define MAIL_SLOTS (OPS_MAX + 512) /* and watches and session events */
#define GIVE_UP_TIMEOUTS 3
#define BACKOFF_MIN_MS 1000 /* a tenth of it to all of it */
#define BACKOFF_MAX_MS 10000
#define TIMER_MAX_MS 1000 /* libevent's clock stands still in suspend */

static mono_t
now_boot(void)
{
	struct instant now;

	sysclock_read(&now);
	return (now.boot);
}

/* ---- telling ---- */

static void
emit(struct zk *z, const struct zk_event *ev)
{
	if (!z->closed)
		z->fn(z->arg, ev);
}

static void
emit_kind(struct zk *z, enum zk_event_kind kind)
{
	struct zk_event ev = {
		.kind = kind, .session = z->session, .timeout_ms = z->timeout_ms
	};

	emit(z, &ev);
}

static void
emit_watch(struct zk *z, const char *path)
{
	struct zk_event ev = { .kind = ZK_WATCH, .path = path };

	emit(z, &ev);
}

static void
destroy(struct zk *z)
{
	if (z->timer != NULL)
		event_free(z->timer);
	free(z);
}

static void
enter(struct zk *z)
{
	z->depth++;
}

static void
leave(struct zk *z)
{
	if (--z->depth > 0)
		return;
	if (z->closed)
		destroy(z);
	else
		session_rearm(z);
}

/* The one reply of an operation of which nothing is known. */
static void
reply_unknown(struct zk *z, struct slot *s, int code)
{
	struct zk_event ev = { .kind = ZK_REPLY,
		.op = s->op,
		.rc = ZK_UNKNOWN,
		.code = code,
		.sent_boot_ns = s->sent.boot.ns,
		.sent_wall_ns = s->sent.wall.ns };

	s->pending = false;
	TAILQ_REMOVE(&s->h->pending, s, entry);
	emit(z, &ev);
}

/* ---- session ---- */

/* A callback may close z, and so the handle with its list. */
static struct slot *
first_pending(const struct zk *z)
{
	return (z->h != NULL ? TAILQ_FIRST(&z->h->pending) : NULL);
}

/* ZK_DISCONNECTED first, so that whoever hears the replies knows it. */
static void
disconnect(struct zk *z, int code)
{
	struct slot *s;

	z->connected = false;
	z->give_up_at =
	    mono_add_ms(now_boot(), (int64_t)GIVE_UP_TIMEOUTS * z->timeout_ms);
	log_warnx("zookeeper: disconnected, session 0x%" PRIx64,
	    (uint64_t)z->session);
	emit_kind(z, ZK_DISCONNECTED);
	while ((s = first_pending(z)) != NULL)
		reply_unknown(z, s, code);
}

static void
wait_to_open(struct zk *z)
{
	int64_t most = BACKOFF_MIN_MS;
	struct entropy e;

	for (unsigned i = 0; i < z->failures && most < BACKOFF_MAX_MS; i++)
		most *= 2;
	if (most > BACKOFF_MAX_MS)
		most = BACKOFF_MAX_MS;
	sysclock_entropy(&e);
	z->open_at = mono_add_ms(now_boot(),
	    most / 10 + (int64_t)(e.word[0] % (uint64_t)(most * 9 / 10)));
	z->phase = PHASE_WAITING;
}

static void
say_lost(struct zk *z, const char *cause)
{
	if (z->session != 0)
		log_warnx("zookeeper: session 0x%" PRIx64 " lost: %s",
		    (uint64_t)z->session, cause);
	else if (!z->said_down)
		log_warnx("zookeeper: no session yet: %s", cause);
	z->said_down = true;
}

/* Gives the handle up, if there is one, and goes on with another. */
static void
lose(struct zk *z, const char *cause)
{
	/* Before there is a handle only a command wants to hear of it. */
	bool tell = z->h != NULL || z->give_up;

	if (z->connected)
		disconnect(z, CODE_LOST);
	if (z->closed)
		return;
	say_lost(z, cause);
	if (z->h != NULL)
		handle_close(z->h);
	z->h = NULL;
	if (z->give_up) {
		z->phase = PHASE_OVER;
	} else {
		wait_to_open(z);
		z->failures++;
	}
	if (tell)
		emit_kind(z, ZK_SESSION_LOST);
	z->session = 0;
	z->timeout_ms = z->session_ms;
}

static void
on_connected(struct zk *z, const struct mail *m)
{
	if (z->connected) /* the client never leaves the break out */
		disconnect(z, CODE_LOST);
	if (!z->closed && z->session != 0 && z->session != m->session) {
		say_lost(z, "the server gave another one");
		emit_kind(z, ZK_SESSION_LOST);
	}
	if (z->closed)
		return;
	z->connected = true;
	z->session = m->session;
	z->timeout_ms = m->timeout_ms;
	z->failures = 0;
	z->said_down = false;
	log_info("zookeeper: connected to %s, session 0x%" PRIx64
		 ", timeout %d ms",
	    m->body != NULL ? m->body : "?", (uint64_t)z->session,
	    z->timeout_ms);
	emit_kind(z, ZK_CONNECTED);
}

/* ---- mail ---- */

static void
on_reply(struct zk *z, const struct mail *m)
{
	struct slot *s = m->slot;
	struct zk_event ev = { .kind = ZK_REPLY,
		.op = s->op,
		.rc = m->rc,
		.code = m->code,
		.stat = m->stat,
		.open_to_all = m->open_to_all,
		.sent_boot_ns = s->sent.boot.ns,
		.sent_wall_ns = s->sent.wall.ns,
		.received_boot_ns = m->received.boot.ns,
		.received_wall_ns = m->received.wall.ns };
	bool pending = s->pending;

	if (pending)
		TAILQ_REMOVE(&z->h->pending, s, entry);
	s->pending = false;
	TAILQ_INSERT_HEAD(&z->h->free, s, entry);
	if (!pending)
		return; /* too late: it was told as unknown */
	switch (m->body_kind) {
	case BODY_PATH:
		ev.path = m->body;
		break;
	case BODY_DATA:
		ev.data = m->body;
		ev.length = m->length;
		break;
	case BODY_NAMES:
		ev.names = (const char *const *)(const void *)m->body;
		ev.nnames = m->length;
		break;
	}
	emit(z, &ev);
}

static void
deliver(struct zk *z, const struct mail *m)
{
	if (!z->closed && z->h != NULL && m->generation == z->h->generation) {
		switch (m->kind) {
		case MAIL_CONNECTED:
			on_connected(z, m);
			break;
		case MAIL_AWAY:
			if (z->connected)
				disconnect(z, CODE_LOST);
			break;
		case MAIL_EXPIRED:
			lose(z, "expired");
			break;
		case MAIL_AUTH_FAILED:
			lose(z, "authentication failed");
			break;
		case MAIL_WATCH:
			emit_watch(z, m->body);
			break;
		case MAIL_REPLY:
			on_reply(z, m);
			break;
		}
	}
	free(m->body);
}

static void
on_mail(void *arg, const void *msg)
{
	struct zk *z = arg;

	enter(z);
	deliver(z, msg);
	leave(z);
}

/* Something was lost, a reply or an event: what it said cannot be known. */
static void
on_overflow(void *arg)
{
	struct zk *z = arg;

	enter(z);
	if (z->h != NULL)
		lose(z, "the loop fell behind the client's messages");
	leave(z);
}

/* ---- opening ---- */

static void
on_servers(void *arg, const char *connect, const char *why)
{
	struct zk *z = arg;
	struct handle *h;

	enter(z);
	if (connect == NULL) {
		lose(z, why);
		leave(z);
		return;
	}
	h = handle_open(connect, z->session_ms, z->auth_file, z->tls, z->box,
	    ++z->generation);
	if (h == NULL) {
		lose(z, "the client does not start");
	} else {
		log_debug("zookeeper: connecting to %s", connect);
		z->h = h;
		z->phase = PHASE_OPEN;
		z->give_up_at = mono_add_ms(
		    now_boot(), (int64_t)GIVE_UP_TIMEOUTS * z->timeout_ms);
	}
	leave(z);
}

/* ---- time ---- */

static mono_t
next_wake(const struct zk *z)
{
	const struct slot *s;

	switch (z->phase) {
	case PHASE_WAITING:
		return (z->open_at);
	case PHASE_OPEN:
		if (!z->connected)
			return (z->give_up_at);
		s = first_pending(z);
		return (s != NULL ? s->deadline : MONO_NEVER);
	case PHASE_RESOLVING:
	case PHASE_OVER:
		break;
	}
	return (MONO_NEVER);
}

/* Makes sure that the timer fires by then; early is fine, and without need it
 * does not: an idle agent sleeps. */
void
session_rearm(struct zk *z)
{
	mono_t when = next_wake(z), now, most;
	struct timeval tv;
	int64_t wait_us;

	if (when.ns == MONO_NEVER.ns && z->armed.ns != MONO_NEVER.ns &&
	    event_del(z->timer) == 0)
		z->armed = MONO_NEVER;
	if (when.ns >= z->armed.ns)
		return;
	now = now_boot();
	most = mono_add_ms(now, TIMER_MAX_MS);
	if (when.ns > most.ns)
		when = most;
	if (when.ns >= z->armed.ns)
		return;
	wait_us = when.ns > now.ns ? (when.ns - now.ns) / 1000 + 1 : 0;
	tv.tv_sec = (time_t)(wait_us / 1000000);
	tv.tv_usec = (suseconds_t)(wait_us % 1000000);
	if (event_add(z->timer, &tv) == 0)
		z->armed = when;
}

/* A loop that was held up finds the answers first, then looks at the time. */
static void
take_mail(struct zk *z)
{
	struct mail m;

	for (int i = 0; i < MAIL_SLOTS && !z->closed; i++) {
		if (!mailbox_take(z->box, &m))
			break;
		deliver(z, &m);
	}
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct zk *z = arg;
	struct slot *s;
	mono_t now;

	(void)fd;
	(void)what;
	z->armed = MONO_NEVER;
	enter(z);
	if (mono_reached(now_boot(), next_wake(z)))
		take_mail(z);
	now = now_boot();
	while ((s = first_pending(z)) != NULL && mono_reached(now, s->deadline))
		reply_unknown(z, s, CODE_LATE);
	if (z->closed) {
		/* nothing is due any more */
	} else if (z->phase == PHASE_OPEN && !z->connected &&
		   mono_reached(now, z->give_up_at)) {
		lose(z, "no connection for three session timeouts");
	} else if (z->phase == PHASE_WAITING && mono_reached(now, z->open_at)) {
		z->phase = PHASE_RESOLVING;
		servers_find(z->servers);
	}
	leave(z);
}

/* ---- the interface ---- */

const char *
zk_check_hosts(const char *hosts, size_t *where)
{
	struct hosts parsed;

	return (hosts_parse(hosts, &parsed, where));
}

static bool
open_parts(struct zk *z, const struct hosts *hosts)
{
	z->box = mailbox_open(
	    z->base, MAIL_SLOTS, sizeof(struct mail), on_mail, on_overflow, z);
	z->servers = servers_open(z->base, hosts, on_servers, z);
	z->timer = evtimer_new(z->base, on_timer, z);
	return (z->box != NULL && z->servers != NULL && z->timer != NULL);
}

struct zk *
zk_open(
    struct event_base *base, const struct zk_conf *conf, zk_fn *fn, void *arg)
{
	struct hosts hosts;
	struct zk *z;

	if (hosts_parse(conf->hosts, &hosts, NULL) != NULL) {
		errno = EINVAL;
		return (NULL);
	}
	z = calloc(1, sizeof(*z));
	if (z == NULL)
		return (NULL);
	z->base = base;
	z->session_ms = z->timeout_ms = conf->session_ms;
	z->deadline_ms = conf->deadline_ms;
	z->give_up = conf->give_up;
	if (conf->auth_file != NULL && conf->auth_file[0] != '\0')
		z->auth_file = conf->auth_file;
	if (conf->tls != NULL && conf->tls[0] != '\0')
		z->tls = conf->tls;
	z->make_closed = conf->make_closed;
	z->fn = fn;
	z->arg = arg;
	z->armed = MONO_NEVER;
	z->phase = PHASE_WAITING;
	z->open_at = now_boot();
	if (!open_parts(z, &hosts)) {
		zk_close(z);
		return (NULL);
	}
	session_rearm(z); /* fires in the loop, so after this has returned */
	return (z);
}

void
zk_close(struct zk *z)
{
	struct mail m;

	if (z == NULL || z->closed)
		return;
	z->closed = true;
	z->connected = false;
	if (z->h != NULL)
		handle_close(z->h);
	z->h = NULL;
	while (z->box != NULL && mailbox_take(z->box, &m))
		free(m.body);
	mailbox_close(z->box);
	servers_close(z->servers);
	if (z->timer != NULL)
		(void)event_del(z->timer);
	if (z->depth == 0)
		destroy(z);
}

bool
zk_connected(const struct zk *z)
{
	return (z->connected);
}
