/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer - what the agent says: the bodies of its replies, a refusal in words
 * with its figures, the status document.  It decides nothing.
 */
#ifndef ANSWER_H
#define ANSWER_H

#include "clock.h"
#include "conf.h"
#include "firn-wire.h"
#include "lease.h"
#include "serve.h"
#include "status.h"

#define ANSWER_BATCH_MAX (WIRE_BATCH_SIZE + WIRE_RUNS_MAX * WIRE_RUN_SIZE)
#define ANSWER_REFUSAL_MAX (WIRE_REFUSAL_SIZE + WIRE_TEXT_MAX)

/* What the words are about: all of it is read only. */
struct answer_view {
	const struct conf *conf;
	const struct serve *serve;
	const struct clock *clk;
	const struct lease *lease;
	const struct instant *now;
};

/* Returns the length of the body. */
uint32_t answer_put_batch(uint8_t body[ANSWER_BATCH_MAX],
    const struct gen_grant *grant, mono_t boot, int64_t ttl_ms);

uint32_t answer_put_refusal(uint8_t body[ANSWER_REFUSAL_MAX],
    int64_t retry_after_ms, const char *words);

uint32_t answer_put_contract(
    uint8_t body[WIRE_CONTRACT_SIZE], const struct answer_view *v);

/*
 * Why, with figures: "clock_back: the clock went back by 3600000 ms; ...".
 * `behind` is how far ahead of this agent's clock a single request's `after`
 * lies, where that is why; else 0.
 */
void answer_words(const struct answer_view *v, enum gate_reason reason,
    int64_t behind, char *buf, size_t n);

/* The lease's part and what the agent knows; clients and batches are told. */
void answer_fill_status(const struct answer_view *v, uint64_t clients,
    uint64_t batches, struct status_doc *d);

#endif
