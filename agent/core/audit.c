/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit - the parts of a summary: who is there, their clocks, worker IDs.
 * Alerts are audit-alerts.c's.
 *
 * Offsets come from others and may be anything: differences saturate, and
 * what is summed lies near the median.
 */
#include <string.h>

#include "audit-private.h"

#define ERROR_MAX_US INT64_C(1000000) /* as skew's: more is no measurement */
#define US_PER_MS 1000

static const char *const state_names[AUDIT_STATES] = {
	[AUDIT_SERVING] = "serving",
	[AUDIT_ISOLATED] = "isolated",
	[AUDIT_REFUSING] = "refusing",
	[AUDIT_CLAIMING] = "claiming",
	[AUDIT_DRAINING] = "draining",
	[AUDIT_SILENT] = "silent",
};

const char *
audit_state_name(enum audit_state s)
{
	return (state_names[s]);
}

static int64_t
magnitude(int64_t v)
{
	if (v == INT64_MIN)
		return (INT64_MAX);
	return (v < 0 ? -v : v);
}

void
audit_copy_plain(char *to, const char *from, size_t size)
{
	size_t n = 0;

	for (; n + 1 < size && from[n] != '\0'; n++) {
		bool plain = from[n] >= 0x20 && from[n] <= 0x7e &&
			     from[n] != '"' && from[n] != '\\';

		to[n] = plain ? from[n] : '?';
	}
	to[n] = '\0';
}

/* ---- sorting: members by a rule, in place, without recursion ---------------- */

typedef bool before_fn(
    const struct audit_member *a, const struct audit_member *b);

static void
sift(const struct audit_input *in, size_t n, size_t at, before_fn *before)
{
	for (;;) {
		size_t child = 2 * at + 1;
		uint32_t other;

		if (child >= n)
			return;
		if (child + 1 < n && before(&in->members[in->order[child]],
					 &in->members[in->order[child + 1]]))
			child++;
		if (!before(&in->members[in->order[at]],
			&in->members[in->order[child]]))
			return;
		other = in->order[at];
		in->order[at] = in->order[child];
		in->order[child] = other;
		at = child;
	}
}

static void
sort(const struct audit_input *in, size_t n, before_fn *before)
{
	for (size_t i = n / 2; i > 0; i--)
		sift(in, n, i - 1, before);
	for (size_t i = n; i > 1; i--) {
		uint32_t first = in->order[0];

		in->order[0] = in->order[i - 1];
		in->order[i - 1] = first;
		sift(in, i - 1, 0, before);
	}
}

static bool
by_worker(const struct audit_member *a, const struct audit_member *b)
{
	if (a->worker != b->worker)
		return (a->worker < b->worker);
	if (a->counter != b->counter)
		return (a->counter < b->counter);
	return (strcmp(a->claim, b->claim) < 0);
}

/* Of one host the newest word first. */
static bool
by_host(const struct audit_member *a, const struct audit_member *b)
{
	int order = memcmp(a->status.boot_id, b->status.boot_id, UUID_BYTES);

	if (order != 0)
		return (order < 0);
	if (a->status.stamp_ms != b->status.stamp_ms)
		return (a->status.stamp_ms > b->status.stamp_ms);
	return (a->status.offset_us < b->status.offset_us);
}

static bool
by_offset(const struct audit_member *a, const struct audit_member *b)
{
	return (a->status.offset_us < b->status.offset_us);
}

/* ---- agents ------------------------------------------------------------------- */

static enum audit_state
state_of(const struct audit_member *m)
{
	for (int s = 0; s < AUDIT_SILENT; s++)
		if (strcmp(m->status.state, state_names[s]) == 0)
			return ((enum audit_state)s);
	return (AUDIT_SILENT);
}

int64_t
audit_stale_ms(const struct audit_input *in, const struct audit_member *m)
{
	int64_t age_ms = sub_sat(in->now_ms, m->written_ms);

	return (m->written_ms > 0 && age_ms > in->stale_ms ? age_ms : 0);
}

/* How bad it is, as one number: 0 is well. */
static int64_t
badness(const struct audit_input *in, const struct audit_member *m)
{
	enum audit_state state = state_of(m);
	int64_t skew_us =
	    m->status.has_offset ? magnitude(m->status.skew_us) : 0;
	int64_t bad = skew_us > ms_to_ns(in->warn_ms) / US_PER_MS ? skew_us : 0;

	/* Halved, so that each kind of trouble has a half of its own. */
	bad /= 2;
	if ((state != AUDIT_SERVING && state != AUDIT_ISOLATED) ||
	    audit_stale_ms(in, m) > 0)
		bad += INT64_MAX / 2;
	return (bad);
}

static void
describe(const struct audit_input *in, const struct audit_member *m,
    struct audit_worst *w)
{
	*w = (struct audit_worst){
		.worker = m->worker,
		.has_skew = m->status.has_offset,
		.skew_us = m->status.skew_us,
		.error_us = m->status.error_us,
		.stale_ms = audit_stale_ms(in, m),
	};
	audit_copy_plain(w->host, m->status.host, sizeof(w->host));
	audit_copy_plain(w->state, m->status.state, sizeof(w->state));
	audit_copy_plain(w->reason, m->status.reason, sizeof(w->reason));
}

struct ranking {
	int64_t bad[AUDIT_WORST_MAX]; /* worst first */
	uint32_t member[AUDIT_WORST_MAX];
	size_t n;
};

static void
rank(struct ranking *r, int64_t bad, uint32_t member)
{
	size_t at = r->n;

	if (bad == 0 ||
	    (r->n == AUDIT_WORST_MAX && bad <= r->bad[AUDIT_WORST_MAX - 1]))
		return;
	if (r->n < AUDIT_WORST_MAX)
		r->n++;
	else
		at--;
	for (; at > 0 && r->bad[at - 1] < bad; at--) {
		r->bad[at] = r->bad[at - 1];
		r->member[at] = r->member[at - 1];
	}
	r->bad[at] = bad;
	r->member[at] = member;
}

static void
count_agents(const struct audit_input *in, struct audit *out)
{
	const struct audit_member *oldest = NULL;
	struct ranking r = { .n = 0 };

	out->agents = in->n;
	for (size_t i = 0; i < in->n; i++) { /* by worker ID */
		const struct audit_member *m = &in->members[in->order[i]];

		out->states[state_of(m)]++;
		out->stale += audit_stale_ms(in, m) > 0 ? 1 : 0;
		rank(&r, badness(in, m), in->order[i]);
		if (oldest == NULL || m->counter < oldest->counter)
			oldest = m;
	}
	if (oldest != NULL)
		audit_copy_plain(
		    out->oldest, oldest->claim, sizeof(out->oldest));
	for (size_t i = 0; i < r.n; i++)
		describe(in, &in->members[r.member[i]], &out->worst[i]);
	out->nworst = r.n;
}

/* ---- clocks --------------------------------------------------------------------- */

static bool
is_fresh(const struct audit_input *in, const struct agent_status *st)
{
	int64_t apart_ms = sub_sat(in->now_ms, st->stamp_ms);

	return (st->has_offset && st->error_us >= 0 &&
		st->error_us <= ERROR_MAX_US && st->epoch == in->epoch &&
		magnitude(apart_ms) <= in->fresh_ms);
}

/* Leaves one voice a host in order[0 ...], by offset; how many. */
static size_t
choose_voices(const struct audit_input *in)
{
	size_t fresh = 0, voices = 0;

	for (size_t i = 0; i < in->n; i++)
		if (is_fresh(in, &in->members[i].status))
			in->order[fresh++] = (uint32_t)i;
	sort(in, fresh, by_host);
	for (size_t i = 0; i < fresh; i++) {
		const struct agent_status *st =
		    &in->members[in->order[i]].status;

		if (voices > 0 &&
		    memcmp(st->boot_id,
			in->members[in->order[voices - 1]].status.boot_id,
			UUID_BYTES) == 0)
			continue;
		in->order[voices++] = in->order[i];
	}
	sort(in, voices, by_offset);
	return (voices);
}

/* The i-th of the voices with ZooKeeper's own (0) in its place among them. */
static int64_t
voice(const struct audit_input *in, size_t n, size_t i)
{
	size_t below = 0;

	while (below < n && in->members[in->order[below]].status.offset_us < 0)
		below++;
	if (i == below)
		return (0);
	return (in->members[in->order[i < below ? i : i - 1]].status.offset_us);
}

static void
leave_out(struct audit *out, const struct audit_member *m)
{
	struct audit_left *l;

	out->nleft_all++;
	if (out->nleft == AUDIT_LEFT_MAX)
		return;
	l = &out->left[out->nleft++];
	memcpy(l->boot_id, m->status.boot_id, UUID_BYTES);
	l->worker = m->worker;
	l->offset_us = m->status.offset_us;
}

static bool
is_near(const struct audit *a, int64_t offset_us, int64_t warn_ms)
{
	return (magnitude(sub_sat(offset_us, a->median_us)) <=
		ms_to_ns(warn_ms) / US_PER_MS);
}

static void
sum_clocks(const struct audit_input *in, struct audit *out)
{
	size_t n = choose_voices(in);
	int64_t low = voice(in, n, n / 2), high = voice(in, n, (n + 1) / 2);

	out->hosts = n;
	out->median_us = magnitude(high) < magnitude(low) ? high : low;
	out->oldest_stamp_ms = in->now_ms;
	for (size_t i = 0; i < n; i++) {
		const struct audit_member *m = &in->members[in->order[i]];
		const struct agent_status *st = &m->status;

		if (st->stamp_ms < out->oldest_stamp_ms)
			out->oldest_stamp_ms = st->stamp_ms;
		if (!is_near(out, st->offset_us, in->warn_ms)) {
			leave_out(out, m);
			continue;
		}
		out->count++;
		out->sum_us = add_sat(
		    out->sum_us, sub_sat(st->offset_us, out->median_us));
	}
	if (n > 0)
		out->spread_us =
		    sub_sat(in->members[in->order[n - 1]].status.offset_us,
			in->members[in->order[0]].status.offset_us);
}

bool
audit_average(const struct audit *a, int64_t own_offset_us, int64_t warn_ms,
    int64_t *average_us, uint64_t *counted)
{
	int64_t sum_us = a->sum_us;
	uint64_t count = a->count;

	if (count > 0 && is_near(a, own_offset_us, warn_ms)) {
		sum_us = sub_sat(sum_us, sub_sat(own_offset_us, a->median_us));
		count--;
	}
	if (count == 0 || count > AUDIT_MEMBERS_MAX)
		return (false);
	*average_us = add_sat(a->median_us, sum_us / (int64_t)count);
	*counted = count;
	return (true);
}

/* ---- worker IDs ------------------------------------------------------------------ */

static void
add_to_ranges(struct audit_ranges *r, uint64_t worker)
{
	r->count++;
	if (r->n > 0 && r->last[r->n - 1] + 1 == worker) {
		r->last[r->n - 1] = worker;
		return;
	}
	if (r->n == AUDIT_RANGES_MAX) {
		r->more++;
		return;
	}
	r->first[r->n] = r->last[r->n] = worker;
	r->n++;
}

static void
find_double(struct audit *out, const struct audit_member *m)
{
	if (out->ndoubles < AUDIT_DOUBLES_MAX)
		audit_copy_plain(
		    out->doubles[out->ndoubles++], m->claim, CLAIM_NAME_MAX);
}

/* The members are sorted by worker ID. */
static void
divide_workers(const struct audit_input *in, struct audit *out)
{
	size_t at = 0;

	for (uint64_t w = in->k->worker_first;; w++) {
		uint64_t bit = w - in->k->worker_first;

		if (at < in->n && in->members[in->order[at]].worker == w)
			add_to_ranges(&out->taken, w);
		else if ((in->quarantined[bit / 64] >> (bit % 64) & 1) != 0)
			add_to_ranges(&out->quarantined, w);
		else
			add_to_ranges(&out->free, w);
		for (bool first = true;
		     at < in->n && in->members[in->order[at]].worker <= w;
		     at++, first = false)
			if (!first)
				find_double(out, &in->members[in->order[at]]);
		if (w == in->k->worker_last)
			break;
	}
}

void
audit_reckon(
    const struct audit_input *in, const struct audit *before, struct audit *out)
{
	memset(out, 0, sizeof(*out));
	memcpy(out->uuid, in->k->uuid, UUID_BYTES);
	memcpy(out->generation, in->k->generation_text, GENERATION_MAX);
	out->not_before_ms = in->k->not_before_ms;
	out->swept_ms = in->now_ms;
	out->epoch = in->epoch;
	out->marks_deleted = in->marks_deleted;
	for (size_t i = 0; i < in->n; i++)
		in->order[i] = (uint32_t)i;
	sort(in, in->n, by_worker);
	count_agents(in, out);
	divide_workers(in, out);
	audit_raise_agents(in, before, out); /* while they are so sorted */
	sum_clocks(in, out);
	audit_raise_fleet(in, before, out);
	audit_hold_alerts(in, before, out);
}
