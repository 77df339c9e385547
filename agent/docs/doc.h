/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doc - what the documents of docs/ share: strict reading of JSON from
 * strangers (size and depth bounded, doubled keys refused, position of a
 * fault), numbers that doubles would spoil, and the one line of an error.
 * Only docs/ sees cJSON: this header does not.
 */
#ifndef DOC_H
#define DOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "firn.h"

#define DOC_ERROR_MAX 240
#define DOC_SIZE_MAX 65536 /* bytes; a longer document is not looked at */
#define DOC_DEPTH_MAX 16 /* objects and lists inside one another */
#define DOC_KEYS_MAX 256 /* keys of one object */

/* "line 3, column 7: ..." or "layout.time_bits: ...". */
struct doc_error {
	char text[DOC_ERROR_MAX];
};

/*
 * Writes the one line: cut if it is too long, control characters replaced.
 * err may be NULL.  Keeps errno.
 */
void doc_error_set(struct doc_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * As "line 3, column 7: fault", for the byte at text[at].  Columns count
 * characters, not bytes: what an editor shows.
 */
void doc_error_at(
    struct doc_error *err, const char *text, size_t at, const char *fault);

/*
 * Is this one JSON document by RFC 8259, valid UTF-8, within the limits above,
 * without NUL in any spelling?  0, or -1 with line and column in err.
 * Allocates nothing.
 */
FIRN_CHECK_RESULT int doc_check(
    const char *text, size_t length, struct doc_error *err);

/*
 * Makes blanks of the comments (to the end of the line after two slashes, and
 * C's) in place; whatever is left keeps its line and column.  -1: a comment
 * has no end.
 */
FIRN_CHECK_RESULT int doc_blank_comments(
    char *text, size_t length, struct doc_error *err);

/* Bytes of the UTF-8 character at p (n > 0 bytes are there), 0 if invalid. */
size_t doc_utf8_length(const char *p, size_t n);

/*
 * Strict: a decimal number, '-' in front if it is negative, no leading zero,
 * nothing else.  False, *out untouched, if it is not or does not fit.
 */
FIRN_CHECK_RESULT bool doc_parse_i64(const char *text, int64_t *out);
FIRN_CHECK_RESULT bool doc_parse_u64(const char *text, uint64_t *out);

#endif
