/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_conf - the configuration: which source wins, every limit, what is
 * refused with which line, and that manual and sample say what the table says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "conf_http.h"
#include "conf_key.h"
#include "dice.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ARGS_MAX 10
#define ROUNDS 5000

static char directory[] = "/tmp/firn-test-conf-XXXXXX";
static char path[64]; /* of the file that --config names */

static int
set_up(void **state)
{
	(void)state;
	(void)unsetenv("FIRN_ZK");
	(void)unsetenv("FIRN_REALM");
	(void)unsetenv("FIRN_SOCKET");
	if (mkdtemp(directory) == NULL)
		return (-1);
	(void)snprintf(path, sizeof(path), "%s/firnd.json", directory);
	return (0);
}

static int
tear_down(void **state)
{
	(void)state;
	(void)unlink(path);
	return (rmdir(directory));
}

static void
write_file(const char *text, size_t length)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, length, f), length);
	assert_int_equal(fclose(f), 0);
}

/* Loads with these arguments, split at blanks; "FILE" stands for the file. */
static int
load(struct conf *c, const char *arguments, enum conf_action *action,
    struct doc_error *err)
{
	char text[500], *argv[ARGS_MAX + 1] = { NULL };
	int argc = 0;

	(void)snprintf(text, sizeof(text), "firnd %s", arguments);
	for (char *p = strtok(text, " "); p != NULL; p = strtok(NULL, " ")) {
		assert_true(argc < ARGS_MAX);
		argv[argc++] = strcmp(p, "FILE") == 0 ? path : p;
	}
	memset(err, 0, sizeof(*err));
	return (conf_load(c, argc, argv, action, err));
}

static int
load_text(struct conf *c, const char *text, struct doc_error *err)
{
	enum conf_action action;

	write_file(text, strlen(text));
	return (load(c, "--config FILE", &action, err));
}

static const struct conf_key *
key(const char *name)
{
	for (size_t i = 0; i < conf_nkeys; i++)
		if (strcmp(conf_keys[i].name, name) == 0)
			return (&conf_keys[i]);
	fail_msg("no key %s", name);
	return (NULL);
}

static enum conf_source
source(const struct conf *c, const char *name)
{
	return ((enum conf_source)c->source[key(name) - conf_keys]);
}

/* The line without the file's path, which is another at each run. */
static const char *
without_path(const struct doc_error *err)
{
	size_t n = strlen(path);

	assert_memory_equal(err->text, path, n);
	assert_memory_equal(err->text + n, ": ", 2);
	return (err->text + n + 2);
}

/* ---- sources ------------------------------------------------------------------- */

static void
test_defaults(void **state)
{
	enum conf_action action;
	struct doc_error err;
	struct conf c;

	(void)state;
	write_file("{}", 2);
	assert_int_equal(load(&c, "--config FILE", &action, &err), 0);
	assert_int_equal(action, CONF_RUN);
	assert_string_equal(c.path, path);
	assert_string_equal(c.zookeeper, "127.0.0.1:2181");
	assert_string_equal(c.realm, "default");
	assert_string_equal(c.socket, "/run/firn/firn.sock");
	assert_string_equal(c.socket_mode, "0660");
	assert_string_equal(c.socket_group, "");
	assert_string_equal(c.log_level, "info");
	assert_string_equal(c.layout, "");
	assert_string_equal(c.epoch, "");
	assert_string_equal(c.sequence_start, "zero");
	assert_string_equal(c.on_step, "wait");
	assert_int_equal(c.step_tolerance_ms, 5);
	assert_int_equal(c.max_lead_ms, 5);
	assert_int_equal(c.logical_lead_ms, 0);
	assert_int_equal(c.session_ms, 10000);
	assert_int_equal(c.renew_ms, 3000);
	assert_int_equal(c.reserve_ms, 60000);
	assert_int_equal(c.claim_wait_ms, 2000);
	assert_int_equal(c.op_deadline_ms, 2500);
	assert_int_equal(c.ttl_ms, 1000);
	assert_int_equal(c.skew_warn_ms, 500);
	assert_int_equal(c.skew_refuse_ms, 10000);
	assert_int_equal(c.max_clients, 10000);
	assert_int_equal(c.drain_ms, 2000);
	assert_string_equal(c.allow_uids, "");
	assert_string_equal(c.allow_gids, "");
	assert_int_equal(c.uids.n, 0);
	assert_int_equal(c.gids.n, 0);
	assert_int_equal(c.max_ids_per_second, 0);
	for (size_t i = 0; i < conf_nkeys; i++)
		assert_int_equal(c.source[i], CONF_DEFAULT);
}

static void
test_precedence(void **state)
{
	static const char text[] = "{ // comments\n\"realm\": \"file\", /* are "
				   "*/ \"socket\": \"/f\",\n"
				   "\"zookeeper\": \"f:1\", \"ttl_ms\": 7 }";
	enum conf_action action;
	struct doc_error err;
	struct conf c;

	(void)state;
	write_file(text, sizeof(text) - 1);
	assert_int_equal(setenv("FIRN_REALM", "env", 1), 0);
	assert_int_equal(setenv("FIRN_ZK", "e:1", 1), 0);
	assert_int_equal(setenv("FIRN_SOCKET", "", 1), 0);
	assert_int_equal(
	    load(&c, "--zk=flag:1 --config=FILE", &action, &err), 78);
	assert_string_equal(err.text, "FILE: No such file or directory");
	assert_int_equal(
	    load(&c, "--zk=flag:1 --config FILE", &action, &err), 0);
	assert_string_equal(c.zookeeper, "flag:1");
	assert_int_equal(source(&c, "zookeeper"), CONF_FLAG);
	assert_string_equal(c.realm, "env");
	assert_int_equal(source(&c, "realm"), CONF_ENVIRONMENT);
	/* A variable that is empty says nothing. */
	assert_string_equal(c.socket, "/f");
	assert_int_equal(source(&c, "socket"), CONF_FILE);
	assert_int_equal(c.ttl_ms, 7);
	assert_int_equal(source(&c, "drain_ms"), CONF_DEFAULT);
	/* Of two flags the last; an empty one takes the demand back. */
	assert_int_equal(load(&c,
			     "--config FILE --realm a --realm b "
			     "--layout=",
			     &action, &err),
	    0);
	assert_string_equal(c.realm, "b");
	assert_string_equal(c.layout, "");
	assert_int_equal(source(&c, "layout"), CONF_FLAG);
	/* What is wrong in the environment is told by the variable's name. */
	assert_int_equal(setenv("FIRN_REALM", "a/b", 1), 0);
	assert_int_equal(load(&c, "--config FILE", &action, &err), 78);
	assert_string_equal(err.text, "FIRN_REALM: must be 1 to 63 of A-Z a-z "
				      "0-9 . _ -, not \"a/b\"");
	(void)unsetenv("FIRN_REALM");
	(void)unsetenv("FIRN_ZK");
	(void)unsetenv("FIRN_SOCKET");
}

/* SIGHUP reads again with the same arguments and finds what has changed. */
static void
test_again(void **state)
{
	char *argv[] = { (char[]){ "firnd" }, (char[]){ "--config" }, path,
		(char[]){ "--realm=x" }, NULL };
	enum conf_action action;
	struct doc_error err;
	struct conf c;

	(void)state;
	write_file("{\"ttl_ms\":7}", 12);
	assert_int_equal(conf_load(&c, 4, argv, &action, &err), 0);
	assert_int_equal(c.ttl_ms, 7);
	write_file("{\"ttl_ms\":8,}", 13);
	assert_int_equal(conf_load(&c, 4, argv, &action, &err), 78);
	write_file("{\"ttl_ms\":9}", 12);
	assert_int_equal(conf_load(&c, 4, argv, &action, &err), 0);
	assert_int_equal(c.ttl_ms, 9);
	assert_string_equal(c.realm, "x");
	assert_string_equal(argv[3], "--realm=x");
}

/* ---- the command line ---------------------------------------------------------- */

struct usage_case {
	const char *arguments;
	int rc;
	enum conf_action action;
	const char *fault; /* NULL: none */
};

static void
test_usage(void **state)
{
	static const struct usage_case cases[] = {
		{ "--version", 0, CONF_VERSION, NULL },
		{ "--help", 0, CONF_HELP, NULL },
		{ "--config /nowhere --help", 0, CONF_HELP, NULL },
		{ "--config FILE --check-config", 0, CONF_CHECK, NULL },
		{ "--chek-config", 64, CONF_RUN,
		    "there is no flag \"--chek-config\" (firnd --help)" },
		{ "--static-worker 5 --first-use", 0, CONF_RUN, NULL },
		{ "--ordinal ids-7", 0, CONF_RUN, NULL },
		{ "--first-use", 78, CONF_RUN,
		    "--first-use: is for --static-worker and --ordinal" },
		{ "--worker-source static", 64, CONF_RUN,
		    "there is no flag \"--worker-source\" (firnd --help)" },
		{ "-v", 64, CONF_RUN,
		    "there is no flag \"-v\" (firnd --help)" },
		{ "--rea x", 64, CONF_RUN,
		    "there is no flag \"--rea\" (firnd --help)" },
		{ "--help=yes", 64, CONF_RUN,
		    "there is no flag \"--help=yes\" (firnd --help)" },
		{ "start", 64, CONF_RUN,
		    "firnd takes no argument \"start\" (firnd --help)" },
		{ "--", 64, CONF_RUN,
		    "there is no flag \"--\" (firnd --help)" },
		{ "--zk", 64, CONF_RUN, "--zk wants an argument" },
		{ "--config", 64, CONF_RUN, "--config wants an argument" },
		{ "--check-config --config", 64, CONF_CHECK,
		    "--config wants an argument" },
		{ "--config FILE --log-level loud", 78, CONF_RUN,
		    "--log-level: must be debug, info, warn or error, not "
		    "\"loud\"" },
		{ "--config FILE --layout 41/10/14", 78, CONF_RUN,
		    "--layout: must be a preset such as firn, or bits such as "
		    "41/10/12, not \"41/10/14\"" },
		{ "--config FILE --zk=", 78, CONF_RUN,
		    "--zk: must be HOST:PORT[,HOST:PORT...][/CHROOT], not "
		    "\"\"" },
		{ "--config /nowhere/firnd.json", 78, CONF_RUN,
		    "/nowhere/firnd.json: No such file or directory" },
		{ "--config /", 78, CONF_RUN, "/: Is a directory" },
	};

	(void)state;
	write_file("{}", 2);
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct usage_case *u = &cases[i];
		enum conf_action action = CONF_HELP;
		struct doc_error err;
		struct conf c;
		int rc = load(&c, u->arguments, &action, &err);

		if (rc != u->rc || action != u->action ||
		    strcmp(err.text, u->fault != NULL ? u->fault : "") != 0)
			fail_msg("%s: %d \"%s\"", u->arguments, rc, err.text);
	}
}

/* The default file may be missing, but not unreadable. */
static void
test_optional(void **state)
{
	enum conf_action action;
	struct doc_error err;
	char below[80];
	struct conf c;

	(void)state;
	(void)unlink(path);
	memset(&c, 0, sizeof(c));
	assert_int_equal(conf_read_file(&c, path, true, &err), 0);
	assert_string_equal(c.path, "");
	assert_int_equal(conf_read_file(&c, path, false, &err), 78);
	/* a file where a directory should be is no missing file */
	write_file("{}", 2);
	(void)snprintf(below, sizeof(below), "%s/x", path);
	assert_int_equal(conf_read_file(&c, below, true, &err), 78);
	(void)unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(conf_read_file(&c, path, true, &err), 78);
	assert_int_equal(rmdir(path), 0);
	/* nor is a pipe, with nobody to write to it: it is not waited for */
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(conf_read_file(&c, path, true, &err), 78);
	assert_string_equal(without_path(&err), "not a regular file");
	(void)unlink(path);
	assert_int_equal(conf_read_file(&c, "/dev/zero", true, &err), 78);
	if (access(CONF_PATH_DEFAULT, F_OK) != 0) {
		assert_int_equal(load(&c, "", &action, &err), 0);
		assert_string_equal(c.path, "");
	}
}

/* ---- the file ------------------------------------------------------------------ */

struct file_case {
	const char *text;
	const char *fault; /* NULL: it is good */
	const char *why;
};

static const struct file_case file_cases[] = {
	{ "{}", NULL, "nothing" },
	{ "// all\n{\"epoch\": 1735689600000}", NULL,
	    "an epoch is a number as well" },
	{ "{\"epoch\": \"2025-01-01T00:00:00Z\"}", NULL, "or an instant" },
	{ "{\"layout\": \"41/5+5/12\"}", NULL, "bits" },
	{ "{\"layout\": \"twitter\"}", NULL, "a preset" },
	{ "{\"socket_mode\": \"600\"}", NULL, "three digits" },
	{ "{\"socket\": \"firn.sock\"}", NULL, "a relative path" },
	{ "{\"renew_ms\": 3e3}", NULL, "whole all the same" },
	{ "", "it is empty", "empty" },
	{ "// nothing\n", "it is empty", "a comment alone" },
	{ "[]", "this is no JSON object", "a list" },
	{ "{\n  \"realm\": \"a\"\n  \"socket\": \"b\"\n}",
	    "line 3, column 3: a comma or } should stand here", "no comma" },
	{ "{ /* a\n b */ \"realm\": a }",
	    "line 2, column 16: a value should stand here",
	    "comments move nothing" },
	{ "{\n/* a", "line 2, column 1: this comment has no end", "no end" },
	{ "{\"relm\": \"a\"}", "line 1, column 2: relm: there is no such key",
	    "unknown" },
	{ "{\"Realm\": \"a\"}", "line 1, column 2: Realm: there is no such key",
	    "case counts" },
	{ "{\"realm\": \"a\", \"realm\": \"b\"}",
	    "realm: this key stands there twice", "doubled" },
	{ "{\"realm\": 7}", "line 1, column 2: realm: must be a string",
	    "a number" },
	{ "{\"realm\": null}", "line 1, column 2: realm: must be a string",
	    "null" },
	{ "{\"realm\": {\"name\": \"a\"}}",
	    "line 1, column 2: realm: must be a string", "an object" },
	{ "{\"realm\": \"\"}",
	    "line 1, column 2: realm: must be 1 to 63 of A-Z a-z 0-9 . _ -, "
	    "not \"\"",
	    "empty" },
#ifdef HAVE_ZOOKEEPER_INIT_SSL
#define TLS_TAKEN NULL
#define TLS_BAD                                                           \
	"line 1, column 2: zookeeper_tls: must be CA,CERT,KEY: absolute " \
	"paths of three files, and no more"
#else
#define TLS_BAD                                                               \
	"line 1, column 2: zookeeper_tls: this firnd's ZooKeeper client has " \
	"no TLS: use stunnel, see TLS in firnd(8)"
#define TLS_TAKEN TLS_BAD
#endif
	{ "{\"zookeeper_tls\": \"/ca,/cert,/key\"}", TLS_TAKEN, "TLS" },
	{ "{\"zookeeper_tls\": \"/ca,/cert,key\"}", TLS_BAD, "no path" },
	{ "{\"zookeeper_tls\": \"/ca,/cert\"}", TLS_BAD, "no key" },
	{ "{\"zookeeper_tls\": \"/ca,/cert,/key,secret\"}", TLS_BAD,
	    "a password, which is not shown" },
	{ "{\"realm\": \"..\"}",
	    "line 1, column 2: realm: must be a name, not \"..\"",
	    "the parent" },
	{ "{\"renew_ms\": \"3000\"}",
	    "line 1, column 2: renew_ms: must be a whole number from 100 to "
	    "60000 ms, without "
	    "quotes",
	    "a string" },
	{ "{\"renew_ms\": 1.5}",
	    "line 1, column 2: renew_ms: must be a whole number from 100 to "
	    "60000 ms, without "
	    "quotes",
	    "a fraction" },
	{ "{\"renew_ms\": 1e400}",
	    "line 1, column 2: renew_ms: must be a whole number from 100 to "
	    "60000 ms, without "
	    "quotes",
	    "infinity" },
	{ "{\"renew_ms\": 9223372036854775808}",
	    "line 1, column 2: renew_ms: must be a whole number from 100 to "
	    "60000 ms, without "
	    "quotes",
	    "2^63" },
	{ "{\"renew_ms\": true}",
	    "line 1, column 2: renew_ms: must be a whole number from 100 to "
	    "60000 ms, without "
	    "quotes",
	    "a word" },
	{ "{\"renew_ms\": -1}",
	    "line 1, column 2: renew_ms: must be a whole number from 100 to "
	    "60000 ms, not -1",
	    "negative" },
	{ "{\"max_clients\": 0}",
	    "line 1, column 2: max_clients: must be a whole number from 1 to "
	    "1000000, not 0",
	    "no unit" },
	{ "{\"epoch\": \"2025-01-01T00:00:00\"}",
	    "line 1, column 2: epoch: must end with its time zone, as "
	    "2025-01-01T00:00:00Z does, not \"2025-01-01T00:00:00\"",
	    "local time" },
	{ "{\"epoch\": -1}",
	    "line 1, column 2: epoch: must be Unix milliseconds or an instant "
	    "such as "
	    "2025-01-01T00:00:00Z, from 1970 to 9999, not \"-1\"",
	    "before 1970" },
	{ "{\"epoch\": \"2025-02-29T00:00:00Z\"}",
	    "line 1, column 2: epoch: must be Unix milliseconds or an instant "
	    "such as "
	    "2025-01-01T00:00:00Z, from 1970 to 9999, not "
	    "\"2025-02-29T00:00:00Z\"",
	    "no such day" },
	{ "{\"layout\": \"41/10/0\"}",
	    "line 1, column 2: layout: must be a preset such as firn, or bits "
	    "such as "
	    "41/10/12, not "
	    "\"41/10/0\"",
	    "no sequence" },
	{ "{\"socket_mode\": \"0888\"}",
	    "line 1, column 2: socket_mode: must be octal with read and write "
	    "for the owner, "
	    "as 0660, not \"0888\"",
	    "not octal" },
	{ "{\"socket_mode\": \"0440\"}",
	    "line 1, column 2: socket_mode: must be octal with read and write "
	    "for the owner, "
	    "as 0660, not \"0440\"",
	    "nobody could connect" },
	{ "{\"socket_mode\": 0660}",
	    "line 1, column 18: a comma or } should stand here", "not JSON" },
	{ "{\"socket_mode\": \"04660\"}",
	    "line 1, column 2: socket_mode: must be octal with read and write "
	    "for the owner, "
	    "as 0660, not \"04660\"",
	    "set-user-ID" },
	{ "{\"socket_group\": \"a b\"}",
	    "line 1, column 2: socket_group: must be the name or number of a "
	    "group, not \"a b\"",
	    "a blank" },
	{ "{\"socket\": \"\"}",
	    "line 1, column 2: socket: must be the path of a socket, not \"\"",
	    "none" },
	{ "{\"socket\": \"/a\\nb\"}",
	    "line 1, column 2: socket: must not hold control characters",
	    "a line break" },
	{ "{\"sequence_start\": \"one\"}",
	    "line 1, column 2: sequence_start: must be zero or random, not "
	    "\"one\"",
	    "neither" },
	{ "{\"on_step\": \"\"}",
	    "line 1, column 2: on_step: must be wait, fail or logical, not "
	    "\"\"",
	    "empty" },
	{ "{\"op_deadline_ms\": 3000}",
	    "op_deadline_ms: must be below renew_ms (3000), "
	    "not 3000",
	    "a renewal must end before the next" },
	{ "{\"reserve_ms\": 8999}",
	    "reserve_ms: must be at least three times "
	    "renew_ms (3000), not "
	    "8999",
	    "two lost renewals would spend it" },
	{ "{\"skew_warn_ms\": 10001}",
	    "skew_warn_ms: must be at most skew_refuse_ms "
	    "(10000), not 10001",
	    "refused before warned" },
	{ "{\n  // who\n  /* \"ttl_ms\": 1 */ \"ttl_ms\": 0\n}",
	    "line 3, column 21: ttl_ms: must be a whole number from 1 to "
	    "60000 ms, not 0",
	    "comments move nothing here either" },
	{ "{\"realm\": \"ttl_ms\", \"\\\"\": 1}",
	    "line 1, column 1: \": there is no such key", "quotes" },
	{ "{\"realm\": \"ttl_ms\",\n\"t\\u0074l_ms\": 0}",
	    "line 1, column 1: ttl_ms: must be a whole number from 1 to 60000 "
	    "ms, not 0",
	    "a key in other letters has the start for its place" },
	{ "{\"alert_command\": []}", NULL, "no command" },
	{ "{\"alert_command\": [\"/a\", \"b,c\", \"d\"]}", NULL, "a command" },
	{ "{\"alert_command\": \"/a  b c \"}", NULL, "as text" },
	{ "{\"alert_command\": [\"/a b\", \"c\"]}",
	    "line 1, column 2: alert_command: must be a string, or a list of "
	    "words without blanks",
	    "a word with a blank" },
	{ "{\"alert_command\": \"page\"}",
	    "line 1, column 2: alert_command: must be the absolute path of a "
	    "program and at most 15 arguments, not \"page\"",
	    "no path" },
	{ "{\"alert_command\": \"/a 1 2 3 4 5 6 7 8 9 a b c d e f\"}", NULL,
	    "15 arguments" },
	{ "{\"alert_command\": \"/a 1 2 3 4 5 6 7 8 9 a b c d e f g\"}",
	    "line 1, column 2: alert_command: must be the absolute path of a "
	    "program and at most 15 arguments, not "
	    "\"/a 1 2 3 4 5 6 7 8 9 a b c d e f g\"",
	    "16 arguments" },
	{ "{\"allow_uids\": []}", NULL, "nobody in particular" },
	{ "{\"allow_uids\": [1000, \"root\", 0], \"allow_gids\": \"root, 7\"}",
	    NULL, "numbers and names, as a list and as text" },
	{ "{\"allow_uids\": 1000}",
	    "line 1, column 2: allow_uids: must be a list of numbers and "
	    "names, at most 1023 bytes in all",
	    "a number" },
	{ "{\"allow_uids\": [1000.5]}",
	    "line 1, column 2: allow_uids: must be a list of numbers and "
	    "names, at most 1023 bytes in all",
	    "a fraction" },
	{ "{\"allow_gids\": [[1]]}",
	    "line 1, column 2: allow_gids: must be a list of numbers and "
	    "names, at most 1023 bytes in all",
	    "a list in a list" },
	{ "{\"allow_gids\": [\"\"]}",
	    "line 1, column 2: allow_gids: must be a list of numbers and "
	    "names, at most 1023 bytes in all",
	    "a name that is empty" },
	{ "{\"allow_uids\": [-1]}",
	    "line 1, column 2: allow_uids: must be numbers or names of users "
	    "(there is no ID \"-1\"), not \"-1\"",
	    "negative" },
	{ "{\"allow_uids\": [4294967295]}",
	    "line 1, column 2: allow_uids: must be numbers or names of users "
	    "(there is no ID \"4294967295\"), not \"4294967295\"",
	    "(uid_t)-1" },
	{ "{\"allow_uids\": \"0,no such\"}",
	    "line 1, column 2: allow_uids: must be numbers or names of users "
	    "(there is no user \"no such\"), not \"0,no such\"",
	    "an unknown user" },
	{ "{\"allow_gids\": [\"no such\"]}",
	    "line 1, column 2: allow_gids: must be numbers or names of groups "
	    "(there is no group \"no such\"), not \"no such\"",
	    "an unknown group" },
	{ "{\"allow_gids\": \"0,,1\"}",
	    "line 1, column 2: allow_gids: must be numbers or names of groups "
	    "(an empty entry is none: \"\"), not \"0,,1\"",
	    "a comma too many" },
	{ "{\"allow_gids\": \"0,\"}",
	    "line 1, column 2: allow_gids: must be numbers or names of groups "
	    "(an empty entry is none: \"\"), not \"0,\"",
	    "at the end as well" },
	{ "{\"max_ids_per_second\": -1}",
	    "line 1, column 2: max_ids_per_second: must be a whole number from "
	    "0 to 1000000000, not -1",
	    "a rate" },
};

static void
test_file(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(file_cases); i++) {
		const struct file_case *f = &file_cases[i];
		struct doc_error err;
		struct conf c;
		int rc = load_text(&c, f->text, &err);
		const char *fault = "";

		if (rc != 0)
			/* what concerns two keys is told without the file */
			fault = strncmp(err.text, path, strlen(path)) == 0
				    ? without_path(&err)
				    : err.text;
		if (rc != (f->fault == NULL ? 0 : 78) ||
		    strcmp(fault, f->fault != NULL ? f->fault : "") != 0)
			fail_msg("%s: %d \"%s\"", f->why, rc, err.text);
	}
}

/* Ten megabytes, bytes that are no text, a long path: one line each. */
static void
test_file_extremes(void **state)
{
	char *big = malloc(10 << 20), long_path[1000];
	struct doc_error err;
	struct conf c;

	(void)state;
	assert_non_null(big);
	memset(big, ' ', 10 << 20);
	write_file(big, 10 << 20);
	assert_int_equal(conf_read_file(&c, path, false, &err), 78);
	assert_string_equal(
	    without_path(&err), "65537 bytes are too many: at most 65536");
	memset(big, '{', DOC_SIZE_MAX);
	write_file(big, DOC_SIZE_MAX);
	assert_int_equal(conf_read_file(&c, path, false, &err), 78);
	memset(big, '/', DOC_SIZE_MAX);
	write_file(big, DOC_SIZE_MAX);
	assert_int_equal(conf_read_file(&c, path, false, &err), 78);
	assert_string_equal(without_path(&err), "it is empty");
	write_file("{\"realm\":\"a\0b\"}", 15);
	assert_int_equal(conf_read_file(&c, path, false, &err), 78);
	assert_string_equal(without_path(&err), "line 1, column 12: a string "
						"must not hold a control "
						"character");
	write_file("{\"realm\":\"\xff\"}", 13);
	assert_int_equal(conf_read_file(&c, path, false, &err), 78);
	assert_string_equal(
	    without_path(&err), "line 1, column 11: this is not UTF-8");
	memset(long_path, 'x', sizeof(long_path));
	long_path[sizeof(long_path) - 1] = '\0';
	assert_int_equal(conf_read_file(&c, long_path, true, &err), 78);
	assert_non_null(strstr(err.text, "this path is longer than 255 bytes"));
	free(big);
}

/* ---- lists of users and groups ------------------------------------------------- */

static void
test_lists(void **state)
{
	char text[2000] = "{\"allow_uids\": [", *p = text + strlen(text);
	struct doc_error err;
	struct conf c;

	(void)state;
	assert_int_equal(load_text(&c,
			     "{\"allow_uids\": [1000, \"root\", 0, 4294967294],"
			     " \"allow_gids\": \" root , 7,7\"}",
			     &err),
	    0);
	assert_string_equal(c.allow_uids, "1000,root,0,4294967294");
	assert_int_equal(c.uids.n, 3); /* root is 0, once */
	assert_true(conf_ids_hold(&c.uids, 1000));
	assert_true(conf_ids_hold(&c.uids, 0));
	assert_true(conf_ids_hold(&c.uids, 4294967294));
	assert_false(conf_ids_hold(&c.uids, 1001));
	assert_int_equal(c.gids.n, 2);
	assert_true(conf_ids_hold(&c.gids, 0));
	assert_true(conf_ids_hold(&c.gids, 7));
	/* As many as there is room for, and one more. */
	for (int i = 0; i < CONF_IDS_MAX; i++)
		p += sprintf(p, "%s%d", i > 0 ? "," : "", 100000 + i);
	strcpy(p, "]}");
	assert_int_equal(load_text(&c, text, &err), 0);
	assert_int_equal(c.uids.n, CONF_IDS_MAX);
	strcpy(p, ",7]}");
	assert_int_equal(load_text(&c, text, &err), 78);
	assert_non_null(strstr(err.text, "there is no room for \"7\""));
	/* A text that does not fit is never cut. */
	p = text + sprintf(text, "{\"allow_uids\": [");
	for (int i = 0; i < 150; i++)
		p += sprintf(p, "%s1000000", i > 0 ? "," : "");
	strcpy(p, "]}");
	assert_int_equal(load_text(&c, text, &err), 78);
	assert_non_null(strstr(err.text, "at most 1023 bytes in all"));
}

/* ---- a configuration in use, and one read anew --------------------------------- */

static char told[2000];

static void
on_changed(void *arg, const struct conf_change *ch)
{
	size_t n = strlen(told);

	assert_ptr_equal(arg, told);
	(void)snprintf(told + n, sizeof(told) - n, "%s %s %s->%s;", ch->name,
	    ch->taken ? "taken" : "left", ch->from, ch->to);
}

static int
merge_text(struct conf *c, const char *text, struct doc_error *err)
{
	struct conf fresh;
	int rc = load_text(&fresh, text, err);

	told[0] = '\0';
	return (rc != 0 ? rc : conf_merge(c, &fresh, on_changed, told, err));
}

static void
test_merge(void **state)
{
	struct conf c, before;
	struct doc_error err;

	(void)state;
	assert_int_equal(load_text(&c, "{\"realm\": \"a\"}", &err), 0);
	assert_int_equal(merge_text(&c, "{\"realm\": \"a\"}", &err), 0);
	assert_string_equal(told, "");
	assert_int_equal(
	    merge_text(&c,
		"{\"realm\": \"b\", \"ttl_ms\": 7, \"renew_ms\": 4000,"
		" \"allow_uids\": [0, 1], \"log_level\": \"debug\"}",
		&err),
	    0);
	assert_string_equal(told,
	    "realm left \"a\"->\"b\";log_level taken \"info\"->\"debug\";"
	    "renew_ms left 3000->4000;ttl_ms taken 1000->7;"
	    "allow_uids taken \"\"->\"0,1\";");
	assert_string_equal(c.realm, "a");
	assert_int_equal(c.renew_ms, 3000);
	assert_int_equal(source(&c, "renew_ms"), CONF_DEFAULT);
	assert_int_equal(c.ttl_ms, 7);
	assert_int_equal(source(&c, "ttl_ms"), CONF_FILE);
	assert_string_equal(c.log_level, "debug");
	assert_int_equal(c.uids.n, 2);
	/* Back to the defaults by leaving them out. */
	assert_int_equal(merge_text(&c, "{\"realm\": \"a\"}", &err), 0);
	assert_string_equal(told,
	    "log_level taken \"debug\"->\"info\";ttl_ms taken 7->1000;"
	    "allow_uids taken \"0,1\"->\"\";");
	assert_int_equal(c.uids.n, 0);
	/* Good after a restart; not beside a renew_ms that stays. */
	before = c;
	assert_int_equal(merge_text(&c,
			     "{\"renew_ms\": 1000, \"op_deadline_ms\": 500,"
			     " \"reserve_ms\": 3000, \"ttl_ms\": 9}",
			     &err),
	    78);
	assert_string_equal(err.text,
	    "reserve_ms: must be at least three times renew_ms (3000), not "
	    "3000");
	assert_string_equal(told, "");
	assert_memory_equal(&c, &before, sizeof(c));
}

/* Each key by itself: taken or left as its row of the table says. */
static void
test_merge_each(void **state)
{
	struct conf c, base, fresh;
	struct doc_error err;

	(void)state;
	assert_int_equal(load_text(&base, "{}", &err), 0);
	for (size_t i = 0; i < conf_nkeys; i++) {
		const struct conf_key *k = &conf_keys[i];
		const char *other =
		    strcmp(k->name, "sequence_start") == 0 ? "random"
		    : strcmp(k->name, "log_level") == 0    ? "error"
							   : "7";

		c = fresh = base;
		told[0] = '\0';
		if (k->size == 0)
			*(int64_t *)(void *)((char *)&fresh + k->offset) += 1;
		else
			strcpy((char *)&fresh + k->offset, other);
		assert_int_equal(
		    conf_merge(&c, &fresh, on_changed, told, &err), 0);
		assert_memory_equal(told, k->name, strlen(k->name));
		assert_ptr_equal(strchr(told, ';'), told + strlen(told) - 1);
		assert_int_equal(strstr(told, " taken ") != NULL, k->reload);
		if (k->size == 0)
			assert_true(conf_number(&c, k) ==
				    conf_number(k->reload ? &fresh : &base, k));
		else
			assert_string_equal(conf_text(&c, k),
			    conf_text(k->reload ? &fresh : &base, k));
	}
}

/* A long value is shown in part, in a line that is still one. */
static void
test_merge_shows_in_part(void **state)
{
	char text[600], *p = text;
	struct doc_error err;
	struct conf c;

	(void)state;
	assert_int_equal(load_text(&c, "{}", &err), 0);
	p += sprintf(p, "{\"zookeeper\": \"");
	for (int i = 0; i < 40; i++)
		p += sprintf(p, "%szk%d:2181", i > 0 ? "," : "", i);
	strcpy(p, "\"}");
	assert_int_equal(merge_text(&c, text, &err), 0);
	assert_true(strlen(told) < 2 * CONF_SHOWN_MAX + 40);
	assert_non_null(strstr(told, "...\";"));
}

/* ---- every limit --------------------------------------------------------------- */

static void
check_number(const struct conf_key *k, int64_t v, bool good)
{
	struct conf c = { 0 };
	struct doc_error err;
	char text[24];

	(void)snprintf(text, sizeof(text), "%lld", (long long)v);
	assert_int_equal(
	    conf_set(&c, k, text, CONF_FLAG, "it", &err), good ? 0 : 78);
	assert_true(conf_number(&c, k) == (good ? v : 0));
	assert_int_equal(c.source[k - conf_keys], good ? CONF_FLAG : 0);
}

static void
check_text_room(const struct conf_key *k)
{
	char text[CONF_HOSTS_MAX + 1];
	struct conf c = { 0 };
	struct doc_error err;

	memset(text, 'x', sizeof(text));
	text[k->size] = '\0';
	assert_int_equal(conf_set(&c, k, text, CONF_FLAG, "it", &err), 78);
	assert_string_equal(conf_text(&c, k), "");
	text[k->size - 1] = '\0';
	if (k->check(text) == NULL) {
		assert_int_equal(
		    conf_set(&c, k, text, CONF_FLAG, "it", &err), 0);
		assert_string_equal(conf_text(&c, k), text);
	}
}

/* Where HTTP may be served, and what is no such place. */
static void
test_http(void **state)
{
	static const struct {
		const char *text;
		enum conf_http_kind kind;
		int family;
	} good[] = {
		{ "", CONF_HTTP_OFF, 0 },
		{ "127.0.0.1:9464", CONF_HTTP_INET, AF_INET },
		{ "0.0.0.0:1", CONF_HTTP_INET, AF_INET },
		{ "10.1.2.3:65535", CONF_HTTP_INET, AF_INET },
		{ "[::]:9464", CONF_HTTP_INET, AF_INET6 },
		{ "[2001:db8::7]:80", CONF_HTTP_INET, AF_INET6 },
		{ "unix:/run/firn/http.sock", CONF_HTTP_UNIX, 0 },
		{ "unix:http:80", CONF_HTTP_UNIX, 0 },
	};
	static const char *const bad[] = { "9464", ":9464", "127.0.0.1",
		"127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:-1",
		"127.0.0.1:80x", "127.0.0.1: 80", "127.0.0.1:80:80", "::1:80",
		"[::1]", "[::1]80", "[::1:80", "[127.0.0.1]:80", "[]:80",
		"localhost:80", "*:80", "1:80", "1.2.3:80",
		"http://127.0.0.1:80", "unix:", "/run/x", "256.1.1.1:80",
		"[aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaa"
		"aaaaaa]:80",
		"unix:/"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" };
	struct conf_http where;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(conf_http_parse(good[i].text, &where));
		assert_int_equal(where.kind, good[i].kind);
		if (where.kind == CONF_HTTP_INET)
			assert_int_equal(where.addr.ss_family, good[i].family);
		if (where.kind == CONF_HTTP_UNIX)
			assert_string_equal(where.path, good[i].text + 5);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (conf_http_parse(bad[i], &where))
			fail_msg("\"%s\" is taken", bad[i]);
}

static void
test_limits(void **state)
{
	(void)state;
	assert_int_equal(conf_nkeys, 36);
	for (size_t i = 0; i < conf_nkeys; i++) {
		const struct conf_key *k = &conf_keys[i];

		if (k->size > 0) {
			check_text_room(k);
			continue;
		}
		check_number(k, k->min, true);
		check_number(k, k->max, true);
		check_number(k, k->min - 1, false);
		check_number(k, k->max + 1, false);
	}
}

/* ---- what it prints ------------------------------------------------------------ */

static void
test_worker_and_layout(void **state)
{
	struct doc_error err;
	struct conf c;

	(void)state;
	assert_int_equal(load_text(&c, "{\"static_worker\": 1023}", &err), 0);
	assert_int_equal(load_text(&c, "{\"static_worker\": 1024}", &err), 78);
	assert_string_equal(err.text,
	    "static_worker: must be at most 1023 in this layout, not 1024");
	assert_int_equal(load_text(&c,
			     "{\"static_worker\": 16, "
			     "\"layout\": \"41/4/12\"}",
			     &err),
	    78);
}

/* Without ZooKeeper the state is the only mark: not on a tmpfs. */
static void
test_state_dir(void **state)
{
	static const struct {
		const char *arguments, *dir;
	} cases[] = {
		{ "", "/run/firn" },
		{ "--static-worker 1", "/var/lib/firn" },
		{ "--socket /run/firn/firn.sock", "/run/firn" },
		{ "--static-worker 1 --socket /run/firn/firn.sock",
		    "/var/lib/firn" },
		{ "--socket /run/firn/two.sock", "/run/firn/two.sock.state" },
		{ "--ordinal a-1 --socket /run/firn/two.sock",
		    "/var/lib/firn/two.sock.state" },
		{ "--static-worker 1 --socket /run/firnx/s",
		    "/run/firnx/s.state" },
		{ "--static-worker 1 --socket s", "s.state" },
		{ "--static-worker 1 --socket s --state-dir /run/firn",
		    "/run/firn" },
	};
	char arguments[200], dir[CONF_TEXT_MAX];
	enum conf_action action;
	struct doc_error err;
	struct conf c;

	(void)state;
	write_file("{}", 2);
	for (size_t i = 0; i < COUNT(cases); i++) {
		(void)snprintf(arguments, sizeof(arguments), "--config FILE %s",
		    cases[i].arguments);
		assert_int_equal(load(&c, arguments, &action, &err), 0);
		conf_state_dir(&c, dir, sizeof(dir));
		assert_string_equal(dir, cases[i].dir);
	}
}

static void
test_print(void **state)
{
	enum conf_action action;
	char *text = NULL, want[200];
	struct doc_error err;
	size_t length = 0, lines = 0;
	struct conf c;
	FILE *out = open_memstream(&text, &length);

	(void)state;
	assert_non_null(out);
	write_file("{\"ttl_ms\":7}", 12);
	assert_int_equal(
	    load(&c, "--config FILE --realm r --check-config", &action, &err),
	    0);
	conf_print(&c, out);
	assert_int_equal(fclose(out), 0);
	for (const char *p = text; *p != '\0'; p++)
		lines += *p == '\n';
	assert_int_equal(lines, conf_nkeys);
	assert_non_null(
	    strstr(text, "realm              \"r\"  (flag; restart)\n"));
	assert_non_null(
	    strstr(text, "drain_ms           2000  (default; SIGHUP)\n"));
	(void)snprintf(want, sizeof(want),
	    "ttl_ms             7  (file %s; SIGHUP)\n", path);
	assert_non_null(strstr(text, want));
	free(text);
}

static void
test_usage_text(void **state)
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	(void)state;
	assert_non_null(out);
	conf_usage(out);
	assert_int_equal(fclose(out), 0);
	for (size_t i = 0; i < conf_nkeys; i++) {
		const struct conf_key *k = &conf_keys[i];

		if (k->flag != NULL)
			assert_non_null(strstr(text, k->flag));
		if (k->env != NULL)
			assert_non_null(strstr(text, k->env));
	}
	for (char *p = strtok(text, "\n"); p != NULL; p = strtok(NULL, "\n"))
		if (strlen(p) > 79)
			fail_msg("wider than a terminal: %s", p);
	free(text);
}

/* ---- manual and sample --------------------------------------------------------- */

/* A file of the source tree; a test run by hand elsewhere is skipped. */
static char *
read_source(const char *name)
{
	const char *top = getenv("FIRN_SRCDIR");
	char file[1000], *text;
	FILE *f;

	if (top == NULL)
		skip();
	(void)snprintf(
	    file, sizeof(file), "%s/%s", top != NULL ? top : ".", name);
	f = fopen(file, "re");
	if (f == NULL)
		fail_msg("%s is missing", file);
	text = calloc(1, DOC_SIZE_MAX + 1);
	assert_non_null(text);
	assert_true(fread(text, 1, DOC_SIZE_MAX, f) > 0);
	(void)fclose(f);
	return (text);
}

/* The manual's table has one row a key, and it is the table's. */
static void
test_manual(void **state)
{
	char *text = read_source("man/firnd.json.5"), row[200], limits[80];

	(void)state;
	for (size_t i = 0; i < conf_nkeys; i++) {
		const struct conf_key *k = &conf_keys[i];

		(void)snprintf(limits, sizeof(limits), "%lld\\(en%lld",
		    (long long)k->min, (long long)k->max);
		(void)snprintf(row, sizeof(row),
		    "\n.It Ic %s Ta %s Ta %s Ta %s Ta %s\n", k->name,
		    k->size > 0 && k->fallback[0] == '\0' ? "\\(dq\\(dq"
							  : k->fallback,
		    k->unit[0] != '\0' ? k->unit : "\\(en",
		    k->size > 0 ? "text" : limits, k->reload ? "no" : "yes");
		if (strstr(text, row) == NULL)
			fail_msg("firnd.json(5) has no row %s", row + 1);
		(void)snprintf(row, sizeof(row), "\n.It Ic %s\n", k->name);
		if (strstr(text, row) == NULL)
			fail_msg("firnd.json(5) does not explain %s", k->name);
	}
	free(text);
}

/* The sample names every key with its default, and loads. */
static void
test_sample(void **state)
{
	char *text = read_source("contrib/firnd.json");
	struct doc_error err;
	struct conf c, defaults;
	int rc;

	(void)state;
	assert_int_equal(load_text(&defaults, "{}", &err), 0);
	rc = load_text(&c, text, &err);
	free(text);
	if (rc != 0)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < conf_nkeys; i++) {
		const struct conf_key *k = &conf_keys[i];

		if (c.source[i] != CONF_FILE)
			fail_msg("the sample does not name %s", k->name);
		if (k->size > 0)
			assert_string_equal(
			    conf_text(&c, k), conf_text(&defaults, k));
		else
			assert_int_equal(
			    conf_number(&c, k), conf_number(&defaults, k));
	}
}

/* ---- random damage ------------------------------------------------------------- */

/* Whatever stands in the file: values in their limits, or one line and 78. */
static void
test_damage(void **state)
{
	static const char good[] =
	    "{ // a\n \"realm\": \"a\", \"renew_ms\": 1000,\n"
	    " /* b */ \"reserve_ms\": 30000, \"op_deadline_ms\": 900,\n"
	    " \"layout\": \"41/10/12\", \"epoch\": 1735689600000 }\n";
	struct dice d = dice_open("conf");

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		enum conf_action action;
		char text[sizeof(good)];
		struct doc_error err;
		struct conf c;
		int rc;

		memcpy(text, good, sizeof(good));
		for (uint64_t n = 1 + dice_below(&d, 3); n > 0; n--)
			text[dice_below(&d, sizeof(good) - 1)] =
			    (char)dice_below(&d, 256);
		write_file(text, sizeof(good) - 1);
		rc = load(&c, "--config FILE", &action, &err);
		assert_true(rc == 0 || rc == 78);
		assert_true((rc == 0) == (err.text[0] == '\0'));
		for (size_t i = 0; rc == 0 && i < conf_nkeys; i++) {
			const struct conf_key *k = &conf_keys[i];

			if (k->size > 0)
				assert_null(k->check(conf_text(&c, k)));
			else
				assert_true(conf_number(&c, k) >= k->min &&
					    conf_number(&c, k) <= k->max);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_precedence),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_usage),
		cmocka_unit_test(test_optional),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_file_extremes),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_merge_each),
		cmocka_unit_test(test_merge_shows_in_part),
		cmocka_unit_test(test_http),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_worker_and_layout),
		cmocka_unit_test(test_state_dir),
		cmocka_unit_test(test_print),
		cmocka_unit_test(test_usage_text),
		cmocka_unit_test(test_manual),
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_damage),
	};

	return (cmocka_run_group_tests(tests, set_up, tear_down));
}
