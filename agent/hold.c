/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold - joins state file and local mark.  With ZooKeeper the file lies in
 * memory and is written at once; without, on disk and in a thread.
 */
#include <stdlib.h>
#include <string.h>

#include "hold.h"
#include "localmark.h"
#include "log.h"

#define MEMORY_AHEAD_MS 100 /* a write costs microseconds */
#define DISK_AHEAD_MS 4000 /* a write costs a disk */
#define RETRY_MS 1000

struct hold {
	struct state *state;
	bool disk;
	enum state_found found;
	struct state_record left; /* by the process before */
	struct state_record record; /* as last written, or being written */
	struct localmark mark;
	int64_t floor; /* of the window in the record */
	bool begun; /* record and mark are in use */
	bool failed; /* neither written nor removed */
	bool absent; /* removed after a failure: no resume, no limit */
	mono_t retry_at;
};

static void
on_written(void *arg, bool good)
{
	struct hold *h = arg;

	localmark_wrote(&h->mark, good);
	if (!good && !h->failed)
		log_warnx("%s", state_trouble(h->state));
	if (good && h->failed)
		log_info("state: can be written again");
	h->failed = !good;
}

struct hold *
hold_open(
    struct event_base *base, const struct conf *conf, struct doc_error *err)
{
	struct hold *h = calloc(1, sizeof(*h));
	struct doc_error why;
	char dir[CONF_TEXT_MAX];

	if (h == NULL) {
		doc_error_set(err, "out of memory");
		return (NULL);
	}
	conf_state_dir(conf, dir, sizeof(dir));
	h->disk = conf_is_alone(conf);
	h->state = state_open(base, dir, h->disk, on_written, h, err);
	if (h->state == NULL) {
		free(h);
		return (NULL);
	}
	h->found = state_read(h->state, &h->left, &why);
	if (h->disk && h->found == STATE_UNREAD) {
		*err = why; /* the only mark: the next start may read it */
		hold_close(h);
		return (NULL);
	}
	if (h->found != STATE_NONE && h->found != STATE_RESUME)
		log_warnx("%s", why.text);
	return (h);
}

enum state_found
hold_found(const struct hold *h)
{
	return (h->found);
}

const struct state_record *
hold_record(const struct hold *h)
{
	return (&h->left);
}

/* The file cannot be written: it must not tell what is no longer so. */
static void
give_up_file(struct hold *h, mono_t boot, const struct doc_error *why)
{
	struct doc_error err;

	h->retry_at = mono_add_ms(boot, RETRY_MS);
	if (state_remove(h->state, &err)) {
		if (!h->absent)
			log_warnx(
			    "state: %s; goes on without a file", why->text);
		h->absent = true;
		h->failed = false;
		return;
	}
	if (!h->failed)
		log_warnx("%s; nor can it be removed: %s: refuses", why->text,
		    err.text);
	h->failed = true;
}

static void
write_now(
    struct hold *h, mono_t boot, const struct state_record *r, int64_t mark)
{
	struct doc_error err;

	localmark_writing(&h->mark, mark);
	h->record = *r;
	h->floor = r->local_mark;
	h->record.local_mark = mark;
	if (h->disk) {
		if (!state_write(h->state, &h->record, &err)) {
			localmark_wrote(&h->mark, false);
			if (!h->failed)
				log_warnx("%s", err.text);
			h->failed = true;
		}
		return;
	}
	if (state_write(h->state, &h->record, &err)) {
		localmark_wrote(&h->mark, true);
		if (h->absent || h->failed)
			log_info("state: can be written again");
		h->absent = h->failed = false;
		return;
	}
	localmark_wrote(&h->mark, false);
	h->record.worker = NO_WORKER; /* not on file: write it again */
	give_up_file(h, boot, &err);
}

static bool
says_the_same(const struct state_record *a, const struct state_record *b)
{
	return (a->worker == b->worker && a->ceiling == b->ceiling &&
		a->version == b->version &&
		a->skew_refused == b->skew_refused &&
		strcmp(a->claim, b->claim) == 0 && a->base_ns == b->base_ns);
}

static void
begin(struct hold *h, const struct state_record *r)
{
	int64_t tick_ms = r->contract.layout.tick_ms;
	int64_t ahead_ms = h->disk ? DISK_AHEAD_MS : MEMORY_AHEAD_MS;

	h->begun = true;
	localmark_init(&h->mark, true, NO_TICK,
	    ahead_ms / tick_ms > 2 ? ahead_ms / tick_ms : 2);
	h->record.worker = NO_WORKER;
}

void
hold_update(
    struct hold *h, mono_t boot, int64_t now, const struct state_record *r)
{
	int64_t mark = NO_TICK;
	bool due;

	if (!h->begun)
		begin(h, r);
	if ((h->absent || h->failed) && !mono_reached(boot, h->retry_at))
		return;
	if (h->mark.pending != NO_TICK)
		return;
	due = localmark_due(&h->mark, now, r->ceiling, &mark);
	if (!due && says_the_same(&h->record, r))
		return;
	if (mark < h->mark.confirmed)
		mark = h->mark.confirmed;
	if (mark < r->local_mark)
		mark = r->local_mark;
	h->retry_at = mono_add_ms(boot, RETRY_MS);
	write_now(h, boot, r, mark);
}

bool
hold_limits(const struct hold *h, int64_t *local_mark)
{
	*local_mark = h->begun ? h->mark.confirmed : NO_TICK;
	return (!h->absent);
}

bool
hold_failed(const struct hold *h)
{
	return (h->failed);
}

bool
hold_end(struct hold *h, int64_t last_tick, bool keep)
{
	struct doc_error err;

	if (!h->begun || h->absent)
		return (!h->failed);
	h->record.open = keep;
	/* Of a disk's write under way nothing is known but that it is ahead. */
	if (h->mark.pending == NO_TICK)
		h->record.local_mark =
		    last_tick > h->floor ? last_tick : h->floor;
	if (!keep) /* the mark is about to say the same */
		h->record.ceiling = h->record.local_mark;
	if (!h->disk && h->record.worker == NO_WORKER)
		return (state_remove(h->state, &err));
	if (state_write(h->state, &h->record, &err))
		return (true);
	return (!h->disk && state_remove(h->state, &err));
}

void
hold_forget(struct hold *h)
{
	struct doc_error err;

	h->record.worker = NO_WORKER; /* whatever comes next is news */
	if (!state_remove(h->state, &err)) {
		log_warnx("%s: refuses", err.text);
		h->failed = true;
	}
}

void
hold_close(struct hold *h)
{
	if (h == NULL)
		return;
	state_close(h->state);
	free(h);
}
