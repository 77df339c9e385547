/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey - reads a whole fleet, once.
 *
 * Invariant: at most IN_FLIGHT reads are under way; fn is called once, and the
 * survey is freed after it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"
#include "mark.h"
#include "survey.h"

#define IN_FLIGHT 64
#define PARENT_MAX 256
#define PATH_MAX_BYTES (PARENT_MAX + CLAIM_NAME_MAX + 1)
#define UNTIL_GARBLED INT64_MAX /* nobody can go by it */
/* Of marks that should not change each one is read again every so often. */
#define ROUNDS 32

enum what { WHAT_MARK, WHAT_CLAIM, WHAT_IDLE };

struct read {
	uint64_t op;
	enum what what;
	size_t at; /* member; of WHAT_IDLE: worker ID less the first */
	bool asks_size; /* it was too large the last time */
};

struct survey {
	struct survey_where where;
	struct contract k;
	char workers[PARENT_MAX], marks[PARENT_MAX];
	survey_fn *fn;
	void *arg;
	uint64_t usable;
	uint64_t claims_op, marks_op;
	struct audit_member *members;
	uint32_t *order;
	uint64_t *claimed, *marked, *quarantined; /* bits by worker ID */
	size_t next; /* member, then usable worker ID, to look at next */
	struct read reads[IN_FLIGHT];
	size_t nreads;
	struct survey_result result;
};

void
survey_forget(struct survey_memory *m)
{
	free(m->until_ms);
	*m = (struct survey_memory){ .until_ms = NULL };
}

/* Is it of this generation?  Else it is begun anew. */
static bool
remember(struct survey_memory *m, const struct contract *k, uint64_t usable)
{
	if (m->until_ms == NULL || m->usable != usable ||
	    strcmp(m->generation, k->generation_text) != 0) {
		survey_forget(m);
		m->until_ms = calloc(usable, sizeof(*m->until_ms));
		m->usable = usable;
		memcpy(m->generation, k->generation_text, GENERATION_MAX);
	}
	m->round++;
	return (m->until_ms != NULL);
}

void
survey_cancel(struct survey *s)
{
	if (s == NULL)
		return;
	free(s->members);
	free(s->order);
	free(s->claimed);
	free(s->marked);
	free(s->quarantined);
	free(s);
}

struct survey *
survey_start(const struct survey_where *where, survey_fn *fn, void *arg)
{
	struct survey *s = calloc(1, sizeof(*s));
	size_t words;

	if (s == NULL)
		return (NULL);
	s->where = *where;
	s->k = *where->k;
	s->fn = fn;
	s->arg = arg;
	s->usable = s->k.worker_last - s->k.worker_first + 1;
	words = (size_t)(s->usable + 63) / 64;
	(void)snprintf(s->workers, sizeof(s->workers), "%s", where->workers);
	(void)snprintf(s->marks, sizeof(s->marks), "%s", where->marks);
	s->claimed = calloc(words, sizeof(uint64_t));
	s->marked = calloc(words, sizeof(uint64_t));
	s->quarantined = calloc(words, sizeof(uint64_t));
	/* In one session replies come in order: the sync has been done. */
	if (s->claimed == NULL || s->marked == NULL || s->quarantined == NULL ||
	    !remember(where->memory, &s->k, s->usable) ||
	    zk_sync(where->zk, s->workers) == 0 ||
	    (s->claims_op = zk_list(where->zk, s->workers)) == 0 ||
	    (s->marks_op = zk_list(where->zk, s->marks)) == 0) {
		survey_cancel(s);
		return (NULL);
	}
	return (s);
}

static void
finish(struct survey *s, bool good)
{
	s->result.good = good;
	s->result.members = s->members;
	s->result.order = s->order;
	s->result.quarantined = s->quarantined;
	s->fn(s->arg, &s->result);
	survey_cancel(s);
}

/* ---- bits ---------------------------------------------------------------- */

static void
set_bit(uint64_t *bits, uint64_t at)
{
	bits[at / 64] |= UINT64_C(1) << (at % 64);
}

static bool
has_bit(const uint64_t *bits, uint64_t at)
{
	return ((bits[at / 64] >> (at % 64) & 1) != 0);
}

/* ---- lists --------------------------------------------------------------- */

static bool
take_claims(struct survey *s, const struct zk_event *ev)
{
	size_t room =
	    ev->nnames < AUDIT_MEMBERS_MAX ? ev->nnames : AUDIT_MEMBERS_MAX;

	foreign_tell_names(s->where.foreign, s->workers, ev);
	s->members = calloc(room + 1, sizeof(*s->members));
	s->order = calloc(room + 1, sizeof(*s->order));
	if (s->members == NULL || s->order == NULL)
		return (false);
	for (size_t i = 0; i < ev->nnames && s->result.n < room; i++) {
		struct audit_member *m = &s->members[s->result.n];
		struct claim_name cn;

		if (!claim_name_parse(ev->names[i], &cn))
			continue;
		m->worker = claim_name_worker(&cn, &s->k);
		if (m->worker == NO_WORKER)
			continue;
		m->counter = cn.counter;
		(void)snprintf(m->claim, sizeof(m->claim), "%s", ev->names[i]);
		set_bit(s->claimed, m->worker - s->k.worker_first);
		s->where.memory->until_ms[m->worker - s->k.worker_first] = 0;
		s->result.n++;
	}
	return (true);
}

static void
take_marks(struct survey *s, const struct zk_event *ev)
{
	int64_t changes = ev->stat.cversion;

	for (size_t i = 0; i < ev->nnames; i++) {
		uint64_t worker = mark_name_worker(ev->names[i], &s->k);

		if (worker != NO_WORKER)
			set_bit(s->marked, worker - s->k.worker_first);
	}
	/* Each deletion adds one to it, as the creation before it did. */
	s->result.marks_deleted = (changes - ev->stat.num_children + 1) / 2;
}

/* ---- reads --------------------------------------------------------------- */

static void
path_of(const struct survey *s, const struct read *r, char *path)
{
	switch (r->what) {
	case WHAT_CLAIM:
		(void)snprintf(path, PATH_MAX_BYTES, "%s/%s", s->workers,
		    s->members[r->at].claim);
		return;
	case WHAT_MARK:
		(void)snprintf(path, PATH_MAX_BYTES, "%s/%04" PRIu64, s->marks,
		    s->members[r->at].worker);
		return;
	case WHAT_IDLE:
		(void)snprintf(path, PATH_MAX_BYTES, "%s/%04" PRIu64, s->marks,
		    s->k.worker_first + r->at);
		return;
	}
}

/* False: the connection went. */
static bool
start_read(struct survey *s, struct read *r, enum what what, size_t at)
{
	char path[PATH_MAX_BYTES];

	r->what = what;
	r->at = at;
	path_of(s, r, path);
	r->asks_size = foreign_is_large(s->where.foreign, path);
	r->op = r->asks_size ? zk_exists(s->where.zk, path, false)
			     : zk_get(s->where.zk, path, false);
	s->result.reads++;
	return (r->op != 0);
}

/* A mark without a claim; does it keep its worker ID, as far as is known? */
static bool
must_read_idle(struct survey *s, uint64_t at)
{
	int64_t until_ms = s->where.memory->until_ms[at];

	if (s->where.claims_only)
		return (false);
	if (!has_bit(s->marked, at) || has_bit(s->claimed, at))
		return (false);
	return (until_ms == 0 ||
		until_ms > add_sat(s->where.now_ms, s->where.wait_ms) ||
		(at + s->where.memory->round) % ROUNDS == 0);
}

static bool
read_on(struct survey *s)
{
	while (s->nreads < IN_FLIGHT &&
	       s->next < s->result.n + (size_t)s->usable) {
		struct read *r = &s->reads[s->nreads];
		size_t at = s->next++;

		if (at >= s->result.n) {
			at -= s->result.n;
			if (!must_read_idle(s, at))
				continue;
			if (!start_read(s, r, WHAT_IDLE, at))
				return (false);
		} else {
			uint64_t bit =
			    s->members[at].worker - s->k.worker_first;

			if (!start_read(s, r,
				has_bit(s->marked, bit) ? WHAT_MARK
							: WHAT_CLAIM,
				at))
				return (false);
		}
		s->nreads++;
	}
	return (true);
}

/* ---- what was read --------------------------------------------------------- */

/* What makes no sense is told; true if it does. */
static bool
tell(struct survey *s, const struct read *r, const struct zk_event *ev,
    int parsed, const struct doc_error *err)
{
	char path[PATH_MAX_BYTES];
	bool good = ev->rc == ZK_OK && parsed == 0;

	path_of(s, r, path);
	if (good || (r->asks_size && ev->rc == ZK_OK && !foreign_too_large(ev)))
		foreign_mended(s->where.foreign, path); /* read the next time */
	else if (!r->asks_size && ev->rc != ZK_NONODE)
		foreign_tell_reply(s->where.foreign, path, ev, err);
	return (good);
}

/* The member whose it is, or who is in hand: false if it does not speak. */
static bool
take_mark(struct survey *s, const struct read *r, const struct zk_event *ev)
{
	struct audit_member *m = &s->members[r->at];
	struct doc_error err = { "" };
	struct agent_status st;
	struct mark mark;
	int parsed = -1;

	if (ev->rc == ZK_OK && !r->asks_size)
		parsed = mark_parse(ev->data, ev->length, &mark, &st, &err);
	if (!tell(s, r, ev, parsed, &err) || strcmp(mark.owner, m->claim) != 0)
		return (false);
	m->status = st;
	m->written_ms = ev->stat.mtime_ms;
	m->has_window = true;
	m->window_ms =
	    layout_tick_start_ms(&s->k.layout, add_sat(mark.ceiling, 1));
	return (true);
}

static void
take_claim(struct survey *s, const struct read *r, const struct zk_event *ev)
{
	struct audit_member *m = &s->members[r->at];
	struct doc_error err = { "" };
	struct agent_status st;
	int parsed = -1;

	if (ev->rc == ZK_OK)
		m->written_ms = ev->stat.mtime_ms;
	if (ev->rc == ZK_OK && !r->asks_size)
		parsed = claim_doc_parse(ev->data, ev->length, &st, &err);
	if (tell(s, r, ev, parsed, &err))
		m->status = st;
}

static void
take_idle(struct survey *s, const struct read *r, const struct zk_event *ev)
{
	int64_t *until_ms = &s->where.memory->until_ms[r->at];
	struct doc_error err = { "" };
	struct mark mark;
	int parsed = -1;

	if (ev->rc == ZK_OK && !r->asks_size)
		parsed = mark_parse(ev->data, ev->length, &mark, NULL, &err);
	*until_ms = UNTIL_GARBLED;
	if (tell(s, r, ev, parsed, &err))
		*until_ms = max64(1, layout_tick_start_ms(&s->k.layout,
					 add_sat(mark.ceiling, 1)));
}

static void
note_quarantine(struct survey *s)
{
	int64_t limit_ms = add_sat(s->where.now_ms, s->where.wait_ms);

	for (uint64_t at = 0; at < s->usable; at++)
		if (has_bit(s->marked, at) && !has_bit(s->claimed, at) &&
		    s->where.memory->until_ms[at] > limit_ms)
			set_bit(s->quarantined, at);
}

/* A claim that went away while it was read is none. */
static void
drop_gone(struct survey *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->result.n; i++)
		if (s->members[i].worker != NO_WORKER)
			s->members[kept++] = s->members[i];
	s->result.n = kept;
}

static void
go_on(struct survey *s, bool good)
{
	if (!good || !read_on(s)) {
		finish(s, false);
		return;
	}
	if (s->nreads > 0)
		return;
	note_quarantine(s);
	drop_gone(s);
	finish(s, true);
}

static void
take_read(struct survey *s, size_t i, const struct zk_event *ev)
{
	struct read r = s->reads[i];
	bool good = ev->rc != ZK_UNKNOWN;

	if (good && r.what == WHAT_MARK && !take_mark(s, &r, ev)) {
		/* In its place the claim itself. */
		go_on(s, start_read(s, &s->reads[i], WHAT_CLAIM, r.at));
		return;
	}
	s->reads[i] = s->reads[--s->nreads];
	if (good && r.what == WHAT_CLAIM && ev->rc == ZK_NONODE)
		s->members[r.at].worker = NO_WORKER;
	else if (good && r.what == WHAT_CLAIM)
		take_claim(s, &r, ev);
	else if (good && r.what == WHAT_IDLE)
		take_idle(s, &r, ev);
	go_on(s, good);
}

bool
survey_reply(struct survey *s, const struct zk_event *ev)
{
	if (ev->op != s->claims_op && ev->op != s->marks_op) {
		for (size_t i = 0; i < s->nreads; i++) {
			if (s->reads[i].op != ev->op)
				continue;
			take_read(s, i, ev);
			return (true);
		}
		return (false);
	}
	if (ev->rc != ZK_OK) {
		finish(s, false);
	} else if (ev->op == s->claims_op) {
		if (!take_claims(s, ev))
			finish(s, false);
	} else {
		take_marks(s, ev);
		go_on(s, true);
	}
	return (true);
}
