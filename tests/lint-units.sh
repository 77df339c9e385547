#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The units as they would be installed: systemd understands every line, what
# they leave open is little, and what hides things that the agent needs stays
# away.
: "${FIRN_SRCDIR:=$(dirname "$0")/..}" "${FIRN_BUILD:=.}"
command -v systemd-analyze >/dev/null || {
	echo "systemd-analyze is missing (Debian package systemd)"
	exit 77
}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
bad=0

say() {
	echo "$*"
	bad=1
}

for u in firnd firnd@; do
	# as an instance, with a program that is there
	name=${u%@}; [ $u = firnd ] || name=firnd@some
	sed "s|^\(ExecStart=\)[^ ]*|\1$dir/firnd|" \
	    "$FIRN_BUILD/contrib/systemd/$u.service" >"$dir/$name.service" &&
	    cp "$FIRN_SRCDIR/contrib/systemd/$u.socket" "$dir/$name.socket" ||
	    exit 1
	grep -n '@[a-z]*@' "$dir/$name.service" && say "$u: not substituted"
done
printf '#!/bin/sh\n' >"$dir/firnd"
chmod 755 "$dir/firnd"

for u in firnd.service firnd.socket firnd@some.service firnd@some.socket; do
	# a word is a fault: systemd passes over what it does not know
	SYSTEMD_UNIT_PATH=$dir: systemd-analyze verify --man=no "$dir/$u" \
	    >"$dir/out" 2>&1 || say "$u: verify fails"
	[ ! -s "$dir/out" ] || { sed 's/^/  /' "$dir/out"; say "$u: see above"; }
done
for u in firnd firnd@some; do
	systemd-analyze security --offline=yes --threshold=20 --no-pager \
	    "$dir/$u.service" >"$dir/out" 2>&1 || {
		grep -v '✓' "$dir/out"
		say "$u: leaves too much open"
	}
	tail -n 1 "$dir/out"
	for k in RuntimeDirectory ProtectClock ProcSubset PrivateUsers; do
		grep -q "^$k=" "$dir/$u.service" && say "$u: sets $k"
	done
	for k in Type=notify User=firn Restart=on-failure \
	    'RestartPreventExitStatus=64 78' WatchdogSec= LimitNOFILE= \
	    NoNewPrivileges=yes CapabilityBoundingSet=; do
		grep -q "^$k" "$dir/$u.service" || say "$u: no line $k"
	done
done
# the instance is the same agent
sed -n '/^# ---- what it may do/,/^\[/p' "$dir/firnd.service" >"$dir/a"
sed -n '/^# ---- what it may do/,/^\[/p' "$dir/firnd@some.service" >"$dir/b"
[ -s "$dir/a" ] && cmp "$dir/a" "$dir/b" || say "the two may do other things"
grep -q '^Requires=firnd@%i.socket' "$dir/firnd@some.service" &&
    grep -q '^ListenStream=/run/firn/%i.sock' "$dir/firnd@some.socket" ||
    say "an instance has another's socket"
exit $bad
