/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer - what the agent says: the bodies of its replies, a refusal in words
 * with its figures, the status document.  It decides nothing.
 */
#include "answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "layout.h"
#include "rfc3339.h"

_Static_assert(
    sizeof(((struct gen_grant *)0)->runs) / sizeof(struct run) <= WIRE_RUNS_MAX,
    "a grant fits a reply");

uint32_t
answer_put_batch(uint8_t body[ANSWER_BATCH_MAX], const struct gen_grant *grant,
    mono_t boot, int64_t ttl_ms)
{
	uint8_t *p = body + WIRE_BATCH_SIZE;

	wire_put64(body, (uint64_t)boot.ns);
	wire_put32(body + 8, (uint32_t)ttl_ms);
	wire_put32(body + 12, grant->nruns);
	for (unsigned i = 0; i < grant->nruns; i++, p += WIRE_RUN_SIZE) {
		const struct wire_run r = { .first = grant->runs[i].first,
			.stride = grant->runs[i].stride,
			.count = grant->runs[i].count };

		wire_put_run(p, &r);
	}
	return ((uint32_t)(p - body));
}

uint32_t
answer_put_refusal(
    uint8_t body[ANSWER_REFUSAL_MAX], int64_t retry_after_ms, const char *words)
{
	size_t length = strnlen(words, WIRE_TEXT_MAX);

	wire_put32(body, (uint32_t)retry_after_ms);
	wire_put32(body + 4, (uint32_t)length);
	memcpy(body + WIRE_REFUSAL_SIZE, words, length);
	return ((uint32_t)(WIRE_REFUSAL_SIZE + length));
}

uint32_t
answer_put_contract(
    uint8_t body[WIRE_CONTRACT_SIZE], const struct answer_view *v)
{
	const struct gate *g = &v->serve->gate;
	struct wire_contract k;

	memset(&k, 0, sizeof(k));
	memcpy(k.uuid, lease_uuid(v->lease), WIRE_UUID_SIZE);
	k.layout = v->serve->gen.layout;
	k.worker = g->window ? g->worker : WIRE_NO_WORKER;
	snprintf(k.realm, sizeof(k.realm), "%s", v->conf->realm);
	wire_put_contract(body, &k);
	return (WIRE_CONTRACT_SIZE);
}

/* ---- words ------------------------------------------------------------- */

/*
 * The clock's reading went back as a whole, or one handle has IDs from later
 * than this agent may issue yet.
 */
static void
words_clock_back(
    const struct answer_view *v, int64_t behind, char *buf, size_t n)
{
	char when[RFC3339_TEXT_MAX];

	if (v->clk->verdict != CLOCK_BACK) {
		snprintf(buf, n,
		    "clock_back: IDs that this handle has received lie %" PRId64
		    " ms ahead of this agent's clock",
		    behind);
		return;
	}
	if (!rfc3339_format(wall_ms(v->clk->back_until), when))
		snprintf(when, sizeof(when), "its former reading");
	snprintf(buf, n,
	    "clock_back: the clock went back by %" PRId64
	    " ms; service returns at %s",
	    clock_back_ms(v->clk), when);
}

/* A worker ID is held, and its ticks are still to come (not_before, a mark). */
static bool
words_later(const struct answer_view *v, const char *name, char *buf, size_t n)
{
	const struct serve *s = v->serve;
	const struct gate *g = &s->gate;
	int64_t begins, ms;
	char when[RFC3339_TEXT_MAX];

	if ((!g->window && !g->later) || s->gen.layout.tick_ms == 0)
		return (false);
	begins = layout_tick_start_ms(
	    &s->gen.layout, (g->window ? g->floor : g->later_floor) + 1);
	ms = begins - wall_ms(clock_now(v->clk, v->now));
	if (ms <= 0 || !rfc3339_format(begins, when))
		return (false);
	snprintf(buf, n,
	    "%s: worker ID %" PRIu64 " is held; its IDs begin at %s, in "
	    "%" PRId64 ".%" PRId64 " s",
	    name, g->window ? g->worker : g->later_worker, when, ms / 1000,
	    ms % 1000 / 100);
	return (true);
}

static void
words_window_spent(const struct answer_view *v, char *buf, size_t n)
{
	const struct serve *s = v->serve;
	int64_t end, past;

	if (words_later(v, "window_spent", buf, n))
		return;
	if (!s->gate.window || s->gen.layout.tick_ms == 0) {
		snprintf(buf, n,
		    "window_spent: no window stands any more; ZooKeeper has "
		    "to confirm a new one");
		return;
	}
	end = layout_tick_start_ms(&s->gen.layout, s->gate.ceiling + 1);
	past = wall_ms(clock_now(v->clk, v->now)) - end;
	if (past >= 0)
		snprintf(buf, n,
		    "window_spent: the window ended %" PRId64
		    " ms ago and ZooKeeper (%.80s) has confirmed no renewal",
		    past, v->conf->zookeeper);
	else
		snprintf(buf, n,
		    "window_spent: all ticks up to the window's end are used; "
		    "ZooKeeper has to confirm a renewal");
}

/* Missing, or not looked for yet: only the one is for an operator to mend. */
static void
words_no_realm(const struct answer_view *v, char *buf, size_t n)
{
	struct status_doc d;

	memset(&d, 0, sizeof(d));
	lease_status(v->lease, v->now, &d);
	if (d.connected && lease_is_garbled(v->lease))
		snprintf(buf, n,
		    "no_realm: realm \"%s\" was found in ZooKeeper, but its "
		    "contract makes no sense: see the agent's log",
		    v->conf->realm);
	else if (d.connected && lease_is_denied(v->lease))
		snprintf(buf, n,
		    "no_realm: realm \"%s\": not allowed to read it in "
		    "ZooKeeper (its access list)",
		    v->conf->realm);
	else if (d.connected)
		snprintf(buf, n,
		    "no_realm: realm \"%s\" has not been found in ZooKeeper",
		    v->conf->realm);
	else
		snprintf(buf, n,
		    "no_realm: realm \"%s\" is not known yet: ZooKeeper "
		    "(%.100s) does not answer",
		    v->conf->realm, v->conf->zookeeper);
}

static void
words_clock_skew(const struct answer_view *v, char *buf, size_t n)
{
	char words[SKEW_WORDS_MAX];

	(void)skew_words(lease_skew(v->lease), words, sizeof(words));
	snprintf(buf, n, "clock_skew: the clock is %s", words);
}

static void
words_epoch(
    const struct answer_view *v, enum gate_reason reason, char *buf, size_t n)
{
	const struct firn_layout *l = &v->serve->gen.layout;
	bool before = reason == GATE_BEFORE_EPOCH;
	char when[RFC3339_TEXT_MAX];

	if (!rfc3339_format(before ? l->epoch_ms : layout_end_ms(l), when))
		snprintf(when, sizeof(when), "a year past 9999");
	snprintf(buf, n,
	    before ? "before_epoch: the clock is before the layout's epoch, %s"
		   : "epoch_ended: the layout's time field ended at %s",
	    when);
}

void
answer_words(const struct answer_view *v, enum gate_reason reason,
    int64_t behind, char *buf, size_t n)
{
	switch (reason) {
	case GATE_ALLOW:
		snprintf(buf, n, "%s", "");
		return;
	case GATE_NO_REALM:
		words_no_realm(v, buf, n);
		return;
	case GATE_REALM_CHANGED:
		snprintf(buf, n,
		    "realm_changed: realm \"%s\" is another one than at start, "
		    "or ZooKeeper's data went back",
		    v->conf->realm);
		return;
	case GATE_NO_CLAIM:
		if (!words_later(v, "no_claim", buf, n))
			snprintf(
			    buf, n, "no_claim: no worker ID may be used yet");
		return;
	case GATE_WINDOW_SPENT:
		words_window_spent(v, buf, n);
		return;
	case GATE_STATE_LOST:
		snprintf(
		    buf, n, "state_lost: %.200s", lease_lost_words(v->lease));
		return;
	case GATE_STATE_FAILED:
		snprintf(buf, n,
		    "state_failed: the state file can be neither written nor "
		    "removed");
		return;
	case GATE_CLOCK_SKEW:
		words_clock_skew(v, buf, n);
		return;
	case GATE_CLOCK_BACK:
		words_clock_back(v, behind, buf, n);
		return;
	case GATE_CLOCK_AHEAD:
		snprintf(buf, n,
		    "clock_ahead: the clock went ahead by %" PRId64
		    " ms to a time that its peers do not share",
		    v->clk->diff_ns / NS_PER_MS);
		return;
	case GATE_BEFORE_EPOCH:
	case GATE_EPOCH_ENDED:
		words_epoch(v, reason, buf, n);
		return;
	case GATE_DRAINING:
		snprintf(buf, n, "draining: the agent is shutting down");
		return;
	}
	snprintf(buf, n, "refused");
}

/* ---- status -------------------------------------------------------------- */

/* The lease knows whether it claims; whether it serves is the gate's word. */
static const char *
state_of(const struct answer_view *v, enum gate_reason reason,
    const struct status_doc *d)
{
	if (v->serve->gate.draining)
		return ("draining");
	if (reason == GATE_ALLOW)
		return (d->connected || lease_is_alone(v->lease) ? "serving"
								 : "isolated");
	if (reason == GATE_NO_CLAIM)
		return ("claiming");
	return (d->state[0] != '\0' && strcmp(d->state, "serving") != 0 &&
			strcmp(d->state, "isolated") != 0
		    ? d->state
		    : "refusing");
}

void
answer_fill_status(const struct answer_view *v, uint64_t clients,
    uint64_t batches, struct status_doc *d)
{
	enum gate_reason reason = serve_state(v->serve, v->clk, v->now);
	char state[sizeof(d->state)];

	memset(d, 0, sizeof(*d));
	d->worker = NO_WORKER;
	d->counter = -1;
	lease_status(v->lease, v->now, d);
	snprintf(state, sizeof(state), "%s", state_of(v, reason, d));
	memcpy(d->state, state, sizeof(state));
	if (reason != GATE_ALLOW) {
		snprintf(d->reason, sizeof(d->reason), "%s",
		    gate_reason_name(reason));
		answer_words(v, reason, 0, d->words, sizeof(d->words));
	}
	d->issued = v->serve->gen.issued;
	d->clients = clients;
	d->batches = batches;
	d->refusals = 0;
	for (size_t i = 0;
	     i < sizeof(v->serve->refusals) / sizeof(v->serve->refusals[0]);
	     i++)
		d->refusals += v->serve->refusals[i];
	d->pid = (int64_t)getpid();
	snprintf(d->version, sizeof(d->version), "%s", FIRN_VERSION);
}
