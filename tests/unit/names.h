/* SPDX-License-Identifier: Apache-2.0 */
/* names - those of made-up nodes in ZooKeeper. */
#ifndef NAMES_H
#define NAMES_H

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "records.h"

/* The claim whose counter was n; good until the fourth from now is asked for. */
static inline const char *
claim_of(uint64_t n)
{
	static char name[4][CLAIM_NAME_MAX];
	static size_t turn;
	char *at = name[turn++ % 4];

	(void)snprintf(at, CLAIM_NAME_MAX,
	    "00000000-0000-4000-8000-%012" PRIx64 "-w-%010" PRIu64, n, n);
	return (at);
}

#endif
