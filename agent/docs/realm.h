/* SPDX-License-Identifier: Apache-2.0 */
/* realm - the contract of a realm as JSON and back. */
#ifndef REALM_H
#define REALM_H

#include "doc.h"
#include "records.h"

#define REALM_DOC_MAX 1024

/* 0, or -1 with one line in err that says what is wrong and where. */
int realm_parse(const char *text, size_t length, struct contract *out,
    struct doc_error *err);
/* Returns the length, -1 if it does not fit. */
int realm_format(const struct contract *k, char *buf, size_t n);

/* Is this a name for a realm: 1 to 63 of [A-Za-z0-9._-], not "." or "..". */
bool realm_name_valid(const char *name);

#endif
