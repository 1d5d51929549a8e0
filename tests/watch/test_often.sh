#!/bin/bash
# A thousand subscriptions, one after the other and beside another one: none leaves a
# program, a link or a map in profd. The heap is compared by tests/bpf/watch/test_watch.c: that
# of a profd which samples a busy host grows by what it learns of the host.
. "$(dirname "$0")/../e2e/lib.sh"

# often.py SOCKET N NAME...: N times, subscribes to the next name, and waits until its hooks
# are attached.
cat >"$T/often.py" <<'PY'
import socket, sys
path, n, names = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
for i in range(n):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    s.connect(path)
    name = names[i % len(names)]
    s.sendall(f"GET /api/watch?name={name} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    got = b""
    while b'"watching"' not in got:
        data = s.recv(65536)
        if not data:
            sys.exit(f"{name}, the {i}th: {got[-300:]!r}")
        got += data
    s.close()
PY
often() { python3 "$T/often.py" "$sock" "$@"; }
objects() { ls -l "/proc/$profd/fd" | grep -cE 'bpf[-_](prog|link|map)'; }
nobody() { (($(metric profd_watch_subscribers) == 0 && $(metric profd_watch_hooks) == 0)); }
names=('tcp_*' syscall_exit-openat 'signal_*' '*' process_exit 'syscall_enter-*/file')

start_profd watch
is "nothing is attached" "$(metric profd_watch_hooks)" 0
before=$(objects)
# Each loads the programs, and unloads them.
check "40, alone" often 40 "${names[@]}"
check "nothing is attached after them" wait_for 60 nobody
is "... and nothing is left" "$(objects)" "$before"
# Each attaches some hooks more, and detaches them.
background "$PROFD" watch --json --server "unix:$sock" process_exec >"$T/watch" 2>"$T/watch.err"
watcher=$pid
check "another one watches" wait_for 60 grep -q '"watching"' "$T/watch"
check "200 beside it" often 200 "${names[@]}"
during=$(objects)
check "760 beside it" often 760 "${names[@]}"
only() { (($(metric profd_watch_subscribers) == 1 && $(metric profd_watch_hooks) == 1)); }
check "only its own hook is attached" wait_for 60 only
num "... no more programs, links and maps than before" "$(objects)" '<=' "$during"
kill -INT "$watcher"
wait "$watcher" 2>/dev/null
check "the last one has gone: nothing is attached" wait_for 60 nobody
is "... and nothing is left" "$(objects)" "$before"
is "profd samples" "$(ask /healthz | grep -c '^failing')" 0
stop_profd
is "profd ends well" $? 0
plan
