/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transport - one connection to the agent: socket, requests out, whole and
 * checked replies in.  No call here waits; what to do about a failure is the
 * caller's matter.
 *
 * Invariant: a reply is handed on only if it is the answer to the oldest
 * request of this very connection, with exactly the bytes it should have.
 */
#ifndef TRANSPORT_H
#define TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "firn-wire.h"

#define TRANSPORT_FLIGHT 4 /* most requests without a reply */
#define TRANSPORT_PATH_MAX 108

/*
 * Which socket is ours.  It lies outside the pages that a fork wipes, so that
 * a child can close its copy, and is believed only after a look at the
 * descriptor: applications close descriptors they do not know, and the number
 * then belongs to something else.
 */
struct transport_socket {
	int fd; /* -1: none */
	dev_t dev;
	ino_t ino;
};

struct transport_request {
	uint64_t cookie;
	int64_t sent_ns; /* CLOCK_BOOTTIME */
	uint32_t count;
	uint8_t type;
};

/* All-zero is "not connected"; lies in the wiped pages. */
struct transport {
	bool connected;
	bool answered; /* this connection has brought a reply */
	uint32_t nflight;
	uint32_t rx_len, rx_used; /* rx[0..rx_used) is the reply handed on */
	uint32_t tx_len;
	struct transport_request flight[TRANSPORT_FLIGHT];
	uint8_t tx[TRANSPORT_FLIGHT * WIRE_REQUEST_SIZE];
	uint8_t rx[WIRE_REPLY_MAX];
};

enum transport_result {
	TRANSPORT_REPLY, /* *out is one */
	TRANSPORT_WAIT, /* nothing whole yet: wait for transport_events() */
	TRANSPORT_LOST, /* the agent closed, or the descriptor is not ours */
	TRANSPORT_BAD, /* bytes that are not the protocol; out->fault */
};

struct transport_reply {
	uint8_t type;
	uint16_t status;
	uint32_t count; /* that of the request */
	int64_t sent_ns; /* when it was sent, CLOCK_BOOTTIME */
	const uint8_t *body;
	uint32_t length;
	bool ends; /* refuses the connection, not a request: it is of no use */
	const char *fault; /* TRANSPORT_BAD: what is wrong */
	uint8_t peer_version; /* the version byte it sent */
};

/*
 * Makes a connection; 0 or an errno.  EAGAIN: the listener's backlog is full.
 */
int transport_connect(struct transport *t, struct transport_socket *s,
    const char *path) __attribute__((warn_unused_result));

/* Closes it, if the descriptor is still ours; forgets requests and bytes. */
void transport_close(struct transport *t, struct transport_socket *s);

/* The same, for a process that inherited the socket. */
void transport_disown(struct transport_socket *s);

/* Is the descriptor still the socket that transport_connect() made? */
bool transport_owns(const struct transport_socket *s);

/* Puts a request into the queue; false if TRANSPORT_FLIGHT are under way. */
bool transport_queue(struct transport *t, const struct wire_request *r,
    int64_t now_ns) __attribute__((warn_unused_result));

/* Sends what is queued.  A failure shows at the next receive. */
void transport_flush(struct transport *t, const struct transport_socket *s);

/* Is a request of this type without its reply? */
bool transport_asked(const struct transport *t, enum wire_type type);

/*
 * Reads what there is.  False: nothing has come yet; what else may have
 * happened shows at the next receive.
 */
bool transport_arrives(struct transport *t, const struct transport_socket *s);

enum transport_result transport_receive(struct transport *t,
    const struct transport_socket *s, struct transport_reply *out)
    __attribute__((warn_unused_result));

/* POLLIN, and POLLOUT while a request is not wholly sent. */
short transport_events(const struct transport *t);

#endif
