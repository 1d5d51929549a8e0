#!/bin/bash
# The cost of processes, with everything profd does together: its own CPU time (user and
# system, with the symbolize worker), and the additional CPU time of the load itself (its
# rusage: BPF programs and side-band run in its context), per process and in percent, on
# three loads: posix_spawn(/bin/true), a storm of shells, and a gcc build of tiny files.
# Each run with profd is between two without; figures are medians of ROUNDS of these,
# "noise" is the median difference of the two without. For comparison the cost of the
# side-band of perf alone, and of perf record -g.
. "$(dirname "$0")/lib.sh"
SPAWNS=${BENCH_LIVES:-6000}
STORM=${BENCH_STORM:-3000}
FILES=${BENCH_FILES:-400}

cat >"$T/storm" <<'END'
#!/bin/sh
i=0
while [ $i -lt $1 ]; do
	/bin/true
	x=$(echo $i)
	i=$((i + 2))
done
END
cat >"$T/storms" <<END
#!/bin/sh
for n in \$(seq $CPUS); do
	"$T/storm" $STORM &
done
wait
END
cat >"$T/build" <<END
#!/bin/sh
seq \$1 | xargs -P $CPUS -I % gcc -O1 -c -o "$T/f%.o" "$T/f%.c"
END
chmod +x "$T"/{storm,storms,build}
for ((i = 1; i <= FILES; i++)); do
	printf '#include <stdio.h>\nint f%d(int n) { return printf("%%d", n); }\n' \
		"$i" >"$T/f$i.c"
done

# CPU seconds of a load: of its children, by wait4(2).
load_spawn() {
	"$E2E/load_spawn" "$SPAWNS" /bin/true | awk '{ print $4 + $6 }'
}
timed() {
	local TIMEFORMAT='%3U %3S'
	{ time "$@" >/dev/null 2>&1; } 2>&1 | awk '{ print $1 + $2 }'
}
load_storm() {
	timed "$T/storms"
}
load_build() {
	timed "$T/build" "$FILES"
}
# So that files are in the page cache, and profd knows the programs.
warm() {
	"$E2E/load_spawn" 100 /bin/true
	"$T/storm" 10
	"$T/build" 4
} >/dev/null

# CPU time of profd and all its children, ns: running ones, and ended ones.
family_ns() {
	local p sum=0
	for p in $(family "$1"); do
		sum=$((sum + $(cpu_ns "$p")))
	done
	echo "$((sum + $(awk '{ print ($16 + $17) * 10000000 }' "/proc/$1/stat")))"
}

# with_X LOAD: sets $cpu, and $own and $forks: CPU time of profd in ns, and forks seen.
with_profd() {
	start_profd "$1$round" --window 600
	warm
	sleep 0.5
	forks=$(metric profd_pm_forks_total)
	own=$(family_ns "$profd")
	cpu=$("load_$1")
	sleep 0.3
	own=$(($(family_ns "$profd") - own))
	forks=$(($(metric profd_pm_forks_total) - forks))
	metric profd_lifecycle_lost_total >>"$T/lost"
	stop_profd
}
with_perf() {
	start_perf
	cpu=$("load_$1")
	stop "$pid"
}
# The events that profd opens for mappings, without a reader.
with_sideband() {
	: >"$T/sideband"
	background "$E2E/load_sideband" >"$T/sideband"
	wait_for 10 test -s "$T/sideband"
	cpu=$("load_$1")
	stop "$pid"
}

# measure LOAD LIVES WITH: medians in $own_pct $own_us $extra_pct $extra_us $noise.
# LIVES are the processes of the load; profd also sees those of other programs, so its
# own CPU time per process is by all forks of that time.
measure() {
	local a b cpu own=0 forks=1 per=$2
	local op=() ou=() ep=() eu=() no=()
	a=$("load_$1")
	for ((round = 0; round < ROUNDS; round++)); do
		"with_$3" "$1"
		b=$("load_$1")
		ou+=("$(calc "$own / 1e3 / $forks")")
		op+=("$(calc "$own / 1e9 * $per / $forks / $cpu * 100")")
		ep+=("$(calc "($cpu / (($a + $b) / 2) - 1) * 100")")
		eu+=("$(calc "($cpu - ($a + $b) / 2) / $per * 1e6")")
		no+=("$(calc "sqrt(($a / $b - 1) ^ 2) * 100")")
		life=$(calc "($a + $b) / 2 / $per * 1e6")
		a=$b
	done
	own_pct=$(median "${op[@]}") own_us=$(median "${ou[@]}")
	extra_pct=$(median "${ep[@]}") extra_us=$(median "${eu[@]}")
	noise=$(median "${no[@]}")
}

# How many processes a load starts: gcc -c is three.
declare -A lives=([spawn]=$SPAWNS [storm]=$((CPUS * STORM)) [build]=$((3 * FILES)))
warm
for load in ${BENCH_LOADS:-spawn storm build}; do
	measure "$load" "${lives[$load]}" profd
	figure "${load}_own" "$own_pct" "profd's CPU time, percent of the load's" 2
	figure "${load}_own_life" "$own_us" "us of profd's CPU time a life" 25
	p_pct=$extra_pct p_us=$extra_us p_noise=$noise
	extra_pct='' extra_us=''
	! command -v perf >/dev/null || measure "$load" "${lives[$load]}" perf
	figure "${load}_extra" "$p_pct" "percent of the load's CPU time" 2 \
		"perf record -g" "$extra_pct"
	figure "${load}_extra_life" "$p_us" "us of CPU the load pays more a life" \
		15 "perf record -g" "$extra_us"
	measure "$load" "${lives[$load]}" sideband
	figure "${load}_extra_sideband" "$extra_pct" \
		"percent, by perf's mapping events alone"
	figure "${load}_noise" "$p_noise" \
		"percent between two runs without any profiler"
	figure "${load}_life" "$life" "us of CPU a life, no profiler"
done
figure lives_lost "$(awk '{ n += $1 } END { print n + 0 }' "$T/lost")" \
	"lifecycle events lost" 0
