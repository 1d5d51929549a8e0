#!/bin/bash
# profd why of the past: where the time of a request went, by the long waits in the archive,
# when all of its processes are gone; of a running profd, and of the archive alone.
. "$(dirname "$0")/lib.sh"

why() { "$PROFD" why --server "unix:$sock" "$@"; }
moment() { printf '@%d.%09d' $(($1 / 1000000000)) $(($1 % 1000000000)); }

background sleep 1000
quiet=$pid
start_profd past --wait --window 2

# --- A waits for B, B for a lock of C, and C sleeps for 50 ms and runs for 20 ms ---
background stdbuf -oL "$E2E/prog_chain" >"$T/spans"
chain=$pid
more() { (($(wc -l <"$T/spans") > 12)); }
wait_for 30 more
read -r a b c <"$T/spans"
kill "$chain" && wait "$chain" 2>/dev/null
read -r begin end < <(sed -n 7p "$T/spans")
# One that lives would be recorded from now on.
gone() { "$PROFD" ps --server "unix:$sock" --json >"$T/ps" && ! grep -q "\"pid\":$a," "$T/ps"; }
check "profd knows that they are gone" wait_for 60 gone
span=(--from "$(moment "$begin")" --to "$(moment "$end")")
why --json "${span[@]}" "$a" >"$T/json" 2>"$T/err"
is "profd why --json, of processes that are gone" "$?:$(cat "$T/err")" "0:"

cat >"$T/check.py" <<'CHECK'
import json, sys
head, *steps = [json.loads(l) for l in open(sys.argv[1])]
a, b, c, begin, end = map(int, sys.argv[2:])
ns = lambda s: int(s["duration_ns"])
at = lambda s: int(s["time_boot_ns"])
first, last = int(head["from_boot_ns"]), int(head["to_boot_ns"])
print("head", head["pid"] == a and head["tid"] == a and head["steps"] == len(steps)
      and head["wait_min_ns"] == "1000000" and sum(head["lost"].values()) == 0 or head)
# The wall clock may be set meanwhile, by a little.
print("span", abs((last - first) - (end - begin)) < 10**6 or (last - first, end - begin))
mine = [s for s in steps if s["end"] != "followed"]
print("sum", sum(map(ns, mine)) == last - first)
print("adjoin", [first] + [at(s) + ns(s) for s in mine] == [at(s) for s in mine] + [last])
print("gaps", [s for s in mine if s["end"] in ("gap", "unrecorded", "deep", "many")] == [])
waits = [s for s in steps if s["end"] == "followed" and ns(s) > 40 * 10**6]
print("waits", [(s["pid"], s["depth"], s["state"], s["reason"], s["syscall"],
                 s["waker"]["kind"], s["waker"]["pid"]) for s in waits] ==
      [(a, 0, "off", "pipe", "read", "task", b), (b, 1, "off", "futex", "futex", "task", c)]
      or waits)
sleep = [s for s in mine if s["pid"] == c and s.get("reason") == "sleep"]
print("sleep", len(sleep) == 1 and sleep[0]["end"] == "interrupt" and sleep[0]["depth"] == 2
      and sleep[0]["waker"]["kind"] == "interrupt" and ns(sleep[0]) > 45 * 10**6 or sleep)
# It burns CPU: nothing was recorded, so it did not wait for long.
ran = [s for s in mine if s["pid"] == c and s["end"] == "short" and sleep
       and at(s) > at(sleep[0])]
print("run", sum(map(ns, ran)) > 18 * 10**6 and all(s["depth"] == 2 and "state" not in s
                                                    for s in ran) or mine)
given = [s["frames"] for s in steps if "frames" in s]
print("stacks", [next((f["function"] for f in given[s["stack"]]
                       if f["mapping"].endswith("/prog_chain")), "") for s in waits + sleep]
      == ["take", "run_b", "sleep_ms"] or steps)
print("names", all(s["thread"] == "prog_chain" for s in steps)
      and all(w["waker"]["comm"] == "prog_chain" for w in waits) or steps)
CHECK
python3 "$T/check.py" "$T/json" "$a" "$b" "$c" "$begin" "$end" >"$T/checked" 2>&1
for line in head span sum adjoin gaps waits sleep run stacks names; do
	grep -qx "$line True" "$T/checked"
	result $? "one request: $line" || diag "$(cat "$T/checked" "$T/json")"
done

why "${span[@]}" "$a" >"$T/text" 2>"$T/err"
is "as text" $? 0
text=$(cat "$T/text")
like "the wait of A is B's" "$text" \
	"[0-9]{6}  +prog_chain $a/$a off [0-9.]+m?s pipe in read of pipe; woken by prog_chain $b/$b"$'\n'
like "B's is C's" "$text" \
	"  prog_chain $b/$b off [0-9.]+m?s futex in futex; woken by prog_chain $c/$c"$'\n'
like "C slept" "$text" "prog_chain $c/$c off sleep in clock_nanosleep; woken by an interrupt"$'\n'
like "... and then ran" "$text" \
	"prog_chain $c/$c ran, was runnable, or waited for less than 1.0ms at a time"$'\n'
like "the sums have that, too" "${text#*in all}" \
	$'\n'" +[0-9.]+m?s prog_chain $c/$c ran, was runnable, or waited"

# --- what lasts, and what is not there ---
why --json --from "$(moment "$begin")" --to "$(moment "$end")" "$quiet" >"$T/json" 2>"$T/err"
is "a wait that has not ended, of a process that lives" \
	"$(jq -r 'select(.depth == 0) | "\(.end) \(.reason)"' "$T/json")" "open sleep"
why --from 30d --to 29d "$a" >"$T/out" 2>"$T/err"
is "a time without profiles" $? 1
like "... is said to be one" "$(cat "$T/err")" 'no window of that time'
why "${span[@]}" 4194303 >"$T/out" 2>"$T/err"
is "a process that never was" $? 1
like "... is said to be none" "$(cat "$T/err")" 'process 4194303: nothing of it in the archive'
why --tid 4194303 "${span[@]}" "$a" >"$T/out" 2>"$T/err"
is "a thread that never was" $? 1
like "... likewise" "$(cat "$T/err")" 'thread 4194303: nothing of it in the archive'
num "waits were recorded" "$(metric profd_waiting_records_total)" ">" 0
is "... and none was lost" "$(metric profd_waiting_records_full_total)" 0
stop_profd
is "profd ends" $? 0

# --- the archive alone ---
"$PROFD" why --archive "$archive" "${span[@]}" "$a" >"$T/alone" 2>"$T/err"
is "profd why --archive" "$?:$(cat "$T/err")" "0:"
is "... prints the same" "$(tail -n +2 "$T/alone")" "$(tail -n +2 "$T/text")"
check "an export has the side files of waits" "$PROFD" export -q --archive "$archive" "$T/export"
is "... all" "$(find "$T/export" -name 'wait-*.times.zst' | wc -l)" \
	"$(find "$archive" -name 'wait-*.times.zst' | wc -l)"
"$PROFD" why --archive "$T/export" "${span[@]}" "$a" >"$T/out" 2>"$T/err"
is "... which tell the same" "$(cat "$T/out")" "$(cat "$T/alone")"
find "$archive" -name 'wait-*.times.zst' -delete
"$PROFD" why --archive "$archive" "${span[@]}" "$a" >"$T/out" 2>"$T/err"
is "without side files of waits it fails" $? 1
like "... and says why" "$(cat "$T/err")" 'have no long waits'
plan
