/* SPDX-License-Identifier: Apache-2.0 */
/* ksuid - KSUIDs put together from their fields.  Pure. */
#ifndef KSUID_H
#define KSUID_H

#include "bytes.h"
#include "firn.h"
#include "rising.h"

#define KSUID_EPOCH_S INT64_C(1400000000) /* 2014-05-13T16:53:20Z */
#define KSUID_SIZE 20
#define KSUID_WIDTH 27

extern const struct rising_shape ksuid_shape;

/* Seconds since the KSUIDs' own epoch, and 128 bits of payload. */
static inline void
ksuid_compose(
    unsigned char out[KSUID_SIZE], uint64_t s, uint64_t high, uint64_t low)
{
	bytes_put32(out, (uint32_t)s);
	bytes_put64(out + 4, high);
	bytes_put64(out + 12, low);
}

/* The second of an instant since that epoch; false if there is none. */
static inline bool
ksuid_second(int64_t unix_ms, uint64_t *s)
{
	if (unix_ms < KSUID_EPOCH_S * 1000 ||
	    unix_ms / 1000 - KSUID_EPOCH_S > (int64_t)UINT32_MAX)
		return (false);
	*s = (uint64_t)(unix_ms - KSUID_EPOCH_S * 1000) / 1000;
	return (true);
}

#endif
