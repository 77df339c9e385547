/* SPDX-License-Identifier: Apache-2.0 */
/* floor - the smallest ID of an instant, for range queries. */
#include <inttypes.h>

#include "cmd.h"
#include "layout.h"
#include "reckon.h"
#include "rfc3339.h"

struct floor_options {
	struct cmd_layout layout;
	enum cmd_format format;
	const char *socket;
};

static const struct cmd_option options[] = {
	CMD_OPT_LAYOUT(struct floor_options),
	{ "format", 'f', CMD_FORMAT, offsetof(struct floor_options, format),
	    "FORMAT", "dec (default), hex, base62 or crockford", 0, 0 },
	CMD_OPT_SOCKET(struct floor_options),
};

static const struct cmd_spec spec = {
	.name = "floor",
	.usage = "TIME [--layout PRESET|T/W/S] [--epoch MS|RFC3339] "
		 "[-f FORMAT]",
	.text = "Prints the smallest ID of an instant (RFC 3339, a date, or "
		"Unix milliseconds):\nall IDs of that instant or later are "
		"not below it, all earlier ones are.  With\nagents whose "
		"clocks differ, take off the spread.",
	.statuses = "  0   printed\n"
		    "  1   standard output\n"
		    "  64  usage, or an instant outside the layout's span",
	.options = options,
	.noptions = sizeof(options) / sizeof(options[0]),
	.max_arguments = 1,
};

static int
outside(const char *text, int64_t unix_ms, const struct firn_layout *l)
{
	char from[RFC3339_TEXT_MAX], to[RFC3339_TEXT_MAX];
	char at[RFC3339_TEXT_MAX];

	if (reckon_is_seconds(text, unix_ms, l) && rfc3339_format(unix_ms, at))
		return (cmd_fail(CMD_USAGE, spec.name,
		    "%s is %.10s, before the layout %s begins: are these "
		    "seconds? Milliseconds end in three more digits",
		    text, at, l->name));

	if (!rfc3339_format(l->epoch_ms, from) ||
	    !rfc3339_format(layout_end_ms(l), to))
		return (cmd_fail(CMD_USAGE, spec.name,
		    "%s is outside the layout %s", text, l->name));
	return (cmd_fail(CMD_USAGE, spec.name,
	    "%s is outside the layout %s, which goes from %s to %s", text,
	    l->name, from, to));
}

int
floor_main(int argc, char **argv)
{
	struct floor_options o = {
		.layout = { .epoch_ms = CMD_UNSET },
		.format = CMD_DECIMAL,
	};
	struct firn_layout l;
	char text[FIRN_TEXT_MAX];
	size_t where = 0;
	int64_t unix_ms;
	uint64_t id;
	int rc, first;

	rc = cmd_parse(&spec, argc, argv, &o, &first);
	if (rc != CMD_GO)
		return (rc);
	if (first == argc)
		return (cmd_fail(CMD_USAGE, spec.name,
		    "which instant? (see firn floor --help)"));
	if (!reckon_instant(argv[first], &unix_ms, &where))
		return (cmd_fail(CMD_USAGE, spec.name,
		    "\"%s\" is neither RFC 3339 nor Unix milliseconds "
		    "(character %zu)",
		    argv[first], where + 1));
	if (!cmd_layout_find(spec.name, &o.layout, o.socket, &l, &rc))
		return (rc);
	if (firn_id_floor(&l, unix_ms, &id) != 0)
		return (outside(argv[first], unix_ms, &l));
	if (firn_format_id(
		id, (enum firn_format)o.format, text, sizeof(text)) != 0)
		return (CMD_FAILED);
	printf("%s\n", text);
	return (cmd_end(spec.name, CMD_DONE));
}
