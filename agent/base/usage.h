/* SPDX-License-Identifier: Apache-2.0 */
/* usage - what this process takes of the machine. */
#ifndef USAGE_H
#define USAGE_H

#include "types.h"

struct usage {
	int64_t cpu_us;
	uint64_t virtual_bytes, resident_bytes; /* 0: not known */
	uint64_t open_fds, max_fds; /* 0: not known */
};

/* About a millisecond with 10000 descriptors open. */
void usage_read(struct usage *out);

#endif
