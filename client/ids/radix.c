/* SPDX-License-Identifier: Apache-2.0 */
/*
 * radix - a 64-bit number as digits of one base.
 *
 * Invariant: a text is judged by its form first (every character, then the
 * width), by its value only then; so no sum here can overflow.
 */
#include <string.h>

#include "radix.h"

int
radix_digit(const struct radix *r, char c)
{
	const char *p;

	if (r->fold_case && c >= 'A' && c <= 'Z')
		c = (char)(c - 'A' + 'a');
	p = memchr(r->digits, c, r->base);
	return (p == NULL ? -1 : (int)(p - r->digits));
}

size_t
radix_write(const struct radix *r, uint64_t v, char buf[FIRN_TEXT_MAX])
{
	size_t at = FIRN_TEXT_MAX - 1, len;

	buf[at] = '\0';
	do {
		buf[--at] = r->digits[v % r->base];
		v /= r->base;
		len = FIRN_TEXT_MAX - 1 - at;
	} while (v > 0 || len < r->width);
	memmove(buf, buf + at, len + 1);
	return (len);
}

/* The length of a text of this form, or FIRN_EINVAL and where it is not. */
static int
check_form(const struct radix *r, const char *text, size_t *len, size_t *where)
{
	size_t n, max_width = strlen(r->max);

	for (n = 0; text[n] != '\0'; n++) {
		if (n == max_width || radix_digit(r, text[n]) < 0) {
			*where = n;
			return (FIRN_EINVAL);
		}
	}
	if (n < r->min_width) {
		*where = n;
		return (FIRN_EINVAL);
	}
	if (n > r->width && text[0] == r->digits[0]) {
		*where = 0;
		return (FIRN_EINVAL);
	}
	*len = n;
	return (0);
}

/*
 * Over 64 bits?  The fault is the first digit that no later ones could make
 * good: the first that differs from the largest number's, if it is higher.
 */
static int
check_range(const struct radix *r, const char *text, size_t len, size_t *where)
{
	if (len < strlen(r->max))
		return (0);
	for (size_t i = 0; i < len; i++) {
		int digit = radix_digit(r, text[i]);
		int limit = radix_digit(r, r->max[i]);

		if (digit < limit)
			return (0);
		if (digit > limit) {
			*where = i;
			return (FIRN_ERANGE);
		}
	}
	return (0);
}

int
radix_read(const struct radix *r, const char *text, uint64_t *v, size_t *where)
{
	uint64_t sum = 0;
	size_t len;
	int err;

	if ((err = check_form(r, text, &len, where)) != 0)
		return (err);
	if ((err = check_range(r, text, len, where)) != 0)
		return (err);
	for (size_t i = 0; i < len; i++)
		sum = sum * r->base + (uint64_t)radix_digit(r, text[i]);
	*v = sum;
	return (0);
}
