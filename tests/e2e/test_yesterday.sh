#!/bin/bash
# Processes that died yesterday: an archive of the day before, made of a recording with
# shifted times (tests/tools/archive_day.py), is asked by absolute times, by the life of
# a process, by its exit status and by subtree. Each answer is that of the recording.
. "$(dirname "$0")/lib.sh"

reads() { sqlite3 -batch "file:$1/catalog.sqlite?mode=ro" "$2"; }
# count ARCHIVE OPTIONS...: samples
count() {
	local from=$1
	shift
	"$PROFD" report --sample-type samples --json --rows comm --archive "$from" \
		"$@" 2>"$T/err" | jq -s 'map(.flat) | add // 0'
}

start_profd now --window 1
began=$SECONDS
background spin_often >/dev/null
busy=$pid
# The first window is not a whole one, nor is the last: neither is repeated.
windows() { metric profd_reporter_windows_written_total; }
written() { (($(windows) >= $1)); }
check "the first window is over" wait_for 60 written 1
sh -c "\"$E2E/prog_spin_a\" 700 & \"$E2E/prog_spin_b\" 400; wait; exit 3" "$T" \
	>/dev/null &
shell=$!
wait "$shell"
is "it fails" $? 3
ended() { [[ $(reads "$archive" "SELECT count(*) FROM process WHERE exit_code = 3
	AND pid = $shell") == 1 ]]; }
check "its row is there" wait_for 60 ended
check "its last window is over" wait_for 60 written $(($(windows) + 2))
stop_profd
kill "$busy"
# On a slow machine the recording is long. Four times of it, in hours.
hours=$(awk -v s=$((SECONDS - began)) 'BEGIN { print (4 * s + 10) / 3600 }')
"$ROOT/tests/tools/archive_day.py" "$archive" "$T/past" "$hours" 24 >"$T/made"
is "the archive of yesterday" $? 0
diag "$(cat "$T/made")"
read -r _ windows _ <"$T/made"
check "it has several times the windows" test "$windows" -gt \
	"$(reads "$archive" "SELECT count(*) FROM window")"
mapfile -t files < <(find "$T/past" -name '*.pb.gz' | sort)
check_profile "${files[@]}"
check "side files agree with it" "$E2E_SRC/times_check.py" "${files[@]}"
is "the catalog has them" "$(reads "$T/past" "SELECT file FROM window ORDER BY file")" \
	"$(printf '%s\n' "${files[@]#"$T/past/"}")"

# The one that this shell really was, and a repetition of it: of the last one the archive
# may have a part only.
last="SELECT process, start_ns / 1e9, end_ns / 1e9 FROM process WHERE pid = $shell
	AND exit_code = 3 ORDER BY start_ns DESC LIMIT 1"
IFS='|' read -r was _ _ < <(reads "$archive" "$last")
IFS='|' read -r id start end < <(reads "$T/past" "$last OFFSET 1")
num "it died a day ago" "$(awk "BEGIN { print $EPOCHSECONDS - $end }")" '>=' 86000
[[ $id != "$was" ]]
result $? "under another id" || diag "$id"
all=$(count "$archive" --subtree "$was")
num "the recording has samples of what it started" "$all" '>=' 50
is "by its id: what it started" "$(count "$T/past" --subtree "$id")" "$all"
# Times of samples are those of 10 ms: one at each end may be outside.
near() { # near NAME COUNT
	num "$1" "$2" '>=' $((all - 2))
	num "$1, and no more" "$2" '<=' "$all"
}
near "by its pid and the times" "$(count "$T/past" --subtree "$shell" --from "$start" \
	--to "$end")"
day=$(TZ=UTC date -d "@${start%.*}" '+%F %T')
is "by local times" "$(TZ=UTC count "$T/past" --from "$day" --to \
	"$(TZ=UTC date -d "@$((${end%.*} + 1))" '+%F %T')" --subtree "$id")" "$all"
near "in its life" "$(count "$T/past" --life "$id" --subtree "$id")"
for comm in prog_spin_a prog_spin_b; do
	is "$comm in its life" "$(count "$T/past" --life "$id" --comm $comm)" \
		"$(count "$archive" --life "$was" --comm $comm)"
done
times=$(reads "$T/past" "SELECT count(*) FROM process WHERE pid = $shell")
# A repetition may end in the middle of it.
together=$(count "$T/past" --from 1000000000 --subtree "$shell")
num "all times together: as often as it was repeated" "$together" '>' \
	"$(((times - 1) * all))"
num "... and no more" "$together" '<=' "$((times * all))"
is "what it started that did not fail" "$(count "$T/past" --exit ok --subtree "$id")" \
	"$(count "$archive" --exit ok --subtree "$was")"
is "not in the last hours" "$(count "$T/past" --last 12h)" 0
like "... and why" "$(cat "$T/err")" 'no window of that time'
plan
