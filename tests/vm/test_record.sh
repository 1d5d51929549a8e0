#!/bin/sh
# profd records a command, as users do: of programs that spin, that are new to it and
# gone at once, and that rename themselves, there are samples, nothing is lost, and the
# profile is as the strict checker wants it.
# PROFD_SOURCE=perf: without BPF.
. /tests/lib.sh
mkdir -m 1777 "$T/files"
chmod 755 "$T"

# record NAME COMMAND...: how many samples of the command were taken, in $samples. How
# many of them are whole depends on the machine's speed.
record() {
	name=$1
	shift
	/tests/profd record --freq 199 --source "$source" -o "$T/$name.pb.gz" -- "$@" \
		>"$T/log" 2>&1
	result $? "$name: it is recorded"
	diag "$(cat "$T/log")"
	/tests/windows "$T/$name.pb.gz" >"$T/$name"
	result $? "$name: which the strict checker accepts"
	diag "$(cat "$T/$name")"
	samples=$(cut -d ' ' -f 3 "$T/$name")
}
# Without BPF a loop of renames fills the ring that samples are in, too.
none_lost() {
	grep -q ' 0 lost' "$T/log"
	result $? "$name: nothing is lost"
}

record spins /tests/prog_shares 3
num "spins: its samples" "${samples:-0}" -ge 100
none_lost
record new /tests/prog_new 5 4 30 "$T/files"
num "new: their samples" "${samples:-0}" -ge 20
none_lost
record renames /tests/prog_renames 2000 last 1000
num "renames: its samples" "${samples:-0}" -ge 50
! $whole || none_lost
echo "1..$n"
