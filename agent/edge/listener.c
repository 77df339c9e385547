/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listener - the agent's socket in the file system: one instance, the right
 * owner and mode from birth, and accept.
 *
 * Invariant: whatever appears at the path listens already, with its final
 * mode and group; it is put there and taken away only under the lock
 * PATH.lock, which is held for life and never replaced.
 *
 * On Linux bind() gives the new inode the mode of the socket's descriptor less
 * the umask, so fchmod() before it settles the mode of birth; but the group is
 * always the process's own.  Chown and chmod after bind at the path itself
 * would show clients a socket that refuses them, and EACCES is an answer that
 * they do not retry.  Hence: born 0600 under another name, chown, chmod,
 * listen, and only then renamed, which also replaces a stale one in one step.
 */
#include "listener.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <event2/event.h>

#include "log.h"

#define EXIT_CONFIG 78
#define ACCEPT_ROUNDS 64 /* then the others of the loop get their turn */
#define LOCK_TRIES 8
#define NAME_MAX_TEXT (LISTENER_PATH_MAX + 8) /* ".lock", ".new" */

struct listener {
	struct event_base *base;
	struct event *ready; /* someone connects */
	struct event *again; /* the pause for want of descriptors is over */
	listener_fn *fn;
	void *arg;
	int fd; /* -1: stopped */
	int lock; /* -1 before the lock is held */
	dev_t dev; /* of the socket in the file system */
	ino_t ino;
	int backoff_ms;
	bool starved;
	char path[LISTENER_PATH_MAX + 1];
};

/* ---- words ------------------------------------------------------------- */

/* Writes the line; with errno's text unless error is 0.  Returns status. */
__attribute__((format(printf, 4, 5))) static int
fail(struct listener_error *err, int status, int error, const char *fmt, ...)
{
	size_t used;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	used = strlen(err->text);
	if (error != 0)
		snprintf(err->text + used, sizeof(err->text) - used, ": %s",
		    strerror(error));
	return (status);
}

/* ---- what the configuration says ---------------------------------------- */

static int
parse_mode(const char *text, mode_t *out, struct listener_error *err)
{
	size_t digits = strspn(text, "01234567");

	if (digits < 3 || digits > 4 || text[digits] != '\0' ||
	    (digits == 4 && text[0] != '0'))
		return (fail(err, EXIT_CONFIG, 0,
		    "socket_mode \"%s\": not an octal mode such as 0660",
		    text));
	*out = (mode_t)strtoul(text, NULL, 8);
	return (0);
}

/* (gid_t)-1: leave it as it is. */
static int
parse_group(const char *text, gid_t *out, struct listener_error *err)
{
	const struct group *g;
	unsigned long n;
	char *end;

	*out = (gid_t)-1;
	if (text[0] == '\0')
		return (0);
	errno = 0;
	g = getgrnam(text);
	if (g != NULL) {
		*out = g->gr_gid;
		return (0);
	}
	errno = 0;
	n = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 ||
	    n >= (gid_t)-1)
		return (fail(err, EXIT_CONFIG, 0,
		    "socket_group \"%s\": no such group", text));
	*out = (gid_t)n;
	return (0);
}

/* ---- directory and lock ---------------------------------------------------- */

/*
 * Who can write the directory can put a socket of their own in place of ours.
 * With the sticky bit only the owner of a name can replace it.
 */
static int
check_directory(const char *path, struct listener_error *err)
{
	char dir[LISTENER_PATH_MAX + 1];
	const char *slash = strrchr(path, '/');
	struct stat st;

	if (slash == NULL)
		strcpy(dir, ".");
	else if (slash == path)
		strcpy(dir, "/");
	else {
		memcpy(dir, path, (size_t)(slash - path));
		dir[slash - path] = '\0';
	}
	if (stat(dir, &st) == -1)
		return (
		    fail(err, 1, errno, "socket %s: directory %s", path, dir));
	if (!S_ISDIR(st.st_mode))
		return (fail(err, 1, ENOTDIR, "socket %s: %s", path, dir));
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return (fail(err, 1, 0,
		    "socket %s: directory %s belongs to uid %u, which could "
		    "replace the socket; it must be root's or uid %u's",
		    path, dir, st.st_uid, geteuid()));
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0 &&
	    (st.st_mode & S_ISVTX) == 0)
		return (fail(err, 1, 0,
		    "socket %s: directory %s has mode %04o: others can write "
		    "it and could replace the socket; chmod go-w %s",
		    path, dir, st.st_mode & 07777, dir));
	return (0);
}

/* Says who holds the lock; the pid is what the holder wrote into it. */
static int
fail_held(int fd, const char *name, struct listener_error *err)
{
	char text[24];
	long pid;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	pid = strtol(text, NULL, 10);
	if (pid <= 0)
		return (fail(err, 1, 0,
		    "another firnd serves this socket: %s is locked", name));
	return (fail(err, 1, 0,
	    "another firnd (pid %ld) serves this socket: %s is locked", pid,
	    name));
}

/* Opens and locks it; 0 with *fd -1: someone removed it meanwhile. */
static int
try_lock(const char *name, int *fd, struct listener_error *err)
{
	struct stat held, named;
	int status = 0;
	int f;

	*fd = -1;
	f = open(name,
	    O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
	    0600);
	if (f == -1)
		return (fail(err, 1, errno, "lock %s", name));
	if (fstat(f, &held) == -1)
		status = fail(err, 1, errno, "lock %s", name);
	else if (!S_ISREG(held.st_mode) || held.st_nlink > 1)
		status = fail(err, 1, 0, "lock %s: not a plain file", name);
	else if (held.st_uid != geteuid() && held.st_uid != 0)
		status = fail(
		    err, 1, 0, "lock %s: belongs to uid %u", name, held.st_uid);
	else if (flock(f, LOCK_EX | LOCK_NB) == -1)
		status = errno == EWOULDBLOCK
			     ? fail_held(f, name, err)
			     : fail(err, 1, errno, "lock %s", name);
	else if (lstat(name, &named) == 0 && named.st_dev == held.st_dev &&
		 named.st_ino == held.st_ino) {
		*fd = f;
		return (0);
	}
	close(f);
	return (status);
}

static int
take_lock(struct listener *l, struct listener_error *err)
{
	char name[NAME_MAX_TEXT], text[24];
	int status, n;

	snprintf(name, sizeof(name), "%s.lock", l->path);
	for (int i = 0; i < LOCK_TRIES && l->lock == -1; i++) {
		status = try_lock(name, &l->lock, err);
		if (status != 0)
			return (status);
	}
	if (l->lock == -1)
		return (
		    fail(err, 1, 0, "lock %s: replaced again and again", name));
	n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
	if (ftruncate(l->lock, 0) == -1 ||
	    pwrite(l->lock, text, (size_t)n, 0) != n)
		log_warn("lock %s: cannot write the pid", name);
	return (0);
}

/* ---- the socket -------------------------------------------------------------- */

static void
fill_address(struct sockaddr_un *sun, const char *name)
{
	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	memcpy(sun->sun_path, name, strlen(name)); /* LISTENER_PATH_MAX */
}

/* Nothing, or a socket of before: ours to replace, since we hold the lock. */
static int
check_stale(const char *name, bool *stale, struct listener_error *err)
{
	struct stat st;

	*stale = false;
	if (lstat(name, &st) == -1) {
		if (errno == ENOENT)
			return (0);
		return (fail(err, 1, errno, "socket %s", name));
	}
	if (!S_ISSOCK(st.st_mode))
		return (fail(err, 1, 0,
		    "socket %s: something that is not a socket is in the way",
		    name));
	*stale = true;
	return (0);
}

/* Everything between bind and rename: nobody can connect before listen. */
static int
dress_socket(struct listener *l, const char *name, mode_t mode, gid_t group,
    struct listener_error *err)
{
	struct stat st;

	if (group != (gid_t)-1 && lchown(name, (uid_t)-1, group) == -1)
		return (fail(err, 1, errno,
		    "socket %s: cannot give it to group %u", name, group));
	if (chmod(name, mode) == -1 || lstat(name, &st) == -1 ||
	    listen(l->fd, SOMAXCONN) == -1)
		return (fail(err, 1, errno, "socket %s", name));
	l->dev = st.st_dev;
	l->ino = st.st_ino;
	if (rename(name, l->path) == -1)
		return (fail(err, 1, errno, "socket %s", l->path));
	return (0);
}

static int
bind_socket(
    struct listener *l, mode_t mode, gid_t group, struct listener_error *err)
{
	char name[NAME_MAX_TEXT];
	struct sockaddr_un sun;
	bool stale;
	int status;

	snprintf(name, sizeof(name), "%s.new", l->path);
	status = check_stale(l->path, &stale, err);
	if (status == 0)
		status = check_stale(name, &stale, err);
	if (status != 0)
		return (status);
	if (stale && unlink(name) == -1)
		return (fail(err, 1, errno, "socket %s", name));
	fill_address(&sun, name);
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd == -1 || fchmod(l->fd, 0600) == -1 ||
	    bind(l->fd, (const struct sockaddr *)&sun, sizeof(sun)) == -1)
		return (fail(err, 1, errno, "socket %s", name));
	status = dress_socket(l, name, mode, group, err);
	if (status != 0) {
		unlink(name);
		close(l->fd);
		l->fd = -1;
	}
	return (status);
}

int
listener_open(struct listener **out, struct event_base *base,
    const struct listener_conf *conf, struct listener_error *err)
{
	struct listener *l;
	mode_t mode = 0;
	gid_t group = 0;
	int status;

	if (conf->path[0] == '\0' || strlen(conf->path) > LISTENER_PATH_MAX)
		return (fail(err, EXIT_CONFIG, 0,
		    "socket \"%s\": a path of 1 to %d bytes is needed",
		    conf->path, LISTENER_PATH_MAX));
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return (fail(err, 1, ENOMEM, "socket %s", conf->path));
	l->base = base;
	l->fd = l->lock = -1;
	l->backoff_ms = conf->backoff_ms;
	strcpy(l->path, conf->path);
	status = parse_mode(conf->mode, &mode, err);
	if (status == 0)
		status = parse_group(conf->group, &group, err);
	if (status == 0)
		status = check_directory(l->path, err);
	if (status == 0)
		status = take_lock(l, err);
	if (status == 0)
		status = bind_socket(l, mode, group, err);
	if (status != 0) {
		listener_close(l);
		return (status);
	}
	*out = l;
	return (0);
}

/* ---- accept ------------------------------------------------------------------ */

static bool
is_shortage(int error)
{
	return (error == EMFILE || error == ENFILE || error == ENOBUFS ||
		error == ENOMEM);
}

/*
 * Level-triggered readiness would spin while there is no descriptor to take
 * the connection with: look away for a while.
 */
static void
back_off(struct listener *l)
{
	struct timeval tv = { .tv_sec = l->backoff_ms / 1000,
		.tv_usec = (l->backoff_ms % 1000) * 1000 };

	if (!l->starved)
		log_warn("socket %s: accept pauses, tried again every %d ms",
		    l->path, l->backoff_ms);
	l->starved = true;
	if (event_add(l->again, &tv) == -1)
		return; /* then go on looking: slower is better, blind is not */
	event_del(l->ready);
}

static void
hand_over(struct listener *l, int fd)
{
	struct ucred cred;
	socklen_t length = sizeof(cred);
	struct listener_peer peer;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &length) == -1) {
		log_warn("socket %s: SO_PEERCRED", l->path);
		close(fd);
		return;
	}
	peer = (struct listener_peer){ cred.uid, cred.gid, cred.pid };
	l->fn(l->arg, fd, &peer);
}

/* Only once all who waited are in: else each departure would say so. */
static void
recovered(struct listener *l)
{
	l->starved = false;
	log_info("socket %s: accepts all again", l->path);
}

static void
on_ready(evutil_socket_t sock, short what, void *arg)
{
	struct listener *l = arg;
	int fd;

	(void)sock;
	(void)what;
	for (int i = 0; i < ACCEPT_ROUNDS && l->fd != -1; i++) {
		fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd == -1 && is_shortage(errno)) {
			back_off(l);
			return;
		}
		if (fd == -1) {
			/* The queue is empty, or that one is gone already. */
			if (l->starved && errno == EAGAIN)
				recovered(l);
			return;
		}
		hand_over(l, fd);
	}
}

static void
on_again(evutil_socket_t sock, short what, void *arg)
{
	struct listener *l = arg;

	if (l->fd == -1)
		return;
	if (event_add(l->ready, NULL) == -1) {
		back_off(l);
		return;
	}
	on_ready(sock, what, l);
}

int
listener_start(struct listener *l, listener_fn *fn, void *arg)
{
	l->fn = fn;
	l->arg = arg;
	l->ready = event_new(l->base, l->fd, EV_READ | EV_PERSIST, on_ready, l);
	l->again = evtimer_new(l->base, on_again, l);
	if (l->ready == NULL || l->again == NULL ||
	    event_add(l->ready, NULL) == -1)
		return (-1);
	return (0);
}

bool
listener_starved(const struct listener *l)
{
	return (l->starved);
}

/* ---- the end ------------------------------------------------------------------ */

static void
remove_socket(const struct listener *l)
{
	struct stat st;

	if (lstat(l->path, &st) == -1)
		return;
	if (st.st_dev != l->dev || st.st_ino != l->ino) {
		log_warnx(
		    "socket %s: not the own one any more, left alone", l->path);
		return;
	}
	if (unlink(l->path) == -1)
		log_warn("socket %s: cannot remove it", l->path);
}

void
listener_stop(struct listener *l)
{
	if (l->ready != NULL)
		event_free(l->ready);
	if (l->again != NULL)
		event_free(l->again);
	l->ready = l->again = NULL;
	if (l->fd == -1)
		return;
	remove_socket(l);
	close(l->fd);
	l->fd = -1;
}

void
listener_close(struct listener *l)
{
	if (l == NULL)
		return;
	listener_stop(l);
	if (l->lock != -1)
		close(l->lock);
	free(l);
}
