/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer: any bytes, in pieces, from a client over a real socket.  A second
 * reading says which requests there are before the first bad one: just these
 * are asked, in order, and just these are answered, each once.
 */
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "conn.h"
#include "fuzz.h"
#include "log.h"

#define BYTES_MAX 448 /* replies to all of it fit into the socket */
#define REQUESTS_MAX (BYTES_MAX / WIRE_REQUEST_SIZE)

static struct wire_request asked[REQUESTS_MAX + 1];
static size_t nasked;
static bool is_closed;

static mono_t
on_wake(void *arg)
{
	(void)arg;
	return ((mono_t){ 1 });
}

static enum conn_verdict
on_request(void *arg, struct conn *c, const struct wire_request *rq)
{
	(void)arg;
	check(nasked < REQUESTS_MAX);
	asked[nasked++] = *rq;
	return (conn_reply(c, rq, WIRE_OK, "", 0) ? CONN_ANSWERED : CONN_DROP);
}

static void
on_closed(void *arg)
{
	(void)arg;
	is_closed = true;
}

/* By the byte, as the protocol's text has it. */
static bool
is_good(const uint8_t *p)
{
	uint32_t count = wire_get32(p + 4);

	if (p[0] != 1 || p[2] != 0 || p[3] != 0 || wire_get64(p + 24) != 0)
		return (false);
	if (p[1] == WIRE_BATCH)
		return (count >= 1 && count <= WIRE_COUNT_MAX);
	return ((p[1] == WIRE_CONTRACT || p[1] == WIRE_STATUS) && count == 0 &&
		wire_get64(p + 16) == 0);
}

static void
check_replies(int fd, const uint8_t *data, size_t size)
{
	static uint8_t in[REQUESTS_MAX * WIRE_HEADER_SIZE + 512];
	size_t good = 0, n = 0;
	ssize_t got;

	while ((good + 1) * WIRE_REQUEST_SIZE <= size &&
	       is_good(data + good * WIRE_REQUEST_SIZE))
		good++;
	check(nasked == good);
	while ((got = recv(fd, in + n, sizeof(in) - n, MSG_DONTWAIT)) > 0)
		n += (size_t)got;
	check(n >= good * WIRE_HEADER_SIZE);
	for (size_t i = 0; i < good; i++) {
		struct wire_request rq;
		struct wire_header h;

		wire_get_request(data + i * WIRE_REQUEST_SIZE, &rq);
		wire_get_header(in + i * WIRE_HEADER_SIZE, &h);
		check(asked[i].cookie == rq.cookie &&
		      asked[i].count == rq.count && asked[i].after == rq.after);
		check(h.cookie == rq.cookie && h.type == rq.type &&
		      h.status == WIRE_OK && h.length == 0);
	}
	/* after them nothing, or that the version is another */
	if (good * WIRE_REQUEST_SIZE < size &&
	    data[good * WIRE_REQUEST_SIZE] != WIRE_VERSION)
		check(n > good * WIRE_HEADER_SIZE);
	else
		check(n == good * WIRE_HEADER_SIZE);
	check(is_closed);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct conn_calls calls = { on_wake, on_request,
		on_closed };
	static const struct conn_peer peer = { 1, 2, 3 };
	static struct event_base *base;
	struct conn *c;
	int fds[2];
	size_t piece;

	if (base == NULL) {
		base = event_base_new();
		log_open(LOG_LEVEL_ERROR);
	}
	if (size < 1 || size > BYTES_MAX)
		return (0);
	nasked = 0;
	is_closed = false;
	check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0);
	c = conn_open(base, fds[0], &peer, &calls, NULL);
	check(c != NULL);
	piece = 1 + data[0];
	for (size_t at = 1; at < size && !is_closed; at += piece) {
		size_t n = size - at < piece ? size - at : piece;

		check(send(fds[1], data + at, n, MSG_NOSIGNAL) == (ssize_t)n);
		check(event_base_loop(base, EVLOOP_NONBLOCK) >= 0);
		check(is_closed || conn_sane(c));
	}
	(void)shutdown(fds[1], SHUT_WR);
	if (!is_closed)
		check(event_base_loop(base, EVLOOP_NONBLOCK) >= 0);
	check_replies(fds[1], data + 1, size - 1);
	(void)close(fds[1]);
	return (0);
}
