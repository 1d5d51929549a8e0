#!/bin/bash
# Rings that overflow while profd stands still. What the mapping stream lost: no
# name is made up, and all are there again; what the lifecycle stream lost: the
# ledger is right again. And the profile says so.
. "$(dirname "$0")/lib.sh"

comments() {
	pprof -comments "$(readable "$1")"
}

# standstill COMMAND...: profd sees what the command did when it is over.
standstill() {
	kill -STOP "$profd"
	"$@"
	kill -CONT "$profd"
}

ms() {
	echo $((${EPOCHREALTIME/./} / 1000))
}

# --- mappings ------------------------------------------------------------------
# Twice the rings' records, on each CPU, and the swapping goes on behind.
overflow() {
	"$E2E/prog_swap" storm 60000
	sleep 1
}

# settled NAME: a second's profile in which all of the swapping is named.
settled() {
	ask "/debug/pprof/profile?seconds=1" >"$T/$1.pb.gz" &&
		samples "$T/$1.pb.gz" >"$T/$1.all" &&
		awk -F '\t' -v pid="$swap" '$3 == pid' "$T/$1.all" >"$T/$1.tsv" &&
		(($(total "$T/$1.tsv" '(^|;)swap_[ab]@') > 0)) &&
		(($(total "$T/$1.tsv" 'mapping lost') == 0))
}

all_read() {
	[[ $(metric profd_pm_doubtful) == 0 ]]
}

start_profd lost --window 600
background "$E2E/prog_swap" "$E2E/libswap_a.so" "$E2E/libswap_b.so" >"$T/swap"
swap=$pid
# Somebody who sleeps until long after the loss.
mkfifo "$T/go"
background "$E2E/prog_spin_old" 300 wait <>"$T/go" >"$T/quiet"
quiet=$pid
wait_for 60 grep -q swap_b "$T/swap"
is "both libraries are at one address" \
	"$(awk '/swap_/ { print $2 }' "$T/swap" | uniq | wc -l)" 1
check "before: all is named" wait_for 60 settled before
is "before: nothing is in doubt" "$(metric profd_pm_doubtful)" 0
is "before: nothing was lost" "$(metric profd_sideband_lost_total)" 0
before=$(metric profd_pm_rereads_total)

standstill overflow
begin=$(ms)
lost() {
	(($(metric profd_sideband_lost_total) > 0))
}
check "mapping records were lost" wait_for 60 lost
check "everybody is read anew" wait_for 60 all_read
diag "lost $(metric profd_sideband_lost_total) records in" \
	"$(metric profd_pm_maps_lost_ms_total) ms, read" \
	"$(($(metric profd_pm_rereads_total) - before)) processes by" \
	"$(($(ms) - begin)) ms after"
check "after: all is named" wait_for 60 settled after
echo >"$T/go"
wait "$quiet"
like "the status says so" "$(ask /status)" \
	'mapping records lost: [1-9].*mapping records may be missing: [1-9]'
ran=$(cpu_ns "$swap")
kill "$swap"
full=$(metric profd_sampler_ring_full_total)
stop_profd
file=$(echo "$archive"/*.pb.zst)
samples "$file" >"$T/all"
awk -F '\t' -v pid="$swap" '$3 == pid' "$T/all" >"$T/swap.tsv"
# Of a stack in doubt not a single frame is told.
is "never a name in the other's place" \
	"$(total "$T/swap.tsv" '(swap_a@|libswap_a).*run_b@|(swap_b@|libswap_b).*run_a@')" 0
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
# At 97 Hz, less what found no room in the ring of samples.
num "every sample is there" "$(awk -v ns="$ran" -v full="$full" -v got="$(total "$T/swap.tsv")" '
	BEGIN {
		n = ns * 97 / 1e9
		d = 5 * sqrt(n) + 2
		print got > n - d - full && got < n + d ? 1 : got " of " n
	}')" == 1

# --- lifecycle -----------------------------------------------------------------
processes() {
	ask "/processes?all=1" 2>/dev/null || ask /processes
}

plan
