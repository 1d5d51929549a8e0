#!/bin/bash
# BPF programs that are loaded and unloaded while they are sampled: each sample has the
# name of the program that ran, also where another one was at its address before.
. "$(dirname "$0")/lib.sh"
turns=8 ms=150 hz=997

record "$T/bpf.pb.gz" -F $hz -- "$E2E/prog_bpf" $turns $ms
is "recorded" $? 0
samples "$T/bpf.pb.gz" >"$T/samples"
# The time is that of prog_bpf, system calls included: a tenth less is allowed, and five
# standard deviations.
for ((i = 0; i < turns; i++)); do
	num "program $i has its samples" "$(total "$T/samples" \
		"^bpf_prog_[0-9a-f]+_turn_$i@")" '>=' 75
	num "program $i has no others'" "$(total "$T/samples" \
		"^bpf_prog_[0-9a-f]+_turn_$i@")" '<=' 215
done
is "no BPF program is without a name" \
	"$(total "$T/samples" '^\[kernel\][+]0x[^;]*;bpf_test_run')" 0
# What they are called when they are there, and by which tag.
is "eight tags" "$(grep -o 'bpf_prog_[0-9a-f]*_turn_[0-9]*' "$T/samples" |
	sort -u | wc -l)" $turns
check_profile "$T/bpf.pb.gz"
plan
