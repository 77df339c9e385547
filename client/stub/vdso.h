/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vdso - the kernel's own clock_gettime(), without the C library around it.
 *
 * Invariant: what is found answers as clock_gettime() does, but gives a
 * negative errno instead of setting it.
 */
#ifndef VDSO_H
#define VDSO_H

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

#endif
