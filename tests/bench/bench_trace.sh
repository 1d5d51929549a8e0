#!/bin/bash
# Bytes of a sample in the side file, by how often the ids of its trace change: two
# processes that keep the CPUs busy, without ids, and with ids that are new each second,
# each 10 ms (about each sample) and each ms. "more" is beyond those without ids. On a
# quiet host nearly all samples are theirs.
. "$(dirname "$0")/lib.sh"
prog=$B/tests/bench/bench_trace

# side_bytes MS: $bytes of each sample, of the last window that has ids from its begin.
side_bytes() {
	local i pids=()
	start_profd "trace$1" --window 10
	for ((i = 0; i < CPUS; i++)); do
		background "$prog" writer "$1"
		pids+=("$pid")
	done
	sleep 31
	stop "${pids[@]}"
	with=$(ask /status | sed -n 's/^traces: \([0-9]*\) samples with one.*/\1/p')
	stop_profd
	read -r bytes samples < <(sqlite3 -batch -separator ' ' "$archive/catalog.sqlite" \
		"SELECT times_bytes * 1.0 / samples, samples FROM window
		ORDER BY begin_ns LIMIT 1 OFFSET 2")
}

side_bytes 0
none=$bytes
for ms in 1000 10 1; do
	side_bytes $ms
	figure "trace_side_file_${ms}ms" "$bytes" "bytes a sample" null without_ids "$none" \
		more "$(calc "$bytes - $none")" samples "$samples" with_ids_in_all "${with:-0}"
done
