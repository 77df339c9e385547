/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the log: what comes out of standard error, byte by byte. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "log.h"

#define HEAD strlen("2026-11-30T17:00:00.123Z ")

static int pipe_fds[2], real_stderr;
static char out[8192];

/* Standard error is a pipe from here to release(). */
static void
capture(void)
{
	assert_int_equal(pipe2(pipe_fds, O_NONBLOCK | O_CLOEXEC), 0);
	real_stderr = dup(STDERR_FILENO);
	assert_int_not_equal(real_stderr, -1);
	assert_int_equal(dup2(pipe_fds[1], STDERR_FILENO), STDERR_FILENO);
}

static const char *
heard(void)
{
	ssize_t n = read(pipe_fds[0], out, sizeof(out) - 1);

	out[n > 0 ? n : 0] = '\0';
	return (out);
}

/* What follows the time stamp of the one line heard. */
static const char *
said(void)
{
	assert_in_range(strlen(heard()), HEAD, sizeof(out));
	return (out + HEAD);
}

static void
release(void)
{
	assert_int_equal(dup2(real_stderr, STDERR_FILENO), STDERR_FILENO);
	(void)close(real_stderr);
	(void)close(pipe_fds[0]);
	(void)close(pipe_fds[1]);
}

/* JOURNAL_STREAM as systemd sets it, its inode off by so many. */
static void
set_stream(uintmax_t off)
{
	struct stat st;
	char text[64];

	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	(void)snprintf(text, sizeof(text), "%ju:%ju", (uintmax_t)st.st_dev,
	    (uintmax_t)st.st_ino + off);
	assert_int_equal(setenv("JOURNAL_STREAM", text, 1), 0);
}

static void
test_stamp_and_level(void **state)
{
	const char *line;

	(void)state;
	capture();
	(void)unsetenv("JOURNAL_STREAM");
	log_open(LOG_LEVEL_DEBUG);
	errno = ENOENT;
	log_warnx("claim %d: %s", 17, "gone");
	assert_int_equal(errno, ENOENT);
	line = heard();
	assert_int_equal(line[4], '-');
	assert_int_equal(line[10], 'T');
	assert_int_equal(line[19], '.');
	assert_int_equal(line[23], 'Z');
	assert_string_equal(line + HEAD, "warn: claim 17: gone\n");
	log_warn("cannot open %s", "x");
	assert_int_equal(errno, ENOENT);
	assert_string_equal(
	    heard() + HEAD, "warn: cannot open x: No such file or directory\n");
	log_debug("d");
	assert_string_equal(said(), "debug: d\n");
	log_info("i");
	assert_string_equal(said(), "info: i\n");
	log_error("e");
	assert_string_equal(said(), "error: e\n");
	release();
}

static void
test_lowest_level(void **state)
{
	enum log_level level;

	(void)state;
	capture();
	log_open(LOG_LEVEL_WARN);
	log_debug("d");
	log_info("i");
	assert_string_equal(heard(), "");
	log_warnx("w");
	assert_string_equal(said(), "warn: w\n");
	log_set_level(LOG_LEVEL_INFO);
	log_info("i");
	assert_string_equal(said(), "info: i\n");
	assert_int_equal(log_level_parse("error", &level), 0);
	assert_int_equal(level, LOG_LEVEL_ERROR);
	assert_int_equal(log_level_parse("debug", &level), 0);
	assert_int_equal(level, LOG_LEVEL_DEBUG);
	assert_int_equal(log_level_parse("", &level), -1);
	assert_int_equal(log_level_parse("Warn", &level), -1);
	release();
}

/* Priorities only if this very stream is the journal's. */
static void
test_journal(void **state)
{
	(void)state;
	capture();
	set_stream(0);
	log_open(LOG_LEVEL_DEBUG);
	log_debug("d");
	assert_string_equal(heard(), "<7>d\n");
	log_info("i");
	assert_string_equal(heard(), "<6>i\n");
	log_warnx("w");
	assert_string_equal(heard(), "<4>w\n");
	log_error("e");
	assert_string_equal(heard(), "<3>e\n");
	set_stream(1);
	log_open(LOG_LEVEL_INFO);
	log_info("i");
	assert_string_equal(said(), "info: i\n");
	assert_int_equal(setenv("JOURNAL_STREAM", "garbage", 1), 0);
	log_open(LOG_LEVEL_INFO);
	log_info("i");
	assert_string_equal(said(), "info: i\n");
	(void)unsetenv("JOURNAL_STREAM");
	release();
}

/* A peer's document must not forge lines or move the cursor. */
static void
test_control_bytes(void **state)
{
	(void)state;
	capture();
	log_open(LOG_LEVEL_INFO);
	log_info("a\nb\tc\x1b[2J\x7f\xc2\x9b %s", "~");
	assert_string_equal(
	    heard() + HEAD, "info: a\\nb\\x09c\\x1b[2J\\x7f\\xc2\\x9b ~\n");
	release();
}

/* Around the limit each length is one line, whole or with its dots. */
static void
test_long_lines(void **state)
{
	char text[3000];

	(void)state;
	capture();
	log_open(LOG_LEVEL_INFO);
	for (size_t n = 900; n < sizeof(text) - 3; n += n < 1100 ? 1 : 100) {
		const char *line;
		size_t length;

		memset(text, 'x', n);
		memcpy(text + n, "\x01y", 3);
		log_info("%s", text);
		line = heard();
		length = strlen(line);
		assert_in_range(length, 900, 1024);
		assert_ptr_equal(strchr(line, '\n'), line + length - 1);
		if (length != HEAD + strlen("info: \n") + n + 5)
			assert_string_equal(line + length - 4, "...\n");
		/* Cut means cut: nothing shorter slips in behind. */
		if (strchr(line, 'y') != NULL)
			assert_non_null(strstr(line, "x\\x01y"));
	}
	release();
}

/* A reader that is stuck costs lines, not the loop; it is told how many. */
static void
test_stuck_reader(void **state)
{
	char junk[8192]; /* two pages: the pipe has room by pages */
	unsigned lines = 0;

	(void)state;
	capture();
	/* The pipe blocks, as a real standard error does. */
	assert_int_equal(fcntl(STDERR_FILENO, F_SETFL, 0), 0);
	assert_int_not_equal(
	    fcntl(STDERR_FILENO, F_SETPIPE_SZ, (int)sizeof(junk)), -1);
	memset(junk, 'j', sizeof(junk));
	assert_int_equal(
	    write(STDERR_FILENO, junk, sizeof(junk)), sizeof(junk));
	log_open(LOG_LEVEL_INFO);
	for (; lines < 5; lines++)
		log_info("lost"); /* would hang here */
	(void)heard();
	assert_int_equal(strspn(out, "j"), sizeof(out) - 1);
	(void)heard();
	log_info("found");
	(void)heard();
	assert_memory_equal(out + HEAD,
	    "warn: 5 log lines lost: the reader is stuck\n",
	    strlen("warn: 5 log lines lost: the reader is stuck\n"));
	assert_non_null(strstr(out, " info: found\n"));
	log_info("again");
	assert_string_equal(said(), "info: again\n");
	release();
}

/* Also if standard error is gone. */
static void
test_keeps_errno(void **state)
{
	(void)state;
	capture();
	log_open(LOG_LEVEL_INFO);
	(void)close(STDERR_FILENO);
	errno = ENOENT;
	log_info("to nobody");
	assert_int_equal(errno, ENOENT);
	log_open(LOG_LEVEL_INFO);
	assert_int_equal(errno, ENOENT);
	release();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stamp_and_level),
		cmocka_unit_test(test_lowest_level),
		cmocka_unit_test(test_journal),
		cmocka_unit_test(test_control_bytes),
		cmocka_unit_test(test_long_lines),
		cmocka_unit_test(test_stuck_reader),
		cmocka_unit_test(test_keeps_errno),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
