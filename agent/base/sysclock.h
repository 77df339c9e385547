/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sysclock - reads the clocks, once per wake-up: boot, wall, boot; again, at
 * most three times, if the two boot readings differ by more than 1 ms; their
 * distance is the error of the comparison.
 */
#ifndef SYSCLOCK_H
#define SYSCLOCK_H

#include "types.h"

void sysclock_read(struct instant *out);

/* What the kernel says of its wall clock (set by chronyd, ntpd, ...). */
struct sysclock_kernel {
	bool known; /* false: not allowed to ask */
	bool synchronized;
	int64_t error_us; /* its estimate */
	const char *leap; /* "none", "insert", "delete": at the day's end */
};

/* Asks only: nothing is ever changed. */
void sysclock_kernel(struct sysclock_kernel *out);

/* Fresh random bytes from the kernel (getrandom). */
void sysclock_entropy(struct entropy *out);

#endif
