/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listener_path - the listening socket as a name in the file system.  Private
 * to the listener.
 */
#ifndef LISTENER_PATH_H
#define LISTENER_PATH_H

#include <sys/types.h>

#include "listener.h"

struct listener_path {
	int fd; /* listens already; -1: none */
	int lock; /* -1: not held */
	dev_t dev; /* of the socket in the file system */
	ino_t ino;
	mode_t mode; /* what it was made with */
	gid_t group; /* (gid_t)-1: the process's own */
	bool astray; /* the name is not ours, and that was said */
	char path[LISTENER_PATH_MAX + 1];
};

/*
 * Sets all of it.  0, or the status to exit with; listener_path_close() in
 * either case.
 */
__attribute__((warn_unused_result)) int listener_path_open(
    struct listener_path *p, const struct listener_conf *conf,
    struct listener_error *err);

/*
 * Looks whether the name is still the own socket's.  One that was removed is
 * made again, if the lock is held or can be had: then true, and *fd is a
 * socket that listens under the name in place of p->fd.  What else stands
 * there is left alone, with one line.
 */
bool listener_path_look(struct listener_path *p, int *fd);

/* Takes the name away, if it is still the own socket's. */
void listener_path_remove(const struct listener_path *p);

/* Closes the socket and gives the lock up. */
void listener_path_close(struct listener_path *p);

#endif
