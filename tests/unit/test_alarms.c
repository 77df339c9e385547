/* SPDX-License-Identifier: Apache-2.0 */
/* test_alarms - raised once, cleared once, each by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "alarms.h"
#include "dice.h"

#define STEPS 5000

/* Against the plainest model: what stands, and how often it was news. */
static void
test_news(void **state)
{
	struct dice d = dice_open("alarms");
	struct alarms a = { 0 };
	bool stands[ALARM_KINDS] = { false };
	mono_t since[ALARM_KINDS] = { { 0 } };

	(void)state;
	for (int i = 1; i <= STEPS; i++) {
		enum alarm_kind k =
		    (enum alarm_kind)dice_below(&d, ALARM_KINDS);
		bool on = dice_below(&d, 2) == 1;
		bool news = alarms_set(&a, k, on, (mono_t){ i });

		assert_int_equal(news, on != stands[k]);
		if (news)
			since[k].ns = i;
		stands[k] = on;
		for (int j = 0; j < ALARM_KINDS; j++) {
			assert_int_equal(a.kinds[j].stands, stands[j]);
			if (stands[j])
				assert_int_equal(
				    a.kinds[j].since.ns, since[j].ns);
		}
	}
}

static void
test_names(void **state)
{
	static const struct {
		const char *name, *severity;
	} is[ALARM_KINDS] = {
		{ "skew_warn", "warning" },
		{ "skew_refuse", "critical" },
		{ "clock_step", "warning" },
		{ "window_low", "critical" },
		{ "no_realm", "critical" },
		{ "clock_unsynced", "info" },
	};

	(void)state;
	for (int i = 0; i < ALARM_KINDS; i++) {
		enum alarm_kind k = (enum alarm_kind)i;

		assert_string_equal(alarm_name(k), is[i].name);
		assert_string_equal(
		    alarm_severity_name(alarm_severity(k)), is[i].severity);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_news),
		cmocka_unit_test(test_names),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
