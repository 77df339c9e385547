#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# libfirn.so.0 exports exactly the functions of firn.h, each with a version
# node; the symbol map names the same.
: "${FIRN_SRCDIR:=$(dirname "$0")/..}" "${FIRN_BUILD:=.}" "${READELF:=readelf}"
so=$FIRN_BUILD/.libs/libfirn.so.0
[ -e "$so" ] || { echo "no shared libfirn in this build: skipped"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

# declarations: comments and preprocessor lines away, names before a "("
sed -e 's|/\*.*\*/||g' -e '/\/\*/,/\*\//d' -e '/^[ \t]*#/d' \
    "$FIRN_SRCDIR/include/firn.h" |
    grep -oE '\bfirn_[a-z0-9_]+\(' | tr -d '(' | sort -u >"$dir/header"
sed -n 's/^[ \t]*\(firn_[a-z0-9_]*\);$/\1/p' \
    "$FIRN_SRCDIR/client/libfirn.map" | sort -u >"$dir/map"
# Num: Value Size Type Bind Vis Ndx Name
$READELF --dyn-syms -W "$so" | awk '
    $5 != "LOCAL" && $7 != "UND" && $7 ~ /^[0-9]+$/ { print $8 }' |
    sort -u >"$dir/versioned"
sed 's/@.*//' "$dir/versioned" | sort -u >"$dir/library"

bad=0
[ "$(wc -l <"$dir/header")" -ge 14 ] || { echo "firn.h not read"; bad=1; }
grep -vE '@@?FIRN_[0-9]+\.[0-9]+$' "$dir/versioned" |
    sed 's/$/: exported without a version node/' | grep . && bad=1
for what in map library; do
	comm -23 "$dir/header" "$dir/$what" |
	    sed "s/\$/: in firn.h, not in the $what/" | grep . && bad=1
	comm -13 "$dir/header" "$dir/$what" |
	    sed "s/\$/: in the $what, not in firn.h/" | grep . && bad=1
done
seal=$FIRN_BUILD/.libs/libfirn-seal.so.0
if [ -e "$seal" ]; then
	sed -e 's|/\*.*\*/||g' -e '/\/\*/,/\*\//d' -e '/^[ \t]*#/d' \
	    "$FIRN_SRCDIR/include/firn-seal.h" |
	    grep -oE '\bfirn_[a-z0-9_]+\(' | tr -d '(' | sort -u >"$dir/seal.h"
	$READELF --dyn-syms -W "$seal" | awk '
	    $5 != "LOCAL" && $7 ~ /^[0-9]+$/ { print $8 }' |
	    sed -n 's/@@FIRN_SEAL_[0-9.]*$//p' | grep -v '^FIRN_SEAL' |
	    sort -u >"$dir/seal.so"
	cmp "$dir/seal.h" "$dir/seal.so" ||
	    { echo "libfirn-seal exports other than firn-seal.h"; bad=1; }
fi
[ $bad = 0 ] && echo "$(wc -l <"$dir/header") functions exported"
exit $bad
