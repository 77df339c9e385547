/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve - the way of one request: clock, gate, generator, verdict.
 *
 * The caller reads the clocks once per wake-up, observes them (clock_observe)
 * and brings the gate's facts up to date; each request of that wake-up is
 * then answered by serve_batch() with the same instant.
 */
#ifndef SERVE_H
#define SERVE_H

#include "clock.h"
#include "gate.h"
#include "generator.h"
#include "types.h"

struct serve {
	struct gate
	    gate; /* the lease's facts; .clock is taken from the clock */
	struct generator gen;
	int64_t max_lead_ms; /* borrowing; whole ticks, rounded down */
	int64_t refuse_ms; /* `after` further ahead than this: refused */
	uint64_t refusals[16]; /* by reason */
	enum gate_reason last_reason; /* of the last grant or refusal */
};

struct serve_request {
	uint32_t count; /* 0 is answered as 1 */
	uint64_t after;
	unsigned waiting; /* other requests that wait for a tick now: each
			   * has its share of the tick before this one gets
			   * more, and this one gets no second tick */
	unsigned others; /* connected beside this one: the second half of a
			  * long tick opens bit by bit, so that who comes
			  * late in it need not wait for the next */
	uint64_t random;
};

enum serve_verdict {
	SERVE_GRANT, /* .grant holds the runs */
	SERVE_REFUSE, /* .reason, .retry_after_ms */
	SERVE_WAIT, /* ask again at .when, in the order of arrival */
};

struct serve_answer {
	enum serve_verdict verdict;
	struct gen_grant grant;
	enum gate_reason reason;
	int64_t
	    retry_after_ms; /* refusal; 0: it does not pass by itself soon */
	int64_t figure; /* for the words, by reason, in ms:
				 * clock_back: how far the clock, or `after`, is
				 *   from where it could serve
				 * clock_ahead: how far the wall clock leads
				 * before_epoch, epoch_ended: how far off that is
				 * no_claim, window_spent: until the ticks in
				 *   hand may be used, or 0 */
	mono_t when; /* SERVE_WAIT */
};

/* Sets all of it, the gate too: no contract, no window, nothing served. */
void serve_init(struct serve *s, const struct firn_layout *layout,
    bool random_start, int64_t max_lead_ms, int64_t refuse_ms);

/*
 * Answers a request for IDs with the time as it is now.  Takes the gate's
 * worker ID into use, if it is another than the generator's.
 */
void serve_batch(struct serve *s, const struct clock *clk,
    const struct instant *now, const struct serve_request *rq,
    struct serve_answer *out);

/* The gate's verdict without a request (status, /readyz). */
enum gate_reason serve_state(
    const struct serve *s, const struct clock *clk, const struct instant *now);

#endif
