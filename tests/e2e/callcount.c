/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callcount - counts what a program asks of the kernel and of the allocator,
 * preloaded, by kind, into the page $FIRN_CALLS, which a test has mapped as
 * well.
 *
 * What the program and libevent import is what a hot path could call: each
 * of these counts before it goes on to the C library's own.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind {
	CALLS_RECEIVE,
	CALLS_SEND,
	CALLS_WAIT, /* epoll_wait that may sleep */
	CALLS_TIMER, /* timerfd_settime: how long that waits */
	CALLS_OTHER, /* any other that a connection could be served with */
	CALLS_MEMORY, /* malloc, calloc, realloc */
	CALLS_LOOK, /* epoll_wait that does not sleep */
	CALLS_KINDS,
};

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);

static _Atomic int64_t *page;

__attribute__((constructor)) static void
map_page(void)
{
	const char *path = getenv("FIRN_CALLS");
	int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *p = MAP_FAILED;

	if (fd != -1)
		p = mmap(NULL, CALLS_KINDS * sizeof(*page),
		    PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		_exit(99);
	(void)close(fd);
	page = p;
}

static void
count(enum kind kind)
{
	if (page != NULL)
		atomic_fetch_add_explicit(&page[kind], 1, memory_order_relaxed);
}

void *
malloc(size_t n)
{
	count(CALLS_MEMORY);
	return (__libc_malloc(n));
}

void *
calloc(size_t n, size_t size)
{
	count(CALLS_MEMORY);
	return (__libc_calloc(n, size));
}

void *
realloc(void *p, size_t n)
{
	count(CALLS_MEMORY);
	return (__libc_realloc(p, n));
}

/* A function of the C library's, counted: its kind, type, name, arguments. */
#define COUNTED(kind, type, name, declared, given)                        \
	type name declared                                                \
	{                                                                 \
		static type(*next) declared;                              \
                                                                          \
		if (next == NULL)                                         \
			next = (type(*) declared)dlsym(RTLD_NEXT, #name); \
		count(kind);                                              \
		return (next given);                                      \
	}

COUNTED(CALLS_RECEIVE, ssize_t, recv, (int fd, void *p, size_t n, int flags),
    (fd, p, n, flags))
COUNTED(CALLS_RECEIVE, ssize_t, recvfrom,
    (int fd, void *p, size_t n, int flags, struct sockaddr *sa, socklen_t *len),
    (fd, p, n, flags, sa, len))
COUNTED(CALLS_RECEIVE, ssize_t, recvmsg, (int fd, struct msghdr *m, int flags),
    (fd, m, flags))
COUNTED(CALLS_RECEIVE, ssize_t, read, (int fd, void *p, size_t n), (fd, p, n))
COUNTED(CALLS_RECEIVE, ssize_t, readv, (int fd, const struct iovec *v, int n),
    (fd, v, n))
COUNTED(CALLS_SEND, ssize_t, send, (int fd, const void *p, size_t n, int flags),
    (fd, p, n, flags))
COUNTED(CALLS_SEND, ssize_t, sendto,
    (int fd, const void *p, size_t n, int flags, const struct sockaddr *sa,
	socklen_t len),
    (fd, p, n, flags, sa, len))
COUNTED(CALLS_SEND, ssize_t, sendmsg,
    (int fd, const struct msghdr *m, int flags), (fd, m, flags))
COUNTED(
    CALLS_SEND, ssize_t, write, (int fd, const void *p, size_t n), (fd, p, n))
COUNTED(CALLS_SEND, ssize_t, writev, (int fd, const struct iovec *v, int n),
    (fd, v, n))
COUNTED(ms == 0 ? CALLS_LOOK : CALLS_WAIT, int, epoll_wait,
    (int fd, struct epoll_event *e, int n, int ms), (fd, e, n, ms))
COUNTED(CALLS_TIMER, int, timerfd_settime,
    (int fd, int flags, const struct itimerspec *to, struct itimerspec *was),
    (fd, flags, to, was))
COUNTED(CALLS_OTHER, int, epoll_ctl,
    (int fd, int op, int on, struct epoll_event *e), (fd, op, on, e))
COUNTED(
    CALLS_OTHER, int, poll, (struct pollfd * p, nfds_t n, int ms), (p, n, ms))
COUNTED(CALLS_OTHER, int, accept4,
    (int fd, struct sockaddr *sa, socklen_t *len, int flags),
    (fd, sa, len, flags))
COUNTED(CALLS_OTHER, int, close, (int fd), (fd))
COUNTED(CALLS_OTHER, int, getsockopt,
    (int fd, int level, int name, void *p, socklen_t *len),
    (fd, level, name, p, len))
COUNTED(CALLS_OTHER, int, setsockopt,
    (int fd, int level, int name, const void *p, socklen_t len),
    (fd, level, name, p, len))
COUNTED(CALLS_OTHER, pid_t, getpid, (void), ())
COUNTED(CALLS_OTHER, ssize_t, getrandom, (void *p, size_t n, unsigned flags),
    (p, n, flags))
COUNTED(CALLS_OTHER, int, nanosleep,
    (const struct timespec *want, struct timespec *left), (want, left))
