/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log - lines for people on standard error: one an event, never one a
 * request.  Under the journal (JOURNAL_STREAM) with a <N> priority, else with
 * a UTC time stamp and the level's name.  errno is kept.
 */
#ifndef LOG_H
#define LOG_H

enum log_level {
	LOG_LEVEL_DEBUG,
	LOG_LEVEL_INFO,
	LOG_LEVEL_WARN,
	LOG_LEVEL_ERROR
};

void log_open(enum log_level lowest);
void log_set_level(enum log_level lowest);
int log_level_parse(const char *name, enum log_level *out); /* 0 or -1 */

void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) /* adds errno's text */
    __attribute__((format(printf, 1, 2)));
void log_warnx(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * A line that a peer can cause as often as it likes: LOG_PEER_LINES of a
 * level in a minute, however many peers there are.  The rest are counted, and
 * a line says how many once the minute is over, from log_tell_lost() too.
 */
#define LOG_PEER_LINES 30
void log_peer(enum log_level level, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * A line that standard error does not take at once is lost and counted.  One
 * line says how many, with the next line or from this, now and then.
 */
void log_tell_lost(void);
unsigned long log_lost(void); /* since the start */

/* Before READY only: says so and exits with this status. */
void log_fatal(int status, const char *fmt, ...)
    __attribute__((noreturn, format(printf, 2, 3)));

#endif
