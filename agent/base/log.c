/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log - lines for people on standard error.
 *
 * Invariant: a line is one write(2), printable ASCII whatever was passed in,
 * and never waits for a reader that is stuck or a disk that is full: such
 * lines are counted and the count is told once there is room again.  Any
 * thread may log.
 *
 * Others share the description of standard error, so its flags stay as they
 * are.  A pipe or a terminal is opened anew and that description does not
 * block; a socket takes a flag with each line.  Where a pipe cannot be opened
 * (another user's, no /proc) a look that it has room has to do: a line is
 * shorter than PIPE_BUF, so only another process that fills it in between
 * could make it wait.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "log.h"

#define LINE_MAX_BYTES 1024
#define FATAL_WAIT_MS 1000
#define PEER_SECONDS 60
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

_Static_assert(LINE_MAX_BYTES <= PIPE_BUF, "a line is written whole");

static const struct {
	const char *name;
	int priority; /* syslog's */
} levels[] = {
	[LOG_LEVEL_DEBUG] = { "debug", 7 },
	[LOG_LEVEL_INFO] = { "info", 6 },
	[LOG_LEVEL_WARN] = { "warn", 4 },
	[LOG_LEVEL_ERROR] = { "error", 3 },
};

static _Atomic enum log_level lowest_level = LOG_LEVEL_INFO;
static atomic_bool under_journal;
static atomic_ulong lost_lines; /* untold */
static atomic_ulong lost_ever;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static int own_fd = -1; /* standard error without blocking; -1: as it is */
static bool is_socket;
static bool torn; /* the last line stands there without its end */
/* log_peer's minute, of each level */
static struct quota {
	time_t since; /* CLOCK_MONOTONIC */
	unsigned long lines; /* said or not */
} quotas[COUNT(levels)];

struct line {
	char text[LINE_MAX_BYTES];
	size_t used;
	bool cut;
};

/* The journal tells its stream's inode, since stderr may lead elsewhere. */
static bool
stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	struct stat st;
	uintmax_t dev, ino;
	char end;

	if (stream == NULL || fstat(STDERR_FILENO, &st) == -1)
		return (false);
	if (sscanf(stream, "%" SCNuMAX ":%" SCNuMAX "%c", &dev, &ino, &end) !=
	    2)
		return (false);
	return (dev == (uintmax_t)st.st_dev && ino == (uintmax_t)st.st_ino);
}

static void
find_way_out(void)
{
	struct stat st;

	(void)pthread_mutex_lock(&lock);
	if (own_fd != -1)
		(void)close(own_fd);
	own_fd = -1;
	torn = is_socket = false;
	if (fstat(STDERR_FILENO, &st) == 0) {
		is_socket = S_ISSOCK(st.st_mode);
		if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode))
			own_fd = open("/proc/self/fd/2",
			    O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	}
	(void)pthread_mutex_unlock(&lock);
}

void
log_open(enum log_level lowest)
{
	int saved_errno = errno;

	find_way_out();
	under_journal = stderr_is_journal();
	log_set_level(lowest);
	errno = saved_errno;
}

void
log_set_level(enum log_level lowest)
{
	lowest_level = lowest;
}

int
log_level_parse(const char *name, enum log_level *out)
{
	for (size_t i = 0; i < COUNT(levels); i++) {
		if (strcmp(name, levels[i].name) == 0) {
			*out = (enum log_level)i;
			return (0);
		}
	}
	return (-1);
}

/* What does not fit is cut; room for "...\n" is always kept. */
static void
line_add(struct line *l, const char *bytes, size_t n)
{
	if (l->cut || n > sizeof(l->text) - strlen("...\n") - l->used) {
		l->cut = true;
		return;
	}
	memcpy(l->text + l->used, bytes, n);
	l->used += n;
}

/* Names and data of other people reach the log; terminals obey bytes. */
static void
line_add_text(struct line *l, const char *text)
{
	for (const char *p = text; *p != '\0'; p++) {
		unsigned char c = (unsigned char)*p;
		char escaped[5];

		if (c >= 0x20 && c < 0x7f) {
			line_add(l, p, 1);
		} else if (c == '\n') {
			line_add(l, "\\n", 2);
		} else {
			(void)snprintf(escaped, sizeof(escaped), "\\x%02x", c);
			line_add(l, escaped, 4);
		}
	}
}

static void
line_add_head(struct line *l, const char *name, int priority)
{
	char head[64];
	struct timespec now = { 0 };
	struct tm tm;

	if (under_journal) {
		(void)snprintf(head, sizeof(head), "<%d>", priority);
		line_add(l, head, strlen(head));
		return;
	}
	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (gmtime_r(&now.tv_sec, &tm) != NULL &&
	    strftime(head, sizeof(head), "%Y-%m-%dT%H:%M:%S", &tm) > 0)
		line_add(l, head, strlen(head));
	(void)snprintf(head, sizeof(head),
	    ".%03dZ %s: ", (int)(now.tv_nsec / 1000000), name);
	line_add(l, head, strlen(head));
}

/* Called with the lock held. */
static ssize_t
write_once(const char *bytes, size_t n, int wait_ms)
{
	struct pollfd pfd = { .fd = own_fd != -1 ? own_fd : STDERR_FILENO,
		.events = POLLOUT };

	/* Where a write does not wait, no look is needed. */
	if ((wait_ms > 0 || (own_fd == -1 && !is_socket)) &&
	    poll(&pfd, 1, wait_ms) <= 0)
		return (-1);
	if (is_socket)
		return (send(pfd.fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL));
	return (write(pfd.fd, bytes, n));
}

/* False: it is not there, or without its end. */
static bool
line_write(struct line *l, int wait_ms)
{
	ssize_t n;

	if (l->cut) {
		memcpy(l->text + l->used, "...", 3);
		l->used += 3;
	}
	l->text[l->used++] = '\n';
	(void)pthread_mutex_lock(&lock);
	if (torn)
		torn = write_once("\n", 1, wait_ms) != 1;
	do {
		errno = 0;
		n = torn ? -1 : write_once(l->text, l->used, wait_ms);
	} while (n == -1 && errno == EINTR);
	torn = torn || (n > 0 && (size_t)n < l->used);
	(void)pthread_mutex_unlock(&lock);
	return (n == (ssize_t)l->used);
}

/* Ends a minute that is over: how many lines went unsaid in it. */
static unsigned long
quota_turn(struct quota *q, time_t now)
{
	unsigned long unsaid;

	if (q->lines == 0 || now - q->since < PEER_SECONDS)
		return (0);
	unsaid = q->lines > LOG_PEER_LINES ? q->lines - LOG_PEER_LINES : 0;
	q->lines = 0;
	return (unsaid);
}

static void
tell_unsaid(void)
{
	unsigned long unsaid;
	struct timespec now = { 0 };
	char text[80];

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	for (size_t i = 0; i < COUNT(quotas); i++) {
		struct line l = { .used = 0 };

		(void)pthread_mutex_lock(&lock);
		unsaid = quota_turn(&quotas[i], now.tv_sec);
		(void)pthread_mutex_unlock(&lock);
		if (unsaid == 0)
			continue;
		line_add_head(&l, levels[i].name, levels[i].priority);
		(void)snprintf(text, sizeof(text),
		    "%lu more lines about clients in a minute are left out",
		    unsaid);
		line_add_text(&l, text);
		(void)line_write(&l, 0);
	}
}

/* False: this minute's lines are used up. */
static bool
quota_take(enum log_level level)
{
	struct quota *q = &quotas[level];
	struct timespec now = { 0 };
	bool may;

	tell_unsaid();
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	(void)pthread_mutex_lock(&lock);
	if (q->lines == 0)
		q->since = now.tv_sec;
	may = q->lines++ < LOG_PEER_LINES;
	(void)pthread_mutex_unlock(&lock);
	return (may);
}

void
log_tell_lost(void)
{
	struct line l = { .used = 0 };
	unsigned long lost = atomic_exchange(&lost_lines, 0);
	int saved_errno = errno;
	char text[80];

	tell_unsaid();
	errno = saved_errno;
	if (lost == 0)
		return;
	line_add_head(
	    &l, levels[LOG_LEVEL_WARN].name, levels[LOG_LEVEL_WARN].priority);
	(void)snprintf(text, sizeof(text),
	    "%lu log lines lost: standard error took no more", lost);
	line_add_text(&l, text);
	if (!line_write(&l, 0))
		lost_lines += lost;
	errno = saved_errno;
}

unsigned long
log_lost(void)
{
	return (lost_ever);
}

static void
put(const char *name, int priority, int wait_ms, const char *text,
    const char *cause)
{
	struct line l = { .used = 0 };

	log_tell_lost();
	line_add_head(&l, name, priority);
	line_add_text(&l, text);
	if (cause != NULL) {
		line_add_text(&l, ": ");
		line_add_text(&l, cause);
	}
	if (!line_write(&l, wait_ms)) {
		lost_lines++;
		lost_ever++;
	}
}

static void vlog(enum log_level level, int error, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

/* error: an errno to explain, or 0. */
static void
vlog(enum log_level level, int error, const char *fmt, va_list ap)
{
	char text[LINE_MAX_BYTES], why[128];
	const char *cause = NULL;

	if (level < lowest_level)
		return;
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		(void)snprintf(text, sizeof(text), "(bad format) %s", fmt);
	if (error != 0)
		cause = strerror_r(error, why, sizeof(why));
	put(levels[level].name, levels[level].priority, 0, text, cause);
}

#define VLOG(level, error)                       \
	do {                                     \
		int saved_errno = errno;         \
		va_list ap;                      \
		va_start(ap, fmt);               \
		vlog((level), (error), fmt, ap); \
		va_end(ap);                      \
		errno = saved_errno;             \
	} while (0)

void
log_debug(const char *fmt, ...)
{
	VLOG(LOG_LEVEL_DEBUG, 0);
}

void
log_info(const char *fmt, ...)
{
	VLOG(LOG_LEVEL_INFO, 0);
}

void
log_warn(const char *fmt, ...)
{
	VLOG(LOG_LEVEL_WARN, saved_errno);
}

void
log_warnx(const char *fmt, ...)
{
	VLOG(LOG_LEVEL_WARN, 0);
}

void
log_error(const char *fmt, ...)
{
	VLOG(LOG_LEVEL_ERROR, 0);
}

void
log_peer(enum log_level level, const char *fmt, ...)
{
	int saved_errno = errno;
	va_list ap;

	if (level < lowest_level || !quota_take(level)) {
		errno = saved_errno;
		return;
	}
	va_start(ap, fmt);
	vlog(level, 0, fmt, ap);
	va_end(ap);
	errno = saved_errno;
}

void
log_fatal(int status, const char *fmt, ...)
{
	char text[LINE_MAX_BYTES];
	va_list ap;

	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		(void)snprintf(text, sizeof(text), "(bad format) %s", fmt);
	va_end(ap);
	put("fatal", 2, FATAL_WAIT_MS, text, NULL);
	exit(status);
}
