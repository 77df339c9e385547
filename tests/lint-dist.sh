#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Nothing is left out of the build or the tarball: each file of the tree's own
# is named in the makefile, and what the makefile names is there.
: "${FIRN_SRCDIR:=$(dirname "$0")/..}"
cd "$FIRN_SRCDIR" || exit 1
words=$(mktemp) || exit 1
trap 'rm -f "$words"' EXIT
sed 's/#.*//; s/[=\\]/ /g; s|\$(srcdir)/||g' Makefile.am tests/tests.am |
    tr -s ' \t' '\n\n' | grep / | sort -u >"$words"
bad=0 n=0
for f in $(find agent client include tests contrib man .ci -type f \
    2>/dev/null | grep -vE '/__pycache__/|/\.(deps|libs|dirstamp)|firn(-seal)?\.pc(\.in)?$' |
    grep -vE '\.(o|lo|la|so|pyc|log|trs)$' | sort); do
	n=$((n + 1))
	p=$f
	while :; do
		grep -qxF "$p" "$words" && break
		case $p in
		*/*) p=${p%/*} ;;
		*) echo "$f: named in no makefile"; bad=1; break ;;
		esac
	done
done
grep -E '^(agent|client|include|tests|contrib|man)/.*\.[a-z0-9]+$' "$words" |
    while read -r f; do
	[ -e "$f" ] || [ "$f" = client/firn.pc ] ||
	    [ "$f" = client/firn-seal.pc ] ||
	    [ "${f%.service}" != "$f" ] || echo "$f: there is no such file"
    done | grep . && bad=1
[ $n -gt 30 ] || { echo "only $n files found"; bad=1; }
[ $bad = 0 ] && echo "$n files, all in the makefile"
exit $bad
