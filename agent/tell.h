/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tell - the agent's state as the one line that the service manager shows.
 *
 * Invariant: another line only when state, reason or worker ID changes: figures
 * that count down make no news.
 */
#ifndef TELL_H
#define TELL_H

#include "answer.h"
#include "notify.h"

struct tell {
	struct notify *notify;
	struct status_doc told; /* state "": nothing yet */
};

void tell_init(struct tell *t, struct notify *notify);

/* Looks, and tells what is new. */
void tell_state(struct tell *t, const struct answer_view *v);

#endif
