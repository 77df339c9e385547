/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer: any bytes as the text of an ID and of a layout.  What is read
 * must be written back as it was (but for the case and zeros of hex), what is
 * refused must leave its output alone and point into the text.  Digits are read
 * a second time the long way, instants by the C library's calendar.
 */
#include <strings.h>
#include <time.h>

#include "crockford.h"
#include "doc.h"
#include "fuzz.h"
#include "layout.h"
#include "rfc3339.h"
#include "text.h"

#define UNTOUCHED UINT64_C(0x5a5a5a5a5a5a5a5a)

/* ---- a second reading ---- */

/* Digits of any base, read the long way; -1: no such number of 64 bits. */
static __int128
read_slowly(const char *text, const char *alphabet)
{
	unsigned base = (unsigned)strlen(alphabet);
	__int128 v = 0;

	if (text[0] == '\0')
		return (-1);
	for (; *text != '\0'; text++) {
		const char *digit = strchr(alphabet, *text);

		if (digit == NULL)
			return (-1);
		v = v * base + (digit - alphabet);
		if (v > UINT64_MAX)
			return (-1);
	}
	return (v);
}

static void
check_digits(const char *text)
{
	static const char decimal[] = "0123456789";
	static const char base62[] =
	    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	__int128 slow = read_slowly(text, decimal);
	bool minus = text[0] == '-';
	uint64_t id;
	int64_t i64;

	if (text[0] == '0' && text[1] != '\0')
		slow = -1;
	check(
	    (firn_parse_id(text, FIRN_DECIMAL, &id, NULL) == 0) == (slow >= 0));
	check(slow < 0 || id == (uint64_t)slow);
	check(doc_parse_u64(text, &id) == (slow >= 0));
	check(slow < 0 || id == (uint64_t)slow);

	slow = read_slowly(text + minus, decimal);
	if ((text[minus] == '0' && (text[minus + 1] != '\0' || minus)) ||
	    slow > (__int128)INT64_MAX + minus)
		slow = -1;
	check(doc_parse_i64(text, &i64) == (slow >= 0));
	check(slow < 0 || (minus ? -(__int128)i64 : i64) == slow);

	slow = read_slowly(text, base62);
	if (strlen(text) != 11)
		slow = -1;
	check(
	    (firn_parse_id(text, FIRN_BASE62, &id, NULL) == 0) == (slow >= 0));
	check(slow < 0 || id == (uint64_t)slow);
}

/* The C library's calendar; what is refused here may be lax there. */
static void
check_instant(const char *text)
{
	char again[RFC3339_TEXT_MAX], whole[20];
	struct tm tm = { 0 };
	int64_t ms = 0, back = 1;
	size_t where = SIZE_MAX;

	if (rfc3339_parse(text, &ms, &where) != 0) {
		check(where == SIZE_MAX || where <= strlen(text));
		return;
	}
	check(ms >= RFC3339_MS_MIN && ms <= RFC3339_MS_MAX);
	check(rfc3339_format(ms, again));
	check(rfc3339_parse(again, &back, NULL) == 0 && back == ms);
	memcpy(whole, again, 19);
	whole[19] = '\0';
	check(strptime(whole, "%Y-%m-%dT%H:%M:%S", &tm) == whole + 19);
	check(timegm(&tm) * INT64_C(1000) + strtol(again + 20, NULL, 10) == ms);
	if (strlen(text) >= 20 && strchr(text, 'Z') != NULL)
		check(strncmp(text, again, 19) == 0);
}

/* ---- what is read is written ---- */

/* Same text, or for hex the same but for case and leading zeros. */
static bool
same_text(const char *text, const char *canonical, enum firn_format format)
{
	size_t len = strlen(text), width = strlen(canonical);

	if (format != FIRN_HEX)
		return (strcmp(text, canonical) == 0);
	if (len > width || strcasecmp(text, canonical + width - len) != 0)
		return (false);
	return (strspn(canonical, "0") >= width - len);
}

static void
check_refusal(const char *text, int err, uint64_t id, size_t where)
{
	check(err == FIRN_EINVAL || err == FIRN_ERANGE);
	check(id == UNTOUCHED);
	check(where <= strlen(text));
	/* only a text of the right form can be too large */
	check(err == FIRN_EINVAL || text[where] != '\0');
}

static void
check_form(const char *text, enum firn_format format)
{
	uint64_t id = UNTOUCHED;
	size_t where = SIZE_MAX;
	char again[FIRN_TEXT_MAX];
	int err = firn_parse_id(text, format, &id, &where);

	if (err != 0) {
		check_refusal(text, err, id, where);
		return;
	}
	check(where == SIZE_MAX);
	check(firn_format_id(id, format, again, sizeof(again)) == 0);
	check(same_text(text, again, format));
}

static void
check_lenient(const char *text)
{
	uint64_t id = UNTOUCHED, again = UNTOUCHED;
	size_t where = SIZE_MAX;
	char strict[FIRN_TEXT_MAX];
	int err = crockford_parse_lenient(text, &id, &where);

	if (err != 0) {
		check_refusal(text, err, id, where);
		/* what the strict form takes, the lenient one takes too */
		check(firn_parse_id(text, FIRN_CROCKFORD, &again, NULL) != 0);
		return;
	}
	check(firn_format_id(id, FIRN_CROCKFORD, strict, sizeof(strict)) == 0);
	check(crockford_parse_lenient(strict, &again, NULL) == 0);
	check(again == id);
}

static void
check_bits(const char *text)
{
	struct firn_layout l, again;
	char bits[LAYOUT_TEXT_MAX];
	size_t where = SIZE_MAX;
	__int128 end_ms;

	if (layout_parse_bits(text, &l, &where) != 0) {
		check(where <= strlen(text));
		return;
	}
	/* the text is one thing, whether time reaches to its end another */
	end_ms = ((__int128)1 << l.time_bits) * l.tick_ms + l.epoch_ms;
	check(layout_valid(&l) == (end_ms <= INT64_MAX));
	layout_format_bits(&l, bits);
	check(layout_parse_bits(bits, &again, NULL) == 0);
	check(memcmp(&l, &again, sizeof(l)) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = text_of(data, size);

	for (int f = FIRN_DECIMAL; f <= FIRN_CROCKFORD; f++)
		check_form(text, (enum firn_format)f);
	check_lenient(text);
	check_bits(text);
	check_digits(text);
	check_instant(text);
	free(text);
	return (0);
}
