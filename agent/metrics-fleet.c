/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics-fleet - what the fleet's auditor has to say in /metrics.  All others
 * have the families and no samples: each figure is told once.
 */
#include "exposition.h"
#include "metrics.h"

#define NO_LABEL           \
	{                  \
		NULL, NULL \
	}

static void
with(struct expo *e, const char *label, const char *is, uint64_t value)
{
	const struct expo_label l[] = { { label, is }, NO_LABEL };

	expo_put_u64(e, l, value);
}

static void
put_counts(struct expo *e, const struct audit *a)
{
	expo_family(e, "firn_fleet_agents", EXPO_GAUGE,
	    "Agents of the realm by state, from its auditor.");
	for (int s = 0; a != NULL && s < AUDIT_STATES; s++)
		with(e, "state", audit_state_name((enum audit_state)s),
		    a->states[s]);
	expo_family(e, "firn_fleet_workers", EXPO_GAUGE,
	    "Worker IDs by state, from the auditor.");
	if (a != NULL) {
		with(e, "state", "taken", a->taken.count);
		with(e, "state", "quarantined", a->quarantined.count);
		with(e, "state", "free", a->free.count);
	}
	expo_family(e, "firn_fleet_duplicate_claims", EXPO_GAUGE,
	    "Claims of a worker ID that has an older one, from the auditor.");
	if (a != NULL)
		expo_put_u64(e, NULL, a->ndoubles);
}

static void
put_clocks(struct expo *e, const struct audit *a)
{
	expo_family(e, "firn_fleet_clock_spread_seconds", EXPO_GAUGE,
	    "Between the two clocks that are furthest apart, from the "
	    "auditor.");
	if (a != NULL && a->hosts > 0)
		expo_put_us(e, NULL, a->spread_us);
	expo_family(e, "firn_fleet_clock_offset_seconds", EXPO_GAUGE,
	    "The mean of the clocks minus ZooKeeper's, from the auditor.");
	if (a != NULL && a->count > 0)
		expo_put_us(e, NULL,
		    add_sat(a->median_us, a->sum_us / (int64_t)a->count));
}

/* A kind may be critical only for a time: both severities have a sample. */
static void
put_alert(
    struct expo *e, const struct audit *a, enum audit_kind kind, bool critical)
{
	const struct expo_label l[] = { { "kind", audit_kind_name(kind) },
		{ "severity", critical ? "critical" : "warning" }, NO_LABEL };
	bool stands = false;

	for (size_t i = 0; a != NULL && i < a->nalerts; i++)
		stands = stands || (a->alerts[i].kind == kind &&
				       a->alerts[i].critical == critical);
	expo_put_bool(e, l, stands);
}

void
metrics_put_fleet_alerts(struct expo *e, const struct auditor_figures *f)
{
	const struct audit *a = f->own ? f->summary : NULL;

	for (int k = 0; k < AUDIT_KINDS; k++) {
		enum audit_kind kind = (enum audit_kind)k;

		if (kind != AUDIT_MARKS_DELETED)
			put_alert(e, a, kind, false);
		if (kind == AUDIT_MARKS_DELETED || kind == AUDIT_WORKERS_LOW)
			put_alert(e, a, kind, true);
	}
}

void
metrics_put_fleet(struct expo *e, const struct auditor_figures *f)
{
	const struct audit *a = f->own ? f->summary : NULL;

	expo_family(e, "firn_auditor", EXPO_GAUGE,
	    "1 if this agent is the realm's auditor.");
	expo_put_bool(e, NULL, f->own);
	put_counts(e, a);
	put_clocks(e, a);
	expo_family(e, "firn_audit_duration_seconds", EXPO_GAUGE,
	    "How long the auditor's last sweep took.");
	if (a != NULL)
		expo_put_ms(e, NULL, a->took_ms);
}
