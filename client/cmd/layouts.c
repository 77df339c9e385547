/* SPDX-License-Identifier: Apache-2.0 */
/* layouts - the layout that decode and floor go by: flags, agent, preset. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "layout.h"
#include "reckon.h"

#define AGENT_TIMEOUT_MS 300

static bool
set_epoch(
    const char *name, int64_t epoch_ms, struct firn_layout *l, int *status)
{
	if (epoch_ms == CMD_UNSET || epoch_ms == l->epoch_ms)
		return (true);
	l->epoch_ms = epoch_ms;
	(void)strncpy(l->name, "custom", sizeof(l->name));
	if (layout_valid(l))
		return (true);
	*status = cmd_fail(
	    CMD_USAGE, name, "--epoch: must lie between 1970 and 9999");
	return (false);
}

int
cmd_bad_bits(
    const char *name, const char *option, const char *text, size_t where)
{
	const char *presets = strcmp(option, "bits") == 0
				  ? "no "
				  : "neither a preset (" CMD_PRESETS ") nor ";
	unsigned sum;

	if (reckon_bits(text, &sum) && sum > 64)
		return (cmd_fail(CMD_USAGE, name,
		    "--%s: \"%s\" makes %u bits, at most 64", option, text,
		    sum));
	return (cmd_fail(CMD_USAGE, name,
	    "--%s: \"%s\" is %sbits such as 41/10/12 (character %zu)", option,
	    text, presets, where + 1));
}

bool
cmd_layout_given(const char *name, const struct cmd_layout *given,
    struct firn_layout *l, int *status)
{
	const char *text = given->layout == NULL ? "firn" : given->layout;
	size_t where = 0;

	if (firn_layout_preset(text, l) != 0 &&
	    layout_parse_bits(text, l, &where) != 0) {
		*status = cmd_bad_bits(name, "layout", text, where);
		return (false);
	}
	if (!layout_valid(l)) {
		*status = cmd_fail(CMD_USAGE, name,
		    "layout \"%s\": its last tick is past what 64 bits of "
		    "milliseconds hold",
		    text);
		return (false);
	}
	return (set_epoch(name, given->epoch_ms, l, status));
}

/* False, after a line that says which layout is used instead, and why. */
static bool
say_default(const char *name, const char *socket, int err, const char *why)
{
	switch (err) {
	case FIRN_EAWAY:
		cmd_say(name,
		    "using layout firn, since there is no agent at %s: say "
		    "--layout",
		    socket);
		break;
	case FIRN_EACCES:
		cmd_say(name,
		    "using layout firn, since %s is not open to uid %u: say "
		    "--layout",
		    socket, (unsigned)geteuid());
		break;
	default:
		cmd_say(name,
		    "using layout firn, since the agent at %s says none (%s): "
		    "say --layout",
		    socket, why);
	}
	return (false);
}

/* The agent's layout; false if it does not say it at once. */
static bool
ask_agent(const char *name, const char *socket, struct firn_layout *l)
{
	struct firn_options opt = {
		.size = (uint32_t)sizeof(opt),
		.timeout_ms = AGENT_TIMEOUT_MS,
		.socket = socket,
	};
	struct firn *f;
	char why[256] = "";
	int err;

	/* No socket, no wait: firn_get_layout() would wait for one. */
	if (access(socket, F_OK) != 0)
		return (say_default(name, socket,
		    errno == EACCES ? FIRN_EACCES : FIRN_EAWAY, why));
	err = firn_open(&f, &opt);
	if (err == 0) {
		err = firn_get_layout(f, l);
		if (err != 0)
			(void)firn_why(f, why, sizeof(why));
		firn_close(f);
	}
	if (err == 0)
		return (true);
	return (say_default(
	    name, socket, err, why[0] != '\0' ? why : firn_strerror(err)));
}

bool
cmd_layout_find(const char *name, const struct cmd_layout *given,
    const char *socket, struct firn_layout *l, int *status)
{
	if (given->layout != NULL || !ask_agent(name, cmd_socket(socket), l))
		return (cmd_layout_given(name, given, l, status));
	return (set_epoch(name, given->epoch_ms, l, status));
}
