/* SPDX-License-Identifier: Apache-2.0 */
/* uuid - UUIDs as RFC 9562 has them, put together from their fields.  Pure. */
#ifndef UUID_H
#define UUID_H

#include "bytes.h"
#include "firn.h"
#include "rising.h"

/* The counter of a UUIDv7: rand_a, and rand_b below it. */
#define UUID7_A_BITS 12
#define UUID7_B_BITS 62
#define UUID_MS_MAX ((UINT64_C(1) << 48) - 1)

extern const struct rising_shape uuid7_shape;

/* Sets version and variant; the other 122 bits stay. */
static inline void
uuid4_stamp(uint64_t *high, uint64_t *low)
{
	*high = (*high & ~UINT64_C(0xf000)) | UINT64_C(0x4000);
	*low = (*low & rising_mask(62)) | UINT64_C(1) << 63;
}

/* ms of 48 bits, a of 12, b of 62. */
static inline void
uuid7_compose(unsigned char out[16], uint64_t ms, uint64_t a, uint64_t b)
{
	bytes_put64(out, ms << 16 | UINT64_C(0x7000) | a);
	bytes_put64(out + 8, UINT64_C(1) << 63 | b);
}

#endif
