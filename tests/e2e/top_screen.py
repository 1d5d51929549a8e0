#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""top_screen: profd top on pseudo-terminals. A line for each check, "0 NAME" if it
passed and "1 NAME", and lines that begin with # explain. The arguments are profd, a
profile, one with hostile names, the socket of a running profd, and its pid."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import pyte

PROFD, FILE, HOSTILE, SOCK, SERVER = sys.argv[1:]


class Terminal:
    """A program on a terminal of its own; the screen as a user sees it."""

    def __init__(self, *args, columns=100, rows=30, term="xterm-256color"):
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.master, self.slave = pty.openpty()
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self.slave)
        env = dict(os.environ, TERM=term, LC_ALL="C.UTF-8")
        env.pop("LINES", None)
        env.pop("COLUMNS", None)
        self.process = subprocess.Popen(
            [PROFD, "top", *args], env=env, start_new_session=True,
            stdin=self.slave, stdout=self.slave, stderr=self.slave,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def resize(self, columns, rows):
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds):
        if not select.select([self.master], [], [], seconds)[0]:
            return
        data = os.read(self.master, 65536)
        self.raw += data
        self.stream.feed(data)

    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display)

    def wait(self, pattern, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if re.search(pattern, self.text(), re.M):
                return True
            self.read(0.1)
        return False

    def key(self, keys, pattern):
        os.write(self.master, keys.encode())
        return self.wait(pattern)

    def end(self, seconds=60):
        """The exit status, after all output."""
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.05)
        self.read(0.05)
        if self.process.poll() is None:
            self.process.kill()
            return "runs"
        return self.process.returncode

    def restored(self):
        """The modes of the terminal, its first screen, and the cursor."""
        return (termios.tcgetattr(self.slave) == self.before
                and self.raw.rfind(b"\x1b[?1049l")
                > self.raw.rfind(b"\x1b[?1049h") >= 0
                and self.raw.rfind(b"\x1b[?25l")
                < max(self.raw.rfind(b"\x1b[?25h"),
                      self.raw.rfind(b"\x1b[?12;25h")))

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


def check(name, passed, terminal=None):
    print(f"{0 if passed else 1} {name}")
    if not passed and terminal:
        for line in terminal.text().splitlines():
            print("#", line)
        print("#", terminal.raw[-300:])
    sys.stdout.flush()


def printed(*args):
    return subprocess.run([PROFD, "top", "-b", *args], capture_output=True,
                          text=True, check=True).stdout.splitlines()


def rows_of(lines):
    """What follows the heading: value, share, ..., name."""
    for i, line in enumerate(lines):
        if re.match(r" *(flat|FLAT|CPU) ", line):
            return [re.split(r" +", row.strip(), maxsplit=5)
                    for row in lines[i + 1:]]
    return []


def test_keys():
    t = Terminal(FILE)
    check("a file: its functions", t.wait(r"FLAT +FLAT% +SUM%(.*\n)+.*q leave"),
          t)
    want = [row for row in rows_of(printed(FILE, "--count", "10000"))]
    got = rows_of(t.screen.display)[:20]
    # The name may be cut; "(inline)" belongs to it.
    same = len(got) == 20 and all(
        g[:5] == w[:5] and w[5].startswith(g[5].rstrip())
        for g, w in zip(got, want))
    check("... with the numbers that are printed", same, t)
    check("s: by cum", t.key("s", "sorted by cum"), t)
    check("p: processes", t.key("p", r"by process(.*\n)+.*% +[0-9]+-[0-9a-f]+"), t)
    first = rows_of(t.screen.display)[0][3]
    check("Enter: of one process",
          t.key("\r", f"by function.*only process {re.escape(first)}"), t)
    check("... which is all", t.wait(r"100% +[^ ]"), t)
    check("Backspace: all again", t.key("\x7f", "by process, *$|by process$"), t)
    check("Tab: the next rows", t.key("\t", "by comm"), t)
    check("?: help", t.key("?", "Enter  +only the samples"), t)
    check("a key: the table", t.key("x", "by comm"), t)
    check("Enter where there is no label", t.key("f", "by function")
          and t.key("\r", "Choose other rows"), t)
    os.write(t.master, b"\x1b[B\x1b[6~\x1b[F\x1b[H\x1b[5~\x1b[A")
    for columns, rows in (40, 5), (20, 2), (1, 1), (40, 5):
        t.resize(columns, rows)
        time.sleep(0.1)
        while select.select([t.master], [], [], 0.3)[0]:
            t.read(0)
    check("40 columns, 5 lines", t.wait(r"^ *FLAT +FLAT% +FUNCTION")
          and t.process.poll() is None, t)
    t.resize(120, 40)
    check("120 columns, 40 lines", t.wait(r"SUM% .*FUNCTION(.*\n)+.*q leave"), t)
    os.write(t.master, b"q")
    check("q: 0", t.end() == 0, t)
    check("... and the terminal is as before", t.restored(), t)
    t.close()


def test_ends():
    for signum, want in ((signal.SIGINT, 0), (signal.SIGTERM, 128 + 15),
                         (signal.SIGQUIT, 128 + 3)):
        t = Terminal(FILE)
        t.wait("FLAT%")
        t.process.send_signal(signum)
        check(f"{signum.name}: {want}", t.end() == want, t)
        check("... and the terminal is as before", t.restored(), t)
        t.close()
    t = Terminal(FILE)
    t.wait("FLAT%")
    check("Ctrl-C: 0", t.key("\x03", "^") and t.end() == 0, t)
    t.close()
    t = Terminal(FILE)
    t.wait("FLAT%")
    os.close(t.slave)
    os.close(t.master)
    end = time.monotonic() + 20
    while t.process.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    check("a terminal that is closed ends it", t.process.poll() is not None)
    t.process.kill()
    t.process.wait()


def test_dumb():
    for term in "dumb", "", "no-such-terminal":
        t = Terminal(FILE, "--count", "3", term=term)
        status = t.end()
        check(f"TERM={term}: printed once", status == 0
              and b"flat  flat%" in t.raw and b"\x1b" not in t.raw, t)
        t.close()


def test_names():
    for keys in "n", "p", "e", "f", "l":
        t = Terminal(HOSTILE, columns=80)
        t.wait("FLAT%")
        t.key(keys, "by ")
        t.wait("sorted|CPU%")
        bad = re.search(rb"\x1b\]|\x1b\[31m|\x07|\xe2\x80\xae|\xc2\x9b", t.raw)
        check(f"hostile names, rows {keys}: escaped", not bad, t)
        t.close()
    t = Terminal(HOSTILE, "--rows", "comm", columns=80)
    check("... as text", t.wait(r"\\033\]0;x\\007"), t)
    wide = [line for line in t.screen.display if "日本" in line]
    check("wide characters are whole", bool(wide), t)
    t.resize(26, 12)
    # 19 columns of numbers, then the name: a wide one is not cut in half.
    check("... on a narrow terminal", t.wait("日本"), t)
    os.write(t.master, b"q")
    check("... which ends well", t.end() == 0 and t.restored(), t)
    t.close()


def test_live():
    t = Terminal("--server", f"unix:{SOCK}", "-d", "1", columns=120)
    check("live: soon a table", t.wait("prog_spin|spin_a"), t)
    check("live: processes, with state, coverage and command",
          t.key("p", r"PID +FLAT .*STATE +CPU TIME +COVER +PROCESS")
          and t.wait(r"^ *\d+ .* alive .*(spin|bash)"), t)
    check("... sums of descendants", t.key("s", "sorted by cum")
          and t.wait(r"^ +\d+ +0 +0% +[1-9][0-9.]*m?s .* alive"), t)
    check("Space stops it", t.key(" ", "stopped"), t)
    check("... and continues", t.key(" ", "q leave"), t)
    os.write(t.master, b"q")
    begin = time.monotonic()
    check("q: 0", t.end() == 0, t)
    check("... at once", time.monotonic() - begin < 30, t)
    check("... the terminal is as before", t.restored(), t)
    t.close()
    t = Terminal("--server", f"unix:{SOCK}", "-d", "1", "-n", "2")
    check("-n 2 ends by itself", t.end() == 0 and t.restored(), t)
    t.close()
    t = Terminal("--server", f"unix:{SOCK}", "-d", "300")
    t.wait("FLAT%")
    os.kill(int(SERVER), signal.SIGKILL)
    check("profd is killed: 1", t.end() == 1, t)
    check("... the terminal is as before", t.restored(), t)
    check("... and there is a message", SOCK.encode() in
          t.raw[t.raw.rfind(b"\x1b[?1049l"):], t)
    t.close()


test_keys()
test_ends()
test_dumb()
test_names()
test_live()
