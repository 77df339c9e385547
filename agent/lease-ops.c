/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease-ops - carries out what the claim asks for, and gives it what came of
 * it.
 *
 * Invariant: each lane of the claim has at most one operation under way, and
 * each gets exactly one result.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lease-private.h"
#include "log.h"
#include "mark.h"
#include "realm.h"
#include "sysclock.h"

/* ---- paths --------------------------------------------------------------- */

void
lease_realm_path(const struct lease *l, char *path)
{
	(void)snprintf(path, LEASE_PATH_MAX, "/firn/%s", l->conf->realm);
}

void
lease_workers_path(const struct lease *l, const struct claim_op *op, char *path)
{
	(void)snprintf(path, LEASE_PATH_MAX, "/firn/%s/workers.%s",
	    l->conf->realm, op->generation);
}

static void
node_path(const struct lease *l, const struct claim_op *op, char *path)
{
	(void)snprintf(path, LEASE_PATH_MAX, "/firn/%s/workers.%s/%s",
	    l->conf->realm, op->generation, op->name);
}

void
lease_marks_path(const struct lease *l, const struct claim_op *op, char *path)
{
	(void)snprintf(path, LEASE_PATH_MAX, "/firn/%s/marks.%s",
	    l->conf->realm, op->generation);
}

static void
mark_path(const struct lease *l, const struct claim_op *op, char *path)
{
	(void)snprintf(path, LEASE_PATH_MAX, "/firn/%s/marks.%s/%04" PRIu64,
	    l->conf->realm, op->generation, op->worker);
}

/* The node that an operation is about. */
static void
op_path(const struct lease *l, const struct claim_op *op, char *path)
{
	switch (op->kind) {
	case OP_NONE:
	case OP_GET_REALM:
		lease_realm_path(l, path);
		return;
	case OP_LIST:
	case OP_CREATE:
	case OP_SWEEP:
		lease_workers_path(l, op, path);
		return;
	case OP_DELETE:
	case OP_WATCH:
	case OP_SET_CLAIM:
		node_path(l, op, path);
		return;
	case OP_STAT_MARKS:
	case OP_CREATE_MARK:
		lease_marks_path(l, op, path);
		return;
	case OP_GET_MARK:
	case OP_SET_MARK:
		mark_path(l, op, path);
		return;
	}
}

/* ---- operations out ------------------------------------------------------ */

static uint64_t
submit_create_claim(struct lease *l, const struct claim_op *op)
{
	char path[LEASE_PATH_MAX], doc[MARK_DOC_MAX];
	int n = claim_doc_format(&l->status, doc, sizeof(doc));

	node_path(l, op, path);
	return (n < 0 ? 0 : zk_create(l->zk, path, doc, (size_t)n, true));
}

static uint64_t
submit_status(struct lease *l, const struct claim_op *op)
{
	char path[LEASE_PATH_MAX], doc[MARK_DOC_MAX];
	int n = claim_doc_format(&l->status, doc, sizeof(doc));

	node_path(l, op, path);
	return (n < 0 ? 0 : zk_set(l->zk, path, doc, (size_t)n, op->version));
}

static uint64_t
submit_mark(struct lease *l, const struct claim_op *op)
{
	char path[LEASE_PATH_MAX], doc[MARK_DOC_MAX];
	int n = mark_format(&op->mark, &l->status, doc, sizeof(doc));

	if (n < 0)
		return (0);
	mark_path(l, op, path);
	if (op->kind == OP_CREATE_MARK)
		return (zk_create(l->zk, path, doc, (size_t)n, false));
	return (zk_set(l->zk, path, doc, (size_t)n, op->version));
}

static void on_swept(void *arg, const struct sweep_result *r);

static bool
submit_sweep(struct lease *l, const struct claim_op *op)
{
	char workers[LEASE_PATH_MAX], marks[LEASE_PATH_MAX];

	lease_workers_path(l, op, workers);
	lease_marks_path(l, op, marks);
	sweep_cancel(l->sweep);
	l->sweep = sweep_start(l->zk, workers, marks, &l->claim.k, l->scratch,
	    &l->foreign, on_swept, l);
	l->sweep_id = op->id;
	return (l->sweep != NULL);
}

static uint64_t
submit(struct lease *l, const struct claim_op *op)
{
	char path[LEASE_PATH_MAX];

	switch (op->kind) {
	case OP_NONE:
	case OP_SWEEP:
		return (0);
	case OP_GET_REALM:
		/* A lagging server's answer would look as if data went back. */
		lease_realm_path(l, path);
		if (zk_sync(l->zk, path) == 0)
			return (0);
		return (l->realm_large ? zk_exists(l->zk, path, true)
				       : zk_get(l->zk, path, true));
	case OP_LIST:
		/* One session's replies come in order. */
		lease_workers_path(l, op, path);
		if (zk_sync(l->zk, path) == 0)
			return (0);
		return (zk_list(l->zk, path));
	case OP_CREATE:
		return (submit_create_claim(l, op));
	case OP_SET_CLAIM:
		return (submit_status(l, op));
	case OP_DELETE:
		node_path(l, op, path);
		return (zk_delete(l->zk, path, -1));
	case OP_WATCH:
		node_path(l, op, path);
		return (zk_exists(l->zk, path, true));
	case OP_GET_MARK:
		mark_path(l, op, path);
		return (zk_get(l->zk, path, false));
	case OP_STAT_MARKS:
		lease_marks_path(l, op, path);
		return (zk_exists(l->zk, path, false));
	case OP_CREATE_MARK:
	case OP_SET_MARK:
		return (submit_mark(l, op));
	}
	return (0);
}

static struct pending *
pending_free(struct lease *l)
{
	for (size_t i = 0; i < LEASE_LANES; i++) {
		if (l->pending[i].zk_op == 0)
			return (&l->pending[i]);
	}
	/* A lane was given up (a stop, a lost mark): its reply is nobody's. */
	return (&l->pending[0]);
}

void
lease_carry_out(
    struct lease *l, const struct instant *now, const struct claim_op *op)
{
	struct claim_result r = { .id = op->id, .rc = RC_REFUSED };
	struct pending *p;
	uint64_t zk_op;

	if (op->kind == OP_SWEEP) {
		if (!submit_sweep(l, op))
			claim_result(&l->claim, lease_time(l, now), &r);
		return;
	}
	zk_op = submit(l, op);
	if (zk_op == 0) {
		claim_result(&l->claim, lease_time(l, now), &r);
		return;
	}
	p = pending_free(l);
	p->zk_op = zk_op;
	p->op = *op;
}

/* ---- replies in ---------------------------------------------------------- */

static enum claim_rc
rc_of(enum zk_rc rc)
{
	switch (rc) {
	case ZK_OK:
		return (RC_OK);
	case ZK_NONODE:
		return (RC_NONODE);
	case ZK_NODEEXISTS:
		return (RC_NODEEXISTS);
	case ZK_BADVERSION:
		return (RC_BADVERSION);
	case ZK_NOAUTH:
		return (RC_DENIED);
	case ZK_NOTEMPTY:
	case ZK_REFUSED:
		return (RC_REFUSED);
	case ZK_UNKNOWN:
		return (RC_UNKNOWN);
	}
	return (RC_UNKNOWN);
}

static bool
is_own_write(enum claim_op_kind kind)
{
	return (kind == OP_CREATE || kind == OP_SET_CLAIM ||
		kind == OP_CREATE_MARK || kind == OP_SET_MARK);
}

static const char *
last_part(const char *path)
{
	const char *slash = path == NULL ? NULL : strrchr(path, '/');

	return (slash == NULL ? path : slash + 1);
}

/* What read data says, into the result; garbled data gets its line. */
static void
read_data(struct lease *l, const struct claim_op *op, const struct zk_event *ev,
    struct mark *mark, struct claim_result *r)
{
	struct doc_error err;
	char path[LEASE_PATH_MAX];
	int rc = 0;

	op_path(l, op, path);
	if (op->kind == OP_GET_REALM) {
		rc = realm_parse(ev->data, ev->length, &l->seen, &err);
		r->contract = &l->seen;
		if (rc == REALM_TOO_NEW) /* the claim judges by the format */
			rc = 0;
	} else if (op->kind == OP_GET_MARK) {
		rc = mark_parse(ev->data, ev->length, mark, NULL, &err);
		r->mark = mark;
	} else
		return;
	if (rc != 0)
		r->rc = RC_GARBLED;
	if (rc == 0 && op->kind == OP_GET_REALM)
		foreign_mended(&l->foreign, path);
	else if (rc != 0 && op->kind == OP_GET_REALM)
		l->garbled = err; /* said with what it means */
	else if (rc != 0)
		foreign_tell_reply(&l->foreign, path, ev, &err);
}

/*
 * A contract that was too large the last time: only its size was asked for.
 * It is read the next time, if that has become less.
 */
static bool
is_size_only(struct lease *l, const struct claim_op *op,
    const struct zk_event *ev, struct claim_result *r)
{
	bool asked = op->kind == OP_GET_REALM && l->realm_large;

	if (op->kind == OP_GET_REALM && ev->rc == ZK_OK)
		l->realm_large = foreign_too_large(ev);
	if (asked)
		r->rc = l->realm_large ? RC_GARBLED : RC_REFUSED;
	return (asked);
}

/* The realm is there, but what must be below it is not. */
static void
say_missing(struct lease *l, const struct claim_op *op)
{
	char path[LEASE_PATH_MAX];

	if (op->kind != OP_LIST && op->kind != OP_CREATE &&
	    op->kind != OP_STAT_MARKS && op->kind != OP_CREATE_MARK)
		return;
	op_path(l, op, path);
	foreign_tell(&l->foreign, path,
	    "is missing: `firn realm renew` makes the next generation");
}

static void
say_refused(
    struct lease *l, const struct claim_op *op, const struct zk_event *ev)
{
	char path[LEASE_PATH_MAX];

	op_path(l, op, path);
	if (ev->rc == ZK_NOAUTH && is_own_write(op->kind))
		foreign_tell(&l->foreign, path,
		    l->conf->auth_file[0] != '\0'
			? "not allowed (its access list): auth_file holds "
			  "another user or password"
			: "not allowed (its access list): auth_file must name "
			  "a file with its user:password");
	else
		foreign_tell_reply(&l->foreign, path, ev, NULL);
}

static void
give_result(struct lease *l, const struct instant *now,
    const struct claim_op *op, const struct zk_event *ev)
{
	char path[LEASE_PATH_MAX];
	struct mark mark;
	struct claim_result r = {
		.id = op->id,
		.rc = rc_of(ev->rc),
		.stat = {
			.czxid = ev->stat.czxid,
			.mzxid = ev->stat.mzxid,
			.version = ev->stat.version,
			.cversion = ev->stat.cversion,
			.num_children = ev->stat.num_children,
		},
		.names = ev->names,
		.nnames = ev->nnames,
		.name = last_part(ev->path),
	};

	lease_count_reply(l, op, ev, r.rc);
	if (r.rc == RC_REFUSED || r.rc == RC_DENIED)
		say_refused(l, op, ev);
	if (r.rc == RC_NONODE)
		say_missing(l, op);
	if (r.rc == RC_OK && !is_size_only(l, op, ev, &r))
		read_data(l, op, ev, &mark, &r);
	if (r.rc == RC_OK && is_own_write(op->kind)) {
		op_path(l, op, path);
		foreign_mended(&l->foreign, path);
		judge_sample(l->judge, ev, &l->status);
		auditor_poke(l->auditor);
	}
	claim_result(&l->claim, lease_time(l, now), &r);
}

static void
on_swept(void *arg, const struct sweep_result *s)
{
	struct lease *l = arg;
	struct instant now;
	struct claim_result r = {
		.id = l->sweep_id,
		.rc = s->rc,
		.stat = s->marks_stat,
		.rows = s->rows,
		.nrows = s->nrows,
		.taken = s->taken,
	};

	sysclock_read(&now);
	l->sweep = NULL; /* frees itself */
	claim_result(&l->claim, lease_time(l, &now), &r);
}

void
lease_on_reply(
    struct lease *l, const struct instant *now, const struct zk_event *ev)
{
	if (l->sweep != NULL && sweep_reply(l->sweep, ev))
		return;
	if (judge_reply(l->judge, ev, now->boot) ||
	    auditor_reply(l->auditor, ev, now->boot) ||
	    roll_reply(l->roll, ev, now->boot))
		return;
	for (size_t i = 0; i < LEASE_LANES; i++) {
		struct claim_op op = l->pending[i].op;

		if (l->pending[i].zk_op != ev->op)
			continue;
		l->pending[i].zk_op = 0;
		give_result(l, now, &op, ev);
		return;
	}
}

void
lease_drop_pending(struct lease *l)
{
	sweep_cancel(l->sweep);
	l->sweep = NULL;
	lease_count_dropped(l);
	judge_disconnected(l->judge);
	auditor_disconnected(l->auditor);
	roll_disconnected(l->roll);
	memset(l->pending, 0, sizeof(l->pending));
}
