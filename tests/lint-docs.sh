#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The manuals and the programs say the same: each option, each environment
# variable, each metric, each alert and each configuration key (with its
# default) is in the manual, and the manuals name none that is not there; each
# function of firn.h is in firn(3); each alert has its heading and each reason its
# name in the runbook.
: "${FIRN_SRCDIR:=$(dirname "$0")/..}" "${FIRN_BUILD:=.}"
man=$FIRN_SRCDIR/man
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
unset FIRN_SOCKET FIRN_ZK FIRN_REALM FIRN_CONFIG
bad=0

# mdoc's "Fl -zk" and "\-\-zk" as --zk, without what is a comment
plain() {
	sed -e '/^\.\\"/d' -e 's/\\-/-/g' -e 's/Fl Fl /--/g' -e 's/Fl -/--/g' \
	    -e 's/\\&//g' "$1"
}

long_options() {
	grep -oE '(^|[^A-Za-z0-9-])--[a-z][a-z0-9-]*' | sed 's/.*--/--/' |
	    sort -u
}

# same WHAT FILE-IN-PROGRAM FILE-IN-MANUAL MANUAL
same() {
	comm -23 "$2" "$3" | sed "s|\$|: $1 not in $4|" | grep . && bad=1
	comm -13 "$2" "$3" | sed "s|\$|: $1 in $4, not in the program|" |
	    grep . && bad=1
	[ -s "$2" ] || { echo "no $1 found for $4"; bad=1; }
}

for p in firnd.8 firnd.json.5 firn.1 firn.3; do
	[ -f "$man/$p" ] || { echo "man/$p is missing"; exit 1; }
done

# ---- firnd -------------------------------------------------------------------

"$FIRN_BUILD/firnd" --help >"$dir/help" 2>&1 ||
    { echo "firnd --help: exit status $?"; bad=1; }
long_options <"$dir/help" >"$dir/program"
plain "$man/firnd.8" | long_options >"$dir/manual"
same option "$dir/program" "$dir/manual" firnd.8
grep -oE 'FIRN_[A-Z_]+' "$dir/help" | sort -u >"$dir/program"
plain "$man/firnd.8" | grep -oE 'FIRN_[A-Z_]+' | sort -u >"$dir/manual"
same variable "$dir/program" "$dir/manual" firnd.8

# ---- its metrics ---------------------------------------------------------------

grep -oE '"(firn|process)_[a-z_]+"' "$FIRN_SRCDIR"/agent/metrics*.c | cut -d: -f2- | tr -d '"' |
    sort -u >"$dir/program"
# ".It Ic one , two" or ".It Ic one Brq label"
plain "$man/firnd.8" | sed -n 's/^\.It Ic \(firn_\|process_\)/\1/p' |
    sed 's/ Brq .*//' | tr -s ' ,' '\n' | sort -u >"$dir/manual"
same metric "$dir/program" "$dir/manual" firnd.8
sed -n 's/^		return ("\([a-z_]*_[a-z_]*\)");$/\1/p' \
    "$FIRN_SRCDIR/agent/core/alarms.c" | sort -u >"$dir/program"
plain "$man/firnd.8" | sed -n '/^\.Ss Alerts/,/^\.Ss Service/s/^\.It Cm \([a-z_]*\) .*/\1/p' |
    sort -u >"$dir/manual"
same alert "$dir/program" "$dir/manual" firnd.8

# ---- its keys: "name value (source; SIGHUP|restart)" ---------------------------

echo '{}' >"$dir/empty.json"
"$FIRN_BUILD/firnd" --config "$dir/empty.json" --check-config >"$dir/keys" ||
    { echo "firnd --check-config: exit status $?"; bad=1; }
awk '/^[a-z_]+ / { print $1 }' "$dir/keys" | sort -u >"$dir/program"
plain "$man/firnd.json.5" |
    sed -n 's/^\.It [A-Z][a-z] \([a-z_]*\).*/\1/p' | sort -u >"$dir/manual"
same key "$dir/program" "$dir/manual" firnd.json.5
# "new" in the table is what the program does with a change
awk '/^[a-z_]+ / { print $1, /; restart\)$/ ? "yes" : "no" }' "$dir/keys" |
    sort -u >"$dir/program"
plain "$man/firnd.json.5" | sed -n \
    's/^\.It Ic \([a-z_]*\) Ta .* Ta \([a-z]*\)$/\1 \2/p' |
    sort -u >"$dir/manual"
same restart "$dir/program" "$dir/manual" firnd.json.5
# the default stands in the key's own entry
while read -r key value source; do
	value=$(echo "$value" | tr -d '"')
	[ -n "$value" ] && [ "${source%;*}" = "(default" ] || continue
	plain "$man/firnd.json.5" | awk -v key="$key" '
	    /^\.It / { on = $3 == key } on' | tr -s ' ,;().\t' '\n' |
	    grep -qxF -e "$value" -e "$(echo "$value" | tr -s ',;().' '\n' |
		head -n 1)" ||
	    { echo "$key: default $value not in firnd.json.5"; bad=1; }
done <"$dir/keys"

# ---- firn --------------------------------------------------------------------

"$FIRN_BUILD/firn" --help >"$dir/help" 2>&1 ||
    { echo "firn --help: exit status $?"; bad=1; }
# "  create   make a realm": the names in a list of subcommands
names() {
	sed -n '/^commands:/,/^$/s/^  \([a-z]*\)  .*/\1/p' "$1"
}
commands=$(names "$dir/help")
[ "$(echo "$commands" | wc -w)" -ge 7 ] ||
    { echo "firn --help names few subcommands: $commands"; bad=1; }
one() {
	"$FIRN_BUILD/firn" "$@" --help >"$dir/one" 2>&1 ||
	    { echo "firn $* --help: exit status $?"; bad=1; }
	cat "$dir/one" >>"$dir/all"
	plain "$man/firn.1" | grep -qE "^\.Ss firn $*( |\$)" ||
	    { echo "firn $*: has no part in firn.1"; bad=1; }
}
cp "$dir/help" "$dir/all"
"$FIRN_BUILD/firn" --version >/dev/null && echo "firn --version" >>"$dir/all"
for c in $commands; do
	one "$c"
	for d in $(names "$dir/one"); do
		one "$c" "$d"
	done
done
long_options <"$dir/all" >"$dir/program"
plain "$man/firn.1" | long_options >"$dir/manual"
same option "$dir/program" "$dir/manual" firn.1

# ---- firn.h ------------------------------------------------------------------

sed -n 's/^\t\(firn_[a-z0-9_]*\);$/\1/p' "$FIRN_SRCDIR/client/libfirn.map" |
    sort -u >"$dir/program"
plain "$man/firn.3" | grep -oE '\bfirn_[a-z0-9_]+' |
    grep -vxE 'firn_(options|layout|parts|stats|format|h)' | sort -u >"$dir/manual"
same function "$dir/program" "$dir/manual" firn.3

# ---- the runbook -----------------------------------------------------------------

# returned FUNCTION FILE: what a function of names returns
returned() {
	sed -n "/^$1(/,/^}/s/.*return (\"\([a-z_]*\)\").*/\1/p" "$FIRN_SRCDIR/$2"
}
runbook=$FIRN_SRCDIR/contrib/RUNBOOK.md
{
	grep -rhoE '"alert [a-z_]+:' "$FIRN_SRCDIR/agent" --include='*.c' |
	    tr -d '":' | cut -d' ' -f2
	returned alarm_name agent/core/alarms.c
	returned audit_kind_name agent/core/audit-alerts.c
	for f in census odd fleet; do
		grep -ohE '"[a-z]+_[a-z]+"' "$FIRN_SRCDIR/client/cmd/$f.c"
	done | tr -d '"'
} | grep -vx unknown | sort -u >"$dir/kinds"
[ "$(wc -l <"$dir/kinds")" -ge 12 ] ||
    { echo "few kinds of alerts found: $(tr '\n' ' ' <"$dir/kinds")"; bad=1; }
while read -r kind; do
	grep -qx "## $kind" "$runbook" ||
	    { echo "$kind: an alert without a heading in RUNBOOK.md"; bad=1; }
done <"$dir/kinds"
for reason in $(returned wire_reason_name client/ids/reason.c); do
	case $reason in
	ok|unknown) ;;
	*) grep -qF "\`$reason\`" "$runbook" ||
	    { echo "$reason: a reason that RUNBOOK.md does not name"; bad=1; } ;;
	esac
done

[ $bad = 0 ] && echo "manuals and programs agree"
exit $bad
