/* SPDX-License-Identifier: Apache-2.0 */
/* lease-status - what a lease answers to questions.  It changes nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <event2/event.h>

#include "layout.h"
#include "lease-private.h"

/* "twitter (41/5+5/12), epoch_ms 1288834974657": what was asked for. */
static void
format_wanted(const struct lease *l, char *words, size_t n)
{
	const struct claim_conf *cc = &l->claim.conf;
	char bits[LAYOUT_TEXT_MAX] = "any", epoch[24] = "any";

	if (cc->has_layout)
		layout_format_bits(&cc->layout, bits);
	if (cc->has_epoch)
		(void)snprintf(
		    epoch, sizeof(epoch), "%" PRId64, cc->layout.epoch_ms);
	if (cc->has_layout && strcmp(bits, l->conf->layout) != 0)
		(void)snprintf(words, n, "%s (%s), epoch_ms %s",
		    l->conf->layout, bits, epoch);
	else
		(void)snprintf(words, n, "%s, epoch_ms %s", bits, epoch);
}

bool
lease_fits(const struct lease *l, char *words, size_t n)
{
	char has[LAYOUT_TEXT_MAX], wanted[128];

	if (l->claim.fault != REALM_UNFIT)
		return (true);
	if (l->seen.format > REALM_FORMAT) {
		(void)snprintf(words, n,
		    "realm %s: format %" PRId64 ", this firnd knows %d",
		    l->conf->realm, l->seen.format, REALM_FORMAT);
		return (false);
	}
	layout_format_bits(&l->seen.layout, has);
	format_wanted(l, wanted, sizeof(wanted));
	(void)snprintf(words, n,
	    "realm %s has layout %s, epoch_ms %" PRId64
	    "; configured is layout %s",
	    l->conf->realm, has, l->seen.layout.epoch_ms, wanted);
	return (false);
}

const char *
lease_lost_words(const struct lease *l)
{
	return (l->alone.lost_words);
}

bool
lease_is_garbled(const struct lease *l)
{
	return (l->claim.fault == REALM_GARBLED);
}

bool
lease_is_denied(const struct lease *l)
{
	return (l->claim.fault == REALM_DENIED);
}

const struct skew *
lease_skew(const struct lease *l)
{
	return (judge_skew(l->judge));
}

const struct auditor *
lease_auditor(const struct lease *l)
{
	return (l->auditor);
}

void
lease_roll(
    const struct lease *l, const struct instant *now, struct roll_view *out)
{
	roll_ask(l->roll, now->boot);
	roll_view(l->roll, now->boot, out);
	/* It has a look at once whether there is something to read. */
	if (!l->is_alone && l->stopped == NULL && !l->ended)
		event_active(l->timer, EV_TIMEOUT, 0);
}

void
lease_on_alert(struct lease *l, auditor_alert_fn *fn, void *arg)
{
	if (l->auditor != NULL)
		auditor_on_alert(l->auditor, fn, arg);
}

bool
lease_is_alone(const struct lease *l)
{
	return (l->is_alone);
}

const uint8_t *
lease_uuid(const struct lease *l)
{
	return (l->claim.k.uuid);
}

static void
status_kernel(const struct lease *l, struct status_doc *out)
{
	if (!l->kernel.known)
		return;
	out->has_kernel = true;
	out->kernel_synchronized = l->kernel.synchronized;
	out->kernel_error_ms = (l->kernel.error_us + 999) / 1000;
	(void)snprintf(
	    out->kernel_leap, sizeof(out->kernel_leap), "%s", l->kernel.leap);
}

static void
status_window(
    const struct lease *l, const struct instant *now, struct status_doc *out)
{
	const struct gate *g = &l->serve->gate;
	int64_t end;

	if (!g->window)
		return;
	out->worker = g->worker;
	if (l->is_alone) /* bounded by nothing but the layout */
		return;
	end = layout_tick_start_ms(&l->claim.k.layout, g->ceiling + 1);
	out->mark_ms = end;
	out->window_left_ms = end - wall_ms(clock_now(l->clk, now));
	if (out->window_left_ms < 0)
		out->window_left_ms = 0;
}

void
lease_status(
    const struct lease *l, const struct instant *now, struct status_doc *out)
{
	const struct claim *c = &l->claim;
	struct claim_name cn;

	(void)snprintf(out->realm, sizeof(out->realm), "%s", l->conf->realm);
	out->worker = NO_WORKER;
	out->counter = -1;
	(void)snprintf(
	    out->source, sizeof(out->source), "%s", l->conf->worker_source);
	out->connected = c->connected;
	if (c->realm_known) {
		uuid_format(c->k.uuid, out->uuid);
		memcpy(out->generation, c->k.generation_text,
		    sizeof(out->generation));
		memcpy(out->layout, c->k.layout.name, sizeof(out->layout));
		layout_format_bits(&c->k.layout, out->bits);
		out->epoch_ms = c->k.layout.epoch_ms;
		out->tick_ms = c->k.layout.tick_ms;
	}
	memcpy(out->claim, c->node, sizeof(out->claim));
	if (claim_name_parse(c->node, &cn))
		out->counter = cn.counter;
	status_window(l, now, out);
	judge_status(l->judge, out);
	status_kernel(l, out);
}
