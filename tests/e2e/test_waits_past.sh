#!/bin/bash
# Waits in the archive, in queries, and as wall time: go tool pprof and profd read the same.
. "$(dirname "$0")/lib.sh"

# sum FILE TYPE PID: nanoseconds of a sample type, of a process. Each file is read once.
mkdir "$T/sums"
sum() {
	local sums=$T/sums/${1##*/}
	[[ -e $sums ]] || pprof -raw "$1" | awk '
		/^Samples:/ { getline; gsub(/\[dflt\]/, ""); n = split($0, types, " ") }
		/^Locations/ { exit }
		/^ *[0-9]+[ :]/ { for (i = 1; i <= n; i++) value[i] = $i + 0 }
		match(" " $0, / pid:\[[0-9]+\]/) {
			pid = substr(" " $0, RSTART + 6, RLENGTH - 7)
			for (i = 1; i <= n; i++)
				sum[types[i] " " pid] += value[i]
		}
		END { for (i in sum) printf "%s %.0f\n", i, sum[i] }' >"$sums"
	awk -v key="$2/nanoseconds $3" '$1 " " $2 == key { n = $3 } END { printf "%.0f\n", n }' "$sums"
}
# frames FILE PID: the names of its functions.
frames() {
	pprof -top -nodecount=50000 -nodefraction=0 -tagfocus="pid=$2" "$1" |
		awk '/^ *flat/ { rows = 1; next } rows { print substr($0, index($0, $6)) }'
}
# span FILE...: the nanoseconds that the windows of these profiles cover.
span() {
	"$PROFD" windows --archive "$archive" --json |
		jq -s 'map((.end_boot_ns | tonumber) - (.begin_boot_ns | tonumber)) | add'
}
get() { "$PROFD" fetch --server "unix:$sock" -q "$@"; }
report() { "$PROFD" report --archive "$archive" "$@" 2>"$T/err"; }

background sleep 600
idle=$pid
background sh -c 'while :; do :; done'
busy=$pid
start_profd waits --wait --window 2

# --- live ---
for type in wait runqueue wall; do
	check "a live profile of type $type" get --type $type -d 1 -o "$T/live.$type.pb.gz"
	is "... which go tool pprof opens, of that type" \
		"$(pprof -top "$T/live.$type.pb.gz" | sed -n 's/^Type: //p')" $type
done
is "what sleeps waits for exactly that second" "$(sum "$T/live.wait.pb.gz" wait "$idle")" 1000000000
is "... which is its wall time, too" "$(sum "$T/live.wall.pb.gz" wall "$idle")" 1000000000
is "... and none of it in the run queue" "$(sum "$T/live.runqueue.pb.gz" runqueue "$idle")" 0
like "labels of servers are left out of a scrape" \
	"$(curl -sS -f "$url/debug/pprof/profile?seconds=1&type=wall&labels=comm" >"$T/comm" &&
		pprof -tags "$T/comm" | awk '/^ *[a-z_]+: Total/ { print $1 }' | sort -u | tr '\n' ' ')" \
	'^comm: $'
like "of one process only" \
	"$(get --type wall -d 1 --pid "$idle" -o "$T/one.pb.gz" && pprof -tags "$T/one.pb.gz" |
		awk '$1 == "pid:" { on = 1; next } /^ *[a-z_]+: T/ { on = 0 } on { print $NF }')" \
	"^$idle\$"

# --- past, of the running profd ---
sleep 1
check "a profile of the past of wall time" get --type wall --last 3s -o "$T/past.pb.gz"
is "... is one" "$(pprof -top "$T/past.pb.gz" | sed -n 's/^Type: //p')" wall
like "... and tells that windows were taken whole" "$(comments "$T/past.pb.gz")" \
	'windows taken whole, because their times are missing: [1-9]'
is "the URL knows the same" "$(curl -sS -o "$T/url" -w '%{http_code}' --unix-socket "$sock" \
	"http://h/api/profile?last=3s&type=wait")" 200
is "... by the same type" "$(pprof -top "$T/url" | sed -n 's/^Type: //p')" wait
for path in "api/profile?last=1m&type=waits" "debug/pprof/profile?seconds=1&type=waits"; do
	is "a wrong type is refused by name: $path" \
		"$(curl -sS --unix-socket "$sock" "http://h/$path")" \
		'type: one of cpu wait runqueue wall, not "waits"'
done
like "a type is none of /debug/pprof/wait" \
	"$(curl -sS --unix-socket "$sock" "http://h/debug/pprof/wait?seconds=1&type=wait")" \
	'type: no such parameter'
like "waits are not of threads" \
	"$(curl -sS --unix-socket "$sock" "http://h/debug/pprof/profile?seconds=1&type=wall&tid=1")" \
	'tid: only of type cpu'
stop_profd
is "profd ends" $? 0
end_group "$busy"

# --- the archive ---
all=$(span)
for type in wait runqueue wall; do
	report --type $type --format pprof -o "$T/$type.pb.gz"
	is "report --type $type of the archive" $? 0
	check "... is a profile" pprof -raw -output "$T/raw" "$T/$type.pb.gz"
done
is "what sleeps waits for all of the windows, to the nanosecond" \
	"$(sum "$T/wait.pb.gz" wait "$idle")" "$all"
is "... which is its wall time, too" "$(sum "$T/wall.pb.gz" wall "$idle")" "$all"
mapfile -t waits < <(find "$archive" -name 'wait-*.pb.gz')
"$PROFD" report --format pprof -o "$T/all.pb.gz" "${waits[@]}"
account=$(for type in wait runqueue running; do sum "$T/all.pb.gz" $type "$busy"; done |
	awk '{ n += $1 } END { printf "%.0f\n", n }')
is "wall time of a thread that runs is all of its account, to the nanosecond" \
	"$(sum "$T/wall.pb.gz" wall "$busy")" "$account"
is "... with samples for its CPU time" "$(frames "$T/wall.pb.gz" "$busy" | grep -c '^\[cpu')" 0
# Each window by itself: what runs all the time is cut at its end, too.
"$PROFD" windows --archive "$archive" --json |
	jq -r '"\(.file) \((.end_boot_ns | tonumber) - (.begin_boot_ns | tonumber))"' >"$T/windows"
while read -r name ns; do
	w=$(find "$archive" -name "wait-${name##*/cpu-}*")
	is "what sleeps waits for exactly the window $name" "$(sum "$w" wait "$idle")" "$ns"
	account=$(for type in wait runqueue running; do sum "$w" $type "$busy"; done |
		awk '{ n += $1 } END { printf "%.0f\n", n }')
	num "... and the account of what runs is not less" "$account" ">=" "$ns"
	num "... and hardly more" "$account" "<" $((ns + ns / 200))
done <"$T/windows"
num "there are several" "$(wc -l <"$T/windows")" ">=" 3
report --type wall --all --rows pid --pid "$idle" >"$T/rows"
like "by label" "$(tail -n 1 "$T/rows")" " $idle\$"
report --type waits >"$T/out"
is "a wrong type is an error" $? 2
like "... that names it" "$(cat "$T/err")" "--type 'waits': must be one of cpu wait runqueue wall"
report --type wall --tid 1 >"$T/out"
is "threads are none of wall time" $? 2
like "... by name" "$(cat "$T/err")" '--tid: not with --type wall'

# --- files, without their waits, and without a window's ---
cpu=$(find "$archive" -name 'cpu-*.pb.gz' | sort | sed -n 2p)
waits=${cpu%/*}/wait-${cpu##*/cpu-}
check "wall time of two files" "$PROFD" report --type wall "$cpu" "$waits"
"$PROFD" report --type wall "$cpu" >"$T/out" 2>"$T/err"
is "... of one" $? 1
like "... says what is missing" "$(cat "$T/err")" 'no FILE has waits'
check "an export has the waits" "$PROFD" export -q --archive "$archive" "$T/export"
is "... of each window" "$(find "$T/export" -name 'wait-*' | wc -l)" \
	"$(find "$archive" -name 'wait-*' | wc -l)"
rm "$waits"
report --type wait >"$T/out"
is "without one of them the others are there" $? 0
like "... and it says so" "$(cat "$T/err")" '1 of [0-9]+ windows have no waits, and are left out'
like "... in the profile, too" "$(cat "$T/out")" 'windows without waits, left out: 1'
find "$archive" -name 'wait-*' -delete
report --type wait >"$T/out"
is "without all of them there is none" $? 1
like "... and it says why" "$(cat "$T/err")" 'have no waits: profd was started without --wait'
check "CPU time is as ever" report
plan
