/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world-file - a host's state file, as agent/hold.c and agent/lease.c keep it.
 *
 * Invariant: a file that cannot be written is removed, or nothing is issued.
 */
#include <string.h>

#include "layout.h"
#include "world-private.h"

static bool
write_paper(struct host *h, const struct paper *p)
{
	if (h->disk == DISK_GOOD) {
		h->file = *p;
		h->file.there = h->file.home = true;
		h->file.torn = false;
		return (true);
	}
	if (h->disk == DISK_FULL && h->tears++ % 2 != 0)
		h->file.torn = true;
	return (false);
}

static bool
remove_paper(struct host *h)
{
	if (h->disk == DISK_STUCK)
		return (false);
	h->file.there = false;
	return (true);
}

/* It cannot be written: it must not tell what is no longer so. */
static void
give_up_paper(struct host *h, mono_t boot)
{
	h->hold.retry_at = mono_add_ms(boot, 1000);
	if (remove_paper(h)) {
		h->hold.absent = true;
		h->hold.failed = false;
	} else
		h->hold.failed = true;
}

static void
write_record(struct host *h, mono_t boot, const struct paper *p, int64_t mark)
{
	struct hold *o = &h->hold;
	bool good;

	localmark_writing(&o->mark, mark);
	o->record = *p;
	o->record.local_mark = mark;
	o->floor = p->local_mark;
	good = write_paper(h, &o->record);
	localmark_wrote(&o->mark, good);
	if (good) {
		o->absent = o->failed = false;
		return;
	}
	o->record.worker = NO_WORKER; /* not on file: write it again */
	give_up_paper(h, boot);
}

static bool
says_the_same(const struct paper *a, const struct paper *b)
{
	return (a->worker == b->worker && a->ceiling == b->ceiling &&
		a->refused == b->refused && a->base_ns == b->base_ns &&
		strcmp(a->claim, b->claim) == 0);
}

/* p: what the file should say, with the least local mark. */
static void
update_paper(struct host *h, mono_t boot, int64_t now, const struct paper *p)
{
	struct hold *o = &h->hold;
	int64_t mark = NO_TICK;
	bool due;

	if (!o->begun) {
		o->begun = true;
		localmark_init(&o->mark, true, NO_TICK, FILE_AHEAD);
		o->record.worker = NO_WORKER;
	}
	if ((o->absent || o->failed) && !mono_reached(boot, o->retry_at))
		return;
	due = localmark_due(&o->mark, now, p->ceiling, &mark);
	if (!due && says_the_same(&o->record, p))
		return;
	if (mark < o->mark.confirmed)
		mark = o->mark.confirmed;
	if (mark < p->local_mark)
		mark = p->local_mark;
	o->retry_at = mono_add_ms(boot, 1000);
	write_record(h, boot, p, mark);
}

/* Issuing has ended.  False: the file does not say so. */
bool
world_end_paper(struct host *h, int64_t last_tick, bool keep)
{
	struct hold *o = &h->hold;

	if (!h->filed || !o->begun || o->absent)
		return (!o->failed);
	o->record.open = keep;
	o->record.local_mark = last_tick > o->floor ? last_tick : o->floor;
	if (!keep) /* the mark is about to say the same */
		o->record.ceiling = o->record.local_mark;
	if (o->record.worker == NO_WORKER)
		return (remove_paper(h));
	return (write_paper(h, &o->record) || remove_paper(h));
}

/* The gate's facts, and the file that stands before them. */
void
world_update_facts(struct host *h, struct claim_now t)
{
	struct gate *gate = &h->serve.gate;
	const struct window *w;
	int64_t last = h->served ? h->serve.gen.last_tick : NO_TICK;
	struct paper p;

	claim_facts(&h->claim, t, gate);
	gate->clock_skew = h->still;
	gate->state_failed = false;
	w = claim_window(&h->claim, t);
	if (w == NULL || !h->filed || h->claim.stopping)
		return;
	p = (struct paper){
		.open = true,
		.refused = h->still,
		.contract = h->claim.k,
		.worker = w->worker,
		.ceiling = w->ceiling,
		.local_mark = w->floor > last ? w->floor : last,
		.zxid = h->claim.zxid,
		.base_ns = h->clock.base_ns,
	};
	memcpy(p.claim, claim_window_owner(&h->claim, w), sizeof(p.claim));
	update_paper(
	    h, t.boot, layout_tick_of(&p.contract.layout, t.unix_ms), &p);
	gate->on_file = !h->hold.absent;
	gate->local_mark = h->hold.mark.confirmed;
	gate->state_failed = h->hold.failed;
}

bool
world_may_resume(const struct host *h, int64_t unix_ms)
{
	const struct paper *f = &h->file;

	return (h->filed && f->there && !f->torn && f->home && f->open &&
		layout_tick_of(&f->contract.layout, unix_ms) <= f->ceiling);
}

/* What the process before this one left; true: its window is gone on in. */
bool
world_take_over_paper(struct host *h, const struct instant *in)
{
	const struct paper *f = &h->file;
	struct clock_conf clock_conf = h->clock.conf;
	struct claim_past past;

	memset(&h->hold, 0, sizeof(h->hold));
	if (!h->filed || !f->there || f->torn)
		return (false);
	if (f->home) {
		clock_resume(&h->clock, &clock_conf, in, f->base_ns);
		h->still = f->refused;
	}
	memset(&past, 0, sizeof(past));
	past.contract = f->contract;
	past.worker = f->worker;
	past.ceiling = f->ceiling;
	past.local_mark = f->local_mark;
	past.zxid = f->zxid;
	memcpy(past.claim, f->claim, sizeof(past.claim));
	past.same_home = f->home;
	past.resume = past.same_home &&
		      world_may_resume(h, wall_ms(clock_now(&h->clock, in)));
	claim_resume(&h->claim, &past);
	return (past.resume);
}
