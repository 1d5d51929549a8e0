#!/bin/bash
# --wait: why programs do not run, and for how long, as go tool pprof reads it.
. "$(dirname "$0")/lib.sh"

# waits FILE TYPE PID: nanoseconds of a sample type, of a process.
waits() {
	pprof -top -unit=ns -nodecount=1000 -sample_index="$2" -tagfocus="pid=$3" "$1" |
		awk '/^ *flat/ { rows = 1; next }
			rows { sub(/ns$/, "", $1); sum += $1 } END { printf "%.0f\n", sum }'
}
# tags FILE TYPE PID LABEL: its values.
tags() {
	pprof -tags -sample_index="$2" -tagfocus="pid=$3" "$1" |
		awk -v key="$4:" '$1 == key { on = 1; next }
			/^ *[a-z_]+: / { on = 0 }
			on { sub(/.*: */, ""); print }'
}

# --- record ---
f=$T/rec.pb.gz
cat >"$T/load.sh" <<'LOAD'
sleep 0.3 &
echo $! >"$1/sleep"
echo $$ >"$1/shell"
wait $!
mkfifo "$1/fifo"
(sleep 0.2; echo >"$1/fifo") &
read -r line <"$1/fifo"
head -c 1 < <(sleep 0.2; echo x) >"$1/out"
LOAD
record "$f" --wait -- bash "$T/load.sh" "$T"
is "profd record --wait" $? 0
w=$T/rec.wait.pb.gz
check "the profile of CPU time is as ever" "$E2E/pprof_check" "$f"
check "beside it is one of waits" test -s "$w"
like "a line names it" "$(cat "$f.log")" "waits, $w"
sleeper=$(cat "$T/sleep") shell=$(cat "$T/shell")
num "sleep 0.3 waited for 0.3 s" "$(waits "$w" wait "$sleeper")" ">=" 300000000
like "for a time" "$(pprof -top -sample_index=wait -tagfocus="pid=$sleeper" "$w")" \
	'\[wait sleep\]'
like "in clock_nanosleep" "$(tags "$w" wait "$sleeper" syscall)" clock_nanosleep
num "the shell waited for it" "$(waits "$w" wait "$shell")" ">=" 290000000
like "for a child" "$(tags "$w" wait "$shell" reason)" child
num "it was on a CPU" "$(waits "$w" running "$shell")" ">" 0
num "it was in the run queue" "$(waits "$w" runqueue "$shell")" ">" 0
num "CPU time is the kernel's" \
	"$(pprof -top -unit=ns -sample_index=running -tagfocus="pid=$shell" "$w" |
		awk '$NF == "[cpu]" { sub(/ns$/, "", $1); print $1 }')" ">" 0
like "other processes are not recorded" \
	"$(pprof -tags -sample_index=wait "$w" | grep -c '^ *comm: Total')" '^[01]$'
is "of profd itself nothing" "$(pprof -tags "$w" | grep -c ': profd$')" 0

# --- stacks ---
# Three functions wait at one place for 1, 2 and 4 ms, from frames of equal size.
record "$T/sites.pb.gz" --wait -- "$E2E/prog_waits" 100
is "profd record --wait of three callers" $? 0
w=$T/sites.wait.pb.gz
"$PROFD" report --format folded --sample-type wait "$w" >"$T/folded"
is "the stack of each leads from main to the reason" "$(grep -c -E \
	';main;waits_(one|two|three);waits_middle;waits_leaf;.*nanosleep;\[wait sleep\] ' \
	"$T/folded")" 3
for caller in one:1 two:2 three:4; do
	ns=$(pprof -top -unit=ns -nodecount=1000 -sample_index=wait \
		-focus="^waits_${caller%:*}\$" "$w" |
		awk '/^ *flat/ { rows = 1; next }
			rows { sub(/ns$/, "", $1); sum += $1 } END { printf "%d\n", sum }')
	num "waits_${caller%:*} waited 100 times" "$ns" ">=" $((${caller#*:} * 100000000))
	echo "# waits_${caller%:*}: $ns ns"
done
# The window begins before the exec, inside which there is no stack.
is "each stack is there" "$(pprof -traces -sample_index=waits -tagignore='syscall=execve' "$w" |
	grep -c 'wait site not copied')" 0

# Another user's threads wait at a new site each time; each of these sites is found first.
cat >"$T/both" <<END
#!/bin/bash
setpriv --reuid 65534 --regid 65534 --clear-groups "$E2E/prog_waits" storm &
sleep 1
"$E2E/prog_waits" 100
kill -KILL %1
END
chmod +x "$T/both"
record "$T/storm.pb.gz" --wait -- "$T/both"
is "profd record --wait beside a storm of sites" $? 0
w=$T/storm.wait.pb.gz
"$PROFD" report --format folded --sample-type waits "$w" >"$T/folded"
for caller in one two three; do
	is "waits_$caller has all of its waits beside it" "$(awk -v f=";waits_$caller;" \
		'index($0, f) { n += $NF } END { print n + 0 }' "$T/folded")" 100
done
num "sites of the storm are copied" "$(grep -c ';storm_[lr]' "$T/folded")" '>' 200
num "... and most of its waits are without one" "$(awk '/wait site not copied/ {
	without += $NF } /;storm_[lr]/ { with += $NF } END { print without / with }' \
	"$T/folded")" '>' 1

# --- run ---
background sleep 600
idle=$pid
start_profd waits --wait --window 3600
fetch() { curl -sS -f -o "$1" "$url/debug/pprof/wait?seconds=1"; }
check "a profile of the next second" fetch "$T/next.pb.gz"

is "what sleeps all the time sleeps for exactly that second" \
	"$(waits "$T/next.pb.gz" wait "$idle")" 1000000000
# Its stack is copied from outside, within some ticks.
for ((i = 0; i < 20; i++)); do
	fetch "$T/open.pb.gz"
	pprof -traces -sample_index=wait -tagfocus="pid=$idle" "$T/open.pb.gz" >"$T/traces"
	grep -q nanosleep "$T/traces" && break
done
like "that began before profd, and has its stack all the same" "$(cat "$T/traces")" nanosleep
is "that wait has not ended" "$(waits "$T/next.pb.gz" waits "$idle")" 0
pprof -top -sample_index=wait "$url/debug/pprof/wait?seconds=1" >"$T/top"
is "go tool pprof fetches it" $? 0
like "with reasons" "$(cat "$T/top")" '\[wait (poll|sleep)\]'
num "time is counted" "$(metric profd_waiting_wait_seconds_total)" ">" 1
is "no sum was refused" "$(metric profd_waiting_refused_total)" 0
like "profd status has it" "$("$PROFD" status --server "unix:$sock")" 'waiting +[0-9.]+ s, run queue'
stop_profd
is "profd ends" $? 0
cpu=$(find "$archive" -name 'cpu-*.pb.gz')
check "its archive has the profile of CPU time as ever" "$E2E/pprof_check" "$cpu"
w=${cpu%/*}/wait-${cpu##*/cpu-}
check "... and the waits of the same time beside it" test -s "$w"
is "... by the same name and no other" "$(find "$archive" -name 'wait-*.pb.gz')" "$w"
check "... with a side file of the long ones" test -s "${w%.pb.gz}.times.zst"
is "... and nothing else" "$(find "$archive" -name "*-*s.*" | wc -l)" 4
length() { jq -r '(.end_boot_ns | tonumber) - (.begin_boot_ns | tonumber)' "$T/window"; }
"$PROFD" windows --archive "$archive" --json >"$T/window"
is "profd windows has their size" "$(jq .wait_bytes "$T/window")" "$(stat -c %s "$w")"
is "... and that of the side files" "$(jq .times_bytes "$T/window")" \
	"$(cat "${cpu%.pb.gz}.times.zst" "${w%.pb.gz}.times.zst" | wc -c)"
is "... in the bytes of the window" "$(jq .bytes "$T/window")" \
	"$(cat "$cpu" "$w" | wc -c)"
is "what sleeps all the time sleeps for the window, to the nanosecond" \
	"$(waits "$w" wait "$idle")" "$(length)"

# --- without ---
start_profd without --window 3600
like "without --wait it says so" \
	"$(curl -sS "$url/debug/pprof/wait?seconds=1")" 'without --wait'
stop_profd
"$PROFD" record --wait --source perf -o "$T/perf.pb.gz" -- true 2>"$T/perf.err"
is "perf events cannot do it" $? 1
like "and profd says so" "$(cat "$T/perf.err")" '--wait needs BPF'
plan
