/* SPDX-License-Identifier: Apache-2.0 */
/* layouts - the layout that decode and floor go by: flags, agent, preset. */
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "layout.h"

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

bool
cmd_layout_given(const char *name, const struct cmd_layout *given,
    struct firn_layout *l, int *status)
{
	const char *text = given->layout == NULL ? "firn" : given->layout;
	size_t where = 0;

	if (firn_layout_preset(text, l) != 0 &&
	    layout_parse_bits(text, l, &where) != 0) {
		*status = cmd_fail(CMD_USAGE, name,
		    "layout \"%s\" is neither a preset (firn, twitter) nor "
		    "bits such as 41/10/12 (character %zu)",
		    text, where + 1);
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
	if (access(socket, F_OK) != 0) {
		cmd_say(
		    name, "no agent at %s: goes by the layout firn", socket);
		return (false);
	}
	err = firn_open(&f, &opt);
	if (err == 0) {
		err = firn_get_layout(f, l);
		if (err != 0)
			(void)firn_why(f, why, sizeof(why));
		firn_close(f);
	}
	if (err == 0)
		return (true);
	cmd_say(name, "agent at %s: %s: goes by the layout firn", socket,
	    why[0] != '\0' ? why : firn_strerror(err));
	return (false);
}

bool
cmd_layout_find(const char *name, const struct cmd_layout *given,
    const char *socket, struct firn_layout *l, int *status)
{
	if (given->layout != NULL || !ask_agent(name, cmd_socket(socket), l))
		return (cmd_layout_given(name, given, l, status));
	return (set_epoch(name, given->epoch_ms, l, status));
}
