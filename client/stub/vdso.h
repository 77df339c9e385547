/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vdso - the kernel's own clock_gettime() and getrandom(), without the C
 * library around them.
 *
 * Invariant: what is found answers as the C library's function does, but gives
 * a negative errno instead of setting it.
 */
#ifndef VDSO_H
#define VDSO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

typedef int (*vdso_clock)(clockid_t id, struct timespec *out);

/*
 * The function that the kernel has mapped into this process (vdso(7)), or
 * clock_gettime() where there is none that can be read.  It holds for as long
 * as the process, and in its children.  Reads memory only; any thread.
 */
vdso_clock vdso_find_clock(void);

/* The same for an image at this address (NULL: none); for tests. */
vdso_clock vdso_find_clock_in(const void *image);

/*
 * The kernel's getrandom() that makes no system call (Linux 6.11), with the
 * same bytes as the one that does: reseeded when the kernel is.  What it needs
 * for that lies in memory of the caller's, one piece a thread, mapped as the
 * kernel says: with flags that wipe it in a child and take it back when memory
 * is short.
 */
typedef ssize_t (*vdso_random)(
    void *p, size_t n, unsigned flags, void *state, size_t state_size);

struct vdso_random_params {
	uint32_t state_size, mmap_prot, mmap_flags;
	uint32_t reserved[13];
};

/* As vdso_find_clock(); NULL where there is none. */
vdso_random vdso_find_random(struct vdso_random_params *out);

#endif
