/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records - names of claims and UUIDs, put together and taken apart.
 * Whatever parses gives the same text again.
 */
#include <string.h>

#include "layout.h"
#include "records.h"

#define COUNTER_DIGITS 10
#define WORKER_DIGITS_MIN 4

static const char hex_digits[] = "0123456789abcdef";

void
uuid_format(const uint8_t uuid[UUID_BYTES], char out[UUID_TEXT_MAX])
{
	size_t at = 0;

	for (size_t i = 0; i < UUID_BYTES; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			out[at++] = '-';
		out[at++] = hex_digits[uuid[i] >> 4];
		out[at++] = hex_digits[uuid[i] & 15];
	}
	out[at] = '\0';
}

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return (c - '0');
	if (c >= 'a' && c <= 'f')
		return (c - 'a' + 10);
	return (-1);
}

/* Reads a lower-case UUID at the start of text; its length, or 0. */
static size_t
uuid_scan(const char *text, uint8_t out[UUID_BYTES])
{
	size_t at = 0;

	for (size_t i = 0; i < UUID_BYTES; i++) {
		int high, low;

		if (i == 4 || i == 6 || i == 8 || i == 10) {
			if (text[at++] != '-')
				return (0);
		}
		high = hex_value(text[at]);
		if (high < 0)
			return (0);
		low = hex_value(text[at + 1]);
		if (low < 0)
			return (0);
		out[i] = (uint8_t)(high << 4 | low);
		at += 2;
	}
	return (at);
}

bool
uuid_parse(const char *text, uint8_t out[UUID_BYTES])
{
	size_t n = uuid_scan(text, out);

	return (n > 0 && text[n] == '\0');
}

/* Writes v in decimal, at least `width` digits, without a NUL. */
static size_t
put_decimal(char *out, uint64_t v, size_t width)
{
	char digits[20];
	size_t n = 0, at = 0;

	do {
		digits[n++] = (char)('0' + v % 10);
		v /= 10;
	} while (v > 0);
	for (size_t i = n; i < width; i++)
		out[at++] = '0';
	while (n > 0)
		out[at++] = digits[--n];
	return (at);
}

void
claim_name_prefix(
    const uint8_t uuid[UUID_BYTES], uint64_t worker, char out[CLAIM_PREFIX_MAX])
{
	size_t at;

	uuid_format(uuid, out);
	at = strlen(out);
	out[at++] = '-';
	out[at++] = 'w';
	if (worker != NO_WORKER)
		at += put_decimal(out + at, worker, WORKER_DIGITS_MIN);
	out[at++] = '-';
	out[at] = '\0';
}

/* Reads digits; false if there are none, too many, or they overflow. */
static bool
scan_decimal(const char *text, size_t n, uint64_t *out)
{
	uint64_t v = 0;

	if (n == 0 || n > 19)
		return (false);
	for (size_t i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '9')
			return (false);
		v = v * 10 + (uint64_t)(text[i] - '0');
	}
	*out = v;
	return (true);
}

bool
claim_name_parse(const char *name, struct claim_name *out)
{
	size_t at = uuid_scan(name, out->uuid), digits = 0;
	uint64_t counter;

	if (at == 0 || name[at] != '-' || name[at + 1] != 'w')
		return (false);
	at += 2;
	while (name[at + digits] >= '0' && name[at + digits] <= '9')
		digits++;
	out->named = digits > 0;
	out->wanted = NO_WORKER;
	if (out->named) {
		if (digits < WORKER_DIGITS_MIN ||
		    (digits > WORKER_DIGITS_MIN && name[at] == '0') ||
		    !scan_decimal(name + at, digits, &out->wanted))
			return (false);
	}
	at += digits;
	if (name[at] != '-')
		return (false);
	at++;
	if (strlen(name + at) != COUNTER_DIGITS ||
	    !scan_decimal(name + at, COUNTER_DIGITS, &counter) ||
	    counter > INT32_MAX)
		return (false);
	out->counter = (uint32_t)counter;
	return (true);
}

uint64_t
claim_name_worker(const struct claim_name *n, const struct contract *k)
{
	uint64_t usable = k->worker_last - k->worker_first + 1;

	if (!n->named)
		return (k->worker_first + n->counter % usable);
	if (n->wanted < k->worker_first || n->wanted > k->worker_last)
		return (NO_WORKER);
	return (n->wanted);
}

uint64_t
mark_name_worker(const char *name, const struct contract *k)
{
	size_t digits = strlen(name);
	uint64_t worker;

	if (digits < WORKER_DIGITS_MIN || !scan_decimal(name, digits, &worker))
		return (NO_WORKER);
	if (digits > WORKER_DIGITS_MIN && name[0] == '0')
		return (NO_WORKER);
	if (worker < k->worker_first || worker > k->worker_last)
		return (NO_WORKER);
	return (worker);
}
