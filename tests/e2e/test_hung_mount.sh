#!/bin/bash
# A file system that never answers: programs on it have no names, all others do; it
# is known which mount it is, and profd ends when it is told to.
. "$(dirname "$0")/lib.sh"

mkdir "$T/mnt"
mounted+=("$T/mnt")
background "$E2E/prog_fuse" "$T/mnt" "$E2E/prog_spin_a" >"$T/fuse.log"
fuse=$pid
wait_for 60 grep -q mounted "$T/fuse.log" || bail "mounted" "$(cat "$T/fuse.log")"

# hang NAME...: each of them runs on it, and is sampled.
hang() {
	local name
	for name; do
		"$T/mnt/$name" 300 >/dev/null
	done
}
hung() {
	(($(metric profd_symbolize_opener_hung_now) >= $1))
}

start_profd hung --freq 499
hang one two three
check "openings hang" wait_for 30 hung 2
hang four five six seven eight
is "no more than two of a mount" \
	"$(metric profd_symbolize_opener_hung_now)" 2
num "the others are skipped" "$(metric profd_symbolize_open_skipped_total)" \
	'>=' 1

health=$(curl -sS --max-time 5 "$url/healthz")
like "/healthz is not failing, and names the mount" "$health" \
	"^degraded: (.*; )?mount $T/mnt does not answer"
like "... and so does status" "$("$PROFD" status --server "unix:$sock")" \
	"mount $T/mnt does not answer"

# Programs that nobody has seen before, meanwhile.
for i in 1 2 3 4 5; do
	other_build_id "$E2E/prog_spin_new" "$T/fresh$i" "$i"
	"$T/fresh$i" 300 >/dev/null
done
start=$(date +%s%N)
stop_profd
num "it ends within 5 s" $((($(date +%s%N) - start) / 1000000)) '<=' 5000
samples "$archive"/*.pb.* | awk -F '\t' '$7 ~ /fresh[1-5]$/' >"$T/fresh"
is "all others were sampled" "$(cut -f 7 "$T/fresh" | sort -u | wc -l)" 5
num "... and have names" "$(percent "$(total "$T/fresh" \
	'spin_new@[^;]*;middle_new@[^;]*;main@')" "$(total "$T/fresh")")" '>=' 90
kill -KILL "$fuse"
plan
