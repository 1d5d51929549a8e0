#!/bin/bash
# The cost of loops of a local user: renames, a million of which any process can make in
# a second, and mappings of a file with a path of 4,000 bytes, which have the largest
# records. CPU time of profd while two such loops run as a user without privilege, and
# the lost mapping records.
. "$(dirname "$0")/lib.sh"
chmod 755 "$T"

# storm MODE: two loops for SECONDS_EACH; into shares and lost.
storm() {
	local before since full attackers=()
	mkdir -p "$T/deep"
	chown 65534 "$T/deep"
	cd "$T/deep" || exit
	for _ in 1 2; do
		background setpriv --reuid 65534 --regid 65534 --clear-groups \
			"$E2E/prog_storm" "$1"
		attackers+=("$pid")
	done
	cd "$OLDPWD" || exit
	sleep 1
	before=$(cpu_ns "$profd") since=$EPOCHREALTIME
	full=$(metric profd_sideband_lost_total)
	sleep "$SECONDS_EACH"
	shares+=("$(calc "($(cpu_ns "$profd") - $before) / \
		(($EPOCHREALTIME - $since) * 1e9) * 100")")
	lost+=("$(($(metric profd_sideband_lost_total) - full))")
	stop "${attackers[@]}"
}

for mode in names paths; do
	shares=() lost=()
	for ((round = 0; round < ROUNDS; round++)); do
		start_profd "storm-$mode-$round" --window 600
		storm "$mode"
		stop_profd
	done
	goal=3
	[[ $mode == names ]] || goal=10
	figure "storm_${mode}_cpu" "$(median "${shares[@]}")" \
		"percent of one CPU" "$goal"
	figure "storm_${mode}_lost" "$(median "${lost[@]}")" "mapping records" 0
done
