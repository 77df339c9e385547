/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listener - the agent's socket: opened, accepted from, closed.
 *
 * Invariant: whatever appears at the path listens already, with its final
 * mode and group; it is put there and taken away only under the lock
 * PATH.lock, which is held for life and never replaced.  Or it is all the
 * service manager's, and only accepted from.
 */
#include "listener.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "listener_inherit.h"
#include "listener_path.h"
#include "log.h"

#define ACCEPT_ROUNDS 8 /* then those who are in get their turn */
#define SPARE 16 /* descriptors that clients do not get: ZooKeeper's, files' */

struct listener {
	struct event_base *base;
	struct event *ready; /* someone connects */
	struct event *again; /* the pause is over */
	listener_fn *fn;
	void *arg;
	struct listener_path at; /* at.fd -1: stopped */
	bool inherited; /* the service manager keeps socket and queue */
	int backoff_ms;
	bool starved; /* it paused, and those who waited are not all in yet */
};

int
listener_open(struct listener **out, struct event_base *base,
    const struct listener_conf *conf, struct listener_error *err)
{
	struct listener *l = calloc(1, sizeof(*l));
	int status;

	if (l == NULL) {
		snprintf(err->text, sizeof(err->text), "socket %s: %s",
		    conf->path, strerror(ENOMEM));
		return (1);
	}
	l->base = base;
	l->backoff_ms = conf->backoff_ms;
	status = listener_inherit(&l->at, conf, err);
	l->inherited = l->at.fd != -1;
	if (status == 0 && !l->inherited)
		status = listener_path_open(&l->at, conf, err);
	if (status != 0) {
		listener_close(l);
		return (status);
	}
	*out = l;
	return (0);
}

/* ---- accept ------------------------------------------------------------------ */

/*
 * Level-triggered readiness would spin while there is no descriptor to take
 * the connection with, or a security module forbids it: look away for a
 * while.
 */
static void
back_off(struct listener *l)
{
	struct timeval tv = { .tv_sec = l->backoff_ms / 1000,
		.tv_usec = (l->backoff_ms % 1000) * 1000 };

	if (!l->starved)
		log_peer(LOG_LEVEL_WARN,
		    "socket %s: accept pauses, tried again every %d ms and "
		    "when a client leaves: %s",
		    l->at.path, l->backoff_ms, strerror(errno));
	l->starved = true;
	if (event_add(l->again, &tv) == -1)
		return; /* then go on looking: slower is better, blind is not */
	event_del(l->ready);
}

static void
hand_over(struct listener *l, int fd)
{
	struct ucred cred;
	socklen_t length = sizeof(cred);
	struct listener_peer peer;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &length) == -1) {
		log_warn("socket %s: SO_PEERCRED", l->at.path);
		close(fd);
		return;
	}
	peer = (struct listener_peer){ cred.uid, cred.gid, cred.pid };
	l->fn(l->arg, fd, &peer);
}

/* Only once all who waited are in: else each departure would say so. */
static void
recovered(struct listener *l)
{
	l->starved = false;
	log_peer(LOG_LEVEL_WARN, "socket %s: accepts all again", l->at.path);
}

/* The first descriptor that is kept for others than clients. */
static int
first_spare(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == -1 || rl.rlim_cur > INT_MAX ||
	    rl.rlim_cur < 8 * SPARE)
		return (INT_MAX);
	return ((int)rl.rlim_cur - SPARE);
}

/* Would the next one be a client's?  The kernel gives the lowest there is. */
static bool
has_room(const struct listener *l, int spare)
{
	int fd = fcntl(l->at.fd, F_DUPFD_CLOEXEC, 0);

	if (fd != -1)
		close(fd);
	return (fd != -1 && fd < spare);
}

static void
on_ready(evutil_socket_t sock, short what, void *arg)
{
	struct listener *l = arg;
	int fd, spare = first_spare();

	(void)sock;
	(void)what;
	if (l->starved && spare != INT_MAX && !has_room(l, spare)) {
		errno = EMFILE;
		back_off(l);
		return;
	}
	for (int i = 0; i < ACCEPT_ROUNDS && l->at.fd != -1; i++) {
		fd =
		    accept4(l->at.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd != -1) {
			hand_over(l, fd);
			if (fd < spare)
				continue;
			errno = EMFILE;
			back_off(l);
			return;
		}
		if (errno == EINTR || errno == ECONNABORTED)
			continue; /* that one is gone; there may be others */
		if (errno != EAGAIN)
			back_off(l);
		else if (l->starved)
			recovered(l);
		return;
	}
}

static void
on_again(evutil_socket_t sock, short what, void *arg)
{
	struct listener *l = arg;

	if (l->at.fd == -1)
		return;
	if (event_add(l->ready, NULL) == -1) {
		back_off(l);
		return;
	}
	on_ready(sock, what, l);
}

int
listener_start(struct listener *l, listener_fn *fn, void *arg)
{
	l->fn = fn;
	l->arg = arg;
	l->ready =
	    event_new(l->base, l->at.fd, EV_READ | EV_PERSIST, on_ready, l);
	l->again = evtimer_new(l->base, on_again, l);
	if (l->ready == NULL || l->again == NULL ||
	    event_add(l->ready, NULL) == -1)
		return (-1);
	return (0);
}

void
listener_resume(struct listener *l)
{
	if (l->again != NULL && evtimer_pending(l->again, NULL))
		event_active(l->again, EV_TIMEOUT, 0);
}

void
listener_look(struct listener *l)
{
	int fd;

	if (l->ready != NULL && l->inherited)
		listener_inherit_look(&l->at);
	if (l->ready == NULL || l->inherited ||
	    !listener_path_look(&l->at, &fd))
		return;
	on_ready(l->at.fd, EV_READ, l); /* who waits in the old queue */
	event_del(l->ready);
	if (dup3(fd, l->at.fd, O_CLOEXEC) == -1)
		log_warn("socket %s", l->at.path);
	close(fd);
	if (!evtimer_pending(l->again, NULL) && event_add(l->ready, NULL) == -1)
		back_off(l);
}

const char *
listener_path(const struct listener *l)
{
	return (l->at.path);
}

bool
listener_starved(const struct listener *l)
{
	return (l->starved);
}

/* ---- the end ------------------------------------------------------------------ */

void
listener_stop(struct listener *l)
{
	if (l->ready != NULL)
		event_free(l->ready);
	if (l->again != NULL)
		event_free(l->again);
	l->ready = l->again = NULL;
	if (l->at.fd == -1)
		return;
	if (!l->inherited)
		listener_path_remove(&l->at);
	close(l->at.fd);
	l->at.fd = -1;
}

void
listener_close(struct listener *l)
{
	if (l == NULL)
		return;
	listener_stop(l);
	listener_path_close(&l->at);
	free(l);
}
