/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idcrash - an application that forks all the time, and whose children die in
 * every way there is, with IDs in memory that nobody will ever use.
 *
 * idcrash SOCKET PREFIX SEED FORKS_PER_SECOND, until SIGTERM or kill -9.
 *
 * Invariant: each ID is in its process's file, with one write of its own,
 * before the next one is asked for: a death loses none that was handed out
 * before, and leaves no half of one.
 */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "idtool.h"

#define TIMEOUT_MS 2000
#define CHILDREN_MAX 8u
#define OWN_MAX 200u /* IDs between two forks */
#define CHILD_MAX 60u

static struct firn *handle;
static struct idfile file;
static uint64_t random_state;
static volatile sig_atomic_t stopping;

static void
on_term(int sig)
{
	(void)sig;
	stopping = 1;
}

/* splitmix64 */
static unsigned
random_below(unsigned n)
{
	uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return ((unsigned)((z ^ (z >> 31)) % n));
}

/* A call that fails is a call without an ID: the agent may be away. */
static void
take(unsigned n)
{
	uint64_t id;

	for (unsigned i = 0; i < n && !stopping; i++) {
		if (firn_next(handle, &id) != 0) {
			sleep_ns(20 * NS_PER_MS);
			continue;
		}
		idfile_put(&file, id);
		idfile_flush(&file);
	}
}

static void __attribute__((noreturn)) die_somehow(unsigned how)
{
	if (how == 0)
		_exit(0);
	(void)signal(SIGABRT, SIG_DFL);
	(void)kill(getpid(), how == 1 ? SIGKILL : how == 2 ? SIGSEGV : SIGABRT);
	(void)pause();
	_exit(1);
}

static void __attribute__((noreturn)) child_main(const char *prefix, unsigned n)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	random_state += n * UINT64_C(0x632be59bd9b4e019);
	(void)close(file.fd);
	idfile_open(&file, prefix, n, 0);
	take(random_below(CHILD_MAX));
	if (random_below(4) == 0)
		firn_close(handle);
	die_somehow(random_below(4));
}

static unsigned
reap(unsigned alive)
{
	while (alive > 0 &&
	       waitpid(-1, NULL, alive < CHILDREN_MAX ? WNOHANG : 0) > 0)
		alive--;
	return (alive);
}

int
main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_term };
	struct rlimit no_core = { 0, 0 };
	unsigned alive = 0, per_second;

	if (argc != 5) {
		fprintf(stderr, "usage: idcrash SOCKET PREFIX SEED "
				"FORKS_PER_SECOND\n");
		return (64);
	}
	random_state = strtoull(argv[3], NULL, 10);
	per_second = (unsigned)strtoul(argv[4], NULL, 10);
	if (per_second == 0 || setrlimit(RLIMIT_CORE, &no_core) == -1 ||
	    sigaction(SIGTERM, &sa, NULL) == -1)
		die("start");
	handle = handle_open(argv[1], TIMEOUT_MS, 0);
	idfile_open(&file, argv[2], 0, 0);
	for (unsigned n = 1; !stopping; n++) {
		pid_t pid;

		take(random_below(OWN_MAX));
		pid = fork();
		if (pid == -1)
			die("fork");
		if (pid == 0)
			child_main(argv[2], n);
		alive = reap(alive + 1);
		sleep_ns(NS_PER_S / per_second);
	}
	while (waitpid(-1, NULL, 0) > 0)
		continue;
	firn_close(handle);
	return (0);
}
