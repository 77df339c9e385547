/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ordinal - what an agent without ZooKeeper makes of its configuration: the
 * worker ID at the end of a name, and a realm uuid that every agent with the
 * same configuration derives alike, so that a stub's check works.  Pure.
 */
#ifndef ORDINAL_H
#define ORDINAL_H

#include "records.h"
#include "types.h"

enum ordinal_result {
	ORDINAL_OK,
	ORDINAL_EMPTY, /* no name */
	ORDINAL_NO_DIGITS, /* the name does not end in a digit */
	ORDINAL_OVERFLOW, /* the number is past 64 bits */
	ORDINAL_TOO_LARGE, /* ... or past the layout's worker field */
};

/*
 * The number that the digits at the end of the name make ("ids-7", "ids-007",
 * "7": 7).  *worker is that number also with ORDINAL_TOO_LARGE, for the message,
 * and untouched otherwise.
 *
 * Whether those digits are one host's alone is the operator's word: names
 * with random ends are not for this.
 */
FIRN_CHECK_RESULT enum ordinal_result ordinal_parse(
    const char *name, const struct firn_layout *l, uint64_t *worker);

/* What is wrong, to follow the name in a message. */
const char *ordinal_text(enum ordinal_result result);

/*
 * A UUIDv8 (RFC 9562, section 5.8) of name, bits, order, tick and epoch: what
 * makes an ID space (as in layout_equal()).  It never changes for the same
 * configuration, in any version of this program.
 */
void ordinal_realm_uuid(const char *realm, const struct firn_layout *l,
    uint8_t uuid[UUID_BYTES]);

#endif
