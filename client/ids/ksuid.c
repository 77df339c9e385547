/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ksuid - KSUIDs as text (Base62, 27 wide) and their time.
 *
 * Invariant: texts sort as their bytes do, and what firn_ksuid_format() writes
 * firn_ksuid_parse() reads back as the same bytes.
 */
#include <string.h>

#include "base62.h"
#include "ksuid.h"

#define WORDS (KSUID_SIZE / 4)
#define BASE 62

const struct rising_shape ksuid_shape = {
	.high_bits = 64,
	.low_bits = 64,
	.tick_max = UINT32_MAX,
};

/* 2^160 - 1, written. */
static const char text_max[] = "aWgEPTl1tmebfsQzFP4bxwgy80V";

/* Divides the number in words, the most significant first, by the base. */
static unsigned
divide(uint32_t words[WORDS])
{
	uint64_t rest = 0;

	for (size_t i = 0; i < WORDS; i++) {
		rest = rest << 32 | words[i];
		words[i] = (uint32_t)(rest / BASE);
		rest %= BASE;
	}
	return ((unsigned)rest);
}

/* Times the base, plus digit; the caller knows that it fits. */
static void
multiply(uint32_t words[WORDS], unsigned digit)
{
	uint64_t carry = digit;

	for (size_t i = WORDS; i > 0; i--) {
		carry += (uint64_t)words[i - 1] * BASE;
		words[i - 1] = (uint32_t)carry;
		carry >>= 32;
	}
}

int
firn_ksuid_format(const unsigned char ksuid[20], char *buf, size_t n)
{
	uint32_t words[WORDS];

	if (ksuid == NULL || buf == NULL)
		return (FIRN_EINVAL);
	if (n < FIRN_KSUID_TEXT_MAX)
		return (FIRN_ERANGE);
	for (size_t i = 0; i < WORDS; i++)
		words[i] = bytes_get32(ksuid + 4 * i);
	buf[KSUID_WIDTH] = '\0';
	for (size_t i = KSUID_WIDTH; i > 0; i--)
		buf[i - 1] = base62_radix.digits[divide(words)];
	return (0);
}

/* As firn_ksuid_parse(), whose arguments are there; *where is written. */
static int
read_text(const char *text, unsigned char out[KSUID_SIZE], size_t *where)
{
	uint32_t words[WORDS] = { 0 };
	size_t i;

	for (i = 0; i < KSUID_WIDTH; i++) {
		*where = i;
		if (radix_digit(&base62_radix, text[i]) < 0)
			return (FIRN_EINVAL);
	}
	*where = KSUID_WIDTH;
	if (text[KSUID_WIDTH] != '\0')
		return (FIRN_EINVAL);
	/* the digits ascend in ASCII, so texts compare as numbers do */
	for (i = 0; i < KSUID_WIDTH && text[i] == text_max[i]; i++)
		;
	*where = i;
	if (i < KSUID_WIDTH && text[i] > text_max[i])
		return (FIRN_ERANGE);
	for (i = 0; i < KSUID_WIDTH; i++)
		multiply(words, (unsigned)radix_digit(&base62_radix, text[i]));
	for (i = 0; i < WORDS; i++)
		bytes_put32(out + 4 * i, words[i]);
	return (0);
}

int
firn_ksuid_parse(const char *text, unsigned char out[20], size_t *where)
{
	size_t at = 0;
	int err = FIRN_EINVAL;

	if (text != NULL && out != NULL)
		err = read_text(text, out, &at);
	if (err != 0 && where != NULL)
		*where = at;
	return (err);
}

int
firn_ksuid_compare(const unsigned char a[20], const unsigned char b[20])
{
	int rc = memcmp(a, b, KSUID_SIZE);

	return ((rc > 0) - (rc < 0));
}

int
firn_ksuid_time(const unsigned char ksuid[20], int64_t *unix_ms)
{
	if (ksuid == NULL || unix_ms == NULL)
		return (FIRN_EINVAL);
	*unix_ms = (KSUID_EPOCH_S + (int64_t)bytes_get32(ksuid)) * 1000;
	return (0);
}

static int
compose(int64_t unix_ms, uint64_t payload, unsigned char *out)
{
	uint64_t s;

	if (out == NULL)
		return (FIRN_EINVAL);
	if (!ksuid_second(unix_ms, &s))
		return (FIRN_ERANGE);
	ksuid_compose(out, s, payload, payload);
	return (0);
}

int
firn_ksuid_floor(int64_t unix_ms, unsigned char out[20])
{
	return (compose(unix_ms, 0, out));
}

int
firn_ksuid_ceiling(int64_t unix_ms, unsigned char out[20])
{
	return (compose(unix_ms, UINT64_MAX, out));
}
