/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http - a few pages for people and scrapers, on the agent's loop.
 *
 * Invariant: whatever comes in, the cost is bounded: so many connections,
 * each for so long, with so much read and one answer.  Reading is all that it
 * offers.
 */
#ifndef HTTP_H
#define HTTP_H

#include <stddef.h>
#include <sys/socket.h>

#define HTTP_CONNS_MAX 16 /* one more, and the oldest has to go */
#define HTTP_LIFE_S 5 /* of a connection, whatever it does; a second more */
#define HTTP_HEADERS_MAX 4096

struct event_base;
struct http;

struct http_reply {
	int code; /* 200, 404, 503 */
	const char *type; /* of the content */
	const char *policy; /* for its content; NULL: it loads nothing */
	const char *text; /* stays until the next call */
	size_t length;
};

/* Answers GET of a path: "/metrics". */
typedef void http_fn(void *arg, const char *path, struct http_reply *out);

/* A socket that listens, or -1 and errno. */
__attribute__((warn_unused_result)) int http_bind(
    const struct sockaddr *addr, socklen_t length);

/*
 * Serves from now on what a listening socket accepts, and takes that over,
 * also on failure (NULL: out of memory).
 */
struct http *http_open(struct event_base *base, int fd, http_fn *fn, void *arg);

/*
 * Accepts from another socket that listens, in place of its own; fd stays the
 * caller's.  Who is connected goes on.
 */
void http_relisten(struct http *h, int fd);

/* Closes all of it.  NULL is fine. */
void http_close(struct http *h);

#endif
