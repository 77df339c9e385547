#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each source file says its licence in its first lines.
: "${FIRN_SRCDIR:=$(dirname "$0")/..}"
cd "$FIRN_SRCDIR" || exit 1
files=$(find agent client include tests contrib man m4 .ci configure.ac \
    Makefile.am -type f 2>/dev/null | grep -vE \
    '/__pycache__/|/\.|\.(o|lo|la|so|pyc|tsv|png|json|md|in|log|trs)$' |
    grep -vE '^m4/(lib|lt|pkg\.m4)')
bad=0 n=0
for f in $files; do
	case $f in
	*.[ch]|*.sh|*.py|*.am|*.ac|*.m4|*.pml|*.[1-8]|contrib/*) ;;
	.ci/*) ;;
	*) continue ;;
	esac
	n=$((n + 1))
	head -n 3 "$f" | grep -q 'SPDX-License-Identifier: Apache-2\.0' ||
	    { echo "$f: no SPDX line at its top"; bad=1; }
done
[ $n -gt 20 ] || { echo "only $n files found"; bad=1; }
[ $bad = 0 ] && echo "$n files"
exit $bad
