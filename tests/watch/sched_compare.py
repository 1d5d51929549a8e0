"""sched_compare.py PID TIMELINE TIMEHIST: segments of profd timeline --json beside rows of
perf sched timehist, each of a time on a CPU, by thread and time of their end. Prints
what differs; status 1 if too much does.

perf is run by events of its own, some of which come before profd's, and some after: two
clocks are read within some microseconds, or, with an interrupt in between, some more."""

import collections
import json
import re
import sys
import time

NEAR = 60_000  # ns
pid = sys.argv[1]
# perf's times are CLOCK_MONOTONIC.
suspended = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()


def timeline(path):
    """By thread: (end, length on the CPU, off it before, in the run queue before)."""
    head, *rows = [json.loads(line) for line in open(path)]
    lost = head["lost"]
    threads = collections.defaultdict(list)
    for row in rows:
        threads[row["tid"]].append(row)
    runs = {}
    for tid, rows in threads.items():
        runs[tid], off, queue = [], 0, 0
        for row in rows:
            begin, length = int(row["time_boot_ns"]), int(row["duration_ns"])
            if row["state"] == "on":
                if "open" not in row:
                    runs[tid].append((begin + length, length, off, queue))
                off = queue = 0
            else:
                off += length
                # Of one that was woken: as perf has it, from the wake-up on.
                queue = length if row.get("reason") == "woken" else 0
    return lost, runs


def timehist(path):
    runs = collections.defaultdict(list)
    row = re.compile(r"\s*(\d+)\.(\d{6}) \[\d+\]\s+(.*?)\[(\d+)(?:/(\d+))?\]\s+"
                     r"([\d.]+)\s+([\d.]+)\s+([\d.]+)")
    for line in open(path):
        m = row.match(line)
        if m and (m[5] or m[4]) == pid:
            ms = [round(float(m[i]) * 1e6) for i in (6, 7, 8)]
            runs[int(m[4])].append((int(m[1]) * 10**9 + int(m[2]) * 1000 + suspended,
                                    ms[2], ms[0], ms[1]))
    return runs


losses, ours = timeline(sys.argv[2])
theirs = timehist(sys.argv[3])
all_, absent, far = 0, 0, collections.Counter()
for tid, rows in theirs.items():
    # The first row of a thread has no times of before. The oldest segments may have been
    # overwritten, and perf may have been there longer.
    rows = [r for r in rows[1:] if tid in ours and len(ours[tid]) > 1 and
            ours[tid][1][0] + NEAR < r[0] < ours[tid][-1][0]]
    i = 0
    for end, run, off, queue in rows:
        while i < len(ours[tid]) and ours[tid][i][0] < end - NEAR:
            i += 1
        all_ += 1
        near = [o for o in ours[tid][max(i - 1, 0):i + 8] if abs(o[0] - end) <= NEAR]
        if not near:
            absent += 1
            print(f"thread {tid}: no end at {end}")
            continue
        o = min(near, key=lambda o: abs(o[1] - run) + abs(o[2] - off))
        for what, a, b in (("on the CPU", o[1], run), ("off it", o[2], off),
                           ("in the run queue", o[3], queue)):
            if abs(a - b) > NEAR:
                far[what] += 1
                if far[what] < 6:
                    print(f"thread {tid} at {end}: {what}: profd {a}, perf {b}")
print(f"{all_} times on a CPU of {len(theirs)} threads, {absent} absent, "
      f"differ by more than {NEAR // 1000} us: {dict(far)}; profd lost {losses}")
sys.exit(all_ < 1000 or losses["rate"] > 0 or losses["ring"] > 0 or absent * 1000 > all_ or
         any(n * 1000 > all_ * 5 for n in far.values()))
