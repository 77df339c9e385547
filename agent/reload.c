/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reload - the configuration read again, at SIGHUP.
 *
 * Invariant: a configuration that will not do changes nothing.
 */
#include "reload.h"

#include <stdlib.h>

#include "authfile.h"
#include "log.h"
#include "zk.h"

struct tally {
	unsigned taken, left;
};

static void
on_changed(void *arg, const struct conf_change *change)
{
	struct tally *t = arg;

	if (change->taken) {
		t->taken++;
		log_info("reload: %s: %s -> %s", change->name, change->from,
		    change->to);
	} else {
		t->left++;
		log_warnx("reload: %s: %s -> %s needs a restart, left as it is",
		    change->name, change->from, change->to);
	}
}

/* It needs a restart, which a reload must not let come to nothing. */
static bool
hosts_good(const struct conf *fresh, struct doc_error *err)
{
	const char *wrong = NULL;
	size_t where = 0;

	if (!conf_is_alone(fresh))
		wrong = zk_check_hosts(fresh->zookeeper, &where);
	if (wrong != NULL)
		doc_error_set(err,
		    "zookeeper: \"%.80s\": %s (at character %zu)",
		    fresh->zookeeper, wrong, where + 1);
	return (wrong == NULL);
}

static bool
auth_good(const struct conf *fresh, struct doc_error *err)
{
	return (fresh->auth_file[0] == '\0' || conf_is_alone(fresh) ||
		authfile_check(fresh->auth_file, err) == 0);
}

static bool
take(struct reload *r, struct conf *fresh, struct doc_error *err)
{
	enum conf_action action;
	enum log_level level;
	struct tally t = { 0, 0 };

	if (conf_load(fresh, r->argc, r->argv, &action, err) != 0 ||
	    !hosts_good(fresh, err) || !auth_good(fresh, err) ||
	    conf_merge(r->conf, fresh, on_changed, &t, err) != 0)
		return (false);
	if (log_level_parse(r->conf->log_level, &level) == 0)
		log_set_level(level);
	log_info("reload: %u %s changed, %u need a restart", t.taken,
	    t.taken == 1 ? "key" : "keys", t.left);
	return (true);
}

bool
reload_run(struct reload *r)
{
	struct conf *fresh = calloc(1, sizeof(*fresh));
	struct doc_error err;
	bool good;

	doc_error_set(&err, "out of memory");
	good = fresh != NULL && take(r, fresh, &err);
	free(fresh);
	if (good)
		r->done++;
	else
		r->failed++;
	if (!good)
		log_warnx("reload: %s; nothing changed", err.text);
	return (good);
}
