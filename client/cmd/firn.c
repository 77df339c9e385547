/* SPDX-License-Identifier: Apache-2.0 */
/* firn - the command for people: one table of subcommands. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"

static const struct cmd_entry entries[] = {
	{ "next", next_main, "take IDs" },
	{ "id", id_main, "make a UUID, ULID or KSUID" },
	{ "decode", decode_main, "take IDs apart" },
	{ "floor", floor_main, "the smallest ID of an instant" },
	{ "plan", plan_main, "what a layout gives" },
	{ "seal", seal_main, "IDs as opaque text for the outside world" },
	{ "unseal", unseal_main, "sealed IDs as they were" },
	{ "bench", bench_main, "what an ID costs on this host" },
	{ "status", status_main, "how the agent is" },
	{ "wait", wait_main, "wait until the agent serves" },
	{ "realm", realm_main, "create, show or renew a realm" },
	{ "fleet", fleet_main, "all agents of a realm" },
};

/*
 * A program that is started without standard output would open its socket
 * under that number, and print to it.
 */
static bool
hold_standard_files(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) != -1)
			continue;
		/* in the wrong direction, so that using it is an error */
		if (open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
			return (false);
	}
	return (true);
}

int
main(int argc, char **argv)
{
	if (!hold_standard_files())
		return (CMD_FAILED);
	/* a reader that left is found when writing, and seen to by cmd_end() */
	(void)signal(SIGPIPE, SIG_IGN);
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		printf("firn %s\n", firn_version());
		return (cmd_end("", CMD_DONE));
	}
	return (cmd_dispatch("firn",
	    "64-bit, roughly time-ordered IDs: takes them, takes them apart, "
	    "and looks\nafter the agents that give them out.",
	    entries, sizeof(entries) / sizeof(entries[0]), argc, argv));
}
