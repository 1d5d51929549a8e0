#!/bin/bash
# Stacks for APM agents: what an agent is told equals the samples of its transaction in
# the profile, within what is counted as lost.
. "$(dirname "$0")/lib.sh"

# agent NAME SECONDS [HOW]: the line that it prints is in $T/NAME.
agent() {
	local name=$1 seconds=$2
	shift 2
	"$E2E/prog_agent" "$T/$name.agent" "$seconds" "$@" >"$T/$name"
}

# of NAME WORD: the number behind it.
of() {
	sed -n "s/.*$2 \([0-9]*\).*/\1/p" "$T/$1"
}

# taken NAME HOW: the samples of its second trace in the archive, and $T/NAME.pb.gz.
taken() {
	local id
	id=bb0000000000000000000000000000$(printf '%s\0' "$2" | head -c 1 | od -An -tx1 | tr -d ' ')
	"$PROFD" fetch --archive "$archive" -q --last 10m --trace "$id" -o "$T/$1.pb.gz"
	total <(samples "$T/$1.pb.gz")
}

start_profd apm --freq 397 --window 3600
agents=()
for how in '' slow again none; do
	agent "${how:-quick}" 2 "$how" &
	agents+=("$!")
done
wait "${agents[@]}"
# By the slow one; the one that was gone loses samples of its first trace.
lost=$(($(metric profd_pm_apm_lost_full_total) + $(metric profd_pm_apm_lost_late_total)))
num "one that was gone is registered again" "$(metric profd_pm_apm_gone_total)" ">" 0
like "status" "$("$PROFD" status --server "unix:$sock")" \
	'apm.*[0-9]+ agents listen, [0-9]+ samples sent, [0-9]+ lost'
num "no socket: it is counted" "$(metric profd_notify_failed_total)" ">" 0
stop_profd
is "profd ends" $? 0

quick=$(taken quick "")
is "it is registered with the delay" "$(of quick registered)" 4500
is "and receives nothing else" "$(of quick wrong)" 0
num "the transaction has samples" "$quick" ">" 500
is "the counts are the samples" "$(of quick samples)" "$quick"
num "equal stacks have one id" "$(of quick stacks)" "<" "$quick"
like "its service is the storage's" "$(pprof -tags "$T/quick.pb.gz")" '\): shop'

slow=$(taken slow slow)
is "slow: nothing else is received" "$(of slow wrong)" 0
# Its queue holds ten a second.
is "slow: what is not received is counted, and of the others nothing is lost" \
	"$(($(of slow samples) + lost))" "$slow"

again=$(taken again again)
num "gone and back: the transaction has samples" "$again" ">" 500
is "gone and back: the counts are the samples" "$(of again samples)" "$again"

# --- off ---
start_profd off --freq 397 --no-apm-notify
agent off 2 off
is "off: it is not registered" "$(of off registered)" 0
is "off: nothing was tried" "$(metric profd_notify_asked_total)" 0
is "off: status" "$("$PROFD" status --server "unix:$sock" | grep -c apm)" 0
stop_profd

# --- without CAP_SETUID and CAP_SETGID ---
printf '#!/bin/sh\nexec setpriv --bounding-set=-setuid,-setgid "%s" "$@"\n' "$PROFD" >"$T/profd"
chmod +x "$T/profd"
PROFD=$T/profd start_profd alone --freq 397
chmod 711 "$T"
mkdir "$T/user"
chown 65534 "$T/user"
setpriv --reuid=65534 --regid=65534 --clear-groups \
	"$E2E/prog_agent" "$T/user/agent" 2 off >"$T/other" &
other=$!
agent own 0.1 brief
wait "$other"
is "alone: another user's agent is not registered" "$(of other registered)" 0
num "alone: it is counted" "$(metric profd_notify_denied_total)" ">" 0
like "alone: status" "$("$PROFD" status --server "unix:$sock")" 'apm +no permission'
is "alone: an agent of its own user is registered" "$(of own registered)" 4500
stop_profd
is "alone: profd ends" $? 0

plan
