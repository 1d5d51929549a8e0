#!/bin/bash
# CPU time of profd itself, user and system, as a share of one CPU: 99 Hz, every CPU busy
# at a stack depth of 30, without new processes. Closing and writing the window of that
# time is included. For comparison perf record with frame pointers and with copies of
# stacks (not unwound yet), with the same load, in turns.
. "$(dirname "$0")/lib.sh"
load_cpus

now() {
	echo "$EPOCHREALTIME"
}
# share PID NS_BEFORE SINCE
share() {
	calc "($(cpu_ns "$1") - $2) / (($(now) - $3) * 1e9) * 100"
}
windows() {
	find "$archive" -name '*.gz' | wc -l
}
windows_are() {
	(($(windows) >= $1))
}

# share_perf CALL_GRAPH
share_perf() {
	local before since
	start_perf "$1" || return
	sleep 3
	before=$(cpu_ns "$pid") since=$(now)
	sleep "$SECONDS_EACH"
	perf_share=$(share "$pid" "$before" "$since")
	stop "$pid"
}

ours=() fps=() dwarfs=() taken=()
for ((round = 0; round < ROUNDS; round++)); do
	start_profd "steady$round" --window 600
	sleep 3
	kill -HUP "$profd"
	wait_for 10 windows_are 1
	samples=$(metric profd_sampler_taken_total)
	before=$(cpu_ns "$profd") since=$(now)
	sleep "$SECONDS_EACH"
	kill -HUP "$profd"
	wait_for 10 windows_are 2
	ours+=("$(share "$profd" "$before" "$since")")
	taken+=("$(calc "($(metric profd_sampler_taken_total) - $samples) / \
		(($(now) - $since) * $CPUS)")")
	stop_profd

	share_perf fp && fps+=("$perf_share")
	share_perf dwarf && dwarfs+=("$perf_share")
done
stop "${loads[@]}"
figure steady_cpu "$(median "${ours[@]}")" "percent of one CPU" 0.3 \
	"perf record -g" "$(median "${fps[@]}")" \
	"perf record --call-graph dwarf" "$(median "${dwarfs[@]}")"
figure steady_samples "$(median "${taken[@]}")" "samples a second and CPU"
