#!/usr/bin/env python3
"""compare.py ARCHIVE LOG...: the ids of the samples of an archive, beside what the threads
of traced programs have logged.

A line of a log is a change of the ids of a thread: its tid in the root pid namespace, the
times before and after by CLOCK_BOOTTIME (nanoseconds), trace and span in hex, "-" for none.
So between the second time of a line and the first of the next one the ids are known, and
while they change they are the ones or the others. A sample's time is known to 10 ms.

Prints numbers of samples: "inside": those that a span has wholly, and "with": those of
them that have ids; "wrong": those whose thread did not have their ids at that time, or
has not logged anything. The first eight of these are printed, too."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "e2e"))
import times_check  # noqa: E402


def read_logs(names):
    """Of each tid (ids, begin, begun, end, ended)."""
    spans = {}
    for name in names:
        last = {}
        for line in open(name):
            tid, before, after, trace, span = line.split()
            tid, before, after = int(tid), int(before), int(after)
            if tid in last:
                spans.setdefault(tid, []).append((*last[tid], before, after))
            last[tid] = ((trace, span), before, after)
        for tid, (ids, *_) in last.items():
            assert ids == ("-", "-"), f"{name}: {tid} ends in a span"
            spans.setdefault(tid, [])
    return spans


def read_archive(archive):
    """Yields (tid, begin, end, ids) of each sample."""
    found = [os.path.join(at, f) for at, _, files in os.walk(archive)
             for f in files if f.startswith("cpu-") and f.endswith(".times.zst")]
    assert found, "no window"
    for path in found:
        info, _, col = times_check.read_times(path)
        assert info["untimed"] == 0, "samples without times"
        pairs = col.get("ids.pair", [])
        ids = col.get("sample.ids", [0] * info["records"])
        for step, sample, pair in zip(col["step"], col["sample"], ids):
            begin = info["boot"] + step * info["step"]
            yield (col["thread"][sample], begin, begin + info["step"],
                   pairs[pair - 1] if pair else None)


def main(archive, *logs):
    spans = read_logs(logs)
    n = dict.fromkeys(("samples", "inside", "with", "wrong"), 0)
    for tid, begin, end, ids in read_archive(archive):
        own = [s for s in spans.get(tid, [])
               if s[1] < end and s[4] > begin and s[0][0] != "-"]
        inside = any(s[2] <= begin and s[3] >= end for s in own)
        wrong = ids is not None and all(s[0] != ids for s in own)
        n["samples"] += tid in spans
        n["inside"] += inside
        n["with"] += inside and ids is not None
        n["wrong"] += wrong
        if wrong and n["wrong"] <= 8:
            print(f"thread {tid} at {begin}: {ids}, logged: {own}")
    print("; ".join(f"{name} {count}" for name, count in n.items()))


if __name__ == "__main__":
    main(*sys.argv[1:])
