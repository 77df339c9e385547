#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# libfirn needs libc and nothing else, and keeps what firn.h promises of it:
# no threads of its own, no signals, no stdio streams, no exit.
: "${FIRN_BUILD:=.}" "${READELF:=readelf}"
so=$FIRN_BUILD/.libs/libfirn.so.0
[ -e "$so" ] || { echo "no shared libfirn in this build: skipped"; exit 77; }
if [ -n "$FIRN_SANITIZE" ]; then
	echo "a sanitized libfirn needs the sanitizer's runtime: skipped"
	exit 77
fi
bad=0
for lib in $($READELF -dW "$so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
	case $lib in
	libc.so.6|ld-linux*) ;;
	*) echo "libfirn needs $lib"; bad=1 ;;
	esac
done
$READELF -dW "$so" | grep -q 'SONAME.*\[libfirn\.so\.0\]' ||
    { echo "its soname is not libfirn.so.0"; bad=1; }
undefined=$($READELF --dyn-syms -W "$so" |
    awk '$7 == "UND" && $8 != "" { sub("@.*", "", $8); print $8 }' | sort -u)
[ "$(echo "$undefined" | wc -l)" -gt 5 ] || { echo "nothing needed?"; bad=1; }
for s in $undefined; do
	case $s in
	abort|exit|_exit|_Exit|__assert_fail|\
	fopen|fdopen|fputs|fputc|puts|printf|fprintf|vfprintf|__*printf_chk|\
	perror|std*|syslog|signal|sigaction|raise|kill|alarm|setitimer|\
	pthread_create|thrd_create|fork|system|popen|setlocale|environ)
		case $s in
		__snprintf_chk|__vsnprintf_chk) continue ;;
		esac
		echo "libfirn calls $s"; bad=1 ;;
	esac
done
seal=$FIRN_BUILD/.libs/libfirn-seal.so.0
if [ -e "$seal" ]; then
	for lib in $($READELF -dW "$seal" |
	    sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
		case $lib in
		libc.so.6|libcrypto.so.*|ld-linux*) ;;
		*) echo "libfirn-seal needs $lib"; bad=1 ;;
		esac
	done
fi
[ $bad = 0 ] && echo "libfirn: libc alone, $(echo "$undefined" | wc -l) calls"
exit $bad
