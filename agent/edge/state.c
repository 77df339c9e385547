/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state - the state file: what was found in it may be resumed, is a floor, or
 * nothing; and writing it, in memory or on disk.
 *
 * Invariant: what state_write() takes, state_read() gives back.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "state.h"
#include "state_private.h"

#define CLOSE_WAIT_MS 5000

struct state {
	struct state_lock lock;
	char *dir; /* for messages */
	int fd; /* memory form: the file, once it is ours; or -1 */
	bool reads_back; /* a record with this contract does */
	struct contract contract;

	struct state_disk *disk; /* NULL: memory form */
	void (*done)(void *arg, bool good);
	void *arg;
	struct doc_error trouble;
};

/* ---- opening --------------------------------------------------------------- */

static void
on_disk_written(void *arg, const struct state_failure *f)
{
	struct state *s = arg;

	s->trouble.text[0] = '\0';
	if (f->error != 0)
		state_failure_tell(f, s->dir, &s->trouble);
	s->done(s->arg, f->error == 0);
}

static void
destroy(struct state *s)
{
	if (s->fd != -1)
		(void)close(s->fd);
	state_lock_release(&s->lock);
	free(s->dir);
	free(s);
}

struct state *
state_open(struct event_base *base, const char *dir, bool disk,
    void (*done)(void *arg, bool good), void *arg, struct doc_error *err)
{
	struct state *s = calloc(1, sizeof(*s));

	if (s != NULL) {
		s->fd = s->lock.fd = s->lock.dir = -1;
		s->done = done;
		s->arg = arg;
		s->dir = strdup(dir);
	}
	if (s == NULL || s->dir == NULL) {
		free(s);
		doc_error_set(err, "state directory %s: out of memory", dir);
		return (NULL);
	}
	if (state_lock_take(&s->lock, dir, disk, err) != 0) {
		destroy(s);
		return (NULL);
	}
	if (!disk)
		return (s);
	s->disk = state_disk_open(base, &s->lock, on_disk_written, s);
	if (s->disk == NULL) {
		doc_error_set(err,
		    "state directory %s: cannot start to write: %s", dir,
		    strerror(errno));
		destroy(s);
		return (NULL);
	}
	return (s);
}

/* ---- reading --------------------------------------------------------------- */

static bool
same_boot(const struct record_home *a, const struct record_home *b)
{
	static const uint8_t unknown[UUID_BYTES];

	return (memcmp(a->boot_id, b->boot_id, UUID_BYTES) == 0 &&
		memcmp(a->boot_id, unknown, UUID_BYTES) != 0);
}

/*
 * Inodes stay; devices may be numbered anew at a boot or on another host, so
 * there another one says nothing.
 */
static enum state_found
judge(const struct record_home *written, const struct record_home *own,
    const char **why)
{
	bool boot = same_boot(written, own);

	if (written->lock_ino != own->lock_ino ||
	    (boot && written->lock_dev != own->lock_dev)) {
		*why = "copied, restored, or its lock was removed: it was "
		       "written under another lock";
		return (STATE_COPIED);
	}
	if (strcmp(written->machine_id, own->machine_id) != 0) {
		*why = "written on another machine";
		return (STATE_FLOOR);
	}
	if (!boot) {
		*why = "written before this boot";
		return (STATE_FLOOR);
	}
	*why = "";
	return (STATE_RESUME);
}

enum state_found
state_read(
    const struct state *s, struct state_record *out, struct doc_error *err)
{
	char bytes[RECORD_SIZE + 1];
	struct doc_error fault;
	struct record_home home;
	const char *why = fault.text;
	enum state_found found = STATE_GARBLED;
	ssize_t n = state_file_read(&s->lock, bytes, sizeof(bytes), &fault);

	errno = 0;
	if (n == STATE_FILE_MISSING) {
		why = "there is none";
		found = STATE_NONE;
	} else if (n == STATE_FILE_UNREAD) {
		found = STATE_UNREAD;
	} else if (n >= 0 &&
		   record_parse(bytes, (size_t)n, out, &home, &fault) == 0) {
		found = judge(&home, &s->lock.home, &why);
	} else if (n >= 0 && errno == ENOMEM) {
		found = STATE_UNREAD;
	}
	if (found == STATE_RESUME)
		doc_error_set(err, "%s", "");
	else
		doc_error_set(err, "state %s/" STATE_FILE ": %s", s->dir, why);
	return (found);
}

/* ---- writing --------------------------------------------------------------- */

/*
 * A record that could not be read again would be a mark lost, so each new
 * contract is read back once before it counts; the rest record_format() sees
 * to.
 */
static int
format(struct state *s, const struct state_record *r, char *bytes)
{
	struct state_record back;
	struct record_home home;

	if (record_format(r, &s->lock.home, bytes) != 0)
		return (-1);
	if (s->reads_back &&
	    memcmp(&s->contract, &r->contract, sizeof(s->contract)) == 0)
		return (0);
	if (record_parse(bytes, RECORD_SIZE, &back, &home, NULL) != 0)
		return (-1);
	s->reads_back = true;
	memcpy(&s->contract, &r->contract, sizeof(s->contract));
	return (0);
}

/* Somebody removed the file, or put another there: ours is no longer it. */
static void
forget_unlinked(struct state *s)
{
	struct stat st;

	if (fstat(s->fd, &st) == 0 && st.st_nlink > 0)
		return;
	(void)close(s->fd);
	s->fd = -1;
}

static struct state_failure
write_memory(struct state *s, const char *bytes)
{
	struct state_failure f = { state_lock_check(&s->lock), "write it" };

	if (f.error != 0)
		return (f);
	if (s->fd != -1)
		forget_unlinked(s);
	if (s->fd == -1)
		return (state_file_replace(&s->lock, bytes, false, &s->fd));
	return (state_file_overwrite(s->fd, bytes));
}

bool
state_write(
    struct state *s, const struct state_record *r, struct doc_error *err)
{
	char bytes[RECORD_SIZE];
	struct state_failure f;

	if (s->disk != NULL && state_disk_busy(s->disk)) {
		doc_error_set(err,
		    "state %s/" STATE_FILE ": a write is under way", s->dir);
		return (false);
	}
	if (format(s, r, bytes) != 0) {
		doc_error_set(err,
		    "state %s/" STATE_FILE ": this record could not be read "
		    "again",
		    s->dir);
		return (false);
	}
	if (s->disk != NULL) {
		state_disk_write(s->disk, bytes);
		return (true);
	}
	f = write_memory(s, bytes);
	if (f.error != 0)
		state_failure_tell(&f, s->dir, err);
	return (f.error == 0);
}

const char *
state_trouble(const struct state *s)
{
	return (s->trouble.text);
}

bool
state_remove(struct state *s, struct doc_error *err)
{
	struct state_failure f;

	if (s->disk != NULL && state_disk_busy(s->disk)) {
		doc_error_set(err,
		    "state %s/" STATE_FILE ": a write is under way", s->dir);
		return (false);
	}
	f = state_file_void(&s->lock);
	if (f.error != 0) {
		state_failure_tell(&f, s->dir, err);
		return (false);
	}
	if (s->fd != -1)
		(void)close(s->fd);
	s->fd = -1;
	return (true);
}

void
state_close(struct state *s)
{
	if (s == NULL)
		return;
	if (s->disk != NULL && !state_disk_close(s->disk, CLOSE_WAIT_MS)) {
		log_warnx("state %s/" STATE_FILE ": the disk does not answer; "
			  "leaving a write to itself",
		    s->dir);
		return;
	}
	destroy(s);
}
