/* SPDX-License-Identifier: Apache-2.0 */
/*
 * odd - nodes of a realm that make no sense, as alerts: each is one, names its
 * node and says what is wrong.  No I/O.
 */
#ifndef ODD_H
#define ODD_H

#include "fleet.h"

#define ODD_MAX 64 /* alerts; the last one says how many more there are */
#define ODD_NAMES_MAX 8 /* of one parent; more are one alert */

struct odd {
	struct fleet_alert alert[ODD_MAX];
	size_t n; /* alerts */
	size_t more; /* nodes that have none of their own */
};

/* "claim NAME: what", "mark 0017: what"; worker may be NO_WORKER. */
void odd_add(struct odd *o, const char *kind, uint64_t worker, const char *what,
    const char *name, const char *fault);

/* Children of one parent whose names are none of ours: told at its end. */
struct odd_names {
	const char *name[ODD_NAMES_MAX];
	size_t n;
};
void odd_take_name(struct odd_names *names, const char *name);
void odd_add_names(
    struct odd *o, const struct odd_names *names, const char *what);

#endif
