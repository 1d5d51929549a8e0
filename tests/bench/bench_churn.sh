#!/bin/bash
# Does profd grow? A host that changes all the time: shells with pipes, builds,
# executables that are each run once and deleted with their directory, with and without
# build id, with names, arguments and working directories that are never reused;
# libraries loaded and unloaded, code made in memory and threads renamed in a process
# that stays; clients that follow events and request profiles, processes and metrics.
# CHURN_SECONDS (120) in all, the first third of them, ten minutes at most, as warm-up;
# CHURN_PAUSE (0) seconds between the turns of each load. 1800 seconds give useful
# results.
#
# For each gauge the mean, and the slope an hour by linear regression through the means
# of twelve pieces (of at least 10 s, longer than a window), with its standard
# deviation. CHURN_LOG=FILE keeps the readings.
. "$(dirname "$0")/lib.sh"
TOTAL=${CHURN_SECONDS:-120}
PAUSE=${CHURN_PAUSE:-0}
WARM=$((TOTAL / 3 < 600 ? TOTAL / 3 : 600))
log_of=${CHURN_LOG:-$T/readings}

turns() { # FUNCTION: one after the other, numbered
	local n=0
	renice -n 19 -p "$BASHPID" >/dev/null
	while :; do
		"$1" $((n++))
		sleep "$PAUSE"
	done >/dev/null 2>&1
}

shells() {
	local i
	for i in 1 2 3 4 5 6 7 8; do
		sh -c "x=\$(echo $1-$i | cat); (exit 3) | /bin/true"
	done
}

build() {
	local d=$T/build-$1 i
	mkdir "$d"
	for i in 1 2 3; do
		echo "int f$i(int n) { return n * $i$1; }" >"$d/f$i.c"
	done
	echo "int f1(int); int main(void) { return f1(1) == 7; }" >"$d/m.c"
	(cd "$d" && gcc -O1 -o "run-$1" ./*.c && "./run-$1")
	rm -r "$d"
}

# The build id of the program is here; another one makes another program.
novel=$E2E/prog_spin_old
novel_at=$(LC_ALL=C grep -obUaP -m 1 \
	"$(build_id "$novel" | sed 's/../\\x&/g')" "$novel" | cut -d : -f 1)
objcopy --remove-section .note.gnu.build-id "$novel" "$T/without"
programs() {
	local d=$T/novel-$1
	mkdir "$d"
	cp "$novel" "$d/with-$1"
	printf '%020d' "$1" |
		dd of="$d/with-$1" bs=1 seek="$novel_at" conv=notrunc
	cp "$T/without" "$d/without-$1"
	echo "$1" >>"$d/without-$1"
	(cd "$d" && "./with-$1" 8 && "./without-$1" 8 "argument $1")
	rm -r "$d"
}

others() {
	perl -e 'print 1' "$1"
	python3 -c 'import json' "$1"
}

clients() {
	ask /debug/pprof/profile?seconds=2 >"$T/fetched"
	ask "/processes?all=1"
	ask /api/events
	ask /status
	timeout 3 "$PROFD" events -f --json --server "unix:$sock"
}

start_profd churn --window 10
background "$E2E/load_churn" "$T" "$E2E/libplugin.so" 100
for load in shells build programs others clients; do
	background turns $load
done

# --- the readings: one line each five seconds ---
gauges='profd_pm_processes profd_pm_images profd_pm_exes profd_pm_open_files
	profd_pm_mappings profd_trace_cache_entries profd_trace_tables_bytes
	profd_symbolize_index_bytes profd_reporter_memory_bytes'
counters='profd_pm_forks_total profd_pm_execs_total profd_sampler_taken_total
	profd_lifecycle_lost_total profd_sideband_lost_total profd_pm_unknown_total
	profd_pm_found_total profd_pm_vanished_total profd_trace_stack_late_total
	profd_symbolize_worker_starts_total'
# KiB of memory: resident, and in use according to malloc(3); and open descriptors.
own() {
	awk '$1 == "VmRSS:" || $1 == "RssAnon:" { print $2 }' \
		"/proc/$1/status" | paste -sd ' '
	find "/proc/$1/fd" -mindepth 1 | wc -l
}
reading() {
	local worker
	worker=$(pgrep -P "$profd" | head -n 1)
	echo $((SECONDS - since)) "$(own "$profd" | paste -sd ' ')" \
		"$(own "${worker:-none}" 2>/dev/null | paste -sd ' ')" "|" \
		"$(compgen -G '/proc/[1-9]*' | wc -l)" \
		"$(ask /metrics | awk -v names="$gauges $counters" '
			BEGIN { n = split(names, name) }
			!/^#/ { sub(/\{.*/, "", $1); sum[$1] += $NF }
			END { for (i = 1; i <= n; i++)
				printf "%.0f ", sum[name[i]] }')"
}
since=$SECONDS
: >"$log_of"
while ((SECONDS - since < TOTAL)); do
	reading >>"$log_of"
	sleep 5
done

# slope COLUMN: "mean slope sd" an hour, of the readings after the warm-up.
slope() {
	awk -v c="$1" -v warm="$WARM" -v total="$TOTAL" '
		$1 >= warm && $c != "" {
			len = (total - warm) / 12
			if (len < 10)
				len = 10
			p = int(($1 - warm) / len)
			t[p] += $1 / 3600
			v[p] += $c
			n[p]++
		}
		END {
			for (p in n) {
				t[p] /= n[p]
				v[p] /= n[p]
				k++
				mt += t[p]
				mv += v[p]
			}
			if (k < 3)
				exit
			mt /= k
			mv /= k
			for (p in n) {
				tt += (t[p] - mt) ^ 2
				tv += (t[p] - mt) * (v[p] - mv)
			}
			b = tv / tt
			for (p in n)
				rest += (v[p] - mv - b * (t[p] - mt)) ^ 2
			printf "%.6g %.6g %.6g\n", mv, b, \
				sqrt(rest / (k - 2) / tt)
		}' "$2"
}
flat() { # NAME COLUMN UNIT
	local mean b sd
	read -r mean b sd < <(slope "$2" "$T/columns")
	figure "churn_$1" "${mean:-}" "$3"
	figure "churn_$1_slope" "${b:-}" "$3 an hour" 0
	figure "churn_$1_slope_sd" "${sd:-}" "$3 an hour"
}
# A worker that did not exist at a reading leaves its three columns out. The last two
# columns depend on profd only: its own descriptors, and processes that it knows beyond
# those that exist.
grep -v '| *$' "$log_of" | tr -d '|' |
	awk 'NF == 27 { print $0, $4 - $12, $9 - $8 }' >"$T/columns"
i=2
for name in rss anon fds worker_rss worker_anon worker_fds; do
	unit=KiB
	[[ $name != *fds ]] || unit=descriptors
	flat "$name" $i "$unit"
	i=$((i + 1))
done
flat host_processes $i processes
i=$((i + 1))
for name in $gauges; do
	flat "${name#profd_}" $i "$(sed 's/.*_//' <<<"$name")"
	i=$((i + 1))
done
for name in $counters; do
	figure "churn_${name#profd_}" "$(awk -v c=$i '
		NR == 1 { first = $c } { last = $c }
		END { print last - first }' "$T/columns")" "in all"
	i=$((i + 1))
done
flat own_fds $i descriptors
flat dead_processes $((i + 1)) processes
figure churn_seconds "$TOTAL" s
stop_profd
figure churn_exit_status $? status 0
