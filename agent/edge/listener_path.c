/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listener_path - the listening socket as a name in the file system: the
 * directory, the lock, birth and removal.
 *
 * Invariant: as listener.h says.
 *
 * On Linux bind() gives the new inode the mode of the socket's descriptor less
 * the umask, so fchmod() before it settles the mode of birth; but the group is
 * always the process's own.  Chown and chmod after bind at the path itself
 * would show clients a socket that refuses them, and EACCES is an answer that
 * they do not retry.  Hence: born 0600 under another name, chown, chmod,
 * listen, and only then renamed, which also replaces a stale one in one step.
 */
#include "listener_path.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "log.h"

#define EXIT_CONFIG 78
#define LOCK_TRIES 8
#define NAME_MAX_TEXT (LISTENER_PATH_MAX + 8) /* ".lock", ".new" */

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
	if (lstat(dir, &st) == 0 && S_ISLNK(st.st_mode) && st.st_uid != 0 &&
	    st.st_uid != geteuid())
		return (fail(err, 1, 0,
		    "socket %s: directory %s is a symbolic link of uid %u, "
		    "which could point it elsewhere",
		    path, dir, st.st_uid));
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
	if (f == -1 && errno == ELOOP)
		return (fail(err, 1, 0, "lock %s: a symbolic link", name));
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
take_lock(struct listener_path *p, struct listener_error *err)
{
	char name[NAME_MAX_TEXT], text[24];
	int status, n;

	snprintf(name, sizeof(name), "%s.lock", p->path);
	for (int i = 0; i < LOCK_TRIES && p->lock == -1; i++) {
		status = try_lock(name, &p->lock, err);
		if (status != 0)
			return (status);
	}
	if (p->lock == -1)
		return (
		    fail(err, 1, 0, "lock %s: replaced again and again", name));
	n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
	if (ftruncate(p->lock, 0) == -1 ||
	    pwrite(p->lock, text, (size_t)n, 0) != n)
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

/*
 * At the start the name may be a stale socket's, which is replaced in one
 * step.  Later it must be nobody's: link() replaces nothing.
 */
static int
put_name(const struct listener_path *p, const char *name, bool replace,
    struct listener_error *err)
{
	int rc = replace ? rename(name, p->path) : link(name, p->path);

	if (rc == -1)
		return (fail(err, 1, errno, "socket %s", p->path));
	if (!replace && unlink(name) == -1)
		log_warn("socket %s: cannot remove it", name);
	return (0);
}

/* Everything between bind and its name: nobody can connect before listen. */
static int
dress_socket(struct listener_path *p, const char *name, bool replace,
    struct listener_error *err)
{
	struct stat st;

	if (p->group != (gid_t)-1 && lchown(name, (uid_t)-1, p->group) == -1)
		return (fail(err, 1, errno,
		    "socket %s: cannot give it to group %u", name, p->group));
	if (chmod(name, p->mode) == -1 || lstat(name, &st) == -1 ||
	    listen(p->fd, SOMAXCONN) == -1)
		return (fail(err, 1, errno, "socket %s", name));
	p->dev = st.st_dev;
	p->ino = st.st_ino;
	return (put_name(p, name, replace, err));
}

/* Nothing may be left at the name that the socket is born under. */
static int
clear_name(const char *name, struct listener_error *err)
{
	bool stale;
	int status = check_stale(name, &stale, err);

	if (status == 0 && stale && unlink(name) == -1)
		status = fail(err, 1, errno, "socket %s", name);
	return (status);
}

static int
bind_socket(struct listener_path *p, bool replace, struct listener_error *err)
{
	char name[NAME_MAX_TEXT];
	struct sockaddr_un sun;
	bool stale;
	int status;

	snprintf(name, sizeof(name), "%s.new", p->path);
	status = check_stale(p->path, &stale, err);
	if (status == 0)
		status = clear_name(name, err);
	if (status != 0)
		return (status);
	fill_address(&sun, name);
	p->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->fd == -1 || fchmod(p->fd, 0600) == -1 ||
	    bind(p->fd, (const struct sockaddr *)&sun, sizeof(sun)) == -1)
		return (fail(err, 1, errno, "socket %s", name));
	status = dress_socket(p, name, replace, err);
	if (status != 0)
		unlink(name);
	return (status);
}

int
listener_path_open(struct listener_path *p, const struct listener_conf *conf,
    struct listener_error *err)
{
	int status;

	memset(p, 0, sizeof(*p));
	p->fd = p->lock = -1;
	if (conf->path[0] == '\0' || strlen(conf->path) > LISTENER_PATH_MAX)
		return (fail(err, EXIT_CONFIG, 0,
		    "socket \"%s\": a path of 1 to %d bytes is needed",
		    conf->path, LISTENER_PATH_MAX));
	strcpy(p->path, conf->path);
	status = parse_mode(conf->mode, &p->mode, err);
	if (status == 0)
		status = parse_group(conf->group, &p->group, err);
	if (status == 0)
		status = check_directory(p->path, err);
	if (status == 0)
		status = take_lock(p, err);
	if (status == 0)
		status = bind_socket(p, true, err);
	return (status);
}

/* ---- while it listens ---------------------------------------------------------- */

static bool
is_same(const struct stat *st, dev_t dev, ino_t ino)
{
	return (st->st_dev == dev && st->st_ino == ino);
}

/* The lock's file may have been removed along with the socket. */
static int
hold_lock(struct listener_path *p, struct listener_error *err)
{
	char name[NAME_MAX_TEXT];
	struct stat held, named;
	int old = p->lock, status;

	snprintf(name, sizeof(name), "%s.lock", p->path);
	if (fstat(old, &held) == 0 && lstat(name, &named) == 0 &&
	    is_same(&named, held.st_dev, held.st_ino))
		return (0);
	p->lock = -1;
	status = take_lock(p, err);
	if (status != 0)
		p->lock = old;
	else
		close(old);
	return (status);
}

/* Another socket under the same name; p->fd stays what it is. */
static int
make_again(struct listener_path *p, int *fd, struct listener_error *err)
{
	int old = p->fd;
	int status = check_directory(p->path, err);

	if (status == 0)
		status = hold_lock(p, err);
	if (status != 0)
		return (status);
	p->fd = -1;
	status = bind_socket(p, false, err);
	if (status != 0 && p->fd != -1)
		close(p->fd);
	*fd = p->fd;
	p->fd = old;
	return (status);
}

static void
say_astray(struct listener_path *p, const char *words)
{
	if (!p->astray)
		log_warnx("%s", words);
	p->astray = true;
}

bool
listener_path_look(struct listener_path *p, int *fd)
{
	struct listener_error err;
	struct stat st;

	if (lstat(p->path, &st) == 0) {
		if (is_same(&st, p->dev, p->ino))
			p->astray = false;
		else {
			fail(&err, 0, 0,
			    "socket %s: something else has taken its place, "
			    "left alone: clients do not find this agent",
			    p->path);
			say_astray(p, err.text);
		}
		return (false);
	}
	if (make_again(p, fd, &err) != 0) {
		say_astray(p, err.text);
		return (false);
	}
	log_warnx("socket %s: it was removed, and is made again", p->path);
	p->astray = false;
	return (true);
}

/* ---- the end -------------------------------------------------------------------- */

void
listener_path_remove(const struct listener_path *p)
{
	struct stat st;

	if (lstat(p->path, &st) == -1)
		return;
	if (!is_same(&st, p->dev, p->ino)) {
		log_warnx(
		    "socket %s: not the own one any more, left alone", p->path);
		return;
	}
	if (unlink(p->path) == -1)
		log_warn("socket %s: cannot remove it", p->path);
}

void
listener_path_close(struct listener_path *p)
{
	if (p->fd != -1)
		close(p->fd);
	if (p->lock != -1)
		close(p->lock);
	p->fd = p->lock = -1;
}
