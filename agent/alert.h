/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alert - which alerts stand on this host, judged from the facts as they are.
 *
 * Invariant: one line when one is raised and one when it is cleared, here or
 * (skew_warn, skew_refuse, clock_step) where the figures are.
 */
#ifndef ALERT_H
#define ALERT_H

#include "alarms.h"
#include "answer.h"

struct alert {
	struct alarms alarms;
	bool was_full; /* of this worker ID a window above half was seen */
	uint64_t worker;
	mono_t realm_seen; /* or the start */
};

void alert_init(struct alert *a, mono_t now);

/* Now and then, and before somebody is told. */
void alert_judge(struct alert *a, const struct answer_view *v);

#endif
