# hold ADDRESS FLAG [SECONDS]: for 60 s, 400 incomplete requests, which continue by a
# byte ten times a second; each that is closed is opened again. FLAG is written when all
# are open.
import os, select, socket, sys, time
address = sys.argv[1]
text = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"x" * 10000
def dial():
    if address.startswith("/"):
        s = socket.socket(socket.AF_UNIX)
        name = address
    else:
        s = socket.socket()
        host, port = address.rsplit(":", 1)
        name = (host, int(port))
    s.settimeout(5)
    try:
        s.connect(name)
        s.send(text[:20])
    except OSError:
        return None
    return [s, 20]
held, end = [], time.time() + float(sys.argv[3] if len(sys.argv) > 3 else 60)
while time.time() < end:
    while len(held) < 400:
        h = dial()
        if not h:
            break
        held.append(h)
    with open(sys.argv[2], "w") as f:
        f.write("holding\n")
    alive = []
    for h in held:
        try:
            h[0].setblocking(False)
            try:
                gone = h[0].recv(1) == b""
            except BlockingIOError:
                gone = False
            if gone:
                raise OSError
            h[0].send(text[h[1]:h[1] + 1])
            h[1] += 1
            alive.append(h)
        except OSError:
            h[0].close()
    held = alive
    time.sleep(0.1)
