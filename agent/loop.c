/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop - the agent's event loop: sleeps until something happens, but after a
 * request looks for the next one first, for as long as that brings any.
 *
 * Invariant: an agent that nobody asks sleeps; see firn-spin.h for the rest.
 */
#include <event2/event.h>
#include <stdbool.h>

#include "firn-spin.h"
#include "loop.h"
#include "sysclock.h"

static int64_t
boot_ns(void)
{
	struct instant now;

	sysclock_read(&now);
	return (now.boot.ns);
}

/* Turns without sleeping while they serve anybody; what the last one said. */
static int
linger(
    struct event_base *base, const struct clients *clients, struct spin *spin)
{
	uint64_t served = clients_served(clients);
	int64_t until_ns = boot_ns() + SPIN_NS;
	int rc;

	do {
		rc = event_base_loop(base, EVLOOP_NONBLOCK);
		if (rc != 0 || event_base_got_break(base))
			return (rc);
		if (clients_served(clients) != served) {
			spin_ended(spin, true);
			if (!spin_begins(spin))
				return (0);
			served = clients_served(clients);
			until_ns = boot_ns() + SPIN_NS;
		}
	} while (boot_ns() < until_ns);
	spin_ended(spin, false);
	return (0);
}

int
loop_run(struct event_base *base, const struct clients *clients)
{
	struct spin spin = { 0 };
	uint64_t served = 0;
	int rc = 0;

	while (rc == 0 && !event_base_got_break(base)) {
		rc = event_base_loop(base, EVLOOP_ONCE);
		if (rc == 0 && !event_base_got_break(base) &&
		    clients_served(clients) != served && spin_begins(&spin))
			rc = linger(base, clients, &spin);
		served = clients_served(clients);
	}
	return (rc == -1 ? -1 : 0);
}
