/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree - a realm as it stands in ZooKeeper, for the commands realm and fleet.
 *
 * Functions that return an exit status have said the line, unless it is
 * CMD_DONE.  A write in doubt is read back: what is called done stands there.
 */
#ifndef TREE_H
#define TREE_H

#include "cmd.h"
#include "mark.h"
#include "realm.h"
#include "records.h"
#include "zkcall.h"

#define TREE_PATH_MAX 256

/* Longest way of a write to its place, for those who reckon with live agents */
#define TREE_LATE_MS 2500

/* Options that all of them have. */
struct tree_options {
	const char *zk;
	const char *realm;
	const char *auth_file;
	int64_t timeout_ms; /* of the whole command; 10000 */
};

#define TREE_TIMEOUT_MS 10000
#define TREE_OPTIONS(type)                                                 \
	{ "zk", 0, CMD_TEXT, offsetof(type, tree.zk), "HOSTS",             \
		"HOST:PORT,...[/CHROOT]; default $FIRN_ZK, else\n"         \
		"127.0.0.1:2181",                                          \
		0, 0 },                                                    \
	    { "realm", 0, CMD_TEXT, offsetof(type, tree.realm), "NAME",    \
		    "default $FIRN_REALM, else \"default\"", 0, 0 },       \
	    { "auth-file", 0, CMD_TEXT, offsetof(type, tree.auth_file),    \
		    "FILE",                                                \
		    "user:password for ZooKeeper; default\n"               \
		    "$FIRN_AUTH_FILE, else none",                          \
		    0, 0 },                                                \
	{                                                                  \
		"timeout", 0, CMD_NUMBER, offsetof(type, tree.timeout_ms), \
		    "MS", "for everything; default 10000", 1,              \
		    CMD_TIMEOUT_MS_MAX                                     \
	}

struct tree {
	const char *command; /* for the lines */
	const char *hosts;
	const char *realm;
	const char *auth_file; /* NULL: none */
	struct zkcall *z;
};

enum tree_state {
	TREE_MISSING, /* no such node */
	TREE_HALF, /* a creation that did not come to its end */
	TREE_GARBLED, /* its data makes no sense: words in `why` */
	TREE_TOO_NEW, /* written by a later program */
	TREE_GOOD,
};

struct tree_realm {
	enum tree_state state;
	struct contract k; /* if good */
	int32_t version;
	char why[DOC_ERROR_MAX];
};

/* Checks the options and starts connecting. */
FIRN_CHECK_RESULT int tree_open(
    struct tree *t, const char *command, const struct tree_options *o);
void tree_close(struct tree *t);

/* Says that something of ZooKeeper's failed, and gives the exit status. */
FIRN_CHECK_RESULT int tree_fail(
    const struct tree *t, const char *path, const struct zkcall_reply *r);

FIRN_CHECK_RESULT int tree_read(const struct tree *t, struct tree_realm *out);

/* As above, but anything other than a good realm is an error. */
FIRN_CHECK_RESULT int tree_read_good(
    const struct tree *t, struct tree_realm *out);

/* "/firn/REALM/workers.G", "/firn/REALM/marks.G/0017" */
void tree_parent_path(const struct tree *t, const struct contract *k,
    const char *what, char path[TREE_PATH_MAX]);
void tree_mark_path(const struct tree *t, const struct contract *k,
    uint64_t worker, char path[TREE_PATH_MAX]);

/*
 * Nodes made from now on have access lists as the realm's own node has: closed
 * in a closed realm.
 */
FIRN_CHECK_RESULT int tree_follow_acl(const struct tree *t);

/*
 * Closes the realm's nodes, or opens them: realm_acl.c.  *done counts them.
 * Goes on after one that is refused; each is named.
 */
FIRN_CHECK_RESULT int tree_set_acl(
    const struct tree *t, bool closed, size_t *done);

/*
 * Makes /firn, always open, and the realm's node, which is empty if it is new.
 * With `closed` it is, and what is made after it.
 */
FIRN_CHECK_RESULT int tree_make_root(const struct tree *t, bool closed);

/*
 * Makes the parents of claims and marks for a new generation, and the node of
 * the fleet's summary.  *now_ms is
 * then the present by the later of two clocks, one's own and ZooKeeper's.
 */
FIRN_CHECK_RESULT int tree_make_parents(
    const struct tree *t, const struct contract *k, int64_t *now_ms);

/*
 * Writes the contract if the node still has that version.  *late_ms: how long
 * after `now_ms` ZooKeeper did it.  CMD_AGAIN if somebody else wrote.
 */
FIRN_CHECK_RESULT int tree_write(const struct tree *t, const struct contract *k,
    int32_t version, int64_t now_ms, int64_t *late_ms);

/*
 * The highest ceiling of all marks of k's generation, as Unix ms of its tick
 * (0: there are none).  Marks that make no sense are named on standard error.
 */
FIRN_CHECK_RESULT int tree_highest_mark(
    const struct tree *t, const struct contract *k, int64_t *unix_ms);

#endif
