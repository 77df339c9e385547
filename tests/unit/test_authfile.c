/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file with user:password: what is taken, what is not, and that no error
 * tells what stands in it.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include <cmocka.h>

#include "authfile.h"

#define SECRET "tiger"

static char dir[] = "/tmp/firn-auth-XXXXXX", path[64];

static void
write_file(const char *text, size_t n, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd != -1);
	assert_int_equal(write(fd, text, n), n);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(close(fd), 0);
}

/* Refused with these words and no byte of the secret anywhere. */
static void
check_refused(const char *words)
{
	static const struct authfile none;
	struct authfile a;
	struct doc_error err = { "" };

	memset(&a, 'x', sizeof(a));
	assert_int_equal(authfile_read(path, &a, &err), EX_CONFIG);
	if (strstr(err.text, words) == NULL || strstr(err.text, path) == NULL)
		fail_msg("\"%s\" says not: %s", err.text, words);
	assert_null(strstr(err.text, SECRET));
	assert_memory_equal(&a, &none, sizeof(a));
}

static void
test_good(void **state)
{
	static const char *const good[] = { "u:" SECRET, "u:" SECRET "\n",
		"u:a:b", "u: ", "\xc3\xa4:\xc3\xb6", "a b:c d\n" };
	struct authfile a;
	struct doc_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		size_t n = strcspn(good[i], "\n");

		write_file(good[i], strlen(good[i]), i % 2 == 0 ? 0600 : 0400);
		assert_int_equal(authfile_read(path, &a, &err), 0);
		assert_int_equal(a.length, n);
		assert_memory_equal(a.text, good[i], n);
		assert_int_equal(a.text[n], '\0');
		authfile_wipe(&a);
		for (size_t k = 0; k < sizeof(a); k++)
			assert_int_equal(((const char *)&a)[k], 0);
	}
}

static void
test_bad_lines(void **state)
{
	static const char *const bad[] = { "", "\n", SECRET, ":" SECRET,
		"u:", "u:\n", "u:" SECRET "\n\n", "u:" SECRET "\nv:x\n",
		"u:" SECRET "\r\n", "u:\t" SECRET };
	char text[300];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		write_file(bad[i], strlen(bad[i]), 0600);
		check_refused("one line, user:password");
	}
	write_file("u:\0" SECRET, 8, 0600);
	check_refused("one line, user:password");
	memset(text, 'p', sizeof(text));
	memcpy(text, "u:" SECRET, 7);
	write_file(text, sizeof(text), 0600);
	check_refused("at most 255 bytes");
	write_file(text, 256, 0600);
	check_refused("at most 255 bytes");
}

static void
test_mode(void **state)
{
	static const mode_t bad[] = { 0644, 0640, 0604, 0620, 0602, 0610, 0601,
		0660, 0666 };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		write_file("u:" SECRET, 7, bad[i]);
		check_refused("group or others");
	}
}

static void
test_kind_and_owner(void **state)
{
	(void)state;
	write_file("u:" SECRET, 7, 0600);
	if (geteuid() == 0) { /* nobody else can give a file away */
		assert_int_equal(chown(path, 65534, 65534), 0);
		check_refused("must belong to root or");
	}
	assert_int_equal(unlink(path), 0);
	check_refused("No such file");
	assert_int_equal(mkdir(path, 0700), 0);
	check_refused("regular file");
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	check_refused("regular file"); /* and nothing is waited for */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/dev/null", path), 0);
	check_refused("regular file");
	assert_int_equal(unlink(path), 0);
}

static void
test_protect(void **state)
{
	struct doc_error err;

	(void)state;
	assert_int_equal(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 1);
	assert_int_equal(authfile_check("/nowhere", &err), 78);
	assert_int_equal(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
	assert_int_equal(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_mode),
		cmocka_unit_test(test_kind_and_owner),
		cmocka_unit_test(test_protect),
	};
	int failed;

	if (mkdtemp(dir) == NULL)
		return (1);
	(void)snprintf(path, sizeof(path), "%s/auth", dir);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	(void)unlink(path);
	(void)rmdir(dir);
	return (failed);
}
