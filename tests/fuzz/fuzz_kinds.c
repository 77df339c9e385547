/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer: any bytes as the text of a UUID, ULID and KSUID.  What is read
 * must be written back as it was (a UUID but for case, prefix and braces), and
 * what is refused must leave its output alone and point into the text.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "firn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As assert(), whatever NDEBUG says. */
static void
check(bool holds)
{
	if (!holds)
		__builtin_trap();
}

struct form {
	int (*parse)(const char *text, unsigned char *out, size_t *where);
	int (*format)(const unsigned char *id, char *buf, size_t n);
	bool exact; /* one text an ID */
	bool can_overflow;
};

static void
check_form(const char *text, const struct form *f)
{
	unsigned char id[20], again[20];
	char written[FIRN_UUID_TEXT_MAX];
	size_t where = SIZE_MAX;
	int err;

	memset(id, 0x5a, sizeof(id));
	memcpy(again, id, sizeof(id));
	err = f->parse(text, id, &where);
	if (err != 0) {
		check(err == FIRN_EINVAL ||
		      (err == FIRN_ERANGE && f->can_overflow));
		check(memcmp(id, again, sizeof(id)) == 0);
		check(where <= strlen(text));
		return;
	}
	check(where == SIZE_MAX);
	check(f->format(id, written, sizeof(written)) == 0);
	if (f->exact)
		check(strcmp(text, written) == 0);
	check(f->parse(written, again, NULL) == 0);
	check(memcmp(id, again, sizeof(id)) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct form forms[] = {
		{ firn_uuid_parse, firn_uuid_format, false, false },
		{ firn_ulid_parse, firn_ulid_format, true, true },
		{ firn_ulid_parse_lenient, firn_ulid_format, false, true },
		{ firn_ksuid_parse, firn_ksuid_format, true, true },
	};
	/* Memory of exactly this size, so that a read past the NUL is seen. */
	char *text = malloc(size + 1);

	if (text == NULL)
		return (0);
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		check_form(text, &forms[i]);
	free(text);
	return (0);
}
