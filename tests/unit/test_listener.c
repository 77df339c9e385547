/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_listener - the socket in the file system against whoever was there
 * first, and one connection against a peer that does anything at all.  The
 * loop is turned by hand and the time is the test's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <event2/event.h>

#include "conn.h"
#include "dice.h"
#include "firn-wire.h"
#include "listener.h"
#include "log.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define GROUP 12345 /* need not exist; only root can give it */

static void
turn(struct event_base *base)
{
	/* Some events need a second look: writable after read, timers. */
	for (int i = 0; i < 4; i++)
		assert_true(event_base_loop(base, EVLOOP_NONBLOCK) >= 0);
}

/* ---- a directory of one's own ------------------------------------------------ */

struct place {
	struct event_base *base;
	char dir[64], path[96], lock[112], fresh[112];
	unsigned accepted;
	int fd;
	struct listener_peer peer;
};

static void
place_open(struct place *p)
{
	memset(p, 0, sizeof(*p));
	strcpy(p->dir, "/tmp/firn-test-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	assert_int_equal(chmod(p->dir, 0755), 0);
	snprintf(p->path, sizeof(p->path), "%s/s", p->dir);
	snprintf(p->lock, sizeof(p->lock), "%s.lock", p->path);
	snprintf(p->fresh, sizeof(p->fresh), "%s.new", p->path);
	p->base = event_base_new();
	assert_non_null(p->base);
	p->fd = -1;
}

static void
place_close(struct place *p)
{
	if (p->fd != -1)
		close(p->fd);
	(void)chmod(p->dir, 0700);
	(void)!remove(p->path);
	(void)!remove(p->lock);
	(void)!remove(p->fresh);
	event_base_free(p->base);
	assert_int_equal(rmdir(p->dir), 0);
}

static int
place_listen(struct place *p, struct listener **l, struct listener_error *err)
{
	const struct listener_conf conf = { p->path, "0660", "", 1 };

	memset(err, 0, sizeof(*err));
	return (listener_open(l, p->base, &conf, err));
}

static int
dial(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	strcpy(sun.sun_path, path);
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) == 0)
		return (fd);
	close(fd);
	return (-1);
}

static void
make_socket(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(sun.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	close(fd);
}

static void
make_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "mine", 4), 4);
	close(fd);
}

static void
on_accept(void *arg, int fd, const struct listener_peer *peer)
{
	struct place *p = arg;

	p->accepted++;
	if (p->fd != -1)
		close(p->fd);
	p->fd = fd;
	p->peer = *peer;
}

/* ---- the socket's birth ------------------------------------------------------- */

/* What the directory saw happen to the name "s", as inotify's bits. */
static uint32_t
seen(int watch)
{
	_Alignas(struct inotify_event) char buf[8192];
	uint32_t mask = 0;
	ssize_t n = read(watch, buf, sizeof(buf));

	for (char *p = buf; n > 0 && p < buf + n;) {
		struct inotify_event ev;

		memcpy(&ev, p, sizeof(ev));
		if (ev.len > 0 && strcmp(p + sizeof(ev), "s") == 0)
			mask |= ev.mask;
		p += sizeof(ev) + ev.len;
	}
	return (mask);
}

/*
 * The name appears once, complete: nobody ever sees it with another mode or
 * group, or not listening, whatever the umask.
 */
static void
check_birth(mode_t mask, const char *mode, const char *group)
{
	struct listener *l = NULL;
	struct listener_error err;
	struct place p;
	struct stat st;
	mode_t old;
	int watch, fd;

	place_open(&p);
	const struct listener_conf conf = { p.path, mode, group, 1 };
	watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	assert_true(inotify_add_watch(watch, p.dir, IN_ALL_EVENTS) >= 0);
	old = umask(mask);
	assert_int_equal(listener_open(&l, p.base, &conf, &err), 0);
	umask(old);
	assert_int_equal(seen(watch), IN_MOVED_TO);
	assert_int_equal(lstat(p.path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 07777, strtoul(mode, NULL, 8));
	assert_int_equal(st.st_gid, group[0] != '\0' ? GROUP : getegid());
	fd = dial(p.path);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(access(p.fresh, F_OK), -1);
	assert_int_equal(lstat(p.lock, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600 & ~mask);
	listener_close(l);
	assert_int_equal(lstat(p.path, &st), -1);
	close(watch);
	place_close(&p);
}

static void
test_birth(void **state)
{
	(void)state;
	check_birth(077, "0660", "");
	check_birth(0, "0600", "");
	check_birth(0777, "0666", "");
	check_birth(022, "660", "");
}

static void
test_birth_group(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	check_birth(077, "0660", "12345");
}

static void
test_bad_conf(void **state)
{
	static const struct {
		const char *path, *mode, *group, *word;
	} rows[] = {
		{ "s", "0999", "", "socket_mode" },
		{ "s", "", "", "socket_mode" },
		{ "s", "660 ", "", "socket_mode" },
		{ "s", "66", "", "socket_mode" },
		{ "s", "4660", "", "socket_mode" }, /* setuid: a slip */
		{ "s", "-660", "", "socket_mode" },
		{ "s", "0660", "no such group", "socket_group" },
		{ "s", "0660", "-1", "socket_group" },
		{ "s", "0660", "4294967295", "socket_group" }, /* "leave it" */
		{ "s", "0660", "12 ", "socket_group" },
		{ "", "0660", "", "path of 1 to 103" },
	};
	struct event_base *base = event_base_new();
	struct listener *l = NULL;
	struct listener_error err;
	char path[LISTENER_PATH_MAX + 2];

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct listener_conf conf = { rows[i].path, rows[i].mode,
			rows[i].group, 1 };

		assert_int_equal(listener_open(&l, base, &conf, &err), 78);
		assert_non_null(strstr(err.text, rows[i].word));
		assert_null(l);
	}
	/* Never cut silently. */
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	const struct listener_conf conf = { path, "0660", "", 1 };
	assert_int_equal(listener_open(&l, base, &conf, &err), 78);
	assert_non_null(strstr(err.text, "path of 1 to 103"));
	event_base_free(base);
}

/* ---- who was there first --------------------------------------------------------- */

static void
test_directory(void **state)
{
	static const struct {
		mode_t mode;
		int status;
		const char *why;
	} rows[] = {
		{ 0755, 0, "only its owner can write it" },
		{ 0700, 0, "the same" },
		{ 01777, 0, "sticky: names belong to who made them" },
		{ 01775, 0, "sticky too" },
		{ 0757, 1, "others could replace the socket" },
		{ 0777, 1, "the same" },
		{ 0775, 1, "so could the group: the applications' own" },
		{ 02770, 1, "setgid does not help" },
	};
	struct listener_error err;
	struct place p;

	(void)state;
	place_open(&p);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct listener *l = NULL;

		assert_int_equal(chmod(p.dir, rows[i].mode), 0);
		assert_int_equal(place_listen(&p, &l, &err), rows[i].status);
		if (rows[i].status != 0) {
			assert_non_null(strstr(err.text, p.dir));
			assert_non_null(strstr(err.text, "others can write"));
			assert_int_equal(access(p.lock, F_OK), -1);
		}
		listener_close(l);
		(void)!unlink(p.lock);
	}
	if (geteuid() == 0) {
		struct listener *l = NULL;

		assert_int_equal(chmod(p.dir, 0755), 0);
		assert_int_equal(chown(p.dir, 12345, (gid_t)-1), 0);
		assert_int_equal(place_listen(&p, &l, &err), 1);
		assert_non_null(strstr(err.text, "belongs to uid 12345"));
		assert_int_equal(chown(p.dir, 0, (gid_t)-1), 0);
	}
	place_close(&p);
}

static void
test_no_directory(void **state)
{
	const struct listener_conf conf = { "/nonexistent/dir/s", "0660", "",
		1 };
	struct event_base *base = event_base_new();
	struct listener *l = NULL;
	struct listener_error err;

	(void)state;
	assert_int_equal(listener_open(&l, base, &conf, &err), 1);
	assert_non_null(strstr(err.text, "/nonexistent/dir: No such file"));
	event_base_free(base);
}

static void
test_second_instance(void **state)
{
	struct listener *first = NULL, *second = NULL;
	struct listener_error err;
	struct place p;
	struct stat before, after;
	char pid[32];

	(void)state;
	place_open(&p);
	assert_int_equal(place_listen(&p, &first, &err), 0);
	assert_int_equal(lstat(p.path, &before), 0);
	assert_int_equal(place_listen(&p, &second, &err), 1);
	assert_null(second);
	snprintf(pid, sizeof(pid), "(pid %ld)", (long)getpid());
	assert_non_null(strstr(err.text, pid));
	assert_non_null(strstr(err.text, p.lock));
	assert_int_equal(lstat(p.path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	/* While it drains it is one instance still ... */
	listener_stop(first);
	assert_int_equal(place_listen(&p, &second, &err), 1);
	/* ... and the next one takes the same lock file, not a new one. */
	assert_int_equal(lstat(p.lock, &before), 0);
	listener_close(first);
	assert_int_equal(place_listen(&p, &second, &err), 0);
	assert_int_equal(lstat(p.lock, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	listener_close(second);
	place_close(&p);
}

static void
test_stale(void **state)
{
	struct listener *l = NULL;
	struct listener_error err;
	struct place p;
	int fd;

	(void)state;
	place_open(&p);
	make_socket(p.path); /* left by a kill -9 */
	make_socket(p.fresh); /* by one between bind and rename */
	assert_int_equal(place_listen(&p, &l, &err), 0);
	fd = dial(p.path);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(access(p.fresh, F_OK), -1);
	listener_close(l);
	place_close(&p);
}

/* Anything but a socket is somebody's: it stays, and we say so. */
static void
check_in_the_way(const char *at, const char *kind)
{
	struct listener *l = NULL;
	struct listener_error err;
	struct place p;
	struct stat before, after;
	char name[112], target[112];

	place_open(&p);
	snprintf(name, sizeof(name), "%s%s", p.path, at);
	snprintf(target, sizeof(target), "%s/target", p.dir);
	make_socket(target);
	if (strcmp(kind, "file") == 0)
		make_file(name);
	else if (strcmp(kind, "symlink") == 0)
		assert_int_equal(symlink(target, name), 0);
	else if (strcmp(kind, "dangling") == 0)
		assert_int_equal(symlink("nowhere", name), 0);
	else if (strcmp(kind, "directory") == 0)
		assert_int_equal(mkdir(name, 0700), 0);
	else
		assert_int_equal(mkfifo(name, 0600), 0);
	assert_int_equal(lstat(name, &before), 0);
	assert_int_equal(place_listen(&p, &l, &err), 1);
	assert_non_null(strstr(err.text, "not a socket is in the way"));
	assert_non_null(strstr(err.text, name));
	assert_int_equal(lstat(name, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(unlink(target), 0);
	assert_int_equal(remove(name), 0);
	place_close(&p);
}

static void
test_in_the_way(void **state)
{
	static const char *const kinds[] = { "file", "symlink", "dangling",
		"directory", "fifo" };

	(void)state;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		check_in_the_way("", kinds[i]);
		check_in_the_way(".new", kinds[i]);
	}
}

static void
test_lock_tricks(void **state)
{
	struct listener *l = NULL;
	struct listener_error err;
	struct place p;
	char target[112];

	(void)state;
	place_open(&p);
	snprintf(target, sizeof(target), "%s/target", p.dir);
	/* A symlink would make us create, lock and write somebody's file. */
	assert_int_equal(symlink(target, p.lock), 0);
	assert_int_equal(place_listen(&p, &l, &err), 1);
	assert_non_null(strstr(err.text, p.lock));
	assert_int_equal(access(target, F_OK), -1);
	assert_int_equal(unlink(p.lock), 0);
	assert_non_null(strstr(err.text, "a symbolic link"));
	/* Nor one to a file that is there, which would be locked and cut. */
	make_file(target);
	assert_int_equal(symlink(target, p.lock), 0);
	assert_int_equal(place_listen(&p, &l, &err), 1);
	assert_non_null(strstr(err.text, "a symbolic link"));
	assert_int_equal(unlink(p.lock), 0);
	assert_int_equal(unlink(target), 0);
	/* So would a hard link. */
	make_file(target);
	assert_int_equal(link(target, p.lock), 0);
	assert_int_equal(place_listen(&p, &l, &err), 1);
	assert_non_null(strstr(err.text, "not a plain file"));
	assert_int_equal(unlink(p.lock), 0);
	assert_int_equal(unlink(target), 0);
	/* Nor can anything be kept in a directory, or a fifo. */
	assert_int_equal(mkdir(p.lock, 0700), 0);
	assert_int_equal(place_listen(&p, &l, &err), 1);
	assert_non_null(strstr(err.text, "Is a directory"));
	assert_int_equal(rmdir(p.lock), 0);
	assert_int_equal(mkfifo(p.lock, 0600), 0);
	assert_int_equal(place_listen(&p, &l, &err), 1);
	assert_non_null(strstr(err.text, "not a plain file"));
	assert_int_equal(unlink(p.lock), 0);
	if (geteuid() == 0) {
		make_file(p.lock);
		assert_int_equal(chown(p.lock, 12345, (gid_t)-1), 0);
		/* Root itself may run beside files of others: refused too. */
		assert_int_equal(place_listen(&p, &l, &err), 1);
		assert_non_null(strstr(err.text, "belongs to uid 12345"));
	}
	assert_null(l);
	place_close(&p);
}

/* Root's link to a directory will do; another's could lead anywhere. */
static void
test_directory_is_a_link(void **state)
{
	struct listener *l = NULL;
	struct listener_error err;
	struct place p;
	char link_name[112], path[128];

	(void)state;
	place_open(&p);
	snprintf(link_name, sizeof(link_name), "%s/link", p.dir);
	snprintf(path, sizeof(path), "%s/s", link_name);
	assert_int_equal(symlink(".", link_name), 0);
	const struct listener_conf conf = { path, "0660", "", 1 };
	assert_int_equal(listener_open(&l, p.base, &conf, &err), 0);
	listener_close(l);
	if (geteuid() == 0) {
		l = NULL;
		assert_int_equal(lchown(link_name, 12345, (gid_t)-1), 0);
		assert_int_equal(listener_open(&l, p.base, &conf, &err), 1);
		assert_non_null(
		    strstr(err.text, "a symbolic link of uid 12345"));
		assert_null(l);
	}
	assert_int_equal(unlink(link_name), 0);
	place_close(&p);
}

/* ---- somebody changes things meanwhile ------------------------------------------- */

struct vandal {
	const struct place *p;
	char target[112]; /* a file that must not be touched */
	bool at_lock;
	atomic_bool over;
};

/* Puts things at the path, or takes the lock's file away, all the time. */
static void *
vandal_run(void *arg)
{
	struct vandal *v = arg;

	for (unsigned i = 0; !atomic_load(&v->over); i++) {
		if (v->at_lock) {
			(void)unlink(v->p->lock);
			if (i % 3 == 0)
				(void)!symlink(v->target, v->p->lock);
			continue;
		}
		(void)unlink(v->p->path);
		if (i % 3 == 0)
			(void)!symlink(v->target, v->p->path);
		else if (i % 3 == 1)
			(void)!symlink("nowhere", v->p->fresh);
		else
			(void)unlink(v->p->fresh);
	}
	return (NULL);
}

/*
 * Only who owns the directory can do it, so it need not work: but each try
 * ends, by a socket or by a line, and no file behind a link is ever touched.
 */
static void
check_vandal(bool at_lock)
{
	struct vandal v = { .at_lock = at_lock };
	struct listener_error err;
	struct stat before, after;
	unsigned good = 0;
	struct place p;
	pthread_t t;

	place_open(&p);
	v.p = &p;
	snprintf(v.target, sizeof(v.target), "%s/target", p.dir);
	make_file(v.target);
	assert_int_equal(lstat(v.target, &before), 0);
	assert_int_equal(pthread_create(&t, NULL, vandal_run, &v), 0);
	for (int i = 0; i < 300; i++) {
		struct listener *l = NULL;
		int status = place_listen(&p, &l, &err);

		assert_true(status == 0 || status == 1);
		assert_true((status == 0) == (err.text[0] == '\0'));
		assert_true((status == 0) == (l != NULL));
		good += status == 0;
		listener_close(l);
	}
	atomic_store(&v.over, true);
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(lstat(v.target, &after), 0);
	assert_int_equal(after.st_size, 4);
	assert_int_equal(after.st_mode, before.st_mode);
	assert_int_equal(after.st_ino, before.st_ino);
	printf("%u of 300 starts beside a vandal\n", good);
	assert_int_equal(unlink(v.target), 0);
	(void)!unlink(p.path);
	(void)!unlink(p.fresh);
	(void)!unlink(p.lock);
	place_close(&p);
}

static void
test_vandals(void **state)
{
	(void)state;
	check_vandal(false);
	check_vandal(true);
}

/* ---- the name while it listens --------------------------------------------------- */

/* It listens, accepts, and looks, with a client that is connected. */
static struct listener *
place_start(struct place *p)
{
	struct listener *l = NULL;
	struct listener_error err;

	assert_int_equal(place_listen(p, &l, &err), 0);
	assert_int_equal(listener_start(l, on_accept, p), 0);
	listener_look(l);
	return (l);
}

static void
check_reached(struct place *p, bool reached)
{
	unsigned before = p->accepted;
	int fd = dial(p->path);

	turn(p->base);
	assert_int_equal(fd >= 0, reached);
	assert_int_equal(p->accepted, before + (reached ? 1 : 0));
	if (fd >= 0)
		close(fd);
}

static void
test_removed(void **state)
{
	struct listener *l;
	struct stat before, after;
	struct place p;
	int watch;

	(void)state;
	place_open(&p);
	l = place_start(&p);
	watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	assert_true(inotify_add_watch(watch, p.dir, IN_ALL_EVENTS) >= 0);
	assert_int_equal(lstat(p.path, &before), 0);
	check_reached(&p, true);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(unlink(p.path), 0);
		check_reached(&p, false);
		(void)seen(watch);
		listener_look(l);
		assert_int_equal(seen(watch), IN_CREATE);
		assert_int_equal(lstat(p.path, &after), 0);
		assert_int_equal(before.st_mode, after.st_mode);
		assert_int_equal(after.st_nlink, 1);
		assert_int_equal(access(p.fresh, F_OK), -1);
		check_reached(&p, true);
		check_reached(&p, true);
	}
	/* Nothing happens while nothing has happened. */
	assert_int_equal(lstat(p.path, &before), 0);
	listener_look(l);
	assert_int_equal(lstat(p.path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	close(watch);
	listener_close(l);
	assert_int_equal(lstat(p.path, &after), -1);
	place_close(&p);
}

/* Who waits in the queue of a socket that has lost its name is let in. */
static void
test_removed_with_a_queue(void **state)
{
	struct listener *l;
	struct place p;
	int fd;

	(void)state;
	place_open(&p);
	l = place_start(&p);
	fd = dial(p.path);
	assert_int_equal(unlink(p.path), 0);
	assert_int_equal(p.accepted, 0);
	listener_look(l);
	assert_int_equal(p.accepted, 1);
	assert_int_equal(write(p.fd, "x", 1), 1);
	close(fd);
	listener_close(l);
	place_close(&p);
}

static void
test_removed_lock(void **state)
{
	struct listener *l, *second = NULL;
	struct listener_error err;
	struct place p;
	int other;

	(void)state;
	place_open(&p);
	l = place_start(&p);
	/* With the lock's file gone as well, it is taken anew. */
	assert_int_equal(unlink(p.path), 0);
	assert_int_equal(unlink(p.lock), 0);
	listener_look(l);
	check_reached(&p, true);
	assert_int_equal(place_listen(&p, &second, &err), 1);
	assert_non_null(strstr(err.text, "another firnd (pid "));
	/* Held by another by now: the name is theirs. */
	assert_int_equal(unlink(p.path), 0);
	assert_int_equal(unlink(p.lock), 0);
	make_file(p.lock);
	other = open(p.lock, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(other, LOCK_EX | LOCK_NB), 0);
	for (int i = 0; i < 3; i++)
		listener_look(l);
	check_reached(&p, false);
	/* Until they leave. */
	close(other);
	listener_look(l);
	check_reached(&p, true);
	assert_int_equal(place_listen(&p, &second, &err), 1);
	listener_close(l);
	place_close(&p);
}

static void
test_replaced(void **state)
{
	struct listener *l;
	struct stat before, after;
	struct place p;

	(void)state;
	place_open(&p);
	l = place_start(&p);
	assert_int_equal(unlink(p.path), 0);
	make_socket(p.path);
	assert_int_equal(lstat(p.path, &before), 0);
	for (int i = 0; i < 3; i++)
		listener_look(l);
	assert_int_equal(lstat(p.path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(unlink(p.path), 0);
	/* What is in the way of the way there is somebody's, too. */
	make_file(p.fresh);
	listener_look(l);
	check_reached(&p, false);
	assert_int_equal(unlink(p.fresh), 0);
	listener_look(l);
	check_reached(&p, true);
	listener_close(l);
	place_close(&p);
}

static void
test_removed_directory(void **state)
{
	struct listener *l;
	struct place p;

	(void)state;
	place_open(&p);
	l = place_start(&p);
	assert_int_equal(unlink(p.path), 0);
	assert_int_equal(unlink(p.lock), 0);
	assert_int_equal(rmdir(p.dir), 0);
	listener_look(l);
	/* One that others can write is not good enough. */
	assert_int_equal(mkdir(p.dir, 0700), 0);
	assert_int_equal(chmod(p.dir, 0777), 0);
	listener_look(l);
	check_reached(&p, false);
	assert_int_equal(chmod(p.dir, 0755), 0);
	listener_look(l);
	check_reached(&p, true);
	listener_close(l);
	place_close(&p);
}

/* Whoever replaced the socket meanwhile keeps theirs. */
static void
test_stop_leaves_others(void **state)
{
	struct listener *l = NULL;
	struct listener_error err;
	struct place p;
	struct stat st;

	(void)state;
	place_open(&p);
	assert_int_equal(place_listen(&p, &l, &err), 0);
	assert_int_equal(unlink(p.path), 0);
	make_socket(p.path);
	listener_close(l);
	assert_int_equal(lstat(p.path, &st), 0);
	place_close(&p);
}

/* ---- accept ------------------------------------------------------------------------- */

static void
test_accept(void **state)
{
	struct listener *l = NULL;
	struct listener_error err;
	struct place p;
	int fd;

	(void)state;
	place_open(&p);
	assert_int_equal(place_listen(&p, &l, &err), 0);
	fd = dial(p.path); /* waits in the queue until we start */
	assert_int_equal(listener_start(l, on_accept, &p), 0);
	turn(p.base);
	assert_int_equal(p.accepted, 1);
	assert_int_equal(p.peer.uid, geteuid());
	assert_int_equal(p.peer.gid, getegid());
	assert_int_equal(p.peer.pid, getpid());
	assert_true(fcntl(p.fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(p.fd, F_GETFL) & O_NONBLOCK);
	close(fd);
	listener_stop(l);
	assert_int_equal(dial(p.path), -1);
	turn(p.base);
	assert_int_equal(p.accepted, 1);
	listener_close(l);
	place_close(&p);
}

/* The lowest number that is free: how many descriptors there may be. */
static int
next_fd(void)
{
	int fd = dup(STDERR_FILENO);

	close(fd);
	return (fd);
}

/* Leaves no descriptor for the client that waits, and turns the loop. */
static int
starve(struct place *p, struct listener *l, struct rlimit *old)
{
	struct rlimit low;
	int fd;

	assert_int_equal(listener_start(l, on_accept, p), 0);
	turn(p->base);
	fd = dial(p->path);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, old), 0);
	low = *old;
	low.rlim_cur = (rlim_t)next_fd();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	turn(p->base);
	assert_true(listener_starved(l));
	assert_int_equal(p->accepted, 0);
	return (fd);
}

static void
test_descriptors_run_out(void **state)
{
	struct listener *l = NULL;
	struct listener_error err;
	struct rlimit old;
	struct place p;
	int fd, looks = 0;

	(void)state;
	place_open(&p);
	assert_int_equal(place_listen(&p, &l, &err), 0);
	fd = starve(&p, l, &old);
	for (int i = 0; i < 20; i++) /* pauses of 1 ms */
		assert_true(event_base_loop(p.base, EVLOOP_ONCE) >= 0);
	assert_true(listener_starved(l));
	assert_int_equal(p.accepted, 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	while (p.accepted == 0 && looks++ < 100)
		assert_true(event_base_loop(p.base, EVLOOP_ONCE) >= 0);
	assert_int_equal(p.accepted, 1);
	turn(p.base);
	assert_false(listener_starved(l));
	close(fd);
	listener_close(l);
	place_close(&p);
}

/* It looks away for all of the pause, else the loop would spin. */
static void
test_pause_is_one(void **state)
{
	struct listener *l = NULL;
	struct listener_error err;
	struct rlimit old;
	struct place p;
	int fd;

	(void)state;
	place_open(&p);
	const struct listener_conf conf = { p.path, "0660", "", 60000 };
	assert_int_equal(listener_open(&l, p.base, &conf, &err), 0);
	fd = starve(&p, l, &old);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	turn(p.base);
	assert_int_equal(p.accepted, 0);
	close(fd);
	listener_close(l);
	place_close(&p);
}

/* ---- a connection and its peer --------------------------------------------------------- */

struct world {
	struct event_base *base;
	struct conn *conn; /* NULL: closed */
	int fd; /* the peer's end; -1: closed */
	mono_t now;
	enum conn_verdict verdict; /* what a request is answered with */
	unsigned wakes, asked; /* asked: each request counts once */
	uint64_t last_cookie;
	bool waits;
	uint8_t got[1 << 20]; /* what the peer has received */
	size_t ngot;
};

static mono_t
on_wake(void *arg)
{
	struct world *w = arg;

	w->wakes++;
	return (w->now);
}

static uint32_t
body_length(const struct wire_request *rq)
{
	if (rq->type == WIRE_STATUS)
		return (WIRE_STATUS_MAX);
	return (rq->type == WIRE_CONTRACT ? WIRE_CONTRACT_SIZE
					  : rq->count % (CONN_BODY_MAX + 1));
}

static void
fill_body(const struct wire_request *rq, uint8_t *body, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		body[i] = (uint8_t)(rq->cookie * 31 + i);
}

static enum conn_verdict
on_request(void *arg, struct conn *c, const struct wire_request *rq)
{
	struct world *w = arg;
	uint8_t body[WIRE_STATUS_MAX];
	uint32_t length = body_length(rq);

	assert_int_equal(rq->version, WIRE_VERSION);
	w->waits = w->verdict == CONN_WAIT;
	if (w->verdict != CONN_ANSWERED)
		return (w->verdict);
	w->asked++;
	w->last_cookie = rq->cookie;
	fill_body(rq, body, length);
	assert_true(conn_reply(c, rq, WIRE_OK, body, length));
	return (CONN_ANSWERED);
}

static void
on_closed(void *arg)
{
	struct world *w = arg;

	assert_non_null(w->conn);
	w->conn = NULL;
	w->waits = false;
}

static const struct conn_calls calls = { on_wake, on_request, on_closed };

static void
world_open(struct world *w)
{
	const struct conn_peer peer = { 7, 1000, 4242 };
	int fds[2], size = 4608; /* the kernel's least: blocks soon */

	memset(w, 0, sizeof(*w));
	w->base = event_base_new();
	w->now.ns = 1000 * NS_PER_S;
	assert_int_equal(
	    socketpair(
		AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds),
	    0);
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	w->fd = fds[1];
	w->conn = conn_open(w->base, fds[0], &peer, &calls, w);
	assert_non_null(w->conn);
}

static void
world_close(struct world *w)
{
	if (w->conn != NULL)
		conn_close(w->conn);
	if (w->fd != -1)
		close(w->fd);
	event_base_free(w->base);
}

static void
pass(struct world *w, int64_t ms)
{
	w->now = mono_add_ms(w->now, ms);
}

static void
put_frame(uint8_t p[WIRE_REQUEST_SIZE], unsigned type, uint32_t count,
    uint64_t cookie)
{
	const struct wire_request rq = { .version = WIRE_VERSION,
		.type = (uint8_t)type,
		.count = count,
		.cookie = cookie };

	wire_put_request(p, &rq);
}

static size_t
peer_send(struct world *w, const uint8_t *p, size_t n)
{
	ssize_t sent = send(w->fd, p, n, MSG_NOSIGNAL);

	return (sent > 0 ? (size_t)sent : 0);
}

static void
send_frame(struct world *w, unsigned type, uint32_t count, uint64_t cookie)
{
	uint8_t p[WIRE_REQUEST_SIZE];

	put_frame(p, type, count, cookie);
	assert_int_equal(peer_send(w, p, sizeof(p)), sizeof(p));
}

/* Reads up to n bytes of what is there; 0 also for an end. */
static size_t
peer_read(struct world *w, size_t n)
{
	ssize_t r;

	if (n > sizeof(w->got) - w->ngot)
		n = sizeof(w->got) - w->ngot;
	r = recv(w->fd, w->got + w->ngot, n, 0);
	if (r > 0)
		w->ngot += (size_t)r;
	return (r > 0 ? (size_t)r : 0);
}

static void
peer_read_all(struct world *w)
{
	do
		turn(w->base);
	while (peer_read(w, sizeof(w->got)) > 0);
}

static bool
peer_sees_end(struct world *w)
{
	char c;
	ssize_t n = recv(w->fd, &c, 1, MSG_PEEK);

	return (n == 0 || (n == -1 && errno == ECONNRESET));
}

/* Takes the reply at *at apart and compares it with what is due. */
static void
expect_reply(
    struct world *w, size_t *at, unsigned type, uint32_t count, uint64_t cookie)
{
	const struct wire_request rq = {
		.type = (uint8_t)type, .count = count, .cookie = cookie
	};
	uint8_t body[WIRE_STATUS_MAX];
	uint32_t length = body_length(&rq);
	struct wire_header h;

	assert_true(w->ngot - *at >= WIRE_HEADER_SIZE + length);
	wire_get_header(w->got + *at, &h);
	assert_int_equal(h.version, WIRE_VERSION);
	assert_int_equal(h.type, type);
	assert_int_equal(h.status, WIRE_OK);
	assert_int_equal(h.cookie, cookie);
	assert_int_equal(h.length, length);
	fill_body(&rq, body, length);
	assert_memory_equal(w->got + *at + WIRE_HEADER_SIZE, body, length);
	*at += WIRE_HEADER_SIZE + length;
}

/* ---- frames in pieces --------------------------------------------------------------------- */

static void
test_halves(void **state)
{
	struct world *w = malloc(sizeof(*w));
	uint8_t p[WIRE_REQUEST_SIZE];
	size_t at = 0;

	(void)state;
	world_open(w);
	for (size_t cut = 1; cut < sizeof(p); cut++) {
		put_frame(p, WIRE_BATCH, 56, cut);
		assert_int_equal(peer_send(w, p, cut), cut);
		turn(w->base);
		assert_int_equal(w->asked, cut - 1); /* not yet */
		assert_int_equal(
		    peer_send(w, p + cut, sizeof(p) - cut), sizeof(p) - cut);
		peer_read_all(w);
		assert_int_equal(w->asked, cut);
		expect_reply(w, &at, WIRE_BATCH, 56, cut);
		assert_int_equal(at, w->ngot);
	}
	assert_non_null(w->conn);
	world_close(w);
	free(w);
}

static void
test_byte_at_a_time(void **state)
{
	struct world *w = malloc(sizeof(*w));
	uint8_t p[3 * WIRE_REQUEST_SIZE];
	size_t at = 0;

	(void)state;
	world_open(w);
	put_frame(p, WIRE_BATCH, 1, 1);
	put_frame(p + 32, WIRE_CONTRACT, 0, 2);
	put_frame(p + 64, WIRE_STATUS, 0, 3);
	for (size_t i = 0; i < sizeof(p); i++) {
		assert_int_equal(peer_send(w, p + i, 1), 1);
		turn(w->base);
		assert_int_equal(w->asked, (i + 1) / WIRE_REQUEST_SIZE);
	}
	peer_read_all(w);
	expect_reply(w, &at, WIRE_BATCH, 1, 1);
	expect_reply(w, &at, WIRE_CONTRACT, 0, 2);
	expect_reply(w, &at, WIRE_STATUS, 0, 3);
	assert_int_equal(at, w->ngot);
	world_close(w);
	free(w);
}

static void
test_pipeline(void **state)
{
	struct world *w = malloc(sizeof(*w));
	uint8_t *p = malloc(1000 * WIRE_REQUEST_SIZE);
	size_t sent = 0, at = 0;

	(void)state;
	world_open(w);
	for (size_t i = 0; i < 1000; i++)
		put_frame(p + i * WIRE_REQUEST_SIZE,
		    i % 97 == 0 ? WIRE_STATUS : WIRE_BATCH,
		    i % 97 == 0 ? 0 : (uint32_t)(1 + i % 400), i);
	for (int i = 0; i < 10000 && w->asked < 1000; i++) {
		sent += peer_send(w, p + sent, 1000 * WIRE_REQUEST_SIZE - sent);
		peer_read_all(w);
	}
	for (size_t i = 0; i < 1000; i++)
		expect_reply(w, &at, i % 97 == 0 ? WIRE_STATUS : WIRE_BATCH,
		    i % 97 == 0 ? 0 : (uint32_t)(1 + i % 400), i);
	assert_int_equal(at, w->ngot);
	assert_non_null(w->conn);
	world_close(w);
	free(w);
	free(p);
}

/* ---- a peer that does not read ------------------------------------------------------------- */

static void
test_not_reading(void **state)
{
	struct world *w = malloc(sizeof(*w));
	uint64_t sent = 0;
	size_t at = 0;
	unsigned asked;
	uint8_t p[WIRE_REQUEST_SIZE];

	(void)state;
	world_open(w);
	for (int idle = 0; idle < 3; idle++) {
		put_frame(p, WIRE_BATCH, 400, sent);
		while (peer_send(w, p, sizeof(p)) == sizeof(p)) {
			put_frame(p, WIRE_BATCH, 400, ++sent);
			turn(w->base);
			idle = 0;
		}
		turn(w->base);
	}
	/* The kernel's two buffers and ours are full: we do not read on. */
	asked = w->asked;
	assert_true(asked < sent);
	assert_true(asked < 4096 + CONN_OUT_SIZE / CONN_REPLY_MAX);
	turn(w->base);
	assert_int_equal(w->asked, asked);
	assert_true(conn_sane(w->conn));
	/* Nothing is lost: once it reads, all of it comes, in order. */
	peer_read_all(w);
	assert_int_equal(w->asked, sent);
	for (uint64_t i = 0; i < sent; i++)
		expect_reply(w, &at, WIRE_BATCH, 400, i);
	assert_int_equal(at, w->ngot);
	world_close(w);
	free(w);
}

/* A loop that polled for a full buffer's room would spin. */
static void
test_not_reading_is_quiet(void **state)
{
	struct world *w = malloc(sizeof(*w));
	unsigned wakes;

	(void)state;
	world_open(w);
	for (uint64_t i = 0; i < 40; i++)
		send_frame(w, WIRE_STATUS, 0, i);
	turn(w->base);
	wakes = w->wakes;
	for (int i = 0; i < 50; i++)
		turn(w->base);
	assert_int_equal(w->wakes, wakes);
	world_close(w);
	free(w);
}

/* ---- bad bytes ------------------------------------------------------------------------------- */

static void
test_bad_requests(void **state)
{
	static const struct {
		size_t at;
		uint8_t byte;
		uint8_t type;
		uint32_t count;
		const char *why;
	} rows[] = {
		{ 2, 1, WIRE_BATCH, 1, "flags" },
		{ 3, 0x80, WIRE_BATCH, 1, "flags" },
		{ 24, 1, WIRE_BATCH, 1, "reserved" },
		{ 31, 1, WIRE_STATUS, 0, "reserved" },
		{ 1, 0, WIRE_BATCH, 1, "no type" },
		{ 1, 4, WIRE_BATCH, 1, "a type of tomorrow" },
		{ 1, 255, WIRE_BATCH, 1, "no type" },
		{ 0, 1, WIRE_BATCH, 0, "no IDs at all" },
		{ 0, 1, WIRE_BATCH, WIRE_COUNT_MAX + 1, "too many" },
		{ 0, 1, WIRE_BATCH, UINT32_MAX, "too many" },
		{ 0, 1, WIRE_CONTRACT, 1, "a count where none is" },
		{ 0, 1, WIRE_STATUS, 1, "a count where none is" },
		{ 16, 1, WIRE_CONTRACT, 0, "an after where none is" },
		{ 23, 1, WIRE_STATUS, 0, "an after where none is" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct world *w = malloc(sizeof(*w));
		uint8_t p[3 * WIRE_REQUEST_SIZE];
		size_t at = 0;

		world_open(w);
		put_frame(p, WIRE_BATCH, 9, 1);
		put_frame(p + 32, rows[i].type, rows[i].count, 2);
		p[32 + rows[i].at] = rows[i].byte;
		put_frame(p + 64, WIRE_BATCH, 9, 3);
		assert_int_equal(peer_send(w, p, sizeof(p)), sizeof(p));
		turn(w->base);
		/* What was right before it is answered; nothing after it. */
		assert_null(w->conn);
		assert_int_equal(w->asked, 1);
		peer_read(w, sizeof(w->got));
		expect_reply(w, &at, WIRE_BATCH, 9, 1);
		assert_int_equal(at, w->ngot);
		assert_true(peer_sees_end(w));
		world_close(w);
		free(w);
	}
}

/* The limits themselves are right. */
static void
test_good_edges(void **state)
{
	struct world *w = malloc(sizeof(*w));
	struct wire_request rq = { WIRE_VERSION, WIRE_BATCH, 0, WIRE_COUNT_MAX,
		UINT64_MAX, UINT64_MAX };
	uint8_t p[WIRE_REQUEST_SIZE];
	size_t at = 0;

	(void)state;
	world_open(w);
	wire_put_request(p, &rq);
	assert_int_equal(peer_send(w, p, sizeof(p)), sizeof(p));
	send_frame(w, WIRE_BATCH, 1, 0);
	peer_read_all(w);
	expect_reply(w, &at, WIRE_BATCH, WIRE_COUNT_MAX, UINT64_MAX);
	expect_reply(w, &at, WIRE_BATCH, 1, 0);
	assert_non_null(w->conn);
	world_close(w);
	free(w);
}

/*
 * Judged by its first byte alone, since other versions have other lengths;
 * the answer says which version this is.
 */
static void
test_versions(void **state)
{
	(void)state;
	for (unsigned version = 0; version < 256; version++) {
		struct world *w = malloc(sizeof(*w));
		const uint8_t byte = (uint8_t)version;
		struct wire_header h;

		if (version == WIRE_VERSION) {
			free(w);
			continue;
		}
		world_open(w);
		assert_int_equal(peer_send(w, &byte, 1), 1);
		turn(w->base);
		assert_null(w->conn);
		assert_int_equal(w->asked, 0);
		peer_read(w, sizeof(w->got));
		assert_true(w->ngot >= WIRE_HEADER_SIZE);
		wire_get_header(w->got, &h);
		assert_int_equal(h.version, WIRE_VERSION);
		assert_int_equal(h.status, WIRE_BAD_VERSION);
		assert_int_equal(w->ngot, WIRE_HEADER_SIZE + h.length);
		assert_int_equal(wire_get32(w->got + WIRE_HEADER_SIZE + 4),
		    h.length - WIRE_REFUSAL_SIZE);
		assert_true(peer_sees_end(w));
		world_close(w);
		free(w);
	}
}

static void
test_garbage(void **state)
{
	struct dice d = dice_open("garbage");

	(void)state;
	for (int i = 0; i < 500; i++) {
		struct world *w = malloc(sizeof(*w));
		uint8_t p[300];
		size_t n = 1 + dice_below(&d, sizeof(p) - 1);

		world_open(w);
		for (size_t k = 0; k < n; k++)
			p[k] = (uint8_t)dice_next(&d);
		if (dice_below(&d, 2) == 0)
			p[0] = WIRE_VERSION;
		peer_send(w, p, n);
		peer_read_all(w);
		/* A random frame is right once in 2^80. */
		assert_int_equal(w->asked, 0);
		assert_true(w->conn == NULL || n < WIRE_REQUEST_SIZE);
		world_close(w);
		free(w);
	}
}

/* ---- ends -------------------------------------------------------------------------------------- */

static void
test_close_mid_frame(void **state)
{
	struct world *w = malloc(sizeof(*w));
	uint8_t p[WIRE_REQUEST_SIZE];

	(void)state;
	world_open(w);
	put_frame(p, WIRE_BATCH, 1, 1);
	peer_send(w, p, 17);
	turn(w->base);
	assert_non_null(w->conn);
	close(w->fd);
	w->fd = -1;
	turn(w->base);
	assert_null(w->conn);
	assert_int_equal(w->asked, 0);
	world_close(w);
	free(w);
}

/* `printf ... | nc -NU`: it sends no more, but reads. */
static void
test_half_close(void **state)
{
	struct world *w = malloc(sizeof(*w));
	size_t at = 0;

	(void)state;
	world_open(w);
	for (uint64_t i = 0; i < 30; i++)
		send_frame(w, WIRE_STATUS, 0, i);
	assert_int_equal(shutdown(w->fd, SHUT_WR), 0);
	peer_read_all(w);
	for (uint64_t i = 0; i < 30; i++)
		expect_reply(w, &at, WIRE_STATUS, 0, i);
	assert_int_equal(at, w->ngot);
	assert_null(w->conn);
	world_close(w);
	free(w);
}

static void
test_peer_gone_with_replies_due(void **state)
{
	struct world *w = malloc(sizeof(*w));

	(void)state;
	world_open(w);
	for (uint64_t i = 0; i < 40; i++)
		send_frame(w, WIRE_STATUS, 0, i);
	turn(w->base);
	assert_non_null(w->conn);
	close(w->fd);
	w->fd = -1;
	turn(w->base);
	assert_null(w->conn); /* EPIPE, and no SIGPIPE */
	world_close(w);
	free(w);
}

static void
test_dropped(void **state)
{
	struct world *w = malloc(sizeof(*w));

	(void)state;
	world_open(w);
	w->verdict = CONN_DROP;
	send_frame(w, WIRE_BATCH, 1, 1);
	turn(w->base);
	assert_null(w->conn);
	world_close(w);
	free(w);
}

/* ---- requests that wait for a tick --------------------------------------------------------------- */

static void
test_waiting(void **state)
{
	struct world *w = malloc(sizeof(*w));
	size_t at = 0;

	(void)state;
	world_open(w);
	w->verdict = CONN_WAIT;
	send_frame(w, WIRE_BATCH, 1, 1);
	turn(w->base);
	assert_true(w->waits);
	w->verdict = CONN_ANSWERED;
	/* What comes behind it does not overtake it, and is not lost. */
	for (uint64_t i = 2; i <= 100; i++)
		send_frame(w, WIRE_BATCH, (uint32_t)i, i);
	pass(w, CONN_HALF_MS * 2); /* it is not slow: we are */
	turn(w->base);
	assert_int_equal(w->asked, 0);
	assert_false(conn_check(w->conn, w->now));
	conn_resume(w->conn, w->now);
	peer_read_all(w);
	assert_int_equal(w->asked, 100);
	for (uint64_t i = 1; i <= 100; i++)
		expect_reply(w, &at, WIRE_BATCH, (uint32_t)i, i);
	world_close(w);
	free(w);
}

/* Waits again at resume, and again. */
static void
test_waiting_on(void **state)
{
	struct world *w = malloc(sizeof(*w));
	size_t at = 0;

	(void)state;
	world_open(w);
	w->verdict = CONN_WAIT;
	send_frame(w, WIRE_BATCH, 1, 1);
	turn(w->base);
	for (int i = 0; i < 3; i++) {
		w->waits = false;
		conn_resume(w->conn, w->now);
		assert_true(w->waits);
	}
	w->verdict = CONN_ANSWERED;
	conn_resume(w->conn, w->now);
	peer_read_all(w);
	expect_reply(w, &at, WIRE_BATCH, 1, 1);
	world_close(w);
	free(w);
}

static void
test_closed_while_waiting(void **state)
{
	struct world *w = malloc(sizeof(*w));

	(void)state;
	world_open(w);
	w->verdict = CONN_WAIT;
	send_frame(w, WIRE_BATCH, 1, 1);
	turn(w->base);
	close(w->fd);
	w->fd = -1;
	turn(w->base);
	assert_null(w->conn); /* so it leaves the queue */
	world_close(w);
	free(w);
}

static void
test_half_closed_while_waiting(void **state)
{
	struct world *w = malloc(sizeof(*w));
	unsigned wakes;
	size_t at = 0;

	(void)state;
	world_open(w);
	w->verdict = CONN_WAIT;
	send_frame(w, WIRE_BATCH, 1, 1);
	assert_int_equal(shutdown(w->fd, SHUT_WR), 0);
	turn(w->base);
	assert_non_null(w->conn);
	wakes = w->wakes;
	turn(w->base);
	assert_int_equal(w->wakes, wakes); /* an end is read once */
	w->verdict = CONN_ANSWERED;
	conn_resume(w->conn, w->now);
	assert_null(w->conn);
	peer_read(w, sizeof(w->got));
	expect_reply(w, &at, WIRE_BATCH, 1, 1);
	world_close(w);
	free(w);
}

/* ---- limits of slowness ---------------------------------------------------------------------------- */

static void
test_half_too_old(void **state)
{
	struct world *w = malloc(sizeof(*w));
	uint8_t p[WIRE_REQUEST_SIZE];

	(void)state;
	world_open(w);
	put_frame(p, WIRE_BATCH, 1, 1);
	for (size_t i = 0; i < 10; i++) { /* a byte a second is no excuse */
		peer_send(w, p + i, 1);
		turn(w->base);
		assert_false(conn_check(w->conn, w->now));
		pass(w, 1000);
	}
	pass(w, -1);
	assert_false(conn_check(w->conn, w->now));
	pass(w, 1);
	assert_true(conn_check(w->conn, w->now));
	assert_null(w->conn);
	world_close(w);
	free(w);
}

/* The age is that of the half that is there now. */
static void
test_half_is_done(void **state)
{
	struct world *w = malloc(sizeof(*w));
	uint8_t p[2 * WIRE_REQUEST_SIZE];

	(void)state;
	world_open(w);
	put_frame(p, WIRE_BATCH, 1, 1);
	put_frame(p + 32, WIRE_BATCH, 1, 2);
	peer_send(w, p, 20);
	turn(w->base);
	pass(w, 9000);
	peer_send(w, p + 20, 20); /* ends one, begins another */
	turn(w->base);
	pass(w, 9000);
	assert_false(conn_check(w->conn, w->now));
	pass(w, 1000);
	assert_true(conn_check(w->conn, w->now));
	world_close(w);
	free(w);
}

static void
test_unread_too_old(void **state)
{
	struct world *w = malloc(sizeof(*w));

	(void)state;
	world_open(w);
	for (uint64_t i = 0; i < 40; i++)
		send_frame(w, WIRE_STATUS, 0, i);
	turn(w->base);
	pass(w, CONN_UNREAD_MS - 1);
	assert_false(conn_check(w->conn, w->now));
	/* Reading on starts it afresh, for what is due then. */
	peer_read(w, sizeof(w->got));
	turn(w->base);
	pass(w, CONN_UNREAD_MS - 1);
	assert_false(conn_check(w->conn, w->now));
	pass(w, 1);
	assert_true(conn_check(w->conn, w->now));
	assert_null(w->conn);
	world_close(w);
	free(w);
}

/* A peer that goes on asking does not make old replies young. */
static void
test_unread_while_asking(void **state)
{
	struct world *w = malloc(sizeof(*w));
	int there = 0, due = 0;

	(void)state;
	world_open(w);
	while (there == due) { /* until one stays in our buffer */
		send_frame(w, WIRE_BATCH, 84, 0);
		turn(w->base);
		due += WIRE_HEADER_SIZE + 84;
		assert_int_equal(ioctl(w->fd, FIONREAD, &there), 0);
	}
	pass(w, CONN_UNREAD_MS - 1000);
	send_frame(w, WIRE_BATCH, 84, 0);
	turn(w->base);
	assert_int_equal(w->asked, due / 100 + 1);
	assert_false(conn_check(w->conn, w->now));
	pass(w, 1000);
	assert_true(conn_check(w->conn, w->now));
	world_close(w);
	free(w);
}

static void
test_idle_lives(void **state)
{
	struct world *w = malloc(sizeof(*w));

	(void)state;
	world_open(w);
	pass(w, INT64_C(365) * 86400 * 1000);
	assert_false(conn_check(w->conn, w->now));
	send_frame(w, WIRE_BATCH, 1, 1);
	turn(w->base);
	assert_int_equal(w->asked, 1);
	pass(w, INT64_C(365) * 86400 * 1000);
	/* Its reply lies in the kernel: that is not our buffer. */
	assert_false(conn_check(w->conn, w->now));
	world_close(w);
	free(w);
}

/* ---- drain -------------------------------------------------------------------------------------------- */

static void
test_drain_idle(void **state)
{
	struct world *w = malloc(sizeof(*w));

	(void)state;
	world_open(w);
	conn_drain(w->conn, w->now);
	assert_null(w->conn);
	assert_true(peer_sees_end(w));
	world_close(w);
	free(w);
}

/* What was sent before is answered, what waits too; then it ends. */
static void
test_drain(void **state)
{
	struct world *w = malloc(sizeof(*w));
	size_t at = 0;

	(void)state;
	world_open(w);
	w->verdict = CONN_WAIT;
	send_frame(w, WIRE_BATCH, 1, 1);
	turn(w->base);
	send_frame(w, WIRE_BATCH, 1, 2);
	w->verdict = CONN_ANSWERED;
	conn_drain(w->conn, w->now);
	assert_null(w->conn);
	peer_read(w, sizeof(w->got));
	expect_reply(w, &at, WIRE_BATCH, 1, 1);
	expect_reply(w, &at, WIRE_BATCH, 1, 2);
	assert_int_equal(at, w->ngot);
	world_close(w);
	free(w);
}

/* Replies that are not taken keep it open until they are. */
static void
test_drain_unread(void **state)
{
	struct world *w = malloc(sizeof(*w));
	size_t at = 0;
	unsigned asked;

	(void)state;
	world_open(w);
	for (uint64_t i = 0; i < 10; i++)
		send_frame(w, WIRE_STATUS, 0, i);
	turn(w->base);
	conn_drain(w->conn, w->now);
	assert_non_null(w->conn);
	asked = w->asked;
	send_frame(w, WIRE_STATUS, 0, 99); /* too late: not read */
	peer_read_all(w);
	assert_null(w->conn);
	assert_int_equal(w->asked, 10);
	assert_true(asked < 10);
	for (uint64_t i = 0; i < 10; i++)
		expect_reply(w, &at, WIRE_STATUS, 0, i);
	assert_int_equal(at, w->ngot);
	world_close(w);
	free(w);
}

/* ---- any order of anything ------------------------------------------------------------------------------ */

/* Request i of a world is a function of i alone. */
static void
nth(uint64_t i, unsigned *type, uint32_t *count)
{
	struct dice d = { i };
	uint64_t roll = dice_below(&d, 10);

	*type = roll == 0 ? WIRE_STATUS : roll < 3 ? WIRE_CONTRACT : WIRE_BATCH;
	*count = *type == WIRE_BATCH ? (uint32_t)dice_range(&d, 1, 10000) : 0;
}

static void
random_step(struct world *w, struct dice *d, uint8_t *p, size_t n, size_t *sent)
{
	size_t most = n - *sent;

	switch (dice_below(d, 8)) {
	case 0:
	case 1:
		if (most > 0)
			*sent += peer_send(w, p + *sent,
			    1 + dice_below(d, most < 700 ? most : 700));
		break;
	case 2:
	case 3:
		peer_read(w, 1 + dice_below(d, 5000));
		break;
	case 4:
		w->verdict = dice_below(d, 3) == 0 ? CONN_WAIT : CONN_ANSWERED;
		break;
	case 5:
		if (w->waits)
			conn_resume(w->conn, w->now);
		break;
	default:
		turn(w->base);
		break;
	}
	assert_non_null(w->conn);
	assert_true(conn_sane(w->conn));
}

static void
test_random_worlds(void **state)
{
	struct dice d = dice_open("worlds");

	(void)state;
	for (int round = 0; round < 40; round++) {
		struct world *w = malloc(sizeof(*w));
		uint8_t p[200 * WIRE_REQUEST_SIZE];
		size_t sent = 0, at = 0;
		uint32_t count;
		unsigned type;

		world_open(w);
		for (uint64_t i = 0; i < 200; i++) {
			nth(i, &type, &count);
			put_frame(p + i * WIRE_REQUEST_SIZE, type, count, i);
		}
		for (int step = 0; step < 2000; step++)
			random_step(w, &d, p, sizeof(p), &sent);
		w->verdict = CONN_ANSWERED;
		while (w->asked < 200) {
			if (w->waits)
				conn_resume(w->conn, w->now);
			if (sent < sizeof(p))
				sent +=
				    peer_send(w, p + sent, sizeof(p) - sent);
			peer_read_all(w);
		}
		peer_read_all(w);
		for (uint64_t i = 0; i < 200; i++) {
			nth(i, &type, &count);
			expect_reply(w, &at, type, count, i);
		}
		assert_int_equal(at, w->ngot);
		world_close(w);
		free(w);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_birth),
		cmocka_unit_test(test_birth_group),
		cmocka_unit_test(test_bad_conf),
		cmocka_unit_test(test_directory),
		cmocka_unit_test(test_no_directory),
		cmocka_unit_test(test_second_instance),
		cmocka_unit_test(test_stale),
		cmocka_unit_test(test_in_the_way),
		cmocka_unit_test(test_lock_tricks),
		cmocka_unit_test(test_directory_is_a_link),
		cmocka_unit_test(test_vandals),
		cmocka_unit_test(test_removed),
		cmocka_unit_test(test_removed_with_a_queue),
		cmocka_unit_test(test_removed_lock),
		cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_removed_directory),
		cmocka_unit_test(test_stop_leaves_others),
		cmocka_unit_test(test_accept),
		cmocka_unit_test(test_descriptors_run_out),
		cmocka_unit_test(test_pause_is_one),
		cmocka_unit_test(test_halves),
		cmocka_unit_test(test_byte_at_a_time),
		cmocka_unit_test(test_pipeline),
		cmocka_unit_test(test_not_reading),
		cmocka_unit_test(test_not_reading_is_quiet),
		cmocka_unit_test(test_bad_requests),
		cmocka_unit_test(test_good_edges),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_close_mid_frame),
		cmocka_unit_test(test_half_close),
		cmocka_unit_test(test_peer_gone_with_replies_due),
		cmocka_unit_test(test_dropped),
		cmocka_unit_test(test_waiting),
		cmocka_unit_test(test_waiting_on),
		cmocka_unit_test(test_closed_while_waiting),
		cmocka_unit_test(test_half_closed_while_waiting),
		cmocka_unit_test(test_half_too_old),
		cmocka_unit_test(test_half_is_done),
		cmocka_unit_test(test_unread_too_old),
		cmocka_unit_test(test_unread_while_asking),
		cmocka_unit_test(test_idle_lives),
		cmocka_unit_test(test_drain_idle),
		cmocka_unit_test(test_drain),
		cmocka_unit_test(test_drain_unread),
		cmocka_unit_test(test_random_worlds),
	};

	signal(SIGPIPE, SIG_DFL); /* whatever the caller left us */
	log_set_level(LOG_LEVEL_ERROR);
	return (cmocka_run_group_tests(tests, NULL, NULL));
}
