/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_window - what each reply and each look says of a window, and, over
 * random histories against a model of a ZooKeeper node, that two windows
 * never hold a tick in common.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dice.h"
#include "window.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define OWN "00000000-0000-4000-8000-000000000001-w-0000000001"
#define OTHER "00000000-0000-4000-8000-000000000002-w-0000000002"
#define CZXID 77

static struct tag
tag(uint64_t n)
{
	return ((struct tag){ { n, ~n } });
}

static struct mark
mark_of(const char *owner, int64_t ceiling, uint64_t t)
{
	struct mark m = { .ceiling = ceiling, .tag = tag(t) };

	(void)snprintf(m.owner, sizeof(m.owner), "%s", owner);
	return (m);
}

/* Taken over at ceiling 100 with tag 1: owned, version 6, nothing to issue. */
static struct window
taken_over(void)
{
	struct window w;
	struct mark m;

	window_begin(&w, 17, 100, 5, CZXID);
	assert_int_equal(window_write(&w, OWN, 100, tag(1), &m), 5);
	assert_int_equal(
	    window_wrote(&w, tag(1), WROTE_OK, 6, CZXID), WINDOW_CONFIRMED);
	return (w);
}

/* ... and grown to 200 with tag 2: version 7, (100, 200]. */
static struct window
grown(void)
{
	struct window w = taken_over();
	struct mark m;

	assert_int_equal(window_write(&w, OWN, 200, tag(2), &m), 6);
	assert_int_equal(
	    window_wrote(&w, tag(2), WROTE_OK, 7, CZXID), WINDOW_CONFIRMED);
	return (w);
}

/* ---- a life ---------------------------------------------------------------- */

static void
test_life(void **state)
{
	struct window w;
	struct mark m;

	(void)state;
	window_begin(&w, 17, 100, 5, CZXID);
	assert_true(window_sane(&w));
	assert_false(w.owned);
	assert_false(window_holds(&w, 100));
	assert_false(window_holds(&w, 101));

	/* The take-over leaves the ceiling and carries the new name. */
	assert_int_equal(window_write(&w, OWN, 100, tag(1), &m), 5);
	assert_int_equal(m.ceiling, 100);
	assert_string_equal(m.owner, OWN);
	assert_int_equal(m.tag.word[0], 1);
	assert_int_equal(m.tag.word[1], ~UINT64_C(1));
	assert_int_equal(
	    window_wrote(&w, tag(1), WROTE_OK, 6, CZXID), WINDOW_CONFIRMED);
	assert_true(w.owned);
	assert_false(window_holds(&w, 101)); /* it only fences */

	/* A renewal counts when it is confirmed, not when it is sent. */
	assert_int_equal(window_write(&w, OWN, 200, tag(2), &m), 6);
	assert_int_equal(m.ceiling, 200);
	assert_false(window_holds(&w, 101));
	assert_int_equal(
	    window_wrote(&w, tag(2), WROTE_OK, 7, CZXID), WINDOW_CONFIRMED);
	assert_false(window_holds(&w, 100)); /* the predecessor may have */
	assert_true(window_holds(&w, 101));
	assert_true(window_holds(&w, 200));
	assert_false(window_holds(&w, 201));

	/* The floor stays where the mark was taken over. */
	assert_int_equal(window_write(&w, OWN, 300, tag(3), &m), 7);
	assert_int_equal(
	    window_wrote(&w, tag(3), WROTE_OK, 8, CZXID), WINDOW_CONFIRMED);
	assert_int_equal(w.floor, 100);
	assert_true(window_holds(&w, 101));
	assert_true(window_holds(&w, 300));
}

static void
test_create(void **state)
{
	struct window w;
	struct mark m;

	(void)state;
	window_begin(&w, 17, 40, -1, 0);
	assert_int_equal(window_write(&w, OWN, 40, tag(1), &m), -1);
	assert_int_equal(m.ceiling, 40);
	assert_int_equal(
	    window_wrote(&w, tag(1), WROTE_OK, 0, 9), WINDOW_CONFIRMED);
	assert_int_equal(w.version, 0); /* never -1 again: that is blind */
	assert_int_equal(w.czxid, 9);
	assert_true(window_sane(&w));

	/* The create's reply was lost, but it stands. */
	window_begin(&w, 17, 40, -1, 0);
	(void)window_write(&w, OWN, 40, tag(1), &m);
	assert_int_equal(
	    window_wrote(&w, tag(1), WROTE_UNKNOWN, 0, 0), WINDOW_DOUBT);
	assert_int_equal(window_read(&w, &m, 0, 9), WINDOW_CONFIRMED);
	assert_int_equal(w.version, 0);

	/* It does not stand: no node, write again. */
	window_begin(&w, 17, 40, -1, 0);
	(void)window_write(&w, OWN, 40, tag(1), &m);
	(void)window_wrote(&w, tag(1), WROTE_UNKNOWN, 0, 0);
	assert_true(w.reread);
	assert_int_equal(window_read(&w, NULL, 0, 0), WINDOW_SAME);
	assert_false(w.reread);

	/* Somebody else has created it. */
	window_begin(&w, 17, 40, -1, 0);
	(void)window_write(&w, OWN, 40, tag(1), &m);
	assert_int_equal(
	    window_wrote(&w, tag(1), WROTE_BADVERSION, 0, 0), WINDOW_DOUBT);
	m = mark_of(OTHER, 500, 99);
	assert_int_equal(window_read(&w, &m, 0, 9), WINDOW_OTHER);
	/* Created by us, and taken over by another before we looked. */
	window_begin(&w, 17, 40, -1, 0);
	(void)window_write(&w, OWN, 40, tag(1), &m);
	(void)window_wrote(&w, tag(1), WROTE_UNKNOWN, 0, 0);
	m = mark_of(OTHER, 40, 99);
	assert_int_equal(window_read(&w, &m, 1, 9), WINDOW_OTHER);
}

/* ---- replies ---------------------------------------------------------------- */

struct reply_case {
	const char *why;
	bool owned;
	unsigned writes; /* in doubt; tags 11, 12, ... */
	uint64_t which; /* the tag of the reply */
	enum write_outcome outcome;
	int32_t version; /* beyond the expected one */
	int64_t czxid;
	enum window_news news;
	bool reread;
	unsigned left; /* in doubt afterwards */
};

static const struct reply_case reply_cases[] = {
	{ "a take-over that stands", false, 1, 11, WROTE_OK, 1, CZXID,
	    WINDOW_CONFIRMED, false, 0 },
	{ "a renewal that stands", true, 1, 11, WROTE_OK, 1, CZXID,
	    WINDOW_CONFIRMED, false, 0 },
	{ "one stands: the others expected a version that is gone", true, 3, 12,
	    WROTE_OK, 1, CZXID, WINDOW_CONFIRMED, false, 0 },
	{ "a success on a node made again is none", true, 1, 11, WROTE_OK, 1,
	    CZXID + 1, WINDOW_GONE, false, 1 },
	{ "so for a take-over", false, 1, 11, WROTE_OK, 1, CZXID + 1,
	    WINDOW_GONE, false, 1 },
	{ "definite, none in doubt, ours: somebody wrote under our name", true,
	    1, 11, WROTE_BADVERSION, 0, 0, WINDOW_TWIN, false, 0 },
	{ "definite, another in doubt: it may be that one", true, 2, 12,
	    WROTE_BADVERSION, 0, 0, WINDOW_DOUBT, true, 1 },
	{ "definite, of the older one", true, 2, 11, WROTE_BADVERSION, 0, 0,
	    WINDOW_DOUBT, true, 1 },
	{ "a take-over that came late: look who has it", false, 1, 11,
	    WROTE_BADVERSION, 0, 0, WINDOW_DOUBT, true, 0 },
	{ "the same with another in doubt", false, 2, 12, WROTE_BADVERSION, 0,
	    0, WINDOW_DOUBT, true, 1 },
	{ "deleted", true, 1, 11, WROTE_NONODE, 0, 0, WINDOW_GONE, false, 1 },
	{ "deleted, several in doubt", true, 3, 12, WROTE_NONODE, 0, 0,
	    WINDOW_GONE, false, 3 },
	{ "deleted before the take-over", false, 1, 11, WROTE_NONODE, 0, 0,
	    WINDOW_GONE, false, 1 },
	{ "no reply", true, 1, 11, WROTE_UNKNOWN, 0, 0, WINDOW_DOUBT, true, 1 },
	{ "no reply to a take-over", false, 1, 11, WROTE_UNKNOWN, 0, 0,
	    WINDOW_DOUBT, true, 1 },
	{ "no reply, several", true, 4, 13, WROTE_UNKNOWN, 0, 0, WINDOW_DOUBT,
	    true, 4 },
	{ "a reply that nobody waits for any more", true, 0, 11, WROTE_OK, 1,
	    CZXID, WINDOW_SAME, false, 0 },
	{ "the same with a write in doubt", true, 1, 99, WROTE_BADVERSION, 0, 0,
	    WINDOW_SAME, false, 1 },
};

static void
test_replies(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(reply_cases); i++) {
		const struct reply_case *c = &reply_cases[i];
		struct window w = grown(), before;
		struct mark m;
		enum window_news news;

		if (!c->owned)
			window_begin(&w, 17, 100, 7, CZXID);
		for (unsigned k = 0; k < c->writes; k++)
			assert_int_equal(window_write(&w, OWN, 300 + (int64_t)k,
					     tag(11 + k), &m),
			    7);
		before = w;
		news = window_wrote(
		    &w, tag(c->which), c->outcome, 7 + c->version, c->czxid);
		if (news != c->news || w.reread != c->reread ||
		    w.ndoubts != c->left)
			fail_msg("%s: news %d, reread %d, left %u", c->why,
			    news, w.reread, w.ndoubts);
		assert_true(window_sane(&w));
		if (news != WINDOW_CONFIRMED) { /* nothing else counts */
			assert_int_equal(w.ceiling, before.ceiling);
			assert_int_equal(w.floor, before.floor);
			assert_int_equal(w.version, before.version);
			assert_int_equal(w.owned, before.owned);
		} else
			assert_int_equal(
			    w.ceiling, 300 + (int64_t)c->which - 11);
	}
}

/* ---- looks -------------------------------------------------------------------- */

struct look_case {
	const char *why;
	bool owned;
	unsigned writes; /* in doubt; tags 11, 12, ... */
	const char *owner; /* NULL: no node */
	uint64_t tag;
	int32_t version; /* the window expects 7 */
	int64_t czxid;
	enum window_news news;
};

static const struct look_case look_cases[] = {
	{ "the write has not landed", true, 1, OWN, 2, 7, CZXID, WINDOW_SAME },
	{ "the take-over has not landed", false, 1, OTHER, 9, 7, CZXID,
	    WINDOW_SAME },
	{ "it has landed", true, 1, OWN, 11, 8, CZXID, WINDOW_CONFIRMED },
	{ "the take-over has landed", false, 1, OWN, 11, 8, CZXID,
	    WINDOW_CONFIRMED },
	{ "the second of three has landed", true, 3, OWN, 12, 8, CZXID,
	    WINDOW_CONFIRMED },
	{ "the oldest of three, late", true, 3, OWN, 11, 8, CZXID,
	    WINDOW_CONFIRMED },
	{ "a foreign tag under our name: a copy of this process", true, 1, OWN,
	    99, 8, CZXID, WINDOW_TWIN },
	{ "so without any write in doubt", true, 0, OWN, 99, 8, CZXID,
	    WINDOW_TWIN },
	{ "so after several versions", true, 1, OWN, 99, 11, CZXID,
	    WINDOW_TWIN },
	{ "under our name, and we do not own it: then it is not ours", false, 1,
	    OWN, 99, 8, CZXID, WINDOW_OTHER },
	{ "another owner", true, 1, OTHER, 99, 8, CZXID, WINDOW_OTHER },
	{ "another owner, much later", true, 2, OTHER, 99, 30, CZXID,
	    WINDOW_OTHER },
	{ "another took over before us", false, 1, OTHER, 99, 8, CZXID,
	    WINDOW_OTHER },
	{ "our tag, but two versions on: cannot be that write", true, 1, OWN,
	    11, 9, CZXID, WINDOW_TWIN },
	{ "an older version: the data went back", true, 1, OWN, 1, 6, CZXID,
	    WINDOW_BACK },
	{ "so before the take-over", false, 1, OTHER, 1, 6, CZXID,
	    WINDOW_BACK },
	{ "deleted", true, 1, NULL, 0, 0, 0, WINDOW_GONE },
	{ "deleted, nothing in doubt", true, 0, NULL, 0, 0, 0, WINDOW_GONE },
	{ "deleted before the take-over", false, 1, NULL, 0, 0, 0,
	    WINDOW_GONE },
	{ "made again, same version", true, 1, OWN, 2, 7, CZXID + 1,
	    WINDOW_GONE },
	{ "made again, with our own write on it", true, 1, OWN, 11, 8,
	    CZXID + 1, WINDOW_GONE },
	{ "made again, lower version: deleted, not gone back", true, 1, OTHER,
	    99, 0, CZXID + 1, WINDOW_GONE },
};

static void
test_looks(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(look_cases); i++) {
		const struct look_case *c = &look_cases[i];
		struct window w = grown(), before;
		struct mark m;
		enum window_news news;

		if (!c->owned)
			window_begin(&w, 17, 100, 7, CZXID);
		for (unsigned k = 0; k < c->writes; k++) {
			(void)window_write(
			    &w, OWN, 300 + (int64_t)k, tag(11 + k), &m);
			(void)window_wrote(
			    &w, tag(11 + k), WROTE_UNKNOWN, 0, 0);
		}
		before = w;
		if (c->owner != NULL)
			m = mark_of(c->owner, 777, c->tag);
		news = window_read(
		    &w, c->owner != NULL ? &m : NULL, c->version, c->czxid);
		if (news != c->news)
			fail_msg("%s: news %d", c->why, news);
		assert_true(window_sane(&w));
		if (news == WINDOW_CONFIRMED) {
			/* The write's own ceiling, whatever the node says. */
			assert_int_equal(w.ceiling, 300 + (int64_t)c->tag - 11);
			assert_int_equal(w.version, 8);
			assert_int_equal(w.ndoubts, 0);
			assert_false(w.reread);
		} else {
			assert_int_equal(w.ceiling, before.ceiling);
			assert_int_equal(w.floor, before.floor);
			assert_int_equal(w.owned, before.owned);
		}
	}
}

/* A write that has not landed when we look may still land later. */
static void
test_late_landing(void **state)
{
	struct window w = grown();
	struct mark m, other;

	(void)state;
	(void)window_write(&w, OWN, 300, tag(11), &m);
	(void)window_wrote(&w, tag(11), WROTE_UNKNOWN, 0, 0);
	other = mark_of(OWN, 200, 2);
	assert_int_equal(window_read(&w, &other, 7, CZXID), WINDOW_SAME);
	assert_int_equal(w.ndoubts, 1); /* not forgotten */
	(void)window_write(&w, OWN, 310, tag(12), &other);
	/* The first lands, so the second is refused: no twin. */
	assert_int_equal(
	    window_wrote(&w, tag(12), WROTE_BADVERSION, 0, 0), WINDOW_DOUBT);
	assert_int_equal(window_read(&w, &m, 8, CZXID), WINDOW_CONFIRMED);
	assert_int_equal(w.ceiling, 300);
	assert_int_equal(w.version, 8);
}

/*
 * A copy may write under the name that stands while a write of ours under a
 * new one is in doubt: both names are ours.
 */
static void
test_twin_under_the_name_before(void **state)
{
	struct window w = grown();
	struct mark m;

	(void)state;
	(void)window_write(&w, OTHER, 300, tag(11), &m);
	(void)window_wrote(&w, tag(11), WROTE_UNKNOWN, 0, 0);
	m = mark_of(OWN, 400, 99);
	assert_int_equal(window_read(&w, &m, 8, CZXID), WINDOW_TWIN);

	/* The write stands: both names are still none but ours. */
	w = grown();
	(void)window_write(&w, OTHER, 300, tag(11), &m);
	assert_int_equal(
	    window_wrote(&w, tag(11), WROTE_OK, 8, CZXID), WINDOW_CONFIRMED);
	m = mark_of(OTHER, 400, 99);
	assert_int_equal(window_read(&w, &m, 9, CZXID), WINDOW_TWIN);
}

/* ---- ceilings ------------------------------------------------------------------ */

static void
test_never_lowers(void **state)
{
	struct window w = grown();
	struct mark m;

	(void)state;
	/* The clock went back, or reserve_ms is shorter now. */
	(void)window_write(&w, OWN, 50, tag(11), &m);
	assert_int_equal(m.ceiling, 200);
	assert_int_equal(
	    window_wrote(&w, tag(11), WROTE_OK, 8, CZXID), WINDOW_CONFIRMED);
	assert_int_equal(w.ceiling, 200);
	/* Equal is fine, and higher goes up. */
	(void)window_write(&w, OWN, 200, tag(12), &m);
	assert_int_equal(m.ceiling, 200);
	(void)window_write(&w, OWN, 201, tag(13), &m);
	assert_int_equal(m.ceiling, 201);
	/* What was only asked for is not a floor for the next. */
	(void)window_write(&w, OWN, 50, tag(14), &m);
	assert_int_equal(m.ceiling, 200);

	/* Before the first write: not below what was read. */
	window_begin(&w, 17, 100, 5, CZXID);
	(void)window_write(&w, OWN, NO_TICK, tag(1), &m);
	assert_int_equal(m.ceiling, 100);
}

struct lower_case {
	const char *why;
	int64_t last_tick, not_before, ceiling;
};

static const struct lower_case lower_cases[] = {
	{ "to the last tick issued", 150, NO_TICK, 150 },
	{ "nothing was issued: the predecessor's ticks stand", NO_TICK, NO_TICK,
	    100 },
	{ "last issued on another worker ID, long ago", 20, NO_TICK, 100 },
	{ "the realm's floor", 150, 170, 170 },
	{ "the realm's floor, nothing issued", NO_TICK, 170, 170 },
	{ "last issued in an older, longer window: raises", 250, NO_TICK, 250 },
	{ "everything was issued", 200, NO_TICK, 200 },
};

static void
test_lower(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(lower_cases); i++) {
		const struct lower_case *c = &lower_cases[i];
		struct window w = grown();
		struct mark m;

		assert_int_equal(window_write_lower(&w, c->last_tick,
				     c->not_before, tag(11), &m),
		    7);
		if (m.ceiling != c->ceiling)
			fail_msg("%s: %jd", c->why, (intmax_t)m.ceiling);
		assert_string_equal(m.owner, OWN);
		/* In doubt nothing has changed. */
		assert_int_equal(window_wrote(&w, tag(11), WROTE_UNKNOWN, 0, 0),
		    WINDOW_DOUBT);
		assert_int_equal(w.ceiling, 200);
		assert_int_equal(
		    window_read(&w, &m, 8, CZXID), WINDOW_CONFIRMED);
		assert_int_equal(w.ceiling, c->ceiling);
		for (int64_t t = 0; t < 400; t++)
			assert_false(window_holds(&w, t));
		assert_true(window_sane(&w));
	}
}

/* A renewal under way lands instead of the lowering: still wide open. */
static void
test_lower_loses(void **state)
{
	struct window w = grown();
	struct mark renewal, lowering;

	(void)state;
	(void)window_write(&w, OWN, 300, tag(11), &renewal);
	(void)window_write_lower(&w, 150, NO_TICK, tag(12), &lowering);
	assert_int_equal(
	    window_wrote(&w, tag(12), WROTE_BADVERSION, 0, 0), WINDOW_DOUBT);
	assert_int_equal(window_read(&w, &renewal, 8, CZXID), WINDOW_CONFIRMED);
	assert_int_equal(w.ceiling, 300);
	assert_int_equal(w.floor, 100);
	/* Again, from there. */
	assert_int_equal(
	    window_write_lower(&w, 150, NO_TICK, tag(13), &lowering), 8);
	assert_int_equal(lowering.ceiling, 150);
}

/* ---- the doubts' limit ----------------------------------------------------------- */

static void
test_eviction(void **state)
{
	struct window w = grown();
	struct mark m, oldest;

	(void)state;
	for (unsigned k = 0; k < WINDOW_DOUBTS + 1; k++) {
		assert_int_equal(
		    window_write(&w, OWN, 300, tag(11 + k), &m), 7);
		if (k == 0)
			oldest = m;
		(void)window_wrote(&w, tag(11 + k), WROTE_UNKNOWN, 0, 0);
		assert_true(window_sane(&w));
	}
	assert_int_equal(w.ndoubts, WINDOW_DOUBTS);
	assert_int_equal(w.doubt[0].tag.word[0], 12);
	/* It lands after all: taken for a stranger's, which is safe. */
	assert_int_equal(window_read(&w, &oldest, 8, CZXID), WINDOW_TWIN);
	assert_int_equal(w.ceiling, 200);
	/* Any of the others would count. */
	assert_int_equal(window_read(&w, &m, 8, CZXID), WINDOW_CONFIRMED);
}

/* ---- a node, and windows that fight for it ---------------------------------------- */

#define WINDOWS 4
#define FLIGHTS 12
#define TICKS 4096
#define PAST 8

struct flight {
	bool used, answered; /* done by the node; reply pending */
	unsigned who;
	struct mark mark;
	int32_t expects, version;
	enum write_outcome outcome;
	int64_t czxid;
};

struct rival {
	struct window w;
	bool begun, stopped, lowering;
	char name[CLAIM_NAME_MAX];
	unsigned names;
	int64_t clock; /* own idea of now, in ticks */
	int64_t last; /* last tick issued in this life; NO_TICK: none */
};

struct node {
	bool exists;
	int32_t version;
	int64_t czxid;
	struct mark mark;
};

struct arena {
	struct dice d;
	struct node node, past[PAST]; /* what stale reads may see */
	unsigned npast;
	int64_t zxid;
	uint64_t tags;
	struct flight air[FLIGHTS];
	struct rival rival[WINDOWS];
	unsigned rivals;
	uint8_t issued[TICKS]; /* 1 + who */
	uint64_t writes, landed_late, stale, taken_over, lowered, issues;
};

static void
remember_past(struct arena *a)
{
	a->past[a->npast++ % PAST] = a->node;
}

/* The node takes a write, as ZooKeeper does. */
static void
land(struct arena *a, struct flight *f)
{
	struct node *n = &a->node;

	f->answered = true;
	if (f->expects < 0 && n->exists)
		f->outcome = WROTE_BADVERSION;
	else if (f->expects >= 0 && !n->exists)
		f->outcome = WROTE_NONODE;
	else if (f->expects >= 0 && n->version != f->expects)
		f->outcome = WROTE_BADVERSION;
	else {
		remember_past(a);
		a->zxid++;
		n->version = n->exists ? n->version + 1 : 0;
		n->czxid = n->exists ? n->czxid : a->zxid;
		n->exists = true;
		n->mark = f->mark;
		f->outcome = WROTE_OK;
		f->version = n->version;
		f->czxid = n->czxid;
		a->writes++;
	}
}

/*
 * While the node is as our last confirmed write left it, it holds our very
 * ceiling: nobody who reads it can start below what we may issue.
 */
static void
check_ceiling(const struct arena *a, const struct rival *r)
{
	const struct window *w = &r->w;

	assert_true(window_sane(w));
	if (!r->begun || !w->owned)
		return;
	assert_true(a->node.exists);
	assert_true(w->version <= a->node.version);
	if (w->version == a->node.version)
		assert_int_equal(w->ceiling, a->node.mark.ceiling);
}

static void
new_life(struct arena *a, struct rival *r)
{
	int who = (int)(r - a->rival);

	memset(&r->w, 0, sizeof(r->w));
	r->begun = r->stopped = r->lowering = false;
	r->last = NO_TICK;
	(void)snprintf(
	    r->name, sizeof(r->name), "rival-%d-%u", who, r->names++);
}

static void
give_news(struct arena *a, struct rival *r, enum window_news news)
{
	switch (news) {
	case WINDOW_CONFIRMED:
		if (r->lowering && r->w.ceiling == r->w.floor) {
			r->stopped = true;
			a->lowered++;
		}
		return;
	case WINDOW_SAME:
	case WINDOW_DOUBT:
		return;
	case WINDOW_BACK: /* here: a stale look; the agent would refuse */
	case WINDOW_TWIN:
	case WINDOW_OTHER:
	case WINDOW_GONE:
		/* The old window is good to its end; half the time it ends. */
		if (!r->w.owned || dice_below(&a->d, 2) == 0)
			new_life(a, r);
		return;
	}
}

static struct flight *
free_flight(struct arena *a)
{
	for (size_t i = 0; i < FLIGHTS; i++) {
		if (!a->air[i].used)
			return (&a->air[i]);
	}
	return (NULL);
}

static void
begin_life(struct arena *a, struct rival *r)
{
	/* A look that may be stale, as from a server that lags behind. */
	const struct node *n = &a->node;

	if (a->npast > 0 && dice_below(&a->d, 4) == 0) {
		unsigned most = a->npast < PAST ? a->npast : PAST;

		n = &a->past[dice_below(&a->d, most)];
		a->stale++;
	}
	if (n->exists)
		window_begin(&r->w, 17, n->mark.ceiling, n->version, n->czxid);
	else
		window_begin(&r->w, 17, NO_TICK, -1, 0);
	r->begun = true;
}

static void
send_write(struct arena *a, struct rival *r)
{
	struct flight *f = free_flight(a);
	struct tag t = tag(++a->tags);

	if (f == NULL)
		return;
	memset(f, 0, sizeof(*f));
	f->used = true;
	f->who = (unsigned)(r - a->rival);
	if (r->w.owned && !r->lowering && dice_below(&a->d, 12) == 0)
		r->lowering = true; /* a clean stop: issuing has ended */
	if (r->lowering)
		f->expects =
		    window_write_lower(&r->w, r->last, NO_TICK, t, &f->mark);
	else
		f->expects = window_write(&r->w, r->name,
		    r->w.owned ? r->clock + dice_range(&a->d, -40, 40)
			       : r->w.ceiling,
		    t, &f->mark);
}

static void
look(struct arena *a, struct rival *r)
{
	const struct node *n = &a->node;
	enum window_news news;

	if (n->exists)
		news = window_read(&r->w, &n->mark, n->version, n->czxid);
	else
		news = window_read(&r->w, NULL, 0, 0);
	if (news != WINDOW_SAME && r->w.owned && news == WINDOW_CONFIRMED)
		a->landed_late++;
	give_news(a, r, news);
}

static void
reply(struct arena *a, struct flight *f)
{
	struct rival *r = &a->rival[f->who];
	enum write_outcome o = f->outcome;

	f->used = false;
	if (dice_below(&a->d, 4) == 0)
		o = WROTE_UNKNOWN; /* lost on the way */
	if (o == WROTE_OK && !r->w.owned)
		a->taken_over++;
	give_news(
	    a, r, window_wrote(&r->w, f->mark.tag, o, f->version, f->czxid));
}

static void
issue(struct arena *a, struct rival *r)
{
	int64_t tick = r->clock;

	if (r->lowering || r->stopped || !r->begun)
		return;
	if (tick <= r->w.floor && dice_below(&a->d, 2) == 0)
		tick = r->w.floor + 1; /* waits, in the agent */
	if (dice_below(&a->d, 3) == 0) /* a burst, up to the end */
		tick = r->w.ceiling - 2;
	for (int64_t n = dice_range(&a->d, 1, 6); n > 0; n--, tick++) {
		if (tick <= r->last || !window_holds(&r->w, tick) ||
		    tick >= TICKS)
			continue;
		if (a->issued[tick] != 0)
			fail_msg("tick %jd by %d was issued by %d",
			    (intmax_t)tick, (int)(r - a->rival),
			    a->issued[tick] - 1);
		a->issued[tick] = (uint8_t)(1 + (r - a->rival));
		a->issues++;
		r->last = tick;
	}
}

static void
arena_step(struct arena *a)
{
	struct rival *r = &a->rival[dice_below(&a->d, a->rivals)];
	struct flight *f = &a->air[dice_below(&a->d, FLIGHTS)];

	if (f->used && dice_below(&a->d, 2) == 0) {
		if (!f->answered)
			land(a, f);
		else
			reply(a, f);
		return;
	}
	if (f->used && !f->answered && dice_below(&a->d, 8) == 0) {
		/* The agent gives up on it; it may land later. */
		(void)window_wrote(
		    &a->rival[f->who].w, f->mark.tag, WROTE_UNKNOWN, 0, 0);
		return;
	}
	r->clock += dice_range(&a->d, -3, 4); /* clocks as they please */
	if (dice_below(&a->d, 16) == 0)
		r->clock += dice_range(&a->d, -40, 30);
	if (r->clock < 0)
		r->clock = 0;
	if (r->stopped || dice_below(&a->d, 60) == 0) {
		new_life(a, r); /* done, or killed; its writes fly on */
		return;
	}
	if (!r->begun)
		begin_life(a, r);
	else if (r->w.reread)
		look(a, r);
	else if (dice_below(&a->d, 2) == 0)
		send_write(a, r);
	else
		issue(a, r);
}

static void
test_rivals(void **state)
{
	struct dice d = dice_open("rivals");
	struct arena a;
	uint64_t sum[5] = { 0 };

	(void)state;
	for (int world = 0; world < 1500; world++) {
		memset(&a, 0, sizeof(a));
		a.d.state = dice_next(&d);
		a.rivals = (unsigned)dice_range(&a.d, 2, WINDOWS);
		for (unsigned i = 0; i < a.rivals; i++) {
			new_life(&a, &a.rival[i]);
			a.rival[i].clock = dice_range(&a.d, 0, 60);
		}
		for (int n = 0; n < 600; n++) {
			arena_step(&a);
			for (unsigned i = 0; i < a.rivals; i++)
				check_ceiling(&a, &a.rival[i]);
		}
		sum[0] += a.taken_over;
		sum[1] += a.landed_late;
		sum[2] += a.stale;
		sum[3] += a.lowered;
		sum[4] += a.issues;
	}
	/* The worlds have shown what they are for. */
	for (size_t i = 0; i < COUNT(sum); i++)
		assert_true(sum[i] > 1000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_create),
		cmocka_unit_test(test_replies),
		cmocka_unit_test(test_looks),
		cmocka_unit_test(test_late_landing),
		cmocka_unit_test(test_twin_under_the_name_before),
		cmocka_unit_test(test_never_lowers),
		cmocka_unit_test(test_lower),
		cmocka_unit_test(test_lower_loses),
		cmocka_unit_test(test_eviction),
		cmocka_unit_test(test_rivals),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
