#!/bin/bash
# Profiles of the past: spans exact to 10 ms against an independent reader, every sample
# once however often the archive is asked meanwhile, the last 200 ms of a process that
# crashed, bad requests, and an archive without a running profd.
. "$(dirname "$0")/lib.sh"

sum() { jq -s 'map(.flat) | add // 0'; }
# count OPTIONS...: samples, of the running profd; past: of the directory.
report() { "$PROFD" report --sample-type samples --json "$@" 2>"$T/err"; }
count() { report --rows comm --server "unix:$sock" "$@" | sum; }
past() { report --rows comm --archive "$archive" "$@" | sum; }
moment() { date +%s.%N; }
# sound NAME: the strict checker, less this: a file whose frames without a name are of
# another time or process has none in this profile.
sound() {
	is "strict checker accepts $1.pb.gz" "$("$E2E/pprof_check" "$T/$1.pb.gz" 2>&1 |
		grep -vE ': (ok|has_functions is not set)$')" ""
}
status() { # PATH
	curl -s -o "$T/body" -w '%{http_code}' --max-time 60 --unix-socket "$sock" \
		"http://profd$1"
}

start_profd past --window 3
begin=$(moment) started_at=$SECONDS
# A quarter of a CPU.
background nice -n -20 "$E2E/prog_spin_a" 60000 naps 30
spin=$pid
sleep 1.5
# --- the answer has what happened a moment ago, before its window is at its end ---
middle=$(moment)
used "$spin" 500
num "samples until now" "$(count --from "$middle" --comm prog_spin_a)" '>=' 25
# --- a process that crashes: its last 200 ms ---
ago() { awk -v t="$died" -v s="$1" 'BEGIN { printf "%.3f\n", t - s }'; }
crashes() {
	background nice -n -20 "$E2E/prog_spin_b" 60000
	crash=$pid
	used "$crash" 300
	died=$(moment) # or later: by some milliseconds, on a busy host more
	kill -SEGV "$crash"
	wait "$crash" 2>/dev/null
	n=$(count --from "$(ago 0.2)" --to "$(ago -0.1)" --pid "$crash")
	((n >= 1)) # if it had a CPU then
}
wait_for 60 crashes
num "the last 200 ms before a crash: not more samples" "$n" '<=' 32
num "... nor none" "$n" '>=' 1
# --- the next seconds, of certain processes ---
"$PROFD" fetch --server "unix:$sock" -d 1 --comm 'prog_spin_?' --not-pid 1 \
	-o "$T/live.pb.gz" 2>"$T/err"
is "fetch of certain processes from now on" $? 0
sound live
pprof -raw "$T/live.pb.gz" >"$T/raw"
is "... has only these" "$(awk -f "$E2E_SRC/samples.awk" "$T/raw" | cut -f 5 |
	grep -vc "^prog_spin_.$")" 0
# The first one is the main program of that second, of whichever process.
is "... and only their files" "$(awk -v mode=mappings -f "$E2E_SRC/samples.awk" "$T/raw" | sed 1d | cut -d' ' -f 1 |
	grep -vcE 'prog_spin_|libc|ld-linux|\[kernel|\[vdso')" 0
"$PROFD" fetch --server "unix:$sock" -d 1 --comm nobody -o "$T/none.pb.gz" 2>"$T/err"
sound none
is "nobody has no samples" "$(samples "$T/none.pb.gz" | wc -l)" 0
"$PROFD" fetch --server "unix:$sock" -d 1 --exit ok -o "$T/x.pb.gz" --by comm 2>"$T/err"
is "what ended is of the past" $? 0
is "live: no exit status" "$(status '/debug/pprof/profile?seconds=1&exit=ok')" 400
like "... and why" "$(cat "$T/body")" 'exit: only of the past'
is "not over TCP without a token" "$(curl -s -o "$T/body" -w '%{http_code}' \
	"$url/debug/pprof/profile?seconds=1&comm=sh")" 400
like "... and why" "$(cat "$T/body")" 'comm: needs a token'
# --- asked all the time ---
for ((i = 0; i < 6; i++)); do
	for ((k = 0; k < 4; k++)); do
		count --last 500ms >"$T/n$k" &
	done
	wait $!
	sleep 0.1
done
n=$(find "$archive" -name '*.pb.gz' | wc -l)
# Eight in a row, then one every 5 s; and one every 3 s at the boundaries.
num "the open window is not ended each time" "$n" '<=' $((11 + (SECONDS - started_at) * 8 / 15))
kill -KILL "$spin"
end=$(moment)
is "both programs" "$(count --from "$begin" --to "$end" --comm 'prog_spin_?')" \
	"$(($(count --from "$begin" --to "$end" --comm prog_spin_a) + $(
		count --from "$begin" --to "$end" --comm prog_spin_b)))"
all=$(count --from "$begin" --to "$end")
num "all but these" "$(count --from "$begin" --to "$end" --not-comm 'prog_spin_?')" '<' "$all"
"$PROFD" fetch --server "unix:$sock" --from "$begin" --to "$end" -o "$T/all.pb.gz" \
	2>"$T/err"
is "fetch" $? 0
sound all
samples "$T/all.pb.gz" >"$T/all"
is "fetch has as many" "$(total "$T/all")" "$all"

# --- bad requests: the status, and what is wrong ---
while IFS='|' read -r path want text; do
	[[ -n $path ]] || continue
	is "$path: $want" "$(status "$path")" "$want"
	like "... and why" "$(cat "$T/body")" "$text"
done <<'END'
/api/profile?from=yesterday|400|from: a time with a zone
/api/profile?from=2026-11-23T10:00:00|400|from: a time with a zone
/api/profile?from=1&from=2|400|from: given twice
/api/profile?nix=1|400|nix: no such parameter
/api/profile?not-nix=1|400|not-nix: no such parameter
/api/profile?pid=x|400|pid: a number
/api/profile?pid|400|pid: not empty
/api/profile?comm=|400|comm: not empty
/api/profile?exit=maybe|400|exit: ok, fail, signal
/api/profile?user=root|400|user: a uid
/api/profile?last=-1s|400|last: a duration
/api/profile?last=1s&from=-1s|400|exclude each other
/api/profile?from=-1s&to=-2s|400|from is not before to
/api/profile?from=-3d&to=-2d|404|no window of that time
/api/profile?format=svg|400|format: one of pprof
/api/profile?by=a&by=a&by=a&by=a&by=a&by=a&by=a&by=a&by=a|400|by: too many
/api/profile?inline=yes|400|inline: expand
/api/profile?drop_marks=yes|400|drop_marks: 0 or 1
/api/profile?sample_type=waits|400|no sample type 'waits'
END
is "HEAD" "$(curl -s -I -o "$T/body" -w '%{http_code}' --unix-socket "$sock" \
	http://profd/api/profile)" 200
is "not over TCP without a token" "$(curl -s -o "$T/body" -w '%{http_code}' \
	"$url/api/profile")" 401
like "folded over HTTP" "$(ask '/api/profile?last=1h&comm=prog_spin_a&format=folded')" \
	';main;middle_a;spin_a [0-9]+'
is "speedscope over HTTP" "$(ask '/api/profile?last=1h&format=speedscope' |
	jq '.profiles | length')" 2
# A client that leaves, and then profd ends at once.
timeout 0.01 curl -s --unix-socket "$sock" 'http://profd/api/profile?last=1h' >/dev/null
stop_profd
is "it ends with 0" $? 0

# --- no profd runs: the same from the directory ---
is "as many as of the running one" "$(past --from "$begin" --to "$end")" "$all"
mapfile -t files < <(find "$archive" -name '*.pb.gz' | sort)
check "each profile and its side file agree" \
	"$E2E_SRC/times_check.py" "${files[@]}"
is "... all in all" "$(past --from 1000000000)" \
	"$("$E2E_SRC/past_check.py" 1000000000 4000000000 "${files[@]}")"
sumof=0 last=$begin
for i in 0.313 0.77 1.2345 1.9 2.5001 3.3; do
	at=$(awk -v t="$begin" -v s="$i" 'BEGIN { printf "%.6f\n", t + s }')
	n=$(past --from "$last" --to "$at")
	is "the span up to $i s" "$n" "$("$E2E_SRC/past_check.py" "$last" "$at" "${files[@]}")"
	sumof=$((sumof + n)) last=$at
done
whole=$(past --from "$begin" --to "$last")
# Records that came late are in their window as a whole, and in no span that begins with
# it or later.
late=$(python3 -B -c 'import sys
sys.path.insert(0, sys.argv[1])
import times_check
for path in sys.argv[2:]:
    _, _, col = times_check.read_times(path.replace(".pb.gz", ".times.zst"))
    print(*(s for s in col["step"] if s < 0))
' "$E2E_SRC" "${files[@]}" | wc -w)
num "spans that follow each other have each sample once" "$sumof" '<=' "$whole"
num "... all of them but $late that came late" "$sumof" '>=' $((whole - late))
like "local times" "$(TZ=UTC past --from "$(TZ=UTC date -d "@$begin" '+%F %T.%N')" --to \
	"$(TZ=UTC date -d "@$middle" '+%F %T.%N')")" '^[1-9]'
"$PROFD" fetch --archive "$archive" --from "$begin" --to "$end" -o "$T/dir.pb.zst" 2>"$T/err"
is "fetch of a directory" $? 0
is "... is the same" "$(samples "$T/dir.pb.zst" | sort | md5sum)" \
	"$(sort "$T/all" | md5sum)"

# --- damage: counted, and shown ---
cp -a "$archive" "$T/damaged"
rm "${files[1]/$archive/$T/damaged}"
printf 'garbage' | dd of="${files[2]/$archive/$T/damaged}" bs=1 seek=200 conv=notrunc status=none
archive=$T/damaged
num "a damaged window is left out" "$(past --from "$begin" --to "$end")" '<' "$all"
like "... and named as such" "$(cat "$T/err")" '1 of [0-9]+ windows cannot be read'
for f in "${files[@]}"; do
	rm "${f/*past.archive/$T/damaged}" "${f/*past.archive/$T/damaged}.x" 2>/dev/null
done
is "without windows" "$(past --last 1h)" 0
like "... an error" "$(cat "$T/err")" 'no window of that time'

# --- errors of the commands ---
"$PROFD" report --from noon --archive "$archive" 2>"$T/err"
is "a time that is none: 2" $? 2
like "... says what it may be" "$(cat "$T/err")" "--from 'noon': must be a time"
"$PROFD" report --life 1 "$T/all.pb.gz" 2>"$T/err"
is "a time of a file: 2" $? 2
like "... says why" "$(cat "$T/err")" "--life: only of an archive"
"$PROFD" fetch --archive "$T/none" -o "$T/never.pb.gz" 2>"$T/err"
is "no such archive: 1" $? 1
like "... is named" "$(cat "$T/err")" "$T/none: No such file"
[[ ! -e $T/never.pb.gz ]]
result $? "... and no file is made"
"$PROFD" report --user nobodyatall --archive "$archive" 2>"$T/err"
is "no such user: 2" $? 2
plan
