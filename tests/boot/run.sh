#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Boots a small Debian with the units as installed, without a network, and has
# inside.sh look at them there: run.sh BUILD WORK.  As root; what WORK/tree
# holds is made once.  The last line counts: "N passed, N failed".
set -u
build=$(cd "$1" && pwd) || exit 1
mkdir -p "$2" && work=$(cd "$2" && pwd) || exit 1
src=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd) || exit 1
PACKAGES=systemd,libzookeeper-mt2,libevent-2.1-7,libevent-pthreads-2.1-7
PACKAGES+=,libevent-extra-2.1-7,libcjson1,libstdc++6
BOOT_SECONDS=180 # then it hangs

die() {
	printf 'boot: %s\n' "$*"
	printf '0 passed, 1 failed\n'
	exit 1
}

tree_make() {
	local suite
	suite=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
	[ -e "$work/tree.is" ] &&
	    [ "$(cat "$work/tree.is")" = "$suite $PACKAGES" ] && return
	rm -rf "$work/tree" "$work/tree.is"
	mmdebstrap --quiet --variant=essential --include="$PACKAGES" \
	    --aptopt='Acquire::Languages "none"' \
	    --dpkgopt='path-exclude=/usr/share/man/*' \
	    --dpkgopt='path-exclude=/usr/share/doc/*' \
	    --dpkgopt='path-exclude=/usr/share/locale/*' \
	    "$suite" "$work/tree" >"$work/tree.out" 2>&1 ||
	    die "mmdebstrap fails: $(tail -n 3 "$work/tree.out")"
	echo "$suite $PACKAGES" >"$work/tree.is"
}

# The tree with firn in it, new each time.
root_make() {
	rm -rf "$work/root" && cp -a "$work/tree" "$work/root" || die "no room"
	make -C "$build" install DESTDIR="$work/root" \
	    >"$work/install.out" 2>&1 ||
	    die "make install fails: $(tail -n 3 "$work/install.out")"
	ldconfig -r "$work/root"
	# what would only cost time
	for u in systemd-resolved systemd-networkd systemd-timesyncd \
	    systemd-logind systemd-update-utmp systemd-journal-flush \
	    apt-daily.timer dpkg-db-backup.timer e2scrub_all.timer; do
		case $u in *.*) ;; *) u=$u.service ;; esac
		ln -sf /dev/null "$work/root/etc/systemd/system/$u"
	done
	cat >"$work/root/etc/systemd/system/firn-boot.service" <<-END
		[Unit]
		After=basic.target
		[Service]
		Type=oneshot
		TimeoutStartSec=infinity
		ExecStart=/bin/bash /firn/src/tests/boot/inside.sh $(java_home)
		ExecStopPost=/bin/sh -c 'systemctl --no-block poweroff 2>/dev/null'
		StandardOutput=append:/firn/out/log
		StandardError=inherit
		[Install]
		WantedBy=multi-user.target
	END
	systemctl --root="$work/root" -q enable firn-boot.service \
	    firnd.socket firnd.service >"$work/enable.out" 2>&1 ||
	    die "cannot enable the units: $(tail -n 3 "$work/enable.out")"
}

java_home() {
	local java
	java=$(readlink -f "$(command -v java)")
	printf '%s\n' "${java%/bin/java}"
}

# Directories that the server needs, in the container at the same place.
java_binds() {
	local home d
	home=$(java_home)
	for d in "$home" /usr/lib/jvm /usr/share/java \
	    /usr/share/maven-repo /etc/java-*; do
		[ -d "$d" ] && printf -- '--bind-ro=%s\n' "$d"
	done
}

boot() {
	rm -rf "$work/out" && mkdir -p "$work/out"
	# nspawn wants its own things in memory, whatever /run is here
	timeout -k 10 $BOOT_SECONDS unshare -m --propagation slave sh -c \
	    'mount -t tmpfs tmpfs /run && exec "$@"' sh \
	    systemd-nspawn --quiet --boot --directory="$work/root" \
	    --machine=firn-boot --register=no --keep-unit --private-network \
	    --console=pipe --link-journal=no --kill-signal=SIGRTMIN+3 \
	    --bind-ro="$src:/firn/src" --bind-ro="$build:/firn/build" \
	    --bind="$work/out:/firn/out" "$@" >"$work/console" 2>&1 </dev/null
}

[ "$(id -u)" = 0 ] || die "needs root, to boot a container"
for program in mmdebstrap systemd-nspawn systemctl java; do
	command -v $program >/dev/null || die "$program is missing"
done
started=$SECONDS
tree_make
made=$SECONDS
root_make
mapfile -t binds < <(java_binds)
booting=$SECONDS
boot "${binds[@]}" || printf 'boot: the container ends with %d\n' $?
printf 'boot: tree %d s, installation %d s, boot and tests %d s\n' \
    $((made - started)) $((booting - made)) $((SECONDS - booting))
[ -s "$work/out/log" ] || { tail -n 20 "$work/console"; die "it says nothing"; }
cat "$work/out/log"
grep -q '^[0-9]* passed, [0-9]* failed$' "$work/out/log" ||
    die "it did not come to its end"
! grep -q '^not ok' "$work/out/log"
