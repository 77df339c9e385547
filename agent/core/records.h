/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records - what stands in ZooKeeper, as plain structs: the realm's contract,
 * marks, claims' names.  docs/ turns them into JSON and back; the core works
 * on them.
 */
#ifndef RECORDS_H
#define RECORDS_H

#include "types.h"

#define UUID_BYTES 16
#define UUID_TEXT_MAX 37
#define GENERATION_MAX 24 /* "1-9f3a21c4" */
#define REALM_NAME_MAX 64
#define CLAIM_PREFIX_MAX 64 /* "UUID-w-" or "UUID-wNNNN-" */
#define CLAIM_NAME_MAX 80 /* prefix and ten digits */
#define HOST_NAME_MAX_TEXT 65
#define REALM_FORMAT 1
#define WORKERS_MAX UINT64_C(1048576) /* most worker IDs claims may use */

/* The contract: /firn/REALM. */
struct contract {
	int64_t format;
	uint8_t uuid[UUID_BYTES];
	int64_t generation; /* the number in ... */
	char
	    generation_text[GENERATION_MAX]; /* ... number-tag; part of paths */
	struct firn_layout layout;
	int64_t not_before_ms; /* whatever is issued lies above it */
	int64_t reserve_max_ms; /* no window is longer */
	uint64_t worker_first, worker_last; /* what claims may use */
};

/* Random name of one write of a mark. */
struct tag {
	uint64_t word[2];
};

/* A mark: /firn/REALM/marks.G/NNNN.  What the core decides by. */
struct mark {
	int64_t ceiling; /* last tick for which IDs may have been issued */
	char owner[CLAIM_NAME_MAX]; /* name of the owner's claim */
	struct tag tag;
};

/* The owner's status, carried by its mark (or by a claim without one). */
struct agent_status {
	char state[16]; /* as in `firn status` */
	char reason[24]; /* empty while serving */
	char host[HOST_NAME_MAX_TEXT];
	char version[16];
	int64_t pid;
	uint8_t boot_id[UUID_BYTES];
	bool has_offset; /* the next four are measured */
	int64_t offset_us; /* own clock minus ZooKeeper's */
	int64_t error_us;
	int64_t stamp_ms; /* ZooKeeper's stamp of the write that measured it */
	int64_t epoch; /* leader's epoch; 0 on a standalone server */
	int64_t skew_us; /* against the peer average */
	bool has_rate;
	int64_t ids_per_s; /* lately; for people */
};

/* A claim's node name, taken apart. */
struct claim_name {
	uint8_t uuid[UUID_BYTES];
	bool named; /* "-wNNNN-": asks for one worker ID */
	uint64_t wanted; /* NNNN, if named */
	uint32_t counter; /* what ZooKeeper appended */
};

/* Writes "UUID-w-" (worker NO_WORKER) or "UUID-wNNNN-". */
void claim_name_prefix(const uint8_t uuid[UUID_BYTES], uint64_t worker,
    char out[CLAIM_PREFIX_MAX]);

/* Strict: lower-case UUID with hyphens, "-w", digits, "-", ten digits. */
bool claim_name_parse(const char *name, struct claim_name *out);

/* The worker ID that a claim stands for; NO_WORKER if it is out of range. */
uint64_t claim_name_worker(
    const struct claim_name *n, const struct contract *k);

/* "0017": the worker ID whose mark has that name; NO_WORKER: nobody's. */
uint64_t mark_name_worker(const char *name, const struct contract *k);

void uuid_format(const uint8_t uuid[UUID_BYTES], char out[UUID_TEXT_MAX]);
bool uuid_parse(const char *text, uint8_t out[UUID_BYTES]);

#endif
