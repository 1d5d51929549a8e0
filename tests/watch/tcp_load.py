#!/usr/bin/env python3
"""tcp_load.py ROLE...: connections whose events are compared with what others count.

link NAMESPACE NAMESPACE DIRECTORY
    A link between two network namespaces, tun0 in each, that delays each packet by 10 ms
    and loses 3 of 100, until DIRECTORY/lossless is there. Not every kernel has netem.
serve DIRECTORY PORT ADDRESS...
    PORT: sends back as much as it gets; PORT + 1: resets each connection.
connect DIRECTORY PORT PEER... -- ABSENT...
    Four processes connect to these, to a port on which nobody listens, and to addresses
    that do not answer. A line a connection: pid, address, port, errno. The last
    connections of each are held open until DIRECTORY/release is there."""

import errno
import fcntl
import heapq
import os
import random
import select
import socket
import struct
import sys
import threading
import time

BYTES = 20000
SYNCNT = 7


def setns(name):
    import ctypes
    fd = os.open(f"/run/netns/{name}", os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(fd, 0x40000000):
        raise OSError(ctypes.get_errno(), "setns")
    os.close(fd)


def tun(namespace):
    setns(namespace)
    fd = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(fd, 0x400454CA, struct.pack("16sH22x", b"tun0", 0x1001))  # TUNSETIFF, NO_PI
    return fd


def link(a, b, directory):
    rng = random.Random(1)
    ends = [tun(a), tun(b)]
    queue, n = [], 0
    open(f"{directory}/linked", "w").close()
    while True:
        wait = max(0, queue[0][0] - time.monotonic()) if queue else 1
        for fd in select.select(ends, [], [], wait)[0]:
            packet = os.read(fd, 65536)
            n += 1
            lossless = os.path.exists(f"{directory}/lossless")
            if lossless or rng.random() >= 0.03:
                heapq.heappush(queue, (time.monotonic() + 0.01, n,
                                       ends[1 - ends.index(fd)], packet))
        while queue and queue[0][0] <= time.monotonic():
            _, _, fd, packet = heapq.heappop(queue)
            try:
                os.write(fd, packet)
            except OSError:
                pass  # the device is not up yet, or any more


def receive(s, n):
    while n:
        data = s.recv(min(n, 65536))
        if not data:
            raise EOFError
        n -= len(data)


def answer(s):
    try:
        with s:
            while True:
                receive(s, BYTES)
                s.sendall(b"a" * BYTES)
    except (OSError, EOFError):
        pass


def accept(listener, reset):
    while True:
        s = listener.accept()[0]
        if reset:
            s.recv(1)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()
        else:
            threading.Thread(target=answer, args=(s,), daemon=True).start()


def new(address):
    return socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)


def serve(directory, port, addresses):
    threads = []
    for address in addresses:
        for reset in 0, 1:
            s = new(address)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind((address, port + reset))
            s.listen(64)
            threads.append(threading.Thread(target=accept, args=(s, reset), daemon=True))
    for t in threads:
        t.start()
    print("ready", flush=True)
    time.sleep(3600)


def connect(address, port, syns=6):
    """A socket, or None; prints the result."""
    s = new(address)
    s.setsockopt(socket.IPPROTO_TCP, SYNCNT, syns)
    try:
        s.connect((address, port))
        err = 0
    except OSError as e:
        err = e.errno
    # One write a line: four processes have the same output.
    os.write(1, f"{os.getpid()} {address} {port} {err}\n".encode())
    if err:
        s.close()
        return None
    s.settimeout(60)
    return s


def talk(s):
    s.sendall(b"q" * BYTES)
    receive(s, BYTES)


def use(directory, port, peers, absent):
    for peer in peers:
        for _ in range(15):
            s = connect(peer, port)
            talk(s)
            s.close()
        for _ in range(10):
            s = connect(peer, port + 1)
            try:
                s.settimeout(3)
                s.sendall(b"r")
                s.recv(1)
            except OSError as e:
                if e.errno not in (errno.ECONNRESET, None):
                    raise
            s.close()
        for _ in range(10):
            connect(peer, port + 2)
    for address in absent:
        connect(address, port, 1)
    held = []
    for peer in peers:
        for _ in range(2):
            held.append(connect(peer, port))
            talk(held[-1])
    open(f"{directory}/held.{os.getpid()}", "w").close()
    while not os.path.exists(f"{directory}/release"):
        time.sleep(0.05)
    for s in held:
        s.close()


def main():
    role, args = sys.argv[1], sys.argv[2:]
    if role == "link":
        link(*args)
    elif role == "serve":
        serve(args[0], int(args[1]), args[2:])
    else:
        at = args.index("--")
        for _ in range(4):
            if not os.fork():
                use(args[0], int(args[1]), args[2:at], args[at + 1:])
                os._exit(0)
        failed = 0
        for _ in range(4):
            failed += os.wait()[1] != 0
        sys.exit(failed)


main()
