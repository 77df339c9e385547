/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_agent - what an agent pays for its clients, and how soon it serves.
 *
 *   bench_agent crowd IDLE ACTIVE PID   one uncached ID by turns on ACTIVE
 *       handles, alone and beside IDLE more connections; PID is the agent
 *   bench_agent first PROGRAM ARG...    starts the agent; ms to its first ID
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "firn-wire.h"
#include "firn.h"

#define ACTIVE_MAX 1000
#define TURNS 200
#define FIRST_NS INT64_C(30000000000)

static struct firn *handles[ACTIVE_MAX];
static size_t active, turn;

static void __attribute__((noreturn)) fail(const char *what)
{
	fprintf(stderr, "bench_agent: %s: %s\n", what, strerror(errno));
	exit(1);
}

static const char *
socket_path(void)
{
	const char *path = getenv("FIRN_SOCKET");

	return (path != NULL ? path : "/run/firn/firn.sock");
}

/* ---- a crowd ---- */

/* A client that has asked for the contract, as the stub does first. */
static int
connect_idle(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct wire_request r = {
		.version = WIRE_VERSION, .type = WIRE_CONTRACT, .cookie = 1
	};
	uint8_t frame[WIRE_REQUEST_SIZE];
	uint8_t reply[WIRE_HEADER_SIZE + WIRE_CONTRACT_SIZE];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", socket_path());
	if (fd == -1 || connect(fd, (struct sockaddr *)&sun, sizeof(sun)) != 0)
		fail("connect");
	wire_put_request(frame, &r);
	if (send(fd, frame, sizeof(frame), 0) != sizeof(frame) ||
	    recv(fd, reply, sizeof(reply), MSG_WAITALL) != sizeof(reply))
		fail("contract");
	return (fd);
}

static double
resident_kb(const char *pid)
{
	char path[64], line[128];
	double kb = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/status", pid);
	f = fopen(path, "re");
	if (f == NULL)
		fail(path);
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, "VmRSS:", 6) == 0)
			kb = strtod(line + 6, NULL);
	(void)fclose(f);
	return (kb);
}

static void
take_by_turns(void *arg)
{
	uint64_t id;

	(void)arg;
	if (firn_next(handles[turn++ % active], &id) != FIRN_OK)
		fail("firn_next");
}

static void
bench_crowd(size_t idle, const char *pid)
{
	struct firn_options o = {
		.size = sizeof(o), .timeout_ms = 5000, .max_batch = 1
	};
	struct rlimit files;
	double before_kb;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		fail("getrlimit");
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files) != 0 ||
	    files.rlim_max < idle + active + 16)
		fail("too few descriptors (ulimit -n)");
	for (size_t i = 0; i < active; i++)
		if (firn_open(&handles[i], &o) != FIRN_OK)
			fail("firn_open");
	for (size_t i = 0; i < active; i++)
		take_by_turns(NULL);
	bench_calls("crowd_alone", active * TURNS, take_by_turns, NULL);
	before_kb = resident_kb(pid);
	for (size_t i = 0; i < idle; i++)
		(void)connect_idle();
	row("crowd_bytes",
	    (resident_kb(pid) - before_kb) * 1024 / (double)idle);
	bench_calls("crowd_beside", active * TURNS, take_by_turns, NULL);
}

/* ---- the first ID ---- */

/* A new handle each time: one that was refused pauses before it tries again. */
static bool
try_first(void)
{
	struct firn_options o = {
		.size = sizeof(o), .timeout_ms = 1, .max_batch = 1
	};
	struct firn *f;
	uint64_t id;
	bool served;

	if (firn_open(&f, &o) != FIRN_OK)
		fail("firn_open");
	served = firn_next(f, &id) == FIRN_OK;
	firn_close(f);
	return (served);
}

static void
bench_first(char **argv)
{
	int64_t start_ns = now_ns(), took_ns;
	pid_t pid = fork();
	bool served;

	if (pid == -1)
		fail("fork");
	if (pid == 0) {
		execv(argv[0], argv);
		fail(argv[0]);
	}
	do {
		served = try_first();
		took_ns = now_ns() - start_ns;
	} while (
	    !served && took_ns < FIRST_NS && waitpid(pid, NULL, WNOHANG) == 0);
	(void)kill(pid, SIGTERM);
	(void)waitpid(pid, NULL, 0);
	errno = ETIMEDOUT;
	if (!served)
		fail("no ID");
	row("first_ms", (double)took_ns / 1e6);
}

int
main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "crowd") == 0) {
		active = (size_t)atol(argv[3]);
		if (active == 0 || active > ACTIVE_MAX)
			fail("ACTIVE");
		bench_crowd((size_t)atol(argv[2]), argv[4]);
	} else if (argc > 2 && strcmp(argv[1], "first") == 0) {
		bench_first(argv + 2);
	} else {
		fail("crowd IDLE ACTIVE PID, or first PROGRAM ARG...");
	}
	return (0);
}
