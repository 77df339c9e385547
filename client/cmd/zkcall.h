/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zkcall - ZooKeeper for commands: one call, one answer, by one deadline.
 *
 * Reads are tried again over lost connections until the deadline.  A write is
 * sent once: ZK_UNKNOWN says that it may have been done, and the caller looks.
 */
#ifndef ZKCALL_H
#define ZKCALL_H

#include "firn.h"
#include "zk.h"

struct zkcall;

struct zkcall_reply {
	enum zk_rc rc;
	int code; /* the client's own number */
	struct zk_stat stat;
	bool open_to_all; /* of an access list */
	char *data; /* of a get; a NUL follows; never NULL if ZK_OK */
	size_t length; /* above DOC_SIZE_MAX: data is empty all the same */
	char **names; /* of a list */
	size_t nnames;
};

/*
 * Starts connecting.  hosts has passed zk_check_hosts(), auth_file (NULL:
 * none) authfile_read().  NULL: out of memory or descriptors.
 */
struct zkcall *zkcall_open(const char *hosts, const char *auth_file,
    const char *tls, int64_t timeout_ms);

/* Nodes made from now on are closed, or open: see zk.h. */
void zkcall_make_closed(struct zkcall *z, bool closed);

/* Says goodbye to the server, if that can be done quickly. */
void zkcall_close(struct zkcall *z);

/* Was there ever a connection?  For the words of a failure. */
bool zkcall_connected_once(const struct zkcall *z);
bool zkcall_session_lost(const struct zkcall *z);

/* Milliseconds until the deadline, 0 when it has passed. */
int64_t zkcall_left_ms(const struct zkcall *z);

/*
 * Each fills in *r (release with zkcall_reply_free()) and returns r->rc.
 * ZK_UNKNOWN from a read: no answer by the deadline, or the session is lost.
 * Get and list see whatever anyone had written before they were called.
 */
FIRN_CHECK_RESULT enum zk_rc zkcall_get(
    struct zkcall *z, const char *path, struct zkcall_reply *r);
FIRN_CHECK_RESULT enum zk_rc zkcall_get_acl(
    struct zkcall *z, const char *path, struct zkcall_reply *r);
FIRN_CHECK_RESULT enum zk_rc zkcall_list(
    struct zkcall *z, const char *path, struct zkcall_reply *r);
FIRN_CHECK_RESULT enum zk_rc zkcall_create(struct zkcall *z, const char *path,
    const char *data, size_t n, struct zkcall_reply *r);
FIRN_CHECK_RESULT enum zk_rc zkcall_set(struct zkcall *z, const char *path,
    const char *data, size_t n, int32_t version, struct zkcall_reply *r);

/*
 * Gets many nodes, some at a time.  path() writes the i-th path; got() is told
 * each answer, in any order, and owns nothing of it.  ZK_UNKNOWN if the
 * deadline passes before the last, else ZK_OK.
 */
FIRN_CHECK_RESULT enum zk_rc zkcall_get_many(struct zkcall *z, size_t n,
    void (*path)(void *arg, size_t i, char *buf, size_t size),
    void (*got)(void *arg, size_t i, const struct zkcall_reply *r), void *arg);

/* As above; each node gets the access list of a closed one, or an open one. */
FIRN_CHECK_RESULT enum zk_rc zkcall_set_acl_many(struct zkcall *z, bool closed,
    size_t n, void (*path)(void *arg, size_t i, char *buf, size_t size),
    void (*got)(void *arg, size_t i, const struct zkcall_reply *r), void *arg);

void zkcall_reply_free(struct zkcall_reply *r);

#endif
