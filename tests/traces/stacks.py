#!/usr/bin/env python3
"""stacks.py ARCHIVE FILE: a line of FILE is a trace and the number of its stacks that an
agent was told of; it has to be the number of its samples in the archive. Prints both sums;
status 1 if one differs, and the first eight that do."""
import collections
import sys

import compare


def main(archive, name):
    samples = collections.Counter(ids[0] for *_, ids in compare.read_archive(archive) if ids)
    told = {}
    for line in open(name):
        trace, n = line.split()
        told[trace] = told.get(trace, 0) + int(n)
    differ = [t for t, n in told.items() if samples[t] != n]
    print(f"{len(told)} traces, {sum(told.values())} stacks,",
          f"{sum(samples[t] for t in told)} samples, {len(differ)} differ")
    for trace in differ[:8]:
        print(f"{trace}: {told[trace]} stacks, {samples[trace]} samples")
    return bool(differ)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
