#!/bin/bash
# profd watch and /api/watch: events of the kernel with the process they are of; filters,
# errors, who may; clients that stall, and what is left when nobody watches any more.
. "$(dirname "$0")/lib.sh"

# watches NAME ARGUMENT...: profd watch --json in the background, to $T/NAME; returns when
# its hooks are attached.
watches() {
	local name=$1
	shift
	background "$PROFD" watch --json --server "unix:$sock" "$@" \
		>"$T/$name" 2>"$T/$name.err"
	check "$name: hooks are attached" wait_for 60 grep -q '"watching"' "$T/$name"
}
# has NAME FILTER: an event that jq selects.
has() { [ -n "$(of "$@")" ]; }
of() { jq -c "select(.name) | select($2)" "$T/$1" 2>/dev/null; }
status() {
	curl -sS -o "$T/body" -w '%{http_code}' --max-time 60 "$@" 2>"$T/curl.err"
}
watch_status() { status --unix-socket "$sock" "http://x/api/watch?$1"; }
# A connection to a port of this host that nobody listens on, and one that is accepted.
cat >"$T/connect.py" <<'PY'
import os, socket, sys
s = socket.socket()
s.bind(("127.0.0.1", 0))
name = s.getsockname()
if sys.argv[1:] == ["refused"]:
    s.close()
    try:
        socket.create_connection(name)
    except ConnectionRefusedError:
        print(os.getpid(), name[1])
else:
    s.listen()
    c = socket.create_connection(name)
    a = s.accept()[0]
    c.sendall(b"x" * 5000)
    n = 0
    while n < 5000:
        n += len(a.recv(5000))
    print(os.getpid(), name[1], c.getsockname()[1])
    c.close()
    a.close()
PY

head -c 24 /dev/urandom | base64 >"$T/token"
chmod 600 "$T/token"
start_profd watch --token-file "$T/token"
is "nothing is attached" "$(metric profd_watch_hooks)" 0
programs() { ls -l "/proc/$profd/fd" | grep -cE 'bpf[-_](prog|link)'; }
before=$(programs)

# --- TCP ---
watches tcp 'tcp_*'
read -r pid_c port_l port_c < <(python3 "$T/connect.py")
closed() { (($(of tcp ".pid == $pid_c and .name == \"tcp_close\"" | wc -l) == 2)); }
check "both ends are closed" wait_for 60 closed
is "who connected, where, from where" "$(of tcp ".pid == $pid_c and .name == \"tcp_connect\"" |
	jq -c '[.comm, .category, .fd.role, .fd.src, .fd.dst, .fd.protocol, .latency_ns > 0]')" \
	"[\"python3\",\"net\",\"client\",\"127.0.0.1:$port_c\",\"127.0.0.1:$port_l\",\"tcp\",true]"
is "its result" "$(of tcp ".pid == $pid_c and .name == \"tcp_connect\"" |
	jq -c .attributes)" '[{"key":"retval","type":"int","value":0}]'
is "its id is that of other events" "$(of tcp ".pid == $pid_c and .name == \"tcp_connect\"" |
	jq -r .process | tr '\n' ' ')" "$(ask "/api/events?last=10m&pid=$pid_c&type=exec" |
	jq -r '[."profd.process"][]' | sort -u | tr '\n' ' ')"
is "bytes that the client sent" "$(of tcp ".pid == $pid_c and .name == \"tcp_close\" and
	.fd.role == \"client\"" | jq '.attributes[] | select(.key == "bytes_acked").value |
	. >= 5000 and . <= 5002')" true
check "its times are in order" sort -c <(jq -r '.time // empty' "$T/tcp")
read -r pid_r _ < <(python3 "$T/connect.py" refused)
check "a refused connection" wait_for 60 has tcp ".pid == $pid_r and .failed and
	.name == \"tcp_connect\" and .attributes[0].value == -111"

# --- filters ---
watches failed --failed tcp_connect
watches subtree --subtree $$ process_exit process_exec
watches other --comm no-such-name 'tcp_*'
watches slow --slower 60s tcp_connect
setpriv --reuid 65534 --regid 65534 --clear-groups python3 "$T/connect.py" >/dev/null
watches user --user nobody process_exit
python3 "$T/connect.py" >"$T/out"
read -r pid_ok _ <"$T/out"
# Beside a storm of the same user a few are lost, and told: then another one.
refused_seen() {
	python3 "$T/connect.py" refused >"$T/out"
	read -r pid_r _ <"$T/out"
	sleep 1.5
	has failed ".pid == $pid_r" && has subtree ".pid == $pid_r and .name == \"process_exit\""
}
check "--failed and --subtree: they have it" wait_for 60 refused_seen
is "--failed: not what did not" "$(of failed ".pid == $pid_ok")" ""
setpriv --reuid 65534 --regid 65534 --clear-groups /bin/sh -c 'exit 4' &
pid_n=$!
wait "$pid_n"
check "--user: it has it" wait_for 60 has user ".pid == $pid_n and .uid == 65534"
is "--user: nobody else" "$(of user '.uid != 65534')" ""
is "--comm: nothing" "$(of other true)" ""
is "--slower: nothing" "$(of slow true)" ""

# --- as text ---
"$PROFD" watch --server "unix:$sock" process_exit signal_generate >"$T/text" 2>"$T/text.err" &
text=$!
check "it says what it watches, and by what" wait_for 60 grep -q \
	'^profd: watching process_exit, signal_generate by sched_process_exit, signal_generate' \
	"$T/text.err"
sh -c 'exit 7' &
seven=$!
wait "$seven"
check "an exit" wait_for 60 grep -qE "^[0-9:.]+ +$seven sh +process_exit status=7$" "$T/text"
sh -c 'trap "" USR2; kill -USR2 $$; true' &
self=$!
wait "$self"
check "a signal" wait_for 60 grep -qE \
	"^[0-9:.]+ +$self sh +signal_generate sig=SIGUSR2 spid=$self dpid=$self code=0 result=ignored$" \
	"$T/text"
kill -INT "$text"
wait "$text"
is "Ctrl-C ends it well" $? 0
like "--list" "$("$PROFD" watch --list)" $'\ntcp_close +net +a connection ended'
like "--list: a line a system call" "$("$PROFD" watch --list)" \
	$'\nopenat +file +enter, exit +dfd, filename, flags, mode\n'
is "--list --json" "$("$PROFD" watch --list --json | jq -s 'length')" \
	"$("$PROFD" watch --list --json | jq -r .name | sort -u | wc -l)"

# --- system calls ---
cat >"$T/calls.py" <<'PY'
import os, time
try:
    os.open(b"/nonexistent/\x1b[31m\xff", os.O_RDONLY)
except FileNotFoundError:
    pass
time.sleep(0.05)
print(os.getpid())
PY
watches calls --comm python3 openat
watches naps --comm python3 --slower 40ms 'syscall_exit-*nanosleep'
"$PROFD" watch --server "unix:$sock" --failed --comm python3 'syscall_*-open*/file' >"$T/text" 2>"$T/text.err" &
text=$!
check "it says what system calls take now" wait_for 60 grep -qE \
	'^profd: a system call \(getppid\) of this host takes [0-9]+ ns now, [0-9]+ ns before$' "$T/text.err"
pid_c=$(python3 "$T/calls.py")
open_of="select(.pid == $pid_c and .attributes[1].value == \"/nonexistent/\\u001b[31m\\ufffd\")"
opened() { (($(jq -c "$open_of" "$T/calls" 2>/dev/null | wc -l) == 2)); }
check "both ends of a call, with its path" wait_for 60 opened
is "what it was" "$(jq -c "$open_of | [.name, .category, .failed, .latency_ns > 0,
	(.attributes[] | select(.key == \"res\").value)]" "$T/calls" | sort)" \
	'["syscall_enter-openat","file",null,false]
["syscall_exit-openat","file",true,true,-2]'
check "as text, escaped" wait_for 60 grep -qE \
	"^[0-9:.]+ +$pid_c python3 +syscall_exit-openat dfd=-100 filename=/nonexistent/.033\[31m[^ ]+ .*res=ENOENT [0-9.]+[mu]s$" "$T/text"
check "--slower: it has it" wait_for 60 has naps ".pid == $pid_c and .latency_ns >= 50000000"
kill -INT "$text"
wait "$text"

# --- descriptors ---
cat >"$T/fds.py" <<'PY'
import os, socket, sys
f = os.open(sys.argv[1], os.O_RDONLY)
a, b = socket.socketpair()
r, w = os.pipe()
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
os.set_blocking(r, False)
for fd in f, a.fileno(), client.fileno(), r:
    try:
        os.preadv(fd, [bytearray(1)], 0)
    except OSError:
        pass
print(os.getpid(), f, client.fileno(), client.getsockname()[1], server.getsockname()[1])
PY
mkdir "$T/some dir"
echo x >"$T/some dir/file"
watches file --comm python3 'syscall_exit-preadv*/file' pipe2
watches net --comm python3 'syscall_exit-preadv*/net'
"$PROFD" watch --server "unix:$sock" --comm python3 'syscall_exit-preadv*' >"$T/text" 2>"$T/text.err" &
text=$!
check "as text" wait_for 60 grep -q '^profd: watching' "$T/text.err"
read -r pid_c fd_f fd_c port_c port_l < <(python3 "$T/fds.py" "$T/some dir/file")
check "a file's read" wait_for 60 has file ".pid == $pid_c and .category == \"file\""
is "... with its name" "$(of file ".pid == $pid_c and .category == \"file\"" | jq -c .fd)" \
	"{\"kind\":\"file\",\"num\":$fd_f,\"file\":\"file\",\"dir\":\"$T/some dir\"}"
is "both ends of a pipe" "$(of file ".pid == $pid_c and .name == \"syscall_exit-pipe2\"" |
	jq -c '[.fd.kind, .fd.pair - .fd.num]' | sort -u)" '["pipe",1]'
check "a socket's read" wait_for 60 has net ".pid == $pid_c"
is "... with its ends" "$(of net ".pid == $pid_c" | jq -c '[.category, .fd]')" \
	"[\"net\",{\"kind\":\"socket\",\"num\":$fd_c,\"protocol\":\"tcp\",\"role\":\"client\",\"src\":\"127.0.0.1:$port_c\",\"dst\":\"127.0.0.1:$port_l\"}]"
as_text() { grep -q "syscall_exit-preadv2* $1 " "$T/text"; }
check "as text: a file" wait_for 60 as_text "$fd_f<$T/some dir/file>"
check "as text: a socket" wait_for 60 as_text "$fd_c<tcp 127.0.0.1:$port_c > 127.0.0.1:$port_l>"
check "as text: a pipe" wait_for 60 as_text '[0-9]*<pipe>'
check "as text: a unix socket" wait_for 60 as_text '[0-9]*<unix>'
kill -INT "$text"
wait "$text"

# --- errors ---
"$PROFD" watch --server "unix:$sock" 2>"$T/err"
is "no name: 2" $? 2
like "... says what to do" "$(cat "$T/err")" 'profd watch --list'
"$PROFD" watch --server "unix:$sock" tcp_conect 2>"$T/err"
is "an unknown name: 1" $? 1
like "... names the near ones" "$(cat "$T/err")" "'tcp_conect': no such event; there are tcp_connect"
while read -r query why; do
	is "wrong: $query" "$(watch_status "$query")" 400
	like "... says why" "$(cat "$T/body")" "$why"
done <<'EOF'
pid=1 name:.is.missing
name= names.of.events
name=tcp_close&pid=x pid:.a.number
name=tcp_close&slower=x duration
name=tcp_close&slower=1s&slower=2s slower
name=tcp_close&failed=2 0.or.1
name=tcp_close&exit=fail exit:.only.of.the.past
name=tcp_close&nosuch=1 nosuch
name=tcp_close/signal category
name=syscall_exit-read/process no.such.event.has.this.category;.there.are.file,.net,.ipc,.other
name=syscall_exit-raed no.such.event
EOF
is "not over TCP" "$(status "$url/api/watch?name=tcp_close")" 401
is "with a token neither" "$(status -H "Authorization: Bearer $(cat "$T/token")" \
	"$url/api/watch?name=tcp_close")" 403

# --- a client that does not read, and one that does ---
background curl -sN --unix-socket "$sock" "http://x/api/watch?name=process_*,signal_*" -o "$T/all"
reader=$pid
background bash -c 'exec 3<>/dev/null; exec curl -sN --unix-socket "$0" \
	"http://x/api/watch?name=signal_generate" | sleep 1000' "$sock"
stalled=$pid
check "both watch" wait_for 60 grep -q watching "$T/all"
overrun() {
	setpriv --reuid 65534 --regid 65534 --clear-groups bash -c \
		'trap "" USR1; for ((i = 0; i < 20000; i++)); do kill -USR1 $$; done'
	(($(metric profd_watch_overrun_total) > 0))
}
check "the one that stalls loses events" wait_for 120 overrun
seen() {
	/bin/true &
	wait $!
	sleep 0.5
	grep '"process_exit"' "$T/all" | grep -q "\"pid\":$!,"
}
check "the other has what comes next" wait_for 60 seen
is "profd samples" "$(ask /healthz | grep -c '^failing')" 0
end_group "$reader"
end_group "$stalled"

# --- nobody any more ---
for job in "${started[@]}"; do
	[ "$job" = "$profd" ] || end_group "$job"
done
nobody() { (($(metric profd_watch_subscribers) == 0 && $(metric profd_watch_hooks) == 0)); }
check "the last one has gone: nothing is attached" wait_for 60 nobody
is "no program is left" "$(programs)" "$before"
stop_profd
is "profd ends well" $? 0

# --- forbidden ---
start_profd forbidden --watch no
is "watch = no" "$(watch_status name=tcp_close)" 403
like "... says so" "$(cat "$T/body")" 'watch = no'
stop_profd
is "it ends well" $? 0
plan
