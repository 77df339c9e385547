/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listener_inherit - the listening socket as the service manager hands it
 * over (LISTEN_FDS).
 *
 * Invariant: the name in the file system is the manager's, which made it and
 * keeps it, with all who wait in its queue, while there is no agent.  So no
 * mode is set here, no lock taken and nothing removed.  That there is one
 * agent at a time is the manager's promise; the state file's lock holds it to
 * that.
 */
#include "listener_inherit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "log.h"

#define EXIT_CONFIG 78
#define FIRST_FD 3 /* as the protocol says */
#define FDS_MOST 1024 /* more is no count of descriptors */

/* A unit that hands over something else is mended with an editor. */
__attribute__((format(printf, 2, 3))) static int
fail(struct listener_error *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return (EXIT_CONFIG);
}

/* A decimal number up to most; -1: it is none. */
static long
parse_number(const char *text, long most)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 ||
	    v > most)
		return (-1);
	return (v);
}

/* Does LISTEN_FDS speak to this process, or to one that it was left by? */
static bool
is_meant(void)
{
	const char *pid = getenv("LISTEN_PID");

	return (pid != NULL && parse_number(pid, 0x7fffffff) == getpid());
}

/* How many; 0: none were handed over. */
static int
count_fds(long *out, struct listener_error *err)
{
	const char *text = getenv("LISTEN_FDS");

	*out = 0;
	if (text == NULL || text[0] == '\0' || !is_meant())
		return (0);
	if (text[strspn(text, "0123456789")] != '\0')
		return (fail(err, "LISTEN_FDS \"%.40s\": not a number", text));
	*out = parse_number(text, FDS_MOST);
	if (*out == -1) {
		*out = 0;
		return (fail(err,
		    "LISTEN_FDS \"%.40s\": too many, and one is served", text));
	}
	return (0);
}

static bool
has_option(int fd, int name, int wanted)
{
	int value = 0;
	socklen_t length = sizeof(value);

	return (getsockopt(fd, SOL_SOCKET, name, &value, &length) == 0 &&
		value == wanted);
}

/*
 * Where it listens, as the manager bound it.  What stands there now is taken
 * for its socket; nothing, if the name is not to be seen from here.
 */
static int
read_path(struct listener_path *p, struct listener_error *err)
{
	struct sockaddr_un sun;
	struct stat st;
	socklen_t length = sizeof(sun);

	memset(&sun, 0, sizeof(sun));
	if (getsockname(FIRST_FD, (struct sockaddr *)&sun, &length) == -1)
		return (fail(err, "LISTEN_FDS: descriptor %d: %s", FIRST_FD,
		    strerror(errno)));
	if (sun.sun_path[0] == '\0')
		return (fail(err,
		    "LISTEN_FDS: descriptor %d is bound to no path of a file",
		    FIRST_FD));
	if (sun.sun_path[0] != '/')
		return (fail(err,
		    "LISTEN_FDS: descriptor %d is bound to \"%.*s\", which "
		    "does not begin with /",
		    FIRST_FD, LISTENER_PATH_MAX, sun.sun_path));
	snprintf(
	    p->path, sizeof(p->path), "%.*s", LISTENER_PATH_MAX, sun.sun_path);
	if (lstat(p->path, &st) == 0) {
		p->dev = st.st_dev;
		p->ino = st.st_ino;
	}
	return (0);
}

static int
check_socket(struct listener_error *err)
{
	if (fcntl(FIRST_FD, F_GETFD) == -1)
		return (fail(
		    err, "LISTEN_FDS: descriptor %d is not open", FIRST_FD));
	if (!has_option(FIRST_FD, SO_DOMAIN, AF_UNIX) ||
	    !has_option(FIRST_FD, SO_TYPE, SOCK_STREAM))
		return (fail(err,
		    "LISTEN_FDS: descriptor %d is not a Unix stream socket "
		    "(ListenStream= with a path)",
		    FIRST_FD));
	if (!has_option(FIRST_FD, SO_ACCEPTCONN, 1))
		return (fail(err,
		    "LISTEN_FDS: descriptor %d does not listen (Accept=no is "
		    "needed)",
		    FIRST_FD));
	return (0);
}

static int
take(struct listener_path *p, const struct listener_conf *conf,
    struct listener_error *err)
{
	int status = check_socket(err);
	int flags;

	if (status == 0)
		status = read_path(p, err);
	if (status != 0)
		return (status);
	flags = fcntl(FIRST_FD, F_GETFL);
	if (flags == -1 || fcntl(FIRST_FD, F_SETFL, flags | O_NONBLOCK) == -1)
		return (fail(err, "LISTEN_FDS: descriptor %d: %s", FIRST_FD,
		    strerror(errno)));
	p->fd = FIRST_FD;
	if (strcmp(p->path, conf->path) != 0)
		log_warnx("socket %s: handed over by the service manager, "
			  "while the configuration says %s",
		    p->path, conf->path);
	return (0);
}

static void
clear_environment(long n)
{
	/* An alert command, say, must not get them. */
	for (int fd = FIRST_FD; fd < FIRST_FD + n; fd++)
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
}

int
listener_inherit(struct listener_path *p, const struct listener_conf *conf,
    struct listener_error *err)
{
	long n;
	int status;

	memset(p, 0, sizeof(*p));
	p->fd = p->lock = -1;
	status = count_fds(&n, err);
	if (status == 0 && n > 1)
		status = fail(err,
		    "LISTEN_FDS: %ld sockets were handed over (%s), and one is "
		    "served: give each an agent of its own",
		    n,
		    getenv("LISTEN_FDNAMES") != NULL ? getenv("LISTEN_FDNAMES")
						     : "without names");
	else if (status == 0 && n == 1)
		status = take(p, conf, err);
	clear_environment(n);
	return (status);
}

void
listener_inherit_look(struct listener_path *p)
{
	struct stat st;
	bool gone = lstat(p->path, &st) == -1;

	if (p->ino == 0 || (gone && errno != ENOENT))
		return;
	if (!gone && st.st_dev == p->dev && st.st_ino == p->ino) {
		p->astray = false;
		return;
	}
	if (!p->astray)
		log_warnx("socket %s: %s, and new clients do not find this "
			  "agent: the service manager has to make it again "
			  "(restart its socket unit)",
		    p->path,
		    gone ? "it was removed"
			 : "something else has taken its place");
	p->astray = true;
}
