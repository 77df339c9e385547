/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zk - the only user of ZooKeeper's C client.
 *
 * The client runs two threads a handle.  What they call here (the functions
 * under "the client's threads") copies plain values into the mailbox and does
 * nothing else; the rest of the file is the loop's thread.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#ifdef HAVE_ZOOKEEPER_INIT_SSL
#define HAVE_OPENSSL_H 1 /* or its header does not declare it */
#endif
#include <zookeeper/zookeeper.h>

#include "authfile.h"
#include "doc.h"
#include "log.h"
#include "mailbox.h"
#include "resolve.h"
#include "session.h"
#include "sysclock.h"
#include "zk.h"

#define PATH_MAX_BYTES 1000
#define DATA_MAX_BYTES (512 * 1024) /* the server takes one megabyte */
#define LARGE_BYTES (128 * 1024)
#define CLIENT_STACK_BYTES (256 * 1024)
#define CLIENT_LINES_MAX 10 /* a second, before it has to wait */
#define CLIENT_PAUSE_MS 100
#define CLIENT_LOG_EVERY_MS 60000

_Static_assert(CODE_LOST == ZCONNECTIONLOSS && CODE_LATE == ZOPERATIONTIMEOUT,
    "the client's numbers");

/* ---- the client's threads ---- */

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

static void
post(struct handle *h, struct mail *m)
{
	bool posted = false;

	m->generation = h->generation;
	m->rc = rc_of(m->code);
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
	m->stat.data_length = stat->dataLength;
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
	if (rc == ZOK && value != NULL && length > 0) {
		if (length <= DOC_SIZE_MAX)
			copy_bytes(&m, value, (size_t)length);
		m.length = (size_t)length;
	}
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

/* Any right but reading, given to everybody. */
static void
on_acl(int rc, struct ACL_vector *acl, struct Stat *stat, const void *data)
{
	struct mail m;

	begin_reply(&m, rc, data);
	copy_stat(&m, stat);
	for (int i = 0; rc == ZOK && acl != NULL && i < acl->count; i++)
		if (strcmp(acl->data[i].id.scheme, "world") == 0 &&
		    (acl->data[i].perms & ~ZOO_PERM_READ) != 0)
			m.open_to_all = true;
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
	struct mail m = { .kind = MAIL_AWAY };

	(void)path;
	if (type != ZOO_SESSION_EVENT)
		return;
	if (state == ZOO_CONNECTED_STATE) {
		m.kind = MAIL_CONNECTED;
		m.session = zoo_client_id(zh)->client_id;
		m.timeout_ms = zoo_recv_timeout(zh);
		copy_server(&m, zh);
	} else if (state == ZOO_EXPIRED_SESSION_STATE) {
		m.kind = MAIL_EXPIRED;
	} else if (state == ZOO_AUTH_FAILED_STATE) {
		m.kind = MAIL_AUTH_FAILED;
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
 * With several addresses that refuse, the client tries them without a pause:
 * tens of thousands of attempts a second.  It tells each, from the thread that
 * makes them: there, more than a few a second have to wait.
 */
static void
slow_down(const struct instant *now)
{
	static _Thread_local int64_t second;
	static _Thread_local unsigned told;
	const struct timespec pause = { 0, CLIENT_PAUSE_MS * NS_PER_MS };

	if (now->boot.ns / NS_PER_S != second) {
		second = now->boot.ns / NS_PER_S;
		told = 0;
	}
	if (++told > CLIENT_LINES_MAX)
		(void)nanosleep(&pause, NULL);
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
	struct instant now;
	int64_t due = next_ns;
	const char *text = strchr(message, '@');
	unsigned long skipped;
	int length;

	/* "date:pid(thread):ZOO_ERROR@function@line: text" */
	text = text != NULL ? strstr(text, ": ") : NULL;
	text = text != NULL ? text + 2 : message;
	length = (int)strcspn(text, "\n");
	sysclock_read(&now);
	slow_down(&now);
	if (now.boot.ns < due ||
	    !atomic_compare_exchange_strong(&next_ns, &due,
		now.boot.ns + CLIENT_LOG_EVERY_MS * NS_PER_MS)) {
		untold++;
		log_debug("zookeeper client: %.*s", length, text);
		return;
	}
	skipped = atomic_exchange(&untold, 0);
	if (skipped == 0)
		log_warnx("zookeeper client: %.*s", length, text);
	else
		log_warnx(
		    "zookeeper client: %.*s (and %lu lines since the last)",
		    length, text, skipped);
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

void
handle_close(struct handle *h)
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

/* ---- opening ---- */

static struct handle *
new_handle(struct mailbox *box, uint64_t generation)
{
	struct handle *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return (NULL);
	(void)pthread_mutex_init(&h->lock, NULL);
	TAILQ_INIT(&h->pending);
	TAILQ_INIT(&h->free);
	h->box = box;
	h->generation = generation;
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

/* Over TLS or not at all if that is asked for; NULL with errno set. */
static zhandle_t *
init_plain_or_tls(
    const char *connect, const char *tls, int session_ms, struct handle *h)
{
#ifdef HAVE_ZOOKEEPER_INIT_SSL
	zhandle_t *zh;

	if (tls != NULL) {
		zh = zookeeper_init_ssl(connect, tls, on_session, session_ms,
		    NULL, h, ZOO_NO_LOG_CLIENTENV);
		if (zh != NULL)
			zoo_set_log_callback(zh, on_client_log);
		return (zh);
	}
#else
	if (tls != NULL) {
		errno = ENOTSUP;
		return (NULL);
	}
#endif
	return (zookeeper_init2(connect, on_session, session_ms, NULL, h,
	    ZOO_NO_LOG_CLIENTENV, on_client_log));
}

/* Its threads have the default stack: megabytes, for copying a few bytes. */
static zhandle_t *
init_with_small_stacks(
    const char *connect, const char *tls, int session_ms, struct handle *h)
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
		zh = init_plain_or_tls(connect, tls, session_ms, h);
	else
		errno = error;
	(void)pthread_setattr_default_np(&before);
	(void)pthread_attr_destroy(&before);
	(void)pthread_attr_destroy(&small);
	return (zh);
}

static zhandle_t *
init_client(
    const char *connect, const char *tls, int session_ms, struct handle *h)
{
	sigset_t all, mask;
	zhandle_t *zh;

	/* Its threads inherit the mask; its poll does not bear EINTR. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &mask);
	zh = init_with_small_stacks(connect, tls, session_ms, h);
	(void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
	/* Or it would look its "names" up in every turn. */
	if (zh != NULL)
		(void)zoo_set_servers_resolution_delay(zh, -1);
	return (zh);
}

/*
 * The client sends it first on each connection of the handle.  Also with a
 * wrong password: then it is somebody else whom nodes do not know.
 */
static bool
add_auth(struct handle *h, const struct authfile *auth)
{
	return (zoo_add_auth(h->zh, "digest", auth->text, (int)auth->length,
		    NULL, NULL) == ZOK);
}

/* Without the auth that is asked for there is no session either. */
static bool
connect_handle(struct handle *h, const char *connect, int session_ms,
    const char *auth_file, const char *tls)
{
	struct authfile auth = { .length = 0 };
	struct doc_error err;
	bool good;

	if (auth_file != NULL && authfile_read(auth_file, &auth, &err) != 0) {
		log_warnx("zookeeper: %s", err.text);
		return (false);
	}
	h->zh = init_client(connect, tls, session_ms, h);
	if (h->zh == NULL)
		log_warn("zookeeper: no handle for %s", connect);
	good = h->zh != NULL && (auth_file == NULL || add_auth(h, &auth));
	if (h->zh != NULL && !good) {
		log_warnx("zookeeper: the client does not take the auth");
		(void)zookeeper_close(h->zh);
	}
	authfile_wipe(&auth);
	return (good);
}

struct handle *
handle_open(const char *connect, int session_ms, const char *auth_file,
    const char *tls, struct mailbox *box, uint64_t generation)
{
	struct handle *h = new_handle(box, generation);

	if (h == NULL) {
		log_warn("zookeeper: no handle for %s", connect);
		return (NULL);
	}
	/* So that a reply of megabytes goes back to the system when freed,
	 * instead of setting a new measure for what is kept. */
	(void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
	zoo_set_debug_level(ZOO_LOG_LEVEL_WARN);
	zoo_deterministic_conn_order(1); /* servers.c has shuffled */
	if (connect_handle(h, connect, session_ms, auth_file, tls))
		return (h);
	(void)pthread_mutex_destroy(&h->lock);
	free(h);
	return (NULL);
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
		session_rearm(z);
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

/* What closed nodes have; "auth" stands for whom the session's auth names. */
static void
closed_acl(struct ACL acl[2], struct ACL_vector *out)
{
	acl[0] = (struct ACL){ ZOO_PERM_READ, ZOO_ANYONE_ID_UNSAFE };
	acl[1] = (struct ACL){ ZOO_PERM_ALL, ZOO_AUTH_IDS };
	*out = (struct ACL_vector){ 2, acl };
}

void
zk_make_closed(struct zk *z, bool closed)
{
	z->make_closed = closed;
}

uint64_t
zk_get_acl(struct zk *z, const char *path)
{
	struct slot *s = begin(z, path);

	if (s == NULL)
		return (0);
	return (commit(z, s, zoo_aget_acl(s->h->zh, path, on_acl, s)));
}

/* Whatever it was: both lists are whole, and the last word holds. */
uint64_t
zk_set_acl(struct zk *z, const char *path, bool closed)
{
	struct slot *s = begin(z, path);
	struct ACL_vector list = ZOO_OPEN_ACL_UNSAFE;
	struct ACL acl[2];

	if (s == NULL)
		return (0);
	if (closed)
		closed_acl(acl, &list);
	return (
	    commit(z, s, zoo_aset_acl(s->h->zh, path, -1, &list, on_void, s)));
}

uint64_t
zk_create(struct zk *z, const char *path, const char *data, size_t n,
    bool ephemeral_sequential)
{
	int mode =
	    ephemeral_sequential ? ZOO_EPHEMERAL_SEQUENTIAL : ZOO_PERSISTENT;
	struct slot *s = n <= DATA_MAX_BYTES ? begin(z, path) : NULL;
	struct ACL_vector list = ZOO_OPEN_ACL_UNSAFE;
	struct ACL acl[2];

	if (s == NULL)
		return (0);
	if (z->make_closed)
		closed_acl(acl, &list);
	return (commit(z, s,
	    zoo_acreate2(
		s->h->zh, path, data, (int)n, &list, mode, on_created, s)));
}

uint64_t
zk_delete(struct zk *z, const char *path, int32_t version)
{
	struct slot *s = begin(z, path);

	if (s == NULL)
		return (0);
	return (commit(z, s, zoo_adelete(s->h->zh, path, version, on_void, s)));
}
