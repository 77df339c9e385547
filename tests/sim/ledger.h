/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger - every ID that was ever issued, exactly: a bit for each sequence of
 * each (worker, tick).  For layouts of six sequence bits.
 */
#ifndef LEDGER_H
#define LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ledger;

struct ledger *ledger_make(void);
void ledger_free(struct ledger *l);

/* Books count sequences from `first` on; how many stood there already. */
unsigned ledger_book(struct ledger *l, uint64_t worker, uint64_t tick,
    unsigned first, unsigned count);

#endif
