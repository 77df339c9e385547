/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers - reads what live claims say of their hosts' clocks: lists the claims
 * and reads the marks of up to 32 of them (at random where there are more; of
 * those that make no sense another one in its place), pipelined, once per
 * call.  A later issue reads the auditor's summary behind the same interface.
 */
#ifndef PEERS_H
#define PEERS_H

#include "foreign.h"
#include "skew.h"
#include "zk.h"

#define PEERS_READ_MAX 32

struct peers;

struct peers_result {
	bool good; /* false: a reply did not come, not all is known */
	bool others; /* there are live claims of other hosts */
	const struct skew_peer *peers; /* those whose mark names the claim, or
	                                * whose claim carries its status */
	size_t n;
};

typedef void peers_fn(void *arg, const struct peers_result *r);

/*
 * Calls fn once, from peers_reply(), unless peers_cancel() comes first; after
 * fn, and in it, the reader is gone.  What makes no sense is told.  NULL: not
 * connected.
 */
struct peers *peers_start(struct zk *zk, const char *workers_path,
    const char *marks_path, const struct contract *k, const char *own_claim,
    const uint8_t own_boot_id[UUID_BYTES], uint64_t random,
    struct foreign *foreign, peers_fn *fn, void *arg);

/* Offers a ZK_REPLY; true if it was the reader's. */
bool peers_reply(struct peers *p, const struct zk_event *ev);

/* Frees it; late replies are nobody's.  NULL is fine. */
void peers_cancel(struct peers *p);

#endif
