#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# firn.h and firn-seal.h are read by C99 and by C++11, by each compiler that is there, without
# a warning; and it needs no header before it.
: "${FIRN_SRCDIR:=$(dirname "$0")/..}"
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
strict="-Wall -Wextra -Wconversion -Wshadow -pedantic -Werror -fsyntax-only"
cat >"$dir/use.c" <<'END'
#include <firn-seal.h>
#include <firn.h>
#include <firn.h>

int use(void);

int
use(void)
{
	struct firn_options o = { sizeof(o), 0, NULL, NULL, 0, 0 };
	struct firn_layout l;
	struct firn_parts p;
	struct firn *f = NULL;
	uint64_t id = 0;
	char text[FIRN_TEXT_MAX];
	struct firn_seal *s = NULL;

	firn_seal_close(s);
	if (firn_open(&f, &o) != FIRN_OK || firn_next(f, &id) != FIRN_OK)
		return 1;
	firn_close(f);
	return firn_layout_preset("firn", &l) + firn_decode(&l, id, &p) +
	    firn_format_id(id, FIRN_HEX, text, sizeof(text));
}
END
cp "$dir/use.c" "$dir/use.cc"
bad=0 n=0
try() {
	command -v "$1" >/dev/null || return
	n=$((n + 1))
	"$@" -I"$FIRN_SRCDIR/include" || { echo "not read by: $*"; bad=1; }
}
# shellcheck disable=SC2086
for cc in gcc clang; do
	try $cc -std=c99 $strict "$dir/use.c"
done
# shellcheck disable=SC2086
for cxx in g++ clang++ clang++-14; do
	try $cxx -std=c++11 $strict "$dir/use.cc" && cxx_there=1
done
[ $n -gt 0 ] || { echo "no compiler found"; bad=1; }
[ -n "${cxx_there-}" ] || echo "no C++ compiler: only C was tried"
[ $bad = 0 ] && echo "firn.h: $n compilers read it"
exit $bad
