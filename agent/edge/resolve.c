/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolve - looks names up in a helper thread.
 *
 * Invariant: the thread and the loop share a job under its lock; the thread
 * posts only while the loop still listens (job->box), and whoever leaves last
 * frees it.  getaddrinfo cannot be interrupted, so a thread may hang for as
 * long as it likes; only their number is bounded.
 */
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "mailbox.h"
#include "resolve.h"

#define THREADS_MAX 8
#define THREAD_STACK_BYTES (512 * 1024) /* name service modules load here */
#define ADDRESSES_MAX 16 /* of one name */
#define ADDRESS_MAX_BYTES (INET6_ADDRSTRLEN + 32)

static atomic_int threads_running;

/* ---- threads ---- */

int
helper_thread_start(void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;
	int error;

	error = pthread_attr_init(&attr);
	if (error != 0)
		return (error);
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread, &attr, run, arg);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attr);
	return (error);
}

/* ---- looking up ---- */

struct job {
	pthread_mutex_t lock;
	int users;
	struct mailbox *box; /* NULL: nobody listens any more */
	struct hosts hosts;
};

struct resolve {
	struct job *job;
	struct mailbox *box;
	resolve_fn *fn;
	void *arg;
};

struct answer {
	size_t host;
	char *addresses;
	int error, system_error; /* getaddrinfo's, errno */
};

static void
job_leave(struct job *job)
{
	bool last;

	(void)pthread_mutex_lock(&job->lock);
	last = --job->users == 0;
	(void)pthread_mutex_unlock(&job->lock);
	if (!last)
		return;
	(void)pthread_mutex_destroy(&job->lock);
	free(job);
}

/* Appends "ADDRESS:PORT"; IPv6 without brackets is what the client takes. */
static void
append_address(char *to, size_t size, const struct addrinfo *ai, uint16_t port)
{
	char address[ADDRESS_MAX_BYTES];
	size_t used = strlen(to);

	if (ai->ai_family != AF_INET && ai->ai_family != AF_INET6)
		return;
	if (getnameinfo(ai->ai_addr, ai->ai_addrlen, address, sizeof(address),
		NULL, 0, NI_NUMERICHOST) != 0)
		return;
	(void)snprintf(to + used, size - used, "%s%s:%u", used > 0 ? "," : "",
	    address, (unsigned)port);
}

static int
look_up(const struct host *h, char **out)
{
	const size_t size = ADDRESSES_MAX * (ADDRESS_MAX_BYTES + 8);
	const struct addrinfo hints = { .ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM };
	struct addrinfo *list = NULL;
	char *text;
	int error, n = 0;

	error = getaddrinfo(h->name, NULL, &hints, &list);
	if (error != 0)
		return (error);
	text = calloc(1, size);
	if (text == NULL) {
		freeaddrinfo(list);
		return (EAI_MEMORY);
	}
	for (struct addrinfo *ai = list; ai != NULL && n < ADDRESSES_MAX;
	     ai = ai->ai_next, n++)
		append_address(text, size, ai, h->port);
	freeaddrinfo(list);
	if (text[0] == '\0') {
		free(text);
		return (EAI_NODATA);
	}
	*out = text;
	return (0);
}

/* False: nobody listens, so there is no point in going on. */
static bool
tell(struct job *job, struct answer *a)
{
	bool listening, posted = false;

	(void)pthread_mutex_lock(&job->lock);
	listening = job->box != NULL;
	if (listening)
		posted = mailbox_post(job->box, a);
	(void)pthread_mutex_unlock(&job->lock);
	if (!posted)
		free(a->addresses);
	return (listening);
}

static void *
run_job(void *arg)
{
	struct job *job = arg;

	(void)pthread_setname_np(pthread_self(), "firn-resolve");
	for (size_t i = 0; i < job->hosts.n; i++) {
		struct answer a = { .host = i };

		if (job->hosts.host[i].literal)
			continue;
		a.error = look_up(&job->hosts.host[i], &a.addresses);
		a.system_error = a.error == EAI_SYSTEM ? errno : 0;
		if (!tell(job, &a))
			break;
	}
	job_leave(job);
	threads_running--;
	return (NULL);
}

static void
on_answer(void *arg, const void *msg)
{
	struct resolve *r = arg;
	const struct answer *a = msg;
	const char *why = NULL;

	if (a->error == EAI_SYSTEM)
		why = strerror(a->system_error);
	else if (a->error != 0)
		why = gai_strerror(a->error);
	r->fn(r->arg, a->host, a->addresses, why);
}

static void
on_overflow(void *arg)
{
	(void)arg;
	assert(false && "a slot for each host");
}

static struct job *
job_new(const struct hosts *hosts, struct mailbox *box)
{
	struct job *job = malloc(sizeof(*job));

	if (job == NULL)
		return (NULL);
	(void)pthread_mutex_init(&job->lock, NULL);
	job->users = 2;
	job->box = box;
	job->hosts = *hosts;
	return (job);
}

struct resolve *
resolve_start(struct event_base *base, const struct hosts *hosts,
    resolve_fn *fn, void *arg)
{
	struct resolve *r;
	int error;

	if (threads_running >= THREADS_MAX) {
		errno = EAGAIN;
		return (NULL);
	}
	r = calloc(1, sizeof(*r));
	if (r == NULL)
		return (NULL);
	r->fn = fn;
	r->arg = arg;
	r->box = mailbox_open(
	    base, hosts->n, sizeof(struct answer), on_answer, on_overflow, r);
	r->job = r->box != NULL ? job_new(hosts, r->box) : NULL;
	if (r->job == NULL)
		goto fail;
	threads_running++;
	error = helper_thread_start(run_job, r->job);
	if (error == 0)
		return (r);
	threads_running--;
	job_leave(r->job);
	job_leave(r->job);
	errno = error;
fail:
	mailbox_close(r->box);
	free(r);
	return (NULL);
}

void
resolve_cancel(struct resolve *r)
{
	struct answer a;

	if (r == NULL)
		return;
	(void)pthread_mutex_lock(&r->job->lock);
	r->job->box = NULL;
	(void)pthread_mutex_unlock(&r->job->lock);
	job_leave(r->job);
	while (mailbox_take(r->box, &a))
		free(a.addresses);
	mailbox_close(r->box);
	free(r);
}
