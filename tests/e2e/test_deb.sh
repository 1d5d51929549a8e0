#!/bin/bash
# make deb makes a package that lintian has nothing to say about and that has the files
# of `make install`, less those of libquark.
#
# DEB_ALL=1 also installs it in a bare Debian 12, starts profd with the user, the
# capabilities and the directories of the unit, asks it as a member of the group and as
# another user, upgrades, removes and purges it. The bare system comes from Debian's
# mirror by debootstrap, some 250 MB, and is kept in DEB_CACHE (/tmp/profd-deb) for the
# next run. There is no systemd in a chroot: this test does what the unit says.
. "$(dirname "$0")/lib.sh"
umask 022

quiet_make() {
	(cd "$ROOT" && env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make "$@")
}

# --- the package ---
check "make deb" quiet_make deb
debs=("$B"/deb/profd_*.deb)
deb=$T/profd.deb
check "one package" cp "${debs[@]}" "$deb"
chmod 644 "$deb"
said=$(lintian -E -I --pedantic --allow-root "$deb" 2>&1)
is "lintian has nothing to say" "$said" ""
is "one override, by name" "$(dpkg-deb --fsys-tarfile "$deb" |
	tar -xO ./usr/share/lintian/overrides/profd | grep -vc '^#')" 1

quiet_make install "DESTDIR=$T/inst" PREFIX=/usr SYSCONFDIR=/etc >"$T/install.log"
# What debhelper compresses, and where Debian has it.
(cd "$T/inst" && find . ! -type d) | sed '
	s,^\.\(.*/man/.*\),.\1.gz,
	s,^\./usr/lib/systemd/,./lib/systemd/,
	s,/zsh/site-functions/,/zsh/vendor-completions/,
	/quark/d
	/sysusers/d' | sort >"$T/wanted"
dpkg-deb --fsys-tarfile "$deb" | tar -t | grep -v '/$' |
	grep -v '^\./usr/share/\(doc\|lintian\)/' | sort >"$T/packed"
is "it has the files of make install" "$(diff "$T/wanted" "$T/packed")" ""
dpkg-deb -x "$deb" "$T/x"
unit=$T/x/lib/systemd/system/profd.service
is "it starts that profd" "$(sed -n 's/^ExecStart=//p' "$unit")" "/usr/bin/profd run"
is "the configuration is a conffile" "$(dpkg-deb -I "$deb" conffiles)" \
	/etc/profd/profd.conf
sed "s,=/usr/bin/profd,=$PROFD," "$unit" >"$T/profd.service"
is "the unit is valid" "$(systemd-analyze --man=no verify "$T/profd.service" 2>&1)" ""
caps='CAP_BPF CAP_PERFMON CAP_SYS_PTRACE CAP_SYSLOG CAP_DAC_READ_SEARCH'
caps+=' CAP_CHECKPOINT_RESTORE CAP_SETUID CAP_SETGID'
setting() { sed -n "s/^$1=//p" "$unit"; }
is "capabilities of the unit" "$(setting AmbientCapabilities)" "$caps"
is "no others can be had" "$(setting CapabilityBoundingSet)" "$caps"
is "its user" "$(setting User)" profd
like "a limit of memory" "$(setting MemoryMax)" '^[0-9]+[MG]$'

if [[ -z ${DEB_ALL:-} ]]; then
	plan
	exit
fi

# --- a bare system ---
cache=${DEB_CACHE:-/tmp/profd-deb}
mkdir -p "$cache/archives/partial"
if [[ ! -e $cache/base.tar ]]; then
	debootstrap --variant=minbase --cache-dir="$cache/archives" bookworm \
		"$cache/base" >"$cache/log" 2>&1 &&
		tar -C "$cache/base" -cf "$cache/base.tar.new" . &&
		mv "$cache/base.tar.new" "$cache/base.tar"
	rm -rf "$cache/base"
fi
[[ -e $cache/base.tar ]] || bail "a bare Debian 12" "$(tail "$cache/log")"
root=$T/root
mkdir "$root"
tar -C "$root" -xf "$cache/base.tar"
cp "$deb" "$root/profd.deb"
bind() {
	mount --bind "$1" "$root$2" && mounted=("$root$2" "${mounted[@]}")
}
bind /proc /proc && bind /sys /sys && bind /dev /dev &&
	bind "$cache/archives" /var/cache/apt/archives ||
	bail "a chroot can be mounted"
in_root() {
	chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
		DEBIAN_FRONTEND=noninteractive "$@"
}
# Everything but what apt, dpkg and adduser write for themselves.
files() {
	(cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev \
		-o -path ./var/cache -o -path ./var/lib/apt -o -path ./var/lib/dpkg \
		-o -path ./var/log -o -path ./tmp -o -path './etc/*-' \
		-o -path ./run/adduser -o -name '*.pyc' \) -prune -o \
		! -type d -print -o -type d -empty -print | sort)
	(cd "$root" && find ./var/lib ./var/cache ./var/log -path '*profd*' \
		! -path './var/cache/apt/*' ! -path './var/lib/dpkg/*')
}
cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null
in_root apt-get update -qq >"$T/apt.log" 2>&1
# Its libraries first, so that what is compared later is the package's own.
depends=$(dpkg-deb -f "$deb" Depends | tr ',' '\n' | sed 's/(.*//; s/ //g')
# shellcheck disable=SC2086 # one word a package
in_root apt-get install -y -qq --no-install-recommends $depends >>"$T/apt.log" 2>&1 ||
	bail "its libraries are installed" "$(tail "$T/apt.log")"
files >"$T/before"

# --- install ---
install_deb() { in_root dpkg -i "/$1"; }
check "it installs" install_deb profd.deb
is "dpkg finds nothing changed" "$(in_root dpkg -V profd)" ""
like "a user without a shell" "$(in_root getent passwd profd)" '/usr/sbin/nologin$'
check "and a group" in_root getent group profd
is "it is enabled" "$(in_root readlink /etc/systemd/system/multi-user.target.wants/profd.service)" \
	/lib/systemd/system/profd.service
in_root useradd -G profd member
in_root useradd other

# --- start, as the unit says ---
unit=$root/lib/systemd/system/profd.service
user=$(setting User)
directory() { # directory WHERE NAME MODE
	mkdir -p "$root$1/$2"
	chown "$(in_root id -u "$user"):$(in_root id -g "$user")" "$root$1/$2"
	chmod "${3:-0755}" "$root$1/$2"
}
directory /run "$(setting RuntimeDirectory)"
directory /var/lib "$(setting StateDirectory)" "$(setting StateDirectoryMode)"
directory /var/cache "$(setting CacheDirectory)" "$(setting CacheDirectoryMode)"
list=$(setting AmbientCapabilities | tr 'A-Z ' 'a-z,' | sed 's/cap_/+/g')
as_user() { # as_user USER COMMAND...
	local who=$1
	shift
	in_root setpriv --reuid "$who" --regid "$who" --init-groups \
		--no-new-privs --bounding-set=-all "$@"
}
start_unit() {
	# shellcheck disable=SC2046 # words of ExecStart
	background in_root setpriv --reuid "$user" --regid "$user" --init-groups \
		--no-new-privs --inh-caps "-all,$list" --ambient-caps "-all,$list" \
		--bounding-set "-all,$list" $(setting ExecStart) >"$T/profd.log" 2>&1
	profd=$pid
	wait_for 60 as_user member profd status ||
		bail "profd starts as the unit says" "$(tail "$T/profd.log")"
}
start_unit
main=$(pgrep -P "$profd" -x profd || echo "$profd")
bits=$(for cap in $caps; do echo "$cap"; done | sort)
has=$(capsh --decode="$(awk '/^CapEff/ { print $2 }' "/proc/$main/status")" |
	sed 's/.*=//' | tr 'a-z,' 'A-Z\n' | sort)
is "it has these capabilities and no others" "$has" "$bits"
is "it can get no others" "$(awk '/^CapBnd/ { print $2 }' "/proc/$main/status")" \
	"$(awk '/^CapEff/ { print $2 }' "/proc/$main/status")"
is "not as root" "$(awk '/^Uid/ { print $2, $3, $4, $5 }' "/proc/$main/status")" \
	"$(in_root id -u profd | awk '{ print $1, $1, $1, $1 }')"
is "its socket" "$(in_root stat -c '%a %U:%G' /run/profd/profd.sock)" "660 profd:profd"
like "a member of the group asks for its status" "$(as_user member profd status)" \
	'sampling +99 Hz'
refused=$(as_user other profd status 2>&1)
like "another user is refused" "$?: $refused" '^1: .*(ermission denied|not permitted)'
check "a profile of a second" as_user member profd fetch -d 1 -o /tmp/member.pb.gz
is "nothing is missing" "$(as_user member profd status | grep '^missing')" ""

# --- upgrade: the edited configuration and the archive stay ---
kill -TERM "$main"
wait "$profd"
num "a window was written" "$(find "$root/var/lib/profd" -name 'cpu-*' | wc -l)" '>' 0
echo 'freq = 49' >>"$root/etc/profd/profd.conf"
dpkg-deb -R "$deb" "$T/next"
sed -i 's/^Version: .*/&+1/' "$T/next/DEBIAN/control"
dpkg-deb --root-owner-group -b "$T/next" "$root/next.deb" >"$T/next.log"
check "it upgrades" install_deb next.deb
is "the new version" "$(in_root dpkg-query -W -f '${Version} ${Status}' profd)" \
	"$(dpkg-deb -f "$deb" Version)+1 install ok installed"
is "the edited configuration is kept" "$(tail -n 1 "$root/etc/profd/profd.conf")" \
	'freq = 49'
start_unit
like "it runs with that" "$(as_user member profd status)" 'sampling +49 Hz'
kill -TERM "$(pgrep -P "$profd" -x profd || echo "$profd")"
wait "$profd"

# --- remove, purge ---
check "it is removed" in_root dpkg -r profd
check "its program is gone" test ! -e "$root/usr/bin/profd"
check "its unit is gone" test ! -e "$root/lib/systemd/system/profd.service"
check "its configuration is kept" test -s "$root/etc/profd/profd.conf"
num "its archive is kept" "$(find "$root/var/lib/profd" -name 'cpu-*' | wc -l)" '>' 0
check "it is purged" in_root dpkg -P profd
rm -rf "$root/next.deb" "$root"/home/* "$root"/var/mail/* "$root"/var/spool/mail/*
files >"$T/after"
is "nothing is left" "$(diff "$T/before" "$T/after")" ""
check "but the user, as Debian wants it" in_root getent passwd profd
plan
