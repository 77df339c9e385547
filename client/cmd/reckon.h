/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reckon - what the command works out by itself: forms of IDs, bits for so
 * many agents, instants before which nothing is issued, text for a terminal.
 * No I/O.
 */
#ifndef RECKON_H
#define RECKON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "records.h"

/*
 * Which form a text has.  0x and hex digits: hex.  Digits alone, at most 20, without
 * a leading zero: decimal, whatever their number.  Else the length says it: 16
 * hex, 13 Crockford, 11 Base62.  *skip is what precedes the digits (0x).
 */
FIRN_CHECK_RESULT bool reckon_format(
    const char *text, enum firn_format *format, size_t *skip);

/*
 * The smallest worker field of which so many agents leave a quarter free, and
 * as many sequence bits as 41 bits of time leave in 63.  False: too many.
 */
FIRN_CHECK_RESULT bool reckon_layout(uint64_t agents, struct firn_layout *l);

/* "3-7": both ends, or one number.  False with *where at the fault. */
FIRN_CHECK_RESULT bool reckon_range(
    const char *text, uint64_t *first, uint64_t *last, size_t *where);

/*
 * Text of the form 41/10/12 or 41/5+5/12, whatever its sum: *sum.  False:
 * another form, or a number of more than three digits.
 */
FIRN_CHECK_RESULT bool reckon_bits(const char *text, unsigned *sum);

/* RFC 3339, a date alone (midnight UTC), or a number of Unix milliseconds. */
FIRN_CHECK_RESULT bool reckon_instant(
    const char *text, int64_t *unix_ms, size_t *where);

/* Is it an instant but for its time zone?  Nobody guesses at one. */
FIRN_CHECK_RESULT bool reckon_lacks_zone(const char *text);

/* Is it a number that the layout would hold if it were seconds? */
FIRN_CHECK_RESULT bool reckon_is_seconds(
    const char *text, int64_t unix_ms, const struct firn_layout *l);

/*
 * When no window that anyone may hold by now reaches further: so long after
 * now as a window is long and a clock may be ahead.
 */
int64_t reckon_not_before(
    int64_t now_ms, int64_t reserve_max_ms, int64_t skew_refuse_ms);

/*
 * The next generation above both numbers, as "2-9f3a21c4".  False: there is
 * no number left.
 */
FIRN_CHECK_RESULT bool reckon_generation(
    struct contract *k, int64_t above, uint32_t tag);

/* Writes text with control characters as \xNN; cuts what does not fit. */
void reckon_escape(const char *text, char *out, size_t n);

#endif
