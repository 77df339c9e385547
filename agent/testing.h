/* SPDX-License-Identifier: Apache-2.0 */
/*
 * testing - doors that only firnd-test has (never installed): an agent that
 * takes one worker ID and never withdraws, and one that starts with a copy of
 * another's memory.  Tests show with them that the mark alone decides.
 */
#ifndef TESTING_H
#define TESTING_H

#include "claim.h"

/* FIRN_TEST_WORKER=N: takes N whatever the claims and the mark say. */
void testing_conf(struct claim_conf *conf);

/*
 * FIRN_TEST_TWIN=FILE: writes claim and window to FILE once a window is
 * confirmed.  FIRN_TEST_TWIN_OF=FILE: goes on from FILE as if it were its own
 * memory, once the realm is known.
 */
void testing_step(struct claim *c);

#endif
