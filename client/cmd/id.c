/* SPDX-License-Identifier: Apache-2.0 */
/* id - makes UUIDs, ULIDs and KSUIDs; no agent is asked. */
#include <string.h>

#include "cmd.h"

#define COUNT_MAX INT64_C(1000000000000)

struct id_options {
	int64_t count;
	bool json;
};

static const struct cmd_option options[] = {
	{ "count", 'n', CMD_NUMBER, offsetof(struct id_options, count), "COUNT",
	    "so many; default 1", 1, COUNT_MAX },
	CMD_OPT_JSON(struct id_options, "one document, {\"ids\":[\"...\"]}"),
};

static const struct cmd_spec spec = {
	.name = "id",
	.usage = "v4|v7|ulid|ksuid [-n COUNT] [--json]",
	.text = "Makes UUIDs of version 4 or 7, ULIDs or KSUIDs, one a line.  "
		"They need no agent.\nAll but v4 come in rising order.",
	.statuses = "  0   all were printed\n"
		    "  1   standard output; the kernel gives no random bytes; "
		    "a clock that the kind\n      cannot hold\n"
		    "  64  usage",
	.options = options,
	.noptions = sizeof(options) / sizeof(options[0]),
	.max_arguments = 1,
};

static const struct kind {
	const char *name;
	int (*make)(unsigned char *out);
	int (*format)(const unsigned char *id, char *buf, size_t n);
} kinds[] = {
	{ "v4", firn_uuid4, firn_uuid_format },
	{ "v7", firn_uuid7, firn_uuid_format },
	{ "ulid", firn_ulid, firn_ulid_format },
	{ "ksuid", firn_ksuid, firn_ksuid_format },
};

static int
print_ids(const struct kind *k, const struct id_options *o)
{
	char text[FIRN_UUID_TEXT_MAX];
	int rc = FIRN_OK, status = CMD_DONE;
	unsigned char id[20];

	for (int64_t i = 0; i < o->count && ferror(stdout) == 0; i++) {
		rc = k->make(id);
		if (rc == FIRN_OK)
			rc = k->format(id, text, sizeof(text));
		if (rc != FIRN_OK) {
			status = cmd_fail(CMD_FAILED, spec.name, "%s: %s",
			    k->name, firn_strerror(rc));
			break;
		}
		if (!o->json)
			printf("%s\n", text);
		else
			printf("%s\"%s\"", i == 0 ? "{\"ids\":[" : ",", text);
	}
	if (o->json && status == CMD_DONE)
		printf("]}\n");
	return (cmd_end(spec.name, status));
}

int
id_main(int argc, char **argv)
{
	struct id_options o = { .count = 1 };
	int rc, first;

	rc = cmd_parse(&spec, argc, argv, &o, &first);
	if (rc != CMD_GO)
		return (rc);
	if (first == argc)
		return (cmd_fail(
		    CMD_USAGE, spec.name, "which kind? v4, v7, ulid or ksuid"));
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(argv[first], kinds[i].name) == 0)
			return (print_ids(&kinds[i], &o));
	return (cmd_fail(CMD_USAGE, spec.name,
	    "\"%s\": no kind; there are v4, v7, ulid and ksuid", argv[first]));
}
