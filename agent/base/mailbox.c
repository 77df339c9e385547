/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mailbox - messages from other threads to the loop.
 *
 * Invariant: count messages stand in the ring from head on; while an overflow
 * is untold nothing is added behind it.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <event2/event.h>

#include "log.h"
#include "mailbox.h"

/* At most so many in one turn, so that a flood leaves room for requests. */
#define MSGS_PER_TURN 64

struct mailbox {
	pthread_mutex_t lock;
	unsigned char *ring; /* slots × msg_size */
	size_t slots, msg_size;
	size_t head, count;
	bool overflow; /* untold */
	bool signalled; /* the eventfd was written and not yet read */

	int fd;
	struct event *ev;
	unsigned char *current; /* the message that fn looks at */
	mailbox_fn *fn;
	mailbox_overflow_fn *overflow_fn;
	void *arg;
	bool in_turn; /* fn or overflow_fn may be running … */
	bool closed; /* … and has called mailbox_close */
};

static void
destroy(struct mailbox *m)
{
	if (m->ev != NULL)
		event_free(m->ev);
	if (m->fd != -1)
		(void)close(m->fd);
	(void)pthread_mutex_destroy(&m->lock);
	free(m->current);
	free(m->ring);
	free(m);
}

/* Called with the lock held. */
static void
wake(struct mailbox *m)
{
	const uint64_t one = 1;
	ssize_t n;

	if (m->signalled)
		return;
	do
		n = write(m->fd, &one, sizeof(one));
	while (n == -1 && errno == EINTR);
	/* EAGAIN: the counter is at its top, so it is readable as well. */
	m->signalled = true;
}

bool
mailbox_take(struct mailbox *m, void *msg)
{
	bool taken = false;

	(void)pthread_mutex_lock(&m->lock);
	if (m->count > 0) {
		memcpy(msg, m->ring + m->head * m->msg_size, m->msg_size);
		m->head = (m->head + 1) % m->slots;
		/* Empty: from the front again, so that a ring sized for the
		 * worst day only touches the memory of an ordinary one. */
		if (--m->count == 0)
			m->head = 0;
		taken = true;
	}
	(void)pthread_mutex_unlock(&m->lock);
	return (taken);
}

/* Everything before the overflow has been taken: is there one to tell? */
static bool
take_overflow(struct mailbox *m)
{
	bool overflow;

	(void)pthread_mutex_lock(&m->lock);
	overflow = m->overflow && m->count == 0;
	if (overflow)
		m->overflow = false;
	(void)pthread_mutex_unlock(&m->lock);
	return (overflow);
}

static void
clear_signal(struct mailbox *m)
{
	uint64_t counter;
	ssize_t n;

	(void)pthread_mutex_lock(&m->lock);
	do
		n = read(m->fd, &counter, sizeof(counter));
	while (n == -1 && errno == EINTR);
	m->signalled = false;
	(void)pthread_mutex_unlock(&m->lock);
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct mailbox *m = arg;
	int left;

	(void)fd;
	(void)what;
	m->in_turn = true;
	clear_signal(m);
	for (left = MSGS_PER_TURN; left > 0 && !m->closed; left--) {
		if (!mailbox_take(m, m->current))
			break;
		m->fn(m->arg, m->current);
	}
	if (!m->closed && take_overflow(m))
		m->overflow_fn(m->arg);
	m->in_turn = false;
	if (m->closed) {
		destroy(m);
	} else if (left == 0) {
		(void)pthread_mutex_lock(&m->lock);
		wake(m);
		(void)pthread_mutex_unlock(&m->lock);
	}
}

struct mailbox *
mailbox_open(struct event_base *base, size_t slots, size_t msg_size,
    mailbox_fn *fn, mailbox_overflow_fn *overflow, void *arg)
{
	struct mailbox *m = calloc(1, sizeof(*m));
	int error;

	assert(slots > 0 && msg_size > 0);
	if (m == NULL)
		return (NULL);
	m->slots = slots;
	m->msg_size = msg_size;
	m->fn = fn;
	m->overflow_fn = overflow;
	m->arg = arg;
	(void)pthread_mutex_init(&m->lock, NULL);
	m->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	m->ring = calloc(slots, msg_size);
	m->current = calloc(1, msg_size);
	if (m->fd != -1)
		m->ev = event_new(
		    base, m->fd, EV_READ | EV_PERSIST, on_readable, m);
	if (m->ring == NULL || m->current == NULL || m->ev == NULL ||
	    event_add(m->ev, NULL) == -1) {
		error = errno;
		log_warn("no mailbox of %zu messages", slots);
		destroy(m);
		errno = error;
		return (NULL);
	}
	return (m);
}

void
mailbox_close(struct mailbox *m)
{
	if (m == NULL)
		return;
	m->closed = true;
	if (!m->in_turn)
		destroy(m);
}

bool
mailbox_post(struct mailbox *m, const void *msg)
{
	bool fits;

	(void)pthread_mutex_lock(&m->lock);
	fits = m->count < m->slots && !m->overflow;
	if (fits) {
		size_t tail = (m->head + m->count) % m->slots;

		memcpy(m->ring + tail * m->msg_size, msg, m->msg_size);
		m->count++;
	} else {
		m->overflow = true;
	}
	wake(m);
	(void)pthread_mutex_unlock(&m->lock);
	return (fits);
}
