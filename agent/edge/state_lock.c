/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_lock - the state's directory, its lock, and the marks of this machine
 * and boot that records are bound to.
 *
 * Invariant: while the lock is held its inode lives, so no other lock file can
 * have the same device and inode, and no record bound to them is of another
 * process that still runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "state_private.h"

#define LOCK_TRIES 8
#define OTHERS_WRITE (S_IWGRP | S_IWOTH)

/* ---- the directory ----------------------------------------------------------- */

/*
 * Who can write the directory can take our file away or put another in its
 * place; the sticky bit keeps nobody from making one where there is none.
 */
static int
check_dir(int fd, const char *dir, struct doc_error *err)
{
	struct stat st;

	if (fstat(fd, &st) == -1) {
		doc_error_set(
		    err, "state directory %s: %s", dir, strerror(errno));
		return (-1);
	}
	if (st.st_uid != geteuid() && st.st_uid != 0) {
		doc_error_set(err,
		    "state directory %s: belongs to uid %u; it must be uid "
		    "%u's or root's",
		    dir, st.st_uid, geteuid());
		return (-1);
	}
	if ((st.st_mode & OTHERS_WRITE) != 0) {
		doc_error_set(err,
		    "state directory %s: mode %04o lets others write it; "
		    "chmod go-w %s",
		    dir, (unsigned)st.st_mode & 07777, dir);
		return (-1);
	}
	return (0);
}

/* A directory that is gone after a power cut takes the mark with it. */
static int
sync_parent(int fd)
{
	int parent = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc;

	if (parent == -1)
		return (-1);
	rc = fsync(parent);
	(void)close(parent);
	return (rc);
}

static int
open_dir(const char *dir, bool sync, struct doc_error *err)
{
	bool made = mkdir(dir, 0700) == 0;
	int fd = -1;

	if (made || errno == EEXIST)
		fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1 || (made && sync && sync_parent(fd) == -1)) {
		doc_error_set(
		    err, "state directory %s: %s", dir, strerror(errno));
		if (fd != -1)
			(void)close(fd);
		return (-1);
	}
	if (check_dir(fd, dir, err) != 0) {
		(void)close(fd);
		return (-1);
	}
	return (fd);
}

/* ---- the lock ------------------------------------------------------------------ */

static void
tell_held(int fd, const char *dir, struct doc_error *err)
{
	char text[24];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	long pid;

	text[n > 0 ? n : 0] = '\0';
	pid = strtol(text, NULL, 10);
	if (pid > 0)
		doc_error_set(err,
		    "state directory %s: another firnd (pid %ld) uses it", dir,
		    pid);
	else
		doc_error_set(
		    err, "state directory %s: another firnd uses it", dir);
}

/* Is it a file that only we can have locked? */
static int
check_lock(int fd, const char *dir, struct stat *st, struct doc_error *err)
{
	if (fstat(fd, st) == -1) {
		doc_error_set(err, "state lock %s/" STATE_LOCK ": %s", dir,
		    strerror(errno));
		return (-1);
	}
	if (!S_ISREG(st->st_mode) || st->st_nlink > 1) {
		doc_error_set(
		    err, "state lock %s/" STATE_LOCK ": no plain file", dir);
		return (-1);
	}
	if ((st->st_uid != geteuid() && st->st_uid != 0) ||
	    (st->st_mode & OTHERS_WRITE) != 0) {
		doc_error_set(err,
		    "state lock %s/" STATE_LOCK ": uid %u, mode %04o: others "
		    "could hold it",
		    dir, st->st_uid, (unsigned)st->st_mode & 07777);
		return (-1);
	}
	return (0);
}

static bool
is_named(int dir_fd, const struct stat *held)
{
	struct stat named;

	return (fstatat(dir_fd, STATE_LOCK, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
		named.st_dev == held->st_dev && named.st_ino == held->st_ino);
}

/* 0; *fd is -1 if someone removed the file meanwhile. */
static int
try_lock(int dir_fd, const char *dir, int *fd, struct stat *st,
    struct doc_error *err)
{
	int f = openat(dir_fd, STATE_LOCK,
	    O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
	    0600);

	*fd = -1;
	if (f == -1) {
		doc_error_set(err, "state lock %s/" STATE_LOCK ": %s", dir,
		    strerror(errno));
		return (-1);
	}
	if (check_lock(f, dir, st, err) == 0) {
		if (flock(f, LOCK_EX | LOCK_NB) == 0) {
			if (is_named(dir_fd, st))
				*fd = f;
			else
				(void)close(f);
			return (0);
		}
		if (errno == EWOULDBLOCK)
			tell_held(f, dir, err);
		else
			doc_error_set(err, "state lock %s/" STATE_LOCK ": %s",
			    dir, strerror(errno));
	}
	(void)close(f);
	return (-1);
}

/* For the message of a second process; nothing depends on it. */
static int
write_pid(int fd)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());

	if (ftruncate(fd, 0) == -1 || pwrite(fd, text, (size_t)n, 0) != n)
		return (-1);
	return (0);
}

/* ---- machine and boot ---------------------------------------------------------- */

/* The first line of a small file, "" if there is none. */
static void
read_line(const char *path, char *out, size_t size)
{
	FILE *f = fopen(path, "re");

	out[0] = '\0';
	if (f == NULL)
		return;
	if (fgets(out, (int)size, f) == NULL)
		out[0] = '\0';
	(void)fclose(f);
	out[strcspn(out, "\n")] = '\0';
}

/*
 * A file that is removed and made anew may get the same inode: the time of its
 * birth, where the file system keeps one, tells the two apart.
 */
static uint64_t
lock_identity(int fd, const struct stat *lock)
{
	struct statx sx;
	uint64_t born;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &sx) != 0 ||
	    (sx.stx_mask & STATX_BTIME) == 0)
		return ((uint64_t)lock->st_ino);
	born = (uint64_t)sx.stx_btime.tv_sec * UINT64_C(1000000000) +
	       sx.stx_btime.tv_nsec;
	return ((uint64_t)lock->st_ino ^ born * UINT64_C(0x9e3779b97f4a7c15));
}

static void
find_home(struct record_home *h, int fd, const struct stat *lock)
{
	char boot_id[UUID_TEXT_MAX + 1], machine[RECORD_MACHINE_MAX + 1];

	*h = (struct record_home){ .lock_dev = (uint64_t)lock->st_dev,
		.lock_ino = lock_identity(fd, lock) };
	read_line("/proc/sys/kernel/random/boot_id", boot_id, sizeof(boot_id));
	if (!uuid_parse(boot_id, h->boot_id))
		memset(h->boot_id, 0, UUID_BYTES);
	/* Containers often have none, images "uninitialized". */
	read_line("/etc/machine-id", machine, sizeof(machine));
	if (strlen(machine) == RECORD_MACHINE_MAX - 1 &&
	    strspn(machine, "0123456789abcdef") == RECORD_MACHINE_MAX - 1)
		memcpy(h->machine_id, machine, RECORD_MACHINE_MAX);
}

int
state_lock_take(
    struct state_lock *l, const char *dir, bool sync, struct doc_error *err)
{
	struct stat st = { 0 };
	int rc = 0;

	*l = (struct state_lock){ .dir = open_dir(dir, sync, err), .fd = -1 };
	if (l->dir == -1)
		return (-1);
	for (int i = 0; i < LOCK_TRIES && l->fd == -1 && rc == 0; i++)
		rc = try_lock(l->dir, dir, &l->fd, &st, err);
	if (rc == 0 && l->fd == -1) {
		doc_error_set(err,
		    "state lock %s/" STATE_LOCK ": replaced again and again",
		    dir);
		rc = -1;
	}
	/* A lock that is another after a power cut makes the mark a copy. */
	if (rc == 0 &&
	    (write_pid(l->fd) == -1 || (sync && fsync(l->fd) == -1))) {
		doc_error_set(err, "state lock %s/" STATE_LOCK ": %s", dir,
		    strerror(errno));
		rc = -1;
	}
	if (rc != 0)
		state_lock_release(l);
	else {
		l->dev = st.st_dev;
		l->ino = st.st_ino;
		find_home(&l->home, l->fd, &st);
	}
	return (rc);
}

int
state_lock_check(const struct state_lock *l)
{
	struct stat named;

	if (fstatat(l->dir, STATE_LOCK, &named, AT_SYMLINK_NOFOLLOW) == -1)
		return (errno);
	return (named.st_dev == l->dev && named.st_ino == l->ino ? 0 : ESTALE);
}

void
state_lock_release(struct state_lock *l)
{
	if (l->fd != -1)
		(void)close(l->fd);
	if (l->dir != -1)
		(void)close(l->dir);
	l->fd = l->dir = -1;
}
