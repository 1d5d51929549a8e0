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

times=()
for ((round = 0; round < 3 * ROUNDS; round++)); do
	times+=("$("$E2E/load_first" "$T/first.sock" "$PROFD" run --archive \
		"$T/first" --listen "unix:$T/first.sock" 2>>"$T/first.log")")
done
cpu=() perfs=()
for ((round = 0; round < ROUNDS; round++)); do
	start_profd "start$round"
	sleep 5
	cpu+=("$(calc "$(spent_ns "$profd") / 1e9")")
	stop_profd
	start_perf dwarf || continue
	sleep 5
	perfs+=("$(calc "$(spent_ns "$pid") / 1e9")")
	stop "$pid"
done
stop "${loads[@]}"
figure start_cpu "$(median "${cpu[@]}")" "s of CPU in the first 5 s" 0.2 \
	"perf record --call-graph dwarf" "$(median "${perfs[@]}")"
figure first_stack "$(median "${times[@]}")" "ms from exec" 300
