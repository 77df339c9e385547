/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_state - the state file against second processes, copies, odd files,
 * full and failing disks, and kill -9 at and between the steps of a write.
 * The system calls of a replacement pass through this file, which counts
 * them, makes them fail, holds them up, or is killed at them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "dice.h"
#include "layout.h"
#include "log.h"
#include "state.h"
#include "state_private.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define UUID_TEXT "0f8fad5b-d9cb-469f-a165-70867728950e"
#define OTHER_UID 12345 /* need not exist; only root can be it */
#define KILLS 200
#define COST_ROUNDS 100
#define COST_TRIES 30

/* ---- what stands between the state and the kernel ------------------------------ */

static struct {
	atomic_int points; /* passed: one before and one after each call */
	atomic_int die_at; /* 0: at none */
	atomic_int fail_fsync; /* the how manieth fails with EIO; 0: none */
	atomic_bool fail_rename, fail_unlink;
	atomic_bool hold_fsync; /* until `go` is posted */
	sem_t held, go;
	const char *before_flock; /* this file goes, once */
} kernel;

static void
pass_point(void)
{
	if (++kernel.points == kernel.die_at)
		(void)kill(getpid(), SIGKILL);
}

int
fsync(int fd)
{
	int rc;

	pass_point();
	if (kernel.hold_fsync) {
		(void)sem_post(&kernel.held);
		while (sem_wait(&kernel.go) == -1)
			continue;
	}
	if (kernel.fail_fsync > 0 && --kernel.fail_fsync == 0) {
		errno = EIO;
		return (-1);
	}
	rc = (int)syscall(SYS_fsync, fd);
	pass_point();
	return (rc);
}

int
renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	int rc;

	pass_point();
	if (kernel.fail_rename) {
		errno = EIO;
		return (-1);
	}
	rc = (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, 0);
	pass_point();
	return (rc);
}

int
unlinkat(int dir, const char *name, int flags)
{
	int rc;

	pass_point();
	if (kernel.fail_unlink && strcmp(name, STATE_FILE) == 0) {
		errno = EACCES;
		return (-1);
	}
	rc = (int)syscall(SYS_unlinkat, dir, name, flags);
	pass_point();
	return (rc);
}

int
flock(int fd, int operation)
{
	if (kernel.before_flock != NULL)
		(void)unlink(kernel.before_flock);
	kernel.before_flock = NULL;
	return ((int)syscall(SYS_flock, fd, operation));
}

static void
kernel_reset(void)
{
	kernel.points = kernel.die_at = kernel.fail_fsync = 0;
	kernel.fail_rename = kernel.fail_unlink = kernel.hold_fsync = false;
	kernel.before_flock = NULL;
	assert_int_equal(sem_init(&kernel.held, 0, 0), 0);
	assert_int_equal(sem_init(&kernel.go, 0, 0), 0);
}

/* ---- a place of one's own --------------------------------------------------------- */

struct place {
	struct event_base *base;
	char top[64], dir[80], file[100], fresh[100], lock[100];
	struct doc_error err;
	/* what done() told */
	unsigned good, bad;
	struct state *in_done; /* what done() does then */
	struct state_record *next;
	bool close_in_done;
};

static void
place_open(struct place *p)
{
	memset(p, 0, sizeof(*p));
	kernel_reset();
	strcpy(p->top, "/tmp/firn-test-XXXXXX");
	assert_non_null(mkdtemp(p->top));
	snprintf(p->dir, sizeof(p->dir), "%s/d", p->top);
	snprintf(p->file, sizeof(p->file), "%s/" STATE_FILE, p->dir);
	snprintf(p->fresh, sizeof(p->fresh), "%s/" STATE_FILE_NEW, p->dir);
	snprintf(p->lock, sizeof(p->lock), "%s/" STATE_LOCK, p->dir);
	p->base = event_base_new();
	assert_non_null(p->base);
}

static void shell(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

static void
shell(const char *format, ...)
{
	char command[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(command, sizeof(command), format, ap);
	va_end(ap);
	assert_int_equal(system(command), 0);
}

static void
place_close(struct place *p)
{
	event_base_free(p->base);
	kernel_reset();
	shell("rm -rf '%s'", p->top);
}

static void
on_done(void *arg, bool good)
{
	struct place *p = arg;
	struct state *s = p->in_done;

	p->good += good ? 1 : 0;
	p->bad += good ? 0 : 1;
	p->in_done = NULL;
	if (s != NULL && p->close_in_done)
		state_close(s);
	else if (s != NULL)
		assert_true(state_write(s, p->next, &p->err));
}

static struct state *
must_open(struct place *p, bool disk)
{
	struct state *s =
	    state_open(p->base, p->dir, disk, on_done, p, &p->err);

	if (s == NULL)
		fail_msg("%s", p->err.text);
	return (s);
}

/* The line must name what is wrong. */
static void
refuse_open(struct place *p, const char *words)
{
	struct state *s =
	    state_open(p->base, p->dir, false, on_done, p, &p->err);

	assert_null(s);
	if (strstr(p->err.text, words) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", p->err.text, words);
}

static void
wait_done(struct place *p, unsigned n)
{
	while (p->good + p->bad < n)
		assert_int_equal(event_base_loop(p->base, EVLOOP_ONCE), 0);
}

static struct state_record
record(int64_t n)
{
	struct state_record r = {
		.contract = { .format = 1,
		    .generation = 1,
		    .generation_text = "1-9f3a21c4",
		    .layout = { .size = sizeof(struct firn_layout),
			.time_bits = 41,
			.worker_bits = 10,
			.sequence_bits = 12,
			.tick_ms = 1,
			.epoch_ms = LAYOUT_EPOCH_MS,
			.name = "firn" },
		    .reserve_max_ms = 60000,
		    .worker_last = 1023 },
		.realm = "default",
		.open = true,
		.ceiling = n + 1000,
		.version = 7,
		.local_mark = n,
		.worker = 17,
	};

	/* now longer, now shorter */
	memset(r.claim, 'c', (size_t)(n % (CLAIM_NAME_MAX - 1)));
	return (r);
}

static void
must_write(struct place *p, struct state *s, int64_t n)
{
	struct state_record r = record(n);

	if (!state_write(s, &r, &p->err))
		fail_msg("%s", p->err.text);
}

static void
refuse_write(struct place *p, struct state *s, int64_t n, const char *words)
{
	struct state_record r = record(n);

	assert_false(state_write(s, &r, &p->err));
	if (strstr(p->err.text, words) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", p->err.text, words);
}

static void
expect(struct place *p, const struct state *s, enum state_found found,
    int64_t n, const char *words)
{
	struct state_record r;
	struct doc_error err = { "nothing was said" };
	enum state_found is = state_read(s, &r, &err);

	(void)p;
	if (is != found || strstr(err.text, words) == NULL)
		fail_msg("%d instead of %d: \"%s\", not \"%s\"", is, found,
		    err.text, words);
	if (found == STATE_RESUME)
		assert_string_equal(err.text, "");
	else
		assert_true(strncmp(err.text, "state /", 7) == 0);
	if (found != STATE_NONE && found != STATE_GARBLED &&
	    found != STATE_UNREAD) {
		assert_int_equal(r.local_mark, n);
		assert_int_equal(r.ceiling, n + 1000);
		assert_int_equal(strlen(r.claim), n % (CLAIM_NAME_MAX - 1));
	}
}

static bool
exists(const char *path)
{
	struct stat st;

	return (lstat(path, &st) == 0);
}

static void
put_file(const char *path, const void *bytes, size_t n)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, 0600), 0);
}

/* In a child: a test that fails there must not go on to the next. */
static pid_t
fork_child(void)
{
	pid_t pid = fork();

	assert_true(pid != -1);
	if (pid == 0)
		(void)setenv("CMOCKA_TEST_ABORT", "1", 1);
	return (pid);
}

/* ---- directory and lock -------------------------------------------------------------- */

static void
test_directory(void **state)
{
	struct place p;
	struct stat st;

	(void)state;
	place_open(&p);
	state_close(must_open(&p, false));
	assert_int_equal(stat(p.dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	state_close(must_open(&p, true)); /* one that is there is fine */
	state_close(NULL);

	assert_int_equal(chmod(p.dir, 0755), 0); /* to be read is no harm */
	state_close(must_open(&p, false));
	assert_int_equal(chmod(p.dir, 0770), 0);
	refuse_open(&p, "mode 0770 lets others write it; chmod go-w /tmp/");
	assert_int_equal(chmod(p.dir, 01777), 0); /* sticky is no help */
	refuse_open(&p, "mode 1777 lets others write it");
	assert_int_equal(chmod(p.dir, 0700), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(p.dir, OTHER_UID, 0), 0);
		refuse_open(&p, "belongs to uid 12345; it must be uid 0's");
	}

	shell("rm -rf %s && ln -s %s %s", p.dir, p.top, p.dir);
	state_close(must_open(&p, false)); /* as /var/lib may be one */
	shell("rm %s && touch %s", p.dir, p.dir);
	refuse_open(&p, "Not a directory");
	strcat(p.dir, "/x");
	refuse_open(&p, "Not a directory");
	snprintf(p.dir, sizeof(p.dir), "%s/no/d", p.top);
	refuse_open(&p, "/no/d: No such file or directory");
	p.dir[0] = '\0';
	refuse_open(&p, "No such file or directory");
	place_close(&p);
}

/* As another user, or under a rule of the file system: not a crash. */
static void
test_directory_that_cannot_be_written(void **state)
{
	struct place p;
	pid_t pid;
	int status;

	(void)state;
	place_open(&p);
	assert_int_equal(mkdir(p.dir, 0700), 0);
	assert_int_equal(chmod(p.top, 0755), 0);
	assert_int_equal(chmod(p.dir, geteuid() == 0 ? 0755 : 0500), 0);
	pid = fork_child();
	if (pid == 0) {
		struct state *s;

		if (geteuid() == 0 && setuid(OTHER_UID) == -1)
			_exit(2);
		s = state_open(p.base, p.dir, false, on_done, &p, &p.err);
		_exit(s == NULL && strstr(p.err.text,
				       "/lock: Permission denied") != NULL
			  ? 0
			  : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	place_close(&p);
}

static void
test_one_process(void **state)
{
	struct place p;
	struct state *s;
	struct stat before, after;
	char words[64];

	(void)state;
	place_open(&p);
	s = must_open(&p, false);
	assert_int_equal(stat(p.lock, &before), 0);
	assert_int_equal(before.st_mode & 07777, 0600);
	snprintf(words, sizeof(words), "another firnd (pid %ld) uses it",
	    (long)getpid());
	refuse_open(&p, words);
	/* Writing does not loosen it, as the rename of a locked file would. */
	must_write(&p, s, 1);
	must_write(&p, s, 2);
	refuse_open(&p, words);
	assert_int_equal(truncate(p.lock, 0), 0);
	refuse_open(&p, "another firnd uses it");
	state_close(s);

	/* It stays, so that records stay bound to it. */
	s = must_open(&p, true);
	assert_int_equal(stat(p.lock, &after), 0);
	assert_true(before.st_ino == after.st_ino);
	refuse_open(&p, words);
	expect(&p, s, STATE_RESUME, 2, "");
	state_close(s);

	/* Removed between open and lock: a lock on a file that has no name
	 * would keep nobody out. */
	kernel.before_flock = p.lock;
	s = must_open(&p, false);
	assert_true(exists(p.lock));
	refuse_open(&p, words);
	state_close(s);
	place_close(&p);
}

static void
test_odd_locks(void **state)
{
	struct place p;

	(void)state;
	place_open(&p);
	assert_int_equal(mkdir(p.dir, 0700), 0);
	shell("touch %s/x && ln -s %s/x %s", p.top, p.top, p.lock);
	refuse_open(&p, "/lock: Too many levels of symbolic links");
	shell("rm %s && ln %s/x %s", p.lock, p.top, p.lock);
	refuse_open(&p, "/lock: no plain file");
	shell("rm %s && mkfifo -m 600 %s", p.lock, p.lock);
	refuse_open(&p, "/lock: no plain file");
	shell("rm %s && mkdir %s", p.lock, p.lock);
	refuse_open(&p, "/lock: Is a directory");
	shell("rmdir %s && touch %s && chmod 622 %s", p.lock, p.lock, p.lock);
	refuse_open(&p, "/lock: uid ");
	shell("chmod 600 %s", p.lock);
	if (geteuid() == 0) {
		assert_int_equal(chown(p.lock, OTHER_UID, 0), 0);
		refuse_open(&p, "uid 12345, mode 0600: others could hold it");
	}
	place_close(&p);
}

/* Programs that the agent starts must not hold the lock after it. */
static void
test_descriptors_close_on_exec(void **state)
{
	struct place p;
	struct state *s;
	unsigned seen = 0;
	DIR *fds;

	(void)state;
	place_open(&p);
	s = must_open(&p, false);
	must_write(&p, s, 1);
	fds = opendir("/proc/self/fd");
	assert_non_null(fds);
	for (struct dirent *e = readdir(fds); e != NULL; e = readdir(fds)) {
		char path[PATH_MAX] = "";
		int fd = atoi(e->d_name);

		if (readlinkat(dirfd(fds), e->d_name, path, sizeof(path) - 1) <
			0 ||
		    strncmp(path, p.dir, strlen(p.dir)) != 0)
			continue;
		assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
		seen++;
	}
	closedir(fds);
	assert_int_equal(seen, 3); /* directory, lock, file */
	state_close(s);
	place_close(&p);
}

/* ---- what may be resumed ---------------------------------------------------------------- */

static void
test_memory_form(void **state)
{
	struct place p;
	struct state *s;
	struct stat first, last;

	(void)state;
	place_open(&p);
	s = must_open(&p, false);
	expect(&p, s, STATE_NONE, 0, "/state: there is none");
	must_write(&p, s, 78); /* the longest claim */
	expect(&p, s, STATE_RESUME, 78, "");
	assert_int_equal(stat(p.file, &first), 0);
	assert_int_equal(first.st_mode & 07777, 0600);
	for (int64_t n = 79; n < 200; n++) {
		must_write(&p, s, n);
		expect(&p, s, STATE_RESUME, n, "");
	}
	/* in place: no new file, no fsync, no rename after the first */
	assert_int_equal(stat(p.file, &last), 0);
	assert_true(first.st_ino == last.st_ino);
	assert_int_equal(last.st_size, RECORD_SIZE);
	assert_int_equal(kernel.points, 4);
	state_close(s);

	s = must_open(&p, false);
	expect(&p, s, STATE_RESUME, 199, "");
	must_write(&p, s, 5); /* lower is the caller's business */
	expect(&p, s, STATE_RESUME, 5, "");
	assert_true(state_remove(s, &p.err));
	expect(&p, s, STATE_NONE, 0, "");
	assert_true(state_remove(s, &p.err)); /* none is as good */
	must_write(&p, s, 6);
	expect(&p, s, STATE_RESUME, 6, "");
	assert_false(exists(p.fresh));
	state_close(s);
	place_close(&p);
}

struct home_case {
	bool ino, dev, boot, no_boot, machine; /* what is another */
	enum state_found found;
	const char *words;
	const char *why;
};

#define COPIED "copied, restored, or its lock was removed"

static const struct home_case home_cases[] = {
	{ .found = STATE_RESUME, .words = "", .why = "ours" },
	{ .boot = true,
	    .found = STATE_FLOOR,
	    .words = "written before this boot",
	    .why = "reboot" },
	{ .boot = true,
	    .dev = true,
	    .found = STATE_FLOOR,
	    .words = "written before this boot",
	    .why = "reboot that numbered the disks anew" },
	{ .no_boot = true,
	    .found = STATE_FLOOR,
	    .words = "written before this boot",
	    .why = "a boot that nobody knows is none of ours" },
	{ .machine = true,
	    .found = STATE_FLOOR,
	    .words = "written on another machine",
	    .why = "a container with an /etc of its own" },
	{ .machine = true,
	    .boot = true,
	    .dev = true,
	    .found = STATE_FLOOR,
	    .words = "written on another machine",
	    .why = "a volume that moved" },
	{ .ino = true,
	    .found = STATE_COPIED,
	    .words = COPIED,
	    .why = "a copy, or a lock removed" },
	{ .dev = true,
	    .found = STATE_COPIED,
	    .words = COPIED,
	    .why = "a layer of an image in two containers" },
	{ .ino = true,
	    .machine = true,
	    .boot = true,
	    .dev = true,
	    .found = STATE_COPIED,
	    .words = COPIED,
	    .why = "a backup restored elsewhere" },
};

static void
test_bound_to_lock_machine_and_boot(void **state)
{
	struct place p;
	struct state *s;
	char own[RECORD_SIZE], bytes[RECORD_SIZE];

	(void)state;
	place_open(&p);
	s = must_open(&p, false);
	must_write(&p, s, 1);
	shell("cp %s %s/own", p.file, p.top);
	snprintf(bytes, sizeof(bytes), "%s/own", p.top);
	{
		FILE *f = fopen(bytes, "r");

		assert_non_null(f);
		assert_int_equal(fread(own, 1, sizeof(own), f), sizeof(own));
		fclose(f);
	}
	for (size_t i = 0; i < COUNT(home_cases); i++) {
		const struct home_case *c = &home_cases[i];
		struct state_record r;
		struct record_home h;

		print_message("%s\n", c->why);
		assert_int_equal(
		    record_parse(own, sizeof(own), &r, &h, &p.err), 0);
		h.lock_ino ^= c->ino ? 1 : 0;
		h.lock_dev ^= c->dev ? 1 : 0;
		h.boot_id[3] = (uint8_t)(h.boot_id[3] ^ (c->boot ? 1 : 0));
		if (c->no_boot)
			memset(h.boot_id, 0, UUID_BYTES);
		if (c->machine)
			strcpy(h.machine_id, h.machine_id[0] == '\0'
						 ? "0123456789abcdef"
						   "0123456789abcdef"
						 : "");
		assert_int_equal(record_format(&r, &h, bytes), 0);
		put_file(p.file, bytes, sizeof(bytes));
		expect(&p, s, c->found, 1, c->words);
	}
	state_close(s);
	place_close(&p);
}

/* Three containers' worth of agents from one directory: one may resume. */
static void
test_copied_directory(void **state)
{
	struct place p, copy[3];
	struct state *s, *other[3];

	(void)state;
	place_open(&p);
	s = must_open(&p, true);
	must_write(&p, s, 41);
	wait_done(&p, 1);
	for (size_t i = 0; i < COUNT(copy); i++) {
		place_open(&copy[i]);
		shell("cp -a %s %s", p.dir, copy[i].dir);
		other[i] = must_open(&copy[i], i == 0);
		expect(&copy[i], other[i], STATE_COPIED, 41, COPIED);
	}
	expect(&p, s, STATE_RESUME, 41, "");
	/* Its own record binds it again. */
	must_write(&copy[1], other[1], 42);
	expect(&copy[1], other[1], STATE_RESUME, 42, "");
	for (size_t i = 0; i < COUNT(copy); i++) {
		state_close(other[i]);
		place_close(&copy[i]);
	}
	state_close(s);

	/* "A stale lock"; its inode is kept, so that it is not used again. */
	shell("mv %s %s/x", p.lock, p.dir);
	s = must_open(&p, true);
	expect(&p, s, STATE_COPIED, 41, COPIED);
	state_close(s);
	place_close(&p);
}

/* ---- what is in the way ------------------------------------------------------------------- */

struct odd_case {
	const char *make; /* %1$s the file, %2$s a file of another */
	const char *words;
	bool root; /* only root can make it */
	bool link; /* what it leads to must stay as it is */
};

static const struct odd_case odd_cases[] = {
	{ ": >%1$s", "truncated: only 0 of 4096 bytes", false, false },
	{ "truncate -s 700 %1$s", "truncated: only 700 of 4096", false, false },
	{ "truncate -s 4095 %1$s", "truncated: only 4095 of", false, false },
	{ "truncate -s 9000 %1$s", "no state: more than 4096 bytes", false,
	    false },
	{ "truncate -s 700 %1$s; truncate -s 4096 %1$s", "torn", false, false },
	{ "truncate -s 0 %1$s; truncate -s 4096 %1$s",
	    "torn or no state: there is no checksum", false, false },
	{ "sed -i s/default/defoult/ %1$s", "torn or damaged", false, false },
	{ "chmod 0644 %1$s", "mode 0644 instead of 0600", false, false },
	{ "chmod 0620 %1$s", "mode 0620 instead of 0600", false, false },
	{ "chown 12345 %1$s", "belongs to uid 12345; it must be uid 0's", true,
	    false },
	{ "mv %1$s %2$s; ln -s %2$s %1$s", "a symbolic link", false, true },
	{ "ln -sf /nowhere/at/all %1$s", "a symbolic link", false, false },
	{ "mv %1$s %2$s; ln %2$s %1$s", "no plain file", false, true },
	{ "rm %1$s; mkfifo -m 600 %1$s", "no plain file", false, false },
	{ "rm %1$s; mkdir %1$s", "no plain file", false, false },
};

static void
test_odd_files(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(odd_cases); i++) {
		const struct odd_case *c = &odd_cases[i];
		struct place p;
		struct state *s;
		char command[300], other[80];
		bool dir = strstr(c->make, "mkdir") != NULL;

		if (c->root && geteuid() != 0)
			continue;
		print_message("%s\n", c->make);
		place_open(&p);
		snprintf(other, sizeof(other), "%s/other", p.top);
		s = must_open(&p, false);
		must_write(&p, s, 1);
		state_close(s);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(command, sizeof(command), c->make, p.file, other);
#pragma GCC diagnostic pop
		shell("%s", command);

		s = must_open(&p, false);
		expect(&p, s, STATE_GARBLED, 0, c->words);
		if (dir) {
			refuse_write(&p, s, 2, "cannot replace it: Is a dir");
			assert_false(state_remove(s, &p.err));
		} else if (i % 2 == 0) {
			must_write(&p, s, 2);
			expect(&p, s, STATE_RESUME, 2, "");
		} else {
			assert_true(state_remove(s, &p.err));
			expect(&p, s, STATE_NONE, 0, "");
		}
		state_close(s);
		if (c->link) {
			shell("mv %s %s", other, p.file);
			s = must_open(&p, false);
			expect(&p, s, STATE_RESUME, 1, "");
			state_close(s);
		}
		place_close(&p);
	}
}

/* A link laid in wait where the new file is made. */
static void
test_links_in_wait(void **state)
{
	struct place p;
	struct state *s;
	char other[80], bytes[8] = "";
	FILE *f;

	(void)state;
	place_open(&p);
	snprintf(other, sizeof(other), "%s/other", p.top);
	put_file(other, "precious", 8);
	s = must_open(&p, false);
	shell("ln -s %s %s", other, p.fresh);
	must_write(&p, s, 1);
	expect(&p, s, STATE_RESUME, 1, "");
	f = fopen(other, "r");
	assert_non_null(f);
	assert_int_equal(fread(bytes, 1, sizeof(bytes), f), 8);
	fclose(f);
	assert_memory_equal(bytes, "precious", 8);
	shell("rm %s; mkdir -p %s", p.file, p.fresh);
	refuse_write(&p, s, 2, "cannot create state.new: File exists");
	state_close(s);
	place_close(&p);
}

/* ---- what happens meanwhile ------------------------------------------------------------------- */

static void
test_file_taken_away(void **state)
{
	struct place p;
	struct state *s;

	(void)state;
	place_open(&p);
	s = must_open(&p, false);
	must_write(&p, s, 1);
	shell("rm %s", p.file);
	expect(&p, s, STATE_NONE, 0, "");
	must_write(&p, s, 2); /* not into a file that has no name */
	expect(&p, s, STATE_RESUME, 2, "");
	shell("cp -p %s %s/y && mv %s/y %s", p.file, p.dir, p.dir, p.file);
	must_write(&p, s, 3);
	expect(&p, s, STATE_RESUME, 3, "");
	state_close(s);
	place_close(&p);
}

static void
test_directory_removed(void **state)
{
	struct place p;
	struct state *s;

	(void)state;
	place_open(&p);
	s = must_open(&p, false);
	must_write(&p, s, 1);
	shell("rm -rf %s", p.dir);
	refuse_write(&p, s, 2, "directory or its lock was removed");
	assert_true(state_remove(s, &p.err)); /* nothing to resume from */
	refuse_write(&p, s, 2, "directory or its lock was removed");
	state_close(s);

	s = must_open(&p, true);
	must_write(&p, s, 1);
	wait_done(&p, 1);
	assert_string_equal(state_trouble(s), "");
	shell("rm -rf %s && mkdir -m 700 %s", p.dir, p.dir);
	must_write(&p, s, 2);
	wait_done(&p, 2);
	assert_int_equal(p.bad, 1);
	assert_non_null(strstr(state_trouble(s), "was removed"));
	assert_false(exists(p.file)); /* another's directory by now */
	state_close(s);
	place_close(&p);
}

/* Who removes the lock lets a second process in: one of the two goes. */
static void
test_lock_replaced(void **state)
{
	for (int disk = 0; disk < 2; disk++) {
		struct place p;
		struct state *first, *second;

		(void)state;
		place_open(&p);
		first = must_open(&p, disk == 1);
		must_write(&p, first, 1);
		if (disk == 1)
			wait_done(&p, 1);
		shell("rm %s", p.lock);
		if (disk == 0)
			refuse_write(&p, first, 2, "its lock was removed");
		second = must_open(&p, false);
		expect(&p, second, STATE_COPIED, 1, COPIED);
		must_write(&p, second, 2);
		if (disk == 0) {
			refuse_write(&p, first, 3, "its lock was replaced");
		} else {
			must_write(&p, first, 3);
			wait_done(&p, 2);
			assert_int_equal(p.bad, 1);
			assert_non_null(strstr(
			    state_trouble(first), "its lock was replaced"));
		}
		expect(&p, second, STATE_RESUME, 2, "");
		assert_false(exists(p.fresh));
		state_close(first);
		state_close(second);
		place_close(&p);
	}
}

/* A limit on the size of files stands for a disk that fills up. */
static void
limit_file_size(rlim_t bytes)
{
	struct rlimit limit = { 0, RLIM_INFINITY };

	(void)signal(SIGXFSZ, SIG_IGN);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void
test_write_cut_off(void **state)
{
	struct place p;
	struct state *s;

	(void)state;
	place_open(&p);
	s = must_open(&p, false);
	must_write(&p, s, 1);
	limit_file_size(600);
	refuse_write(&p, s, 2, "cannot write it: File too large");
	limit_file_size(RLIM_INFINITY);
	/* The front of the new one over the old one: neither. */
	expect(&p, s, STATE_GARBLED, 0, "torn or damaged");
	must_write(&p, s, 3);
	expect(&p, s, STATE_RESUME, 3, "");
	limit_file_size(0);
	refuse_write(&p, s, 4, "cannot write it: File too large");
	assert_true(state_remove(s, &p.err));
	refuse_write(&p, s, 4, "cannot write it: File too large");
	assert_false(exists(p.fresh));
	limit_file_size(RLIM_INFINITY);
	state_close(s);

	s = must_open(&p, true);
	must_write(&p, s, 5);
	wait_done(&p, 1);
	limit_file_size(600);
	must_write(&p, s, 6);
	wait_done(&p, 2);
	limit_file_size(RLIM_INFINITY);
	assert_int_equal(p.bad, 1);
	assert_non_null(strstr(state_trouble(s), "File too large"));
	expect(&p, s, STATE_RESUME, 5, ""); /* the old one stands */
	state_close(s);
	place_close(&p);
}

/* Want of descriptors says nothing about the file: it is not garbled. */
static void
test_file_that_cannot_be_read_now(void **state)
{
	struct place p;
	struct rlimit before, none;
	struct state *s;

	(void)state;
	place_open(&p);
	s = must_open(&p, false);
	must_write(&p, s, 1);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	expect(&p, s, STATE_UNREAD, 0, "cannot be read: Too many open files");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	expect(&p, s, STATE_RESUME, 1, "");
	state_close(s);
	place_close(&p);
}

/* In a child with mounts of its own; 77: this system lets us mount nothing. */
static int
with_own_mounts(struct place *p)
{
	struct state *s;
	char filler[96];

	if (unshare(CLONE_NEWNS) == -1 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1 ||
	    mkdir(p->dir, 0700) == -1 ||
	    mount("none", p->dir, "tmpfs", 0, "size=32k,mode=700") == -1)
		return (77);
	snprintf(filler, sizeof(filler), "%s/filler", p->dir);
	s = must_open(p, true);
	must_write(p, s, 1);
	wait_done(p, 1);
	shell("cat /dev/zero >%s 2>/dev/null || :", filler);
	must_write(p, s, 2);
	wait_done(p, 2);
	assert_int_equal(p->bad, 1);
	assert_non_null(strstr(state_trouble(s), "No space left on device"));
	expect(p, s, STATE_RESUME, 1, "");
	assert_false(exists(p->fresh));
	state_close(s);

	s = must_open(p, false);
	refuse_write(p, s, 3, "No space left on device");
	expect(p, s, STATE_RESUME, 1, "");
	assert_true(state_remove(s, &p->err)); /* needs no room */
	expect(p, s, STATE_NONE, 0, "");
	shell("rm %s", filler);
	must_write(p, s, 4);
	shell("cat /dev/zero >%s 2>/dev/null || :", filler);
	must_write(p, s, 5); /* nor does writing in place */
	expect(p, s, STATE_RESUME, 5, "");

	/* Neither written nor removed: that is for the caller to refuse. */
	assert_int_equal(
	    mount("none", p->dir, NULL, MS_REMOUNT | MS_RDONLY, NULL), -1);
	assert_int_equal(errno, EBUSY); /* our own descriptors hold it */
	state_close(s);
	assert_int_equal(
	    mount("none", p->dir, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	refuse_open(p, "/lock: Read-only file system");

	/* Who does not know the boot cannot say that it is the same. */
	assert_int_equal(umount(p->dir), 0);
	assert_int_equal(mount("none", "/proc", "tmpfs", 0, NULL), 0);
	s = must_open(p, false);
	must_write(p, s, 6);
	expect(p, s, STATE_FLOOR, 6, "written before this boot");
	state_close(s);
	return (0);
}

static void
test_full_disk_read_only_disk_no_proc(void **state)
{
	struct place p;
	int status;
	pid_t pid;

	(void)state;
	place_open(&p);
	pid = fork_child();
	if (pid == 0)
		_exit(with_own_mounts(&p));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	place_close(&p);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}

/* Where no name may go, the contents still can. */
static void
test_removed_in_place(void **state)
{
	struct place p;
	struct state *s;

	(void)state;
	place_open(&p);
	s = must_open(&p, false);
	must_write(&p, s, 1);
	kernel.fail_unlink = true;
	assert_true(state_remove(s, &p.err));
	expect(&p, s, STATE_GARBLED, 0, "truncated: only 0");
	must_write(&p, s, 2);
	state_close(s);

	s = must_open(&p, false); /* one that is not open yet */
	expect(&p, s, STATE_RESUME, 2, "");
	assert_true(state_remove(s, &p.err));
	expect(&p, s, STATE_GARBLED, 0, "truncated: only 0");
	shell("rm %s && ln -s /dev/null %s", p.file, p.file);
	assert_false(state_remove(s, &p.err));
	assert_non_null(strstr(p.err.text, "cannot remove it: Permission"));
	state_close(s);
	place_close(&p);
}

/* ---- the disk form ---------------------------------------------------------------------------- */

static void
test_disk_form(void **state)
{
	struct place p;
	struct state *s;
	struct state_record second = record(2);
	struct stat st;

	(void)state;
	place_open(&p);
	s = must_open(&p, true);
	expect(&p, s, STATE_NONE, 0, "there is none");
	/* What it made is on disk: the directory's name, the lock. */
	assert_int_equal(kernel.points, 2 * 2);
	kernel.points = 0;
	p.in_done = s; /* done() writes the second */
	p.next = &second;
	must_write(&p, s, 1);
	refuse_write(&p, s, 3, "a write is under way");
	assert_false(state_remove(s, &p.err));
	assert_non_null(strstr(p.err.text, "a write is under way"));
	wait_done(&p, 2);
	assert_int_equal(p.good, 2);
	expect(&p, s, STATE_RESUME, 2, "");
	/* each: unlink, fsync, rename, fsync of the directory */
	assert_int_equal(kernel.points, 2 * 2 * 4);
	assert_int_equal(stat(p.file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_true(state_remove(s, &p.err));
	expect(&p, s, STATE_NONE, 0, "");

	p.in_done = s;
	p.close_in_done = true;
	must_write(&p, s, 7);
	wait_done(&p, 3);
	s = must_open(&p, true);
	expect(&p, s, STATE_RESUME, 7, "");
	must_write(&p, s, 8);
	state_close(s); /* waits for it, tells nobody */
	s = must_open(&p, true);
	expect(&p, s, STATE_RESUME, 8, "");
	assert_int_equal(p.good + p.bad, 3);
	state_close(s);
	place_close(&p);
}

static void
write_and_wait(struct place *p, struct state *s, int64_t n, const char *words)
{
	unsigned bad = p->bad + (words[0] != '\0' ? 1 : 0);

	must_write(p, s, n);
	wait_done(p, p->good + p->bad + 1);
	assert_int_equal(p->bad, bad);
	if (words[0] == '\0')
		assert_string_equal(state_trouble(s), "");
	else if (strstr(state_trouble(s), words) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", state_trouble(s), words);
	assert_false(exists(p->fresh));
}

static void
test_disk_that_fails(void **state)
{
	struct place p;
	struct state *s;

	(void)state;
	place_open(&p);
	s = must_open(&p, true);
	write_and_wait(&p, s, 1, "");
	kernel.fail_fsync = 1;
	write_and_wait(&p, s, 2, "cannot sync it: Input/output error");
	expect(&p, s, STATE_RESUME, 1, "");
	kernel.fail_rename = true;
	write_and_wait(&p, s, 3, "cannot replace it: Input/output error");
	expect(&p, s, STATE_RESUME, 1, "");
	kernel.fail_rename = false;
	write_and_wait(&p, s, 4, "");
	expect(&p, s, STATE_RESUME, 4, "");
	/* The new one stands, but not for sure: bad, and no harm. */
	kernel.fail_fsync = 2;
	write_and_wait(&p, s, 5, "cannot sync its directory: Input/output");
	expect(&p, s, STATE_RESUME, 5, "");
	write_and_wait(&p, s, 6, "");
	state_close(s);
	place_close(&p);
}

/* A record that would not be read again is not written. */
static void
test_records_that_are_none(void **state)
{
	for (int disk = 0; disk < 2; disk++) {
		struct place p;
		struct state *s;
		struct state_record r = record(2);

		(void)state;
		place_open(&p);
		s = must_open(&p, disk == 1);
		must_write(&p, s, 1);
		if (disk == 1)
			wait_done(&p, 1);
		r.contract.reserve_max_ms = 0;
		assert_false(state_write(s, &r, &p.err));
		assert_non_null(strstr(p.err.text, "could not be read again"));
		r = record(2);
		r.version = -2;
		assert_false(state_write(s, &r, &p.err));
		expect(&p, s, STATE_RESUME, 1, "");
		state_close(s);
		place_close(&p);
	}
}

/* No request waits for a disk, and a stop does not for ever. */
static struct state_disk *stuck; /* whoever leaks it on purpose */
static unsigned told;

static void
on_stuck(void *arg, const struct state_failure *f)
{
	(void)arg;
	(void)f;
	told++;
}

static void
test_disk_that_hangs(void **state)
{
	struct place p;
	struct state *s;
	static struct state_lock lock;
	char bytes[RECORD_SIZE];
	struct state_record r = record(9);

	(void)state;
	place_open(&p);
	s = must_open(&p, true);
	kernel.hold_fsync = true;
	must_write(&p, s, 1);
	assert_int_equal(sem_wait(&kernel.held), 0);
	refuse_write(&p, s, 2, "a write is under way");
	assert_int_equal(event_base_loop(p.base, EVLOOP_NONBLOCK), 0);
	assert_int_equal(p.good + p.bad, 0);
	expect(&p, s, STATE_NONE, 0, "");
	kernel.hold_fsync = false;
	assert_int_equal(sem_post(&kernel.go), 0);
	wait_done(&p, 1);
	expect(&p, s, STATE_RESUME, 1, "");
	state_close(s);

	assert_int_equal(state_lock_take(&lock, p.dir, false, &p.err), 0);
	stuck = state_disk_open(p.base, &lock, on_stuck, NULL);
	assert_non_null(stuck);
	assert_int_equal(record_format(&r, &lock.home, bytes), 0);
	kernel.hold_fsync = true;
	state_disk_write(stuck, bytes);
	assert_int_equal(sem_wait(&kernel.held), 0);
	assert_false(state_disk_close(stuck, 1));
	refuse_open(&p, "another firnd"); /* the lock is still its own */
	kernel.hold_fsync = false;
	assert_int_equal(sem_post(&kernel.go), 0);
	while (!exists(p.file) || exists(p.fresh))
		sched_yield();
	for (int i = 0; i < 10; i++)
		(void)event_base_loop(p.base, EVLOOP_NONBLOCK);
	assert_int_equal(told, 0);
	/* The lock is the thread's until the process ends, as in life. */
	place_close(&p);
}

/* ---- kill -9 ------------------------------------------------------------------------------------- */

struct progress {
	atomic_llong written, told; /* local marks handed in, come back good */
};

/* Writes ever higher marks until it is killed. */
static void
write_until_killed(struct place *p, struct progress *at, int64_t n)
{
	struct event_base *base = event_base_new();
	struct state *s;

	p->base = base;
	s = must_open(p, true);
	for (;; n++) {
		at->written = n;
		must_write(p, s, n);
		wait_done(p, p->good + p->bad + 1);
		if (p->bad > 0)
			_exit(1);
		at->told = n;
	}
}

/* The file is a record that was written, not older than one told of. */
static void
check_after_kill(struct place *p, const struct progress *at)
{
	struct state_record r;
	struct state *s = must_open(p, false);
	enum state_found found = state_read(s, &r, &p->err);

	if (found == STATE_NONE) {
		assert_int_equal(at->told, 0);
	} else {
		assert_int_equal(found, STATE_RESUME);
		assert_true(r.local_mark >= at->told);
		assert_true(r.local_mark <= at->written);
		assert_int_equal(
		    strlen(r.claim), r.local_mark % (CLAIM_NAME_MAX - 1));
	}
	state_close(s);
}

static struct progress *
progress_open(void)
{
	struct progress *at = mmap(NULL, sizeof(*at), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	return (at);
}

static void
test_killed_at_each_step(void **state)
{
	struct progress *at = progress_open();
	struct place p;
	int kills = 0;

	(void)state;
	place_open(&p);
	/* Opening takes some points, each write eight: two writes and more. */
	for (int point = 1; point <= 24; point++) {
		int status;
		pid_t pid = fork_child();

		if (pid == 0) {
			kernel.points = 0;
			kernel.die_at = point;
			write_until_killed(&p, at, at->written + 1);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGKILL);
		kills++;
		if (exists(p.lock))
			check_after_kill(&p, at);
	}
	assert_true(at->told > 20);
	print_message("%d kills, %lld writes\n", kills, at->written);
	munmap(at, sizeof(*at));
	place_close(&p);
}

static void
test_killed_at_random(void **state)
{
	struct dice d = dice_open("state kills");
	struct progress *at = progress_open();
	struct place p;

	(void)state;
	place_open(&p);
	for (int i = 0; i < KILLS; i++) {
		int64_t stop = at->written + dice_range(&d, 0, 3);
		uint64_t spins = dice_below(&d, 50000);
		int status;
		pid_t pid = fork_child();

		if (pid == 0)
			write_until_killed(&p, at, at->written + 1);
		while (at->written < stop)
			sched_yield();
		for (volatile uint64_t k = 0; k < spins; k++)
			continue;
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		if (exists(p.dir))
			check_after_kill(&p, at);
	}
	print_message(
	    "%d kills, %lld writes, %lld told\n", KILLS, at->written, at->told);
	munmap(at, sizeof(*at));
	place_close(&p);
}

/* ---- what it costs ---- */

static double
clock_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return ((double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3);
}

static void
test_cost(void **state)
{
	struct place p;
	struct state *s;
	double best = 1e9, start;

	(void)state;
	place_open(&p);
	if (access("/dev/shm", W_OK) == 0) {
		shell("rmdir %s", p.top);
		strcpy(p.top, "/dev/shm/firn-test-XXXXXX");
		assert_non_null(mkdtemp(p.top));
		snprintf(p.dir, sizeof(p.dir), "%s/d", p.top);
	}
	s = must_open(&p, false);
	must_write(&p, s, 1);
	/* The best of some: others use this machine too. */
	for (int i = 0; i < COST_TRIES; i++) {
		start = clock_us();
		for (int64_t n = 0; n < COST_ROUNDS; n++)
			must_write(&p, s, n);
		if (clock_us() - start < best)
			best = clock_us() - start;
	}
	print_message("a write in memory takes %.1f us\n", best / COST_ROUNDS);
	assert_true(best / COST_ROUNDS < 5000); /* waits for no disk */
	state_close(s);
	place_close(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_directory),
		cmocka_unit_test(test_directory_that_cannot_be_written),
		cmocka_unit_test(test_one_process),
		cmocka_unit_test(test_odd_locks),
		cmocka_unit_test(test_descriptors_close_on_exec),
		cmocka_unit_test(test_memory_form),
		cmocka_unit_test(test_bound_to_lock_machine_and_boot),
		cmocka_unit_test(test_copied_directory),
		cmocka_unit_test(test_odd_files),
		cmocka_unit_test(test_links_in_wait),
		cmocka_unit_test(test_file_taken_away),
		cmocka_unit_test(test_directory_removed),
		cmocka_unit_test(test_lock_replaced),
		cmocka_unit_test(test_write_cut_off),
		cmocka_unit_test(test_file_that_cannot_be_read_now),
		cmocka_unit_test(test_full_disk_read_only_disk_no_proc),
		cmocka_unit_test(test_removed_in_place),
		cmocka_unit_test(test_disk_form),
		cmocka_unit_test(test_disk_that_fails),
		cmocka_unit_test(test_records_that_are_none),
		cmocka_unit_test(test_disk_that_hangs),
		cmocka_unit_test(test_killed_at_each_step),
		cmocka_unit_test(test_killed_at_random),
		cmocka_unit_test(test_cost),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
