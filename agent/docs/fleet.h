/* SPDX-License-Identifier: Apache-2.0 */
/* fleet - the document of `firn fleet --json`: rows and figures as JSON. */
#ifndef FLEET_H
#define FLEET_H

#include <stdio.h>

#include "doc.h"
#include "records.h"
#include "rfc3339.h"

/* One agent, as its claim and its mark say.  What is unknown is null. */
struct fleet_row {
	uint64_t worker; /* NO_WORKER: null */
	char host[HOST_NAME_MAX_TEXT];
	int64_t pid; /* 0: null */
	char state[16]; /* "": null (a claim without a readable status) */
	char reason[24]; /* "" while serving */
	bool has_skew;
	int64_t skew_ms;
	bool has_error;
	int64_t error_ms;
	bool has_mark;
	int64_t
	    mark_lead_ms; /* end of the window, ahead of the reader's clock */
	char version[16];
	char claim[CLAIM_NAME_MAX];
};

enum fleet_severity { FLEET_INFO, FLEET_WARNING, FLEET_CRITICAL };

struct fleet_alert {
	char kind[24]; /* "workers_low" */
	enum fleet_severity severity;
	char host[HOST_NAME_MAX_TEXT]; /* "": null, it is the fleet's */
	uint64_t worker; /* NO_WORKER: null */
	char text[200]; /* in words, with its figures */
	char since[RFC3339_TEXT_MAX]; /* "": null, seen just now */
};

/* Who sums the fleet up for all others. */
struct fleet_auditor {
	char claim[CLAIM_NAME_MAX]; /* "": nobody, as far as can be seen */
	char host[HOST_NAME_MAX_TEXT];
	int64_t age_ms; /* of the summary */
};

struct fleet {
	const struct fleet_row *rows;
	size_t nrows;
	const struct fleet_alert *alerts;
	size_t nalerts;
	bool has_offset; /* someone's offset against ZooKeeper is known */
	int64_t mean_offset_ms;
	int64_t spread_ms; /* highest offset minus lowest */
	uint64_t free_workers;
	struct fleet_auditor auditor;
};

/* Writes the document and a newline.  -1: out took not all of it. */
FIRN_CHECK_RESULT int fleet_print(const struct fleet *f, FILE *out);

/* Does a critical alert stand?  Then `firn fleet` exits with 2. */
bool fleet_is_critical(const struct fleet *f);

const char *fleet_severity_name(enum fleet_severity s);

#endif
