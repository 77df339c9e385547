/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of sysclock: on a machine whose processors are all taken, no reading
 * looks like a step, under any policy.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "clock.h"
#include "sysclock.h"

#define READINGS 1000000
#define HOGS_MAX 64
#define HOGS_A_CPU 2

static pid_t hogs[HOGS_MAX];
static int nhogs;

static int
start_hogs(void **state)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN) * HOGS_A_CPU;

	(void)state;
	for (nhogs = 0; nhogs < n && nhogs < HOGS_MAX; nhogs++) {
		pid_t pid = fork();

		if (pid == -1)
			return (-1);
		if (pid == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (volatile unsigned spin = 0;; spin++)
				continue;
		}
		hogs[nhogs] = pid;
	}
	return (0);
}

static int
end_hogs(void **state)
{
	(void)state;
	for (int i = 0; i < nhogs; i++) {
		(void)kill(hogs[i], SIGKILL);
		(void)waitpid(hogs[i], NULL, 0);
	}
	return (0);
}

/* What reading the two clocks one after the other would have said. */
static int64_t
naive_diff_ns(int64_t base_ns)
{
	struct timespec wall, boot;

	(void)clock_gettime(CLOCK_REALTIME, &wall);
	(void)clock_gettime(CLOCK_BOOTTIME, &boot);
	return ((int64_t)(wall.tv_sec - boot.tv_sec) * NS_PER_S + wall.tv_nsec -
		boot.tv_nsec - base_ns);
}

static void
test_no_false_step(void **state)
{
	static const struct clock_conf confs[] = {
		{ .policy = STEP_WAIT, .tolerance_ms = 5 },
		{ .policy = STEP_FAIL, .tolerance_ms = 5 },
		{ .policy = STEP_LOGICAL, .tolerance_ms = 5 },
	};
	struct clock clocks[3];
	struct instant now;
	int64_t worst_ns = 0, naive_ns = 0;
	unsigned naive_steps = 0;

	(void)state;
	sysclock_read(&now);
	for (size_t k = 0; k < 3; k++)
		clock_start(&clocks[k], &confs[k], &now);
	for (unsigned i = 0; i < READINGS; i++) {
		int64_t diff_ns = naive_diff_ns(clocks[0].base_ns);

		if (diff_ns < naive_ns)
			naive_ns = diff_ns;
		if (diff_ns < -ms_to_ns(5))
			naive_steps++;
		sysclock_read(&now);
		if (now.error_ns > worst_ns)
			worst_ns = now.error_ns;
		for (size_t k = 0; k < 3; k++) {
			(void)clock_observe(&clocks[k], &now);
			if (clocks[k].verdict != CLOCK_GOOD)
				fail_msg("reading %u, policy %zu: %" PRId64
					 " ns off, read within %" PRId64 " ns",
				    i, k, clocks[k].diff_ns, now.error_ns);
		}
	}
	print_message("%d readings, the worst within %" PRId64
		      " us; a plain one would have seen %u steps back, the "
		      "largest of %" PRId64 " us\n",
	    READINGS, worst_ns / 1000, naive_steps, -naive_ns / 1000);
}

/* The kernel's word is what adjtimex(8) prints, and asking changes nothing. */
static void
test_kernel(void **state)
{
	struct timex before = { .modes = 0 }, after = { .modes = 0 };
	int word = adjtimex(&before);
	struct sysclock_kernel k;

	(void)state;
	for (int i = 0; i < 1000; i++)
		sysclock_kernel(&k);
	assert_int_equal(k.known, word != -1);
	if (word == -1) {
		assert_string_equal(k.leap, "none");
		return;
	}
	assert_int_equal(k.synchronized,
	    word != TIME_ERROR && (before.status & STA_UNSYNC) == 0);
	assert_true(k.error_us >= 0);
	assert_string_equal(k.leap, (before.status & STA_INS) != 0   ? "insert"
				    : (before.status & STA_DEL) != 0 ? "delete"
								     : "none");
	assert_true(adjtimex(&after) != -1);
	assert_true(before.freq == after.freq && before.tick == after.tick);
	assert_int_equal(before.status, after.status);
	print_message("kernel: synchronized %d, give or take %" PRId64
		      " us, leap second: %s\n",
	    k.synchronized, k.error_us, k.leap);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernel),
		cmocka_unit_test_setup_teardown(
		    test_no_false_step, start_hogs, end_hogs),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
