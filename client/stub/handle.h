/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handle - what is behind `struct firn *`, in two pieces.
 *
 * Invariant: whatever must not be in two processes (IDs, locks, requests under
 * way) lies in struct shared, in pages that the kernel hands to a fork child
 * as zeros.  Outside lie constants, and what must survive: the highest ID
 * received and counters that only go up.
 */
#ifndef HANDLE_H
#define HANDLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "batch.h"
#include "firn-spin.h"
#include "firn-wire.h"
#include "firn.h"
#include "latch.h"
#include "random.h"
#include "transport.h"
#include "vdso.h"

#define HANDLE_PARTS 64
#define HANDLE_WHY_MAX 512

/* What firn_get_stats() is made of; of this process, since the pages are. */
struct counts {
	uint64_t shared; /* IDs moved into parts and not dropped there */
	uint64_t hits; /* IDs from the stock, without a wait */
	uint64_t refills, waits, dropped, connects;
};

/* Wiped by fork; all-zero is its first state, also in the parent. */
struct shared {
	struct latch latch; /* covers all below but `inside` and the parts */
	_Atomic uint32_t inside; /* calls under way, firn_close() too */
	bool closed; /* the last one out frees the handle */
	uint64_t generation; /* 0: nothing was done here yet */
	pid_t pid; /* of the process that began this generation */
	bool leading; /* one thread is at the transport; others wait */
	bool pause_firm; /* firn_try_next() keeps to the pause, too */
	int64_t pause_until_ns; /* do not try before; CLOCK_MONOTONIC */
	int trouble; /* error of a call whose deadline comes now */
	unsigned losses; /* connections lost or not made, in a row */
	unsigned faults; /* replies that were not the protocol, in a row */
	unsigned late; /* replies older than the ttl, in a row */
	struct spin spin; /* look for the reply before sleeping? */
	bool verified; /* this connection has shown the right contract */
	int64_t swept_ns; /* when parts of ended threads were last sought */
	struct counts counts;
	struct demand demand;
	struct batch batch;
	struct random_pool pool;
	struct transport transport;
	char why[HANDLE_WHY_MAX];
	struct part parts[HANDLE_PARTS];
};

struct firn {
	uint64_t serial; /* no other handle of this process ever had it */
	struct shared *shared;
	vdso_clock clock; /* for the quick look whether time has gone on */
	bool cached; /* the kernel wipes: IDs may be kept */
	uint32_t timeout_ms, ttl_ms, max_batch;
	int64_t coarse_ns; /* resolution of the coarse clocks */
	char path[TRANSPORT_PATH_MAX];
	char realm[WIRE_REALM_MAX]; /* "": any */

	/* written below, so apart from what every call reads */
	_Atomic uint64_t after __attribute__((aligned(64)));
	_Atomic uint64_t generations, tokens;
	_Atomic uint64_t home; /* without wiping: whose memory this is */
	struct transport_socket socket;
	atomic_bool contract_known; /* then contract is a constant */
	struct wire_contract contract;
};

/*
 * A call that may need more than its thread's part begins here and ends
 * there, with the latch in its hands: the state is this process's own, and the
 * thread cannot be cancelled meanwhile.  What enter returns goes to leave,
 * which may free the handle.
 */
int handle_enter(struct firn *f) __attribute__((warn_unused_result));
void handle_leave(struct firn *f, int cancel_state);

/* Lets go of the latch for a wait within a call, and takes it again. */
void handle_unlock(struct firn *f);
void handle_lock(struct firn *f);

static inline int64_t
timespec_ns(const struct timespec *ts)
{
	return ((int64_t)ts->tv_sec * 1000000000 + ts->tv_nsec);
}

static inline int64_t
clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (timespec_ns(&ts));
}

static inline struct moment
moment_now(void)
{
	return ((struct moment){
	    .mono_ns = clock_ns(CLOCK_MONOTONIC_COARSE),
	    .real_ns = clock_ns(CLOCK_REALTIME_COARSE),
	});
}

#endif
