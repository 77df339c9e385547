/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roll - the whole fleet row by row, read for as long as somebody looks.
 *
 * The summary in /firn/REALM/fleet names only the worst.  Who opens the page
 * wants to see all, on whatever host: then, and only then, this agent reads
 * the claims and their marks by itself.
 */
#ifndef ROLL_H
#define ROLL_H

#include "audit.h"
#include "auditor.h"
#include "conf.h"

#define ROLL_ROWS_MAX 8192

struct roll;

/* NULL: out of memory. */
struct roll *roll_open(const struct conf *conf);
void roll_close(struct roll *r);

/* Somebody looks: from now on it is read, for a while. */
void roll_ask(struct roll *r, mono_t now);

/* Does what there is to do; cheap otherwise. */
void roll_run(struct roll *r, mono_t now, const struct auditor_where *where);

/* When roll_run() has something to do, at the latest. */
mono_t roll_wake(const struct roll *r);

/* Offers a reply; true if it was the roll's. */
bool roll_reply(struct roll *r, const struct zk_event *ev, mono_t now);

/* The connection is gone: replies no longer come. */
void roll_disconnected(struct roll *r);

/* What was read last. */
struct roll_view {
	const struct audit_member *members; /* NULL: nothing yet */
	size_t n; /* of these, by claim */
	size_t all; /* that there are */
	int64_t age_ms; /* since they were read */
	int64_t now_ms; /* ZooKeeper's clock */
};
void roll_view(const struct roll *r, mono_t now, struct roll_view *out);

#endif
