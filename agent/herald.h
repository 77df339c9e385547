/* SPDX-License-Identifier: Apache-2.0 */
/*
 * herald - tells alert_command of this host's alerts and, on the auditor's
 * host, of the fleet's.
 *
 * Invariant: raised once and cleared once, and nothing waits for it.
 */
#ifndef HERALD_H
#define HERALD_H

#include "alarms.h"
#include "answer.h"
#include "audit.h"
#include "runner.h"

struct herald {
	struct runner *runner; /* NULL: there is nobody to tell */
	struct alarms told; /* as of the last look */
	const char *realm;
	char host[HOST_NAME_MAX_TEXT];
	char command[CONF_COMMAND_MAX]; /* argv points into it */
	char *argv[CONF_COMMAND_WORDS + 1];
};

/* False: out of memory.  *h stays where it is. */
bool herald_open(
    struct herald *h, struct event_base *base, const struct conf *conf);
void herald_close(struct herald *h);

/* Now and then, after the alarms were judged. */
void herald_look(
    struct herald *h, const struct alarms *alarms, const struct answer_view *v);

/* For the auditor: arg is the herald. */
void herald_fleet(void *arg, const struct audit_alert *x, bool raised);

#endif
