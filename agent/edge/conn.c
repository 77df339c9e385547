/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn - one client's connection: bytes into requests, replies into bytes.
 *
 * Invariant (conn_sane): the in-buffer holds [in_at, in_end), whole requests
 * first; the out-buffer holds [out_at, out_end), and after it, if there is
 * one, the big reply [big_at, big_end).  A request is asked only while there
 * is room for any fixed reply and no big one is pending.
 */
#include "conn.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "log.h"

#define NEVER INT64_C(-1)
/*
 * What the kernel holds for a peer that does not read is the agent's memory,
 * too, 200 kilobytes by default: enough for some replies, twice this.
 */
#define SEND_BUFFER 8192

struct conn {
	struct conn_peer peer;
	const struct conn_calls *calls;
	void *arg;
	struct event *readable, *writable;
	int fd;
	bool reading, writing; /* as the events are set now */
	bool waiting; /* the head request has no answer yet */
	bool eof; /* the peer sends no more, or is not read */
	bool doomed; /* closes once the replies are out */
	bool asking; /* inside calls->request */
	int64_t half_ns; /* since when a part of a request is there */
	int64_t unread_ns; /* since when replies are not taken */
	uint16_t in_at, in_end, out_at, out_end;
	uint32_t big_at, big_end;
	uint8_t *big;
	uint8_t in[CONN_IN_SIZE];
	uint8_t out[CONN_OUT_SIZE];
};

/* Of the process, as its descriptors are: one loop runs them all. */
static struct conn_traffic traffic;

_Static_assert(
    CONN_REPLY_MAX >= WIRE_HEADER_SIZE + WIRE_CONTRACT_SIZE &&
	CONN_REPLY_MAX >= WIRE_HEADER_SIZE + WIRE_REFUSAL_SIZE + WIRE_TEXT_MAX,
    "every fixed reply fits");

bool
conn_sane(const struct conn *c)
{
	return (c->in_at <= c->in_end && c->in_end <= sizeof(c->in) &&
		c->out_at <= c->out_end && c->out_end <= sizeof(c->out) &&
		c->big_at <= c->big_end &&
		(c->big != NULL) == (c->big_end != 0) &&
		(!c->waiting || c->in_end - c->in_at >= WIRE_REQUEST_SIZE));
}

static size_t
in_used(const struct conn *c)
{
	return ((size_t)(c->in_end - c->in_at));
}

static size_t
out_used(const struct conn *c)
{
	return ((size_t)(c->out_end - c->out_at) + c->big_end - c->big_at);
}

/* Room for any fixed reply, so that a request may be asked. */
static bool
out_ready(const struct conn *c)
{
	return (c->big == NULL &&
		sizeof(c->out) - (c->out_end - c->out_at) >= CONN_REPLY_MAX);
}

/* ---- words ------------------------------------------------------------- */

static void
say_bad(const struct conn *c, const char *what)
{
	log_peer(LOG_LEVEL_INFO,
	    "conn %" PRIu64 " (uid %" PRIu32 " pid %" PRId32 "): %s, closed",
	    c->peer.number, c->peer.uid, c->peer.pid, what);
}

static void
say(const struct conn *c, const char *what)
{
	log_debug("conn %" PRIu64 " (uid %" PRIu32 " pid %" PRId32 "): %s",
	    c->peer.number, c->peer.uid, c->peer.pid, what);
}

/* ---- requests ------------------------------------------------------------ */

/*
 * Is a whole request of our version right?  NULL, or what is wrong with it.
 * What may not be there today is refused, so that it can mean something in a
 * later version.
 */
static const char *
decode(const uint8_t *p, struct wire_request *rq)
{
	wire_get_request(p, rq);
	if (rq->flags != 0 || wire_get64(p + 24) != 0)
		return ("bad request: reserved bytes are not zero");
	switch (rq->type) {
	case WIRE_BATCH:
		if (rq->count == 0 || rq->count > WIRE_COUNT_MAX)
			return ("bad request: count out of range");
		return (NULL);
	case WIRE_CONTRACT:
	case WIRE_STATUS:
		if (rq->count != 0 || rq->after != 0)
			return ("bad request: count or after where none is");
		return (NULL);
	}
	return ("bad request: unknown type");
}

static void
refuse_version(struct conn *c)
{
	static const char words[] = "this agent speaks version 1 of the "
				    "protocol";
	/* The layout of an unknown version's request is unknown too. */
	const struct wire_request rq = { 0 };
	uint8_t body[WIRE_REFUSAL_SIZE + sizeof(words) - 1];
	char what[40];
	bool put;

	_Static_assert(WIRE_VERSION == 1, "the words name the version");
	snprintf(what, sizeof(what), "bad version %u", c->in[c->in_at]);
	say_bad(c, what);
	wire_put32(body, 0);
	wire_put32(body + 4, sizeof(words) - 1);
	memcpy(body + WIRE_REFUSAL_SIZE, words, sizeof(words) - 1);
	c->asking = true;
	put = conn_reply(c, &rq, WIRE_BAD_VERSION, body, sizeof(body));
	c->asking = false;
	assert(put); /* it is a small one */
	(void)put;
	c->doomed = true;
	c->in_at = c->in_end = 0;
}

/* Asks the head request.  True if it was answered and the next may be. */
static bool
ask(struct conn *c)
{
	struct wire_request rq;
	enum conn_verdict verdict;
	const char *bad;

	bad = decode(c->in + c->in_at, &rq);
	if (bad != NULL) {
		say_bad(c, bad);
		c->doomed = true;
		return (false);
	}
	c->asking = true;
	verdict = c->calls->request(c->arg, c, &rq);
	c->asking = false;
	switch (verdict) {
	case CONN_ANSWERED:
		c->waiting = false;
		c->in_at = (uint16_t)(c->in_at + WIRE_REQUEST_SIZE);
		return (true);
	case CONN_WAIT:
		c->waiting = true;
		return (false);
	case CONN_DROP:
		break;
	}
	say_bad(c, "no memory for a reply");
	c->doomed = true;
	return (false);
}

/*
 * Answers what can be answered.  Version, then length, then range, then act:
 * the first byte alone is judged, since other versions have other lengths.
 */
static void
serve(struct conn *c, mono_t now)
{
	bool moved = false;

	while (!c->doomed && !c->waiting && in_used(c) > 0 && out_ready(c)) {
		if (c->in[c->in_at] != WIRE_VERSION) {
			refuse_version(c);
			break;
		}
		if (in_used(c) < WIRE_REQUEST_SIZE || !ask(c))
			break;
		moved = true;
	}
	if (c->doomed || c->waiting || in_used(c) == 0 ||
	    in_used(c) >= WIRE_REQUEST_SIZE)
		c->half_ns = NEVER;
	else if (c->half_ns == NEVER || moved)
		c->half_ns = now.ns;
}

/* ---- replies ------------------------------------------------------------- */

/* Moves what is left to the front; both buffers are small. */
static void
compact(uint8_t *buf, uint16_t *at, uint16_t *end)
{
	if (*at == 0)
		return;
	memmove(buf, buf + *at, (size_t)(*end - *at));
	*end = (uint16_t)(*end - *at);
	*at = 0;
}

static bool
put_big(
    struct conn *c, const uint8_t *header, const void *body, uint32_t length)
{
	c->big = malloc(WIRE_HEADER_SIZE + (size_t)length);
	if (c->big == NULL)
		return (false);
	memcpy(c->big, header, WIRE_HEADER_SIZE);
	memcpy(c->big + WIRE_HEADER_SIZE, body, length);
	c->big_at = 0;
	c->big_end = WIRE_HEADER_SIZE + length;
	return (true);
}

bool
conn_reply(struct conn *c, const struct wire_request *rq, uint16_t status,
    const void *body, uint32_t length)
{
	const struct wire_header h = { .version = WIRE_VERSION,
		.type = rq->type,
		.status = status,
		.length = length,
		.cookie = rq->cookie };
	uint8_t header[WIRE_HEADER_SIZE];

	assert(c->asking && out_ready(c) && length <= WIRE_BODY_MAX);
	wire_put_header(header, &h);
	if (length > CONN_BODY_MAX)
		return (put_big(c, header, body, length));
	if (sizeof(c->out) - c->out_end < CONN_REPLY_MAX)
		compact(c->out, &c->out_at, &c->out_end);
	memcpy(c->out + c->out_end, header, WIRE_HEADER_SIZE);
	memcpy(c->out + c->out_end + WIRE_HEADER_SIZE, body, length);
	c->out_end = (uint16_t)(c->out_end + WIRE_HEADER_SIZE + length);
	return (true);
}

/* Sends one range; false if the socket takes no more or is dead. */
static bool
send_range(struct conn *c, const uint8_t *from, size_t length, size_t *sent)
{
	ssize_t n = send(c->fd, from, length, MSG_DONTWAIT | MSG_NOSIGNAL);

	*sent = n > 0 ? (size_t)n : 0;
	traffic.sent += *sent;
	if (n >= 0)
		return (*sent == length);
	if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS ||
	    errno == ENOMEM)
		return (false);
	/* Nobody is there to read: what is left is for nobody. */
	c->doomed = c->eof = true;
	c->out_at = c->out_end = 0;
	c->big_at = c->big_end;
	return (false);
}

static void
flush(struct conn *c, mono_t now)
{
	bool more = true;
	size_t sent;

	if (c->out_end > c->out_at) {
		more = send_range(c, c->out + c->out_at,
		    (size_t)(c->out_end - c->out_at), &sent);
		c->out_at = (uint16_t)(c->out_at + sent);
		if (c->out_at == c->out_end)
			c->out_at = c->out_end = 0;
	}
	if (more && c->big_end > c->big_at) {
		(void)send_range(
		    c, c->big + c->big_at, c->big_end - c->big_at, &sent);
		c->big_at += (uint32_t)sent;
	}
	if (c->big != NULL && c->big_at == c->big_end) {
		free(c->big);
		c->big = NULL;
		c->big_at = c->big_end = 0;
	}
	if (out_used(c) == 0)
		c->unread_ns = NEVER;
	else if (c->unread_ns == NEVER)
		c->unread_ns = now.ns;
}

/* ---- the loop ------------------------------------------------------------ */

/*
 * The one place that decides what to poll for.  No room for replies: what has
 * been read already is not answered, so nothing more is read.
 */
static bool
conn_update(struct conn *c)
{
	bool read =
	    !c->eof && !c->doomed && out_ready(c) && in_used(c) < sizeof(c->in);
	bool write = out_used(c) > 0;
	int rc = 0;

	if (read != c->reading)
		rc |= read ? event_add(c->readable, NULL)
			   : event_del(c->readable);
	if (write != c->writing)
		rc |= write ? event_add(c->writable, NULL)
			    : event_del(c->writable);
	c->reading = read;
	c->writing = write;
	return (rc == 0);
}

/* No more comes in, and nothing of what came waits for anything. */
static bool
is_over(const struct conn *c)
{
	if (out_used(c) > 0)
		return (false);
	if (c->doomed)
		return (true);
	return (c->eof && in_used(c) < WIRE_REQUEST_SIZE);
}

/* Answers, sends, and closes if that was all; false: it is closed. */
static bool
run(struct conn *c, mono_t now)
{
	size_t before;

	do {
		before = in_used(c);
		serve(c, now);
		flush(c, now);
	} while (in_used(c) < before && in_used(c) >= WIRE_REQUEST_SIZE);
	assert(conn_sane(c));
	if (is_over(c)) {
		if (!c->doomed && in_used(c) > 0)
			say_bad(c, "ended in the middle of a request");
		conn_close(c);
		return (false);
	}
	if (!conn_update(c)) {
		say_bad(c, "cannot be polled");
		conn_close(c);
		return (false);
	}
	return (true);
}

/*
 * An end of the peer's bytes may be a half-close (`nc -N`): then it still
 * gets its replies.  With both directions shut nobody reads them.
 */
static void
see_end(struct conn *c)
{
	struct pollfd p = { .fd = c->fd };

	c->eof = true;
	if (poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR)) != 0) {
		say(c, "closed by the peer");
		c->doomed = true;
		c->out_at = c->out_end = 0;
		c->big_at = c->big_end;
	}
}

/* Reads once: what there is more has to wait until the others had a turn. */
static void
fill(struct conn *c)
{
	size_t room;
	ssize_t n;

	compact(c->in, &c->in_at, &c->in_end);
	room = sizeof(c->in) - c->in_end;
	if (room == 0 || c->eof || c->doomed)
		return;
	n = recv(c->fd, c->in + c->in_end, room, MSG_DONTWAIT);
	if (n > 0) {
		c->in_end = (uint16_t)(c->in_end + n);
		traffic.received += (uint64_t)n;
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		see_end(c);
}

const struct conn_traffic *
conn_traffic(void)
{
	return (&traffic);
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct conn *c = arg;
	mono_t now = c->calls->wake(c->arg);

	(void)fd;
	(void)what;
	fill(c);
	(void)run(c, now);
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct conn *c = arg;
	mono_t now = c->calls->wake(c->arg);

	(void)fd;
	(void)what;
	flush(c, now);
	(void)run(c, now);
}

/* ---- life ---------------------------------------------------------------- */

struct conn *
conn_open(struct event_base *base, int fd, const struct conn_peer *peer,
    const struct conn_calls *calls, void *arg)
{
	struct conn *c = calloc(1, sizeof(*c));
	const int size = SEND_BUFFER;

	if (c == NULL) {
		close(fd);
		return (NULL);
	}
	c->peer = *peer;
	c->calls = calls;
	c->arg = arg;
	c->fd = fd;
	c->half_ns = c->unread_ns = NEVER;
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	c->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, c);
	c->writable =
	    event_new(base, fd, EV_WRITE | EV_PERSIST, on_writable, c);
	if (c->readable == NULL || c->writable == NULL || !conn_update(c)) {
		c->calls = NULL; /* the owner hears of it by the NULL */
		conn_close(c);
		return (NULL);
	}
	say(c, "open");
	return (c);
}

void
conn_resume(struct conn *c, mono_t now)
{
	c->waiting = false;
	(void)run(c, now);
}

void
conn_drain(struct conn *c, mono_t now)
{
	fill(c); /* what was sent before we began */
	c->eof = true;
	c->waiting = false;
	(void)run(c, now);
}

bool
conn_check(struct conn *c, mono_t now)
{
	const char *why = NULL;

	if (c->half_ns != NEVER &&
	    now.ns - c->half_ns >= CONN_HALF_MS * NS_PER_MS)
		why = "half a request for 10 s";
	else if (c->unread_ns != NEVER &&
		 now.ns - c->unread_ns >= CONN_UNREAD_MS * NS_PER_MS)
		why = "replies unread for 30 s";
	if (why == NULL)
		return (false);
	say_bad(c, why);
	conn_close(c);
	return (true);
}

void
conn_close(struct conn *c)
{
	if (c->readable != NULL)
		event_free(c->readable);
	if (c->writable != NULL)
		event_free(c->writable);
	close(c->fd);
	if (c->calls != NULL) {
		say(c, "closed");
		c->calls->closed(c->arg);
	}
	free(c->big);
	free(c);
}
