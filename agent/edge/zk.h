/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zk - the only user of ZooKeeper's C client.  Operations are asynchronous;
 * everything is told through one callback on the loop's thread.
 *
 * Invariant: every operation that was accepted gets exactly one ZK_REPLY: the
 * server's, or ZK_UNKNOWN at its own deadline, at a disconnect, or when its
 * handle is given up.  A late reply after that is dropped.
 */
#ifndef ZK_H
#define ZK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;
struct zk;

enum zk_rc {
	ZK_OK,
	ZK_NONODE,
	ZK_NODEEXISTS,
	ZK_BADVERSION,
	ZK_NOTEMPTY,
	ZK_NOAUTH,
	ZK_REFUSED, /* definitely not done, for another reason: .code */
	ZK_UNKNOWN, /* may or may not have been done: -4, -7, -2, -116, none */
};

struct zk_stat {
	int64_t czxid, mzxid, pzxid;
	int64_t mtime_ms;
	int64_t ephemeral_owner;
	int32_t version, cversion, num_children;
	int32_t data_length; /* bytes */
};

enum zk_event_kind {
	ZK_CONNECTED, /* .session, .timeout_ms; the same session or a new one */
	ZK_DISCONNECTED, /* nothing can be submitted now; the session may live */
	ZK_SESSION_LOST, /* expired, replaced, or given up after three timeouts */
	ZK_WATCH, /* .path changed, appeared or went away: look again */
	ZK_REPLY, /* to operation .op */
};

struct zk_event {
	enum zk_event_kind kind;
	uint64_t op;
	enum zk_rc rc;
	int code; /* the client's own number, for the log */
	struct zk_stat stat;
	const char *path; /* ZK_WATCH; ZK_REPLY of a create: the node's path */
	/* Of a get: not NUL-terminated; NULL if empty, or if larger than any
	 * document of ours: then only its length is told. */
	const char *data;
	size_t length;
	const char *const *names; /* of a list */
	size_t nnames;
	bool open_to_all; /* of an access list: who likes may write */
	int64_t session;
	int timeout_ms;
	/* CLOCK_BOOTTIME and CLOCK_REALTIME readings around the operation, for
	 * the offset of the clock: sent just before submission, received in
	 * the client's thread. */
	int64_t sent_boot_ns, received_boot_ns;
	int64_t sent_wall_ns, received_wall_ns;
};

typedef void zk_fn(void *arg, const struct zk_event *ev);

struct zk_conf {
	const char *hosts; /* "a:2181,[::1]:2181,name/chroot" */
	int session_ms; /* asked of the server; 10000 */
	int deadline_ms; /* of one operation; 2500 */
	/* Of each session: see authfile.h; read anew for each handle.  NULL or
	 * "": none.  It has to outlive the zk. */
	const char *auth_file;
	/* "CA,CERT,KEY", files; NULL or "": in clear.  Outlives the zk, too. */
	const char *tls;
	bool make_closed; /* nodes: see zk_make_closed() */
	bool give_up; /* commands: tell ZK_SESSION_LOST once, also if no name
	               * resolves, and open no other handle */
};

/*
 * The order of what is told: CONNECTED, replies and watches, DISCONNECTED,
 * then a ZK_UNKNOWN for each operation still open, then perhaps SESSION_LOST;
 * always in this order, whatever the cause.  So nothing is open while not
 * connected, and the callback that hears DISCONNECTED may forget nothing yet.
 * A reply that came while the loop was held up counts, also past its deadline.
 * SESSION_LOST without a session before it: no server was reached.  Watches go
 * with the handle; after SESSION_LOST they are set anew.  The callback may
 * submit operations and may call zk_close.
 *
 * Of a ZK_UNKNOWN that did not come from the client the received_ times are 0.
 */

/*
 * Splits and checks a connect string: hosts with or without port, IPv4, IPv6
 * in brackets, one chroot at the end.  NULL if it is good, else what is wrong
 * (static text) with *where.
 */
const char *zk_check_hosts(const char *hosts, size_t *where);

/*
 * Starts connecting; returns at once.  Names are resolved off the loop, again
 * for each new handle; hosts may be unresolvable or down for as long as they
 * like.  NULL: out of memory or descriptors.
 */
struct zk *zk_open(
    struct event_base *base, const struct zk_conf *conf, zk_fn *fn, void *arg);

/*
 * Gives the handle up without waiting: it is closed off the loop.  With
 * `linger_ms` > 0 the process-wide zk_wait_closed() may be called at exit so
 * that the server hears of the close and drops the ephemeral nodes at once.
 * No callback comes after this.
 */
void zk_close(struct zk *z);

/* Blocks until handles closed before are gone, at most so long. Exit only. */
void zk_wait_closed(int timeout_ms);

bool zk_connected(const struct zk *z);

/*
 * Operations.  Paths are absolute below the chroot.  Each returns the
 * operation's number (> 0), or 0 if it was not submitted (not connected, 4096
 * under way, a path that cannot be, or refused by the client): then no reply
 * comes and nothing was done.  Data: at most 512 KiB.
 */
uint64_t zk_get(struct zk *z, const char *path, bool watch);
uint64_t zk_exists(struct zk *z, const char *path, bool watch);
uint64_t zk_list(struct zk *z, const char *path); /* names and stat */
uint64_t zk_sync(struct zk *z, const char *path);
uint64_t zk_set(struct zk *z, const char *path, const char *data, size_t n,
    int32_t version); /* version >= 0 is asserted */
uint64_t zk_create(struct zk *z, const char *path, const char *data, size_t n,
    bool ephemeral_sequential);
uint64_t zk_delete(struct zk *z, const char *path, int32_t version);

/*
 * Access lists.  An open node is everybody's; a closed one can be read by
 * everybody, and all else with it is for those whom the session's auth names.
 */
void zk_make_closed(struct zk *z, bool closed); /* nodes made from now on */
uint64_t zk_get_acl(struct zk *z, const char *path); /* .open_to_all */
uint64_t zk_set_acl(struct zk *z, const char *path, bool closed);

#endif
