#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Breaks one rule at a time in copies of the sources and runs the simulator on
# each: every mutant must be caught, and the harmless ones must not be.
#
#   mutants.sh [SRCDIR [BUILDDIR]]        FIRN_TEST_SEED: the first seed
set -u
src=$(cd "${1:-$(dirname "$0")/../..}" && pwd) || exit 1
base=${2:-${TMPDIR:-/tmp}}
work=$(mktemp -d "$base/mutants.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
CC=${CC:-gcc}
seed=${FIRN_TEST_SEED:-$(date +%s)}
SEEDS=4
flags="-std=gnu11 -O1 -DNDEBUG -D_GNU_SOURCE -DFIRN_VERSION=\"0\" -w
    -I$src/include -I$src/client/ids"
core="records window claim claim-events claim-ghost claim-mark claim-next
    claim-node claim-realm claim-take claim-time claim-walk clock gate generator
    localmark serve"
fleet="keeper ledger sim world world-agent world-disaster world-file
    world-hear world-issue world-queue world-trouble"
passed=0 failed=0

# The parts that no mutant touches are built once.
compile() { # FROM OBJECT
	$CC $flags -I"$work/src" -c "$1" -o "$2" || {
		echo "mutants: cannot build $1" >&2
		exit 1
	}
}

mkdir "$work/src" "$work/obj" || exit 1
cp "$src"/agent/core/*.[ch] "$src"/tests/sim/*.[ch] "$work/src/" || exit 1
for f in "$src"/client/ids/*.c; do
	compile "$f" "$work/obj/ids-$(basename "$f" .c).o"
done
for f in $core $fleet; do
	compile "$work/src/$f.c" "$work/obj/$f.o"
done

# run PROGRAM SCENARIO STEPS: harmless, caught (an ID was repeated) or broken
# (anything else) in $got, figures in $figures
run() {
	local n out rc begun=$EPOCHREALTIME ended
	for ((n = 0; n < SEEDS; n++)); do
		out=$("$1" --seed $((seed + n)) --steps "$3" $2 2>&1)
		rc=$?
		[ $rc = 0 ] || break
	done
	ended=$EPOCHREALTIME
	figures="seed $((seed + (n < SEEDS ? n : n - 1))),$(
	    sed -n 's/^[a-z-]* *\([0-9]*\) steps.*/ \1 steps/p' <<<"$out" |
	    tail -n 1), $(awk "BEGIN { printf \"%.1f\", \
	    ($ended - $begun) }") s$(
	    sed -n 's/^ *\(repeats .*\)/, \1/p' <<<"$out" | head -n 1)"
	got=broken
	[ $rc = 0 ] && got=harmless
	grep -q '^ *repeats [1-9]' <<<"$out" && got=caught
}

# mutant caught|broken|harmless NAME FILE SED SCENARIO STEPS
mutant() {
	local want=$1 name=$2 file=$3 script=$4 got figures
	shift
	cp "$work/src/$file.c" "$work/whole.c"
	sed -E "$script" "$work/whole.c" >"$work/src/$file.c"
	if cmp -s "$work/whole.c" "$work/src/$file.c"; then
		echo "FAILED   $name: the pattern no longer matches $file.c"
		failed=$((failed + 1))
		return
	fi
	compile "$work/src/$file.c" "$work/$file.o"
	$CC -o "$work/mutant" "$work/$file.o" \
	    $(ls "$work"/obj/*.o | grep -v "/$file.o\$") || exit 1
	run "$work/mutant" "$4" "$5"
	cp "$work/whole.c" "$work/src/$file.c"
	if [ $got = $want ]; then
		passed=$((passed + 1))
		printf '%-8s %-34s %s\n' $got "$name" "$figures"
	else
		failed=$((failed + 1))
		printf 'FAILED   %-34s %s, not %s (%s)\n' "$name" $got $want \
		    "$figures"
	fi
}

echo "mutants: FIRN_TEST_SEED=$seed"

mutant caught "blind writes" keeper \
    's/!z->blind \&\& m->version != op->version/false/' \
    one-id 400000
mutant caught "no reply taken for success" window \
    's/^\tcase WROTE_UNKNOWN:$/&\n\t\tif (w->version >= 0)\n\t\t\treturn (confirm(w, (unsigned)i, w->version + 1, w->czxid));/' \
    rivals 20000000
mutant caught "a renewal may lower" window \
    's/max64\(w->highest, ceiling\), false/ceiling, false/' \
    rivals 20000000
mutant caught "adopts by owner name, not by tag" window \
    's/^\ti = find_doubt\(w, mark->tag\);/\ti = strcmp(mark->owner, w->owner) == 0 ? 0 : -1;/' \
    twins 4000000
mutant caught "definite BADVERSION: version adopted" window \
    's/^\t\t\treturn \(WINDOW_TWIN\);/\t\t\t{ w->version++; return (WINDOW_SAME); }/' \
    twins 4000000
mutant caught "missing mark made at not_before" claim-take \
    's/^\treturn \(r->stat.cversion != r->stat.num_children\);/\treturn (false);/' \
    marks-deleted 3000000
mutant caught "lowered without the floor" window \
    's/max64\(w->floor, max64\(last_tick, not_before\)\)/max64(last_tick, not_before)/' \
    rivals 20000000
mutant caught "the gate's floor ignored" claim \
    's/^\tgate->floor = w->floor;/\tgate->floor = NO_TICK;/' \
    one-id 400000
mutant caught "take-over without the ceiling" claim-take \
    's/past_floor\(c, r->mark->ceiling\)/limit - 2000/' \
    one-id 400000
mutant caught "the realm's watch is not heard" claim-events \
    's/^\tif \(c->stopping\) \/\* what was read before.*/\tif (true)/' \
    renewed 6000000
mutant caught "not_before ignored" claim-realm \
    's/^\tc->not_before = claim_tick\(c, c->k.not_before_ms\);/\tc->not_before = NO_TICK;/' \
    renewed 6000000
mutant caught "resumes below the local mark" claim \
    's/(window_begin\(&c->old, past->worker, past->local_mark), 0, 0/\1 - 20, 0, 0/' \
    restarts 20000000
mutant caught "issues above the local mark on file" gate \
    's/g->on_file/false/' \
    restarts 20000000
mutant caught "lowered before the record is closed" world-trouble \
    's/end_paper\(h, last_tick, !lowers\)/end_paper(h, last_tick, true)/' \
    restarts 20000000
mutant caught "record stays after a failed write" world-file \
    's/^\tif \(remove_paper\(h\)\) \{/\tif (true) {/' \
    restarts 20000000
mutant caught "resumes another home's record" world-file \
    's/past.same_home = f->home;/past.same_home = true;/' \
    restarts 20000000
mutant caught "another home's mark is its own past" claim-take \
    's/c->has_past \&\& c->past.same_home \&\&/c->has_past \&\&/' \
    restarts 20000000
mutant caught "the file's floor ignored" claim-take \
    's/^\t    c->past.ceiling > ceiling\)/\t    false)/' \
    floor 100000000
mutant caught "ZooKeeper's going back not seen" claim-events \
    's/r->stat.mzxid != 0 \&\& r->stat.mzxid < c->zxid/false/' \
    rolled-back 20000000
mutant caught "... nor by a write whose reply was lost" claim-mark \
    's/news == WINDOW_CONFIRMED \&\& r->stat.mzxid < c->sent_zxid/false/' \
    rolled-back 40000000
mutant broken "who is refused moves its mark" claim-next \
    's/c->still \? NO_TICK : //' \
    crowded 400000
mutant broken "who is refused walks" claim-take \
    's/^\t\tif \(c->still\).*/\t\tif (false) {/' \
    refused 400000
mutant harmless "claims not looked at" claim-node \
    's/= has_older\(c, r\);/= false;/' \
    crowded 400000
mutant harmless "no wait for marks ahead" claim-take \
    's/^\tif \(r->mark->ceiling > limit \&\&/\tif (false \&\&/' \
    crowded 400000

echo "$passed passed, $failed failed; ${SECONDS} s"
[ $failed = 0 ]
