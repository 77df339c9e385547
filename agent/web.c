/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web - what HTTP answers: /metrics, /healthz, /readyz, /status, /fleet,
 * /agents, and a page.
 *
 * Invariant: it asks, and changes nothing: from here no way leads to an ID.
 */
#include "web.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf_http.h"
#include "exposition.h"
#include "http.h"
#include "listener_path.h"
#include "log.h"
#include "sysclock.h"

#define MODE "0660" /* of a Unix socket */
#define TEXT_MAX 524288 /* of any answer: some 2,000 agents */
#define PAGE_POLICY                                                         \
	"default-src 'none'; script-src 'nonce-%s'; style-src 'nonce-%s'; " \
	"connect-src 'self'; img-src data:; base-uri 'none'; "              \
	"form-action 'none'; frame-ancestors 'none'; "                      \
	"require-trusted-types-for 'script'"
#define PLAIN "text/plain; charset=utf-8"
#define JSON "application/json"

struct web {
	struct web_host host;
	struct http *http;
	int fd; /* listens, while http does not have it */
	bool has_path;
	struct listener_path at; /* of a Unix socket */
	char policy[256]; /* of the page in hand */
	char text[TEXT_MAX]; /* the answer in hand */
};

/* ---- answers ------------------------------------------------------------------ */

static void
say(struct http_reply *out, int code, const char *text)
{
	*out = (struct http_reply){ code, PLAIN, NULL, text, strlen(text) };
}

/* The n bytes in w->text; below 0: they did not fit, as `misfit` says. */
static void
give(const struct web *w, struct http_reply *out, int n, const char *type,
    const char *misfit)
{
	if (n < 0)
		say(out, 500, misfit);
	else
		*out =
		    (struct http_reply){ 200, type, NULL, w->text, (size_t)n };
}

static void
answer_metrics(struct web *w, struct http_reply *out)
{
	give(w, out, w->host.metrics(w->host.arg, w->text, sizeof(w->text)),
	    EXPO_CONTENT_TYPE, "the metrics do not fit\n");
}

static void
answer_ready(struct web *w, struct http_reply *out)
{
	struct status_doc d;
	bool ready;

	w->host.status(w->host.arg, &d);
	ready =
	    strcmp(d.state, "serving") == 0 || strcmp(d.state, "isolated") == 0;
	(void)snprintf(w->text, sizeof(w->text), "%s%s%s\n", d.state,
	    d.words[0] != '\0' ? ": " : "", d.words);
	say(out, ready ? 200 : 503, w->text);
}

static void
answer_status(struct web *w, struct http_reply *out)
{
	struct status_doc d;

	w->host.status(w->host.arg, &d);
	give(w, out, status_format(&d, w->text, sizeof(w->text)), JSON,
	    "the status does not fit\n");
}

static void
answer_fleet(struct web *w, struct http_reply *out)
{
	int n = w->host.fleet(w->host.arg, w->text, sizeof(w->text));

	if (n == 0)
		say(out, 503, "nobody has summed the fleet up yet\n");
	else
		give(w, out, n, JSON, "the fleet does not fit\n");
}

static void
answer_agents(struct web *w, struct http_reply *out)
{
	give(w, out, w->host.agents(w->host.arg, w->text, sizeof(w->text)),
	    JSON, "the agents do not fit\n");
}

/* What runs in it is what carries the number that only this answer has. */
static void
answer_page(struct web *w, struct http_reply *out)
{
	struct entropy rnd;
	char nonce[33];

	sysclock_entropy(&rnd);
	(void)snprintf(nonce, sizeof(nonce), "%016" PRIx64 "%016" PRIx64,
	    rnd.word[0], rnd.word[1]);
	(void)snprintf(w->policy, sizeof(w->policy), PAGE_POLICY, nonce, nonce);
	give(w, out, w->host.page(w->host.arg, nonce, w->text, sizeof(w->text)),
	    "text/html; charset=utf-8", "the page does not fit\n");
	if (out->code == 200)
		out->policy = w->policy;
}

static void
on_path(void *arg, const char *path, struct http_reply *out)
{
	struct web *w = arg;

	if (strcmp(path, "/") == 0)
		answer_page(w, out);
	else if (strcmp(path, "/metrics") == 0)
		answer_metrics(w, out);
	else if (strcmp(path, "/healthz") == 0)
		say(out, 200, "ok\n"); /* the loop turns: it answers */
	else if (strcmp(path, "/readyz") == 0)
		answer_ready(w, out);
	else if (strcmp(path, "/status") == 0)
		answer_status(w, out);
	else if (strcmp(path, "/fleet") == 0)
		answer_fleet(w, out);
	else if (strcmp(path, "/agents") == 0)
		answer_agents(w, out);
	else
		say(out, 404,
		    "there are /, /metrics, /healthz, /readyz, /status, "
		    "/fleet, /agents\n");
}

/* ---- life --------------------------------------------------------------------- */

static int
open_path(struct web *w, const char *path, const struct conf *conf,
    struct doc_error *err)
{
	const struct listener_conf lc = { path, MODE, conf->socket_group, 0 };
	struct listener_error why;
	int status = listener_path_open(&w->at, &lc, &why);

	if (status != 0) {
		doc_error_set(err, "http: %.180s", why.text);
		listener_path_close(&w->at);
		return (status);
	}
	w->has_path = true;
	return (0);
}

/* A port in use may be free the next time: that is worth another try. */
static int
open_inet(struct web *w, const struct conf_http *where, const struct conf *conf,
    struct doc_error *err)
{
	w->fd = http_bind((const struct sockaddr *)&where->addr, where->length);
	if (w->fd != -1)
		return (0);
	doc_error_set(
	    err, "http: cannot listen on %s: %s", conf->http, strerror(errno));
	return (1);
}

int
web_open(struct web **out, const struct conf *conf, struct doc_error *err)
{
	struct conf_http where;
	struct web *w;
	int status;

	*out = NULL;
	if (!conf_http_parse(conf->http, &where) || where.kind == CONF_HTTP_OFF)
		return (0);
	w = calloc(1, sizeof(*w));
	if (w == NULL) {
		doc_error_set(err, "http: out of memory");
		return (1);
	}
	w->fd = -1;
	status = where.kind == CONF_HTTP_UNIX
		     ? open_path(w, where.path, conf, err)
		     : open_inet(w, &where, conf, err);
	if (status != 0) {
		web_close(w);
		return (status);
	}
	*out = w;
	return (0);
}

bool
web_start(struct web *w, struct event_base *base, const struct web_host *host)
{
	int fd;

	if (w == NULL)
		return (true);
	w->host = *host;
	/* http closes its descriptor; the path keeps one of its own. */
	fd = w->has_path ? fcntl(w->at.fd, F_DUPFD_CLOEXEC, 0) : w->fd;
	w->fd = -1;
	w->http = fd == -1 ? NULL : http_open(base, fd, on_path, w);
	return (w->http != NULL);
}

void
web_look(struct web *w)
{
	int fd;

	if (w == NULL || w->http == NULL || !w->has_path ||
	    !listener_path_look(&w->at, &fd))
		return;
	http_relisten(w->http, fd);
	if (dup3(fd, w->at.fd, O_CLOEXEC) == -1)
		log_warn("http: socket %s", w->at.path);
	close(fd);
}

void
web_close(struct web *w)
{
	if (w == NULL)
		return;
	http_close(w->http);
	if (w->has_path) {
		listener_path_remove(&w->at);
		listener_path_close(&w->at);
	} else if (w->fd != -1) {
		close(w->fd);
	}
	free(w);
}
