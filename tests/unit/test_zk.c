/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the pure part of zk: connect strings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "dice.h"
#include "hosts.h"

/* Good ones, as "name|port|L or N, ... chroot". */
static const struct {
	const char *text, *want, *why;
} good[] = {
	{ "a", "a|2181|N ", "the default port" },
	{ "a:1", "a|1|N ", "the lowest port" },
	{ "a:65535", "a|65535|N ", "the highest port" },
	{ "a:02181", "a|2181|N ", "decimal, not octal, as the client has it" },
	{ "10.0.0.1:99", "10.0.0.1|99|L ", "IPv4" },
	{ "[::1]:2182", "::1|2182|L ", "IPv6: the client wants no brackets" },
	{ "[::1]", "::1|2181|L ", "IPv6, the default port" },
	{ "[fe80::1%eth0]:1", "fe80::1%eth0|1|L ", "IPv6 with a scope" },
	{ "[::ffff:1.2.3.4]", "::ffff:1.2.3.4|2181|L ", "IPv4 inside IPv6" },
	{ "zk-1.example.com,zk_2:3", "zk-1.example.com|2181|N zk_2|3|N ",
	    "two" },
	{ "a./x", "a.|2181|N /x", "a name with its root dot; a chroot" },
	{ "a:1,b:2/x/y-z", "a|1|N b|2|N /x/y-z", "one chroot for all" },
	{ "a/", "a|2181|N ", "the root is no chroot" },
	{ "1a.b", "1a.b|2181|N ", "a name that begins with a digit" },
	{ "a/.x/..y/z.", "a|2181|N /.x/..y/z.", "dots within names" },
};

static const struct {
	const char *text;
	size_t where;
	const char *why;
} bad[] = {
	{ "", 0, "nothing" },
	{ ",", 0, "no host before the comma" },
	{ "a,", 2, "no host after the comma" },
	{ "a,,b", 2, "no host between commas" },
	{ "/x", 0, "only a chroot" },
	{ ":2181", 0, "only a port" },
	{ "a:", 2, "no port" },
	{ "a:0", 2, "port 0" },
	{ "a:65536", 2, "a port above 16 bits" },
	{ "a:4294967297", 2, "a port that wraps to 1" },
	{ "a:0x85", 2, "hexadecimal, which the client would take" },
	{ "a:-1", 2, "a sign" },
	{ "a:21 ", 2, "a blank in the port" },
	{ "a b:1", 1, "a blank in the name" },
	{ "a, b", 2, "a blank before a name" },
	{ "::1:2181", 0, "IPv6 without brackets" },
	{ "a:1:2", 1, "two ports" },
	{ "[::1", 0, "no ]" },
	{ "[]:1", 1, "nothing in brackets" },
	{ "[1.2.3.4]:1", 1, "IPv4 in brackets" },
	{ "[zk]:1", 1, "a name in brackets" },
	{ "[::1%]:1", 1, "an empty scope" },
	{ "[::1]2181", 5, "no colon after ]" },
	{ "[::1]:", 6, "no port after ]" },
	{ "1.2.3:1", 0, "IPv4 that getaddrinfo would complete" },
	{ "010.0.0.1", 0, "IPv4 with an octal part" },
	{ "256.0.0.1", 0, "IPv4 out of range" },
	{ "a@b:1", 1, "a byte that no name has" },
	{ "a:1/x/", 6, "a slash at the chroot's end" },
	{ "a:1/x//y", 6, "an empty name in the chroot" },
	{ "a:1/x/../y", 6, "a chroot that climbs" },
	{ "a:1/./y", 4, "a chroot that stays" },
	{ "a:1/x,b:2", 4, "a chroot before the end" },
	{ "a:1/x y", 4, "a blank in the chroot" },
	{ "a:1/\x01", 4, "a control byte in the chroot" },
};

static void
put_together(const struct hosts *h, char *out, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < h->n; i++)
		used += (size_t)snprintf(out + used, size - used, "%s|%u|%c ",
		    h->host[i].name, (unsigned)h->host[i].port,
		    h->host[i].literal ? 'L' : 'N');
	(void)snprintf(out + used, size - used, "%s", h->chroot);
}

static void
test_good(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct hosts h;
		char got[512];
		const char *wrong = hosts_parse(good[i].text, &h, NULL);

		if (wrong != NULL)
			fail_msg(
			    "%s (%s): %s", good[i].text, good[i].why, wrong);
		put_together(&h, got, sizeof(got));
		if (strcmp(got, good[i].want) != 0)
			fail_msg("%s (%s): %s", good[i].text, good[i].why, got);
	}
}

static void
test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct hosts h;
		size_t where = SIZE_MAX;
		const char *wrong = hosts_parse(bad[i].text, &h, &where);

		if (wrong == NULL)
			fail_msg(
			    "\"%s\" was taken: %s", bad[i].text, bad[i].why);
		if (where != bad[i].where)
			fail_msg("\"%s\" (%s): %s at %zu, not %zu", bad[i].text,
			    bad[i].why, wrong, where, bad[i].where);
	}
}

/* Each limit: what just fits is taken whole, one more is refused. */
static void
test_limits(void **state)
{
	char text[2048];
	struct hosts h;
	size_t where, n;

	(void)state;
	memset(text, 'a', sizeof(text));
	text[HOST_NAME_MAX_BYTES - 1] = '\0';
	assert_null(hosts_parse(text, &h, &where));
	assert_string_equal(h.host[0].name, text);
	text[HOST_NAME_MAX_BYTES - 1] = 'a';
	text[HOST_NAME_MAX_BYTES] = '\0';
	assert_non_null(hosts_parse(text, &h, &where));

	memset(text, 'a', sizeof(text));
	text[1] = '/';
	text[CHROOT_MAX_BYTES] = '\0';
	assert_null(hosts_parse(text, &h, &where));
	assert_string_equal(h.chroot, text + 1);
	text[CHROOT_MAX_BYTES] = 'a';
	text[CHROOT_MAX_BYTES + 1] = '\0';
	assert_non_null(hosts_parse(text, &h, &where));

	for (n = 0; n < HOSTS_MAX; n++)
		memcpy(text + 2 * n, "a,", 2);
	text[2 * n - 1] = '\0';
	assert_null(hosts_parse(text, &h, &where));
	assert_int_equal(h.n, HOSTS_MAX);
	memcpy(text + 2 * n - 1, ",a", 3);
	assert_non_null(hosts_parse(text, &h, &where));
	assert_int_equal(where, 2 * n);
}

/*
 * Whatever the bytes: the place is within the text, and what is taken gives
 * the same again when it is written out and read once more.
 */
static void
test_any_bytes(void **state)
{
	static const char alphabet[] = "aZ0129.-_:,/[]% \x01\xff";
	struct dice d = dice_open("test_any_bytes");
	unsigned taken = 0;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		char text[24], again[512], first[512], second[512];
		size_t n = dice_below(&d, sizeof(text)), used = 0;
		size_t where = SIZE_MAX;
		struct hosts h, h2;

		for (size_t i = 0; i < n; i++)
			text[i] =
			    alphabet[dice_below(&d, sizeof(alphabet) - 1)];
		text[n] = '\0';
		if (hosts_parse(text, &h, &where) != NULL) {
			if (where > n)
				fail_msg("\"%s\": place %zu", text, where);
			continue;
		}
		taken++;
		for (size_t i = 0; i < h.n; i++) {
			bool v6 = strchr(h.host[i].name, ':') != NULL;

			used += (size_t)snprintf(again + used,
			    sizeof(again) - used, "%s%s%s%s:%u",
			    i > 0 ? "," : "", v6 ? "[" : "", h.host[i].name,
			    v6 ? "]" : "", (unsigned)h.host[i].port);
		}
		(void)snprintf(
		    again + used, sizeof(again) - used, "%s", h.chroot);
		assert_null(hosts_parse(again, &h2, NULL));
		put_together(&h, first, sizeof(first));
		put_together(&h2, second, sizeof(second));
		assert_string_equal(first, second);
	}
	assert_in_range(taken, 100, 19000); /* both kinds were seen */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_any_bytes),
	};

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
