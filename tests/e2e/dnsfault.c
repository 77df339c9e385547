/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dnsfault - getaddrinfo() as the file $FIRN_DNS_FAULT says, preloaded into
 * an agent: "ok" resolves zk.test to 127.0.0.1, "fail" fails at once, "hang"
 * fails after 20 s, or once the file says something else.  Other names and
 * addresses go the usual way.
 *
 * $FIRN_DNS_FAULT.log gets a line per question, so that a test knows that one
 * was asked.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef int resolver(
    const char *, const char *, const struct addrinfo *, struct addrinfo **);

static void
read_fault(const char *path, char fault[8])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, fault, 7);

	fault[n > 0 ? n : 0] = '\0';
	fault[strcspn(fault, "\n")] = '\0';
	if (fd >= 0)
		(void)close(fd);
}

static void
note(const char *path, const char *fault)
{
	char text[300];
	int fd, n;

	(void)snprintf(text, sizeof(text), "%s.log", path);
	fd = open(text, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	n = snprintf(text, sizeof(text), "%s\n", fault);
	if (fd < 0 || write(fd, text, (size_t)n) != n)
		_exit(99);
	(void)close(fd);
}

int
getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
    struct addrinfo **res)
{
	const char *path = getenv("FIRN_DNS_FAULT");
	resolver *next = (resolver *)dlsym(RTLD_NEXT, "getaddrinfo");
	const struct timespec pause = { 0, 100000000 };
	char fault[8];

	if (path == NULL || node == NULL || strcmp(node, "zk.test") != 0)
		return (next(node, service, hints, res));
	read_fault(path, fault);
	note(path, fault);
	if (strcmp(fault, "ok") == 0)
		return (next("127.0.0.1", service, hints, res));
	for (int i = 0; i < 200 && strcmp(fault, "hang") == 0; i++) {
		(void)nanosleep(&pause, NULL);
		read_fault(path, fault);
	}
	return (EAI_AGAIN);
}
