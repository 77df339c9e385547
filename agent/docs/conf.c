/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf - the agent's configuration: flags win over the environment, that over
 * the file, that over the defaults.
 *
 * Invariant: a value that will not do is an error even if a stronger source
 * replaces it: nobody wants to find it on the day the flag goes away.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "conf_key.h"
#include "layout.h"

#define RUN_DIR "/run/firn"
#define VAR_DIR "/var/lib/firn"
#define ARGUMENT_SHOWN 60 /* of a wrong argument, in an error */

/* Flags that are no keys. */
struct request {
	enum conf_action action;
	const char *path; /* --config, or NULL */
	bool first_use;
};

/* One argument, split at '=' if there is one. */
struct flag {
	const char *name;
	size_t length;
	const char *value; /* NULL: none so far */
};

static struct flag
split_flag(const char *argument)
{
	const char *mark = strchr(argument, '=');

	if (mark == NULL)
		return ((struct flag){ argument, strlen(argument), NULL });
	return ((struct flag){ argument, (size_t)(mark - argument), mark + 1 });
}

static bool
flag_is(const struct flag *f, const char *name)
{
	return (name != NULL && strlen(name) == f->length &&
		memcmp(name, f->name, f->length) == 0);
}

static const struct conf_key *
find_flag(const struct flag *f)
{
	for (size_t i = 0; i < conf_nkeys; i++)
		if (flag_is(f, conf_keys[i].flag))
			return (&conf_keys[i]);
	return (NULL);
}

static bool
take_action(const struct flag *f, struct request *r)
{
	if (f->value != NULL)
		return (false);
	if (flag_is(f, "--check-config"))
		r->action = CONF_CHECK;
	else if (flag_is(f, "--version"))
		r->action = CONF_VERSION;
	else if (flag_is(f, "--help") || flag_is(f, "-h"))
		r->action = CONF_HELP;
	else if (flag_is(f, "--first-use"))
		r->first_use = true;
	else
		return (false);
	return (true);
}

/* The value is what follows '=', or the next argument. */
static int
take_value(struct flag *f, int argc, char **argv, int *i, struct doc_error *err)
{
	if (f->value != NULL)
		return (0);
	if (*i + 1 >= argc) {
		doc_error_set(err, "%s wants an argument", f->name);
		return (EX_USAGE);
	}
	f->value = argv[++*i];
	return (0);
}

/*
 * Goes through the arguments: with c NULL it looks for usage, --config and
 * what else is no key; with c it sets the keys.
 */
static int
read_flags(struct conf *c, int argc, char **argv, struct request *r,
    struct doc_error *err)
{
	for (int i = 1; i < argc; i++) {
		struct flag f = split_flag(argv[i]);
		const struct conf_key *k = find_flag(&f);

		if (take_action(&f, r)) {
			if (r->action == CONF_VERSION || r->action == CONF_HELP)
				return (0);
			continue;
		}
		if (k == NULL && !flag_is(&f, "--config")) {
			doc_error_set(err, "%s \"%.*s\" (firnd --help)",
			    argv[i][0] == '-' ? "there is no flag"
					      : "firnd takes no argument",
			    ARGUMENT_SHOWN, argv[i]);
			return (EX_USAGE);
		}
		if (take_value(&f, argc, argv, &i, err) != 0)
			return (EX_USAGE);
		if (k == NULL)
			r->path = f.value;
		else if (c != NULL &&
			 conf_set(c, k, f.value, CONF_FLAG, k->flag, err) != 0)
			return (EX_CONFIG);
	}
	return (0);
}

/* A variable that is set to nothing is as one that is not set. */
static int
read_environment(struct conf *c, struct doc_error *err)
{
	for (size_t i = 0; i < conf_nkeys; i++) {
		const struct conf_key *k = &conf_keys[i];
		const char *text = k->env != NULL ? getenv(k->env) : NULL;

		if (text == NULL || text[0] == '\0')
			continue;
		if (conf_set(c, k, text, CONF_ENVIRONMENT, k->env, err) != 0)
			return (EX_CONFIG);
	}
	return (0);
}

static int
set_defaults(struct conf *c, struct doc_error *err)
{
	memset(c, 0, sizeof(*c));
	for (size_t i = 0; i < conf_nkeys; i++)
		if (conf_set(c, &conf_keys[i], conf_keys[i].fallback,
			CONF_DEFAULT, conf_keys[i].name, err) != 0)
			return (EX_CONFIG);
	return (0);
}

static uint8_t
source_of(const struct conf *c, const char *name)
{
	for (size_t i = 0; i < conf_nkeys; i++)
		if (strcmp(conf_keys[i].name, name) == 0)
			return (c->source[i]);
	return (CONF_DEFAULT);
}

/* A number or a name that was given more strongly than the source is one. */
static void
settle_source(struct conf *c)
{
	uint8_t source = source_of(c, "worker_source");
	uint8_t number = source_of(c, "static_worker");
	uint8_t name = source_of(c, "ordinal");

	if (number > source && number >= name)
		snprintf(c->worker_source, sizeof(c->worker_source), "static");
	else if (name > source)
		snprintf(c->worker_source, sizeof(c->worker_source), "ordinal");
}

bool
conf_is_alone(const struct conf *c)
{
	return (strcmp(c->worker_source, "zookeeper") != 0);
}

/* /run is gone after a boot: nothing there is the only mark that there is. */
void
conf_state_dir(const struct conf *c, char *buf, size_t n)
{
	const char *home = conf_is_alone(c) ? VAR_DIR : RUN_DIR;
	bool is_run = strncmp(c->socket, RUN_DIR "/", sizeof(RUN_DIR)) == 0;

	if (c->state_dir[0] != '\0')
		snprintf(buf, n, "%s", c->state_dir);
	else if (strcmp(c->socket, CONF_SOCKET_DEFAULT) == 0)
		snprintf(buf, n, "%s", home);
	else if (is_run)
		snprintf(
		    buf, n, "%s/%s.state", home, c->socket + sizeof(RUN_DIR));
	else
		snprintf(buf, n, "%s.state", c->socket);
}

/* Without ZooKeeper the configured layout is the one that is served. */
static int
check_worker(const struct conf *c, struct doc_error *err)
{
	const char *text = c->layout[0] != '\0' ? c->layout : "firn";
	struct firn_layout l;

	if (firn_layout_preset(text, &l) != 0 &&
	    layout_parse_bits(text, &l, NULL) != 0)
		return (0); /* conf_set() has refused it */
	if ((uint64_t)c->static_worker <= layout_worker_max(&l))
		return (0);
	doc_error_set(err,
	    "static_worker: must be at most %" PRIu64
	    " in this layout, not %" PRId64,
	    layout_worker_max(&l), c->static_worker);
	return (EX_CONFIG);
}

static int
check_alone(const struct conf *c, struct doc_error *err)
{
	if (strcmp(c->worker_source, "static") == 0 && c->static_worker < 0) {
		doc_error_set(err,
		    "static_worker: must be the worker ID, since "
		    "worker_source is static");
		return (EX_CONFIG);
	}
	if (strcmp(c->worker_source, "ordinal") == 0 && c->ordinal[0] == '\0') {
		doc_error_set(err,
		    "ordinal: must be a name with digits at its end, hostname "
		    "or $VAR, since worker_source is ordinal");
		return (EX_CONFIG);
	}
	if (c->first_use && !conf_is_alone(c)) {
		doc_error_set(
		    err, "--first-use: is for --static-worker and --ordinal");
		return (EX_CONFIG);
	}
	if (strcmp(c->worker_source, "static") == 0)
		return (check_worker(c, err));
	return (0);
}

int
conf_check_together(const struct conf *c, struct doc_error *err)
{
	if (c->op_deadline_ms >= c->renew_ms) {
		doc_error_set(err,
		    "op_deadline_ms: must be below renew_ms (%" PRId64
		    "), not %" PRId64,
		    c->renew_ms, c->op_deadline_ms);
		return (EX_CONFIG);
	}
	if (c->reserve_ms < 3 * c->renew_ms) {
		doc_error_set(err,
		    "reserve_ms: must be at least three times renew_ms "
		    "(%" PRId64 "), not %" PRId64,
		    c->renew_ms, c->reserve_ms);
		return (EX_CONFIG);
	}
	if (c->skew_warn_ms > c->skew_refuse_ms) {
		doc_error_set(err,
		    "skew_warn_ms: must be at most skew_refuse_ms (%" PRId64
		    "), not %" PRId64,
		    c->skew_refuse_ms, c->skew_warn_ms);
		return (EX_CONFIG);
	}
	return (check_alone(c, err));
}

/* Once for each load: what a name meant then is what it means. */
static int
resolve_lists(struct conf *c, struct doc_error *err)
{
	char fault[CONF_IDS_ERROR_MAX];
	const char *key = "allow_uids";

	if (conf_ids_parse(c->allow_uids, false, &c->uids, fault)) {
		key = "allow_gids";
		if (conf_ids_parse(c->allow_gids, true, &c->gids, fault))
			return (0);
	}
	doc_error_set(err, "%s: %s", key, fault);
	return (EX_CONFIG);
}

int
conf_load(struct conf *c, int argc, char **argv, enum conf_action *action,
    struct doc_error *err)
{
	struct request r = { CONF_RUN, NULL, false };
	int rc;

	rc = read_flags(NULL, argc, argv, &r, err);
	*action = r.action;
	if (rc != 0 || r.action == CONF_VERSION || r.action == CONF_HELP)
		return (rc);
	rc = set_defaults(c, err);
	if (rc == 0)
		rc = conf_read_file(c,
		    r.path != NULL ? r.path : CONF_PATH_DEFAULT, r.path == NULL,
		    err);
	if (rc == 0)
		rc = read_environment(c, err);
	if (rc == 0)
		rc = read_flags(c, argc, argv, &r, err);
	if (rc == 0) {
		c->first_use = r.first_use;
		settle_source(c);
		rc = conf_check_together(c, err);
	}
	if (rc == 0)
		rc = resolve_lists(c, err);
	return (rc);
}

static const char *
source_name(uint8_t source)
{
	switch ((enum conf_source)source) {
	case CONF_DEFAULT:
		return ("default");
	case CONF_FILE:
		return ("file");
	case CONF_ENVIRONMENT:
		return ("environment");
	case CONF_FLAG:
		return ("flag");
	}
	return ("unknown");
}

void
conf_print(const struct conf *c, FILE *out)
{
	for (size_t i = 0; i < conf_nkeys; i++) {
		const struct conf_key *k = &conf_keys[i];

		if (k->size > 0)
			fprintf(out, "%-18s \"%s\"", k->name, conf_text(c, k));
		else
			fprintf(
			    out, "%-18s %" PRId64, k->name, conf_number(c, k));
		fprintf(out, "  (%s", source_name(c->source[i]));
		if (c->source[i] == CONF_FILE)
			fprintf(out, " %s", c->path);
		fprintf(out, "; %s)\n", k->reload ? "SIGHUP" : "restart");
	}
}

void
conf_usage(FILE *out)
{
	fputs("usage: firnd [flags]\n"
	      "  --config FILE          configuration (" CONF_PATH_DEFAULT
	      ")\n",
	    out);
	for (size_t i = 0; i < conf_nkeys; i++) {
		const struct conf_key *k = &conf_keys[i];
		int width;

		if (k->flag == NULL)
			continue;
		width = 21 - (int)strlen(k->flag);
		fprintf(
		    out, "  %s %-*s %s", k->flag, width, k->argument, k->help);
		if (k->env != NULL)
			fprintf(out, " (%s)", k->env);
		fputc('\n', out);
	}
	fputs("  --first-use            this worker ID never served: no state "
	      "file is no fault\n"
	      "  --check-config         print the configuration, and exit\n"
	      "  --version              print the version, and exit\n"
	      "  --help                 print this, and exit\n"
	      "Flags win over the environment, that over the file.\n"
	      "See firnd(8) and firnd.json(5).\n",
	    out);
}
