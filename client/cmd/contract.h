/* SPDX-License-Identifier: Apache-2.0 */
/* contract - a realm's contract for people, and its successors. */
#ifndef CONTRACT_H
#define CONTRACT_H

#include "tree.h"

#define CONTRACT_SKEW_MS 10000 /* how far ahead an agent's clock may be */
#define CONTRACT_SKEW_MS_MAX INT64_C(86400000)

#define CONTRACT_OPT_SKEW(type)                                               \
	{                                                                     \
		"skew-refuse", 0, CMD_NUMBER, offsetof(type, skew_refuse_ms), \
		    "MS",                                                     \
		    "how far ahead an agent's clock may be (its\n"            \
		    "skew_refuse_ms); default 10000",                         \
		    0, CONTRACT_SKEW_MS_MAX                                   \
	}

/* Random bytes of the kernel; false only on a kernel without them. */
FIRN_CHECK_RESULT bool contract_random(void *buf, size_t n);

/* Gives k the next generation, above `above` too. */
FIRN_CHECK_RESULT int contract_advance(
    const struct tree *t, struct contract *k, int64_t above);

/* Reads --workers into k, whose layout must hold them; CMD_USAGE if not. */
FIRN_CHECK_RESULT int contract_range(
    const char *command, const char *text, struct contract *k);

/* Prints it; agents: -1 if nobody counted. */
void contract_print(
    const char *realm, const struct contract *k, int64_t agents);

/*
 * Puts the successor of a contract in the place of `old`, on a tree that
 * agents may be using: k is what shall hold, but for generation and
 * not_before, which this sees to.
 */
FIRN_CHECK_RESULT int contract_supersede(const struct tree *t,
    const struct tree_realm *old, struct contract *k, int64_t skew_refuse_ms);

/* Says until when agents will wait, if they will. */
void contract_say_wait(const struct tree *t, const struct contract *k);

#endif
