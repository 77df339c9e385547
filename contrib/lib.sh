# SPDX-License-Identifier: Apache-2.0
# What quickstart and selftest share: packages, a snapshot of the tree, a
# private ZooKeeper, and processes that are ended by pid only after a look
# whether the pid is still theirs.  Sourced by bash; needs $root (the tree)
# and $work (a directory of the caller's).

BUILD_PACKAGES="gcc libc6-dev make autoconf automake libtool pkg-config
    libzookeeper-mt-dev libevent-dev libcjson-dev"
SERVER_PACKAGES="libzookeeper-java default-jre-headless"
POLICY=/usr/sbin/policy-rc.d

say() {
	printf '%s\n' "$*"
}

die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# run_logged LOG COMMAND...: quiet when it works, the log's end when not
run_logged() {
	local log=$1
	shift
	"$@" >"$log" 2>&1 </dev/null && return 0
	printf '%s: failed: %s\n' "${0##*/}" "$*" >&2
	tail -n 30 "$log" >&2
	return 1
}

# ---- packages ----------------------------------------------------------------

package_there() {
	case $1 in # whoever brought it
	default-jre-headless) command -v java >/dev/null && return ;;
	nodejs) command -v node >/dev/null && return ;;
	npm) command -v npm >/dev/null && return ;;
	esac
	case $(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null) in
	ii*|hi*) return 0 ;;
	esac
	return 1
}

packages_missing() {
	local p
	for p in "$@"; do
		package_there "$p" || printf '%s ' "$p"
	done
}

# apt must start no daemon.  A policy of the machine's own stays.
policy_forbid() {
	[ -e $POLICY ] && ! grep -qs 'firn: no service starts' $POLICY && return
	printf '#!/bin/sh\n# firn: no service starts while installing\nexit 101\n' \
	    >$POLICY && chmod 755 $POLICY || die "cannot write $POLICY"
	policy_ours=1
}

policy_restore() {
	[ -n "${policy_ours-}" ] && rm -f $POLICY
	policy_ours=
}

# packages_need PACKAGE...: installs what is missing, needs root only then
packages_need() {
	local missing log=$work/apt.log
	proc_need
	command -v dpkg-query >/dev/null ||
	    die "this is no Debian; build by hand: see README.md"
	missing=$(packages_missing "$@")
	[ -z "$missing" ] && return 0
	[ "$(id -u)" = 0 ] || die "as root, once:" \
	    "apt-get install --no-install-recommends $missing"
	say "installing ${missing% }"
	policy_forbid
	mkdir -p /usr/share/man/man1 # openjdk's links want it on slim images
	export DEBIAN_FRONTEND=noninteractive
	run_logged "$log" apt-get -q update &&
	    run_logged "$log" apt-get -q -y -o Dpkg::Use-Pty=0 \
		install --no-install-recommends $missing
	local rc=$?
	policy_restore
	[ $rc = 0 ] || die "apt-get failed (log: $log)"
}

# Java's installation, firnd (boot ID) and these scripts read /proc; a bare
# chroot lacks it.
proc_need() {
	[ -e /proc/self/stat ] && return
	mount -t proc proc /proc 2>/dev/null ||
	    die "/proc is not mounted, and cannot be mounted from here"
	say "mounted /proc"
	: >"$work/proc-mounted"
}

proc_restore() {
	[ -e "$work/proc-mounted" ] || return 0
	umount /proc && rm -f "$work/proc-mounted" && say "unmounted /proc"
}

# ---- the tree ----------------------------------------------------------------

# snapshot DIR: the sources without anything built, so that a build here or
# a tree configured in place changes nothing there.  What did not change is
# left alone, and what did is new by its time: make builds no more than it
# must, and no less.
snapshot() {
	local new=$1.new list=$1.list f
	rm -rf "$new"
	mkdir -p "$1" "$new"
	tar -C "$root" -cf - --exclude-vcs --exclude=./.firn-build \
	    --exclude=./.quickstart --exclude='./build*' --exclude='./firn-*' \
	    --exclude=./autom4te.cache --exclude=./aclocal.m4 \
	    --exclude=./configure --exclude='./config.*' --exclude=Makefile \
	    --exclude=Makefile.in --exclude=./libtool --exclude='./m4/l*.m4' \
	    --exclude='*.o' --exclude='*.lo' --exclude='*.la' --exclude=.libs \
	    --exclude=.deps --exclude=__pycache__ --exclude='*.log' \
	    --exclude='*.trs' --exclude='./contrib/systemd/*.service' . |
	    tar -C "$new" -xf - ||
	    die "cannot copy the tree to $1"
	(cd "$new" && find . -type f | sort) >"$list.new"
	[ ! -e "$list" ] || comm -23 "$list" "$list.new" |
	    while read -r f; do rm -f "$1/$f"; done
	while read -r f; do
		cmp -s "$new/$f" "$1/$f" && continue
		mkdir -p "$1/${f%/*}" && cp --preserve=mode "$new/$f" "$1/$f" ||
		    die "cannot copy $f to $1"
	done <"$list.new"
	mv "$list.new" "$list"
	rm -rf "$new"
	[ -x "$1/configure" ] || (cd "$1" &&
	    run_logged "$work/autoreconf.log" autoreconf -i) ||
	    die "autoreconf failed"
}

# configure_in DIR SRC ARGUMENT...: once; later changes are make's business
configure_in() {
	local dir=$1 src=$2
	shift 2
	[ -e "$dir/config.status" ] && return
	mkdir -p "$dir"
	(cd "$dir" && run_logged configure.out "$src/configure" "$@")
}

# ---- processes ---------------------------------------------------------------

# The start time of a process, in ticks since boot: with the pid it names one
# process for good.  The name between the brackets may hold blanks.
proc_start() {
	local stat
	read -r stat 2>/dev/null <"/proc/$1/stat" || return 1
	set -- ${stat##*) }
	# a zombie has ended
	[ "$1" != Z ] && printf '%s\n' "${20}"
}

# proc_note FILE PID: remembers a process
proc_note() {
	printf '%s %s\n' "$2" "$(proc_start "$2")" >"$1"
}

# proc_alive FILE: prints the pid if that very process still runs
proc_alive() {
	local pid start
	[ -r "$1" ] && read -r pid start <"$1" || return 1
	[ -n "$start" ] && [ "$(proc_start "$pid")" = "$start" ] || return 1
	printf '%s\n' "$pid"
}

# proc_end FILE SECONDS: TERM, and KILL if that does not do
proc_end() {
	local pid i
	pid=$(proc_alive "$1") || { rm -f "$1"; return 1; }
	kill -TERM "$pid"
	for ((i = 0; i < $2 * 20; i++)); do
		proc_alive "$1" >/dev/null || break
		sleep 0.05
	done
	proc_alive "$1" >/dev/null && kill -KILL "$pid"
	rm -f "$1"
}

# ---- a private ZooKeeper -----------------------------------------------------

# A port nothing listens on, below the range of outgoing connections.
port_free() {
	local port i
	for ((i = 0; i < 100; i++)); do
		port=$((20000 + RANDOM % 10000))
		(exec 9<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null ||
		    { printf '%s\n' $port; return; }
	done
	return 1
}

# "ruok" is answered before the server serves; "srvr" with a mode is not.
zk_serves() {
	timeout 1 bash -c 'exec 9<>/dev/tcp/127.0.0.1/$0 &&
	    printf srvr >&9 && cat <&9' "$1" 2>/dev/null | grep -q '^Mode:'
}

zk_configure() {
	local dir=$1 port=$2
	mkdir -p "$dir/data" "$dir/conf"
	cat >"$dir/conf/zoo.cfg" <<-END
		tickTime=2000
		dataDir=$dir/data
		clientPortAddress=127.0.0.1
		clientPort=$port
		admin.enableServer=false
		4lw.commands.whitelist=srvr
		maxClientCnxns=0
		autopurge.snapRetainCount=3
		autopurge.purgeInterval=1
	END
	cat >"$dir/conf/log4j.properties" <<-'END'
		log4j.rootLogger=INFO, C
		log4j.appender.C=org.apache.log4j.ConsoleAppender
		log4j.appender.C.layout=org.apache.log4j.PatternLayout
		log4j.appender.C.layout.ConversionPattern=%d{ISO8601} %-5p %m%n
	END
}

# zk_start DIR PORT: one server on loopback, DIR/pid, DIR/log
zk_start() {
	local dir=$1 port=$2 jars=/usr/share/java i
	zk_configure "$dir" "$port"
	setsid java -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
	    -Dzookeeper.jmx.log4j.disable=true \
	    -Dzookeeper.snapshot.trust.empty=true \
	    -Dzookeeper.preAllocSize=4096 \
	    -cp "$dir/conf:$jars/zookeeper.jar:$jars/slf4j-log4j12.jar:$jars/log4j-1.2.jar" \
	    org.apache.zookeeper.server.quorum.QuorumPeerMain \
	    "$dir/conf/zoo.cfg" >"$dir/log" 2>&1 </dev/null &
	proc_note "$dir/pid" $!
	for ((i = 0; i < 600; i++)); do
		zk_serves "$port" && return 0
		proc_alive "$dir/pid" >/dev/null || return 1
		sleep 0.05
	done
	return 1
}
