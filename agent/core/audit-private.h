/* SPDX-License-Identifier: Apache-2.0 */
/* audit-private - what the two halves of audit share; for nobody else. */
#ifndef AUDIT_PRIVATE_H
#define AUDIT_PRIVATE_H

#include "audit.h"

/* What would need an escape becomes '?', what is too long is cut. */
void audit_copy_plain(char *to, const char *from, size_t size);

/* Since when it has not written; 0: it has, lately. */
int64_t audit_stale_ms(
    const struct audit_input *in, const struct audit_member *m);

/* Alerts of single agents (members in order of worker IDs), of the fleet. */
void audit_raise_agents(const struct audit_input *in,
    const struct audit *before, struct audit *out);
void audit_hold_alerts(const struct audit_input *in, const struct audit *before,
    struct audit *out);
void audit_raise_fleet(const struct audit_input *in, const struct audit *before,
    struct audit *out);

#endif
