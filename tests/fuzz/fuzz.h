/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz - what the targets share. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As assert(), whatever NDEBUG says. */
static inline void
check(bool holds)
{
	if (!holds)
		__builtin_trap();
}

/*
 * The bytes and a NUL in memory of exactly this size, so that a read past the
 * end is seen; to be freed.
 */
static inline char *
text_of(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (text == NULL)
		abort();
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	return (text);
}

#endif
