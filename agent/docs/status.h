/* SPDX-License-Identifier: Apache-2.0 */
/* status - the document of `firn status` and /status: JSON and back. */
#ifndef STATUS_H
#define STATUS_H

#include "doc.h"
#include "records.h"

struct status_doc {
	char state[16]; /* claiming serving isolated refusing draining */
	char reason[24]; /* "" while serving */
	char words[200]; /* the reason with its figures, for people */
	char realm[64];
	char uuid[UUID_TEXT_MAX];
	char generation[GENERATION_MAX];
	char layout[FIRN_LAYOUT_NAME_MAX];
	char bits[40];
	int64_t epoch_ms;
	int64_t tick_ms;
	uint64_t worker; /* NO_WORKER: null */
	char claim[CLAIM_NAME_MAX];
	int64_t counter; /* -1: null */
	int64_t mark_ms; /* end of the window, Unix ms; 0: null */
	int64_t window_left_ms;
	char source[12]; /* of the worker ID: zookeeper static ordinal */
	bool connected; /* to ZooKeeper */
	bool has_skew; /* against the peers */
	int64_t skew_ms;
	bool has_offset; /* against ZooKeeper; the next two are measured */
	int64_t offset_ms, error_ms;
	int64_t peers;
	bool has_kernel; /* the kernel's word on its clock; the next three */
	bool kernel_synchronized;
	int64_t kernel_error_ms;
	char kernel_leap[8]; /* none insert delete */
	uint64_t issued, clients, batches, refusals;
	uint64_t denied; /* connections: not_allowed */
	uint64_t limited; /* requests: over max_ids_per_second */
	uint64_t config_reloads, config_reload_failures;
	int64_t pid;
	char version[16];
};

/*
 * Returns the length (below WIRE_STATUS_MAX, whatever the texts hold), -1 if
 * it does not fit into n.
 */
FIRN_CHECK_RESULT int status_format(
    const struct status_doc *d, char *buf, size_t n);

/*
 * For a document of any version: `state` must be there, other keys that are
 * missing or null stay empty (0, NO_WORKER, -1), a wrong type is an error.
 */
FIRN_CHECK_RESULT int status_parse(const char *text, size_t length,
    struct status_doc *out, struct doc_error *err);

#endif
