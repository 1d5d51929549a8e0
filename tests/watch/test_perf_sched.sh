#!/bin/bash
# Segments of profd timeline beside perf sched timehist, of a program whose threads sleep,
# wait for each other, for a pipe and a disk, and run: each time on a CPU is in both, with
# the same length, as long off the CPU before, and as long in the run queue.
. "$(dirname "$0")/../e2e/lib.sh"

cat >"$T/load.py" <<'LOAD'
import os, random, sys, threading, time
r, w = os.pipe()
turn = threading.Semaphore(0)
def sleeps():
    while True:
        time.sleep(random.random() / 200)
def writes():
    while True:
        os.write(w, b"x")
        time.sleep(0.002)
def reads():
    while True:
        os.read(r, 1)
        turn.release()
def waits():
    while True:
        turn.acquire()
def burns():
    while True:
        end = time.thread_time() + random.random() / 100
        while time.thread_time() < end:
            pass
        time.sleep(0.001)
def saves():
    with open(sys.argv[1], "w") as f:
        while True:
            f.write("x")
            f.flush()
            os.fsync(f.fileno())
            time.sleep(0.01)
threads = [threading.Thread(target=f, daemon=True)
           for f in (sleeps, writes, reads, waits, burns, burns, saves)]
for t in threads:
    t.start()
time.sleep(1000)
LOAD
background python3 "$T/load.py" "$T/saved"
load=$pid
start_profd sched --wait --window 3600
"$PROFD" timeline --server "unix:$sock" --last 1s "$load" >"$T/first" 2>&1
is "the program's timeline is recorded" $? 0
mounted_here() { mount -t tracefs "$1" "$1" && mounted+=("$1"); }
grep -q ' tracefs ' /proc/self/mounts || mounted_here /sys/kernel/tracing
perf sched record -k CLOCK_MONOTONIC -m 4096 -o "$T/perf.data" -- sleep 3 >"$T/record" 2>&1
is "perf records" $? 0
"$PROFD" timeline --server "unix:$sock" --last 10s --json "$load" >"$T/timeline" 2>"$T/err"
is "profd has the segments" $? 0
perf sched timehist -i "$T/perf.data" --pid "$load" >"$T/timehist" 2>"$T/timehist.err"
is "perf has its rows" $? 0
python3 "$ROOT/tests/watch/sched_compare.py" "$load" "$T/timeline" "$T/timehist" >"$T/compared" 2>&1
is "they agree" $? 0
tail -n 20 "$T/compared" | sed "s/^/# /"
stop_profd
is "profd ends well" $? 0
plan
