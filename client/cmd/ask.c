/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask - one question, one answer, over the agent's socket.
 *
 * Invariant: after any failure the connection is gone, so that a late answer
 * is never taken for that to another question.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ask.h"
#include "cmd.h"

#define BACKLOG_PAUSE_MS 5

void
ask_open(struct ask *a, const char *socket)
{
	*a = (struct ask){ .socket = socket, .fd = -1 };
}

void
ask_close(struct ask *a)
{
	if (a->fd >= 0)
		(void)close(a->fd);
	a->fd = -1;
}

static int fail(struct ask *a, struct ask_answer *out, int status,
    const char *format, ...) __attribute__((format(printf, 4, 5)));

static int
fail(struct ask *a, struct ask_answer *out, int status, const char *format, ...)
{
	va_list ap;
	int n = snprintf(out->why, sizeof(out->why), "%s: ", a->socket);

	if (n > 0 && (size_t)n < sizeof(out->why)) {
		va_start(ap, format);
		(void)vsnprintf(
		    out->why + n, sizeof(out->why) - (size_t)n, format, ap);
		va_end(ap);
	}
	ask_close(a);
	return (status);
}

/* CMD_DONE once the descriptor is ready. */
static int
wait_for(struct ask *a, short events, int64_t deadline, struct ask_answer *out)
{
	struct pollfd p = { .fd = a->fd, .events = events };

	for (;;) {
		int64_t left = deadline - cmd_boot_ms();
		int n = poll(&p, 1, left > 0 ? (int)left : 0);

		if (n > 0)
			return (CMD_DONE);
		if (n == 0)
			return (fail(
			    a, out, CMD_AWAY, "the agent does not answer"));
		if (errno != EINTR)
			return (fail(
			    a, out, CMD_FAILED, "poll: %s", strerror(errno)));
	}
}

static int
connect_status(struct ask *a, struct ask_answer *out, int errnum)
{
	switch (errnum) {
	case EACCES:
	case EPERM:
		return (fail(a, out, CMD_DENIED,
		    "not allowed (uid %u needs write permission on the socket)",
		    (unsigned)geteuid()));
	case EAGAIN:
		return (fail(
		    a, out, CMD_AWAY, "the agent does not take connections"));
	default:
		/* in libfirn's words */
		return (
		    fail(a, out, CMD_AWAY, "no agent: %s", strerror(errnum)));
	}
}

static int
connect_to(struct ask *a, int64_t deadline, struct ask_answer *out)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t n = strlen(a->socket);

	if (n == 0 || n >= sizeof(addr.sun_path))
		return (fail(a, out, CMD_USAGE,
		    "no path for a socket (1 to %zu "
		    "bytes)",
		    sizeof(addr.sun_path) - 1));
	memcpy(addr.sun_path, a->socket, n + 1);
	a->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (a->fd < 0)
		return (
		    fail(a, out, CMD_FAILED, "socket: %s", strerror(errno)));
	while (connect(a->fd, (struct sockaddr *)&addr, sizeof(addr)) != 0) {
		/* a full backlog: poll() would not wait for it */
		if ((errno != EAGAIN && errno != EINTR) ||
		    cmd_boot_ms() >= deadline)
			return (connect_status(a, out, errno));
		cmd_sleep_ms(BACKLOG_PAUSE_MS);
	}
	return (CMD_DONE);
}

static int
send_request(struct ask *a, int64_t deadline, struct ask_answer *out)
{
	struct wire_request r = {
		.version = WIRE_VERSION,
		.type = WIRE_STATUS,
		.cookie = ++a->cookie,
	};
	uint8_t bytes[WIRE_REQUEST_SIZE];
	size_t sent = 0;

	wire_put_request(bytes, &r);
	while (sent < sizeof(bytes)) {
		ssize_t n = send(
		    a->fd, bytes + sent, sizeof(bytes) - sent, MSG_NOSIGNAL);
		int rc;

		if (n > 0) {
			sent += (size_t)n;
			continue;
		}
		/* closed: what it said before that is still to be read */
		if (errno != EAGAIN && errno != EINTR)
			return (CMD_DONE);
		rc = wait_for(a, POLLOUT, deadline, out);
		if (rc != CMD_DONE)
			return (rc);
	}
	return (CMD_DONE);
}

static int
receive(struct ask *a, void *buf, size_t size, int64_t deadline,
    struct ask_answer *out)
{
	size_t have = 0;

	while (have < size) {
		ssize_t n = recv(a->fd, (char *)buf + have, size - have, 0);
		int rc;

		if (n > 0) {
			have += (size_t)n;
			continue;
		}
		if (n == 0 || (errno != EAGAIN && errno != EINTR))
			return (fail(a, out, CMD_AWAY,
			    "the agent closed the connection"));
		rc = wait_for(a, POLLIN, deadline, out);
		if (rc != CMD_DONE)
			return (rc);
	}
	return (CMD_DONE);
}

/* The agent's words begin with the reason's name, as a rule. */
static bool
begins_with(const char *text, uint32_t n, const char *name)
{
	size_t length = strlen(name);

	return (n > length && memcmp(text, name, length) == 0 &&
		text[length] == ':');
}

/* A refusal: which only the connection's reasons can be, here. */
static int
refused(struct ask *a, const struct wire_header *h, const char *body,
    struct ask_answer *out)
{
	const char *name = wire_reason_name(h->status);
	const char *text = body + WIRE_REFUSAL_SIZE;
	uint32_t n = 0;
	bool named;

	if (h->length >= WIRE_REFUSAL_SIZE) {
		n = wire_get32((const uint8_t *)body + 4);
		if (n > h->length - WIRE_REFUSAL_SIZE)
			n = 0;
	}
	named = begins_with(text, n, name);
	return (fail(a, out,
	    h->status == WIRE_NOT_ALLOWED   ? CMD_DENIED
	    : h->status == WIRE_BAD_VERSION ? CMD_FAILED
					    : CMD_AGAIN,
	    "%s%s%.*s", named ? "" : name, named ? "" : ": ", (int)n, text));
}

static int
read_answer(struct ask *a, int64_t deadline, struct ask_answer *out)
{
	uint8_t bytes[WIRE_HEADER_SIZE];
	struct wire_header h;
	struct doc_error err;
	int rc = receive(a, bytes, sizeof(bytes), deadline, out);

	if (rc != CMD_DONE)
		return (rc);
	wire_get_header(bytes, &h);
	/* a refusal on arrival comes before the agent has read the cookie */
	if (h.length > WIRE_STATUS_MAX ||
	    (h.status == WIRE_OK &&
		(h.version != WIRE_VERSION || h.type != WIRE_STATUS ||
		    h.cookie != a->cookie)))
		return (fail(a, out, CMD_FAILED,
		    "this is not the protocol (version %u, type %u)", h.version,
		    h.type));
	rc = receive(a, out->text, h.length, deadline, out);
	if (rc != CMD_DONE)
		return (rc);
	out->text[h.length] = '\0';
	if (h.status != WIRE_OK)
		return (refused(a, &h, out->text, out));
	if (status_parse(out->text, h.length, &out->doc, &err) != 0)
		return (fail(
		    a, out, CMD_FAILED, "the agent's status: %s", err.text));
	return (CMD_DONE);
}

int
ask_status(struct ask *a, int64_t deadline, struct ask_answer *out)
{
	int rc;

	out->why[0] = '\0';
	if (a->fd < 0) {
		rc = connect_to(a, deadline, out);
		if (rc != CMD_DONE)
			return (rc);
	}
	rc = send_request(a, deadline, out);
	if (rc != CMD_DONE)
		return (rc);
	return (read_answer(a, deadline, out));
}

bool
ask_serves(const struct status_doc *doc)
{
	return (strcmp(doc->state, "serving") == 0 ||
		strcmp(doc->state, "isolated") == 0);
}
