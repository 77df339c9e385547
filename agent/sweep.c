/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep - lists the claims, then the marks, then reads the marks of the IDs
 * that nobody claims.
 *
 * Invariant: at most IN_FLIGHT reads are under way; fn is called once, and the
 * sweep is freed after it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mark.h"
#include "sweep.h"

#define IN_FLIGHT 64
#define MARK_GARBLED INT64_MAX /* never chosen, as nobody can go by it */
#define MARKS_PATH_MAX 256
#define MARK_PATH_MAX (MARKS_PATH_MAX + 32)

struct read {
	uint64_t op;
	size_t row;
};

struct sweep {
	struct zk *zk;
	char marks[MARKS_PATH_MAX];
	struct contract k;
	uint64_t *scratch;
	struct foreign *foreign;
	sweep_fn *fn;
	void *arg;
	uint64_t claims_op, marks_op;
	struct sweep_result result;
	struct sweep_row *rows;
	uint8_t *marked; /* by row: there is a mark to read */
	size_t next; /* row to look at next */
	struct read reads[IN_FLIGHT];
	size_t nreads;
};

struct sweep *
sweep_start(struct zk *zk, const char *workers, const char *marks,
    const struct contract *k, uint64_t *scratch, struct foreign *foreign,
    sweep_fn *fn, void *arg)
{
	struct sweep *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return (NULL);
	s->zk = zk;
	s->k = *k;
	s->scratch = scratch;
	s->foreign = foreign;
	s->fn = fn;
	s->arg = arg;
	(void)snprintf(s->marks, sizeof(s->marks), "%s", marks);
	/* In one session replies come in order: the sync has been done. */
	if (zk_sync(zk, workers) == 0 ||
	    (s->claims_op = zk_list(zk, workers)) == 0 ||
	    (s->marks_op = zk_list(zk, marks)) == 0) {
		free(s);
		return (NULL);
	}
	return (s);
}

void
sweep_cancel(struct sweep *s)
{
	if (s == NULL)
		return;
	free(s->rows);
	free(s->marked);
	free(s);
}

static void
finish(struct sweep *s, enum claim_rc rc)
{
	s->result.rc = rc;
	s->result.rows = s->rows;
	s->fn(s->arg, &s->result);
	sweep_cancel(s);
}

static bool
make_rows(struct sweep *s, const struct zk_event *ev)
{
	uint64_t usable = s->k.worker_last - s->k.worker_first + 1;
	size_t n = (size_t)(usable - s->result.taken), at = 0;

	s->rows = calloc(n + 1, sizeof(*s->rows));
	s->marked = calloc(usable, 1);
	if (s->rows == NULL || s->marked == NULL)
		return (false);
	for (size_t i = 0; i < ev->nnames; i++) {
		uint64_t worker = mark_name_worker(ev->names[i], &s->k);

		if (worker != NO_WORKER)
			s->marked[worker - s->k.worker_first] = 1;
	}
	for (uint64_t i = 0; i < usable && at < n; i++) {
		if ((s->scratch[i / 64] >> (i % 64) & 1) != 0)
			continue;
		s->marked[at] = s->marked[i]; /* at <= i */
		s->rows[at].worker = s->k.worker_first + i;
		s->rows[at++].ceiling = NO_TICK;
	}
	s->result.nrows = at;
	return (true);
}

static void
mark_path(const struct sweep *s, size_t row, char path[MARK_PATH_MAX])
{
	(void)snprintf(path, MARK_PATH_MAX, "%s/%04" PRIu64, s->marks,
	    s->rows[row].worker);
}

/* False: the connection went, and the sweep with it. */
static bool
read_on(struct sweep *s)
{
	char path[MARK_PATH_MAX];

	while (s->nreads < IN_FLIGHT && s->next < s->result.nrows) {
		size_t row = s->next++;
		uint64_t op;

		if (!s->marked[row])
			continue;
		mark_path(s, row, path);
		op = zk_get(s->zk, path, false);
		if (op == 0)
			return (false);
		s->reads[s->nreads++] = (struct read){ op, row };
	}
	return (true);
}

static enum claim_rc
take_mark(struct sweep *s, size_t row, const struct zk_event *ev)
{
	struct doc_error err;
	char path[MARK_PATH_MAX];
	struct mark mark;

	if (ev->rc == ZK_NONODE) {
		s->rows[row].ceiling = NO_TICK;
		return (RC_OK);
	}
	if (ev->rc != ZK_OK && ev->rc != ZK_NOAUTH)
		return (ev->rc == ZK_UNKNOWN ? RC_UNKNOWN : RC_REFUSED);
	mark_path(s, row, path);
	if (ev->rc == ZK_OK &&
	    mark_parse(ev->data, ev->length, &mark, NULL, &err) == 0) {
		s->rows[row].ceiling = mark.ceiling;
		foreign_mended(s->foreign, path);
	} else {
		s->rows[row].ceiling = MARK_GARBLED;
		foreign_tell_reply(s->foreign, path, ev, &err);
	}
	return (RC_OK);
}

static bool
mark_read(struct sweep *s, const struct zk_event *ev)
{
	for (size_t i = 0; i < s->nreads; i++) {
		enum claim_rc rc;

		if (s->reads[i].op != ev->op)
			continue;
		rc = take_mark(s, s->reads[i].row, ev);
		s->reads[i] = s->reads[--s->nreads];
		if (rc != RC_OK || !read_on(s))
			finish(s, rc != RC_OK ? rc : RC_UNKNOWN);
		else if (s->nreads == 0)
			finish(s, RC_OK);
		return (true);
	}
	return (false);
}

bool
sweep_reply(struct sweep *s, const struct zk_event *ev)
{
	if (ev->op != s->claims_op && ev->op != s->marks_op)
		return (mark_read(s, ev));
	if (ev->rc != ZK_OK) {
		finish(s, ev->rc == ZK_UNKNOWN ? RC_UNKNOWN : RC_REFUSED);
		return (true);
	}
	if (ev->op == s->claims_op) {
		s->result.taken =
		    claim_mark_taken(&s->k, ev->names, ev->nnames, s->scratch);
		return (true);
	}
	s->result.marks_stat = (struct claim_stat){
		.czxid = ev->stat.czxid,
		.mzxid = ev->stat.mzxid,
		.version = ev->stat.version,
		.cversion = ev->stat.cversion,
		.num_children = ev->stat.num_children,
	};
	if (!make_rows(s, ev))
		finish(s, RC_REFUSED);
	else if (!read_on(s))
		finish(s, RC_UNKNOWN);
	else if (s->nreads == 0)
		finish(s, RC_OK);
	return (true);
}
