/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crockford - Crockford's Base32, 13 wide.
 *
 * Invariant: the digits ascend in ASCII and the width is fixed, so that texts
 * sort as their numbers do.
 */
#include "crockford.h"

const struct radix crockford_radix = {
	.digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ",
	.max = "FZZZZZZZZZZZZ",
	.base = 32,
	.width = CROCKFORD_WIDTH,
	.min_width = CROCKFORD_WIDTH,
};

char
crockford_canonical(char c)
{
	if (c >= 'a' && c <= 'z')
		c = (char)(c - 'a' + 'A');
	switch (c) {
	case 'O':
		return ('0');
	case 'I':
	case 'L':
		return ('1');
	default:
		return (c);
	}
}

void
crockford_tidy(const char *text, size_t width, char *strict, size_t *offset)
{
	size_t i, n = 0;

	for (i = 0; text[i] != '\0' && n <= width; i++) {
		if (text[i] == '-')
			continue;
		offset[n] = i;
		strict[n++] = crockford_canonical(text[i]);
	}
	offset[n] = i;
	strict[n] = '\0';
}

int
crockford_parse_lenient(const char *text, uint64_t *id, size_t *where)
{
	char strict[CROCKFORD_WIDTH + 2];
	size_t offset[CROCKFORD_WIDTH + 2], at = 0;
	int err;

	if (text == NULL || id == NULL) {
		if (where != NULL)
			*where = 0;
		return (FIRN_EINVAL);
	}
	crockford_tidy(text, CROCKFORD_WIDTH, strict, offset);
	err = radix_read(&crockford_radix, strict, id, &at);
	if (err != 0 && where != NULL)
		*where = offset[at];
	return (err);
}
