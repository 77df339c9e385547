/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate - may an ID be issued now, and of which ticks?
 *
 * Invariant: what it allows lies in (floor, ceiling], within the layout, and
 * no further ahead of the present tick than the lead.
 */
#include "gate.h"

#include "firn-wire.h"

_Static_assert((int)GATE_ALLOW == (int)WIRE_OK &&
		   (int)GATE_NO_REALM == (int)WIRE_NO_REALM &&
		   (int)GATE_REALM_CHANGED == (int)WIRE_REALM_CHANGED &&
		   (int)GATE_NO_CLAIM == (int)WIRE_NO_CLAIM &&
		   (int)GATE_WINDOW_SPENT == (int)WIRE_WINDOW_SPENT &&
		   (int)GATE_STATE_LOST == (int)WIRE_STATE_LOST &&
		   (int)GATE_STATE_FAILED == (int)WIRE_STATE_FAILED &&
		   (int)GATE_CLOCK_SKEW == (int)WIRE_CLOCK_SKEW &&
		   (int)GATE_CLOCK_BACK == (int)WIRE_CLOCK_BACK &&
		   (int)GATE_CLOCK_AHEAD == (int)WIRE_CLOCK_AHEAD &&
		   (int)GATE_BEFORE_EPOCH == (int)WIRE_BEFORE_EPOCH &&
		   (int)GATE_EPOCH_ENDED == (int)WIRE_EPOCH_ENDED &&
		   (int)GATE_DRAINING == (int)WIRE_DRAINING,
    "a refusal's number is the gate's reason");

static enum gate_reason
check_clock(const struct gate *g)
{
	switch (g->clock) {
	case CLOCK_BACK:
		return (GATE_CLOCK_BACK);
	case CLOCK_AHEAD:
		return (GATE_CLOCK_AHEAD);
	case CLOCK_GOOD:
	case CLOCK_LEAP:
		break;
	}
	return (g->clock_skew ? GATE_CLOCK_SKEW : GATE_ALLOW);
}

/* Everything but the window. */
static enum gate_reason
check_agent(const struct gate *g, int64_t now)
{
	enum gate_reason r;

	if (g->draining)
		return (GATE_DRAINING);
	if (g->realm_changed)
		return (GATE_REALM_CHANGED);
	if (!g->realm_known)
		return (GATE_NO_REALM);
	if (g->state_lost)
		return (GATE_STATE_LOST);
	if (g->state_failed)
		return (GATE_STATE_FAILED);
	r = check_clock(g);
	if (r != GATE_ALLOW)
		return (r);
	if (now < 0)
		return (GATE_BEFORE_EPOCH);
	if (now > g->tick_max)
		return (GATE_EPOCH_ENDED);
	return (GATE_ALLOW);
}

enum gate_reason
gate_check(const struct gate *g, int64_t now, int64_t lead, int64_t *first,
    int64_t *last)
{
	enum gate_reason r = check_agent(g, now);

	if (r != GATE_ALLOW)
		return (r);
	/* Empty counts as none: taken over, but not yet grown. */
	if (!g->window || g->floor >= g->ceiling)
		return (g->had_window ? GATE_WINDOW_SPENT : GATE_NO_CLAIM);
	if (now > g->ceiling)
		return (GATE_WINDOW_SPENT);
	/* It is written ahead: behind the clock it cannot be written. */
	if (g->on_file && now > g->local_mark)
		return (GATE_STATE_FAILED);
	*first = g->floor < 0 ? 0 : g->floor + 1;
	*last = min64(
	    add_sat(now, lead > 0 ? lead : 0), min64(g->ceiling, g->tick_max));
	if (g->on_file)
		*last = min64(*last, g->local_mark);
	return (GATE_ALLOW);
}

const char *
gate_reason_name(enum gate_reason r)
{
	return (wire_reason_name((unsigned)r));
}
