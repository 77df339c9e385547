/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary - a fleet's audit as JSON and back: what /firn/REALM/fleet holds.
 */
#ifndef SUMMARY_H
#define SUMMARY_H

#include "audit.h"
#include "doc.h"

#define SUMMARY_DOC_MAX DOC_SIZE_MAX /* 64 KiB, whatever is in it */
#define SUMMARY_WORDS_MAX 200

/* The length, or -1 if it does not fit; into SUMMARY_DOC_MAX it always does. */
FIRN_CHECK_RESULT int summary_format(
    const struct audit *a, char *buf, size_t n);

/*
 * Unknown keys and alerts of unknown kinds are ignored; lists that are missing
 * are empty.  Of what is not in the document (worker IDs as ranges) the counts
 * alone are read.  -1 with one line in err: *out is then worth nothing.
 */
FIRN_CHECK_RESULT int summary_parse(
    const char *text, size_t length, struct audit *out, struct doc_error *err);

/* "3 of 1024 worker IDs are free": an alert in words, with its figures. */
void summary_alert_words(
    const struct audit_alert *a, char buf[SUMMARY_WORDS_MAX]);

#endif
