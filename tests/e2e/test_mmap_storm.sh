#!/bin/bash
# The worst that a local user can do to the mapping stream, half a million records a
# second, beside new programs of another user: their stacks are complete with names,
# and it costs profd little CPU time.
. "$(dirname "$0")/lib.sh"
chmod 755 "$T"

# as UID COMMAND...
as() {
	local uid=$1
	shift
	background setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@"
}

# fresh: programs of 30 ms each, without end. With a higher priority than the attackers,
# so that there are enough samples.
fresh() {
	nice -n -15 setpriv --reuid 65533 --regid 65533 --clear-groups bash -c \
		'while :; do "$0" 30 >/dev/null; done' "$E2E/prog_spin_old"
}

# CPU time that the host has used: proc_stat(5), in hundredths of a second.
busy_ms() {
	awk '$1 == "cpu" { print 10 * ($2 + $3 + $4 + $7 + $8) }' /proc/stat
}

# storm MODE SECONDS: two of them, for a recording; samples of others go to
# $T/MODE.tsv, the CPU time of profd, in ms, to $cost, the time that passed, in ms, to
# $took, the CPU time that all of the host used, in ms, to $used.
storm() {
	local mode=$1 before attackers=() i began
	mkdir -p "$T/deep"
	chown 65534 "$T/deep"
	for i in 1 2; do
		cd "$T/deep" && as 65534 "$E2E/prog_storm" "$mode"
		attackers+=("$pid")
		cd "$OLDPWD"
	done
	sleep 0.5
	before=$(cpu_ns "$profd") began=${EPOCHREALTIME/./}
	used=$(busy_ms)
	ask "/debug/pprof/profile?seconds=$2" >"$T/$mode.pb.gz"
	cost=$((($(cpu_ns "$profd") - before) / 1000000))
	took=$(((${EPOCHREALTIME/./} - began) / 1000))
	used=$(($(busy_ms) - used))
	end_group "${attackers[0]}"
	end_group "${attackers[1]}"
	samples "$T/$mode.pb.gz" | awk -F '\t' '$7 ~ /prog_spin_old$/' >"$T/$mode.tsv"
} 2>/dev/null

# named TSV: stacks that are complete, with all names.
named() {
	total "$1" 'spin_old@.*(main|_start)@[^;]*(;[^;[]*)*$'
}

start_profd storm --window 3600 --freq 149
background fresh
for mode in ${MODES:-maps moves paths far brief names holes}; do
	lost=$(metric profd_sideband_lost_total) gaps=$(metric profd_pm_maps_lost_total)
	storm "$mode" "${SECS:-2}"
	all=$(total "$T/$mode.tsv") good=$(named "$T/$mode.tsv")
	diag "$mode: $good of $all whole and named," \
		"$(total "$T/$mode.tsv" 'mapping lost') without mappings," \
		"$(($(metric profd_sideband_lost_total) - lost)) records lost," \
		"$cost ms of CPU in $took ms"
	num "$mode: others were sampled" "$all" '>' 20
	check "$mode: nine tenths of their stacks are whole and named" \
		fine "$good" "$all" 90
	# A ring may overflow before it has grown.
	[[ $mode != far && $mode != brief ]] ||
		num "$mode: what was lost is known to be of whom" \
			"$(metric profd_pm_maps_lost_total)" '<=' $((gaps + 20))
	# Each process of "brief" is an event and a row, however many the host can start:
	# up to ten thousand a second. Re-reads have a budget of their own.
	most=$((took / 10)) limit="a tenth of a CPU"
	if [[ $mode == brief ]] && ((used / 10 > most)); then
		most=$((used / 10)) limit="a tenth of the CPU time"
	fi
	[[ $mode == holes ]] ||
		num "$mode: it costs profd $limit at most" "$cost" '<=' "$most"
done
diag "$(ask /metrics | grep -E "^profd_(sideband|reread|pm_reread)")"
num "what repeats was skipped" "$(metric profd_sideband_repeats_total)" '>' 100000
num "... and floods limited" "$(metric profd_sideband_limited_total)" '>' 100000
# The saved-up budget, six hundredths of each second, and the budgets of other users.
num "re-reads took no more than they may" \
	"$(ask /metrics | awk '$1 == "profd_reread_cpu_seconds_total" { print $2 }')" '<' 1.5
stop_profd
plan
