/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world - the simulated fleet: ZooKeeper's side, what happens, and what a
 * scenario may do to it.  The other world-*.c have one purpose each.
 *
 * Invariant: one queue of events in the order of virtual time; a host takes
 * nothing in while it is paused, and everything in order when it goes on.
 */
#include <stdlib.h>
#include <string.h>

#include "layout.h"
#include "world-private.h"

/* ---- the server ---------------------------------------------------------- */

static bool
is_write(const struct claim_op *op)
{
	return (op->kind == OP_CREATE || op->kind == OP_CREATE_MARK ||
		op->kind == OP_SET_MARK);
}

static void
arrive(struct world *w, const struct event *e)
{
	struct host *h = &w->hosts[e->host];
	struct event reply = { .kind = EV_REPLY,
		.host = e->host,
		.life = e->life,
		.link = e->link,
		.id = e->id };
	int64_t at;

	if (keeper_session_dead(&w->z, e->session)) {
		/* An expired session is told at the next word. */
		if (h->connected && e->life == h->life && e->link == h->link)
			world_after_ms(w, EV_DOWN, e->host, 1);
		return;
	}
	/* After a new connection of the session, nothing of the old comes. */
	if (e->life == h->life && e->link != h->link &&
	    h->session == e->session)
		return;
	reply.reply = world_must(malloc(sizeof(*reply.reply)));
	keeper_do(&w->z, e->session, e->op, reply.reply);
	if (!h->link_up || h->deaf || world_odds(w, w->w.lose_reply) ||
	    (is_write(e->op) && world_odds(w, w->w.lose_writes))) {
		w->t.lost++;
		world_free_event(&reply);
		return;
	}
	world_tell_watch(w, e->host);
	at = w->now + world_between(w, 100, 2000) * 1000;
	if (at < h->last_reply)
		at = h->last_reply;
	h->last_reply = at;
	reply.at = at;
	world_push(w, reply);
}

static void
expire(struct world *w, const struct event *e)
{
	struct host *h = &w->hosts[e->host];

	/* Heard of again meanwhile, unless its process is gone for good. */
	if (e->life != UINT32_MAX && h->session == e->session &&
	    (h->unfed_at < 0 || w->now - h->unfed_at < SESSION_NS))
		return;
	keeper_end_session(&w->z, e->session);
}

static void
renew_realm(struct world *w)
{
	keeper_renew(
	    &w->z, START_MS + w->now / NS_PER_MS + w->w.reserve_max_ms + 10000);
	w->went_back = false;
	while (w->ncopies > 0) /* an operator's next one is of this tree */
		keeper_free(&w->copies[--w->ncopies]);
	for (unsigned i = 0; i < w->w.hosts; i++) {
		if (w->hosts[i].session != 0)
			w->hosts[i].missed_watch = true;
		world_tell_watch(w, i);
	}
	if (w->w.renew_realm_ms != 0)
		world_again(w, EV_RENEW, w->w.renew_realm_ms);
}

/* ---- what happens -------------------------------------------------------- */

static void
heal(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];

	h->deaf = false;
	h->disk = DISK_GOOD;
	world_tell_watch(w, i);
	if (h->link_up)
		return;
	h->link_up = true;
	world_mind_session(w, i);
	if (h->running && !h->paused)
		world_after_ms(w, h->connected ? EV_DOWN : EV_UP, i,
		    world_between(w, 1, 1000));
}

static void
happen(struct world *w, struct event *e)
{
	struct host *h = &w->hosts[e->host];

	switch (e->kind) {
	case EV_ARRIVE:
		arrive(w, e);
		return;
	case EV_TROUBLE:
		world_trouble(w, e->host);
		return;
	case EV_HEAL:
		heal(w, e->host);
		return;
	case EV_EXPIRE:
		expire(w, e);
		return;
	case EV_RESUME:
		if (e->life != h->life || !h->running)
			return;
		world_resume(w, e->host);
		if (!h->connected && h->link_up && h->running)
			world_after_ms(w, EV_UP, e->host, 2);
		return;
	case EV_QUIT:
		if (e->life == h->life && h->running && h->claim.stopping)
			world_crash(w, e->host);
		return;
	case EV_BOOT:
		if (h->running)
			return;
		if (world_may_boot(w, h))
			world_boot_agent(w, e->host);
		else
			world_after_ms(w, EV_BOOT, e->host, 1000);
		return;
	case EV_OPERATOR:
		if (w->w.delete_marks_ms == 0)
			return;
		keeper_delete_mark(&w->z, world_roll(w) % w->w.workers);
		world_again(w, EV_OPERATOR, w->w.delete_marks_ms);
		return;
	case EV_RENEW:
		if (w->w.renew_realm_ms != 0 || w->went_back || w->z.missing)
			renew_realm(w);
		return;
	case EV_TWIN:
		if (w->w.twins_ms == 0)
			return;
		world_copy_process(w, (unsigned)(world_roll(w) % w->w.hosts),
		    (unsigned)(world_roll(w) % w->w.hosts));
		world_again(w, EV_TWIN, w->w.twins_ms);
		return;
	case EV_ACCEPT:
		world_set_still(w, e->host, false);
		return;
	case EV_COPY:
		world_copy_data(w);
		return;
	case EV_ROLL_BACK:
		world_roll_back(w);
		return;
	case EV_WIPE:
		world_wipe(w);
		return;
	case EV_ISSUE:
		world_after_ms(w, EV_ISSUE, e->host,
		    world_between(w, 1, 2 * (int64_t)w->w.issue_ms));
		e->life = h->life;
		break;
	case EV_WAKE:
	case EV_REPLY:
	case EV_DEADLINE:
	case EV_WATCH:
	case EV_DOWN:
	case EV_UP:
	case EV_GIVE_UP:
		break;
	}
	world_process_event(w, e);
}

/* ---- making and running -------------------------------------------------- */

struct world *
world_make(const struct weather *weather, uint64_t seed)
{
	struct world *w = world_must(calloc(1, sizeof(*w)));
	struct contract k = { .format = 1,
		.generation = 1,
		.generation_text = "1-00000001",
		.reserve_max_ms = weather->reserve_max_ms,
		.worker_first = 0,
		.worker_last = weather->workers - 1 };

	w->w = *weather;
	w->dice = seed;
	w->now = 1000 * NS_PER_S;
	k.layout = (struct firn_layout){ .size = sizeof(k.layout),
		.time_bits = 41,
		.worker_bits = 12,
		.sequence_bits = 6,
		.tick_ms = 1,
		.epoch_ms = INT64_C(1735689600000),
		.name = "custom" };
	keeper_make(&w->z, &k, weather->blind);
	w->ledger = ledger_make();
	w->hosts = world_must(calloc(weather->hosts, sizeof(*w->hosts)));
	for (unsigned i = 0; i < weather->hosts; i++) {
		struct host *h = &w->hosts[i];

		h->scratch = world_must(calloc(weather->workers / 64 + 1, 8));
		h->link_up = true;
		h->boot_offset = world_between(w, 0, 1000000) * NS_PER_S;
		h->wall_offset = world_between(w, -100, 100) * NS_PER_MS;
		h->filed = world_odds(w, weather->files);
		world_after_ms(w, EV_BOOT, i, world_between(w, 1, 3000));
		world_after_ms(w, EV_ISSUE, i, world_between(w, 1, 1000));
		if (weather->chaos_ms != 0)
			world_after_ms(w, EV_TROUBLE, i,
			    world_between(
				w, 1, 2 * (int64_t)weather->chaos_ms));
	}
	if (weather->delete_marks_ms != 0)
		world_again(w, EV_OPERATOR, 20000);
	if (weather->twins_ms != 0)
		world_again(w, EV_TWIN, 20000);
	if (weather->renew_realm_ms != 0)
		world_again(w, EV_RENEW, 60000);
	if (weather->roll_back_ms != 0) {
		world_again(w, EV_COPY, 10000);
		world_again(w, EV_ROLL_BACK, 100000);
	}
	if (weather->wipe_ms != 0)
		world_again(w, EV_WIPE, 60000);
	return (w);
}

void
world_free(struct world *w)
{
	while (w->nheap > 0) {
		struct event e = world_pop(w);

		world_free_event(&e);
	}
	for (unsigned i = 0; i < w->w.hosts; i++) {
		for (size_t k = 0; k < w->hosts[i].ninbox; k++)
			world_free_event(&w->hosts[i].inbox[k]);
		free(w->hosts[i].inbox);
		free(w->hosts[i].scratch);
	}
	free(w->hosts);
	free(w->heap);
	ledger_free(w->ledger);
	while (w->ncopies > 0)
		keeper_free(&w->copies[--w->ncopies]);
	keeper_free(&w->z);
	free(w);
}

bool
world_run(struct world *w, uint64_t steps, int64_t until_ns)
{
	for (uint64_t n = 0; n < steps && w->nheap > 0; n++) {
		struct event e;

		if (w->heap[0].at >= until_ns) {
			w->now = until_ns;
			break;
		}
		e = world_pop(w);
		w->now = e.at;
		happen(w, &e);
		world_free_event(&e);
		w->t.steps++;
		if (w->t.repeats + w->t.decreases + w->t.outside + w->t.moved +
			w->t.stranded >
		    0)
			return (false);
	}
	return (true);
}

void
world_cut_all(struct world *w, int64_t ns)
{
	for (unsigned i = 0; i < w->w.hosts; i++)
		world_cut_link(w, i, ns / NS_PER_MS);
}

void
world_calm(struct world *w)
{
	w->w.chaos_ms = w->w.delete_marks_ms = w->w.renew_realm_ms =
	    w->w.twins_ms = w->w.roll_back_ms = w->w.wipe_ms = 0;
	w->w.lose_reply = w->w.lose_request = w->w.lose_writes = 0;
	w->w.restless = false;
	if (w->w.careless) { /* late, but in the end */
		w->went_back = true;
		world_again(w, EV_RENEW, 1000);
	}
	for (unsigned i = 0; i < w->w.hosts; i++) {
		w->hosts[i].drift_ppm = 0;
		w->hosts[i].disk = DISK_GOOD;
		world_set_still(w, i, false);
		w->hosts[i].file.refused = false;
	}
}

void
world_kill(struct world *w, unsigned from, unsigned to, bool files)
{
	for (unsigned i = from; i < to; i++) {
		struct host *h = &w->hosts[i];

		w->t.crashes++;
		h->running = h->connected = false;
		world_abandon_session(w, i);
		h->life++;
		if (!files) {
			memset(&h->file, 0, sizeof(h->file));
			memset(h->after, 0, sizeof(h->after));
		}
		world_after_ms(w, EV_BOOT, i, world_between(w, 1, 100));
	}
}

void
world_step_all(struct world *w, int64_t ms)
{
	for (unsigned i = 0; i < w->w.hosts; i++)
		w->hosts[i].wall_offset += ms * NS_PER_MS;
}

void
world_refuse(struct world *w, unsigned from, unsigned to, int64_t off_ms)
{
	for (unsigned i = from; i < to; i++) {
		w->hosts[i].wall_offset = off_ms * NS_PER_MS;
		keeper_end_session(&w->z, w->hosts[i].session);
		world_reboot(w, i);
		w->hosts[i].still = true;
	}
}

void
world_accept(struct world *w, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		w->hosts[i].wall_offset = 0;
		world_set_still(w, i, false);
	}
}

int64_t
world_time(const struct world *w)
{
	return (w->now);
}

void
world_tally(const struct world *w, struct tally *out)
{
	*out = w->t;
	out->creates = w->z.creates;
	out->writes = w->z.writes;
	for (unsigned i = 0; i < w->w.hosts; i++) {
		struct host *h = &w->hosts[i];
		struct instant in;
		struct claim_now t;

		if (h->claim.claims_created > out->most_creates)
			out->most_creates = h->claim.claims_created;
		if (!h->running || h->paused || !h->served)
			continue;
		t = world_time_of(w, h, &in);
		world_update_facts(h, t);
		out->serving +=
		    serve_state(&h->serve, &h->clock, &in) == GATE_ALLOW;
	}
}
