/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hosts - a ZooKeeper connect string, taken apart.  A part of zk.
 */
#ifndef HOSTS_H
#define HOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOSTS_MAX 32
#define HOST_NAME_MAX_BYTES 254 /* with the NUL; DNS allows no more */
#define CHROOT_MAX_BYTES 512 /* with the NUL */

struct host {
	char name[HOST_NAME_MAX_BYTES]; /* IPv6 without brackets */
	uint16_t port;
	bool literal; /* an address: nothing to look up */
};

struct hosts {
	size_t n;
	struct host host[HOSTS_MAX];
	char chroot[CHROOT_MAX_BYTES]; /* "" or "/a/b" */
};

/* NULL and *out, or what is wrong (static text) and *where. */
const char *hosts_parse(const char *text, struct hosts *out, size_t *where);

#endif
