#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bombs: executables that take next to nothing on disk, and much to read.

bombs.py strings PROGRAM OUT: .debug_str is 376 MiB, a hole behind its strings
bombs.py link PROGRAM OUT BYTES: without build id and names, and with a .gnu_debuglink to
    OUT.debug, a file of so many bytes, all a hole
"""
import os
import subprocess
import sys

SHDR = 64
STR_BYTES = 376 << 20


def u(data, at, size):
    return int.from_bytes(data[at : at + size], "little")


def put(data, at, size, value):
    data[at : at + size] = value.to_bytes(size, "little")


def section(data, wanted):
    """The offset of the section's header; see elf(5), ELF64."""
    shoff, num, names = u(data, 40, 8), u(data, 60, 2), u(data, 62, 2)
    strings = u(data, shoff + names * SHDR + 24, 8)
    for i in range(num):
        at = shoff + i * SHDR
        name = strings + u(data, at, 4)
        if data[name : data.index(0, name)] == wanted:
            return at
    raise SystemExit("no section " + wanted.decode())


def bomb_strings(program, out):
    data = bytearray(open(program, "rb").read())
    at = section(data, b".debug_str")
    off, size = u(data, at + 24, 8), u(data, at + 32, 8)
    end = (len(data) + 4095) & ~4095
    put(data, at + 24, 8, end)
    put(data, at + 32, 8, STR_BYTES)
    with open(out, "wb") as f:
        f.write(data)
        f.seek(end)
        f.write(data[off : off + size])
        f.truncate(end + STR_BYTES)


def bomb_link(program, out, size):
    debug = out + ".debug"
    open(debug, "wb").close()
    subprocess.run(
        ["objcopy", "--strip-all", "--remove-section=.note.gnu.build-id",
         "--add-gnu-debuglink=" + debug, program, out], check=True)
    os.truncate(debug, size)


if sys.argv[1] == "strings":
    bomb_strings(sys.argv[2], sys.argv[3])
else:
    bomb_link(sys.argv[2], sys.argv[3], int(sys.argv[4]))
os.chmod(sys.argv[3], 0o755)
