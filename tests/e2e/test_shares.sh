#!/bin/bash
# Two functions that use 70 % and 30 % of the time of a program at depth 30 have these
# shares in its profile, with the whole stack, in the right file.
. "$(dirname "$0")/lib.sh"
prog=$E2E/prog_shares
out=$T/shares.pb.gz

# Of some 5,980 samples a share varies by less than 0.6 points, even if they were
# independent draws, and the 3 points allowed are five times that. With 50:50, or with
# every fifth sample lost on one side, it fails.
record "$out" -F 997 -- "$prog" 6
is "record passes the exit status on" $? 0
check_profile "$out"

pprof -top -nodecount=1000 "$out" >"$T/top"
share() { # flat is column 2, cumulative column 5
	awk -v name="$1" -v col="$2" '$NF == name && $(col) ~ /%$/ {
		sub(/%/, "", $(col)); print $(col) }' "$T/top"
}
heavy=$(share heavy_leaf 2)
light=$(share light_leaf 2)
num "the heavy function has at least 67 %" "$heavy" '>=' 67
num "the heavy function has at most 73 %" "$heavy" '<=' 73
num "the light function has at least 27 %" "$light" '>=' 27
num "the light function has at most 33 %" "$light" '<=' 33
num "main is in at least 99 % of the samples" "$(share main 5)" '>=' 99
diag "$(grep "^heavy" "$out.log"), profile: heavy $heavy % light $light %"

samples "$out" >"$T/all"
awk -F '\t' '$7 ~ /prog_shares$/' "$T/all" >"$T/own"
taken=$(total "$T/own")
# 6 s x 997 Hz. Ticks that a hypervisor drops are missing. A program that has a CPU to
# itself cannot have more; one that shares it is sampled at random, with a standard
# deviation of at most 77 samples: five of them are allowed.
num "samples for nearly all of six seconds" "$taken" '>=' 5100
num "no more samples than seconds" "$taken" '<=' 6367

whole="(^|;)(heavy|light)_leaf@[^;]*prog_shares"
for level in $(seq 29 -1 2); do
	whole+=$(printf ';f%02d@[^;]*prog_shares' "$level")
done
whole+=";main@[^;]*prog_shares"
num "99 % of them have all of the thirty levels, in order" \
	"$(percent "$(total "$T/own" "$whole")" "$taken")" '>=' 99

like "its mapping has the file and the build id" "$(mappings "$out")" \
	"$prog $(build_id "$prog")"
# mapping[0] is what tools show as "File:".
is "the main binary is the first mapping" \
	"$(mappings "$out" | head -n 1)" "$prog $(build_id "$prog")"
plan
