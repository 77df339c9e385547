/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quota - how many IDs a second each uid may take: a bucket a uid that fills
 * at the rate and holds one second of it.
 *
 * Invariant: in any stretch of t seconds a uid takes at most rate + rate * t
 * IDs, whatever the others do.  The table never grows: a bucket that is full
 * knows nothing that a new one would not, so it is the one given up; while
 * there is none, the uids that have no bucket share one.
 */
#ifndef QUOTA_H
#define QUOTA_H

#include "types.h"

#define QUOTA_UIDS 256 /* with a bucket of their own */
#define QUOTA_RATE_MAX INT64_C(1000000000) /* IDs a second */

struct quota_bucket {
	uint32_t uid;
	bool used;
	int64_t level; /* what is left, in billionths of an ID: exact */
	mono_t seen; /* when that was so */
};

struct quota {
	int64_t rate; /* IDs a second; 0: no limit */
	struct quota_bucket bucket[QUOTA_UIDS];
	struct quota_bucket rest; /* of all who have none */
};

/* Nobody has taken anything. */
void quota_init(struct quota *q, int64_t rate, mono_t now);

/* Another rate from now on; what is left stays, as far as it may. */
void quota_set_rate(struct quota *q, int64_t rate, mono_t now);

/* How many of `count` IDs this uid may have now. */
uint32_t quota_left(struct quota *q, uint32_t uid, uint32_t count, mono_t now);

/* It got so many, at most what quota_left() said at this same instant. */
void quota_take(struct quota *q, uint32_t uid, uint32_t count, mono_t now);

/*
 * After quota_left() said 0: when it is worth another try.  For a request for
 * many that is not the first ID but a small batch.
 */
int64_t quota_retry_ms(
    struct quota *q, uint32_t uid, uint32_t count, mono_t now);

#endif
