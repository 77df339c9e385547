#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Explores each model to its end, then each rule that is broken on purpose: a
# model must come out without an error, a mutant with the error that is
# expected of it.  Two run at a time.
#
#   run.sh [SRCDIR [BUILDDIR]]
set -u
src=$(cd "${1:-$(dirname "$0")/../..}" && pwd) || exit 1
base=${2:-${TMPDIR:-/tmp}}
mkdir -p "$base" && work=$(mktemp -d "$base/model.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
CC=${CC:-gcc}
LIMIT_S=${MODEL_LIMIT_S:-600} # of one run; a loaded machine is slow
MEMORY_MB=1800 # of one run
twice='assertion violated ((\?issued\|assertion violated (((\?issued'
cycle='acceptance cycle'

command -v spin >/dev/null || { echo "run.sh: needs spin"; exit 1; }

# NAME|what is expected|model|its sizes, and the rule that is broken
RUNS="
two processes, two writes in doubt|safe|mark|-DAGENTS=2 -DTICKS=3 -DSLOTS=2
three processes|safe|mark|-DAGENTS=3 -DTICKS=1 -DSLOTS=1
a process copied with its memory|safe|mark|-DAGENTS=2 -DTICKS=4 -DSLOTS=1 -DTWINS
a mark deleted|safe|mark|-DAGENTS=2 -DTICKS=3 -DSLOTS=1 -DDELETED
a host with a state file, and a rival|safe|state|-DTICKS=2
two claimants, four IDs|safe|claim|-DCLAIMANTS=2 -DLOSSES=2
three claimants, five IDs|safe|claim|-DCLAIMANTS=3 -DLOSSES=1
blind write|twice|mark|-DAGENTS=2 -DTICKS=2 -DSLOTS=1 -DBLIND_WRITE
issues after lowering|twice|mark|-DAGENTS=2 -DTICKS=2 -DSLOTS=1 -DISSUES_AFTER_LOWERING
stop writes zero|twice|mark|-DAGENTS=2 -DTICKS=2 -DSLOTS=1 -DSTOP_WRITES_ZERO
lost reply is success|twice|mark|-DAGENTS=2 -DTICKS=2 -DSLOTS=1 -DLOST_IS_SUCCESS
adopts by name|twice|mark|-DAGENTS=2 -DTICKS=3 -DSLOTS=1 -DTWINS -DADOPTS_BY_NAME
missing mark starts at now|twice|mark|-DAGENTS=2 -DTICKS=2 -DSLOTS=1 -DDELETED -DMISSING_STARTS_AT_NOW
lowers before closing|twice|state|-DTICKS=2 -DLOWERS_BEFORE_CLOSING
switches late|twice|state|-DTICKS=2 -DSWITCHES_LATE
resumes below|twice|state|-DTICKS=2 -DRESUMES_BELOW
local mark lags|twice|state|-DTICKS=2 -DLOCAL_MARK_LAGS
lock on renamed file|twice|state|-DTICKS=2 -DLOCK_ON_RENAMED_FILE
names another window|twice|state|-DTICKS=2 -DNAMES_ANOTHER_WINDOW
serves under a name again|twice|state|-DTICKS=2 -DSERVES_UNDER_A_NAME_AGAIN
both withdraw|cycle|claim|-DCLAIMANTS=2 -DLOSSES=0 -DBOTH_WITHDRAW
"

# make_pan MODEL FLAGS: C in the present directory, then ./pan
make_pan() {
	local options="-DSAFETY -DNOCLAIM"
	[ "$1" = claim ] && options="-DNFAIR=3"
	spin -a $2 "$1.pml" && $CC -O1 -w $options -DMEMLIM=$MEMORY_MB \
	    -o pan pan.c
}

# figure PATTERN: a number in what pan has said
figure() {
	sed -n "s/.*$1.*/\\1/p" pan.out | head -n 1
}

# judge WANT: ok, or what is wrong
judge() {
	grep -q 'errors: [0-9]' pan.out || { echo "came to no end"; return; }
	if [ "$1" != safe ]; then
		grep -q "${!1}" pan.out && echo ok || echo "not caught"
	elif ! grep -q 'errors: 0$' pan.out; then
		sed -n '/^pan:1:/{p;q;}' pan.out
	elif grep -q 'too small\|not completed\|MEMLIM\|out of memory' pan.out
	then
		echo "not explored to its end"
	else
		echo ok
	fi
}

# explore NUMBER NAME WANT MODEL FLAGS: one line into NUMBER.line
explore() {
	local n=$1 dir=$work/$1 verdict search="-E"
	[ "$4" = claim ] && search="-a -f"
	mkdir "$dir" && cp "$src"/tests/model/*.pml "$dir" && cd "$dir" ||
	    return
	if make_pan "$4" "$5" >spin.out 2>&1; then
		timeout "$LIMIT_S" ./pan $search -m1000000 -w23 -n \
		    >pan.out 2>&1
		verdict=$(judge "$3")
	else
		verdict="cannot be built: $(tail -n 1 spin.out)"
		: >pan.out
	fi
	if [ "$verdict" = ok ]; then
		[ "$3" = safe ] && verdict=explored || verdict=caught
	else
		verdict="FAILED: $verdict"
	fi
	printf '%-40s %10s states, depth %7s, %6s s  %s\n' "$2" \
	    "$(figure ' \([0-9]*\) states, stored')" \
	    "$(figure 'depth reached \([0-9]*\)')" \
	    "$(figure 'elapsed time \([0-9.e+-]*\)')" "$verdict" \
	    >"$work/$n.line"
	cd "$work" && rm -rf "$dir"
}

count=0
while IFS='|' read -r name want model flags; do
	[ -n "$name" ] || continue
	count=$((count + 1))
	[ $count -le 2 ] || wait -n
	explore "$count" "$name" "$want" "$model" "$flags" &
done <<<"$RUNS"
wait

passed=0 failed=0
for ((n = 1; n <= count; n++)); do
	cat "$work/$n.line" || echo "run $n: FAILED: no result"
	grep -q ' \(explored\|caught\)$' "$work/$n.line" &&
	    passed=$((passed + 1)) || failed=$((failed + 1))
done
echo "$SECONDS s"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
