/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet_table - a fleet for people: who is in trouble first.
 *
 * Invariant: each row is printed once, and no colour reaches a file or a pipe.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fleet_table.h"

#define SKEW_MS 500 /* as skew_warn_ms is by default */
#define RED "\033[31m"
#define YELLOW "\033[33m"
#define PLAIN "\033[0m"

/* ---- who is in trouble ---- */

enum trouble {
	TROUBLE_NONE,
	TROUBLE_CLOCK, /* further off than it should be */
	TROUBLE_LATE, /* its window is over: what it says is old */
	TROUBLE_NO_IDS, /* it says that it issues none, or nothing */
};

static enum trouble
trouble_of(const struct fleet_row *r)
{
	if (strcmp(r->state, "serving") != 0 &&
	    strcmp(r->state, "isolated") != 0)
		return (TROUBLE_NO_IDS);
	if (r->has_mark && r->mark_lead_ms < 0)
		return (TROUBLE_LATE);
	if (r->has_skew && (r->skew_ms > SKEW_MS || r->skew_ms < -SKEW_MS))
		return (TROUBLE_CLOCK);
	return (TROUBLE_NONE);
}

/* Rows are in the order of worker IDs, and those alike stay in it. */
static int
worst_first(const void *a, const void *b)
{
	const struct fleet_row *one = *(const struct fleet_row *const *)a;
	const struct fleet_row *two = *(const struct fleet_row *const *)b;
	enum trouble of_one = trouble_of(one), of_two = trouble_of(two);

	if (of_one != of_two)
		return (of_one > of_two ? -1 : 1);
	return (one < two ? -1 : one > two);
}

/* ---- colour ---- */

static bool
wants_colour(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return (isatty(STDOUT_FILENO) == 1 && (no == NULL || *no == '\0') &&
		term != NULL && strcmp(term, "dumb") != 0);
}

static const char *
colour_of(enum trouble t)
{
	switch (t) {
	case TROUBLE_NONE:
		break;
	case TROUBLE_CLOCK:
	case TROUBLE_LATE:
		return (YELLOW);
	case TROUBLE_NO_IDS:
		return (RED);
	}
	return (NULL);
}

static const char *
alert_colour(enum fleet_severity s)
{
	switch (s) {
	case FLEET_INFO:
		break;
	case FLEET_WARNING:
		return (YELLOW);
	case FLEET_CRITICAL:
		return (RED);
	}
	return (NULL);
}

static void
begin(const char *colour, bool colours)
{
	if (colours && colour != NULL)
		(void)fputs(colour, stdout);
}

static void
end(const char *colour, bool colours)
{
	(void)fputs(colours && colour != NULL ? PLAIN "\n" : "\n", stdout);
}

/* ---- the table ---- */

static void
put_number(bool known, int64_t v, int width)
{
	char text[24] = "-";

	if (known)
		(void)snprintf(text, sizeof(text), "%" PRId64, v);
	printf("  %*s", width, text);
}

static int
wider(int width, const char *text, int most)
{
	int n = (int)strlen(text);

	return (n > most ? most : n > width ? n : width);
}

static void
print_row(const struct fleet_row *r, int host, int state)
{
	/* why it does not serve says more than that it does not */
	const char *word = r->reason[0] != '\0'  ? r->reason
			   : r->state[0] != '\0' ? r->state
						 : "-";

	printf("%6" PRIu64 "  %-*.*s", r->worker, host, host,
	    r->host[0] == '\0' ? "-" : r->host);
	put_number(r->pid > 0, r->pid, 7);
	printf("  %-*.*s", state, state, word);
	put_number(r->has_skew, r->skew_ms, 6);
	put_number(r->has_error, r->error_ms, 5);
	put_number(r->has_mark, r->mark_lead_ms, 7);
	printf("  %s", r->version[0] == '\0' ? "-" : r->version);
}

static bool
print_rows(const struct fleet *f, bool colours)
{
	const struct fleet_row **order = calloc(f->nrows + 1, sizeof(*order));
	int host = 4, state = 5;

	if (order == NULL)
		return (false);
	for (size_t i = 0; i < f->nrows; i++) {
		order[i] = &f->rows[i];
		host = wider(host, f->rows[i].host, 24);
		state = wider(state,
		    f->rows[i].reason[0] != '\0' ? f->rows[i].reason
						 : f->rows[i].state,
		    16);
	}
	qsort(order, f->nrows, sizeof(*order), worst_first);
	printf("%6s  %-*s  %7s  %-*s  %6s  %5s  %7s  %s\n", "WORKER", host,
	    "HOST", "PID", state, "STATE", "SKEW", "ERROR", "LEAD", "VERSION");
	for (size_t i = 0; i < f->nrows; i++) {
		const char *colour = colour_of(trouble_of(order[i]));

		begin(colour, colours);
		print_row(order[i], host, state);
		end(colour, colours);
	}
	free(order);
	return (true);
}

static void
print_alert(const struct fleet_alert *a, bool colours)
{
	const char *colour = alert_colour(a->severity);

	begin(colour, colours);
	printf("%s: %s: %s%s%s", fleet_severity_name(a->severity), a->kind,
	    a->text, a->since[0] != '\0' ? ", since " : "", a->since);
	end(colour, colours);
}

bool
fleet_table_print(
    const char *realm, const char *generation, const struct fleet *f)
{
	bool colours = wants_colour();

	if (!print_rows(f, colours))
		return (false);
	printf("\nrealm %s, generation %s: %zu agent%s, %" PRIu64
	       " worker IDs free\n",
	    realm, generation, f->nrows, f->nrows == 1 ? "" : "s",
	    f->free_workers);
	if (f->has_offset)
		printf("clocks: %+" PRId64 " ms against ZooKeeper's on "
		       "average, %" PRId64 " ms apart\n",
		    f->mean_offset_ms, f->spread_ms);
	if (f->auditor.claim[0] != '\0')
		printf("audited by %s on %s, %" PRId64 " ms ago\n",
		    f->auditor.claim,
		    f->auditor.host[0] != '\0' ? f->auditor.host : "-",
		    f->auditor.age_ms);
	for (size_t i = 0; i < f->nalerts; i++)
		print_alert(&f->alerts[i], colours);
	return (true);
}
