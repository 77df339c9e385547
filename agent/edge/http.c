/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http - a few pages for people and scrapers, on the agent's loop.
 *
 * Invariant: whatever comes in, the cost is bounded: so many connections,
 * each for so long, with so much read and one answer.  Reading is all that it
 * offers.
 *
 * evhttp (libevent 2.1) reads headers up to a limit and closes whoever is
 * silent.  It does not count connections; a byte now and then keeps one for
 * ever; and while an answer is being sent it reads on without a limit.  So the
 * bufferevents are made, counted, limited and timed here.
 */
#include "http.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>

#include "log.h"

#define ACCEPTS_MAX 8 /* at one turn of the loop: others get theirs */
#define BACKLOG 64
#define READ_MAX (2 * HTTP_HEADERS_MAX) /* unread bytes that are kept */
#define BACKOFF_S 1 /* pause of accept when none can be accepted */
#define POLICY "default-src 'none'; frame-ancestors 'none'"
#define ANY_METHOD 0xffff /* who may not is told so by us */

/* evhttp's, and held a little longer to see that evhttp has let it go. */
struct slot {
	struct bufferevent *bev; /* NULL: free */
	unsigned age_s;
};

struct http {
	struct evhttp *server;
	struct evconnlistener *listener; /* the server's */
	struct event *again; /* the next turn, or the end of a pause */
	struct event *second;
	http_fn *fn;
	void *arg;
	struct slot slots[HTTP_CONNS_MAX]; /* oldest first */
	unsigned nslots;
	unsigned accepts; /* at this turn */
	bool starved; /* that was said */
};

/* ---- connections ------------------------------------------------------------ */

/* evhttp sets this callback first and lets go of it last. */
static bool
is_gone(const struct slot *s)
{
	bufferevent_event_cb event;

	bufferevent_getcb(s->bev, NULL, NULL, &event, NULL);
	return (event == NULL);
}

static void
reap(struct http *h)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < h->nslots; i++) {
		if (is_gone(&h->slots[i]))
			(void)bufferevent_decref(h->slots[i].bev); /* closes */
		else
			h->slots[kept++] = h->slots[i];
	}
	h->nslots = kept;
	if (kept == 0)
		(void)event_del(h->second);
}

/* For evhttp the peer has been silent for too long. */
static void
drop(struct slot *s)
{
	if (!is_gone(s))
		bufferevent_trigger_event(
		    s->bev, BEV_EVENT_READING | BEV_EVENT_TIMEOUT, 0);
}

static void
on_second(evutil_socket_t fd, short what, void *arg)
{
	struct http *h = arg;

	(void)fd;
	(void)what;
	for (unsigned i = 0; i < h->nslots; i++)
		if (++h->slots[i].age_s > HTTP_LIFE_S)
			drop(&h->slots[i]);
	reap(h);
}

static void
on_again(evutil_socket_t fd, short what, void *arg)
{
	struct http *h = arg;

	(void)fd;
	(void)what;
	h->accepts = 0;
	reap(h);
	if (evconnlistener_enable(h->listener) == -1)
		log_warnx("http: no memory to accept connections");
}

/* The oldest has had its chance; who comes now may be the honest one. */
static void
make_room(struct http *h)
{
	reap(h);
	if (h->nslots < HTTP_CONNS_MAX)
		return;
	drop(&h->slots[0]);
	reap(h);
}

/* Someone is about to be accepted: evhttp asks for a bufferevent. */
static struct bufferevent *
on_connection(struct event_base *base, void *arg)
{
	const struct timeval second = { 1, 0 };
	struct http *h = arg;
	struct bufferevent *bev;

	if (h->accepts++ == 0)
		event_active(h->again, EV_TIMEOUT, 0);
	if (h->accepts == ACCEPTS_MAX)
		(void)evconnlistener_disable(h->listener);
	h->starved = false;
	make_room(h);
	bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
	if (bev == NULL || h->nslots == HTTP_CONNS_MAX)
		return (bev);
	bufferevent_setwatermark(bev, EV_READ, 0, READ_MAX);
	bufferevent_incref(bev);
	h->slots[h->nslots++] = (struct slot){ .bev = bev };
	if (!event_pending(h->second, EV_TIMEOUT, NULL))
		(void)event_add(h->second, &second);
	return (bev);
}

/* Readiness would spin while there is no descriptor to accept with. */
static void
on_accept_error(struct evconnlistener *listener, void *arg)
{
	const struct timeval pause = { BACKOFF_S, 0 };
	struct http *h = arg;

	if (!h->starved)
		log_peer(
		    LOG_LEVEL_WARN, "http: accept pauses: %s", strerror(errno));
	h->starved = true;
	if (event_add(h->again, &pause) == 0)
		(void)evconnlistener_disable(listener);
}

/* ---- requests --------------------------------------------------------------- */

/* The answer is out: its connection is freed after this. */
static void
on_complete(struct evhttp_request *rq, void *arg)
{
	struct http *h = arg;

	(void)rq;
	event_active(h->again, EV_TIMEOUT, 0);
}

static void
reply(struct http *h, struct evhttp_request *rq, const struct http_reply *r)
{
	struct evkeyvalq *out = evhttp_request_get_output_headers(rq);
	struct evbuffer *body = evbuffer_new();
	char length[24];

	snprintf(length, sizeof(length), "%zu", r->length);
	if (body == NULL ||
	    evhttp_add_header(out, "Connection", "close") == -1 ||
	    evhttp_add_header(out, "Content-Type", r->type) == -1 ||
	    evhttp_add_header(out, "Content-Length", length) == -1 ||
	    evhttp_add_header(out, "Cache-Control", "no-store") == -1 ||
	    evhttp_add_header(out, "X-Content-Type-Options", "nosniff") == -1 ||
	    evhttp_add_header(out, "Referrer-Policy", "no-referrer") == -1 ||
	    evhttp_add_header(out, "Content-Security-Policy",
		r->policy != NULL ? r->policy : POLICY) == -1 ||
	    (evhttp_request_get_command(rq) != EVHTTP_REQ_HEAD &&
		evbuffer_add(body, r->text, r->length) == -1))
		log_warnx("http: no memory for an answer");
	evhttp_request_set_on_complete_cb(rq, on_complete, h);
	evhttp_send_reply(rq, r->code, NULL, body);
	if (body != NULL)
		evbuffer_free(body);
}

static void
on_request(struct evhttp_request *rq, void *arg)
{
	static const char words[] = "GET and HEAD only\n";
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(rq);
	const char *path = uri != NULL ? evhttp_uri_get_path(uri) : NULL;
	struct http *h = arg;
	struct http_reply r = { 405, "text/plain", NULL, words,
		sizeof(words) - 1 };

	switch ((int)evhttp_request_get_command(rq)) {
	case EVHTTP_REQ_GET:
	case EVHTTP_REQ_HEAD:
		h->fn(h->arg, path != NULL && path[0] != '\0' ? path : "/", &r);
		break;
	default: /* a set that is not ours */
		(void)evhttp_add_header(evhttp_request_get_output_headers(rq),
		    "Allow", "GET, HEAD");
	}
	reply(h, rq, &r);
}

/* ---- life ------------------------------------------------------------------- */

int
http_bind(const struct sockaddr *addr, socklen_t length)
{
	const int on = 1;
	int error;
	int fd = socket(
	    addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd == -1)
		return (-1);
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
	    bind(fd, addr, length) == 0 && listen(fd, BACKLOG) == 0)
		return (fd);
	error = errno;
	close(fd);
	errno = error;
	return (-1);
}

static bool
open_server(struct http *h, struct event_base *base)
{
	h->server = evhttp_new(base);
	h->again = evtimer_new(base, on_again, h);
	h->second = event_new(base, -1, EV_PERSIST, on_second, h);
	if (h->server == NULL || h->again == NULL || h->second == NULL)
		return (false);
	evhttp_set_max_headers_size(h->server, HTTP_HEADERS_MAX);
	evhttp_set_max_body_size(h->server, 0);
	evhttp_set_timeout(h->server, HTTP_LIFE_S);
	evhttp_set_allowed_methods(h->server, ANY_METHOD);
	evhttp_set_bevcb(h->server, on_connection, h);
	evhttp_set_gencb(h->server, on_request, h);
	return (true);
}

struct http *
http_open(struct event_base *base, int fd, http_fn *fn, void *arg)
{
	struct http *h = calloc(1, sizeof(*h));
	struct evconnlistener *l = evconnlistener_new(base, NULL, NULL,
	    LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);

	if (l == NULL)
		close(fd);
	if (h == NULL || l == NULL || !open_server(h, base) ||
	    evhttp_bind_listener(h->server, l) == NULL) {
		if (l != NULL)
			evconnlistener_free(l);
		http_close(h);
		return (NULL);
	}
	h->fn = fn;
	h->arg = arg;
	h->listener = l;
	evconnlistener_set_error_cb(l, on_accept_error);
	return (h);
}

void
http_relisten(struct http *h, int fd)
{
	(void)evconnlistener_disable(h->listener);
	if (dup3(fd, evconnlistener_get_fd(h->listener), O_CLOEXEC) == -1)
		log_warn("http: cannot listen anew");
	if (evconnlistener_enable(h->listener) == -1)
		log_warnx("http: no memory to accept connections");
}

void
http_close(struct http *h)
{
	if (h == NULL)
		return;
	if (h->server != NULL)
		evhttp_free(h->server); /* the listener, too */
	for (unsigned i = 0; i < h->nslots; i++)
		(void)bufferevent_decref(h->slots[i].bev);
	if (h->again != NULL)
		event_free(h->again);
	if (h->second != NULL)
		event_free(h->second);
	free(h);
}
