/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify - tells the service manager how the agent is (sd_notify's protocol,
 * without its library).
 *
 * Invariant: it never blocks; what the manager's socket does not take at once
 * is owed and sent later, the newest only.
 */
#ifndef NOTIFY_H
#define NOTIFY_H

#define NOTIFY_STATUS_MAX 511

struct event_base;
struct notify;

/*
 * Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and removes them from
 * the environment: they are not meant for children.  Without a manager all
 * below does nothing.  NULL: out of memory.
 */
struct notify *notify_open(struct event_base *base);

/* NULL is fine. */
void notify_close(struct notify *n);

/*
 * Up, or done with a reload.  From the first time on the watchdog is fed by
 * the loop, at half of its time: a loop that hangs is killed.
 */
void notify_ready(struct notify *n);

void notify_reloading(struct notify *n);
void notify_stopping(struct notify *n);

/* One line for people; sent only if it is another one than before. */
void notify_status(struct notify *n, const char *text);

#endif
