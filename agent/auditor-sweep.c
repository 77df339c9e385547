/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auditor-sweep - the fleet surveyed and summed up, ready to be written.
 *
 * Invariant: what stood is compared with, and not changed, until the new
 * summary has been written.
 */
#include <stdio.h>

#include "auditor-private.h"

static void
on_surveyed(void *arg, const struct survey_result *r)
{
	struct auditor *a = arg;
	struct audit_input in = {
		.k = &a->k,
		.members = r->members,
		.n = r->n,
		.order = r->order,
		.quarantined = r->quarantined,
		.now_ms = a->swept_ms,
		.epoch = a->where.skew->own.epoch,
		.fresh_ms = 3 * a->conf->renew_ms,
		.stale_ms = a->conf->session_ms / 2 * 3 + a->conf->renew_ms,
		.audit_ms = a->conf->audit_ms,
		.warn_ms = a->conf->skew_warn_ms,
		.marks_deleted = r->marks_deleted,
	};

	a->survey = NULL; /* frees itself */
	if (!r->good) {
		auditor_fail(a, "the sweep did not come to its end");
		return;
	}
	a->figures.sweeps++;
	a->figures.sweep_reads = r->reads;
	a->figures.sweep_ms = mono_diff_ms(a->now, a->started);
	audit_reckon(&in, auditor_standing(a), a->next);
	(void)snprintf(
	    a->next->auditor, sizeof(a->next->auditor), "%s", a->own_claim);
	(void)snprintf(a->next->auditor_host, sizeof(a->next->auditor_host),
	    "%s", a->where.host);
	a->next->took_ms = a->figures.sweep_ms;
	a->next->audit_ms = a->conf->audit_ms;
	auditor_write_node(a);
}

void
auditor_start_sweep(struct auditor *a)
{
	const struct survey_where where = {
		.zk = a->where.zk,
		.workers = a->where.workers,
		.marks = a->where.marks,
		.k = &a->k,
		.now_ms = auditor_zookeeper_ms(a),
		.wait_ms = a->conf->claim_wait_ms,
		.memory = &a->memory,
		.foreign = a->where.foreign,
	};

	a->swept_ms = where.now_ms;
	a->started = a->now;
	a->step = STEP_SWEEPING;
	a->survey = survey_start(&where, on_surveyed, a);
	if (a->survey == NULL)
		auditor_fail(a, "the sweep did not start");
}
