#!/bin/bash
# The cost of a full host: memory of profd per sleeping process, forked only or with an
# image of its own, without its mappings, and memory per mapping, of one process with
# very many; how long profd takes to start on it, and whether it sampled meanwhile.
# Memory is the difference of two runs, which excludes what profd needs anyway.
# PROCESSES (5000), MAPPINGS (60000; vm.max_map_count is 65530).
. "$(dirname "$0")/lib.sh"
PROCESSES=${PROCESSES:-5000}
MAPPINGS=${MAPPINGS:-60000}
# By then the files of running programs are open.
SETTLE=${BENCH_PROCESSES_SETTLE:-5}

# sleepers HOW N: $sleepers end with fd $keep.
sleepers() {
	rm -f "$T/in" "$T/out"
	mkfifo "$T/in"
	background bash -c 'exec "$0" "$1" "$2" <"$3" >"$4"' \
		"$E2E/load_sleep" "$1" "$2" "$T/in" "$T/out"
	sleepers=$pid
	exec {keep}>"$T/in"
	wait_for 120 grep -q ready "$T/out"
}
pss() {
	awk '
		/^[0-9a-f]+-[0-9a-f]+ / { ring = /bpf-map|bpf_map|\[perf_event\]/ }
		/^Pss:/ && !ring { kb += $2 }
		END { printf "%.0f\n", kb * 1024 }' "/proc/$1/smaps"
}
# begin HOW N OPTIONS...: starts profd beside them; sets $start_ms, and $start_cpu.
begin() {
	local began now
	sleepers "$1" "$2"
	began=$(date +%s%N)
	start_profd "$1-$2" "${@:3}"
	now=$(date +%s%N)
	start_ms=$(calc "($now - $began) / 1000000")
	start_cpu=$(calc "$(cpu_ns "$profd") / 1000000")
}
end() {
	stop_profd
	exec {keep}>&-
	wait "$sleepers"
	# Those that are not waited for have to be gone, too.
	wait_for 60 bash -c '! pgrep -x load_sleep'
}
# measure HOW N: $memory in use, $processes, $mappings; with few samples, because the
# tables and names of other programs are not to be included.
measure() {
	begin "$1" "$2" --freq 1
	sleep "$SETTLE"
	memory=$(metric profd_heap_bytes)
	pss=$(pss "$profd")
	processes=$(metric profd_pm_processes)
	mappings=$(metric profd_pm_mappings)
	end
}
# start NAME HOW N: prints the figures of a start.
start() {
	local meanwhile lost
	begin "$2" "$3"
	meanwhile=$(ask /status | sed -n 's/^start: .* \([0-9]*\) samples .*/\1/p')
	lost=$(($(metric profd_lifecycle_lost_total) + $(metric profd_sideband_lost_total)))
	end
	figure "$1_start" "$start_ms" "ms from exec to the first answer" 3000
	figure "$1_start_cpu" "$start_cpu" "ms of CPU by then"
	figure "$1_start_samples" "$meanwhile" "samples taken while they were read"
	figure "$1_start_lost" "$lost" "records lost" 0
}

background "$E2E/load_small" 100000 1000
busy=$pid
measure maps 1000
few=$memory few_mappings=$mappings
measure maps "$MAPPINGS"
per_mapping=$(calc "($memory - $few) / ($mappings - $few_mappings)")
figure mapping_bytes "$per_mapping" "bytes a mapping, of $MAPPINGS" 48
start mappings maps "$MAPPINGS"
for how in fork exec; do
	measure "$how" $((PROCESSES / 5))
	few=$memory few_processes=$processes few_mappings=$mappings
	measure "$how" "$PROCESSES"
	figure "processes_${how}_bytes" \
		"$(calc "($memory - $few - $per_mapping * ($mappings - $few_mappings)) / \
			($processes - $few_processes)")" \
		"bytes a process besides its mappings, of $PROCESSES" 2048
	figure "processes_${how}_memory" "$(calc "$pss / 1048576")" \
		"MiB, Pss without rings, of $processes processes"
	start "processes_$how" "$how" "$PROCESSES"
done
stop "$busy"
