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

#include "record.h"

struct event_base;
struct state;

enum state_found {
	STATE_NONE, /* no file */
	STATE_FLOOR, /* readable, but of another boot or machine: its marks
		      * are a floor, nothing may be resumed */
	STATE_COPIED, /* the same, and its lock is another file: a copy, a
		       * restored one, or the lock was removed.  The process
		       * that wrote it may still live elsewhere: without
		       * ZooKeeper nothing else would tell the two apart */
	STATE_RESUME, /* written under this lock in this boot */
	STATE_GARBLED, /* there, but torn, truncated, odd, or not ours */
	STATE_UNREAD, /* there, but not to be read now: what it says may well
		       * be readable the next time */
};

/*
 * Checks the directory (made if missing, mode 0700; owner must be us or root,
 * nobody else may write), takes the lock.  NULL with one line in err: not
 * usable, or locked by another process (the line names its pid).
 * base is used by the disk form; `done` tells of its writes.
 */
struct state *state_open(struct event_base *base, const char *dir, bool disk,
    void (*done)(void *arg, bool good), void *arg, struct doc_error *err);

/*
 * Reads the file as it stands now.  *out is filled in unless STATE_NONE,
 * STATE_GARBLED or STATE_UNREAD; err has one line that says why it is not STATE_RESUME.
 */
enum state_found state_read(
    const struct state *s, struct state_record *out, struct doc_error *err);

/*
 * Memory form: writes now; false with one line in err if it failed.  Disk
 * form: hands the record to the thread, one at a time (false: one is under
 * way); done() tells, on the loop's thread, and may write again.  Never blocks
 * on a disk.
 *
 * After a failed write the memory form's file may be garbled, never wrong; the
 * disk form's is the one before, or the new one if it was the last fsync that
 * failed.
 */
bool state_write(
    struct state *s, const struct state_record *r, struct doc_error *err);

/* What failed in the disk form's last write, as one line; "" after a good one.
 */
const char *state_trouble(const struct state *s);

/*
 * Removes the file, or at least its contents, so that nothing can be resumed
 * from it.  False with one line in err; also while a write is under way.
 */
bool state_remove(struct state *s, struct doc_error *err);

/*
 * Waits for a write under way, closes, keeps the file; done() is not called
 * any more.  A disk that does not answer for five seconds is left to itself:
 * the lock then stays with the process until it ends.  NULL is fine.
 */
void state_close(struct state *s);

#endif
