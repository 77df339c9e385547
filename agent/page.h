/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page - the fleet on one page for a browser.
 *
 * Invariant: no text of others is in it unescaped, and it loads nothing.
 */
#ifndef PAGE_H
#define PAGE_H

#include "audit.h"
#include "status.h"

/*
 * The agent's own status and the fleet's summary (NULL: none) of so many
 * milliseconds ago.  The length, -1 if it does not fit.
 */
FIRN_CHECK_RESULT int page_format(const struct status_doc *d,
    const struct audit *fleet, int64_t age_ms, char *buf, size_t n);

#endif
