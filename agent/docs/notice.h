/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notice - one alert, raised or cleared, as the JSON that alert_command reads.
 *
 * Invariant: it fits NOTICE_DOC_MAX, whatever the texts hold.
 */
#ifndef NOTICE_H
#define NOTICE_H

#include "doc.h"
#include "types.h"

#define NOTICE_DOC_MAX 4096
#define NOTICE_TEXT_MAX 512

struct notice {
	const char *kind, *severity;
	bool raised; /* else cleared */
	const char *realm;
	const char *host; /* "": not known */
	uint64_t worker; /* NO_WORKER: none */
	int64_t since_ms; /* Unix time */
	bool has_value, has_limit;
	int64_t value, limit;
	const char *text; /* one line for people */
};

/* One line with its end; the length, -1 if it does not fit. */
FIRN_CHECK_RESULT int notice_format(
    const struct notice *x, char *buf, size_t n);

#endif
