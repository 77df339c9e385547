/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web - what HTTP answers: /metrics, /healthz, /readyz, /status, /fleet,
 * /agents, and a page.
 *
 * Invariant: it asks, and changes nothing: from here no way leads to an ID.
 */
#ifndef WEB_H
#define WEB_H

#include "conf.h"
#include "status.h"

struct event_base;
struct web;

/* What is asked; arg and what it means must outlive the web. */
struct web_host {
	void (*status)(void *arg, struct status_doc *d); /* as of now */
	int (*metrics)(void *arg, char *buf, size_t n); /* -1: no room */
	int (*fleet)(void *arg, char *buf, size_t n); /* 0: not known */
	int (*agents)(void *arg, char *buf, size_t n);
	/* nonce: what the page's style and script are to carry */
	int (*page)(void *arg, const char *nonce, char *buf, size_t n);
	void *arg;
};

/*
 * Listens where the key `http` says, and answers nothing yet.  0, with NULL in
 * *out if the key is empty; else the status to exit with and one line in err.
 */
FIRN_CHECK_RESULT int web_open(
    struct web **out, const struct conf *conf, struct doc_error *err);

/* Answers from now on; false: out of memory.  NULL is fine. */
FIRN_CHECK_RESULT bool web_start(
    struct web *w, struct event_base *base, const struct web_host *host);

/* Now and then: a Unix socket that somebody has removed is made again. */
void web_look(struct web *w);

/* NULL is fine. */
void web_close(struct web *w);

#endif
