/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_stub - the stub against an agent of this test's own, which speaks the
 * protocol from a thread and errs on command.
 *
 * The clocks that ages are told by can be put ahead (see clock_gettime below),
 * so nothing here waits for time to pass but the deadlines under test.
 * handle.h is looked into only to learn how many calls are inside.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "firn-wire.h"
#include "firn.h"
#include "handle.h"

#define MS INT64_C(1000000)
#define S (1000 * MS)

/* ---- the world: clocks put ahead, a kernel that does not wipe ---- */

static _Atomic int64_t mono_ahead_ns, real_ahead_ns, boot_ahead_ns;
static atomic_bool refuse_wipe;

/* In the place of the C library's. */
int
clock_gettime(clockid_t id, struct timespec *ts)
{
	int64_t ns = 0;

	if (syscall(SYS_clock_gettime, id, ts) != 0)
		return (-1);
	if (id == CLOCK_MONOTONIC_COARSE)
		ns = mono_ahead_ns;
	else if (id == CLOCK_REALTIME_COARSE)
		ns = real_ahead_ns;
	else if (id == CLOCK_BOOTTIME)
		ns = boot_ahead_ns;
	ns += ts->tv_nsec;
	ts->tv_sec += (time_t)(ns / S);
	ts->tv_nsec = (long)(ns % S);
	return (0);
}

int
madvise(void *p, size_t n, int advice)
{
	if (advice == MADV_WIPEONFORK && refuse_wipe) {
		errno = EINVAL;
		return (-1);
	}
	return ((int)syscall(SYS_madvise, p, n, advice));
}

/*
 * The stub's send() (MSG_DONTWAIT is its mark) can be held back until the
 * agent has closed: what it sends then meets a closed socket, always.
 */
static atomic_bool send_late;
static void late_wait(void);

ssize_t
send(int fd, const void *p, size_t n, int flags)
{
	if (send_late && (flags & MSG_DONTWAIT) != 0)
		late_wait();
	return (sendto(fd, p, n, flags, NULL, 0));
}

static int64_t
now_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ((int64_t)ts.tv_sec * S + ts.tv_nsec);
}

/* ---- the agent ---- */

enum act {
	GRANT = 0,
	REFUSE, /* .status, .retry_ms */
	HOLD, /* a good reply, sent when the test says so */
	HANG_UP, /* closes instead of a reply */
	HALF, /* half a reply, then closes */
	HALF_SILENT, /* half a reply, and nothing more */
	HOLD_REFUSAL, /* as HOLD, for a refusal */
	WRONG_COOKIE,
	WRONG_VERSION,
	WRONG_TYPE,
	WRONG_LENGTH, /* header and body disagree */
	HUGE_LENGTH,
	NO_RUNS,
	OVERLAP, /* repeats the last run */
	LONG_RUN, /* past the tick's last sequence */
	TWICE_IN_ONE, /* two runs, the second not above the first */
	MORE_THAN_ASKED,
	OLD, /* made .age_ms ago */
	CONTRACT_REFUSED, /* no_realm for both */
	CONTRACT_LATE, /* no_realm, and known before the batch is answered */
	CONTRACT_IMPOSSIBLE,
	DRIBBLE, /* a good reply, byte by byte */
};

struct order {
	enum act act;
	uint16_t status;
	uint32_t retry_ms;
	uint32_t age_ms;
	uint32_t limit; /* grants so many at most; 0: as asked */
};

#define CLIENTS 96
#define ORDERS 8
#define SEEN 64

struct client {
	int fd;
	uint8_t in[WIRE_REQUEST_SIZE];
	size_t have;
};

struct fake {
	char dir[64], path[96];
	int listener, wake;
	pthread_t thread;
	bool running;
	atomic_bool stop, paused;

	pthread_mutex_t lock; /* all below */
	pthread_cond_t changed;
	struct order orders[ORDERS];
	size_t norders, at;
	bool forever; /* the last order holds on */
	struct order greet; /* whom it accepts it refuses, .limit times */
	unsigned greeted;
	bool release;
	uint8_t uuid;
	char realm[WIRE_REALM_MAX];
	uint64_t tick, last_first;
	uint32_t ttl_ms;
	unsigned connects, contracts, batches;
	uint64_t granted; /* IDs in all good replies */
	uint64_t afters[SEEN];
	uint32_t counts[SEEN];

	struct client clients[CLIENTS]; /* the thread's */
	uint8_t held[WIRE_REPLY_MAX];
	size_t held_len;
	int held_fd;
};

static struct fake fake;

static const struct firn_layout layout = {
	.size = sizeof(struct firn_layout),
	.time_bits = 41,
	.worker_bits = 10,
	.sequence_bits = 12,
	.tick_ms = 1,
	.epoch_ms = INT64_C(1735689600000),
	.name = "firn",
};

static void
client_write(int fd, const uint8_t *p, size_t n)
{
	while (n > 0) {
		ssize_t k = send(fd, p, n, MSG_NOSIGNAL);

		if (k <= 0)
			return;
		p += k;
		n -= (size_t)k;
	}
}

static void
client_close(struct client *c)
{
	close(c->fd);
	c->fd = -1;
	c->have = 0;
}

static size_t
make_refusal(uint8_t *p, const struct wire_request *r, const struct order *o)
{
	static const char words[] = "this host is\nin doubt";
	struct wire_header h = {
		.version = WIRE_VERSION,
		.type = r->type,
		.status = o->status,
		.length = WIRE_REFUSAL_SIZE + sizeof(words) - 1,
		.cookie = r->cookie,
	};

	wire_put_header(p, &h);
	wire_put32(p + 16, o->retry_ms);
	wire_put32(p + 20, sizeof(words) - 1);
	memcpy(p + 24, words, sizeof(words) - 1);
	return (WIRE_HEADER_SIZE + h.length);
}

static size_t
make_contract(uint8_t *p, const struct wire_request *r, bool impossible)
{
	struct wire_header h = {
		.version = WIRE_VERSION,
		.type = WIRE_CONTRACT,
		.length = WIRE_CONTRACT_SIZE,
		.cookie = r->cookie,
	};
	struct wire_contract k = { .layout = layout, .worker = 7 };

	if (impossible)
		k.layout.time_bits = 60;
	memset(k.uuid, fake.uuid, sizeof(k.uuid));
	memcpy(k.realm, fake.realm, sizeof(k.realm));
	wire_put_header(p, &h);
	wire_put_contract(p + WIRE_HEADER_SIZE, &k);
	return (WIRE_HEADER_SIZE + WIRE_CONTRACT_SIZE);
}

/* A good grant, then bent as the order says. */
static size_t
make_grant(uint8_t *p, const struct wire_request *r, const struct order *o)
{
	struct wire_run runs[WIRE_RUNS_MAX];
	uint32_t n = 0, left = r->count;
	struct wire_header h = {
		.version = WIRE_VERSION,
		.type = WIRE_BATCH,
		.cookie = r->cookie,
	};

	if (o->limit > 0 && left > o->limit)
		left = o->limit;
	if (fake.tick < r->after >> 22)
		fake.tick = r->after >> 22;
	while (n < WIRE_RUNS_MAX && left > 0) {
		runs[n] = (struct wire_run){
			.first = ++fake.tick << 22 | 7 << 12,
			.stride = 1,
			.count = left < 4096 ? left : 4096,
		};
		fake.granted += runs[n].count;
		left -= runs[n++].count;
	}
	if (o->act == OVERLAP)
		runs[0].first = fake.last_first;
	if (o->act == LONG_RUN)
		runs[0].first += 4096 - runs[0].count + 1;
	if (o->act == MORE_THAN_ASKED)
		runs[0].count = r->count + 1;
	if (o->act == TWICE_IN_ONE) {
		runs[1] = runs[0];
		n = 2;
	}
	if (o->act == NO_RUNS)
		n = 0;
	else
		fake.last_first = runs[0].first;
	h.length = WIRE_BATCH_SIZE + n * WIRE_RUN_SIZE;
	h.cookie ^= o->act == WRONG_COOKIE ? 1 : 0;
	h.version = o->act == WRONG_VERSION ? 9 : WIRE_VERSION;
	h.type = o->act == WRONG_TYPE ? WIRE_STATUS : WIRE_BATCH;
	if (o->act == WRONG_LENGTH)
		h.length += 8;
	if (o->act == HUGE_LENGTH)
		h.length = WIRE_BODY_MAX + 1;
	wire_put_header(p, &h);
	wire_put64(p + 16, (uint64_t)(now_ns(CLOCK_BOOTTIME) - o->age_ms * MS));
	wire_put32(p + 24, fake.ttl_ms);
	wire_put32(p + 28, n);
	for (uint32_t i = 0; i < n; i++)
		wire_put_run(p + 32 + i * WIRE_RUN_SIZE, &runs[i]);
	if (o->act == WRONG_LENGTH) /* so that the bytes it claims are there */
		memset(p + WIRE_HEADER_SIZE + h.length - 8, 0, 8);
	return (o->act == HUGE_LENGTH ? WIRE_HEADER_SIZE
				      : WIRE_HEADER_SIZE + h.length);
}

static const struct order *
order_now(void)
{
	static const struct order grant = { .act = GRANT };

	if (fake.at >= fake.norders && fake.forever)
		return (&fake.orders[fake.norders - 1]);
	return (fake.at < fake.norders ? &fake.orders[fake.at] : &grant);
}

static void
serve_batch(struct client *c, const struct wire_request *r)
{
	struct order o = *order_now();
	uint8_t p[WIRE_REPLY_MAX];
	size_t n;

	fake.at++;
	if (fake.batches < SEEN) {
		fake.afters[fake.batches] = r->after;
		fake.counts[fake.batches] = r->count;
	}
	fake.batches++;
	if (o.act == HANG_UP) {
		client_close(c);
		return;
	}
	if (o.act == REFUSE || o.act == CONTRACT_REFUSED ||
	    o.act == HOLD_REFUSAL)
		n = make_refusal(p, r, &o);
	else
		n = make_grant(p, r, &o);
	if (o.act == HOLD || o.act == HOLD_REFUSAL) {
		memcpy(fake.held, p, n);
		fake.held_len = n;
		fake.held_fd = c->fd;
	} else if (o.act == DRIBBLE) {
		for (size_t i = 0; i < n; i++)
			client_write(c->fd, p + i, 1);
	} else {
		client_write(c->fd, p,
		    o.act == HALF || o.act == HALF_SILENT ? n / 2 : n);
	}
	if (o.act == HALF)
		client_close(c);
}

static void
serve(struct client *c)
{
	struct wire_request r;
	uint8_t p[WIRE_REPLY_MAX];
	size_t n;

	wire_get_request(c->in, &r);
	pthread_mutex_lock(&fake.lock);
	if (r.type == WIRE_BATCH) {
		serve_batch(c, &r);
	} else {
		const struct order *o = order_now();

		fake.contracts++;
		if (o->act == CONTRACT_REFUSED || o->act == CONTRACT_LATE)
			n = make_refusal(p, &r, o);
		else
			n = make_contract(p, &r, o->act == CONTRACT_IMPOSSIBLE);
		client_write(c->fd, p, n);
	}
	pthread_cond_broadcast(&fake.changed);
	pthread_mutex_unlock(&fake.lock);
}

static void
client_read(struct client *c)
{
	ssize_t k =
	    recv(c->fd, c->in + c->have, sizeof(c->in) - c->have, MSG_DONTWAIT);

	if (k <= 0) {
		if (k == 0 || errno != EAGAIN)
			client_close(c);
		return;
	}
	c->have += (size_t)k;
	if (c->have == sizeof(c->in)) {
		c->have = 0;
		serve(c);
	}
}

/* The refusal of a connection, before any request is read. */
static void
fake_greet(int fd)
{
	const struct wire_request none = { 0 };
	uint8_t p[WIRE_REPLY_MAX];

	client_write(fd, p, make_refusal(p, &none, &fake.greet));
	close(fd);
	fake.greeted++;
}

static void
fake_accept(void)
{
	int fd = accept4(fake.listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd == -1)
		return;
	pthread_mutex_lock(&fake.lock);
	fake.connects++;
	if (fake.greet.limit > 0) {
		fake.greet.limit--;
		fake_greet(fd);
		fd = -1;
	}
	pthread_cond_broadcast(&fake.changed);
	pthread_mutex_unlock(&fake.lock);
	if (fd == -1)
		return;
	for (size_t i = 0; i < CLIENTS; i++) {
		if (fake.clients[i].fd == -1) {
			fake.clients[i].fd = fd;
			return;
		}
	}
	close(fd);
}

static void
fake_woken(void)
{
	uint64_t n;

	(void)!read(fake.wake, &n, sizeof(n));
	pthread_mutex_lock(&fake.lock);
	if (fake.release) {
		client_write(fake.held_fd, fake.held, fake.held_len);
		fake.release = false;
	}
	pthread_mutex_unlock(&fake.lock);
}

static void *
fake_main(void *arg)
{
	struct pollfd p[CLIENTS + 2];

	(void)arg;
	while (!fake.stop) {
		p[0] = (struct pollfd){ .fd = fake.wake, .events = POLLIN };
		p[1] = (struct pollfd){
			.fd = fake.paused ? -1 : fake.listener,
			.events = POLLIN,
		};
		for (size_t i = 0; i < CLIENTS; i++)
			p[i + 2] = (struct pollfd){
				.fd = fake.clients[i].fd,
				.events = POLLIN,
			};
		(void)poll(p, CLIENTS + 2, -1);
		if (p[0].revents != 0)
			fake_woken();
		for (size_t i = 0; i < CLIENTS; i++) {
			if (p[i + 2].revents != 0)
				client_read(&fake.clients[i]);
		}
		if (p[1].revents != 0)
			fake_accept();
	}
	for (size_t i = 0; i < CLIENTS; i++) {
		if (fake.clients[i].fd != -1)
			client_close(&fake.clients[i]);
	}
	return (NULL);
}

static void
fake_kick(void)
{
	uint64_t one = 1;

	assert_int_equal(write(fake.wake, &one, sizeof(one)), sizeof(one));
}

static void
fake_start(int backlog)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	for (size_t i = 0; i < CLIENTS; i++)
		fake.clients[i].fd = -1;
	fake.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fake.listener >= 0);
	memcpy(sun.sun_path, fake.path, sizeof(fake.path));
	assert_int_equal(
	    bind(fake.listener, (struct sockaddr *)&sun, sizeof(sun)), 0);
	assert_int_equal(listen(fake.listener, backlog), 0);
	fake.stop = false;
	assert_int_equal(
	    pthread_create(&fake.thread, NULL, fake_main, NULL), 0);
	fake.running = true;
}

static void
fake_stop(void)
{
	fake.stop = true;
	fake_kick();
	assert_int_equal(pthread_join(fake.thread, NULL), 0);
	close(fake.listener);
	unlink(fake.path);
	fake.running = false;
}

static void
fake_release(void)
{
	pthread_mutex_lock(&fake.lock);
	fake.release = true;
	pthread_mutex_unlock(&fake.lock);
	fake_kick();
}

/* Waits until the agent has seen so many. */
static void
fake_wait(const unsigned *counter, unsigned value)
{
	pthread_mutex_lock(&fake.lock);
	while (*counter < value)
		pthread_cond_wait(&fake.changed, &fake.lock);
	pthread_mutex_unlock(&fake.lock);
}

/* Until a connection that was refused is closed. */
static void
late_wait(void)
{
	pthread_mutex_lock(&fake.lock);
	while (fake.greeted < fake.connects || fake.greeted == 0)
		pthread_cond_wait(&fake.changed, &fake.lock);
	pthread_mutex_unlock(&fake.lock);
	send_late = false;
}

static unsigned
fake_count(const unsigned *counter)
{
	unsigned n;

	pthread_mutex_lock(&fake.lock);
	n = *counter;
	pthread_mutex_unlock(&fake.lock);
	return (n);
}

/* What the agent does with the next requests for IDs; then it grants. */
static void
fake_orders(const struct order *o, size_t n)
{
	pthread_mutex_lock(&fake.lock);
	for (size_t i = 0; i < n; i++)
		fake.orders[i] = o[i];
	fake.norders = n;
	fake.at = 0;
	fake.batches = fake.connects = fake.contracts = 0;
	pthread_mutex_unlock(&fake.lock);
}

static void
fake_greetings(const struct order *o)
{
	pthread_mutex_lock(&fake.lock);
	fake.greet = *o;
	fake.greeted = 0;
	pthread_mutex_unlock(&fake.lock);
}

static int
setup(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	pthread_mutex_init(&fake.lock, NULL);
	pthread_cond_init(&fake.changed, NULL);
	mono_ahead_ns = real_ahead_ns = boot_ahead_ns = 0;
	refuse_wipe = send_late = false;
	strcpy(fake.dir, "/tmp/firn-stub-XXXXXX");
	if (mkdtemp(fake.dir) == NULL)
		return (-1);
	snprintf(fake.path, sizeof(fake.path), "%s/s", fake.dir);
	fake.wake = eventfd(0, EFD_CLOEXEC);
	fake.uuid = 0x11;
	strcpy(fake.realm, "default");
	fake.tick = 1000;
	fake.ttl_ms = 1000;
	unsetenv("FIRN_REALM");
	fake_start(64);
	return (fake.wake == -1 ? -1 : 0);
}

static int
teardown(void **state)
{
	(void)state;
	if (fake.running)
		fake_stop();
	close(fake.wake);
	pthread_mutex_destroy(&fake.lock);
	pthread_cond_destroy(&fake.changed);
	unlink(fake.path);
	return (rmdir(fake.dir));
}

/* ---- helpers ---- */

#define LONG_MS 20000 /* a deadline that no good run comes near */

static struct firn *
open_with(uint32_t timeout_ms, uint32_t max_batch, const char *realm)
{
	struct firn_options o = {
		.size = sizeof(o),
		.timeout_ms = timeout_ms,
		.socket = fake.path,
		.max_batch = max_batch,
		.realm = realm,
	};
	struct firn *f;

	assert_int_equal(firn_open(&f, &o), 0);
	return (f);
}

static uint64_t
next(struct firn *f)
{
	uint64_t id = 0;
	int rc = firn_next(f, &id);

	if (rc != 0) {
		char why[200];

		(void)firn_why(f, why, sizeof(why));
		fail_msg("firn_next: %d, %s", rc, why);
	}
	return (id);
}

static int
next_error(struct firn *f)
{
	uint64_t id = 77;
	int rc = firn_next(f, &id);

	assert_int_equal(id, 77); /* written on success only */
	return (rc);
}

static void
assert_why(struct firn *f, const char *words)
{
	char why[600];

	assert_true(firn_why(f, why, sizeof(why)) > 0);
	if (strstr(why, words) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", words, why);
	assert_null(strchr(why, '\n'));
}

static int
compare_ids(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x < y ? -1 : x > y);
}

static void
assert_unique(uint64_t *ids, size_t n)
{
	qsort(ids, n, sizeof(*ids), compare_ids);
	for (size_t i = 1; i < n; i++)
		assert_true(ids[i] != ids[i - 1]);
}

static void
assert_rising(const uint64_t *ids, size_t n)
{
	for (size_t i = 1; i < n; i++)
		assert_true(ids[i] > ids[i - 1]);
}

/* A call in a thread of its own. */
struct caller {
	pthread_t thread;
	struct firn *f;
	uint64_t id;
	int rc;
};

static void *
caller_main(void *arg)
{
	struct caller *c = arg;

	c->rc = firn_next(c->f, &c->id);
	return (NULL);
}

static void
caller_start(struct caller *c, struct firn *f)
{
	c->f = f;
	assert_int_equal(pthread_create(&c->thread, NULL, caller_main, c), 0);
}

static int
caller_join(struct caller *c)
{
	assert_int_equal(pthread_join(c->thread, NULL), 0);
	return (c->rc);
}

/* ---- the good days ---- */

static void
test_ids_rise(void **state)
{
	(void)state;
	static uint64_t ids[50000];
	struct firn *f = open_with(LONG_MS, 0, NULL);
	char why[8] = "x";

	assert_int_equal(fake_count(&fake.connects), 0); /* lazy */
	assert_int_equal(firn_why(f, why, sizeof(why)), 0);
	assert_string_equal(why, "");
	for (size_t i = 0; i < 50000; i++)
		ids[i] = next(f);
	assert_rising(ids, 50000);
	assert_int_equal(fake_count(&fake.connects), 1);
	assert_int_equal(fake_count(&fake.contracts), 1);
	assert_int_equal(fake.counts[0], 1); /* a first call asks for one */
	assert_true(fake_count(&fake.batches) < 100);
	for (unsigned i = 1; i < fake.batches && i < SEEN; i++)
		assert_true(fake.afters[i] > fake.afters[i - 1]);
	firn_close(f);
	firn_close(NULL);
}

static void
test_seldom_asks_for_one(void **state)
{
	(void)state;
	struct firn *f = open_with(LONG_MS, 0, NULL);
	uint64_t last = 0;

	for (int i = 0; i < 5; i++) {
		uint64_t id;

		/* older than the ttl: whatever was left is dropped */
		mono_ahead_ns += 2 * S;
		id = next(f);
		assert_true(id > last);
		last = id;
	}
	assert_true(fake_count(&fake.batches) >= 5);
	firn_close(f);
}

static void
test_after_is_the_highest_received(void **state)
{
	(void)state;
	struct firn *f = open_with(LONG_MS, 0, NULL);
	uint64_t ids[10];
	size_t got;

	assert_int_equal(firn_next_many(f, ids, 10, &got), 0);
	assert_int_equal(got, 10);
	mono_ahead_ns += 2 * S;
	assert_true(next(f) > ids[9]);
	assert_int_equal(fake.afters[0], 0);
	assert_true(fake.afters[1] >= ids[9]);
	firn_close(f);
}

static void
test_layout_without_ids(void **state)
{
	(void)state;
	struct firn *f = open_with(LONG_MS, 0, NULL);
	struct firn_layout l;

	assert_int_equal(firn_get_layout(f, &l), 0);
	assert_string_equal(l.name, "firn");
	assert_int_equal(l.sequence_bits, 12);
	assert_int_equal(fake_count(&fake.batches), 0);
	fake_stop();
	assert_int_equal(firn_get_layout(f, &l), 0); /* known by now */
	firn_close(f);
}

/* So many letters, the end of a constant text. */
static const char *
letters(size_t n)
{
	static char text[300];

	memset(text, 'x', sizeof(text) - 1);
	return (text + sizeof(text) - 1 - n);
}

static void
test_options(void **state)
{
	(void)state;
	struct {
		struct firn_options o;
		uint64_t newer;
	} big = { .o = { .size = sizeof(big), .socket = "/x" } };
	static const union {
		struct firn_options o;
		char room[8192];
	} wild = { .o = { .size = sizeof(wild) } };
	const uint32_t size = sizeof(struct firn_options);
	const struct {
		const char *why;
		struct firn_options o;
		int rc;
	} cases[] = {
		{ "all defaults", { .size = size }, FIRN_OK },
		{ "no size", { .size = 0 }, FIRN_EINVAL },
		{ "a size below ours", { .size = size - 1 }, FIRN_EINVAL },
		{ "a path that just fits",
		    { .size = size, .socket = letters(107) }, FIRN_OK },
		{ "a path too long", { .size = size, .socket = letters(108) },
		    FIRN_EINVAL },
		{ "an empty path", { .size = size, .socket = "" },
		    FIRN_EINVAL },
		{ "a realm that just fits",
		    { .size = size, .realm = letters(WIRE_REALM_MAX - 1) },
		    FIRN_OK },
		{ "a realm too long",
		    { .size = size, .realm = letters(WIRE_REALM_MAX) },
		    FIRN_EINVAL },
		{ "an empty realm", { .size = size, .realm = "" },
		    FIRN_EINVAL },
		{ "one ID at a time", { .size = size, .max_batch = 1 },
		    FIRN_OK },
		{ "the largest batch",
		    { .size = size, .max_batch = WIRE_COUNT_MAX }, FIRN_OK },
		{ "a larger batch",
		    { .size = size, .max_batch = WIRE_COUNT_MAX + 1 },
		    FIRN_EINVAL },
		{ "the longest of deadlines",
		    { .size = size, .timeout_ms = UINT32_MAX }, FIRN_OK },
		{ "the longest of lives",
		    { .size = size, .ttl_ms = UINT32_MAX }, FIRN_OK },
	};
	struct firn *f = NULL;

	assert_int_equal(firn_open(NULL, NULL), FIRN_EINVAL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int rc = firn_open(&f, &cases[i].o);

		if (rc != cases[i].rc)
			fail_msg("%s: %d", cases[i].why, rc);
		if (rc == FIRN_OK)
			firn_close(f);
	}
	assert_int_equal(firn_open(&f, &wild.o), FIRN_EINVAL);
	/* the environment is no better */
	assert_int_equal(setenv("FIRN_SOCKET", letters(108), 1), 0);
	assert_int_equal(firn_open(&f, NULL), FIRN_EINVAL);
	assert_int_equal(unsetenv("FIRN_SOCKET"), 0);
	assert_int_equal(setenv("FIRN_REALM", letters(WIRE_REALM_MAX), 1), 0);
	assert_int_equal(firn_open(&f, NULL), FIRN_EINVAL);
	assert_int_equal(unsetenv("FIRN_REALM"), 0);
	/* a newer program: fine, until it asks for what we do not know */
	assert_int_equal(firn_open(&f, &big.o), 0);
	firn_close(f);
	big.newer = 1;
	assert_int_equal(firn_open(&f, &big.o), FIRN_EINVAL);
}

static void
test_arguments(void **state)
{
	(void)state;
	struct firn *f = open_with(LONG_MS, 0, NULL);
	uint64_t id;
	size_t got = 9;
	short events;
	struct firn_layout l;
	struct firn_stats s = { .size = sizeof(s) };

	assert_int_equal(firn_next(NULL, &id), FIRN_EINVAL);
	assert_int_equal(firn_next(f, NULL), FIRN_EINVAL);
	assert_int_equal(firn_try_next(NULL, &id), FIRN_EINVAL);
	assert_int_equal(firn_next_many(f, NULL, 1, &got), FIRN_EINVAL);
	assert_int_equal(got, 0);
	assert_int_equal(firn_next_many(f, &id, 1, NULL), FIRN_EINVAL);
	assert_int_equal(firn_next_many(f, NULL, 0, &got), 0);
	assert_int_equal(firn_try_next(f, NULL), FIRN_EINVAL);
	assert_int_equal(firn_next_many(NULL, &id, 1, &got), FIRN_EINVAL);
	assert_int_equal(firn_get_layout(NULL, &l), FIRN_EINVAL);
	assert_int_equal(firn_get_layout(f, NULL), FIRN_EINVAL);
	assert_int_equal(firn_get_stats(NULL, &s), FIRN_EINVAL);
	assert_int_equal(firn_get_stats(f, NULL), FIRN_EINVAL);
	s.size--;
	assert_int_equal(firn_get_stats(f, &s), FIRN_EINVAL);
	s.size += 9; /* a newer program's */
	assert_int_equal(firn_get_stats(f, &s), FIRN_OK);
	assert_int_equal(s.size, sizeof(s));
	assert_int_equal(firn_poll_fd(f, NULL), FIRN_EINVAL);
	assert_int_equal(firn_poll_fd(f, &events), FIRN_EAWAY);
	assert_int_equal(fake_count(&fake.connects), 0);
	firn_close(f);
}

/* ---- refusals ---- */

static void
test_refusals(void **state)
{
	(void)state;
	const struct {
		const char *why;
		struct order o[3];
		size_t n;
		int rc;
		unsigned batches; /* asked in all */
		const char *words;
	} cases[] = {
		{ "waited out", { { REFUSE, WIRE_NO_CLAIM, 1, 0, 0 } }, 1,
		    FIRN_OK, 2, "no_claim: this host is?in doubt" },
		{ "waited out twice",
		    { { REFUSE, WIRE_CLOCK_BACK, 1, 0, 0 },
			{ REFUSE, WIRE_WINDOW_SPENT, 1, 0, 0 } },
		    2, FIRN_OK, 3, "window_spent" },
		{ "does not fit the deadline",
		    { { REFUSE, WIRE_CLOCK_BACK, 3600000, 0, 0 } }, 1,
		    FIRN_EREFUSED, 1, "clock_back" },
		{ "no wait is known", { { REFUSE, WIRE_STATE_LOST, 0, 0, 0 } },
		    1, FIRN_EREFUSED, 1, "state_lost" },
		{ "skew: at once, whatever it says",
		    { { REFUSE, WIRE_CLOCK_SKEW, 1, 0, 0 } }, 1, FIRN_EREFUSED,
		    1, "clock_skew" },
		{ "epoch ended", { { REFUSE, WIRE_EPOCH_ENDED, 1, 0, 0 } }, 1,
		    FIRN_EREFUSED, 1, "epoch_ended" },
		{ "realm changed", { { REFUSE, WIRE_REALM_CHANGED, 1, 0, 0 } },
		    1, FIRN_EREFUSED, 1, "realm_changed" },
		{ "not on the list", { { REFUSE, WIRE_NOT_ALLOWED, 0, 0, 0 } },
		    1, FIRN_EACCES, 1, "this process has uid" },
		{ "too many clients: again",
		    { { REFUSE, WIRE_TOO_MANY, 1, 0, 0 } }, 1, FIRN_OK, 2,
		    "too_many" },
		{ "the contract as well",
		    { { CONTRACT_REFUSED, WIRE_NO_REALM, 1, 0, 0 } }, 1,
		    FIRN_OK, 2, "no_realm" },
		{ "the contract as well, for good",
		    { { CONTRACT_REFUSED, WIRE_NO_REALM, 0, 0, 0 } }, 1,
		    FIRN_EREFUSED, 1, "no_realm" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct firn *f = open_with(LONG_MS, 0, NULL);
		uint64_t id;
		int rc;

		fake_orders(cases[i].o, cases[i].n);
		rc = firn_next(f, &id);
		if (rc != cases[i].rc ||
		    fake_count(&fake.batches) != cases[i].batches)
			fail_msg("%s: %d after %u", cases[i].why, rc,
			    fake_count(&fake.batches));
		assert_why(f, cases[i].words);
		/* whatever it was, it is over */
		assert_true(next(f) > 0);
		firn_close(f);
	}
}

/* Too many IDs for one user: a reply like any other, the connection stays. */
static void
test_over_rate(void **state)
{
	(void)state;
	const struct order orders[] = {
		{ .act = REFUSE, .status = WIRE_TOO_MANY, .retry_ms = 1 },
		{ .act = REFUSE, .status = WIRE_TOO_MANY, .retry_ms = 2 },
		{ .act = GRANT },
		{ .act = REFUSE, .status = WIRE_TOO_MANY, .retry_ms = 3600000 },
		{ .act = REFUSE, .status = WIRE_TOO_MANY },
		{ .act = REFUSE, .status = WIRE_TOO_MANY, .retry_ms = 60000 },
	};
	struct firn *f = open_with(LONG_MS, 1, NULL);
	uint64_t id = 0;
	int rc;

	fake_orders(orders, 6);
	assert_true(next(f) > 0);
	assert_int_equal(fake_count(&fake.batches), 3);
	assert_int_equal(next_error(f), FIRN_EREFUSED); /* does not fit */
	assert_why(f, "too_many: this host is?in doubt");
	assert_int_equal(next_error(f), FIRN_EREFUSED); /* no wait known */
	while ((rc = firn_try_next(f, &id)) == FIRN_EAGAIN)
		continue;
	assert_int_equal(rc, FIRN_EREFUSED);
	assert_true(next(f) > 0);
	assert_int_equal(fake_count(&fake.batches), 7);
	assert_int_equal(fake_count(&fake.connects), 1);
	firn_close(f);
}

/* The agent refuses the connection and closes, before or after we write. */
static void
test_refused_at_accept(void **state)
{
	(void)state;
	const struct {
		struct order greet;
		int rc;
		unsigned connects;
		const char *words;
	} cases[] = {
		{ { REFUSE, WIRE_TOO_MANY, 1, 0, 1 }, FIRN_OK, 2, "too_many:" },
		{ { REFUSE, WIRE_TOO_MANY, 0, 0, 3 }, FIRN_OK, 4, "too_many:" },
		{ { REFUSE, WIRE_TOO_MANY, 3600000, 0, 1 }, FIRN_EREFUSED, 1,
		    "too_many: this host is?in doubt" },
		{ { REFUSE, WIRE_NOT_ALLOWED, 1, 0, 1 }, FIRN_EACCES, 1,
		    "not_allowed: this host is?in doubt: the socket has mode" },
		{ { REFUSE, WIRE_BAD_VERSION, 1, 0, 1 }, FIRN_EPROTO, 1,
		    "the agent speaks version 1, this library 1" },
	};

	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		const struct order *greet = &cases[i / 2].greet;
		struct firn *f = open_with(LONG_MS, 0, NULL);
		uint64_t id;
		int rc;

		fake_orders(NULL, 0);
		fake_greetings(greet);
		send_late = i % 2 == 1;
		rc = firn_next(f, &id);
		if (rc != cases[i / 2].rc ||
		    fake_count(&fake.connects) != cases[i / 2].connects)
			fail_msg("%s: %d after %u", cases[i / 2].words, rc,
			    fake_count(&fake.connects));
		assert_why(f, cases[i / 2].words);
		if (rc == FIRN_EACCES)
			assert_why(f, "this process has uid");
		assert_true(next(f) > 0); /* whatever it was, it is over */
		firn_close(f);
	}
}

/* A refusal that lay in the socket for long tells nothing of now. */
static void
test_old_refusal(void **state)
{
	(void)state;
	const struct order orders[] = {
		{ .act = HOLD_REFUSAL, .status = WIRE_CLOCK_SKEW },
	};
	struct firn *f = open_with(15, 0, NULL);
	struct caller c;

	fake_orders(orders, 1);
	assert_int_equal(next_error(f), FIRN_ETIMEDOUT);
	fake_wait(&fake.batches, 1);
	boot_ahead_ns += 1500 * MS;
	fake_release();
	f->timeout_ms = LONG_MS;
	caller_start(&c, f);
	assert_int_equal(caller_join(&c), FIRN_OK);
	assert_int_equal(fake_count(&fake.batches), 2);
	assert_int_equal(fake_count(&fake.connects), 1);
	firn_close(f);
}

static void
test_many_in_part(void **state)
{
	(void)state;
	const struct order orders[] = {
		{ .act = GRANT, .limit = 10 },
		{ .act = REFUSE, .status = WIRE_CLOCK_SKEW },
		{ .act = REFUSE, .status = WIRE_CLOCK_SKEW },
	};
	struct firn *f = open_with(LONG_MS, 0, NULL);
	uint64_t ids[100];
	size_t got;

	fake_orders(orders, 3);
	assert_int_equal(firn_next_many(f, ids, 100, &got), 0);
	assert_int_equal(got, 10);
	assert_rising(ids, 10);
	assert_int_equal(firn_next_many(f, ids, 100, &got), FIRN_EREFUSED);
	assert_int_equal(got, 0);
	assert_int_equal(firn_next_many(f, ids, 100, &got), 0);
	assert_int_equal(got, 100);
	firn_close(f);
}

/* ---- bytes that are not the protocol ---- */

/*
 * In memory, and under way: a request sent ahead either was answered before
 * the agent got its orders, and the answer is now too old, or it meets them.
 */
static void
all_grows_old(void)
{
	mono_ahead_ns += 2 * S;
	boot_ahead_ns += 2 * S;
}

static void
test_bad_replies(void **state)
{
	(void)state;
	const struct {
		enum act act;
		const char *words;
	} cases[] = {
		{ WRONG_COOKIE, "cookie" },
		{ WRONG_VERSION, "version 9" },
		{ WRONG_TYPE, "type" },
		{ WRONG_LENGTH, "length" },
		{ HUGE_LENGTH, "length" },
		{ NO_RUNS, "length" },
		{ OVERLAP, "run" },
		{ LONG_RUN, "run" },
		{ TWICE_IN_ONE, "run" },
		{ MORE_THAN_ASKED, "asked" },
		{ CONTRACT_IMPOSSIBLE, "layout" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct order o[2] = { { .act = cases[i].act },
			{ .act = cases[i].act } };
		struct firn *f = open_with(LONG_MS, 0, NULL);
		uint64_t ids[3], id;
		size_t got;
		int rc;

		if (cases[i].act == CONTRACT_IMPOSSIBLE) {
			fake_orders(o, 2);
			/* the batch behind it is never looked at */
			assert_int_equal(next_error(f), FIRN_EPROTO);
			assert_why(f, cases[i].words);
			firn_close(f);
			continue;
		}
		assert_int_equal(firn_next_many(f, ids, 3, &got), 0);
		id = ids[2];
		fake_orders(o, 1); /* once: a new connection mends it */
		all_grows_old(); /* after it: see there */
		rc = firn_next_many(f, ids, 3, &got);
		if (rc != 0 || got == 0 || ids[0] <= id)
			fail_msg("%s, once: %d", cases[i].words, rc);
		assert_int_equal(fake_count(&fake.connects), 1);
		id = ids[got - 1];
		fake_orders(o, 2); /* twice: it is how this agent is */
		all_grows_old();
		rc = firn_next_many(f, ids, 3, &got);
		if (rc != FIRN_EPROTO)
			fail_msg("%s, twice: %d", cases[i].words, rc);
		assert_why(f, cases[i].words);
		assert_true(next(f) > id);
		firn_close(f);
	}
}

static void
test_half_and_dribble(void **state)
{
	(void)state;
	const struct order orders[] = { { .act = HALF }, { .act = DRIBBLE },
		{ .act = HANG_UP }, { .act = HANG_UP } };
	struct firn *f = open_with(LONG_MS, 1, NULL);
	uint64_t a, b, c;

	fake_orders(orders, 4);
	a = next(f); /* half a reply is none; then byte by byte */
	b = next(f);
	c = next(f);
	assert_true(a > 0 && b > a && c > b);
	firn_close(f);
}

/* ---- deadlines ---- */

static void
assert_late(struct firn *f, int want, int64_t timeout_ms)
{
	int64_t before = now_ns(CLOCK_MONOTONIC), took;
	int rc = next_error(f);

	took = now_ns(CLOCK_MONOTONIC) - before;
	if (rc != want)
		fail_msg("%d, not %d", rc, want);
	assert_true(took >= timeout_ms * MS);
	assert_true(took < 2 * S); /* a sanitizer on a busy machine */
}

static void
test_deadlines(void **state)
{
	(void)state;
	const struct order hold[] = { { .act = HOLD } };
	struct firn *f = open_with(15, 0, NULL);

	fake_orders(hold, 1);
	assert_late(f, FIRN_ETIMEDOUT, 15);
	assert_why(f, "no reply within 15 ms");
	/* the reply that comes late is used, not asked for again */
	fake_wait(&fake.batches, 1);
	fake_release();
	f->timeout_ms = LONG_MS;
	assert_true(next(f) > 0);
	assert_int_equal(fake_count(&fake.batches), 1);
	fake_stop();
	mono_ahead_ns += 2 * S;
	f->timeout_ms = 15;
	assert_late(f, FIRN_EAWAY, 15);
	assert_why(f, "no agent");
	fake_start(64);
	f->timeout_ms = LONG_MS;
	assert_true(next(f) > 0);
	firn_close(f);
}

static int
compare_times(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x < y ? -1 : x > y);
}

#define LATE_CALLS 9
#define LATE_MS 15

/*
 * How late calls with a deadline are, beside a bare poll of the same length
 * in the same run: a machine that is busy delays both.
 */
static void
assert_on_time(struct firn *f, const char *where)
{
	int64_t late[LATE_CALLS], poll_late[LATE_CALLS];

	for (int i = 0; i < LATE_CALLS; i++) {
		int64_t before = now_ns(CLOCK_MONOTONIC);

		(void)poll(NULL, 0, LATE_MS);
		poll_late[i] = now_ns(CLOCK_MONOTONIC) - before - LATE_MS * MS;
		before = now_ns(CLOCK_MONOTONIC);
		assert_int_equal(next_error(f), FIRN_ETIMEDOUT);
		late[i] = now_ns(CLOCK_MONOTONIC) - before - LATE_MS * MS;
		assert_true(late[i] >= 0);
	}
	qsort(late, LATE_CALLS, sizeof(late[0]), compare_times);
	qsort(poll_late, LATE_CALLS, sizeof(late[0]), compare_times);
	print_message("%s: late by p50 %lld us, max %lld us; a poll by %lld, "
		      "%lld\n",
	    where, (long long)late[LATE_CALLS / 2] / 1000,
	    (long long)late[LATE_CALLS - 1] / 1000,
	    (long long)poll_late[LATE_CALLS / 2] / 1000,
	    (long long)poll_late[LATE_CALLS - 1] / 1000);
	assert_true(
	    late[LATE_CALLS / 2] <= 10 * MS + 2 * poll_late[LATE_CALLS - 1]);
}

/* At each point where an agent can stop. */
static void
test_deadline_at_each_point(void **state)
{
	(void)state;
	const struct {
		const char *where;
		enum act act;
	} points[] = {
		{ "before accept", GRANT },
		{ "before the reply", HOLD },
		{ "within the reply", HALF_SILENT },
	};

	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		const struct order o[] = { { .act = points[i].act } };
		struct firn *f = open_with(LATE_MS, 1, NULL);

		fake_stop();
		fake.paused = points[i].act == GRANT;
		fake_start(64);
		fake_orders(o, 1);
		assert_on_time(f, points[i].where);
		firn_close(f);
	}
}

static void
test_backlog_full(void **state)
{
	(void)state;
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fds[16], n = 0, rc;
	struct firn *f = open_with(15, 0, NULL);

	fake_stop();
	fake.paused = true;
	fake_start(0);
	memcpy(sun.sun_path, fake.path, sizeof(fake.path));
	do {
		fds[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		rc = connect(fds[n++], (struct sockaddr *)&sun, sizeof(sun));
	} while (rc == 0 && n < 16);
	assert_int_equal(rc, -1);
	assert_late(f, FIRN_ETIMEDOUT, 15);
	firn_close(f);
	/* and as soon as there is room, it goes on */
	f = open_with(LONG_MS, 0, NULL);
	struct caller c;

	caller_start(&c, f);
	fake.paused = false;
	fake_kick();
	assert_int_equal(caller_join(&c), 0);
	while (n > 0)
		close(fds[--n]);
	firn_close(f);
}

static void
test_restart_in_a_call(void **state)
{
	(void)state;
	const struct order hold[] = { { .act = HOLD } };
	struct firn *f = open_with(LONG_MS, 0, NULL);
	struct caller callers[4];

	fake_orders(hold, 1);
	for (int i = 0; i < 4; i++)
		caller_start(&callers[i], f);
	fake_wait(&fake.batches, 1);
	fake_stop();
	fake_start(64);
	for (int i = 0; i < 4; i++)
		assert_int_equal(caller_join(&callers[i]), 0);
	firn_close(f);
}

static void
test_silent_agent_is_left(void **state)
{
	(void)state;
	const struct order hold[] = { { .act = HOLD } };
	struct firn *f = open_with(15, 0, NULL);

	fake_orders(hold, 1);
	assert_late(f, FIRN_ETIMEDOUT, 15);
	fake_wait(&fake.batches, 1);
	boot_ahead_ns += 10 * S;
	f->timeout_ms = LONG_MS / 10; /* twice that: less than it was silent */
	assert_true(next(f) > 0); /* by a connection of its own */
	assert_int_equal(fake_count(&fake.connects), 2);
	firn_close(f);
}

/* ---- age ---- */

static void
test_ttl(void **state)
{
	(void)state;
	const struct {
		const char *why;
		int64_t mono_ns, real_ns;
		bool kept;
	} cases[] = {
		{ "young", 500 * MS, 500 * MS, true },
		{ "too old", 1000 * MS, 1000 * MS, false },
		{ "a suspend: hardly more than the wall clock went on", 1,
		    5 * S, false },
		{ "the wall clock was set back", 1000 * MS, -S, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct firn *f = open_with(LONG_MS, 0, NULL);
		unsigned before;
		bool kept;

		/* until the thread's own part holds some */
		for (int k = 0; k < 30000; k++)
			(void)next(f);
		mono_ahead_ns += 2 * S;
		for (int k = 0; k < 10; k++)
			(void)next(f);
		before = fake_count(&fake.batches);
		mono_ahead_ns += cases[i].mono_ns;
		real_ahead_ns += cases[i].real_ns;
		(void)next(f);
		kept = fake_count(&fake.batches) == before;
		if (kept && !cases[i].kept)
			fail_msg("%s: was kept", cases[i].why);
		firn_close(f);
	}
}

#define TTL_TRIES 5

static void
test_smaller_ttl_wins(void **state)
{
	(void)state;
	unsigned asked[2] = { 0, 0 };
	uint64_t ids[8];
	size_t got;

	for (int round = 0; round < 2 * TTL_TRIES; round++) {
		bool agents = round >= TTL_TRIES;
		struct firn_options o = { .size = sizeof(o),
			.socket = fake.path,
			.timeout_ms = LONG_MS,
			.ttl_ms = agents ? 60000 : 50 };
		const struct order orders[] = { { .act = GRANT },
			{ .act = HOLD } };
		struct firn *f;

		fake.ttl_ms = agents ? 50 : 60000;
		assert_int_equal(firn_open(&f, &o), 0);
		fake_orders(orders, 1);
		assert_int_equal(firn_next_many(f, ids, 8, &got), 0);
		for (int k = 0; k < 100; k++)
			(void)next(f);
		unsigned before = fake_count(&fake.batches);

		mono_ahead_ns += 60 * MS;
		(void)next(f);
		asked[agents] += fake_count(&fake.batches) > before;
		firn_close(f);
	}
	/* Now and then a request that was under way has the answer. */
	assert_true(asked[0] > 0 && asked[1] > 0);
}

static void
test_old_replies(void **state)
{
	(void)state;
	const struct order once[] = { { .act = OLD, .age_ms = 1500 } };
	struct firn *f = open_with(LONG_MS, 1, NULL);
	char why[200] = "";
	int64_t before;
	uint64_t id;

	fake_orders(once, 1);
	id = next(f);
	/* what was dropped was received all the same: never asked for again */
	assert_true(fake.afters[1] > 0 && id > fake.afters[1]);
	firn_close(f);
	f = open_with(15, 1, NULL);
	fake_orders(once, 1);
	fake.forever = true;
	before = now_ns(CLOCK_MONOTONIC);
	do { /* on a busy machine a call may end before a reply comes */
		assert_int_equal(next_error(f), FIRN_ETIMEDOUT);
		(void)firn_why(f, why, sizeof(why));
	} while (strstr(why, "too old") == NULL);
	/* no hammering: a millisecond lies between two */
	assert_true(fake_count(&fake.batches) <=
		    (now_ns(CLOCK_MONOTONIC) - before) / MS + 3);
	firn_close(f);
}

/* ---- figures ---- */

static struct firn_stats
stats(struct firn *f)
{
	struct firn_stats s = { .size = sizeof(s) };

	assert_int_equal(firn_get_stats(f, &s), FIRN_OK);
	return (s);
}

static uint64_t
fake_granted(void)
{
	uint64_t n;

	pthread_mutex_lock(&fake.lock);
	n = fake.granted;
	pthread_mutex_unlock(&fake.lock);
	return (n);
}

/*
 * Each ID that came was given out, at once or later, or was dropped: the
 * agent's count, the program's and the handle's have to agree.
 */
static void
test_stats(void **state)
{
	(void)state;
	static uint64_t ids[5000];
	struct firn *f = open_with(LONG_MS, 0, NULL);
	struct firn_stats s = stats(f), before;
	uint64_t taken = 0;
	size_t got;

	assert_int_equal(s.hits + s.waits + s.refills + s.dropped, 0);
	assert_int_equal(s.reconnects, 0);
	for (int i = 0; i < 40000; i++, taken++) {
		before = s;
		(void)next(f);
		s = stats(f);
		/* one ID: from memory, or in a reply that was waited for */
		assert_int_equal(
		    s.hits - before.hits + s.waits - before.waits, 1);
		assert_true(s.dropped >= before.dropped);
	}
	assert_true(s.hits > 30000 && s.refills > 0 && s.reconnects == 0);
	before = s;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(firn_next_many(f, ids, 5000, &got), FIRN_OK);
		taken += got;
	}
	s = stats(f);
	assert_true(s.waits - before.waits <= 20);
	assert_true(s.hits - before.hits <= 20 * 5000);
	for (int i = 0; i < 3000; i++, taken++)
		(void)next(f); /* so that the thread's own part holds some */
	s = stats(f);
	/* what is left in memory and on its way gets too old */
	for (int i = 0; i < 100 && fake_granted() != taken + s.dropped; i++) {
		mono_ahead_ns += 2 * S;
		boot_ahead_ns += 2 * S;
		(void)poll(NULL, 0, 30); /* no more than one is asked for */
		(void)next(f);
		taken++;
		before = s;
		s = stats(f);
		assert_int_equal(
		    s.hits - before.hits + s.waits - before.waits, 1);
	}
	assert_true(s.dropped > 0);
	assert_int_equal(fake_granted(), taken + s.dropped);
	fake_stop();
	fake_start(64);
	assert_int_equal(firn_next_many(f, ids, 5000, &got), FIRN_OK);
	assert_int_equal(stats(f).reconnects, 1);
	firn_close(f);
}

/* ---- realms ---- */

static void
test_realms(void **state)
{
	(void)state;
	struct firn *f = open_with(LONG_MS, 0, "other");
	struct firn *g = open_with(LONG_MS, 0, "default");
	uint64_t id;

	assert_int_equal(next_error(f), FIRN_EREALM);
	assert_why(f, "\"default\", not \"other\"");
	id = next(g);
	fake_stop();
	strcpy(fake.realm, "other");
	fake.uuid = 0x22;
	fake_start(64);
	assert_true(next(f) > 0); /* asked anew, and this one fits */
	fake_stop();
	strcpy(fake.realm, "default");
	fake_start(64);
	mono_ahead_ns += 2 * S;
	assert_int_equal(next_error(g), FIRN_EREALM); /* same name, new uuid */
	assert_why(g, "uuid");
	fake_stop();
	fake.uuid = 0x11;
	fake_start(64);
	assert_true(next(g) > id);
	firn_close(f);
	firn_close(g);
}

/* ---- event loops ---- */

static void
test_try_next(void **state)
{
	(void)state;
	const struct order hold[] = { { .act = HOLD }, { .act = HOLD } };
	struct firn *f = open_with(LONG_MS, 1, NULL);
	struct pollfd p;
	uint64_t id;
	int rc;

	fake_orders(hold, 2);
	assert_int_equal(firn_try_next(f, &id), FIRN_EAGAIN);
	assert_int_equal(firn_try_next(f, &id), FIRN_EAGAIN);
	p.fd = firn_poll_fd(f, &p.events);
	assert_true(p.fd >= 0);
	assert_int_equal(p.events, POLLIN);
	fake_wait(&fake.batches, 1); /* one request for both calls */
	fake_release();
	/* the contract's reply may have been there before */
	while ((rc = firn_try_next(f, &id)) == FIRN_EAGAIN)
		assert_int_equal(poll(&p, 1, -1), 1);
	assert_int_equal(rc, 0);
	assert_int_equal(fake_count(&fake.batches), 1);
	/* called less often than ttl: the reply is dropped, the next taken */
	assert_int_equal(firn_try_next(f, &id), FIRN_EAGAIN);
	boot_ahead_ns += 1500 * MS;
	fake_wait(&fake.batches, 2);
	fake_release();
	while ((rc = firn_try_next(f, &id)) == FIRN_EAGAIN) {
		p.fd = firn_poll_fd(f, &p.events);
		assert_int_equal(poll(&p, 1, -1), 1);
	}
	assert_int_equal(rc, 0);
	assert_int_equal(fake_count(&fake.batches), 3);
	firn_close(f);
}

static void
test_try_next_errors(void **state)
{
	(void)state;
	const struct order refuse[] = {
		{ .act = REFUSE, .status = WIRE_CLOCK_SKEW },
	};
	struct firn *f = open_with(LONG_MS, 0, NULL);
	struct pollfd p;
	uint64_t id;
	int rc;

	fake_orders(refuse, 1);
	while ((rc = firn_try_next(f, &id)) == FIRN_EAGAIN) {
		p.fd = firn_poll_fd(f, &p.events);
		assert_int_equal(poll(&p, 1, -1), 1);
	}
	assert_int_equal(rc, FIRN_EREFUSED);
	fake_stop();
	rc = firn_try_next(f, &id);
	assert_int_equal(rc, FIRN_EAWAY);
	assert_int_equal(firn_poll_fd(f, &p.events), FIRN_EAWAY);
	firn_close(f);
}

/*
 * A pause after losses is kept by try_next, too, but what is refused later is
 * not: an hour's clock_back that ends after a second must not last the hour.
 */
static void
test_try_next_refused_after_losses(void **state)
{
	(void)state;
	const struct order orders[] = {
		{ .act = HANG_UP },
		{ .act = HANG_UP },
		{ .act = REFUSE,
		    .status = WIRE_CLOCK_BACK,
		    .retry_ms = 3600000 },
		{ .act = GRANT },
	};
	struct firn *f = open_with(LONG_MS, 0, NULL);
	int64_t end_ns;
	uint64_t id;
	int rc;

	fake_orders(orders, 4);
	while ((rc = firn_try_next(f, &id)) != FIRN_EREFUSED)
		assert_true(rc == FIRN_EAGAIN || rc == FIRN_EAWAY);
	end_ns = now_ns(CLOCK_MONOTONIC) + 20 * S;
	while ((rc = firn_try_next(f, &id)) != 0) {
		assert_true(rc == FIRN_EAGAIN || rc == FIRN_EREFUSED);
		assert_true(now_ns(CLOCK_MONOTONIC) < end_ns);
	}
	assert_int_equal(fake_count(&fake.batches), 4);
	firn_close(f);
}

/* No refusal: the agent would grant, and has only to be asked again. */
static void
test_try_next_before_the_contract(void **state)
{
	(void)state;
	const struct order late[] = {
		{ .act = CONTRACT_LATE, .status = WIRE_NO_REALM },
	};
	struct firn *f = open_with(LONG_MS, 0, NULL);
	int64_t end_ns = now_ns(CLOCK_MONOTONIC) + 20 * S;
	uint64_t id;
	int rc;

	fake_orders(late, 1);
	while ((rc = firn_try_next(f, &id)) != 0) {
		assert_int_equal(rc, FIRN_EAGAIN);
		assert_true(now_ns(CLOCK_MONOTONIC) < end_ns);
	}
	assert_int_equal(fake_count(&fake.contracts), 2);
	firn_close(f);
}

/* ---- descriptors ---- */

static void
test_descriptor_taken_away(void **state)
{
	(void)state;
	struct firn *f = open_with(LONG_MS, 1, NULL);
	uint64_t id = next(f);
	int pair[2], fd;
	short events;
	char byte;

	fd = firn_poll_fd(f, &events);
	assert_true(fd >= 0);
	/* closed, and its number given to a connection of the application */
	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(dup2(pair[0], fd), fd);
	assert_true(next(f) > id);
	assert_int_equal(recv(pair[1], &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_not_equal(firn_poll_fd(f, &events), fd);
	assert_int_not_equal(fcntl(fd, F_GETFD), -1);
	/* and once more at the end of the handle */
	int mine = firn_poll_fd(f, &events);

	assert_int_equal(dup2(pair[0], mine), mine);
	firn_close(f);
	assert_int_not_equal(fcntl(mine, F_GETFD), -1);
	close(mine);
	close(fd);
	close(pair[0]);
	close(pair[1]);
}

static void
test_descriptor_is_closed(void **state)
{
	(void)state;
	struct firn *f = open_with(LONG_MS, 0, NULL);
	short events;
	int fd;

	(void)next(f);
	fd = firn_poll_fd(f, &events);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	firn_close(f);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

/* In a child, so that root is tested, too. */
static int
not_allowed(void)
{
	struct firn_options o = { .size = sizeof(o), .socket = fake.path };
	struct firn *f;
	uint64_t id;
	char why[600];
	const char *words = "mode 0600, uid ";

	if (geteuid() == 0 && setuid(65534) != 0)
		return (1);
	if (firn_open(&f, &o) != 0)
		return (2);
	if (firn_next(f, &id) != FIRN_EACCES)
		return (3);
	(void)firn_why(f, why, sizeof(why));
	if (geteuid() == 65534 && strstr(why, words) == NULL)
		return (4);
	if (strstr(why, fake.path) == NULL || strstr(why, "group ") == NULL)
		return (5);
	firn_close(f);
	return (0);
}

static int
child_status(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) == -1)
		assert_int_equal(errno, EINTR);
	assert_true(WIFEXITED(status));
	return (WEXITSTATUS(status));
}

static void
test_not_allowed(void **state)
{
	(void)state;
	pid_t pid;

	assert_int_equal(chmod(fake.dir, 0711), 0);
	assert_int_equal(chmod(fake.path, geteuid() == 0 ? 0600 : 0), 0);
	pid = fork();
	if (pid == 0)
		_exit(not_allowed());
	assert_int_equal(child_status(pid), 0);
}

/* ---- fork ---- */

#define CHILD_IDS 2000

static int
open_descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) != -1;
	return (n);
}

/*
 * The child: takes IDs, checks that they rise above, writes them.  Its copy of
 * the parent's connection gives way to one of its own.
 */
static void
child_main(struct firn *f, int fd, uint64_t above, bool close_it)
{
	static uint64_t ids[CHILD_IDS];
	int descriptors = open_descriptors();

	for (size_t i = 0; i < CHILD_IDS; i++) {
		if (firn_next(f, &ids[i]) != 0)
			_exit(1);
		if (ids[i] <= above)
			_exit(2);
		above = ids[i];
	}
	if (open_descriptors() != descriptors)
		_exit(4);
	if (write(fd, ids, sizeof(ids)) != (ssize_t)sizeof(ids))
		_exit(3);
	if (close_it)
		firn_close(f);
	_exit(0);
}

static void
read_all(int fd, void *p, size_t n)
{
	char *to = p;

	while (n > 0) {
		ssize_t k = read(fd, to, n);

		assert_true(k > 0);
		to += k;
		n -= (size_t)k;
	}
}

static void
fork_and_compare(void)
{
	static uint64_t ids[3 * CHILD_IDS];
	struct firn *f = open_with(LONG_MS, 0, NULL);
	int pipes[2];
	size_t n = 0;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	while (n < CHILD_IDS)
		ids[n++] = next(f);
	pid = fork();
	if (pid == 0)
		child_main(f, pipes[1], ids[n - 1], true);
	while (n < 2 * CHILD_IDS)
		ids[n++] = next(f);
	assert_rising(ids, n);
	read_all(pipes[0], ids + n, CHILD_IDS * sizeof(ids[0]));
	assert_int_equal(child_status(pid), 0);
	assert_unique(ids, 3 * CHILD_IDS);
	assert_int_equal(fake_count(&fake.connects), 2);
	/* closed in the child: the parent's connection still stands */
	mono_ahead_ns += 2 * S;
	(void)next(f);
	assert_int_equal(fake_count(&fake.connects), 2);
	close(pipes[0]);
	close(pipes[1]);
	firn_close(f);
}

static void
test_fork(void **state)
{
	(void)state;
	fork_and_compare();
}

static void
test_fork_without_wiping(void **state)
{
	(void)state;
	struct firn *f;
	uint64_t ids[10];
	size_t got;

	refuse_wipe = true;
	fork_and_compare();
	/* no cache: each call asks for what it gives out, and no more */
	f = open_with(LONG_MS, 0, NULL);
	fake_orders(NULL, 0);
	for (int i = 0; i < 10; i++)
		(void)next(f);
	assert_int_equal(firn_next_many(f, ids, 10, &got), 0);
	assert_int_equal(fake.batches, 11);
	assert_int_equal(fake.counts[9], 1);
	assert_int_equal(fake.counts[10], 10);
	firn_close(f);
}

#if defined(__SANITIZE_THREAD__)
#define NO_THREADS_AFTER_FORK 1 /* the tool's own limit */
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NO_THREADS_AFTER_FORK 1
#endif
#endif

#ifndef NO_THREADS_AFTER_FORK
struct half {
	struct firn *f;
	pthread_barrier_t *both;
	uint64_t *ids;
	int rc;
};

static void *
half_main(void *arg)
{
	struct half *h = arg;

	for (size_t i = 0; i < CHILD_IDS / 2; i++) {
		/* in step, so that both draw on what one refill brought */
		if (i % 16 == 0)
			pthread_barrier_wait(h->both);
		h->rc |= firn_next(h->f, &h->ids[i]);
	}
	return (NULL);
}

/* The forking thread, whose hint is the parent's, beside a new one. */
static void
child_halves(struct firn *f, int fd)
{
	static uint64_t ids[CHILD_IDS];
	pthread_barrier_t both;
	struct half a = { f, &both, ids, 0 };
	struct half b = { f, &both, ids + CHILD_IDS / 2, 0 };
	pthread_t thread;

	pthread_barrier_init(&both, NULL, 2);
	/* the new one claims its part first */
	if (pthread_create(&thread, NULL, half_main, &b) != 0)
		_exit(1);
	half_main(&a);
	if (pthread_join(thread, NULL) != 0 || a.rc != 0 || b.rc != 0)
		_exit(2);
	if (write(fd, ids, sizeof(ids)) != (ssize_t)sizeof(ids))
		_exit(3);
	_exit(0);
}

static void
test_threads_of_a_child(void **state)
{
	(void)state;
	static uint64_t ids[CHILD_IDS];
	struct firn *f = open_with(LONG_MS, 0, NULL);
	int pipes[2];
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	for (int i = 0; i < 10; i++)
		(void)next(f);
	for (int round = 0; round < 4; round++) {
		pid = fork();
		if (pid == 0)
			child_halves(f, pipes[1]);
		read_all(pipes[0], ids, sizeof(ids));
		assert_int_equal(child_status(pid), 0);
		assert_unique(ids, CHILD_IDS);
	}
	close(pipes[0]);
	close(pipes[1]);
	firn_close(f);
}
#endif

static void
test_fork_with_a_request_under_way(void **state)
{
	(void)state;
	const struct order hold[] = { { .act = HOLD } };
	struct firn *f = open_with(LONG_MS, 1, NULL);
	struct caller c;
	int pipes[2];
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	fake_orders(hold, 1);
	caller_start(&c, f);
	fake_wait(&fake.batches, 1); /* that thread leads, and waits */
	pid = fork();
	if (pid == 0)
		child_main(f, pipes[1], 0, false);
	static uint64_t ids[CHILD_IDS + 1];

	read_all(pipes[0], ids, CHILD_IDS * sizeof(ids[0]));
	assert_int_equal(child_status(pid), 0);
	fake_release();
	assert_int_equal(caller_join(&c), 0);
	ids[CHILD_IDS] = c.id;
	assert_unique(ids, CHILD_IDS + 1);
	close(pipes[0]);
	close(pipes[1]);
	firn_close(f);
}

/* A child counts for itself. */
static void
test_stats_of_a_child(void **state)
{
	(void)state;

	for (int round = 0; round < 2; round++) {
		struct firn *f;
		struct firn_stats s, before;
		pid_t pid;

		refuse_wipe = round == 1;
		f = open_with(LONG_MS, 0, NULL);
		for (int i = 0; i < 3000; i++)
			(void)next(f);
		before = stats(f);
		assert_true(round == 1 ? before.hits == 0 : before.hits > 0);
		assert_int_equal(before.hits + before.waits, 3000);
		pid = fork();
		if (pid == 0) {
			s = stats(f);
			if (s.hits + s.waits + s.refills + s.dropped > 0)
				_exit(1);
			(void)next(f);
			s = stats(f);
			_exit(s.waits == 1 && s.refills == 1 && s.hits == 0 &&
				      s.reconnects == 0
				  ? 0
				  : 2);
		}
		assert_int_equal(child_status(pid), 0);
		s = stats(f);
		assert_memory_equal(&s, &before, sizeof(s));
		firn_close(f);
	}
	refuse_wipe = false;
}

/* ---- threads ---- */

#define THREADS 8
#define EACH 4000

struct taker {
	pthread_t thread;
	struct firn *f;
	unsigned seed;
	int rc;
	uint64_t ids[EACH];
};

static struct taker takers[THREADS];

static void *
taker_main(void *arg)
{
	struct taker *t = arg;

	for (size_t i = 0; i < EACH && t->rc == 0;) {
		size_t got = 1, n = 1 + (size_t)rand_r(&t->seed) % 200;

		if (rand_r(&t->seed) % 8 != 0) {
			t->rc = firn_next(t->f, &t->ids[i]);
		} else {
			if (n > EACH - i)
				n = EACH - i;
			t->rc = firn_next_many(t->f, &t->ids[i], n, &got);
		}
		i += got;
	}
	return (NULL);
}

static void
takers_start(struct firn *f)
{
	for (unsigned i = 0; i < THREADS; i++) {
		takers[i].f = f;
		takers[i].seed = i + 1;
		takers[i].rc = 0;
		assert_int_equal(pthread_create(&takers[i].thread, NULL,
				     taker_main, &takers[i]),
		    0);
	}
}

static void
takers_join(uint64_t *all)
{
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(takers[i].thread, NULL), 0);
		assert_int_equal(takers[i].rc, 0);
		assert_rising(takers[i].ids, EACH);
		memcpy(all + i * EACH, takers[i].ids, sizeof(takers[i].ids));
	}
}

static void
test_threads(void **state)
{
	(void)state;
	static uint64_t all[THREADS * EACH];

	for (uint32_t batch = 0; batch < 2; batch++) {
		struct firn *f = open_with(LONG_MS, batch * 7, NULL);

		takers_start(f);
		takers_join(all);
		assert_unique(all, THREADS * EACH);
		firn_close(f);
	}
}

/* While another thread has the latch, a part goes on, whatever the clock. */
static void
test_part_needs_no_latch(void **state)
{
	(void)state;
	struct firn *f = open_with(LONG_MS, 0, NULL);
	uint64_t ids[200];
	size_t got;

	while (part_left(&f->shared->parts[0]) < 150)
		(void)next(f);
	latch_lock(&f->shared->latch);
	(void)alarm(60); /* who waits for it waits for ever */
	for (int i = 0; i < 100; i++) {
		mono_ahead_ns += MS;
		assert_int_equal(
		    i % 2 == 0 ? firn_next(f, ids) : firn_try_next(f, ids),
		    FIRN_OK);
	}
	assert_int_equal(firn_next_many(f, ids, 50, &got), FIRN_OK);
	(void)alarm(0);
	latch_unlock(&f->shared->latch);
	firn_close(f);
}

static void
test_threads_and_forks(void **state)
{
	(void)state;
#define FORKS 4
	static uint64_t all[THREADS * EACH + FORKS * CHILD_IDS];
	struct firn *f = open_with(LONG_MS, 0, NULL);
	uint64_t *ids = all + THREADS * EACH, above = next(f);
	pid_t pids[FORKS];
	int pipes[2];

	assert_int_equal(pipe(pipes), 0);
	takers_start(f);
	for (int i = 0; i < FORKS; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			child_main(f, pipes[1], above, false);
		read_all(pipes[0], ids, CHILD_IDS * sizeof(*ids));
		ids += CHILD_IDS;
		assert_int_equal(child_status(pids[i]), 0);
	}
	takers_join(all);
	assert_unique(all, sizeof(all) / sizeof(all[0]));
	close(pipes[0]);
	close(pipes[1]);
	firn_close(f);
}

#define CROWD 80 /* more threads than a handle has parts */

struct crowd {
	pthread_barrier_t all_here;
	struct firn *f;
	uint64_t ids[CROWD][4];
	atomic_int next, failed;
};

static void *
crowd_main(void *arg)
{
	struct crowd *c = arg;
	uint64_t *ids = c->ids[c->next++];

	for (int i = 0; i < 4; i++) {
		if (firn_next(c->f, &ids[i]) != 0 ||
		    (i > 0 && ids[i] <= ids[i - 1]))
			c->failed++;
	}
	pthread_barrier_wait(&c->all_here); /* none ends before all began */
	return (NULL);
}

static void
test_more_threads_than_parts(void **state)
{
	(void)state;
	static struct crowd c;
	pthread_t threads[CROWD];

	c.f = open_with(LONG_MS, 0, NULL);
	pthread_barrier_init(&c.all_here, NULL, CROWD);
	for (int round = 0; round < 2; round++) { /* ended ones are replaced */
		c.next = 0;
		for (int i = 0; i < CROWD; i++)
			assert_int_equal(
			    pthread_create(&threads[i], NULL, crowd_main, &c),
			    0);
		for (int i = 0; i < CROWD; i++)
			assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(c.failed, 0);
		assert_unique(&c.ids[0][0], CROWD * 4);
		mono_ahead_ns += S; /* time to look for ended threads */
	}
	pthread_barrier_destroy(&c.all_here);
	firn_close(c.f);
}

/* One thread, more handles than it has hints for. */
static void
test_many_handles(void **state)
{
	(void)state;
	struct firn *f[9];
	uint64_t last[9] = { 0 };

	for (int i = 0; i < 9; i++)
		f[i] = open_with(LONG_MS, 0, NULL);
	for (int k = 0; k < 300; k++) {
		for (int i = 0; i < 9; i++) {
			uint64_t id = next(f[i]);

			assert_true(id > last[i]);
			last[i] = id;
		}
	}
	for (int i = 0; i < 9; i++)
		firn_close(f[i]);
}

static void *
cancelled_main(void *arg)
{
	uint64_t id;

	pthread_cleanup_push((void (*)(void *))fake_kick, NULL);
	(void)!firn_next(arg, &id);
	pthread_testcancel();
	pthread_cleanup_pop(0);
	return (NULL);
}

/* A cancelled thread leaves nothing locked; those that wait go on. */
static void
test_cancellation(void **state)
{
	(void)state;
	const struct order hold[] = { { .act = HOLD } };
	struct firn *f = open_with(LONG_MS, 1, NULL);
	struct caller c;
	pthread_t thread;

	fake_orders(hold, 1);
	assert_int_equal(pthread_create(&thread, NULL, cancelled_main, f), 0);
	fake_wait(&fake.batches, 1);
	assert_int_equal(pthread_cancel(thread), 0);
	caller_start(&c, f);
	fake_release();
	assert_int_equal(caller_join(&c), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(next(f) > c.id);
	firn_close(f);
}

static void *
ended_main(void *arg)
{
	struct taker *t = arg;

	for (size_t i = 0; i < EACH; i++)
		(void)next(t->f);
	return (NULL);
}

/* What threads leave behind is dropped, when their parts are needed. */
static void
test_stats_of_ended_threads(void **state)
{
	(void)state;
	struct taker *t = &takers[0];
	struct firn *f = open_with(LONG_MS, 0, NULL);
	struct firn_stats s = stats(f), before = s;

	t->f = f;
	for (uint64_t i = 1; i <= HANDLE_PARTS + 10; i++) {
		if (i > HANDLE_PARTS) /* time to look for ended threads */
			mono_ahead_ns += 200 * MS;
		assert_int_equal(
		    pthread_create(&t->thread, NULL, ended_main, t), 0);
		assert_int_equal(pthread_join(t->thread, NULL), 0);
		s = stats(f);
		assert_int_equal(s.hits + s.waits, i * EACH);
		assert_true(s.hits > before.hits);
		before = s;
	}
	firn_close(f);
}

/* ---- closing while others are inside ---- */

#define INSIDE 6

static void
wait_inside(struct firn *f, uint32_t n)
{
	while (atomic_load(&f->shared->inside) < n)
		sched_yield();
}

static void *
layout_main(void *arg)
{
	struct caller *c = arg;
	struct firn_layout l;

	c->rc = firn_get_layout(c->f, &l);
	return (NULL);
}

static void *
many_main(void *arg)
{
	struct caller *c = arg;
	uint64_t ids[100];
	size_t got;

	c->rc = firn_next_many(c->f, ids, 100, &got);
	c->id = got;
	return (NULL);
}

/* One waits for the agent, the others for that one. */
static void
test_close_wakes_all(void **state)
{
	(void)state;
	const struct order hold[] = { { .act = HOLD } };
	const struct order pause[] = {
		{ .act = REFUSE, .status = WIRE_NO_CLAIM, .retry_ms = 15000 },
	};
	struct caller c[INSIDE];
	int64_t before;

	for (int round = 0; round < 3; round++) {
		struct firn *f = open_with(LONG_MS, 0, NULL);

		/* a reply, a pause, and one between two attempts to connect */
		fake_orders(round == 0 ? hold : pause, round < 2 ? 1 : 0);
		if (round == 2)
			fake_stop();
		for (int i = 0; i < INSIDE; i++) {
			caller_start(&c[i], f);
			wait_inside(f, (uint32_t)i + 1);
		}
		if (round < 2)
			fake_wait(&fake.batches, 1);
		before = now_ns(CLOCK_MONOTONIC);
		firn_close(f);
		for (int i = 0; i < INSIDE; i++)
			assert_int_equal(caller_join(&c[i]), FIRN_EINVAL);
		assert_true(now_ns(CLOCK_MONOTONIC) - before < 10 * S);
		if (round == 2)
			fake_start(64);
	}
}

/* What a call has by then it returns. */
static void
test_close_in_many(void **state)
{
	(void)state;
	const struct order part[] = { { .act = GRANT, .limit = 10 },
		{ .act = HOLD } };
	struct firn *f = open_with(LONG_MS, 0, NULL);
	struct caller c = { .f = f };

	fake_orders(part, 2);
	assert_int_equal(pthread_create(&c.thread, NULL, many_main, &c), 0);
	fake_wait(&fake.batches, 2);
	firn_close(f);
	assert_int_equal(caller_join(&c), FIRN_OK);
	assert_int_equal(c.id, 10);
}

static atomic_uint racers_done;

static void *
racer_main(void *arg)
{
	struct caller *c = arg;

	switch (c->id % 3) {
	case 0:
		c->rc = firn_next(c->f, &c->id);
		break;
	case 1:
		layout_main(c);
		break;
	default:
		many_main(c);
	}
	racers_done++;
	return (NULL);
}

/* At any moment of any call that needs more than memory. */
static void
test_close_races(void **state)
{
	(void)state;
	struct caller c[INSIDE];

	for (int round = 0; round < 100; round++) {
		struct firn *f = open_with(LONG_MS, 0, NULL);
		unsigned seen = 0;

		racers_done = 0;
		if (round % 4 == 0)
			fake.paused = !fake.paused; /* wait, or be served */
		fake_kick();
		for (int i = 0; i < INSIDE; i++) {
			c[i] = (struct caller){ .f = f, .id = (uint64_t)i };
			assert_int_equal(pthread_create(&c[i].thread, NULL,
					     racer_main, &c[i]),
			    0);
		}
		/* none is yet to begin: see firn.h */
		while (seen < INSIDE)
			seen = racers_done + atomic_load(&f->shared->inside);
		firn_close(f);
		for (int i = 0; i < INSIDE; i++) {
			int rc = caller_join(&c[i]);

			assert_true(rc == FIRN_OK || rc == FIRN_EINVAL);
		}
	}
	fake.paused = false;
}

/* A child closes what its parent is inside of, and the other way round. */
static void
test_close_and_fork(void **state)
{
	(void)state;
	const struct order hold[] = { { .act = HOLD } };

	for (int round = 0; round < 2; round++) {
		struct firn *f;
		struct caller c;
		pid_t pid;

		refuse_wipe = round == 1;
		f = open_with(LONG_MS, 1, NULL);
		fake_orders(hold, 1);
		caller_start(&c, f);
		fake_wait(&fake.batches, 1);
		pid = fork();
		if (pid == 0) {
			firn_close(f);
			_exit(0);
		}
		assert_int_equal(child_status(pid), 0);
		fake_release();
		assert_int_equal(caller_join(&c), FIRN_OK);
		assert_int_equal(fake_count(&fake.connects), 1);
		firn_close(f);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_ids_rise),
		T(test_seldom_asks_for_one),
		T(test_after_is_the_highest_received),
		T(test_layout_without_ids),
		T(test_options),
		T(test_arguments),
		T(test_refusals),
		T(test_over_rate),
		T(test_refused_at_accept),
		T(test_old_refusal),
		T(test_many_in_part),
		T(test_bad_replies),
		T(test_half_and_dribble),
		T(test_deadlines),
		T(test_deadline_at_each_point),
		T(test_backlog_full),
		T(test_restart_in_a_call),
		T(test_silent_agent_is_left),
		T(test_ttl),
		T(test_smaller_ttl_wins),
		T(test_old_replies),
		T(test_stats),
		T(test_stats_of_a_child),
		T(test_stats_of_ended_threads),
		T(test_realms),
		T(test_try_next),
		T(test_try_next_errors),
		T(test_try_next_refused_after_losses),
		T(test_try_next_before_the_contract),
		T(test_descriptor_taken_away),
		T(test_descriptor_is_closed),
		T(test_not_allowed),
		T(test_fork),
		T(test_fork_without_wiping),
#ifndef NO_THREADS_AFTER_FORK
		T(test_threads_of_a_child),
#endif
		T(test_fork_with_a_request_under_way),
		T(test_threads),
		T(test_part_needs_no_latch),
		T(test_threads_and_forks),
		T(test_more_threads_than_parts),
		T(test_many_handles),
		T(test_cancellation),
		T(test_close_wakes_all),
		T(test_close_in_many),
		T(test_close_races),
		T(test_close_and_fork),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
