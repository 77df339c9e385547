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

/* Fresh random bytes from the kernel (getrandom). */
void sysclock_entropy(struct entropy *out);

#endif
