/* SPDX-License-Identifier: Apache-2.0 */
/* claim-private - what the files of claim share; for nobody else. */
#ifndef CLAIM_PRIVATE_H
#define CLAIM_PRIVATE_H

#include "claim.h"

/* ---- claim.c ------------------------------------------------------------- */

/* The only writer of c->state. */
void claim_enter(struct claim *c, enum claim_state to, const char *cause);

/* The contract was read in this session and may be used. */
bool claim_realm_usable(const struct claim *c);

/* ZooKeeper's data went back: only a new generation heals. */
void claim_realm_went_back(struct claim *c);

/* The mark in hand carries a write of ours. */
bool claim_owns(const struct claim *c);

/* ---- claim-time.c -------------------------------------------------------- */

/* Within -1 .. the layout's last tick. */
int64_t claim_tick(const struct claim *c, int64_t unix_ms);

/* splitmix64: spreads retries and choices, names nothing. */
uint64_t claim_next_jitter(struct claim *c);

/* From half of it to all of it: base doubled with each try, at most limit. */
mono_t claim_back_off(struct claim *c, mono_t now, unsigned tries,
    int64_t base_ms, int64_t limit_ms);

/* The way's operation failed: not at once again. */
void claim_retry_way(struct claim *c, struct claim_now now);

/* ---- claim-realm.c ------------------------------------------------------- */

/* The reply to OP_GET_REALM. */
void claim_on_realm(
    struct claim *c, struct claim_now now, const struct claim_result *r);

/* ---- claim-ghost.c ------------------------------------------------------- */

/* A node of this name or prefix must not stand. */
void claim_remember_ghost(struct claim *c, const char *name);

/* Is it one of those? */
bool claim_is_ghost(const struct claim *c, const char *name);

/* The own node is one from now on. */
void claim_forget_node(struct claim *c);

/* Deletes one node, then goes on in the state after. */
void claim_clear(struct claim *c, const char *name, const char *generation,
    enum claim_state after, const char *cause);

/* ---- claim-node.c -------------------------------------------------------- */

/* The reply to OP_LIST. */
void claim_on_list(
    struct claim *c, struct claim_now now, const struct claim_result *r);

/* ... to OP_CREATE. */
void claim_on_create(
    struct claim *c, struct claim_now now, const struct claim_result *r);

/* ... to OP_DELETE. */
void claim_on_delete(
    struct claim *c, struct claim_now now, const struct claim_result *r);

/* ... to OP_WATCH. */
void claim_on_watch(
    struct claim *c, struct claim_now now, const struct claim_result *r);

/* ... to OP_SET_CLAIM. */
void claim_on_said(struct claim *c, const struct claim_result *r);

/* ---- claim-walk.c -------------------------------------------------------- */

/* Gives the ID of the own node up and walks on. */
void claim_walk_on(struct claim *c, struct claim_now now, const char *cause);

/* Its mark may not be written: not chosen while there are others. */
void claim_remember_denied(struct claim *c, uint64_t worker);

/* The reply to OP_SWEEP. */
void claim_on_sweep(
    struct claim *c, struct claim_now now, const struct claim_result *r);

/* ---- claim-take.c -------------------------------------------------------- */

/* The tick past which no honest window can end. */
int64_t claim_far_ahead(const struct claim *c, struct claim_now now);

/* Was any mark deleted, ever?  Asked of the stat of the marks' parent. */
bool claim_any_deleted(const struct claim_result *r);

/* The reply to OP_GET_MARK, before the take-over. */
void claim_on_mark(
    struct claim *c, struct claim_now now, const struct claim_result *r);

/* ... to OP_STAT_MARKS. */
void claim_on_count(
    struct claim *c, struct claim_now now, const struct claim_result *r);

/* Was it that the mark to be taken over is denied?  Then walks on. */
bool claim_take_denied(
    struct claim *c, struct claim_now now, const struct claim_result *r);

/* What a write of the take-over, or the look after it, has said. */
void claim_on_take(
    struct claim *c, struct claim_now now, enum window_news news);

/* ---- claim-mark.c -------------------------------------------------------- */

/* A reply about the mark in hand: of a write, or of a look. */
enum window_news claim_mark_news(struct claim *c, struct claim_now now,
    const struct claim_lane *lane, const struct claim_result *r);

/* The mark is no longer ours to write; its window is good to its end. */
void claim_freeze_own(struct claim *c);

/* A mark that this process has seen was deleted: it never makes it again. */
void claim_remember_gone(struct claim *c, uint64_t worker);

/* Is this worker ID's mark such a one? */
bool claim_is_gone(const struct claim *c, uint64_t worker);

/* What a renewal, or the look after it, has said. */
void claim_on_renewal(
    struct claim *c, struct claim_now now, enum window_news news);

#endif
