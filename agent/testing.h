/* SPDX-License-Identifier: Apache-2.0 */
/*
 * testing - doors that only firnd-test has (never installed): an agent that
 * takes one worker ID and never withdraws, and one that starts with a copy of
 * another's memory, and one that passes for another host.  Tests show with
 * them that the mark alone decides, and how hosts judge each other's clocks.
 */
#ifndef TESTING_H
#define TESTING_H

#include "claim.h"

/* FIRN_TEST_WORKER=N: takes N whatever the claims and the mark say. */
void testing_conf(struct claim_conf *conf);

/* FIRN_TEST_BOOT_ID=UUID: the peers take it for another host. */
void testing_boot_id(uint8_t boot_id[UUID_BYTES]);

/*
 * FIRN_TEST_TWIN=FILE: writes claim and window to FILE once a window is
 * confirmed.  FIRN_TEST_TWIN_OF=FILE: goes on from FILE as if it were its own
 * memory, once the realm is known.
 */
void testing_step(struct claim *c);

#endif
