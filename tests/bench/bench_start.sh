#!/bin/bash
# From exec of profd to the first complete stack: unwound as far as frame pointers
# lead (Debian's libc has none, so few get behind main), every frame with its name,
# handed to the open window. load_first polls /metrics, so the figure
# is up to 20 ms too high. Every CPU is busy.
. "$(dirname "$0")/lib.sh"
loads=()
for ((i = 0; i < CPUS; i++)); do
	background "$E2E/prog_shares" 100000 >/dev/null
	loads+=("$pid")
done
times=()
for ((round = 0; round < 3 * ROUNDS; round++)); do
	times+=("$("$E2E/load_first" "$T/first.sock" "$PROFD" run --archive \
		"$T/first" --listen "unix:$T/first.sock" 2>>"$T/first.log")")
done
stop "${loads[@]}"
figure first_stack "$(median "${times[@]}")" "ms from exec" 300
