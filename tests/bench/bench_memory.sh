#!/bin/bash
# Memory of profd while 100 processes of 80 executables, and then 300 of the same, share
# the CPUs: its Pss without the mappings of rings, BPF maps, and the rings; the highest
# figure of a minute and more, in which one window was closed and written, with names.
# Sixty executables are copies of one with other build ids, twenty are common programs
# with libraries of their own.
. "$(dirname "$0")/lib.sh"

# Executables of the load, one command a line.
tools() {
	local t
	for t in sha1sum sha224sum sha256sum sha384sum sha512sum md5sum b2sum \
		cksum sum wc od base64 base32 cat gzip bzip2 xz zstd tr perl \
		mawk openssl python3; do
		command -v "$t"
	done | head -n 20
}
# With a lower priority than the measurement, or starting the last takes minutes.
run_tool() {
	renice -n 10 -p "$BASHPID" >/dev/null
	case $1 in
	*/perl) exec "$1" -e '1 while 1' ;;
	*/mawk) exec "$1" 'BEGIN { while (1) x++ }' ;;
	*/python3) exec "$1" -c 'while True: pass' ;;
	*/openssl) exec "$1" speed -seconds 1000 sha256 ;;
	*/tr) exec "$1" a b ;;
	*) exec "$1" ;;
	esac </dev/zero >/dev/null 2>&1
}
make_copies() {
	local i
	for i in $(seq 100 $((99 + $1))); do
		other_build_id "$E2E/load_small" "$T/load$i" "$i"
	done
}

# workers PID: Pss of the processes that read executables, in bytes.
workers() {
	local p
	for p in $(pgrep -P "$1"); do
		cat "/proc/$p/smaps_rollup"
	done 2>/dev/null | awk '/^Pss:/ { kb += $2 } END { printf "%.0f\n", kb * 1024 }'
}

# memory PID: "pss maps rings" in bytes, with the symbolize worker. A BPF ring (map
# type 27) is mapped twice and counted once, by its size; a perf ring without its page
# of positions.
memory() {
	local pss ring_perf maps p
	pss=$(for p in $(family "$1"); do
		cat "/proc/$p/smaps"
	done 2>/dev/null | awk '
		/^[0-9a-f]+-[0-9a-f]+ / { ring = /bpf-map|bpf_map|\[perf_event\]/ }
		/^Pss:/ && !ring { kb += $2 }
		END { printf "%.0f\n", kb * 1024 }')
	ring_perf=$(awk '
		/^[0-9a-f]+-[0-9a-f]+ / { ring = /\[perf_event\]/ }
		/^Size:/ && ring { kb += $2 - 4 }
		END { printf "%.0f\n", kb * 1024 }' "/proc/$1/smaps")
	maps=$(awk -v perf="$ring_perf" '
		function end_of_map() {
			if (id != "" && !(id in seen)) {
				if (type == 27)
					rings += entries
				else
					maps += memlock
				seen[id] = 1
			}
			id = ""
		}
		FNR == 1 { end_of_map() }
		/^map_type:/ { type = $2 }
		/^max_entries:/ { entries = $2 }
		/^memlock:/ { memlock = $2 }
		/^map_id:/ { id = $2 }
		END { end_of_map(); printf "%.0f %.0f\n", maps, rings + perf }' \
		$(grep -ls '^map_id:' /proc/"$1"/fdinfo/*) /dev/null)
	echo "$pss $maps"
}

make_copies 60
mb() {
	calc "$1 / 1048576"
}

# host NAME PROCESSES BUDGET: with this number of them
host() {
	local loads=() tool real i alive executables end peak=0 now
	local peak_pss=0 peak_maps=0 peak_rings=0 pss maps rings named perf
	local peak_workers=0
	while read -r tool; do
		background run_tool "$tool"
		loads+=("$pid")
	done < <(tools)
	real=${#loads[@]}
	for ((i = 0; i < $2 - real; i++)); do
		background nice -n 10 "$T/load$((100 + i % 60))" 100000 1000
		loads+=("$pid")
	done
	sleep 2
	alive=0
	for pid in "${loads[@]}"; do
		! kill -0 "$pid" || alive=$((alive + 1))
	done
	executables=$(for pid in "${loads[@]}"; do
		readlink "/proc/$pid/exe"
	done | sort -u | wc -l)

	start_profd "$1"
	end=$((SECONDS + ${BENCH_MEMORY_SECONDS:-75}))
	while ((SECONDS < end)); do
		read -r pss maps rings < <(memory "$profd")
		now=$(workers "$profd")
		((now <= peak_workers)) || peak_workers=$now
		now=$((pss + maps + rings))
		if ((now > peak)); then
			peak=$now peak_pss=$pss peak_maps=$maps
			peak_rings=$rings
		fi
		sleep 1
	done
	named=$(percent "$(($(metric profd_trace_frames_total) - \
		$(metric profd_trace_unnamed_total)))" \
		"$(metric profd_trace_frames_total)")
	stop_profd

	perf=
	if start_perf; then
		sleep 20
		read -r pss maps rings < <(memory "$pid")
		perf=$(mb $((pss + maps + rings)))
		stop "$pid"
	fi
	stop "${loads[@]}"

	figure "$1" "$(mb "$peak")" "MiB, Pss without rings + maps + rings" "$3" \
		"perf record -g" "$perf"
	figure "$1_pss" "$(mb "$peak_pss")" MiB
	figure "$1_maps" "$(mb "$peak_maps")" MiB
	figure "$1_rings" "$(mb "$peak_rings")" MiB 16
	figure "$1_workers" "$(mb "$peak_workers")" "MiB, Pss of all workers" 15
	figure "$1_processes" "$alive" "processes of the load"
	figure "$1_executables" "$executables" "executables of the load"
	figure "$1_named" "$named" "percent of frames with a symbol"
}

host memory 100 40
host memory_300 300 48
