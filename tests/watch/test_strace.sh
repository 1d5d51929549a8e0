#!/bin/bash
# System calls as strace has them: names, results and descriptors of python3, git, nginx and
# redis-server, of each more than 10,000 calls.
. "$(dirname "$0")/../e2e/lib.sh"
compare=$ROOT/tests/watch/compare.py

start_profd watch
# What is traced has a user of its own, and with it a budget while the ring is crowded:
# strace makes several calls for each of these, and the rest of the host makes others.
user=64029
as_user=(setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs)
chmod 711 "$T"
mkdir "$T/user"
chown "$user:$user" "$T/user"
export TMPDIR=$T/user HOME=$T/user
# both NAME COMMAND...: strace's view in $T/NAME.strace, profd's in $T/NAME.watch.
both() {
	local name=$1 watcher witness
	shift
	background "$B/tests/watch/prog_exits" "$user" >"$T/$name.witness"
	witness=$pid
	check "$name: a witness counts calls" wait_for 60 grep -q ready "$T/$name.witness"
	background "$PROFD" watch --json --server "unix:$sock" --user "$user" 'syscall_exit-*' \
		>"$T/$name.watch" 2>"$T/$name.err"
	watcher=$pid
	check "$name: hooks are attached" wait_for 60 grep -q '"watching"' "$T/$name.watch"
	# Below that budget: 2,000 events a second, of two or three threads.
	strace -f -yy -s 0 -e inject=all:delay_exit=3000 -o "$T/$name.strace" "${as_user[@]}" "$@" \
		>"$T/$name.out" 2>&1
	is "$name: it ends well" $? 0
	sleep 3
	kill -INT "$watcher" "$witness"
	wait "$watcher" "$witness" 2>/dev/null
	python3 "$compare" "$T/$name.strace" "$T/$name.watch" "$user" "$T/$name.witness" \
		>"$T/$name.compared"
	is "$name: the same calls" "$(grep -v '^[0-9]* calls, .* 0 differ, ' \
		"$T/$name.compared")" ""
	num "$name: enough of them" "$(awk '/ calls, / { print $1 }' "$T/$name.compared")" \
		'>=' 10000
	tail -n 1 "$T/$name.compared" | sed 's/^/# /'
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
    for i in range(200):
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

"${as_user[@]}" git init -q "$T/user/repository"
cd "$T/user/repository" || exit 1
for ((i = 0; i < 200; i++)); do
	echo "$i" >"file $i"
done
chown "$user:$user" ./*
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
both git /bin/bash "$T/git.sh"

# --- servers; their load is not traced ---
cd / || exit 1
mkdir "$T/nginx" "$T/redis"
head -c 30000 /dev/urandom >"$T/nginx/large file"
echo small >"$T/nginx/small"
chown -R "$user:$user" "$T/nginx" "$T/redis"
at=$(free_port)
cat >"$T/nginx.conf" <<EOF
daemon off;
worker_processes 2;
pid $T/nginx/pid;
error_log $T/nginx/error.log;
events { worker_connections 64; }
http {
	access_log $T/nginx/access.log;
	client_body_temp_path $T/nginx/body;
	proxy_temp_path $T/nginx/proxy;
	fastcgi_temp_path $T/nginx/fastcgi;
	uwsgi_temp_path $T/nginx/uwsgi;
	scgi_temp_path $T/nginx/scgi;
	sendfile on;
	server {
		listen 127.0.0.1:$at;
		listen unix:$T/nginx/socket;
		location / { root $T/nginx; }
		location /proxy/ { proxy_pass http://unix:$T/nginx/socket:/; }
	}
}
EOF
load_nginx() {
	local url=http://127.0.0.1:$at pages=() page
	wait_for 60 curl -sf "$url/small" || return 1
	for ((i = 0; i < 130; i++)); do
		pages+=("$url/small" "$url/large%20file" "$url/proxy/small" "$url/absent")
	done
	# Over one connection, then over one each.
	curl -s "${pages[@]}" >"$T/pages" || return 1
	for page in "${pages[@]:0:160}"; do
		curl -s "$page" >"$T/page" || return 1
	done
	kill -QUIT "$(cat "$T/nginx/pid")"
}
load_nginx &
load=$!
both nginx /usr/sbin/nginx -e "$T/nginx/error.log" -c "$T/nginx.conf"
wait "$load"
is "nginx: it answers" $? 0

at=$(free_port)
load_redis() {
	wait_for 60 redis-cli -p "$at" ping || return 1
	redis-benchmark -p "$at" -n 500 -c 4 -q -t set,get,incr,lpush,lpop,hset,mset \
		>"$T/redis.bench" || return 1
	redis-cli -p "$at" bgsave
	wait_for 60 test -s "$T/redis/dump.rdb" || return 1
	redis-cli -p "$at" shutdown
}
load_redis >"$T/redis.load" 2>&1 &
load=$!
both redis /usr/bin/redis-server --port "$at" --bind 127.0.0.1 \
	--dir "$T/redis" --unixsocket "$T/redis/socket" --appendonly yes --save ''
wait "$load"
is "redis: it answers" $? 0
stop_profd
is "profd ends well" $? 0
plan
