/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idfork - an application that makes children in each way there is while its
 * handle has IDs in memory, and writes down what each process took.
 *
 * idfork KIND SOCKET PREFIX CHILDREN COUNT [no-wipe]
 *
 * Each child takes COUNT IDs, from the handle that it inherits or, after an
 * exec, from one of its own; the parent goes on taking meanwhile.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "idtool.h"

#define TIMEOUT_MS 60000
#define WARM 3000
#define BETWEEN 50
#define THREADS 4
#define DEPTH 5
#define CHILDREN_MAX 100

static const char *path, *prefix;
static unsigned count;
static bool wipes = true;
static struct firn *handle;
static struct idfile own; /* of this process's first thread */

static void
take(struct idfile *file, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		uint64_t id;
		int rc = firn_next(handle, &id);

		if (rc != 0)
			die_firn(handle, "firn_next", rc);
		idfile_put(file, id);
	}
}

static unsigned
open_sockets(void)
{
	unsigned n = 0;
	struct stat st;

	for (int fd = 3; fd < 256; fd++)
		n += fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
	return (n);
}

/* ---- what a child does ---- */

static void
child_take(unsigned number)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that failed */
	own.n = 0; /* the parent's */
	close(own.fd);
	idfile_open(&own, prefix, number, 0);
	take(&own, count);
	idfile_flush(&own);
	if (open_sockets() != 1) {
		fprintf(
		    stderr, "child %u: %u sockets\n", number, open_sockets());
		_exit(1);
	}
}

static void __attribute__((noreturn)) child_main(unsigned number)
{
	child_take(number);
	_exit(0);
}

/* A program of its own, which must not find a trace of the handle. */
static int
plain_main(unsigned number)
{
	if (open_sockets() != 0) {
		fprintf(stderr, "a descriptor came through exec\n");
		return (1);
	}
	handle = handle_open(path, TIMEOUT_MS, 0);
	idfile_open(&own, prefix, number, 0);
	take(&own, count);
	idfile_flush(&own);
	firn_close(handle);
	return (0);
}

struct arguments {
	char number[16], count[16];
	char *argv[8];
};

static void
arguments_make(struct arguments *a, unsigned number)
{
	(void)snprintf(a->number, sizeof(a->number), "%u", number);
	(void)snprintf(a->count, sizeof(a->count), "%u", count);
	a->argv[0] = (char *)(uintptr_t) "idfork";
	a->argv[1] = (char *)(uintptr_t) "plain";
	a->argv[2] = (char *)(uintptr_t)path;
	a->argv[3] = (char *)(uintptr_t)prefix;
	a->argv[4] = a->number;
	a->argv[5] = a->count;
	a->argv[6] = NULL;
}

/* ---- the ways to make one ---- */

static pid_t
start_fork(unsigned number)
{
	pid_t pid = fork();

	if (pid == 0)
		child_main(number);
	return (pid);
}

static pid_t
start_underscore_fork(unsigned number)
{
	pid_t pid = _Fork();

	if (pid == 0)
		child_main(number);
	return (pid);
}

static pid_t
start_clone(unsigned number)
{
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		child_main(number);
	return (pid);
}

static pid_t
start_spawn(unsigned number)
{
	struct arguments a;
	pid_t pid;

	arguments_make(&a, number);
	errno =
	    posix_spawn(&pid, "/proc/self/exe", NULL, NULL, a.argv, environ);
	return (errno == 0 ? pid : -1);
}

/* From memory that it shares: the child's IDs stand in the parent's file. */
static pid_t
start_vfork(unsigned number)
{
	struct arguments a;
	pid_t pid;

	arguments_make(&a, number);
	pid = vfork();
	if (pid == 0) {
		if (wipes)
			take(&own, 3);
		(void)execv("/proc/self/exe", a.argv);
		_exit(127);
	}
	return (pid);
}

static pid_t
start_exec(unsigned number)
{
	struct arguments a;
	pid_t pid = fork();

	if (pid == 0) {
		child_take(number + CHILDREN_MAX);
		arguments_make(&a, number);
		(void)execv("/proc/self/exe", a.argv);
		_exit(127);
	}
	return (pid);
}

static void
wait_child(pid_t pid)
{
	int status;

	if (pid == -1)
		die("no child");
	while (waitpid(pid, &status, 0) == -1) {
		if (errno != EINTR)
			die("waitpid");
	}
	if (status != 0) {
		fprintf(stderr, "child %d: status %#x\n", (int)pid, status);
		_exit(1);
	}
}

/* A child that has a child, which has one, ... each beside its parent. */
static pid_t
start_nested(unsigned number)
{
	pid_t pid = fork(), grandchild;

	if (pid != 0)
		return (pid);
	child_take(number);
	if (number / CHILDREN_MAX < DEPTH) {
		grandchild = start_nested(number + CHILDREN_MAX);
		take(&own, count);
		idfile_flush(&own);
		wait_child(grandchild);
	}
	_exit(0);
}

static const struct kind {
	const char *name;
	pid_t (*start)(unsigned number);
	bool threads;
} kinds[] = {
	{ "fork", start_fork, false },
	{ "_Fork", start_underscore_fork, false },
	{ "clone", start_clone, false },
	{ "spawn", start_spawn, false },
	{ "vfork", start_vfork, false },
	{ "exec", start_exec, false },
	{ "nested", start_nested, false },
	{ "threads", start_fork, true },
};

/* ---- the parent ---- */

static atomic_bool stopping;

static void *
thread_main(void *arg)
{
	struct idfile *file = arg;

	while (!stopping) {
		take(file, 200);
		sleep_ns(NS_PER_MS / 5); /* files of a bearable size */
	}
	idfile_flush(file);
	return (NULL);
}

static void
make_children(const struct kind *kind, unsigned children)
{
	pid_t pids[CHILDREN_MAX];

	for (unsigned i = 0; i < children; i++) {
		take(&own, BETWEEN);
		idfile_flush(&own);
		pids[i] = kind->start(i + 1);
		take(&own, BETWEEN);
	}
	for (unsigned i = 0; i < children; i++)
		wait_child(pids[i]);
	take(&own, WARM);
	idfile_flush(&own);
}

static void
run(const struct kind *kind, unsigned children)
{
	static struct idfile files[THREADS];
	pthread_t threads[THREADS];

	/* without wiping nothing may be dropped, so that all can be counted */
	handle = handle_open(path, TIMEOUT_MS, wipes ? 0 : TIMEOUT_MS);
	idfile_open(&own, prefix, 0, 0);
	take(&own, WARM);
	for (unsigned i = 0; kind->threads && i < THREADS; i++) {
		idfile_open(&files[i], prefix, 0, i + 1);
		if (pthread_create(&threads[i], NULL, thread_main, &files[i]) !=
		    0)
			die("pthread_create");
	}
	make_children(kind, children);
	stopping = true;
	for (unsigned i = 0; kind->threads && i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	firn_close(handle);
}

int
main(int argc, char **argv)
{
	unsigned children;

	if (argc < 6) {
		fprintf(stderr, "usage: idfork KIND SOCKET PREFIX CHILDREN "
				"COUNT [no-wipe]\n");
		return (64);
	}
	path = argv[2];
	prefix = argv[3];
	children = (unsigned)strtoul(argv[4], NULL, 10);
	count = (unsigned)strtoul(argv[5], NULL, 10);
	if (strcmp(argv[1], "plain") == 0)
		return (plain_main(children));
	if (argc > 6) {
		wipes = false;
		refuse_wiping();
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(argv[1], kinds[i].name) == 0 &&
		    children < CHILDREN_MAX) {
			run(&kinds[i], children);
			return (0);
		}
	}
	return (64);
}
