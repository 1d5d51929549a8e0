#!/bin/bash
# Processes whose /proc/PID/maps never opens, as any user can make them: in an execve
# that closes a file of a file system that does not answer. A profd that runs ends as
# always when it is told to, and one that begins ends at once.
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

start_profd hung --freq 499
background "$E2E/prog_spin_a" 60000 >/dev/null
spin=$pid
for i in 1 2 3; do
	background hang "$T/mnt/$i"
	wait_for 10 hangs "$pid" || {
		skip "processes hang in execve" "this kernel closes files elsewhere"
		plan
		exit
	}
done
used "$spin" 1000
begin=$(date +%s%N)
stop_profd
is "its exit status is 0" $? 0
num "it ends within 5 s" $((($(date +%s%N) - begin) / 1000000)) '<=' 5000
samples "$archive"/*.pb.* | awk -F '\t' '$7 ~ /prog_spin_a$/' >"$T/spin"
num "the window was written" "$(total "$T/spin")" '>=' 100

background nice -n -20 "$PROFD" run --archive "$T/early" \
	--listen "unix:$T/early.sock" >"$T/early.log" 2>&1
early=$pid
sleep 1
begin=$(date +%s%N)
kill -TERM "$early"
ended() { ! kill -0 "$early"; }
wait_for 10 ended
num "told so during its start, it ends within 5 s" \
	$((($(date +%s%N) - begin) / 1000000)) '<=' 5000
plan
