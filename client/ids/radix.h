/* SPDX-License-Identifier: Apache-2.0 */
/*
 * radix - a 64-bit number as digits of one base.  Pure; ASCII whatever the
 * locale.
 */
#ifndef RADIX_H
#define RADIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "firn.h"

struct radix {
	const char *digits; /* ascending in ASCII too where order is kept */
	const char *max; /* UINT64_MAX, written; nothing is wider */
	unsigned base; /* how many digits there are */
	size_t width; /* fewest written; leading zeros go no further */
	size_t min_width; /* fewest read */
	bool fold_case; /* upper case reads as lower case */
};

/* A digit's value, or -1 for a character that is none. */
int radix_digit(const struct radix *r, char c);

/* Writes v and a NUL to buf; returns the length. */
size_t radix_write(const struct radix *r, uint64_t v, char buf[FIRN_TEXT_MAX]);

/* As firn_parse_id(), which says the errors; *where must be there. */
FIRN_CHECK_RESULT int radix_read(
    const struct radix *r, const char *text, uint64_t *v, size_t *where);

#endif
