/* SPDX-License-Identifier: Apache-2.0 */
/* reckon - what the command works out by itself.  No I/O. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base62.h"
#include "crockford.h"
#include "doc.h"
#include "layout.h"
#include "reckon.h"
#include "rfc3339.h"

#define DATE_WIDTH 10 /* "2026-03-01" */
#define DECIMAL_WIDTH_MAX 20
#define HEX_WIDTH 16
#define AGENT_TIME_BITS 41
#define AGENT_REST_BITS 22 /* worker and sequence; the sign bit stays free */
#define GENERATION_NUMBER_MAX INT64_C(9999999999)

bool
reckon_format(const char *text, enum firn_format *format, size_t *skip)
{
	size_t n = strlen(text), digits = strspn(text, "0123456789");

	bool marked = strncmp(text, "0x", 2) == 0;

	*skip = 0;
	/* Base62 may begin like that too, but hardly goes on in hex */
	if (marked && strspn(text + 2, "0123456789abcdefABCDEF") == n - 2) {
		*skip = 2;
		*format = FIRN_HEX;
		return (true);
	}
	/* a decimal has no leading zero, so such a text is another form */
	if (n > 0 && digits == n && n <= DECIMAL_WIDTH_MAX &&
	    (text[0] != '0' || n == 1)) {
		*format = FIRN_DECIMAL;
		return (true);
	}
	switch (n) {
	case HEX_WIDTH:
		*format = FIRN_HEX;
		return (true);
	case CROCKFORD_WIDTH:
		*format = FIRN_CROCKFORD;
		return (true);
	case BASE62_WIDTH:
		*format = FIRN_BASE62;
		return (true);
	default:
		/* hex with a fault: the parser says where */
		*skip = 2;
		*format = FIRN_HEX;
		return (marked);
	}
}

bool
reckon_layout(uint64_t agents, struct firn_layout *l)
{
	unsigned bits = 0;

	if (agents < 1 || agents > WORKERS_MAX)
		return (false);
	while ((UINT64_C(3) << bits) < agents * 4)
		bits++;
	if (UINT64_C(1) << bits > WORKERS_MAX)
		return (false);
	*l = (struct firn_layout){
		.size = (uint32_t)sizeof(*l),
		.time_bits = AGENT_TIME_BITS,
		.worker_bits = (uint8_t)bits,
		.sequence_bits = (uint8_t)(AGENT_REST_BITS - bits),
		.tick_ms = 1,
		.epoch_ms = LAYOUT_EPOCH_MS,
		.name = "custom",
	};
	return (true);
}

bool
reckon_range(const char *text, uint64_t *first, uint64_t *last, size_t *where)
{
	size_t n = strcspn(text, "-");
	char left[24];

	*where = 0;
	if (n >= sizeof(left))
		return (false);
	memcpy(left, text, n);
	left[n] = '\0';
	if (!doc_parse_u64(left, first))
		return (false);
	*last = *first;
	if (text[n] == '\0')
		return (true);
	*where = n + 1;
	return (doc_parse_u64(text + n + 1, last) && *last >= *first);
}

/* A number of one to three digits. */
static bool
add_number(const char **text, unsigned *sum)
{
	size_t n = strspn(*text, "0123456789");
	unsigned v = 0;

	if (n < 1 || n > 3)
		return (false);
	for (; n > 0; n--)
		v = v * 10 + (unsigned)(*(*text)++ - '0');
	*sum += v;
	return (true);
}

bool
reckon_bits(const char *text, unsigned *sum)
{
	*sum = 0;
	if (!add_number(&text, sum) || *text++ != '/' ||
	    !add_number(&text, sum))
		return (false);
	if (*text == '+') {
		text++;
		if (!add_number(&text, sum))
			return (false);
	}
	return (*text++ == '/' && add_number(&text, sum) && *text == '\0');
}

bool
reckon_instant(const char *text, int64_t *unix_ms, size_t *where)
{
	static const char midnight[] = "T00:00:00Z";
	char whole[DATE_WIDTH + sizeof(midnight)];

	if (strlen(text) == DATE_WIDTH && text[4] == '-') {
		(void)snprintf(whole, sizeof(whole), "%s%s", text, midnight);
		return (rfc3339_parse(whole, unix_ms, where) == 0);
	}
	return (rfc3339_parse_or_ms(text, unix_ms, where) == 0);
}

bool
reckon_lacks_zone(const char *text)
{
	char whole[RFC3339_TEXT_MAX + 8];
	int64_t unix_ms;
	int n = snprintf(whole, sizeof(whole), "%sZ", text);

	if (n < 0 || (size_t)n >= sizeof(whole))
		return (false);
	for (char *p = strchr(whole, ' '); p != NULL; p = strchr(whole, ' '))
		*p = 'T'; /* as people write it */
	return (rfc3339_parse(whole, &unix_ms, NULL) == 0);
}

bool
reckon_is_seconds(
    const char *text, int64_t unix_ms, const struct firn_layout *l)
{
	return (text[strspn(text, "0123456789")] == '\0' &&
		unix_ms < l->epoch_ms && unix_ms > l->epoch_ms / 1000 &&
		unix_ms < layout_end_ms(l) / 1000);
}

int64_t
reckon_not_before(
    int64_t now_ms, int64_t reserve_max_ms, int64_t skew_refuse_ms)
{
	return (add_sat(add_sat(now_ms, reserve_max_ms), skew_refuse_ms));
}

bool
reckon_generation(struct contract *k, int64_t above, uint32_t tag)
{
	int64_t number = k->generation > above ? k->generation : above;

	if (number < 0 || number >= GENERATION_NUMBER_MAX)
		return (false);
	k->generation = number + 1;
	(void)snprintf(k->generation_text, sizeof(k->generation_text),
	    "%" PRId64 "-%08" PRIx32, k->generation, tag);
	return (true);
}

void
reckon_escape(const char *text, char *out, size_t n)
{
	size_t at = 0;

	if (n == 0)
		return;
	while (*text != '\0') {
		size_t len = doc_utf8_length(text, strlen(text));
		unsigned char c = (unsigned char)*text;
		/* C0, DEL, C1 (two bytes: C2 80 to C2 9F), and no UTF-8 */
		bool control =
		    len == 0 || c < 0x20 || c == 0x7f ||
		    (len == 2 && c == 0xc2 && (unsigned char)text[1] < 0xa0);
		size_t take = len == 0 ? 1 : len;

		if (n - at <= (control ? 4 * take : take))
			break;
		for (size_t i = 0; i < take; i++) {
			if (control)
				at += (size_t)snprintf(out + at, n - at,
				    "\\x%02x", (unsigned char)text[i]);
			else
				out[at++] = text[i];
		}
		text += take;
	}
	out[at] = '\0';
}
