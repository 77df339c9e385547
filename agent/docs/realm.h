/* SPDX-License-Identifier: Apache-2.0 */
/* realm - the contract of a realm as JSON and back. */
#ifndef REALM_H
#define REALM_H

#include "doc.h"
#include "records.h"

#define REALM_DOC_MAX 1024

/* Limits of reserve_max_ms: a window of a second to one of a day. */
#define REALM_RESERVE_MAX_MS_LOW INT64_C(1000)
#define REALM_RESERVE_MAX_MS_HIGH INT64_C(86400000)
#define REALM_RESERVE_MAX_MS_DEFAULT INT64_C(60000)

/* Returned by realm_parse() for a contract that a later program wrote. */
#define REALM_TOO_NEW 1

/*
 * 0; -1 with one line in err that says what is wrong and where; or
 * REALM_TOO_NEW with the same, and nothing but out->format filled in: the
 * realm's format is above REALM_FORMAT, and what else it says is unknown.
 */
FIRN_CHECK_RESULT int realm_parse(const char *text, size_t length,
    struct contract *out, struct doc_error *err);

/* Returns the length, -1 if it does not fit. */
FIRN_CHECK_RESULT int realm_format(
    const struct contract *k, char *buf, size_t n);

/* Is this a name for a realm: 1 to 63 of [A-Za-z0-9._-], not "." or "..". */
bool realm_name_valid(const char *name);

#endif
