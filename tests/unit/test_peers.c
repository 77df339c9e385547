/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_peers - whose offset counts: claims and marks of a pretended ZooKeeper,
 * linked in place of edge/zk.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dice.h"
#include "mark.h"
#include "names.h"
#include "peers.h"

#define WORKERS "/firn/r/workers.1-0"
#define MARKS "/firn/r/marks.1-0"
#define NODES_MAX 300
#define OPS_MAX 4096
#define OWN_HOST 999
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- ZooKeeper ----------------------------------------------------------- */

struct node {
	char path[200];
	char data[MARK_DOC_MAX];
	size_t length; /* above the size of data: it is too large to be told */
	bool denied;
};

struct op {
	char path[200];
	bool list;
	bool size_only;
	bool unknown; /* no reply comes */
};

/* Operations are numbered from 1; replies are given when the test says. */
struct zk {
	struct node node[NODES_MAX];
	size_t nnodes;
	struct op op[OPS_MAX];
	uint64_t nops, answered;
	uint64_t room; /* operations that are accepted */
};

static struct zk keeper;

static struct foreign foreign;

static uint64_t
submit(struct zk *z, const char *path, bool list)
{
	if (z->nops >= z->room)
		return (0);
	assert_true(z->nops < OPS_MAX);
	(void)snprintf(z->op[z->nops].path, sizeof(z->op[0].path), "%s", path);
	z->op[z->nops].list = list;
	z->op[z->nops].size_only = false;
	z->op[z->nops].unknown = false;
	return (++z->nops);
}

uint64_t
zk_list(struct zk *z, const char *path)
{
	return (submit(z, path, true));
}

uint64_t
zk_get(struct zk *z, const char *path, bool watch)
{
	assert_false(watch);
	return (submit(z, path, false));
}

uint64_t
zk_exists(struct zk *z, const char *path, bool watch)
{
	uint64_t op = submit(z, path, false);

	assert_false(watch);
	if (op != 0)
		z->op[op - 1].size_only = true;
	return (op);
}

/* ---- claims and marks ---------------------------------------------------- */

static const struct contract contract = { .worker_first = 0,
	.worker_last = 1023 };

static void
host_id(uint8_t out[UUID_BYTES], uint64_t host)
{
	memset(out, 0, UUID_BYTES);
	memcpy(out, &host, sizeof(host));
}

static struct agent_status
status_of(uint64_t host, int64_t offset_us)
{
	struct agent_status st = { .state = "serving",
		.host = "h",
		.version = "0",
		.pid = 1,
		.has_offset = true,
		.offset_us = offset_us,
		.error_us = 200,
		.stamp_ms = 1767225600000,
		.epoch = 7 };

	host_id(st.boot_id, host);
	return (st);
}

static struct node *
add_node(const char *parent, const char *name)
{
	struct node *n = &keeper.node[keeper.nnodes++];

	assert_true(keeper.nnodes <= NODES_MAX);
	n->length = 0;
	n->denied = false;
	(void)snprintf(n->path, sizeof(n->path), "%s/%s", parent, name);
	return (n);
}

/* A claim's node, with the status of an agent without a mark; or without. */
static void
add_claim(uint64_t n, const struct agent_status *st)
{
	struct node *node = add_node(WORKERS, claim_of(n));

	if (st != NULL) {
		int length =
		    claim_doc_format(st, node->data, sizeof(node->data));

		assert_true(length > 0);
		node->length = (size_t)length;
	}
}

static void
add_mark(uint64_t worker, const char *owner, const struct agent_status *st)
{
	struct mark mark = { .ceiling = 5 };
	struct node *node;
	char name[24];
	int length;

	(void)snprintf(name, sizeof(name), "%04" PRIu64, worker);
	node = add_node(MARKS, name);
	(void)snprintf(mark.owner, sizeof(mark.owner), "%s", owner);
	length = mark_format(&mark, st, node->data, sizeof(node->data));
	assert_true(length > 0);
	node->length = (size_t)length;
}

/* An agent that serves: its claim's mark names it and says its offset. */
static void
add_agent(uint64_t n, uint64_t host, int64_t offset_us)
{
	struct agent_status st = status_of(host, offset_us);

	add_claim(n, NULL);
	add_mark(n, claim_of(n), &st);
}

/* ---- one reading --------------------------------------------------------- */

struct heard {
	int calls;
	bool good, others;
	struct skew_peer peer[PEERS_READ_MAX];
	size_t n;
};

static void
on_heard(void *arg, const struct peers_result *r)
{
	struct heard *h = arg;

	h->calls++;
	h->good = r->good;
	h->others = r->others;
	h->n = r->n;
	assert_true(r->n <= PEERS_READ_MAX);
	if (r->n > 0)
		memcpy(h->peer, r->peers, r->n * sizeof(r->peers[0]));
}

static const struct node *
find_node(const char *path)
{
	for (size_t i = 0; i < keeper.nnodes; i++) {
		if (strcmp(keeper.node[i].path, path) == 0)
			return (&keeper.node[i]);
	}
	return (NULL);
}

static bool
reply_list(struct peers *p, struct zk_event *ev)
{
	const char *names[NODES_MAX];
	size_t n = 0, skip = strlen(WORKERS) + 1;

	for (size_t i = 0; i < keeper.nnodes; i++) {
		if (strncmp(keeper.node[i].path, WORKERS "/", skip) == 0)
			names[n++] = keeper.node[i].path + skip;
	}
	ev->names = names;
	ev->nnames = n;
	return (peers_reply(p, ev));
}

static bool
reply(struct peers *p, uint64_t op)
{
	struct zk_event ev = { .kind = ZK_REPLY, .op = op, .rc = ZK_OK };
	const struct op *o = &keeper.op[op - 1];
	const struct node *n;

	if (o->unknown)
		ev.rc = ZK_UNKNOWN;
	else if (o->list)
		return (reply_list(p, &ev));
	else if ((n = find_node(o->path)) == NULL)
		ev.rc = ZK_NONODE;
	else if (n->denied && !o->size_only)
		ev.rc = ZK_NOAUTH;
	else {
		ev.stat.data_length = (int32_t)n->length;
		if (!o->size_only) {
			ev.data = n->length > 0 && n->length <= sizeof(n->data)
				      ? n->data
				      : NULL;
			ev.length = n->length;
		}
	}
	return (peers_reply(p, &ev));
}

static struct peers *
start(struct heard *h, const char *own_claim)
{
	uint8_t id[UUID_BYTES];

	memset(h, 0, sizeof(*h));
	host_id(id, OWN_HOST);
	keeper.nops = keeper.answered = 0;
	return (peers_start(&keeper, WORKERS, MARKS, &contract, own_claim, id,
	    4711, &foreign, on_heard, h));
}

/* Answers all, in order; the reader is gone when it has called. */
static void
answer(struct peers *p, const struct heard *h)
{
	while (h->calls == 0 && keeper.answered < keeper.nops)
		assert_true(reply(p, ++keeper.answered));
	assert_int_equal(h->calls, 1);
}

static struct heard
look_around(void)
{
	struct heard h;
	struct peers *p = start(&h, claim_of(0));

	assert_non_null(p);
	answer(p, &h);
	return (h);
}

static int
set_up(void **state)
{
	(void)state;
	keeper.nnodes = 0;
	memset(&foreign, 0, sizeof(foreign));
	keeper.room = OPS_MAX;
	return (0);
}

/* ---- tests --------------------------------------------------------------- */

static void
test_nobody(void **state)
{
	struct heard h;

	(void)state;
	h = look_around();
	assert_true(h.good);
	assert_false(h.others);
	assert_int_equal(h.n, 0);
	/* The own claim is nobody, nor is what is no claim of this realm. */
	add_agent(0, OWN_HOST, 5);
	add_node(WORKERS, ".keep");
	add_node(WORKERS, "00000000-0000-4000-8000-000000000001-w5000-"
			  "0000000001");
	h = look_around();
	assert_true(h.good);
	assert_false(h.others);
	assert_int_equal(keeper.nops, 1); /* the list */
}

static void
test_a_peer(void **state)
{
	struct heard h;
	uint8_t id[UUID_BYTES];

	(void)state;
	add_agent(0, OWN_HOST, 5);
	add_agent(17, 3, -1234567);
	h = look_around();
	assert_true(h.good && h.others);
	assert_int_equal(h.n, 1);
	host_id(id, 3);
	assert_memory_equal(h.peer[0].boot_id, id, UUID_BYTES);
	assert_int_equal(h.peer[0].offset_us, -1234567);
	assert_int_equal(h.peer[0].error_us, 200);
	assert_int_equal(h.peer[0].stamp_ms, 1767225600000);
	assert_int_equal(h.peer[0].epoch, 7);
	/* One read a peer whose mark speaks. */
	assert_int_equal(keeper.nops, 2);
	assert_string_equal(keeper.op[1].path, MARKS "/0017");
}

/* attack 18: a dead owner's offset does not count for the new claimant */
static void
test_mark_names_another(void **state)
{
	struct agent_status dead = status_of(4, 3600 * INT64_C(1000000));
	struct agent_status st = status_of(5, 77);
	struct heard h;

	(void)state;
	add_claim(17, NULL);
	add_mark(17, claim_of(18), &dead);
	h = look_around();
	assert_true(h.good && h.others);
	assert_int_equal(h.n, 0);
	/* What it says itself, on its claim, does. */
	set_up(NULL);
	add_claim(17, &st);
	add_mark(17, claim_of(18), &dead);
	h = look_around();
	assert_int_equal(h.n, 1);
	assert_int_equal(h.peer[0].offset_us, 77);
	/* But not beside its mark. */
	set_up(NULL);
	add_claim(17, &dead);
	add_mark(17, claim_of(17), &st);
	h = look_around();
	assert_int_equal(h.n, 1);
	assert_int_equal(h.peer[0].offset_us, 77);
}

/* Live, but with nothing to say yet: another all the same. */
static void
test_without_offset(void **state)
{
	struct agent_status st = status_of(5, 77);
	struct heard h;

	(void)state;
	st.has_offset = false;
	add_claim(1, NULL); /* no mark, no status */
	add_claim(2, &st);
	add_claim(3, NULL);
	add_mark(3, claim_of(3), &st);
	add_claim(4, NULL);
	add_node(MARKS, "0004"); /* garbled */
	h = look_around();
	assert_true(h.good && h.others);
	assert_int_equal(h.n, 0);
}

/* Claims of the own host are heard and are no others. */
static void
test_own_host(void **state)
{
	struct heard h;

	(void)state;
	add_agent(0, OWN_HOST, 5);
	add_agent(1, OWN_HOST, 6);
	h = look_around();
	assert_true(h.good);
	assert_false(h.others);
	add_agent(2, 1, 7);
	h = look_around();
	assert_true(h.others);
}

/* Listed, then gone, and its mark is another's: not there any more. */
static void
test_gone_meanwhile(void **state)
{
	struct heard h;
	struct peers *p;

	(void)state;
	add_claim(9, NULL);
	p = start(&h, "");
	assert_true(reply(p, ++keeper.answered));
	keeper.nnodes = 0;
	answer(p, &h);
	assert_true(h.good);
	assert_false(h.others);
}

/* A reply that does not come, whichever: told, once, and never left open. */
static void
test_lost_replies(void **state)
{
	struct agent_status st = status_of(5, 77);
	uint64_t ops;

	(void)state;
	add_agent(1, 1, 10);
	add_claim(2, &st);
	add_agent(3, 3, 30);
	(void)look_around();
	ops = keeper.nops;
	assert_int_equal(ops, 5);
	for (uint64_t lost = 1; lost <= ops; lost++) {
		struct heard h;
		struct peers *p = start(&h, claim_of(0));

		while (h.calls == 0 && keeper.answered < keeper.nops) {
			uint64_t op = ++keeper.answered;

			keeper.op[op - 1].unknown = op == lost;
			assert_true(reply(p, op));
		}
		assert_int_equal(h.calls, 1);
		assert_false(h.good);
		assert_int_equal(h.n, lost == 1 ? 0 : 2);
	}
}

/* Not connected: at the start, after the list, between mark and claim. */
static void
test_not_submitted(void **state)
{
	struct heard h;
	struct peers *p;

	(void)state;
	add_claim(1, NULL);
	add_claim(2, NULL);
	keeper.room = 0;
	assert_null(start(&h, ""));
	for (keeper.room = 1; keeper.room < 5; keeper.room++) {
		p = start(&h, "");
		assert_non_null(p);
		answer(p, &h);
		assert_false(h.good);
	}
	p = start(&h, "");
	answer(p, &h);
	assert_true(h.good);
}

static void
test_cancel(void **state)
{
	struct heard h;
	struct peers *p;

	(void)state;
	add_agent(1, 1, 10);
	add_agent(2, 2, 20);
	for (uint64_t after = 0; after < 3; after++) {
		p = start(&h, "");
		while (keeper.answered < after)
			assert_true(reply(p, ++keeper.answered));
		peers_cancel(p);
		assert_int_equal(h.calls, 0);
	}
	peers_cancel(NULL);
}

/* Replies to others' operations, and to the own ones a second time. */
static void
test_not_ours(void **state)
{
	struct heard h;
	struct peers *p;
	struct zk_event ev = { .kind = ZK_REPLY, .rc = ZK_OK };

	(void)state;
	add_agent(1, 1, 10);
	add_agent(2, 2, 20);
	p = start(&h, "");
	ev.op = 4000;
	assert_false(peers_reply(p, &ev));
	assert_true(reply(p, 1));
	assert_false(reply(p, 1));
	ev.op = 0;
	assert_false(peers_reply(p, &ev));
	assert_true(reply(p, 3)); /* in any order */
	assert_false(reply(p, 3));
	assert_int_equal(h.calls, 0);
	assert_true(reply(p, 2));
	assert_int_equal(h.calls, 1);
	assert_int_equal(h.n, 2);
}

/* Of many a random PEERS_READ_MAX, each about as often as the next. */
static void
test_many(void **state)
{
	static unsigned seen[121];
	struct dice d = dice_open("many");
	uint8_t id[UUID_BYTES];

	(void)state;
	memset(seen, 0, sizeof(seen));
	host_id(id, OWN_HOST);
	for (uint64_t i = 1; i <= 120; i++)
		add_agent(i, i, (int64_t)i);
	for (int round = 0; round < 200; round++) {
		struct heard h = { 0 };
		struct peers *p;

		keeper.nops = keeper.answered = 0;
		p = peers_start(&keeper, WORKERS, MARKS, &contract, "", id,
		    dice_next(&d), &foreign, on_heard, &h);
		answer(p, &h);
		assert_true(h.good && h.others);
		assert_int_equal(h.n, PEERS_READ_MAX);
		assert_int_equal(keeper.nops, 1 + PEERS_READ_MAX);
		for (size_t i = 0; i < h.n; i++) {
			for (size_t k = 0; k < i; k++)
				assert_true(
				    h.peer[k].offset_us != h.peer[i].offset_us);
			seen[h.peer[i].offset_us]++;
		}
	}
	/* 200 * 32 / 120 = 53, give or take 6.3 */
	for (size_t i = 1; i <= 120; i++)
		assert_in_range(seen[i], 14, 95);
}

static void
test_long_paths(void **state)
{
	char path[400];
	struct heard h = { 0 };
	uint8_t id[UUID_BYTES] = { 0 };

	(void)state;
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	keeper.nops = 0;
	assert_null(peers_start(&keeper, path, MARKS, &contract, "", id, 1,
	    &foreign, on_heard, &h));
	assert_null(peers_start(&keeper, WORKERS, path, &contract, "", id, 1,
	    &foreign, on_heard, &h));
	assert_int_equal(keeper.nops, 0);
}

/* ---- what others left there ---------------------------------------------- */

#define GOOD_AT 7 /* ms that the one good peer is off, of the next tests */

static struct node *
add_garbage(uint64_t n, const char *text)
{
	struct node *node;

	add_claim(n, NULL);
	node = &keeper.node[keeper.nnodes - 1];
	node->length = strlen(text);
	assert_true(node->length < sizeof(node->data));
	memcpy(node->data, text, node->length);
	return (node);
}

/* Each is told once, whatever it is; the good one is heard each time. */
static void
test_garbage(void **state)
{
	static const struct {
		const char *text;
		const char *why;
	} cases[] = {
		{ "", "nothing" },
		{ "not json", "not JSON" },
		{ "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "nested" },
		{ "{\"status\":7}", "no status" },
		{ "{\"status\":{},\"status\":{}}", "a key twice" },
		{ "{\"status\":{\"pid\":1e400}}", "infinity" },
		{ "\xff\xfe", "no text" },
	};
	struct heard h;

	(void)state;
	add_agent(1, 1, GOOD_AT);
	for (size_t i = 0; i < COUNT(cases); i++)
		(void)add_garbage(10 + i, cases[i].text);
	(void)add_node(WORKERS, "lost+found");
	(void)add_node(WORKERS, "");
	for (int round = 0; round < 5; round++) {
		h = look_around();
		assert_true(h.good && h.others);
		assert_int_equal(h.n, 1);
		assert_int_equal(h.peer[0].offset_us, GOOD_AT);
		assert_int_equal(foreign.lines, COUNT(cases) + 2);
	}
}

static void
test_denied_and_mended(void **state)
{
	struct agent_status st = status_of(2, 70);
	struct heard h;
	struct node *node;

	(void)state;
	add_agent(1, 1, GOOD_AT);
	add_claim(2, &st);
	add_mark(2, claim_of(2), &st);
	node = &keeper.node[keeper.nnodes - 1];
	node->denied = true;
	for (int round = 0; round < 3; round++) {
		h = look_around();
		assert_int_equal(h.n, 2); /* by the claim's own word */
		assert_int_equal(foreign.lines, 1);
	}
	node->denied = false;
	h = look_around();
	assert_int_equal(h.n, 2);
	node->denied = true; /* again is news */
	h = look_around();
	assert_int_equal(foreign.lines, 2);
}

/* A megabyte is read once; then it is only asked for its size. */
static void
test_large(void **state)
{
	struct heard h;
	struct node *node;
	struct agent_status st = status_of(2, 70);
	size_t length;

	(void)state;
	add_agent(1, 1, GOOD_AT);
	add_claim(2, NULL);
	add_mark(2, claim_of(2), &st);
	node = &keeper.node[keeper.nnodes - 1];
	length = node->length;
	node->length = 1000000;
	for (int round = 0; round < 4; round++) {
		size_t sizes = 0;

		h = look_around();
		assert_int_equal(h.n, 1);
		/* list, two marks, and the claim of the one */
		assert_int_equal(keeper.nops, 4);
		for (size_t i = 0; i < keeper.nops; i++)
			sizes += keeper.op[i].size_only ? 1 : 0;
		assert_int_equal(sizes, round > 0 ? 1 : 0);
	}
	assert_int_equal(foreign.lines, 2); /* the mark, the empty claim */
	node->length = length;
	h = look_around();
	assert_int_equal(h.n, 2);
	assert_int_equal(keeper.nops, 4); /* its size, then what it says */
	h = look_around();
	assert_int_equal(keeper.nops, 3);
	assert_int_equal(foreign.lines, 2);
}

/* Two hundred that say nothing do not hide the three that do. */
static void
test_among_garbage(void **state)
{
	struct heard h;

	(void)state;
	for (uint64_t i = 0; i < 200; i++)
		(void)add_garbage(100 + i, "x");
	for (uint64_t i = 1; i <= 3; i++)
		add_agent(i, i, GOOD_AT);
	for (int round = 0; round < 50; round++) {
		h = look_around();
		assert_true(h.good && h.others);
		assert_int_equal(h.n, 3);
	}
	assert_int_equal(foreign.lines, FOREIGN_MAX);
	assert_true(foreign.full_said);
}

/* Thousands of names that are none are one line. */
static void
test_names(void **state)
{
	char name[20];
	struct heard h;

	(void)state;
	add_agent(1, 1, GOOD_AT);
	for (int i = 0; i < 200; i++) {
		(void)snprintf(name, sizeof(name), "other-%d", i);
		(void)add_node(WORKERS, name);
	}
	for (int round = 0; round < 3; round++) {
		h = look_around();
		assert_int_equal(h.n, 1);
		assert_int_equal(foreign.lines, 1);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_nobody, set_up),
		cmocka_unit_test_setup(test_a_peer, set_up),
		cmocka_unit_test_setup(test_mark_names_another, set_up),
		cmocka_unit_test_setup(test_without_offset, set_up),
		cmocka_unit_test_setup(test_own_host, set_up),
		cmocka_unit_test_setup(test_gone_meanwhile, set_up),
		cmocka_unit_test_setup(test_lost_replies, set_up),
		cmocka_unit_test_setup(test_not_submitted, set_up),
		cmocka_unit_test_setup(test_cancel, set_up),
		cmocka_unit_test_setup(test_not_ours, set_up),
		cmocka_unit_test_setup(test_many, set_up),
		cmocka_unit_test_setup(test_long_paths, set_up),
		cmocka_unit_test_setup(test_garbage, set_up),
		cmocka_unit_test_setup(test_denied_and_mended, set_up),
		cmocka_unit_test_setup(test_large, set_up),
		cmocka_unit_test_setup(test_among_garbage, set_up),
		cmocka_unit_test_setup(test_names, set_up),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
