/* SPDX-License-Identifier: Apache-2.0 */
/* fleet - all agents of a realm, as their claims and marks say. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "census.h"
#include "cmd.h"
#include "fleet_table.h"
#include "summary.h"
#include "tree.h"

#define AGAIN_MS 700 /* between the two looks at a double claim */
#define IDLE_MAX 4096 /* marks without a claim that are looked at */

struct fleet_options {
	struct tree_options tree;
	bool json;
};

static const struct cmd_option options[] = {
	CMD_OPT_JSON(struct fleet_options, "one document"),
	TREE_OPTIONS(struct fleet_options),
};

static const struct cmd_spec spec = {
	.name = "fleet",
	.usage = "[--json] [--zk HOSTS] [--realm NAME] [--auth-file FILE] "
		 "[--timeout MS]",
	.text = "Shows every agent that holds a claim in the realm, with its "
		"state, its clock (SKEW\nagainst its peers, give or take "
		"ERROR) and how far its window reaches ahead of\nthis host's "
		"clock (LEAD), all in milliseconds, those in trouble "
		"first;\nthen what is wrong.",
	.statuses = "  0   nothing critical\n"
		    "  1   standard output\n"
		    "  2   a critical alert stands\n"
		    "  64  usage\n"
		    "  69  ZooKeeper not to be reached\n"
		    "  77  not allowed by ZooKeeper\n"
		    "  78  no such realm, or its contract makes no sense",
	.options = options,
	.noptions = sizeof(options) / sizeof(options[0]),
	.max_arguments = 0,
};

/* ---- reading ---- */

struct reading {
	const struct tree *t;
	const struct contract *k;
	struct census *census;
	uint64_t *idle; /* worker IDs with a mark and without a claim */
	int64_t *latest_ms; /* ZooKeeper's latest stamp of an agent's write */
	int status;
};

static void
claim_path(void *arg, size_t i, char *buf, size_t size)
{
	const struct reading *r = arg;

	(void)snprintf(buf, size, "/firn/%s/workers.%s/%s", r->t->realm,
	    r->k->generation_text, r->census->rows[i].claim);
}

static void
mark_path(void *arg, size_t i, char *buf, size_t size)
{
	const struct reading *r = arg;

	(void)snprintf(buf, size, "/firn/%s/marks.%s/%04" PRIu64, r->t->realm,
	    r->k->generation_text, r->census->rows[i].worker);
}

/*
 * A claim that went away meanwhile, or has no mark yet, is no failure; nor is
 * one that may not be read.
 */
static bool
has_data(struct reading *r, const struct zkcall_reply *reply)
{
	if (reply->rc == ZK_OK)
		return (true);
	if (reply->rc != ZK_NONODE && reply->rc != ZK_NOAUTH &&
	    r->status == CMD_DONE)
		r->status = tree_fail(r->t, "claims and marks", reply);
	return (false);
}

static void
got_claim(void *arg, size_t i, const struct zkcall_reply *reply)
{
	struct reading *r = arg;

	if (has_data(r, reply))
		census_add_claim(r->census, i, reply->data, reply->length);
	else if (reply->rc == ZK_NOAUTH)
		census_add_denied_claim(r->census, i);
	else
		r->census->rows[i].worker = NO_WORKER;
}

static void
got_mark(void *arg, size_t i, const struct zkcall_reply *reply)
{
	struct reading *r = arg;

	if (reply->rc == ZK_OK && reply->stat.mtime_ms > *r->latest_ms)
		*r->latest_ms = reply->stat.mtime_ms;
	if (has_data(r, reply))
		census_add_mark(
		    r->census, i, reply->data, reply->length, cmd_wall_ms());
	else if (reply->rc == ZK_NOAUTH && !r->census->doubles[i])
		census_add_denied_mark(r->census, r->census->rows[i].worker);
}

static void
idle_path(void *arg, size_t i, char *buf, size_t size)
{
	const struct reading *r = arg;

	(void)snprintf(buf, size, "/firn/%s/marks.%s/%04" PRIu64, r->t->realm,
	    r->k->generation_text, r->idle[i]);
}

static void
got_idle(void *arg, size_t i, const struct zkcall_reply *reply)
{
	struct reading *r = arg;

	if (has_data(r, reply))
		census_add_idle_mark(
		    r->census, r->idle[i], reply->data, reply->length);
	else if (reply->rc == ZK_NOAUTH)
		census_add_denied_mark(r->census, r->idle[i]);
}

static int
read_many(struct reading *r, size_t n,
    void (*path)(void *arg, size_t i, char *buf, size_t size),
    void (*got)(void *arg, size_t i, const struct zkcall_reply *r))
{
	enum zk_rc rc = zkcall_get_many(r->t->z, n, path, got, r);
	struct zkcall_reply failed = { .rc = rc };

	if (rc != ZK_OK)
		return (tree_fail(r->t, "claims and marks", &failed));
	return (r->status);
}

static bool
is_claimed(const struct census *c, uint64_t worker)
{
	size_t low = 0, high = c->fleet.nrows;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c->rows[middle].worker == worker)
			return (true);
		if (c->rows[middle].worker < worker)
			low = middle + 1;
		else
			high = middle;
	}
	return (false);
}

/*
 * A mark that nobody can read takes its worker ID away from all: it is told
 * although nobody claims the ID.  Not of tens of thousands, though.
 */
static int
look_at_idle(struct reading *r)
{
	struct zkcall_reply marks;
	char path[TREE_PATH_MAX];
	size_t n = 0;
	int status = CMD_DONE;

	tree_parent_path(r->t, r->k, "marks", path);
	if (zkcall_list(r->t->z, path, &marks) != ZK_OK)
		status = tree_fail(r->t, path, &marks);
	else if ((r->idle = calloc(marks.nnames + 1, sizeof(*r->idle))) == NULL)
		status = cmd_fail(CMD_FAILED, spec.name, "out of memory");
	if (status == CMD_DONE)
		census_add_mark_names(
		    r->census, (const char *const *)marks.names, marks.nnames);
	for (size_t i = 0; status == CMD_DONE && i < marks.nnames; i++) {
		uint64_t worker = mark_name_worker(marks.names[i], r->k);

		if (worker != NO_WORKER && !is_claimed(r->census, worker))
			r->idle[n++] = worker;
	}
	if (status == CMD_DONE && n <= IDLE_MAX)
		status = read_many(r, n, idle_path, got_idle);
	free(r->idle);
	zkcall_reply_free(&marks);
	return (status);
}

static int
look(const struct tree *t, const struct contract *k, struct census *census,
    int64_t *latest_ms)
{
	struct zkcall_reply claims;
	struct reading r = {
		.t = t,
		.k = k,
		.census = census,
		.latest_ms = latest_ms,
		.status = CMD_DONE,
	};
	char path[TREE_PATH_MAX];
	int status;

	tree_parent_path(t, k, "workers", path);
	if (zkcall_list(t->z, path, &claims) != ZK_OK)
		status = tree_fail(t, path, &claims);
	else if (!census_open(census, k, (const char *const *)claims.names,
		     claims.nnames))
		status = cmd_fail(CMD_FAILED, spec.name, "out of memory");
	else
		status =
		    read_many(&r, census->fleet.nrows, claim_path, got_claim);
	if (status == CMD_DONE) {
		census_drop_gone(census);
		status =
		    read_many(&r, census->fleet.nrows, mark_path, got_mark);
	}
	if (status == CMD_DONE)
		status = look_at_idle(&r);
	zkcall_reply_free(&claims);
	return (status);
}

/*
 * Two claims of one worker ID are usual for a moment: the younger gives way.
 * It is an alert if the same two are still there at a second look.
 */
static int
look_twice(const struct tree *t, const struct contract *k,
    struct census *census, int64_t *latest_ms)
{
	struct census earlier;
	int status = look(t, k, census, latest_ms);

	if (status != CMD_DONE || !census_has_doubles(census))
		return (status);
	earlier = *census;
	cmd_sleep_ms(AGAIN_MS);
	*census = (struct census){ 0 };
	status = look(t, k, census, latest_ms);
	if (status == CMD_DONE)
		census_keep_doubles(census, &earlier);
	census_close(&earlier);
	return (status);
}

/*
 * What the auditor wrote, unless that is old against what agents wrote since:
 * then nobody audits, and claims and marks alone are gone by.
 */
static int
add_summary(const struct tree *t, const struct contract *k,
    struct census *census, int64_t latest_ms)
{
	struct audit *summary = calloc(1, sizeof(*summary));
	char path[TREE_PATH_MAX];
	struct zkcall_reply r = { .rc = ZK_NONODE };
	struct doc_error err;
	int64_t age_ms;

	if (summary == NULL)
		return (cmd_fail(CMD_FAILED, spec.name, "out of memory"));
	(void)snprintf(path, sizeof(path), "/firn/%s/fleet", t->realm);
	if (zkcall_get(t->z, path, &r) == ZK_OK && r.length > 0 &&
	    summary_parse(r.data, r.length, summary, &err) == 0 &&
	    memcmp(summary->uuid, k->uuid, UUID_BYTES) == 0 &&
	    strcmp(summary->generation, k->generation_text) == 0) {
		age_ms = max64(sub_sat(latest_ms, r.stat.mtime_ms), 0);
		if (census->fleet.nrows > 0 && age_ms / 3 <= summary->audit_ms)
			census_add_summary(census, summary, age_ms);
	}
	zkcall_reply_free(&r);
	free(summary);
	return (CMD_DONE);
}

/* ---- the command ---- */

static int
fleet(const struct tree *t, bool json)
{
	struct census census = { 0 };
	struct tree_realm realm;
	int64_t latest_ms = 0;
	int status = tree_read_good(t, &realm);

	if (status == CMD_DONE)
		status = look_twice(t, &realm.k, &census, &latest_ms);
	if (status == CMD_DONE && !census_judge(&census, &realm.k))
		status = cmd_fail(CMD_FAILED, spec.name, "out of memory");
	if (status == CMD_DONE)
		status = add_summary(t, &realm.k, &census, latest_ms);
	if (status == CMD_DONE) {
		status =
		    fleet_is_critical(&census.fleet) ? CMD_CRITICAL : CMD_DONE;
		if (!json && !fleet_table_print(t->realm,
				 realm.k.generation_text, &census.fleet))
			status =
			    cmd_fail(CMD_FAILED, spec.name, "out of memory");
		if (json && fleet_print(&census.fleet, stdout) != 0)
			status = CMD_FAILED;
		status = cmd_end(spec.name, status);
	}
	census_close(&census);
	return (status);
}

int
fleet_main(int argc, char **argv)
{
	struct fleet_options o = { .tree.timeout_ms = TREE_TIMEOUT_MS };
	struct tree t;
	int rc, first;

	rc = cmd_parse(&spec, argc, argv, &o, &first);
	if (rc != CMD_GO)
		return (rc);
	rc = tree_open(&t, spec.name, &o.tree);
	if (rc == CMD_DONE)
		rc = fleet(&t, o.json);
	tree_close(&t);
	return (rc);
}
