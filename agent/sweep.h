/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep - one look at all claims and at the marks of the free worker IDs, so
 * that a walk can end on the best of them.  Reads are pipelined.
 */
#ifndef SWEEP_H
#define SWEEP_H

#include "claim.h"
#include "foreign.h"
#include "zk.h"

struct sweep;

struct sweep_result {
	enum claim_rc rc;
	struct claim_stat marks_stat; /* of the marks' parent */
	uint64_t taken;
	const struct sweep_row *rows; /* free IDs; valid during the call */
	size_t nrows;
};

typedef void sweep_fn(void *arg, const struct sweep_result *r);

/*
 * Starts; fn is called once unless sweep_cancel() comes first.  workers and
 * marks are the parents' paths; scratch holds WORKERS_MAX bits; marks that
 * make no sense are told.  NULL: not connected, or out of memory.
 */
struct sweep *sweep_start(struct zk *zk, const char *workers, const char *marks,
    const struct contract *k, uint64_t *scratch, struct foreign *foreign,
    sweep_fn *fn, void *arg);

/* Offers a ZK_REPLY; true if it was the sweep's. */
bool sweep_reply(struct sweep *s, const struct zk_event *ev);

/* Frees it; late replies are nobody's. NULL is fine. */
void sweep_cancel(struct sweep *s);

#endif
