#!/bin/bash
# Code without unwind rows that is interrupted before its frame is set up, after it was
# left, or that has none: its caller is not left out.
. "$(dirname "$0")/lib.sh"

recordings=()
for leaf in frame moved none; do
	background record "$T/$leaf.pb.gz" -F 1999 -- "$E2E/stacks/calls" $leaf 1000
	recordings+=("$pid")
done
wait "${recordings[@]}"
for leaf in frame moved none; do
	samples "$T/$leaf.pb.gz" >"$T/tsv"
	rm -f "/tmp/perf-$(awk -F '\t' '/jit_leaf@/ { print $3; exit }' "$T/tsv").map"
	all=$(total "$T/tsv" '(^|;)jit_leaf@')
	num "$leaf: the leaf has samples" "$all" '>=' 100
	right=$(total "$T/tsv" '(^|;)jit_leaf@[^;]*;jit_loop@[^;]*;main@.*;_start@[^;]*$')
	# The code at ip is copied once the first samples were seen, later on a busy machine.
	num "$leaf: they have its callers" "$(percent "$right" "$all")" '>=' 80
	diag "$(whole "$T/tsv")"
	marked=$(total "$T/tsv" '(^|;)jit_leaf@.*;\[[^;]*\]@$')
	is "$leaf: all others have a mark" $((right + marked)) "$all"
done
plan
