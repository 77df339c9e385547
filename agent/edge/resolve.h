/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolve - looks the names of a connect string up in a helper thread, and
 * starts such threads.  A part of zk.
 */
#ifndef RESOLVE_H
#define RESOLVE_H

#include <stddef.h>

#include "hosts.h"

struct event_base;
struct resolve;

/*
 * One host's answer, on the loop's thread: its addresses as the ZooKeeper
 * client takes them ("1.2.3.4:2181,::1:2181"; to be freed by the callee), or
 * NULL and why.
 */
typedef void resolve_fn(
    void *arg, size_t host, char *addresses, const char *why);

/*
 * Looks the names up, one after the other, and tells each; addresses among the
 * hosts are passed over.  NULL: no thread, also because too many earlier ones
 * still hang.
 */
struct resolve *resolve_start(struct event_base *base,
    const struct hosts *hosts, resolve_fn *fn, void *arg);

/* Nothing is told after this.  A thread that hangs is left behind. */
void resolve_cancel(struct resolve *r);

/* The only way to start a thread here: small stack, no signals, detached.
 * Returns an errno. */
int helper_thread_start(void *(*run)(void *), void *arg);

#endif
