# shellcheck shell=bash
# lib: functions shared by the benches, on top of those of the end-to-end tests.
# Standard output gets JSON lines only, one object for each figure: value, unit, the
# budget if there is one, and the figure of a peer with the same load.
# BENCH_ROUNDS (3) and BENCH_SECONDS (20) make it longer or shorter.
exec 3>&1 1>&2
. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib.sh"
ROUNDS=${BENCH_ROUNDS:-3}
SECONDS_EACH=${BENCH_SECONDS:-20}
# shellcheck disable=SC2034 # for the scripts that source this
CPUS=$(nproc)

# figure NAME VALUE UNIT [BUDGET [PEER PEER_VALUE]...]; no value is null.
figure() {
	local name=$1 value=${2:-null} unit=$3 budget=${4:-null} peer=
	shift $(($# < 4 ? $# : 4))
	while (($# > 1)); do
		peer+="${peer:+,}\"$1\":${2:-null}"
		shift 2
	done
	printf '{"bench":"%s","value":%s,"unit":"%s","budget":%s%s}\n' "$name" \
		"$value" "$unit" "$budget" "${peer:+,\"peer\":{$peer\}}" >&3
}

median() {
	printf '%s\n' "$@" | grep . | sort -g | awk '
		{ v[NR] = $1 }
		END {
			m = int((NR + 1) / 2)
			if (NR)
				printf "%.4g\n", NR % 2 ? v[m] : (v[m] + v[m + 1]) / 2
		}'
}

calc() {
	awk "BEGIN { printf \"%.6g\n\", $* }"
}

# family PID: profd, and its symbolize worker if there is one.
family() {
	echo "$1" && pgrep -P "$1"
}

# Busy time of all CPUs, in ticks of 10 ms: all but idle and iowait.
busy_ticks() {
	awk '$1 == "cpu" { print $2 + $3 + $4 + $7 + $8 }' /proc/stat
}

# start_perf [CALL_GRAPH]: perf record of the whole host with usual options; $pid.
# Without perf it fails with a message.
start_perf() {
	if ! command -v perf >/dev/null; then
		echo "# no perf here to compare with"
		return 1
	fi
	rm -f "$T/perf.data"
	background perf record -q --call-graph "${1:-fp}" -F 99 -e cpu-clock -a \
		-o "$T/perf.data" >"$T/perf.log" 2>&1
	wait_for 10 test -s "$T/perf.data"
}

# load_cpus: every CPU busy at a stack depth of 30; $loads, to be stopped.
load_cpus() {
	local i
	loads=()
	for ((i = 0; i < CPUS; i++)); do
		background "$E2E/prog_shares" 100000 >/dev/null
		loads+=("$pid")
	done
}

# stop PID...: of the background, where SIGINT is ignored unless a program sets a
# handler, as perf does.
stop() {
	kill -INT "$@"
	sleep 0.2
	kill -TERM "$@"
	wait "$@"
	return 0 # they died of a signal: of ours
} 2>/dev/null
