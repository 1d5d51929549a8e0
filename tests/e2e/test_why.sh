#!/bin/bash
# profd why and /api/process/ID/why: where the time of a request went, through what woke the
# thread that waited for it.
. "$(dirname "$0")/lib.sh"

why() { "$PROFD" why --server "unix:$sock" "$@"; }
lack() { curl -sS -o "$T/body" -w '%{http_code}' --unix-socket "$sock" "http://profd/api/process/$1"; }

# --- without --wait ---
start_profd plain
why $$ >"$T/out" 2>"$T/err"
is "without --wait it fails" $? 1
like "... and says what to do" "$(cat "$T/err")" 'without --wait: start it with --wait'
stop_profd

# --- A waits for B, B for a lock of C, and C sleeps for 50 ms and runs for 20 ms ---
background stdbuf -oL "$E2E/prog_chain" >"$T/spans"
wait_for 10 test -s "$T/spans"
read -r a b c <"$T/spans"
background sleep 1000
quiet=$pid
start_profd why --wait --window 3600

why --from 20s --to 10s "$a" >"$T/out" 2>"$T/err"
is "a time before the recording" $? 1
like "... is not made up" "$(cat "$T/err")" \
	'no window of that time'
is "... and nothing is printed" "$(cat "$T/out")" ""
why --from 19s --to 9s "$a" >"$T/out" 2>"$T/err"
is "... also if the recording was on" "$?:$(cat "$T/out")" "1:"

why --from 1s "$quiet" >"$T/out" 2>"$T/err"
is "profd why" $? 0
like "the first request begins the recording" "$(cat "$T/err")" \
	"process $quiet is recorded from now on; waiting for 1 s"
like "a wait that has not ended" "$(cat "$T/out")" 'off sleep in clock_nanosleep, so far'

# What wakes A is found at its first request, what wakes B at the next one.
chosen() { (($(metric profd_waiting_chosen) >= 3)); }
check "those that wake it are recorded, too" wait_for 20 chosen
lines=$(wc -l <"$T/spans")
more() { (($(wc -l <"$T/spans") > lines + 3)); }
wait_for 20 more
read -r begin end < <(tail -n +2 "$T/spans" | head -n -1 | tail -n 1)
moment() { printf '@%d.%09d' $(($1 / 1000000000)) $(($1 % 1000000000)); }
span=(--from "$(moment "$begin")" --to "$(moment "$end")")
# A stack that was just copied is not resolved yet.
resolved() { why --json "${span[@]}" "$a" >"$T/json" && ! grep -q no_stack "$T/json"; }
wait_for 20 resolved
why --json "${span[@]}" "$a" >"$T/json" 2>"$T/err"
is "profd why --json, of one request" "$?:$(cat "$T/err")" "0:"

cat >"$T/check.py" <<'CHECK'
import json, sys
head, *steps = [json.loads(l) for l in open(sys.argv[1])]
a, b, c, begin, end = map(int, sys.argv[2:])
ns = lambda s: int(s["duration_ns"])
at = lambda s: int(s["time_boot_ns"])
first, last = int(head["from_boot_ns"]), int(head["to_boot_ns"])
print("head", head["pid"] == a and head["tid"] == a and head["steps"] == len(steps)
      and sum(head["lost"].values()) == 0 or head)
# The wall clock may be set meanwhile, by a little.
print("span", abs((last - first) - (end - begin)) < 10**6 or (last - first, end - begin))
mine = [s for s in steps if s["end"] != "followed"]
print("sum", sum(map(ns, mine)) == last - first)
adjoin = [at(s) + ns(s) for s in mine]
print("adjoin", [first] + adjoin == [at(s) for s in mine] + [last])
print("gaps", [s for s in mine if s["end"] in ("gap", "unrecorded", "deep", "many")] == [])
# From the begin to the end of the answer.
waits = [s for s in steps if s["end"] == "followed" and ns(s) > 40 * 10**6]
print("waits", [(s["pid"], s["depth"], s["state"], s["reason"], s["syscall"],
                 s["waker"]["kind"], s["waker"]["pid"]) for s in waits] ==
      [(a, 0, "off", "pipe", "read", "task", b), (b, 1, "off", "futex", "futex", "task", c)]
      or waits)
sleep = [s for s in mine if s["pid"] == c and s.get("reason") == "sleep"]
print("sleep", len(sleep) == 1 and sleep[0]["end"] == "interrupt" and sleep[0]["depth"] == 2
      and sleep[0]["waker"]["kind"] == "interrupt" and ns(sleep[0]) > 45 * 10**6 or sleep)
ran = [s for s in mine if s["pid"] == c and s["state"] == "on" and sleep
       and at(s) > at(sleep[0])]
print("run", sum(map(ns, ran)) > 18 * 10**6 and all(s["depth"] == 2 for s in ran) or ran)
after = [s for s in mine if ran and at(s) > at(ran[-1]) and s["state"] == "on"]
order = [s["pid"] for s in after]
print("order", order[-1:] == [a] and b in order and c not in order or after)
queue = {s["reason"] for s in mine if s["state"] == "runnable"}
print("queue", queue <= {"woken", "preempted", "throttled"} or queue)
print("thread", {s["thread"] for s in steps} == {"prog_chain"})
# Where they wait: B in take() of run_b(), and so on; each stack is given once.
given = [s["frames"] for s in steps if "frames" in s]
print("given", sorted({s["stack"] for s in steps if "stack" in s}) == list(range(len(given)))
      and [s["stack"] for s in steps if "frames" in s] == list(range(len(given))) or steps)
source = lambda f: f["mapping"].endswith("/prog_chain") and f.get("file", "").endswith("/prog_chain.c")
ours = lambda s: [f["function"] for f in given[s["stack"]] if source(f)]
where = [ours(s) for s in waits + sleep]
print("where", where == [["take", "run_a", "main"], ["run_b", "start", "main"],
                         ["sleep_ms", "run_c", "start", "main"]] or where)
print("lines", all(f["line"] > 1 for s in waits + sleep for f in given[s["stack"]] if source(f)))
print("no stack", [s for s in steps if "no_stack" in s or
                   ("stack" in s) != (s.get("state") == "off")] == [] or steps)
print("depth", {(s["pid"], s["depth"]) for s in steps} <= {(a, 0), (b, 1), (c, 2), (a, 1),
                                                            (a, 2), (a, 3)} or steps)
CHECK
python3 "$T/check.py" "$T/json" "$a" "$b" "$c" "$begin" "$end" >"$T/checked" 2>&1
for line in head span sum adjoin gaps waits sleep run order queue thread given where lines "no stack" depth; do
	grep -qx "$line True" "$T/checked"
	result $? "one request: $line" || diag "$(cat "$T/checked" "$T/json")"
done

why "${span[@]}" "$a" >"$T/text" 2>"$T/err"
is "as text" $? 0
like "the first line says since when, and what was lost" "$(head -1 "$T/text")" \
	"^process $a, recorded since [0-9:.]+, [0-9]+ steps, lost since then: none\$"
text=$(cat "$T/text")
like "the wait of A is B's" "$text" \
	"[0-9]{6}  +prog_chain $a/$a off [0-9.]+m?s pipe in read of pipe; woken by prog_chain $b/$b"$'\n'
like "B's is C's" "$text" \
	"  prog_chain $b/$b off [0-9.]+m?s futex in futex; woken by prog_chain $c/$c"$'\n'
like "C slept" "$text" \
	"s {5}prog_chain $c/$c off sleep in clock_nanosleep; woken by an interrupt"$'\n'
like "below each is where it waited" "$text" \
	"woken by prog_chain $b/$b"$'\n'" {28}in take < run_a at prog_chain.c:[0-9]+"$'\n'
like "... without functions of the C library" "$text" \
	"woken by prog_chain $c/$c"$'\n'" {30}in run_b < start at prog_chain.c:[0-9]+"$'\n'
like "... behind its waker" "$text" \
	"woken by an interrupt"$'\n'" {32}in sleep_ms < run_c at prog_chain.c:[0-9]+"$'\n'
like "the sums begin with the span" "$text" $'\n\n'" +[0-9.]+m?s in all"$'\n'
like "... and have the sleep" "${text#*in all}" \
	$'\n'" +[0-9.]+m?s prog_chain $c/$c off sleep"$'\n'

why --stacks "${span[@]}" "$a" >"$T/whole" 2>"$T/err"
is "whole stacks" $? 0
whole=$(cat "$T/whole")
line() { printf '\n {32}%s at [^ ]*/prog_chain\.c:[0-9]+( \(inlined\))?' "$@"; }
like "... have all functions" "$whole" "$(line sleep_ms run_c start main)"$'\n'" {32}__libc_start"
like "... with the C library's" "$whole" \
	"woken by an interrupt"$'\n'" {32}[a-z_]*nanosleep[^ ]* [^"$'\n'"]*"$'\n'

# --- what is wrong ---
why --tid 4194303 --from 1s "$a" >"$T/out" 2>"$T/err"
is "a thread that is not there" $? 1
like "... is said" "$(cat "$T/err")" "nothing of this thread is recorded.*profd timeline $a has"
why >"$T/out" 2>"$T/err"
is "no pid" $? 2
why --from x 1 >"$T/out" 2>"$T/err"
is "not a time" "$?:$(cat "$T/err")" \
	"2:profd why: --from 'x': must be a time (10s, 14:30:05.25, now) (see profd why --help)"
why --from 5s --to 10s 1 >"$T/out" 2>"$T/err"
is "an end before the begin" $? 2
is "no such process" "$(lack 4194303/why)" 404
is "not a pid" "$(lack x/why)" 400
is "not a time, over HTTP" "$(lack "$a/why?from=x")" 400
is "an end before the begin, over HTTP" "$(lack "$a/why?from=5s&to=10s")" 400
is "a begin in the future" "$(lack "$a/why?from=99999999999")" 400
is "not a thread" "$(lack "$a/why?tid=0")" 400
is "no such parameter" "$(lack "$a/why?last=1s")" 400

# --- who else is recorded ---
before=$(metric profd_waiting_chosen)
cat >"$T/many.py" <<'MANY'
import os, sys, time
r, w = os.pipe()
for i in range(40):
    if os.fork() == 0:
        while True:
            time.sleep(0.05)
            os.write(w, b"x")
open(sys.argv[1], "w").write(str(os.getpid()))
while os.read(r, 1):
    pass
MANY
background python3 "$T/many.py" "$T/pid"
wait_for 10 test -s "$T/pid"
many=$(cat "$T/pid")
# A process is there once its fork was read.
wait_for 20 why --from 1s "$many"
enough() { (($(metric profd_waiting_chosen) >= before + 17)); }
wait_for 20 enough
why --from 1s "$many" >"$T/out" 2>"$T/err"
is "16 that wake it at most" "$(($(metric profd_waiting_chosen) - before))" 17
like "others are said to be missing" "$(cat "$T/out")" \
	"woken by python3 [0-9]+/[0-9]+, which is not recorded"

# --- a process that ended: its sums are gone, its segments and their stacks are not ---
before=$(metric profd_waiting_chosen)
background stdbuf -oL "$E2E/prog_chain" >"$T/short"
wait_for 10 test -s "$T/short"
read -r short _ <"$T/short"
wait_for 20 why --from 1s "$short"
all_three() { (($(metric profd_waiting_chosen) >= before + 3)); }
wait_for 20 all_three
lines=$(wc -l <"$T/short")
more_short() { (($(wc -l <"$T/short") > lines + 3)); }
wait_for 20 more_short
kill -KILL "$short"
read -r begin end < <(tail -n +2 "$T/short" | head -n -1 | tail -n 1)
sleep 3 # a sum lasts for a second
why --json --from "$(moment "$begin")" --to "$(moment "$end")" "$short" >"$T/json" 2>"$T/err"
cat >"$T/ended.py" <<'ENDED'
import json, sys
head, *steps = [json.loads(l) for l in open(sys.argv[1])]
given = [s["frames"] for s in steps if "frames" in s]
waits = [max((s for s in steps if s.get("state") == "off" and s["depth"] == depth),
             key=lambda s: int(s["duration_ns"])) for depth in range(3)]
print([next((f["function"] for f in given[s["stack"]] if f["mapping"].endswith("/prog_chain")), "")
       if "stack" in s else s.get("no_stack") for s in waits])
ENDED
is "the path of a process that ended has its stacks" \
	"$(python3 "$T/ended.py" "$T/json" 2>&1)" "['take', 'run_b', 'sleep_ms']" || diag "$(cat "$T/json" "$T/err")"
stop_profd
is "profd ends" $? 0
plan
