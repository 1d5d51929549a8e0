#!/bin/bash
# Rings that overflow while profd is stopped. After lost mapping records no name is
# invented, and all names come back; after lost lifecycle events the ledger becomes
# correct again. The profile reports the losses.
. "$(dirname "$0")/lib.sh"

# standstill COMMAND...: profd is stopped while the command runs.
standstill() {
	kill -STOP "$profd"
	"$@"
	kill -CONT "$profd"
}

# soon COMMAND...: it succeeds within two minutes, however slow the machine.
soon() {
	local end=$((SECONDS + 120))
	until "$@"; do
		((SECONDS < end)) || return 1
		sleep 0.05
	done >/dev/null 2>&1
}

ms() {
	echo $((${EPOCHREALTIME/./} / 1000))
}

# --- mappings ------------------------------------------------------------------
# Twice the size of the rings, on each CPU, and the swapping continues.
overflow() {
	"$E2E/prog_swap" storm 12000
	sleep 1
}

# settled NAME: a second of profile in which all of the swapping has names.
settled() {
	ask "/debug/pprof/profile?seconds=1" >"$T/$1.pb.gz" &&
		samples "$T/$1.pb.gz" >"$T/$1.all" &&
		awk -F '\t' -v pid="$swap" '$3 == pid' "$T/$1.all" >"$T/$1.tsv" &&
		(($(total "$T/$1.tsv" '(^|;)swap_[ab]@') > 0)) &&
		(($(total "$T/$1.tsv" 'mapping lost') == 0))
}

# Mappings that cannot be read stay stale: on some hosts those of the first process.
denied=$(cat /proc/[0-9]*/maps 2>&1 >/dev/null | grep -c 'Permission denied')
all_read() {
	(($(metric profd_pm_stale) <= denied))
}

start_profd lost --window 3600 --ring-size 4M
background "$E2E/prog_swap" "$E2E/libswap_a.so" "$E2E/libswap_b.so" >"$T/swap"
swap=$pid
# A process that sleeps until long after the loss.
mkfifo "$T/go"
background bash -c 'exec "$1" 1500 wait <>"$2"' - "$E2E/prog_spin_old" "$T/go" >"$T/quiet"
quiet=$pid
soon grep -q swap_b "$T/swap"
is "both libraries are at one address" \
	"$(awk '/swap_/ { print $2 }' "$T/swap" | uniq | wc -l)" 1
check "before: all is named" soon settled before
is "before: nothing was lost" "$(metric profd_sideband_lost_total)" 0
is "... and nothing is in doubt" "$(metric profd_pm_stale)" 0
before=$(metric profd_pm_rereads_total)

standstill overflow
begin=$(ms)
lost() {
	(($(metric profd_sideband_lost_total) > 0))
}
check "mapping records were lost" soon lost
check "everybody is read anew" soon all_read
diag "lost $(metric profd_sideband_lost_total) records in" \
	"$(metric profd_pm_maps_lost_seconds_total) s, read" \
	"$(($(metric profd_pm_rereads_total) - before)) processes by" \
	"$(($(ms) - begin)) ms after"
check "after: all is named" soon settled after
echo >"$T/go"
wait "$quiet"
like "the status says so" "$(ask /status)" \
	'mapping records lost: [1-9].*mapping records may be missing: [1-9]'
ran=$(cpu_ns "$swap")
kill "$swap"
full=$(metric profd_sampler_ring_full_total)
stop_profd
file=$(echo "$archive"/*/*.pb.gz)
samples "$file" >"$T/all"
awk -F '\t' -v pid="$swap" '$3 == pid' "$T/all" >"$T/swap.tsv"
# No frame of a stale stack is named.
wrong='(swap_a@|libswap_a).*run_b@|(swap_b@|libswap_b).*run_a@'
is "never a name in the other's place" \
	"$(total "$T/swap.tsv" "$wrong")" 0 || diag "$(grep -E "$wrong" "$T/swap.tsv")"
is "never a file in the other's place" \
	"$(total "$T/swap.tsv" 'swap_a@[^;]*libswap_b|swap_b@[^;]*libswap_a')" 0
num "that time's stacks say that mappings were lost" \
	"$(total "$T/swap.tsv" 'mapping lost')" '>' 0
num "... and before and after there were names" \
	"$(total "$T/swap.tsv" '(^|;)swap_[ab]@.*run_[ab]@')" '>' 50
awk -F '\t' -v pid="$quiet" '$3 == pid' "$T/all" >"$T/quiet.tsv"
num "who was not sampled meanwhile is known at the first sample" \
	"$(total "$T/quiet.tsv" 'spin_old@')" '>' 0
is "... and has no other" "$(total "$T/quiet.tsv" 'mapping lost')" 0
like "the profile says how many records, and how long" "$(comments "$file")" \
	'mapping records lost: [1-9].*mapping records may be missing: [1-9]'
# At 97 Hz, less the samples without room in the ring.
num "every sample is there" "$(awk -v ns="$ran" -v full="$full" -v got="$(total "$T/swap.tsv")" '
	BEGIN {
		n = ns * 97 / 1e9
		d = 5 * sqrt(n) + 2
		ok = got > n - d - full && got < n + d
		print ok ? 1 : got " of " n
	}')" == 1

# --- lifecycle -----------------------------------------------------------------
# Processes come and go until the ring is full; then one process begins, one executes
# another program, and one ends, without events.
unseen() {
	"$E2E/prog_swap" storm 0 20000
	background bash -c 'exec "$1" 1500 wait <>"$2"' - "$E2E/prog_spin_old" "$T/go1"
	born=$pid
	echo >"$T/turn"
	soon grep -q prog_spin_new "/proc/$turns/cmdline"
	kill -KILL "$dies"
	wait "$dies"
	soon grep -q prog_spin_old "/proc/$born/cmdline"
} 2>/dev/null

# line PID: of the ledger: state, executable, arguments, parent.
line() {
	"$PROFD" ps --json --all --server "unix:$sock" | jq -rs --argjson pid "$1" '
		map(select(.pid == $pid)) | if length == 0 then "none" else
		last | [.state, (.exe // "-" | split("/") | last),
			(.args // [] | .[1:] | join(" ")), .ppid] | join(",")
		end'
}

right() {
	[[ $(line "$born") == "alive,prog_spin_old,1500 wait,$$" &&
		$(line "$turns") == "alive,prog_spin_new,1500 wait,$$" &&
		$(line "$dies") != alive* ]]
}

# Without lost mapping records: known mappings have to move to the new image.
start_profd life --window 3600 --ring-size 4M
mkfifo "$T/go1" "$T/go2" "$T/turn"
background bash -c 'read -r <>"$3"; exec "$1" 1500 wait <>"$2"' - \
	"$E2E/prog_spin_new" "$T/go2" "$T/turn"
turns=$pid
background sleep 1000
dies=$pid
there() {
	[[ $(line "$turns") == alive,bash,* && $(line "$dies") == alive,sleep,* ]]
}
check "before: they are in the ledger" soon there
is "... which a walk would not change" "$(metric profd_pm_vanished_total)" 0
standstill unseen
begin=$(ms)
check "the ledger is right again" soon right
diag "$(metric profd_lifecycle_lost_total) events lost in" \
	"$(metric profd_pm_gaps_seconds_total) s, right by $(($(ms) - begin)) ms after"
num "events were lost" "$(metric profd_lifecycle_lost_total)" '>' 0
num "... and it was found out" "$(metric profd_pm_found_total)" '>=' 2
like "the status says so" "$(ask /status)" \
	'lifecycle events lost: [1-9].*lifecycle events were lost: [1-9]'
echo >"$T/go1"
echo >"$T/go2"
wait "$born" "$turns"
stop_profd
file=$(echo "$archive"/*/*.pb.gz)
samples "$file" >"$T/all"
for who in "$born old" "$turns new"; do
	read -r id name <<<"$who"
	awk -F '\t' -v pid="$id" '$3 == pid' "$T/all" >"$T/one.tsv"
	num "$name: its samples have their names" \
		"$(total "$T/one.tsv" "(^|;)spin_$name@")" '>' 0
	is "$name: ... and their executable" \
		"$(total "$T/one.tsv" "spin_$name@")" \
		"$(awk -F '\t' -v name="$name" '$7 ~ "prog_spin_" name "$"' \
			"$T/one.tsv" >"$T/exe.tsv"; total "$T/exe.tsv" "spin_$name@")"
done
like "the profile says how many events, and how long" "$(comments "$file")" \
	'lifecycle events lost: [1-9].*lifecycle events were lost: [1-9]'

plan
