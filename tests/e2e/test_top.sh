#!/bin/bash
# profd top: its tables equal those of `go tool pprof -top`; on a terminal, keys, sizes
# and ends (top_screen.py); live, printed, it knows the processes of a running profd.
. "$(dirname "$0")/lib.sh"
PYTHON=/usr/bin/python3

has_terminals || bail "there are terminals"
cat >"$T/load.sh" <<'END'
cp "$2" "$3/$(printf '\033]0;x\007')"
cp "$2" "$3/日本語のプログラム"
cp "$2" "$3/$(printf '\342\200\256rtl')"
for i in "$3"/*; do "$i" 150; done >/dev/null
for i in 1 2; do
	gcc -O2 -g -c -o /dev/null "$1/prog_spin.c" -I"$1/../.." -DNAME=x 2>/dev/null
done
END
mkdir "$T/names"
record "$T/in.pb.gz" -F 499 -- bash "$T/load.sh" "$E2E_SRC" "$E2E/prog_spin_a" "$T/names"
is "recorded" $? 0
top() { "$PROFD" top "$@" 2>"$T/err"; }
rows() { sed -n '/^ *flat  flat%/,/^$/p' | sed '/^$/d; s/ *$//'; }

same() {
	local name=$1 ours=$2 theirs=$3
	# shellcheck disable=SC2086
	top $ours "$T/in.pb.gz" | rows >"$T/ours"
	# shellcheck disable=SC2086
	pprof -top $theirs "$T/in.pb.gz" | rows >"$T/theirs"
	num "$name: rows" "$(wc -l <"$T/ours")" '>=' 3
	check "$name: as go tool pprof has them" diff "$T/ours" "$T/theirs"
}
same "functions" "--count 40" "-nodecount=40"
same "functions by cum" "--sort cum --count 60" "-cum -nodecount=60"
same "lines" "--rows line --count 40" "-lines -nodecount=40"
same "samples" "--sample-type samples --count 30" "-sample_index=samples -nodecount=30"
is "a pipe: printed" "$(top "$T/in.pb.gz" | rows | wc -l)" 21
like "processes with their names" "$(top --rows process "$T/in.pb.gz")" \
	$'%  [0-9]+-[0-9a-f]+  cc1\n'
is "no escape sequences in a pipe" "$(top --rows comm "$T/in.pb.gz" | grep -c $'\033\|\a')" 0

# --- errors ---
top "$T/none" >"$T/out"
is "a missing file: 1" $? 1
like "... is named" "$(cat "$T/err")" "$T/none: No such file"
top --last 5m "$T/in.pb.gz" >"$T/out"
is "a file of a time: 2" $? 2
top --rows comm --sample-type waits "$T/in.pb.gz" >"$T/out"
like "an unknown type: those there are" "$(cat "$T/err")" "'waits'; there are: samples, cpu"
top --server "unix:$T/none" >"$T/out"
is "no profd: 1" $? 1
like "... what to do" "$(cat "$T/err")" 'is profd running there.*profd run'

# --- live ---
# Of $parent, which uses little CPU time itself.
sums() { awk -v pid="$parent" '$1 == pid && $4 + 0 > 2 * $2 { print "yes" }' "$T/out"; }
start_profd top --window 1h
# A quarter of a CPU.
background nice -n -20 bash -c '"$1" 600000 naps 30 >/dev/null; :' parent "$E2E/prog_spin_a"
parent=$pid
top --server "unix:$sock" -d 1 -n 2 >"$T/out"
is "printed twice: 0" $? 0
is "... with two headings" "$(grep -c 'flat  flat%' "$T/out")" 2
top --server "unix:$sock" -d 2 --rows process --count 100000 >"$T/out"
like "a process with state, CPU time and coverage" "$(cat "$T/out")" \
	$'\n +[0-9]+ +[0-9.]+m?s [^\n]* alive +[0-9.]+m?s +[0-9]+%[^ ]+%  [^\n]*prog_spin_a 600000'
top --server "unix:$sock" -d 2 --rows process --sort cum --count 100000 >"$T/out"
is "... counted in its parent's sum" "$(sums)" yes
background bash -c 'while :; do nice -n -20 "$1" 20 >/dev/null; sleep 0.2; done' parent "$E2E/prog_spin_a"
parent=$pid
# On a busy machine few of them run in three seconds.
for seconds in 3 10 30; do
	top --server "unix:$sock" -d $seconds --rows process --sort cum --count 100000 \
		>"$T/out"
	(($(grep -c 'exit 0 .*prog_spin_a 20$' "$T/out") <= 2)) || break
done
like "processes that have ended" "$(grep 'prog_spin_a 20$' "$T/out" | head -n 1)" \
	'exit 0 +[0-9.]+ms +.*prog_spin_a 20$'
children=$(grep -c 'exit 0 .*prog_spin_a 20$' "$T/out")
num "... several" "$children" '>' 2
is "... are in the sum of their parent" "$(sums)" yes
top --server "$url" -d 1 --rows process >"$T/out"
is "over TCP, without a token: 0" $? 0
top --server "unix:$sock" -d 1 --rows comm --comm prog_spin_a >"$T/out"
is "terms choose among the samples" "$(rows <"$T/out" | awk 'NR > 1 { print $6 }')" \
	prog_spin_a

while read -r status name; do
	if [[ $status == '#' ]]; then
		diag "$name"
	else
		result "$status" "$name"
	fi
done < <("$PYTHON" "$E2E_SRC/top_screen.py" "$PROFD" "$T/in.pb.gz" "$T/in.pb.gz" \
	"$sock" "$profd" 2>&1 || echo "1 top_screen.py ends well")
plan
