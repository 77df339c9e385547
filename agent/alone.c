/* SPDX-License-Identifier: Apache-2.0 */
/* alone - static and ordinal worker IDs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alone.h"
#include "layout.h"
#include "ordinal.h"
#include "rfc3339.h"

#define EXIT_CONFIG 78

static int
read_layout(struct alone *a, const struct conf *conf, struct doc_error *err)
{
	struct firn_layout *l = &a->k.layout;
	const char *text = conf->layout[0] != '\0' ? conf->layout : "firn";

	if (firn_layout_preset(text, l) != 0 &&
	    layout_parse_bits(text, l, NULL) != 0) {
		doc_error_set(err, "layout: \"%s\" is none", text);
		return (EXIT_CONFIG);
	}
	if (conf->epoch[0] != '\0' &&
	    rfc3339_parse_or_ms(conf->epoch, &l->epoch_ms, NULL) != 0) {
		doc_error_set(err, "epoch: \"%s\" is none", conf->epoch);
		return (EXIT_CONFIG);
	}
	if (!layout_valid(l)) {
		doc_error_set(
		    err, "layout: \"%s\" and epoch do not go together", text);
		return (EXIT_CONFIG);
	}
	return (0);
}

static int
read_ordinal(struct alone *a, const struct conf *conf, struct doc_error *err)
{
	char host[HOST_NAME_MAX_TEXT] = "";
	const char *name = conf->ordinal;
	enum ordinal_result rc;

	if (strcmp(name, "hostname") == 0) {
		if (gethostname(host, sizeof(host) - 1) != 0)
			host[0] = '\0';
		name = host;
	} else if (name[0] == '$') {
		name = getenv(name + 1);
		if (name == NULL) {
			doc_error_set(err,
			    "ordinal: the variable %s is not set",
			    conf->ordinal);
			return (EXIT_CONFIG);
		}
	}
	rc = ordinal_parse(name, &a->k.layout, &a->worker);
	if (rc == ORDINAL_OK)
		return (0);
	doc_error_set(err, "ordinal: \"%s\": %s", name, ordinal_text(rc));
	return (EXIT_CONFIG);
}

static int
read_worker(struct alone *a, const struct conf *conf, struct doc_error *err)
{
	if (strcmp(conf->worker_source, "ordinal") == 0)
		return (read_ordinal(a, conf, err));
	a->worker = (uint64_t)conf->static_worker;
	if (a->worker <= layout_worker_max(&a->k.layout))
		return (0);
	doc_error_set(err,
	    "static_worker: must be at most %" PRIu64
	    " in this layout, not %" PRIu64,
	    layout_worker_max(&a->k.layout), a->worker);
	return (EXIT_CONFIG);
}

static void
lose(struct alone *a, const char *why)
{
	a->lost = true;
	(void)snprintf(a->lost_words, sizeof(a->lost_words),
	    "%s: only if worker ID %" PRIu64 " %s, start once with --first-use",
	    why, a->worker,
	    a->floor == NO_TICK ? "never served"
				: "surely serves nowhere else");
}

static bool
is_own_record(const struct alone *a, const struct conf *conf,
    const struct state_record *r)
{
	return (r->worker == a->worker && strcmp(r->realm, conf->realm) == 0 &&
		layout_equal(&r->contract.layout, &a->k.layout));
}

/* A readable mark is a floor, whatever host or boot it comes from. */
static void
read_floor(struct alone *a, const struct conf *conf, const struct hold *h)
{
	const struct state_record *r = hold_record(h);
	const char *why = NULL;
	bool readable = false;

	a->floor = NO_TICK;
	switch (hold_found(h)) {
	case STATE_NONE:
		why = "there is no state file";
		break;
	case STATE_GARBLED:
	case STATE_UNREAD: /* hold has refused it */
		why = "the state file makes no sense";
		break;
	case STATE_COPIED:
		readable = true;
		why = "the state file is a copy: the agent that wrote it may "
		      "still serve";
		break;
	case STATE_FLOOR:
	case STATE_RESUME:
		readable = true;
		break;
	}
	if (readable && is_own_record(a, conf, r))
		a->floor = r->local_mark;
	else if (readable)
		why = "the state file is of another worker ID, realm or layout";
	if (why != NULL && !conf->first_use)
		lose(a, why);
}

int
alone_make(struct alone *a, const struct conf *conf, const struct hold *h,
    struct doc_error *err)
{
	int rc;

	memset(a, 0, sizeof(*a));
	rc = read_layout(a, conf, err);
	if (rc == 0)
		rc = read_worker(a, conf, err);
	if (rc != 0)
		return (rc);
	a->k.format = REALM_FORMAT;
	a->k.generation = 1;
	(void)snprintf(
	    a->k.generation_text, sizeof(a->k.generation_text), "1-00000000");
	a->k.not_before_ms = a->k.layout.epoch_ms;
	a->k.reserve_max_ms = conf->reserve_ms;
	a->k.worker_first = a->k.worker_last = a->worker;
	ordinal_realm_uuid(conf->realm, &a->k.layout, a->k.uuid);
	read_floor(a, conf, h);
	return (0);
}

void
alone_record(const struct alone *a, const struct conf *conf, int64_t base_ns,
    struct state_record *out)
{
	memset(out, 0, sizeof(*out));
	out->contract = a->k;
	memcpy(out->realm, conf->realm, sizeof(out->realm));
	out->open = true;
	out->ceiling = (int64_t)layout_tick_max(&a->k.layout);
	out->local_mark = a->floor;
	out->worker = a->worker;
	out->base_ns = base_ns;
}

void
alone_facts(
    const struct alone *a, const struct hold *h, int64_t now, struct gate *gate)
{
	int64_t last = (int64_t)layout_tick_max(&a->k.layout);

	gate->realm_known = true;
	gate->tick_max = last;
	gate->state_lost = a->lost;
	gate->worker = a->worker;
	gate->floor = a->floor;
	gate->ceiling = last;
	gate->on_file = hold_limits(h, &gate->local_mark);
	/* Until a write is on the disk there is nothing to go by. */
	gate->window = !a->lost && (gate->local_mark >= now || hold_failed(h));
	gate->state_failed = hold_failed(h) && gate->local_mark < now;
}
