#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""boot_check SORTED: reads paths of profiles, writes them to the file SORTED in the order
of CLOCK_BOOTTIME, which their side files have, and prints each that does not begin where
the one before ended.
"""
import sys

sys.dont_write_bytecode = True
import times_check  # noqa: E402

windows = []
for line in sys.stdin:
    path = line.strip()
    info, _, _ = times_check.read_times(
        path[:path.rindex(".pb")] + ".times.zst")
    windows.append((info["boot"], info["boot"] + info["duration"], path))
windows.sort()
for before, (begin, _, path) in zip(windows, windows[1:]):
    if begin != before[1]:
        print(path, begin - before[1])
with open(sys.argv[1], "w") as out:
    out.writelines(path + "\n" for _, _, path in windows)
