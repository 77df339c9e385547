/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alert - which alerts stand on this host, judged from the facts as they are.
 *
 * Invariant: one line when one is raised and one when it is cleared, here or
 * (skew_warn, skew_refuse, clock_step) where the figures are.
 */
#include "alert.h"

#include <inttypes.h>
#include <string.h>

#include "lease.h"
#include "log.h"

#define REALM_MS 5000 /* so long it may take to be found */

void
alert_init(struct alert *a, mono_t now)
{
	*a = (struct alert){ .worker = NO_WORKER, .realm_seen = now };
}

/*
 * The first window of a claim is a short one: it is low only after it has been
 * more than that.
 */
static void
judge_window(struct alert *a, const struct answer_view *v,
    const struct lease_figures *f, const struct status_doc *d)
{
	mono_t now = v->now->boot;
	bool low;

	if (d->worker != NO_WORKER && d->worker != a->worker) {
		a->worker = d->worker;
		a->was_full = false;
	}
	low =
	    !lease_is_alone(v->lease) && d->window_left_ms < f->reserve_ms / 2;
	a->was_full = a->was_full || (!low && d->mark_ms != 0);
	low = low && a->was_full && !v->serve->gate.draining;
	if (!alarms_set(&a->alarms, ALARM_WINDOW_LOW, low, now))
		return;
	if (low)
		log_warnx("alert window_low: %" PRId64 " ms of %" PRId64
			  " ms are left, and ZooKeeper has confirmed no "
			  "renewal",
		    d->window_left_ms, f->reserve_ms);
	else
		log_info("window: above half again");
}

static void
judge_realm(
    struct alert *a, const struct answer_view *v, const struct status_doc *d)
{
	mono_t now = v->now->boot;
	bool lost;

	if (v->serve->gate.realm_known)
		a->realm_seen = now;
	lost = mono_reached(now, mono_add_ms(a->realm_seen, REALM_MS));
	if (!alarms_set(&a->alarms, ALARM_NO_REALM, lost, now))
		return;
	if (lost)
		log_warnx("alert no_realm: realm %s is not known%s", d->realm,
		    d->connected ? "" : ": ZooKeeper does not answer");
	else
		log_info("realm %s: known", d->realm);
}

/* Most virtual machines say so of themselves: only if that is asked for. */
static void
judge_kernel(
    struct alert *a, const struct answer_view *v, const struct lease_figures *f)
{
	bool unsynced = strcmp(v->conf->alert_unsynced, "on") == 0 &&
			f->kernel.known && !f->kernel.synchronized;

	if (!alarms_set(
		&a->alarms, ALARM_CLOCK_UNSYNCED, unsynced, v->now->boot))
		return;
	if (unsynced)
		log_info("alert clock_unsynced: nobody sets the clock, says "
			 "the kernel");
	else
		log_info("clock: synchronized, says the kernel");
}

void
alert_judge(struct alert *a, const struct answer_view *v)
{
	const struct skew *skew = lease_skew(v->lease);
	mono_t now = v->now->boot;
	struct lease_figures f;
	struct status_doc d;

	answer_fill_status(v, 0, 0, &d);
	lease_figures(v->lease, v->now, &f);
	(void)alarms_set(&a->alarms, ALARM_SKEW_REFUSE, skew->refused, now);
	(void)alarms_set(
	    &a->alarms, ALARM_SKEW_WARN, skew->warned && !skew->refused, now);
	(void)alarms_set(&a->alarms, ALARM_CLOCK_STEP,
	    v->clk->verdict != CLOCK_GOOD || f.step_unsettled, now);
	judge_window(a, v, &f, &d);
	judge_realm(a, v, &d);
	judge_kernel(a, v, &f);
}
