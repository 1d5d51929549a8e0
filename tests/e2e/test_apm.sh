#!/bin/bash
# Stacks for APM agents: what an agent is told equals the samples of its transaction in
# the profile, within what is counted as lost.
. "$(dirname "$0")/lib.sh"

start_profd apm --freq 397 --window 3600

# agent NAME SECONDS [HOW]: the line that it prints is in $T/NAME.
agent() {
	local name=$1 seconds=$2
	shift 2
	"$E2E/prog_agent" "$T/$name.sock" "$seconds" "$@" >"$T/$name"
}

# of NAME WORD: the number behind it.
of() {
	sed -n "s/.*$2 \([0-9]*\).*/\1/p" "$T/$1"
}

second=bb000000000000000000000000000002

# taken NAME: samples of the second trace in the profile.
taken() {
	pprof -tags -sample_index=samples "$T/$1.pb.gz" | awk -v id="$second" '
		index($0, id) { n = $1; sub(/[^0-9].*/, "", n); print n }'
}

# profiled NAME SECONDS OPTIONS...: an agent, and a profile of all its time.
profiled() {
	local name=$1
	curl -sS --max-time 120 --unix-socket "$sock" -o "$T/$name.pb.gz" \
		"http://profd/debug/pprof/profile?seconds=24&traces=1" &
	local fetch=$!
	agent "$@"
	wait "$fetch"
}

lost() {
	echo $(($(metric profd_pm_apm_lost_full_total) +
		$(metric profd_pm_apm_lost_late_total) +
		$(metric profd_pm_apm_lost_gone_total)))
}

profiled quick 5
is "it is registered with the delay" "$(of quick registered)" 4500
is "and receives nothing else" "$(of quick wrong)" 0
num "the transaction has samples" "$(taken quick)" ">" 500
is "the counts are the samples" "$(of quick samples)" "$(taken quick)"
is "nothing is lost" "$(lost)" 0
num "equal stacks have one id" "$(of quick stacks)" "<" "$(of quick samples)"
like "its service is the storage's" "$(pprof -tags "$T/quick.pb.gz")" '\): shop'

before=$(lost)
profiled slow 5 slow
is "slow: nothing else is received" "$(of slow wrong)" 0
# Its queue holds ten a second.
is "slow: what is not received is counted" \
	"$(($(of slow samples) + $(lost) - before))" "$(taken slow)"

before=$(lost)
profiled again 5 again
num "gone and back: it is registered again" "$(metric profd_pm_apm_gone_total)" ">" 0
num "gone and back: the transaction has samples" "$(taken again)" ">" 500
is "gone and back: the counts are the samples" "$(of again samples)" "$(taken again)"

like "status" "$("$PROFD" status --server "unix:$sock")" \
	'apm.*[0-9]+ agents listen, [0-9]+ samples sent, [0-9]+ lost'
agent none 2 none
num "no socket: it is counted" "$(metric profd_notify_failed_total)" ">" 0
stop_profd
is "profd ends" $? 0

# --- off ---
start_profd off --freq 397 --no-apm-notify
agent off 1 &
wait_for 20 test -S "$T/off.sock"
wait $!
is "off: it is not registered" "$(of off registered)" 0
is "off: nothing was tried" "$(metric profd_notify_asked_total)" 0
is "off: status" "$("$PROFD" status --server "unix:$sock" | grep -c apm)" 0
stop_profd

plan
