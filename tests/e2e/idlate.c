/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idlate - an application whose agent stops (SIGSTOP): how late its calls
 * are, beside a bare sleep of the same length in the same run.
 *
 * idlate POINT SOCKET PID TIMEOUT_MS CALLS [signals]
 *
 * POINT: `accept`, stopped before it accepts; `request`, after it served;
 * `random`, at any moment under load; `try`, firn_try_next() at each of the
 * first two.  `signals`: a timer at 1 kHz interrupts all of it.
 * Prints JSON: "late" and "control" in microseconds past the deadline (try:
 * how long a call takes, and a sleep of 150 us).
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/time.h>

#include "idtool.h"

#define CALLS_MAX 1000
#define TTL_MS 1 /* nothing stays in memory */
#define TRY_NS INT64_C(150000)
#define PATIENT_MS 60000
#define MANY 2000

static const char *path;
static pid_t agent;
static uint32_t timeout_ms;
static unsigned calls;
static int64_t late[CALLS_MAX], control[CALLS_MAX];
static size_t nlate, ncontrol;
static atomic_uint ticks;

static void
on_tick(int sig)
{
	(void)sig;
	ticks++;
}

static void
tick_start(void)
{
	struct sigaction sa = { .sa_handler = on_tick }; /* no SA_RESTART */
	struct itimerval every = { { 0, 1000 }, { 0, 1000 } };

	if (sigaction(SIGALRM, &sa, NULL) == -1 ||
	    setitimer(ITIMER_REAL, &every, NULL) == -1)
		die("setitimer");
}

/* ---- the agent ---- */

static bool
agent_is_stopped(void)
{
	char name[64], line[512];
	FILE *f;
	const char *state = NULL;

	(void)snprintf(name, sizeof(name), "/proc/%d/stat", (int)agent);
	f = fopen(name, "r");
	if (f != NULL && fgets(line, sizeof(line), f) != NULL)
		state = strrchr(line, ')');
	if (f != NULL)
		(void)fclose(f);
	return (state != NULL && state[2] == 'T');
}

static void
agent_stop(void)
{
	if (kill(agent, SIGSTOP) == -1)
		die("SIGSTOP");
	while (!agent_is_stopped())
		sleep_ns(NS_PER_MS / 10);
}

static void
agent_go(void)
{
	(void)kill(agent, SIGCONT);
}

/* ---- one call ---- */

static void
measure_control(int64_t ns, int64_t from_ns)
{
	int64_t before = mono_ns();

	sleep_until(before + ns);
	if (ncontrol < CALLS_MAX)
		control[ncontrol++] = mono_ns() - before - from_ns;
}

static void
note_late(int64_t before_ns)
{
	if (nlate < CALLS_MAX)
		late[nlate++] = mono_ns() - before_ns - timeout_ms * NS_PER_MS;
}

/* The agent stands: the call ends by its deadline and not otherwise. */
static void
measure_call(struct firn *f)
{
	int64_t before = mono_ns();
	uint64_t id;
	int rc = firn_next(f, &id);

	if (rc != FIRN_ETIMEDOUT)
		die_firn(f, "the agent stands", rc);
	note_late(before);
	measure_control(timeout_ms * NS_PER_MS, timeout_ms * NS_PER_MS);
}

/* Until an ID comes, which it must once the agent goes on. */
static void
take_one(struct firn *f)
{
	int64_t end = mono_ns() + PATIENT_MS * NS_PER_MS;
	uint64_t id;
	int rc;

	while ((rc = firn_next(f, &id)) != 0) {
		if (mono_ns() > end)
			die_firn(f, "no ID", rc);
	}
}

/* ---- the points ---- */

static void
stop_before_accept(void)
{
	agent_stop();
	for (unsigned i = 0; i < calls; i++) {
		struct firn *f = handle_open(path, timeout_ms, TTL_MS);

		measure_call(f);
		firn_close(f);
	}
	agent_go();
}

/* What was under way when the agent stopped is no call of this test. */
static void
drain(struct firn *f)
{
	uint64_t id;

	sleep_ns(2 * TTL_MS * NS_PER_MS);
	while (firn_next(f, &id) == 0)
		sleep_ns(2 * TTL_MS * NS_PER_MS);
}

static void
stop_before_reply(void)
{
	struct firn *f = handle_open(path, timeout_ms, TTL_MS);

	take_one(f);
	agent_stop();
	drain(f);
	for (unsigned i = 0; i < calls; i++)
		measure_call(f);
	agent_go();
	take_one(f);
	firn_close(f);
}

static void *
stop_soon(void *arg)
{
	sleep_ns(*(const int64_t *)arg);
	agent_stop();
	return (NULL);
}

static void
stop_at_random(void)
{
	struct firn *f = handle_open(path, timeout_ms, TTL_MS);
	static uint64_t ids[MANY];
	unsigned seed = (unsigned)getpid();

	fprintf(stderr, "seed %u\n", seed);
	for (unsigned i = 0; i < calls; i++) {
		int64_t wait_ns = rand_r(&seed) % 3000000, before;
		pthread_t thread;
		size_t got;
		int rc;

		take_one(f);
		if (pthread_create(&thread, NULL, stop_soon, &wait_ns) != 0)
			die("pthread_create");
		do {
			before = mono_ns();
			rc = firn_next_many(f, ids, MANY, &got);
		} while (rc == 0 && got == MANY);
		if (rc != 0 && rc != FIRN_ETIMEDOUT)
			die_firn(f, "at random", rc);
		note_late(before);
		(void)pthread_join(thread, NULL);
		agent_go();
		measure_control(timeout_ms * NS_PER_MS, timeout_ms * NS_PER_MS);
	}
	take_one(f);
	firn_close(f);
}

/* Would it wait for the agent, it would wait for a minute. */
static void
try_while_stopped(void)
{
	struct firn *warm = handle_open(path, PATIENT_MS, TTL_MS);
	struct firn *cold = handle_open(path, PATIENT_MS, TTL_MS);
	struct pollfd p = { .fd = -1 };
	uint64_t id;
	int rc;

	take_one(warm);
	agent_stop();
	for (unsigned i = 0; i < calls; i++) {
		struct firn *f = i % 2 == 0 ? warm : cold;
		int64_t before = mono_ns();

		rc = firn_try_next(f, &id);
		late[nlate++] = mono_ns() - before;
		if (rc != FIRN_EAGAIN && i > 8)
			die_firn(f, "try", rc);
		measure_control(TRY_NS, 0);
	}
	agent_go();
	while ((rc = firn_try_next(cold, &id)) == FIRN_EAGAIN) {
		p.fd = firn_poll_fd(cold, &p.events);
		(void)poll(&p, 1, 100);
	}
	if (rc != 0)
		die_firn(cold, "try", rc);
	take_one(warm);
	firn_close(warm);
	firn_close(cold);
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} points[] = {
		{ "accept", stop_before_accept },
		{ "request", stop_before_reply },
		{ "random", stop_at_random },
		{ "try", try_while_stopped },
	};
	size_t i = 0, n = sizeof(points) / sizeof(points[0]);

	if (argc < 6)
		return (64);
	path = argv[2];
	agent = (pid_t)strtol(argv[3], NULL, 10);
	timeout_ms = (uint32_t)strtoul(argv[4], NULL, 10);
	calls = (unsigned)strtoul(argv[5], NULL, 10);
	while (i < n && strcmp(argv[1], points[i].name) != 0)
		i++;
	if (i == n || agent <= 0 || calls == 0 || calls > CALLS_MAX)
		return (64);
	if (argc > 6)
		tick_start();
	points[i].run();
	printf("{");
	print_times("late", late, nlate);
	printf(", ");
	print_times("control", control, ncontrol);
	printf(", \"calls\": %zu, \"ticks\": %u}\n", nlate, ticks);
	return (0);
}
