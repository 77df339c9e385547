/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ulid - ULIDs as text (Crockford's Base32, 26 wide), their time, and the one
 * after.
 *
 * Invariant: texts sort as their bytes do, and what firn_ulid_format() writes
 * the strict reader reads back as the same bytes.
 */
#include <string.h>

#include "crockford.h"
#include "ulid.h"

const struct rising_shape ulid_shape = {
	.high_bits = 16,
	.low_bits = 64,
	.tick_max = ULID_MS_MAX,
};

int
firn_ulid_format(const unsigned char ulid[16], char *buf, size_t n)
{
	uint64_t high, low;

	if (ulid == NULL || buf == NULL)
		return (FIRN_EINVAL);
	if (n < FIRN_ULID_TEXT_MAX)
		return (FIRN_ERANGE);
	high = bytes_get64(ulid);
	low = bytes_get64(ulid + 8);
	buf[ULID_WIDTH] = '\0';
	for (size_t i = ULID_WIDTH; i > 0; i--) {
		buf[i - 1] = crockford_radix.digits[low & 31];
		low = low >> 5 | high << 59;
		high >>= 5;
	}
	return (0);
}

/* As firn_ulid_parse(), whose arguments are there; *where is written. */
static int
read_strict(const char *text, unsigned char out[16], size_t *where)
{
	uint64_t high = 0, low = 0;

	for (size_t i = 0; i < ULID_WIDTH; i++) {
		int v = radix_digit(&crockford_radix, text[i]);

		*where = i;
		if (v < 0)
			return (FIRN_EINVAL);
		high = high << 5 | low >> 59;
		low = low << 5 | (unsigned)v;
	}
	*where = ULID_WIDTH;
	if (text[ULID_WIDTH] != '\0')
		return (FIRN_EINVAL);
	*where = 0;
	if (text[0] > '7')
		return (FIRN_ERANGE);
	bytes_put64(out, high);
	bytes_put64(out + 8, low);
	return (0);
}

int
firn_ulid_parse(const char *text, unsigned char out[16], size_t *where)
{
	size_t at = 0;
	int err = FIRN_EINVAL;

	if (text != NULL && out != NULL)
		err = read_strict(text, out, &at);
	if (err != 0 && where != NULL)
		*where = at;
	return (err);
}

int
firn_ulid_parse_lenient(const char *text, unsigned char out[16], size_t *where)
{
	char strict[ULID_WIDTH + 2];
	size_t offset[ULID_WIDTH + 2], at = 0;
	int err;

	if (text == NULL || out == NULL) {
		if (where != NULL)
			*where = 0;
		return (FIRN_EINVAL);
	}
	crockford_tidy(text, ULID_WIDTH, strict, offset);
	err = read_strict(strict, out, &at);
	if (err != 0 && where != NULL)
		*where = offset[at];
	return (err);
}

int
firn_ulid_compare(const unsigned char a[16], const unsigned char b[16])
{
	return (firn_uuid_compare(a, b));
}

int
firn_ulid_time(const unsigned char ulid[16], int64_t *unix_ms)
{
	if (ulid == NULL || unix_ms == NULL)
		return (FIRN_EINVAL);
	*unix_ms = (int64_t)(bytes_get64(ulid) >> 16);
	return (0);
}

static int
compose(int64_t unix_ms, uint64_t high, uint64_t low, unsigned char *out)
{
	if (out == NULL)
		return (FIRN_EINVAL);
	if (unix_ms < 0 || (uint64_t)unix_ms > ULID_MS_MAX)
		return (FIRN_ERANGE);
	ulid_compose(out, (uint64_t)unix_ms, high, low);
	return (0);
}

int
firn_ulid_floor(int64_t unix_ms, unsigned char out[16])
{
	return (compose(unix_ms, 0, 0, out));
}

int
firn_ulid_ceiling(int64_t unix_ms, unsigned char out[16])
{
	return (compose(unix_ms, rising_mask(16), UINT64_MAX, out));
}

int
firn_ulid_next(const unsigned char before[16], unsigned char out[16])
{
	struct rising r;
	uint64_t top;

	if (before == NULL || out == NULL)
		return (FIRN_EINVAL);
	top = bytes_get64(before);
	r.high = top & rising_mask(16);
	r.low = bytes_get64(before + 8);
	if (!rising_add(&r, &ulid_shape, 1))
		return (FIRN_ERANGE);
	ulid_compose(out, top >> 16, r.high, r.low);
	return (0);
}

static int
copy(const unsigned char *from, unsigned char *to)
{
	if (from == NULL || to == NULL)
		return (FIRN_EINVAL);
	memmove(to, from, 16);
	return (0);
}

int
firn_ulid_to_uuid(const unsigned char ulid[16], unsigned char uuid[16])
{
	return (copy(ulid, uuid));
}

int
firn_ulid_from_uuid(const unsigned char uuid[16], unsigned char ulid[16])
{
	return (copy(uuid, ulid));
}
