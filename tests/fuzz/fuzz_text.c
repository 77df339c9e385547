/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer: any bytes as the text of an ID and of a layout.  What is read
 * must be written back as it was (but for the case and zeros of hex), what is
 * refused must leave its output alone and point into the text.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "crockford.h"
#include "layout.h"
#include "text.h"

#define UNTOUCHED UINT64_C(0x5a5a5a5a5a5a5a5a)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As assert(), whatever NDEBUG says. */
static void
check(bool holds)
{
	if (!holds)
		__builtin_trap();
}

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

	if (layout_parse_bits(text, &l, &where) != 0) {
		check(where <= strlen(text));
		return;
	}
	check(layout_valid(&l));
	layout_format_bits(&l, bits);
	check(layout_parse_bits(bits, &again, NULL) == 0);
	check(memcmp(&l, &again, sizeof(l)) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Memory of exactly this size, so that a read past the NUL is seen. */
	char *text = malloc(size + 1);

	if (text == NULL)
		return (0);
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	for (int f = FIRN_DECIMAL; f <= FIRN_CROCKFORD; f++)
		check_form(text, (enum firn_format)f);
	check_lenient(text);
	check_bits(text);
	free(text);
	return (0);
}
