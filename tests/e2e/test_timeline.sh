#!/bin/bash
# profd timeline and /api/process/ID/timeline: what the threads of a process did, and what
# woke them.
. "$(dirname "$0")/lib.sh"

timeline() { "$PROFD" timeline --server "unix:$sock" "$@"; }
header() {
	curl -sS -o "$T/lines" --unix-socket "$sock" "http://profd/api/process/$1"
	head -1 "$T/lines"
}

# --- without --wait ---
start_profd plain
timeline $$ >"$T/out" 2>"$T/err"
is "without --wait it fails" $? 1
like "... and says what to do" "$(cat "$T/err")" 'without --wait: start it with --wait'
stop_profd

# --- a pipe ---
cat >"$T/load.py" <<'LOAD'
import os, sys, threading, time
r, w = os.pipe()
if os.fork() == 0:
    while True:
        time.sleep(0.02)
        os.write(w, b"x")
open(sys.argv[1], "w").write(str(os.getpid()))
threading.Thread(target=lambda: time.sleep(1000), daemon=True).start()
while os.read(r, 1):
    pass
LOAD
background python3 "$T/load.py" "$T/pid"
wait_for 10 test -s "$T/pid"
load=$(cat "$T/pid")
writer=$(cat "/proc/$load/task/$load/children")
writer=${writer% }
start_profd timeline --wait --window 3600

timeline --last 2s "$load" >"$T/first" 2>"$T/err"
is "profd timeline" $? 0
like "the first request begins the recording" "$(cat "$T/err")" \
	"process $load is recorded from now on; waiting for 2 s"
like "the first line says since when, and what was lost" "$(head -1 "$T/first")" \
	"^process $load, recorded since [0-9:.]+, [0-9]+ segments, lost since then: none\$"
num "waits for the pipe" "$(grep -c 'off .*pipe in read of pipe' "$T/first")" '>' 20
num "are ended by the writer" "$(grep -c "pipe in read of pipe; woken by .*$writer/$writer" \
	"$T/first")" '>' 20
num "it runs in between" "$(awk -v t="$load" '$2 == t && $4 == "on"' "$T/first" | wc -l)" \
	'>' 20
num "a thread that sleeps all the time does so far" \
	"$(grep -c 'off .*so far' "$T/first")" '>=' 1
timeline --last 2s "$load" >"$T/second" 2>"$T/err"
is "the next one is at once" "$(cat "$T/err")" ""

# --- JSON ---
timeline --json --last 1s --tid "$load" "$load" >"$T/json"
is "profd timeline --json" $? 0
cat >"$T/check.py" <<'CHECK'
import json, sys
head, *rows = [json.loads(l) for l in open(sys.argv[1])]
load, writer = int(sys.argv[2]), int(sys.argv[3])
print("pid", head["pid"] == load, head["segments"] == len(rows))
print("lost", sum(head["lost"].values()))
print("tid", {r["tid"] for r in rows} == {load})
end, gaps = None, 0
for r in rows:
    if end is not None and int(r["time_boot_ns"]) != end:
        gaps += 1
    end = int(r["time_boot_ns"]) + int(r["duration_ns"])
print("gaps", gaps)
# Up to the request, or to the last cut, which is not made again within a tenth of a second.
before = int(head["from_boot_ns"]) - int(rows[0]["time_boot_ns"])
after = end - int(head["from_boot_ns"]) - 10**9
print("covers", before >= 0 and after >= -10**8 or (before, after))
waits = [r for r in rows if r["state"] == "off" and "open" not in r and r["reason"] == "pipe"]
print("waits", len(waits) > 10)
print("wakers", all(w["waker"]["kind"] == "task" and w["waker"]["pid"] == writer
                    and w["waker"]["process"].startswith("%d-" % writer) for w in waits))
print("thread", {r["thread"] for r in rows} == {"python3"})
print("image", {r["image"].startswith(r["process"] + "-") for r in rows} == {True})
CHECK
python3 "$T/check.py" "$T/json" "$load" "$writer" >"$T/checked" 2>&1
for line in "pid True True" "lost 0" "tid True" "gaps 0" "covers True" "waits True" "wakers True" \
	"thread True" "image True"; do
	check "JSON: ${line% True}" grep -qx "$line" "$T/checked"
done
id=$(python3 -c 'import json, sys; print(json.loads(sys.stdin.readline())["process"])' <"$T/json")
like "by the id of the process" "$(header "$id/timeline?last=1s")" "\"process\": *\"$id\""

# --- what is wrong ---
lack() { curl -sS -o "$T/body" -w '%{http_code}' --unix-socket "$sock" "http://profd/api/process/$1"; }
is "no such process" "$(lack 4194303/timeline)" 404
like "... is said" "$(cat "$T/body")" 'no process 4194303'
is "not a pid" "$(lack x/timeline)" 400
is "not an id" "$(lack "$load-/timeline")" 400
is "another process of that pid" "$(lack "$load-1/timeline")" 404
is "not a duration" "$(lack "$load/timeline?last=x")" 400
is "not a thread" "$(lack "$load/timeline?tid=0")" 400
is "no such parameter" "$(lack "$load/timeline?x=1")" 400
timeline >"$T/out" 2>"$T/err"
is "no pid" $? 2
timeline --last 0 1 >"$T/out" 2>"$T/err"
is "a wrong --last" $? 2

# --- many ---
num "it is counted" "$(metric profd_waiting_segments_total)" '>' 100
is "one process is recorded" "$(metric profd_waiting_chosen)" 1
for ((i = 0; i < 80; i++)); do
	sleep 100 &
	sleepers+=($!)
done
# A process is there once its fork was read.
asked() {
	local code
	for ((k = 0; k < 100; k++)); do
		code=$(lack "$1/timeline")
		[[ $code == 404 ]] || break
		sleep 0.1
	done
	echo "$code"
}
codes=$(for p in "${sleepers[@]}"; do asked "$p"; done | sort | uniq -c | xargs)
is "64 processes at most" "$codes" "63 200 17 503"
"$PROFD" watch --server "unix:$sock" --pid 1 sched_switch >"$T/out" 2>"$T/err"
is "... with those that are watched" $? 1
like "... which says what to do" "$(cat "$T/err")" 'sched_switch: 64 processes are recorded already: name fewer'
kill "${sleepers[@]}" 2>/dev/null
like "the first is there all the same" "$(header "$load/timeline?last=1s")" '"begun": *false'

# --- a process that switches as often as it can ---
cat >"$T/storm.py" <<'STORM'
import os, threading
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
def spin():
    while True:
        os.sched_yield()
threading.Thread(target=spin, daemon=True).start()
spin()
STORM
# Room for it: the sleepers are chosen for minutes.
stop_profd
start_profd storm --wait --window 3600
chmod 755 "$T" && chmod 644 "$T/storm.py"
background setpriv --reuid 65534 --regid 65534 --clear-groups /usr/bin/python3 "$T/storm.py"
storm=$pid
background sleep 1000
quiet=$pid
timeline --last 1s "$quiet" >"$T/quiet" 2>"$T/err"
timeline --last 2s "$storm" >"$T/storm" 2>"$T/err"
is "a timeline of a storm of switches" $? 0
like "what is lost is counted, and is said" "$(head -1 "$T/storm")" \
	'lost since then: [0-9]+ \(too many in a short time\)'
num "... and is in the metrics" "$(metric profd_waiting_segments_lost_total)" '>' 0
num "some of it is there" "$(wc -l <"$T/storm")" '>' 1000
timeline --last 1s "$quiet" >"$T/quiet" 2>"$T/err"
like "another process has lost nothing" "$(head -1 "$T/quiet")" 'lost since then: none'
like "... and has slept" "$(cat "$T/quiet")" 'off .* sleep in clock_nanosleep, so far'
num "profd keeps its memory" "$(awk '/VmRSS/ { print $2 }' "/proc/$profd/status")" '<' 400000
stop_profd
is "profd ends" $? 0
plan
