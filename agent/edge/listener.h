/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listener - the agent's socket in the file system: one instance, the right
 * owner and mode from birth, and accept.
 *
 * Invariant: whatever appears at the path listens already, with its final
 * mode and group; it is put there and taken away only under the lock
 * PATH.lock, which is held for life and never replaced.  Or it is all the
 * service manager's, and only accepted from.
 */
#ifndef LISTENER_H
#define LISTENER_H

#include <stdbool.h>
#include <sys/types.h>

struct event_base;
struct listener;

/* It is bound as PATH.new, which must fit sockaddr_un too. */
#define LISTENER_PATH_MAX 103
#define LISTENER_ERROR_MAX 320

struct listener_conf {
	const char *path;
	const char *mode; /* octal digits, such as "0660" */
	const char *group; /* a name or a number; "": the process's own */
	int backoff_ms; /* pause of accept when none can be accepted */
};

struct listener_error {
	char text[LISTENER_ERROR_MAX]; /* one line: what, where, why */
};

/* Who is at the other end, by SO_PEERCRED. */
struct listener_peer {
	uid_t uid;
	gid_t gid;
	pid_t pid; /* 0: of another PID namespace */
};

/* Takes the descriptor over. */
typedef void listener_fn(void *arg, int fd, const struct listener_peer *peer);

/*
 * Takes the socket that the service manager hands over (LISTEN_FDS), or makes
 * one.  Listens, but does not accept yet.  Returns 0, or the status to exit with:
 * 78 for what only an editor can mend, else 1.
 */
__attribute__((warn_unused_result)) int listener_open(struct listener **out,
    struct event_base *base, const struct listener_conf *conf,
    struct listener_error *err);

/* Accepts from now on; -1: out of memory. */
__attribute__((warn_unused_result)) int listener_start(
    struct listener *l, listener_fn *fn, void *arg);

/*
 * A descriptor is free: a pause of accept ends now.  From the loop only; it
 * accepts at the loop's next turn, not from here.
 */
void listener_resume(struct listener *l);

/*
 * Now and then: a socket that somebody has removed is made again.  Who is
 * connected, or waits to be, notices nothing.  One that was handed over is
 * the service manager's to make: one line says so.
 */
void listener_look(struct listener *l);

/*
 * Listens no more and removes the socket, if it is still the own one.  The
 * lock is kept.  One that was handed over stays where it is, and who waits in
 * its queue waits for the next agent.  May be called twice.
 */
void listener_stop(struct listener *l);

/* Stops, gives the lock up.  NULL is fine. */
void listener_close(struct listener *l);

/* Where it listens, whoever bound it. */
const char *listener_path(const struct listener *l);

/* True from a pause of accept until all who waited are in. */
bool listener_starved(const struct listener *l);

#endif
