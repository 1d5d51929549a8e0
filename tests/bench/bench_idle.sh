#!/bin/bash
# How often profd wakes up on an idle host without clients: voluntary context switches
# a second of all its threads and of the processes that read for it, after the start.
# New executables, and frames never seen before, wake it more often.
. "$(dirname "$0")/lib.sh"

# switches PID
switches() {
	local p
	for p in $(family "$1"); do
		cat /proc/"$p"/task/*/status
	done 2>/dev/null | awk '
		/^voluntary_ctxt_switches:/ { n += $2 }
		END { print n }'
}

# wakeups PID: a second, in $woken
wakeups() {
	local before since
	sleep 8
	before=$(switches "$1") since=$EPOCHREALTIME
	sleep "$SECONDS_EACH"
	woken=$(calc "($(switches "$1") - $before) / ($EPOCHREALTIME - $since)")
}

ours=() perfs=()
for ((round = 0; round < ROUNDS; round++)); do
	start_profd "idle$round" --window 600
	wakeups "$profd"
	ours+=("$woken")
	stop_profd
	start_perf dwarf || continue
	wakeups "$pid"
	perfs+=("$woken")
	stop "$pid"
done
figure idle_wakeups "$(median "${ours[@]}")" "wake-ups a second" 2 \
	"perf record --call-graph dwarf" "$(median "${perfs[@]}")"
