/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world-hear - what a host hears, at once or when it goes on.
 *
 * Invariant: nothing of a connection that is gone is heard, and a paused host
 * keeps what comes in its order.
 */
#include <stdlib.h>

#include "world-private.h"

/*
 * The watch comes in the order of the session: before any reply to what was
 * done after the change.
 */
void
world_tell_watch(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];
	int64_t at = w->now + world_between(w, 100, 2000) * 1000;

	if (!h->missed_watch || !h->connected || !h->link_up || h->deaf)
		return;
	h->missed_watch = false;
	if (at < h->last_reply)
		at = h->last_reply;
	h->last_reply = at;
	world_push(w, (struct event){ .at = at,
			  .kind = EV_WATCH,
			  .host = i,
			  .life = h->life,
			  .link = h->link });
}

static void
hear_watch(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];
	struct instant in;

	claim_watch_fired(&h->claim, world_time_of(w, h, &in));
	world_pump(w, i);
}

static void
hear_up(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];
	struct instant in;
	struct claim_now t = world_time_of(w, h, &in);

	if (!h->link_up || h->connected)
		return;
	if (h->session != 0 && keeper_session_dead(&w->z, h->session)) {
		w->t.expired++;
		claim_session_lost(&h->claim, t);
		h->session = 0;
	}
	if (h->session == 0)
		h->session = ++w->next_session;
	h->connected = true;
	h->link++;
	h->last_arrival = h->last_reply = w->now;
	h->unfed_at = -1;
	claim_connected(&h->claim, t, h->session);
	world_pump(w, i);
	world_tell_watch(w, i);
}

static void
hear_down(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];
	struct instant in;
	struct claim_now t = world_time_of(w, h, &in);

	if (!h->connected)
		return;
	h->connected = false;
	claim_disconnected(&h->claim, t);
	world_pump(w, i);
	if (h->running && h->link_up)
		world_after_ms(w, EV_UP, i, world_between(w, 2, 200));
}

static void
hear_given_up(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];
	struct instant in;
	struct claim_now t = world_time_of(w, h, &in);

	if (h->connected || h->session == 0)
		return;
	world_abandon_session(w, i);
	claim_session_lost(&h->claim, t);
	world_pump(w, i);
}

static void
hear_reply(struct world *w, unsigned i, const struct claim_result *r)
{
	struct host *h = &w->hosts[i];
	struct instant in;
	struct claim_now t = world_time_of(w, h, &in);

	claim_result(&h->claim, t, r);
	world_pump(w, i);
}

/* Events of a process; kept while it is paused. */
static void
hear(struct world *w, const struct event *e)
{
	struct host *h = &w->hosts[e->host];
	struct claim_result unknown = { .id = e->id, .rc = RC_UNKNOWN };

	switch (e->kind) {
	case EV_WAKE:
		world_pump(w, e->host);
		break;
	case EV_REPLY:
		/* Replies of a connection that is gone are dropped. */
		if (h->connected && e->link == h->link)
			hear_reply(w, e->host, &e->reply->r);
		break;
	case EV_DEADLINE:
		if (h->connected)
			hear_reply(w, e->host, &unknown);
		break;
	case EV_ISSUE:
		world_issue(w, e->host);
		break;
	case EV_WATCH:
		if (h->connected && e->link == h->link)
			hear_watch(w, e->host);
		else
			h->missed_watch = true;
		break;
	case EV_UP:
		hear_up(w, e->host);
		break;
	case EV_DOWN:
		if (e->link == h->link)
			hear_down(w, e->host);
		break;
	case EV_GIVE_UP:
		if (e->link == h->link)
			hear_given_up(w, e->host);
		break;
	case EV_ARRIVE:
	case EV_TROUBLE:
	case EV_HEAL:
	case EV_EXPIRE:
	case EV_RESUME:
	case EV_QUIT:
	case EV_BOOT:
	case EV_OPERATOR:
	case EV_RENEW:
	case EV_TWIN:
	case EV_ACCEPT:
	case EV_COPY:
	case EV_ROLL_BACK:
	case EV_WIPE:
		break;
	}
}

void
world_free_event(const struct event *e)
{
	if (e->reply != NULL)
		keeper_reply_free(e->reply);
	free(e->reply);
	free(e->op);
}

static void
keep_for_later(struct host *h, const struct event *e)
{
	if (h->ninbox == h->inbox_size) {
		h->inbox_size = h->inbox_size * 2 + 16;
		h->inbox = world_must(
		    realloc(h->inbox, h->inbox_size * sizeof(*h->inbox)));
	}
	h->inbox[h->ninbox++] = *e;
}

void
world_resume(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];
	size_t n = h->ninbox;

	h->paused = false;
	world_mind_session(w, i);
	/* A woken client finds its connection cut by the server. */
	if (h->connected && keeper_session_dead(&w->z, h->session))
		world_after_ms(w, EV_DOWN, i, 1);
	for (size_t k = 0; k < n; k++) {
		struct event e = h->inbox[k];

		if (e.life == h->life && h->running)
			hear(w, &e);
		world_free_event(&e);
	}
	h->ninbox = 0;
}

void
world_process_event(struct world *w, struct event *e)
{
	struct host *h = &w->hosts[e->host];

	if (!h->running || e->life != h->life)
		return;
	if (!h->paused) {
		hear(w, e);
		return;
	}
	if (e->kind == EV_ISSUE)
		return;
	keep_for_later(h, e);
	e->reply = NULL;
	e->op = NULL;
}
