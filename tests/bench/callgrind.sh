#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Instructions per cached firn_next() and per request in the agent, counted by
# valgrind: figures that do not depend on the machine's mood.  Compared with
# instructions.txt, within 5 %, where that names this compiler and these flags;
# else only printed.  --write keeps the new figures.
set -u
: "${FIRN_SRCDIR:=.}" "${FIRN_BUILD:=.}" "${FIRN_CC:=gcc}"
keep=$FIRN_SRCDIR/tests/bench/instructions.txt
cached=1000000 requests=20000
command -v valgrind >/dev/null || { echo "valgrind not installed"; exit 77; }
work=$(mktemp -d) || exit 1
agent=
trap '[ -n "$agent" ] && kill "$agent" 2>/dev/null; wait; rm -rf "$work"' EXIT
unset FIRN_REALM FIRN_ZK
export FIRN_SOCKET=$work/firn.sock

die() {
	echo "callgrind.sh: $*" >&2
	exit 1
}

# count_in FUNCTION COMMAND...: the process becomes it
# serve LAYOUT COMMAND...: the agent, without ZooKeeper, through a command
serve() {
	local layout=$1
	shift
	rm -rf "$work/state"
	mkdir "$work/state"
	"$@" "$FIRN_BUILD/firnd" --static-worker 0 --first-use \
	    --layout "$layout" --epoch 2025-01-01T00:00:00Z \
	    --state-dir "$work/state" >"$work/log" 2>&1 </dev/null &
	agent=$!
	"$FIRN_BUILD/firn" wait --timeout 60000 || die "$(tail -n 3 "$work/log")"
}

end() {
	kill "$agent"
	wait "$agent"
	agent=
}

count_in() {
	exec valgrind --tool=callgrind --callgrind-out-file="$work/out" \
	    --collect-atstart=no --toggle-collect="$1" "${@:2}"
}

collected() {
	awk '/ Collected : / { n = $NF } END { print n + 0 }' "$1"
}

serve 41/2/20 env
(count_in firn_next "$FIRN_BUILD/bench_stub" count $cached 0 2>"$work/next") ||
    die "$(tail -n 3 "$work/next")"
end
# conn.c: from the bytes of a request to those of its reply
serve 41/10/12 count_in on_readable
"$FIRN_BUILD/bench_stub" count $requests 1 || die "no requests"
end

awk -v stub="$(collected "$work/next")" -v conn="$(collected "$work/log")" \
    -v n=$cached -v m=$requests -v cc="$($FIRN_CC -dumpfullversion -dumpversion \
    2>/dev/null) $FIRN_CC" 'BEGIN {
	print "compiler " cc
	printf "next %.1f\nrequest %.1f\n", stub / n, conn / m
}' >"$work/new"
if [ "${1-}" = --write ]; then
	cp "$work/new" "$keep"
fi
cat "$work/new"
awk '{ if ($2 + 0 < 1 && $1 != "compiler") bad = 1 } END { exit bad }' \
    "$work/new" || die "nothing was counted"
[ "$(sed -n 1p "$keep" 2>/dev/null)" = "$(sed -n 1p "$work/new")" ] ||
    { echo "kept figures are another compiler's: not compared"; exit 0; }
awk 'NR == FNR { was[$1] = $2; next }
    $1 != "compiler" && ($2 > was[$1] * 1.05 || $2 < was[$1] * 0.95) {
	printf "%s: %s instructions, %s were kept\n", $1, $2, was[$1]
	bad = 1
    } END { exit bad }' "$keep" "$work/new"
