/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uuid - UUIDs as text, and what a UUIDv7 says of its time.
 *
 * Invariant: what firn_uuid_format() writes, firn_uuid_parse() reads back as
 * the same bytes.
 */
#include <string.h>

#include "uuid.h"

#define TEXT_LENGTH (FIRN_UUID_TEXT_MAX - 1)

const struct rising_shape uuid7_shape = {
	.high_bits = UUID7_A_BITS,
	.low_bits = UUID7_B_BITS,
	.tick_max = UUID_MS_MAX,
};

static bool
is_hyphen_at(size_t i)
{
	return (i == 8 || i == 13 || i == 18 || i == 23);
}

int
firn_uuid_format(const unsigned char uuid[16], char *buf, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	size_t at = 0;

	if (uuid == NULL || buf == NULL)
		return (FIRN_EINVAL);
	if (n < FIRN_UUID_TEXT_MAX)
		return (FIRN_ERANGE);
	for (size_t i = 0; i < 16; i++) {
		if (is_hyphen_at(at))
			buf[at++] = '-';
		buf[at++] = digits[uuid[i] >> 4];
		buf[at++] = digits[uuid[i] & 15];
	}
	buf[at] = '\0';
	return (0);
}

/*
 * Reads the 36 characters.  Returns how many are right: fewer than 36 is the
 * place of the fault.
 */
static size_t
read_digits(const char *text, unsigned char out[16])
{
	size_t k = 0; /* digits so far */

	for (size_t i = 0; i < TEXT_LENGTH; i++) {
		int v = bytes_hex_digit(text[i]);

		if (is_hyphen_at(i) ? text[i] != '-' : v < 0)
			return (i);
		if (is_hyphen_at(i))
			continue;
		if (k % 2 == 0)
			out[k / 2] = (unsigned char)(v << 4);
		else
			out[k / 2] |= (unsigned char)v;
		k++;
	}
	return (TEXT_LENGTH);
}

/* How much of "urn:uuid:" the text begins with, in either case. */
static size_t
match_urn(const char *text)
{
	static const char urn[] = "urn:uuid:";
	size_t i = 0;

	while (urn[i] != '\0' &&
	       (text[i] == urn[i] || (text[i] >= 'A' && text[i] <= 'Z' &&
					 text[i] - 'A' + 'a' == urn[i])))
		i++;
	return (i);
}

/* The place of the fault, or the text's length with *good set. */
static size_t
read_text(const char *text, unsigned char out[16], bool *good)
{
	const char *end;
	bool braces = text[0] == '{';
	size_t at = 0, n;

	*good = false;
	if (braces) {
		at = 1;
	} else if (text[0] == 'u' || text[0] == 'U') {
		at = match_urn(text);
		if (at < strlen("urn:uuid:"))
			return (at);
	}
	n = read_digits(text + at, out);
	at += n;
	if (n < TEXT_LENGTH)
		return (at);
	end = braces ? "}" : "";
	if (braces && text[at] == *end)
		at++, end++;
	*good = text[at] == *end && *end == '\0';
	return (at);
}

int
firn_uuid_parse(const char *text, unsigned char out[16], size_t *where)
{
	unsigned char uuid[16];
	size_t at = 0;
	bool good = false;

	if (text != NULL && out != NULL)
		at = read_text(text, uuid, &good);
	if (!good) {
		if (where != NULL)
			*where = at;
		return (FIRN_EINVAL);
	}
	memcpy(out, uuid, sizeof(uuid));
	return (0);
}

int
firn_uuid_compare(const unsigned char a[16], const unsigned char b[16])
{
	int rc = memcmp(a, b, 16);

	return ((rc > 0) - (rc < 0));
}

int
firn_uuid_version(const unsigned char uuid[16])
{
	if (uuid == NULL || (uuid[8] & 0xc0) != 0x80)
		return (FIRN_EINVAL);
	return (uuid[6] >> 4);
}

int
firn_uuid_time(const unsigned char uuid[16], int64_t *unix_ms)
{
	if (unix_ms == NULL || firn_uuid_version(uuid) != 7)
		return (FIRN_EINVAL);
	*unix_ms = (int64_t)(bytes_get64(uuid) >> 16);
	return (0);
}

static int
compose(int64_t unix_ms, uint64_t a, uint64_t b, unsigned char *out)
{
	if (out == NULL)
		return (FIRN_EINVAL);
	if (unix_ms < 0 || (uint64_t)unix_ms > UUID_MS_MAX)
		return (FIRN_ERANGE);
	uuid7_compose(out, (uint64_t)unix_ms, a, b);
	return (0);
}

int
firn_uuid7_floor(int64_t unix_ms, unsigned char out[16])
{
	return (compose(unix_ms, 0, 0, out));
}

int
firn_uuid7_ceiling(int64_t unix_ms, unsigned char out[16])
{
	return (compose(unix_ms, rising_mask(UUID7_A_BITS),
	    rising_mask(UUID7_B_BITS), out));
}
