/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate - may an ID be issued now, and of which ticks?  One pure function, the
 * only place where the lease path (which writes the facts) and the request
 * path (which asks) meet.
 */
#ifndef GATE_H
#define GATE_H

#include "clock.h"
#include "types.h"

/* Values are those of enum wire_reason. */
enum gate_reason {
	GATE_ALLOW = 0,
	GATE_NO_REALM = 1,
	GATE_REALM_CHANGED = 2,
	GATE_NO_CLAIM = 3,
	GATE_WINDOW_SPENT = 4,
	GATE_STATE_LOST = 5,
	GATE_STATE_FAILED = 6,
	GATE_CLOCK_SKEW = 7,
	GATE_CLOCK_BACK = 8,
	GATE_CLOCK_AHEAD = 9,
	GATE_BEFORE_EPOCH = 10,
	GATE_EPOCH_ENDED = 11,
	GATE_DRAINING = 12,
};

struct gate {
	bool realm_known; /* the contract has been read, or configured */
	bool realm_changed; /* another uuid, or ZooKeeper's data went back */
	bool draining;
	bool state_lost, state_failed;
	bool clock_skew; /* refused against the peer average */
	bool had_window; /* a window stood at some time: spent, not unclaimed */
	bool window; /* a window stands: the next three hold */
	uint64_t worker;
	int64_t floor; /* ticks: issue only above it ... */
	int64_t ceiling; /* ... and up to it */
	bool later; /* no window, but a mark that one will begin above: */
	uint64_t later_worker;
	int64_t later_floor;
	bool on_file; /* there is a state file: nothing above ... */
	int64_t local_mark; /* ... the local mark on it */
	int64_t tick_max; /* the layout's last tick */
	enum clock_verdict clock;
};

/*
 * The first reason that applies, those that wait longest or hide the others
 * first: a drain, the realm, the state file, the clock, the epoch, the window.
 *
 * With GATE_ALLOW, *first..*last are the ticks that may be issued (`now` may
 * be below *first: wait).  `now` is the present tick, `lead` how many ticks
 * may be borrowed.
 */
enum gate_reason gate_check(const struct gate *g, int64_t now, int64_t lead,
    int64_t *first, int64_t *last);

/* "clock_skew" and so on. */
const char *gate_reason_name(enum gate_reason r);

#endif
