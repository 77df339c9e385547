/* SPDX-License-Identifier: Apache-2.0 */
/* text - the text forms of 64-bit IDs.  Pure. */
#ifndef TEXT_H
#define TEXT_H

#include "radix.h"

/* The digits of a form, or NULL for a number that is no enum firn_format. */
const struct radix *text_radix(enum firn_format format);

#endif
