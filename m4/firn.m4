# SPDX-License-Identifier: Apache-2.0
# Probes of firn's own configure script.

# FIRN_PROBE_CFLAGS(VARIABLE, FLAGS)
# Adds to VARIABLE each flag that the compiler and its linker take without a
# word.  -Werror makes clang's "unknown warning option" a failure.
AC_DEFUN([FIRN_PROBE_CFLAGS], [
AC_SUBST([$1])
firn_probe_list="$2"
for firn_flag in $firn_probe_list; do
	AC_MSG_CHECKING([whether $CC takes $firn_flag])
	firn_save_CFLAGS=$CFLAGS
	CFLAGS="$CFLAGS $[]$1 $firn_flag -Werror"
	AC_LINK_IFELSE([AC_LANG_PROGRAM()],
	    [firn_takes=yes], [firn_takes=no])
	CFLAGS=$firn_save_CFLAGS
	AC_MSG_RESULT([$firn_takes])
	AS_IF([test $firn_takes = yes],
	    [$1="$[]$1${$1:+ }$firn_flag"])
done
])

# FIRN_PROBE_LDFLAGS(VARIABLE, FLAGS)
AC_DEFUN([FIRN_PROBE_LDFLAGS], [
AC_SUBST([$1])
firn_probe_list="$2"
for firn_flag in $firn_probe_list; do
	AC_MSG_CHECKING([whether the linker takes $firn_flag])
	firn_save_LDFLAGS=$LDFLAGS
	LDFLAGS="$LDFLAGS $firn_flag"
	AC_LINK_IFELSE([AC_LANG_PROGRAM()],
	    [firn_takes=yes], [firn_takes=no])
	LDFLAGS=$firn_save_LDFLAGS
	AC_MSG_RESULT([$firn_takes])
	AS_IF([test $firn_takes = yes],
	    [$1="$[]$1${$1:+ }$firn_flag"])
done
])

# FIRN_PROBE_PIE
# Both halves or none: -fPIE to compile programs, -pie to link them.
AC_DEFUN([FIRN_PROBE_PIE], [
AC_SUBST([PIE_CFLAGS])
AC_SUBST([PIE_LDFLAGS])
AC_MSG_CHECKING([whether $CC makes position-independent programs])
firn_save_CFLAGS=$CFLAGS
firn_save_LDFLAGS=$LDFLAGS
CFLAGS="$CFLAGS -fPIE"
LDFLAGS="$LDFLAGS -pie"
AC_LINK_IFELSE([AC_LANG_PROGRAM()],
    [PIE_CFLAGS=-fPIE PIE_LDFLAGS=-pie firn_takes=yes], [firn_takes=no])
CFLAGS=$firn_save_CFLAGS
LDFLAGS=$firn_save_LDFLAGS
AC_MSG_RESULT([$firn_takes])
])

# FIRN_IF_OPTIMISING(IF-YES, IF-NO)
# _FORTIFY_SOURCE without optimisation is a warning of glibc's and no more.
AC_DEFUN([FIRN_IF_OPTIMISING], [
AC_MSG_CHECKING([whether CFLAGS optimise])
AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
#ifndef __OPTIMIZE__
#error not optimising
#endif
int firn_probe;
]])], [AC_MSG_RESULT([yes])
$1], [AC_MSG_RESULT([no])
$2])
])

# FIRN_MISSING(WHAT, DEBIAN-PACKAGE)
# Notes what is missing; configure ends with the whole list.
AC_DEFUN([FIRN_MISSING], [
AC_MSG_WARN([$1 is missing (Debian package $2)])
firn_missing="$firn_missing $1 (Debian package $2);"
firn_packages="$firn_packages $2"
])

# FIRN_CHECK_ZOOKEEPER
# The multi-threaded C client has no .pc file: header and link check.
AC_DEFUN([FIRN_CHECK_ZOOKEEPER], [
AC_ARG_VAR([ZOOKEEPER_CFLAGS], [C compiler flags for ZooKeeper's C client])
AC_ARG_VAR([ZOOKEEPER_LIBS], [linker flags for ZooKeeper's C client])
AS_IF([test -z "$ZOOKEEPER_LIBS"], [ZOOKEEPER_LIBS=-lzookeeper_mt])
AC_MSG_CHECKING([for ZooKeeper's C client ($ZOOKEEPER_LIBS)])
firn_save_CFLAGS=$CFLAGS
firn_save_LIBS=$LIBS
CFLAGS="$CFLAGS $ZOOKEEPER_CFLAGS"
LIBS="$ZOOKEEPER_LIBS $LIBS"
AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <zookeeper/zookeeper.h>]],
    [[return (zoo_acreate2(0, "/", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, 0, 0) +
	zoo_set_servers_resolution_delay(0, -1));]])],
    [firn_takes=yes], [firn_takes=no])
# Debian's is built without TLS: then the key zookeeper_tls is refused.
AC_CHECK_FUNCS([zookeeper_init_ssl])
CFLAGS=$firn_save_CFLAGS
LIBS=$firn_save_LIBS
AC_MSG_RESULT([$firn_takes])
AS_IF([test $firn_takes = no],
    [FIRN_MISSING([ZooKeeper's C client 3.7 (zookeeper/zookeeper.h and $ZOOKEEPER_LIBS)],
	[libzookeeper-mt-dev])])
])

# FIRN_FIND_PYTEST
# PYTHON: the first python3 that has pytest; a newer one of the user's may come
# first in PATH and lack it.
AC_DEFUN([FIRN_FIND_PYTEST], [
AC_ARG_VAR([PYTHON], [python3 that has pytest, for make check-e2e])
AC_MSG_CHECKING([for a python3 with pytest])
have_pytest="no (make check-e2e needs it: Debian package python3-pytest)"
AS_IF([test -z "$PYTHON"], [
	for firn_python in python3 /usr/bin/python3; do
		AS_IF([$firn_python -c 'import pytest' >/dev/null 2>&1],
		    [PYTHON=$firn_python; break])
	done
])
AC_MSG_RESULT([${PYTHON:-no}])
])
