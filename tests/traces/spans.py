#!/usr/bin/env python3
"""spans.py WARM SECONDS LOG: spans of ddtrace on threads of two processes, for
test_python.sh. Each thread logs when its span changes, as compare.py reads it.

Seconds are of CPU time, of each process; the first WARM are outside of any span. The other
process is a child of fork, with a log of its own (LOG.child): ddtrace publishes its context
again in it."""
import hashlib
import os
import sys
import threading
import time

from ddtrace.trace import tracer

THREADS = 2
lines = []


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Log:
    def __init__(self):
        self.tid = threading.get_native_id()

    def changed(self, before, span):
        """What this thread has now; it had not before."""
        ids = f"{span.trace_id:032x} {span.span_id:016x}" if span else "- -"
        lines.append(f"{self.tid} {before} {now()} {ids}")


def burn(ms):
    """CPU time of this thread: of the interpreter, and of C code that lets others run."""
    end = time.thread_time() + ms / 1000
    data = bytes(65536)
    while time.thread_time() < end:
        sum(range(2000))
        hashlib.sha256(data).digest()


def request(log):
    before = now()
    with tracer.trace("outer") as outer:
        log.changed(before, outer)
        burn(40)
        before = now()
        with tracer.trace("inner") as inner:
            log.changed(before, inner)
            burn(30)
            before = now()
        log.changed(before, outer)
        burn(20)
        before = now()
    log.changed(before, None)


def requests(end):
    log = Log()
    while time.process_time() < end:
        request(log)
        burn(15)


def one():
    """Of a thread that does nothing else."""
    request(Log())


def run(warm, seconds, path):
    burn(warm * 1000)
    end = time.process_time() + seconds
    threads = [threading.Thread(target=requests, args=(end,)) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    while time.process_time() < end:
        thread = threading.Thread(target=one)
        thread.start()
        thread.join()
    for thread in threads:
        thread.join()
    with open(path, "w") as log:
        log.write("".join(line + "\n" for line in lines))


def main():
    warm, seconds, path = float(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
    child = os.fork()
    if not child:
        run(warm, seconds, path + ".child")
        sys.exit(0)
    run(warm, seconds, path)
    sys.exit(os.waitpid(child, 0)[1] != 0)


main()
