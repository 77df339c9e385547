/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask - asks the agent for its status document: a blocking client of its own,
 * with a deadline over everything, that keeps its connection.
 */
#ifndef ASK_H
#define ASK_H

#include "firn-wire.h"
#include "status.h"

struct ask {
	const char *socket;
	int fd; /* -1: none */
	uint64_t cookie;
};

struct ask_answer {
	struct status_doc doc;
	char text[WIRE_STATUS_MAX + 1]; /* the document itself */
	char why[320]; /* what went wrong, in words */
};

void ask_open(struct ask *a, const char *socket);
void ask_close(struct ask *a);

/*
 * CMD_DONE with *out filled in; CMD_AWAY, CMD_AGAIN (it has no room), CMD_USAGE
 * (no path for a socket), CMD_DENIED or CMD_FAILED with out->why.
 */
FIRN_CHECK_RESULT int ask_status(
    struct ask *a, int64_t deadline_boot_ms, struct ask_answer *out);

/* Does the agent give out IDs? */
bool ask_serves(const struct status_doc *doc);

#endif
