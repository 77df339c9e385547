/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease-reload - the keys of the configuration of which the lease's parts
 * keep copies.
 *
 * Invariant: only the next write, the next judgement and the next request see
 * a new value.  A shorter reserve lowers no ceiling: every write carries the
 * highest that there was (window_write).
 */
#include <string.h>

#include "lease-private.h"

void
lease_set_times(const struct lease *l, struct claim_conf *cc)
{
	const struct conf *conf = l->conf;

	cc->renew_ms = conf->renew_ms;
	cc->reserve_ms = conf->reserve_ms;
	cc->claim_wait_ms = conf->claim_wait_ms;
	if (strcmp(conf->on_step, "logical") == 0 &&
	    conf->logical_lead_ms > cc->claim_wait_ms)
		cc->claim_wait_ms = conf->logical_lead_ms;
	cc->skew_refuse_ms = conf->skew_refuse_ms;
}

void
lease_reload(struct lease *l)
{
	lease_set_times(l, &l->claim.conf);
	judge_reload(l->judge);
	if (!l->realm_told)
		return; /* then serve_init() is still to come */
	l->serve->gen.random_start =
	    strcmp(l->conf->sequence_start, "random") == 0;
	l->serve->max_lead_ms = l->conf->max_lead_ms;
	l->serve->refuse_ms = l->conf->skew_refuse_ms;
}
