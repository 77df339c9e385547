/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sealed IDs: texts that the openssl command made, every bit changed, keys
 * that come and go, and files that are not for this user alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "dice.h"
#include "firn-seal.h"

#define WORLDS 2000

static const char alphabet[] =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

static struct firn_seal *
open_keys(unsigned first, size_t size, size_t count, const char *purpose)
{
	unsigned char keys[FIRN_SEAL_KEYS_MAX * 32];
	struct firn_seal *s = NULL;

	for (size_t i = 0; i < size * count; i++)
		keys[i] = (unsigned char)(first + i);
	assert_int_equal(firn_seal_open(&s, keys, size, count, purpose), 0);
	return (s);
}

/*
 * key:    printf 'firn-seal-1\0PURPOSE' | openssl dgst -sha256 -mac HMAC
 *             -macopt hexkey:KEY, the first 16 or 32 bytes
 * block:  printf '\x16\x70\x11\x22\x33\x44\x55\x66firnseal' |
 *             openssl enc -aes-128-ecb (or 256) -K KEY -nopad
 * text:   the block as a number in base 62
 */
static void
texts_of_the_openssl_command(void **state)
{
	static const struct {
		size_t size;
		const char *purpose, *text;
	} cases[] = {
		{ 16, NULL, "3YLUbMWzVVFFdmsaGp703G" },
		{ 16, "", "3YLUbMWzVVFFdmsaGp703G" },
		{ 32, NULL, "3qSbwZkzHaQwgQ9kKGV4ua" },
		{ 16, "invoice", "5GsOaULKe7V9Qz5FSnMcYn" },
	};
	char text[FIRN_SEAL_TEXT_MAX];
	uint64_t id;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		/* keys 00 01 02 ... */
		struct firn_seal *s =
		    open_keys(0, cases[i].size, 1, cases[i].purpose);

		assert_int_equal(firn_seal_id(s, UINT64_C(0x1670112233445566),
				     text, sizeof(text)),
		    0);
		assert_string_equal(text, cases[i].text);
		id = 0;
		assert_int_equal(firn_unseal_id(s, text, &id), 0);
		assert_true(id == UINT64_C(0x1670112233445566));
		firn_seal_close(s);
	}
}

/* The text as 128 bits, one of them turned, as text again. */
static void
turn_bit(const char *text, unsigned bit, char out[FIRN_SEAL_TEXT_MAX])
{
	unsigned __int128 n = 0;

	for (size_t i = 0; i < 22; i++)
		n = n * 62 + (unsigned)(strchr(alphabet, text[i]) - alphabet);
	n ^= (unsigned __int128)1 << bit;
	out[22] = '\0';
	for (size_t i = 22; i > 0; i--, n /= 62)
		out[i - 1] = alphabet[(unsigned)(n % 62)];
}

static void
every_bit_counts(void **state)
{
	struct dice d = dice_open("every_bit_counts");
	struct firn_seal *s = open_keys(7, 32, 3, "order");

	(void)state;
	for (int w = 0; w < 20; w++) {
		char text[FIRN_SEAL_TEXT_MAX], other[FIRN_SEAL_TEXT_MAX];
		uint64_t id = dice_number(&d), out = 42;

		assert_int_equal(firn_seal_id(s, id, text, sizeof(text)), 0);
		for (unsigned bit = 0; bit < 128; bit++) {
			turn_bit(text, bit, other);
			assert_string_not_equal(text, other);
			assert_int_equal(
			    firn_unseal_id(s, other, &out), FIRN_ESEAL);
			turn_bit(other, bit, other);
			assert_string_equal(text, other);
		}
		/* and every character of it */
		for (size_t at = 0; at < 22; at++) {
			memcpy(other, text, sizeof(other));
			other[at] = other[at] == 'x' ? 'y' : 'x';
			assert_int_equal(
			    firn_unseal_id(s, other, &out), FIRN_ESEAL);
		}
		assert_true(out == 42);
	}
	firn_seal_close(s);
}

static void
all_ids_come_back(void **state)
{
	struct dice d = dice_open("all_ids_come_back");
	struct firn_seal *s = open_keys(1, 16, 1, NULL);

	(void)state;
	for (int w = 0; w < WORLDS; w++) {
		uint64_t id = dice_number(&d), out = ~id;
		char text[FIRN_SEAL_TEXT_MAX], again[FIRN_SEAL_TEXT_MAX];

		assert_int_equal(firn_seal_id(s, id, text, sizeof(text)), 0);
		assert_int_equal(strspn(text, alphabet), 22);
		assert_int_equal(firn_unseal_id(s, text, &out), 0);
		assert_true(id == out);
		assert_int_equal(firn_seal_id(s, id, again, sizeof(again)), 0);
		assert_string_equal(text, again);
	}
	firn_seal_close(s);
}

static void
keys_come_and_go(void **state)
{
	/* old: keys 1; both: the new one first, then the old; fresh: new */
	unsigned char two[32];
	struct firn_seal *old, *both = NULL, *fresh, *other;
	char before[FIRN_SEAL_TEXT_MAX], after[FIRN_SEAL_TEXT_MAX];
	uint64_t id = 0;

	(void)state;
	for (size_t i = 0; i < 16; i++) {
		two[i] = (unsigned char)(100 + i);
		two[16 + i] = (unsigned char)(1 + i);
	}
	old = open_keys(1, 16, 1, NULL);
	fresh = open_keys(100, 16, 1, NULL);
	other = open_keys(100, 16, 1, "other purpose");
	assert_int_equal(firn_seal_open(&both, two, 16, 2, NULL), 0);
	assert_int_equal(firn_seal_id(old, 5, before, sizeof(before)), 0);
	assert_int_equal(firn_seal_id(both, 5, after, sizeof(after)), 0);
	assert_string_not_equal(before, after);
	assert_int_equal(firn_unseal_id(both, before, &id), 0);
	assert_true(id == 5);
	assert_int_equal(firn_unseal_id(both, after, &id), 0);
	assert_int_equal(firn_unseal_id(fresh, after, &id), 0);
	assert_int_equal(firn_unseal_id(fresh, before, &id), FIRN_ESEAL);
	assert_int_equal(firn_unseal_id(old, after, &id), FIRN_ESEAL);
	assert_int_equal(firn_unseal_id(other, after, &id), FIRN_ESEAL);
	firn_seal_close(old);
	firn_seal_close(both);
	firn_seal_close(fresh);
	firn_seal_close(other);
}

/* An ID has one text: a number over 128 bits is no second one of it. */
static void
no_second_text(void **state)
{
	static const char over[] = "7n42DGM5Tflk9n8mt7Fhc8"; /* 2^128 */
	struct firn_seal *s = open_keys(0, 16, 1, NULL);
	char text[FIRN_SEAL_TEXT_MAX];
	uint64_t out;

	(void)state;
	for (uint64_t id = 0; id < 100; id++) {
		unsigned carry = 0;

		assert_int_equal(firn_seal_id(s, id, text, sizeof(text)), 0);
		for (size_t i = 22; i > 0; i--) {
			carry += (unsigned)(strchr(alphabet, text[i - 1]) -
					    alphabet);
			carry += (unsigned)(strchr(alphabet, over[i - 1]) -
					    alphabet);
			text[i - 1] = alphabet[carry % 62];
			carry /= 62;
		}
		assert_int_equal(carry, 0);
		assert_int_equal(firn_unseal_id(s, text, &out), FIRN_ESEAL);
	}
	firn_seal_close(s);
}

static void
wrong_forms(void **state)
{
	static const struct {
		const char *text;
		int err;
	} cases[] = {
		{ "", FIRN_EINVAL },
		{ "3YLUbMWzVVFFdmsaGp703", FIRN_EINVAL },
		{ "3YLUbMWzVVFFdmsaGp703G0", FIRN_EINVAL },
		{ "3YLUbMWzVVFFdmsaGp703-", FIRN_EINVAL },
		{ " YLUbMWzVVFFdmsaGp703G", FIRN_EINVAL },
		/* 2^128 - 1, one more, and the highest text */
		{ "7n42DGM5Tflk9n8mt7Fhc7", FIRN_ESEAL },
		{ "7n42DGM5Tflk9n8mt7Fhc8", FIRN_ESEAL },
		{ "zzzzzzzzzzzzzzzzzzzzzz", FIRN_ESEAL },
	};
	struct firn_seal *s = open_keys(0, 16, 1, NULL);
	unsigned char keys[17 * 16] = { 0 };
	char text[FIRN_SEAL_TEXT_MAX];
	uint64_t id;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(
		    firn_unseal_id(s, cases[i].text, &id), cases[i].err);
	assert_int_equal(firn_unseal_id(s, NULL, &id), FIRN_EINVAL);
	assert_int_equal(firn_seal_id(NULL, 1, text, 23), FIRN_EINVAL);
	assert_int_equal(firn_seal_id(s, 1, text, 22), FIRN_ERANGE);
	firn_seal_close(s);
	firn_seal_close(NULL);
	assert_int_equal(firn_seal_open(&s, keys, 24, 1, NULL), FIRN_EINVAL);
	assert_int_equal(firn_seal_open(&s, keys, 16, 0, NULL), FIRN_EINVAL);
	assert_int_equal(firn_seal_open(&s, keys, 16, 17, NULL), FIRN_EINVAL);
	assert_int_equal(firn_seal_open(&s, NULL, 16, 1, NULL), FIRN_EINVAL);
	assert_int_equal(firn_seal_open(NULL, keys, 16, 1, NULL), FIRN_EINVAL);
}

/* ---- files ---- */

#define KEY "000102030405060708090a0b0c0d0e0f"

static char path[] = "/tmp/firn-seal-XXXXXX";

static void
write_keys(const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_TRUNC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void
files_of_keys(void **state)
{
	static const struct {
		const char *text;
		int err;
		unsigned line;
	} cases[] = {
		{ KEY "\n", 0, 0 },
		{ KEY, 0, 0 },
		{ "# of May\n\n" KEY "  \r\n" KEY KEY, FIRN_EINVAL, 4 },
		{ "# of May\n\n000102030405060708090A0B0C0D0E0F\n"
		  "ffffffffffffffffffffffffffffffff\n",
		    0, 0 },
		{ "", FIRN_EINVAL, 0 },
		{ "# none\n", FIRN_EINVAL, 0 },
		{ KEY "\n000102\n", FIRN_EINVAL, 2 },
		{ "g00102030405060708090a0b0c0d0e0f\n", FIRN_EINVAL, 1 },
		{ " " KEY "\n", FIRN_EINVAL, 1 },
	};
	char text[FIRN_SEAL_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct firn_seal *s = NULL;
		unsigned line = 99;

		write_keys(cases[i].text, 0600);
		assert_int_equal(
		    firn_seal_open_file(&s, path, "invoice", &line),
		    cases[i].err);
		assert_int_equal(line, cases[i].line);
		if (cases[i].err != 0)
			continue;
		assert_int_equal(firn_seal_id(s, UINT64_C(0x1670112233445566),
				     text, sizeof(text)),
		    0);
		assert_string_equal(text, "5GsOaULKe7V9Qz5FSnMcYn");
		firn_seal_close(s);
	}
}

static void
files_for_this_user_alone(void **state)
{
	static const mode_t refused[] = { 0640, 0604, 0660, 0620, 0602, 0610,
		0601, 0644, 0777 };
	struct firn_seal *s = NULL;
	char fifo[sizeof(path) + 8];

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		write_keys(KEY "\n", refused[i]);
		assert_int_equal(
		    firn_seal_open_file(&s, path, NULL, NULL), FIRN_EACCES);
	}
	write_keys(KEY "\n", 0400);
	assert_int_equal(firn_seal_open_file(&s, path, NULL, NULL), 0);
	firn_seal_close(s);
	assert_int_equal(
	    firn_seal_open_file(&s, "/nowhere", NULL, NULL), FIRN_EACCES);
	assert_int_equal(firn_seal_open_file(&s, "/", NULL, NULL), FIRN_EACCES);
	assert_int_equal(
	    firn_seal_open_file(&s, "/dev/null", NULL, NULL), FIRN_EACCES);
	/* does not wait for one who writes */
	(void)snprintf(fifo, sizeof(fifo), "%s.fifo", path);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(
	    firn_seal_open_file(&s, fifo, NULL, NULL), FIRN_EACCES);
	unlink(fifo);
}

static int
make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return (fd < 0 ? -1 : close(fd));
}

static int
remove_file(void **state)
{
	(void)state;
	return (unlink(path));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_of_the_openssl_command),
		cmocka_unit_test(every_bit_counts),
		cmocka_unit_test(all_ids_come_back),
		cmocka_unit_test(keys_come_and_go),
		cmocka_unit_test(no_second_text),
		cmocka_unit_test(wrong_forms),
		cmocka_unit_test(files_of_keys),
		cmocka_unit_test(files_for_this_user_alone),
	};

	return (cmocka_run_group_tests(tests, make_file, remove_file));
}
