/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client - the public functions of a handle, and the way of a cached ID.
 *
 * Invariant: an ID reaches a caller only from the part of its own thread, or
 * from the stock under the latch; both lie in pages that a fork wipes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "refill.h"

#define DEFAULT_SOCKET "/run/firn/firn.sock"
#define DEFAULT_TIMEOUT_MS 1000
#define DEFAULT_TTL_MS 1000
#define SWEEP_NS INT64_C(100000000)
#define OPTIONS_SIZE_MAX 4096 /* more is no size, but what lay there before */

/* ---- the thread's part ---- */

/*
 * Where this thread's part of a handle lies.  Only a hint: thread-local
 * storage is not wiped by a fork, so the part's owner word, which is, decides.
 * A serial is never used twice, so a hint never leads into a closed handle.
 *
 * Why no barrier and no lock is needed to take an ID from it:
 *
 *   The owner word is this thread's token only if this thread claimed the part
 *   in this process: a token is drawn once, and the thread remembers it only
 *   after part_claim().  Then all that lies in the part was written by this
 *   thread, so program order alone makes it right: it reads what it wrote.
 *   (Or by one that has ended and whose thread number this one got: the kernel
 *   takes a number back and gives it out again under a lock of its own.)
 *   Where the IDs came from is ordered, too: they were cut from the stock by
 *   this thread, between acquiring and releasing the latch, so no other thread
 *   has cut the same ones.
 *
 *   A part changes hands only after its thread has ended (part_sweep), so the
 *   owner word does not change between the look at it and the taking.  The new
 *   owner writes each field before it reads it, and under the latch.  What the
 *   old one wrote last may not have been seen by then only in theory: the
 *   kernel says that the thread is gone.  Nothing would come of it: reads of a
 *   part that is not one's own are for counting.
 *
 *   fork wipes the owner word with the rest of the page, in the child and
 *   before its first instruction: a child's thread finds 0, or a token drawn
 *   later by the child itself.  Between the look at the owner word and the
 *   taking only a signal handler of this very thread could fork, and its child
 *   must not return (firn.h).
 *
 * A vfork child runs in its parent's place, on its parent's part.  A child of
 * clone(CLONE_VM) that runs beside its parent needs thread-local storage of
 * its own (CLONE_SETTLS), as it does for errno and malloc.
 */
struct hint {
	uint64_t serial;
	uint64_t token;
	struct part *part;
};

#define HINTS 4 /* handles that one thread uses by turns at full speed */

static _Thread_local struct hint hints[HINTS]
    __attribute__((tls_model("initial-exec")));

static inline struct part *
part_mine(const struct firn *f)
{
	const struct hint *h = &hints[f->serial % HINTS];

	if (h->serial == f->serial && part_get(h->part->owner) == h->token)
		return (h->part);
	return (NULL);
}

/* The part that this thread has under another hint, or a free one. */
static struct part *
part_find(struct shared *sh, int32_t tid, bool *known)
{
	struct part *unused = NULL;

	for (size_t i = 0; i < HANDLE_PARTS; i++) {
		struct part *p = &sh->parts[i];

		if (part_get(p->owner) == 0) {
			if (unused == NULL)
				unused = p;
			break; /* parts are taken in order and stay taken */
		}
		if (part_get(p->tid) == tid) {
			*known = true;
			return (p);
		}
	}
	return (unused);
}

/* A part whose thread has ended; looked for now and then only. */
static struct part *
part_sweep(struct shared *sh, int64_t now_ns)
{
	if (sh->swept_ns != 0 && now_ns - sh->swept_ns < SWEEP_NS)
		return (NULL);
	sh->swept_ns = now_ns;
	for (size_t i = 0; i < HANDLE_PARTS; i++) {
		/* signal 0 is none: it asks whether the thread is there */
		if (syscall(SYS_tgkill, sh->pid, part_get(sh->parts[i].tid),
			0) == -1 &&
		    errno == ESRCH)
			return (&sh->parts[i]);
	}
	return (NULL);
}

/* Drops what the part holds, with the latch held. */
static void
part_discard(struct shared *sh, struct part *p)
{
	uint64_t n = part_drop(p);

	sh->counts.shared -= n;
	sh->counts.dropped += n;
}

/*
 * The thread's part, with the latch held.  NULL: all are in use, or this is
 * a child that shares our memory (its threads' numbers say nothing here); such
 * a caller takes from the stock, under the latch.
 */
static struct part *
part_claim_mine(struct firn *f, int64_t now_ns)
{
	struct shared *sh = f->shared;
	int32_t tid = (int32_t)syscall(SYS_gettid);
	struct part *p;
	bool known = false;

	if (!f->cached || sh->pid != getpid())
		return (NULL);
	p = part_find(sh, tid, &known);
	if (p == NULL)
		p = part_sweep(sh, now_ns);
	if (p == NULL)
		return (NULL);
	if (!known) {
		part_discard(sh, p); /* what an ended thread has left */
		part_claim(p, atomic_fetch_add(&f->tokens, 1) + 1, tid);
	}
	hints[f->serial % HINTS] = (struct hint){
		.serial = f->serial,
		.token = part_get(p->owner),
		.part = p,
	};
	return (p);
}

/* ---- the way of an ID that needs the latch ---- */

static size_t
take_from_stock(struct shared *sh, uint64_t *ids, size_t n)
{
	uint64_t waiters = atomic_load(&sh->latch.waiters);
	uint64_t most = sh->batch.left;
	size_t got;

	/* who takes many leaves one for each thread that waits for one */
	if (n > 1 && waiters > 0)
		most = most > waiters ? most - waiters : (most > 0 ? 1 : 0);
	got = batch_take(&sh->batch, ids, n < most ? n : (size_t)most);
	sh->demand.used += got;
	return (got);
}

/* Takes what memory has. */
static size_t
take_cached(struct firn *f, const struct call *c, uint64_t *ids, size_t n)
{
	struct shared *sh = f->shared;
	struct moment now = moment_now();
	struct part *p = part_mine(f);
	uint64_t shared = 0;
	size_t got = 0, more;

	if (p == NULL)
		p = part_claim_mine(f, now.mono_ns);
	/* the part first: what it holds is below all that the stock holds */
	if (p != NULL && part_left(p) > 0) {
		if (part_young(p, &now))
			got = part_take_many(p, ids, n);
		else
			part_discard(sh, p);
	}
	if (!c->fresh) /* else its age was just measured */
		sh->counts.dropped +=
		    batch_trim(&sh->batch, sh->generation, &now);
	more = take_from_stock(sh, ids + got, n - got);
	if (!c->begun)
		sh->counts.hits += more;
	if (p != NULL && part_left(p) == 0 && n == 1)
		shared = batch_share(&sh->batch, p, &now);
	sh->counts.shared += shared;
	sh->demand.used += shared;
	return (got + more);
}

/*
 * Cancellation is put off while this goes on: for timeout_ms at most, and
 * less than that for all who wait.
 */
static int
take(struct firn *f, uint64_t *ids, size_t n, size_t *got, bool patient)
{
	struct shared *sh = f->shared;
	struct call c = { .goal = REFILL_IDS, .patient = patient };
	size_t done = 0;
	int rc = FIRN_OK, state = handle_enter(f);

	for (;;) {
		done += take_cached(f, &c, ids + done, n - done);
		if (done == n)
			break;
		c.fresh = false;
		sh->counts.waits += !c.begun;
		c.need = n - done < f->max_batch ? (uint32_t)(n - done)
						 : f->max_batch;
		rc = refill(f, &c);
		if (rc != FIRN_OK)
			break;
	}
	refill_ahead(f);
	handle_leave(f, state);
	*got = done;
	return (done > 0 ? FIRN_OK : rc);
}

/* The part, if its IDs may be given out now. */
static struct part *
part_ready(const struct firn *f)
{
	struct part *p = part_mine(f);
	struct moment now;

	if (p == NULL)
		return (NULL);
	now = moment_now();
	return (part_young(p, &now) ? p : NULL);
}

/* ---- one ID, the quick way ---- */

/*
 * All that a cached ID costs, and most of it is the clock's.  No array and no
 * copy lies on this stack, so a canary would guard nothing.
 */
#if defined(__has_attribute)
#if __has_attribute(no_stack_protector)
#define NO_CANARY __attribute__((no_stack_protector))
#endif
#endif
#ifndef NO_CANARY
#define NO_CANARY
#endif

static inline bool
next_quickly(const struct firn *f, uint64_t *id)
{
	struct timespec now;
	struct part *p;

	if (f == NULL || id == NULL)
		return (false);
	p = part_mine(f);
	return (p != NULL && f->clock(CLOCK_MONOTONIC_COARSE, &now) == 0 &&
		part_seen(p, timespec_ns(&now)) && part_take(p, id));
}

/* Kept out of line, so that the quick way saves no registers for it. */
static int __attribute__((noinline, cold))
next_slowly(struct firn *f, uint64_t *id, bool patient)
{
	struct part *p;
	size_t got;

	if (f == NULL || id == NULL)
		return (FIRN_EINVAL);
	/* the clock has gone on, most likely: still no need of the latch */
	p = part_ready(f);
	if (p != NULL && part_take(p, id))
		return (FIRN_OK);
	return (take(f, id, 1, &got, patient));
}

NO_CANARY int
firn_next(struct firn *f, uint64_t *id)
{
	if (__builtin_expect(next_quickly(f, id), 1))
		return (FIRN_OK);
	return (next_slowly(f, id, true));
}

NO_CANARY int
firn_try_next(struct firn *f, uint64_t *id)
{
	if (__builtin_expect(next_quickly(f, id), 1))
		return (FIRN_OK);
	return (next_slowly(f, id, false));
}

int
firn_next_many(struct firn *f, uint64_t *ids, size_t n, size_t *got)
{
	struct part *p;
	size_t done = 0, more = 0;
	int rc;

	if (got != NULL)
		*got = 0;
	if (f == NULL || got == NULL || (ids == NULL && n > 0))
		return (FIRN_EINVAL);
	if (n == 0)
		return (FIRN_OK);
	p = part_ready(f);
	if (p != NULL)
		done = part_take_many(p, ids, n);
	if (done == n) {
		*got = done;
		return (FIRN_OK);
	}
	rc = take(f, ids + done, n - done, &more, true);
	*got = done + more;
	return (*got > 0 ? FIRN_OK : rc);
}

/* ---- what else a handle can be asked ---- */

int
firn_poll_fd(struct firn *f, short *events)
{
	int state, fd = FIRN_EAWAY;

	if (f == NULL || events == NULL)
		return (FIRN_EINVAL);
	state = handle_enter(f);
	if (f->shared->transport.connected && transport_owns(&f->socket)) {
		fd = f->socket.fd;
		*events = transport_events(&f->shared->transport);
	}
	handle_leave(f, state);
	return (fd);
}

int
firn_get_layout(struct firn *f, struct firn_layout *out)
{
	struct call c = { .goal = REFILL_LAYOUT, .patient = true };
	int state, rc = FIRN_OK;

	if (f == NULL || out == NULL)
		return (FIRN_EINVAL);
	state = handle_enter(f);
	while (rc == FIRN_OK && !atomic_load(&f->contract_known))
		rc = refill(f, &c);
	if (rc == FIRN_OK)
		*out = f->contract.layout;
	handle_leave(f, state);
	return (rc);
}

int
firn_why(struct firn *f, char *buf, size_t n)
{
	char why[HANDLE_WHY_MAX];
	size_t len, k;
	int state;

	if (f == NULL || (buf == NULL && n > 0))
		return (FIRN_EINVAL);
	state = handle_enter(f);
	memcpy(why, f->shared->why, sizeof(why));
	handle_leave(f, state);
	len = strlen(why);
	if (n > 0) {
		k = len < n - 1 ? len : n - 1;
		memcpy(buf, why, k);
		buf[k] = '\0';
	}
	return ((int)len);
}

/*
 * Hits from parts are counted nowhere: they are what was moved into parts and
 * is neither left there nor dropped.  Beside us a thread can only take, so its
 * part has one less left, and no number goes down.
 */
int
firn_get_stats(struct firn *f, struct firn_stats *out)
{
	const struct shared *sh;
	struct firn_stats s = { .size = (uint32_t)sizeof(s) };
	int state;

	if (f == NULL || out == NULL || out->size < sizeof(s))
		return (FIRN_EINVAL);
	state = handle_enter(f);
	sh = f->shared;
	s.hits = sh->counts.hits + sh->counts.shared;
	for (size_t i = 0; i < HANDLE_PARTS; i++)
		s.hits -= part_left(&sh->parts[i]);
	s.waits = sh->counts.waits;
	s.refills = sh->counts.refills;
	s.dropped = sh->counts.dropped;
	if (sh->counts.connects > 0)
		s.reconnects = sh->counts.connects - 1;
	handle_leave(f, state);
	*out = s;
	return (FIRN_OK);
}

/* ---- open and close ---- */

/* A string option, its environment variable, or the default. */
static bool
option_string(char *to, size_t size, const char *given, const char *variable,
    const char *fallback)
{
	const char *text = given;

	if (text == NULL) {
		text = secure_getenv(variable);
		if (text == NULL || *text == '\0')
			text = fallback;
	} else if (*text == '\0') {
		return (false);
	}
	if (strlen(text) >= size)
		return (false);
	memcpy(to, text, strlen(text) + 1);
	return (true);
}

/* A newer caller's options: what this library does not know must be unset. */
static bool
options_understood(const struct firn_options *o)
{
	const unsigned char *byte = (const unsigned char *)o;

	if (o->size < sizeof(*o) || o->size > OPTIONS_SIZE_MAX)
		return (false);
	for (size_t i = sizeof(*o); i < o->size; i++) {
		if (byte[i] != 0)
			return (false);
	}
	return (o->max_batch <= WIRE_COUNT_MAX);
}

static bool
options_apply(struct firn *f, const struct firn_options *opt)
{
	struct firn_options o = { .size = (uint32_t)sizeof(o) };

	if (opt != NULL) {
		if (!options_understood(opt))
			return (false);
		o = *opt;
	}
	f->timeout_ms = o.timeout_ms > 0 ? o.timeout_ms : DEFAULT_TIMEOUT_MS;
	f->ttl_ms = o.ttl_ms > 0 ? o.ttl_ms : DEFAULT_TTL_MS;
	f->max_batch = o.max_batch > 0 ? o.max_batch : WIRE_COUNT_MAX;
	return (option_string(f->path, sizeof(f->path), o.socket, "FIRN_SOCKET",
		    DEFAULT_SOCKET) &&
		option_string(
		    f->realm, sizeof(f->realm), o.realm, "FIRN_REALM", ""));
}

int
firn_open(struct firn **out, const struct firn_options *opt)
{
	static _Atomic uint64_t serials;
	struct timespec res = { 0 };
	struct firn *f;
	void *pages;

	if (out == NULL)
		return (FIRN_EINVAL);
	f = aligned_alloc(_Alignof(struct firn), sizeof(*f));
	if (f == NULL)
		return (FIRN_ENOMEM);
	memset(f, 0, sizeof(*f));
	if (!options_apply(f, opt)) {
		free(f);
		return (FIRN_EINVAL);
	}
	pages = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED) {
		free(f);
		return (FIRN_ENOMEM);
	}
	f->shared = pages;
	f->clock = vdso_find_clock();
	f->cached = madvise(pages, sizeof(struct shared), MADV_WIPEONFORK) == 0;
	f->serial = atomic_fetch_add(&serials, 1) + 1;
	f->home = (uint64_t)getpid() * 2;
	f->socket.fd = -1;
	clock_getres(CLOCK_MONOTONIC_COARSE, &res);
	f->coarse_ns = (int64_t)res.tv_sec * 1000000000 + res.tv_nsec;
	*out = f;
	return (FIRN_OK);
}

void
firn_close(struct firn *f)
{
	int state;

	if (f == NULL)
		return;
	state = handle_enter(f);
	refill_end(f);
	handle_leave(f, state);
}
