/* SPDX-License-Identifier: Apache-2.0 */
/*
 * servers - the addresses to give to ZooKeeper's client.
 *
 * Invariant: known[i] is host i's last good answer, and stays while look-ups
 * fail or hang: a name server's outage is no outage of ZooKeeper.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "log.h"
#include "resolve.h"
#include "servers.h"
#include "sysclock.h"

#define GRACE_S 3
#define LIMIT_S 30
#define ADDRESSES_MAX 64 /* handed to the client */

struct servers {
	struct event_base *base;
	struct hosts hosts;
	char *known[HOSTS_MAX];
	bool failing[HOSTS_MAX]; /* said so; say no more */
	struct resolve *resolve; /* under way, or done and not cleared */
	size_t unanswered;
	bool asked; /* fn is owed a call */
	struct event *grace, *limit;
	servers_fn *fn;
	void *arg;
};

static bool
any_known(const struct servers *s)
{
	for (size_t i = 0; i < s->hosts.n; i++) {
		if (s->known[i] != NULL)
			return (true);
	}
	return (false);
}

/* Fisher and Yates; the modulo's bias is nothing among a few servers. */
static void
shuffle(char **list, size_t n)
{
	struct entropy e;

	for (size_t i = n; i > 1; i--) {
		size_t j;
		char *swap;

		sysclock_entropy(&e);
		j = (size_t)(e.word[0] % i);
		swap = list[i - 1];
		list[i - 1] = list[j];
		list[j] = swap;
	}
}

/*
 * The client tries the list in its order, so each agent has another one; all
 * addresses of all hosts in one hat.  To be freed; NULL: out of memory.
 */
static char *
connect_string(const struct servers *s)
{
	char *all, *list[ADDRESSES_MAX], *out, *p, *save = NULL;
	size_t size = 1, used = 0, n = 0;

	for (size_t i = 0; i < s->hosts.n; i++)
		size += s->known[i] != NULL ? strlen(s->known[i]) + 1 : 0;
	all = calloc(1, size);
	out = calloc(1, size + sizeof(s->hosts.chroot));
	if (all == NULL || out == NULL) {
		free(all);
		free(out);
		return (NULL);
	}
	for (size_t i = 0; i < s->hosts.n; i++) {
		if (s->known[i] != NULL)
			used += (size_t)sprintf(all + used, "%s,", s->known[i]);
	}
	for (p = strtok_r(all, ",", &save); p != NULL && n < ADDRESSES_MAX;
	     p = strtok_r(NULL, ",", &save))
		list[n++] = p;
	shuffle(list, n);
	used = 0;
	for (size_t i = 0; i < n; i++)
		used += (size_t)sprintf(
		    out + used, "%s%s", i > 0 ? "," : "", list[i]);
	memcpy(out + used, s->hosts.chroot, strlen(s->hosts.chroot) + 1);
	free(all);
	return (out);
}

static void
answer(struct servers *s, const char *why)
{
	char *connect = NULL;

	s->asked = false;
	(void)event_del(s->grace);
	(void)event_del(s->limit);
	if (any_known(s)) {
		connect = connect_string(s);
		why = connect == NULL ? "out of memory" : NULL;
	}
	s->fn(s->arg, connect, why);
	free(connect);
}

static void
on_grace(evutil_socket_t fd, short what, void *arg)
{
	struct servers *s = arg;

	(void)fd;
	(void)what;
	if (any_known(s))
		answer(s, NULL);
}

static void
on_limit(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	answer(arg, "the name service does not answer");
}

/* One line when a name begins to fail and one when it no longer does. */
static void
note_failing(struct servers *s, size_t host, const char *why)
{
	const char *name = s->hosts.host[host].name;

	if (why != NULL && !s->failing[host])
		log_warnx("zookeeper: cannot resolve %s: %s%s", name, why,
		    s->known[host] != NULL ? "; its last addresses are used"
					   : "");
	else if (why == NULL && s->failing[host])
		log_info("zookeeper: %s resolves again", name);
	s->failing[host] = why != NULL;
}

static void
on_resolved(void *arg, size_t host, char *addresses, const char *why)
{
	struct servers *s = arg;

	note_failing(s, host, why);
	if (addresses != NULL) {
		free(s->known[host]);
		s->known[host] = addresses;
	}
	s->unanswered--;
	if (!s->asked)
		return;
	if (s->unanswered == 0)
		answer(s, "no name resolves");
	else if (!event_pending(s->grace, EV_TIMEOUT, NULL) && any_known(s))
		answer(s, NULL);
}

static size_t
count_names(const struct hosts *hosts)
{
	size_t n = 0;

	for (size_t i = 0; i < hosts->n; i++)
		n += hosts->host[i].literal ? 0 : 1;
	return (n);
}

void
servers_find(struct servers *s)
{
	const struct timeval grace = { .tv_sec = GRACE_S };
	const struct timeval limit = { .tv_sec = LIMIT_S };

	resolve_cancel(s->resolve);
	s->resolve = NULL;
	s->asked = true;
	s->unanswered = count_names(&s->hosts);
	if (s->unanswered == 0) {
		answer(s, "no host");
		return;
	}
	s->resolve = resolve_start(s->base, &s->hosts, on_resolved, s);
	if (s->resolve == NULL) {
		answer(s, "names cannot be looked up");
		return;
	}
	(void)event_add(s->grace, &grace);
	(void)event_add(s->limit, &limit);
}

/* An address is its own answer, once and for all. */
static bool
know_addresses(struct servers *s)
{
	for (size_t i = 0; i < s->hosts.n; i++) {
		const struct host *h = &s->hosts.host[i];

		if (h->literal && asprintf(&s->known[i], "%s:%u", h->name,
				      (unsigned)h->port) == -1) {
			s->known[i] = NULL;
			return (false);
		}
	}
	return (true);
}

struct servers *
servers_open(struct event_base *base, const struct hosts *hosts, servers_fn *fn,
    void *arg)
{
	struct servers *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return (NULL);
	s->base = base;
	s->hosts = *hosts;
	s->fn = fn;
	s->arg = arg;
	s->grace = evtimer_new(base, on_grace, s);
	s->limit = evtimer_new(base, on_limit, s);
	if (s->grace == NULL || s->limit == NULL || !know_addresses(s)) {
		servers_close(s);
		return (NULL);
	}
	return (s);
}

void
servers_close(struct servers *s)
{
	if (s == NULL)
		return;
	resolve_cancel(s->resolve);
	if (s->grace != NULL)
		event_free(s->grace);
	if (s->limit != NULL)
		event_free(s->limit);
	for (size_t i = 0; i < s->hosts.n; i++)
		free(s->known[i]);
	free(s);
}
