/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session - the inside of zk, in two halves.  zk.c touches the client: its
 * handles, its callbacks, the operations.  session.c decides which handle is
 * the one, by mail and by time, and tells the owner; it knows nothing of
 * ZooKeeper's header.
 *
 * Invariants: an operation is in its handle's pending list from its acceptance
 * to its one ZK_REPLY.  The list is empty unless connected.  A slot is used
 * again only after the client's completion for it has come, which it may never
 * do; slots live as long as their handle.
 */
#ifndef SESSION_H
#define SESSION_H

#include <pthread.h>
#include <sys/queue.h>

#include "types.h"
#include "zk.h"

struct mailbox;

#define OPS_MAX 4096 /* in the client's hands, of one handle */
#define CODE_LOST (-4) /* the client's numbers for "connection lost" … */
#define CODE_LATE (-7) /* … and "too late" */

struct handle;

/* One operation in the client's hands. */
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
	struct _zhandle *zh; /* the client's zhandle_t */
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

enum mail_kind {
	MAIL_CONNECTED, /* .session, .timeout_ms; .body: to which server */
	MAIL_AWAY, /* the connection; the client looks for another */
	MAIL_EXPIRED, /* the session; the handle is dead */
	MAIL_AUTH_FAILED, /* so is it here */
	MAIL_WATCH, /* .body: the path */
	MAIL_REPLY,
};

struct mail {
	enum mail_kind kind;
	enum zk_rc rc;
	int code;
	uint64_t generation;
	struct slot *slot;
	struct instant received;
	struct zk_stat stat;
	enum body_kind body_kind;
	bool open_to_all;
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
	const char *auth_file, *tls; /* or NULL */
	bool make_closed; /* nodes */
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

/*
 * zk.c: a handle that connects; what it hears goes to the mailbox.  NULL with
 * the line said.
 */
struct handle *handle_open(const char *connect, int session_ms,
    const char *auth_file, const char *tls, struct mailbox *box,
    uint64_t generation);

/* zk.c: no mail comes after this; the rest is done in a thread. */
void handle_close(struct handle *h);

/* session.c: something new has a deadline. */
void session_rearm(struct zk *z);

#endif
