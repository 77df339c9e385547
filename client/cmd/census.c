/* SPDX-License-Identifier: Apache-2.0 */
/*
 * census - a fleet's rows, figures and alerts out of claims and marks.
 *
 * Invariant: rows are sorted by worker ID, the claims of one worker ID by
 * their counter: the first is the oldest, whose ID it is.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "census.h"
#include "claim.h"
#include "layout.h"
#include "summary.h"

#define US_PER_MS 1000

static uint32_t
counter_of(const struct fleet_row *r)
{
	struct claim_name name;

	return (claim_name_parse(r->claim, &name) ? name.counter : 0);
}

static int
compare_rows(const void *a, const void *b)
{
	const struct fleet_row *x = a, *y = b;

	if (x->worker != y->worker)
		return (x->worker < y->worker ? -1 : 1);
	if (counter_of(x) != counter_of(y))
		return (counter_of(x) < counter_of(y) ? -1 : 1);
	return (strcmp(x->claim, y->claim));
}

static void
find_doubles(struct census *c)
{
	for (size_t i = 0; i < c->fleet.nrows; i++)
		c->doubles[i] =
		    i > 0 && c->rows[i].worker == c->rows[i - 1].worker;
}

bool
census_open(struct census *c, const struct contract *k,
    const char *const *names, size_t n)
{
	struct odd_names others = { .n = 0 };
	size_t rows = 0;

	*c = (struct census){ .k = k };
	c->rows = calloc(n + 1, sizeof(*c->rows));
	c->clocks = calloc(n + 1, sizeof(*c->clocks));
	c->doubles = calloc(n + 1, sizeof(*c->doubles));
	if (c->rows == NULL || c->clocks == NULL || c->doubles == NULL)
		return (false);
	for (size_t i = 0; i < n; i++) {
		struct claim_name name;
		uint64_t worker;

		if (strlen(names[i]) >= CLAIM_NAME_MAX ||
		    !claim_name_parse(names[i], &name)) {
			odd_take_name(&others, names[i]);
			continue;
		}
		worker = claim_name_worker(&name, k);
		if (worker == NO_WORKER) {
			odd_take_name(&others, names[i]);
			continue;
		}
		c->rows[rows].worker = worker;
		memcpy(c->rows[rows].claim, names[i], strlen(names[i]) + 1);
		rows++;
	}
	c->fleet.rows = c->rows;
	c->fleet.nrows = rows;
	qsort(c->rows, rows, sizeof(*c->rows), compare_rows);
	find_doubles(c);
	odd_add_names(&c->odd, &others, "no claim of this realm");
	return (true);
}

void
census_close(struct census *c)
{
	free(c->rows);
	free(c->clocks);
	free(c->doubles);
	free(c->alerts);
	*c = (struct census){ .rows = NULL };
}

static int64_t
to_ms(int64_t us)
{
	int64_t half = us < 0 ? -US_PER_MS / 2 : US_PER_MS / 2;

	return ((us + half) / US_PER_MS);
}

static void
set_status(struct census *c, size_t i, const struct agent_status *st)
{
	struct fleet_row *r = &c->rows[i];

	memcpy(r->state, st->state, sizeof(r->state));
	memcpy(r->reason, st->reason, sizeof(r->reason));
	memcpy(r->host, st->host, sizeof(r->host));
	memcpy(r->version, st->version, sizeof(r->version));
	r->pid = st->pid;
	r->has_skew = r->has_error = st->has_offset;
	r->skew_ms = to_ms(st->skew_us);
	r->error_ms = to_ms(st->error_us);
	c->clocks[i] = (struct census_clock){
		.known = st->has_offset,
		.offset_us = st->offset_us,
	};
}

void
census_add_claim(struct census *c, size_t i, const char *text, size_t length)
{
	struct agent_status st;
	struct doc_error err;

	if (claim_doc_parse(text, length, &st, &err) == 0)
		set_status(c, i, &st);
	else
		odd_add(&c->odd, "garbled_node", c->rows[i].worker, "claim",
		    c->rows[i].claim, err.text);
}

void
census_add_denied_claim(struct census *c, size_t i)
{
	odd_add(&c->odd, "denied_node", c->rows[i].worker, "claim",
	    c->rows[i].claim, "not allowed (its access list)");
}

static void
add_odd_mark(
    struct census *c, const char *kind, uint64_t worker, const char *fault)
{
	char name[24];

	(void)snprintf(name, sizeof(name), "%04" PRIu64, worker);
	odd_add(&c->odd, kind, worker, "mark", name, fault);
}

void
census_add_denied_mark(struct census *c, uint64_t worker)
{
	add_odd_mark(c, "denied_node", worker, "not allowed (its access list)");
}

void
census_add_idle_mark(
    struct census *c, uint64_t worker, const char *text, size_t length)
{
	struct doc_error err;
	struct mark m;

	if (mark_parse(text, length, &m, NULL, &err) != 0)
		add_odd_mark(c, "garbled_node", worker, err.text);
}

void
census_add_mark_names(struct census *c, const char *const *names, size_t n)
{
	struct odd_names others = { .n = 0 };

	for (size_t i = 0; i < n; i++)
		if (mark_name_worker(names[i], c->k) == NO_WORKER)
			odd_take_name(&others, names[i]);
	odd_add_names(&c->odd, &others, "no mark of this realm");
}

void
census_add_mark(
    struct census *c, size_t i, const char *text, size_t length, int64_t now_ms)
{
	struct fleet_row *r = &c->rows[i];
	struct agent_status st;
	struct doc_error err;
	struct mark m;

	if (mark_parse(text, length, &m, &st, &err) != 0) {
		if (!c->doubles[i]) /* it is the mark of both */
			add_odd_mark(c, "garbled_node", r->worker, err.text);
		return;
	}
	/* a mark that names another claim says nothing of this one */
	if (strcmp(m.owner, r->claim) != 0)
		return;
	r->has_mark = true;
	r->mark_lead_ms =
	    sub_sat(layout_tick_start_ms(&c->k->layout, m.ceiling + 1), now_ms);
	/* it is renewed, the claim's is not */
	if (st.state[0] != '\0')
		set_status(c, i, &st);
}

void
census_drop_gone(struct census *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->fleet.nrows; i++) {
		if (c->rows[i].worker == NO_WORKER)
			continue;
		c->rows[kept] = c->rows[i];
		c->clocks[kept] = c->clocks[i];
		kept++;
	}
	c->fleet.nrows = kept;
	find_doubles(c);
}

bool
census_has_doubles(const struct census *c)
{
	for (size_t i = 0; i < c->fleet.nrows; i++)
		if (c->doubles[i])
			return (true);
	return (false);
}

void
census_keep_doubles(struct census *c, const struct census *earlier)
{
	for (size_t i = 0; i < c->fleet.nrows; i++) {
		bool before = false;

		for (size_t j = 0; j < earlier->fleet.nrows; j++)
			if (earlier->doubles[j] &&
			    strcmp(earlier->rows[j].claim, c->rows[i].claim) ==
				0)
				before = true;
		c->doubles[i] = c->doubles[i] && before;
	}
}

/* ---- figures ---- */

static void
reckon_clocks(struct census *c)
{
	int64_t sum = 0, low = INT64_MAX, high = INT64_MIN, n = 0;

	for (size_t i = 0; i < c->fleet.nrows; i++) {
		int64_t us = c->clocks[i].offset_us;

		if (!c->clocks[i].known)
			continue;
		n++;
		sum = add_sat(sum, us);
		low = us < low ? us : low;
		high = us > high ? us : high;
	}
	c->fleet.has_offset = n > 0;
	if (n == 0)
		return;
	c->fleet.mean_offset_ms = to_ms(sum / n);
	c->fleet.spread_ms = to_ms(high - low);
}

static uint64_t
count_taken(const struct census *c)
{
	uint64_t taken = 0;

	for (size_t i = 0; i < c->fleet.nrows; i++)
		if (i == 0 || c->rows[i].worker != c->rows[i - 1].worker)
			taken++;
	return (taken);
}

/* ---- alerts ---- */

static struct fleet_alert *
raise_alert(struct census *c, const char *kind, enum fleet_severity severity)
{
	struct fleet_alert *a = &c->alerts[c->fleet.nalerts++];

	*a = (struct fleet_alert){
		.severity = severity,
		.worker = NO_WORKER,
	};
	(void)snprintf(a->kind, sizeof(a->kind), "%s", kind);
	return (a);
}

static void
judge_workers(struct census *c, uint64_t usable)
{
	uint64_t left = c->fleet.free_workers;
	struct fleet_alert *a;

	if (!audit_workers_low(left, usable))
		return;
	a = raise_alert(
	    c, "workers_low", left == 0 ? FLEET_CRITICAL : FLEET_WARNING);
	(void)snprintf(a->text, sizeof(a->text),
	    "%" PRIu64 " of %" PRIu64 " worker IDs are free", left, usable);
}

static void
judge_doubles(struct census *c)
{
	for (size_t i = 0; i < c->fleet.nrows; i++) {
		struct fleet_alert *a;

		if (!c->doubles[i])
			continue;
		a = raise_alert(c, "duplicate_claim", FLEET_WARNING);
		a->worker = c->rows[i].worker;
		memcpy(a->host, c->rows[i].host, sizeof(a->host));
		(void)snprintf(a->text, sizeof(a->text),
		    "worker ID %" PRIu64 " is claimed twice, the second time "
		    "by %s",
		    a->worker, c->rows[i].claim);
	}
}

static void
judge_clocks(struct census *c)
{
	struct fleet_alert *a;

	if (!c->fleet.has_offset || c->fleet.spread_ms <= CENSUS_SPREAD_MS)
		return;
	a = raise_alert(c, "fleet_skew", FLEET_WARNING);
	(void)snprintf(a->text, sizeof(a->text),
	    "the clocks are %" PRId64 " ms apart", c->fleet.spread_ms);
}

static void
add_odd(struct census *c)
{
	size_t n = c->odd.n + (c->odd.more > 0 ? 1 : 0);

	memcpy(
	    c->alerts + c->fleet.nalerts, c->odd.alert, n * sizeof(*c->alerts));
	c->fleet.nalerts += n;
}

bool
census_judge(struct census *c, const struct contract *k)
{
	uint64_t usable = k->worker_last - k->worker_first + 1;

	c->alerts = calloc(c->fleet.nrows + 2 + ODD_MAX + AUDIT_ALERTS_MAX,
	    sizeof(*c->alerts));
	if (c->alerts == NULL)
		return (false);
	c->fleet.alerts = c->alerts;
	c->fleet.free_workers = usable - count_taken(c);
	reckon_clocks(c);
	judge_workers(c, usable);
	judge_doubles(c);
	judge_clocks(c);
	add_odd(c);
	return (true);
}

/* ---- what the auditor found ---- */

/* Seen here too?  Else it is added, with the auditor's words. */
static struct fleet_alert *
find_alert(struct census *c, const struct audit_alert *x)
{
	const char *kind = audit_kind_name(x->kind);
	struct fleet_alert *a;

	for (size_t i = 0; i < c->fleet.nalerts; i++)
		if (strcmp(c->alerts[i].kind, kind) == 0 &&
		    c->alerts[i].worker == x->worker)
			return (&c->alerts[i]);
	a = raise_alert(c, kind, FLEET_WARNING);
	a->worker = x->worker;
	memcpy(a->host, x->host, sizeof(a->host));
	summary_alert_words(x, a->text);
	return (a);
}

void
census_add_summary(
    struct census *c, const struct audit *summary, int64_t age_ms)
{
	struct fleet_auditor *by = &c->fleet.auditor;

	memcpy(by->claim, summary->auditor, sizeof(by->claim));
	memcpy(by->host, summary->auditor_host, sizeof(by->host));
	by->age_ms = age_ms;
	for (size_t i = 0; i < summary->nalerts; i++) {
		const struct audit_alert *x = &summary->alerts[i];
		struct fleet_alert *a = find_alert(c, x);

		if (x->critical)
			a->severity = FLEET_CRITICAL;
		if (!rfc3339_format(x->since_ms, a->since))
			a->since[0] = '\0';
	}
}
