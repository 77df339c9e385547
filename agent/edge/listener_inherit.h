/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listener_inherit - the listening socket as the service manager hands it
 * over (LISTEN_FDS).  Private to the listener.
 */
#ifndef LISTENER_INHERIT_H
#define LISTENER_INHERIT_H

#include "listener_path.h"

/*
 * Sets fd and path of *p if a socket was handed over, else fd -1; lock is -1.
 * The environment is cleared of it, since it is not meant for children.  0,
 * or the status to exit with.
 */
__attribute__((warn_unused_result)) int listener_inherit(
    struct listener_path *p, const struct listener_conf *conf,
    struct listener_error *err);

/*
 * Looks whether the name is still the socket that was handed over; one line
 * if not, since only the manager can make it again.
 */
void listener_inherit_look(struct listener_path *p);

#endif
