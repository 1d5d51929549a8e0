#!/bin/bash
# System calls as strace has them: names, results and descriptors of python3 and git, of
# 10,000 calls and more.
. "$(dirname "$0")/../e2e/lib.sh"
compare=$ROOT/tests/watch/compare.py

start_profd watch
# both NAME COMMAND...: strace's view in $T/NAME.strace, profd's in $T/NAME.watch.
both() {
	local name=$1 watcher
	shift
	background "$PROFD" watch --json --server "unix:$sock" --subtree $$ 'syscall_exit-*' \
		>"$T/$name.watch" 2>"$T/$name.err"
	watcher=$pid
	check "$name: hooks are attached" wait_for 60 grep -q '"watching"' "$T/$name.watch"
	# strace makes several calls for each of these. At full speed they crowd the ring.
	strace -f -yy -s 0 -e inject=all:delay_exit=1000 -o "$T/$name.strace" "$@" >"$T/$name.out" 2>&1
	is "$name: it ends well" $? 0
	sleep 3
	kill -INT "$watcher"
	wait "$watcher" 2>/dev/null
	check "$name: the same calls" python3 "$compare" "$T/$name.strace" "$T/$name.watch"
	python3 "$compare" "$T/$name.strace" "$T/$name.watch" | tail -n 1 | sed 's/^/# /'
}

cat >"$T/work.py" <<'PY'
import http.server, json, os, selectors, socket, subprocess, sqlite3, tempfile, threading, urllib.request
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"x")
    def log_message(self, *a):
        pass
s = http.server.HTTPServer(("127.0.0.1", 0), H)
threading.Thread(target=s.serve_forever, daemon=True).start()
with tempfile.TemporaryDirectory() as d:
    for i in range(40):
        p = f"{d}/some file {i}"
        with open(p, "w") as f:
            f.write("x" * i)
        with open(p) as f:
            f.read()
        urllib.request.urlopen(f"http://127.0.0.1:{s.server_port}/").read()
    db = sqlite3.connect(d + "/db")
    db.execute("create table t(x)")
    for i in range(20):
        db.execute("insert into t values(1)")
        db.commit()
    db.close()
    for i in range(5):
        subprocess.run(["/bin/cat", p], stdout=subprocess.DEVNULL, check=True)
s.shutdown()
PY
both python3 /usr/bin/python3 "$T/work.py"

git init -q "$T/repository"
cd "$T/repository" || exit 1
for ((i = 0; i < 200; i++)); do
	echo "$i" >"file $i"
done
cat >"$T/git.sh" <<'SH'
set -e
for i in 1 2 3; do
	git add -A
	git -c user.name=x -c user.email=x@x commit -qm "change $i"
	echo more >>"file $i"
	git status --short
	git log -p | cat
done
git gc -q
git fsck
SH
both git bash "$T/git.sh"
stop_profd
is "profd ends well" $? 0
plan
