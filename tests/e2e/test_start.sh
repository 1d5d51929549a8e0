#!/bin/bash
# profd starts on a host that is full: of sleeping processes, and of one with very many
# mappings. All of them are known when it answers, and processes that were busy
# meanwhile have samples with names. PROCESSES=5000 MAPPINGS=60000 is the intended
# size; the default is smaller.
. "$(dirname "$0")/lib.sh"
PROCESSES=${PROCESSES:-1000}
MAPPINGS=${MAPPINGS:-20000}

# sleepers HOW N: its pids go to $T/HOW.
sleepers() {
	mkfifo "$T/$1.in"
	background bash -c 'exec "$0" "$1" "$2" <"$3" >"$4"' \
		"$E2E/load_sleep" "$1" "$2" "$T/$1.in" "$T/$1"
	exec {keep}>"$T/$1.in"
	wait_for 120 grep -q ready "$T/$1" ||
		bail "$2 processes sleep" "$(cat "$T/$1")"
}
sleepers fork $((PROCESSES / 2))
sleepers exec $((PROCESSES - PROCESSES / 2))
sleepers maps "$MAPPINGS"
maps=$pid
background "$E2E/load_small" 100000 1000
busy=$pid

# Some more that sleep, and work on a signal, for a second in all.
waking=()
for i in {1..14}; do
	mkfifo "$T/go$i"
	background bash -c 'exec "$0" 70 wait <>"$1"' "$E2E/prog_spin_a" "$T/go$i" >/dev/null
	waking+=("$pid")
done
asleep() {
	[[ /proc/$1/exe -ef $E2E/prog_spin_a ]]
}
for pid in "${waking[@]}"; do
	wait_for 60 asleep "$pid"
done

start_profd full --freq 999
# With their parents, and the one with the mappings.
{
	tr ' ' '\n' <"$T/fork"
	tr ' ' '\n' <"$T/exec"
	echo "$maps"
} | grep -E '^[0-9]+$' | sort >"$T/wanted"
is "so many sleep" "$(wc -l <"$T/wanted")" $((PROCESSES + 1))
ask /processes | jq -r .pid | sort >"$T/known"
is "each of them is known" "$(comm -23 "$T/wanted" "$T/known" | wc -l)" 0
num "... and each mapping" "$(metric profd_pm_mappings)" ">=" "$MAPPINGS"
start=$(ask /status | grep '^start: ')
echo "# $start"
read -r _ walked _ _ _ _ _ meanwhile _ <<<"${start//,/}"
num "they were walked at the start" "$walked" ">" "$PROCESSES"
num "samples were taken meanwhile" "${meanwhile:-0}" ">" 0
num "and some more since" "$(metric profd_sampler_taken_total)" ">" "$meanwhile"
is "no event and no mapping was lost" \
	"$(metric profd_lifecycle_lost_total) $(metric profd_sideband_lost_total)" "0 0"
is "who was there is no surprise" "$(metric profd_pm_found_total)" 0
for i in {1..14}; do
	echo >"$T/go$i"
done
wait "${waking[@]}"
sampled() {
	ask /processes | grep "\"pid\":$busy," | jq -e '.samples > 20'
}
check "the busy one is sampled" wait_for 60 sampled
stop_profd
check_profile "$archive"/*/*.pb.gz
for f in "$archive"/*/*.pb.gz; do
	samples "$f"
done >"$T/all"
awk -F '\t' -v pid="$busy" '$3 == pid' "$T/all" >"$T/busy"
awk -F '\t' '$7 ~ /prog_spin_a$/' "$T/all" >"$T/woken"
num "who slept is sampled" "$(cut -f 3 "$T/woken" | sort -u | wc -l)" "==" 14
is "... and lacks no mapping" "$(total "$T/woken" '\[mapping lost\]|\[unmapped\]')" 0
num "its samples are in the profile" "$(total "$T/busy")" ">=" 20
is "none of them lacks its mappings" "$(total "$T/busy" '\[mapping lost\]|\[unmapped\]')" 0
num "its functions have their names" "$(total "$T/busy" 'small_leaf@')" ">" 0
plan
