#!/bin/bash
# From exec of profd to the first complete stack: unwound as far as frame pointers lead
# (Debian's libc has none, so few lead beyond main), every frame with its name, added to
# the open window. load_first polls /metrics, so the figure is up to 20 ms too high.
# Every CPU is busy. And the CPU time, user and system, of profd and the processes that
# read for it, in the first five seconds.
. "$(dirname "$0")/lib.sh"
load_cpus

# spent_ns PID: CPU time of its family so far, including threads that have ended.
spent_ns() {
	local p
	for p in $(family "$1"); do
		cat "/proc/$p/stat"
	done 2>/dev/null | awk -v hz="$(getconf CLK_TCK)" '
		{ sub(/.*\) /, ""); ticks += $12 + $13 + $14 + $15 }
		END { printf "%.0f\n", ticks * 1e9 / hz }'
}

# first DIRECTORY: ms from exec to the first complete stack, with this cache.
first() {
	"$E2E/load_first" "$T/first.sock" "$PROFD" run --cache "$1" --archive \
		"$T/first" --listen "unix:$T/first.sock" 2>>"$T/first.log"
}

# start_cpu NAME DIRECTORY: CPU seconds of the first five, with this cache. The option
# replaces that of start_profd.
start_cpu() {
	start_profd "$1" --cache "$2"
	sleep 5
	calc "$(spent_ns "$profd") / 1e9"
	stop_profd
}

# The first run fills the cache, which is written at the end of profd.
start_cpu fill "$T/cache" >/dev/null
cold=() warm=()
for ((round = 0; round < 3 * ROUNDS; round++)); do
	cold+=("$(first none)")
	warm+=("$(first "$T/cache")")
done
cpu=() warm_cpu=() perfs=()
for ((round = 0; round < ROUNDS; round++)); do
	cpu+=("$(start_cpu "cold$round" none)")
	warm_cpu+=("$(start_cpu "warm$round" "$T/cache")")
	start_perf dwarf || continue
	sleep 5
	perfs+=("$(calc "$(spent_ns "$pid") / 1e9")")
	stop "$pid"
done
stop "${loads[@]}"
peer="perf record --call-graph dwarf"
figure start_cpu "$(median "${cpu[@]}")" "s of CPU in the first 5 s" 0.2 "$peer" "$(median "${perfs[@]}")"
figure start_cpu_warm "$(median "${warm_cpu[@]}")" "s of CPU in the first 5 s" 0.2 "$peer" \
	"$(median "${perfs[@]}")"
figure first_stack "$(median "${cold[@]}")" "ms from exec" 300
figure first_stack_warm "$(median "${warm[@]}")" "ms from exec" 300
