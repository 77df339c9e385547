/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper - what the simulated ZooKeeper knows, as the real one behaves
 * (sequence numbers, versions, cversion, sessions and their ephemeral nodes).
 * Each call is one transaction.
 */
#ifndef KEEPER_H
#define KEEPER_H

#include "claim.h"

struct keeper_claim {
	char name[CLAIM_NAME_MAX];
	int64_t session;
};

struct keeper_mark {
	bool exists;
	int64_t czxid, mzxid;
	int32_t version;
	struct mark mark;
};

/* marks.G of one generation; an old tree still takes writes. */
struct keeper_tree {
	char generation[GENERATION_MAX];
	struct keeper_mark *marks; /* by worker */
	int32_t mark_creates, mark_children;
};

struct keeper {
	struct contract k;
	bool blind;
	int64_t zxid;
	struct keeper_claim *claims;
	size_t nclaims, claims_size;
	int64_t counter;
	struct keeper_tree *trees; /* the last one is the realm's */
	size_t ntrees;
	uint64_t tag; /* of the last generation: none is used twice */
	bool missing; /* the realm was wiped */
	uint64_t creates, writes;
	uint8_t *dead; /* by session: it was closed, or expired */
	size_t dead_size;
};

/* A reply with memory of its own; free with keeper_reply_free(). */
struct keeper_reply {
	struct claim_result r;
	struct contract contract;
	struct mark mark;
	char name[CLAIM_NAME_MAX];
	char *name_store;
	const char **names;
	struct sweep_row *rows;
};

void keeper_make(struct keeper *z, const struct contract *k, bool blind);
void keeper_free(struct keeper *z);
void keeper_do(struct keeper *z, int64_t session, const struct claim_op *op,
    struct keeper_reply *out);
void keeper_reply_free(struct keeper_reply *r);

/* The session ends: its ephemeral nodes go. */
void keeper_end_session(struct keeper *z, int64_t session);
bool keeper_session_dead(const struct keeper *z, int64_t session);

/* What operators do. */
void keeper_delete_mark(struct keeper *z, uint64_t worker);
void keeper_renew(struct keeper *z, int64_t not_before_ms);

/*
 * What disasters do.  A copy is of the data alone and is freed as a keeper is;
 * restoring one, or wiping, ends all sessions up to the last.
 */
void keeper_copy(const struct keeper *z, struct keeper *out);
void keeper_restore(
    struct keeper *z, const struct keeper *old, int64_t last_session);
void keeper_wipe(struct keeper *z, int64_t last_session);

#endif
