/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world-agent - the process: its start, its session, what it sends.
 *
 * Invariant: a process that ends has its session ended, or leaves it to the
 * server's timer.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"
#include "world-private.h"

/* ZooKeeper or not, there is a window: it is gone on in at once. */
static void
check_resumed(struct world *w, struct host *h)
{
	struct instant in;
	struct claim_now t = world_time_of(w, h, &in);
	int64_t tick = layout_tick_of(&h->claim.k.layout, t.unix_ms);

	w->t.resumed++;
	w->t.resumed_dark += !h->link_up;
	if (h->clock.verdict != CLOCK_GOOD || h->still ||
	    h->disk == DISK_STUCK || tick <= h->claim.not_before ||
	    tick > h->claim.past.ceiling ||
	    h->claim.past.local_mark >= h->claim.past.ceiling ||
	    h->claim.past.local_mark > tick + FILE_AHEAD)
		return;
	if (serve_state(&h->serve, &h->clock, &in) != GATE_ALLOW) {
		w->t.stranded++;
		(void)fprintf(stderr,
		    "sim: at %.3f s host %td does not go on: %s; tick %" PRId64
		    ", local mark %" PRId64 ", ceiling %" PRId64 "\n",
		    (double)w->now / 1e9 - 1000, h - w->hosts,
		    gate_reason_name(serve_state(&h->serve, &h->clock, &in)),
		    tick, h->claim.past.local_mark, h->claim.past.ceiling);
	}
}

void
world_boot_agent(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];
	struct clock_conf clock_conf = { STEP_WAIT, 5, 0 };
	struct claim_conf conf = {
		.renew_ms = 3000,
		.reserve_ms = w->w.reserve_ms,
		.claim_wait_ms = 2000,
		.skew_refuse_ms = 10000,
		.force_worker = w->w.force_worker,
		.scratch = h->scratch,
	};
	struct instant in = world_clock_of(w, h);
	bool resumes;

	h->running = true;
	h->paused = false;
	h->life++;
	h->link++;
	h->connected = false;
	h->served = false;
	h->wake_at = 0;
	h->ninbox = 0;
	h->session = 0;
	h->missed_watch = false;
	h->unfed_at = -1;
	h->twin = 0;
	memset(&h->serve, 0, sizeof(h->serve));
	clock_start(&h->clock, &clock_conf, &in);
	claim_init(&h->claim, &conf, world_roll(w));
	resumes = world_take_over_paper(h, &in);
	claim_hold_still(&h->claim, h->still);
	world_pump(w, i);
	if (resumes)
		check_resumed(w, h);
	if (h->link_up)
		world_after_ms(w, EV_UP, i, world_between(w, 1, 500));
}

static bool
is_fed(const struct host *h)
{
	return (h->running && !h->paused && h->link_up);
}

/* The server has not heard of this session since now, or hears it again. */
void
world_mind_session(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];

	if (h->session == 0)
		return;
	if (is_fed(h))
		h->unfed_at = -1;
	else if (h->unfed_at < 0) {
		h->unfed_at = w->now;
		world_push(w,
		    (struct event){ .at = w->now + SESSION_NS +
					  world_between(w, 0, 2000) * NS_PER_MS,
			.kind = EV_EXPIRE,
			.host = i,
			.session = h->session });
	}
}

/* A dead process leaves its session to the server's timer. */
void
world_abandon_session(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];

	if (h->session != 0)
		world_push(w,
		    (struct event){ .at = w->now + SESSION_NS +
					  world_between(w, 0, 2000) * NS_PER_MS,
			.kind = EV_EXPIRE,
			.host = i,
			.life = UINT32_MAX,
			.session = h->session });
	h->session = 0;
	h->unfed_at = -1;
}

static void
send_op(struct world *w, unsigned i, const struct claim_op *op)
{
	struct host *h = &w->hosts[i];
	struct event e = { .kind = EV_ARRIVE,
		.host = i,
		.life = h->life,
		.link = h->link,
		.session = h->session,
		.id = op->id };
	int64_t at = w->now + world_between(w, 100, 2000) * 1000;

	if (world_odds(w, 5))
		at += world_between(w, 10, 3000) * NS_PER_MS;
	world_push(w, (struct event){ .at = w->now + DEADLINE_NS,
			  .kind = EV_DEADLINE,
			  .host = i,
			  .life = h->life,
			  .id = op->id });
	if (world_odds(w, w->w.lose_request))
		return;
	/*
	 * A cut link keeps what was sent: it may reach the server much later,
	 * when the agent has long given up on it.
	 */
	if (!h->link_up) {
		if (world_odds(w, 500))
			return;
		at += world_between(w, 1, 30000) * NS_PER_MS;
	} else {
		if (at < h->last_arrival)
			at = h->last_arrival;
		h->last_arrival = at;
	}
	e.at = at;
	e.op = world_must(malloc(sizeof(*e.op)));
	*e.op = *op;
	world_push(w, e);
}

void
world_pump(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];
	struct claim_op op;
	struct instant in;
	struct claim_now t = world_time_of(w, h, &in);
	struct entropy rnd = world_fresh(w);
	mono_t wake;

	while (claim_next(&h->claim, t, &rnd, &op)) {
		if (h->still && op.kind == OP_SET_MARK &&
		    h->claim.state != CLAIM_LOWERING &&
		    op.mark.ceiling != h->claim.own.highest)
			w->t.moved++;
		send_op(w, i, &op);
		rnd = world_fresh(w);
	}
	if (!h->served && h->claim.realm_known) {
		serve_init(&h->serve, &h->claim.k.layout, world_odds(w, 500),
		    w->w.lead_ms > 0 ? w->w.lead_ms : 5, 10000);
		h->served = true;
	}
	if (h->served)
		world_update_facts(h, t);
	wake = claim_wake(&h->claim);
	if (wake.ns != MONO_NEVER.ns) {
		int64_t at = wake.ns - h->boot_offset;

		if (at <= w->now)
			at = w->now + NS_PER_MS;
		if (h->wake_at <= w->now || at < h->wake_at) {
			h->wake_at = at;
			world_push(w, (struct event){ .at = at,
					  .kind = EV_WAKE,
					  .host = i,
					  .life = h->life });
		}
	}
	if (h->claim.state == CLAIM_STOPPED) {
		if (h->session != 0 && h->connected && h->link_up) {
			keeper_end_session(&w->z, h->session);
			h->session = 0;
			h->unfed_at = -1;
		} else
			world_abandon_session(w, i);
		h->running = false;
		if (w->w.quick && world_odds(w, 300))
			world_after_ms(w, EV_BOOT, i, world_between(w, 0, 4));
		else
			world_after_ms(w, EV_BOOT, i,
			    world_between(
				w, 1, world_odds(w, 700) ? 5000 : 40000));
	}
}
