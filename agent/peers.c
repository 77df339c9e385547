/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers - lists the claims, reads marks of live ones (and then the claim
 * itself where the mark does not name it), hands on what they say of their
 * clocks.
 *
 * Invariant: fn is called once, and the reader is freed after it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mark.h"
#include "peers.h"

#define PATHS_MAX 256

/* One live claim that is looked into. */
struct look {
	char claim[CLAIM_NAME_MAX];
	uint64_t worker;
	uint64_t op; /* of its mark or its node; 0: no reply is awaited */
	bool at_claim; /* the mark did not speak for it: its node is read */
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
	peers_fn *fn;
	void *arg;
	uint64_t list_op;
	struct look looks[PEERS_READ_MAX];
	size_t nlooks;
	bool lost; /* a reply did not come */
	struct skew_peer found[PEERS_READ_MAX];
	struct peers_result result;
};

struct peers *
peers_start(struct zk *zk, const char *workers_path, const char *marks_path,
    const struct contract *k, const char *own_claim,
    const uint8_t own_boot_id[UUID_BYTES], uint64_t random, peers_fn *fn,
    void *arg)
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
	for (size_t i = 0; i < p->nlooks; i++) {
		if (!p->looks[i].own_host && !p->looks[i].gone)
			p->result.others = true;
	}
	p->result.good = good;
	p->result.peers = p->found;
	p->fn(p->arg, &p->result);
	free(p);
}

/* Of n live claims a random PEERS_READ_MAX, each as likely as the next. */
static void
choose(struct peers *p, const char *name, uint64_t worker, uint64_t seen)
{
	uint64_t at = seen;

	if (seen >= PEERS_READ_MAX) {
		p->random = p->random * UINT64_C(6364136223846793005) +
			    UINT64_C(1442695040888963407);
		at = (p->random >> 33) % (seen + 1);
		if (at >= PEERS_READ_MAX)
			return;
	} else
		p->nlooks++;
	memset(&p->looks[at], 0, sizeof(p->looks[at]));
	(void)snprintf(p->looks[at].claim, CLAIM_NAME_MAX, "%s", name);
	p->looks[at].worker = worker;
}

static bool
read_mark(struct peers *p, struct look *l)
{
	char path[PATHS_MAX + 32];

	(void)snprintf(
	    path, sizeof(path), "%s/%04" PRIu64, p->marks, l->worker);
	l->op = zk_get(p->zk, path, false);
	return (l->op != 0);
}

static bool
read_claim(struct peers *p, struct look *l)
{
	char path[PATHS_MAX + CLAIM_NAME_MAX + 1];

	(void)snprintf(path, sizeof(path), "%s/%s", p->workers, l->claim);
	l->at_claim = true;
	l->op = zk_get(p->zk, path, false);
	return (l->op != 0);
}

static bool
start_looks(struct peers *p)
{
	for (size_t i = 0; i < p->nlooks; i++) {
		if (!read_mark(p, &p->looks[i]))
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

/*
 * A mark speaks for its claim only if it names it: a dead owner's offset is
 * not the new claimant's.
 */
static bool
on_mark(struct peers *p, struct look *l, const struct zk_event *ev)
{
	struct agent_status st;
	struct mark mark;

	if (ev->rc != ZK_OK ||
	    mark_parse(ev->data, ev->length, &mark, &st, NULL) != 0 ||
	    strcmp(mark.owner, l->claim) != 0)
		return (false);
	take_status(p, l, &st);
	return (true);
}

static void
on_claim(struct peers *p, struct look *l, const struct zk_event *ev)
{
	struct agent_status st;

	l->gone = ev->rc == ZK_NONODE;
	if (ev->rc == ZK_OK &&
	    claim_doc_parse(ev->data, ev->length, &st, NULL) == 0)
		take_status(p, l, &st);
}

static bool
all_heard(const struct peers *p)
{
	for (size_t i = 0; i < p->nlooks; i++) {
		if (p->looks[i].op != 0)
			return (false);
	}
	return (true);
}

static void
take_look(struct peers *p, struct look *l, const struct zk_event *ev)
{
	l->op = 0;
	if (ev->rc == ZK_UNKNOWN)
		p->lost = true;
	else if (l->at_claim)
		on_claim(p, l, ev);
	else if (!on_mark(p, l, ev) && !read_claim(p, l))
		p->lost = true;
}

static struct look *
find_look(struct peers *p, uint64_t op)
{
	for (size_t i = 0; i < p->nlooks; i++) {
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
