/* SPDX-License-Identifier: Apache-2.0 */
/*
 * herald - tells alert_command of this host's alerts and, on the auditor's
 * host, of the fleet's.
 *
 * Invariant: raised once and cleared once, and nothing waits for it.
 */
#include "herald.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "notice.h"
#include "summary.h"

#define PACE_MS 1000
#define LIMIT_MS 10000
#define GRACE_MS 1000

/* ---- life -------------------------------------------------------------------- */

/* Words apart by blanks, as the configuration has checked. */
static void
split(struct herald *h, const char *command)
{
	char *rest = NULL, *word;
	size_t n = 0;

	(void)snprintf(h->command, sizeof(h->command), "%s", command);
	word = strtok_r(h->command, " ", &rest);
	for (; word != NULL && n < CONF_COMMAND_WORDS; n++) {
		h->argv[n] = word;
		word = strtok_r(NULL, " ", &rest);
	}
	h->argv[n] = NULL;
}

bool
herald_open(struct herald *h, struct event_base *base, const struct conf *conf)
{
	const struct runner_conf rc = { "alert_command", h->argv, PACE_MS,
		LIMIT_MS, GRACE_MS };

	*h = (struct herald){ .realm = conf->realm };
	if (conf->alert_command[0] == '\0')
		return (true);
	split(h, conf->alert_command);
	if (gethostname(h->host, sizeof(h->host) - 1) != 0)
		h->host[0] = '\0';
	h->runner = runner_open(base, &rc);
	return (h->runner != NULL);
}

void
herald_close(struct herald *h)
{
	runner_close(h->runner);
	h->runner = NULL;
}

static void
send(struct herald *h, const struct notice *x)
{
	char doc[NOTICE_DOC_MAX];
	int n = notice_format(x, doc, sizeof(doc));

	if (n > 0)
		runner_add(h->runner, doc, (size_t)n);
	else
		log_warnx(
		    "alert_command: alert %s has too long words", x->kind);
}

/* ---- of this host -------------------------------------------------------------- */

static void
set_figures(struct notice *x, int64_t value, int64_t limit)
{
	x->has_value = x->has_limit = true;
	x->value = value;
	x->limit = limit;
}

static void
describe_skew(struct notice *x, const struct answer_view *v, int64_t limit_ms,
    char text[NOTICE_TEXT_MAX])
{
	const struct skew *skew = lease_skew(v->lease);
	char words[SKEW_WORDS_MAX];

	(void)skew_words(skew, words, sizeof(words));
	(void)snprintf(text, NOTICE_TEXT_MAX, "the clock is %s", words);
	set_figures(x, skew->skew_us / 1000, limit_ms);
}

static void
describe(struct notice *x, enum alarm_kind kind, const struct answer_view *v,
    const struct status_doc *d, char text[NOTICE_TEXT_MAX])
{
	struct lease_figures f;

	switch (kind) {
	case ALARM_SKEW_WARN:
		describe_skew(x, v, v->conf->skew_warn_ms, text);
		return;
	case ALARM_SKEW_REFUSE:
		describe_skew(x, v, v->conf->skew_refuse_ms, text);
		return;
	case ALARM_CLOCK_STEP:
		set_figures(
		    x, v->clk->diff_ns / NS_PER_MS, v->conf->step_tolerance_ms);
		(void)snprintf(text, NOTICE_TEXT_MAX,
		    "the clock is %" PRId64 " ms off the agent's time",
		    x->value);
		return;
	case ALARM_WINDOW_LOW:
		lease_figures(v->lease, v->now, &f);
		set_figures(x, d->window_left_ms, f.reserve_ms / 2);
		(void)snprintf(text, NOTICE_TEXT_MAX,
		    "%" PRId64 " ms of %" PRId64 " ms are left of the window",
		    d->window_left_ms, f.reserve_ms);
		return;
	case ALARM_NO_REALM:
		(void)snprintf(text, NOTICE_TEXT_MAX, "realm %s is%s known",
		    d->realm, x->raised ? " not" : "");
		return;
	case ALARM_CLOCK_UNSYNCED:
		(void)snprintf(text, NOTICE_TEXT_MAX,
		    "%s sets the clock, says the kernel",
		    x->raised ? "nobody" : "somebody");
		return;
	}
	text[0] = '\0';
}

static void
tell(struct herald *h, enum alarm_kind kind, const struct alarm *a,
    const struct answer_view *v, const struct status_doc *d)
{
	mono_t since = h->told.kinds[kind].since;
	char text[NOTICE_TEXT_MAX];
	struct notice x = {
		.kind = alarm_name(kind),
		.severity = alarm_severity_name(alarm_severity(kind)),
		.raised = a->stands,
		.realm = h->realm,
		.host = h->host,
		.worker = d->worker,
		.text = text,
	};

	if (a->stands)
		since = a->since;
	x.since_ms = wall_ms(v->now->wall) - mono_diff_ms(v->now->boot, since);
	describe(&x, kind, v, d, text);
	send(h, &x);
}

void
herald_look(
    struct herald *h, const struct alarms *alarms, const struct answer_view *v)
{
	struct status_doc d;

	if (h->runner == NULL)
		return;
	answer_fill_status(v, 0, 0, &d);
	for (int k = 0; k < ALARM_KINDS; k++)
		if (alarms->kinds[k].stands != h->told.kinds[k].stands)
			tell(h, (enum alarm_kind)k, &alarms->kinds[k], v, &d);
	h->told = *alarms;
}

/* ---- of the fleet ---------------------------------------------------------------- */

void
herald_fleet(void *arg, const struct audit_alert *a, bool raised)
{
	struct herald *h = arg;
	char text[SUMMARY_WORDS_MAX];
	struct notice x = {
		.kind = audit_kind_name(a->kind),
		.severity = alarm_severity_name(
		    a->critical ? ALARM_CRITICAL : ALARM_WARNING),
		.raised = raised,
		.realm = h->realm,
		.host = a->host,
		.worker = a->worker,
		.since_ms = a->since_ms,
		.text = text,
	};

	if (h->runner == NULL)
		return;
	summary_alert_words(a, text);
	set_figures(&x, a->value, a->limit);
	send(h, &x);
}
