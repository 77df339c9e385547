/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_peer - what people would take instead, measured by the same loops.
 *
 *   bench_peer generator      in the process: a mutex and clock_gettime()
 *   bench_peer uuid           libuuid's time UUIDs, one at a time
 *   bench_peer redis PATH     INCR over a Unix socket
 *   bench_peer postgres PATH  nextval() over a Unix socket
 *   bench_peer echo           a process that only answers: what any round
 *       trip costs here, with the sizes of firn's frames
 *
 * libuuid is loaded when it is there; the servers are spoken to without their
 * libraries, so that only the server and the socket are measured.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define NOT_INSTALLED 77
#define ECHO_REQUEST 32
#define ECHO_REPLY 56 /* a header, a batch, one run */
#define EPOCH_MS INT64_C(1735689600000)

static int fd = -1;
static volatile uint64_t sink;

static void __attribute__((noreturn)) fail(const char *what)
{
	fprintf(stderr, "bench_peer: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- in the process ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t last_ms;
static uint64_t sequence;

/* As such generators go: 41 bits of ms, 10 of worker, 12 of sequence. */
static void
take_generated(void *arg)
{
	struct timespec ts;
	int64_t ms;

	(void)arg;
	pthread_mutex_lock(&lock);
	do {
		clock_gettime(CLOCK_REALTIME, &ts);
		ms = (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
	} while (ms < last_ms || (ms == last_ms && sequence == 4095));
	sequence = ms == last_ms ? sequence + 1 : 0;
	last_ms = ms;
	sink = (uint64_t)(ms - EPOCH_MS) << 22 | UINT64_C(17) << 12 | sequence;
	pthread_mutex_unlock(&lock);
}

/*
 * The same with room for all that a loop can take: what it costs, not how
 * long it waits for the next millisecond.
 */
static void
take_generated_wide(void *arg)
{
	struct timespec ts;
	int64_t ms;

	(void)arg;
	pthread_mutex_lock(&lock);
	clock_gettime(CLOCK_REALTIME, &ts);
	ms = (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
	sequence = ms == last_ms ? sequence + 1 : 0;
	last_ms = ms;
	sink = (uint64_t)(ms - EPOCH_MS) << 22 | UINT64_C(1) << 20 | sequence;
	pthread_mutex_unlock(&lock);
}

static void
bench_generator(void)
{
	bench_loop("generator", take_generated_wide, NULL);
	bench_loop("generator_41_10_12", take_generated, NULL);
}

/* ---- libuuid ---- */

static void (*uuid_generate_time)(unsigned char *uuid);

static void
take_uuid(void *arg)
{
	unsigned char uuid[16];

	(void)arg;
	uuid_generate_time(uuid);
	sink = uuid[0];
}

static int
bench_uuid(void)
{
	void *so = dlopen("libuuid.so.1", RTLD_NOW);
	void *symbol = so == NULL ? NULL : dlsym(so, "uuid_generate_time");

	if (symbol == NULL)
		return (NOT_INSTALLED);
	memcpy(&uuid_generate_time, &symbol, sizeof(symbol));
	bench_loop("uuid", take_uuid, NULL);
	bench_paced("uuid_paced", take_uuid, NULL, NULL);
	return (0);
}

/* ---- the floor ---- */

static void
take_echo(void *arg)
{
	static char bytes[ECHO_REPLY];

	(void)arg;
	if (send(fd, bytes, ECHO_REQUEST, MSG_NOSIGNAL) != ECHO_REQUEST ||
	    recv(fd, bytes, ECHO_REPLY, MSG_WAITALL) != ECHO_REPLY)
		fail("echo");
}

static void
bench_echo(void)
{
	char bytes[ECHO_REPLY] = { 0 };
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
		fail("socketpair");
	pid = fork();
	if (pid == -1)
		fail("fork");
	if (pid == 0) {
		close(ends[0]);
		while (recv(ends[1], bytes, ECHO_REQUEST, MSG_WAITALL) > 0 &&
		       send(ends[1], bytes, ECHO_REPLY, MSG_NOSIGNAL) > 0)
			;
		_exit(0);
	}
	close(ends[1]);
	fd = ends[0];
	bench_calls("echo", BENCH_CALLS, take_echo, NULL);
	close(fd);
	(void)waitpid(pid, NULL, 0);
}

/* ---- servers ---- */

static void
connect_to(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd == -1 || connect(fd, (struct sockaddr *)&sun, sizeof(sun)) != 0)
		fail(path);
}

static void
send_all(const void *bytes, size_t n)
{
	if (send(fd, bytes, n, MSG_NOSIGNAL) != (ssize_t)n)
		fail("send");
}

static void
take_redis(void *arg)
{
	static const char request[] = "*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n";
	char reply[64];
	ssize_t n;

	(void)arg;
	send_all(request, sizeof(request) - 1);
	n = recv(fd, reply, sizeof(reply), 0);
	if (n < 4 || reply[0] != ':' || reply[n - 1] != '\n')
		fail("INCR");
}

static uint32_t
big_endian(const uint8_t *p)
{
	return ((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
		(uint32_t)p[2] << 8 | p[3]);
}

/* Whole messages until the one that says ReadyForQuery. */
static void
postgres_wait(void)
{
	static uint8_t buf[65536];
	size_t used = 0, at = 0;

	for (;;) {
		ssize_t n = recv(fd, buf + used, sizeof(buf) - used, 0);

		if (n <= 0)
			fail("postgres");
		used += (size_t)n;
		while (used - at >= 5) {
			size_t length = 1 + big_endian(buf + at + 1);

			if (buf[at] == 'E') {
				fprintf(stderr, "%.*s\n", (int)(used - at - 6),
				    (const char *)buf + at + 6);
				fail("postgres says an error");
			}
			if (used - at < length)
				break;
			if (buf[at] == 'Z')
				return;
			at += length;
		}
	}
}

static void
postgres_query(const char *text)
{
	uint8_t frame[256] = { 'Q' };
	size_t n = strlen(text) + 1;

	frame[4] = (uint8_t)(4 + n);
	memcpy(frame + 5, text, n);
	send_all(frame, 5 + n);
	postgres_wait();
}

static void
take_postgres(void *arg)
{
	(void)arg;
	postgres_query("SELECT nextval('ids')");
}

static void
postgres_start(void)
{
	static const char hello[] = "\0\0\0\0\0\3\0\0"
				    "user\0bench\0database\0postgres\0";
	uint8_t frame[sizeof(hello)];

	memcpy(frame, hello, sizeof(hello));
	frame[3] = sizeof(hello);
	send_all(frame, sizeof(frame));
	postgres_wait();
	postgres_query("CREATE SEQUENCE IF NOT EXISTS ids");
}

int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "generator") == 0) {
		bench_generator();
	} else if (argc == 2 && strcmp(argv[1], "uuid") == 0) {
		return (bench_uuid());
	} else if (argc == 2 && strcmp(argv[1], "echo") == 0) {
		bench_echo();
	} else if (argc == 3 && strcmp(argv[1], "redis") == 0) {
		connect_to(argv[2]);
		bench_calls("redis", BENCH_CALLS, take_redis, NULL);
	} else if (argc == 3 && strcmp(argv[1], "postgres") == 0) {
		connect_to(argv[2]);
		postgres_start();
		bench_calls("postgres", BENCH_CALLS, take_postgres, NULL);
	} else {
		fail("generator, uuid, echo, redis PATH or postgres PATH");
	}
	return (0);
}
