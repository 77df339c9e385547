/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text - the text forms of 64-bit IDs.
 *
 * Invariant: what firn_format_id() writes, firn_parse_id() reads back as the
 * same ID; and but for short or upper-case hex it reads nothing else.
 */
#include <string.h>

#include "base62.h"
#include "crockford.h"
#include "text.h"

static const struct radix decimal_radix = {
	.digits = "0123456789",
	.max = "18446744073709551615",
	.base = 10,
	.width = 1,
	.min_width = 1,
};

static const struct radix hex_radix = {
	.digits = "0123456789abcdef",
	.max = "ffffffffffffffff",
	.base = 16,
	.width = 16,
	.min_width = 1,
	.fold_case = true,
};

const struct radix *
text_radix(enum firn_format format)
{
	switch (format) {
	case FIRN_DECIMAL:
		return (&decimal_radix);
	case FIRN_HEX:
		return (&hex_radix);
	case FIRN_BASE62:
		return (&base62_radix);
	case FIRN_CROCKFORD:
		return (&crockford_radix);
	}
	return (NULL);
}

int
firn_format_id(uint64_t id, enum firn_format format, char *buf, size_t n)
{
	const struct radix *r = text_radix(format);
	char text[FIRN_TEXT_MAX];
	size_t len;

	if (r == NULL || buf == NULL)
		return (FIRN_EINVAL);
	len = radix_write(r, id, text);
	if (len >= n)
		return (FIRN_ERANGE);
	memcpy(buf, text, len + 1);
	return (0);
}

int
firn_parse_id(
    const char *text, enum firn_format format, uint64_t *id, size_t *where)
{
	const struct radix *r = text_radix(format);
	size_t at = 0;
	int err = FIRN_EINVAL;

	if (r != NULL && text != NULL && id != NULL)
		err = radix_read(r, text, id, &at);
	if (err != 0 && where != NULL)
		*where = at;
	return (err);
}
