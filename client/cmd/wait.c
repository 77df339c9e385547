/* SPDX-License-Identifier: Apache-2.0 */
/* wait - waits until the agent on this host serves. */
#include <stdio.h>

#include "ask.h"
#include "cmd.h"

#define PAUSE_MS_MIN 10
#define PAUSE_MS_MAX 200
#define ANSWER_MS_MIN 500 /* for an answer, also at the very end */

struct wait_options {
	const char *socket;
	int64_t timeout_ms;
};

static const struct cmd_option options[] = {
	CMD_OPT_SOCKET(struct wait_options),
	CMD_OPT_TIMEOUT(struct wait_options, "at most so long; default 60000"),
};

static const struct cmd_spec spec = {
	.name = "wait",
	.usage = "[--socket PATH] [--timeout MS]",
	.text = "Waits until the agent on this host serves, also for an agent "
		"that is not there\nyet, and prints nothing.",
	.statuses = "  0   it serves\n"
		    "  64  usage\n"
		    "  69  no answer until the end\n"
		    "  75  it answers, but refused until the end\n"
		    "  77  not allowed to use the socket",
	.options = options,
	.noptions = sizeof(options) / sizeof(options[0]),
	.max_arguments = 0,
};

int
wait_main(int argc, char **argv)
{
	struct wait_options o = { .timeout_ms = 60000 };
	static struct ask_answer answer;
	int64_t deadline, pause_ms = PAUSE_MS_MIN;
	struct ask a;
	int rc, first;

	rc = cmd_parse(&spec, argc, argv, &o, &first);
	if (rc != CMD_GO)
		return (rc);
	deadline = cmd_boot_ms() + o.timeout_ms;
	ask_open(&a, cmd_socket(o.socket));
	for (;;) {
		int64_t left, patience = cmd_boot_ms() + ANSWER_MS_MIN;

		/* asked just before the end, the agent is no less there */
		rc = ask_status(
		    &a, deadline > patience ? deadline : patience, &answer);
		if (rc == CMD_DONE && ask_serves(&answer.doc))
			break;
		left = deadline - cmd_boot_ms();
		if (rc == CMD_USAGE || rc == CMD_DENIED || left <= 0)
			break;
		cmd_sleep_ms(pause_ms < left ? pause_ms : left);
		pause_ms = pause_ms * 3 / 2;
		if (pause_ms > PAUSE_MS_MAX)
			pause_ms = PAUSE_MS_MAX;
	}
	ask_close(&a);
	if (rc != CMD_DONE)
		return (cmd_fail(rc, spec.name, "%s", answer.why));
	if (ask_serves(&answer.doc))
		return (CMD_DONE);
	return (cmd_fail(CMD_AGAIN, spec.name,
	    "%s: the agent does not serve: %s%s%s", a.socket, answer.doc.state,
	    answer.doc.words[0] == '\0' ? "" : ": ", answer.doc.words));
}
