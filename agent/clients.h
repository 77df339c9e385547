/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clients - everybody who is connected, and the way of one request: bytes →
 * serve → reply.
 *
 * Invariant: requests that wait for a tick are answered in the order of their
 * arrival: while there are any, a new one goes behind them without being
 * asked.
 */
#ifndef CLIENTS_H
#define CLIENTS_H

#include "clock.h"
#include "conf.h"
#include "serve.h"
#include "status.h"

struct clients;
struct event_base;
struct lease;
struct listener;

/* What the clients are served with; all of it must outlive them. */
struct clients_host {
	struct event_base *base;
	const struct conf *conf;
	struct listener *listener;
	const struct lease *lease;
	struct serve *serve;
	const struct clock *clk;
	const struct instant *now; /* of this wake-up */
	void (*wake)(void *arg); /* brings the four above up to date */
	void (*empty)(void *arg); /* drained: the last one is gone */
	void (*status)(void *arg, struct status_doc *d); /* adds the owner's */
	void *arg;
};

/* Accepts from now on.  NULL: out of memory. */
struct clients *clients_open(const struct clients_host *host);

/* Now and then: closes peers that are too slow. */
void clients_look(struct clients *cs);

/* The configuration has changed. */
void clients_reload(struct clients *cs);

uint64_t clients_count(const struct clients *cs);

/* What was counted since the start. */
struct clients_figures {
	uint64_t connected; /* now */
	uint64_t accepted, denied, full; /* connections: taken, turned away */
	uint64_t batches, limited; /* requests: granted, over the rate */
	uint64_t received, sent; /* bytes */
};
void clients_figures(const struct clients *cs, struct clients_figures *out);

/* How many batches were granted: goes up with each. */
uint64_t clients_served(const struct clients *cs);

/* The document that WIRE_STATUS is answered with. */
void clients_status(const struct clients *cs, struct status_doc *d);

/* Accepts and reads no more; each is closed once it has its replies. */
void clients_drain(struct clients *cs);

/* Closes all of them now. */
void clients_cut(struct clients *cs);

/* The same, and the end.  NULL is fine. */
void clients_close(struct clients *cs);

#endif
