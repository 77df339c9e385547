/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fakezk - a pretended ZooKeeper, linked in place of edge/zk: nodes with
 * versions and stamps, and sessions whose operations stay open until the test
 * answers them: done, refused, or with the reply lost.
 *
 * Invariant: an operation is done when it is answered, not when it is asked
 * for; so the test decides who was first.
 */
#ifndef FAKEZK_H
#define FAKEZK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "doc.h"
#include "zk.h"

#define FAKE_NODES_MAX 600
#define FAKE_OPEN_MAX 256
#define FAKE_PATH_MAX 200

enum fake_kind {
	FAKE_GET,
	FAKE_EXISTS,
	FAKE_LIST,
	FAKE_SYNC,
	FAKE_SET,
	FAKE_CREATE,
};

struct fake_node {
	char path[FAKE_PATH_MAX];
	char *data;
	size_t length; /* above DOC_SIZE_MAX it is too large to be told */
	int32_t version, cversion;
	int64_t mtime_ms;
	bool denied;
};

struct fake_op {
	uint64_t op;
	enum fake_kind kind;
	char path[FAKE_PATH_MAX];
	char *data;
	size_t length;
	int32_t version;
};

/* One session. */
struct zk {
	struct fake_op open[FAKE_OPEN_MAX]; /* oldest first */
	size_t nopen, most_open;
	bool away; /* nothing is accepted */
	uint64_t asked[FAKE_CREATE + 1];
};

static struct {
	struct fake_node node[FAKE_NODES_MAX];
	size_t n;
	int64_t now_ms; /* ZooKeeper's clock */
	uint64_t last_op;
} fake;

static inline void
fake_reset(int64_t now_ms)
{
	for (size_t i = 0; i < fake.n; i++)
		free(fake.node[i].data);
	memset(&fake, 0, sizeof(fake));
	fake.now_ms = now_ms;
}

static inline struct fake_node *
fake_find(const char *path)
{
	for (size_t i = 0; i < fake.n; i++)
		if (strcmp(fake.node[i].path, path) == 0)
			return (&fake.node[i]);
	return (NULL);
}

static inline struct fake_node *
fake_write(struct fake_node *n, const char *data, size_t length)
{
	free(n->data);
	n->data = malloc(length + 1);
	assert_non_null(n->data);
	memcpy(n->data, data, length);
	n->length = length;
	n->mtime_ms = fake.now_ms;
	return (n);
}

static inline void
fake_touch_parent(const char *path)
{
	char parent[FAKE_PATH_MAX];
	struct fake_node *p;

	(void)snprintf(parent, sizeof(parent), "%.*s",
	    (int)(strrchr(path, '/') - path), path);
	if ((p = fake_find(parent)) != NULL)
		p->cversion++;
}

/* Made by somebody else, or written. */
static inline struct fake_node *
fake_put(const char *path, const char *data, size_t length)
{
	struct fake_node *n = fake_find(path);

	if (n != NULL) {
		n->version++;
		return (fake_write(n, data, length));
	}
	assert_true(fake.n < FAKE_NODES_MAX);
	n = &fake.node[fake.n++];
	memset(n, 0, sizeof(*n));
	(void)snprintf(n->path, sizeof(n->path), "%s", path);
	fake_touch_parent(path);
	return (fake_write(n, data, length));
}

static inline void
fake_remove(const char *path)
{
	struct fake_node *n = fake_find(path);

	assert_non_null(n);
	fake_touch_parent(path);
	free(n->data);
	*n = fake.node[--fake.n];
}

/* ---- what is asked for ---------------------------------------------------- */

static inline uint64_t
fake_submit(struct zk *z, enum fake_kind kind, const char *path,
    const char *data, size_t length, int32_t version)
{
	struct fake_op *o = &z->open[z->nopen];

	if (z->away)
		return (0);
	assert_true(z->nopen < FAKE_OPEN_MAX);
	*o =
	    (struct fake_op){ ++fake.last_op, kind, "", NULL, length, version };
	(void)snprintf(o->path, sizeof(o->path), "%s", path);
	if (data != NULL) {
		o->data = malloc(length + 1);
		assert_non_null(o->data);
		memcpy(o->data, data, length);
	}
	z->asked[kind]++;
	if (++z->nopen > z->most_open)
		z->most_open = z->nopen;
	return (o->op);
}

uint64_t
zk_get(struct zk *z, const char *path, bool watch)
{
	assert_false(watch);
	return (fake_submit(z, FAKE_GET, path, NULL, 0, -1));
}

uint64_t
zk_exists(struct zk *z, const char *path, bool watch)
{
	assert_false(watch);
	return (fake_submit(z, FAKE_EXISTS, path, NULL, 0, -1));
}

uint64_t
zk_list(struct zk *z, const char *path)
{
	return (fake_submit(z, FAKE_LIST, path, NULL, 0, -1));
}

uint64_t
zk_sync(struct zk *z, const char *path)
{
	return (fake_submit(z, FAKE_SYNC, path, NULL, 0, -1));
}

uint64_t
zk_set(
    struct zk *z, const char *path, const char *data, size_t n, int32_t version)
{
	assert_true(version >= 0);
	return (fake_submit(z, FAKE_SET, path, data, n, version));
}

uint64_t
zk_create(struct zk *z, const char *path, const char *data, size_t n,
    bool ephemeral_sequential)
{
	assert_false(ephemeral_sequential);
	return (fake_submit(z, FAKE_CREATE, path, data, n, -1));
}

/* ---- what comes of it ------------------------------------------------------ */

typedef bool fake_fn(void *arg, const struct zk_event *ev);

static inline void
fake_stat(const struct fake_node *n, struct zk_stat *out)
{
	size_t length = strlen(n->path);

	*out = (struct zk_stat){ .mtime_ms = n->mtime_ms,
		.version = n->version,
		.cversion = n->cversion,
		.data_length = (int32_t)n->length };
	for (size_t i = 0; i < fake.n; i++)
		if (strncmp(fake.node[i].path, n->path, length) == 0 &&
		    fake.node[i].path[length] == '/')
			out->num_children++;
}

static inline void
fake_list(const struct fake_node *n, const char **names, struct zk_event *ev)
{
	size_t length = strlen(n->path);

	ev->names = names;
	for (size_t i = 0; i < fake.n; i++)
		if (strncmp(fake.node[i].path, n->path, length) == 0 &&
		    fake.node[i].path[length] == '/')
			names[ev->nnames++] = fake.node[i].path + length + 1;
}

/* Does it, at the server; *ev is what that says. */
static inline void
fake_do(const struct fake_op *o, const char **names, struct zk_event *ev)
{
	struct fake_node *n = fake_find(o->path);

	ev->rc = ZK_OK;
	if (o->kind == FAKE_SYNC)
		return;
	if (o->kind == FAKE_CREATE) {
		if (n != NULL)
			ev->rc = ZK_NODEEXISTS;
		else
			n = fake_put(o->path, o->data, o->length);
	} else if (n == NULL)
		ev->rc = ZK_NONODE;
	else if (n->denied && o->kind != FAKE_EXISTS)
		ev->rc = ZK_NOAUTH;
	else if (o->kind == FAKE_SET && n->version != o->version)
		ev->rc = ZK_BADVERSION;
	else if (o->kind == FAKE_SET)
		fake_put(o->path, o->data, o->length);
	if (ev->rc != ZK_OK)
		return;
	fake_stat(n, &ev->stat);
	if (o->kind == FAKE_LIST)
		fake_list(n, names, ev);
	if (o->kind == FAKE_GET) {
		ev->length = n->length;
		ev->data =
		    n->length > 0 && n->length <= DOC_SIZE_MAX ? n->data : NULL;
	}
}

/* How an operation ends. */
enum fake_end {
	FAKE_DONE, /* as it does */
	FAKE_LOST, /* done, and the reply lost */
	FAKE_UNDONE, /* not done, and no reply */
	FAKE_REFUSED,
};

/* Answers the i-th open one; what fn says of it. */
static inline bool
fake_answer(struct zk *z, size_t i, enum fake_end end, fake_fn *fn, void *arg)
{
	static const char *names[FAKE_NODES_MAX];
	struct fake_op o = z->open[i];
	struct zk_event ev = { .kind = ZK_REPLY, .op = o.op };
	bool taken;

	assert_true(i < z->nopen);
	memmove(&z->open[i], &z->open[i + 1],
	    (--z->nopen - i) * sizeof(z->open[0]));
	if (end == FAKE_DONE || end == FAKE_LOST)
		fake_do(&o, names, &ev);
	if (end == FAKE_LOST || end == FAKE_UNDONE)
		ev = (struct zk_event){
			.kind = ZK_REPLY, .op = o.op, .rc = ZK_UNKNOWN
		};
	if (end == FAKE_REFUSED)
		ev.rc = ZK_REFUSED;
	taken = fn(arg, &ev);
	free(o.data);
	return (taken);
}

/* What is open is nobody's any more. */
static inline void
fake_drop(struct zk *z)
{
	for (size_t i = 0; i < z->nopen; i++)
		free(z->open[i].data);
	z->nopen = 0;
}

#endif
