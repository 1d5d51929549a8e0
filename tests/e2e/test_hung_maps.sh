#!/bin/bash
# Processes whose /proc/PID/maps never opens, which any user can create: in an execve
# that closes a file of a file system that does not answer. A running profd continues
# and ends when it is signalled; so does one that is started after them.
. "$(dirname "$0")/lib.sh"

mkdir "$T/mnt"
chmod 755 "$T"
mounted+=("$T/mnt")
background "$E2E/prog_fuse" "$T/mnt" "$E2E/prog_spin_a" noflush >"$T/fuse.log"
fuse=$pid
# First of all: pkill itself would wait for them.
trap 'kill -KILL "$fuse"; cleanup' EXIT
wait_for 60 grep -q mounted "$T/fuse.log" || bail "mounted" "$(cat "$T/fuse.log")"

# Perl opens files with O_CLOEXEC.
hang() {
	exec setpriv --reuid 65534 --regid 65534 --clear-groups /usr/bin/perl -e '
		open(F, "<", $ARGV[0]) && exec("/bin/sleep", "300")' \
		"$1" </dev/null >/dev/null 2>&1
}
hangs() {
	timeout -s KILL 0.3 head -n 1 "/proc/$1/maps" >/dev/null 2>&1
	(($? == 137))
}

# ends WHAT: the last start_profd ends, and has samples of prog_spin_a.
ends() {
	local begin
	begin=$(date +%s%N)
	stop_profd
	is "$1: its exit status is 0" $? 0
	num "$1: it ends within 5 s" $((($(date +%s%N) - begin) / 1000000)) '<=' 5000
	samples "$archive"/*/*.pb.* | awk -F '\t' '$7 ~ /prog_spin_a$/' >"$T/spin"
	num "$1: it sampled the others" "$(total "$T/spin")" '>=' 100
}

start_profd perf --source perf --freq 499
perf=($profd "$archive")
start_profd hung --freq 499
background "$E2E/prog_spin_a" 60000 >/dev/null
spin=$pid
hung=()
for i in 1 2 3; do
	background hang "$T/mnt/$i"
	hung+=("$pid")
	wait_for 10 hangs "$pid" || {
		skip "processes hang in execve" "this kernel closes files elsewhere"
		plan
		exit
	}
done
used "$spin" 500
ends "that ran"
profd=${perf[0]} archive=${perf[1]}
ends "that ran, by perf"

# Their stat, environ and links block, too. Those of other processes do not.
timeout -k 4 -s INT 1 "$B/quark-mon" -b -s -x >"$T/mon" 2>"$T/mon.err"
is "quark-mon ends" $? 124
for i in "$spin" "${hung[@]}"; do
	check "... and prints $i" grep -q "^->$i " "$T/mon"
done
check "... and what the others were called with" \
	grep -q "prog_spin_a.*60000" "$T/mon"

# beside WHAT OPTION...: a profd that is started while they hang.
beside() {
	local begin what=$1
	shift
	begin=$(date +%s%N)
	start_profd "begun$#" --freq 499 "$@"
	num "$what begins beside them within 5 s" \
		$((($(date +%s%N) - begin) / 1000000)) '<=' 5000
	used "$spin" 500
	ask /processes >"$T/processes" || true
	num "$what: it tells of the others" \
		"$(grep -c "\"pid\":$spin," "$T/processes")" '==' 1
	num "$what: ... and of them" \
		"$(grep -cE "\"pid\":(${hung[0]}|${hung[1]}|${hung[2]})," \
			"$T/processes")" '==' 3
	ends "$what"
}
beside profd
beside "profd by perf" --source perf
plan
