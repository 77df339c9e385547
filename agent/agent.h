/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent - the wiring: connections → serve → replies, the clock, start and
 * stop.
 *
 * Invariant: at each wake-up the clocks are read once, then the clock is
 * judged, then the lease's facts are brought up to date, then requests are
 * served, all with that one instant.
 */
#ifndef AGENT_H
#define AGENT_H

#include "clock.h"
#include "conf.h"
#include "serve.h"

struct agent;
struct event_base;
struct lease;
struct listener;
struct notify;
struct web;

/*
 * argc and argv are read again at SIGHUP, which changes *conf; all pointers
 * must outlive the agent.  NULL: out of memory.
 */
struct agent *agent_open(struct event_base *base, struct conf *conf,
    struct listener *listener, struct notify *notify, int argc, char **argv);

/* What the lease writes. */
struct serve *agent_serve(struct agent *a);
struct clock *agent_clock(struct agent *a);

/* Serves until SIGTERM or SIGINT and the drain after it; the exit status. */
int agent_run(struct agent *a, struct lease *lease, struct web *web);

/* Closes what connections are left.  Before the lease and the listener. */
void agent_close(struct agent *a);

#endif
