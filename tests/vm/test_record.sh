#!/bin/sh
# profd records a command: programs that spin, that are new and deleted at once, and that
# rename themselves have samples, nothing is lost, and the strict checker accepts the
# profile.
# PROFD_SOURCE=perf: without BPF.
. /tests/lib.sh
mkdir -m 1777 "$T/files"
chmod 755 "$T"

# record NAME COMMAND...: the number of samples of the command, in $samples. How many of
# them are complete depends on the speed of the machine.
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
# Without BPF a loop of renames fills the ring of samples, too.
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
