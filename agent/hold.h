/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold - the state file over the life of the process: what the one before
 * left, the local mark written ahead, what is left for the next.
 *
 * Invariant: nothing is issued above the local mark on file; a file that can
 * be neither written nor removed means that nothing is issued at all.
 */
#ifndef HOLD_H
#define HOLD_H

#include "conf.h"
#include "state.h"

struct event_base;
struct hold;

/* Takes the lock and reads the file.  NULL with one line in err. */
struct hold *hold_open(
    struct event_base *base, const struct conf *conf, struct doc_error *err);

/* What was found, and the record (if it was readable). */
enum state_found hold_found(const struct hold *h);
const struct state_record *hold_record(const struct hold *h);

/*
 * Each wake-up while a window stands: r is what the file should say, with the
 * least local mark (the window's floor); writes if that has changed, or it is time to write ahead.
 * now is the present tick.
 */
void hold_update(
    struct hold *h, mono_t boot, int64_t now, const struct state_record *r);

/* Is there a file?  Then nothing may be issued above its local mark. */
bool hold_limits(const struct hold *h, int64_t *local_mark);

/* The file can be neither written nor removed (or, on disk, not written). */
bool hold_failed(const struct hold *h);

/*
 * Issuing has ended at last_tick.  keep: the window may be resumed; else the
 * file only remembers the worker ID.  False: it could not be said, so that the
 * mark must not be lowered.
 */
bool hold_end(struct hold *h, int64_t last_tick, bool keep);

/* Its worker ID is another process's, too: nothing is to be resumed. */
void hold_forget(struct hold *h);

void hold_close(struct hold *h);

#endif
