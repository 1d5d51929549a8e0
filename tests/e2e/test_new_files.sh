#!/bin/bash
# A hundred new programs a second, each of which runs for some milliseconds and is
# deleted at once, of a user without privilege: their stacks are complete with names,
# because the file is opened when it is executed. A file that was missed is reported as
# gone, not as without unwind information.
. "$(dirname "$0")/lib.sh"
chmod 755 "$T"
mkdir -m 777 "$T/new"
seconds=3
new_files() {
	setpriv --reuid 65534 --regid 65534 --clear-groups "$E2E/prog_new" "$@"
}

start_profd new -F 997
is "files are held back from nobody" "$(metric profd_pm_early_refused_total)" 0
before=$(cpu_ns "$profd")
curl -sS --max-time 60 --unix-socket "$sock" -o "$T/new.pb.gz" \
	"http://profd/debug/pprof/profile?seconds=$((seconds + 2))" &
fetch=$!
started+=("$fetch")
sleep 0.5
for i in 1 2; do
	new_files 50 $seconds 10 "$T/new" >"$T/n$i" &
	started+=($!)
	pids[i]=$!
done
wait "${pids[1]}" "${pids[2]}" "$fetch"
n=$(($(cat "$T/n1") + $(cat "$T/n2")))
cpu=$(percent $(($(cpu_ns "$profd") - before)) $((seconds * 1000000000)))

samples "$T/new.pb.gz" >"$T/all"
# The loops themselves are one of the files, and not new.
awk -F '\t' '$7 ~ /\/new[0-9]+-[0-9]+$/' "$T/all" >"$T/own"
whole "$T/own" >"$T/ends"
all=$(($(ending "$T/ends" whole) + $(ending "$T/ends" part) + $(ending "$T/ends" late)))
named=$(awk -F '\t' '$10 ~ /(^|;)new_inner@.*;new_outer@.*;main@.*;_start@[^;]*$/ {
	n += $1 } END { print n + 0 }' "$T/own")
inner=$(awk -F '\t' '$10 ~ /(new_inner|\/new[0-9]+-[0-9]+(\+0x[0-9a-f]+)?)@?/ &&
	$10 !~ /^\[kernel/ { n += $1 } END { print n + 0 }' "$T/own")
diag "$n new files, $all samples in user code, $named named down to _start" \
	"($inner in the program); profd used $cpu % of a CPU"
diag "$(tr '\t\n' ' ,' <"$T/ends")"
diag "$(ask /metrics | grep -E '^profd_(pm_early|lifecycle_unwoken|pm_open)' | tr '\n' ' ')"
num "enough files" "$n" '>=' $((seconds * 40))
num "enough samples to tell" "$all" '>=' $((n * 3))
fine "$(ending "$T/ends" whole)" "$all" 97
result $? "97 % of the stacks are whole" || diag "$(cut -f 10 "$T/own" |
	sort | uniq -c | sort -rn | head -30)"
is "nothing is said to lack unwind information" \
	"$(total "$T/own" 'no unwind info: new')" 0
stop_profd
plan
