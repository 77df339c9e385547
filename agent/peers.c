/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers - lists the claims, reads marks of live ones (and then the claim
 * itself where the mark does not name it), hands on what they say of their
 * clocks.
 *
 * Invariant: fn is called once, and the reader is freed after it.  At most
 * PEERS_READ_MAX claims are looked into at a time, and as many speak.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mark.h"
#include "peers.h"

#define PATHS_MAX 256
#define PATH_MAX_BYTES (PATHS_MAX + CLAIM_NAME_MAX + 1)
#define LOOKS_MAX 256 /* claims tried, if all but a few make no sense */

/* One live claim that is looked into. */
struct look {
	char claim[CLAIM_NAME_MAX];
	uint64_t worker;
	uint64_t op; /* of its mark or its node; 0: no reply is awaited */
	bool at_claim; /* the mark did not speak for it: its node is read */
	bool asks_size; /* it was too large the last time */
	bool own_host; /* says so */
	bool gone;
};

struct peers {
	struct zk *zk;
	char workers[PATHS_MAX], marks[PATHS_MAX];
	struct contract k;
	char own_claim[CLAIM_NAME_MAX];
	uint8_t own_boot_id[UUID_BYTES];
	uint64_t random;
	struct foreign *foreign;
	peers_fn *fn;
	void *arg;
	uint64_t list_op;
	struct look looks[LOOKS_MAX];
	size_t nlooks, started;
	bool lost; /* a reply did not come */
	struct skew_peer found[PEERS_READ_MAX];
	struct peers_result result;
};

struct peers *
peers_start(struct zk *zk, const char *workers_path, const char *marks_path,
    const struct contract *k, const char *own_claim,
    const uint8_t own_boot_id[UUID_BYTES], uint64_t random,
    struct foreign *foreign, peers_fn *fn, void *arg)
{
	struct peers *p;

	if (strlen(workers_path) >= PATHS_MAX ||
	    strlen(marks_path) >= PATHS_MAX)
		return (NULL); /* no realm's name is that long */
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return (NULL);
	p->zk = zk;
	p->k = *k;
	memcpy(p->own_boot_id, own_boot_id, UUID_BYTES);
	p->random = random;
	p->foreign = foreign;
	p->fn = fn;
	p->arg = arg;
	(void)snprintf(p->workers, sizeof(p->workers), "%s", workers_path);
	(void)snprintf(p->marks, sizeof(p->marks), "%s", marks_path);
	(void)snprintf(p->own_claim, sizeof(p->own_claim), "%s", own_claim);
	p->list_op = zk_list(zk, workers_path);
	if (p->list_op == 0) {
		free(p);
		return (NULL);
	}
	return (p);
}

void
peers_cancel(struct peers *p)
{
	free(p);
}

static void
finish(struct peers *p, bool good)
{
	/* One that does not say whose it is may well be another host's. */
	for (size_t i = 0; i < p->started; i++) {
		if (!p->looks[i].own_host && !p->looks[i].gone)
			p->result.others = true;
	}
	p->result.good = good;
	p->result.peers = p->found;
	p->fn(p->arg, &p->result);
	free(p);
}

static uint64_t
below(struct peers *p, uint64_t n)
{
	p->random = p->random * UINT64_C(6364136223846793005) +
		    UINT64_C(1442695040888963407);
	return ((p->random >> 33) % n);
}

/* Of n live claims a random LOOKS_MAX, each as likely as the next ... */
static void
choose(struct peers *p, const char *name, uint64_t worker, uint64_t seen)
{
	uint64_t at = seen < LOOKS_MAX ? seen : below(p, seen + 1);

	if (at >= LOOKS_MAX)
		return;
	if (seen < LOOKS_MAX)
		p->nlooks++;
	memset(&p->looks[at], 0, sizeof(p->looks[at]));
	(void)snprintf(p->looks[at].claim, CLAIM_NAME_MAX, "%s", name);
	p->looks[at].worker = worker;
}

/* ... in an order that is as random. */
static void
shuffle(struct peers *p)
{
	for (size_t i = p->nlooks; i > 1; i--) {
		size_t j = (size_t)below(p, i);
		struct look l = p->looks[j];

		p->looks[j] = p->looks[i - 1];
		p->looks[i - 1] = l;
	}
}

/* Of the mark, or of the claim itself. */
static void
look_path(const struct peers *p, const struct look *l, char *path)
{
	if (l->at_claim)
		(void)snprintf(
		    path, PATH_MAX_BYTES, "%s/%s", p->workers, l->claim);
	else
		(void)snprintf(
		    path, PATH_MAX_BYTES, "%s/%04" PRIu64, p->marks, l->worker);
}

static bool
read_on(struct peers *p, struct look *l)
{
	char path[PATH_MAX_BYTES];

	look_path(p, l, path);
	l->asks_size = foreign_is_large(p->foreign, path);
	l->op = l->asks_size ? zk_exists(p->zk, path, false)
			     : zk_get(p->zk, path, false);
	return (l->op != 0);
}

static bool
start_look(struct peers *p)
{
	if (p->started == p->nlooks)
		return (true);
	return (read_on(p, &p->looks[p->started++]));
}

static bool
start_looks(struct peers *p)
{
	while (p->started < p->nlooks && p->started < PEERS_READ_MAX) {
		if (!start_look(p))
			return (false);
	}
	return (true);
}

static void
on_list(struct peers *p, const struct zk_event *ev)
{
	uint64_t seen = 0;

	for (size_t i = 0; i < ev->nnames; i++) {
		struct claim_name cn;
		uint64_t worker;

		if (strcmp(ev->names[i], p->own_claim) == 0 ||
		    !claim_name_parse(ev->names[i], &cn))
			continue;
		worker = claim_name_worker(&cn, &p->k);
		if (worker != NO_WORKER)
			choose(p, ev->names[i], worker, seen++);
	}
	foreign_tell_names(p->foreign, p->workers, ev);
	shuffle(p);
	if (!start_looks(p))
		finish(p, false);
	else if (p->nlooks == 0)
		finish(p, true);
}

static void
take_status(struct peers *p, struct look *l, const struct agent_status *st)
{
	struct skew_peer *out;

	l->own_host = memcmp(st->boot_id, p->own_boot_id, UUID_BYTES) == 0;
	if (!st->has_offset || p->result.n == PEERS_READ_MAX)
		return;
	out = &p->found[p->result.n++];
	memcpy(out->boot_id, st->boot_id, UUID_BYTES);
	out->offset_us = st->offset_us;
	out->error_us = st->error_us;
	out->stamp_ms = st->stamp_ms;
	out->epoch = st->epoch;
}

/* What was read makes no sense, or could not be read: false, and told. */
static bool
is_good(struct peers *p, const struct look *l, const struct zk_event *ev,
    int parsed, const struct doc_error *err)
{
	char path[PATH_MAX_BYTES];
	bool good = ev->rc == ZK_OK && parsed == 0;

	look_path(p, l, path);
	if (good)
		foreign_mended(p->foreign, path);
	else if (!l->asks_size)
		foreign_tell_reply(p->foreign, path, ev, err);
	return (good);
}

/*
 * A mark speaks for its claim only if it names it: a dead owner's offset is
 * not the new claimant's.
 */
static bool
on_mark(struct peers *p, struct look *l, const struct zk_event *ev)
{
	struct doc_error err = { "" };
	struct agent_status st;
	struct mark mark;
	int parsed = -1;

	if (ev->rc == ZK_NONODE)
		return (false);
	if (ev->rc == ZK_OK && !l->asks_size)
		parsed = mark_parse(ev->data, ev->length, &mark, &st, &err);
	if (!is_good(p, l, ev, parsed, &err) ||
	    strcmp(mark.owner, l->claim) != 0)
		return (false);
	take_status(p, l, &st);
	return (true);
}

/* False: it says nothing that anybody could judge by. */
static bool
on_claim(struct peers *p, struct look *l, const struct zk_event *ev)
{
	struct doc_error err = { "" };
	struct agent_status st;
	int parsed = -1;

	l->gone = ev->rc == ZK_NONODE;
	if (l->gone)
		return (true);
	if (ev->rc == ZK_OK && !l->asks_size)
		parsed = claim_doc_parse(ev->data, ev->length, &st, &err);
	if (!is_good(p, l, ev, parsed, &err))
		return (false);
	take_status(p, l, &st);
	return (true);
}

static bool
all_heard(const struct peers *p)
{
	for (size_t i = 0; i < p->started; i++) {
		if (p->looks[i].op != 0)
			return (false);
	}
	return (true);
}

/* It is no longer as large as it was: it is read as any other. */
static void
read_again(struct peers *p, struct look *l)
{
	char path[PATH_MAX_BYTES];

	look_path(p, l, path);
	foreign_mended(p->foreign, path);
	p->lost = !read_on(p, l) || p->lost;
}

static void
take_look(struct peers *p, struct look *l, const struct zk_event *ev)
{
	l->op = 0;
	if (ev->rc == ZK_UNKNOWN)
		p->lost = true;
	else if (l->asks_size && ev->rc == ZK_OK && !foreign_too_large(ev))
		read_again(p, l);
	else if (l->at_claim) {
		if (!on_claim(p, l, ev))
			p->lost = !start_look(p) || p->lost;
	} else if (!on_mark(p, l, ev)) {
		l->at_claim = true;
		p->lost = !read_on(p, l) || p->lost;
	}
}

static struct look *
find_look(struct peers *p, uint64_t op)
{
	for (size_t i = 0; i < p->started; i++) {
		if (p->looks[i].op != 0 && p->looks[i].op == op)
			return (&p->looks[i]);
	}
	return (NULL);
}

bool
peers_reply(struct peers *p, const struct zk_event *ev)
{
	struct look *l;

	if (p->list_op != 0 && ev->op == p->list_op) {
		p->list_op = 0;
		if (ev->rc == ZK_OK)
			on_list(p, ev);
		else
			finish(p, false);
		return (true);
	}
	l = find_look(p, ev->op);
	if (l == NULL)
		return (false);
	take_look(p, l, ev);
	if (all_heard(p))
		finish(p, !p->lost);
	return (true);
}
