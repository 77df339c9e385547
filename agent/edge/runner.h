/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runner - runs one program again and again, each time with a text as its
 * standard input: no shell, one at a time, bounded in number, rate and time.
 *
 * Invariant: the loop waits for no program, whatever that does; a program that
 * was started is ended with its process group.
 */
#ifndef RUNNER_H
#define RUNNER_H

#include <stddef.h>
#include <stdint.h>

#include "types.h"

#define RUNNER_QUEUE_MAX 32 /* texts that wait, the running one apart */

struct event_base;
struct runner;

struct runner_conf {
	const char *name; /* in lines of the log */
	char *const *argv; /* NULL-terminated; argv[0] is a path */
	int64_t pace_ms; /* from one start to the next, at least */
	int64_t limit_ms; /* then SIGTERM to its group ... */
	int64_t grace_ms; /* ... and then SIGKILL */
};

struct runner_figures {
	uint64_t started, good; /* good: exit status 0 */
	uint64_t failed; /* any other end, and what did not start */
	uint64_t expired; /* of these: limit_ms was over */
	uint64_t dropped; /* texts for which there was no room */
	size_t waiting;
	int pid; /* that runs; 0: none */
};

/* What conf points to must outlive it.  NULL: out of memory. */
struct runner *runner_open(
    struct event_base *base, const struct runner_conf *conf);

/* What runs is ended (SIGKILL), what waits is dropped with a line. */
void runner_close(struct runner *r);

/* Takes a copy.  What finds no room is counted, and a line says so. */
void runner_add(struct runner *r, const char *text, size_t length);

void runner_figures(const struct runner *r, struct runner_figures *out);

#endif
