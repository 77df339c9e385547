/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state - the state file: lock, reading and writing.  Two forms: memory
 * (/run/firn, with ZooKeeper: plain writes in place of the whole record, no
 * fsync) and disk (/var/lib/firn, static and ordinal: write, fsync, rename,
 * fsync of the directory, in a helper thread).
 *
 * Invariant: the lock is a file of its own, never replaced, held for the life
 * of the process; a record counts for resuming only if it was written under
 * this very lock (device and inode), on this machine, in this boot.
 */
#ifndef STATE_H
#define STATE_H

#include "doc.h"
#include "records.h"
#include "types.h"

struct event_base;
struct state;

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

enum state_found {
	STATE_NONE, /* no file */
	STATE_FLOOR, /* readable, but of another boot, host or lock: its marks
	                * are a floor, nothing may be resumed */
	STATE_RESUME, /* written under this lock in this boot */
	STATE_GARBLED, /* there, but torn, truncated, odd, or not ours */
};

/*
 * Checks the directory (made if missing, mode 0700; owner must be us or root,
 * nobody else may write), takes the lock, reads the file.  NULL with one line
 * in err: not usable, or locked by another process (the line names its pid).
 * base is used by the disk form; `done` tells of its writes.
 */
struct state *state_open(struct event_base *base, const char *dir, bool disk,
    void (*done)(void *arg, bool good), void *arg, struct doc_error *err);

enum state_found state_read(
    const struct state *s, struct state_record *out, struct doc_error *err);

/*
 * Memory form: writes now; false with one line in err if it failed.  Disk
 * form: hands the record to the thread, one at a time (false: one is under
 * way); done() tells.  Never blocks on a disk.
 */
bool state_write(
    struct state *s, const struct state_record *r, struct doc_error *err);

/* Removes the file, so that nothing can be resumed from it. */
bool state_remove(struct state *s, struct doc_error *err);

/* Waits for a write under way, closes, keeps the file.  NULL is fine. */
void state_close(struct state *s);

#endif
