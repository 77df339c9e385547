/* SPDX-License-Identifier: Apache-2.0 */
/*
 * acceptfault - accept4() that fails with the number in the file
 * $FIRN_ACCEPT_FAULT while there is one, preloaded into an agent.  The file
 * $FIRN_ACCEPT_FAULT.calls grows by a byte for each call that failed.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

typedef int acceptor(int, struct sockaddr *, socklen_t *, int);

/* 0: there is none. */
static int
read_fault(const char *path)
{
	char text[8] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd == -1)
		return (0);
	(void)!read(fd, text, sizeof(text) - 1);
	close(fd);
	return (atoi(text));
}

static void
count_call(const char *path)
{
	char name[4096];
	int fd;

	snprintf(name, sizeof(name), "%s.calls", path);
	fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd == -1)
		abort();
	(void)!write(fd, ".", 1);
	close(fd);
}

int
accept4(int fd, struct sockaddr *addr, socklen_t *length, int flags)
{
	const char *path = getenv("FIRN_ACCEPT_FAULT");
	acceptor *next = (acceptor *)dlsym(RTLD_NEXT, "accept4");
	int fault = path != NULL ? read_fault(path) : 0;

	if (fault == 0)
		return (next(fd, addr, length, flags));
	count_call(path);
	errno = fault;
	return (-1);
}
