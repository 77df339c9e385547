/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world - the simulated fleet.
 *
 * Invariant: one queue of events in the order of virtual time; a host takes
 * nothing in while it is paused, and everything in order when it goes on.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keeper.h"
#include "layout.h"
#include "ledger.h"
#include "localmark.h"
#include "world.h"

#define CLIENTS 3
#define FILE_AHEAD 100 /* ticks */
#define COPIES 8
#define COPY_NS (20 * NS_PER_S)

#define START_MS INT64_C(1767225600000) /* 2026-01-01 */

enum kind {
	EV_WAKE, /* a claim's timer */
	EV_ARRIVE, /* a request reaches the server */
	EV_REPLY, /* a reply reaches its host */
	EV_DEADLINE, /* the host's own deadline of an operation */
	EV_ISSUE, /* a client asks for IDs */
	EV_TROUBLE, /* chaos */
	EV_HEAL, /* the link is up again */
	EV_DOWN, /* the client library notices that it is down */
	EV_UP, /* ... and that it is up */
	EV_GIVE_UP, /* three session timeouts without a connection */
	EV_EXPIRE, /* the server's session timer */
	EV_RESUME, /* a paused host goes on */
	EV_QUIT, /* a stop has taken too long: the process ends */
	EV_BOOT, /* a crashed or stopped agent starts again */
	EV_OPERATOR, /* deletes a mark */
	EV_WATCH, /* the realm's watch has fired */
	EV_RENEW, /* renews the realm */
	EV_TWIN, /* a process is copied, memory and all, to another host */
	EV_ACCEPT, /* its peers no longer refuse a host */
	EV_COPY, /* ZooKeeper's data is backed up */
	EV_ROLL_BACK, /* ... and goes back to such a copy */
	EV_WIPE, /* ... or is lost */
};

struct event {
	int64_t at;
	uint64_t order;
	enum kind kind;
	unsigned host;
	unsigned life; /* of the process; 0: any */
	unsigned link; /* of the connection */
	int64_t session;
	struct claim_op *op;
	struct keeper_reply *reply;
	uint32_t id;
};

/* What the disk does to a state file. */
enum disk {
	DISK_GOOD,
	DISK_FULL, /* no write succeeds, and one may tear what was there */
	DISK_STUCK, /* nor can it be removed */
};

/* A state file. */
struct paper {
	bool there, torn;
	bool home; /* written here, in this boot */
	bool open;
	bool refused; /* by the peers */
	struct contract contract;
	char claim[CLAIM_NAME_MAX];
	uint64_t worker;
	int64_t ceiling, local_mark, zxid, base_ns;
};

/* What a process knows of its state file. */
struct hold {
	struct paper record; /* as last written */
	struct localmark mark;
	int64_t floor; /* of the window in the record */
	bool begun, failed, absent;
	mono_t retry_at;
};

struct host {
	bool running, paused, link_up, deaf; /* deaf: replies are lost */
	bool connected, missed_watch;
	unsigned life, link;
	int64_t session, unfed_at; /* server's view; -1: fed */
	int64_t last_arrival, last_reply;
	int64_t down_at;
	int64_t wall_offset, drift_ppm, boot_offset;
	struct claim claim;
	struct clock clock;
	struct serve serve;
	bool served;
	uint64_t *scratch;
	uint64_t after[CLIENTS]; /* kept across restarts */
	bool filed; /* keeps a state file */
	bool still; /* refused by its peers */
	enum disk disk;
	unsigned tears;
	struct paper file;
	struct hold hold;
	uint32_t open_ids[2];
	int64_t wake_at;
	unsigned twin; /* 1 + the host that runs a copy of this process */
	uint64_t twin_settled; /* renewals and twins that settle nothing */
	struct event *inbox; /* while paused */
	size_t ninbox, inbox_size;
};

struct world {
	struct weather w;
	struct keeper z;
	struct ledger *ledger;
	struct host *hosts;
	struct event *heap;
	size_t nheap, heap_size;
	int64_t now;
	uint64_t order, dice;
	int64_t next_session;
	struct keeper copies[COPIES]; /* of ZooKeeper's data, by age */
	unsigned ncopies;
	bool went_back; /* and the realm was not renewed since */
	int64_t known_zxid; /* who knows less would not notice */
	struct tally t;
};

static void pump(struct world *w, unsigned i);
static void file_trouble(struct world *w, unsigned i);

static void *
must(void *p)
{
	if (p == NULL) {
		(void)fprintf(stderr, "sim: out of memory\n");
		exit(1);
	}
	return (p);
}

/* ---- dice ---------------------------------------------------------------- */

static uint64_t
roll(struct world *w)
{
	uint64_t z = (w->dice += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (z ^ (z >> 31));
}

static int64_t
between(struct world *w, int64_t low, int64_t high)
{
	return (low + (int64_t)(roll(w) % (uint64_t)(high - low + 1)));
}

static bool
odds(struct world *w, unsigned per_mille)
{
	return (roll(w) % 1000 < per_mille);
}

static struct entropy
fresh(struct world *w)
{
	return ((struct entropy){ { roll(w), roll(w), roll(w), roll(w) } });
}

/* ---- queue --------------------------------------------------------------- */

static bool
earlier(const struct event *a, const struct event *b)
{
	return (a->at != b->at ? a->at < b->at : a->order < b->order);
}

static void
push(struct world *w, struct event e)
{
	size_t i = w->nheap++;

	if (w->nheap > w->heap_size) {
		w->heap_size = w->heap_size * 2 + 1024;
		w->heap =
		    must(realloc(w->heap, w->heap_size * sizeof(*w->heap)));
	}
	e.order = w->order++;
	while (i > 0 && earlier(&e, &w->heap[(i - 1) / 2])) {
		w->heap[i] = w->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	w->heap[i] = e;
}

static struct event
pop(struct world *w)
{
	struct event top = w->heap[0], last = w->heap[--w->nheap];
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= w->nheap)
			break;
		if (child + 1 < w->nheap &&
		    earlier(&w->heap[child + 1], &w->heap[child]))
			child++;
		if (!earlier(&w->heap[child], &last))
			break;
		w->heap[i] = w->heap[child];
		i = child;
	}
	if (w->nheap > 0)
		w->heap[i] = last;
	return (top);
}

/* An event of the world's own. */
static void
again(struct world *w, enum kind kind, unsigned ms)
{
	push(w, (struct event){
		    .at = w->now + (int64_t)ms * NS_PER_MS, .kind = kind });
}

static void
after_ms(struct world *w, enum kind kind, unsigned host, int64_t ms)
{
	const struct host *h = &w->hosts[host];

	push(w, (struct event){ .at = w->now + ms * NS_PER_MS,
		    .kind = kind,
		    .host = host,
		    .life = h->life,
		    .link = h->link,
		    .session = h->session });
}

/* ---- clocks -------------------------------------------------------------- */

static struct instant
clock_of(const struct world *w, const struct host *h)
{
	struct instant in;

	in.boot.ns = w->now + h->boot_offset;
	in.wall.ns = START_MS * NS_PER_MS + w->now + h->wall_offset +
		     w->now / 1000000 * h->drift_ppm;
	in.error_ns = 1000;
	return (in);
}

static struct claim_now
time_of(const struct world *w, struct host *h, struct instant *in)
{
	*in = clock_of(w, h);
	(void)clock_observe(&h->clock, in);
	if (h->clock.verdict == CLOCK_LEAP)
		clock_follow(&h->clock, in);
	return ((struct claim_now){
	    .boot = in->boot, .unix_ms = wall_ms(clock_now(&h->clock, in)) });
}

/* ---- the state file: as agent/hold.c and agent/lease.c do it ------------- */

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
static bool
end_paper(struct host *h, int64_t last_tick, bool keep)
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
static void
update_facts(struct host *h, struct claim_now t)
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
	memcpy(p.claim, w->owner, sizeof(p.claim));
	update_paper(
	    h, t.boot, layout_tick_of(&p.contract.layout, t.unix_ms), &p);
	gate->on_file = !h->hold.absent;
	gate->local_mark = h->hold.mark.confirmed;
	gate->state_failed = h->hold.failed;
}

static bool
may_resume(const struct host *h, int64_t unix_ms)
{
	const struct paper *f = &h->file;

	return (h->filed && f->there && !f->torn && f->home && f->open &&
		layout_tick_of(&f->contract.layout, unix_ms) <= f->ceiling);
}

/* What the process before this one left; true: its window is gone on in. */
static bool
take_over_paper(struct host *h, const struct instant *in)
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
	past.resume =
	    past.same_home && may_resume(h, wall_ms(clock_now(&h->clock, in)));
	claim_resume(&h->claim, &past);
	return (past.resume);
}

/* ---- the process --------------------------------------------------------- */

/* ZooKeeper or not, there is a window: it is gone on in at once. */
static void
check_resumed(struct world *w, struct host *h)
{
	struct instant in;
	struct claim_now t = time_of(w, h, &in);
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

static void
boot_agent(struct world *w, unsigned i)
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
	struct instant in = clock_of(w, h);
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
	claim_init(&h->claim, &conf, roll(w));
	resumes = take_over_paper(h, &in);
	claim_hold_still(&h->claim, h->still);
	pump(w, i);
	if (resumes)
		check_resumed(w, h);
	if (h->link_up)
		after_ms(w, EV_UP, i, between(w, 1, 500));
}

static bool
is_fed(const struct host *h)
{
	return (h->running && !h->paused && h->link_up);
}

/* The server has not heard of this session since now, or hears it again. */
static void
mind_session(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];

	if (h->session == 0)
		return;
	if (is_fed(h))
		h->unfed_at = -1;
	else if (h->unfed_at < 0) {
		h->unfed_at = w->now;
		push(w, (struct event){ .at = w->now + SESSION_NS +
					      between(w, 0, 2000) * NS_PER_MS,
			    .kind = EV_EXPIRE,
			    .host = i,
			    .session = h->session });
	}
}

/* A dead process leaves its session to the server's timer. */
static void
abandon_session(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];

	if (h->session != 0)
		push(w, (struct event){ .at = w->now + SESSION_NS +
					      between(w, 0, 2000) * NS_PER_MS,
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
	int64_t at = w->now + between(w, 100, 2000) * 1000;

	if (odds(w, 5))
		at += between(w, 10, 3000) * NS_PER_MS;
	push(w, (struct event){ .at = w->now + DEADLINE_NS,
		    .kind = EV_DEADLINE,
		    .host = i,
		    .life = h->life,
		    .id = op->id });
	if (odds(w, w->w.lose_request))
		return;
	/*
	 * A cut link keeps what was sent: it may reach the server much later,
	 * when the agent has long given up on it.
	 */
	if (!h->link_up) {
		if (odds(w, 500))
			return;
		at += between(w, 1, 30000) * NS_PER_MS;
	} else {
		if (at < h->last_arrival)
			at = h->last_arrival;
		h->last_arrival = at;
	}
	e.at = at;
	e.op = must(malloc(sizeof(*e.op)));
	*e.op = *op;
	push(w, e);
}

static void
pump(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];
	struct claim_op op;
	struct instant in;
	struct claim_now t = time_of(w, h, &in);
	struct entropy rnd = fresh(w);
	mono_t wake;

	while (claim_next(&h->claim, t, &rnd, &op)) {
		if (h->still && op.kind == OP_SET_MARK &&
		    h->claim.state != CLAIM_LOWERING &&
		    op.mark.ceiling != h->claim.own.highest)
			w->t.moved++;
		send_op(w, i, &op);
		rnd = fresh(w);
	}
	if (!h->served && h->claim.realm_known) {
		serve_init(&h->serve, &h->claim.k.layout, odds(w, 500),
		    w->w.lead_ms > 0 ? w->w.lead_ms : 5, 10000);
		h->served = true;
	}
	if (h->served)
		update_facts(h, t);
	wake = claim_wake(&h->claim);
	if (wake.ns != MONO_NEVER.ns) {
		int64_t at = wake.ns - h->boot_offset;

		if (at <= w->now)
			at = w->now + NS_PER_MS;
		if (h->wake_at <= w->now || at < h->wake_at) {
			h->wake_at = at;
			push(w, (struct event){ .at = at,
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
			abandon_session(w, i);
		h->running = false;
		if (w->w.quick && odds(w, 300))
			after_ms(w, EV_BOOT, i, between(w, 0, 4));
		else
			after_ms(w, EV_BOOT, i,
			    between(w, 1, odds(w, 700) ? 5000 : 40000));
	}
}

/*
 * Copied, and no write of the mark that was sent since has been settled, or
 * its old window still stands.
 */
static bool
is_unsettled(const struct host *h)
{
	return (h->running && h->twin != 0 &&
		(h->claim.has_old ||
		    (h->claim.has_own && h->claim.renewals + h->claim.twins <=
					     h->twin_settled)));
}

/*
 * Until each of the two has renewed once they repeat each other: nothing
 * inside can tell, and the page of promises says so.
 */
static bool
in_twin_time(struct world *w, struct host *h)
{
	struct host *other;

	if (h->twin == 0)
		return (false);
	other = &w->hosts[h->twin - 1];
	if (is_unsettled(h) || (other->twin == 1 + (unsigned)(h - w->hosts) &&
				   is_unsettled(other)))
		return (true);
	h->twin = 0;
	return (false);
}

static unsigned
book_run(struct world *w, const struct firn_parts *p, const struct run *r)
{
	unsigned again = ledger_book(
	    w->ledger, p->worker, p->tick, (unsigned)p->sequence, r->count);

	w->t.repeats += again;
	return (again);
}

static void
book(
    struct world *w, struct host *h, uint64_t *after, const struct gen_grant *g)
{
	const struct firn_layout *l = &w->z.k.layout;
	bool twins = in_twin_time(w, h);

	for (unsigned i = 0; i < g->nruns; i++) {
		struct firn_parts p;
		const struct run *r = &g->runs[i];

		if (firn_decode(l, r->first, &p) != 0 ||
		    (w->w.force_worker != NO_WORKER &&
			p.worker != w->w.force_worker)) {
			w->t.outside++;
			continue;
		}
		if (r->first <= *after)
			w->t.decreases++;
		*after = r->first + (r->count - 1) * r->stride;
		w->t.ids += r->count;
		if (twins)
			continue;
		if (book_run(w, &p, r) > 0)
			(void)fprintf(stderr,
			    "sim: at %.3f s host %td repeats worker %" PRIu64
			    " tick %" PRIu64 " sequence %" PRIu64 "\n",
			    (double)w->now / 1e9 - 1000, h - w->hosts, p.worker,
			    p.tick, p.sequence);
	}
}

/* One request of one client; false: it was not granted. */
static bool
ask(struct world *w, struct host *h, uint64_t *after, uint32_t count)
{
	struct serve_answer a;
	struct serve_request rq = {
		.count = count,
		.after = *after,
		.random = roll(w),
		.waiting = odds(w, 100) ? 3 : 0,
	};
	struct instant in;
	struct claim_now t = time_of(w, h, &in);

	update_facts(h, t);
	serve_batch(&h->serve, &h->clock, &in, &rq, &a);
	if (a.verdict == SERVE_GRANT)
		book(w, h, after, &a.grant);
	else if (a.verdict == SERVE_REFUSE)
		w->t.refusals[a.reason & 15]++;
	return (a.verdict == SERVE_GRANT);
}

static void
issue(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];
	uint64_t *after = &h->after[roll(w) % CLIENTS];

	if (!h->served)
		return;
	if (odds(w, 2)) /* a new handle */
		*after = 0;
	(void)ask(
	    w, h, after, (uint32_t)between(w, 1, odds(w, 100) ? 400 : 20));
	if (!w->w.restless || !odds(w, 10))
		return;
	/* A burst takes all that may be had, and is the end of the process. */
	while (ask(w, h, after, 1000))
		continue;
	if (!h->claim.stopping && odds(w, 500))
		file_trouble(w, i);
}

/* ---- trouble ------------------------------------------------------------- */

static void
cut_link(struct world *w, unsigned i, int64_t ms)
{
	struct host *h = &w->hosts[i];

	if (!h->link_up)
		return;
	h->link_up = false;
	h->down_at = w->now;
	mind_session(w, i);
	/* A reset is noticed at once, silence after two thirds. */
	after_ms(w, EV_DOWN, i, odds(w, 500) ? 1 : between(w, 6667, 7000));
	after_ms(w, EV_HEAL, i, ms);
	after_ms(w, EV_GIVE_UP, i, between(w, 30000, 33000));
}

static void
pause_host(struct world *w, unsigned i)
{
	int64_t ms =
	    odds(w, 300) ? between(w, 10000, 120000) : between(w, 1, 9000);

	w->hosts[i].paused = true;
	w->t.pauses++;
	mind_session(w, i);
	after_ms(w, EV_RESUME, i, ms);
}

static void
step_clock(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];
	int64_t ms = between(w, -2000, 2000);
	int64_t most = w->w.wild_clocks ? 30000 : 4000;

	w->t.clock_steps++;
	if (w->w.wild_clocks && odds(w, 300))
		ms = between(w, -20000, 20000);
	h->wall_offset += ms * NS_PER_MS;
	if (h->wall_offset > most * NS_PER_MS ||
	    h->wall_offset < -most * NS_PER_MS)
		h->wall_offset = 0;
	if (w->w.mad_clocks && odds(w, 50))
		h->wall_offset = between(w, -3600000, 3600000) * NS_PER_MS;
	h->drift_ppm = w->w.wild_clocks ? between(w, -500, 500) : 0;
}

static void
crash(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];

	w->t.crashes++;
	h->running = false;
	h->connected = false;
	abandon_session(w, i);
	h->life++;
	if (w->w.quick && odds(w, 600))
		after_ms(w, EV_BOOT, i, between(w, 0, 4));
	else
		after_ms(
		    w, EV_BOOT, i, between(w, 1, odds(w, 500) ? 200 : 20000));
}

/* The machine starts again: its clients too, and what lies in memory. */
static void
reboot(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];

	crash(w, i);
	w->t.reboots++;
	if (w->w.jumpy_clocks) /* the battery is low */
		step_clock(w, i);
	h->boot_offset = between(w, 5, 60) * NS_PER_S - w->now;
	memset(h->after, 0, sizeof(h->after));
	h->file.home = false;
	if (!w->w.safe_files && odds(w, 500))
		h->file.there = false;
}

/* This host is made of that one's disk. */
static void
copy_file(struct world *w, unsigned i, unsigned from)
{
	struct host *h = &w->hosts[i];

	reboot(w, i);
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
	h->disk = odds(w, 700) ? DISK_FULL : DISK_STUCK;
	after_ms(w, EV_HEAL, i, between(w, 10, 8000));
}

/* The skew's verdict. */
static void
set_still(struct world *w, unsigned i, bool still)
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
	struct claim_now t = time_of(w, h, &in);
	int64_t last_tick = h->served ? h->serve.gen.last_tick : NO_TICK;
	bool lowers =
	    h->claim.connected && h->claim.has_own && h->claim.own.owned;

	w->t.stops++;
	h->serve.gate.draining = true;
	if (!end_paper(h, last_tick, !lowers) && lowers)
		h->claim.has_own = false; /* the mark stays as it is */
	if (h->filed && odds(w, 100)) {
		crash(w, i);
		return;
	}
	claim_stop(&h->claim, t, last_tick);
	after_ms(w, EV_QUIT, i,
	    h->filed && odds(w, 300) ? between(w, 0, 20)
				     : 2 * DEADLINE_NS / NS_PER_MS);
	pump(w, i);
}

/* Host i's process appears on host j too, which has its clock as well. */
static void
copy_process(struct world *w, unsigned i, unsigned j)
{
	struct host *a = &w->hosts[i], *b = &w->hosts[j];
	struct instant in;

	if (i == j || !a->running || a->paused || a->claim.stopping ||
	    a->twin != 0 || !a->claim.has_own || b->paused || b->twin != 0)
		return;
	if (b->running)
		crash(w, j);
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
	claim_session_lost(&b->claim, time_of(w, b, &in));
	if (b->link_up)
		after_ms(w, EV_UP, j, between(w, 1, 3000));
}

/* Ends of the process, and what becomes of its file. */
static void
file_trouble(struct world *w, unsigned i)
{
	if (w->w.restless && odds(w, 300))
		cut_link(w, i, between(w, 500, 50000));
	switch (roll(w) % (w->w.restless ? 16 : 8)) {
	case 0:
		reboot(w, i);
		break;
	case 1:
		copy_file(w, i, (unsigned)(roll(w) % w->w.hosts));
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
		crash(w, i);
		break;
	}
}

static void
trouble(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];

	if (w->w.chaos_ms == 0)
		return;
	after_ms(w, EV_TROUBLE, i, between(w, 1, 2 * (int64_t)w->w.chaos_ms));
	if (!h->running || h->paused || h->claim.stopping)
		return;
	if (odds(w, w->w.still)) {
		set_still(w, i, true);
		after_ms(w, EV_ACCEPT, i, between(w, 1, 40000));
	}
	if (w->w.jumpy_clocks && odds(w, 500)) {
		step_clock(w, i);
		return;
	}
	if (w->w.files != 0 && odds(w, w->w.restless ? 600 : 150)) {
		file_trouble(w, i);
		return;
	}
	switch (roll(w) % 8) {
	case 0:
		cut_link(w, i, between(w, 100, 5000));
		break;
	case 1:
		cut_link(w, i, between(w, 5000, 60000));
		break;
	case 2:
		pause_host(w, i);
		break;
	case 3:
		crash(w, i);
		break;
	case 4:
		stop_agent(w, i);
		break;
	case 5: /* nothing comes back for a while */
		h->deaf = true;
		after_ms(w, EV_HEAL, i, between(w, 10, 6000));
		break;
	default:
		step_clock(w, i);
		break;
	}
}

/* ---- what a host hears --------------------------------------------------- */

/*
 * The watch comes in the order of the session: before any reply to what was
 * done after the change.
 */
static void
tell_watch(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];
	int64_t at = w->now + between(w, 100, 2000) * 1000;

	if (!h->missed_watch || !h->connected || !h->link_up || h->deaf)
		return;
	h->missed_watch = false;
	if (at < h->last_reply)
		at = h->last_reply;
	h->last_reply = at;
	push(w, (struct event){ .at = at,
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

	claim_watch_fired(&h->claim, time_of(w, h, &in));
	pump(w, i);
}

static void
hear_up(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];
	struct instant in;
	struct claim_now t = time_of(w, h, &in);

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
	pump(w, i);
	tell_watch(w, i);
}

static void
hear_down(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];
	struct instant in;
	struct claim_now t = time_of(w, h, &in);

	if (!h->connected)
		return;
	h->connected = false;
	claim_disconnected(&h->claim, t);
	pump(w, i);
	if (h->running && h->link_up)
		after_ms(w, EV_UP, i, between(w, 2, 200));
}

static void
hear_given_up(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];
	struct instant in;
	struct claim_now t = time_of(w, h, &in);

	if (h->connected || h->session == 0)
		return;
	abandon_session(w, i);
	claim_session_lost(&h->claim, t);
	pump(w, i);
}

static void
hear_reply(struct world *w, unsigned i, const struct claim_result *r)
{
	struct host *h = &w->hosts[i];
	struct instant in;
	struct claim_now t = time_of(w, h, &in);

	claim_result(&h->claim, t, r);
	pump(w, i);
}

/* Events of a process; kept while it is paused. */
static void
hear(struct world *w, const struct event *e)
{
	struct host *h = &w->hosts[e->host];
	struct claim_result unknown = { .id = e->id, .rc = RC_UNKNOWN };

	switch (e->kind) {
	case EV_WAKE:
		pump(w, e->host);
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
		issue(w, e->host);
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

static void
free_event(const struct event *e)
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
		h->inbox =
		    must(realloc(h->inbox, h->inbox_size * sizeof(*h->inbox)));
	}
	h->inbox[h->ninbox++] = *e;
}

static void
resume(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];
	size_t n = h->ninbox;

	h->paused = false;
	mind_session(w, i);
	/* A woken client finds its connection cut by the server. */
	if (h->connected && keeper_session_dead(&w->z, h->session))
		after_ms(w, EV_DOWN, i, 1);
	for (size_t k = 0; k < n; k++) {
		struct event e = h->inbox[k];

		if (e.life == h->life && h->running)
			hear(w, &e);
		free_event(&e);
	}
	h->ninbox = 0;
}

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
			after_ms(w, EV_DOWN, e->host, 1);
		return;
	}
	/* After a new connection of the session, nothing of the old comes. */
	if (e->life == h->life && e->link != h->link &&
	    h->session == e->session)
		return;
	reply.reply = must(malloc(sizeof(*reply.reply)));
	keeper_do(&w->z, e->session, e->op, reply.reply);
	if (!h->link_up || h->deaf || odds(w, w->w.lose_reply) ||
	    (is_write(e->op) && odds(w, w->w.lose_writes))) {
		w->t.lost++;
		free_event(&reply);
		return;
	}
	tell_watch(w, e->host);
	at = w->now + between(w, 100, 2000) * 1000;
	if (at < h->last_reply)
		at = h->last_reply;
	h->last_reply = at;
	reply.at = at;
	push(w, reply);
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
		tell_watch(w, i);
	}
	if (w->w.renew_realm_ms != 0)
		again(w, EV_RENEW, w->w.renew_realm_ms);
}

/* ---- disasters ----------------------------------------------------------- */

static void
copy_data(struct world *w)
{
	if (w->w.roll_back_ms == 0)
		return;
	again(w, EV_COPY, COPY_NS / NS_PER_MS);
	if (w->z.missing || w->went_back)
		return;
	if (w->ncopies == COPIES) {
		keeper_free(&w->copies[0]);
		memmove(w->copies, w->copies + 1,
		    (COPIES - 1) * sizeof(w->copies[0]));
		w->ncopies--;
	}
	keeper_copy(&w->z, &w->copies[w->ncopies++]);
}

/* The servers go down and come up, for each host at its own time. */
static void
cut_for_a_while(struct world *w)
{
	for (unsigned i = 0; i < w->w.hosts; i++)
		cut_link(w, i, between(w, 1, odds(w, 800) ? 3000 : 40000));
}

/*
 * A process that knows nothing of this tree's time after the copy, or so
 * little that others' writes hide it, would take what is gone for never done.
 */
static bool
remembers(const struct world *w, const struct contract *k, int64_t zxid)
{
	return (k->generation == w->z.k.generation && zxid > w->known_zxid);
}

static bool
all_remember(const struct world *w)
{
	for (unsigned i = 0; i < w->w.hosts; i++) {
		const struct host *h = &w->hosts[i];

		if (h->running && !remembers(w, &h->claim.k, h->claim.zxid))
			return (false);
	}
	return (true);
}

/* May it start now?  Only with a record that remembers. */
static bool
may_boot(const struct world *w, const struct host *h)
{
	const struct instant in = clock_of(w, h);

	if (!w->went_back)
		return (true);
	return (may_resume(h, wall_ms(in.wall) + 10000) &&
		remembers(w, &h->file.contract, h->file.zxid));
}

static void
roll_back(struct world *w)
{
	const struct keeper *copy;

	if (w->w.roll_back_ms == 0)
		return;
	if (w->went_back || w->z.missing || w->ncopies == 0) {
		again(w, EV_ROLL_BACK, w->w.roll_back_ms);
		return;
	}
	copy = &w->copies[roll(w) % w->ncopies];
	w->known_zxid = copy->zxid + 8 * (int64_t)w->w.hosts;
	if (!w->w.careless && !all_remember(w)) {
		again(w, EV_ROLL_BACK, 500);
		return;
	}
	again(w, EV_ROLL_BACK, w->w.roll_back_ms);
	w->t.rollbacks++;
	keeper_restore(&w->z, copy, w->next_session);
	cut_for_a_while(w);
	if (w->w.careless)
		return;
	w->went_back = true;
	again(w, EV_RENEW, (unsigned)between(w, 100, 90000));
}

static void
wipe(struct world *w)
{
	if (w->w.wipe_ms == 0)
		return;
	again(w, EV_WIPE, w->w.wipe_ms);
	if (w->went_back || w->z.missing)
		return;
	w->t.wipes++;
	keeper_wipe(&w->z, w->next_session);
	cut_for_a_while(w);
	again(w, EV_RENEW, (unsigned)between(w, 100, 90000));
}

static void
process_event(struct world *w, struct event *e)
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

static void
heal(struct world *w, unsigned i)
{
	struct host *h = &w->hosts[i];

	h->deaf = false;
	h->disk = DISK_GOOD;
	tell_watch(w, i);
	if (h->link_up)
		return;
	h->link_up = true;
	mind_session(w, i);
	if (h->running && !h->paused)
		after_ms(
		    w, h->connected ? EV_DOWN : EV_UP, i, between(w, 1, 1000));
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
		trouble(w, e->host);
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
		resume(w, e->host);
		if (!h->connected && h->link_up && h->running)
			after_ms(w, EV_UP, e->host, 2);
		return;
	case EV_QUIT:
		if (e->life == h->life && h->running && h->claim.stopping)
			crash(w, e->host);
		return;
	case EV_BOOT:
		if (h->running)
			return;
		if (may_boot(w, h))
			boot_agent(w, e->host);
		else
			after_ms(w, EV_BOOT, e->host, 1000);
		return;
	case EV_OPERATOR:
		if (w->w.delete_marks_ms == 0)
			return;
		keeper_delete_mark(&w->z, roll(w) % w->w.workers);
		again(w, EV_OPERATOR, w->w.delete_marks_ms);
		return;
	case EV_RENEW:
		if (w->w.renew_realm_ms != 0 || w->went_back || w->z.missing)
			renew_realm(w);
		return;
	case EV_TWIN:
		if (w->w.twins_ms == 0)
			return;
		copy_process(w, (unsigned)(roll(w) % w->w.hosts),
		    (unsigned)(roll(w) % w->w.hosts));
		again(w, EV_TWIN, w->w.twins_ms);
		return;
	case EV_ACCEPT:
		set_still(w, e->host, false);
		return;
	case EV_COPY:
		copy_data(w);
		return;
	case EV_ROLL_BACK:
		roll_back(w);
		return;
	case EV_WIPE:
		wipe(w);
		return;
	case EV_ISSUE:
		after_ms(w, EV_ISSUE, e->host,
		    between(w, 1, 2 * (int64_t)w->w.issue_ms));
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
	process_event(w, e);
}

/* ---- making and running -------------------------------------------------- */

struct world *
world_make(const struct weather *weather, uint64_t seed)
{
	struct world *w = must(calloc(1, sizeof(*w)));
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
	w->hosts = must(calloc(weather->hosts, sizeof(*w->hosts)));
	for (unsigned i = 0; i < weather->hosts; i++) {
		struct host *h = &w->hosts[i];

		h->scratch = must(calloc(weather->workers / 64 + 1, 8));
		h->link_up = true;
		h->boot_offset = between(w, 0, 1000000) * NS_PER_S;
		h->wall_offset = between(w, -100, 100) * NS_PER_MS;
		h->filed = odds(w, weather->files);
		after_ms(w, EV_BOOT, i, between(w, 1, 3000));
		after_ms(w, EV_ISSUE, i, between(w, 1, 1000));
		if (weather->chaos_ms != 0)
			after_ms(w, EV_TROUBLE, i,
			    between(w, 1, 2 * (int64_t)weather->chaos_ms));
	}
	if (weather->delete_marks_ms != 0)
		again(w, EV_OPERATOR, 20000);
	if (weather->twins_ms != 0)
		again(w, EV_TWIN, 20000);
	if (weather->renew_realm_ms != 0)
		again(w, EV_RENEW, 60000);
	if (weather->roll_back_ms != 0) {
		again(w, EV_COPY, 10000);
		again(w, EV_ROLL_BACK, 100000);
	}
	if (weather->wipe_ms != 0)
		again(w, EV_WIPE, 60000);
	return (w);
}

void
world_free(struct world *w)
{
	while (w->nheap > 0) {
		struct event e = pop(w);

		free_event(&e);
	}
	for (unsigned i = 0; i < w->w.hosts; i++) {
		for (size_t k = 0; k < w->hosts[i].ninbox; k++)
			free_event(&w->hosts[i].inbox[k]);
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
		e = pop(w);
		w->now = e.at;
		happen(w, &e);
		free_event(&e);
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
		cut_link(w, i, ns / NS_PER_MS);
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
		again(w, EV_RENEW, 1000);
	}
	for (unsigned i = 0; i < w->w.hosts; i++) {
		w->hosts[i].drift_ppm = 0;
		w->hosts[i].disk = DISK_GOOD;
		set_still(w, i, false);
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
		abandon_session(w, i);
		h->life++;
		if (!files) {
			memset(&h->file, 0, sizeof(h->file));
			memset(h->after, 0, sizeof(h->after));
		}
		after_ms(w, EV_BOOT, i, between(w, 1, 100));
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
		reboot(w, i);
		w->hosts[i].still = true;
	}
}

void
world_accept(struct world *w, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		w->hosts[i].wall_offset = 0;
		set_still(w, i, false);
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
		t = time_of(w, h, &in);
		update_facts(h, t);
		out->serving +=
		    serve_state(&h->serve, &h->clock, &in) == GATE_ALLOW;
	}
}
