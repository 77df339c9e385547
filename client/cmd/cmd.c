/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd - options by table, exit statuses, the line of an error.
 *
 * Invariant: whatever fails says one line on standard error; only documents
 * go to standard output.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "cmd.h"
#include "doc.h"
#include "reckon.h"

#define OPTIONS_MAX 24
#define LONG_BASE 256 /* val of the first long option */
#define HELP_COLUMN 26
#define LINE_MAX_TEXT 1024

/* ---- lines and clocks ---- */

static void say(const char *name, const char *format, va_list ap)
    __attribute__((format(printf, 2, 0)));

static void
say(const char *name, const char *format, va_list ap)
{
	char line[LINE_MAX_TEXT], safe[LINE_MAX_TEXT * 4];

	(void)vsnprintf(line, sizeof(line), format, ap);
	reckon_escape(line, safe, sizeof(safe));
	(void)fprintf(
	    stderr, "firn%s%s: %s\n", name[0] == '\0' ? "" : " ", name, safe);
}

void
cmd_say(const char *name, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	say(name, format, ap);
	va_end(ap);
}

int
cmd_fail(int status, const char *name, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	say(name, format, ap);
	va_end(ap);
	return (status);
}

/* A write that failed earlier left no errno behind; the pipe still knows. */
static bool
reader_left(void)
{
	struct pollfd p = { .fd = STDOUT_FILENO, .events = POLLOUT };

	return (errno == EPIPE || (poll(&p, 1, 0) == 1 &&
				      (p.revents & (POLLERR | POLLHUP)) != 0));
}

int
cmd_end(const char *name, int status)
{
	bool bad = ferror(stdout) != 0;

	errno = 0;
	if (fflush(stdout) != 0)
		bad = true;
	if (!bad)
		return (status);
	if (reader_left()) { /* as `head` has it: no error, nor a success */
		(void)signal(SIGPIPE, SIG_DFL);
		(void)raise(SIGPIPE);
		return (CMD_FAILED);
	}
	return (cmd_fail(CMD_FAILED, name, "standard output: %s",
	    errno == 0 ? "not all of it was written" : strerror(errno)));
}

const char *
cmd_env(const char *name, const char *fallback)
{
	const char *v = getenv(name);

	return (v == NULL || v[0] == '\0' ? fallback : v);
}

const char *
cmd_socket(const char *given)
{
	return (given != NULL ? given
			      : cmd_env("FIRN_SOCKET", "/run/firn/firn.sock"));
}

int
cmd_fail_open(const char *name, const char *socket)
{
	const struct sockaddr_un *sun = NULL;
	const char *path = cmd_socket(socket);
	size_t n = strlen(path);

	if (n == 0 || n >= sizeof(sun->sun_path))
		return (cmd_fail(CMD_USAGE, name,
		    "\"%s\": no path for a socket: it has 1 to %zu bytes", path,
		    sizeof(sun->sun_path) - 1));
	return (cmd_fail(CMD_USAGE, name,
	    "$FIRN_REALM \"%s\": no name for a realm: too long",
	    cmd_env("FIRN_REALM", "")));
}

static int64_t
clock_ms(clockid_t id)
{
	struct timespec ts;

	(void)clock_gettime(id, &ts);
	return ((int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000);
}

int64_t
cmd_boot_ms(void)
{
	return (clock_ms(CLOCK_BOOTTIME));
}

int64_t
cmd_wall_ms(void)
{
	return (clock_ms(CLOCK_REALTIME));
}

void
cmd_sleep_ms(int64_t ms)
{
	struct timespec ts = {
		.tv_sec = (time_t)(ms / 1000),
		.tv_nsec = (long)(ms % 1000) * 1000000,
	};

	while (nanosleep(&ts, &ts) != 0 && errno == EINTR)
		continue;
}

int
cmd_status_of(int err)
{
	switch (err) {
	case FIRN_OK:
		return (CMD_DONE);
	case FIRN_EAWAY:
		return (CMD_AWAY);
	case FIRN_ETIMEDOUT:
	case FIRN_EREFUSED:
	case FIRN_EAGAIN:
		return (CMD_AGAIN);
	case FIRN_EACCES:
		return (CMD_DENIED);
	case FIRN_EREALM:
		return (CMD_UNFIT);
	default:
		return (CMD_FAILED);
	}
}

int
cmd_fail_taking(const char *name, struct firn *f, const char *socket, int err)
{
	const char *path = cmd_socket(socket);
	char why[512] = "";

	(void)firn_why(f, why, sizeof(why));
	if (why[0] == '\0')
		(void)snprintf(why, sizeof(why), "%s", firn_strerror(err));
	/* what the agent says does not name the socket */
	if (strncmp(why, path, strlen(path)) == 0)
		return (cmd_fail(cmd_status_of(err), name, "%s", why));
	return (cmd_fail(cmd_status_of(err), name, "%s: %s", path, why));
}

/* ---- help ---- */

static void
print_column(const char *text, size_t used)
{
	for (;;) {
		size_t n = strcspn(text, "\n");

		printf("%*s%.*s\n",
		    (int)(used < HELP_COLUMN ? HELP_COLUMN - used : 0), "",
		    (int)n, text);
		if (text[n] == '\0')
			return;
		text += n + 1;
		used = 0;
	}
}

static void
print_option(const struct cmd_option *o)
{
	char left[64];
	int n;

	if (o->letter != 0)
		n = snprintf(left, sizeof(left), "  -%c, --%s%s%s", o->letter,
		    o->name, o->arg == NULL ? "" : " ",
		    o->arg == NULL ? "" : o->arg);
	else
		n = snprintf(left, sizeof(left), "  --%s%s%s", o->name,
		    o->arg == NULL ? "" : " ", o->arg == NULL ? "" : o->arg);
	printf("%s", left);
	if (n + 1 >= HELP_COLUMN) {
		printf("\n");
		n = 0;
	}
	print_column(o->help, (size_t)n);
}

static void
print_help(const struct cmd_spec *spec)
{
	printf("usage: firn %s%s%s\n\n%s\n\noptions:\n", spec->name,
	    spec->usage[0] == '\0' ? "" : " ", spec->usage, spec->text);
	for (size_t i = 0; i < spec->noptions; i++)
		print_option(&spec->options[i]);
	printf("  -h, --help");
	print_column("show this text", strlen("  -h, --help"));
	printf("\nexit status:\n%s\n", spec->statuses);
}

/* ---- reading options ---- */

static int
set_number(const struct cmd_spec *spec, const struct cmd_option *o,
    const char *text, void *field)
{
	int64_t v;

	if (!doc_parse_i64(text, &v) || v < o->min || v > o->max)
		return (cmd_fail(CMD_USAGE, spec->name,
		    "--%s: \"%s\" is no number from %lld to %lld", o->name,
		    text, (long long)o->min, (long long)o->max));
	*(int64_t *)field = v;
	return (CMD_GO);
}

static int
set_instant(const struct cmd_spec *spec, const struct cmd_option *o,
    const char *text, void *field)
{
	size_t where = 0;
	int64_t v;

	if (reckon_lacks_zone(text))
		return (cmd_fail(CMD_USAGE, spec->name,
		    "--%s: \"%s\" names no time zone: write it in UTC, with a "
		    "Z at its end",
		    o->name, text));
	if (!reckon_instant(text, &v, &where))
		return (cmd_fail(CMD_USAGE, spec->name,
		    "--%s: \"%s\" is neither RFC 3339 nor Unix milliseconds "
		    "(character %zu)",
		    o->name, text, where + 1));
	*(int64_t *)field = v;
	return (CMD_GO);
}

const char *
cmd_format_name(enum cmd_format format)
{
	switch (format) {
	case CMD_DECIMAL:
		return ("dec");
	case CMD_HEX:
		return ("hex");
	case CMD_BASE62:
		return ("base62");
	case CMD_CROCKFORD:
		return ("crockford");
	case CMD_ANY:
		break;
	}
	return ("any");
}

static int
set_format(const struct cmd_spec *spec, const char *text, void *field)
{
	for (int i = CMD_DECIMAL; i <= CMD_CROCKFORD; i++) {
		if (strcmp(text, cmd_format_name((enum cmd_format)i)) == 0) {
			*(enum cmd_format *)field = (enum cmd_format)i;
			return (CMD_GO);
		}
	}
	return (cmd_fail(CMD_USAGE, spec->name,
	    "--format: \"%s\" is none of dec, hex, base62, crockford", text));
}

static int
set_option(const struct cmd_spec *spec, const struct cmd_option *o,
    const char *text, void *out)
{
	void *field = (char *)out + o->offset;

	switch (o->kind) {
	case CMD_FLAG:
		*(bool *)field = true;
		return (CMD_GO);
	case CMD_TEXT:
		*(const char **)field = text;
		return (CMD_GO);
	case CMD_NUMBER:
		return (set_number(spec, o, text, field));
	case CMD_INSTANT:
		return (set_instant(spec, o, text, field));
	case CMD_FORMAT:
		return (set_format(spec, text, field));
	}
	return (CMD_FAILED);
}

/* getopt_long's tables out of ours; --help comes last. */
static void
make_tables(const struct cmd_spec *spec, struct option *longs, char *shorts)
{
	size_t i;

	*shorts++ = ':';
	*shorts++ = 'h';
	for (i = 0; i < spec->noptions; i++) {
		const struct cmd_option *o = &spec->options[i];

		longs[i] = (struct option){
			.name = o->name,
			.has_arg = o->kind == CMD_FLAG ? no_argument
						       : required_argument,
			.val = LONG_BASE + (int)i,
		};
		if (o->letter == 0)
			continue;
		*shorts++ = o->letter;
		if (o->kind != CMD_FLAG)
			*shorts++ = ':';
	}
	longs[i++] = (struct option){ .name = "help", .val = 'h' };
	longs[i] = (struct option){ .name = NULL };
	*shorts = '\0';
}

static const struct cmd_option *
find_option(const struct cmd_spec *spec, int val)
{
	if (val >= LONG_BASE)
		return (&spec->options[val - LONG_BASE]);
	for (size_t i = 0; i < spec->noptions; i++)
		if (spec->options[i].letter == val)
			return (&spec->options[i]);
	return (NULL);
}

static int
bad_option(const struct cmd_spec *spec, int val, char **argv)
{
	const char *what = val == ':' ? "needs a value" : "is no option";

	if (optopt > 0 && optopt < LONG_BASE && optopt != 'h')
		return (cmd_fail(CMD_USAGE, spec->name,
		    "-%c %s (see firn %s --help)", optopt, what, spec->name));
	/* A flag that was given a value comes here too. */
	if (val != ':' && optopt != 0)
		what = "takes no value";
	return (cmd_fail(CMD_USAGE, spec->name, "%s %s (see firn %s --help)",
	    argv[optind - 1], what, spec->name));
}

int
cmd_parse(
    const struct cmd_spec *spec, int argc, char **argv, void *out, int *first)
{
	struct option longs[OPTIONS_MAX + 2];
	char shorts[2 * OPTIONS_MAX + 3];
	int val, rc;

	if (spec->noptions > OPTIONS_MAX)
		return (CMD_FAILED);
	make_tables(spec, longs, shorts);
	opterr = 0;
	optind = 1;
	while ((val = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		const struct cmd_option *o;

		if (val == '?' || val == ':')
			return (bad_option(spec, val, argv));
		if (val == 'h') {
			print_help(spec);
			return (cmd_end(spec->name, CMD_DONE));
		}
		o = find_option(spec, val);
		rc = o == NULL ? CMD_FAILED : set_option(spec, o, optarg, out);
		if (rc != CMD_GO)
			return (rc);
	}
	if (spec->max_arguments >= 0 && argc - optind > spec->max_arguments)
		return (cmd_fail(CMD_USAGE, spec->name,
		    "\"%s\": one argument too many (see firn %s --help)",
		    argv[optind + spec->max_arguments], spec->name));
	*first = optind;
	return (CMD_GO);
}

/* ---- subcommands ---- */

static void
print_entries(const char *program, const char *text,
    const struct cmd_entry *entries, size_t n)
{
	printf("usage: %s COMMAND [OPTION...]\n\n%s\n\ncommands:\n", program,
	    text);
	for (size_t i = 0; i < n; i++)
		printf("  %-8s %s\n", entries[i].name, entries[i].summary);
	printf("\n%s COMMAND --help shows a command's options and exit "
	       "statuses.\n",
	    program);
}

/* "help next" is "next --help". */
static int
help_of(const char *program, const char *text, const struct cmd_entry *entries,
    size_t n, char *command)
{
	char help[] = "--help";
	char *argv[] = { help, command, help, NULL };

	return (cmd_dispatch(program, text, entries, n, 3, argv));
}

int
cmd_dispatch(const char *program, const char *text,
    const struct cmd_entry *entries, size_t n, int argc, char **argv)
{
	const char *name = program + strcspn(program, " ");

	name += *name == ' ' ? 1 : 0;
	if (argc < 2)
		return (cmd_fail(CMD_USAGE, name,
		    "which command? (see %s --help)", program));
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0) {
		if (argc > 2)
			return (help_of(program, text, entries, n, argv[2]));
		print_entries(program, text, entries, n);
		return (cmd_end(name, CMD_DONE));
	}
	for (size_t i = 0; i < n; i++)
		if (strcmp(argv[1], entries[i].name) == 0)
			return (entries[i].run(argc - 1, argv + 1));
	return (cmd_fail(CMD_USAGE, name,
	    "\"%s\" is no command (see %s --help)", argv[1], program));
}
