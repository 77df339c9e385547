/* SPDX-License-Identifier: Apache-2.0 */
/*
 * servers - the addresses to give to ZooKeeper's client: looked up anew for
 * each handle, or the last good ones.  A part of zk.
 */
#ifndef SERVERS_H
#define SERVERS_H

#include "hosts.h"

struct event_base;
struct servers;

/*
 * connect: "1.2.3.4:2181,::1:2181/chroot" in random order, valid during the
 * call; or NULL, and why there is none.
 */
typedef void servers_fn(void *arg, const char *connect, const char *why);

struct servers *servers_open(struct event_base *base, const struct hosts *hosts,
    servers_fn *fn, void *arg);
void servers_close(struct servers *s);

/*
 * Calls fn once, perhaps before this returns.  At most 3 s after an address is
 * known, so that one name that hangs does not hold up the others; without any
 * after 30 s.
 */
void servers_find(struct servers *s);

#endif
