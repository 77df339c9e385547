/* SPDX-License-Identifier: Apache-2.0 */
/* claim-private - what the two halves of claim share; for nobody else. */
#ifndef CLAIM_PRIVATE_H
#define CLAIM_PRIVATE_H

#include "claim.h"

/* The mark in hand carries a write of ours. */
bool claim_owns(const struct claim *c);

/* The contract was read in this session and may be used. */
bool claim_realm_usable(const struct claim *c);

/* The only writer of c->state. */
void claim_enter(struct claim *c, enum claim_state to, const char *cause);

/* Within -1 .. the layout's last tick. */
int64_t claim_tick(const struct claim *c, int64_t unix_ms);

#endif
