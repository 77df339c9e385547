/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page - the fleet on one page for a browser, and its figures as JSON, with
 * which the page keeps itself up to date.
 *
 * Invariant: no text of others is in it unescaped, and it loads nothing else.
 */
#ifndef PAGE_H
#define PAGE_H

#include "audit.h"
#include "rows.h"
#include "status.h"

/* Too long a list is cut short, and says how many are not in it. */
struct page_view {
	const struct status_doc *status; /* this agent's own */
	const struct audit *fleet; /* the summary; NULL: none */
	int64_t fleet_age_ms;
	const struct row *rows; /* sorted */
	size_t nrows;
	size_t all; /* agents there are */
	bool whole; /* rows are of all, not only of the worst */
	int64_t rows_age_ms;
	struct rows_limits limits;
};

/*
 * nonce: plain characters, which the policy names too.  The length; -1 if it
 * does not fit.
 */
FIRN_CHECK_RESULT int page_format(
    const struct page_view *v, const char *nonce, char *buf, size_t n);

/* The same as a JSON document. */
FIRN_CHECK_RESULT int page_data_format(
    const struct page_view *v, char *buf, size_t n);

#endif
