/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn - one client's connection: bytes into requests, replies into bytes.
 *
 * Invariant: requests are answered one at a time in the order in which they
 * came; a request is acted on only after its version, length and ranges were
 * found right; bad bytes close this connection and nothing else.  What is
 * buffered is bounded: a peer that does not read its replies is not read from.
 *
 * It reads no clock: the owner is asked for the time once a wake-up.
 */
#ifndef CONN_H
#define CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "firn-wire.h"
#include "types.h"

/* Largest body of a reply that needs no buffer of its own. */
#define CONN_BODY_MAX (WIRE_BATCH_SIZE + WIRE_RUNS_MAX * WIRE_RUN_SIZE)
#define CONN_REPLY_MAX (WIRE_HEADER_SIZE + CONN_BODY_MAX)

#define CONN_IN_SIZE (16 * WIRE_REQUEST_SIZE)
#define CONN_OUT_SIZE (4 * CONN_REPLY_MAX)

/* Limits of slowness; a connection with nothing pending lives for ever. */
#define CONN_HALF_MS 10000 /* a request of which a part is there */
#define CONN_UNREAD_MS 30000 /* a reply that the peer does not take */

struct event_base;
struct conn;

/* For log lines: "conn 7 (uid 1000 pid 4242): ...". */
struct conn_peer {
	uint64_t number;
	uint32_t uid;
	int32_t pid;
};

enum conn_verdict {
	CONN_ANSWERED, /* conn_reply() was called, once */
	CONN_WAIT, /* stays at the head; conn_resume() asks again */
	CONN_DROP, /* it cannot be answered: close */
};

struct conn_calls {
	/* At each wake-up, before anything else. */
	mono_t (*wake)(void *arg);
	enum conn_verdict (*request)(
	    void *arg, struct conn *c, const struct wire_request *rq);
	/* The conn is freed right after it. */
	void (*closed)(void *arg);
};

/* Bytes of all connections that there ever were. */
struct conn_traffic {
	uint64_t received, sent;
};
const struct conn_traffic *conn_traffic(void);

/* Takes the descriptor over, also on failure (NULL: out of memory). */
struct conn *conn_open(struct event_base *base, int fd,
    const struct conn_peer *peer, const struct conn_calls *calls, void *arg);

/*
 * The answer to the request that is being asked.  A body above CONN_BODY_MAX
 * is copied to a buffer of its own; false: no memory, return CONN_DROP.
 */
__attribute__((warn_unused_result)) bool conn_reply(struct conn *c,
    const struct wire_request *rq, uint16_t status, const void *body,
    uint32_t length);

/*
 * The next two are never called from within a request, and the conn may be
 * closed (calls->closed) when they return.
 *
 * Asks again for the request that waits, and for those behind it.
 */
void conn_resume(struct conn *c, mono_t now);

/* Reads no more; closes once what has been read is answered and taken. */
void conn_drain(struct conn *c, mono_t now);

/* Closes if the peer is too slow; true if it did. */
bool conn_check(struct conn *c, mono_t now);

/* Closes now. */
void conn_close(struct conn *c);

/* The invariant, for asserts and tests. */
bool conn_sane(const struct conn *c);

#endif
