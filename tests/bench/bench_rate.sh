#!/bin/bash
# The load of a host of 64 or 128 CPUs on the one thread that takes samples: the same
# number of samples a second, taken at a higher frequency on each of the existing CPUs,
# all busy. The CPU time, user and system, of that thread and of all other threads and
# processes of profd, and how many samples were lost.
. "$(dirname "$0")/lib.sh"
loads=()
for ((i = 0; i < CPUS; i++)); do
	background nice -n 5 "$E2E/prog_shares" 100000 >/dev/null
	loads+=("$pid")
done

cpu_of_family() {
	local p sum=0
	for p in $(family "$1"); do
		sum=$((sum + $(cpu_ns "$p")))
	done 2>/dev/null
	echo "$sum"
}

for cpus in 64 128; do
	hz=$((cpus * 99 / CPUS))
	shares=() lost=() rates=()
	for ((round = 0; round < ROUNDS; round++)); do
		start_profd "rate$cpus-$round" --window 600 --freq "$hz"
		sleep 3
		before=$(cpu_of_family "$profd") since=$EPOCHREALTIME
		taken=$(metric profd_sampler_taken_total)
		full=$(metric profd_sampler_ring_full_total)
		sleep "$SECONDS_EACH"
		spent=$(($(cpu_of_family "$profd") - before))
		wall=$(calc "$EPOCHREALTIME - $since")
		shares+=("$(calc "$spent / ($wall * 1e9) * 100")")
		rates+=("$(calc "($(metric profd_sampler_taken_total) - \
			$taken) / $wall")")
		lost+=("$(($(metric profd_sampler_ring_full_total) - full))")
		stop_profd
	done
	figure "rate_${cpus}_cpus_cpu" "$(median "${shares[@]}")" \
		"percent of one CPU" 100
	figure "rate_${cpus}_cpus_samples" "$(median "${rates[@]}")" \
		"samples a second"
	figure "rate_${cpus}_cpus_lost" "$(median "${lost[@]}")" samples 0
done
stop "${loads[@]}"
