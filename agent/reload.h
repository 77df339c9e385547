/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reload - the configuration read again, at SIGHUP: what needs no restart is
 * taken in, what does is named.
 *
 * Invariant: a configuration that will not do changes nothing.
 */
#ifndef RELOAD_H
#define RELOAD_H

#include "conf.h"

struct reload {
	struct conf *conf; /* in use */
	int argc; /* as at the start: flags win, now as then */
	char **argv;
	uint64_t done, failed;
};

/*
 * True: *conf may have changed, and whoever keeps a copy of a key has to be
 * told.  There is a line in the log either way.
 */
bool reload_run(struct reload *r);

#endif
