#!/bin/bash
# Code without unwind rows that is interrupted before its frame is set up, after it was
# left, or that has none: its caller is not left out.
. "$(dirname "$0")/lib.sh"

for leaf in frame moved none; do
	record "$T/$leaf.pb.gz" -F 1999 -- "$E2E/stacks/calls" $leaf 500
	samples "$T/$leaf.pb.gz" >"$T/tsv"
	rm -f "/tmp/perf-$(awk -F '\t' '/jit_leaf@/ { print $3; exit }' "$T/tsv").map"
	all=$(total "$T/tsv" '(^|;)jit_leaf@')
	num "$leaf: the leaf has samples" "$all" '>=' 100
	right=$(total "$T/tsv" '(^|;)jit_leaf@[^;]*;jit_loop@[^;]*;main@.*;_start@[^;]*$')
	fine "$right" "$all" 99
	result $? "$leaf: they have its callers" || diag "$(whole "$T/tsv")"
	marked=$(total "$T/tsv" '(^|;)jit_leaf@.*;\[[^;]*\]@$')
	is "$leaf: all others have a mark" $((right + marked)) "$all"
done
plan
