/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world - a simulated fleet: virtual time, a ZooKeeper, a network that loses,
 * delays and cuts, hosts that pause, crash and have clocks of their own.  The
 * agents are the real core.  Everything follows from the seed.
 */
#ifndef WORLD_H
#define WORLD_H

#include "claim.h"
#include "clock.h"
#include "serve.h"

#define SESSION_NS (10 * NS_PER_S)
#define DEADLINE_NS (2500 * NS_PER_MS)

/* How rough the world is; all odds are out of 1000. */
struct weather {
	unsigned hosts;
	uint64_t workers;
	int64_t reserve_ms, reserve_max_ms;
	uint64_t force_worker; /* NO_WORKER: claims decide */
	bool blind; /* the server ignores expected versions */
	unsigned lose_reply; /* a reply is lost, silently */
	unsigned lose_writes; /* ... the more so if it is a write's */
	unsigned lose_request;
	unsigned chaos_ms; /* mean time between troubles of one host; 0: none */
	bool wild_clocks; /* steps of many seconds, drift */
	bool jumpy_clocks; /* half of all troubles are steps of the clock */
	bool mad_clocks; /* up to an hour off: IDs are spoiled for as long */
	unsigned issue_ms; /* mean time between requests of one host */
	unsigned delete_marks_ms; /* an operator deletes a mark; 0: never */
	unsigned renew_realm_ms; /* an operator renews the realm; 0: never */
	unsigned twins_ms; /* a process is copied with its memory; 0: never */
	unsigned roll_back_ms; /* ZooKeeper's data goes back; 0: never */
	bool careless; /* ... and no operator renews the realm */
	unsigned wipe_ms; /* ... or is lost; 0: never */
	unsigned files; /* odds that a host keeps a state file */
	bool safe_files; /* that never fail, nor are lost or copied */
	bool restless; /* most troubles are ends of the process */
	bool quick; /* which is often back within milliseconds */
	unsigned still; /* odds of a trouble: the peers refuse, or no more */
	int64_t lead_ms; /* max_lead_ms; 0: the default */
};

struct world;

struct tally {
	uint64_t steps, ids, repeats, decreases, outside;
	uint64_t moved; /* a mark moved by who is refused by its peers */
	uint64_t stranded; /* a window on file that was not gone on in */
	uint64_t creates, writes, lost, expired, pauses, crashes, stops,
	    clock_steps, twins, reboots, resumed, resumed_dark, file_faults,
	    rollbacks, wipes, stills;
	uint64_t refusals[16];
	unsigned serving; /* hosts that would serve now */
	uint64_t most_creates; /* claims that one process created */
};

struct world *world_make(const struct weather *w, uint64_t seed);
void world_free(struct world *w);

/* Runs so many events, or until the virtual time is reached; true: no fault. */
bool world_run(struct world *w, uint64_t steps, int64_t until_ns);

/* Cuts every host off for so long, from now on. */
void world_cut_all(struct world *w, int64_t ns);

/*
 * Kills the agents of hosts from..to-1 at once; they start again within 100
 * ms, with their state files or as fresh hosts.
 */
void world_kill(struct world *w, unsigned from, unsigned to, bool files);

/* Steps every clock. */
void world_step_all(struct world *w, int64_t ms);

/* The clocks of hosts from..to-1 are off by so much, and the peers say so. */
void world_refuse(struct world *w, unsigned from, unsigned to, int64_t off_ms);

/* ... and no longer. */
void world_accept(struct world *w, unsigned from, unsigned to);

/* No trouble begins any more; what stands off comes back. */
void world_calm(struct world *w);

int64_t world_time(const struct world *w);
void world_tally(const struct world *w, struct tally *out);

#endif
