/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_disk - the state file replaced on a disk, in a thread, so that no
 * request waits for it.
 *
 * Invariant: one write at a time; `bytes` is the loop's while there is no job
 * and the thread's while there is one.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mailbox.h"
#include "state_private.h"

#define THREAD_STACK_BYTES (256 * 1024)

struct state_disk {
	const struct state_lock *state_lock;
	state_disk_fn *fn;
	void *arg;
	struct mailbox *box;
	bool busy; /* the loop's: fn() has not been told yet */

	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool job; /* the thread's to do */
	bool closing; /* after the job: end, tell nobody */
	bool ended;
	char bytes[RECORD_SIZE];
};

static void *
run(void *arg)
{
	struct state_disk *d = arg;
	struct state_failure f;

	(void)pthread_mutex_lock(&d->lock);
	for (;;) {
		while (!d->job && !d->closing)
			(void)pthread_cond_wait(&d->changed, &d->lock);
		if (!d->job)
			break;
		(void)pthread_mutex_unlock(&d->lock);
		f = state_file_replace(d->state_lock, d->bytes, true, NULL);
		(void)pthread_mutex_lock(&d->lock);
		d->job = false;
		/* Two slots, one write: it always fits. */
		if (!d->closing)
			(void)mailbox_post(d->box, &f);
	}
	d->ended = true;
	(void)pthread_cond_broadcast(&d->changed);
	(void)pthread_mutex_unlock(&d->lock);
	return (NULL);
}

static void
on_written(void *arg, const void *msg)
{
	struct state_disk *d = arg;
	const struct state_failure f = *(const struct state_failure *)msg;

	d->busy = false;
	d->fn(d->arg, &f); /* may write again, or close */
}

static void
on_overflow(void *arg)
{
	(void)arg;
	assert(false);
}

/* Returns an errno. */
static int
start_thread(struct state_disk *d)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int error = pthread_attr_init(&attr);

	if (error != 0)
		return (error);
	(void)pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&d->thread, &attr, run, d);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attr);
	return (error);
}

static void
destroy(struct state_disk *d)
{
	(void)pthread_cond_destroy(&d->changed);
	(void)pthread_mutex_destroy(&d->lock);
	free(d);
}

struct state_disk *
state_disk_open(struct event_base *base, const struct state_lock *l,
    state_disk_fn *fn, void *arg)
{
	struct state_disk *d = calloc(1, sizeof(*d));
	pthread_condattr_t attr;
	int error;

	if (d == NULL)
		return (NULL);
	d->state_lock = l;
	d->fn = fn;
	d->arg = arg;
	(void)pthread_mutex_init(&d->lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&d->changed, &attr);
	(void)pthread_condattr_destroy(&attr);
	d->box = mailbox_open(
	    base, 2, sizeof(struct state_failure), on_written, on_overflow, d);
	error = d->box != NULL ? start_thread(d) : errno;
	if (error != 0) {
		mailbox_close(d->box);
		destroy(d);
		errno = error;
		return (NULL);
	}
	return (d);
}

bool
state_disk_busy(const struct state_disk *d)
{
	return (d->busy);
}

void
state_disk_write(struct state_disk *d, const char bytes[RECORD_SIZE])
{
	assert(!d->busy);
	d->busy = true;
	(void)pthread_mutex_lock(&d->lock);
	memcpy(d->bytes, bytes, RECORD_SIZE);
	d->job = true;
	(void)pthread_cond_broadcast(&d->changed);
	(void)pthread_mutex_unlock(&d->lock);
}

static struct timespec
deadline_in(int ms)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += (long)(ms % 1000) * 1000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	return (t);
}

bool
state_disk_close(struct state_disk *d, int wait_ms)
{
	struct timespec deadline = deadline_in(wait_ms);
	int error = 0;
	bool ended;

	(void)pthread_mutex_lock(&d->lock);
	d->closing = true;
	(void)pthread_cond_broadcast(&d->changed);
	while (!d->ended && error == 0)
		error =
		    pthread_cond_timedwait(&d->changed, &d->lock, &deadline);
	ended = d->ended;
	(void)pthread_mutex_unlock(&d->lock);
	mailbox_close(d->box); /* nobody posts once it is closing */
	if (!ended) {
		(void)pthread_detach(d->thread);
		return (false);
	}
	(void)pthread_join(d->thread, NULL);
	destroy(d);
	return (true);
}
