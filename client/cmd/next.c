/* SPDX-License-Identifier: Apache-2.0 */
/* next - takes IDs through libfirn and prints them as they come. */
#include "cmd.h"

#define CHUNK 8192
#define COUNT_MAX INT64_C(1000000000000)

struct next_options {
	int64_t count;
	enum cmd_format format;
	bool json;
	const char *socket;
	int64_t timeout_ms;
};

static const struct cmd_option options[] = {
	{ "count", 'n', CMD_NUMBER, offsetof(struct next_options, count),
	    "COUNT", "so many IDs; default 1", 1, COUNT_MAX },
	{ "format", 'f', CMD_FORMAT, offsetof(struct next_options, format),
	    "FORMAT",
	    "dec (default), hex, base62 or crockford; all but\n"
	    "dec sort as the IDs do",
	    0, 0 },
	CMD_OPT_JSON(struct next_options,
	    "one document, {\"ids\":[\"...\"]}; IDs are strings"),
	CMD_OPT_SOCKET(struct next_options),
	CMD_OPT_TIMEOUT(
	    struct next_options, "longest wait for the next IDs; default 1000"),
};

static const struct cmd_spec spec = {
	.name = "next",
	.usage = "[-n COUNT] [-f FORMAT] [--json] [--socket PATH] "
		 "[--timeout MS]",
	.text = "Takes IDs from the agent and prints one a line.  IDs that "
		"were printed before\nan error are good.",
	.statuses =
	    "  0   all were printed\n"
	    "  1   standard output, or bytes that are not the protocol\n"
	    "  64  usage\n"
	    "  69  no agent on the socket\n"
	    "  75  the agent refused, or did not answer in time\n"
	    "  77  not allowed to use the socket\n"
	    "  78  the agent serves another realm than $FIRN_REALM",
	.options = options,
	.noptions = sizeof(options) / sizeof(options[0]),
	.max_arguments = 0,
};

static bool
print_ids(
    const struct next_options *o, const uint64_t *ids, size_t n, bool is_first)
{
	enum firn_format format =
	    o->format == CMD_ANY ? FIRN_DECIMAL : (enum firn_format)o->format;
	char text[FIRN_TEXT_MAX];

	for (size_t i = 0; i < n; i++) {
		if (firn_format_id(ids[i], format, text, sizeof(text)) != 0)
			return (false);
		if (!o->json)
			printf("%s\n", text);
		else
			printf("%s\"%s\"", is_first && i == 0 ? "" : ",", text);
	}
	return (ferror(stdout) == 0);
}

static int
take(struct firn *f, const struct next_options *o)
{
	static uint64_t ids[CHUNK];
	uint64_t left = (uint64_t)o->count;
	int status = CMD_DONE;

	while (left > 0 && status == CMD_DONE) {
		size_t got = 0, n = left < CHUNK ? (size_t)left : CHUNK;
		int err = firn_next_many(f, ids, n, &got);
		bool is_first = left == (uint64_t)o->count;

		if (is_first && got > 0 && o->json)
			printf("{\"ids\":[");
		if (!print_ids(o, ids, got, is_first))
			break; /* said by cmd_end() */
		left -= got;
		if (err != 0)
			status = cmd_fail_taking(spec.name, f, o->socket, err);
	}
	if (o->json && left < (uint64_t)o->count)
		printf("]}\n");
	return (cmd_end(spec.name, status));
}

int
next_main(int argc, char **argv)
{
	struct next_options o = {
		.count = 1,
		.format = CMD_ANY,
		.timeout_ms = 1000,
	};
	struct firn_options opt = { .size = (uint32_t)sizeof(opt) };
	struct firn *f;
	int rc, first;

	rc = cmd_parse(&spec, argc, argv, &o, &first);
	if (rc != CMD_GO)
		return (rc);
	opt.timeout_ms = (uint32_t)o.timeout_ms;
	opt.socket = o.socket;
	rc = firn_open(&f, &opt);
	if (rc == FIRN_EINVAL)
		return (cmd_fail_open(spec.name, o.socket));
	if (rc != 0)
		return (
		    cmd_fail(CMD_FAILED, spec.name, "%s", firn_strerror(rc)));
	rc = take(f, &o);
	firn_close(f);
	return (rc);
}
