#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The library's interface (functions, their types, the layout of structs) is
# the one in client/libfirn.abi.  A change that breaks programs fails; one that
# only adds fails too, until `lint-abi.sh --write` keeps it: look at the diff.
# The comparison is by meaning: another compiler or path makes no difference.
: "${FIRN_SRCDIR:=$(dirname "$0")/..}" "${FIRN_BUILD:=.}"
keep=$FIRN_SRCDIR/client/libfirn.abi
so=$FIRN_BUILD/.libs/libfirn.so.0
[ -e "$so" ] || { echo "no shared libfirn in this build: skipped"; exit 77; }
if [ -n "$FIRN_SANITIZE" ]; then
	echo "a sanitized libfirn has more symbols: skipped"
	exit 77
fi
if ! command -v abidw >/dev/null; then
	echo "no abidw (Debian package abigail-tools): skipped"
	exit 77
fi
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
if ! readelf -S "$so" | grep -q '\.debug_info'; then
	echo "libfirn has no debugging information (-g): skipped"
	exit 77
fi
abidw --headers-dir "$FIRN_SRCDIR/include" --drop-private-types \
    --no-corpus-path --no-comp-dir-path --no-show-locs --no-architecture \
    --type-id-style hash "$so" >"$dir/new.abi" || exit 1
if [ "${1-}" = --write ]; then
	sed 's/ *$//' "$dir/new.abi" >"$keep"
	exit
fi
abidiff "$keep" "$dir/new.abi" ||
    { echo "libfirn's interface is not that of client/libfirn.abi"; exit 1; }
echo "libfirn's interface is that of client/libfirn.abi"
