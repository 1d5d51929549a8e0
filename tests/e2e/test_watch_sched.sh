#!/bin/bash
# profd watch sched_switch cpu_analysis: what a program with known waits does, compared with
# the kernel's own count of its switches, with time, and with each other.
. "$(dirname "$0")/lib.sh"

ROUNDS=25
watch_of() { "$PROFD" watch --server "unix:$sock" "$@"; }

# --- without --wait ---
start_profd plain
watch_of --pid $$ sched_switch >"$T/out" 2>"$T/err"
is "without --wait it fails" $? 1
like "... and says what to do" "$(cat "$T/err")" \
	'sched_switch: this profd runs without --wait: start it with --wait'
watch_of cpu_analysis >"$T/out" 2>"$T/err"
is "without --pid it fails" $? 1
like "... and says what to do" "$(cat "$T/err")" 'cpu_analysis: it needs --pid'
stop_profd
like "--list says what they need" "$("$PROFD" watch --list)" \
	$'\nsched_switch +scheduler [^\n]+\n +needs --pid, and a profd that runs with --wait\n'
is "--list --json says it" "$("$PROFD" watch --list --json | jq -r 'select(.needs) | .name' | xargs)" \
	"sched_switch cpu_analysis"

# --- the pattern ---
start_profd sched --wait --window 3600
mkfifo "$T/gate"
"$E2E/prog_pattern" "$ROUNDS" "$T/gate" >"$T/truth" &
pattern=$!
started+=("$pattern")
background watch_of --json --pid "$pattern" sched_switch cpu_analysis >"$T/events" 2>"$T/events.err"
background watch_of --json --pid "$pattern" --not-comm prog_pattern sched_switch >"$T/none" 2>"$T/none.err"
background watch_of --pid "$pattern" --slower 3600s sched_switch >"$T/slow" 2>"$T/slow.err"
background watch_of --pid "$pattern" sched_switch >"$T/text" 2>"$T/text.err"
check "it is watched" wait_for 60 grep -q '"watching"' "$T/events"
for name in none slow text; do
	check "... by all" wait_for 60 grep -q watching "$T/$name" "$T/$name.err"
done
is "nothing is attached for them" "$(metric profd_watch_hooks)" 0
is "the process is recorded" "$(metric profd_waiting_chosen)" 1
echo >"$T/gate"
wait "$pattern"
is "the pattern has ended" $? 0
ended() { jq -e -n '[inputs | select(.attributes[]? | .value == "exit")] | length > 0' "$T/events"; }
check "its end is an event" wait_for 60 ended
cat >"$T/check.py" <<'CHECK'
import json, sys
truth = json.load(open(sys.argv[1]))
rounds = int(sys.argv[2])
pid, start, end = truth["pid"], truth["from"], truth["to"]
switches, analyses, lost = [], [], []
for line in open(sys.argv[3]):
    o = json.loads(line)
    if "lost" in o:
        lost.append(o["lost"])
    if "name" not in o:
        continue
    o["a"] = {a["key"]: a["value"] for a in o["attributes"]}
    if o["name"] == "cpu_analysis" or int(o["time_boot_ns"]) >= 0 and o["tid"] == pid:
        (switches if o["name"] == "sched_switch" else analyses).append(o)
print("lost", len(lost) or sum(int(o["a"].get("lost", 0)) for o in analyses))
print("whose", all(o["pid"] == o["tid"] == pid and o["comm"] == "prog_pattern"
                   and o["uid"] == 0 and o["process"].startswith("%d-" % pid)
                   and o["category"] == "scheduler" for o in switches + analyses))
inside = [o for o in switches if start <= int(o["time_boot_ns"]) < end]
print("switches", len(inside) == truth["switches"] or (len(inside), truth))
times = [int(o["time_boot_ns"]) for o in switches]
print("order", times == sorted(times))
why = {}
for o in inside:
    why[o["a"]["reason"]] = why.get(o["a"]["reason"], 0) + 1
# On a busy machine a wait for a time may be over before it begins.
waits = {r: why.get(r, 0) for r in ("sleep", "futex", "pipe")}
print("reasons", waits["pipe"] == rounds and all(rounds - 2 <= n <= rounds for n in waits.values())
      or why)
print("calls", {(o["a"]["reason"], o["a"].get("syscall"), o["a"].get("fd"), o["a"]["state"])
                for o in inside if o["a"]["reason"] in ("sleep", "futex", "pipe")} ==
      {("sleep", "clock_nanosleep", None, "off"), ("futex", "futex", None, "off"),
       ("pipe", "read", "pipe", "off")})
last = switches[-1]["a"]
print("exit", last["reason"] == "exit" and last["state"] == "dead" or last)

segments, at, whole = [], None, True
for o in analyses:
    a = o["a"]
    lists = [a[k].split(",") for k in ("time_type", "types", "type_specs", "runq_latency",
                                       "reasons", "syscalls", "fds")]
    whole &= {len(l) for l in lists} == {int(a["segments"])} and int(a["segments"]) <= 32
    whole &= at is None or int(a["start_time"]) == at
    at = int(a["start_time"])
    for number, word, ns, queued, reason, call, fd in zip(*lists):
        whole &= ["on", "file", "net", "futex", "idle", "other", "epoll"][int(number)] == word
        segments.append((at, at + int(ns), word, int(queued), reason, call, fd))
        at += int(ns)
    whole &= at == int(a["end_time"])
print("whole", whole)
print("covers", segments[0][0] <= start and segments[-1][1] >= end)
inside = [s for s in segments if s[0] >= start and s[1] <= end]
def of(reason): return [s for s in inside if s[4].split("/")[0] == reason]
print("types", [{s[2] for s in of(r)} for r in ("sleep", "futex", "pipe", "on")] ==
      [{"idle"}, {"futex"}, {"other"}, {"on"}])
print("counts", {r: len(of(r)) for r in waits} == waits)
# On a busy host some begin late.
def middle(reason): return sorted(s[1] - s[0] for s in of(reason))[len(of(reason)) // 2]
middles = [middle(r) for r in ("sleep", "futex", "pipe")]
print("lengths", middles[0] >= 20e6 and middles[1] >= 5e6 and middles[2] >= 1e6 or middles)
print("cpu", sum(min(s[1], end) - max(s[0], start) for s in segments
                 if s[2] == "on" and s[1] > start and s[0] < end) >= rounds * 5e6)
print("fds", {s[5:] for s in of("pipe")} == {("read", "pipe")})
# The two names tell the same.
on = {s[1]: s[1] - s[0] for s in segments if s[2] == "on"}
queued = {s[1]: s[3] for s in segments if s[2] != "on"}
known = [o for o in switches if int(o["time_boot_ns"]) in on and "on" in o["a"]]
print("same", len(known) >= 2 * rounds and all(
    on[int(o["time_boot_ns"])] == int(o["a"]["on"]) and
    queued.get(int(o["time_boot_ns"]) - int(o["a"]["on"]), o["latency_ns"]) == o["latency_ns"]
    for o in known))
CHECK
python3 "$T/check.py" "$T/truth" "$ROUNDS" "$T/events" >"$T/checked" 2>&1
for line in "lost 0" "whose True" "switches True" "order True" "reasons True" "calls True" \
	"exit True" "whole True" "covers True" "types True" "counts True" "lengths True" \
	"cpu True" "fds True" "same True"; do
	is "${line% *}" "$(grep "^${line%% *} " "$T/checked" || cat "$T/checked")" "$line"
done
check "as text" wait_for 60 grep -qE \
	"^[0-9:.]+ +$pattern prog_pattern +sched_switch on=[0-9.]+[mu]?s state=off reason=pipe syscall=read fd=pipe [0-9.]+[mun]?s$" \
	"$T/text"
is "text says what is watched" "$(head -1 "$T/text.err")" "profd: watching sched_switch"
is "a query of other names: none" "$(grep -c '"sched_switch",' "$T/none")" 0
is "--slower: none" "$(cat "$T/slow")" ""

num "they are counted" "$(metric profd_watch_made_total)" '>' $((2 * ROUNDS))

# --- more than is recorded ---
cat >"$T/storm.py" <<'STORM'
import os, threading
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
def spin():
    while True:
        os.sched_yield()
threading.Thread(target=spin, daemon=True).start()
spin()
STORM
background python3 "$T/storm.py"
storm=$pid
background watch_of --json --pid "$storm" cpu_analysis >"$T/storm" 2>"$T/storm.err"
watcher=$pid
told() { jq -e -n '[inputs | .lost.cpu_analysis? // 0] | add > 0' "$T/storm"; }
check "losses are told" wait_for 60 told
lacks() { jq -e -n 'first(inputs | select(any(.attributes[]?; .key == "lost")))' "$T/storm"; }
check "an event says that some of its thread are missing" wait_for 60 lacks
limited=$(metric profd_watch_limited_total)
num "... and how many is counted" "$limited" '>' 0
ask "/api/process/$storm/timeline?last=1s" >"$T/timeline"
num "a timeline that begins then has its own losses only" \
	"$(head -1 "$T/timeline" | jq .lost.rate)" '<' "$limited"
end_group "$storm"
end_group "$watcher"
cat >"$T/gaps.py" <<'CHECK'
import json, sys
ends, wrong, n = {}, [], 0
for line in open(sys.argv[1]):
    if not line.endswith("\n"):
        break
    o = json.loads(line)
    if "name" not in o:
        continue
    a = {a["key"]: int(a["value"]) for a in o["attributes"] if "," not in str(a["value"])
         and a["key"] in ("start_time", "end_time", "lost")}
    if o["tid"] in ends:
        n += 1
        if ends[o["tid"]] + a.get("lost", 0) != a["start_time"]:
            wrong.append((o["tid"], ends[o["tid"]], a))
    ends[o["tid"]] = a["end_time"]
print(wrong[:5] or n > 10)
CHECK
if [[ $(metric profd_watch_overrun_total) == 0 ]]; then
	is "segments and losses are the time of a thread" "$(python3 "$T/gaps.py" "$T/storm")" True
else
	skip "segments and losses are the time of a thread" "the client was too slow"
fi

# --- beside a timeline ---
background sleep 1000
sleeper=$pid
background watch_of --json --pid "$sleeper" sched_switch >"$T/beside" 2>"$T/beside.err"
check "it is watched" wait_for 60 grep -q '"watching"' "$T/beside"
begun() { "$PROFD" timeline --json --last 1ms --server "unix:$sock" "$sleeper" >"$T/timeline"; }
check "its timeline is asked for" wait_for 60 begun

# --- nobody any more ---
for job in "${started[@]}"; do
	[[ $job == "$profd" || $job == "$pattern" || $job == "$sleeper" ]] || end_group "$job"
done
nobody() { (($(metric profd_watch_subscribers) == 0 && $(metric profd_waiting_chosen) == 2)); }
check "the last one has gone: only the timelines are recorded" wait_for 60 nobody
sleep 0.2
begun
is "... which goes on" "$(jq -c 'select(.begun != null) | [.begun, .lost]' "$T/timeline")" \
	'[false,{"rate":0,"ring":0,"memory":0}]'
stop_profd
is "profd ends well" $? 0
plan
