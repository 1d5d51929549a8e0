#!/bin/bash
# Who may read what: over a unix socket its file decides, over TCP a token, beyond
# loopback TLS and a token.
. "$(dirname "$0")/lib.sh"

# status URL [OPTIONS...]: of the answer, whose body is in $T/body.
status() {
	curl -sS -o "$T/body" -w '%{http_code}' --max-time 60 "$@" 2>"$T/curl.err"
}
# refuses NAME REGEX OPTIONS...: profd run does not start, and says why.
refuses() {
	local name=$1 regex=$2
	shift 2
	"$PROFD" run --archive "$T/refused" --cache none "$@" >"$T/refused.log" 2>&1
	is "$name: refused" $? 1
	like "$name: it says why" "$(cat "$T/refused.log")" "$regex"
}
not() { ! "$@"; }
has_waiting() { (($(metric profd_reporter_http_waiting) > 0)); }
no_curl() { ! pgrep -P $$ -x curl; }
# An attempt that is refused at once, because there were too many, is no slow one.
slow_closed() {
	exec 5<>"/dev/tcp/127.0.0.1/$tls" || return
	printf '\x16\x03\x01' >&5
	timeout 60 cat <&5
	exec 5<&-
	(($(metric profd_reporter_http_slow_total) > 0))
}
# as_nobody GROUP: connects to the last socket.
as_nobody() {
	setpriv --reuid 65534 --regid "$1" --clear-groups curl -sS --max-time 5 \
		--unix-socket "$T/g.sock" http://x/healthz
}
private='/api/events /api/openapi.json /api/process/1 /api/processes /api/profile /api/windows /processes /executables /status'
public='/healthz /metrics /debug/pprof/ /debug/pprof/profile?seconds=1'

openssl rand -hex 32 >"$T/token"
openssl rand -hex 32 >"$T/other"
chmod 600 "$T/token" "$T/other"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
	-subj /CN=profd.test -addext 'subjectAltName=DNS:profd.test,IP:127.0.0.1' \
	-keyout "$T/key.pem" -out "$T/cert.pem" 2>"$T/openssl.log" ||
	bail "a certificate" "$(cat "$T/openssl.log")"
openssl ecparam -genkey -name prime256v1 -noout -out "$T/key2.pem"
chmod 600 "$T"/key*.pem

# --- files that cannot be used ---
cp "$T/token" "$T/open" && chmod 644 "$T/open"
refuses "a token that others can read" "$T/open: must belong .*chmod 0600" \
	--token-file "$T/open"
echo short >"$T/short" && chmod 600 "$T/short"
refuses "a short token" "$T/short: .*16 to 512" --token-file "$T/short"
refuses "no file" "$T/none: No such file" --token-file "$T/none"
mkfifo -m 600 "$T/fifo"
refuses "a FIFO" "$T/fifo: not a regular file" --token-file "$T/fifo"
refuses "a certificate without key" 'both a certificate and its key' \
	--tls-cert "$T/cert.pem"
refuses "the key of another" 'certificate or its key cannot be used' \
	--tls-cert "$T/cert.pem" --tls-key "$T/key2.pem" --listen "127.0.0.1:$(free_port)"
refuses "beyond loopback without TLS" 'needs --tls-cert' --token-file "$T/token" \
	--listen "0.0.0.0:$(free_port)"
refuses "beyond loopback without token" 'needs --tls-cert' --tls-cert "$T/cert.pem" \
	--tls-key "$T/key.pem" --listen "0.0.0.0:$(free_port)"

# --- loopback without a token ---
# A tenth of a CPU, so that each window has samples.
background nice -n -20 "$E2E/prog_spin_a" 600000 naps 90 >/dev/null
start_profd plain --host-name proxy.test
for path in $public; do
	is "no token: $path" "$(status "$url$path")" 200
done
for path in $private; do
	is "no token: $path" "$(status "$url$path")" 401
	is "unix: $path" "$(status --unix-socket "$sock" "http://x$path")" 200
done
like "it says what to do" "$(cat "$T/body"; status "$url/processes")" 401
like "and how" "$(cat "$T/body")" '--token-file.*unix socket'
is "a token where there is none" \
	"$(status -H "Authorization: Bearer $(cat "$T/token")" "$url/metrics")" 401
is "another name of this host" "$(status -H 'Host: proxy.test' "$url/metrics")" 200
is "with a port" "$(status -H 'Host: PROXY.test:80' "$url/metrics")" 200
is "a name that is not" "$(status -H 'Host: proxy.test.evil' "$url/metrics")" 403
stop_profd

# --- loopback with a token ---
start_profd token --token-file "$T/token"
right=(-H "Authorization: Bearer $(cat "$T/token")")
wrong=(-H "Authorization: Bearer $(cat "$T/other")")
for path in $public $private; do
	is "right token: $path" "$(status "${right[@]}" "$url$path")" 200
	is "wrong token: $path" "$(status "${wrong[@]}" "$url$path")" 401
done
is "a basic authorization" "$(status -u a:b "$url/metrics")" 401
is "a beginning of the token" "$(status -H \
	"Authorization: Bearer $(head -c 63 "$T/token")" "$url/processes")" 401
is "none: private" "$(status "$url/processes")" 401
is "none: public" "$(status "$url/metrics")" 200
server=127.0.0.1:$port
check "profd ps sends it" "$PROFD" ps --server "$server" --token-file "$T/token"
check "without it" not "$PROFD" ps --server "$server"
is "the unix socket needs none" "$(status --unix-socket "$sock" http://x/status)" 200
stop_profd

# --- beyond loopback, with TLS ---
tls=$(free_port)
start_profd tls --token-file "$T/token" --tls-cert "$T/cert.pem" --tls-key "$T/key.pem" \
	--listen "0.0.0.0:$tls"
ca=(--cacert "$T/cert.pem")
far=https://127.0.0.1:$tls
for path in $public $private; do
	is "TLS, no token: $path" "$(status "${ca[@]}" "$far$path")" 401
	is "TLS, token: $path" "$(status "${ca[@]}" "${right[@]}" "$far$path")" 200
done
is "loopback has TLS, too" "$(status "${ca[@]}" "https://127.0.0.1:$port/metrics")" 200
is "no plain text" "$(status "http://127.0.0.1:$tls/metrics")" 000
is "TLS 1.1 is refused" "$(status "${ca[@]}" --tls-max 1.1 --ciphers DEFAULT@SECLEVEL=0 \
	"$far/metrics")" 000
check "profd fetch over TLS" "$PROFD" fetch -q -d 1 --server "$far" \
	--token-file "$T/token" --ca-file "$T/cert.pem" -o "$T/tls.pb.gz"
check_profile "$T/tls.pb.gz"
background env --default-signal=INT "$PROFD" fetch -q -d 600 --server "$far" \
	--token-file "$T/token" --ca-file "$T/cert.pem" -o "$T/early.pb.gz" \
	2>"$T/early.err"
fetch=$pid
wait_for 60 has_waiting
kill -INT "$fetch"
wait "$fetch"
is "Ctrl-C ends it early" $? 0
check_profile "$T/early.pb.gz"
check "an unknown certificate" not "$PROFD" status --server "$far" \
	--token-file "$T/token"

# --- connections that cost time ---
for _ in $(seq 150); do
	curl -s -o /dev/null --max-time 5 "${ca[@]}" "$far/metrics" &
done
is "meanwhile the unix socket answers" \
	"$(status --unix-socket "$sock" http://x/healthz)" 200
wait_for 60 no_curl
num "most handshakes of one address are refused" \
	"$(metric profd_reporter_http_refused_total)" '>=' 50
wait_for 60 slow_closed
result $? "a handshake that does not go on is closed"

# --- the group of the socket ---
group=$(id -gn nobody)
getent group profd >/dev/null && group=profd
if [[ $group == profd ]]; then
	is "the socket has the group profd" "$(stat -c '%U:%G %a' "$sock")" \
		"root:profd 660"
else
	cp /etc/group "$T/group"
	echo "profd:x:61234:nobody" >>"$T/group"
	stop_profd
	chmod 755 "$T"
	background unshare -m bash -c "mount --bind '$T/group' /etc/group &&
		exec '$PROFD' run --archive '$T/g' --cache none --listen 'unix:$T/g.sock'"
	profd=$pid
	wait_for 60 test -S "$T/g.sock"
	is "the socket has the group profd" "$(stat -c '%u:%g %a' "$T/g.sock")" \
		"0:61234 660"
	check "a member may connect" wait_for 60 as_nobody 61234
	check "another user may not" not as_nobody 65534
fi
stop_profd
plan
