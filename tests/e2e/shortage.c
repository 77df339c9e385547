/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shortage - an agent short of memory or threads, or on a disk that is full or
 * became read-only under open files, preloaded: what the page $FIRN_SHORTAGE
 * says, which a test has mapped as well.
 *
 * Only allocations made by code of one file (`caller`, the beginning of its
 * name; "" is any) count, so that each part of the program has its turn.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct page {
	_Atomic int64_t good; /* so many succeed ... */
	_Atomic int64_t bad; /* ... then so many fail ... */
	_Atomic int64_t failed; /* ... and so many did */
	_Atomic int64_t threads; /* the same of pthread_create: good, ... */
	_Atomic int64_t no_threads; /* ... then bad */
	_Atomic int64_t disk; /* what a write into a file fails with, or 0 */
	char caller[64];
};

typedef int thread_maker(
    pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

/* The C library's own, so that none of it is needed to find them. */
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);

static struct page *page;

__attribute__((constructor)) static void
map_page(void)
{
	const char *path = getenv("FIRN_SHORTAGE");
	int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *p = MAP_FAILED;

	if (fd != -1)
		p = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
		    MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		_exit(99);
	(void)close(fd);
	page = p;
}

static bool
is_of_caller(const void *from)
{
	const char *name;
	Dl_info info;

	if (page->caller[0] == '\0')
		return (true);
	if (dladdr(from, &info) == 0)
		return (false);
	name = strrchr(info.dli_fname, '/');
	name = name != NULL ? name + 1 : info.dli_fname;
	return (strncmp(name, page->caller, strlen(page->caller)) == 0);
}

/* Counts one; true if it is to fail. */
static bool
count(_Atomic int64_t *good, _Atomic int64_t *bad)
{
	if (atomic_load(bad) <= 0)
		return (false);
	return (atomic_fetch_sub(good, 1) <= 0 && atomic_fetch_sub(bad, 1) > 0);
}

static bool
fails(const void *from)
{
	if (page == NULL || page->bad <= 0 || !is_of_caller(from) ||
	    !count(&page->good, &page->bad))
		return (false);
	page->failed++;
	errno = ENOMEM;
	return (true);
}

void *
malloc(size_t n)
{
	return (fails(__builtin_return_address(0)) ? NULL : __libc_malloc(n));
}

void *
calloc(size_t n, size_t size)
{
	return (
	    fails(__builtin_return_address(0)) ? NULL : __libc_calloc(n, size));
}

void *
realloc(void *p, size_t n)
{
	return (
	    fails(__builtin_return_address(0)) ? NULL : __libc_realloc(p, n));
}

int
pthread_create(pthread_t *thread, const pthread_attr_t *attr,
    void *(*run)(void *), void *arg)
{
	static thread_maker *next;

	if (next == NULL)
		next = (thread_maker *)dlsym(RTLD_NEXT, "pthread_create");
	if (count(&page->threads, &page->no_threads))
		return (EAGAIN);
	return (next(thread, attr, run, arg));
}

/* ---- the disk; only what the state file is written with --------------------- */

/* A full disk still lets names go; one that is read-only does not. */
static bool
disk_fails(bool needs_room)
{
	int64_t error = page != NULL ? page->disk : 0;

	if (error == 0 || (error == ENOSPC && !needs_room))
		return (false);
	errno = (int)error;
	return (true);
}

int
openat(int dir, const char *name, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	if ((flags & O_CREAT) != 0) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	if ((flags & O_ACCMODE) != O_RDONLY &&
	    disk_fails((flags & O_CREAT) != 0))
		return (-1);
	return ((int)syscall(SYS_openat, dir, name, flags, mode));
}

ssize_t
pwrite(int fd, const void *bytes, size_t n, off_t at)
{
	return (
	    disk_fails(true) ? -1 : syscall(SYS_pwrite64, fd, bytes, n, at));
}

int
unlinkat(int dir, const char *name, int flags)
{
	return (disk_fails(false)
		    ? -1
		    : (int)syscall(SYS_unlinkat, dir, name, flags));
}

int
ftruncate(int fd, off_t length)
{
	return (
	    disk_fails(false) ? -1 : (int)syscall(SYS_ftruncate, fd, length));
}
