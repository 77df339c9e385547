/* SPDX-License-Identifier: Apache-2.0 */
/* state_private - what the files of state share. */
#ifndef STATE_PRIVATE_H
#define STATE_PRIVATE_H

#include <sys/stat.h>

#include "record.h"

#define STATE_FILE "state"
#define STATE_FILE_NEW "state.new" /* never read */
#define STATE_LOCK "lock"

struct event_base;

/* ---- state_lock: directory, lock, and where we are ------------------------- */

struct state_lock {
	dev_t dev; /* of the lock's file */
	ino_t ino;
	int dir; /* -1: not open */
	int fd; /* locked; -1: not open */
	struct record_home home;
};

/* sync: whatever it makes is on disk when it returns.  0, or -1 with err. */
FIRN_CHECK_RESULT int state_lock_take(
    struct state_lock *l, const char *dir, bool sync, struct doc_error *err);

/* Is the lock still the file of that name?  0, or an errno. */
FIRN_CHECK_RESULT int state_lock_check(const struct state_lock *l);

void state_lock_release(struct state_lock *l);

/* ---- state_file: the file itself ------------------------------------------- */

/* What failed: errno and the step, in words that follow "cannot ". */
struct state_failure {
	int error; /* 0: nothing */
	const char *step;
};

void state_failure_tell(
    const struct state_failure *f, const char *dir, struct doc_error *err);

#define STATE_FILE_MISSING (-2)
#define STATE_FILE_UNREAD (-3) /* for want of descriptors, memory, a disk */

/*
 * At most n bytes of the file, if it is a plain file of ours.  The number
 * read, STATE_FILE_MISSING, or -1 or STATE_FILE_UNREAD with one line in err.
 */
FIRN_CHECK_RESULT ssize_t state_file_read(
    const struct state_lock *l, char *buf, size_t n, struct doc_error *err);

/*
 * Puts a file with these bytes in the place of whatever is there.  Before the
 * rename it checks the lock.  *fd (if not NULL): the new file, open.
 */
struct state_failure state_file_replace(const struct state_lock *l,
    const char bytes[RECORD_SIZE], bool sync, int *fd);

/* In place, into a file that state_file_replace() opened. */
struct state_failure state_file_overwrite(
    int fd, const char bytes[RECORD_SIZE]);

/* Removes the file, or at least what is in it. */
struct state_failure state_file_void(const struct state_lock *l);

/* ---- state_disk: replacing it in a thread ----------------------------------- */

struct state_disk;

typedef void state_disk_fn(void *arg, const struct state_failure *f);

/* The lock must outlive it. */
struct state_disk *state_disk_open(struct event_base *base,
    const struct state_lock *l, state_disk_fn *fn, void *arg);

bool state_disk_busy(const struct state_disk *d);

/* Not while busy.  fn() will tell, on the loop's thread. */
void state_disk_write(struct state_disk *d, const char bytes[RECORD_SIZE]);

/*
 * Waits for a write under way.  False: it took longer than that; the thread
 * and what it uses (the lock) are left to it for ever.
 */
FIRN_CHECK_RESULT bool state_disk_close(struct state_disk *d, int wait_ms);

#endif
