/* SPDX-License-Identifier: Apache-2.0 */
/* spin: a look that is in vain becomes rare, one that is not stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "firn-spin.h"

/* How many of n waits begin with a look, each ending as `came` says. */
static unsigned
looks_of(struct spin *s, unsigned n, bool came)
{
	unsigned looks = 0;

	for (unsigned i = 0; i < n; i++) {
		if (spin_begins(s)) {
			looks++;
			spin_ended(s, came);
		}
	}
	return (looks);
}

static void
test_always_while_it_helps(void **state)
{
	struct spin s = { 0 };

	(void)state;
	assert_int_equal(looks_of(&s, 1000, true), 1000);
}

static void
test_in_vain(void **state)
{
	struct spin s = { 0 };

	(void)state;
	/* one, then after 1, 3, 7 ... 255 waits without */
	assert_int_equal(looks_of(&s, 9 + 502, false), 9);
	assert_int_equal(looks_of(&s, 256 * 100, false), 100);
}

static void
test_it_comes_back(void **state)
{
	struct spin s = { 0 };

	(void)state;
	(void)looks_of(&s, 10000, false);
	assert_true(looks_of(&s, 600, true) > 8);
	assert_int_equal(looks_of(&s, 1000, true), 1000);
}

/* Now and then one comes by chance: that is no reason to look each time. */
static void
test_one_in_eight(void **state)
{
	struct spin s = { 0 };
	unsigned looks = 0;

	(void)state;
	for (unsigned i = 0; i < 100000; i++) {
		if (spin_begins(&s)) {
			spin_ended(&s, looks % 8 == 0);
			looks++;
		}
	}
	assert_in_range(looks, 1, 1000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_always_while_it_helps),
		cmocka_unit_test(test_in_vain),
		cmocka_unit_test(test_it_comes_back),
		cmocka_unit_test(test_one_in_eight),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
