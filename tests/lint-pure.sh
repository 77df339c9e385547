#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The core and the ID code are pure: what their archives leave undefined is
# mem*, str*, assert's, what hardening and sanitizers add, and each other.
# No clock, no allocation, no I/O can hide from the linker.
: "${FIRN_BUILD:=.}" "${NM:=nm}"
bad=0
defined=$(mktemp) || exit 1
trap 'rm -f "$defined"' EXIT

for a in libcore libids; do
	[ -f "$FIRN_BUILD/.libs/$a.a" ] ||
	    { echo "$FIRN_BUILD/.libs/$a.a: no such archive"; exit 1; }
	$NM -g --defined-only "$FIRN_BUILD/.libs/$a.a" |
	    awk 'NF == 3 { print $3 }'
done | sort -u >"$defined"
n=$(grep -vc '^__' "$defined")
[ "$n" -gt 10 ] || { echo "only $n symbols defined: wrong archives?"; exit 1; }

for a in libcore libids; do
	for s in $($NM -u "$FIRN_BUILD/.libs/$a.a" |
	    awk '$1 == "U" || $1 == "w" { print $2 }' | sort -u); do
		grep -qx "$s" "$defined" && continue
		case $s in
		memchr|memcmp|memcpy|memmove|memset) ;;
		bcmp) ;; # clang's memcmp, where only equality counts
		strchr|strcmp|strcspn|strlen|strncmp|strnlen|strrchr) ;;
		strspn|strstr) ;;
		__assert_fail) ;;
		# hardening
		__stack_chk_fail|_GLOBAL_OFFSET_TABLE_) ;;
		__memcpy_chk|__memmove_chk|__memset_chk) ;;
		# sanitizers
		__asan_*|__ubsan_*|__tsan_*|__sanitizer_*) ;;
		*)	who=$($NM -uA "$FIRN_BUILD/.libs/$a.a" |
			    awk -v s="$s" '$NF == s { print $1 }' |
			    sed 's/.*a:\(.*\):$/\1/' | tr '\n' ' ')
			echo "$a: $s is not pure (wanted by ${who% })"
			bad=1 ;;
		esac
	done
done
[ $bad = 0 ] && echo "libcore, libids: pure, $n symbols"
exit $bad
