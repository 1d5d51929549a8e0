#!/bin/bash
# Queries of 24 hours of archive, which tests/tools/archive_day.py makes of a recording:
# BENCH_RECORDING=DIR is an archive with whole windows of a minute, 4 or more; without
# it one is made here, of short processes, a build and CPU loads. Beside it
# `go tool pprof` merges the same files, of an hour; BENCH_PEER=day: of all, too.
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

if [[ -z ${BENCH_RECORDING:-} ]]; then
	start_profd recording --window 60
	background record_load
	load=$pid
	sleep $((181 - EPOCHSECONDS % 60))
	stop_profd
	kill "$load"
	BENCH_RECORDING=$archive
fi
"$ROOT/tests/tools/archive_day.py" "$BENCH_RECORDING" "$profiles" 24 >"$T/made" || exit
read -r _ windows _ bytes _ times _ catalog _ seconds <"$T/made"
figure archive_hour_bytes "$(calc "($bytes + $times) * 3600 / $seconds")" bytes \
	45000000 profiles "$(calc "$bytes * 3600 / $seconds")" \
	times "$(calc "$times * 3600 / $seconds")" \
	catalog "$(calc "$catalog * 3600 / $seconds")"

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
