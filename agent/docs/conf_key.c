/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_key - the table of the configuration's keys, and what each accepts.
 *
 * Invariant: every value in a struct conf went through conf_set(), the
 * defaults included.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "conf_http.h"
#include "conf_key.h"
#include "layout.h"
#include "realm.h"
#include "rfc3339.h"

#define VALUE_SHOWN 60 /* of a bad value, in an error */

static bool
is_one_of(const char *text, const char *const *choices)
{
	for (; *choices != NULL; choices++)
		if (strcmp(text, *choices) == 0)
			return (true);
	return (false);
}

static const char *
check_hosts(const char *text)
{
	/* Hosts, ports and chroot are the business of zk_check_hosts(). */
	if (text[0] == '\0' || strchr(text, ' ') != NULL)
		return ("must be HOST:PORT[,HOST:PORT...][/CHROOT]");
	return (NULL);
}

/* What is in it is the business of authfile_read(). */
static const char *
check_auth_file(const char *text)
{
	if (text[0] != '\0' && text[0] != '/')
		return ("must be the absolute path of a file");
	return (NULL);
}

/*
 * The C client takes the key's password as a fourth word.  Not here: this file
 * is read by many, and its values are shown.
 */
static const char *
check_tls(const char *text)
{
#ifdef HAVE_ZOOKEEPER_INIT_SSL
	const char *const bad =
	    "must be CA,CERT,KEY: absolute paths of three files, and no more";
	size_t paths = 0;

	if (text[0] == '\0')
		return (NULL);
	for (const char *at = text; at != NULL; paths++) {
		if (at[0] != '/' || at[1] == ',' || at[1] == '\0')
			return (bad);
		at = strchr(at, ',');
		at = at != NULL ? at + 1 : NULL;
	}
	return (paths == 3 ? NULL : bad);
#else
	return (text[0] == '\0'
		    ? NULL
		    : "this firnd's ZooKeeper client has no TLS: use stunnel, "
		      "see TLS in firnd(8)");
#endif
}

static const char *
check_realm(const char *text)
{
	if (strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
		return ("must be a name");
	if (!realm_name_valid(text))
		return ("must be 1 to 63 of A-Z a-z 0-9 . _ -");
	return (NULL);
}

static const char *
check_socket(const char *text)
{
	return (text[0] == '\0' ? "must be the path of a socket" : NULL);
}

static const char *
check_mode(const char *text)
{
	const char *digits = text[0] == '0' ? text + 1 : text;

	if (strlen(digits) != 3 || strspn(digits, "01234567") != 3 ||
	    (digits[0] & 6) != 6)
		return ("must be octal with read and write for the owner, "
			"as 0660");
	return (NULL);
}

static const char *
check_group(const char *text)
{
	if (strpbrk(text, " :/") != NULL)
		return ("must be the name or number of a group");
	return (NULL);
}

/* The words stand until the next bad list. */
static const char *
check_list(const char *text, bool groups)
{
	static char words[CONF_IDS_ERROR_MAX + 64];
	char fault[CONF_IDS_ERROR_MAX];
	struct conf_ids ids;

	if (conf_ids_parse(text, groups, &ids, fault))
		return (NULL);
	(void)snprintf(words, sizeof(words),
	    "must be numbers or names of %s (%s)", groups ? "groups" : "users",
	    fault);
	return (words);
}

static const char *
check_users(const char *text)
{
	return (check_list(text, false));
}

static const char *
check_groups(const char *text)
{
	return (check_list(text, true));
}

static const char *
check_http(const char *text)
{
	struct conf_http where;

	return (conf_http_parse(text, &where)
		    ? NULL
		    : "must be ADDR:PORT, [ADDR]:PORT or unix:PATH, with an "
		      "address in numbers");
}

static const char *
check_log_level(const char *text)
{
	static const char *const choices[] = { "debug", "info", "warn", "error",
		NULL };

	return (is_one_of(text, choices)
		    ? NULL
		    : "must be debug, info, warn or error");
}

static const char *
check_layout(const char *text)
{
	struct firn_layout l;

	if (text[0] == '\0' || firn_layout_preset(text, &l) == 0)
		return (NULL);
	if (layout_parse_bits(text, &l, NULL) != 0 || !layout_valid(&l))
		return (
		    "must be a preset such as firn, or bits such as 41/10/12");
	return (NULL);
}

static const char *
check_epoch(const char *text)
{
	size_t where = 0;
	int64_t ms = -1;

	if (text[0] == '\0')
		return (NULL);
	if (rfc3339_parse_or_ms(text, &ms, &where) != 0 && where > 0 &&
	    text[where] == '\0' && strchr(text, 'T') != NULL)
		return ("must end with its time zone, as "
			"2025-01-01T00:00:00Z does");
	if (ms < 0)
		return ("must be Unix milliseconds or an instant such as "
			"2025-01-01T00:00:00Z, from 1970 to 9999");
	return (NULL);
}

static const char *
check_sequence_start(const char *text)
{
	static const char *const choices[] = { "zero", "random", NULL };

	return (is_one_of(text, choices) ? NULL : "must be zero or random");
}

static const char *
check_on_step(const char *text)
{
	static const char *const choices[] = { "wait", "fail", "logical",
		NULL };

	return (
	    is_one_of(text, choices) ? NULL : "must be wait, fail or logical");
}

static const char *
check_worker_source(const char *text)
{
	static const char *const choices[] = { "zookeeper", "static", "ordinal",
		NULL };

	return (is_one_of(text, choices)
		    ? NULL
		    : "must be zookeeper, static or ordinal");
}

static const char *
check_switch(const char *text)
{
	static const char *const choices[] = { "on", "off", NULL };

	return (is_one_of(text, choices) ? NULL : "must be on or off");
}

/* No shell: words are what stands between blanks, nothing is quoted. */
static const char *
check_command(const char *text)
{
	size_t words = 0;

	for (const char *at = text; *at != '\0';) {
		at += strspn(at, " ");
		words += *at != '\0';
		at += strcspn(at, " ");
	}
	if (text[0] != '\0' && (text[0] != '/' || words > CONF_COMMAND_WORDS))
		return ("must be the absolute path of a program and at most "
			"15 arguments");
	return (NULL);
}

static const char *
check_any(const char *text)
{
	(void)text;
	return (NULL);
}

/* clang-format off */
#define TEXT(field, fallback_, check_) \
	.name = #field, .offset = offsetof(struct conf, field), \
	.size = sizeof(((struct conf *)NULL)->field), \
	.fallback = (fallback_), .unit = "", .check = (check_)
#define NUMBER(field, fallback_, unit_, min_, max_) \
	.name = #field, .offset = offsetof(struct conf, field), \
	.fallback = (fallback_), .unit = (unit_), .min = (min_), \
	.max = (max_)

const struct conf_key conf_keys[] = {
	{ TEXT(zookeeper, "127.0.0.1:2181", check_hosts),
	  .flag = "--zk", .argument = "HOSTS", .env = "FIRN_ZK",
	  .help = "ZooKeeper: HOST:PORT,...[/CHROOT]" },
	{ TEXT(auth_file, "", check_auth_file),
	  .flag = "--auth-file", .argument = "FILE", .env = "FIRN_AUTH_FILE",
	  .help = "file with user:password for ZooKeeper" },
	{ TEXT(zookeeper_tls, "", check_tls), .unseen = true,
	  .flag = "--zk-tls", .argument = "FILES", .env = "FIRN_ZK_TLS",
	  .help = "TLS to ZooKeeper: CA,CERT,KEY" },
	{ TEXT(realm, "default", check_realm),
	  .flag = "--realm", .argument = "NAME", .env = "FIRN_REALM",
	  .help = "the ID space to serve" },
	{ TEXT(socket, CONF_SOCKET_DEFAULT, check_socket),
	  .flag = "--socket", .argument = "PATH", .env = "FIRN_SOCKET",
	  .help = "where to listen" },
	{ TEXT(socket_mode, "0660", check_mode),
	  .help = "permissions of the socket, octal" },
	{ TEXT(socket_group, "", check_group),
	  .help = "group of the socket; empty: the process's own" },
	{ TEXT(http, "", check_http),
	  .flag = "--http", .argument = "ADDR:PORT",
	  .help = "where metrics are served, or unix:PATH; empty: nowhere" },
	{ TEXT(log_level, "info", check_log_level), .reload = true,
	  .flag = "--log-level", .argument = "LEVEL",
	  .help = "least that is logged: debug, info, warn, error" },
	{ TEXT(layout, "", check_layout),
	  .flag = "--layout", .argument = "PRESET|T/W/S",
	  .help = "layout that the realm must have; empty: any" },
	{ TEXT(epoch, "", check_epoch),
	  .flag = "--epoch", .argument = "MS|RFC3339",
	  .help = "epoch that the realm must have; empty: any" },
	{ TEXT(sequence_start, "zero", check_sequence_start), .reload = true,
	  .help = "first sequence of a tick: zero or random" },
	{ TEXT(on_step, "wait", check_on_step),
	  .help = "when the clock went back: wait, fail, logical" },
	{ NUMBER(step_tolerance_ms, "5", "ms", 0, 1000),
	  .help = "clock steps up to that are no matter" },
	{ NUMBER(max_lead_ms, "5", "ms", 0, 10000), .reload = true,
	  .help = "how far ahead of the clock a burst may borrow ticks" },
	{ NUMBER(logical_lead_ms, "0", "ms", 0, 604800000),
	  .help = "the same for on_step logical; 0: as max_lead_ms" },
	{ NUMBER(session_ms, "10000", "ms", 1000, 300000),
	  .help = "session timeout asked of ZooKeeper" },
	{ NUMBER(renew_ms, "3000", "ms", 100, 60000),
	  .help = "how often the window is renewed" },
	{ NUMBER(reserve_ms, "60000", "ms", 1000, 86400000), .reload = true,
	  .help = "window: how long ZooKeeper may be away" },
	{ NUMBER(claim_wait_ms, "2000", "ms", 0, 600000),
	  .help = "worker IDs with a mark further ahead are left alone" },
	{ NUMBER(op_deadline_ms, "2500", "ms", 50, 59999),
	  .help = "deadline of one ZooKeeper operation" },
	{ NUMBER(ttl_ms, "1000", "ms", 1, 60000), .reload = true,
	  .help = "how long clients may keep a batch" },
	{ NUMBER(skew_warn_ms, "500", "ms", 1, 86400000), .reload = true,
	  .help = "clock skew that is warned of" },
	{ NUMBER(skew_refuse_ms, "10000", "ms", 1, 86400000), .reload = true,
	  .help = "clock skew that refuses service" },
	{ TEXT(allow_uids, "", check_users), .reload = true, .list = true,
	  .help = "users who may take IDs; empty: see allow_gids" },
	{ TEXT(allow_gids, "", check_groups), .reload = true, .list = true,
	  .help = "groups who may; both empty: whom the socket's mode lets in" },
	{ NUMBER(max_clients, "10000", "", 1, 1000000), .reload = true,
	  .help = "most connections at a time" },
	{ NUMBER(max_ids_per_second, "0", "", 0, 1000000000), .reload = true,
	  .help = "most IDs a second for each user; 0: no limit" },
	{ NUMBER(drain_ms, "2000", "ms", 0, 600000), .reload = true,
	  .help = "longest drain at SIGTERM" },
	{ TEXT(alert_unsynced, "off", check_switch), .reload = true,
	  .help = "on: alert clock_unsynced, if nobody sets the clock" },
	{ TEXT(alert_command, "", check_command), .words = true,
	  .help = "program that is told of alerts, JSON on its standard input" },
	{ NUMBER(audit_ms, "10000", "ms", 1000, 600000),
	  .help = "period of the audit of the fleet" },
	{ TEXT(worker_source, "zookeeper", check_worker_source),
	  .help = "who gives the worker ID: zookeeper, static, ordinal" },
	{ NUMBER(static_worker, "-1", "", -1, (INT64_C(1) << 53) - 1),
	  .flag = "--static-worker", .argument = "N",
	  .help = "the worker ID, without ZooKeeper" },
	{ TEXT(ordinal, "", check_any),
	  .flag = "--ordinal", .argument = "NAME",
	  .help = "the number that ends a name, hostname or $VAR" },
	{ TEXT(state_dir, "", check_any),
	  .flag = "--state-dir", .argument = "DIR",
	  .help = "where the state file is; empty: see firnd.json(5)" },
};
/* clang-format on */

const size_t conf_nkeys = sizeof(conf_keys) / sizeof(conf_keys[0]);

_Static_assert(sizeof(conf_keys) / sizeof(conf_keys[0]) <=
		   sizeof(((struct conf *)NULL)->source),
    "struct conf has room for the source of each key");

const char *
conf_text(const struct conf *c, const struct conf_key *k)
{
	return ((const char *)c + k->offset);
}

int64_t
conf_number(const struct conf *c, const struct conf_key *k)
{
	int64_t v;

	memcpy(&v, (const char *)c + k->offset, sizeof(v));
	return (v);
}

static int
set_number(struct conf *c, const struct conf_key *k, const char *text,
    const char *what, struct doc_error *err)
{
	int64_t v;

	if (!doc_parse_i64(text, &v) || v < k->min || v > k->max) {
		doc_error_set(err,
		    "%s: must be a whole number from %" PRId64 " to %" PRId64
		    "%s%s, not %.*s",
		    what, k->min, k->max, k->unit[0] != '\0' ? " " : "",
		    k->unit, VALUE_SHOWN, text);
		return (EX_CONFIG);
	}
	memcpy((char *)c + k->offset, &v, sizeof(v));
	return (0);
}

static bool
has_control(const char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return (true);
	return (false);
}

static int
set_text(struct conf *c, const struct conf_key *k, const char *text,
    const char *what, struct doc_error *err)
{
	const char *fault = k->check(text);

	if (strlen(text) >= k->size) {
		doc_error_set(err, "%s: must have at most %zu bytes, not %zu",
		    what, k->size - 1, strlen(text));
		return (EX_CONFIG);
	}
	if (has_control(text)) {
		doc_error_set(
		    err, "%s: must not hold control characters", what);
		return (EX_CONFIG);
	}
	if (fault != NULL && k->unseen) {
		doc_error_set(err, "%s: %s", what, fault);
		return (EX_CONFIG);
	}
	if (fault != NULL) {
		doc_error_set(err, "%s: %s, not \"%.*s\"", what, fault,
		    VALUE_SHOWN, text);
		return (EX_CONFIG);
	}
	memset((char *)c + k->offset, 0, k->size);
	memcpy((char *)c + k->offset, text, strlen(text));
	return (0);
}

int
conf_set(struct conf *c, const struct conf_key *k, const char *text,
    enum conf_source source, const char *what, struct doc_error *err)
{
	int rc;

	rc = k->size > 0 ? set_text(c, k, text, what, err)
			 : set_number(c, k, text, what, err);
	if (rc == 0)
		c->source[k - conf_keys] = (uint8_t)source;
	return (rc);
}
