#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""past_check FROM TO PROFILE...: the samples of windows in a span of wall time (seconds,
half open), counted from their side files by what profd-times(5) says, without code of
profd: records at steps of 10 ms, the span rounded down to steps. A window that is wholly
in the span, or out of it, is taken or left as it is, with records that came late and are
of the time before it. Prints their number.
"""
import sys

import times_check

start, end = (round(float(v) * 1e9) for v in sys.argv[1:3])
count = 0
for path in sys.argv[3:]:
    info, _, col = times_check.read_times(
        path[:path.rindex(".pb")] + ".times.zst")
    first, last = ((t - info["wall"]) // info["step"] for t in (start, end))
    stop = info["wall"] + info["duration"]
    if stop <= start or end <= info["wall"]:
        continue
    inside = start <= info["wall"] and stop <= end
    count += sum(1 for s in col["step"] if inside or first <= s < last)
print(count)
