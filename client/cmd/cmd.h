/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd - what the subcommands share: one table of options that both the reader
 * and --help go by, the exit statuses, and the one line of an error.
 */
#ifndef CMD_H
#define CMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "firn.h"

/* Part of the interface: firn(1) lists them. */
enum cmd_exit {
	CMD_DONE = 0,
	CMD_FAILED = 1, /* whatever has no status of its own */
	CMD_CRITICAL = 2, /* fleet: a critical alert stands */
	CMD_USAGE = 64,
	CMD_AWAY = 69, /* agent or ZooKeeper not to be reached */
	CMD_AGAIN = 75, /* refused or timed out: try again */
	CMD_DENIED = 77, /* not allowed */
	CMD_UNFIT = 78, /* configuration or realm does not fit */
};

#define CMD_GO (-1) /* cmd_parse(): no exit yet */
#define CMD_UNSET INT64_MIN /* a number or instant that was not given */
#define CMD_TIMEOUT_MS_MAX INT64_C(86400000)

enum cmd_kind {
	CMD_FLAG, /* bool */
	CMD_TEXT, /* const char *, NULL if not given */
	CMD_NUMBER, /* int64_t, between min and max */
	CMD_INSTANT, /* int64_t, Unix ms; RFC 3339, a date or a number */
	CMD_FORMAT, /* enum cmd_format */
};

/* As enum firn_format, and one more. */
enum cmd_format {
	CMD_DECIMAL = FIRN_DECIMAL,
	CMD_HEX = FIRN_HEX,
	CMD_BASE62 = FIRN_BASE62,
	CMD_CROCKFORD = FIRN_CROCKFORD,
	CMD_ANY, /* not given: found out, or decimal */
};

struct cmd_option {
	const char *name;
	char letter; /* 0: there is no short form */
	enum cmd_kind kind;
	size_t offset; /* in the subcommand's struct */
	const char *arg; /* "MS"; NULL for a flag */
	const char *help; /* lines of at most 52 characters */
	int64_t min, max;
};

struct cmd_spec {
	const char *name; /* "realm create" */
	const char *usage; /* what follows the name */
	const char *text; /* what it does */
	const char *statuses; /* the exit statuses that it has */
	const struct cmd_option *options;
	size_t noptions;
	int max_arguments; /* -1: any number */
};

struct cmd_entry {
	const char *name;
	int (*run)(int argc, char **argv); /* argv[0]: its own name */
	const char *summary;
};

/* What firn_layout_preset() knows. */
#define CMD_PRESETS "firn, twitter, discord, instagram, sonyflake, js53"

const char *cmd_format_name(enum cmd_format format);

/* Options that several subcommands have, for their tables. */
#define CMD_OPT_SOCKET(type)                                           \
	{                                                              \
		"socket", 0, CMD_TEXT, offsetof(type, socket), "PATH", \
		    "the agent's socket; default $FIRN_SOCKET, else\n" \
		    "/run/firn/firn.sock",                             \
		    0, 0                                               \
	}
#define CMD_OPT_TIMEOUT(type, help)                                         \
	{                                                                   \
		"timeout", 0, CMD_NUMBER, offsetof(type, timeout_ms), "MS", \
		    help, 1, CMD_TIMEOUT_MS_MAX                             \
	}
#define CMD_OPT_JSON(type, help)                                            \
	{                                                                   \
		"json", 0, CMD_FLAG, offsetof(type, json), NULL, help, 0, 0 \
	}
#define CMD_OPT_LAYOUT(type)                                              \
	{ "layout", 0, CMD_TEXT, offsetof(type, layout.layout),           \
		"PRESET|T/W/S",                                           \
		CMD_PRESETS                                               \
		",\n"                                                     \
		"or bits of time, worker and sequence; default the\n"     \
		"agent's, else firn",                                     \
		0, 0 },                                                   \
	{                                                                 \
		"epoch", 0, CMD_INSTANT, offsetof(type, layout.epoch_ms), \
		    "MS|RFC3339", "where the layout's time begins", 0, 0  \
	}

/*
 * Reads the options into *out, a struct filled with the defaults; *first is
 * then the first argument that is none.  Returns CMD_GO, or the status to
 * exit with: CMD_DONE after --help, CMD_USAGE with the line said.
 */
FIRN_CHECK_RESULT int cmd_parse(
    const struct cmd_spec *spec, int argc, char **argv, void *out, int *first);

/* Runs the entry that argv[1] names; `program` is what comes before it. */
FIRN_CHECK_RESULT int cmd_dispatch(const char *program, const char *text,
    const struct cmd_entry *entries, size_t n, int argc, char **argv);

/*
 * One line on standard error: "firn NAME: ...".  Control characters that come
 * from elsewhere are made visible.  cmd_fail() returns its status.
 */
void cmd_say(const char *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int cmd_fail(int status, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Was all of standard output written?  Gives status, or CMD_FAILED with the
 * line said.  If nobody reads any more the process ends by SIGPIPE here.
 */
FIRN_CHECK_RESULT int cmd_end(const char *name, int status);

/* Why libfirn took neither the socket nor $FIRN_REALM; gives CMD_USAGE. */
int cmd_fail_open(const char *name, const char *socket);

/* $NAME unless empty, else fallback. */
const char *cmd_env(const char *name, const char *fallback);

const char *cmd_socket(const char *given);

/* CLOCK_BOOTTIME and Unix time in ms. */
int64_t cmd_boot_ms(void);
int64_t cmd_wall_ms(void);
void cmd_sleep_ms(int64_t ms);

/* The exit status for an error of libfirn. */
int cmd_status_of(int err);

/* Says why libfirn gave err instead of IDs; `socket` as it was given. */
int cmd_fail_taking(
    const char *name, struct firn *f, const char *socket, int err);

/* ---- the layout that decode and floor go by ---- */

struct cmd_layout {
	const char *layout;
	int64_t epoch_ms; /* or CMD_UNSET */
};

/* Says what is wrong with bits (or a preset's name); gives CMD_USAGE. */
int cmd_bad_bits(
    const char *name, const char *option, const char *text, size_t where);

/*
 * From the flags alone: false with *status set and the line said; *l gets
 * the named layout (the firn preset, if none is named) with the epoch.
 */
FIRN_CHECK_RESULT bool cmd_layout_given(const char *name,
    const struct cmd_layout *given, struct firn_layout *l, int *status);

/* As above, but without --layout the agent's, if it says one at once. */
FIRN_CHECK_RESULT bool cmd_layout_find(const char *name,
    const struct cmd_layout *given, const char *socket, struct firn_layout *l,
    int *status);

/* ---- subcommands ---- */

int next_main(int argc, char **argv);
int id_main(int argc, char **argv);
int seal_main(int argc, char **argv);
int unseal_main(int argc, char **argv);
int decode_main(int argc, char **argv);
int floor_main(int argc, char **argv);
int plan_main(int argc, char **argv);
int bench_main(int argc, char **argv);
int status_main(int argc, char **argv);
int wait_main(int argc, char **argv);
int realm_main(int argc, char **argv);
int realm_create_main(int argc, char **argv);
int realm_renew_main(int argc, char **argv);
int realm_acl_main(int argc, char **argv);
int fleet_main(int argc, char **argv);

#endif
