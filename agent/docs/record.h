/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record - what stands in the state file, as bytes and back: one line of JSON
 * with a checksum at its end, filled up with blanks to a fixed size, so that
 * a record written in place over another leaves nothing of it.
 *
 * Invariant: bytes are a record only if each of them is as it was written.
 */
#ifndef RECORD_H
#define RECORD_H

#include "doc.h"
#include "records.h"

#define RECORD_SIZE 4096 /* all of a file, always: one page */
#define RECORD_FORMAT 1
#define RECORD_MACHINE_MAX 33 /* 32 hexadecimal digits */

/* What stands in the file. */
struct state_record {
	struct contract contract;
	char realm[REALM_NAME_MAX];
	bool open; /* a window may be resumed: the next four */
	char claim[CLAIM_NAME_MAX]; /* whom the mark names */
	int64_t ceiling; /* tick, as confirmed */
	int32_t version; /* of the mark */
	int64_t local_mark; /* tick: nothing was issued above it */
	uint64_t worker; /* also while closed: ask for it first */
	int64_t zxid; /* highest seen */
	bool skew_refused;
	int64_t skew_us;
	int64_t base_ns; /* own time - CLOCK_BOOTTIME */
};

/* Where it was written. */
struct record_home {
	uint64_t lock_dev, lock_ino; /* the lock's file */
	char machine_id[RECORD_MACHINE_MAX]; /* empty: there is none */
	uint8_t boot_id[UUID_BYTES]; /* zero: not known */
};

/*
 * 0, or -1: a field that record_parse() would not take.  Of the contract only
 * the layout is looked at: what realm_parse() gave is good.
 */
FIRN_CHECK_RESULT int record_format(const struct state_record *r,
    const struct record_home *h, char buf[RECORD_SIZE]);

/* 0, or -1 with one line in err ("torn or ...", "only 512 of ..."). */
FIRN_CHECK_RESULT int record_parse(const char *bytes, size_t n,
    struct state_record *r, struct record_home *h, struct doc_error *err);

#endif
