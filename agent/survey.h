/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survey - the auditor's sweep: lists claims and marks, reads the mark of each
 * claim (or the claim itself, where the mark does not speak for it), and those
 * marks that nobody claims and that may still keep their worker ID.  Reads are
 * pipelined.
 */
#ifndef SURVEY_H
#define SURVEY_H

#include "audit.h"
#include "foreign.h"
#include "zk.h"

struct survey;

/*
 * What is remembered from one survey to the next of the same generation, so
 * that the marks of thousands of free worker IDs are not read each time.
 */
struct survey_memory {
	char generation[GENERATION_MAX];
	int64_t *until_ms; /* by worker ID: end of its mark's window; 0: ask */
	uint64_t usable;
	uint64_t round;
};
void survey_forget(struct survey_memory *m);

struct survey_where {
	struct zk *zk; /* connected */
	const char *workers, *marks; /* paths */
	const struct contract *k;
	int64_t now_ms; /* ZooKeeper's clock */
	int64_t wait_ms; /* a mark further ahead keeps its worker ID */
	struct survey_memory *memory;
	struct foreign *foreign; /* tells what makes no sense */
	bool claims_only; /* marks that nobody claims are not read */
};

struct survey_result {
	bool good; /* false: a reply did not come, or memory ran out */
	/* good for audit_reckon(), during the call */
	const struct audit_member *members;
	size_t n;
	uint32_t *order;
	const uint64_t *quarantined;
	int64_t marks_deleted;
	uint64_t reads;
};

typedef void survey_fn(void *arg, const struct survey_result *r);

/*
 * Calls fn once, from survey_reply(), unless survey_cancel() comes first;
 * after fn, and in it, the survey is gone.  NULL: not connected, or no memory.
 */
struct survey *survey_start(
    const struct survey_where *where, survey_fn *fn, void *arg);

/* Offers a ZK_REPLY; true if it was the survey's. */
bool survey_reply(struct survey *s, const struct zk_event *ev);

/* Frees it; late replies are nobody's.  NULL is fine. */
void survey_cancel(struct survey *s);

#endif
