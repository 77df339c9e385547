/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit-alerts - what is wrong with a fleet, and since when.
 *
 * Invariant: an alert that stood in the summary before keeps its beginning,
 * whoever wrote that one; the fleet's own alerts always find their place.
 */
#include <string.h>

#include "audit-private.h"
#include "layout.h"

#define US_PER_MS 1000

const char *
audit_kind_name(enum audit_kind k)
{
	switch (k) {
	case AUDIT_AGENT_STALE:
		return ("agent_stale");
	case AUDIT_DUPLICATE_CLAIM:
		return ("duplicate_claim");
	case AUDIT_WORKERS_LOW:
		return ("workers_low");
	case AUDIT_EPOCH_ENDING:
		return ("epoch_ending");
	case AUDIT_FLEET_SKEW:
		return ("fleet_skew");
	case AUDIT_MARKS_DELETED:
		return ("marks_deleted");
	case AUDIT_KINDS:
		break;
	}
	return ("unknown");
}

const struct audit_alert *
audit_find(const struct audit *a, enum audit_kind kind, uint64_t worker)
{
	for (size_t i = 0; a != NULL && i < a->nalerts; i++)
		if (a->alerts[i].kind == kind && a->alerts[i].worker == worker)
			return (&a->alerts[i]);
	return (NULL);
}

bool
audit_is_critical(const struct audit *a)
{
	for (size_t i = 0; i < a->nalerts; i++)
		if (a->alerts[i].critical)
			return (true);
	return (false);
}

bool
audit_workers_low(uint64_t left, uint64_t usable)
{
	return (left == 0 || left < (usable + 9) / 10);
}

static struct audit_alert *
raise_alert(struct audit *out, const struct audit *before, enum audit_kind kind,
    uint64_t worker)
{
	const struct audit_alert *stood = audit_find(before, kind, worker);
	struct audit_alert *a = &out->alerts[out->nalerts++];

	*a = (struct audit_alert){
		.kind = kind,
		.worker = worker,
		.since_ms = stood != NULL ? stood->since_ms : out->swept_ms,
		.seen_ms = out->swept_ms,
	};
	return (a);
}

/* ---- of single agents ---------------------------------------------------------- */

/*
 * After an outage of ZooKeeper nobody has written for long: who writes again
 * shows only from the next sweep on.
 */
static bool
was_swept_lately(const struct audit_input *in, const struct audit *before)
{
	return (before != NULL &&
		sub_sat(in->now_ms, before->swept_ms) <= 3 * in->audit_ms);
}

static void
raise_stale(
    const struct audit_input *in, const struct audit *before, struct audit *out)
{
	size_t n = 0;

	if (!was_swept_lately(in, before))
		return;
	for (size_t i = 0; n < AUDIT_STALE_MAX && i < in->n; i++) {
		const struct audit_member *m = &in->members[in->order[i]];
		int64_t stale_ms = audit_stale_ms(in, m);
		struct audit_alert *a;

		if (stale_ms == 0 ||
		    audit_find(out, AUDIT_AGENT_STALE, m->worker) != NULL)
			continue;
		a = raise_alert(out, before, AUDIT_AGENT_STALE, m->worker);
		audit_copy_plain(a->host, m->status.host, sizeof(a->host));
		a->value = stale_ms;
		a->limit = in->stale_ms;
		n++;
	}
}

static bool
was_double(const struct audit *before, const char *claim)
{
	for (size_t i = 0; before != NULL && i < before->ndoubles; i++)
		if (strcmp(before->doubles[i], claim) == 0)
			return (true);
	return (false);
}

/*
 * Two claims of one worker ID are usual for a moment: the younger gives way.
 * So it takes two sweeps that see it.
 */
static void
raise_doubles(
    const struct audit_input *in, const struct audit *before, struct audit *out)
{
	size_t n = 0;

	for (size_t i = 1; n < AUDIT_STALE_MAX / 2 && i < in->n; i++) {
		const struct audit_member *m = &in->members[in->order[i]];
		struct audit_alert *a;

		if (m->worker != in->members[in->order[i - 1]].worker ||
		    !was_double(before, m->claim) ||
		    audit_find(out, AUDIT_DUPLICATE_CLAIM, m->worker) != NULL)
			continue;
		a = raise_alert(out, before, AUDIT_DUPLICATE_CLAIM, m->worker);
		audit_copy_plain(a->host, m->status.host, sizeof(a->host));
		a->value = 2;
		a->limit = 1;
		n++;
	}
}

void
audit_raise_agents(
    const struct audit_input *in, const struct audit *before, struct audit *out)
{
	raise_stale(in, before, out);
	raise_doubles(in, before, out);
}

/* ---- of the fleet ----------------------------------------------------------------- */

static void
raise_workers(const struct audit *before, struct audit *out)
{
	uint64_t usable =
	    out->taken.count + out->quarantined.count + out->free.count;
	struct audit_alert *a;

	if (!audit_workers_low(out->free.count, usable))
		return;
	a = raise_alert(out, before, AUDIT_WORKERS_LOW, NO_WORKER);
	a->critical = out->free.count == 0;
	a->value = (int64_t)out->free.count;
	a->limit = (int64_t)usable;
}

/*
 * A year before IDs leave a signed column, and a year before the last tick.
 * The first is no end: once it has come there is nothing more to plan.
 */
static void
raise_ending(
    const struct audit_input *in, const struct audit *before, struct audit *out)
{
	int64_t end_ms = layout_end_ms(&in->k->layout), sign_ms;
	int64_t when_ms = end_ms;
	struct audit_alert *a;

	if (layout_sign_ms(&in->k->layout, &sign_ms) && in->now_ms < sign_ms)
		when_ms = sign_ms;
	if (sub_sat(when_ms, in->now_ms) > AUDIT_ENDING_MS)
		return;
	a = raise_alert(out, before, AUDIT_EPOCH_ENDING, NO_WORKER);
	a->value = when_ms;
	a->limit = end_ms;
}

/* Once raised, until it is a tenth below: no coming and going at the limit. */
static void
raise_spread(
    const struct audit_input *in, const struct audit *before, struct audit *out)
{
	bool stood = audit_find(before, AUDIT_FLEET_SKEW, NO_WORKER) != NULL;
	int64_t limit_us = ms_to_ns(in->warn_ms) / US_PER_MS;
	struct audit_alert *a;

	if (out->spread_us <= (stood ? limit_us / 10 * 9 : limit_us))
		return;
	a = raise_alert(out, before, AUDIT_FLEET_SKEW, NO_WORKER);
	a->value = out->spread_us / US_PER_MS;
	a->limit = in->warn_ms;
}

/*
 * It stands until the next generation: until then each worker ID that comes
 * into use for the first time has to wait for old windows to be over.
 */
static void
raise_deleted(const struct audit *before, struct audit *out)
{
	struct audit_alert *a;

	if (out->marks_deleted <= 0)
		return;
	a = raise_alert(out, before, AUDIT_MARKS_DELETED, NO_WORKER);
	a->critical = true;
	a->value = out->marks_deleted;
}

void
audit_raise_fleet(
    const struct audit_input *in, const struct audit *before, struct audit *out)
{
	raise_workers(before, out);
	raise_ending(in, before, out);
	raise_spread(in, before, out);
	raise_deleted(before, out);
}

/*
 * What is gone at one sweep and back at the next did not end: an alert is
 * cleared when it was not seen for longer than from one sweep to the next.
 */
void
audit_hold_alerts(
    const struct audit_input *in, const struct audit *before, struct audit *out)
{
	for (size_t i = 0; before != NULL && i < before->nalerts; i++) {
		const struct audit_alert *a = &before->alerts[i];
		int64_t gone_ms = sub_sat(in->now_ms, a->seen_ms);

		if (out->nalerts < AUDIT_ALERTS_MAX && gone_ms >= 0 &&
		    gone_ms <= in->audit_ms + in->audit_ms / 2 &&
		    audit_find(out, a->kind, a->worker) == NULL)
			out->alerts[out->nalerts++] = *a;
	}
}
