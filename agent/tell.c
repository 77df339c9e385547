/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tell - the agent's state as the one line that the service manager shows.
 *
 * Invariant: another line only when state, reason or worker ID changes: figures
 * that count down make no news.
 */
#include "tell.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rfc3339.h"

void
tell_init(struct tell *t, struct notify *notify)
{
	memset(t, 0, sizeof(*t));
	t->notify = notify;
}

static bool
is_news(const struct status_doc *was, const struct status_doc *is)
{
	return (strcmp(was->state, is->state) != 0 ||
		strcmp(was->reason, is->reason) != 0 ||
		was->worker != is->worker);
}

/* "isolated, realm r, worker ID 17, ZooKeeper is away, IDs until 2026-..." */
static void
compose(const struct status_doc *d, char *buf, size_t n)
{
	char worker[40] = "", until[64] = "";
	char when[RFC3339_TEXT_MAX];

	if (d->worker != NO_WORKER)
		snprintf(
		    worker, sizeof(worker), ", worker ID %" PRIu64, d->worker);
	if (strcmp(d->state, "isolated") == 0 && d->mark_ms > 0 &&
	    rfc3339_format(d->mark_ms, when))
		snprintf(until, sizeof(until),
		    ", ZooKeeper is away, IDs until %s", when);
	snprintf(buf, n, "%s, realm %s%s%s%s%s", d->state, d->realm, worker,
	    until, d->words[0] != '\0' ? ": " : "", d->words);
}

void
tell_state(struct tell *t, const struct answer_view *v)
{
	struct status_doc now;
	char line[NOTIFY_STATUS_MAX + 1];

	answer_fill_status(v, 0, 0, &now);
	if (!is_news(&t->told, &now))
		return;
	t->told = now;
	compose(&now, line, sizeof(line));
	notify_status(t->notify, line);
}
