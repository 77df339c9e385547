/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zk - the only user of ZooKeeper's C client.
 *
 * The client runs two threads a handle.  What they call here (the functions
 * under "the client's threads") copies plain values into the mailbox and does
 * nothing else; the rest of the file is the loop's thread.
 *
 * Invariants: an operation is in its handle's pending list from its acceptance
 * to its one ZK_REPLY.  The list is empty unless connected.  A slot is used
 * again only after the client's completion for it has come, which it may never
 * do; slots live as long as their handle.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include <event2/event.h>
#include <zookeeper/zookeeper.h>

#include "hosts.h"
#include "log.h"
#include "mailbox.h"
#include "resolve.h"
#include "servers.h"
#include "sysclock.h"
#include "zk.h"

#define OPS_MAX 4096 /* in the client's hands, of one handle */
#define MAIL_SLOTS (OPS_MAX + 512) /* and watches and session events */
#define PATH_MAX_BYTES 1000
#define DATA_MAX_BYTES (512 * 1024) /* the server takes one megabyte */
#define GIVE_UP_TIMEOUTS 3
#define BACKOFF_MIN_MS 1000 /* a tenth of it to all of it */
#define BACKOFF_MAX_MS 10000
#define TIMER_MAX_MS 1000 /* libevent's clock stands still in suspend */
#define CLIENT_STACK_BYTES (256 * 1024)
#define CLIENT_LOG_EVERY_MS 60000

struct handle;

struct slot {
	struct handle *h;
	uint64_t op;
	bool pending;
	mono_t deadline;
	struct instant sent;
	TAILQ_ENTRY(slot) entry; /* pending or free */
};
TAILQ_HEAD(slots, slot);

/* A session as the client sees it; freed by its closer. */
struct handle {
	zhandle_t *zh;
	uint64_t generation;
	pthread_mutex_t lock;
	struct mailbox *box; /* under lock; NULL: given up, say no more */
	struct slots pending; /* by deadline, since all have the same time */
	struct slots free;
	size_t used; /* slots that ever were; the rest is untouched memory */
	struct slot slots[OPS_MAX];
};

enum body_kind {
	BODY_PATH, /* or other text */
	BODY_DATA,
	BODY_NAMES, /* pointers, then the text they point to */
};

enum mail_kind { MAIL_SESSION, MAIL_WATCH, MAIL_REPLY };

struct mail {
	enum mail_kind kind;
	int code; /* of a reply; or the session's state */
	uint64_t generation;
	struct slot *slot;
	struct instant received;
	struct zk_stat stat;
	enum body_kind body_kind;
	char *body; /* malloc'ed; NULL: none */
	size_t length; /* of data; the number of names */
	int64_t session;
	int timeout_ms;
};

enum phase {
	PHASE_WAITING, /* for open_at */
	PHASE_RESOLVING, /* for servers */
	PHASE_OPEN, /* a handle, connected or not */
	PHASE_OVER, /* lost, and conf.give_up */
};

struct zk {
	struct event_base *base;
	int session_ms, deadline_ms;
	bool give_up;
	zk_fn *fn;
	void *arg;

	struct mailbox *box;
	struct servers *servers;
	struct event *timer;
	mono_t armed; /* when it will fire; MONO_NEVER: it will not */

	enum phase phase;
	mono_t open_at; /* PHASE_WAITING */
	mono_t give_up_at; /* PHASE_OPEN and not connected */
	unsigned failures; /* handles in a row that never connected */
	bool said_down; /* one line an outage */
	struct handle *h;
	uint64_t generation;
	uint64_t last_op;
	bool connected;
	int64_t session; /* 0: none yet, or lost */
	int timeout_ms; /* of the session; asked, then granted */

	int depth; /* on_* functions on the stack; they may call zk_close */
	bool closed;
};

static mono_t
now_boot(void)
{
	struct instant now;

	sysclock_read(&now);
	return (now.boot);
}

/* ---- the client's threads ---- */

static void
post(struct handle *h, struct mail *m)
{
	bool posted = false;

	m->generation = h->generation;
	(void)pthread_mutex_lock(&h->lock);
	if (h->box != NULL)
		posted = mailbox_post(h->box, m);
	(void)pthread_mutex_unlock(&h->lock);
	if (!posted)
		free(m->body);
}

static void
copy_stat(struct mail *m, const struct Stat *stat)
{
	if (stat == NULL)
		return;
	m->stat.czxid = stat->czxid;
	m->stat.mzxid = stat->mzxid;
	m->stat.pzxid = stat->pzxid;
	m->stat.mtime_ms = stat->mtime;
	m->stat.ephemeral_owner = stat->ephemeralOwner;
	m->stat.version = stat->version;
	m->stat.cversion = stat->cversion;
	m->stat.num_children = stat->numChildren;
}

/* Text or data, and a NUL behind it. */
static void
copy_bytes(struct mail *m, const char *bytes, size_t n)
{
	m->body = malloc(n + 1);
	if (m->body == NULL) {
		m->code = ZSYSTEMERROR;
		return;
	}
	memcpy(m->body, bytes, n);
	m->body[n] = '\0';
	m->length = n;
}

static void
copy_names(struct mail *m, const struct String_vector *names)
{
	size_t n = (size_t)names->count, size = n * sizeof(char *);
	const char **list;
	char *text;

	for (size_t i = 0; i < n; i++)
		size += strlen(names->data[i]) + 1;
	m->body_kind = BODY_NAMES;
	m->body = malloc(size > 0 ? size : 1);
	if (m->body == NULL) {
		m->code = ZSYSTEMERROR;
		return;
	}
	m->length = n;
	list = (const char **)(void *)m->body;
	text = m->body + n * sizeof(char *);
	for (size_t i = 0; i < n; i++) {
		size_t length = strlen(names->data[i]) + 1;

		memcpy(text, names->data[i], length);
		list[i] = text;
		text += length;
	}
}

static void
begin_reply(struct mail *m, int rc, const void *data)
{
	memset(m, 0, sizeof(*m));
	sysclock_read(&m->received);
	m->kind = MAIL_REPLY;
	m->code = rc;
	/* The client hands back what commit() gave it, but const. */
	m->slot = (struct slot *)(uintptr_t)data;
}

static void
on_void(int rc, const void *data)
{
	struct mail m;

	begin_reply(&m, rc, data);
	post(m.slot->h, &m);
}

static void
on_string(int rc, const char *value, const void *data)
{
	(void)value;
	on_void(rc, data);
}

static void
on_stat(int rc, const struct Stat *stat, const void *data)
{
	struct mail m;

	begin_reply(&m, rc, data);
	copy_stat(&m, stat);
	post(m.slot->h, &m);
}

static void
on_created(int rc, const char *path, const struct Stat *stat, const void *data)
{
	struct mail m;

	begin_reply(&m, rc, data);
	copy_stat(&m, stat);
	if (rc == ZOK && path != NULL)
		copy_bytes(&m, path, strlen(path));
	post(m.slot->h, &m);
}

static void
on_data(int rc, const char *value, int length, const struct Stat *stat,
    const void *data)
{
	struct mail m;

	begin_reply(&m, rc, data);
	copy_stat(&m, stat);
	if (rc == ZOK && value != NULL && length > 0)
		copy_bytes(&m, value, (size_t)length);
	m.body_kind = BODY_DATA;
	post(m.slot->h, &m);
}

static void
on_names(int rc, const struct String_vector *names, const struct Stat *stat,
    const void *data)
{
	struct mail m;

	begin_reply(&m, rc, data);
	copy_stat(&m, stat);
	if (rc == ZOK && names != NULL && names->count > 0)
		copy_names(&m, names);
	post(m.slot->h, &m);
}

/* "1.2.3.4:2181" of the server at the other end. */
static void
copy_server(struct mail *m, zhandle_t *zh)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	char host[INET6_ADDRSTRLEN] = "?", text[INET6_ADDRSTRLEN + 16];
	const struct sockaddr_in *v4 = (const void *)&address;
	const struct sockaddr_in6 *v6 = (const void *)&address;

	if (zookeeper_get_connected_host(
		zh, (struct sockaddr *)&address, &length) == NULL)
		return;
	if (address.ss_family == AF_INET) {
		(void)inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
		(void)snprintf(text, sizeof(text), "%s:%u", host,
		    (unsigned)ntohs(v4->sin_port));
	} else {
		(void)inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
		(void)snprintf(text, sizeof(text), "[%s]:%u", host,
		    (unsigned)ntohs(v6->sin6_port));
	}
	copy_bytes(m, text, strlen(text));
}

/* Session events come here, and only here. */
static void
on_session(zhandle_t *zh, int type, int state, const char *path, void *context)
{
	struct mail m = { .kind = MAIL_SESSION, .code = state };

	(void)path;
	if (type != ZOO_SESSION_EVENT)
		return;
	if (state == ZOO_CONNECTED_STATE) {
		m.session = zoo_client_id(zh)->client_id;
		m.timeout_ms = zoo_recv_timeout(zh);
		copy_server(&m, zh);
		m.code = state;
	}
	post(context, &m);
}

/* Watches come here; so do copies of session events, which are passed over. */
static void
on_watch(zhandle_t *zh, int type, int state, const char *path, void *context)
{
	struct mail m = { .kind = MAIL_WATCH };

	(void)zh;
	(void)state;
	if (type == ZOO_SESSION_EVENT || type == ZOO_NOTWATCHING_EVENT ||
	    path == NULL)
		return;
	copy_bytes(&m, path, strlen(path));
	if (m.body != NULL)
		post(context, &m);
}

/*
 * The client tells each attempt of a reconnect, up to ten a second: one a
 * minute is for people, the rest for those who debug.
 */
static void
on_client_log(const char *message)
{
	static _Atomic int64_t next_ns;
	static atomic_ulong untold;
	int64_t now = now_boot().ns, due = next_ns;
	const char *text = strchr(message, '@');
	unsigned long skipped;

	/* "date:pid(thread):ZOO_ERROR@function@line: text" */
	text = text != NULL ? strstr(text, ": ") : NULL;
	text = text != NULL ? text + 2 : message;
	if (now < due || !atomic_compare_exchange_strong(&next_ns, &due,
			     now + CLIENT_LOG_EVERY_MS * NS_PER_MS)) {
		untold++;
		log_debug("zookeeper client: %s", text);
		return;
	}
	skipped = atomic_exchange(&untold, 0);
	if (skipped == 0)
		log_warnx("zookeeper client: %s", text);
	else
		log_warnx("zookeeper client: %s (and %lu lines since the last)",
		    text, skipped);
}

/* ---- closing, in threads of our own ---- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t less;
	int running;
} closers = { .lock = PTHREAD_MUTEX_INITIALIZER,
	.less = PTHREAD_COND_INITIALIZER };

static void *
run_closer(void *arg)
{
	struct handle *h = arg;

	(void)pthread_setname_np(pthread_self(), "firn-zk-close");
	/* Joins the client's threads: nothing calls into *h after it. */
	(void)zookeeper_close(h->zh);
	(void)pthread_mutex_destroy(&h->lock);
	free(h);
	(void)pthread_mutex_lock(&closers.lock);
	closers.running--;
	(void)pthread_cond_broadcast(&closers.less);
	(void)pthread_mutex_unlock(&closers.lock);
	return (NULL);
}

static void
close_handle(struct handle *h)
{
	int error;

	(void)pthread_mutex_lock(&h->lock);
	h->box = NULL;
	(void)pthread_mutex_unlock(&h->lock);
	(void)pthread_mutex_lock(&closers.lock);
	closers.running++;
	(void)pthread_mutex_unlock(&closers.lock);
	error = helper_thread_start(run_closer, h);
	if (error != 0) {
		errno = error;
		log_warn("zookeeper: no thread to close a handle; waiting");
		(void)run_closer(h);
	}
}

void
zk_wait_closed(int timeout_ms)
{
	struct timespec until;
	int64_t ns;

	if (clock_gettime(CLOCK_MONOTONIC, &until) == -1)
		return;
	ns = until.tv_nsec + (int64_t)timeout_ms * NS_PER_MS;
	until.tv_sec += (time_t)(ns / NS_PER_S);
	until.tv_nsec = (long)(ns % NS_PER_S);
	(void)pthread_mutex_lock(&closers.lock);
	while (closers.running > 0) {
		if (pthread_cond_clockwait(&closers.less, &closers.lock,
			CLOCK_MONOTONIC, &until) != 0)
			break;
	}
	(void)pthread_mutex_unlock(&closers.lock);
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

static void rearm(struct zk *z);

static void
leave(struct zk *z)
{
	if (--z->depth > 0)
		return;
	if (z->closed)
		destroy(z);
	else
		rearm(z);
}

/*
 * Only what the server itself said, and meant, is definite.  A server that
 * says SYSTEMERROR or MARSHALLINGERROR may have applied the write before.
 */
static enum zk_rc
rc_of(int code)
{
	switch (code) {
	case ZOK:
		return (ZK_OK);
	case ZNONODE:
		return (ZK_NONODE);
	case ZNODEEXISTS:
		return (ZK_NODEEXISTS);
	case ZBADVERSION:
		return (ZK_BADVERSION);
	case ZNOTEMPTY:
		return (ZK_NOTEMPTY);
	case ZNOAUTH:
		return (ZK_NOAUTH);
	case ZUNIMPLEMENTED:
	case ZBADARGUMENTS:
		return (ZK_REFUSED);
	case ZSESSIONEXPIRED:
	case ZSESSIONMOVED:
	case ZCLOSING:
	case ZNOTHING:
		return (ZK_UNKNOWN);
	default:
		return (code < ZAPIERROR ? ZK_REFUSED : ZK_UNKNOWN);
	}
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
		disconnect(z, ZCONNECTIONLOSS);
	if (z->closed)
		return;
	say_lost(z, cause);
	if (z->h != NULL)
		close_handle(z->h);
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
		disconnect(z, ZCONNECTIONLOSS);
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

static void
on_state(struct zk *z, const struct mail *m)
{
	if (m->code == ZOO_CONNECTED_STATE)
		on_connected(z, m);
	else if (m->code == ZOO_EXPIRED_SESSION_STATE)
		lose(z, "expired");
	else if (m->code == ZOO_AUTH_FAILED_STATE)
		lose(z, "authentication failed");
	else if (z->connected)
		disconnect(z, ZCONNECTIONLOSS);
}

/* ---- mail ---- */

static void
on_reply(struct zk *z, const struct mail *m)
{
	struct slot *s = m->slot;
	struct zk_event ev = { .kind = ZK_REPLY,
		.op = s->op,
		.rc = rc_of(m->code),
		.code = m->code,
		.stat = m->stat,
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
		case MAIL_SESSION:
			on_state(z, m);
			break;
		case MAIL_WATCH: {
			struct zk_event ev = { .kind = ZK_WATCH,
				.path = m->body };

			emit(z, &ev);
			break;
		}
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

static struct handle *
new_handle(struct zk *z)
{
	struct handle *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return (NULL);
	(void)pthread_mutex_init(&h->lock, NULL);
	TAILQ_INIT(&h->pending);
	TAILQ_INIT(&h->free);
	h->box = z->box;
	h->generation = ++z->generation;
	return (h);
}

static void *
wait_and_end(void *gate)
{
	(void)pthread_mutex_lock(gate);
	(void)pthread_mutex_unlock(gate);
	return (NULL);
}

/*
 * The client aborts the process if it cannot start its two threads (a full
 * pids.max, a stack too small for this program's thread-local storage), so
 * that is tried first.  Returns an errno.
 */
static int
try_threads(void)
{
	pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
	pthread_t threads[2];
	int error = 0, n = 0;

	(void)pthread_mutex_lock(&gate);
	while (n < 2 && error == 0) {
		error = pthread_create(&threads[n], NULL, wait_and_end, &gate);
		n += error == 0 ? 1 : 0;
	}
	(void)pthread_mutex_unlock(&gate);
	while (n > 0)
		(void)pthread_join(threads[--n], NULL);
	return (error);
}

/* Its threads have the default stack: megabytes, for copying a few bytes. */
static zhandle_t *
init_with_small_stacks(const char *connect, int session_ms, struct handle *h)
{
	pthread_attr_t before, small;
	zhandle_t *zh = NULL;
	int error;

	if (pthread_getattr_default_np(&before) != 0 ||
	    pthread_attr_init(&small) != 0)
		return (NULL);
	(void)pthread_attr_setstacksize(&small, CLIENT_STACK_BYTES);
	(void)pthread_setattr_default_np(&small);
	error = try_threads();
	if (error == EINVAL) {
		(void)pthread_setattr_default_np(&before);
		error = try_threads();
	}
	if (error == 0)
		zh = zookeeper_init2(connect, on_session, session_ms, NULL, h,
		    ZOO_NO_LOG_CLIENTENV, on_client_log);
	else
		errno = error;
	(void)pthread_setattr_default_np(&before);
	(void)pthread_attr_destroy(&before);
	(void)pthread_attr_destroy(&small);
	return (zh);
}

static zhandle_t *
init_client(const char *connect, int session_ms, struct handle *h)
{
	sigset_t all, mask;
	zhandle_t *zh;

	/* Its threads inherit the mask; its poll does not bear EINTR. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &mask);
	zh = init_with_small_stacks(connect, session_ms, h);
	(void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
	/* Or it would look its "names" up in every turn. */
	if (zh != NULL)
		(void)zoo_set_servers_resolution_delay(zh, -1);
	return (zh);
}

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
	h = new_handle(z);
	if (h != NULL)
		h->zh = init_client(connect, z->session_ms, h);
	if (h == NULL || h->zh == NULL) {
		log_warn("zookeeper: no handle for %s", connect);
		if (h != NULL)
			(void)pthread_mutex_destroy(&h->lock);
		free(h);
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

/* Makes sure that the timer fires by then; early is fine. */
static void
rearm(struct zk *z)
{
	mono_t when = next_wake(z), now, most;
	struct timeval tv;
	int64_t wait_us;

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
		reply_unknown(z, s, ZOPERATIONTIMEOUT);
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
	zoo_set_debug_level(ZOO_LOG_LEVEL_WARN);
	zoo_deterministic_conn_order(1);
	z = calloc(1, sizeof(*z));
	if (z == NULL)
		return (NULL);
	z->base = base;
	z->session_ms = z->timeout_ms = conf->session_ms;
	z->deadline_ms = conf->deadline_ms;
	z->give_up = conf->give_up;
	z->fn = fn;
	z->arg = arg;
	z->armed = MONO_NEVER;
	z->phase = PHASE_WAITING;
	z->open_at = now_boot();
	if (!open_parts(z, &hosts)) {
		zk_close(z);
		return (NULL);
	}
	rearm(z); /* fires in the loop: no callback before this returns */
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
		close_handle(z->h);
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

/* ---- operations ---- */

/* The client's own rules, and a length: it is not to be trusted with more. */
static bool
path_is_good(const char *path)
{
	size_t n = strlen(path);

	if (path[0] != '/' || n > PATH_MAX_BYTES)
		return (false);
	if (n > 1 && path[n - 1] == '/')
		return (false);
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)path[i];

		if (c < 0x20 || c == 0x7f || (c == '/' && path[i + 1] == '/'))
			return (false);
	}
	return (strstr(path, "/./") == NULL && strstr(path, "/../") == NULL);
}

/* The slot of a new operation, its clocks read; NULL: not now. */
static struct slot *
begin(struct zk *z, const char *path)
{
	struct handle *h = z->h;
	struct slot *s;

	if (z->closed || !z->connected || !path_is_good(path) ||
	    zoo_state(h->zh) != ZOO_CONNECTED_STATE)
		return (NULL);
	s = TAILQ_FIRST(&h->free);
	if (s != NULL) {
		TAILQ_REMOVE(&h->free, s, entry);
	} else if (h->used < OPS_MAX) {
		s = &h->slots[h->used++];
	} else {
		log_debug(
		    "zookeeper: %d operations under way, no more", OPS_MAX);
		return (NULL);
	}
	s->h = h;
	s->op = z->last_op + 1;
	s->pending = false;
	sysclock_read(&s->sent);
	s->deadline = mono_add_ms(s->sent.boot, z->deadline_ms);
	return (s);
}

static uint64_t
commit(struct zk *z, struct slot *s, int rc)
{
	if (rc == ZOK) {
		z->last_op = s->op;
		s->pending = true;
		TAILQ_INSERT_TAIL(&s->h->pending, s, entry);
		rearm(z);
		return (s->op);
	}
	log_debug("zookeeper: operation not submitted: %s", zerror(rc));
	/* After any other error the client may still call back for it. */
	if (rc == ZBADARGUMENTS || rc == ZINVALIDSTATE)
		TAILQ_INSERT_HEAD(&s->h->free, s, entry);
	return (0);
}

uint64_t
zk_get(struct zk *z, const char *path, bool watch)
{
	struct slot *s = begin(z, path);

	if (s == NULL)
		return (0);
	return (commit(z, s,
	    zoo_awget(
		s->h->zh, path, watch ? on_watch : NULL, s->h, on_data, s)));
}

uint64_t
zk_exists(struct zk *z, const char *path, bool watch)
{
	struct slot *s = begin(z, path);

	if (s == NULL)
		return (0);
	return (commit(z, s,
	    zoo_awexists(
		s->h->zh, path, watch ? on_watch : NULL, s->h, on_stat, s)));
}

uint64_t
zk_list(struct zk *z, const char *path)
{
	struct slot *s = begin(z, path);

	if (s == NULL)
		return (0);
	return (
	    commit(z, s, zoo_aget_children2(s->h->zh, path, 0, on_names, s)));
}

uint64_t
zk_sync(struct zk *z, const char *path)
{
	struct slot *s = begin(z, path);

	if (s == NULL)
		return (0);
	return (commit(z, s, zoo_async(s->h->zh, path, on_string, s)));
}

uint64_t
zk_set(
    struct zk *z, const char *path, const char *data, size_t n, int32_t version)
{
	struct slot *s;

	assert(version >= 0); /* -1 would write blindly */
	s = n <= DATA_MAX_BYTES ? begin(z, path) : NULL;
	if (s == NULL)
		return (0);
	return (commit(
	    z, s, zoo_aset(s->h->zh, path, data, (int)n, version, on_stat, s)));
}

uint64_t
zk_create(struct zk *z, const char *path, const char *data, size_t n,
    bool ephemeral_sequential)
{
	int mode =
	    ephemeral_sequential ? ZOO_EPHEMERAL_SEQUENTIAL : ZOO_PERSISTENT;
	struct slot *s = n <= DATA_MAX_BYTES ? begin(z, path) : NULL;

	if (s == NULL)
		return (0);
	return (commit(z, s,
	    zoo_acreate2(s->h->zh, path, data, (int)n, &ZOO_OPEN_ACL_UNSAFE,
		mode, on_created, s)));
}

uint64_t
zk_delete(struct zk *z, const char *path, int32_t version)
{
	struct slot *s = begin(z, path);

	if (s == NULL)
		return (0);
	return (commit(z, s, zoo_adelete(s->h->zh, path, version, on_void, s)));
}
