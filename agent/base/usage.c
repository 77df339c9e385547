/* SPDX-License-Identifier: Apache-2.0 */
/* usage - what this process takes of the machine. */
#include "usage.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define POLL_MAX 256
#define FDS_MAX (1 << 20) /* more are not counted */

static int64_t
us_of(const struct timeval *tv)
{
	return ((int64_t)tv->tv_sec * 1000000 + tv->tv_usec);
}

static void
read_memory(struct usage *out)
{
	FILE *f = fopen("/proc/self/statm", "re");
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t all, resident;

	if (f == NULL)
		return;
	if (fscanf(f, "%" SCNu64 " %" SCNu64, &all, &resident) == 2) {
		out->virtual_bytes = all * page;
		out->resident_bytes = resident * page;
	}
	(void)fclose(f);
}

/* The size of the table of descriptors: none is above it. */
static int
table_size(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[128];
	int size = 0;

	if (f == NULL)
		return (0);
	while (size == 0 && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "FDSize: %d", &size) != 1)
			size = 0;
	(void)fclose(f);
	return (size < FDS_MAX ? size : FDS_MAX);
}

/*
 * Newer kernels (6.2) say how many there are.  Reading the directory instead
 * would make an entry for each; poll() only says which are none.
 */
static uint64_t
count_fds(void)
{
	struct pollfd p[POLL_MAX];
	struct stat st;
	uint64_t count = 0;
	int size;

	if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0)
		return ((uint64_t)st.st_size);
	size = table_size();
	for (int at = 0; at < size; at += POLL_MAX) {
		nfds_t n = 0;

		for (int fd = at; fd < size && n < POLL_MAX; fd++)
			p[n++] = (struct pollfd){ .fd = fd };
		if (poll(p, n, 0) == -1)
			return (0);
		for (nfds_t i = 0; i < n; i++)
			count += (p[i].revents & POLLNVAL) == 0;
	}
	return (count);
}

void
usage_read(struct usage *out)
{
	struct rusage ru;
	struct rlimit rl;

	memset(out, 0, sizeof(*out));
	if (getrusage(RUSAGE_SELF, &ru) == 0)
		out->cpu_us = us_of(&ru.ru_utime) + us_of(&ru.ru_stime);
	if (getrlimit(RLIMIT_NOFILE, &rl) == 0)
		out->max_fds = (uint64_t)rl.rlim_cur;
	read_memory(out);
	out->open_fds = count_fds();
}
