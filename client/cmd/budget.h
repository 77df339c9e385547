/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget - what a layout gives and costs: until when, for how many, how fast;
 * what agents ask of ZooKeeper; how likely random IDs collide.  No I/O.
 */
#ifndef BUDGET_H
#define BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "firn.h"

#define BUDGET_NUMBER_MAX 32 /* "18,446,744,073,709,551,615" and its NUL */
#define BUDGET_FIELDS 3 /* time, worker, sequence */
#define BUDGET_SAFE_BITS 53 /* integers that a double holds one by one */

struct budget {
	int64_t last_ms; /* the last instant that has IDs */
	int64_t span_tenths; /* of a year, from the epoch to there */
	bool has_sign; /* 64 bits: negative as signed, from ... */
	int64_t sign_ms;
	bool has_unsafe; /* over 53 bits: above 2^53 from ... */
	int64_t unsafe_ms;
	uint64_t workers; /* that the field holds */
	uint64_t agents; /* of which so many leave a quarter */
	/* IDs a second, UINT64_MAX for more than that */
	uint64_t worker_rate, fleet_rate;
};

void budget_of(const struct firn_layout *l, struct budget *out);

/* Tenths of a year (of 365.2425 days) in so many milliseconds. */
int64_t budget_year_tenths(int64_t ms);

enum budget_field { BUDGET_TIME, BUDGET_WORKER, BUDGET_SEQUENCE };

/* The layout with a bit taken from one field and given to another. */
FIRN_CHECK_RESULT bool budget_move_bit(const struct firn_layout *l,
    enum budget_field from, enum budget_field to, struct firn_layout *out);

/* What so many agents ask of ZooKeeper, with the default times. */
struct budget_load {
	uint64_t write_tenths; /* a second */
	uint64_t read_tenths;
	uint64_t log_bytes; /* a day */
};

void budget_load(uint64_t agents, struct budget_load *out);

/* "90d" in ms; units s, m, h, d, y (365 days).  False: it is none. */
FIRN_CHECK_RESULT bool budget_duration(const char *text, int64_t *ms);

/* ---- collisions of random IDs ---- */

struct budget_kind {
	const char *name;
	unsigned random_bits;
	int64_t unit_ms; /* collides within the same; 0: with any other */
	const char *within;
};

#define BUDGET_KINDS 4
extern const struct budget_kind budget_kinds[BUDGET_KINDS];

/*
 * How many pairs of equal IDs to expect: at `rate` a second, for so long,
 * arriving at random, each of all random bits.
 */
double budget_collisions(
    const struct budget_kind *kind, uint64_t rate, int64_t ms);

/*
 * The number rounded to two digits: "11000000000".  With marks it is for
 * people: "11,000,000,000", and from 10^15 on "1.1 x 10^15".
 */
void budget_round(double v, bool marks, char *buf, size_t n);

/* "4,194,304,000" */
void budget_group(uint64_t v, char buf[BUDGET_NUMBER_MAX]);

#endif
