/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refill - what a call does when memory has nothing for it.
 *
 * Invariant: the transport is used by the thread that leads, with the latch
 * held; the latch is let go only in refill_sleep() and refill_follow().
 *
 * What comes of a failure:
 *   no agent, a closed connection, a full backlog   tried again to the
 *     deadline, first at once, then with back-off and jitter
 *   bytes that are not the protocol                 the connection is closed
 *     and one more tried; FIRN_EPROTO if that is no better
 *   a refusal    waited out if retry_after_ms fits into the deadline; else,
 *     and at once for those that no wait mends, FIRN_EREFUSED.  realm_changed
 *     is one of these: FIRN_EREALM is what the stub itself finds, another
 *     realm's name or another uuid than this handle has seen.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layout.h"
#include "refill.h"

#define NS_PER_MS INT64_C(1000000)
#define TRY_NS INT64_C(150000) /* and the kernel's timer slack: 200 us */
#define BACKOFF_FIRST_NS NS_PER_MS
#define BACKOFF_MOST_NS (100 * NS_PER_MS)
#define STALE_NS (1000 * NS_PER_MS) /* so old, a refusal tells nothing */
#define SILENCE_NS (2000 * NS_PER_MS) /* then the connection is given up */

/* What a step that cannot go on waits for. */
struct wait {
	int fd; /* -1: only for the time */
	short events;
	int64_t until_ns;
};

/* Sets what firn_why() says: one line, whatever the agent's text holds. */
static void __attribute__((format(printf, 2, 3)))
say(struct firn *f, const char *fmt, ...)
{
	char *why = f->shared->why;
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, HANDLE_WHY_MAX, fmt, ap);
	va_end(ap);
	for (char *p = why; *p != '\0'; p++) {
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	}
}

/* ---- pauses ---- */

static void
pause_until(struct shared *sh, int64_t until_ns, bool firm)
{
	sh->pause_until_ns = until_ns;
	sh->pause_firm = firm;
}

/* 1 ms, doubled with each loss up to 100 ms, half of it by chance. */
static int64_t
backoff_ns(struct shared *sh)
{
	int64_t ns = BACKOFF_FIRST_NS;

	for (unsigned i = 1; i < sh->losses && ns < BACKOFF_MOST_NS; i++)
		ns *= 2;
	if (ns > BACKOFF_MOST_NS)
		ns = BACKOFF_MOST_NS;
	return (
	    ns / 2 + (int64_t)(random_number(&sh->pool) % (uint64_t)(ns / 2)));
}

static void
connection_lost(struct firn *f, int trouble)
{
	struct shared *sh = f->shared;
	bool answered = sh->transport.answered;

	transport_close(&sh->transport, &f->socket);
	sh->losses++;
	sh->trouble = trouble;
	/* one that worked has just ended: look at once for its successor */
	if (answered && sh->losses == 1)
		pause_until(sh, 0, false);
	else
		pause_until(
		    sh, clock_ns(CLOCK_MONOTONIC) + backoff_ns(sh), true);
}

/* ---- connecting ---- */

static void
say_not_allowed(struct firn *f, const char *words)
{
	struct stat st;

	if (stat(f->path, &st) != 0) {
		say(f,
		    "%s: %s: a directory on the way is closed to uid %u, "
		    "gid %u",
		    f->path, words, (unsigned)geteuid(), (unsigned)getegid());
		return;
	}
	say(f,
	    "%s: %s: the socket has mode %04o, uid %u, group %u; "
	    "this process has uid %u, gid %u",
	    f->path, words, (unsigned)(st.st_mode & 07777), (unsigned)st.st_uid,
	    (unsigned)st.st_gid, (unsigned)geteuid(), (unsigned)getegid());
}

/* FIRN_OK: connected, or a pause was set; else the call's error. */
static int
connection_make(struct firn *f)
{
	struct shared *sh = f->shared;
	char text[96];
	int error = transport_connect(&sh->transport, &f->socket, f->path);

	switch (error) {
	case 0:
		sh->counts.connects++;
		sh->verified = false;
		return (FIRN_OK);
	case EACCES:
	case EPERM:
		say_not_allowed(f, "not allowed to connect");
		return (FIRN_EACCES);
	case EAGAIN:
		say(f, "%s: the agent's backlog of connections is full",
		    f->path);
		connection_lost(f, FIRN_ETIMEDOUT);
		return (FIRN_OK);
	default:
		say(f, "%s: no agent: %s", f->path,
		    strerror_r(error, text, sizeof(text)));
		connection_lost(f, FIRN_EAWAY);
		return (FIRN_OK);
	}
}

static bool
connection_stands(struct firn *f)
{
	struct shared *sh = f->shared;

	if (!sh->transport.connected)
		return (false);
	if (transport_owns(&f->socket))
		return (true);
	/* the application closed it, or put something else in its place */
	transport_close(&sh->transport, &f->socket);
	return (false);
}

static int
connection_fault(struct firn *f, const char *fault)
{
	struct shared *sh = f->shared;

	transport_close(&sh->transport, &f->socket);
	sh->faults++;
	sh->trouble = FIRN_EPROTO;
	say(f, "%s: not the protocol: %s", f->path, fault);
	pause_until(sh, 0, false);
	return (sh->faults >= 2 ? FIRN_EPROTO : FIRN_OK);
}

/* ---- requests ---- */

static void
ask(struct firn *f, enum wire_type type, uint32_t count)
{
	struct shared *sh = f->shared;
	struct wire_request r = {
		.version = WIRE_VERSION,
		.type = (uint8_t)type,
		.count = count,
		.cookie = random_number(&sh->pool),
	};

	if (type == WIRE_BATCH) {
		r.after = atomic_load(&f->after);
		demand_sent(&sh->demand, clock_ns(CLOCK_MONOTONIC), count);
	}
	/* never full: at most one request of each type is under way */
	(void)!transport_queue(&sh->transport, &r, clock_ns(CLOCK_BOOTTIME));
}

/* How many to ask for: what is wanted now, and what will be soon. */
static uint32_t
ask_count(const struct firn *f, uint32_t need)
{
	const struct shared *sh = f->shared;
	uint64_t count = need;
	uint32_t want;

	if (f->cached) {
		want = demand_want(
		    &sh->demand, clock_ns(CLOCK_MONOTONIC), f->max_batch);
		count += atomic_load(&sh->latch.waiters);
		if (count < want)
			count = want;
	}
	return (count < f->max_batch ? (uint32_t)count : f->max_batch);
}

/* Sends what the goal lacks; true if its reply cannot be here yet. */
static bool
ask_for_goal(struct firn *f, const struct call *c)
{
	struct shared *sh = f->shared;
	struct transport *t = &sh->transport;
	bool idle = t->nflight == 0 && t->rx_len == t->rx_used;
	uint32_t before = t->nflight;

	/* the contract first: without it no ID can be checked */
	if (!sh->verified && !transport_asked(t, WIRE_CONTRACT))
		ask(f, WIRE_CONTRACT, 0);
	if (c->goal == REFILL_IDS && !transport_asked(t, WIRE_BATCH))
		ask(f, WIRE_BATCH, ask_count(f, c->need));
	idle = idle && t->nflight > before;
	transport_flush(t, &f->socket);
	return (idle && t->tx_len == 0);
}

/* ---- replies ---- */

static bool
reason_is_final(uint16_t status)
{
	return (status == WIRE_CLOCK_SKEW || status == WIRE_EPOCH_ENDED ||
		status == WIRE_REALM_CHANGED);
}

/* The words begin with the reason's name: the agent's do, as a rule. */
static void
say_refusal(struct firn *f, const char *name, const char *text, size_t n)
{
	size_t length = strlen(name);

	if (n > length && memcmp(text, name, length) == 0 &&
	    text[length] == ':')
		say(f, "%.*s", (int)n, text);
	else
		say(f, "%s: %.*s", name, (int)n, text);
}

/* The agent does not speak to this version, or to this user, at all. */
static int
refuse_for_good(struct firn *f, const struct transport_reply *r)
{
	struct shared *sh = f->shared;
	char words[WIRE_TEXT_MAX + 32]; /* with the reason's name */

	(void)snprintf(
	    words, sizeof(words), "%.*s", (int)sizeof(words) - 1, sh->why);
	transport_close(&sh->transport, &f->socket);
	if (r->status == WIRE_NOT_ALLOWED) {
		say_not_allowed(f, words);
		return (FIRN_EACCES);
	}
	say(f, "%s: %s; the agent speaks version %u, this library %u", f->path,
	    words, r->peer_version, WIRE_VERSION);
	return (FIRN_EPROTO);
}

/*
 * Does it tell of now?  A request that was sent ahead may have been refused
 * long before the call that finds the answer.
 */
static bool
refusal_stale(const struct transport_reply *r)
{
	return (!r->ends && clock_ns(CLOCK_BOOTTIME) - r->sent_ns > STALE_NS);
}

static int
accept_refusal(struct firn *f, const struct transport_reply *r)
{
	struct shared *sh = f->shared;
	uint32_t retry_ms = wire_get32(r->body);
	int64_t until_ns;

	if (refusal_stale(r))
		return (FIRN_OK);
	say_refusal(f, wire_reason_name(r->status),
	    (const char *)r->body + WIRE_REFUSAL_SIZE,
	    r->length - WIRE_REFUSAL_SIZE);
	sh->trouble = FIRN_EREFUSED;
	if (r->status == WIRE_BAD_VERSION || r->status == WIRE_NOT_ALLOWED)
		return (refuse_for_good(f, r));
	if (r->ends) {
		sh->transport.answered = false; /* no hurry back */
		connection_lost(f, FIRN_EREFUSED);
	}
	if (reason_is_final(r->status) ||
	    (retry_ms == 0 && !(r->ends && r->status == WIRE_TOO_MANY)))
		return (FIRN_EREFUSED);
	until_ns = clock_ns(CLOCK_MONOTONIC) + retry_ms * NS_PER_MS;
	if (until_ns > sh->pause_until_ns)
		pause_until(sh, until_ns, sh->pause_firm);
	return (FIRN_OK);
}

static int
accept_contract(struct firn *f, const struct transport_reply *r)
{
	struct shared *sh = f->shared;
	struct wire_contract k;

	wire_get_contract(r->body, &k);
	if (!layout_valid(&k.layout))
		return (connection_fault(
		    f, "a layout that this library does not know"));
	if (f->realm[0] != '\0' && strcmp(f->realm, k.realm) != 0) {
		say(f, "%s: the agent serves realm \"%s\", not \"%s\"", f->path,
		    k.realm, f->realm);
		transport_close(&sh->transport, &f->socket);
		return (FIRN_EREALM);
	}
	if (atomic_load_explicit(&f->contract_known, memory_order_acquire)) {
		if (memcmp(k.uuid, f->contract.uuid, WIRE_UUID_SIZE) != 0 ||
		    !layout_equal(&k.layout, &f->contract.layout)) {
			say(f,
			    "%s: realm \"%s\" is another one than this "
			    "handle has known (its uuid or layout differs)",
			    f->path, k.realm);
			transport_close(&sh->transport, &f->socket);
			return (FIRN_EREALM);
		}
	} else {
		f->contract = k;
		atomic_store_explicit(
		    &f->contract_known, true, memory_order_release);
	}
	sh->verified = true;
	return (FIRN_OK);
}

/*
 * How long the IDs may still be kept.  The agent's instant counts, since a
 * stopped process on either side can lie between it and now.  An instant that
 * is yet to come is another time namespace's: then that of the request.
 */
static int64_t
batch_life_ns(
    const struct firn *f, const struct transport_reply *r, int64_t now_ns)
{
	int64_t made_ns = (int64_t)wire_get64(r->body);
	int64_t ttl_ns = f->ttl_ms * NS_PER_MS;
	uint32_t agent_ms = wire_get32(r->body + 8);

	if (agent_ms > 0 && agent_ms * NS_PER_MS < ttl_ns)
		ttl_ns = agent_ms * NS_PER_MS;
	if (made_ns > now_ns || made_ns < 0)
		made_ns = r->sent_ns;
	return (made_ns + ttl_ns - now_ns);
}

/* Checks every run before any of them counts. */
static const char *
batch_fault(const struct firn *f, const struct transport_reply *r,
    uint64_t *highest, uint64_t *count)
{
	uint32_t runs = wire_get32(r->body + 12);

	*count = 0;
	for (uint32_t i = 0; i < runs; i++) {
		struct wire_run run;

		wire_get_run(
		    r->body + WIRE_BATCH_SIZE + i * WIRE_RUN_SIZE, &run);
		if (!batch_check_run(
			&f->contract.layout, &run, *highest, highest))
			return ("a run that this layout cannot have, or not "
				"above the one before");
		*count += run.count;
	}
	return (*count > r->count ? "more IDs than asked for" : NULL);
}

static int
accept_batch(struct firn *f, struct call *c, const struct transport_reply *r)
{
	struct shared *sh = f->shared;
	uint64_t highest = atomic_load(&f->after), count;
	int64_t life_ns = batch_life_ns(f, r, clock_ns(CLOCK_BOOTTIME));
	struct moment now = moment_now();
	struct batch_run run = {
		.generation = sh->generation,
		.mono_until_ns = now.mono_ns + life_ns - f->coarse_ns,
		.real_until_ns = now.real_ns + life_ns - f->coarse_ns,
	};
	const char *fault;

	if (!sh->verified) {
		/*
		 * The contract was refused, and the realm became known before
		 * the batch asked for in the same breath: ask for both again.
		 */
		say(f, "%s: the agent grants IDs without its contract",
		    f->path);
		sh->trouble = FIRN_ETIMEDOUT; /* it would grant */
		pause_until(sh, clock_ns(CLOCK_MONOTONIC) + NS_PER_MS, false);
		return (FIRN_OK);
	}
	fault = batch_fault(f, r, &highest, &count);
	if (fault != NULL)
		return (connection_fault(f, fault));
	sh->faults = sh->losses = 0;
	/* before the first of them can be taken: a child keeps above it, too */
	atomic_store(&f->after, highest);
	if (life_ns <= 0) {
		sh->counts.dropped += count;
		say(f, "%s: a reply was %lld ms too old to be used", f->path,
		    (long long)(-life_ns / NS_PER_MS));
		/* one that lay here; the next should be fresh */
		if (sh->late++ > 0)
			pause_until(
			    sh, clock_ns(CLOCK_MONOTONIC) + NS_PER_MS, false);
		return (FIRN_OK);
	}
	sh->late = 0;
	sh->counts.refills++;
	sh->counts.dropped += batch_trim(&sh->batch, sh->generation, &now);
	sh->batch.granted = 0;
	for (uint32_t i = 0; i < wire_get32(r->body + 12); i++) {
		wire_get_run(
		    r->body + WIRE_BATCH_SIZE + i * WIRE_RUN_SIZE, &run.run);
		if (batch_add(&sh->batch, &run))
			sh->batch.granted += run.run.count;
	}
	c->fresh = true;
	return (FIRN_OK);
}

static int
accept_reply(struct firn *f, struct call *c, const struct transport_reply *r)
{
	if (r->status != WIRE_OK) {
		/* the batch asked for in the same breath is refused, too */
		if (r->type == WIRE_CONTRACT && r->status < WIRE_BAD_VERSION &&
		    transport_asked(&f->shared->transport, WIRE_BATCH))
			return (FIRN_OK);
		return (accept_refusal(f, r));
	}
	if (r->type == WIRE_CONTRACT)
		return (accept_contract(f, r));
	return (accept_batch(f, c, r));
}

/* ---- the one who leads ---- */

static bool
goal_reached(const struct firn *f, const struct call *c)
{
	return (c->goal == REFILL_IDS ? c->fresh : f->shared->verified);
}

/* The oldest request has no reply yet: wait for it, or give up on it. */
static bool
silence_bearable(struct firn *f, struct wait *w)
{
	struct shared *sh = f->shared;
	int64_t limit_ns = 2 * (int64_t)f->timeout_ms * NS_PER_MS;
	int64_t left_ns;

	if (limit_ns < SILENCE_NS)
		limit_ns = SILENCE_NS;
	left_ns = sh->transport.flight[0].sent_ns + limit_ns -
		  clock_ns(CLOCK_BOOTTIME);
	if (sh->transport.nflight > 0 && left_ns <= 0) {
		say(f, "%s: no reply for %lld ms", f->path,
		    (long long)(limit_ns / NS_PER_MS));
		connection_lost(f, FIRN_ETIMEDOUT);
		return (false);
	}
	sh->trouble = FIRN_ETIMEDOUT;
	*w = (struct wait){
		.fd = f->socket.fd,
		.events = transport_events(&sh->transport),
		.until_ns = clock_ns(CLOCK_MONOTONIC) + left_ns,
	};
	return (true);
}

/* A request was just sent: looks for its reply for a moment. */
static bool
reply_comes_soon(struct firn *f)
{
	struct shared *sh = f->shared;
	int64_t until_ns;
	bool came;

	if (!spin_begins(&sh->spin))
		return (false);
	until_ns = clock_ns(CLOCK_MONOTONIC) + SPIN_NS;
	do
		came = transport_arrives(&sh->transport, &f->socket);
	while (!came && clock_ns(CLOCK_MONOTONIC) < until_ns);
	spin_ended(&sh->spin, came);
	return (came);
}

static int
take_reply(struct firn *f, struct call *c, struct wait *w)
{
	struct transport_reply r;

	switch (transport_receive(&f->shared->transport, &f->socket, &r)) {
	case TRANSPORT_REPLY:
		return (accept_reply(f, c, &r));
	case TRANSPORT_WAIT:
		return (silence_bearable(f, w) ? FIRN_EAGAIN : FIRN_OK);
	case TRANSPORT_LOST:
		say(f, "%s: the agent closed the connection", f->path);
		connection_lost(f, FIRN_EAWAY);
		return (FIRN_OK);
	case TRANSPORT_BAD:
		if (r.peer_version != WIRE_VERSION) {
			char words[64];

			(void)snprintf(words, sizeof(words),
			    "the agent speaks version %u, this library %u",
			    r.peer_version, WIRE_VERSION);
			return (connection_fault(f, words));
		}
		return (connection_fault(f, r.fault));
	}
	return (FIRN_EPROTO);
}

/*
 * Does all that can be done without waiting.  FIRN_OK: the goal is reached;
 * FIRN_EAGAIN: wait as *w says; else the call's error.
 */
static int
refill_step(struct firn *f, struct call *c, struct wait *w)
{
	struct shared *sh = f->shared;
	int rc = FIRN_OK;

	while (rc == FIRN_OK && !goal_reached(f, c)) {
		if (sh->pause_until_ns > 0 &&
		    clock_ns(CLOCK_MONOTONIC) < sh->pause_until_ns) {
			*w = (struct wait){
				.fd = -1,
				.until_ns = sh->pause_until_ns,
			};
			return (FIRN_EAGAIN);
		}
		pause_until(sh, 0, false);
		if (!connection_stands(f)) {
			rc = connection_make(f);
			continue;
		}
		if (ask_for_goal(f, c) && !reply_comes_soon(f) &&
		    silence_bearable(f, w))
			return (FIRN_EAGAIN);
		rc = take_reply(f, c, w);
	}
	return (rc);
}

/* The deadline has come. */
static int
refill_late(struct firn *f, const struct call *c)
{
	int trouble = f->shared->trouble;

	if (trouble != FIRN_ETIMEDOUT && trouble != FIRN_OK)
		return (trouble);
	if (!c->patient)
		return (FIRN_EAGAIN);
	if (f->shared->late == 0)
		say(f, "%s: no reply within %u ms", f->path, f->timeout_ms);
	return (FIRN_ETIMEDOUT);
}

/* Waits, without the latch; FIRN_OK: go on. */
static int
refill_sleep(struct firn *f, const struct call *c, const struct wait *w)
{
	struct pollfd pfd = { .fd = w->fd, .events = w->events };
	int64_t now_ns = clock_ns(CLOCK_MONOTONIC), until_ns = c->deadline_ns;
	struct timespec ts;

	if (now_ns >= c->deadline_ns || (!c->patient && w->fd < 0))
		return (refill_late(f, c));
	if (f->shared->trouble == FIRN_EREFUSED && w->until_ns > until_ns)
		return (FIRN_EREFUSED); /* the wait does not fit */
	if (w->until_ns < until_ns)
		until_ns = w->until_ns;
	if (until_ns <= now_ns)
		return (FIRN_OK);
	if (w->fd < 0) {
		latch_wait(&f->shared->latch, until_ns);
		return (FIRN_OK);
	}
	ts.tv_sec = (time_t)((until_ns - now_ns) / 1000000000);
	ts.tv_nsec = (long)((until_ns - now_ns) % 1000000000);
	handle_unlock(f);
	/* EINTR and a descriptor closed meanwhile show in the next step */
	(void)ppoll(&pfd, 1, &ts, NULL);
	handle_lock(f);
	return (FIRN_OK);
}

static int
refill_lead(struct firn *f, struct call *c)
{
	struct shared *sh = f->shared;
	struct wait w;
	int rc;

	/* a new call does not wait for what an earlier one was told */
	if (!c->asked && (c->patient || !sh->pause_firm))
		pause_until(sh, 0, false);
	c->asked = true;
	do {
		rc = refill_step(f, c, &w);
		if (rc != FIRN_EAGAIN)
			break;
		rc = refill_sleep(f, c, &w);
	} while (rc == FIRN_OK && !sh->closed);
	return (sh->closed && !goal_reached(f, c) ? FIRN_EINVAL : rc);
}

/* Another thread leads: wait for what it gets. */
static int
refill_follow(struct firn *f, const struct call *c)
{
	struct shared *sh = f->shared;

	if (clock_ns(CLOCK_MONOTONIC) >= c->deadline_ns)
		return (refill_late(f, c));
	if (!c->patient && sh->trouble != FIRN_ETIMEDOUT)
		return (refill_late(f, c));
	latch_wait(&sh->latch, c->deadline_ns);
	return (FIRN_OK);
}

int
refill(struct firn *f, struct call *c)
{
	struct shared *sh = f->shared;
	int rc;

	if (!c->begun) {
		c->begun = true;
		c->deadline_ns =
		    clock_ns(CLOCK_MONOTONIC) +
		    (c->patient ? f->timeout_ms * NS_PER_MS : TRY_NS);
	}
	if (sh->closed)
		return (FIRN_EINVAL);
	if (sh->leading)
		return (refill_follow(f, c));
	sh->leading = true;
	rc = refill_lead(f, c);
	sh->leading = false;
	latch_signal(&sh->latch);
	return (rc);
}

void
refill_ahead(struct firn *f)
{
	struct shared *sh = f->shared;
	uint32_t want;

	if (!f->cached || sh->closed || sh->leading || !sh->verified ||
	    sh->batch.left >= sh->batch.granted / 2 ||
	    sh->batch.n > BATCH_RUNS - WIRE_RUNS_MAX ||
	    transport_asked(&sh->transport, WIRE_BATCH))
		return;
	want =
	    demand_want(&sh->demand, clock_ns(CLOCK_MONOTONIC), f->max_batch);
	if (want < 2 || !connection_stands(f))
		return;
	ask(f, WIRE_BATCH, want);
	transport_flush(&sh->transport, &f->socket);
}

void
refill_end(struct firn *f)
{
	struct shared *sh = f->shared;

	sh->closed = true;
	if (atomic_load(&sh->inside) == 1)
		return;
	latch_signal(&sh->latch);
	/* the leader may wait for a reply: let it see the end instead */
	if (connection_stands(f))
		(void)shutdown(f->socket.fd, SHUT_RDWR);
}
