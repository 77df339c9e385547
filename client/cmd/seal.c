/* SPDX-License-Identifier: Apache-2.0 */
/* seal - IDs as opaque text, and back: from the arguments, or one a line. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "firn-seal.h"

struct seal_options {
	const char *keys;
	const char *purpose;
};

static const struct cmd_option options[] = {
	{ "keys", 0, CMD_TEXT, offsetof(struct seal_options, keys), "FILE",
	    "keys, one a line: 32 or 64 hex digits; the first\n"
	    "seals, all unseal; for this user alone (mode 0600)",
	    0, 0 },
	{ "purpose", 0, CMD_TEXT, offsetof(struct seal_options, purpose),
	    "TEXT", "what the IDs are of; default none", 0, 0 },
};

#define STATUSES                                                            \
	"  0   all were printed\n"                                          \
	"  1   standard output or input; a line of it is wrong; a text of " \
	"another key or\n      purpose, or changed\n"                       \
	"  64  usage, or an argument of the wrong form\n"                   \
	"  77  the keys' file: another's, or others have access\n"          \
	"  78  the keys' file is missing, or holds no keys"

static const struct cmd_spec seal_spec = {
	.name = "seal",
	.usage = "--keys FILE [--purpose TEXT] [ID...]",
	.text = "Makes an opaque text of 22 characters of each decimal ID.  "
		"Without IDs it reads\none a line from standard input.",
	.statuses = STATUSES,
	.options = options,
	.noptions = sizeof(options) / sizeof(options[0]),
	.max_arguments = -1,
};

static const struct cmd_spec unseal_spec = {
	.name = "unseal",
	.usage = "--keys FILE [--purpose TEXT] [TEXT...]",
	.text = "Prints the ID in each text that was made by firn seal with "
		"one of the keys and\nthe same purpose.  Without texts it "
		"reads one a line from standard input.",
	.statuses = STATUSES,
	.options = options,
	.noptions = sizeof(options) / sizeof(options[0]),
	.max_arguments = -1,
};

#ifdef FIRN_SEAL

typedef int (*turn)(
    const struct firn_seal *s, const char *name, const char *text);

static int
seal(const struct firn_seal *s, const char *name, const char *text)
{
	char sealed[FIRN_SEAL_TEXT_MAX];
	uint64_t id;
	int rc = firn_parse_id(text, FIRN_DECIMAL, &id, NULL);

	if (rc != 0)
		return (cmd_fail(
		    CMD_USAGE, name, "\"%.64s\" is no decimal ID", text));
	rc = firn_seal_id(s, id, sealed, sizeof(sealed));
	if (rc != 0)
		return (cmd_fail(CMD_FAILED, name, "%s", firn_strerror(rc)));
	printf("%s\n", sealed);
	return (CMD_DONE);
}

static int
unseal(const struct firn_seal *s, const char *name, const char *text)
{
	uint64_t id;
	int rc = firn_unseal_id(s, text, &id);

	if (rc == FIRN_EINVAL)
		return (cmd_fail(CMD_USAGE, name,
		    "\"%.64s\" is no sealed ID: 22 characters of 0-9A-Za-z",
		    text));
	if (rc != 0)
		return (cmd_fail(CMD_FAILED, name, "\"%.64s\": %s", text,
		    firn_strerror(rc)));
	printf("%" PRIu64 "\n", id);
	return (CMD_DONE);
}

static int
turn_lines(const struct firn_seal *s, const char *name, turn one)
{
	int status = CMD_DONE;
	char *line = NULL;
	size_t size = 0;
	ssize_t n;

	while ((n = getline(&line, &size, stdin)) != -1) {
		while (n > 0 && memchr(" \t\r\n", line[n - 1], 4) != NULL)
			line[--n] = '\0';
		if (n == 0)
			continue;
		if (strlen(line) != (size_t)n)
			status = cmd_fail(CMD_FAILED, name, "a NUL byte");
		else if (one(s, name, line) != CMD_DONE)
			status = CMD_FAILED;
		if (ferror(stdout) != 0)
			break;
	}
	if (ferror(stdin) != 0)
		status = cmd_fail(
		    CMD_FAILED, name, "standard input: %s", strerror(errno));
	free(line);
	return (status);
}

static int
open_keys(const char *name, const struct seal_options *o, struct firn_seal **s)
{
	unsigned line = 0;
	int rc = firn_seal_open_file(s, o->keys, o->purpose, &line);

	switch (rc) {
	case FIRN_OK:
		return (CMD_GO);
	case FIRN_EACCES:
		if (access(o->keys, F_OK) != 0)
			return (cmd_fail(CMD_UNFIT, name, "%s: %s", o->keys,
			    strerror(errno)));
		return (cmd_fail(CMD_DENIED, name,
		    "%s: must be a regular file of this user's that group and "
		    "others have no access to (chmod 600)",
		    o->keys));
	case FIRN_EINVAL:
		if (line == 0)
			return (cmd_fail(CMD_UNFIT, name,
			    "%s: holds no keys, or is too long", o->keys));
		return (cmd_fail(CMD_UNFIT, name,
		    "%s: line %u is no key, or not as long as the others: all "
		    "have 32 hex digits, or all 64; at most %d keys",
		    o->keys, line, FIRN_SEAL_KEYS_MAX));
	default:
		return (cmd_fail(CMD_FAILED, name, "%s", firn_strerror(rc)));
	}
}

static int
run(const struct cmd_spec *spec, int argc, char **argv, turn one)
{
	struct seal_options o = { .keys = NULL };
	struct firn_seal *s;
	int rc, first, status = CMD_DONE;

	rc = cmd_parse(spec, argc, argv, &o, &first);
	if (rc != CMD_GO)
		return (rc);
	if (o.keys == NULL)
		return (cmd_fail(CMD_USAGE, spec->name,
		    "--keys is needed (see firn %s --help)", spec->name));
	rc = open_keys(spec->name, &o, &s);
	if (rc != CMD_GO)
		return (rc);
	for (int i = first; i < argc && status == CMD_DONE; i++)
		status = one(s, spec->name, argv[i]);
	if (first == argc)
		status = turn_lines(s, spec->name, one);
	firn_seal_close(s);
	return (cmd_end(spec->name, status));
}

int
seal_main(int argc, char **argv)
{
	return (run(&seal_spec, argc, argv, seal));
}

int
unseal_main(int argc, char **argv)
{
	return (run(&unseal_spec, argc, argv, unseal));
}

#else

static int
refuse(const struct cmd_spec *spec, int argc, char **argv)
{
	struct seal_options o = { .keys = NULL };
	int rc, first;

	rc = cmd_parse(spec, argc, argv, &o, &first);
	if (rc != CMD_GO)
		return (rc);
	return (cmd_fail(
	    CMD_FAILED, spec->name, "this firn was built without libcrypto"));
}

int
seal_main(int argc, char **argv)
{
	return (refuse(&seal_spec, argc, argv));
}

int
unseal_main(int argc, char **argv)
{
	return (refuse(&unseal_spec, argc, argv));
}

#endif
