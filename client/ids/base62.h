/* SPDX-License-Identifier: Apache-2.0 */
/* base62 - 0-9A-Za-z, 11 wide: text that sorts as the IDs do.  Pure. */
#ifndef BASE62_H
#define BASE62_H

#include "radix.h"

#define BASE62_WIDTH 11

extern const struct radix base62_radix;

#endif
