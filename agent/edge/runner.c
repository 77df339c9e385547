/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runner - runs one program again and again, each time with a text as its
 * standard input: no shell, one at a time, bounded in number, rate and time.
 *
 * Invariant: the loop waits for no program, whatever that does; a program that
 * was started is ended with its process group.
 */
#include "runner.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event2/event.h>

#include "log.h"

struct text {
	char *bytes;
	size_t length;
};

enum stage { STAGE_RUNS, STAGE_TERMED, STAGE_KILLED };

struct runner {
	struct runner_conf conf;
	struct event_base *base;
	struct text queue[RUNNER_QUEUE_MAX]; /* a ring */
	size_t first, waiting;
	struct text now; /* being written to what runs */
	size_t written;
	int pipe; /* the end to write to; -1: none */
	pid_t pid; /* 0: nothing runs */
	enum stage stage;
	struct event *child; /* SIGCHLD */
	struct event *writable; /* while the pipe is full */
	struct event *limit, *pace; /* timers */
	struct runner_figures figures;
};

static void start_next(struct runner *r);

static bool
arm(struct event *timer, int64_t ms)
{
	const struct timeval tv = { .tv_sec = ms / 1000,
		.tv_usec = ms % 1000 * 1000 };

	return (event_add(timer, &tv) == 0);
}

/* ---- standard input -------------------------------------------------------- */

static void
close_pipe(struct runner *r)
{
	if (r->writable != NULL)
		event_free(r->writable);
	r->writable = NULL;
	if (r->pipe != -1)
		(void)close(r->pipe);
	r->pipe = -1;
	free(r->now.bytes);
	r->now = (struct text){ NULL, 0 };
	r->written = 0;
}

/* Whoever does not read it all has no need of it: his exit status says. */
static void
write_some(struct runner *r)
{
	ssize_t n;

	while (r->written < r->now.length) {
		n = write(r->pipe, r->now.bytes + r->written,
		    r->now.length - r->written);
		if (n > 0)
			r->written += (size_t)n;
		else if (n == -1 && errno == EAGAIN)
			return;
		else if (n != -1 || errno != EINTR)
			break;
	}
	close_pipe(r);
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	write_some(arg);
}

/* Most texts are in the pipe before anybody reads: then nothing is awaited. */
static void
feed(struct runner *r)
{
	write_some(r);
	if (r->pipe == -1)
		return;
	r->writable =
	    event_new(r->base, r->pipe, EV_WRITE | EV_PERSIST, on_writable, r);
	if (r->writable == NULL || event_add(r->writable, NULL) == -1)
		close_pipe(r); /* half a text is none: the reader sees that */
}

/* ---- the end ------------------------------------------------------------------ */

static void
tell_end(struct runner *r, int status)
{
	const char *program = r->conf.argv[0];

	if (r->stage != STAGE_RUNS) {
		r->figures.failed++;
		r->figures.expired++;
		log_peer(LOG_LEVEL_WARN,
		    "%s: %s did not end within %" PRId64 " ms, ended",
		    r->conf.name, program, r->conf.limit_ms);
	} else if (WIFSIGNALED(status)) {
		r->figures.failed++;
		log_peer(LOG_LEVEL_WARN, "%s: %s ended by signal %d",
		    r->conf.name, program, WTERMSIG(status));
	} else if (WEXITSTATUS(status) != 0) {
		r->figures.failed++;
		log_peer(LOG_LEVEL_WARN, "%s: %s ended with exit status %d",
		    r->conf.name, program, WEXITSTATUS(status));
	} else
		r->figures.good++;
}

/*
 * What it left in its group ends with it, or that would be bounded by nothing.
 * Before it is reaped: until then its number is nobody else's.
 */
static void
reap(struct runner *r)
{
	int status = 0;
	pid_t pid;

	(void)kill(-r->pid, SIGKILL);
	do
		pid = waitpid(r->pid, &status, 0); /* it has ended */
	while (pid == -1 && errno == EINTR);
	(void)event_del(r->limit);
	close_pipe(r);
	tell_end(r, status);
	r->pid = 0;
}

static bool
has_ended(const struct runner *r)
{
	siginfo_t info = { .si_pid = 0 };

	return (r->pid != 0 &&
		waitid(P_PID, (id_t)r->pid, &info,
		    WEXITED | WNOHANG | WNOWAIT) == 0 &&
		info.si_pid == r->pid);
}

static void
on_child(evutil_socket_t sig, short what, void *arg)
{
	struct runner *r = arg;

	(void)sig;
	(void)what;
	if (!has_ended(r))
		return;
	reap(r);
	start_next(r);
}

static void
on_limit(evutil_socket_t fd, short what, void *arg)
{
	struct runner *r = arg;

	(void)fd;
	(void)what;
	if (has_ended(r)) {
		on_child(SIGCHLD, EV_SIGNAL, r);
		return;
	}
	if (r->stage == STAGE_RUNS && arm(r->limit, r->conf.grace_ms)) {
		r->stage = STAGE_TERMED;
		(void)kill(-r->pid, SIGTERM);
		return;
	}
	r->stage = STAGE_KILLED;
	(void)kill(-r->pid, SIGKILL);
}

/* ---- the start ------------------------------------------------------------------ */

/* Nothing of the agent's: signals, descriptors, group. */
static int
set_up(posix_spawn_file_actions_t *files, posix_spawnattr_t *attr, int stdin_fd)
{
	sigset_t all, none;
	int rc;

	(void)sigfillset(&all);
	(void)sigemptyset(&none);
	rc = posix_spawn_file_actions_adddup2(files, stdin_fd, STDIN_FILENO);
	if (rc == 0)
		rc = posix_spawn_file_actions_addopen(
		    files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	if (rc == 0)
		rc = posix_spawn_file_actions_addopen(
		    files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
	if (rc == 0) /* else those of libraries that lack O_CLOEXEC stay */
		rc = posix_spawn_file_actions_addclosefrom_np(
		    files, STDERR_FILENO + 1);
#endif
	if (rc == 0)
		rc = posix_spawnattr_setsigdefault(attr, &all);
	if (rc == 0)
		rc = posix_spawnattr_setsigmask(attr, &none);
	if (rc == 0)
		rc = posix_spawnattr_setpgroup(attr, 0);
	if (rc == 0)
		rc = posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGDEF |
							POSIX_SPAWN_SETSIGMASK |
							POSIX_SPAWN_SETPGROUP);
	return (rc);
}

/* 0 or an error number, that of exec included. */
static int
spawn(const struct runner *r, int stdin_fd, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	int rc;

	rc = posix_spawn_file_actions_init(&files);
	if (rc != 0)
		return (rc);
	rc = posix_spawnattr_init(&attr);
	if (rc == 0) {
		rc = set_up(&files, &attr, stdin_fd);
		if (rc == 0)
			rc = posix_spawn(pid, r->conf.argv[0], &files, &attr,
			    r->conf.argv, environ);
		(void)posix_spawnattr_destroy(&attr);
	}
	(void)posix_spawn_file_actions_destroy(&files);
	return (rc);
}

/* 0 or an error number. */
static int
start(struct runner *r)
{
	int ends[2], rc;
	pid_t pid = 0;

	if (pipe2(ends, O_CLOEXEC) == -1)
		return (errno);
	if (fcntl(ends[1], F_SETFL, O_NONBLOCK) == -1)
		rc = errno;
	else if (!arm(r->limit, r->conf.limit_ms))
		rc = ENOMEM;
	else
		rc = spawn(r, ends[0], &pid);
	(void)close(ends[0]);
	r->pipe = ends[1];
	if (rc != 0) {
		(void)event_del(r->limit);
		return (rc);
	}
	r->pid = pid;
	r->stage = STAGE_RUNS;
	r->figures.started++;
	return (0);
}

static void
start_next(struct runner *r)
{
	int rc;

	if (r->pid != 0 || r->waiting == 0 ||
	    event_pending(r->pace, EV_TIMEOUT, NULL))
		return;
	if (!arm(r->pace, r->conf.pace_ms))
		return; /* with the next text */
	r->now = r->queue[r->first];
	r->first = (r->first + 1) % RUNNER_QUEUE_MAX;
	r->waiting--;
	rc = start(r);
	if (rc == 0) {
		feed(r);
		return;
	}
	close_pipe(r);
	r->figures.failed++;
	log_peer(LOG_LEVEL_WARN, "%s: %s does not start: %s", r->conf.name,
	    r->conf.argv[0], strerror(rc));
}

static void
on_pace(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	start_next(arg);
}

/* ---- outside --------------------------------------------------------------------- */

void
runner_add(struct runner *r, const char *text, size_t length)
{
	struct text *slot;
	char *copy = NULL;

	if (r->waiting < RUNNER_QUEUE_MAX)
		copy = malloc(length + 1); /* an empty one is one, too */
	if (copy == NULL) {
		r->figures.dropped++;
		log_peer(LOG_LEVEL_WARN,
		    "%s: no room, %zu wait: %" PRIu64 " are lost by now",
		    r->conf.name, r->waiting, r->figures.dropped);
		return;
	}
	memcpy(copy, text, length);
	slot = &r->queue[(r->first + r->waiting++) % RUNNER_QUEUE_MAX];
	*slot = (struct text){ copy, length };
	start_next(r);
}

void
runner_figures(const struct runner *r, struct runner_figures *out)
{
	*out = r->figures;
	out->waiting = r->waiting;
	out->pid = (int)r->pid;
}

struct runner *
runner_open(struct event_base *base, const struct runner_conf *conf)
{
	struct runner *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return (NULL);
	r->conf = *conf;
	r->base = base;
	r->pipe = -1;
	r->child = evsignal_new(base, SIGCHLD, on_child, r);
	r->limit = evtimer_new(base, on_limit, r);
	r->pace = evtimer_new(base, on_pace, r);
	if (r->child == NULL || r->limit == NULL || r->pace == NULL ||
	    event_add(r->child, NULL) == -1) {
		runner_close(r);
		return (NULL);
	}
	return (r);
}

static void
free_event(struct event *ev)
{
	if (ev != NULL)
		event_free(ev);
}

void
runner_close(struct runner *r)
{
	if (r == NULL)
		return;
	if (r->pid != 0 || r->waiting > 0)
		log_warnx("%s: at the stop %d was running, %zu were waiting",
		    r->conf.name, r->pid != 0, r->waiting);
	/* Not waited for: our own end makes init reap it. */
	if (r->pid != 0)
		(void)kill(-r->pid, SIGKILL);
	close_pipe(r);
	for (; r->waiting > 0; r->waiting--) {
		free(r->queue[r->first].bytes);
		r->first = (r->first + 1) % RUNNER_QUEUE_MAX;
	}
	free_event(r->child);
	free_event(r->limit);
	free_event(r->pace);
	free(r);
}
