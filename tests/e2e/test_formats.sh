#!/bin/bash
# Profiles can be read by their consumers: files of three kinds, the archive, HTTP with
# and without zstd; read by go tool pprof, protoc and the strict checker.
. "$(dirname "$0")/lib.sh"
host=$(hostname | tr -c 'A-Za-z0-9._\n-' _)

# A third of a CPU.
background nice -n -20 "$E2E/prog_spin_a" 600000 naps 20 >/dev/null
load=$pid
start_profd formats --window 3600
began=$(cpu_ns "$load")
fetch_path=/debug/pprof/profile?seconds=1

# On a slow machine the first samples of a program come before its names and tables were
# read. The running profd has them once a profile has the load's names; records are
# repeated until they have them.
named() {
	zstd -q -d -f -o "$1.plain" "$1" 2>/dev/null || cp "$1" "$1.plain"
	pprof -top -nodecount=1000 "$1.plain" | grep spin_a
}
fetches_named() {
	"$PROFD" fetch --server "unix:$sock" -d 1 -o "$T/named.pb.gz" &&
		named "$T/named.pb.gz"
}
check "the load has names" wait_for 300 fetches_named
record_named() {
	local i
	for i in {1..10}; do
		record "$1" -a -d 1 || return
		named "$1" >/dev/null && return
	done
}

# All at once: each takes a second.
for ending in pb pb.gz pb.zst; do
	background record_named "$T/rec.$ending"
done
records=("${started[@]: -3}")
background curl -sS -D "$T/gzip.head" -o "$T/http.pb.gz" "$url$fetch_path"
gzip=$pid
background curl -sS -H 'Accept-Encoding: zstd' -D "$T/zstd.head" \
	-o "$T/http.pb.zst" "$url$fetch_path"
zstd=$pid
background "$PROFD" fetch --server "unix:$sock" --duration 1 \
	-o "$T/fetch.pb.zst" 2>"$T/fetch.log"
fetch=$pid
background "$PROFD" fetch --server "127.0.0.1:$port" --duration 1 \
	-o "$T/fetch.pb.gz" 2>"$T/fetch2.log"
fetch2=$pid
pprof -top -nodecount=1000 "$url$fetch_path" >"$T/tcp.top"
is "go tool pprof -top over TCP" $? 0
pprof -raw -seconds 1 "$url/debug/pprof/profile" >"$T/tcp.raw"
is "go tool pprof -raw -seconds 1 over TCP" $? 0
for pid in "${records[@]}"; do
	wait "$pid"
	is "profd record -a -d 1" $? 0
done
wait "$gzip" && wait "$zstd"
is "curl, with and without zstd" $? 0
wait "$fetch"
is "profd fetch over the socket" $? 0
wait "$fetch2"
is "profd fetch over TCP" $? 0
like "pprof -top over TCP names the load" "$(cat "$T/tcp.top")" spin_a
like "pprof -raw over TCP too" "$(cat "$T/tcp.raw")" spin_a

# --- HTTP ---
head=$(tr -d '\r' <"$T/gzip.head")
like "gzip: status" "$head" '^HTTP/1.1 200'
like "gzip: type" "$head" $'\n[Cc]ontent-[Tt]ype: application/octet-stream'
like "gzip: an attachment" "$head" \
	$'\n[Cc]ontent-[Dd]isposition: attachment.*[.]pb[.]gz'
is "gzip: the file is the body, not its encoding" \
	"$(grep -ci '^content-encoding' "$T/gzip.head")" 0
like "zstd: its encoding" "$(tr -d '\r' <"$T/zstd.head")" \
	$'\n[Cc]ontent-[Ee]ncoding: zstd'

# --- files of each format have its magic and can be read ---
magic() {
	head -c 4 "$1" | od -An -tx1 | tr -d ' \n'
}
like "a .pb.gz is gzip" "$(magic "$T/rec.pb.gz")" '^1f8b'
like "what HTTP gives is gzip" "$(magic "$T/http.pb.gz")" '^1f8b'
is "a .pb.zst is zstd" "$(magic "$T/rec.pb.zst")" 28b52ffd
is "what HTTP gives as zstd is zstd" "$(magic "$T/http.pb.zst")" 28b52ffd
like "a .pb begins with a field" "$(magic "$T/rec.pb")" '^(0a|12|4a|2a|32)'
like "a .pb.zst has a checksum and one frame" \
	"$(zstd -lv "$T/rec.pb.zst" 2>&1)" 'Check: *XXH64'
window=$(zstd -lv "$T/http.pb.zst" 2>&1 |
	sed -n 's/.*Window Size:.*(\([0-9]*\) B).*/\1/p')
num "the zstd window is at most 8 MiB" "$window" '<=' $((8 << 20))

# of_load FILE: its samples, in $T/tsv. Other tests run programs of this name.
of_load() {
	samples "$1" | awk -F '\t' -v pid="$load" '$3 == pid' >"$T/tsv"
}

# All are read; each has the load of that second, and the period of the host.
for f in "$T"/rec.pb "$T"/{rec,http,fetch}.pb.gz "$T"/{rec,http,fetch}.pb.zst
do
	name=${f##*/}
	plain=$T/plain.pb
	case $name in
	*.gz) gzip -dc "$f" >"$plain" ;;
	*.zst) zstd -q -d -f -o "$plain" "$f" ;;
	*) cp "$f" "$plain" ;;
	esac
	is "$name: unpacks" $? 0
	protoc --proto_path="$ROOT/reporter" \
		--decode=perftools.profiles.Profile profile.proto \
		<"$plain" >"$T/decoded" 2>"$T/protoc.err"
	is "$name: protoc --decode" "$?$(cat "$T/protoc.err")" 0
	is "$name: no field protoc does not know" \
		"$(grep -cE '^ *[0-9]+[: ]' "$T/decoded")" 0
	is "$name: period of 99 Hz" "$(sed -n 's/^period: //p' "$T/decoded")" \
		10101010
	# Up to 99; how many depends on other load. See test_fetches.
	of_load "$plain"
	num "$name: go tool pprof has the load's samples of that second" \
		"$(total "$T/tsv" '^spin_a@')" '>=' 1
done
check_profile "$T"/rec.pb "$T"/{rec,http,fetch}.pb.gz \
	"$T"/{rec,http,fetch}.pb.zst

# --- labels, in their short form ---
check "-tagfocus by exe" sh -c "
	HOME=$T PPROF_TMPDIR=$T '$GO' tool pprof -symbolize=none -top \
		-nodecount=1000 -tagfocus=exe=prog_spin_a '$T/rec.pb.gz' 2>&1 |
	grep spin_a"
tags=$(pprof -tags "$T/rec.pb.gz")
for tag in pid tid comm thread exe process image; do
	like "-tags shows $tag" "$tags" "(^|"$'\n'")[ ]*$tag:"
done
like "-traces shows a whole stack" "$(pprof -traces "$T/rec.pb.gz")" \
	$'spin_a\n *middle_a\n *main\n'
like "-peek shows the caller" "$(pprof -peek '^spin_a$' "$T/rec.pb.gz")" \
	'middle_a'

# --- the other addresses ---
is "/healthz" "$(curl -sS -o /dev/null -w '%{http_code}' "$url/healthz")" 200
curl -sS "$url/metrics" >"$T/metrics"
check "promtool accepts /metrics" promtool check metrics <"$T/metrics"
check "profd status answers" "$PROFD" status --server "unix:$sock"
for bad in 'seconds=0' 'seconds=x' 'seconds=-1' 'seconds='; do
	is "400 for $bad" "$(curl -sS -o "$T/body" -w '%{http_code}' \
		"$url/debug/pprof/profile?$bad")" 400
	like "the answer names the parameter" "$(cat "$T/body")" seconds
done
is "404 for another path" "$(curl -sS -o "$T/body" -w '%{http_code}' \
	"$url/nothing")" 404
like "the answer names the path" "$(cat "$T/body")" nothing

# --- the archive ---
# day_of FILE: 2026-11-23, of its name.
day_of() {
	sed -E 's/.*-(....)(..)(..)T[0-9]{6}Z-.*/\1-\2-\3/' <<<"${1##*/}"
}
due=$((($(cpu_ns "$load") - began) * 99 / 1000000000))
stop_profd
is "profd ends with 0" $? 0
files=("$archive"/*/*.pb*)
is "the archive has one window" "${#files[@]}" 1
is "and its side file, in the directory of its day" \
	"$(cd "$archive" && find . -path './*/*' -type f | sort)" \
	"$(printf '%s\n' "./$(day_of "${files[0]}")/${files[0]##*/}" \
		"./$(day_of "${files[0]}")/$(basename "${files[0]}" .pb.gz).times.zst")"
like "it is called by host, time and length" "${files[0]##*/}" \
	"^cpu-$host-[0-9]{8}T[0-9]{6}Z-[0-9]+s[.]pb[.]gz\$"
check_profile "${files[0]}"
like "go tool pprof opens it as it is" "$(pprof -top -nodecount=1000 "${files[0]}")" \
	' spin_a'
of_load "${files[0]}"
fine "$(total "$T/tsv" '^spin_a@')" "$due" 90
result $? "it has the load's samples of all that time, some $due"
start_profd zst --window 3600 --archive-format zst
used "$load" 100
stop_profd
files=("$archive"/*/*.pb*)
is "the archive has one window, by zstd" "${#files[@]} $(magic "${files[0]}")" \
	'1 28b52ffd'
like "its name says so" "${files[0]##*/}" 's[.]pb[.]zst$'
check_profile "${files[0]}"
plan
