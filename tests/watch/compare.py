#!/usr/bin/env python3
"""compare.py STRACE WATCH UID WITNESS: system calls of the same processes as strace -f -yy
and profd watch --json have them: names, results and descriptors, one after the other of each
thread. The processes are those of a user, as which setpriv executes the first of them.
Prints the numbers, and up to 20 differences; status 1 if there is one.

Some kernels leave tracepoints out for some milliseconds while hooks are attached and
detached. So calls that profd lacks are no difference if another program at the same
tracepoint, prog_exits, has as many calls of that thread as profd; they are counted.

One difference is known, and counted: of a call in which a thread waits when it is killed
strace has no result ("= ?"); that of profd is what the kernel returns then, to start the
call again."""

import errno
import json
import re
import sys

LINE = re.compile(r"^(\d+) +(.*)$")
CALL = re.compile(r"^(\w+)\((.*)\) += (0x[0-9a-f]+|-?\d+|\?)(.*)$")
FD = re.compile(r"^(\d+)<((?:->|[^<>\\]|\\.|<[^<>]*>)*)>")
NO_END = {"exit", "exit_group", "rt_sigreturn"}
RESULT = {"open", "openat", "creat", "openat2", "socket", "accept", "accept4", "dup", "dup2",
          "dup3", "eventfd", "eventfd2", "epoll_create", "epoll_create1", "timerfd_create",
          "inotify_init", "inotify_init1", "memfd_create", "pidfd_open", "signalfd",
          "signalfd4"}


KILLED = "killed"


def lines(path):
    """Whole calls of each thread; those that were interrupted by another are put together."""
    begun = {}
    for line in open(path, errors="surrogateescape"):
        m = LINE.match(line)
        if not m:
            continue
        tid, text = int(m[1]), m[2]
        if text.endswith("<unfinished ...>"):
            begun[tid] = text[: -len("<unfinished ...>")].rstrip()
            continue
        m = re.match(r"^<\.\.\. (\w+) resumed>(.*)$", text)
        if m:
            text = begun.pop(tid, m[1] + "(") + m[2].lstrip() if tid in begun else ""
        yield tid, text


def word(what):
    """A descriptor of strace: a path, or its kind."""
    what = re.sub(r"\(deleted\)$", "", what).rstrip()
    for begin, kind in (("pipe:", "pipe"), ("UNIX", "socket unix"), ("socket:", "socket"),
                        ("NETLINK", "socket netlink"), ("anon_inode:", "anon"), ("pid:", "anon")):
        if what.startswith(begin):
            return kind
    m = re.match(r"^(TCP|UDP)(v6)?:\[(.*)\]$", what)
    if m:
        return "socket " + m[1].lower()
    m = re.match(r"^(/.*?)(<(?:char|block) [0-9:]+>)?$", what)
    return m[1] if m else what


def of_strace(path):
    calls = {}
    for tid, text in lines(path):
        m = CALL.match(text)
        if not m or m[1] in NO_END:
            continue
        name, args, res, rest = m[1], m[2], m[3], m[4]
        error = re.match(r"^ (E\w+)", rest)
        fd = FD.match(args)
        if name in RESULT and not error:
            fd = FD.match(res + rest)
        if error:
            res = error[1]
        elif res == "?":
            res = KILLED
        else:
            res = int(res, 8 if re.match(r"^0\d", res) else 0)
        calls.setdefault(tid, []).append(
            (name, res, (int(fd[1]), word(fd[2])) if fd else None))
    return calls


def is_killed(theirs, ours):
    """Whether that was the last call of a thread."""
    return theirs[1] == KILLED and ours[0] == theirs[0] and ours[1] in RESTART.values()


RESTART = {-512: "ERESTARTSYS", -513: "ERESTARTNOINTR", -514: "ERESTARTNOHAND",
           -516: "ERESTART_RESTARTBLOCK"}


def of_watch(path, uid):
    calls, lost = {}, 0
    for line in open(path, errors="surrogateescape"):
        try:
            o = json.loads(line)
        except ValueError:
            continue
        lost += sum(o.get("lost", {}).values())
        if not o.get("name", "").startswith("syscall_exit-") or o.get("uid") != uid:
            continue
        res = next((a["value"] for a in o["attributes"] if a["key"] == "res"), 0)
        res = int(res)
        if -4096 < res < 0:
            res = errno.errorcode.get(-res) or RESTART.get(res) or res
        fd = o.get("fd")
        if fd and "num" in fd:
            if "dir" in fd:
                text = fd["dir"].rstrip("/") + "/" + fd.get("file", "")
            elif fd["kind"] == "socket":
                text = ("socket " + fd.get("protocol", "")).strip()
            elif fd["kind"] in ("eventfd", "epoll", "timerfd", "signalfd", "inotify", "pidfd"):
                text = "anon"
            else:
                text = fd["kind"]
            fd = (fd["num"], text)
        calls.setdefault(o["tid"], []).append((o["name"][len("syscall_exit-"):], res, fd))
    return calls, lost


def of_witness(path):
    """The number of calls by thread."""
    counts = {}
    for line in open(path):
        words = line.split()
        if words[0].isdigit():
            counts[int(words[0])] = int(words[1])
    return counts


def without_unreported(calls, mine):
    """The calls that profd has, if all that it has are among them in this order."""
    left, i = [], 0
    for call in calls:
        if i < len(mine) and call[:2] == mine[i][:2] and (not call[2] or call[2] == mine[i][2]):
            left.append(call)
            i += 1
    return left if i == len(mine) else calls


def is_exec(call):
    return call[0] in ("execve", "execveat") and call[1] == 0


def main():
    theirs = of_strace(sys.argv[1])
    ours, lost = of_watch(sys.argv[2], int(sys.argv[3]))
    witness = of_witness(sys.argv[4])
    n = with_fd = different = killed = unreported = 0
    first = True
    for tid, calls in sorted(theirs.items(), key=lambda item: not is_exec(item[1][0])):
        mine = ours.get(tid, [])
        delivered = len(mine)
        if first:
            # That of setpriv, which has another user, and that of the program.
            at = [i for i, c in enumerate(calls) if is_exec(c)][1]
            calls = calls[at:]
            at = next((i for i, c in enumerate(mine) if is_exec(c)), 0)
            mine = mine[at:]
            first = False
        # A thread begins with the end of its clone.
        while mine and mine[0][0] in ("clone", "clone3", "fork", "vfork") and mine[0][1] == 0:
            mine = mine[1:]
        if calls and calls[-1][1] == KILLED:
            killed += 1
            if len(mine) == len(calls) and is_killed(calls[-1], mine[-1]):
                mine.pop()
            calls.pop()
        if len(mine) < len(calls) and witness.get(tid, 0) == delivered:
            reported = without_unreported(calls, mine)
            unreported += len(calls) - len(reported)
            calls = reported
        if len(mine) != len(calls):
            different += 1
            print(f"{tid}: {len(calls)} calls of strace, {len(mine)} of profd")
        for a, b in zip(calls, mine):
            n += 1
            same = a[:2] == b[:2]
            # What strace does not know as a descriptor it does not print.
            if same and a[2]:
                with_fd += 1
                same = b[2] is not None and a[2] == b[2]
            if not same:
                different += 1
                if different <= 20:
                    print(f"{tid}: strace {a}, profd {b}")
                if a[0] != b[0]:
                    break
    print(f"{n} calls, {with_fd} with a descriptor, {different} differ, "
          f"{killed} of killed threads, {unreported} that the kernel did not report, "
          f"{lost} of others lost")
    return 1 if different or not n else 0


sys.exit(main())
