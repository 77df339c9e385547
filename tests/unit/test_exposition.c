/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_exposition - Prometheus' text: escapes, exact numbers, buckets, and a
 * buffer of any size.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exposition.h"

static struct expo e;
static char text[4096];

static void
begin(void)
{
	memset(text, 0x55, sizeof(text));
	expo_open(&e, text, sizeof(text));
}

static void
expect(const char *is)
{
	assert_int_equal(expo_end(&e), (int)strlen(is));
	assert_string_equal(text, is);
}

static void
test_family_and_samples(void **state)
{
	const struct expo_label two[] = { { "realm", "r" },
		{ "worker_id", "17" }, { NULL, NULL } };
	const struct expo_label none[] = { { NULL, NULL } };

	(void)state;
	begin();
	expo_family(&e, "a_total", EXPO_COUNTER, "All of them.");
	expo_put_u64(&e, NULL, UINT64_MAX);
	expo_put_u64(&e, none, 0);
	expo_family(&e, "b", EXPO_GAUGE, "One.");
	expo_put_bool(&e, two, true);
	expo_family(&e, "c", EXPO_GAUGE, "Not known.");
	expect("# HELP a_total All of them.\n"
	       "# TYPE a_total counter\n"
	       "a_total 18446744073709551615\n"
	       "a_total 0\n"
	       "# HELP b One.\n"
	       "# TYPE b gauge\n"
	       "b{realm=\"r\",worker_id=\"17\"} 1\n"
	       "# HELP c Not known.\n"
	       "# TYPE c gauge\n");
}

/* A quote is escaped in a value, and only there. */
static void
test_escapes(void **state)
{
	const struct expo_label l[] = { { "x", "a\"b\\c\nd\xc3\xa9 %s" },
		{ NULL, NULL } };

	(void)state;
	begin();
	expo_family(&e, "m", EXPO_GAUGE, "a\"b\\c\nd %s");
	expo_put_u64(&e, l, 1);
	expect("# HELP m a\"b\\\\c\\nd %s\n"
	       "# TYPE m gauge\n"
	       "m{x=\"a\\\"b\\\\c\\nd\xc3\xa9 %s\"} 1\n");
}

static void
test_seconds(void **state)
{
	(void)state;
	begin();
	e.family = "m";
	expo_put_us(&e, NULL, 0);
	expo_put_us(&e, NULL, -1);
	expo_put_us(&e, NULL, 1500000);
	expo_put_us(&e, NULL, INT64_MIN);
	expo_put_us(&e, NULL, INT64_MAX);
	expo_put_ms(&e, NULL, -1500);
	expo_put_ms(&e, NULL, INT64_MIN);
	expo_put_ms(&e, NULL, INT64_MAX);
	expect("m 0.000000\n"
	       "m -0.000001\n"
	       "m 1.500000\n"
	       "m -9223372036854.775808\n"
	       "m 9223372036854.775807\n"
	       "m -1.500\n"
	       "m -9223372036854775.808\n"
	       "m 9223372036854775.807\n");
}

/* A bound is in its bucket; the buckets only go up and end with all. */
static void
test_durations(void **state)
{
	struct expo_durations d = { .n = 0 };
	const char *at;

	(void)state;
	expo_take_duration(&d, -5);
	expo_take_duration(&d, 500);
	expo_take_duration(&d, 501);
	expo_take_duration(&d, 2500000);
	expo_take_duration(&d, 2500001);
	begin();
	expo_family(&e, "h", EXPO_HISTOGRAM, "H.");
	expo_put_durations(&e, &d);
	assert_true(expo_end(&e) > 0);
	at = strstr(text, "h_bucket{le=\"0.0005\"} 2\nh_bucket{le=\"0.001\"} "
			  "3\nh_bucket{le=\"0.0025\"} 3\n");
	assert_non_null(at);
	at = strstr(at, "h_bucket{le=\"2.5\"} 4\nh_bucket{le=\"+Inf\"} 5\n"
			"h_sum 5.001002\nh_count 5\n");
	assert_non_null(at);
	assert_int_equal(strlen(at),
	    strlen("h_bucket{le=\"2.5\"} 4\nh_bucket{le=\"+Inf\"} 5\n"
		   "h_sum 5.001002\nh_count 5\n"));
}

static void
write_some(struct expo *x)
{
	const struct expo_label l[] = { { "x", "\\\\\"\"\n\n" },
		{ NULL, NULL } };
	struct expo_durations d = { .n = 0 };

	expo_family(x, "m", EXPO_GAUGE, "Help\\\n.");
	expo_put_u64(x, l, 12345);
	expo_put_us(x, l, -12345);
	expo_family(x, "h", EXPO_HISTOGRAM, "H.");
	expo_put_durations(x, &d);
}

/* At each size: all of it, or -1; and never a byte beyond. */
static void
test_any_size(void **state)
{
	size_t whole;
	char *buf;
	int n;

	(void)state;
	begin();
	write_some(&e);
	assert_true(expo_end(&e) > 0);
	whole = (size_t)expo_end(&e) + 1;
	for (size_t size = 0; size <= whole; size++) {
		buf = malloc(size + 1);
		assert_non_null(buf);
		buf[size] = 0x2a;
		expo_open(&e, buf, size);
		write_some(&e);
		n = expo_end(&e);
		assert_int_equal(n, size == whole ? (int)whole - 1 : -1);
		assert_int_equal(buf[size], 0x2a);
		if (n > 0)
			assert_memory_equal(buf, text, whole);
		free(buf);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_family_and_samples),
		cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_seconds),
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_any_size),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
