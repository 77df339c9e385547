#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each test that tests/ATTACKS.md names is there, and so is each function that
# tests/model/README.md says a step is carried by.
: "${FIRN_SRCDIR:=$(dirname "$0")/..}"
cd "$FIRN_SRCDIR" || exit 1
list=$(mktemp) || exit 1
trap 'rm -f "$list"' EXIT
bad=0

# has_test FILE NAME
has_test() {
	case $1 in
	sim.c) grep -q "{ \"$2\"," tests/sim/sim.c ;;
	mutants.sh) grep -qF "\"$2\"" tests/sim/mutants.sh ;;
	run.sh) grep -q "^$2|" tests/model/run.sh ;;
	*.py) grep -q "^def $2(" "tests/e2e/$1" ;;
	*.c) grep -q "^$2(" "tests/unit/$1" ;;
	*) return 1 ;;
	esac
}

sed -n 's/^|[^|]*| *\([a-z_]*\.[a-z]*\)::\([^|]*[^| ]\) *|.*/\1|\2/p' \
    tests/ATTACKS.md >"$list"
rows=$(grep -c '^|.*::' tests/ATTACKS.md)
tests=$(wc -l <"$list")
[ "$rows" = "$tests" ] || { echo "ATTACKS.md: $rows rows, $tests read"; bad=1; }
[ "$tests" -gt 60 ] || { echo "ATTACKS.md: only $tests tests"; bad=1; }
while IFS='|' read -r file name; do
	has_test "$file" "$name" 2>/dev/null ||
	    { echo "ATTACKS.md: no test $file::$name"; bad=1; }
done <"$list"

grep -oE '`agent/[a-z_/-]+\.c: [a-z_]+`' tests/model/README.md | tr -d '`:' \
    >"$list"
functions=$(wc -l <"$list")
[ "$functions" -gt 30 ] || { echo "model: only $functions functions"; bad=1; }
while read -r file name; do
	grep -q "^$name(" "$file" 2>/dev/null ||
	    { echo "model/README.md: no $name() in $file"; bad=1; }
done <"$list"
for t in $(grep -oE '`test_[a-z_]+`' tests/model/README.md | tr -d '`'); do
	grep -q "^$t(" tests/unit/*.c ||
	    { echo "model/README.md: no test $t"; bad=1; }
done
[ $bad = 0 ] && echo "$tests tests, $functions functions"
exit $bad
