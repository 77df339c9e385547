/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_runner - real programs: one that does what it should, and those that
 * hang, fail, fork, read nothing, die, or are not there.  Nothing here depends
 * on how quick the machine is, unless it is slower than HANG_S.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "runner.h"

#define HANG_S 60
#define LONG_MS (HANG_S * 1000 * 10) /* never in a test */
#define LARGE (1 << 20) /* more than any pipe holds */
#define TEXT_MAX 4096

struct bench {
	struct event_base *base;
	struct runner *runner;
	char dir[40], program[64];
	char *argv[3];
};

static int
set_up(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	strcpy(b->dir, "/tmp/test_runner.XXXXXX");
	assert_non_null(mkdtemp(b->dir));
	snprintf(b->program, sizeof(b->program), "%s/program", b->dir);
	b->argv[0] = b->program;
	b->argv[1] = b->dir; /* $1 */
	b->base = event_base_new();
	assert_non_null(b->base);
	signal(SIGPIPE, SIG_IGN); /* as in firnd */
	*state = b;
	return (0);
}

static void
path_of(const struct bench *b, const char *name, char path[96])
{
	snprintf(path, 96, "%s/%s", b->dir, name);
}

static int
tear_down(void **state)
{
	static const char *const names[] = { "program", "out", "pid", "child",
		"fds" };
	struct bench *b = *state;
	char path[96];

	runner_close(b->runner);
	event_base_free(b->base);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		path_of(b, names[i], path);
		(void)unlink(path);
	}
	assert_int_equal(rmdir(b->dir), 0);
	free(b);
	return (0);
}

static void
write_program(const struct bench *b, const char *script, mode_t mode)
{
	int fd = open(b->program, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, script, strlen(script)), strlen(script));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void
open_runner(struct bench *b, const char *script, int64_t pace_ms,
    int64_t limit_ms, int64_t grace_ms)
{
	const struct runner_conf conf = { "test", b->argv, pace_ms, limit_ms,
		grace_ms };

	if (script != NULL)
		write_program(b, script, 0700);
	b->runner = runner_open(b->base, &conf);
	assert_non_null(b->runner);
}

/* What a program wrote; "" if there is nothing yet. */
static const char *
read_file(const struct bench *b, const char *name)
{
	static char text[TEXT_MAX];
	char path[96];
	ssize_t n;
	int fd;

	path_of(b, name, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	text[0] = '\0';
	if (fd == -1)
		return (text);
	n = read(fd, text, sizeof(text) - 1);
	assert_true(n >= 0);
	text[n] = '\0';
	close(fd);
	return (text);
}

static struct runner_figures
figures(const struct bench *b)
{
	struct runner_figures f;

	runner_figures(b->runner, &f);
	return (f);
}

static void
turn(struct bench *b)
{
	const struct timeval tv = { .tv_usec = 20000 };

	(void)event_base_loopexit(b->base, &tv);
	(void)event_base_dispatch(b->base);
}

/* Until so many have ended, well or not. */
static void
wait_ended(struct bench *b, uint64_t n)
{
	time_t end = time(NULL) + HANG_S;

	while (figures(b).good + figures(b).failed < n) {
		assert_true(time(NULL) < end);
		turn(b);
	}
	assert_int_equal(figures(b).good + figures(b).failed, n);
}

/* Until a program wrote a whole line there. */
static const char *
wait_line(struct bench *b, const char *name)
{
	time_t end = time(NULL) + HANG_S;

	while (strchr(read_file(b, name), '\n') == NULL) {
		assert_true(time(NULL) < end);
		turn(b);
	}
	return (read_file(b, name));
}

/* Ended, if not yet reaped by whoever inherited it. */
static void
wait_dead(struct bench *b, pid_t pid)
{
	time_t end = time(NULL) + HANG_S;
	char path[40], text[256] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	for (;;) {
		f = fopen(path, "re");
		if (f == NULL)
			return;
		if (fgets(text, sizeof(text), f) == NULL)
			text[0] = '\0';
		fclose(f);
		if (text[0] == '\0' || strstr(text, ") Z ") != NULL)
			return;
		assert_true(time(NULL) < end);
		turn(b);
	}
}

static void
add(struct bench *b, const char *text)
{
	runner_add(b->runner, text, strlen(text));
}

/* ---- what goes well --------------------------------------------------------- */

static void
test_text_arrives(void **state)
{
	struct bench *b = *state;

	open_runner(b, "#!/bin/sh\ncat >>\"$1/out\"\n", 1, LONG_MS, 1);
	add(b, "one\n");
	add(b, "two\n");
	add(b, "three\n");
	wait_ended(b, 3);
	assert_string_equal(read_file(b, "out"), "one\ntwo\nthree\n");
	assert_int_equal(figures(b).good, 3);
	assert_int_equal(figures(b).started, 3);
	assert_int_equal(figures(b).pid, 0);
}

/* More than a pipe holds, and each byte of it. */
static void
test_large_text_arrives(void **state)
{
	struct bench *b = *state;
	char *text = malloc(LARGE);

	assert_non_null(text);
	memset(text, 'x', LARGE);
	open_runner(b, "#!/bin/sh\nwc -c >\"$1/out\"\n", 1, LONG_MS, 1);
	runner_add(b->runner, text, LARGE);
	free(text);
	wait_ended(b, 1);
	assert_int_equal(atoi(read_file(b, "out")), LARGE);
	assert_int_equal(figures(b).good, 1);
}

/*
 * Its own group, no descriptor but three, output to nowhere, and SIGPIPE as
 * programs expect it.
 */
static void
test_nothing_is_inherited(void **state)
{
	struct bench *b = *state;
	char path[96];
	int fd;

	path_of(b, "fds", path);
	fd = open(path, O_WRONLY | O_CREAT, 0600); /* no O_CLOEXEC */
	assert_true(fd > 2);
	open_runner(b,
	    "#!/bin/sh\n"
	    "echo said; echo said >&2\n"
	    "for n in 3 4 5 6 7 8 9; do\n"
	    "	[ -e /proc/$$/fd/$n ] && readlink /proc/$$/fd/$n\n"
	    "done | grep /fds >\"$1/out\"\n"
	    "a=$(readlink /proc/$$/fd/1) b=$(readlink /proc/$$/fd/2)\n"
	    "echo $a $b >>\"$1/out\"\n"
	    "grep -c 'SigIgn:.*[1357]...$' /proc/$$/status >>\"$1/out\"\n"
	    "[ \"$(cut -d' ' -f5 /proc/$$/stat)\" = $$ ] && "
	    "echo own >>\"$1/out\"\n",
	    1, LONG_MS, 1);
	add(b, "");
	wait_ended(b, 1);
	close(fd);
	assert_string_equal(
	    read_file(b, "out"), "/dev/null /dev/null\n0\nown\n");
}

static void
test_one_at_a_time_and_paced(void **state)
{
	struct bench *b = *state;
	struct timespec from, to;

	open_runner(b,
	    "#!/bin/sh\n[ -e \"$1/pid\" ] && exit 1\n"
	    "echo >\"$1/pid\"; sleep 0.1; rm \"$1/pid\"\n",
	    300, LONG_MS, 1);
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (int i = 0; i < 4; i++)
		add(b, "x");
	assert_int_equal(figures(b).started, 1);
	assert_int_equal(figures(b).waiting, 3);
	wait_ended(b, 4);
	clock_gettime(CLOCK_MONOTONIC, &to);
	assert_int_equal(figures(b).good, 4);
	/* three paces between four starts, by the loop's coarse clock */
	assert_true((to.tv_sec - from.tv_sec) * 1000 +
			(to.tv_nsec - from.tv_nsec) / 1000000 >=
		    3 * 300 - 50);
}

/* ---- what does not ------------------------------------------------------------ */

static void
test_fails(void **state)
{
	struct bench *b = *state;

	open_runner(b, "#!/bin/sh\nread a\n[ \"$a\" = good ]\n", 1, LONG_MS, 1);
	add(b, "bad\n");
	add(b, "good\n");
	wait_ended(b, 2);
	assert_int_equal(figures(b).failed, 1);
	assert_int_equal(figures(b).good, 1); /* the next has its turn */
	assert_int_equal(figures(b).expired, 0);
}

static void
test_dies_by_signal(void **state)
{
	struct bench *b = *state;

	open_runner(b, "#!/bin/sh\nkill -SEGV $$\n", 1, LONG_MS, 1);
	add(b, "x");
	wait_ended(b, 1);
	assert_int_equal(figures(b).failed, 1);
	assert_int_equal(figures(b).expired, 0);
}

static void
test_hangs(void **state)
{
	struct bench *b = *state;
	pid_t child;

	open_runner(b, "#!/bin/sh\nsleep 1000 &\necho $! >\"$1/child\"\nwait\n",
	    1, 500, LONG_MS);
	add(b, "x");
	wait_ended(b, 1); /* SIGTERM is enough */
	assert_int_equal(figures(b).expired, 1);
	if (read_file(b, "child")[0] != '\0') { /* it came so far */
		child = (pid_t)atoi(read_file(b, "child"));
		wait_dead(b, child);
	}
}

static void
test_hangs_and_ignores(void **state)
{
	struct bench *b = *state;

	open_runner(b,
	    "#!/bin/sh\ntrap '' TERM\necho $$ >\"$1/pid\"\n"
	    "while :; do sleep 1000; done\n",
	    1, 500, 300);
	add(b, "x");
	add(b, "y");
	wait_ended(b, 2);
	assert_int_equal(figures(b).expired, 2);
	assert_int_equal(figures(b).pid, 0);
}

/* It ends well, and what it left behind with the pipe ends with it. */
static void
test_forks(void **state)
{
	struct bench *b = *state;
	pid_t child;

	open_runner(b, "#!/bin/sh\nsleep 1000 <&0 &\necho $! >\"$1/child\"\n",
	    1, LONG_MS, LONG_MS);
	runner_add(b->runner, "x", 1);
	add(b, "y");
	child = (pid_t)atoi(wait_line(b, "child"));
	wait_ended(b, 2);
	assert_int_equal(figures(b).good, 2);
	wait_dead(b, child);
	wait_dead(b, (pid_t)atoi(read_file(b, "child")));
}

/* The pipe is full for ever: neither its end nor its hanging is in the way. */
static void
test_reads_nothing(void **state)
{
	struct bench *b = *state;
	char *text = calloc(1, LARGE);

	assert_non_null(text);
	open_runner(b, "#!/bin/sh\nexit 0\n", 1, LONG_MS, 1);
	runner_add(b->runner, text, LARGE);
	wait_ended(b, 1);
	assert_int_equal(figures(b).good, 1);
	runner_close(b->runner);

	open_runner(b, "#!/bin/sh\nexec sleep 1000\n", 1, 500, LONG_MS);
	runner_add(b->runner, text, LARGE);
	wait_ended(b, 1);
	assert_int_equal(figures(b).expired, 1);
	free(text);
}

static void
test_missing(void **state)
{
	struct bench *b = *state;

	open_runner(b, NULL, 1, LONG_MS, 1);
	add(b, "x");
	wait_ended(b, 1);
	assert_int_equal(figures(b).started, 0);
	assert_int_equal(figures(b).failed, 1);

	write_program(b, "#!/bin/sh\n", 0600); /* not executable */
	add(b, "x");
	wait_ended(b, 2);
	assert_int_equal(figures(b).started, 0);

	assert_int_equal(chmod(b->program, 0700), 0); /* mended */
	add(b, "x");
	wait_ended(b, 3);
	assert_int_equal(figures(b).good, 1);
}

static void
test_too_many(void **state)
{
	struct bench *b = *state;

	open_runner(b, "#!/bin/sh\nexec sleep 1000\n", 1, LONG_MS, LONG_MS);
	for (int i = 0; i < RUNNER_QUEUE_MAX + 6; i++)
		add(b, "x");
	assert_int_equal(figures(b).started, 1);
	assert_int_equal(figures(b).waiting, RUNNER_QUEUE_MAX);
	assert_int_equal(figures(b).dropped, 5);
}

/* At the stop: whatever runs is ended, and nobody waits for it. */
static void
test_stop(void **state)
{
	struct bench *b = *state;
	pid_t pid;

	open_runner(b,
	    "#!/bin/sh\ntrap '' TERM\necho $$ >\"$1/pid\"\nsleep 1000\n", 1,
	    LONG_MS, LONG_MS);
	add(b, "x");
	add(b, "y");
	pid = (pid_t)atoi(wait_line(b, "pid"));
	assert_int_equal(figures(b).pid, pid);
	runner_close(b->runner);
	b->runner = NULL;
	wait_dead(b, pid);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_text_arrives),
		TEST(test_large_text_arrives),
		TEST(test_nothing_is_inherited),
		TEST(test_one_at_a_time_and_paced),
		TEST(test_fails),
		TEST(test_dies_by_signal),
		TEST(test_hangs),
		TEST(test_hangs_and_ignores),
		TEST(test_forks),
		TEST(test_reads_nothing),
		TEST(test_missing),
		TEST(test_too_many),
		TEST(test_stop),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
