#!/bin/bash
# profd record waits for names, however late they come, until a signal ends the wait.
. "$(dirname "$0")/lib.sh"

cp "$E2E/prog_spin_a" "$T/prog_late"

# hold FILE: of the process whose pid is in FILE.pid, those that read its files are stopped
# until there is a FILE.let, five minutes at most: within two milliseconds of their start,
# before they have read anything. FILE.ready is there when it waits for the pid.
cat >"$T/hold.sh" <<'END'
workers() {
	local kids pid comm
	read -r kids <"/proc/$1/task/$1/children" || [[ $kids ]] || return
	for pid in $kids; do
		read -r comm <"/proc/$pid/comm" && [[ $comm == profd-symbolize ]] &&
			kill "$2" "$pid"
	done
}
end=$((SECONDS + 300)) pid=
exec 3<> <(:)
: >"$1.ready"
until [[ $pid ]] || ((SECONDS >= end)); do
	[[ ! -e $1.pid ]] || read -r pid <"$1.pid"
	read -r -t 0.002 -u 3
done
while [[ -d /proc/$pid && ! -e $1.let ]] && ((SECONDS < end)); do
	workers "$pid" -STOP
	read -r -t 0.002 -u 3
done
workers "$pid" -CONT
END
chrt -f 1 true 2>/dev/null && first=(chrt -f 1) || first=(nice -n -20)
hold() {
	exec "${first[@]}" bash "$T/hold.sh" "$@" 2>/dev/null
}

# run NAME [OPTION...]: records while the names are held back; its pid in $record, its
# messages in $T/NAME.err. The program of the run before is ended.
run() {
	local name=$1
	shift
	[[ -z ${prog:-} ]] || { kill -KILL "$prog"; wait "$prog"; } 2>/dev/null
	# A third of a CPU.
	background nice -n -20 "$T/prog_late" 600000 naps 20
	prog=$pid
	hold "$T/$name" &
	started+=($!)
	wait_for 60 test -e "$T/$name.ready"
	# shellcheck disable=SC2016 # of the shell that becomes profd
	background env --default-signal=INT bash -c 'echo $$ >"$0"; exec "$@"' \
		"$T/$name.pid" "$PROFD" record --cache none -o "$T/$name.pb.gz" \
		-p "$prog" "$@" 2>"$T/$name.err"
	record=$pid
	wait_for 120 samples_it
}
samples_it() {
	find "/proc/$record/fd" -lname '*perf_event*' | grep -q .
}
waits() {
	grep -q 'waiting for the names' "$T/$1.err"
}
# Samples, and those in spin_a().
count() { samples "$1" | awk -F '\t' '$10 ~ /'"$2"'/ { n += $1 } END { print n + 0 }'; }

run late -F 199
used "$prog" 600
kill -INT "$record"
check "late: it waits" wait_for 120 waits late
sleep 3 # longer than any other wait
like "late: and says so" "$(cat "$T/late.err")" \
	"profd: waiting for the names of [0-9]+ frames?,? of .*prog_late.* \(SIGINT writes"
check "late: as long as it takes" kill -0 "$record"
touch "$T/late.let"
wait "$record"
is "late: it ends well" $? 0
n=$(count "$T/late.pb.gz" .)
# How many depends on who else has a CPU in these seconds.
num "late: samples" "$n" '>=' 10
num "late: nearly all have the name" "$(count "$T/late.pb.gz" '^spin_a@')" '>=' $((n * 9 / 10))
is "late: none has an invented one" "$(count "$T/late.pb.gz" 'prog_late[+]0x')" 0
is "late: none is counted" "$(grep -c 'without all names' "$T/late.err")" 0
check_profile "$T/late.pb.gz"

run cut -d 2
check "cut: it waits" wait_for 120 waits cut
began=$SECONDS
kill -INT "$record"
wait "$record"
is "cut: a signal ends it well" $? 0
num "cut: soon" $((SECONDS - began)) '<=' 60
like "cut: so are frames without a name" "$(cat "$T/cut.err")" \
	'profd: [0-9]+ frames? ha(s|ve) no name: the wait for names was ended by a signal'
like "cut: what is missing is counted" "$(cat "$T/cut.err")" '[0-9]+ without all names'
num "cut: the samples are there" "$(count "$T/cut.pb.gz" 'prog_late[+]0x')" '>=' 1
check_profile "$T/cut.pb.gz"

# A signal ends the recording, the next one the wait, also within the two seconds in
# which it would else count as the same.
run again -F 199
used "$prog" 600
sleep 4 # the first samples wait for their tables for 3 s, then for names
kill -INT "$record"
check "again: it waits" wait_for 120 waits again
began=$SECONDS
kill -INT "$record"
wait "$record"
is "again: the next signal ends it well" $? 0
num "again: soon" $((SECONDS - began)) '<=' 60
like "again: by that signal" "$(cat "$T/again.err")" 'ended by a signal'
check_profile "$T/again.pb.gz"

run quiet -q -d 2
sleep 6 # until it waits
touch "$T/quiet.let"
wait "$record"
is "quiet: nothing is said" "$(cat "$T/quiet.err")" ""
plan
