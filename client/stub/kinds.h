/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinds - a thread's generators of UUIDs, ULIDs and KSUIDs.
 *
 * Invariant: all-zero is the first state.  It lies in pages that the kernel
 * hands to a fork child as zeros, so a child has neither its parent's random
 * bytes nor its counters.
 */
#ifndef KINDS_H
#define KINDS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "random.h"
#include "rising.h"

#define KINDS_POOL_SIZE 2048

struct kinds {
	struct rising uuid7, ulid, ksuid;
	struct random_source *source;
	uint32_t left; /* bytes not yet given out, at the end of pool[] */
	pid_t pid; /* where the kernel does not wipe: whose memory this is */
	uint8_t pool[KINDS_POOL_SIZE];
};

/*
 * One ID at an instant that the caller names; as the functions of firn.h, but
 * for arguments that must be there.
 */
int kinds_uuid4(struct kinds *k, unsigned char out[16])
    __attribute__((warn_unused_result));
int kinds_uuid7(struct kinds *k, int64_t unix_ms, unsigned char out[16])
    __attribute__((warn_unused_result));
int kinds_ulid(struct kinds *k, int64_t unix_ms, unsigned char out[16])
    __attribute__((warn_unused_result));
int kinds_ksuid(struct kinds *k, int64_t unix_ms, unsigned char out[20])
    __attribute__((warn_unused_result));

#endif
