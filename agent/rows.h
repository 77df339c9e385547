/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows - the agents of a fleet as the page shows them, by trouble.  No I/O.
 */
#ifndef ROWS_H
#define ROWS_H

#include "audit.h"

/* The worst first.  Names are those of classes in the page. */
enum row_level { ROW_BAD, ROW_WARN, ROW_GOOD };
#define ROW_LEVELS 3

/* Texts are the members' or the summary's own, which must outlive it. */
struct row {
	enum row_level level;
	uint64_t worker;
	const char *host, *state, *reason;
	bool has_skew;
	int64_t skew_us, error_us;
	bool has_left;
	int64_t left_ms; /* of its window, by its own clock */
	bool has_rate;
	int64_t ids_per_s;
	bool has_age;
	int64_t age_ms; /* since its last write */
};

struct rows_limits {
	int64_t warn_us; /* skew_warn_ms */
	int64_t stale_ms; /* who wrote before that is in trouble */
};

void row_of_member(struct row *r, const struct audit_member *m, int64_t now_ms,
    const struct rows_limits *k);
void row_of_worst(struct row *r, const struct audit_worst *w, int64_t age_ms,
    const struct rows_limits *k);

/* By level, by skew, by worker ID. */
void rows_sort(struct row *rows, size_t n);

const char *row_level_name(enum row_level level);

/* What stands because rows say so: one for each reason to refuse, and skew. */
#define ROWS_ALERTS_MAX 16
#define ROWS_WORDS_MAX 240
struct rows_alert {
	bool critical;
	char kind[24]; /* clock_skew; the state where there is no reason */
	char text[ROWS_WORDS_MAX];
};

/* How many. */
size_t rows_alerts(const struct row *rows, size_t n,
    const struct rows_limits *k, struct rows_alert out[ROWS_ALERTS_MAX]);

#endif
