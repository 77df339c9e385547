/* SPDX-License-Identifier: Apache-2.0 */
/*
 * census - the claims and marks of a realm, put together into a fleet's rows,
 * figures and alerts.  No I/O.
 */
#ifndef CENSUS_H
#define CENSUS_H

#include "audit.h"
#include "fleet.h"
#include "mark.h"
#include "odd.h"

#define CENSUS_SPREAD_MS 500 /* clocks further apart are an alert */

struct census_clock {
	bool known;
	int64_t offset_us;
};

struct census {
	struct fleet fleet; /* what it comes to */
	struct fleet_row *rows; /* by worker, then by claim */
	struct census_clock *clocks; /* of the rows */
	struct fleet_alert *alerts;
	struct odd odd; /* nodes that make no sense */
	bool *doubles; /* row i is a younger claim of a worker ID taken */
	const struct contract *k;
};

/* Rows out of the names of the claims.  False: out of memory. */
FIRN_CHECK_RESULT bool census_open(struct census *c, const struct contract *k,
    const char *const *names, size_t n);
void census_close(struct census *c);

/* What a claim's node holds, and the mark of its worker ID. */
void census_add_claim(
    struct census *c, size_t row, const char *text, size_t length);
void census_add_mark(struct census *c, size_t row, const char *text,
    size_t length, int64_t now_ms);

/* A claim that may not be read, or the mark of any worker ID. */
void census_add_denied_claim(struct census *c, size_t row);
void census_add_denied_mark(struct census *c, uint64_t worker);

/* A mark whose worker ID nobody claims. */
void census_add_idle_mark(
    struct census *c, uint64_t worker, const char *text, size_t length);

/* What stands beside the marks. */
void census_add_mark_names(
    struct census *c, const char *const *names, size_t n);

/* Drops rows whose worker is NO_WORKER: claims that went away. */
void census_drop_gone(struct census *c);

bool census_has_doubles(const struct census *c);

/* Keeps only those doubles whose claim was one in the earlier census too. */
void census_keep_doubles(struct census *c, const struct census *earlier);

/* Figures and alerts.  False: out of memory. */
FIRN_CHECK_RESULT bool census_judge(struct census *c, const struct contract *k);

/*
 * After census_judge(): what stands in an auditor's summary that is so old,
 * and since when.
 */
void census_add_summary(
    struct census *c, const struct audit *summary, int64_t age_ms);

#endif
