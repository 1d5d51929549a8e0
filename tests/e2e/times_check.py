#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""times_check PROFILE...: reads each profile and its side file by what profd-times(5)
and profile.proto say, without code of profd, and compares: the records of a Sample
message make its values, and their thread is its tid. Prints a line a profile:
records, bytes of the profile, bytes of the side file, first and last step.
"""
import gzip
import struct
import subprocess
import sys


def unzstd(path):
    return subprocess.run(["zstd", "-dcq", path], stdout=subprocess.PIPE,
                          check=True).stdout


def uleb(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, value) of a protobuf message; packed ones stay bytes."""
    at = 0
    while at < len(data):
        key, at = uleb(data, at)
        if key & 7 == 0:
            value, at = uleb(data, at)
        elif key & 7 == 2:
            size, at = uleb(data, at)
            value, at = data[at:at + size], at + size
        else:
            raise ValueError("wire type")
        yield key >> 3, value


def numbers(value):
    if isinstance(value, int):
        return [value]
    out, at = [], 0
    while at < len(value):
        n, at = uleb(value, at)
        out.append(n)
    return out


def read_profile(path):
    data = unzstd(path) if path.endswith(".zst") else gzip.open(path).read()
    strings, samples, top = [], [], {}
    for number, value in fields(data):
        if number == 6:
            strings.append(value.decode())
        elif number == 2:
            samples.append(value)
        elif number in (9, 10):
            top[number] = value
    out = []
    for sample in samples:
        values, tid = [], None
        for number, value in fields(sample):
            if number == 2:
                values += numbers(value)
            elif number == 3:
                label = dict(fields(value))
                if strings[label[1]] == "tid":
                    tid = label[3]
        out.append((values, tid))
    return top, out


def decode(coding, data, count):
    out, at, last = [], 0, 0
    for _ in range(count):
        n, at = uleb(data, at)
        if coding == 1:
            last += -(n >> 1) - 1 if n & 1 else n >> 1
            out.append(last)
        elif coding == 2:
            out.append(last - n)
            last += n == 0
        else:
            out.append(n)
    assert at == len(data), "bytes left in a column"
    return out


def pairs(data):
    """(trace, span) in hex."""
    assert len(data) % 41 == 0, "a part of a pair"
    return [(data[i:i + 16].hex(), data[i + 16:i + 24].hex())
            for i in range(0, len(data), 41)]


def read_times(path):
    data = unzstd(path)
    magic, version, at = data[:8], *struct.unpack_from("<II", data, 8)
    assert magic == b"PROFTIME" and version == 1 and at >= 96
    head = struct.unpack_from("<qQQQ16sQQQII", data, 16)
    info = dict(zip(("wall", "boot", "duration", "step", "boot_id", "records",
                     "samples", "untimed", "events", "columns"), head))
    events = []
    for _ in range(info["events"]):
        size, count, nvalues, _len = struct.unpack_from("<IIII", data, at)
        events.append((count, nvalues))
        at += size
    columns = []
    for _ in range(info["columns"]):
        size, table, coding, length, nbytes = struct.unpack_from(
            "<IBBHQ", data, at)
        name = data[at + 16:at + 16 + length].decode()
        columns.append((name, table, coding, nbytes))
        at += size
    values = {}
    for name, table, coding, nbytes in columns:
        if name == "ids.pair":
            values[name] = pairs(data[at:at + nbytes])
            at += nbytes
            continue
        count = info["samples"] if table else info["records"]
        values[name] = decode(coding, data[at:at + nbytes], count)
        at += nbytes
    assert at == len(data), "bytes at the end"
    return info, events, values


def check(path):
    """The figures of its line."""
    top, samples = read_profile(path)
    side = path[:path.rindex(".pb")] + ".times.zst"
    info, events, col = read_times(side)
    assert info["wall"] == top[9], "time_nanos"
    assert info["duration"] == top[10], "duration_nanos"
    assert info["samples"] == len(samples), "number of samples"
    assert info["step"] == 10_000_000 and info["untimed"] == 0
    boot_id = open("/proc/sys/kernel/random/boot_id").read()
    assert info["boot_id"].hex() == boot_id.strip().replace("-", "")
    sums = [[0] * len(values) for values, _ in samples]
    for sample, event, value in zip(col["sample"], col["event"], col["value"]):
        first, nvalues = events[event]
        sums[sample][first] += 1
        if nvalues == 2:
            sums[sample][first + 1] += value
    assert sums == [values for values, _ in samples], "values"
    assert col["thread"] == [tid for _, tid in samples], "threads"
    steps = (min(col["step"]), max(col["step"]))
    assert steps[1] * info["step"] < info["duration"], "a step behind the end"
    sizes = [len(open(p, "rb").read()) for p in (path, side)]
    return info["records"], *sizes, *steps


if __name__ == "__main__":
    for name in sys.argv[1:]:
        try:
            print(*check(name))
        except AssertionError as e:
            sys.exit(f"{name}: {e}")
