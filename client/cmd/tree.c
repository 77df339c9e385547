/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree - a realm as it stands in ZooKeeper.
 *
 * Invariant: an agent never sees a contract whose parents are not there: the
 * realm's node is empty until they are, and a generation is never used twice.
 */
#include <inttypes.h>
#include <string.h>

#include "authfile.h"
#include "layout.h"
#include "tree.h"

/* ---- open, close, failures ---- */

/* What the file holds is read again when the client connects. */
static int
open_auth(struct tree *t)
{
	struct doc_error err;
	int rc;

	if (t->auth_file[0] == '\0') {
		t->auth_file = NULL;
		return (CMD_DONE);
	}
	rc = authfile_check(t->auth_file, &err);
	if (rc == 0)
		return (CMD_DONE);
	return (cmd_fail(rc, t->command, "%s", err.text));
}

int
tree_open(struct tree *t, const char *command, const struct tree_options *o)
{
	const char *wrong;
	size_t where = 0;

	*t = (struct tree){
		.command = command,
		.hosts = o->zk != NULL ? o->zk
				       : cmd_env("FIRN_ZK", "127.0.0.1:2181"),
		.realm = o->realm != NULL ? o->realm
					  : cmd_env("FIRN_REALM", "default"),
		.auth_file = o->auth_file != NULL
				 ? o->auth_file
				 : cmd_env("FIRN_AUTH_FILE", ""),
	};
	int rc;

#ifndef HAVE_ZOOKEEPER_INIT_SSL
	if (cmd_env("FIRN_ZK_TLS", "")[0] != '\0')
		return (cmd_fail(CMD_USAGE, command,
		    "FIRN_ZK_TLS: this ZooKeeper client has no TLS: use "
		    "stunnel, see TLS in firnd(8)"));
#endif
	wrong = zk_check_hosts(t->hosts, &where);
	if (wrong != NULL)
		return (cmd_fail(CMD_USAGE, command,
		    "ZooKeeper's address \"%s\": %s (character %zu)", t->hosts,
		    wrong, where + 1));
	if (!realm_name_valid(t->realm))
		return (cmd_fail(CMD_USAGE, command,
		    "realm \"%s\": a name is 1 to 63 of A-Z a-z 0-9 . _ - "
		    "and neither . nor ..",
		    t->realm));
	rc = open_auth(t);
	if (rc != CMD_DONE)
		return (rc);
	t->z = zkcall_open(
	    t->hosts, t->auth_file, cmd_env("FIRN_ZK_TLS", ""), o->timeout_ms);
	if (t->z == NULL)
		return (cmd_fail(
		    CMD_FAILED, command, "out of memory or descriptors"));
	return (CMD_DONE);
}

void
tree_close(struct tree *t)
{
	zkcall_close(t->z);
	t->z = NULL;
}

static const char *
unknown_why(const struct tree *t)
{
	if (!zkcall_connected_once(t->z))
		return (zkcall_session_lost(t->z)
			    ? "cannot resolve its name, or nobody answers there"
			    : "no connection in time");
	if (zkcall_session_lost(t->z))
		return ("the session was lost");
	return ("no answer in time; a write may or may not have been done: "
		"run it again");
}

static int
fail_chroot(const struct tree *t)
{
	return (cmd_fail(CMD_UNFIT, t->command,
	    "ZooKeeper at %s: the chroot does not exist: make it first, see "
	    "firn(1)",
	    t->hosts));
}

int
tree_fail(const struct tree *t, const char *path, const struct zkcall_reply *r)
{
	switch (r->rc) {
	case ZK_OK:
		return (CMD_DONE);
	case ZK_NOAUTH:
		return (cmd_fail(CMD_DENIED, t->command,
		    "ZooKeeper at %s: %s: not allowed (its access list)%s",
		    t->hosts, path,
		    t->auth_file == NULL ? ": see --auth-file"
					 : ", not with this auth_file"));
	case ZK_NONODE:
		return (cmd_fail(CMD_UNFIT, t->command,
		    "ZooKeeper at %s: %s: no such node", t->hosts, path));
	case ZK_UNKNOWN:
		return (cmd_fail(CMD_AWAY, t->command, "ZooKeeper at %s: %s",
		    t->hosts, unknown_why(t)));
	case ZK_NODEEXISTS:
	case ZK_BADVERSION:
	case ZK_NOTEMPTY:
	case ZK_REFUSED:
		break;
	}
	return (cmd_fail(CMD_FAILED, t->command,
	    "ZooKeeper at %s: %s: refused (code %d)", t->hosts, path, r->code));
}

/* ---- paths ---- */

static void
realm_path(const struct tree *t, char path[TREE_PATH_MAX])
{
	(void)snprintf(path, TREE_PATH_MAX, "/firn/%s", t->realm);
}

void
tree_parent_path(const struct tree *t, const struct contract *k,
    const char *what, char path[TREE_PATH_MAX])
{
	(void)snprintf(path, TREE_PATH_MAX, "/firn/%s/%s.%s", t->realm, what,
	    k->generation_text);
}

void
tree_mark_path(const struct tree *t, const struct contract *k, uint64_t worker,
    char path[TREE_PATH_MAX])
{
	(void)snprintf(path, TREE_PATH_MAX, "/firn/%s/marks.%s/%04" PRIu64,
	    t->realm, k->generation_text, worker);
}

/* ---- reading ---- */

static void
judge(struct tree_realm *out, const struct zkcall_reply *r)
{
	struct doc_error err = { "" };

	out->version = r->stat.version;
	if (r->length == 0 && out->version == 0) {
		out->state = TREE_HALF;
		return;
	}
	switch (realm_parse(r->data, r->length, &out->k, &err)) {
	case 0:
		out->state = TREE_GOOD;
		break;
	case REALM_TOO_NEW:
		out->state = TREE_TOO_NEW;
		break;
	default:
		out->state = TREE_GARBLED;
	}
	memcpy(out->why, err.text, sizeof(out->why));
}

int
tree_read(const struct tree *t, struct tree_realm *out)
{
	char path[TREE_PATH_MAX];
	struct zkcall_reply r;
	int status = CMD_DONE;

	*out = (struct tree_realm){ .state = TREE_MISSING };
	realm_path(t, path);
	switch (zkcall_get(t->z, path, &r)) {
	case ZK_OK:
		judge(out, &r);
		break;
	case ZK_NONODE:
		break;
	case ZK_NODEEXISTS:
	case ZK_BADVERSION:
	case ZK_NOTEMPTY:
	case ZK_NOAUTH:
	case ZK_REFUSED:
	case ZK_UNKNOWN:
		status = tree_fail(t, path, &r);
		break;
	}
	zkcall_reply_free(&r);
	return (status);
}

/* No realm: or is it the address that is wrong? */
static int
fail_missing(const struct tree *t)
{
	struct zkcall_reply r;
	bool no_chroot = zkcall_get(t->z, "/", &r) == ZK_NONODE;

	zkcall_reply_free(&r);
	if (no_chroot)
		return (fail_chroot(t));
	return (cmd_fail(CMD_UNFIT, t->command,
	    "realm %s does not exist at %s: `firn realm create --zk %s --realm "
	    "%s` makes it (with --first if it never served)",
	    t->realm, t->hosts, t->hosts, t->realm));
}

int
tree_read_good(const struct tree *t, struct tree_realm *out)
{
	int status = tree_read(t, out);

	if (status != CMD_DONE)
		return (status);
	switch (out->state) {
	case TREE_GOOD:
		return (CMD_DONE);
	case TREE_MISSING:
		return (fail_missing(t));
	case TREE_HALF:
		return (cmd_fail(CMD_UNFIT, t->command,
		    "realm %s at %s is only half made: run firn realm create "
		    "again",
		    t->realm, t->hosts));
	case TREE_GARBLED:
	case TREE_TOO_NEW:
		break;
	}
	return (cmd_fail(CMD_UNFIT, t->command, "realm %s at %s: %s", t->realm,
	    t->hosts, out->why));
}

/* ---- making ---- */

/*
 * Makes a node unless it is there (a write in doubt is made again, and finds
 * it).  *stamp_ms gets ZooKeeper's stamp of when it was made.
 */
static int
ensure(const struct tree *t, const char *path, int64_t *stamp_ms)
{
	struct zkcall_reply r;
	enum zk_rc rc;
	int status;

	do
		rc = zkcall_create(t->z, path, "", 0, &r);
	while (rc == ZK_UNKNOWN && zkcall_left_ms(t->z) > 0 &&
	       !zkcall_session_lost(t->z));
	if (rc == ZK_NODEEXISTS && stamp_ms != NULL) {
		zkcall_reply_free(&r);
		rc = zkcall_get(t->z, path, &r);
	}
	if (rc == ZK_OK && stamp_ms != NULL)
		*stamp_ms = r.stat.mtime_ms;
	if (rc == ZK_OK || rc == ZK_NODEEXISTS)
		status = CMD_DONE;
	else if (rc == ZK_NONODE && strcmp(path, "/firn") == 0)
		status = fail_chroot(t);
	else
		status = tree_fail(t, path, &r);
	zkcall_reply_free(&r);
	return (status);
}

int
tree_make_root(const struct tree *t, bool closed)
{
	char path[TREE_PATH_MAX];
	int status = ensure(t, "/firn", NULL);

	if (status != CMD_DONE)
		return (status);
	realm_path(t, path);
	zkcall_make_closed(t->z, closed);
	return (ensure(t, path, NULL));
}

int
tree_follow_acl(const struct tree *t)
{
	char path[TREE_PATH_MAX];
	struct zkcall_reply r;
	int status;

	realm_path(t, path);
	if (zkcall_get_acl(t->z, path, &r) == ZK_OK) {
		zkcall_make_closed(t->z, !r.open_to_all);
		if (!r.open_to_all && t->auth_file == NULL)
			r.rc = ZK_NOAUTH; /* as it would be found next */
	}
	status = tree_fail(t, path, &r);
	zkcall_reply_free(&r);
	return (status);
}

int
tree_make_parents(
    const struct tree *t, const struct contract *k, int64_t *now_ms)
{
	char path[TREE_PATH_MAX];
	int64_t stamp_ms = 0, own_ms;
	int status;

	tree_parent_path(t, k, "workers", path);
	status = ensure(t, path, NULL);
	if (status != CMD_DONE)
		return (status);
	/* The auditor's, of all generations; it would make it, too. */
	(void)snprintf(path, sizeof(path), "/firn/%s/fleet", t->realm);
	status = ensure(t, path, NULL);
	if (status != CMD_DONE)
		return (status);
	tree_parent_path(t, k, "marks", path);
	status = ensure(t, path, &stamp_ms);
	own_ms = cmd_wall_ms();
	*now_ms = own_ms > stamp_ms ? own_ms : stamp_ms;
	return (status);
}

/* Does the node hold this very text?  CMD_AGAIN: it holds something else. */
static int
read_back(const struct tree *t, const char *path, const char *text, size_t n,
    struct zkcall_reply *r)
{
	zkcall_reply_free(r);
	if (zkcall_get(t->z, path, r) != ZK_OK)
		return (tree_fail(t, path, r));
	return (r->length == n && memcmp(r->data, text, n) == 0 ? CMD_DONE
								: CMD_AGAIN);
}

int
tree_write(const struct tree *t, const struct contract *k, int32_t version,
    int64_t now_ms, int64_t *late_ms)
{
	char path[TREE_PATH_MAX], text[REALM_DOC_MAX];
	int n = realm_format(k, text, sizeof(text)), status;
	struct zkcall_reply r;

	realm_path(t, path);
	if (n < 0)
		return (cmd_fail(
		    CMD_FAILED, t->command, "the contract does not fit"));
	for (;;) {
		enum zk_rc rc =
		    zkcall_set(t->z, path, text, (size_t)n, version, &r);

		if (rc == ZK_OK) {
			status = CMD_DONE;
			break;
		}
		if (rc != ZK_UNKNOWN && rc != ZK_BADVERSION) {
			status = tree_fail(t, path, &r);
			break;
		}
		/* the generation's tag is ours alone: it tells our write */
		status = read_back(t, path, text, (size_t)n, &r);
		if (status != CMD_AGAIN || r.stat.version != version)
			break;
		zkcall_reply_free(&r);
	}
	*late_ms = r.stat.mtime_ms - now_ms;
	zkcall_reply_free(&r);
	return (status);
}

/* ---- marks ---- */

struct marks {
	const struct tree *t;
	const struct contract *k;
	char **names;
	size_t nnames;
	int64_t highest_ms;
	int status;
};

static void
marks_path(void *arg, size_t i, char *buf, size_t size)
{
	const struct marks *m = arg;

	(void)snprintf(buf, size, "/firn/%s/marks.%s/%s", m->t->realm,
	    m->k->generation_text, m->names[i]);
}

static void
marks_got(void *arg, size_t i, const struct zkcall_reply *r)
{
	struct marks *m = arg;
	struct doc_error err;
	struct mark mark;
	int64_t ms;

	if (r->rc != ZK_OK) {
		char path[TREE_PATH_MAX];

		marks_path(m, i, path, sizeof(path));
		m->status = tree_fail(m->t, path, r);
		return;
	}
	if (mark_parse(r->data, r->length, &mark, NULL, &err) != 0) {
		cmd_say(m->t->command, "mark %s makes no sense: %s",
		    m->names[i], err.text);
		return;
	}
	ms = layout_tick_start_ms(&m->k->layout, mark.ceiling);
	if (ms > m->highest_ms)
		m->highest_ms = ms;
}

/* Leaves out what others put beside the marks. */
static void
pick_marks(struct marks *m, struct zkcall_reply *list)
{
	size_t others = 0;

	m->names = list->names;
	for (size_t i = 0; i < list->nnames; i++) {
		char *name = list->names[i];

		if (mark_name_worker(name, m->k) == NO_WORKER) {
			others++;
			continue;
		}
		list->names[i] = list->names[m->nnames];
		list->names[m->nnames++] = name;
	}
	if (others > 0)
		cmd_say(m->t->command,
		    "%zu node%s beside the marks: passed over", others,
		    others == 1 ? "" : "s");
}

int
tree_highest_mark(
    const struct tree *t, const struct contract *k, int64_t *unix_ms)
{
	char path[TREE_PATH_MAX];
	struct zkcall_reply list;
	struct marks m = { .t = t, .k = k, .status = CMD_DONE };

	tree_parent_path(t, k, "marks", path);
	if (zkcall_list(t->z, path, &list) == ZK_OK)
		pick_marks(&m, &list);
	if (list.rc == ZK_NONODE) {
		/* Somebody deleted it: what it said is not known any more. */
		(void)fprintf(stderr,
		    "firn: %s is missing: goes by the clocks alone\n", path);
	} else if (list.rc != ZK_OK) {
		m.status = tree_fail(t, path, &list);
	} else if (zkcall_get_many(t->z, m.nnames, marks_path, marks_got, &m) !=
		   ZK_OK) {
		struct zkcall_reply r = { .rc = ZK_UNKNOWN };

		m.status = tree_fail(t, path, &r);
	}
	zkcall_reply_free(&list);
	*unix_ms = m.highest_ms;
	return (m.status);
}
