/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim-mark - the mark in hand: what a write or a look says of it, its
 * renewal, its loss, and the window that it leaves.
 *
 * Invariant: the window of a mark that is no longer ours is frozen or void: its
 * ceiling never moves.
 */
#include <string.h>

#include "claim-private.h"

static enum write_outcome
outcome_of(enum claim_rc rc)
{
	switch (rc) {
	case RC_OK:
		return (WROTE_OK);
	case RC_NONODE:
		return (WROTE_NONODE);
	case RC_NODEEXISTS:
	case RC_BADVERSION:
		return (WROTE_BADVERSION);
	case RC_GARBLED:
	case RC_DENIED: /* nor can it be told from one that did not come back */
	case RC_REFUSED:
	case RC_UNKNOWN:
		return (WROTE_UNKNOWN);
	}
	return (WROTE_UNKNOWN);
}

/* A reply about the mark in hand: of a write, or of a look. */
enum window_news
claim_mark_news(struct claim *c, struct claim_now now,
    const struct claim_lane *lane, const struct claim_result *r)
{
	enum window_news news;

	(void)now;
	if (lane->kind != OP_GET_MARK)
		return (window_wrote(&c->own, lane->tag, outcome_of(r->rc),
		    r->stat.version, r->stat.czxid));
	if (r->rc == RC_NONODE)
		return (window_read(&c->own, NULL, 0, 0));
	if (r->rc == RC_GARBLED && r->stat.version > c->own.version)
		return (WINDOW_OTHER); /* somebody else wrote it */
	if (r->rc != RC_OK)
		return (WINDOW_DOUBT);
	news = window_read(&c->own, r->mark, r->stat.version, r->stat.czxid);
	/* An own write is one too if its reply was lost. */
	if (news == WINDOW_CONFIRMED && r->stat.mzxid < c->sent_zxid)
		return (WINDOW_BACK);
	return (news);
}

/* The mark is no longer ours to write; its window is good to its end. */
void
claim_freeze_own(struct claim *c)
{
	if (c->has_own && c->own.owned &&
	    (!c->has_old || c->own.ceiling > c->old.ceiling)) {
		c->old = c->own;
		if (c->old.floor < c->not_before)
			c->old.floor = c->not_before;
		c->has_old = c->old.ceiling > c->old.floor;
	}
	c->has_own = false;
	c->want = NO_WORKER;
}

/* Nothing more may be issued on its worker ID. */
static void
void_own(struct claim *c)
{
	c->has_own = false;
	c->has_old = false;
	c->want = NO_WORKER;
}

/* A mark that this process has seen was deleted: it never makes it again. */
void
claim_remember_gone(struct claim *c, uint64_t worker)
{
	if (c->ngone == CLAIM_GONE) {
		memmove(
		    c->gone, c->gone + 1, sizeof(c->gone) - sizeof(c->gone[0]));
		c->ngone--;
	}
	c->gone[c->ngone++] = worker;
}

bool
claim_is_gone(const struct claim *c, uint64_t worker)
{
	for (unsigned i = 0; i < c->ngone; i++) {
		if (c->gone[i] == worker)
			return (true);
	}
	return (false);
}

static void
lose_mark(struct claim *c, struct claim_now now, enum window_news news)
{
	const char *cause = "the mark names another owner";

	if (news == WINDOW_TWIN) {
		cause = "another process lives under this claim's name";
		c->twins++;
		void_own(c);
	} else if (news == WINDOW_GONE) {
		cause = "the mark was deleted";
		c->marks_deleted++;
		c->deletions++;
		c->marks_deleted_worker = c->own.worker;
		claim_remember_gone(c, c->own.worker);
		claim_freeze_own(c);
	} else
		claim_freeze_own(c);
	c->given_up = 0;
	c->rounds = 0;
	c->renew.busy = false;
	/* A name stands for one tenure: another take-over has another one. */
	if (c->node[0] != '\0')
		claim_remember_ghost(c, c->node);
	if (c->stopping)
		claim_enter(c, CLAIM_LEAVING, cause);
	else if (c->state == CLAIM_AWAY || c->state == CLAIM_LOOKING)
		return;
	else if (c->node[0] != '\0')
		claim_clear(
		    c, c->node, c->node_generation, CLAIM_SETTLING, cause);
	else
		claim_enter(c, CLAIM_SETTLING, cause);
	(void)now;
}

void
claim_on_renewal(struct claim *c, struct claim_now now, enum window_news news)
{
	switch (news) {
	case WINDOW_CONFIRMED:
		c->renewals++;
		c->renew.tries = 0;
		if (c->own.ceiling > c->own.floor) {
			c->long_window = true;
			c->had_window = true;
		}
		/* A renewal that was under way leaves the window open. */
		if (c->state == CLAIM_LOWERING &&
		    c->own.ceiling == c->own.floor)
			claim_enter(c, CLAIM_LEAVING, "mark lowered");
		return;
	case WINDOW_SAME:
		c->renew_at = now.boot; /* it did not land: write again */
		return;
	case WINDOW_DOUBT:
		c->renewals_lost++;
		c->renew.wait =
		    claim_back_off(c, now.boot, c->renew.tries++, 20, 1000);
		return;
	case WINDOW_BACK:
		claim_realm_went_back(c);
		return;
	case WINDOW_TWIN:
	case WINDOW_OTHER:
	case WINDOW_GONE:
		lose_mark(c, now, news);
		return;
	}
}
