/* SPDX-License-Identifier: Apache-2.0 */
/* loop - the agent's event loop. */
#ifndef LOOP_H
#define LOOP_H

#include "clients.h"

struct event_base;

/* Runs until event_base_loopbreak(), or until nothing is left: 0; -1: failed. */
int loop_run(struct event_base *base, const struct clients *clients);

#endif
