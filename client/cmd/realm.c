/* SPDX-License-Identifier: Apache-2.0 */
/* realm - show and renew; create has a file of its own. */
#include <inttypes.h>

#include "contract.h"
#include "layout.h"

/* ---- show ---- */

struct show_options {
	struct tree_options tree;
	bool json;
};

static const struct cmd_option show_table[] = {
	CMD_OPT_JSON(struct show_options,
	    "the contract alone, as one document: the backup\n"
	    "that create --from takes"),
	TREE_OPTIONS(struct show_options),
};

static const struct cmd_spec show_spec = {
	.name = "realm show",
	.usage = "[--json] [--zk HOSTS] [--realm NAME] [--timeout MS]",
	.text = "Shows a realm's contract and how many agents hold a claim.",
	.statuses = "  0   shown\n"
		    "  1   standard output\n"
		    "  64  usage\n"
		    "  69  ZooKeeper not to be reached\n"
		    "  77  not allowed by ZooKeeper\n"
		    "  78  no such realm, or its contract makes no sense",
	.options = show_table,
	.noptions = sizeof(show_table) / sizeof(show_table[0]),
	.max_arguments = 0,
};

static int
count_agents(const struct tree *t, const struct contract *k, int64_t *agents)
{
	char path[TREE_PATH_MAX];
	struct zkcall_reply r;
	struct claim_name name;
	int status = CMD_DONE;

	*agents = 0;
	tree_parent_path(t, k, "workers", path);
	if (zkcall_list(t->z, path, &r) != ZK_OK)
		status = tree_fail(t, path, &r);
	for (size_t i = 0; i < r.nnames; i++)
		if (claim_name_parse(r.names[i], &name))
			(*agents)++;
	zkcall_reply_free(&r);
	return (status);
}

static int
show(const struct tree *t, const struct show_options *o)
{
	char text[REALM_DOC_MAX];
	struct tree_realm realm;
	int64_t agents;
	int status = tree_read_good(t, &realm);

	if (status != CMD_DONE)
		return (status);
	if (o->json) {
		if (realm_format(&realm.k, text, sizeof(text)) < 0)
			return (CMD_FAILED);
		printf("%s\n", text);
		return (cmd_end(t->command, CMD_DONE));
	}
	status = count_agents(t, &realm.k, &agents);
	if (status != CMD_DONE)
		return (status);
	contract_print(t->realm, &realm.k, agents);
	return (cmd_end(t->command, CMD_DONE));
}

static int
show_main(int argc, char **argv)
{
	struct show_options o = { .tree.timeout_ms = TREE_TIMEOUT_MS };
	struct tree t;
	int rc, first;

	rc = cmd_parse(&show_spec, argc, argv, &o, &first);
	if (rc != CMD_GO)
		return (rc);
	rc = tree_open(&t, show_spec.name, &o.tree);
	if (rc == CMD_DONE)
		rc = show(&t, &o);
	tree_close(&t);
	return (rc);
}

/* ---- renew ---- */

struct renew_options {
	struct tree_options tree;
	const char *workers;
	int64_t skew_refuse_ms;
};

static const struct cmd_option renew_table[] = {
	{ "workers", 0, CMD_TEXT, offsetof(struct renew_options, workers),
	    "A-B",
	    "worker IDs that claims may use from now on; default\n"
	    "as before",
	    0, 0 },
	CONTRACT_OPT_SKEW(struct renew_options),
	TREE_OPTIONS(struct renew_options),
};

static const struct cmd_spec renew_spec = {
	.name = "realm renew",
	.usage = "[--workers A-B] [--skew-refuse MS] [--zk HOSTS]\n"
		 "                        [--realm NAME] [--timeout MS]",
	.text = "Moves a realm to its next generation: new parents for claims "
		"and marks, the same\nlayout.  For the end of the counter of "
		"claims, after ZooKeeper's data went back,\nand to widen the "
		"range of worker IDs.  Agents go on by themselves, but issue\n"
		"nothing until every old window is over.  Nothing old is "
		"deleted.",
	.statuses = "  0   the next generation stands\n"
		    "  1   standard output\n"
		    "  64  usage\n"
		    "  69  ZooKeeper not to be reached\n"
		    "  75  somebody else changed the realm meanwhile\n"
		    "  77  not allowed by ZooKeeper\n"
		    "  78  no such realm, or its contract makes no sense",
	.options = renew_table,
	.noptions = sizeof(renew_table) / sizeof(renew_table[0]),
	.max_arguments = 0,
};

/*
 * Only wider: an agent may hold any worker ID of the old range, and goes on
 * with it.
 */
static int
widen(const struct tree *t, const char *workers, const struct contract *old,
    struct contract *k)
{
	int status = contract_range(t->command, workers, k);

	if (status != CMD_DONE)
		return (status);
	if (k->worker_first > old->worker_first ||
	    k->worker_last < old->worker_last)
		return (cmd_fail(CMD_USAGE, t->command,
		    "--workers: must hold those of now, %" PRIu64 "-%" PRIu64,
		    old->worker_first, old->worker_last));
	return (CMD_DONE);
}

static int
renew(const struct tree *t, const struct renew_options *o)
{
	struct tree_realm old;
	struct contract k;
	int status = tree_read_good(t, &old);

	if (status != CMD_DONE)
		return (status);
	k = old.k;
	if (o->workers != NULL)
		status = widen(t, o->workers, &old.k, &k);
	if (status != CMD_DONE)
		return (status);
	status = contract_supersede(t, &old, &k, o->skew_refuse_ms);
	if (status != CMD_DONE)
		return (status);
	contract_print(t->realm, &k, -1);
	contract_say_wait(t, &k);
	return (cmd_end(t->command, CMD_DONE));
}

int
realm_renew_main(int argc, char **argv)
{
	struct renew_options o = {
		.tree.timeout_ms = TREE_TIMEOUT_MS,
		.skew_refuse_ms = CONTRACT_SKEW_MS,
	};
	struct tree t;
	int rc, first;

	rc = cmd_parse(&renew_spec, argc, argv, &o, &first);
	if (rc != CMD_GO)
		return (rc);
	rc = tree_open(&t, renew_spec.name, &o.tree);
	if (rc == CMD_DONE)
		rc = renew(&t, &o);
	tree_close(&t);
	return (rc);
}

/* ---- all of them ---- */

static const struct cmd_entry entries[] = {
	{ "create", realm_create_main, "create a realm, or restore one" },
	{ "show", show_main, "show its contract; the backup" },
	{ "renew", realm_renew_main, "move it to its next generation" },
	{ "acl", realm_acl_main, "close it to strangers, or open it" },
};

int
realm_main(int argc, char **argv)
{
	return (cmd_dispatch("firn realm",
	    "A realm is one ID space: its contract (layout, epoch, worker IDs) "
	    "stands in\nZooKeeper, and agents of one realm never issue the "
	    "same ID.",
	    entries, sizeof(entries) / sizeof(entries[0]), argc, argv));
}
