/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout - how the bits of an ID are divided; put together, taken apart.
 * Pure.  In libfirn, firnd and firn.
 */
#ifndef LAYOUT_H
#define LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "firn.h"

#define LAYOUT_TEXT_MAX 40 /* "39/s8/w5+11@10ms" and its NUL */

/* Epoch of the firn preset and of custom splits: 2025-01-01T00:00:00Z. */
#define LAYOUT_EPOCH_MS INT64_C(1735689600000)

/*
 * Bits add up to at most 64, time and sequence have at least one, time at
 * most 62 (so that a tick fits an int64_t), tick_ms 1 to 3600000, epoch from
 * 1970 to 9999, and the last tick ends within an int64_t of milliseconds.
 */
bool layout_valid(const struct firn_layout *l);

/*
 * The same ID space: same bits, order, tick and epoch.  Names and the
 * datacenter's share of the worker bits, which change no ID, are not compared.
 */
bool layout_equal(const struct firn_layout *a, const struct firn_layout *b);

/*
 * Reads "41/10/12" or "41/5+5/12" (datacenter + worker) into *l, with the
 * firn preset's epoch, named "custom".  "39/s8/w16" is time, sequence, worker
 * in that order.  "@10ms" or "@1s" at the end is the tick, else it is 1 ms.
 * FIRN_EINVAL, *l untouched, with *where (if not NULL) at the fault: the
 * character that does not belong, or the start of what does not fit.
 */
int layout_parse_bits(const char *text, struct firn_layout *l, size_t *where);

/* Writes the bits as layout_parse_bits() reads them. */
void layout_format_bits(const struct firn_layout *l, char buf[LAYOUT_TEXT_MAX]);

uint64_t layout_tick_max(const struct firn_layout *l);
uint64_t layout_worker_max(const struct firn_layout *l);
uint64_t layout_sequence_max(const struct firn_layout *l);

/* Distance between neighbouring sequences of one tick and worker. */
uint64_t layout_stride(const struct firn_layout *l);

/*
 * Puts an ID together.  False, with *id untouched, if a part does not fit
 * its field: a full field is a refusal, never a spill into its neighbour.
 */
bool layout_compose(const struct firn_layout *l, uint64_t tick, uint64_t worker,
    uint64_t sequence, uint64_t *id);

/* The reverse.  False, all untouched, if id has bits above the layout's. */
bool layout_split(const struct firn_layout *l, uint64_t id, uint64_t *tick,
    uint64_t *worker, uint64_t *sequence);

/*
 * The tick that holds an instant; negative before the epoch (floor).  The two
 * conversions saturate where an int64_t ends; no valid tick comes near.
 */
int64_t layout_tick_of(const struct firn_layout *l, int64_t unix_ms);

/* The first millisecond of a tick. */
int64_t layout_tick_start_ms(const struct firn_layout *l, int64_t tick);

/* First millisecond after the last tick: from then on nothing is issued. */
int64_t layout_end_ms(const struct firn_layout *l);

/*
 * The instant from which IDs do not fit a signed integer of 64 bits.  False:
 * they always do.
 */
bool layout_sign_ms(const struct firn_layout *l, int64_t *unix_ms);

#endif
