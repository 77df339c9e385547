/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ordinal - a worker ID out of a name, a realm uuid out of a configuration.
 *
 * Invariant: the uuid is FNV-1a, 128 bits, of one line of ASCII,
 *
 *   firn realm NAME bits T/W/S order worker-sequence tick_ms N epoch_ms N
 *
 * (or "sequence-worker"), with the version and variant bits put in.  FNV,
 * since nobody gains by making two realms alike on purpose: whoever writes
 * the configuration could as well write the same name.
 */
#include <string.h>

#include "layout.h"
#include "ordinal.h"

enum ordinal_result
ordinal_parse(const char *name, const struct firn_layout *l, uint64_t *worker)
{
	const char *end = name + strlen(name), *p = end;
	uint64_t v = 0;

	if (p == name)
		return (ORDINAL_EMPTY);
	while (p > name && p[-1] >= '0' && p[-1] <= '9')
		p--;
	if (p == end)
		return (ORDINAL_NO_DIGITS);
	for (; p < end; p++)
		if (__builtin_mul_overflow(v, UINT64_C(10), &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return (ORDINAL_OVERFLOW);
	*worker = v;
	return (v > layout_worker_max(l) ? ORDINAL_TOO_LARGE : ORDINAL_OK);
}

const char *
ordinal_text(enum ordinal_result result)
{
	switch (result) {
	case ORDINAL_OK:
		return ("ends in a worker ID");
	case ORDINAL_EMPTY:
		return ("is empty: a name that ends in a number is needed, "
			"as ids-7");
	case ORDINAL_NO_DIGITS:
		return ("does not end in a number, as ids-7 does");
	case ORDINAL_OVERFLOW:
		return ("ends in a number that is past 64 bits");
	case ORDINAL_TOO_LARGE:
		return ("ends in a number that the layout's worker bits do "
			"not hold");
	}
	return ("");
}

/* ---- the realm's uuid ------------------------------------------------------ */

/* FNV-1a: h = (h ^ byte) * (2^88 + 0x13b); low word first. */
struct fnv128 {
	uint32_t word[4];
};

#define FNV128_LOW 0x13b
static const struct fnv128 fnv128_basis = {
	{ 0x6295c58d, 0x62b82175, 0x07bb0142, 0x6c62272e },
};

static void
fnv128_add(struct fnv128 *h, uint8_t byte)
{
	const uint32_t low = h->word[0] ^ byte, second = h->word[1];
	const uint32_t shifted[4] = { 0, 0, low << 24,
		second << 24 | low >> 8 }; /* times 2^88 */
	uint64_t carry = 0;

	h->word[0] = low;
	for (int i = 0; i < 4; i++) {
		carry += (uint64_t)h->word[i] * FNV128_LOW + shifted[i];
		h->word[i] = (uint32_t)carry;
		carry >>= 32;
	}
}

static void
add_text(struct fnv128 *h, const char *text)
{
	for (; *text != '\0'; text++)
		fnv128_add(h, (uint8_t)*text);
}

static void
add_number(struct fnv128 *h, uint64_t v)
{
	char digits[21];
	size_t at = sizeof(digits) - 1;

	digits[at] = '\0';
	do {
		digits[--at] = (char)('0' + v % 10);
		v /= 10;
	} while (v > 0);
	add_text(h, digits + at);
}

static void
add_layout(struct fnv128 *h, const struct firn_layout *l)
{
	add_text(h, " bits ");
	add_number(h, l->time_bits);
	add_text(h, "/");
	add_number(h, l->worker_bits);
	add_text(h, "/");
	add_number(h, l->sequence_bits);
	add_text(h, (l->flags & FIRN_SEQUENCE_ABOVE_WORKER) != 0
			? " order sequence-worker"
			: " order worker-sequence");
	add_text(h, " tick_ms ");
	add_number(h, l->tick_ms);
	add_text(h, " epoch_ms ");
	add_number(h, (uint64_t)l->epoch_ms); /* valid: never negative */
}

void
ordinal_realm_uuid(
    const char *realm, const struct firn_layout *l, uint8_t uuid[UUID_BYTES])
{
	struct fnv128 h = fnv128_basis;

	add_text(&h, "firn realm ");
	add_text(&h, realm);
	add_layout(&h, l);
	for (size_t i = 0; i < UUID_BYTES; i++)
		uuid[i] = (uint8_t)(h.word[3 - i / 4] >> (24 - i % 4 * 8));
	uuid[6] = (uint8_t)(0x80 | (uuid[6] & 0x0f)); /* version 8 */
	uuid[8] = (uint8_t)(0x80 | (uuid[8] & 0x3f)); /* variant */
}
