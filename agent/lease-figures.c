/* SPDX-License-Identifier: Apache-2.0 */
/* lease-figures - what a lease counts, for the metrics.  It decides nothing. */
#include "layout.h"
#include "lease-private.h"

void
lease_count_event(struct lease *l, const struct zk_event *ev)
{
	struct lease_figures *f = &l->figures;

	switch (ev->kind) {
	case ZK_CONNECTED:
		if (ev->session != l->claim.session)
			f->established++;
		else
			f->resumed++;
		return;
	case ZK_DISCONNECTED:
		f->disconnected++;
		return;
	case ZK_SESSION_LOST:
		f->expired++;
		if (l->cause == LEASE_MOVED)
			l->cause = LEASE_SESSION;
		return;
	case ZK_WATCH:
	case ZK_REPLY:
		return;
	}
}

static void
count_renewal(
    struct lease_figures *f, const struct zk_event *ev, enum claim_rc rc)
{
	if (rc == RC_OK)
		f->renewed++;
	else if (rc == RC_UNKNOWN)
		f->unknown++;
	else
		f->refused++;
	if (ev->received_boot_ns != 0)
		expo_take_duration(&f->renewals,
		    (ev->received_boot_ns - ev->sent_boot_ns) / 1000);
}

void
lease_count_reply(struct lease *l, const struct claim_op *op,
    const struct zk_event *ev, enum claim_rc rc)
{
	if (op->kind == OP_SET_MARK)
		count_renewal(&l->figures, ev, rc);
	if (op->kind == OP_CREATE && rc == RC_OK) {
		l->figures.claims[l->cause]++;
		l->cause = LEASE_MOVED; /* unless the session ends */
	}
}

void
lease_count_dropped(struct lease *l)
{
	for (size_t i = 0; i < LEASE_LANES; i++)
		if (l->pending[i].zk_op != 0 &&
		    l->pending[i].op.kind == OP_SET_MARK)
			l->figures.unknown++;
}

/* The highest that ZooKeeper may hold of ours, for the worker ID in use. */
static void
fill_lead(
    const struct lease *l, const struct instant *now, struct lease_figures *out)
{
	const struct claim *c = &l->claim;
	const struct gate *g = &l->serve->gate;
	int64_t tick = g->ceiling;

	if (l->is_alone || !g->window)
		return;
	if (c->has_own && c->own.worker == g->worker)
		tick = max64(tick, c->own.highest);
	out->has_lead = true;
	out->lead_ms = layout_tick_start_ms(&c->k.layout, tick + 1) -
		       wall_ms(clock_now(l->clk, now));
}

void
lease_figures(
    const struct lease *l, const struct instant *now, struct lease_figures *out)
{
	*out = l->figures;
	fill_lead(l, now, out);
	out->reserve_ms = l->conf->reserve_ms;
	out->kernel = l->kernel;
	out->step_unsettled = judge_unsettled(l->judge);
	if (!l->claim.realm_known)
		return;
	out->reserve_ms = min64(out->reserve_ms, l->claim.k.reserve_max_ms);
	out->has_end = true;
	out->end_ms = layout_end_ms(&l->claim.k.layout);
	out->has_sign = layout_sign_ms(&l->claim.k.layout, &out->sign_ms);
}
