#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A page that says which test shows something names tests that there are, as
# `FILE: FUNCTION`.  Usage: lint-named-tests.sh [PAGE...]
: "${FIRN_SRCDIR:=$(dirname "$0")/..}"
cd "$FIRN_SRCDIR" || exit 1
[ $# -gt 0 ] || set -- contrib/SECURITY.md
bad=0 n=0
for page in "$@"; do
	[ -f "$page" ] || { echo "$page is missing"; exit 1; }
	# a name may stand in two lines
	names=$(tr '\n' ' ' <"$page" |
	    grep -oE '`tests/[a-z0-9_/.-]+: +[A-Za-z0-9_]+`' |
	    tr -d '` ')
	for name in $names; do
		file=${name%%:*} function=${name#*:}
		n=$((n + 1))
		grep -qsE "^(def )?$function\(" "$file" ||
		    { echo "$page: $file has no $function"; bad=1; }
	done
done
[ $n -gt 5 ] || { echo "few tests are named: $n"; bad=1; }
[ $bad = 0 ] && echo "$n named tests, all there"
exit $bad
