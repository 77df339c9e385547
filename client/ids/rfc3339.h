/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rfc3339 - instants as text: RFC 3339 in UTC with milliseconds, and back.
 * Pure, whatever the locale and the time zone.
 */
#ifndef RFC3339_H
#define RFC3339_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "firn.h"

#define RFC3339_TEXT_MAX 25 /* "2025-01-01T00:00:00.000Z" and its NUL */

/* The years that four digits can say: 0000 to 9999. */
#define RFC3339_MS_MIN INT64_C(-62167219200000)
#define RFC3339_MS_MAX INT64_C(253402300799999)

/*
 * Writes the instant in UTC.  False, with "" in buf, outside the years 0 to
 * 9999.
 */
FIRN_CHECK_RESULT bool rfc3339_format(
    int64_t unix_ms, char buf[RFC3339_TEXT_MAX]);

/*
 * Strict: "2025-01-01T00:00:00Z", with 1 to 9 digits of fraction if any (what
 * is finer than a millisecond is cut), "Z" or an offset such as "+02:00";
 * upper case, nothing before or after, no leap second (Unix time has none).
 * FIRN_EINVAL: *where (if not NULL) is the offset of the fault.  FIRN_ERANGE:
 * the offset leads outside the years 0 to 9999.
 */
FIRN_CHECK_RESULT int rfc3339_parse(
    const char *text, int64_t *unix_ms, size_t *where);

/*
 * As rfc3339_parse(), or a decimal number of Unix milliseconds in the same
 * span: what --epoch and `firn floor` take.
 */
FIRN_CHECK_RESULT int rfc3339_parse_or_ms(
    const char *text, int64_t *unix_ms, size_t *where);

#endif
