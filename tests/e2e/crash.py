#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""crash PROFD DIR ROUNDS SEED: starts `profd run` on the archive DIR, kills it with
SIGKILL at a random moment, and checks what it left; ROUNDS times. Prints a line for
each problem, and at the end one line of figures that begins with "rounds".

After each kill the archive is read as it is, without code of profd: gzip and protoc,
zstd and the description in profd-times(5), sqlite3 on a copy of the catalog.

- A window that profd reported as written, or that was there before the kill, is there,
  complete, with its side file.
- No two windows share a moment of boot time.
- Before half of the kills, all windows up to a moment are waited for. Up to that moment
  none of this run is missing. Later ones may be: several are written at a time, in any
  order, and how many were not yet written depends on how busy the machine is.
- The catalog passes integrity_check, and has each row that a reader saw before.

At the end a last profd runs until the catalog has a row for each window. When it has
ended by itself, none of its windows is missing.
"""
import bisect
import glob
import gzip
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
import times_check  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
PROTO = os.path.join(HERE, "../../reporter")
WINDOW_S = 1
# Longer than the slowest machine needs: for a start, for windows, for the end.
WAIT_S = 60


def boot_s():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Victim:
    def __init__(self, profd, path, seed):
        self.profd, self.path = profd, path
        self.random = random.Random(seed)
        self.socket = path + ".sock"
        # Each profd would else read all tables and names again.
        self.cache = os.path.join(os.path.dirname(path), "cache")
        self.problems, self.starts, self.lost = [], [], []
        self.untimed, self.before = set(), set()
        self.windows = {}  # by path: begin and end in boot time, number of run
        self.seen = {}  # of this run while it ran, by path: begin and end
        self.whole = 0  # no window of this run is missing up to this boot time
        self.beats = []
        self.reported = {}  # by path: samples
        self.rows = {"window": set(), "process": set()}
        self.run = 0

    def problem(self, text):
        text = text.replace(self.path + "/", "").strip().replace("\n", "; ")
        self.problems.append(f"run {self.run}: {text}")

    def beat(self):
        """A thread of profd's own priority, which mostly sleeps."""
        while True:
            self.beats.append(boot_s() * 1e9)
            time.sleep(0.05)

    def stalled(self, begin, end):
        """The machine ran nothing: a window without samples is not written."""
        i = bisect.bisect_left(self.beats, begin)
        return i == len(self.beats) or self.beats[i] >= end

    # --- profd -----------------------------------------------------------------

    def start(self):
        self.run += 1
        self.log = f"{self.path}.log{self.run}"
        with open(self.log, "wb") as log:
            self.child = subprocess.Popen(
                [self.profd, "run", "--archive", self.path, "--listen",
                 "unix:" + self.socket, "--window", f"{WINDOW_S}s", "--cache",
                 self.cache, "--keep-free", "no"], stdout=log, stderr=log)
        self.began = boot_s()
        self.whole = 0
        self.seen = {}
        self.before = set(glob.glob(self.path + "/20*/*.pb.gz"))

    def answers(self):
        try:
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(10)
                s.connect(self.socket)
                s.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
                return s.recv(100).startswith(b"HTTP/1.")
        except OSError:
            return False

    def ready(self):
        while not self.answers():
            if self.child.poll() is not None or boot_s() > self.began + WAIT_S:
                self.problem("does not start: " + open(self.log).read()[-300:])
                return False
            time.sleep(0.01)
        self.starts.append(boot_s() - self.began)
        return True

    def kill(self):
        self.killed = boot_s()
        self.child.kill()
        self.child.wait()

    # --- what is there -----------------------------------------------------------

    def sql(self, path, statement):
        done = subprocess.run(["sqlite3", "-batch", path, statement],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout.decode().split("\n")[:-1]

    def missing(self, until):
        """The first moment of this run without a window, or None: whole."""
        for path in glob.glob(self.path + "/20*/*.pb.gz"):
            side = path[:path.rindex(".pb")] + ".times.zst"
            if path in self.before | set(self.seen) or not os.path.exists(side):
                continue
            info, _, _ = times_check.read_times(side)
            self.seen[path] = info["boot"], info["boot"] + info["duration"]
        last = None
        for begin, end in sorted(self.seen.values()):
            if last is not None and begin > last and not self.stalled(last, begin):
                return last
            last = end
        return None if last is not None and last >= until else last or 0

    def wait_written(self):
        """All windows up to now: they are closed, named and written in time."""
        now = boot_s() * 1e9
        while (hole := self.missing(now)) is not None:
            if self.child.poll() is not None or boot_s() > now / 1e9 + WAIT_S:
                self.problem(f"{boot_s() - now / 1e9:.0f} s later no window of "
                             f"{(now - hole) / 1e9:.2f} s before is there, status "
                             f"{self.child.poll()}")
                return
            time.sleep(0.05)
        self.whole = now

    def look(self):
        """The rows that a reader sees while profd runs."""
        catalog = f"file:{self.path}/catalog.sqlite?mode=ro"
        for table, column in (("window", "file"), ("process", "process")):
            rc, rows = self.sql(catalog, f"SELECT {column} FROM {table}")
            if not rc:
                self.rows[table] |= set(rows)

    def check_catalog(self):
        """Of a copy: to open it would be to repair it."""
        copy = self.path + ".copy"
        if not os.path.exists(self.path + "/catalog.sqlite"):
            if self.rows["window"]:
                self.problem("the catalog is gone")
            return
        for end in ("", "-wal"):
            try:
                shutil.copy(self.path + "/catalog.sqlite" + end, copy + end)
            except FileNotFoundError:
                pass
        _, out = self.sql(copy, "PRAGMA integrity_check")
        if out != ["ok"]:
            self.problem(f"integrity_check: {out[:3]}")
        for table, column in (("window", "file"), ("process", "process")):
            _, rows = self.sql(copy, f"SELECT {column} FROM {table}")
            if self.rows[table] - set(rows):
                self.problem(f"rows of {table} are gone: "
                             f"{sorted(self.rows[table] - set(rows))[:3]}")
        for name in glob.glob(copy + "*"):
            os.remove(name)

    def check_profile(self, path):
        try:
            raw = gzip.open(path).read()
        except (OSError, EOFError) as e:
            self.problem(f"{path}: {e}")
            return
        done = subprocess.run(
            ["protoc", "--decode=perftools.profiles.Profile", "-I", PROTO,
             "profile.proto"], input=raw, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        if done.returncode or b"sample_type" not in done.stdout:
            self.problem(f"{path}: protoc: {done.stderr.decode()}")

    def check_window(self, path):
        side = path[:path.rindex(".pb")] + ".times.zst"
        self.check_profile(path)
        if not os.path.exists(side):
            # Killed between the two: nothing has reported this window.
            self.untimed.add(path)
            if path in self.reported or path in self.seen:
                self.problem(f"{path}: no side file")
            return
        try:
            times_check.check(path)
            info, _, _ = times_check.read_times(side)
        except (AssertionError, subprocess.CalledProcessError, ValueError,
                IndexError, OSError, EOFError) as e:
            self.problem(f"{path}: side file: {e}")
            return
        end = info["boot"] + info["duration"]
        self.windows[path] = (info["boot"], end, self.run)

    def check_times(self):
        last = None
        for path, at in sorted(self.windows.items(), key=lambda w: w[1]):
            gap = at[0] - last[1] if last else 0
            if self.run not in (at[2], last and last[2]):
                pass
            elif gap < 0:
                self.problem(f"{path}: shares {-gap} ns")
            elif (gap and at[2] == last[2] and last[1] < self.whole and
                  not self.stalled(last[1], at[0])):
                self.problem(f"{path}: {gap} ns before it have no window")
            last = at
        if last and last[2] == self.run:
            self.lost.append(self.killed - last[1] / 1e9)

    def check(self):
        for line in open(self.log, errors="replace"):
            found = re.search(r"(/\S*\.pb\.gz): (\d+) samples$", line)
            if found:
                self.reported[found.group(1)] = int(found.group(2))
        there = set(glob.glob(self.path + "/20*/*.pb.gz"))
        for path in (set(self.reported) | set(self.seen)) - there:
            self.problem(f"{path} was written, and is gone")
        for path in sorted(there - set(self.windows)):
            self.check_window(path)
        self.check_times()
        self.check_catalog()

    # --- all ---------------------------------------------------------------------

    def round(self):
        self.start()
        # One in four while it starts.
        if self.random.random() < 0.25:
            time.sleep(self.random.random() * 0.8)
        elif self.ready():
            if self.random.random() < 0.5:
                self.wait_written()
                time.sleep(self.random.random() * 2 * WINDOW_S)
            else:
                time.sleep(self.random.random() * 4 * WINDOW_S)
            self.look()
            time.sleep(self.random.random() * 0.1)
        self.kill()
        self.check()

    def agrees(self):
        catalog = f"file:{self.path}/catalog.sqlite?mode=ro"
        _, rows = self.sql(catalog, "SELECT file FROM window")
        files = {f[len(self.path) + 1:]
                 for f in glob.glob(self.path + "/20*/*.pb.gz")}
        return set(rows) == files, set(rows) ^ files

    def finish(self):
        catalog = f"file:{self.path}/catalog.sqlite?mode=ro"
        self.start()
        if not self.ready():
            return
        self.wait_written()
        end = boot_s() + WAIT_S
        while boot_s() < end and not self.agrees()[0]:
            time.sleep(0.1)
        self.killed = boot_s()
        self.child.terminate()
        try:
            if self.child.wait(WAIT_S):
                self.problem(f"ends with {self.child.returncode}")
        except subprocess.TimeoutExpired:
            self.problem(f"does not end in {WAIT_S} s")
            self.kill()
        self.whole = boot_s() * 1e9
        self.check()
        if not self.agrees()[0]:
            self.problem(f"files or rows only: {sorted(self.agrees()[1])[:3]}")
        _, odd = self.sql(catalog, """SELECT file FROM window w JOIN window_image x
            ON x.window = w.id GROUP BY w.id HAVING sum(x.samples) <> w.samples""")
        if odd:
            self.problem(f"sums of {len(odd)} windows are not theirs")
        left = glob.glob(self.path + "/20*/*.tmp")
        if left or os.path.exists(self.path + "/catalog.bad.sqlite"):
            self.problem(f"left behind: {left or 'catalog.bad.sqlite'}")


def main():
    profd, path, rounds, seed = sys.argv[1:]
    v = Victim(profd, path, int(seed))
    threading.Thread(target=v.beat, daemon=True).start()
    for _ in range(int(rounds)):
        v.round()
    v.finish()
    print(*v.problems, sep="\n", end="\n" if v.problems else "")
    starts, lost = sorted(v.starts) or [0], sorted(v.lost) or [0]
    print(f"rounds {rounds} windows {len(v.windows)} "
          f"without-times {len(v.untimed)} processes {len(v.rows['process'])} "
          f"start-ms {1000 * starts[len(starts) // 2]:.0f} "
          f"{1000 * starts[-1]:.0f} unwritten-ms "
          f"{1000 * lost[len(lost) // 2]:.0f} {1000 * lost[-1]:.0f}")
    sys.exit(bool(v.problems))


main()
