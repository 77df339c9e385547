/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_file - the state file read, replaced, written in place, removed.
 *
 * Invariant: no link is followed and nothing of another's is written into: a
 * file is new, or was made by us.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "state_private.h"

#define READ_FLAGS (O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

static const struct state_failure no_failure = { 0, "" };

static struct state_failure
failure(const char *step)
{
	return ((struct state_failure){ errno, step });
}

void
state_failure_tell(
    const struct state_failure *f, const char *dir, struct doc_error *err)
{
	const char *why = strerror(f->error);

	/* Only a directory that is gone has no room for a new name. */
	if (f->error == ENOENT)
		why = "the directory or its lock was removed";
	else if (f->error == ESTALE)
		why = "its lock was replaced, another firnd may use it";
	doc_error_set(
	    err, "state %s/" STATE_FILE ": cannot %s: %s", dir, f->step, why);
}

/* ---- reading --------------------------------------------------------------- */

static int
check_file(int fd, struct doc_error *err)
{
	struct stat st;

	if (fstat(fd, &st) == -1)
		doc_error_set(err, "%s", strerror(errno));
	else if (!S_ISREG(st.st_mode) || st.st_nlink > 1)
		doc_error_set(err, "no plain file");
	else if (st.st_uid != geteuid() && st.st_uid != 0)
		doc_error_set(err,
		    "belongs to uid %u; it must be uid %u's or root's",
		    st.st_uid, geteuid());
	else if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0)
		doc_error_set(err, "mode %04o instead of 0600",
		    (unsigned)st.st_mode & 07777);
	else
		return (0);
	return (-1);
}

/* It says nothing about the file, which may be as good as ever. */
static bool
is_shortage(int error)
{
	return (error == EMFILE || error == ENFILE || error == ENOMEM ||
		error == EIO);
}

ssize_t
state_file_read(
    const struct state_lock *l, char *buf, size_t n, struct doc_error *err)
{
	int fd = openat(l->dir, STATE_FILE, O_RDONLY | READ_FLAGS);
	size_t used = 0;
	ssize_t got = 1;

	if (fd == -1) {
		if (errno == ENOENT)
			return (STATE_FILE_MISSING);
		if (is_shortage(errno)) {
			doc_error_set(
			    err, "cannot be read: %s", strerror(errno));
			return (STATE_FILE_UNREAD);
		}
		doc_error_set(err, "%s",
		    errno == ELOOP ? "a symbolic link" : strerror(errno));
		return (-1);
	}
	if (check_file(fd, err) != 0) {
		(void)close(fd);
		return (-1);
	}
	while (used < n && got != 0) {
		got = read(fd, buf + used, n - used);
		if (got == -1 && errno != EINTR) {
			doc_error_set(
			    err, "cannot be read: %s", strerror(errno));
			(void)close(fd);
			return (STATE_FILE_UNREAD);
		}
		used += got > 0 ? (size_t)got : 0;
	}
	(void)close(fd);
	return ((ssize_t)used);
}

/* ---- writing --------------------------------------------------------------- */

struct state_failure
state_file_overwrite(int fd, const char bytes[RECORD_SIZE])
{
	size_t used = 0;

	while (used < RECORD_SIZE) {
		ssize_t n =
		    pwrite(fd, bytes + used, RECORD_SIZE - used, (off_t)used);

		if (n == -1 && errno == EINTR)
			continue;
		if (n == 0)
			errno = ENOSPC;
		if (n <= 0)
			return (failure("write it"));
		used += (size_t)n;
	}
	return (no_failure);
}

static struct state_failure
write_new(const struct state_lock *l, int fd, const char *bytes, bool sync)
{
	struct state_failure f = state_file_overwrite(fd, bytes);

	if (f.error != 0)
		return (f);
	if (sync && fsync(fd) == -1)
		return (failure("sync it"));
	/* As late as can be: it is the other process's file now. */
	f = (struct state_failure){ state_lock_check(l), "replace it" };
	if (f.error == 0 &&
	    renameat(l->dir, STATE_FILE_NEW, l->dir, STATE_FILE) == -1)
		f.error = errno;
	return (f);
}

struct state_failure
state_file_replace(const struct state_lock *l, const char bytes[RECORD_SIZE],
    bool sync, int *fd)
{
	struct state_failure f;
	int file;

	/* What a crash left; a link of somebody's goes, not where it leads. */
	(void)unlinkat(l->dir, STATE_FILE_NEW, 0);
	file = openat(l->dir, STATE_FILE_NEW,
	    O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (file == -1)
		return (failure("create " STATE_FILE_NEW));
	f = write_new(l, file, bytes, sync);
	if (f.error != 0)
		(void)unlinkat(l->dir, STATE_FILE_NEW, 0);
	else if (sync && fsync(l->dir) == -1)
		f = failure("sync its directory");
	if (f.error == 0 && fd != NULL)
		*fd = file;
	else
		(void)close(file);
	return (f);
}

/* ---- removing -------------------------------------------------------------- */

/* In a directory that lets no name go the contents still can. */
static bool
empty(const struct state_lock *l)
{
	struct doc_error err;
	int fd = openat(l->dir, STATE_FILE, O_WRONLY | READ_FLAGS);
	bool emptied;

	if (fd == -1)
		return (false);
	emptied = check_file(fd, &err) == 0 && ftruncate(fd, 0) == 0;
	(void)close(fd);
	return (emptied);
}

struct state_failure
state_file_void(const struct state_lock *l)
{
	struct state_failure f;

	(void)unlinkat(l->dir, STATE_FILE_NEW, 0);
	if (unlinkat(l->dir, STATE_FILE, 0) == 0 || errno == ENOENT)
		return (no_failure);
	f = failure("remove it");
	return (empty(l) ? no_failure : f);
}
