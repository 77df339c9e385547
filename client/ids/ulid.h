/* SPDX-License-Identifier: Apache-2.0 */
/* ulid - ULIDs put together from their fields.  Pure. */
#ifndef ULID_H
#define ULID_H

#include "bytes.h"
#include "firn.h"
#include "rising.h"

#define ULID_MS_MAX ((UINT64_C(1) << 48) - 1)
#define ULID_WIDTH 26

extern const struct rising_shape ulid_shape;

/* ms of 48 bits, high of 16, low of 64. */
static inline void
ulid_compose(unsigned char out[16], uint64_t ms, uint64_t high, uint64_t low)
{
	bytes_put64(out, ms << 16 | high);
	bytes_put64(out + 8, low);
}

#endif
