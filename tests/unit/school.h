/* SPDX-License-Identifier: Apache-2.0 */
/* school - long division as it is taught there: another way to digits. */
#ifndef SCHOOL_H
#define SCHOOL_H

#include <stddef.h>

/* Divides a big-endian number of so many bytes in place; gives the rest. */
static inline unsigned
school_divide(unsigned char *n, size_t length, unsigned by)
{
	unsigned rest = 0;

	for (size_t i = 0; i < length; i++) {
		rest = rest * 256 + n[i];
		n[i] = (unsigned char)(rest / by);
		rest %= by;
	}
	return (rest);
}

#endif
