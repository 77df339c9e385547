/* SPDX-License-Identifier: Apache-2.0 */
/* keeper - the simulated ZooKeeper's data and transactions. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keeper.h"

static void *
must(void *p)
{
	if (p == NULL) {
		(void)fprintf(stderr, "sim: out of memory\n");
		exit(1);
	}
	return (p);
}

static struct keeper_tree *
newest(const struct keeper *z)
{
	return (&z->trees[z->ntrees - 1]);
}

static struct keeper_tree *
find_tree(const struct keeper *z, const char *generation)
{
	for (size_t i = 0; i < z->ntrees; i++) {
		if (strcmp(z->trees[i].generation, generation) == 0)
			return (&z->trees[i]);
	}
	return (NULL);
}

static void
add_tree(struct keeper *z)
{
	struct keeper_tree *t;

	z->trees = must(realloc(z->trees, (z->ntrees + 1) * sizeof(*z->trees)));
	t = &z->trees[z->ntrees++];
	memset(t, 0, sizeof(*t));
	memcpy(t->generation, z->k.generation_text, sizeof(t->generation));
	t->marks = must(calloc(z->k.worker_last + 1, sizeof(*t->marks)));
}

void
keeper_make(struct keeper *z, const struct contract *k, bool blind)
{
	memset(z, 0, sizeof(*z));
	z->k = *k;
	z->blind = blind;
	z->zxid = 1;
	z->tag = (uint64_t)k->generation;
	add_tree(z);
}

static void
drop_trees(struct keeper *z)
{
	for (size_t i = 0; i < z->ntrees; i++)
		free(z->trees[i].marks);
	free(z->trees);
	z->trees = NULL;
	z->ntrees = 0;
}

void
keeper_free(struct keeper *z)
{
	free(z->claims);
	drop_trees(z);
	free(z->dead);
}

void
keeper_reply_free(struct keeper_reply *r)
{
	free(r->names);
	free(r->name_store);
	free(r->rows);
}

static void
create_claim(struct keeper *z, int64_t session, const struct claim_op *op,
    struct keeper_reply *out)
{
	struct keeper_claim *c;

	if (z->nclaims == z->claims_size) {
		z->claims_size = z->claims_size * 2 + 64;
		z->claims = must(
		    realloc(z->claims, z->claims_size * sizeof(*z->claims)));
	}
	c = &z->claims[z->nclaims++];
	(void)snprintf(c->name, sizeof(c->name), "%.63s%010" PRId64, op->name,
	    z->counter++);
	c->session = session;
	z->creates++;
	memcpy(out->name, c->name, sizeof(out->name));
	out->r.name = out->name;
	out->r.stat.czxid = out->r.stat.mzxid = ++z->zxid;
}

static void
delete_claim(
    struct keeper *z, const struct claim_op *op, struct keeper_reply *out)
{
	for (size_t i = 0; i < z->nclaims; i++) {
		if (strcmp(z->claims[i].name, op->name) == 0) {
			z->claims[i] = z->claims[--z->nclaims];
			z->zxid++;
			return;
		}
	}
	out->r.rc = RC_NONODE;
}

static void
list_claims(const struct keeper *z, struct keeper_reply *out)
{
	size_t n = z->nclaims;

	out->name_store = must(malloc((n + 1) * CLAIM_NAME_MAX));
	out->names = must(malloc((n + 1) * sizeof(*out->names)));
	for (size_t i = 0; i < n; i++) {
		out->names[i] = out->name_store + i * CLAIM_NAME_MAX;
		memcpy(out->name_store + i * CLAIM_NAME_MAX, z->claims[i].name,
		    CLAIM_NAME_MAX);
	}
	out->r.names = out->names;
	out->r.nnames = n;
}

static void
put_stat(const struct keeper_mark *m, struct keeper_reply *out)
{
	out->r.stat.czxid = m->czxid;
	out->r.stat.mzxid = m->mzxid;
	out->r.stat.version = m->version;
}

static void
get_mark(const struct keeper_tree *t, uint64_t worker, struct keeper_reply *out)
{
	const struct keeper_mark *m = &t->marks[worker];

	if (!m->exists) {
		out->r.rc = RC_NONODE;
		return;
	}
	put_stat(m, out);
	out->mark = m->mark;
	out->r.mark = &out->mark;
}

static void
write_mark(struct keeper *z, struct keeper_tree *t, const struct claim_op *op,
    struct keeper_reply *out)
{
	struct keeper_mark *m = &t->marks[op->worker];
	bool create = op->kind == OP_CREATE_MARK;

	if (create == m->exists) {
		out->r.rc = create ? RC_NODEEXISTS : RC_NONODE;
		return;
	}
	if (!create && !z->blind && m->version != op->version) {
		out->r.rc = RC_BADVERSION;
		return;
	}
	m->mzxid = ++z->zxid;
	m->version++;
	if (create) {
		m->exists = true;
		m->version = 0;
		m->czxid = m->mzxid;
		t->mark_creates++;
		t->mark_children++;
	}
	m->mark = op->mark;
	z->writes++;
	put_stat(m, out);
}

static void
stat_marks(const struct keeper_tree *t, struct keeper_reply *out)
{
	out->r.stat.num_children = t->mark_children;
	out->r.stat.cversion = 2 * t->mark_creates - t->mark_children;
}

static void
sweep(struct keeper *z, struct keeper_reply *out)
{
	uint64_t usable = z->k.worker_last - z->k.worker_first + 1;
	uint64_t *taken = must(calloc(usable / 64 + 1, sizeof(*taken)));

	list_claims(z, out);
	out->r.taken = claim_mark_taken(&z->k, out->names, z->nclaims, taken);
	out->rows = must(calloc(usable + 1, sizeof(*out->rows)));
	for (uint64_t i = 0; i < usable; i++) {
		const struct keeper_mark *m =
		    &newest(z)->marks[z->k.worker_first + i];

		if ((taken[i / 64] >> (i % 64) & 1) != 0)
			continue;
		out->rows[out->r.nrows++] = (struct sweep_row){
			.worker = z->k.worker_first + i,
			.ceiling = m->exists ? m->mark.ceiling : NO_TICK,
		};
	}
	out->r.rows = out->rows;
	stat_marks(newest(z), out);
	free(taken);
}

void
keeper_do(struct keeper *z, int64_t session, const struct claim_op *op,
    struct keeper_reply *out)
{
	struct keeper_tree *t = find_tree(z, op->generation);

	memset(out, 0, sizeof(*out));
	out->r.id = op->id;
	out->r.rc = RC_OK;
	if (keeper_session_dead(z, session)) {
		out->r.rc = RC_UNKNOWN;
		return;
	}
	if (z->missing || (t == NULL && op->kind != OP_GET_REALM)) {
		out->r.rc = RC_NONODE;
		return;
	}
	if (op->kind != OP_GET_REALM && t != newest(z) &&
	    op->kind != OP_SET_MARK && op->kind != OP_GET_MARK) {
		out->r.rc = RC_NONODE; /* its claims are nobody's any more */
		return;
	}
	switch (op->kind) {
	case OP_NONE:
		break;
	case OP_GET_REALM:
		out->contract = z->k;
		out->r.contract = &out->contract;
		break;
	case OP_LIST:
		list_claims(z, out);
		break;
	case OP_CREATE:
		create_claim(z, session, op, out);
		break;
	case OP_DELETE:
		delete_claim(z, op, out);
		break;
	case OP_WATCH:
		out->r.rc = RC_NONODE;
		for (size_t i = 0; i < z->nclaims; i++) {
			if (strcmp(z->claims[i].name, op->name) == 0)
				out->r.rc = RC_OK;
		}
		break;
	case OP_SET_CLAIM:
		out->r.rc = RC_NONODE;
		for (size_t i = 0; i < z->nclaims; i++) {
			if (strcmp(z->claims[i].name, op->name) == 0) {
				out->r.rc = RC_OK;
				out->r.stat.mzxid = ++z->zxid;
			}
		}
		break;
	case OP_GET_MARK:
		get_mark(t, op->worker, out);
		break;
	case OP_STAT_MARKS:
		stat_marks(t, out);
		break;
	case OP_CREATE_MARK:
	case OP_SET_MARK:
		write_mark(z, t, op, out);
		break;
	case OP_SWEEP:
		sweep(z, out);
		break;
	}
}

bool
keeper_session_dead(const struct keeper *z, int64_t session)
{
	return ((size_t)session < z->dead_size && z->dead[session] != 0);
}

void
keeper_end_session(struct keeper *z, int64_t session)
{
	if (keeper_session_dead(z, session))
		return;
	if ((size_t)session >= z->dead_size) {
		size_t size = (size_t)session * 2 + 64;

		z->dead = must(realloc(z->dead, size));
		memset(z->dead + z->dead_size, 0, size - z->dead_size);
		z->dead_size = size;
	}
	z->dead[session] = 1;
	for (size_t i = 0; i < z->nclaims;) {
		if (z->claims[i].session == session)
			z->claims[i] = z->claims[--z->nclaims];
		else
			i++;
	}
	z->zxid++;
}

void
keeper_delete_mark(struct keeper *z, uint64_t worker)
{
	struct keeper_tree *t = z->missing ? NULL : newest(z);

	if (t == NULL || !t->marks[worker].exists)
		return;
	t->marks[worker].exists = false;
	t->mark_children--;
	z->zxid++;
}

/* An operator sees to it that the generation is higher than any before. */
void
keeper_renew(struct keeper *z, int64_t not_before_ms)
{
	if (z->tag < (uint64_t)z->k.generation)
		z->tag = (uint64_t)z->k.generation;
	z->k.generation = (int64_t)++z->tag;
	(void)snprintf(z->k.generation_text, sizeof(z->k.generation_text),
	    "%u-%08x", (unsigned)z->k.generation, (unsigned)z->tag);
	z->k.not_before_ms = not_before_ms;
	z->missing = false;
	add_tree(z);
	z->nclaims = 0; /* of the new tree */
	z->counter = 0;
	z->zxid++;
}

static void
copy_trees(struct keeper *to, const struct keeper *from)
{
	size_t marks = from->k.worker_last + 1;

	to->trees = must(malloc(from->ntrees * sizeof(*to->trees)));
	to->ntrees = from->ntrees;
	for (size_t i = 0; i < from->ntrees; i++) {
		struct keeper_tree *t = &to->trees[i];

		*t = from->trees[i];
		t->marks = must(malloc(marks * sizeof(*t->marks)));
		memcpy(
		    t->marks, from->trees[i].marks, marks * sizeof(*t->marks));
	}
}

void
keeper_copy(const struct keeper *z, struct keeper *out)
{
	memset(out, 0, sizeof(*out));
	out->k = z->k;
	out->zxid = z->zxid;
	out->counter = z->counter;
	copy_trees(out, z);
}

static void
end_all(struct keeper *z, int64_t last_session)
{
	for (int64_t s = 1; s <= last_session; s++)
		keeper_end_session(z, s);
	z->nclaims = 0;
}

void
keeper_restore(struct keeper *z, const struct keeper *old, int64_t last_session)
{
	end_all(z, last_session);
	drop_trees(z);
	z->k = old->k;
	z->zxid = old->zxid;
	z->counter = old->counter;
	copy_trees(z, old);
}

void
keeper_wipe(struct keeper *z, int64_t last_session)
{
	end_all(z, last_session);
	drop_trees(z);
	z->zxid = 1;
	z->counter = 0;
	z->missing = true;
}
