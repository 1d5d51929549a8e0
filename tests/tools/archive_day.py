#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""archive_day RECORDING ARCHIVE HOURS [AGO]: makes an archive of HOURS out of a recorded
one, whose whole windows are repeated with other times. Equal recordings make equal
archives.

The last repetition ends AGO hours (0) before the end of the recording. Processes that
lived from before the recording until after it are the same in all windows; each other
one is another process in each repetition, with another start and thus another id. The
catalog has as many processes as one of profd has by default: of each repetition those
with the most samples, and their ancestors.

Reads and writes profiles as profile.proto, side files as profd-times(5) and the catalog
as profd-catalog(5) say, without code of profd.
"""
import gzip
import glob
import os
import re
import sqlite3
import statistics
import struct
import subprocess
import sys
import time

SECOND = 10**9
PROCESSES = 400000
ID = re.compile(rb"(\d+)-([0-9a-f]+)((?:-\d+)?)\Z")


def uleb(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def put_uleb(value):
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def zstd(option, data):
    return subprocess.run(["zstd", "-q", option, "-c"], input=data,
                          stdout=subprocess.PIPE, check=True).stdout


def moved_id(text, by):
    """PID-START[-IMAGE] of a process that started so much later."""
    pid, start, rest = ID.match(text.encode()).groups()
    return f"{pid.decode()}-{int(start, 16) + by:x}{rest.decode()}"


class Window:
    """A recorded one, in pieces: bytes, or what changes with the time."""

    def __init__(self, path, moving):
        self.host = re.match(r"cpu-(.*)-\d{8}T", os.path.basename(path))[1]
        self.pieces, same = [], bytearray()
        data, at = gzip.open(path).read(), 0
        while at < len(data):
            begin = at
            key, at = uleb(data, at)
            value, at = uleb(data, at)
            if key & 7 == 2:
                text, at = data[at:at + value], at + value
                found = ID.match(text) if key >> 3 == 6 else None
                if found and b"-".join(found.groups()[:2]) in moving:
                    self.pieces += [bytes(same), text.decode()]
                    same = bytearray()
                    continue
            elif key >> 3 == 9:
                self.begin = value
                self.pieces += [bytes(same), None]
                same = bytearray()
                continue
            elif key >> 3 == 10:
                self.duration = value
            same += data[begin:at]
        self.pieces.append(bytes(same))
        self.side = zstd("-d", open(path[:-len("pb.gz")] + "times.zst",
                                    "rb").read())

    def name(self, wall):
        # A boundary may be measured a little early.
        stamp = time.gmtime(round(wall / SECOND))
        seconds = round(self.duration / SECOND)
        return (time.strftime("%Y-%m-%d/", stamp) + f"cpu-{self.host}-" +
                time.strftime("%Y%m%dT%H%M%SZ", stamp) + f"-{seconds}s")

    def write(self, archive, wall_by, boot_by):
        out = bytearray()
        for piece in self.pieces:
            if piece is None:
                out += b"\x48" + put_uleb(self.begin + wall_by)
            elif isinstance(piece, str):
                text = moved_id(piece, boot_by).encode()
                out += b"\x32" + put_uleb(len(text)) + text
            else:
                out += piece
        path = os.path.join(archive, self.name(self.begin + wall_by))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".pb.gz", "wb") as f:
            f.write(gzip.compress(bytes(out), 6, mtime=0))
        wall, boot = struct.unpack_from("<qQ", self.side, 16)
        side = bytearray(self.side)
        struct.pack_into("<qQ", side, 16, wall + wall_by, boot + boot_by)
        with open(path + ".times.zst", "wb") as f:
            f.write(zstd("-3", bytes(side)))
        return [os.path.getsize(path + end) for end in (".pb.gz", ".times.zst")]


class Catalog:
    TABLES = ("process_row", "image_row", "window", "window_image", "loss", "rest")

    def __init__(self, recording, archive, begin, end):
        self.path = os.path.join(archive, "catalog.sqlite")
        old = sqlite3.connect(f"file:{recording}/catalog.sqlite?mode=ro",
                              uri=True)
        self.db = sqlite3.connect(self.path)
        old.backup(self.db)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = OFF")
        self.rows, self.next = {}, {}
        for table in self.TABLES:
            cursor = self.db.execute(f"SELECT * FROM {table}")
            names = [c[0] for c in cursor.description]
            self.rows[table] = [dict(zip(names, row)) for row in cursor]
            if "id" in names:
                self.next[table] = max(r["id"] for r in self.rows[table])
            self.db.execute(f"DELETE FROM {table}")
        self.whole = {
            p["id"] for p in self.rows["process_row"]
            if (p["start_ns"] or 0) <= begin and (p["end_ns"] or end) >= end}
        self.moving = {b"%d-%x" % (p["pid"], p["start_boot_ns"])
                       for p in self.rows["process_row"]
                       if p["id"] not in self.whole}

    def keep(self, most):
        """Only so many processes."""
        parents = {p["id"]: p["parent_row"] for p in self.rows["process_row"]}
        kept = set(self.whole)
        for row in sorted(self.rows["process_row"],
                          key=lambda p: (-p["samples"], p["id"])):
            at = row["id"]
            while at and at not in kept and len(kept) < most:
                kept.add(at)
                at = parents.get(at)
        rows = self.rows
        rows["process_row"] = [p for p in rows["process_row"]
                               if p["id"] in kept]
        rows["image_row"] = [i for i in rows["image_row"]
                             if i["process"] in kept]
        images = {i["id"] for i in rows["image_row"]}
        rows["window_image"] = [w for w in rows["window_image"]
                                if w["image"] in images]

    def insert(self, table, row):
        marks = ",".join("?" * len(row))
        self.db.execute(f"INSERT OR IGNORE INTO {table}({','.join(row)}) "
                        f"VALUES({marks})", list(row.values()))

    def moved(self, row, wall_by, boot_by):
        row = dict(row)
        for name, value in row.items():
            if value is None or name in ("cpu_ns", "user_ns", "system_ns"):
                continue
            if name.endswith("_boot_ns"):
                row[name] = value + boot_by
            # When it was seen is counted from its end, if it has ended.
            elif name.endswith("_ns") or name == "seen" and not row["end_ns"]:
                row[name] = value + wall_by
        return row

    def repeat(self, number, names, wall_by, boot_by, sizes):
        def id_of(table, row):
            return row + number * self.next[table] if row else row

        def process(row):
            return row if row in self.whole else id_of("process_row", row)

        kept = {w["id"] for w in self.rows["window"] if w["file"] in names}
        moving_images = set()
        for row in self.rows["process_row"]:
            if row["id"] in self.whole:
                self.insert("process_row", row)
                continue
            new = self.moved(row, wall_by, boot_by)
            new["id"] = process(row["id"])
            new["parent_row"] = process(row["parent_row"])
            parent = b"%d-%x" % (row["parent_pid"] or 0,
                                 row["parent_start_boot_ns"] or 0)
            if parent not in self.moving:
                new["parent_start_boot_ns"] = row["parent_start_boot_ns"]
            self.insert("process_row", new)
        for row in self.rows["image_row"]:
            if row["process"] in self.whole:
                self.insert("image_row", row)
                continue
            moving_images.add(row["id"])
            new = self.moved(row, wall_by, boot_by)
            new["id"] = id_of("image_row", row["id"])
            new["process"] = process(row["process"])
            self.insert("image_row", new)
        for row in self.rows["window"]:
            if row["id"] not in kept:
                continue
            new = self.moved(row, wall_by, boot_by)
            new["id"] = id_of("window", row["id"])
            new["file"] = names[row["file"]]
            new["bytes"], new["times_bytes"] = sizes[row["file"]]
            self.insert("window", new)
        for table in ("window_image", "loss", "rest"):
            for row in self.rows[table]:
                if row["window"] not in kept:
                    continue
                new = dict(row, window=id_of("window", row["window"]))
                if row.get("image") in moving_images:
                    new["image"] = id_of("image_row", row["image"])
                self.insert(table, new)
        self.db.commit()

    def close(self):
        # Those that live on have lived since the first window.
        first, = self.db.execute("SELECT min(begin_ns) FROM window").fetchone()
        marks = ",".join(str(p) for p in sorted(self.whole))
        self.db.execute(f"UPDATE process_row SET start_ns = min(start_ns, {first}) "
                        f"WHERE id IN ({marks})")
        self.db.execute(f"UPDATE image_row SET start_ns = min(start_ns, {first}) "
                        f"WHERE process IN ({marks})")
        self.db.commit()
        self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.db.close()


def whole_windows(recording):
    """Those of the usual length, which follow each other. With the first and the last,
    which are cut, repetitions would begin at any part of a second, and files of two
    windows could have the same name."""
    paths = sorted(glob.glob(recording + "/20*/*.pb.gz"))
    lengths = {p: Window(p, set()).duration for p in paths}
    usual = statistics.mode(round(n / SECOND) for n in lengths.values())
    return [p for p in paths if abs(lengths[p] - usual * SECOND) < SECOND // 100]


def main():
    recording, archive, hours = sys.argv[1:4]
    ago = round(float(sys.argv[4]) * 3600) * SECOND if len(sys.argv) > 4 else 0
    paths = whole_windows(recording)
    first, last = Window(paths[0], set()), Window(paths[-1], set())
    period = round((last.begin + last.duration - first.begin) / SECOND) * SECOND
    os.makedirs(archive)
    catalog = Catalog(recording, archive, first.begin, first.begin + period)
    windows = {p[len(recording.rstrip("/")) + 1:]: Window(p, catalog.moving)
               for p in paths}
    count = round(float(hours) * 3600 * SECOND / period)
    catalog.keep(len(catalog.whole) + PROCESSES // count)
    total = [0, 0]
    for number in range(count):
        wall_by = (number + 1 - count) * period - ago
        names, sizes = {}, {}
        for path, window in windows.items():
            names[path] = window.name(window.begin + wall_by) + ".pb.gz"
            sizes[path] = window.write(archive, wall_by, number * period)
            total = [a + b for a, b in zip(total, sizes[path])]
        catalog.repeat(number, names, wall_by, number * period, sizes)
    catalog.close()
    print(f"windows {count * len(windows)} bytes {total[0]} times-bytes "
          f"{total[1]} catalog-bytes {os.path.getsize(catalog.path)} "
          f"seconds {count * period // SECOND}")


main()
