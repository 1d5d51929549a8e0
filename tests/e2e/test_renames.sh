#!/bin/bash
# A loop of prctl(PR_SET_NAME) of a user, beside a program of another user: no sample and
# no mapping is lost, it costs profd little, and the last name is known. The records of
# the loop are limited in the kernel; those that are not made are counted, by user too.
. "$(dirname "$0")/lib.sh"
chmod 755 "$T"
attack() {
	setpriv --reuid 65534 --regid 65534 --clear-groups "$E2E/prog_renames" "$@"
}

start_profd renames
background "$E2E/prog_shares" 4 >/dev/null
victim=$pid
# Its start, and the first reading of what runs, are not part of the cost.
ask "/debug/pprof/profile?seconds=1" >/dev/null
before=$(cpu_ns "$profd")
background attack 3000 last-name 1500 >"$T/n"
attacker=$pid
wait_for 60 test -s "$T/n"
used=$(($(cpu_ns "$profd") - before))
n=$(cat "$T/n")
wait_for 60 eval 'ask /processes | grep -q "\"comm\":\"last-name\""'
result $? "the name it has after its loop is known while it runs" ||
	diag "$(ask /processes | grep prog_renames)"
wait "$attacker" "$victim"

num "enough renames to tell" "$n" '>=' 250000
limited=$(metric profd_lifecycle_limited_total)
num "those beyond the limit are counted" "$limited" '>=' $((n * 9 / 10))
num "... and few are told" "$(metric profd_pm_renames_total)" '<=' 1000
is "no lifecycle event is lost" "$(metric profd_lifecycle_lost_total)" 0
lost=$(($(metric profd_sampler_ring_full_total) + $(ask /metrics |
	awk '/^profd_pump_full_total\{stream="sample"/ { print $2 }')))
taken=$(metric profd_sampler_taken_total)
num "98 % of the samples are kept" "$(percent $((taken - lost)) "$taken")" '>=' 98
cpu=$(percent "$used" 3000000000)
diag "$n renames in 3 s, $limited limited; profd used $cpu % of a CPU," \
	"$lost of $taken samples lost"
num "profd spends little on them" "$cpu" '<=' 3
# Renames make no records there: a loop takes no room from mappings of others.
is "no mapping record is lost" "$(metric profd_sideband_lost_total)" 0
"$PROFD" status --server "unix:$sock" >"$T/status"
check "status says who was limited" grep -E \
	"^limited +uid 65534, changes of a process's name, [0-9]{6,} times" "$T/status"
stop_profd
plan
