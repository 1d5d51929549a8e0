#!/bin/bash
# Events of TCP beside what others count: nstat, tcpdump, ss, the programs themselves, and,
# of retransmits, another program at the same tracepoint; IPv4 and IPv6, over loopback and
# over a link that delays and loses packets, refused, reset, and without an answer. Each
# event with a process has the right one.
. "$(dirname "$0")/../e2e/lib.sh"
load=$ROOT/tests/watch/tcp_load.py

c=profd-c-$$ s=profd-s-$$
spaces() { ip netns del "$c"; ip netns del "$s"; } 2>/dev/null
trap 'cleanup; spaces' EXIT
{ ip netns add "$c" && ip netns add "$s"; } || bail "there are network namespaces"
in_c() { ip netns exec "$c" "$@"; }
in_s() { ip netns exec "$s" "$@"; }
background python3 "$load" link "$c" "$s" "$T"
check "there is a link" wait_for 30 test -e "$T/linked"
for space in c s; do
	n=$([[ $space == c ]] && echo 1 || echo 2)
	"in_$space" ip link set lo up
	"in_$space" ip addr add "10.213.1.$n/24" dev tun0
	"in_$space" ip addr add "fd00:213::$n/64" dev tun0 nodad
	"in_$space" ip link set tun0 up
done

# It sees retransmits from before the hooks until after them.
background "$B/tests/watch/prog_retransmits" >"$T/witness" 2>"$T/witness.err"
witness=$pid
check "a witness counts retransmits" wait_for 30 grep -q ready "$T/witness"
start_profd watch
at=$(free_port)
background "$PROFD" watch --json --server "unix:$sock" 'tcp_*' >"$T/events" 2>"$T/events.err"
watcher=$pid
check "hooks are attached" wait_for 60 grep -q '"watching"' "$T/events"

dumps=()
# dump NAME NAMESPACE DEVICE
dump() {
	background ip netns exec "$2" tcpdump -Z root -i "$3" -s 128 -B 16384 -U -w "$T/$1.pcap" tcp \
		2>"$T/$1.dump"
	dumps+=("$pid")
	check "tcpdump listens: $1" wait_for 30 grep -q 'listening on' "$T/$1.dump"
}
dump c "$c" tun0
dump lo "$c" lo
dump s "$s" tun0
background ip netns exec "$c" python3 "$load" serve "$T" "$at" 127.77.0.1 ::1 >"$T/c.serves"
c_serves=$pid
background ip netns exec "$s" python3 "$load" serve "$T" "$at" 10.213.1.2 fd00:213::2 \
	>"$T/s.serves"
s_serves=$pid
check "servers listen" wait_for 30 grep -q ready "$T/c.serves"
check "... on both sides" wait_for 30 grep -q ready "$T/s.serves"

in_c python3 "$load" connect "$T" "$at" 127.77.0.1 ::1 10.213.1.2 fd00:213::2 \
	-- 10.213.1.9 fd00:213::9 >"$T/c.results" 2>"$T/c.wrong" &
clients=$!
held() { (($(find "$T" -name 'held.*' | wc -l) == 4)); }
check "connections are held open" wait_for 240 held
touch "$T/lossless"
# Until what was lost before has been sent again.
sleep 5
for space in c s; do
	"in_$space" ss -tinHO state established >"$T/$space.ss"
done
touch "$T/release"
wait "$clients"
is "clients end well" $? 0
sed 's/^/# /' "$T/c.wrong"
over() {
	[[ -z $({ in_c ss -tanH; in_s ss -tanH; } | grep -vE '^(LISTEN|TIME-WAIT)') ]]
}
check "all connections have ended" wait_for 120 over
for space in c s; do
	"in_$space" nstat -asz --json >"$T/$space.nstat"
done
sleep 3
kill -INT "$watcher"
wait "$watcher" 2>/dev/null
for pid in "$witness" "${dumps[@]}"; do
	kill -INT "$pid"
	wait "$pid" 2>/dev/null
done
is "tcpdump has all segments" "$(grep -h 'dropped by kernel' "$T"/*.dump | grep -cv '^0 ')" 0
python3 "$ROOT/tests/watch/tcp_compare.py" "$T" "$at" "c=$c_serves" "s=$s_serves" \
	>"$T/compared" 2>&1
is "they agree" $? 0
sed 's/^/# /' "$T/compared" | cut -c 1-400
stop_profd
is "profd ends well" $? 0
plan
