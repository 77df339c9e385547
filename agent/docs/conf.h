/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf - the agent's configuration: file, environment, flags, defaults, and
 * where each value came from.  One table lists every key.
 */
#ifndef CONF_H
#define CONF_H

#include <stdio.h>

#include "conf_ids.h"
#include "doc.h"
#include "types.h"

#define CONF_PATH_DEFAULT "/etc/firn/firnd.json"
#define CONF_SOCKET_DEFAULT "/run/firn/firn.sock"
#define CONF_TEXT_MAX 256
#define CONF_HOSTS_MAX 1024
#define CONF_LIST_MAX 1024
#define CONF_COMMAND_MAX 512
#define CONF_COMMAND_WORDS 16
#define CONF_SHOWN_MAX 80 /* of a value, in a line of the log */

struct conf {
	char zookeeper[CONF_HOSTS_MAX]; /* --zk, FIRN_ZK; "127.0.0.1:2181" */
	char auth_file
	    [CONF_TEXT_MAX]; /* --auth-file, FIRN_AUTH_FILE; "": none */
	char zookeeper_tls[CONF_HOSTS_MAX]; /* --zk-tls; "": in clear */
	char realm[64]; /* --realm, FIRN_REALM; "default" */
	char socket[108]; /* --socket, FIRN_SOCKET */
	char socket_mode[8]; /* "0660" */
	char socket_group[64]; /* "": the process's own */
	char http[128]; /* --http; "": off; see conf_http */
	char log_level[8]; /* --log-level; "info" */
	char layout[40]; /* --layout: "" or must be the realm's */
	char epoch[40]; /* --epoch: "" or must be the realm's */
	char sequence_start[8]; /* "zero" or "random" */
	char on_step[8]; /* "wait", "fail", "logical" */
	int64_t step_tolerance_ms; /* 5 */
	int64_t max_lead_ms; /* 5 */
	int64_t logical_lead_ms; /* 0: as max_lead_ms */
	int64_t session_ms; /* 10000 */
	int64_t renew_ms; /* 3000 */
	int64_t reserve_ms; /* 60000; at most the realm's */
	int64_t claim_wait_ms; /* 2000 */
	int64_t op_deadline_ms; /* 2500 */
	int64_t ttl_ms; /* of batches; 1000 */
	int64_t skew_warn_ms; /* 500 */
	int64_t skew_refuse_ms; /* 10000 */
	char allow_uids[CONF_LIST_MAX]; /* "1000,app"; "": as allow_gids */
	char allow_gids[CONF_LIST_MAX]; /* both empty: whom the mode lets in */
	int64_t max_clients; /* 10000 */
	int64_t max_ids_per_second; /* for each uid; 0: no limit */
	int64_t drain_ms; /* longest drain at SIGTERM; 2000 */
	char alert_unsynced[4]; /* alert clock_unsynced; "off" */
	char alert_command[CONF_COMMAND_MAX]; /* words, "": none */
	int64_t audit_ms; /* period of the fleet's audit; 10000 */
	char worker_source[12]; /* "zookeeper", "static", "ordinal" */
	int64_t static_worker; /* --static-worker; -1: none */
	char
	    ordinal[CONF_TEXT_MAX]; /* --ordinal: "ids-7", "hostname", "$VAR" */
	char state_dir[CONF_TEXT_MAX]; /* --state-dir; conf_state_dir() */
	bool first_use; /* --first-use, never in a file */
	char path[CONF_TEXT_MAX]; /* the file read, "" if none */
	struct conf_ids uids, gids; /* allow_uids and allow_gids, looked up */
	/* where each key's value came from: index as in the table */
	uint8_t source[64];
};

enum conf_source { CONF_DEFAULT, CONF_FILE, CONF_ENVIRONMENT, CONF_FLAG };

/* What firnd's command line asks for besides configuration. */
enum conf_action { CONF_RUN, CONF_CHECK, CONF_VERSION, CONF_HELP };

/*
 * Reads flags, environment, file.  Returns 0, 64 (usage) or 78 (file or
 * value), with one line in err.  With an action other than CONF_RUN and
 * CONF_CHECK *c is not filled in.  Changes nothing but *c and *action, so it
 * may be called again with the same argv.
 */
FIRN_CHECK_RESULT int conf_load(struct conf *c, int argc, char **argv,
    enum conf_action *action, struct doc_error *err);

/* One key that a configuration read anew has changed. */
struct conf_change {
	const char *name;
	bool taken; /* false: it needs a restart */
	char from[CONF_SHOWN_MAX], to[CONF_SHOWN_MAX];
};
typedef void conf_changed_fn(void *arg, const struct conf_change *change);

/*
 * Takes into *c, which is in use, the keys of `fresh` that need no restart,
 * and tells of each key that differs.  78 with one line in err, nothing
 * changed and nothing told, if they do not go together with those of *c that
 * stay.
 */
FIRN_CHECK_RESULT int conf_merge(struct conf *c, const struct conf *fresh,
    conf_changed_fn *changed, void *arg, struct doc_error *err);

/*
 * Where the state file is: state_dir, else /run/firn (with ZooKeeper) or
 * /var/lib/firn; for another socket in /run/firn its name and ".state" in
 * there, for a socket elsewhere its path and ".state".
 */
void conf_state_dir(const struct conf *c, char *buf, size_t n);

/* No ZooKeeper: the worker ID is the operator's word. */
bool conf_is_alone(const struct conf *c);

/*
 * --check-config: each key, its value, where it came from, and what a change
 * of it takes.
 */
void conf_print(const struct conf *c, FILE *out);
void conf_usage(FILE *out);

#endif
