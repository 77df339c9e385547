/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mailbox - messages from other threads to the loop: a fixed ring, a mutex and
 * an eventfd.  Posting never blocks for longer than a copy.
 *
 * Invariant: messages are taken in the order in which they were posted; if
 * one did not fit, everything before it is taken first and then the overflow
 * is told, once.
 */
#ifndef MAILBOX_H
#define MAILBOX_H

#include <stdbool.h>
#include <stddef.h>

struct event_base;
struct mailbox;

/* Called on the loop's thread; msg is the copy of what was posted. */
typedef void mailbox_fn(void *arg, const void *msg);
typedef void mailbox_overflow_fn(void *arg);

struct mailbox *mailbox_open(struct event_base *base, size_t slots,
    size_t msg_size, mailbox_fn *fn, mailbox_overflow_fn *overflow, void *arg);

/*
 * The loop's thread, also from within fn; nobody posts any more, which the
 * caller sees to.  What was not taken is dropped without a word: messages
 * that own memory are taken first.
 */
void mailbox_close(struct mailbox *m);

/* The loop's thread: the next message now, not by fn.  False: none. */
bool mailbox_take(struct mailbox *m, void *msg);

/* Any thread.  False if the ring was full (the loop will hear of it). */
bool mailbox_post(struct mailbox *m, const void *msg);

#endif
