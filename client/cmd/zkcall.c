/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zkcall - a synchronous front of zk, with a loop and a deadline of its own.
 *
 * Invariant: the loop turns only inside a call, and no call outlasts the
 * deadline.
 */
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "log.h"
#include "zkcall.h"

#define SESSION_MS 10000
#define OPERATION_MS 2500
#define GOODBYE_MS 300
#define CALLS_MAX 64 /* under way at a time */
#define PATH_SIZE 512

enum verb {
	VERB_GET,
	VERB_LIST,
	VERB_CREATE,
	VERB_SET,
	VERB_GET_ACL,
	VERB_SET_ACL
};

struct call {
	uint64_t op; /* 0: free */
	size_t index; /* of get_many */
	struct zkcall_reply *reply;
	bool done;
};

struct request {
	enum verb verb;
	const char *path;
	const char *data;
	size_t n;
	int32_t version;
	bool closed; /* of an access list */
};

struct zkcall {
	struct event_base *base;
	struct event *timer;
	struct zk *zk;
	int64_t deadline_ms;
	bool connected, connected_once, lost;
	struct call calls[CALLS_MAX];
};

static int64_t
now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_BOOTTIME, &ts);
	return ((int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000);
}

void
zkcall_reply_free(struct zkcall_reply *r)
{
	for (size_t i = 0; i < r->nnames; i++)
		free(r->names[i]);
	free(r->names);
	free(r->data);
	*r = (struct zkcall_reply){ .rc = ZK_UNKNOWN };
}

/* ---- events ---- */

static bool
copy_names(struct zkcall_reply *r, const struct zk_event *ev)
{
	r->names = calloc(ev->nnames + 1, sizeof(*r->names));
	if (r->names == NULL)
		return (false);
	for (size_t i = 0; i < ev->nnames; i++) {
		r->names[i] = strdup(ev->names[i]);
		if (r->names[i] == NULL)
			return (false);
		r->nnames++;
	}
	return (true);
}

static bool
copy_data(struct zkcall_reply *r, const struct zk_event *ev)
{
	size_t there = ev->data != NULL ? ev->length : 0;

	r->data = malloc(there + 1);
	if (r->data == NULL)
		return (false);
	if (there > 0)
		memcpy(r->data, ev->data, there);
	r->data[there] = '\0';
	r->length = ev->length;
	return (true);
}

static void
fill_reply(struct zkcall_reply *r, const struct zk_event *ev)
{
	*r = (struct zkcall_reply){
		.rc = ev->rc,
		.code = ev->code,
		.stat = ev->stat,
		.open_to_all = ev->open_to_all,
	};
	if (ev->rc == ZK_OK && (!copy_data(r, ev) || !copy_names(r, ev))) {
		zkcall_reply_free(r);
		r->rc = ZK_REFUSED; /* out of memory: a read to be given up */
	}
}

static void
on_event(void *arg, const struct zk_event *ev)
{
	struct zkcall *z = arg;

	switch (ev->kind) {
	case ZK_CONNECTED:
		z->connected = z->connected_once = true;
		break;
	case ZK_DISCONNECTED:
		z->connected = false;
		break;
	case ZK_SESSION_LOST:
		z->connected = false;
		z->lost = true;
		break;
	case ZK_WATCH:
		break;
	case ZK_REPLY:
		for (size_t i = 0; i < CALLS_MAX; i++) {
			if (z->calls[i].op != ev->op || z->calls[i].done)
				continue;
			fill_reply(z->calls[i].reply, ev);
			z->calls[i].done = true;
		}
		break;
	}
}

static void
on_deadline(evutil_socket_t fd, short what, void *arg)
{
	/* only ends a turn of the loop */
	(void)fd;
	(void)what;
	(void)arg;
}

/* Lets the loop turn once.  False: the deadline has passed. */
static bool
turn(struct zkcall *z)
{
	struct timeval tv;
	int64_t left = z->deadline_ms - now_ms();

	if (left <= 0)
		return (false);
	tv.tv_sec = (time_t)(left / 1000);
	tv.tv_usec = (suseconds_t)(left % 1000 * 1000);
	if (event_add(z->timer, &tv) != 0)
		return (false);
	return (event_base_loop(z->base, EVLOOP_ONCE) >= 0);
}

static bool
await_connection(struct zkcall *z)
{
	while (!z->connected && !z->lost)
		if (!turn(z))
			return (false);
	return (z->connected);
}

/* ---- open and close ---- */

static void
release(struct zkcall *z)
{
	if (z->timer != NULL)
		event_free(z->timer);
	if (z->base != NULL)
		event_base_free(z->base);
	free(z);
}

struct zkcall *
zkcall_open(const char *hosts, const char *auth_file, const char *tls,
    int64_t timeout_ms)
{
	struct zk_conf conf = {
		.hosts = hosts,
		.session_ms = SESSION_MS,
		.deadline_ms = OPERATION_MS,
		.auth_file = auth_file,
		.tls = tls,
		.give_up = true,
	};
	struct zkcall *z = calloc(1, sizeof(*z));

	if (z == NULL)
		return (NULL);
	/* the command says itself, in one line, what went wrong */
	log_open(LOG_LEVEL_ERROR);
	z->deadline_ms = now_ms() + timeout_ms;
	z->base = event_base_new();
	if (z->base != NULL)
		z->timer = evtimer_new(z->base, on_deadline, z);
	if (z->timer != NULL)
		z->zk = zk_open(z->base, &conf, on_event, z);
	if (z->zk == NULL) {
		release(z);
		return (NULL);
	}
	return (z);
}

void
zkcall_close(struct zkcall *z)
{
	bool goodbye;

	if (z == NULL)
		return;
	goodbye = zk_connected(z->zk);
	zk_close(z->zk);
	if (goodbye)
		zk_wait_closed(GOODBYE_MS);
	release(z);
}

void
zkcall_make_closed(struct zkcall *z, bool closed)
{
	zk_make_closed(z->zk, closed);
}

bool
zkcall_connected_once(const struct zkcall *z)
{
	return (z->connected_once);
}

bool
zkcall_session_lost(const struct zkcall *z)
{
	return (z->lost);
}

int64_t
zkcall_left_ms(const struct zkcall *z)
{
	int64_t left = z->deadline_ms - now_ms();

	return (left > 0 ? left : 0);
}

/* ---- calls ---- */

static uint64_t
submit(struct zkcall *z, const struct request *q)
{
	switch (q->verb) {
	case VERB_GET:
		return (zk_get(z->zk, q->path, false));
	case VERB_LIST:
		return (zk_list(z->zk, q->path));
	case VERB_CREATE:
		return (zk_create(z->zk, q->path, q->data, q->n, false));
	case VERB_SET:
		return (zk_set(z->zk, q->path, q->data, q->n, q->version));
	case VERB_GET_ACL:
		return (zk_get_acl(z->zk, q->path));
	case VERB_SET_ACL:
		return (zk_set_acl(z->zk, q->path, q->closed));
	}
	return (0);
}

static struct call *
free_call(struct zkcall *z)
{
	for (size_t i = 0; i < CALLS_MAX; i++)
		if (z->calls[i].op == 0)
			return (&z->calls[i]);
	return (NULL);
}

/*
 * Sends one request.  NULL with r->rc set: it was not sent, and nothing was
 * done.
 */
static struct call *
start(struct zkcall *z, const struct request *q, struct zkcall_reply *r)
{
	struct call *c = free_call(z);
	uint64_t op = 0;

	*r = (struct zkcall_reply){ .rc = ZK_UNKNOWN };
	while (c != NULL && op == 0) {
		if (!await_connection(z))
			return (NULL);
		op = submit(z, q);
		if (op == 0 && zk_connected(z->zk)) {
			r->rc = ZK_REFUSED;
			return (NULL);
		}
		if (op == 0 && !turn(z))
			return (NULL);
	}
	if (c != NULL)
		*c = (struct call){ .op = op, .reply = r };
	return (c);
}

static enum zk_rc
once(struct zkcall *z, const struct request *q, struct zkcall_reply *r)
{
	struct call *c = start(z, q, r);

	if (c == NULL)
		return (r->rc);
	while (!c->done && turn(z))
		continue;
	c->op = 0;
	return (r->rc);
}

/* A read may be asked again for as long as there is time. */
static enum zk_rc
reading(struct zkcall *z, const struct request *q, struct zkcall_reply *r)
{
	enum zk_rc rc;

	for (;;) {
		/* replies come in order: no need to wait for this one */
		if (await_connection(z) && zk_sync(z->zk, q->path) == 0 &&
		    !turn(z))
			break;
		rc = once(z, q, r);
		if (rc != ZK_UNKNOWN || z->lost || zkcall_left_ms(z) == 0)
			return (rc);
	}
	*r = (struct zkcall_reply){ .rc = ZK_UNKNOWN };
	return (ZK_UNKNOWN);
}

enum zk_rc
zkcall_get(struct zkcall *z, const char *path, struct zkcall_reply *r)
{
	struct request q = { .verb = VERB_GET, .path = path };

	return (reading(z, &q, r));
}

enum zk_rc
zkcall_list(struct zkcall *z, const char *path, struct zkcall_reply *r)
{
	struct request q = { .verb = VERB_LIST, .path = path };

	return (reading(z, &q, r));
}

enum zk_rc
zkcall_get_acl(struct zkcall *z, const char *path, struct zkcall_reply *r)
{
	struct request q = { .verb = VERB_GET_ACL, .path = path };

	return (reading(z, &q, r));
}

enum zk_rc
zkcall_create(struct zkcall *z, const char *path, const char *data, size_t n,
    struct zkcall_reply *r)
{
	struct request q = {
		.verb = VERB_CREATE, .path = path, .data = data, .n = n
	};

	return (once(z, &q, r));
}

enum zk_rc
zkcall_set(struct zkcall *z, const char *path, const char *data, size_t n,
    int32_t version, struct zkcall_reply *r)
{
	struct request q = {
		.verb = VERB_SET,
		.path = path,
		.data = data,
		.n = n,
		.version = version,
	};

	return (once(z, &q, r));
}

/* ---- many ---- */

struct many {
	enum verb verb; /* one that may be done twice */
	bool closed;
	size_t *todo; /* indices not asked for, or to be asked again */
	size_t ntodo, left;
	void (*path)(void *arg, size_t i, char *buf, size_t size);
	void (*got)(void *arg, size_t i, const struct zkcall_reply *r);
	void *arg;
	struct zkcall_reply replies[CALLS_MAX]; /* one for each slot */
};

/* Starts as many as may be under way. */
static bool
many_start(struct zkcall *z, struct many *m)
{
	while (m->ntodo > 0 && free_call(z) != NULL) {
		size_t slot = (size_t)(free_call(z) - z->calls);
		char path[PATH_SIZE];
		struct request q = {
			.verb = m->verb, .path = path, .closed = m->closed
		};
		struct call *c;

		m->path(m->arg, m->todo[m->ntodo - 1], path, sizeof(path));
		c = start(z, &q, &m->replies[slot]);
		if (c == NULL)
			return (false);
		c->index = m->todo[--m->ntodo];
	}
	return (true);
}

/* Tells the answers that came; what is in doubt will be asked again. */
static void
many_tell(struct zkcall *z, struct many *m)
{
	for (size_t i = 0; i < CALLS_MAX; i++) {
		struct call *c = &z->calls[i];

		if (c->op == 0 || !c->done)
			continue;
		c->op = 0;
		if (c->reply->rc == ZK_UNKNOWN) {
			m->todo[m->ntodo++] = c->index;
			continue;
		}
		m->got(m->arg, c->index, c->reply);
		zkcall_reply_free(c->reply);
		m->left--;
	}
}

static enum zk_rc
many_run(struct zkcall *z, struct many *m)
{
	enum zk_rc rc = ZK_OK;

	while (m->left > 0 && rc == ZK_OK) {
		if (!many_start(z, m) || !turn(z))
			rc = ZK_UNKNOWN;
		many_tell(z, m);
	}
	for (size_t i = 0; i < CALLS_MAX; i++)
		z->calls[i].op = 0;
	return (rc);
}

static enum zk_rc
call_many(struct zkcall *z, enum verb verb, bool closed, size_t n,
    void (*path)(void *arg, size_t i, char *buf, size_t size),
    void (*got)(void *arg, size_t i, const struct zkcall_reply *r), void *arg)
{
	struct many *m = calloc(1, sizeof(*m));
	enum zk_rc rc = ZK_REFUSED;

	if (m != NULL)
		m->todo = calloc(n + 1, sizeof(*m->todo));
	if (m != NULL && m->todo != NULL) {
		m->verb = verb;
		m->closed = closed;
		m->path = path;
		m->got = got;
		m->arg = arg;
		m->left = n;
		/* taken from the end: the first comes last here */
		while (m->ntodo < n) {
			m->todo[m->ntodo] = n - 1 - m->ntodo;
			m->ntodo++;
		}
		rc = many_run(z, m);
	}
	if (m != NULL)
		free(m->todo);
	free(m);
	return (rc);
}

enum zk_rc
zkcall_get_many(struct zkcall *z, size_t n,
    void (*path)(void *arg, size_t i, char *buf, size_t size),
    void (*got)(void *arg, size_t i, const struct zkcall_reply *r), void *arg)
{
	return (call_many(z, VERB_GET, false, n, path, got, arg));
}

enum zk_rc
zkcall_set_acl_many(struct zkcall *z, bool closed, size_t n,
    void (*path)(void *arg, size_t i, char *buf, size_t size),
    void (*got)(void *arg, size_t i, const struct zkcall_reply *r), void *arg)
{
	return (call_many(z, VERB_SET_ACL, closed, n, path, got, arg));
}
