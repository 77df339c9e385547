/* SPDX-License-Identifier: Apache-2.0 */
/* vdso: the function that is found tells the C library's time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include <cmocka.h>

#include "vdso.h"

static int64_t
read_ns(vdso_clock clock, clockid_t id)
{
	struct timespec ts = { 0 };

	assert_int_equal(clock(id, &ts), 0);
	return ((int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec);
}

/* Never before what was read before, never after what is read after. */
static void
test_same_time(void **state)
{
	static const clockid_t ids[] = { CLOCK_MONOTONIC_COARSE,
		CLOCK_MONOTONIC };
	vdso_clock clock = vdso_find_clock();

	(void)state;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		for (int k = 0; k < 10000; k++) {
			int64_t before = read_ns(clock_gettime, ids[i]);
			int64_t at = read_ns(clock, ids[i]);
			int64_t after = read_ns(clock_gettime, ids[i]);

			assert_true(before <= at && at <= after);
		}
	}
}

/* Where the kernel maps an image it is used, or this file is for nothing. */
static void
test_found(void **state)
{
	(void)state;
	if (getauxval(AT_SYSINFO_EHDR) == 0)
		assert_ptr_equal(vdso_find_clock(), clock_gettime);
	else
		assert_ptr_not_equal(vdso_find_clock(), clock_gettime);
}

static void
test_no_image(void **state)
{
	uint64_t zeros[64] = { 0 };

	(void)state;
	assert_ptr_equal(vdso_find_clock_in(NULL), clock_gettime);
	assert_ptr_equal(vdso_find_clock_in(zeros), clock_gettime);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_time),
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_no_image),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
