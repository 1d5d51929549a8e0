#!/bin/bash
# kill -9 of `profd run` at random moments, under a load of short processes: nothing that
# was closed is lost, nothing is there twice, and the next profd starts at once. Twenty
# moments in two archives; CRASH_ROUNDS=50 makes it two hundred in four, and judges the
# time of a start, which needs an idle machine. crash.py says what is checked.
. "$(dirname "$0")/lib.sh"
rounds=${CRASH_ROUNDS:-10}
archives=2
[[ -z ${CRASH_ROUNDS:-} ]] || archives=4
seed=${CRASH_SEED:-$RANDOM}
diag "CRASH_SEED=$seed"

storm() {
	while :; do "$E2E/prog_lives" 50 1; sleep 0.3; done
}
background storm >/dev/null 2>&1
# A tenth of a CPU, so that each window has samples.
background nice -n -20 "$E2E/prog_spin_a" 600000 naps 90 >/dev/null

victims=()
for ((i = 0; i < archives; i++)); do
	background nice -n -20 "$E2E_SRC/crash.py" "$PROFD" "$T/crash$i" "$rounds" \
		$((seed + i)) >"$T/victim$i" 2>&1
	victims+=("$pid")
done
for i in "${!victims[@]}"; do
	wait "${victims[i]}"
	result $? "archive $i: after each kill nothing is lost or twice"
	diag "$(cat "$T/victim$i")"
	num "archive $i: windows" "$(sed -n 's/^rounds .* windows \([0-9]*\).*/\1/p' \
		"$T/victim$i")" '>=' $((rounds / 4))
	[[ -z ${CRASH_ROUNDS:-} ]] ||
		num "archive $i: half of the starts take a second at most" \
			"$(sed -n 's/.*start-ms \([0-9]*\).*/\1/p' "$T/victim$i")" '<=' 1000
done
plan
