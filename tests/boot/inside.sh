#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs in the container that run.sh boots: the units as systemd runs them.
# One line a check; nothing is measured against a clock but by generous limits.
set -u
root=/firn/src work=/run/firn-test
. /firn/src/contrib/lib.sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$1/bin
ZK=127.0.0.1:2181
APP=4242 # an application's uid
passed=0 failed=0
mkdir -p "$work" /etc/firn
chmod 711 "$work"

check() {
	local what=$1
	shift
	if "$@" >"$work/said" 2>&1; then
		passed=$((passed + 1))
		say "ok $what"
	else
		failed=$((failed + 1))
		say "not ok $what: $*"
		tail -n 20 "$work/said" | sed 's/^/  > /'
		[ $failed = 1 ] || return 1
		journalctl -q --no-pager -n 40 -u 'firnd*' | sed 's/^/  | /'
		systemctl status --no-pager -n 0 firnd.service firnd.socket |
		    sed 's/^/  | /'
		return 1
	fi
}

end() {
	proc_end "$work/zk/pid" 5
	say "$passed passed, $failed failed"
	exit $((failed > 0))
}

# within SECONDS COMMAND...: until it is true
within() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}

show() {
	systemctl show -P "$1" "${2-firnd.service}"
}

is() {
	[ "$(show "$1" "${3-firnd.service}")" = "$2" ]
}

status_says() {
	[[ $(show StatusText) == $1 ]]
}

logged() {
	journalctl -q --no-pager -o cat -u "${2-firnd.service}" | grep -q "$1"
}

another_pid() {
	local pid
	pid=$(show MainPID)
	[ "$pid" != 0 ] && [ "$pid" != "$1" ] && is ActiveState active
}

serves() {
	firn wait --timeout 30000 && firn next >/dev/null
}

# An application's user, in the agent's group and not.
MEMBER="setpriv --reuid=$APP --regid=$APP --groups=firn"
STRANGER="setpriv --reuid=4343 --regid=4343 --groups=firn"
OTHER="setpriv --reuid=$APP --regid=$APP --clear-groups"

exits() {
	local want=$1
	shift
	"$@" >/dev/null 2>&1
	[ $? = "$want" ]
}

configure() {
	printf '%s\n' "$1" >/etc/firn/firnd.json.new
	mv /etc/firn/firnd.json.new /etc/firn/firnd.json
}
GOOD='{"zookeeper": "127.0.0.1:2181", "log_level": "debug"}'
CHOSEN='{"zookeeper": "127.0.0.1:2181", "log_level": "debug",
    "allow_uids": [4242]}'

# ---- ready before ZooKeeper is there ------------------------------------------

check 'the socket listens' within 30 is ActiveState active firnd.socket
check 'READY without ZooKeeper' within 30 is ActiveState active
check 'STATUS without a realm' within 30 status_says '*no_realm*'
check 'it runs as firn' [ "$(stat -c %U "/proc/$(show MainPID)")" = firn ]
calls_are_right() {
	local calls=" $(show SystemCallFilter) "
	[[ $calls == *" adjtimex "* && $calls == *" clock_adjtime "* &&
	    $calls != *" settimeofday "* && $calls != *" chown "* &&
	    $calls != *" sched_setscheduler "* && $calls == *" accept4 "* ]]
}
check 'the system calls are those that it needs' calls_are_right
check 'mode and owner of the socket' \
    [ "$(stat -c '%a %U %G' /run/firn/firn.sock)" = '660 firn firn' ]
configure "$GOOD"
check 'ZooKeeper starts' zk_start "$work/zk" 2181 || {
	sed 's/^/  | /' "$work/zk/log"
	end
}
check 'a realm is made' firn realm create --zk $ZK --first || end
systemctl restart firnd
check 'it serves' serves || end
check 'STATUS tells the worker ID' within 30 \
    status_says 'serving, realm default, worker ID [0-9]*'

# ---- who may, and who is seen ---------------------------------------------------

check 'a member of the group gets IDs' $MEMBER firn next
check 'its uid is seen' within 10 logged "uid $APP pid"
check 'root gets IDs, and its uid is seen' within 10 logged 'uid 0 pid'
check 'others do not' exits 77 $OTHER firn next

# ---- a restart under load ---------------------------------------------------------

mkdir -m 777 "$work/load"
inode=$(stat -c %i /run/firn/firn.sock)
pids=() names=()
load() {
	names+=("$1")
	$MEMBER /firn/build/idload --socket /run/firn/firn.sock \
	    --out "$work/load/$1" --threads 2 --rate 500 "${@:2}" \
	    >"$work/load/$1.json" 2>"$work/load/$1.err" &
	pids+=($!)
}
load patient --timeout 5000
load hasty --timeout 1000
load many --timeout 5000 --mode many --batch 100
takes() {
	local before=$(($(issued) + 100))
	within 30 eval "[ \$(issued) -ge $before ]"
}
issued() {
	firn status --json 2>/dev/null | sed -n 's/.*"issued": *"\([0-9]*\)".*/\1/p'
}
check 'applications take IDs' takes
took=()
for ((i = 0; i < 10; i++)); do
	begun=${EPOCHREALTIME/[.,]/}
	systemctl restart firnd || break
	took+=($(((${EPOCHREALTIME/[.,]/} - begun) / 1000)))
	takes || break
done
say "restarts: systemctl restart takes, in ms:" \
    "$(printf '%s\n' "${took[@]}" | sort -n | tr '\n' ' ')"
check 'ten restarts' [ $i = 10 ]
for ((i = 0; i < 3; i++)); do
	pid=$(show MainPID)
	kill -KILL "$pid"
	within 30 another_pid "$pid" && takes || break
done
check 'killed three times, started again' [ $i = 3 ]
went_on() {
	[ "$(journalctl -q -o cat -u firnd | grep -c 'state: goes on as')" -ge 3 ]
}
check 'each went on from the state file, under this boot ID' within 20 went_on
check 'it was Restart that did so' [ "$(show NRestarts)" -ge 3 ]
check 'the socket stayed' [ "$(stat -c %i /run/firn/firn.sock)" = "$inode" ]
kill -TERM "${pids[@]}"
for p in "${pids[@]}"; do
	check "an application ends well" wait "$p"
done
for n in "${names[@]}"; do
	say "load $n: $(sed 's/, "workers".*//' "$work/load/$n.json")"
done
none_failed() {
	grep -q '"failed": 0,' "$work/load/patient.json" &&
	    grep -q '"failed": 0,' "$work/load/many.json"
}
check 'no call failed (deadline 5 s; of 1 s see above)' none_failed
check 'no ID twice, all in order' /firn/build/idcheck "$work"/load/*.ids \
    "$work"/load/*.pairs

# ---- reload -------------------------------------------------------------------------

pid=$(show MainPID)
configure "$CHOSEN"
check 'a reload' systemctl reload firnd
check 'a good configuration is taken' within 20 logged 'reload: allow_uids'
check 'who is on the list gets IDs' $MEMBER firn next
check 'another of the group does not' exits 77 $STRANGER firn next
configure '{ "zookeeper": '
check 'a reload of a broken one' systemctl reload firnd
check 'it is told' within 20 logged 'reload: .*; nothing changed'
check 'it goes on' serves
check 'with the list that it had' exits 77 $STRANGER firn next
check 'as the same process' is MainPID "$pid"
configure "$GOOD"

# ---- watchdog -----------------------------------------------------------------------

mkdir -p /run/systemd/system/firnd.service.d
printf '[Service]\nWatchdogSec=2s\n' \
    >/run/systemd/system/firnd.service.d/watchdog.conf
systemctl daemon-reload
systemctl restart firnd
check 'it serves with a short watchdog' serves
pid=$(show MainPID)
sleep 3 # longer than the watchdog's time: it is fed
check 'the watchdog is fed' is MainPID "$pid"
kill -STOP "$pid"
check 'a hung agent is replaced' within 60 another_pid "$pid"
check 'for the watchdog' within 10 logged 'Watchdog timeout'
check 'and it serves' serves
rm -r /run/systemd/system/firnd.service.d
systemctl daemon-reload

# ---- stop, and activation on demand --------------------------------------------------

check 'a stop' systemctl stop firnd
check 'is clean' is ExecMainStatus 0
check 'says so' within 20 logged 'firnd.service: Deactivated successfully'
check 'the socket is still there' is ActiveState active firnd.socket
check 'who asks starts it' firn next --timeout 30000
check 'so that it runs' within 30 is ActiveState active

# ---- what only an editor mends -------------------------------------------------------

configure '{ "zookeeper": '
systemctl restart firnd >/dev/null 2>&1
check 'a broken configuration ends it' within 30 is ActiveState failed
check 'with 78' is ExecMainStatus 78
sleep 2 # many times RestartSec
check 'and it is not restarted' is NRestarts 0
check 'it stays failed' is ActiveState failed
for ((i = 0; i < 10; i++)); do
	firn next --timeout 200 >/dev/null 2>&1
done
say "knocking: the socket is $(show SubState firnd.socket)" \
    "($(show Result firnd.socket)), the service $(show SubState)"
configure "$GOOD"
systemctl reset-failed firnd.service firnd.socket
check 'mended, it starts' systemctl restart firnd.socket firnd.service
check 'and serves' serves

# ---- without ZooKeeper -----------------------------------------------------------------

drop=/run/systemd/system/firnd.service.d
alone() {
	mkdir -p $drop
	printf '[Service]\nExecStart=\nExecStart=%s --static-worker 7 %s\n' \
	    "/usr/local/sbin/firnd --layout firn --epoch 2025-01-01T00:00:00Z" \
	    "$1" >$drop/alone.conf
	systemctl daemon-reload && systemctl restart firnd
}
printf '{}\n' >/etc/firn/firnd.json
check 'an agent without ZooKeeper starts' alone --first-use
check 'and serves' serves
check 'from a state on disk' within 10 [ -s /var/lib/firn/state ]
check 'a second time' alone ''
check 'it goes on from there' serves
rm -r $drop
configure "$GOOD"
systemctl daemon-reload
systemctl restart firnd

# ---- an instance ----------------------------------------------------------------------

firn realm create --zk $ZK --realm two --first >/dev/null
printf '{"zookeeper": "%s", "realm": "two"}\n' $ZK >/etc/firn/two.json
check 'an instance starts' systemctl start firnd@two.service
check 'and serves its own realm' firn next --socket /run/firn/two.sock \
    --timeout 30000
check 'with a state of its own' within 10 [ -s /run/firn/two.sock.state/state ]
check 'beside the other' serves
printf '{"static_worker": 9}\n' >/etc/firn/three.json
mkdir -p /run/systemd/system/firnd@three.service.d
printf '[Service]\nExecStart=\nExecStart=%s %s %s\n' /usr/local/sbin/firnd \
    '--config /etc/firn/%i.json --socket /run/firn/%i.sock' --first-use \
    >/run/systemd/system/firnd@three.service.d/first.conf
systemctl daemon-reload
check 'one without ZooKeeper starts' systemctl start firnd@three.service
check 'and serves' firn next --socket /run/firn/three.sock --timeout 30000
check 'its only mark outlives a boot' within 10 \
    [ -s /var/lib/firn/three.sock.state/state ]
rm -r /run/systemd/system/firnd@three.service.d
systemctl daemon-reload
check 'it starts from that mark' systemctl restart firnd@three.service
check 'and serves again' firn next --socket /run/firn/three.sock --timeout 30000

end
