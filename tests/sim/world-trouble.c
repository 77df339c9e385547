/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world-trouble - what goes wrong with one host.
 *
 * Invariant: whatever ends has its time to come back.
 */
#include <string.h>

#include "world-private.h"

void
world_cut_link(struct world *w, unsigned i, int64_t ms)
{
	struct host *h = &w->hosts[i];

	if (!h->link_up)
		return;
	h->link_up = false;
	h->down_at = w->now;
	world_mind_session(w, i);
	/* A reset is noticed at once, silence after two thirds. */
	world_after_ms(w, EV_DOWN, i,
	    world_odds(w, 500) ? 1 : world_between(w, 6667, 7000));
	world_after_ms(w, EV_HEAL, i, ms);
	world_after_ms(w, EV_GIVE_UP, i, world_between(w, 30000, 33000));
}

static void
pause_host(struct world *w, unsigned i)
{
	int64_t ms = world_odds(w, 300) ? world_between(w, 10000, 120000)
					: world_between(w, 1, 9000);

	w->hosts[i].paused = true;
	w->t.pauses++;
	world_mind_session(w, i);
	world_after_ms(w, EV_RESUME, i, ms);
}

static void
step_clock(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];
	int64_t ms = world_between(w, -2000, 2000);
	int64_t most = w->w.wild_clocks ? 30000 : 4000;

	w->t.clock_steps++;
	if (w->w.wild_clocks && world_odds(w, 300))
		ms = world_between(w, -20000, 20000);
	h->wall_offset += ms * NS_PER_MS;
	if (h->wall_offset > most * NS_PER_MS ||
	    h->wall_offset < -most * NS_PER_MS)
		h->wall_offset = 0;
	if (w->w.mad_clocks && world_odds(w, 50))
		h->wall_offset =
		    world_between(w, -3600000, 3600000) * NS_PER_MS;
	h->drift_ppm = w->w.wild_clocks ? world_between(w, -500, 500) : 0;
}

void
world_crash(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];

	w->t.crashes++;
	h->running = false;
	h->connected = false;
	world_abandon_session(w, i);
	h->life++;
	if (w->w.quick && world_odds(w, 600))
		world_after_ms(w, EV_BOOT, i, world_between(w, 0, 4));
	else
		world_after_ms(w, EV_BOOT, i,
		    world_between(w, 1, world_odds(w, 500) ? 200 : 20000));
}

/* The machine starts again: its clients too, and what lies in memory. */
void
world_reboot(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];

	world_crash(w, i);
	w->t.reboots++;
	if (w->w.jumpy_clocks) /* the battery is low */
		step_clock(w, i);
	h->boot_offset = world_between(w, 5, 60) * NS_PER_S - w->now;
	memset(h->after, 0, sizeof(h->after));
	h->file.home = false;
	if (!w->w.safe_files && world_odds(w, 500))
		h->file.there = false;
}

/* This host is made of that one's disk. */
static void
copy_file(struct world *w, unsigned i, unsigned from)
{
	struct host *h = &w->hosts[i];

	world_reboot(w, i);
	if (w->w.safe_files || i == from || !h->filed || w->went_back)
		return;
	w->t.file_faults++;
	h->file = w->hosts[from].file;
	h->file.home = false;
}

static void
fault_file(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];

	if (w->w.safe_files || !h->filed)
		return;
	w->t.file_faults++;
	h->disk = world_odds(w, 700) ? DISK_FULL : DISK_STUCK;
	world_after_ms(w, EV_HEAL, i, world_between(w, 10, 8000));
}

/* The skew's verdict. */
void
world_set_still(struct world *w, unsigned i, bool still)
{
	struct host *h = &w->hosts[i];

	w->t.stills += still;
	h->still = still;
	claim_hold_still(&h->claim, still);
}

/* The file no longer names the window before its mark is lowered. */
static void
stop_agent(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];
	struct instant in;
	struct claim_now t = world_time_of(w, h, &in);
	int64_t last_tick = h->served ? h->serve.gen.last_tick : NO_TICK;
	bool lowers =
	    h->claim.connected && h->claim.has_own && h->claim.own.owned;

	w->t.stops++;
	h->serve.gate.draining = true;
	if (!world_end_paper(h, last_tick, !lowers) && lowers)
		h->claim.has_own = false; /* the mark stays as it is */
	if (h->filed && world_odds(w, 100)) {
		world_crash(w, i);
		return;
	}
	claim_stop(&h->claim, t, last_tick);
	world_after_ms(w, EV_QUIT, i,
	    h->filed && world_odds(w, 300) ? world_between(w, 0, 20)
					   : 2 * DEADLINE_NS / NS_PER_MS);
	world_pump(w, i);
}

/* Host i's process appears on host j too, which has its clock as well. */
void
world_copy_process(struct world *w, unsigned i, unsigned j)
{
	struct host *a = &w->hosts[i], *b = &w->hosts[j];
	struct instant in;

	if (i == j || !a->running || a->paused || a->claim.stopping ||
	    a->twin != 0 || !a->claim.has_own || b->paused || b->twin != 0)
		return;
	if (b->running)
		world_crash(w, j);
	w->t.twins++;
	b->running = true;
	b->boot_offset = a->boot_offset;
	b->wall_offset = a->wall_offset;
	b->drift_ppm = a->drift_ppm;
	b->clock = a->clock;
	b->serve = a->serve;
	b->served = a->served;
	memcpy(b->after, a->after, sizeof(b->after));
	b->still = a->still;
	b->claim = a->claim;
	b->claim.conf.scratch = b->scratch;
	b->life++;
	b->link++;
	b->connected = b->missed_watch = false;
	b->ninbox = 0;
	b->wake_at = 0;
	a->twin = 1 + j;
	b->twin = 1 + i;
	/* A write under way is of both: it settles nothing. */
	a->twin_settled =
	    a->claim.renewals + a->claim.twins + (a->claim.own.ndoubts > 0);
	b->twin_settled = a->twin_settled;
	claim_session_lost(&b->claim, world_time_of(w, b, &in));
	if (b->link_up)
		world_after_ms(w, EV_UP, j, world_between(w, 1, 3000));
}

/* Ends of the process, and what becomes of its file. */
void
world_file_trouble(struct world *w, unsigned i)
{
	if (w->w.restless && world_odds(w, 300))
		world_cut_link(w, i, world_between(w, 500, 50000));
	switch (world_roll(w) % (w->w.restless ? 16 : 8)) {
	case 0:
		world_reboot(w, i);
		break;
	case 1:
		copy_file(w, i, (unsigned)(world_roll(w) % w->w.hosts));
		break;
	case 2:
		fault_file(w, i);
		break;
	case 3:
	case 4:
	case 5:
		stop_agent(w, i);
		break;
	default:
		world_crash(w, i);
		break;
	}
}

void
world_trouble(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];

	if (w->w.chaos_ms == 0)
		return;
	world_after_ms(
	    w, EV_TROUBLE, i, world_between(w, 1, 2 * (int64_t)w->w.chaos_ms));
	if (!h->running || h->paused || h->claim.stopping)
		return;
	if (world_odds(w, w->w.still)) {
		world_set_still(w, i, true);
		world_after_ms(w, EV_ACCEPT, i, world_between(w, 1, 40000));
	}
	if (w->w.jumpy_clocks && world_odds(w, 500)) {
		step_clock(w, i);
		return;
	}
	if (w->w.files != 0 && world_odds(w, w->w.restless ? 600 : 150)) {
		world_file_trouble(w, i);
		return;
	}
	switch (world_roll(w) % 8) {
	case 0:
		world_cut_link(w, i, world_between(w, 100, 5000));
		break;
	case 1:
		world_cut_link(w, i, world_between(w, 5000, 60000));
		break;
	case 2:
		pause_host(w, i);
		break;
	case 3:
		world_crash(w, i);
		break;
	case 4:
		stop_agent(w, i);
		break;
	case 5: /* nothing comes back for a while */
		h->deaf = true;
		world_after_ms(w, EV_HEAL, i, world_between(w, 10, 6000));
		break;
	default:
		step_clock(w, i);
		break;
	}
}
