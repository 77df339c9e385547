/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit-turn - what one agent makes of a summary that somebody wrote: whether
 * it is of the own realm, when it is the own turn, what is news in it.
 */
#ifndef AUDIT_TURN_H
#define AUDIT_TURN_H

#include "audit.h"

/*
 * How long after the summary was written is the own turn to sweep?  The oldest
 * claim is due each audit_ms, whoever wrote last a little later (if the oldest
 * one's agent does not), the others when twice that has passed: chance (any
 * number) then says who comes first, all within three.  stands: NULL: there
 * is none to go by.
 */
int64_t audit_turn_ms(const struct audit *stands, const char *own_claim,
    int64_t audit_ms, uint64_t chance);

/* Of this realm and generation; of this realm. */
bool audit_is_of(const struct audit *a, const struct contract *k);
bool audit_is_of_uuid(const struct audit *a, const struct contract *k);
/* Written by an agent that knows a later generation: k is out of date. */
bool audit_is_ahead(const struct audit *a, const struct contract *k);

/*
 * Calls fn for each alert that one summary raised (or made critical) and each
 * that it cleared, against the one before it (NULL: there was none).
 */
typedef void audit_news_fn(void *arg, const struct audit_alert *x, bool raised);
void audit_news(const struct audit *before, const struct audit *now,
    audit_news_fn *fn, void *arg);

#endif
