#!/bin/bash
# A user with many connections, or with requests that never end, does not block others:
# on the TCP port, where all users have one address, and on the socket.
. "$(dirname "$0")/lib.sh"
PYTHON=/usr/bin/python3
attacker=(setpriv --reuid 65534 --regid 65534 --clear-groups)

cp "$E2E_SRC/hold.py" "$T"
chmod 755 "$T"
start_profd limits --window 3600
chmod 666 "$sock"
mkdir "$T/flags" && chmod 777 "$T/flags"

# slowest CURL OPTIONS...: of five answers, the longest time in ms; "none" if one is
# missing.
slowest() {
	local i ms most=0
	for ((i = 0; i < 5; i++)); do
		ms=$(curl -sS --fail --max-time 4 -o /dev/null \
			-w '%{time_total}' "$@") || { echo none; return; }
		most=$(awk -v a="$most" -v b="$ms" 'BEGIN {
			b *= 1000; print (b > a ? b : a) }')
		sleep 0.2
	done
	echo "$most"
}

for where in "127.0.0.1:$port" "$sock"; do
	if [[ $where == /* ]]; then
		how=(--unix-socket "$sock" http://localhost/healthz)
		name="the socket"
	else
		how=("$url/healthz")
		name="the TCP port"
	fi
	rm -f "$T/flags/holding"
	background "${attacker[@]}" "$PYTHON" "$T/hold.py" "$where" \
		"$T/flags/holding"
	holder=$pid
	check "$name: 400 connections are held" \
		wait_for 60 test -s "$T/flags/holding"
	ms=$(slowest "${how[@]}")
	diag "$name: the slowest of five answers took $ms ms"
	num "$name: /healthz is answered meanwhile" "$ms" '<=' 4000
	check "$name: they are still held" kill -KILL "$holder"
	wait "$holder" 2>/dev/null
done
num "what was too much was closed" \
	"$(metric profd_reporter_http_evicted_total)" '>=' 100

# Connections of others stay: a client of ours that waits, idle, is not closed.
"${attacker[@]}" "$PYTHON" "$T/hold.py" "127.0.0.1:$port" "$T/flags/again" &
holder=$!
started+=("$holder")
code=$(curl -sS --max-time 30 -o "$T/profile.pb.gz" -w '%{http_code}' \
	"$url/debug/pprof/profile?seconds=3")
is "a profile that is waited for comes" "$code" 200
check_profile "$T/profile.pb.gz"
is "%00 in a URL is refused" \
	"$(curl -sS -o /dev/null -w '%{http_code}' "$url/healthz%00x")" 400
{ kill -KILL "$holder" && wait "$holder"; } 2>/dev/null
stop_profd
is "profd ends with 0" $? 0
plan
