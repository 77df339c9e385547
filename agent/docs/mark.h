/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mark - a worker ID's high-water mark with its owner's status as JSON and
 * back; the same without a ceiling for a claim that owns no mark yet.
 * 64-bit numbers are decimal strings: cJSON's doubles carry none of them.
 */
#ifndef MARK_H
#define MARK_H

#include "doc.h"
#include "records.h"

#define MARK_DOC_MAX 1024

/* No layout has a tick above it, so that sums of two ticks stay numbers. */
#define MARK_CEILING_MAX ((INT64_C(1) << 62) - 1)

/*
 * Clocks further off than this (126 years) are written as this far off, so
 * that the sum of two thousand of them stays a number.
 */
#define MARK_OFFSET_US_MAX INT64_C(4000000000000000)

/*
 * Unknown keys are ignored; a status that is missing or odd leaves *st
 * empty (state ""), a mark that is odd is an error. st may be NULL.
 */
FIRN_CHECK_RESULT int mark_parse(const char *text, size_t length,
    struct mark *out, struct agent_status *st, struct doc_error *err);

/*
 * The length, or -1 if it does not fit or mark_parse() would not take it.
 * st may be NULL.
 */
FIRN_CHECK_RESULT int mark_format(
    const struct mark *m, const struct agent_status *st, char *buf, size_t n);

/* As above, but here a status that is missing or odd is an error. */
FIRN_CHECK_RESULT int claim_doc_parse(const char *text, size_t length,
    struct agent_status *st, struct doc_error *err);
FIRN_CHECK_RESULT int claim_doc_format(
    const struct agent_status *st, char *buf, size_t n);

#endif
