/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics - all that /metrics says.
 *
 * Invariant: no label has a value for each client, user or peer: the text is
 * as long tomorrow as today.
 */
#ifndef METRICS_H
#define METRICS_H

#include "alarms.h"
#include "auditor.h"
#include "clients.h"
#include "lease.h"
#include "usage.h"

struct metrics_view {
	const struct conf *conf;
	const struct status_doc *status;
	const struct serve *serve;
	const struct clock *clk;
	const struct skew *skew;
	const struct alarms *alarms;
	struct lease_figures lease;
	struct clients_figures clients;
	struct usage usage;
	struct auditor_figures fleet;
	bool alone; /* no ZooKeeper */
	bool config_good; /* the last reload; so is the start */
	int64_t config_ms, start_ms; /* Unix time: last good one, start */
};

/* The length, -1 if it does not fit. */
FIRN_CHECK_RESULT int metrics_format(
    const struct metrics_view *v, char *buf, size_t n);

/* metrics-fleet: the families of the fleet; its samples of firn_alert. */
struct expo;
void metrics_put_fleet(struct expo *e, const struct auditor_figures *f);
void metrics_put_fleet_alerts(struct expo *e, const struct auditor_figures *f);

#endif
