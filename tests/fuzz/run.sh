#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh DIR SECONDS TARGET...: fuzzes, two targets at a time, from a copy of
# the seeds in DIR/corpus.  Prints the runs of each and how many a second; what
# one found stays in fuzz-TARGET/ beside its log.  The same FIRN_TEST_SEED draws
# the same inputs; without one each run draws others.
dir=$1 seconds=$2
shift 2
one='
	work=fuzz-$3
	rm -rf "$work"
	mkdir -p "$work/corpus"
	seeds=$1/corpus/${3#fuzz_}
	[ ! -d "$seeds" ] || cp "$seeds"/* "$work/corpus/"
	ASAN_OPTIONS=detect_leaks=1 "./$3" -max_total_time="$2" -timeout=60 \
	    -seed="$(( ${FIRN_TEST_SEED:-0} % 4294967295 ))" \
	    -artifact_prefix="$work/" -print_final_stats=1 -max_len=8192 \
	    "$work/corpus" >"$work/log" 2>&1
	rc=$?
	runs=$(sed -n "s/^stat::number_of_executed_units: *//p" "$work/log")
	rate=$(sed -n "s/^stat::average_exec_per_sec: *//p" "$work/log")
	echo "$3: ${runs:-no} runs, ${rate:-0} a second"
	[ $rc = 0 ] || { tail -n 40 "$work/log" | cut -c 1-300; exit 1; }'
printf '%s\n' "$@" | xargs -P 2 -n 1 sh -c "$one" sh "$dir" "$seconds"
