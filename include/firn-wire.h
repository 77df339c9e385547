/* SPDX-License-Identifier: Apache-2.0 */
/*
 * firn-wire.h - the protocol between libfirn and firnd: frames, sizes, get and
 * put.  Not installed.  Unix stream socket; little-endian; every request is
 * WIRE_REQUEST_SIZE bytes; every reply is a header of WIRE_HEADER_SIZE bytes
 * and as many body bytes as the header says.  Requests may be pipelined; the
 * replies of one connection come in the order of its requests; one of type 0
 * answers none, and the agent closes after it.  The whole text, with what may
 * change within a version, is contrib/PROTOCOL.md; tests/unit/test_protocol.c
 * holds the two together.
 *
 * Version history: 1, the first.
 *
 * request (32 bytes)              reply header (16 bytes)
 *  0 u8  version                   0 u8  version
 *  1 u8  type                      1 u8  type, that of the request
 *  2 u16 flags, 0                  2 u16 status: 0, or an enum wire_reason
 *  4 u32 count (batch; else 0)     4 u32 length of the body
 *  8 u64 cookie                    8 u64 cookie
 * 16 u64 after (batch; else 0)
 * 24 u64 reserved, 0
 *
 * batch body (16 + 24 * runs)     contract body (128)
 *  0 u64 boot_ns: the agent's      0 16  uuid
 *        CLOCK_BOOTTIME           16 u8  time, worker, sequence, datacenter bits
 *  8 u32 ttl_ms                   20 u32 flags (enum of struct firn_layout)
 * 12 u32 runs                     24 u32 tick_ms
 * 16 runs: u64 first, u64 stride, 28 u32 reserved, 0
 *          u32 count, u32 0       32 i64 epoch_ms
 *                                 40 u64 worker ID, ~0 while there is none
 * refusal body (8 + text)         48 16  layout's name, NUL-padded
 *  0 u32 retry_after_ms           64 64  realm's name, NUL-padded
 *  4 u32 length of the text
 *  8 the text, no NUL             status body: one JSON document, no NUL
 */
#ifndef FIRN_WIRE_H
#define FIRN_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "firn.h"

#define WIRE_VERSION 1
#define WIRE_REQUEST_SIZE 32
#define WIRE_HEADER_SIZE 16
#define WIRE_BATCH_SIZE 16
#define WIRE_RUN_SIZE 24
#define WIRE_CONTRACT_SIZE 128
#define WIRE_REFUSAL_SIZE 8
#define WIRE_TEXT_MAX 240    /* longest words of a refusal */
#define WIRE_RUNS_MAX 16     /* most runs in one batch */
#define WIRE_STATUS_MAX 4000 /* longest status document */
#define WIRE_COUNT_MAX 1048576
#define WIRE_BODY_MAX WIRE_STATUS_MAX
#define WIRE_REPLY_MAX (WIRE_HEADER_SIZE + WIRE_BODY_MAX)
#define WIRE_UUID_SIZE 16
#define WIRE_REALM_MAX 64

#define WIRE_NO_WORKER UINT64_MAX

enum wire_type {
	WIRE_BATCH = 1,    /* IDs, please */
	WIRE_CONTRACT = 2, /* which realm, which layout */
	WIRE_STATUS = 3,   /* the document of `firn status` */
};

/* Why a request was refused.  Numbers are part of the protocol. */
enum wire_reason {
	WIRE_OK = 0,
	/* the gate's (agent/core/gate.h) */
	WIRE_NO_REALM = 1,
	WIRE_REALM_CHANGED = 2,
	WIRE_NO_CLAIM = 3,
	WIRE_WINDOW_SPENT = 4,
	WIRE_STATE_LOST = 5,
	WIRE_STATE_FAILED = 6,
	WIRE_CLOCK_SKEW = 7,
	WIRE_CLOCK_BACK = 8,
	WIRE_CLOCK_AHEAD = 9,
	WIRE_BEFORE_EPOCH = 10,
	WIRE_EPOCH_ENDED = 11,
	WIRE_DRAINING = 12,
	/*
	 * The connection's.  The agent closes after a refusal of the connection
	 * itself, which has cookie 0 and may come before any request was read:
	 * the first two always, the third when max_clients is reached.  Over
	 * the rate of max_ids_per_second it is the answer to one request, with
	 * its cookie, and the connection stays.
	 */
	WIRE_BAD_VERSION = 64, /* the header's version byte is the agent's */
	WIRE_NOT_ALLOWED = 65, /* uid or gid not on the list */
	WIRE_TOO_MANY = 66,    /* max_clients; of a batch: over its rate */
};

struct wire_request {
	uint8_t version;
	uint8_t type;
	uint16_t flags;
	uint32_t count;
	uint64_t cookie;
	uint64_t after;
};

struct wire_header {
	uint8_t version;
	uint8_t type;
	uint16_t status;
	uint32_t length;
	uint64_t cookie;
};

/* count IDs: first, first + stride, ... */
struct wire_run {
	uint64_t first;
	uint64_t stride;
	uint32_t count;
};

struct wire_contract {
	uint8_t uuid[WIRE_UUID_SIZE];
	struct firn_layout layout;
	uint64_t worker;
	char realm[WIRE_REALM_MAX]; /* NUL-terminated */
};

static inline void
wire_put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v & 0xff);
	p[1] = (uint8_t)(v >> 8);
}

static inline void
wire_put32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)((v >> (8 * i)) & 0xff);
}

static inline void
wire_put64(uint8_t *p, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		p[i] = (uint8_t)((v >> (8 * i)) & 0xff);
}

static inline uint16_t
wire_get16(const uint8_t *p)
{
	return ((uint16_t)(p[0] | (uint16_t)(p[1] << 8)));
}

static inline uint32_t
wire_get32(const uint8_t *p)
{
	uint32_t v = 0;

	for (int i = 3; i >= 0; i--)
		v = (v << 8) | p[i];
	return (v);
}

static inline uint64_t
wire_get64(const uint8_t *p)
{
	uint64_t v = 0;

	for (int i = 7; i >= 0; i--)
		v = (v << 8) | p[i];
	return (v);
}

static inline void
wire_put_request(uint8_t *p, const struct wire_request *r)
{
	p[0] = r->version;
	p[1] = r->type;
	wire_put16(p + 2, r->flags);
	wire_put32(p + 4, r->count);
	wire_put64(p + 8, r->cookie);
	wire_put64(p + 16, r->after);
	wire_put64(p + 24, 0);
}

static inline void
wire_get_request(const uint8_t *p, struct wire_request *r)
{
	r->version = p[0];
	r->type = p[1];
	r->flags = wire_get16(p + 2);
	r->count = wire_get32(p + 4);
	r->cookie = wire_get64(p + 8);
	r->after = wire_get64(p + 16);
}

static inline void
wire_put_header(uint8_t *p, const struct wire_header *h)
{
	p[0] = h->version;
	p[1] = h->type;
	wire_put16(p + 2, h->status);
	wire_put32(p + 4, h->length);
	wire_put64(p + 8, h->cookie);
}

static inline void
wire_get_header(const uint8_t *p, struct wire_header *h)
{
	h->version = p[0];
	h->type = p[1];
	h->status = wire_get16(p + 2);
	h->length = wire_get32(p + 4);
	h->cookie = wire_get64(p + 8);
}

static inline void
wire_put_run(uint8_t *p, const struct wire_run *r)
{
	wire_put64(p, r->first);
	wire_put64(p + 8, r->stride);
	wire_put32(p + 16, r->count);
	wire_put32(p + 20, 0);
}

static inline void
wire_get_run(const uint8_t *p, struct wire_run *r)
{
	r->first = wire_get64(p);
	r->stride = wire_get64(p + 8);
	r->count = wire_get32(p + 16);
}

static inline void
wire_put_contract(uint8_t *p, const struct wire_contract *c)
{
	memset(p, 0, WIRE_CONTRACT_SIZE);
	memcpy(p, c->uuid, WIRE_UUID_SIZE);
	p[16] = c->layout.time_bits;
	p[17] = c->layout.worker_bits;
	p[18] = c->layout.sequence_bits;
	p[19] = c->layout.datacenter_bits;
	wire_put32(p + 20, c->layout.flags);
	wire_put32(p + 24, c->layout.tick_ms);
	wire_put64(p + 32, (uint64_t)c->layout.epoch_ms);
	wire_put64(p + 40, c->worker);
	memcpy(p + 48, c->layout.name, FIRN_LAYOUT_NAME_MAX);
	memcpy(p + 64, c->realm, WIRE_REALM_MAX);
}

static inline void
wire_get_contract(const uint8_t *p, struct wire_contract *c)
{
	memset(c, 0, sizeof(*c));
	memcpy(c->uuid, p, WIRE_UUID_SIZE);
	c->layout.size = (uint32_t)sizeof(c->layout);
	c->layout.time_bits = p[16];
	c->layout.worker_bits = p[17];
	c->layout.sequence_bits = p[18];
	c->layout.datacenter_bits = p[19];
	c->layout.flags = wire_get32(p + 20);
	c->layout.tick_ms = wire_get32(p + 24);
	c->layout.epoch_ms = (int64_t)wire_get64(p + 32);
	c->worker = wire_get64(p + 40);
	memcpy(c->layout.name, p + 48, FIRN_LAYOUT_NAME_MAX);
	c->layout.name[FIRN_LAYOUT_NAME_MAX - 1] = '\0';
	memcpy(c->realm, p + 64, WIRE_REALM_MAX);
	c->realm[WIRE_REALM_MAX - 1] = '\0';
}

/* A name for each reason ("clock_skew"), in client/ids/reason.c. */
const char *wire_reason_name(unsigned status);

#endif
