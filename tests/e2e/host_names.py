#!/usr/bin/env python3
"""Frames of a profile without a name, where the host has one.

host_names.py RAW: RAW is the output of `go tool pprof -raw`. A frame FILE+0xADDRESS has
an invented name. It is counted as missing if a symbol of the file, or of its debug file
below /usr/lib/debug, is a function that covers the address. Prints the number of
frames, of invented names and of missing ones, then the missing ones by file.
"""
import bisect
import collections
import os
import re
import subprocess
import sys


def read_raw(path):
    section, counts, locations, mappings = None, collections.Counter(), {}, {}
    with open(path, errors="replace") as f:
        for line in f:
            head = line.split(":")[0].strip()
            if head in ("Samples", "Locations", "Mappings"):
                section = head
            elif section == "Samples":
                m = re.match(r"\s*(\d+)\s+\d+: ([\d ]+)$", line)
                for i in m[2].split() if m else ():
                    counts[int(i)] += int(m[1])
            elif section == "Locations":
                m = re.match(r"\s*(\d+): (0x[0-9a-f]+) (?:M=(\d+) )?(.*)$", line)
                if m:
                    locations[int(m[1])] = (int(m[2], 16), m[3], m[4])
            elif section == "Mappings":
                part = line.split()
                if len(part) > 2:
                    build_id = part[3] if len(part) > 3 else ""
                    mappings[part[0].rstrip(":")] = (part[2], build_id)
    return counts, locations, mappings


def functions(path, build_id):
    files = [path, f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"]
    found = []
    for name in files:
        if not os.path.isfile(name):
            continue
        text = subprocess.run(["readelf", "-sW", name], check=False,
                              capture_output=True, text=True).stdout
        for line in text.splitlines():
            p = line.split()
            if len(p) > 7 and p[3] in ("FUNC", "IFUNC") and p[6] != "UND":
                start, size = int(p[1], 16), int(p[2], 0)
                if size:
                    found.append((start, start + size))
    return sorted(found)


def covered(ranges, address):
    i = bisect.bisect_right(ranges, (address, 1 << 64))
    return any(s <= address < e for s, e in ranges[max(0, i - 50):i])


def main():
    counts, locations, mappings = read_raw(sys.argv[1])
    frames = invented = missing = 0
    known, where = {}, collections.Counter()
    for i, (address, mapping, name) in locations.items():
        name = name.split(" ")[0]
        if name.startswith("["):
            continue
        frames += counts[i]
        if not re.search(r"\+0x[0-9a-f]+$", name):
            continue
        invented += counts[i]
        path, build_id = mappings.get(mapping, ("", ""))
        if path not in known:
            known[path] = functions(path, build_id) if os.path.isfile(path) else []
        if covered(known[path], address):
            missing += counts[i]
            where[path] += counts[i]
    print(frames, invented, missing)
    for path, n in where.most_common():
        print(n, path)


main()
