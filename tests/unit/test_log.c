/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the log: what comes out of standard error, byte by byte. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "log.h"

#define HEAD strlen("2026-11-30T17:00:00.123Z ")

static int pipe_fds[2], real_stderr;
static char out[8192];

/* Standard error is a pipe from here to release(), and no loss is untold. */
static void
capture(void)
{
	assert_int_equal(pipe2(pipe_fds, O_NONBLOCK | O_CLOEXEC), 0);
	real_stderr = dup(STDERR_FILENO);
	assert_int_not_equal(real_stderr, -1);
	assert_int_equal(dup2(pipe_fds[1], STDERR_FILENO), STDERR_FILENO);
	log_open(LOG_LEVEL_INFO);
	log_tell_lost();
	assert_int_not_equal(read(pipe_fds[0], out, sizeof(out)), 0);
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

/* ---- where no line can go ---------------------------------------------------- */

/* Nothing of these tests may wait for a reader: that would be for ever. */
#define HANGS_S 120

enum way { OWN_DESCRIPTION, AS_IT_IS, SOCKET };

/* Standard error blocks, as a real one does, and has little room. */
static void
capture_blocking(enum way way)
{
	struct rlimit rl, none = { 0, 0 };
	int room = 8192; /* two pages: a pipe has room by pages */

	capture();
	if (way == SOCKET) {
		(void)close(pipe_fds[0]);
		(void)close(pipe_fds[1]);
		assert_int_equal(
		    socketpair(AF_UNIX, SOCK_STREAM, 0, pipe_fds), 0);
		assert_int_equal(
		    dup2(pipe_fds[1], STDERR_FILENO), STDERR_FILENO);
		assert_int_equal(fcntl(pipe_fds[0], F_SETFL, O_NONBLOCK), 0);
		assert_int_equal(setsockopt(pipe_fds[1], SOL_SOCKET, SO_SNDBUF,
				     &room, sizeof(room)),
		    0);
	} else {
		assert_int_equal(fcntl(STDERR_FILENO, F_SETFL, 0), 0);
		assert_int_not_equal(
		    fcntl(STDERR_FILENO, F_SETPIPE_SZ, room), -1);
	}
	/* Without a descriptor to spare it cannot be opened anew. */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &rl), 0);
	none.rlim_max = rl.rlim_max;
	if (way == AS_IT_IS)
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	log_open(LOG_LEVEL_INFO);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &rl), 0);
}

/* Reads what is there; the number of lines told, lines lost by their words. */
static unsigned
drain(int fd, unsigned long *lost)
{
	static char text[1 << 20];
	size_t used = 0;
	unsigned lines = 0;
	ssize_t n;

	while (used < sizeof(text) - 1 &&
	       (n = read(fd, text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)n;
	text[used] = '\0';
	for (char *line = strtok(text, "\r\n"); line != NULL;
	     line = strtok(NULL, "\r\n")) {
		unsigned long more;

		if (strstr(line, " info: ") != NULL)
			lines++;
		else if (sscanf(line + HEAD, "warn: %lu log lines lost",
			     &more) == 1)
			*lost += more;
	}
	return (lines);
}

/* A reader that is stuck costs lines, not the loop; it is told how many. */
static void
test_stuck_reader(void **state)
{
	unsigned long before, lost;
	unsigned told;

	(void)state;
	for (enum way way = OWN_DESCRIPTION; way <= SOCKET; way++) {
		alarm(HANGS_S);
		capture_blocking(way);
		before = log_lost();
		lost = 0;
		for (int i = 0; i < 1000; i++)
			log_info("%0100d", i); /* would hang here */
		assert_in_range(log_lost() - before, 500, 990);
		told = drain(pipe_fds[0], &lost);
		assert_in_range(told, 10, 500);
		assert_int_equal(lost, 0);
		log_tell_lost();
		assert_int_equal(drain(pipe_fds[0], &lost), 0);
		assert_int_equal(lost, log_lost() - before);
		assert_int_equal(told + lost, 1000);
		log_tell_lost(); /* once */
		log_info("again");
		assert_string_equal(said(), "info: again\n");
		/* Whoever shares it finds it as it was. */
		assert_int_equal(fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK, 0);
		release();
	}
	alarm(0);
}

#define THREADS 4
#define LINES_EACH 5000

static void *
log_much(void *arg)
{
	for (int i = 0; i < LINES_EACH; i++)
		log_info("%0100d", i);
	return (arg);
}

/* Of many threads' lines each is whole, or counted. */
static void
test_threads_and_a_slow_reader(void **state)
{
	pthread_t threads[THREADS];
	unsigned long before, lost;
	unsigned told;

	(void)state;
	for (enum way way = OWN_DESCRIPTION; way <= SOCKET; way++) {
		alarm(HANGS_S);
		capture_blocking(way);
		before = log_lost();
		lost = 0;
		told = 0;
		for (int i = 0; i < THREADS; i++)
			assert_int_equal(
			    pthread_create(&threads[i], NULL, log_much, NULL),
			    0);
		for (int i = 0; i < 100; i++)
			told += drain(pipe_fds[0], &lost);
		for (int i = 0; i < THREADS; i++)
			assert_int_equal(pthread_join(threads[i], NULL), 0);
		told += drain(pipe_fds[0], &lost);
		log_tell_lost();
		told += drain(pipe_fds[0], &lost);
		assert_int_equal(lost, log_lost() - before);
		assert_int_equal(told + lost, THREADS * LINES_EACH);
		release();
	}
	alarm(0);
}

/* The reader is gone: neither a signal nor a wait. */
static void
test_gone_reader(void **state)
{
	(void)state;
	(void)signal(SIGPIPE, SIG_IGN);
	for (enum way way = OWN_DESCRIPTION; way <= SOCKET; way++) {
		unsigned long before = log_lost();

		alarm(HANGS_S);
		capture_blocking(way);
		(void)close(pipe_fds[0]);
		log_info("to nobody");
		log_open(LOG_LEVEL_INFO); /* nor can it be opened anew */
		log_info("to nobody");
		assert_int_equal(log_lost() - before, 2);
		release();
	}
	alarm(0);
}

/* A terminal that someone stopped with ^S, and let go on. */
static void
test_stopped_terminal(void **state)
{
	int terminal = posix_openpt(O_RDWR | O_NOCTTY);
	unsigned long before = log_lost(), lost = 0;
	static char text[1 << 20];
	const char *name, *line;
	size_t used = 0;
	int slave;

	(void)state;
	alarm(HANGS_S);
	capture();
	assert_int_not_equal(terminal, -1);
	assert_int_equal(grantpt(terminal), 0);
	assert_int_equal(unlockpt(terminal), 0);
	name = ptsname(terminal);
	assert_non_null(name);
	slave = open(name, O_RDWR | O_NOCTTY);
	assert_int_not_equal(slave, -1);
	assert_int_equal(dup2(slave, STDERR_FILENO), STDERR_FILENO);
	assert_int_equal(fcntl(terminal, F_SETFL, O_NONBLOCK), 0);
	log_open(LOG_LEVEL_INFO);
	assert_int_equal(write(terminal, "\x13", 1), 1);
	do
		log_info("stopped"); /* the ^S is taken a little later */
	while (log_lost() == before);
	assert_int_equal(write(terminal, "\x11", 1), 1);
	while (strstr(text, "took no more\r\n") == NULL) {
		ssize_t n =
		    read(terminal, text + used, sizeof(text) - 1 - used);

		used += n > 0 ? (size_t)n : 0;
		assert_in_range(used, 0, sizeof(text) - 2);
		log_tell_lost();
	}
	line = strstr(text, "warn: ");
	assert_non_null(line);
	assert_int_equal(sscanf(line, "warn: %lu log lines lost", &lost), 1);
	assert_int_equal(lost, log_lost() - before);
	(void)close(slave);
	(void)close(terminal);
	release();
	alarm(0);
}

/* A full disk costs lines; a line cut off by it does not swallow the next. */
static void
test_full_disk(void **state)
{
	char name[] = "/tmp/test_log.XXXXXX", text[4096];
	unsigned long before = log_lost();
	struct rlimit rl, little;
	int fd = mkstemp(name);
	ssize_t n;

	(void)state;
	assert_int_not_equal(fd, -1);
	(void)unlink(name);
	(void)signal(SIGXFSZ, SIG_IGN);
	capture();
	assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	log_open(LOG_LEVEL_INFO);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &rl), 0);
	little = (struct rlimit){ HEAD + 10, rl.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
	log_info("cut off here"); /* info: cut_ */
	log_info("lost");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &rl), 0);
	log_info("whole");
	assert_int_equal(log_lost() - before, 2);
	n = pread(fd, text, sizeof(text) - 1, 0);
	assert_true(n > 0);
	text[n] = '\0';
	assert_memory_equal(text + HEAD, "info: cut \n", 11);
	assert_memory_equal(
	    text + HEAD + 11 + HEAD, "warn: 2 log lines lost", 22);
	assert_string_equal(text + n - 12, "info: whole\n");
	(void)close(fd);
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
		cmocka_unit_test(test_threads_and_a_slow_reader),
		cmocka_unit_test(test_gone_reader),
		cmocka_unit_test(test_stopped_terminal),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_keeps_errno),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
