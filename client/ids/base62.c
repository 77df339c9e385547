/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base62 - 0-9A-Za-z, 11 wide.
 *
 * Invariant: the digits ascend in ASCII and the width is fixed, so that texts
 * sort as their numbers do.
 */
#include "base62.h"

const struct radix base62_radix = {
	.digits = "0123456789"
		  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
		  "abcdefghijklmnopqrstuvwxyz",
	.max = "LygHa16AHYF",
	.base = 62,
	.width = BASE62_WIDTH,
	.min_width = BASE62_WIDTH,
};
