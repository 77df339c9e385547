/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doc - what the documents of docs/ share: strict reading of JSON from
 * strangers (size and depth bounded, doubled keys refused, position of a
 * fault), numbers that doubles would spoil, and the one line of an error.
 * Only docs/ sees cJSON: this header does not.
 */
#ifndef DOC_H
#define DOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOC_ERROR_MAX 240

struct doc_error {
	char text[DOC_ERROR_MAX]; /* "line 3, column 7: ..." or "layout.bits: ..." */
};

#endif
