/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alone - an agent without ZooKeeper (worker_source static and ordinal): the
 * contract is the configuration's, the only mark is the state file's.
 *
 * Invariant: without a readable file nothing is issued, unless the operator
 * says that this number never served (--first-use).
 */
#ifndef ALONE_H
#define ALONE_H

#include "conf.h"
#include "gate.h"
#include "hold.h"
#include "records.h"

struct alone {
	struct contract k;
	uint64_t worker;
	int64_t floor; /* tick: issue only above it */
	bool lost; /* no file that counts */
	char lost_words[DOC_ERROR_MAX];
};

/* 0, or 78 with one line in err. */
int alone_make(struct alone *a, const struct conf *conf, const struct hold *h,
    struct doc_error *err);

/* What the file is to say (but for the local mark). */
void alone_record(const struct alone *a, const struct conf *conf,
    int64_t base_ns, struct state_record *out);

void alone_facts(const struct alone *a, const struct hold *h, int64_t now,
    struct gate *gate);

#endif
