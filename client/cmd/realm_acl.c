/* SPDX-License-Identifier: Apache-2.0 */
/*
 * realm acl - closes a realm's nodes to all but those who know its password,
 * or opens them again, while agents use it.
 *
 * Invariant: parents come first: what is made below them meanwhile was made by
 * somebody whom they let, and is closed by its maker or found by the listing.
 */
#include <stdio.h>
#include <string.h>

#include "tree.h"

/* ---- the nodes of one parent ---- */

struct below {
	const struct tree *t;
	const char *parent;
	char **names;
	size_t done;
	int status;
};

static void
below_path(void *arg, size_t i, char *buf, size_t size)
{
	const struct below *b = arg;

	(void)snprintf(buf, size, "%s/%s", b->parent, b->names[i]);
}

/* A claim may have gone; of what is refused each is named. */
static void
below_got(void *arg, size_t i, const struct zkcall_reply *r)
{
	struct below *b = arg;
	char path[TREE_PATH_MAX * 2];

	if (r->rc == ZK_OK)
		b->done++;
	if (r->rc == ZK_OK || r->rc == ZK_NONODE)
		return;
	below_path(b, i, path, sizeof(path));
	b->status = tree_fail(b->t, path, r);
}

/* Sets the lists of the parent's children; their names go to *list. */
static int
set_below(const struct tree *t, const char *parent, bool closed,
    struct zkcall_reply *list, size_t *done)
{
	struct below b = { .t = t, .parent = parent, .status = CMD_DONE };
	struct zkcall_reply r = { .rc = ZK_UNKNOWN };

	if (zkcall_list(t->z, parent, list) != ZK_OK)
		return (list->rc == ZK_NONODE ? CMD_DONE
					      : tree_fail(t, parent, list));
	b.names = list->names;
	if (zkcall_set_acl_many(
		t->z, closed, list->nnames, below_path, below_got, &b) != ZK_OK)
		b.status = tree_fail(t, parent, &r);
	*done += b.done;
	return (b.status);
}

static int
set_one(const struct tree *t, const char *path, bool closed, size_t *done)
{
	char name[TREE_PATH_MAX], *slash, *names[1];
	struct below b = { .t = t, .parent = name, .status = CMD_DONE };
	struct zkcall_reply r = { .rc = ZK_UNKNOWN };

	(void)snprintf(name, sizeof(name), "%s", path);
	slash = strrchr(name, '/');
	*slash = '\0';
	names[0] = slash + 1;
	b.names = names;
	if (zkcall_set_acl_many(t->z, closed, 1, below_path, below_got, &b) !=
	    ZK_OK)
		return (tree_fail(t, path, &r));
	*done += b.done;
	return (b.status);
}

int
tree_set_acl(const struct tree *t, bool closed, size_t *done)
{
	char path[TREE_PATH_MAX], parent[TREE_PATH_MAX * 2];
	struct zkcall_reply parents = { .rc = ZK_UNKNOWN };
	int status, rc;

	*done = 0;
	(void)snprintf(path, sizeof(path), "/firn/%s", t->realm);
	status = set_one(t, path, closed, done);
	if (status != CMD_DONE) /* below it, it would not go better */
		return (status);
	status = set_below(t, path, closed, &parents, done);
	for (size_t i = 0; i < parents.nnames; i++) {
		struct zkcall_reply list = { .rc = ZK_UNKNOWN };

		(void)snprintf(
		    parent, sizeof(parent), "%s/%s", path, parents.names[i]);
		rc = set_below(t, parent, closed, &list, done);
		if (rc != CMD_DONE)
			status = rc;
		zkcall_reply_free(&list);
	}
	zkcall_reply_free(&parents);
	return (status);
}

/* ---- the command ---- */

struct acl_options {
	struct tree_options tree;
	bool open;
};

static const struct cmd_option table[] = {
	{ "open", 0, CMD_FLAG, offsetof(struct acl_options, open), NULL,
	    "opens it again: everybody may write", 0, 0 },
	TREE_OPTIONS(struct acl_options),
};

static const struct cmd_spec spec = {
	.name = "realm acl",
	.usage = "[--open] [--auth-file FILE] [--zk HOSTS] [--realm NAME] "
		 "[--timeout MS]",
	.text =
	    "Closes a realm: whoever knows the password of --auth-file may "
	    "write, all others\nonly read.  First give every agent its "
	    "auth_file.  Agents go on meanwhile.\nAfter a failure half way, "
	    "run it again.",
	.statuses = "  0   done\n"
		    "  1   standard output\n"
		    "  64  usage\n"
		    "  69  ZooKeeper not to be reached\n"
		    "  77  not allowed by ZooKeeper: each node is named\n"
		    "  78  no such realm, or its contract or FILE makes no "
		    "sense",
	.options = table,
	.noptions = sizeof(table) / sizeof(table[0]),
	.max_arguments = 0,
};

static int
set_acl(const struct tree *t, bool closed)
{
	struct tree_realm realm;
	size_t done;
	int status = tree_read_good(t, &realm);

	if (status == CMD_DONE)
		status = tree_set_acl(t, closed, &done);
	if (status != CMD_DONE)
		return (status);
	printf("realm %s: %zu nodes, %s\n", t->realm, done,
	    closed ? "closed: only who knows the password may write"
		   : "open: everybody may write");
	return (cmd_end(t->command, CMD_DONE));
}

int
realm_acl_main(int argc, char **argv)
{
	struct acl_options o = { .tree.timeout_ms = TREE_TIMEOUT_MS };
	struct tree t;
	int rc, first;

	rc = cmd_parse(&spec, argc, argv, &o, &first);
	if (rc != CMD_GO)
		return (rc);
	rc = tree_open(&t, spec.name, &o.tree);
	if (rc == CMD_DONE && !o.open && t.auth_file == NULL)
		rc = cmd_fail(CMD_USAGE, spec.name,
		    "--auth-file FILE says who may write");
	if (rc == CMD_DONE)
		rc = set_acl(&t, !o.open);
	tree_close(&t);
	return (rc);
}
