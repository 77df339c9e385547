/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main - opens the parts in the order in which they need each other, and
 * closes them in the reverse.  No logic.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <event2/event.h>

#include "agent.h"
#include "authfile.h"
#include "conf.h"
#include "hold.h"
#include "lease.h"
#include "listener.h"
#include "log.h"
#include "notify.h"
#include "web.h"
#include "zk.h"

#define ACCEPT_BACKOFF_MS 1000
#define EXIT_CONFIG 78

/* Started with 0, 1 or 2 closed, what it opens must not become its stderr. */
static void
fill_standard_fds(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/* what is printed to none is an error, as with --help */
		int how = fd == STDOUT_FILENO ? O_RDONLY : O_RDWR;

		if (fcntl(fd, F_GETFD) == -1 &&
		    open("/dev/null", how) != fd) /* the lowest free */
			_exit(1); /* there may be nowhere to say it */
	}
}

/* What the process needs before it opens anything. */
static void
process_open(void)
{
	struct rlimit rl;

	fill_standard_fds();
	umask(077); /* once, before there are threads */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a limit of file sizes is a full disk */
	signal(SIGTTOU, SIG_IGN); /* a line must not stop a background job */
	if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur < rl.rlim_max) {
		rl.rlim_cur = rl.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &rl);
	}
}

/* At a start the listener does it, with the same status. */
static void
check_group(const struct conf *conf)
{
	char fault[CONF_IDS_ERROR_MAX];
	struct conf_ids ids;

	if (conf->socket_group[0] == '\0' ||
	    conf_ids_parse(conf->socket_group, true, &ids, fault))
		return;
	fprintf(stderr, "firnd: socket_group: %s\n", fault);
	exit(EXIT_CONFIG);
}

/* Later ones are looked at when they are read: at each new session. */
static void
check_auth_file(const struct conf *conf)
{
	struct doc_error err;
	int status;

	if (conf->auth_file[0] == '\0' || conf_is_alone(conf))
		return;
	status = authfile_check(conf->auth_file, &err);
	if (status == 0)
		return;
	fprintf(stderr, "firnd: %s\n", err.text);
	exit(status);
}

/* Returns only if the agent is to run. */
static void
conf_open(struct conf *conf, int argc, char **argv)
{
	enum log_level level = LOG_LEVEL_INFO;
	enum conf_action action;
	struct doc_error err;
	int status = conf_load(conf, argc, argv, &action, &err);
	const char *wrong = NULL;
	size_t where = 0;

	if (status != 0) {
		fprintf(stderr, "firnd: %s\n", err.text);
		exit(status);
	}
	if ((action == CONF_RUN || action == CONF_CHECK) &&
	    !conf_is_alone(conf))
		wrong = zk_check_hosts(conf->zookeeper, &where);
	if (wrong != NULL) {
		fprintf(stderr,
		    "firnd: zookeeper: \"%s\": %s (at character %zu)\n",
		    conf->zookeeper, wrong, where + 1);
		exit(EXIT_CONFIG);
	}
	switch (action) {
	case CONF_RUN:
		check_auth_file(conf);
		(void)log_level_parse(conf->log_level, &level);
		log_open(level);
		return;
	case CONF_CHECK:
		check_group(conf);
		check_auth_file(conf);
		conf_print(conf, stdout);
		break;
	case CONF_VERSION:
		printf("firnd %s\n", FIRN_VERSION);
		break;
	case CONF_HELP:
		conf_usage(stdout);
		break;
	}
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		exit(0);
	fprintf(stderr, "firnd: standard output: %s\n",
	    errno == 0 ? "not all of it was written" : strerror(errno));
	exit(1);
}

/* Or it would write to standard error by itself, and wait there. */
static void
on_libevent_log(int severity, const char *text)
{
	if (severity >= EVENT_LOG_WARN)
		log_warnx("libevent: %s", text);
	else
		log_debug("libevent: %s", text);
}

static struct event_base *
base_open(void)
{
	struct event_base *base;

	event_set_log_callback(on_libevent_log);
	base = event_base_new();
	if (base == NULL)
		log_fatal(1, "cannot make an event loop");
	return (base);
}

static struct listener *
socket_open(struct event_base *base, const struct conf *conf)
{
	const struct listener_conf lc = { conf->socket, conf->socket_mode,
		conf->socket_group, ACCEPT_BACKOFF_MS };
	struct listener *l = NULL;
	struct listener_error err;
	int status = listener_open(&l, base, &lc, &err);

	if (status != 0)
		log_fatal(status, "%s", err.text);
	return (l);
}

static struct web *
web_open_or_die(const struct conf *conf, struct listener *listener)
{
	struct doc_error err;
	struct web *w = NULL;
	int status = web_open(&w, conf, &err);

	if (status != 0) {
		listener_close(listener); /* leaves no socket behind */
		log_fatal(status, "%s", err.text);
	}
	return (w);
}

static struct hold *
state_open_or_die(
    struct event_base *base, const struct conf *conf, struct listener *listener)
{
	struct doc_error err;
	struct hold *h = hold_open(base, conf, &err);

	if (h == NULL) {
		listener_close(listener); /* leaves no socket behind */
		log_fatal(1, "%s", err.text);
	}
	return (h);
}

int
main(int argc, char **argv)
{
	static struct conf conf;
	struct event_base *base;
	struct listener *listener;
	struct notify *notify;
	struct agent *agent;
	struct lease *lease;
	struct hold *hold;
	struct web *web;
	struct doc_error err;
	int status;

	process_open();
	conf_open(&conf, argc, argv);
	base = base_open();
	notify = notify_open(base);
	if (notify == NULL)
		log_fatal(1, "out of memory");
	listener = socket_open(base, &conf);
	agent = agent_open(base, &conf, listener, notify, argc, argv);
	if (agent == NULL)
		log_fatal(1, "out of memory");
	hold = state_open_or_die(base, &conf, listener);
	web = web_open_or_die(&conf, listener);
	lease = lease_open(base, &conf, agent_serve(agent), agent_clock(agent),
	    hold, &status, &err);
	if (lease == NULL) {
		web_close(web);
		listener_close(listener);
		log_fatal(status, "%s", err.text);
	}

	status = agent_run(agent, lease, web);

	web_close(web);
	agent_close(agent);
	lease_close(lease);
	hold_close(hold);
	listener_close(listener);
	notify_close(notify);
	event_base_free(base);
	return (status);
}
