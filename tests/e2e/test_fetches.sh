#!/bin/bash
# Clients do not affect each other: fetches of different length at once, one client
# that disconnects, fifty together. Each gets exactly the time that it asked for.
. "$(dirname "$0")/lib.sh"
HZ=833

# A load on one CPU, whose CPU time gives the number of expected samples.
background nice -n -20 "$E2E/prog_shares" 6000 >/dev/null
load=$pid
# "wall-ns cpu-ns", several times a second. The shell reads both, at one moment.
cat >"$T/clock.sh" <<END
exec 3<> <(:)
while ! read -r -t 0.05 -u 3; do
	read -r ns _ </proc/$load/schedstat
	echo "\${EPOCHREALTIME/[.,]/}000 \$ns"
done
END
background nice -n -20 bash "$T/clock.sh" >"$T/clock" 2>/dev/null
clock=$pid
start_profd fetches --window 3600 --freq $HZ

# counts FILE...: of each the beginning and the duration in ns, and the load's samples.
counts() {
	python3 -B -c 'import sys
sys.path.insert(0, sys.argv[1])
import times_check
for path in sys.argv[3:]:
    top, samples = times_check.read_profile(path)
    print(top[9], top[10], sum(v[0] for v, tid in samples if tid == int(sys.argv[2])))
' "$E2E_SRC" "$load" "$@"
}
# plausible NAME: the counts in $T/NAME are as many as are due by the CPU time that the
# load used while the profile was taken. While it runs without interruption its samples
# are as regular as the clock; a fifth is allowed for CPU time taken by a hypervisor, and
# for the edges; five standard deviations for interruptions.
plausible() {
	awk -v HZ=$HZ '
		function cpu_at(t,	i) {
			for (i = 2; i < n && wall[i] < t; i++)
				;
			return cpu[i - 1] + (cpu[i] - cpu[i - 1]) * \
				(t - wall[i - 1]) / (wall[i] - wall[i - 1])
		}
		NR == FNR { wall[++n] = $1; cpu[n] = $2; next }
		{
			due = (cpu_at($1 + $2) - cpu_at($1)) / 1e9 * HZ
			off = $3 > due ? $3 - due : due - $3
			printf "%d of %.0f\n", $3, due
			bad += !(due > 0 && off <= due / 5 + 5 * sqrt(due))
		}
		END { exit bad != 0 }' "$T/clock" "$T/$1" >"$T/due"
	result $? "$1: the load's samples" || diag "$(cat "$T/due")"
	diag "$1: $(sort -n "$T/due" | sed -n '1p;$p' | paste -sd,)"
}
get() { # get SECONDS FILE [CURL OPTIONS...], in the background
	local seconds=$1 file=$2
	shift 2
	exec curl -sS --fail "$@" -o "$file" \
		"$url/debug/pprof/profile?seconds=$seconds"
}

# --- two at once, and one that disconnects ---
asked=$(date +%s%N)
background get 1 "$T/one.pb.gz"
one=$pid
background get 2 "$T/two.pb.gz"
two=$pid
background get 30 "$T/gone.pb.gz" --max-time 0.5
gone=$pid
wait "$gone"
is "a client gives up after half a second" $? 28
wait "$one"
is "a second is answered" $? 0
wait "$two"
is "two seconds are answered" $? 0
sleep 0.2 # the clock is past their ends
kill -STOP "$load"
counts "$T/one.pb.gz" "$T/two.pb.gz" >"$T/both"
is "a second is a second, two seconds are two" "$(cut -d ' ' -f 2 "$T/both" | xargs)" \
	"1000000000 2000000000"
# The profile begins at the request, not with a window; a slow machine may need a
# minute to get there.
late=$(($(tail -n 1 "$T/both" | cut -d ' ' -f 1) - asked))
num "two seconds begin when asked for, not before" "$late" '>=' -50000000
num "two seconds begin when asked for, not later" "$late" '<=' 60000000000
plausible both
nobody_waits() {
	[[ $(metric profd_reporter_http_waiting) == 0 ]]
}
check "whoever went away is not waited for" wait_for 60 nobody_waits
check "profd goes on" kill -0 "$profd"

# --- a client that is killed, not closed; then fifty at once ---
kill -CONT "$load"
background get 30 "$T/killed.pb.gz"
killed=$pid
clients=()
for i in $(seq 50); do
	background get 1 "$T/many$i.pb.gz"
	clients+=("$pid")
done
sleep 0.3
kill -KILL "$killed"
wait "$killed" 2>/dev/null
failed=0
for pid in "${clients[@]}"; do
	wait "$pid" || failed=$((failed + 1))
done
is "fifty clients are answered" "$failed" 0
sleep 0.2
kill -KILL "$load" "$clock"
check_profile "$T"/*.pb.gz
counts "$T"/many*.pb.gz >"$T/many"
is "each has its second" "$(cut -d ' ' -f 2 "$T/many" | sort | uniq -c | xargs)" "50 1000000000"
plausible many

# --- four that end early at once: libmicrohttpd handles others first ---
clients=()
for i in 1 2 3 4; do
	background env --default-signal=INT "$PROFD" fetch -q --server "unix:$sock" \
		-d 3600 -o "$T/early$i.pb.gz" 2>"$T/early$i.err"
	clients+=("$pid")
done
four_wait() {
	[[ $(metric profd_reporter_http_waiting) == 4 ]]
}
check "four fetches wait" wait_for 60 four_wait
kill -INT "${clients[@]}"
for i in 1 2 3 4; do
	wait "${clients[i - 1]}"
	is "interrupted fetch $i: the profile so far" "$?$(cat "$T/early$i.err")" 0
done
check_profile "$T"/early?.pb.gz

# --- two hundred at once: they share what is equal ---
memory() { awk -v what="$1:" '$1 == what { print $2 }' "/proc/$profd/status"; }
# two_hundred PATH: the number of those that fail. All connect before the first is
# answered, however busy the machine is. profd has memory for a connection, too: it is
# there after the first time.
two_hundred() {
	for _ in $(seq 200); do
		printf 'url = "http://profd%s"\noutput = /dev/null\n' "$1"
	done >"$T/urls"
	curl -sS -Z --parallel-immediate --parallel-max 200 -w '%{http_code}\n' \
		--unix-socket "$sock" -K "$T/urls" | grep -vc '^200$'
}
two_hundred /healthz >/dev/null
before=$(memory VmRSS)
echo 5 >"/proc/$profd/clear_refs" # VmHWM begins again
is "two hundred clients are answered" \
	"$(two_hundred '/debug/pprof/profile?seconds=3')" 0
num "in at most 20 MB more, in kB" "$(($(memory VmHWM) - before))" '<=' 20000
check "nobody is waited for in the end" wait_for 60 nobody_waits
stop_profd
is "profd ends with 0" $? 0
check_profile "$archive"/*/*.pb.gz
plan
