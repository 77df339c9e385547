#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# C files are as .clang-format lays them out.  Headers are laid out by hand:
# their comments stand in columns.
: "${FIRN_SRCDIR:=$(dirname "$0")/..}"
cd "$FIRN_SRCDIR" || exit 1
if [ -z "${CLANG_FORMAT=clang-format}" ]; then
	echo "no clang-format (Debian package clang-format): skipped"
	exit 77
fi
files=$(find agent client include tests -name '*.c' | sort)
[ "$(echo "$files" | wc -l)" -gt 10 ] || { echo "sources not found"; exit 1; }
# shellcheck disable=SC2086
$CLANG_FORMAT --dry-run -Werror $files 2>&1 | grep -E 'error:' | sort -u |
    sed 's/ code should be.*/ run clang-format -i/' | grep . && exit 1
echo "$(echo "$files" | wc -l) files"
