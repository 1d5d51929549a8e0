#!/bin/bash
# Queries of 24 hours of archive, which tests/tools/archive_day.py makes of a recording:
# BENCH_RECORDING=DIR is an archive with whole windows of a minute, 4 or more; without
# it one is made here, of short processes, a build and CPU loads. Beside it
# `go tool pprof` merges the same files, of an hour; BENCH_PEER=day: of all, too.
# Then the start of profd on that archive, beside one without any: time and memory.
# And an hour of a quiet host, in which some shells sleep and wake: BENCH_QUIET=DIR is a
# recording of it.
. "$(dirname "$0")/lib.sh"
profiles=$T/day

record_load() {
	while :; do
		"$E2E/prog_lives" 100 2
		gcc -O2 -g -xc -c -o "$T/load.o" "$ROOT/tests/e2e/prog_lives.c"
		"$E2E/prog_shares" 1
		sleep 0.5
	done
} >/dev/null 2>&1

quiet_load() {
	while sleep 2; do
		date +%s
		# Now and then someone looks.
		((EPOCHSECONDS % 10)) || ps ax
	done
} >/dev/null 2>&1

# record_archive NAME LOAD: whole minutes; $archive.
record_archive() {
	local load
	start_profd "$1" --window 60
	background "$2"
	load=$pid
	sleep $((181 - EPOCHSECONDS % 60))
	stop_profd
	kill "$load"
}

# made NAME BUDGET RECORDING ARCHIVE HOURS: bytes of an hour of the archive made of the
# recording. Processes that are in every hour are in its catalog once.
made() {
	local windows bytes times catalog seconds
	"$ROOT/tests/tools/archive_day.py" "$3" "$4" "$5" >"$T/made" || exit
	read -r _ windows _ bytes _ times _ catalog _ seconds <"$T/made"
	bytes=$(calc "$bytes * 3600 / $seconds")
	times=$(calc "$times * 3600 / $seconds")
	catalog=$(calc "$catalog * 3600 / $seconds")
	figure "$1" "$(calc "$bytes + $times + $catalog")" bytes "$2" profiles "$bytes" \
		times "$times" catalog "$catalog" windows "$(calc "$windows * 3600 / $seconds")"
}

if [[ -z ${BENCH_QUIET:-} ]]; then
	record_archive quiet quiet_load
	BENCH_QUIET=$archive
fi
made archive_quiet_hour_bytes 6000000 "$BENCH_QUIET" "$T/hour" 1
if [[ -z ${BENCH_RECORDING:-} ]]; then
	record_archive recording record_load
	BENCH_RECORDING=$archive
fi
made archive_hour_bytes 45000000 "$BENCH_RECORDING" "$profiles" 24

sql() { sqlite3 -batch "$profiles/catalog.sqlite" "$1"; }
end=$(sql "SELECT max(end_ns) / 1e9 FROM window")
begin=$(sql "SELECT min(begin_ns) / 1e9 FROM window")
hour=$(awk "BEGIN { printf \"%.3f\", $end - 3600 }")
pids="SELECT p.process FROM process p JOIN image i ON i.process = p.id
	JOIN window_image x ON x.image = i.id GROUP BY p.id"
short=$(sql "$pids HAVING count(*) <= 10 ORDER BY sum(x.samples) DESC, p.id LIMIT 1")
always=$(sql "$pids ORDER BY count(*) DESC, p.id LIMIT 1")
root=$(sql "SELECT process FROM process WHERE id = (SELECT parent_row FROM process
	WHERE start_ns > 1e9 * $hour AND parent_row IS NOT NULL AND end_ns IS NOT NULL
	GROUP BY parent_row ORDER BY count(*) DESC, parent_row LIMIT 1)")

# query NAME BUDGET_S OPTIONS...: medians over the rounds.
query() {
	local name=$1 budget=$2 i wall cpu mib walls=() cpus=() mibs=()
	shift 2
	for ((i = 0; i < ROUNDS; i++)); do
		read -r wall cpu mib < <("$ROOT/tests/tools/cost.py" "$PROFD" fetch \
			--archive "$profiles" -o "$T/$name.pb.gz" "$@")
		walls+=("$wall") cpus+=("$cpu") mibs+=("$mib")
	done
	figure "archive_$name" "$(median "${walls[@]}")" s "$budget" \
		cpu_s "$(median "${cpus[@]}")" peak_mib "$(median "${mibs[@]}")" \
		samples "$(pprof -raw "$T/$name.pb.gz" | awk '/^ *[0-9]+ +[0-9]+:/ {
			n += $1 } END { print n + 0 }')" "${peer[@]}"
}

# merge SECONDS: go tool pprof of the windows of the last seconds.
merge() {
	local first files wall cpu mib
	first=$(awk "BEGIN { printf \"%.0f\", ($end - $1) * 1e9 }")
	mapfile -t files < <(sql "SELECT '$profiles/' || file FROM window
		WHERE begin_ns >= $first ORDER BY begin_ns")
	read -r wall cpu mib < <(HOME=$T PPROF_TMPDIR=$T "$ROOT/tests/tools/cost.py" \
		"$GO" tool pprof -symbolize=none -proto -output "$T/merged" "${files[@]}")
	peer=(go_tool_pprof_s "$wall" go_tool_pprof_cpu_s "$cpu" go_tool_pprof_mib "$mib")
}
merge 3600
query hour 1 --from "$hour" --to "$end"
query subtree_hour 0.3 --from "$hour" --to "$end" --subtree "$root"
peer=()
[[ ${BENCH_PEER:-} != day ]] || merge 86400
query process_in_few 0.3 --from "$begin" --to "$end" --process "$short"
query process_in_all 8 --from "$begin" --to "$end" --process "$always"

# started NAME [ARCHIVE]: s from exec to the first answer, and the peak of memory in MiB
# when all windows have been compared with the catalog. A copy, because it writes.
compared() {
	local missing
	missing=$(metric profd_reporter_catalog_missing)
	[[ $missing == 0 ]] && ask /metrics | grep -q '^profd_reporter_catalog_bytes [1-9]'
}
started() {
	local begin
	[[ -z ${2:-} ]] || cp -a "$2" "$T/$1.archive"
	begin=$EPOCHREALTIME
	start_profd "$1" --window 3600 --keep-age no --keep-bytes no
	took=$(calc "$EPOCHREALTIME - $begin")
	wait_for 60 compared
	sleep 3
	peak=$(awk '/VmHWM/ { print $2 / 1024 }' "/proc/$profd/status")
	stop_profd
	rm -r "$T/$1.archive"
}
took_s=() none_s=() peaks=() nones=()
for ((i = 0; i < ROUNDS; i++)); do
	started "day$i" "$profiles"
	took_s+=("$took") peaks+=("$peak")
	started "none$i"
	none_s+=("$took") nones+=("$peak")
done
figure archive_day_bytes "$(du -sb "$profiles" | cut -f 1)" bytes null \
	catalog "$(stat -c %s "$profiles/catalog.sqlite")"
figure archive_day_start "$(median "${took_s[@]}")" "s to the first answer" 1 \
	without_archive "$(median "${none_s[@]}")"
figure archive_day_memory "$(median "${peaks[@]}")" "MiB at most" null \
	without_archive "$(median "${nones[@]}")"
