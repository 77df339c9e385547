/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics - all that /metrics says.
 *
 * Invariant: no label has a value for each client, user or peer: the text is
 * as long tomorrow as today.
 */
#include "metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "exposition.h"

#define NO_LABEL           \
	{                  \
		NULL, NULL \
	}

/* ---- one value ---------------------------------------------------------------- */

static void
count(struct expo *e, const char *name, const char *help, uint64_t value)
{
	expo_family(e, name, EXPO_COUNTER, help);
	expo_put_u64(e, NULL, value);
}

static void
gauge(struct expo *e, const char *name, const char *help, uint64_t value)
{
	expo_family(e, name, EXPO_GAUGE, help);
	expo_put_u64(e, NULL, value);
}

/* A figure that is not known has no sample: 0 would be one. */
static void
gauge_us(struct expo *e, const char *name, const char *help, bool known,
    int64_t value_us)
{
	expo_family(e, name, EXPO_GAUGE, help);
	if (known)
		expo_put_us(e, NULL, value_us);
}

static void
gauge_ms(struct expo *e, const char *name, const char *help, bool known,
    int64_t value_ms)
{
	expo_family(e, name, EXPO_GAUGE, help);
	if (known)
		expo_put_ms(e, NULL, value_ms);
}

/* One sample of the family at hand, with one label. */
static void
with(struct expo *e, const char *label, const char *is, uint64_t value)
{
	const struct expo_label l[] = { { label, is }, NO_LABEL };

	expo_put_u64(e, l, value);
}

/* ---- who it is, and what it does ------------------------------------------------ */

static void
put_identity(struct expo *e, const struct metrics_view *v)
{
	const struct status_doc *d = v->status;
	char worker[24] = "";
	const struct expo_label who[] = { { "realm", d->realm },
		{ "worker_id", worker },
		{ "layout", d->layout[0] != '\0' ? d->layout : d->bits },
		NO_LABEL };

	if (d->worker != NO_WORKER)
		(void)snprintf(worker, sizeof(worker), "%" PRIu64, d->worker);
	expo_family(
	    e, "firn_build_info", EXPO_GAUGE, "Always 1; the agent's version.");
	with(e, "version", d->version, 1);
	expo_family(e, "firn_agent_info", EXPO_GAUGE,
	    "Always 1; the realm and what is known of worker ID and layout.");
	expo_put_u64(e, who, 1);
}

static void
put_state(struct expo *e, const struct metrics_view *v)
{
	static const char *const states[] = { "claiming", "serving", "isolated",
		"refusing", "draining" };

	expo_family(e, "firn_state", EXPO_GAUGE,
	    "1 for the state that the agent is in, 0 for the others.");
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		with(e, "state", states[i],
		    strcmp(states[i], v->status->state) == 0);
}

static void
put_serving(struct expo *e, const struct metrics_view *v)
{
	count(e, "firn_ids_issued_total", "IDs handed out.",
	    v->serve->gen.issued);
	count(e, "firn_batches_granted_total",
	    "Requests that were granted IDs.", v->clients.batches);
	expo_family(e, "firn_refusals_total", EXPO_COUNTER,
	    "Requests that were refused, by reason.");
	for (int r = GATE_NO_REALM; r <= GATE_DRAINING; r++)
		with(e, "reason", gate_reason_name((enum gate_reason)r),
		    v->serve->refusals[r]);
	with(e, "reason", "too_many", v->clients.limited);
	count(e, "firn_ticks_borrowed_total",
	    "Ticks that were begun before their turn.", v->serve->gen.borrowed);
	count(e, "firn_sequence_exhausted_total",
	    "Ticks of which every sequence was used.", v->serve->gen.exhausted);
}

/* ---- the clock ------------------------------------------------------------------ */

static void
put_clock(struct expo *e, const struct metrics_view *v)
{
	const struct skew_sample *own = &v->skew->own;
	bool measured = v->skew->has_own;

	gauge_us(e, "firn_clock_skew_seconds",
	    "Own clock minus the mean of the peers' clocks.",
	    v->status->has_skew, v->skew->skew_us);
	gauge_us(e, "firn_clock_offset_seconds", "Own clock minus ZooKeeper's.",
	    measured, own->offset_us);
	gauge_us(e, "firn_clock_offset_error_seconds",
	    "Error of that: half of the round trip.", measured, own->error_us);
	gauge(e, "firn_clock_peers", "Hosts whose clocks are in the mean.",
	    v->skew->peers);
	expo_family(e, "firn_clock_steps_total", EXPO_COUNTER,
	    "Steps of the clock beyond step_tolerance_ms.");
	with(e, "direction", "ahead", v->clk->steps_ahead);
	with(e, "direction", "back", v->clk->steps_back);
	expo_family(e, "firn_clock_kernel_synchronized", EXPO_GAUGE,
	    "Whether the kernel calls its clock synchronized.");
	if (v->lease.kernel.known)
		expo_put_bool(e, NULL, v->lease.kernel.synchronized);
	gauge_us(e, "firn_clock_kernel_error_seconds",
	    "The kernel's estimate of its clock's error.",
	    v->lease.kernel.known, v->lease.kernel.error_us);
}

/* ---- the lease ------------------------------------------------------------------ */

static void
put_window(struct expo *e, const struct metrics_view *v)
{
	gauge_ms(e, "firn_window_remaining_seconds",
	    "How long IDs go on without ZooKeeper.", !v->alone,
	    v->status->window_left_ms);
	gauge_ms(e, "firn_mark_lead_seconds",
	    "How far the mark in ZooKeeper is ahead of the own clock.",
	    v->lease.has_lead, v->lease.lead_ms);
	gauge(e, "firn_zookeeper_connected",
	    "Whether there is a connection to ZooKeeper.",
	    v->status->connected ? 1 : 0);
	expo_family(e, "firn_zookeeper_sessions_total", EXPO_COUNTER,
	    "What became of the session with ZooKeeper.");
	with(e, "event", "established", v->lease.established);
	with(e, "event", "resumed", v->lease.resumed);
	with(e, "event", "disconnected", v->lease.disconnected);
	with(e, "event", "expired", v->lease.expired);
}

static const char *
cause_name(enum lease_cause cause)
{
	switch (cause) {
	case LEASE_START:
		return ("start");
	case LEASE_SESSION:
		return ("session");
	case LEASE_MOVED:
		return ("moved");
	}
	return ("?");
}

static void
put_lease(struct expo *e, const struct metrics_view *v)
{
	put_window(e, v);
	expo_family(e, "firn_renewals_total", EXPO_COUNTER,
	    "Writes of the mark, by what came of them.");
	with(e, "result", "ok", v->lease.renewed);
	with(e, "result", "refused", v->lease.refused);
	with(e, "result", "unknown", v->lease.unknown);
	expo_family(e, "firn_renewal_duration_seconds", EXPO_HISTOGRAM,
	    "Time until ZooKeeper answered a write of the mark.");
	expo_put_durations(e, &v->lease.renewals);
	expo_family(e, "firn_claims_total", EXPO_COUNTER,
	    "Claims of a worker ID that were made, by what made them needed.");
	for (int c = 0; c < LEASE_CAUSES; c++)
		with(e, "cause", cause_name((enum lease_cause)c),
		    v->lease.claims[c]);
	gauge_ms(e, "firn_layout_end_timestamp_seconds",
	    "When the layout's time field ends.", v->lease.has_end,
	    v->lease.end_ms);
	gauge_ms(e, "firn_layout_sign_timestamp_seconds",
	    "From when on IDs are negative in a signed column.",
	    v->lease.has_sign, v->lease.sign_ms);
}

/* ---- clients -------------------------------------------------------------------- */

static void
put_clients(struct expo *e, const struct metrics_view *v)
{
	const struct clients_figures *c = &v->clients;

	gauge(e, "firn_clients", "Connections that are open.", c->connected);
	count(e, "firn_client_connections_total",
	    "Connections that were accepted.", c->accepted);
	expo_family(e, "firn_client_rejections_total", EXPO_COUNTER,
	    "Connections that were turned away, by reason.");
	with(e, "reason", "not_allowed", c->denied);
	with(e, "reason", "too_many", c->full);
	count(e, "firn_receive_bytes_total", "Bytes read from clients.",
	    c->received);
	count(
	    e, "firn_transmit_bytes_total", "Bytes sent to clients.", c->sent);
}

/* ---- alerts, configuration, process ----------------------------------------------- */

static void
put_alerts(struct expo *e, const struct metrics_view *v)
{
	expo_family(e, "firn_alert", EXPO_GAUGE,
	    "1 for each alert that stands, 0 for those that do not.");
	for (int i = 0; i < ALARM_KINDS; i++) {
		enum alarm_kind kind = (enum alarm_kind)i;
		const struct expo_label l[] = { { "kind", alarm_name(kind) },
			{ "severity",
			    alarm_severity_name(alarm_severity(kind)) },
			NO_LABEL };

		expo_put_bool(e, l, v->alarms->kinds[i].stands);
	}
	metrics_put_fleet_alerts(e, &v->fleet);
}

static void
put_config(struct expo *e, const struct metrics_view *v)
{
	gauge(e, "firn_config_last_reload_successful",
	    "Whether the configuration was good when it was last read.",
	    v->config_good ? 1 : 0);
	gauge_ms(e, "firn_config_last_reload_success_timestamp_seconds",
	    "When it was last read and good.", true, v->config_ms);
}

static void
put_process(struct expo *e, const struct metrics_view *v)
{
	const struct usage *u = &v->usage;

	expo_family(e, "process_cpu_seconds_total", EXPO_COUNTER,
	    "Time of the processor, user and system.");
	expo_put_us(e, NULL, u->cpu_us);
	gauge(e, "process_open_fds", "Descriptors that are open.", u->open_fds);
	gauge(e, "process_max_fds", "Descriptors that may be.", u->max_fds);
	gauge(e, "process_virtual_memory_bytes", "Size of the address space.",
	    u->virtual_bytes);
	gauge(e, "process_resident_memory_bytes", "Memory in use.",
	    u->resident_bytes);
	gauge_ms(e, "process_start_time_seconds", "When the agent was started.",
	    true, v->start_ms);
}

int
metrics_format(const struct metrics_view *v, char *buf, size_t n)
{
	struct expo e;

	expo_open(&e, buf, n);
	put_identity(&e, v);
	put_state(&e, v);
	put_serving(&e, v);
	put_clock(&e, v);
	put_lease(&e, v);
	put_clients(&e, v);
	put_alerts(&e, v);
	metrics_put_fleet(&e, &v->fleet);
	put_config(&e, v);
	put_process(&e, v);
	return (expo_end(&e));
}
