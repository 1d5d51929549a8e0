#!/bin/bash
# What a host of short lives pays: 6,000 x posix_spawn(/bin/true), without profiler,
# with profd and with perf record -g, in turns. The extra is that of each pair, of
# what the lives themselves are charged (their rusage: BPF programs and side-band
# run in their name), and of all busy time of the host; profd's own CPU time beside it.
. "$(dirname "$0")/lib.sh"
LIVES=${BENCH_LIVES:-6000}

# lives: "cpu busy" in seconds, of one run.
lives() {
	local before cpu
	before=$(busy_ticks)
	cpu=$("$E2E/load_spawn" "$LIVES" /bin/true | awk '{ print $4 + $6 }')
	echo "$cpu $(calc "($(busy_ticks) - $before) / $(getconf CLK_TCK)")"
}
extra() {
	calc "($1 / $2 - 1) * 100"
}

load=() host=() own=() perf_load=() perf_host=() life=()
lives >/dev/null
for ((round = 0; round < 2 * ROUNDS - 1; round++)); do
	read -r cpu0 busy0 < <(lives)
	life+=("$(calc "$cpu0 / $LIVES * 1e6")")

	start_profd "spawn$round"
	sleep 1
	before=$(cpu_ns "$profd")
	read -r cpu busy < <(lives)
	sleep 0.2
	own+=("$(calc "($(cpu_ns "$profd") - $before) / 1e9 / $cpu * 100")")
	lost=$(metric profd_lifecycle_lost_total)
	stop_profd
	load+=("$(extra "$cpu" "$cpu0")")
	host+=("$(extra "$busy" "$busy0")")

	start_perf
	sleep 1
	read -r cpu busy < <(lives)
	stop "$pid"
	perf_load+=("$(extra "$cpu" "$cpu0")")
	perf_host+=("$(extra "$busy" "$busy0")")
done
figure spawn_extra "$(median "${load[@]}")" "percent of the load's CPU time" 2 \
	"perf record -g" "$(median "${perf_load[@]}")"
figure spawn_host "$(median "${host[@]}")" \
	"percent of the host's busy time, profd included" null \
	"perf record -g" "$(median "${perf_host[@]}")"
figure spawn_own "$(median "${own[@]}")" \
	"profd's CPU time, percent of the load's" 2
figure spawn_life "$(median "${life[@]}")" "us of CPU a life, no profiler"
figure spawn_lost "$lost" "lifecycle events lost in the last round" 0
