/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crockford - Crockford's Base32, 13 wide: upper case without I, L, O, U.
 * The strict form is firn_parse_id()'s.  Pure.
 */
#ifndef CROCKFORD_H
#define CROCKFORD_H

#include "radix.h"

#define CROCKFORD_WIDTH 13

extern const struct radix crockford_radix;

/*
 * What a character typed by a person stands for: upper case, o as 0, i and l
 * as 1; any other character is itself.
 */
char crockford_canonical(char c);

/*
 * The canonical characters of a text, hyphens left out, and where in it each
 * stood; both arrays have room for width + 2.  One more than the width is
 * kept, so that a strict reader sees the surplus.
 */
void crockford_tidy(
    const char *text, size_t width, char *strict, size_t *offset);

/*
 * As the strict form, but canonical characters are made first and hyphens
 * ignored.  *where (if not NULL) is an offset in the text as given.
 */
FIRN_CHECK_RESULT int crockford_parse_lenient(
    const char *text, uint64_t *id, size_t *where);

#endif
