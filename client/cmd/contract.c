/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contract - a realm's contract for people, and its successors.
 *
 * Invariant: a successor's not_before lies above every tick that anyone may
 * have issued, or may still issue, under the contracts before it.
 */
#include <inttypes.h>
#include <sys/random.h>

#include "contract.h"
#include "layout.h"
#include "reckon.h"
#include "rfc3339.h"

bool
contract_random(void *buf, size_t n)
{
	return (getrandom(buf, n, 0) == (ssize_t)n);
}

int
contract_advance(const struct tree *t, struct contract *k, int64_t above)
{
	uint32_t tag;

	if (!contract_random(&tag, sizeof(tag)))
		return (cmd_fail(CMD_FAILED, t->command,
		    "the kernel gives no random bytes"));
	if (!reckon_generation(k, above, tag))
		return (cmd_fail(CMD_UNFIT, t->command,
		    "realm %s: generation %" PRId64 " is the last", t->realm,
		    k->generation));
	return (CMD_DONE);
}

int
contract_range(const char *command, const char *text, struct contract *k)
{
	uint64_t max = layout_worker_max(&k->layout);
	size_t where;

	if (!reckon_range(text, &k->worker_first, &k->worker_last, &where))
		return (cmd_fail(CMD_USAGE, command,
		    "--workers: \"%s\" is no range such as 0-999 (character "
		    "%zu)",
		    text, where + 1));
	if (k->worker_last > max)
		return (cmd_fail(CMD_USAGE, command,
		    "--workers: %u bits hold no worker ID above %" PRIu64,
		    k->layout.worker_bits, max));
	if (k->worker_last - k->worker_first >= WORKERS_MAX)
		return (cmd_fail(CMD_USAGE, command,
		    "--workers: more than %" PRIu64, WORKERS_MAX));
	return (CMD_DONE);
}

static const char *
instant(int64_t unix_ms, char buf[RFC3339_TEXT_MAX])
{
	return (rfc3339_format(unix_ms, buf) ? buf : "beyond the year 9999");
}

void
contract_print(const char *realm, const struct contract *k, int64_t agents)
{
	const struct firn_layout *l = &k->layout;
	uint64_t usable = k->worker_last - k->worker_first + 1;
	char uuid[UUID_TEXT_MAX], bits[LAYOUT_TEXT_MAX], at[RFC3339_TEXT_MAX];

	uuid_format(k->uuid, uuid);
	layout_format_bits(l, bits);
	printf("realm       %s\n", realm);
	printf("uuid        %s\n", uuid);
	printf("generation  %s\n", k->generation_text);
	printf("layout      %s: %s bits of time, worker, sequence%s; ticks of "
	       "%" PRIu32 " ms\n",
	    l->name, bits,
	    (l->flags & FIRN_SEQUENCE_ABOVE_WORKER) != 0
		? " (sequence above worker)"
		: "",
	    l->tick_ms);
	printf("epoch       %s\n", instant(l->epoch_ms, at));
	printf("ends        %s\n", instant(layout_end_ms(l), at));
	printf("workers     %" PRIu64 " to %" PRIu64 " (%" PRIu64 "), %" PRIu64
	       " IDs a tick each\n",
	    k->worker_first, k->worker_last, usable,
	    layout_sequence_max(l) + 1);
	printf("not before  %s\n", instant(k->not_before_ms, at));
	printf("windows     at most %" PRId64 " ms\n", k->reserve_max_ms);
	if (agents >= 0)
		printf("agents      %" PRId64 "\n", agents);
}

void
contract_say_wait(const struct tree *t, const struct contract *k)
{
	int64_t left = k->not_before_ms - cmd_wall_ms();
	char at[RFC3339_TEXT_MAX];

	if (left > 0)
		cmd_say(t->command,
		    "realm %s: agents issue nothing until %s (%" PRId64
		    ".%03" PRId64 " s from now)",
		    t->realm, instant(k->not_before_ms, at), left / 1000,
		    left % 1000);
}

static int64_t
later(int64_t a, int64_t b)
{
	return (a > b ? a : b);
}

/* One attempt.  *late: agents may have gone on beyond what was reckoned. */
static int
supersede_once(const struct tree *t, const struct tree_realm *old,
    struct contract *k, int64_t skew_refuse_ms, bool *late)
{
	int64_t now_ms, highest_ms, reserve_ms, late_ms = 0;
	int status = contract_advance(t, k, old->k.generation);

	if (status == CMD_DONE)
		status = tree_make_parents(t, k, &now_ms);
	if (status == CMD_DONE)
		status = tree_highest_mark(t, &old->k, &highest_ms);
	if (status != CMD_DONE)
		return (status);
	/* live agents may still move a mark while our write is under way */
	reserve_ms = later(k->reserve_max_ms, old->k.reserve_max_ms);
	k->not_before_ms = later(later(k->not_before_ms, old->k.not_before_ms),
	    later(highest_ms, reckon_not_before(now_ms + TREE_LATE_MS,
				  reserve_ms, skew_refuse_ms)));
	if (k->not_before_ms >= layout_end_ms(&k->layout))
		return (cmd_fail(CMD_UNFIT, t->command,
		    "realm %s: nothing could be issued any more: the highest "
		    "mark, or what follows from it, is past the layout's end",
		    t->realm));
	status = tree_write(t, k, old->version, now_ms, &late_ms);
	*late = late_ms > TREE_LATE_MS;
	if (status == CMD_AGAIN)
		return (cmd_fail(CMD_AGAIN, t->command,
		    "realm %s was changed meanwhile: look at it, then run this "
		    "again",
		    t->realm));
	return (status);
}

int
contract_supersede(const struct tree *t, const struct tree_realm *old,
    struct contract *k, int64_t skew_refuse_ms)
{
	struct tree_realm now = *old;
	bool late = false;
	int status = tree_follow_acl(t);

	if (status != CMD_DONE)
		return (status);
	for (;;) {
		status = supersede_once(t, &now, k, skew_refuse_ms, &late);
		if (status != CMD_DONE || !late)
			return (status);
		status = tree_read_good(t, &now);
		if (status != CMD_DONE)
			return (status);
	}
}
