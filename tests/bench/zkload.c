/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zkload - what a fleet asks of ZooKeeper: so many real sessions, each of
 * which makes one conditional write and one read of 1 KB every 3 s, as agents
 * do.  zkload PORT SESSIONS SECONDS
 *
 * It speaks the client protocol itself, since the C client has two threads
 * for each session.  A session that writes every 3 s is never idle for a third
 * of its timeout, so it sends no pings; neither does an agent's.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

#define PERIOD_NS INT64_C(3000000000)
#define SESSION_MS 10000
#define DATA_SIZE 1024
#define FRAME_MAX 4096
#define EVENTS 256
#define NODE_EXISTS (-110)

enum operation {
	OP_CREATE = 1,
	OP_GET = 4,
	OP_SET = 5,
	OP_CLOSE = -11,
};

struct frame {
	uint8_t bytes[FRAME_MAX];
	size_t used;
};

struct session {
	int fd;
	int32_t version; /* the own node's */
	enum operation pending;
	int64_t sent_ns;
	struct frame in;
};

static struct session *sessions;
static struct histogram sets, gets;
static uint64_t late; /* turns that found the last one unanswered */

static void __attribute__((noreturn)) fail(const char *what)
{
	fprintf(stderr, "zkload: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- frames ---- */

static void
put32(struct frame *f, int32_t v)
{
	uint32_t big = htobe32((uint32_t)v);

	memcpy(f->bytes + f->used, &big, sizeof(big));
	f->used += sizeof(big);
}

static void
put_buffer(struct frame *f, const void *bytes, size_t n)
{
	put32(f, (int32_t)n);
	memcpy(f->bytes + f->used, bytes, n);
	f->used += n;
}

static void
put_zeros(struct frame *f, size_t n)
{
	memset(f->bytes + f->used, 0, n);
	f->used += n;
}

static int32_t
get32(const uint8_t *p)
{
	uint32_t big;

	memcpy(&big, p, sizeof(big));
	return ((int32_t)be32toh(big));
}

static void
send_frame(int fd, struct frame *f)
{
	uint32_t big = htobe32((uint32_t)(f->used - 4));

	memcpy(f->bytes, &big, sizeof(big));
	if (send(fd, f->bytes, f->used, MSG_NOSIGNAL) != (ssize_t)f->used)
		fail("send");
}

/* Reads what is there (or waits for some): the length of a whole frame, or 0. */
static size_t
read_frame(struct session *s)
{
	size_t length;
	ssize_t n = recv(s->fd, s->in.bytes + s->in.used,
	    sizeof(s->in.bytes) - s->in.used, 0);

	if (n <= 0)
		fail("the server closed a session");
	s->in.used += (size_t)n;
	if (s->in.used < 4)
		return (0);
	length = 4 + (size_t)get32(s->in.bytes);
	if (length > FRAME_MAX)
		fail("a long reply");
	return (s->in.used >= length ? length : 0);
}

static void
wait_frame(struct session *s)
{
	s->in.used = 0;
	while (read_frame(s) == 0)
		;
}

/* ---- requests: length, xid, operation, path, ... ---- */

static void
begin(struct frame *f, enum operation op, const char *path)
{
	f->used = 4;
	put32(f, 1);
	put32(f, (int32_t)op);
	if (path != NULL)
		put_buffer(f, path, strlen(path));
}

static void
put_data(struct frame *f)
{
	static const char data[DATA_SIZE];

	put_buffer(f, data, sizeof(data));
}

static void
path_of(const struct session *s, char path[32])
{
	snprintf(path, 32, "/bench/%04zu", (size_t)(s - sessions));
}

/* xid, zxid, error */
static int32_t
reply_error(const struct session *s)
{
	return (get32(s->in.bytes + 16));
}

static void
create(struct session *s, const char *path)
{
	struct frame f;

	begin(&f, OP_CREATE, path);
	put_data(&f);
	put32(&f, 1); /* one entry of the list: everybody may do all */
	put32(&f, 31);
	put_buffer(&f, "world", 5);
	put_buffer(&f, "anyone", 6);
	put32(&f, 0);
	send_frame(s->fd, &f);
	wait_frame(s);
	if (reply_error(s) != 0 && reply_error(s) != NODE_EXISTS)
		fail("create");
}

static void
open_session(struct session *s, uint16_t port)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct frame f = { .used = 4 };
	int on = 1;

	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s->fd == -1 ||
	    connect(s->fd, (struct sockaddr *)&in, sizeof(in)) != 0)
		fail("connect");
	(void)setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	put32(&f, 0); /* protocol */
	put_zeros(&f, 8); /* last zxid */
	put32(&f, SESSION_MS);
	put_zeros(&f, 8); /* session */
	put32(&f, 16);
	put_zeros(&f, 16 + 1); /* password, read-only */
	send_frame(s->fd, &f);
	wait_frame(s);
	if (get32(s->in.bytes + 8) <= 0)
		fail("no session");
}

static void
send_set(struct session *s)
{
	struct frame f;
	char path[32];

	path_of(s, path);
	begin(&f, OP_SET, path);
	put_data(&f);
	put32(&f, s->version);
	s->pending = OP_SET;
	s->sent_ns = now_ns();
	send_frame(s->fd, &f);
}

static void
send_get(struct session *s)
{
	struct frame f;

	begin(&f, OP_GET, "/bench"); /* all read the same node */
	put_zeros(&f, 1); /* no watch */
	s->pending = OP_GET;
	s->sent_ns = now_ns();
	send_frame(s->fd, &f);
}

/* ---- the run ---- */

static void
on_reply(struct session *s)
{
	uint64_t ns = (uint64_t)(now_ns() - s->sent_ns);

	if (read_frame(s) == 0)
		return;
	s->in.used = 0;
	if (reply_error(s) != 0)
		fail(s->pending == OP_SET ? "set" : "get");
	if (s->pending == OP_SET) {
		histogram_add(&sets, ns);
		s->version++;
		send_get(s);
	} else {
		histogram_add(&gets, ns);
		s->pending = OP_CLOSE; /* nothing */
	}
}

static void
run(int epoll, size_t n, int64_t end_ns)
{
	int64_t start_ns = now_ns(), due_ns = start_ns;
	struct epoll_event events[EVENTS];
	uint64_t turn = 0;

	while (due_ns < end_ns) {
		int64_t left_ns = due_ns - now_ns();
		int got = epoll_wait(epoll, events, EVENTS,
		    left_ns > 0 ? (int)(left_ns / 1000000) : 0);

		for (int i = 0; i < got; i++)
			on_reply(events[i].data.ptr);
		while (due_ns <= now_ns() && due_ns < end_ns) {
			struct session *s = &sessions[turn++ % n];

			if (s->pending == OP_CLOSE)
				send_set(s);
			else
				late++;
			due_ns =
			    start_ns + (int64_t)turn * PERIOD_NS / (int64_t)n;
		}
	}
}

static void
close_session(struct session *s)
{
	struct frame f;

	begin(&f, OP_CLOSE, NULL);
	send_frame(s->fd, &f);
	close(s->fd);
}

int
main(int argc, char **argv)
{
	size_t n = argc == 4 ? (size_t)atol(argv[2]) : 0;
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	sessions = calloc(n, sizeof(*sessions));
	if (n == 0 || sessions == NULL || epoll == -1)
		fail("PORT SESSIONS SECONDS");
	for (size_t i = 0; i < n; i++) {
		struct epoll_event e = { .events = EPOLLIN,
			.data.ptr = &sessions[i] };
		char path[32];

		open_session(&sessions[i], (uint16_t)atoi(argv[1]));
		path_of(&sessions[i], path);
		if (i == 0)
			create(&sessions[i], "/bench");
		create(&sessions[i], path);
		sessions[i].in.used = 0;
		sessions[i].pending = OP_CLOSE;
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, sessions[i].fd, &e) != 0)
			fail("epoll");
	}
	puts("ready");
	fflush(stdout);
	run(epoll, n, now_ns() + atol(argv[3]) * 1000000000);
	row_tail("zk_set", &sets);
	row_tail("zk_get", &gets);
	row("zk_sets", (double)sets.total);
	row("zk_late", (double)late);
	for (size_t i = 0; i < n; i++)
		close_session(&sessions[i]);
	return (0);
}
