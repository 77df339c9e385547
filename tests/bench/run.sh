#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make bench: each program against an agent and a ZooKeeper of its own, in a
# temporary directory; nothing stays.  FIRN_BENCH_SOCKET names an agent that
# already runs.
set -u
: "${FIRN_SRCDIR:=.}" "${FIRN_BUILD:=.}"
root=$FIRN_SRCDIR
work=$(mktemp -d) || exit 1
. "$FIRN_SRCDIR/contrib/lib.sh"

clean() {
	[ -e "$work/firnd.pid" ] && proc_end "$work/firnd.pid" 10
	[ -e "$work/zk/pid" ] && proc_end "$work/zk/pid" 10
	rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

start() {
	local port
	mkdir -p "$work/zk"
	port=$(port_free) && zk_start "$work/zk" "$port" ||
	    die "ZooKeeper does not start: $(tail -n 3 "$work/zk/log")"
	export FIRN_ZK=127.0.0.1:$port FIRN_SOCKET=$work/firn.sock
	"$FIRN_BUILD/firn" realm create --first >/dev/null || die "no realm"
	"$FIRN_BUILD/firnd" --state-dir "$work" >"$work/firnd.log" 2>&1 \
	    </dev/null &
	proc_note "$work/firnd.pid" $!
	"$FIRN_BUILD/firn" wait --timeout 20000 ||
	    die "the agent does not serve: $(tail -n 3 "$work/firnd.log")"
}

unset FIRN_REALM FIRN_ZK
if [ -n "${FIRN_BENCH_SOCKET-}" ]; then
	export FIRN_SOCKET=$FIRN_BENCH_SOCKET
else
	start
fi
for bench; do
	"$FIRN_BUILD/$bench" || die "$bench failed"
done
