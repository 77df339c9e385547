/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transport - one connection to the agent.
 *
 * Invariant: a reply is handed on only if it is the answer to the oldest
 * request of this very connection, with exactly the bytes it should have.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "transport.h"

static bool
socket_identify(int fd, dev_t *dev, ino_t *ino)
{
	struct stat st;

	if (fstat(fd, &st) != 0 || !S_ISSOCK(st.st_mode))
		return (false);
	*dev = st.st_dev;
	*ino = st.st_ino;
	return (true);
}

bool
transport_owns(const struct transport_socket *s)
{
	dev_t dev;
	ino_t ino;

	return (s->fd >= 0 && socket_identify(s->fd, &dev, &ino) &&
		dev == s->dev && ino == s->ino);
}

void
transport_disown(struct transport_socket *s)
{
	int fd = s->fd;

	if (transport_owns(s)) {
		s->fd = -1;
		close(fd);
	}
	s->fd = -1;
}

void
transport_close(struct transport *t, struct transport_socket *s)
{
	transport_disown(s);
	t->connected = t->answered = false;
	t->nflight = t->rx_len = t->rx_used = t->tx_len = 0;
}

int
transport_connect(
    struct transport *t, struct transport_socket *s, const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	size_t len = strlen(path);
	int fd, rc, saved;

	if (len >= sizeof(sun.sun_path))
		return (ENAMETOOLONG);
	memcpy(sun.sun_path, path, len);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1)
		return (errno);
	do
		rc = connect(fd, (const struct sockaddr *)&sun, sizeof(sun));
	while (rc == -1 && errno == EINTR);
	if (rc == -1) {
		saved = errno;
		close(fd);
		return (saved);
	}
	transport_close(t, s);
	/* the descriptor last: a child that a fork makes here sees none */
	if (!socket_identify(fd, &s->dev, &s->ino)) {
		close(fd);
		return (EBADF);
	}
	s->fd = fd;
	t->connected = true;
	return (0);
}

bool
transport_queue(
    struct transport *t, const struct wire_request *r, int64_t now_ns)
{
	if (t->nflight == TRANSPORT_FLIGHT)
		return (false);
	t->flight[t->nflight++] = (struct transport_request){
		.cookie = r->cookie,
		.sent_ns = now_ns,
		.count = r->count,
		.type = r->type,
	};
	wire_put_request(t->tx + t->tx_len, r);
	t->tx_len += WIRE_REQUEST_SIZE;
	return (true);
}

void
transport_flush(struct transport *t, const struct transport_socket *s)
{
	ssize_t n;

	if (t->tx_len == 0)
		return;
	do
		n = send(s->fd, t->tx, t->tx_len, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n == -1 && errno == EINTR);
	if (n == -1) {
		/*
		 * EPIPE and the like: words of refusal may still lie in the
		 * socket, so receive reads them first and then finds the end.
		 */
		if (errno != EAGAIN && errno != EWOULDBLOCK)
			t->tx_len = 0;
		return;
	}
	t->tx_len -= (uint32_t)n;
	memmove(t->tx, t->tx + n, t->tx_len);
}

bool
transport_asked(const struct transport *t, enum wire_type type)
{
	for (uint32_t i = 0; i < t->nflight; i++) {
		if (t->flight[i].type == type)
			return (true);
	}
	return (false);
}

short
transport_events(const struct transport *t)
{
	return ((short)(POLLIN | (t->tx_len > 0 ? POLLOUT : 0)));
}

/*
 * Is the connection refused, not a request?  Such a reply may come before any
 * request was read, so it has no type and no cookie.  Too many is said of
 * either: too many clients, and too many IDs for one of them.
 */
static bool
header_ends(const struct wire_header *h)
{
	if (h->status == WIRE_TOO_MANY)
		return (h->type == 0);
	return (h->status >= WIRE_BAD_VERSION);
}

/* The header against the request it should answer; NULL if it does. */
static const char *
header_fault(const struct transport *t, const struct wire_header *h)
{
	if (h->version != WIRE_VERSION)
		return ("another version of the protocol");
	if (h->length > WIRE_BODY_MAX)
		return ("a length over the limit");
	if (header_ends(h))
		return (NULL);
	if (t->nflight == 0)
		return ("a reply without a request");
	if (h->type != t->flight[0].type)
		return ("a reply of another type");
	if (h->cookie != t->flight[0].cookie)
		return ("a wrong cookie");
	return (NULL);
}

/* The body's own lengths against the header's; NULL if they agree. */
static const char *
body_fault(const struct wire_header *h, const uint8_t *body)
{
	uint32_t runs;

	if (h->status != WIRE_OK) {
		if (h->length < WIRE_REFUSAL_SIZE ||
		    h->length > WIRE_REFUSAL_SIZE + WIRE_TEXT_MAX ||
		    wire_get32(body + 4) != h->length - WIRE_REFUSAL_SIZE)
			return ("a refusal of a wrong length");
		return (NULL);
	}
	switch ((enum wire_type)h->type) {
	case WIRE_BATCH:
		if (h->length < WIRE_BATCH_SIZE)
			return ("a batch of a wrong length");
		runs = wire_get32(body + 12);
		if (runs < 1 || runs > WIRE_RUNS_MAX ||
		    h->length != WIRE_BATCH_SIZE + runs * WIRE_RUN_SIZE)
			return ("a batch of a wrong length");
		return (NULL);
	case WIRE_CONTRACT:
		if (h->length != WIRE_CONTRACT_SIZE)
			return ("a contract of a wrong length");
		return (NULL);
	case WIRE_STATUS:
		return (NULL);
	}
	return ("an unknown type");
}

/* Looks for a whole reply in rx. */
static enum transport_result
reply_take(struct transport *t, struct transport_reply *out)
{
	struct wire_header h;
	const uint8_t *body = t->rx + WIRE_HEADER_SIZE;

	if (t->rx_len < WIRE_HEADER_SIZE)
		return (TRANSPORT_WAIT);
	wire_get_header(t->rx, &h);
	out->peer_version = h.version;
	out->fault = header_fault(t, &h);
	if (out->fault != NULL)
		return (TRANSPORT_BAD);
	if (t->rx_len < WIRE_HEADER_SIZE + h.length)
		return (TRANSPORT_WAIT);
	out->fault = body_fault(&h, body);
	if (out->fault != NULL)
		return (TRANSPORT_BAD);
	out->ends = header_ends(&h);
	out->type = h.type;
	out->status = h.status;
	out->body = body;
	out->length = h.length;
	out->count = t->flight[0].count;
	out->sent_ns = t->flight[0].sent_ns;
	if (t->nflight > 0) {
		t->nflight--;
		memmove(t->flight, t->flight + 1,
		    t->nflight * sizeof(t->flight[0]));
	}
	t->rx_used = WIRE_HEADER_SIZE + h.length;
	t->answered = true;
	return (TRANSPORT_REPLY);
}

/* Drops the reply that was handed on the last time. */
static void
reply_drop(struct transport *t)
{
	t->rx_len -= t->rx_used;
	memmove(t->rx, t->rx + t->rx_used, t->rx_len);
	t->rx_used = 0;
}

/* One read into rx: bytes, 0 for the end or an error, -1 for nothing yet. */
static ssize_t
rx_fill(struct transport *t, const struct transport_socket *s)
{
	ssize_t n;

	do
		n = recv(s->fd, t->rx + t->rx_len, sizeof(t->rx) - t->rx_len,
		    MSG_DONTWAIT);
	while (n == -1 && errno == EINTR);
	if (n > 0)
		t->rx_len += (uint32_t)n;
	else if (n == -1 && errno != EAGAIN && errno != EWOULDBLOCK)
		n = 0;
	return (n);
}

bool
transport_arrives(struct transport *t, const struct transport_socket *s)
{
	reply_drop(t);
	return (rx_fill(t, s) != -1);
}

enum transport_result
transport_receive(struct transport *t, const struct transport_socket *s,
    struct transport_reply *out)
{
	enum transport_result r;
	ssize_t n;

	reply_drop(t);
	for (;;) {
		r = reply_take(t, out);
		if (r != TRANSPORT_WAIT)
			return (r);
		n = rx_fill(t, s);
		if (n == -1)
			return (TRANSPORT_WAIT);
		if (n == 0)
			return (TRANSPORT_LOST);
	}
}
