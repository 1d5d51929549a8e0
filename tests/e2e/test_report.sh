#!/bin/bash
# profd report: its tables equal those of `go tool pprof -top` to the last digit, its
# exports are accepted by others, filters take the samples that they name, and errors
# name the file.
. "$(dirname "$0")/lib.sh"

cat >"$T/load.sh" <<'END'
for i in 1 2 3 4 5 6; do
	gcc -O2 -g -c -o /dev/null "$1/prog_spin.c" -I"$1/../.." -DNAME=x 2>/dev/null
	find /usr/share/doc -name '*.gz' >/dev/null
done
"$2" 200 >/dev/null
END
record "$T/in.pb.gz" -F 499 -- bash "$T/load.sh" "$E2E_SRC" "$E2E/prog_spin_a"
is "recorded" $? 0
report() { "$PROFD" report "$@" 2>"$T/err"; }
# Rows from the one with "flat%" on, as they are.
rows() { sed -n '/^ *flat  flat%/,/^$/p' | sed '/^$/d; s/ *$//'; }

same() {
	local name=$1 ours=$2 theirs=$3
	# shellcheck disable=SC2086
	report $ours "$T/in.pb.gz" | rows >"$T/ours"
	# shellcheck disable=SC2086
	pprof -top $theirs "$T/in.pb.gz" | rows >"$T/theirs"
	num "$name: rows" "$(wc -l <"$T/ours")" '>=' 3
	check "$name: as go tool pprof has them" diff "$T/ours" "$T/theirs"
}
same "functions" "--rows function -n 40" "-nodecount=40"
same "functions by cum" "--rows function --sort cum -n 60" "-cum -nodecount=60"
same "lines" "--rows line -n 40" "-lines -nodecount=40"
same "samples" "--rows function --sample-type samples -n 30" \
	"-sample_index=samples -nodecount=30"

# --- text ---
report "$T/in.pb.gz" >"$T/text"
is "no messages" "$(cat "$T/err")" ""
like "the head has the total" "$(head -n 12 "$T/text")" $'\nTotal: [0-9.]+m?s'
num "the table, then the tree" "$(wc -l <"$T/text")" '>' 30
like "the tree begins with a caller" "$(report --tree "$T/in.pb.gz" | sed -n 2p)" \
	'^ +[0-9.]+m?s +[0-9.]+% +0  [_a-z]'
# pprof has several rows of a file whose path is written in different ways.
is "files: all samples" "$(report --json --rows file "$T/in.pb.gz" |
	jq -s '(map(.flat) | add) == .[0].total')" true
report --tree --by comm "$T/in.pb.gz" >"$T/tree"
like "labels below the root" "$(cat "$T/tree")" $'\n +[0-9.]+m?s +[0-9.]+% +[0-9.]+m?s?  +cc1\n'
is "rows of a label" "$(report --rows comm "$T/in.pb.gz" |
	awk '$6 ~ /^(cc1|find|prog_spin_a)$/ { print $6 }' | sort | tr '\n' ' ')" \
	"cc1 find prog_spin_a "
is "JSON" "$(report --json --rows comm "$T/in.pb.gz" | jq -s 'map(.flat) | add')" \
	"$(samples "$T/in.pb.gz" | awk -F '\t' '{ n += $2 } END { printf "%d", n }')"

# --- filters ---
sum() {
	report "$@" --sample-type samples --rows comm --json "$T/in.pb.gz" |
		jq -s 'map(.flat) | add // 0'
}
truth() {
	samples "$T/in.pb.gz" | awk -F '\t' "$1"' { n += $1 } END { print n + 0 }'
}
is "--comm" "$(sum --comm cc1)" "$(truth '$5 == "cc1"')"
is "--comm twice, a pattern" "$(sum --comm cc1 --comm 'fi?d')" \
	"$(truth '$5 == "cc1" || $5 == "find"')"
is "--not-comm twice" "$(sum --not-comm cc1 --not-comm find)" \
	"$(truth '$5 != "cc1" && $5 != "find"')"
is "--comm and --exe" "$(sum --comm 'c*' --exe cc1)" \
	"$(truth '$5 ~ /^c/ && $7 ~ /\/cc1$/')"
is "nobody" "$(sum --comm nobody)" 0
pid=$(samples "$T/in.pb.gz" | awk -F '\t' '$5 == "prog_spin_a" { print $3; exit }')
is "--pid" "$(sum --pid "$pid")" "$(truth "\$3 == $pid")"

# --- exports ---
report --format pprof -o "$T/out.pb.gz" "$T/in.pb.gz"
check_profile "$T/out.pb.gz"
pprof -top "$T/in.pb.gz" | rows >"$T/theirs"
check "pprof: the same profile" diff <(pprof -top "$T/out.pb.gz" | rows) "$T/theirs"
report --format pprof "$T/in.pb.gz" "$T/in.pb.gz" >"$T/two.pb.gz"
is "two are added" "$(samples "$T/two.pb.gz" | awk -F '\t' '{ n += $1 } END { print n }')" \
	$((2 * $(truth 1)))
is "one is subtracted" "$(report --base "$T/in.pb.gz" --sample-type samples --json \
	--rows comm "$T/two.pb.gz" | jq -s 'map(.flat) | add')" "$(truth 1)"
is "folded: each sample" "$(report --format folded --sample-type samples "$T/in.pb.gz" |
	awk '{ n += $NF } END { print n }')" "$(truth 1)"
like "folded: root first" "$(report --format folded "$T/in.pb.gz" | grep spin_a)" \
	'_start;__libc_start_main[^;]*;__libc_start_call_main;main;middle_a;spin_a [0-9]+'
report --format speedscope -o "$T/out.json" "$T/in.pb.gz"
is "speedscope: each sample" "$(jq '.profiles[0] | .weights | add' "$T/out.json")" \
	"$(truth 1)"
check "speedscope: frames exist" jq -e '(.shared.frames | length) as $n |
	[.profiles[].samples[][]] | max < $n' "$T/out.json"

# --- errors ---
report "$T/none" >"$T/out"
is "a missing file: 1" $? 1
like "... is named" "$(cat "$T/err")" "$T/none: No such file"
echo garbage >"$T/garbage"
report "$T/in.pb.gz" "$T/garbage" >"$T/out"
is "garbage: 1" $? 1
like "... is named" "$(cat "$T/err")" "$T/garbage: not a profile"
head -c 3000 "$T/in.pb.gz" >"$T/half"
report "$T/half" >"$T/out"
is "half a file: 1" $? 1
report --sample-type waits "$T/in.pb.gz" >"$T/out"
like "an unknown type: those there are" "$(cat "$T/err")" "'waits'; there are: samples, cpu"
report --pid x "$T/in.pb.gz" >"$T/out"
is "a pid that is none: 2" $? 2
report -o "$T/x" "$T/in.pb.gz" >"$T/out"
is "-o without --format: 2" $? 2
report --format folded -o "$T/garbage" "$T/in.pb.gz"
is "a file that exists: 1" $? 1
like "... is not replaced" "$(cat "$T/err" "$T/garbage")" '--force.*garbage'
report --force --format folded -o "$T/garbage" "$T/in.pb.gz"
is "... but with --force" $? 0
report --server "unix:$T/none" >"$T/out"
is "without a file, and without a profd: 1" $? 1
plan
