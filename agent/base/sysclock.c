/* SPDX-License-Identifier: Apache-2.0 */
/* sysclock - reads the kernel's clocks, and its randomness. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/timex.h>
#include <time.h>

#include "log.h"
#include "sysclock.h"

#define TRIES 3
#define GOOD_ENOUGH_NS NS_PER_MS

static int64_t
read_ns(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts) == -1) {
		/* Linux has had both clocks since 2.6.39. */
		log_error(
		    "clock %d cannot be read: %s", (int)clock, strerror(errno));
		abort();
	}
	return ((int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec);
}

/*
 * A thread that loses the processor between two readings would see a step
 * where there is none; so the wall is read between two boot readings, and the
 * closest pair of a few is taken.
 */
void
sysclock_read(struct instant *out)
{
	struct instant best = { .error_ns = INT64_MAX };

	for (int i = 0; i < TRIES; i++) {
		int64_t before = read_ns(CLOCK_BOOTTIME);
		int64_t wall = read_ns(CLOCK_REALTIME);
		int64_t after = read_ns(CLOCK_BOOTTIME);

		if (after - before < best.error_ns) {
			best.boot.ns = after;
			best.wall.ns = wall;
			best.error_ns = after - before;
		}
		if (best.error_ns <= GOOD_ENOUGH_NS)
			break;
	}
	*out = best;
}

void
sysclock_kernel(struct sysclock_kernel *out)
{
	struct timex tx = { .modes = 0 };
	int state = clock_adjtime(CLOCK_REALTIME, &tx);

	*out = (struct sysclock_kernel){ .leap = "none" };
	if (state == -1) {
		/* Filters of system calls often know only the older one. */
		tx = (struct timex){ .modes = 0 };
		state = adjtimex(&tx);
	}
	if (state == -1)
		return;
	out->known = true;
	out->synchronized = state != TIME_ERROR && !(tx.status & STA_UNSYNC);
	out->error_us = tx.esterror;
	if ((tx.status & STA_INS) != 0)
		out->leap = "insert";
	else if ((tx.status & STA_DEL) != 0)
		out->leap = "delete";
}

void
sysclock_entropy(struct entropy *out)
{
	unsigned char *p = (unsigned char *)out;
	size_t have = 0;

	while (have < sizeof(*out)) {
		ssize_t n = getrandom(p + have, sizeof(*out) - have, 0);

		if (n > 0)
			have += (size_t)n;
		else if (n == -1 && errno != EINTR) {
			/* Names and tags made without it could repeat. */
			log_error("no random bytes from the kernel: %s",
			    strerror(errno));
			abort();
		}
	}
}
