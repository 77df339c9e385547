/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idtool - what the small applications of the end-to-end tests share: a file
 * of IDs as idcheck reads them, a clock, percentiles, and a kernel that
 * refuses to wipe.
 */
#ifndef IDTOOL_H
#define IDTOOL_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "firn.h"

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)
#define IDFILE_ROOM 1024

static inline void __attribute__((noreturn)) die(const char *what)
{
	fprintf(stderr, "%d: %s: %s\n", (int)getpid(), what, strerror(errno));
	_exit(1);
}

static inline void __attribute__((noreturn))
die_firn(struct firn *f, const char *what, int rc)
{
	char why[300] = "";

	(void)firn_why(f, why, sizeof(why));
	fprintf(stderr, "%d: %s: %s: %s\n", (int)getpid(), what,
	    firn_errname(rc), why);
	_exit(1);
}

static inline int64_t
mono_ns(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_MONOTONIC, &ts) == -1)
		die("clock_gettime");
	return ((int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec);
}

/* Sleeps to an instant, whatever signals come: what a call is judged by. */
static inline void
sleep_until(int64_t when_ns)
{
	struct timespec ts = { when_ns / NS_PER_S, when_ns % NS_PER_S };

	while (
	    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		continue;
}

static inline void
sleep_ns(int64_t ns)
{
	sleep_until(mono_ns() + ns);
}

static inline struct firn *
handle_open(const char *path, uint32_t timeout_ms, uint32_t ttl_ms)
{
	struct firn_options o = { .size = sizeof(o),
		.timeout_ms = timeout_ms,
		.socket = path,
		.ttl_ms = ttl_ms };
	struct firn *f;
	int rc = firn_open(&f, &o);

	if (rc != 0) {
		fprintf(stderr, "firn_open: %s\n", firn_strerror(rc));
		exit(1);
	}
	return (f);
}

/* ---- PREFIX.P.T.ids: what one thread took from one handle ---- */

struct idfile {
	int fd;
	size_t n;
	uint64_t ids[IDFILE_ROOM];
};

static inline void
idfile_open(
    struct idfile *f, const char *prefix, unsigned process, unsigned thread)
{
	char path[512];

	(void)snprintf(
	    path, sizeof(path), "%s.%u.%u.ids", prefix, process, thread);
	f->n = 0;
	f->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (f->fd == -1)
		die(path);
}

static inline void
idfile_flush(struct idfile *f)
{
	const char *p = (const char *)f->ids;
	size_t n = f->n * sizeof(f->ids[0]);

	while (n > 0) {
		ssize_t k = write(f->fd, p, n);

		if (k == -1 && errno != EINTR)
			die("write");
		if (k > 0) {
			p += k;
			n -= (size_t)k;
		}
	}
	f->n = 0;
}

static inline void
idfile_put(struct idfile *f, uint64_t id)
{
	f->ids[f->n++] = id;
	if (f->n == IDFILE_ROOM)
		idfile_flush(f);
}

/* ---- figures ---- */

static inline int
compare_times(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x < y ? -1 : x > y);
}

/* "name": {"min": ..., "p50": ..., "p99": ..., "max": ...} in microseconds */
static inline void
print_times(const char *name, int64_t *ns, size_t n)
{
	qsort(ns, n, sizeof(*ns), compare_times);
	printf("\"%s\": {\"min\": %.1f, \"p50\": %.1f, \"p99\": %.1f, "
	       "\"max\": %.1f}",
	    name, (double)ns[0] / 1e3, (double)ns[n / 2] / 1e3,
	    (double)ns[n * 99 / 100] / 1e3, (double)ns[n - 1] / 1e3);
}

/* ---- a kernel, or a sandbox, that does not know MADV_WIPEONFORK ---- */

static inline void
refuse_wiping(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		    offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
		/* the lower half of the third argument, little-endian */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		    offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_WIPEONFORK, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]),
		.filter = code };
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == -1)
		die("seccomp");
	if (madvise(page, 4096, MADV_WIPEONFORK) != -1 || errno != EINVAL)
		die("the filter does not refuse");
	munmap(page, 4096);
}

#endif
