#!/bin/bash
# The size of scraped profiles of 64 busy CPUs that compile: the same number of samples
# a second, taken at a higher frequency on the existing CPUs. For the durations and the
# labels of the configurations in profd(8), beside profiles with all labels of the same
# time: samples after equal ones are merged, and bytes before compression. The budgets
# are the limits of Pyroscope, for the duration that profd(8) has for 64 CPUs.
. "$(dirname "$0")/lib.sh"
hz=$((64 * 99 / CPUS))
labels="all none comm,unit,container,pod"

storm() {
	while :; do
		for f in "$ROOT"/base/*.c "$ROOT"/symbolize/*.c; do
			gcc -I"$ROOT" -I"$B" -D_GNU_SOURCE -O1 -g -c -o "$T/o.$1" "$f"
		done
	done
}
# size LABELS SECONDS: $n samples, $raw bytes.
size() {
	zcat "$T/$1.$2.gz" >"$T/$1.$2.pb"
	raw=$(stat -c %s "$T/$1.$2.pb")
	n=$(pprof -raw "$T/$1.$2.pb" | awk '/^Locations/ { exit }
		/^ +[0-9]+ +[0-9]+:/ { n++ } END { print n }')
}

start_profd scrape --freq "$hz" --window 3600 --ring-size 64M
for ((i = 0; i <= CPUS; i++)); do
	background storm "$i"
done
sleep 5
for seconds in 3 10 14; do
	gets=()
	for l in $labels; do
		ask "/debug/pprof/profile?seconds=$seconds&labels=$l" \
			>"$T/$l.$seconds.gz" &
		gets+=($!)
	done
	wait "${gets[@]}"
	size all $seconds
	all_n=$n all_raw=$raw
	for l in none comm,unit,container,pod; do
		size "$l" $seconds
		limit_n='' limit_raw=''
		((seconds > 3)) || limit_n=16000 limit_raw=$((2 << 20))
		name=scrape_${seconds}s_$([[ $l == none ]] && echo none || echo few)
		figure "${name}_samples" "$n" samples "$limit_n" all_labels "$all_n"
		figure "${name}_bytes" "$raw" bytes "$limit_raw" all_labels "$all_raw"
	done
done
figure scrape_lost "$(metric profd_sampler_ring_full_total)" samples 0
