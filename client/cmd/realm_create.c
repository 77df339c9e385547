/* SPDX-License-Identifier: Apache-2.0 */
/*
 * realm create - makes a realm, or restores one from its backup.
 *
 * Invariant: nothing is made unless the operator said that the ID space is
 * new, or not_before keeps out whatever may still be issued in it.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "budget.h"
#include "contract.h"
#include "layout.h"
#include "reckon.h"
#include "rfc3339.h"

struct create_options {
	struct tree_options tree;
	int64_t agents;
	const char *layout;
	const char *bits;
	int64_t epoch_ms;
	const char *workers;
	int64_t datacenter;
	bool first;
	int64_t not_before_ms;
	int64_t reserve_max_ms;
	int64_t skew_refuse_ms;
	bool if_missing;
	const char *from;
	bool after_loss;
	bool acl;
};

#define AT(field) offsetof(struct create_options, field)

static const struct cmd_option table[] = {
	{ "agents", 0, CMD_NUMBER, AT(agents), "N",
	    "bits for N agents, with a quarter to spare", 1, INT64_MAX },
	{ "layout", 0, CMD_TEXT, AT(layout), "PRESET|T/W/S",
	    CMD_PRESETS ",\nor bits as for --bits; default firn (41/10/12)", 0,
	    0 },
	{ "bits", 0, CMD_TEXT, AT(bits), "T/W/S",
	    "bits of time, worker and sequence", 0, 0 },
	{ "epoch", 0, CMD_INSTANT, AT(epoch_ms), "MS|RFC3339",
	    "where time begins; default the preset's", 0, 0 },
	{ "workers", 0, CMD_TEXT, AT(workers), "A-B",
	    "worker IDs that claims may use; default all", 0, 0 },
	{ "datacenter", 0, CMD_NUMBER, AT(datacenter), "N",
	    "the worker IDs of this datacenter, of a layout\n"
	    "such as 41/5+5/12",
	    0, INT64_MAX },
	{ "first", 0, CMD_FLAG, AT(first), NULL,
	    "nothing ever served this ID space: agents issue\n"
	    "at once",
	    0, 0 },
	{ "not-before", 0, CMD_INSTANT, AT(not_before_ms), "MS|RFC3339",
	    "all that is issued lies after this instant;\n"
	    "default now + reserve-max + skew-refuse",
	    0, 0 },
	{ "reserve-max", 0, CMD_NUMBER, AT(reserve_max_ms), "MS",
	    "no agent's window is longer; default 60000",
	    REALM_RESERVE_MAX_MS_LOW, REALM_RESERVE_MAX_MS_HIGH },
	CONTRACT_OPT_SKEW(struct create_options),
	{ "if-missing", 0, CMD_FLAG, AT(if_missing), NULL,
	    "no error if it exists and fits what is asked for;\n"
	    "needs --first or --not-before",
	    0, 0 },
	{ "from", 0, CMD_TEXT, AT(from), "FILE",
	    "with --after-loss: the output of realm show --json\n"
	    "(- is standard input)",
	    0, 0 },
	{ "after-loss", 0, CMD_FLAG, AT(after_loss), NULL,
	    "restore --from FILE after ZooKeeper's data were\n"
	    "lost or went back: same uuid, next generation",
	    0, 0 },
	{ "acl", 0, CMD_FLAG, AT(acl), NULL,
	    "only who knows the password of --auth-file may\n"
	    "write, all others only read",
	    0, 0 },
	TREE_OPTIONS(struct create_options),
};

static const struct cmd_spec spec = {
	.name = "realm create",
	.usage = "[OPTION...]",
	.text = "Makes a realm: one ID space, its layout pinned for ever."
		"  --agents, --layout\nand --bits exclude each other.  Unless "
		"--first says that nothing ever served\nthis ID space, agents "
		"issue nothing until whatever may still be issued in it\nis "
		"over.  After a crash half way, run it again.",
	.statuses =
	    "  0   it stands (or stood, with --if-missing)\n"
	    "  1   standard output, or FILE cannot be read\n"
	    "  64  usage\n"
	    "  69  ZooKeeper not to be reached\n"
	    "  75  somebody else changed the realm meanwhile\n"
	    "  77  not allowed by ZooKeeper\n"
	    "  78  it exists (or is another than asked for), FILE makes "
	    "no sense, or\n      there is no such chroot",
	.options = table,
	.noptions = sizeof(table) / sizeof(table[0]),
	.max_arguments = 0,
};

/* ---- what goes with what ---- */

static int
usage(const char *words)
{
	return (cmd_fail(CMD_USAGE, spec.name, "%s", words));
}

static bool
shapes(const struct create_options *o)
{
	return (o->agents != CMD_UNSET || o->layout != NULL ||
		o->bits != NULL || o->epoch_ms != CMD_UNSET ||
		o->workers != NULL || o->datacenter != CMD_UNSET ||
		o->reserve_max_ms != CMD_UNSET);
}

static int
check_options(const struct create_options *o)
{
	int splits =
	    (o->agents != CMD_UNSET) + (o->layout != NULL) + (o->bits != NULL);

	if (splits > 1)
		return (usage("only one of --agents, --layout and --bits"));
	if (o->workers != NULL && o->datacenter != CMD_UNSET)
		return (usage("--workers and --datacenter exclude each other"));
	if (o->first && o->not_before_ms != CMD_UNSET)
		return (usage("--first and --not-before exclude each other"));
	if (o->not_before_ms != CMD_UNSET && o->not_before_ms < 0)
		return (usage("--not-before: must not lie before 1970"));
	if ((o->from != NULL) != o->after_loss)
		return (usage("--from FILE and --after-loss go together"));
	if (o->from != NULL && (shapes(o) || o->first || o->if_missing ||
				   o->not_before_ms != CMD_UNSET))
		return (
		    usage("--from FILE says it all: of the others only "
			  "--skew-refuse, --acl, --auth-file, --zk, --realm "
			  "and --timeout"));
	if (o->if_missing && !o->first && o->not_before_ms == CMD_UNSET)
		return (usage("--if-missing needs --first (nothing ever served "
			      "this ID space) or --not-before"));
	return (CMD_DONE);
}

/* ---- the contract asked for ---- */

static int
make_split(const struct create_options *o, struct firn_layout *l)
{
	const char *bits;
	size_t where = 0;

	if (o->agents != CMD_UNSET) {
		if (!reckon_layout((uint64_t)o->agents, l))
			return (cmd_fail(CMD_USAGE, spec.name,
			    "--agents: at most %" PRIu64
			    " leave a quarter of %" PRIu64 " worker IDs",
			    WORKERS_MAX / 4 * 3, WORKERS_MAX));
		return (CMD_DONE);
	}
	if (o->bits == NULL &&
	    firn_layout_preset(o->layout == NULL ? "firn" : o->layout, l) == 0)
		return (CMD_DONE);
	bits = o->bits != NULL ? o->bits : o->layout;
	if (layout_parse_bits(bits, l, &where) != 0)
		return (cmd_bad_bits(spec.name,
		    o->bits != NULL ? "bits" : "layout", bits, where));
	return (CMD_DONE);
}

static int
make_layout(const struct create_options *o, struct firn_layout *l)
{
	int64_t now_ms = cmd_wall_ms();
	char at[RFC3339_TEXT_MAX];
	int rc = make_split(o, l);

	if (rc != CMD_DONE)
		return (rc);
	if (o->epoch_ms != CMD_UNSET && o->epoch_ms != l->epoch_ms) {
		l->epoch_ms = o->epoch_ms;
		(void)strncpy(l->name, "custom", sizeof(l->name));
	}
	if (l->epoch_ms > now_ms) {
		if (!rfc3339_format(l->epoch_ms, at))
			at[0] = '\0';
		return (cmd_fail(CMD_USAGE, spec.name,
		    "--epoch: %s lies in the future: nothing could be issued "
		    "until then",
		    at));
	}
	if (!layout_valid(l))
		return (usage("--epoch or --bits: the epoch must lie in 1970 "
			      "or later, and the last tick in 64 bits of "
			      "milliseconds"));
	if (layout_end_ms(l) <= now_ms) {
		if (!rfc3339_format(layout_end_ms(l), at))
			at[0] = '\0';
		return (cmd_fail(CMD_USAGE, spec.name,
		    "--bits or --epoch: %u bits of time ended at %s",
		    l->time_bits, at));
	}
	return (CMD_DONE);
}

/* The range of a datacenter: what its bits have in front of them. */
static int
make_datacenter(const struct create_options *o, struct contract *k)
{
	unsigned upper = k->layout.datacenter_bits;
	unsigned lower = k->layout.worker_bits - upper;
	uint64_t size = UINT64_C(1) << lower;

	if (upper == 0)
		return (usage("--datacenter: the layout has no bits for it: "
			      "say so, as in --bits 41/5+5/12"));
	if ((uint64_t)o->datacenter >= UINT64_C(1) << upper)
		return (cmd_fail(CMD_USAGE, spec.name,
		    "--datacenter: %u bits hold none above %" PRIu64, upper,
		    (UINT64_C(1) << upper) - 1));
	k->worker_first = (uint64_t)o->datacenter << lower;
	k->worker_last =
	    k->worker_first + (size < WORKERS_MAX ? size : WORKERS_MAX) - 1;
	return (CMD_DONE);
}

static int
make_workers(const struct create_options *o, struct contract *k)
{
	uint64_t max = layout_worker_max(&k->layout);

	k->worker_first = 0;
	k->worker_last = max < WORKERS_MAX ? max : WORKERS_MAX - 1;
	if (o->datacenter != CMD_UNSET)
		return (make_datacenter(o, k));
	if (o->workers == NULL) {
		if (max >= WORKERS_MAX && !o->if_missing)
			cmd_say(spec.name,
			    "claims use the first %" PRIu64 " worker IDs of "
			    "%" PRIu64 ": --workers says which",
			    WORKERS_MAX, max + 1);
		return (CMD_DONE);
	}
	return (contract_range(spec.name, o->workers, k));
}

static int
make_contract(const struct create_options *o, struct contract *k)
{
	int rc;

	*k = (struct contract){ .format = REALM_FORMAT };
	k->reserve_max_ms = o->reserve_max_ms == CMD_UNSET
				? REALM_RESERVE_MAX_MS_DEFAULT
				: o->reserve_max_ms;
	rc = make_layout(o, &k->layout);
	if (rc == CMD_DONE)
		rc = make_workers(o, k);
	if (rc != CMD_DONE)
		return (rc);
	if (o->not_before_ms != CMD_UNSET &&
	    o->not_before_ms >= layout_end_ms(&k->layout))
		return (usage("--not-before: the layout has ended by then"));
	if (!contract_random(k->uuid, sizeof(k->uuid)))
		return (cmd_fail(
		    CMD_FAILED, spec.name, "the kernel gives no random bytes"));
	k->uuid[6] = (uint8_t)((k->uuid[6] & 0x0f) | 0x40); /* version 4 */
	k->uuid[8] = (uint8_t)((k->uuid[8] & 0x3f) | 0x80);
	return (CMD_DONE);
}

/* ---- a realm that exists ---- */

/* NULL, or what of that which was asked for it does not have. */
static const char *
differs(const struct create_options *o, const struct contract *asked,
    const struct contract *is)
{
	struct firn_layout l = asked->layout;

	/* bits alone demand no epoch, a preset's name does */
	if (o->epoch_ms != CMD_UNSET || o->layout == NULL)
		l.epoch_ms = is->layout.epoch_ms;
	if ((o->agents != CMD_UNSET || o->layout != NULL || o->bits != NULL) &&
	    !layout_equal(&l, &is->layout))
		return ("layout");
	if (o->epoch_ms != CMD_UNSET && o->epoch_ms != is->layout.epoch_ms)
		return ("epoch");
	if ((o->workers != NULL || o->datacenter != CMD_UNSET) &&
	    (asked->worker_first != is->worker_first ||
		asked->worker_last != is->worker_last))
		return ("range of worker IDs");
	if (o->reserve_max_ms != CMD_UNSET &&
	    asked->reserve_max_ms != is->reserve_max_ms)
		return ("reserve_max_ms");
	return (NULL);
}

/* Asked to be closed: is it? */
static int
check_acl(const struct tree *t)
{
	char path[TREE_PATH_MAX];
	struct zkcall_reply r;
	int status;

	(void)snprintf(path, sizeof(path), "/firn/%s", t->realm);
	if (zkcall_get_acl(t->z, path, &r) == ZK_OK && r.open_to_all)
		status = cmd_fail(CMD_UNFIT, spec.name,
		    "realm %s exists, open to all: `firn realm acl` closes it",
		    t->realm);
	else
		status = tree_fail(t, path, &r);
	zkcall_reply_free(&r);
	return (status);
}

static int
exists(const struct tree *t, const struct create_options *o,
    const struct contract *asked, const struct contract *is)
{
	const char *what = differs(o, asked, is);
	char uuid[UUID_TEXT_MAX], bits[LAYOUT_TEXT_MAX];

	uuid_format(is->uuid, uuid);
	layout_format_bits(&is->layout, bits);
	if (!o->if_missing || what != NULL)
		return (cmd_fail(CMD_UNFIT, spec.name,
		    "realm %s exists%s%s: uuid %s, generation %s, layout %s "
		    "(%s), epoch %" PRId64 ", workers %" PRIu64 "-%" PRIu64
		    ", reserve_max_ms %" PRId64,
		    t->realm, o->if_missing ? " with another " : "",
		    o->if_missing ? what : "", uuid, is->generation_text,
		    is->layout.name, bits, is->layout.epoch_ms,
		    is->worker_first, is->worker_last, is->reserve_max_ms));
	if (o->acl) {
		int status = check_acl(t);

		if (status != CMD_DONE)
			return (status);
	}
	printf("realm %s exists: uuid %s, generation %s\n", t->realm, uuid,
	    is->generation_text);
	return (cmd_end(spec.name, CMD_DONE));
}

/* ---- making it ---- */

/* What a number of agents leaves. */
static void
say_agents(const struct create_options *o, const struct contract *k)
{
	uint64_t usable = k->worker_last - k->worker_first + 1;
	uint64_t agents = (uint64_t)o->agents;

	if (o->agents == CMD_UNSET)
		return;
	printf("to spare    %" PRIu64 " of %" PRIu64
	       " worker IDs beside %" PRIu64 " agents\n",
	    usable > agents ? usable - agents : 0, usable, agents);
	printf("leaves      %u bits for the sequence: %" PRIu64
	       " IDs a second each\n",
	    k->layout.sequence_bits,
	    (layout_sequence_max(&k->layout) + 1) * 1000 / k->layout.tick_ms);
}

/* Whether a program whose numbers are doubles may read IDs as numbers. */
static void
say_javascript(const struct contract *k)
{
	char at[RFC3339_TEXT_MAX];
	struct budget b;

	budget_of(&k->layout, &b);
	if (!b.has_unsafe && rfc3339_format(b.last_ms, at))
		printf(
		    "JavaScript  exact as numbers, below 2^53, until %s\n", at);
	else if (b.has_unsafe && rfc3339_format(b.unsafe_ms, at))
		printf("JavaScript  strings: numbers are not exact from %s "
		       "on\n",
		    at);
}

/*
 * Puts the first contract of a tree in place: parents first, then the node
 * that is empty until then.  CMD_AGAIN: another was faster.
 */
static int
establish(const struct tree *t, const struct create_options *o,
    struct contract *k, int32_t version)
{
	/* Lost data tell no access list: whoever brings a password had one. */
	bool closed = o->acl || (o->from != NULL && t->auth_file != NULL);
	int64_t now_ms, late_ms = 0, safe_ms;
	size_t done;
	int status = contract_advance(t, k, 0);

	if (status == CMD_DONE)
		status = tree_make_root(t, closed);
	if (status == CMD_DONE)
		status = tree_make_parents(t, k, &now_ms);
	if (status == CMD_DONE && closed) /* what stood half made, too */
		status = tree_set_acl(t, closed, &done);
	if (status != CMD_DONE)
		return (status);
	safe_ms =
	    reckon_not_before(now_ms, k->reserve_max_ms, o->skew_refuse_ms);
	if (o->first)
		k->not_before_ms = k->layout.epoch_ms;
	else if (o->not_before_ms != CMD_UNSET)
		k->not_before_ms = o->not_before_ms;
	else if (safe_ms > k->not_before_ms)
		k->not_before_ms = safe_ms;
	return (tree_write(t, k, version, now_ms, &late_ms));
}

static int
garbled(const struct tree *t, const struct tree_realm *realm)
{
	return (cmd_fail(CMD_UNFIT, spec.name, "realm %s exists at %s: %s",
	    t->realm, t->hosts, realm->why));
}

/* All 64 bits in use: most databases have no unsigned column. */
static void
say_sign(const struct contract *k)
{
	char at[RFC3339_TEXT_MAX];
	int64_t turns_ms;

	if (layout_sign_ms(&k->layout, &turns_ms) &&
	    rfc3339_format(turns_ms, at))
		cmd_say(spec.name,
		    "64 bits: IDs are negative in a signed column from %.10s "
		    "on",
		    at);
}

static int
report(const struct tree *t, const struct create_options *o,
    const struct contract *k)
{
	contract_print(t->realm, k, -1);
	say_agents(o, k);
	say_javascript(k);
	say_sign(k);
	contract_say_wait(t, k);
	return (cmd_end(spec.name, CMD_DONE));
}

static int
create(const struct tree *t, const struct create_options *o, struct contract *k)
{
	struct tree_realm realm;
	int status;

	for (;;) {
		status = tree_read(t, &realm);
		if (status != CMD_DONE)
			return (status);
		switch (realm.state) {
		case TREE_GOOD:
			return (exists(t, o, k, &realm.k));
		case TREE_GARBLED:
		case TREE_TOO_NEW:
			return (garbled(t, &realm));
		case TREE_MISSING:
		case TREE_HALF:
			break;
		}
		status = establish(t, o, k, 0);
		if (status == CMD_DONE)
			return (report(t, o, k));
		/* somebody else made it at the same time: look at that */
		if (status != CMD_AGAIN)
			return (status);
	}
}

/* ---- restoring it ---- */

static int
read_backup(const char *name, struct contract *k)
{
	char text[DOC_SIZE_MAX + 1];
	struct doc_error err;
	bool standard = strcmp(name, "-") == 0;
	FILE *f = standard ? stdin : fopen(name, "re");
	size_t n;

	if (f == NULL)
		return (cmd_fail(CMD_FAILED, spec.name, "--from %s: %s", name,
		    strerror(errno)));
	errno = 0;
	n = fread(text, 1, sizeof(text), f);
	if (ferror(f) != 0) {
		int errnum = errno;

		if (!standard)
			(void)fclose(f);
		return (cmd_fail(CMD_FAILED, spec.name, "--from %s: %s", name,
		    strerror(errnum)));
	}
	if (!standard)
		(void)fclose(f);
	if (n > DOC_SIZE_MAX)
		return (cmd_fail(CMD_UNFIT, spec.name,
		    "--from %s: too long for a contract", name));
	if (n > 6 && memcmp(text, "realm ", 6) == 0)
		return (cmd_fail(CMD_UNFIT, spec.name,
		    "--from %s: this is no backup: only firn realm show "
		    "--json makes one",
		    name));
	if (realm_parse(text, n, k, &err) != 0)
		return (cmd_fail(
		    CMD_UNFIT, spec.name, "--from %s: %s", name, err.text));
	return (CMD_DONE);
}

/* Data that went back: the realm is there, as it once was. */
static int
restore_over(const struct tree *t, const struct create_options *o,
    const struct tree_realm *old, struct contract *k)
{
	char is[UUID_TEXT_MAX], backup[UUID_TEXT_MAX];
	size_t done;
	int status;

	uuid_format(old->k.uuid, is);
	uuid_format(k->uuid, backup);
	if (strcmp(is, backup) != 0)
		return (cmd_fail(CMD_UNFIT, spec.name,
		    "realm %s at %s is another one: its uuid is %s, that of %s "
		    "is %s",
		    t->realm, t->hosts, is, o->from, backup));
	if (!layout_equal(&old->k.layout, &k->layout))
		return (cmd_fail(CMD_UNFIT, spec.name,
		    "realm %s at %s has another layout than %s says", t->realm,
		    t->hosts, o->from));
	status = contract_supersede(t, old, k, o->skew_refuse_ms);
	if (status == CMD_DONE && o->acl)
		status = tree_set_acl(t, true, &done);
	return (status == CMD_DONE ? report(t, o, k) : status);
}

static int
restore(
    const struct tree *t, const struct create_options *o, struct contract *k)
{
	struct tree_realm realm;
	int status;

	for (;;) {
		status = tree_read(t, &realm);
		if (status != CMD_DONE)
			return (status);
		switch (realm.state) {
		case TREE_GOOD:
			return (restore_over(t, o, &realm, k));
		case TREE_GARBLED:
		case TREE_TOO_NEW:
			return (garbled(t, &realm));
		case TREE_MISSING:
		case TREE_HALF:
			break;
		}
		status = establish(t, o, k, 0);
		if (status == CMD_DONE)
			return (report(t, o, k));
		if (status != CMD_AGAIN)
			return (status);
	}
}

int
realm_create_main(int argc, char **argv)
{
	struct create_options o = {
		.tree.timeout_ms = TREE_TIMEOUT_MS,
		.agents = CMD_UNSET,
		.epoch_ms = CMD_UNSET,
		.datacenter = CMD_UNSET,
		.not_before_ms = CMD_UNSET,
		.reserve_max_ms = CMD_UNSET,
		.skew_refuse_ms = CONTRACT_SKEW_MS,
	};
	struct contract k;
	struct tree t;
	int rc, first;

	rc = cmd_parse(&spec, argc, argv, &o, &first);
	if (rc != CMD_GO)
		return (rc);
	rc = check_options(&o);
	if (rc == CMD_DONE)
		rc = o.from != NULL ? read_backup(o.from, &k)
				    : make_contract(&o, &k);
	if (rc != CMD_DONE)
		return (rc);
	rc = tree_open(&t, spec.name, &o.tree);
	if (rc == CMD_DONE && o.acl && t.auth_file == NULL)
		rc = usage("--acl needs --auth-file FILE");
	if (rc == CMD_DONE)
		rc = o.from != NULL ? restore(&t, &o, &k) : create(&t, &o, &k);
	tree_close(&t);
	return (rc);
}
