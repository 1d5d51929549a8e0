#!/bin/bash
# A profd that is started again finds tables and names in its cache on disk: it
# gives the same names without reading the files again, also of a directory in which
# each file was damaged, then by reading them.
. "$(dirname "$0")/lib.sh"
dir=$T/cache

# A change in the last three seconds would keep it out of the cache.
cp "$E2E/prog_spin_a" "$T/prog_cached"
sleep 3.5
# A fifth of a CPU.
background nice -n -20 "$T/prog_cached" 600000 naps 40 >/dev/null
prog=$pid

# Without functions in which few samples are taken.
named() {
	samples "$T/$1.pb.gz" | awk -F '\t' -v pid="$prog" '$3 == pid && $10 ~ /^spin_a@/ {
		print $10 }' | tr ';' '\n' | grep '@.*prog_cached' | sort -u >"$T/$1.names"
	test -s "$T/$1.names"
}

# run NAME: starts a profd and fetches a profile from it; its metrics in $T/NAME.m.
run() {
	start_profd "$1" --cache "$dir"
	wait_for 60 fetched "$1" || bail "$1: names of the program" "$(cat "$log")"
	ask /metrics >"$T/$1.m"
	stop_profd
	is "$1: ends well" $? 0
}
fetched() {
	"$PROFD" fetch -q -f -d 1 -o "$T/$1.pb.gz" --server "unix:$sock" &&
		named "$1"
}

# count NAME METRIC
count() {
	awk -v name="profd_symbolize_$2" '$1 == name { print $2 }' "$T/$1.m"
}

run cold
diag "$(grep -E 'cache_|identified|index_built' "$T/cold.m" | grep -v '^#')"
# Some executables of the host are copies, which are found once the first one is kept.
num "tables were missed" "$(count cold cache_rows_misses_total)" '>' \
	$(($(count cold cache_rows_hits_total) + 5))
num "the directory has files" "$(find "$dir" -type f | wc -l)" '>' 5
is "it is private" "$(stat -c %a "$dir")" 700

run warm
diag "$(grep -E 'cache_|identified|index_built' "$T/warm.m" | grep -v '^#')"
num "files are known" "$(count warm identified_known_total)" '>' 5
num "tables are there" "$(count warm cache_rows_hits_total)" '>' 5
num "names are there" "$(count warm cache_names_hits_total)" '>' 0
is "nothing is damaged" "$(count warm cache_corrupt_total)" 0
is "the same names" "$(cat "$T/warm.names")" "$(cat "$T/cold.names")"

# Without the names, which are of kind 2 (entry.h), they come from its compile units.
find "$dir" -type f -exec sh -c 'for f; do
	[ "$(od -An -tu4 -j60 -N4 "$f")" -ne 2 ] || rm "$f"; done' sh {} +
run units
num "compile units were read" "$(count cold units_read_total)" '>' 0
num "they are not read again" "$(count units units_cached_total)" '>' 0
is "names made of them are the same" "$(cat "$T/units.names")" "$(cat "$T/cold.names")"

# Another byte in each of them.
files=$(find "$dir" -type f | wc -l)
find "$dir" -type f -exec sh -c 'for f; do
	printf X | dd of="$f" bs=1 seek=50 conv=notrunc 2>/dev/null; done' sh {} +
run damaged
num "damage is counted" "$(count damaged cache_corrupt_total)" '>' 5
num "nothing of it is used" "$(count damaged cache_rows_hits_total)" '<' \
	"$(count damaged cache_corrupt_total)"
is "the names are the same" "$(cat "$T/damaged.names")" "$(cat "$T/cold.names")"
num "there are good files again" "$(find "$dir" -type f | wc -l)" '>' \
	$((files / 4))

# One that others may write to is not used.
chmod 777 "$dir"
run refused
is "it is said why" "$(grep -c "cache $dir: it must belong" "$log")" 1
is "and counted" "$(count refused cache_failed_total)" 1
is "names are right without it" "$(cat "$T/refused.names")" \
	"$(cat "$T/cold.names")"
plan
