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
while sleep 0.05; do
	read -r ns _ </proc/$load/schedstat
	echo "\${EPOCHREALTIME/[.,]/}000 \$ns"
done
END
background nice -n -20 bash "$T/clock.sh" >"$T/clock" 2>/dev/null
start_profd fetches --window 3600 --freq $HZ

# duration FILE: in nanoseconds, from the profile.
duration() {
	gzip -dc "$1" | protoc --proto_path="$ROOT/reporter" \
		--decode=perftools.profiles.Profile profile.proto |
		sed -n 's/^duration_nanos: //p'
}
begins() {
	gzip -dc "$1" | protoc --proto_path="$ROOT/reporter" \
		--decode=perftools.profiles.Profile profile.proto |
		sed -n 's/^time_nanos: //p'
}
load_of() {
	# Another run of these tests has a load of this name, too.
	samples "$1" | awk -F '\t' -v pid="$load" '$3 == pid' >"$1.tsv"
	total "$1.tsv" '(^|;)(heavy|light)_leaf@'
}
# due FILE: the expected samples of the load, by the CPU time it used while the
# profile was taken.
due() {
	awk -v from="$(begins "$1")" -v len="$(duration "$1")" -v HZ=$HZ '
		function cpu_at(t,	i) {
			for (i = 2; i < n && wall[i] < t; i++)
				;
			return cpu[i - 1] + (cpu[i] - cpu[i - 1]) * \
				(t - wall[i - 1]) / (wall[i] - wall[i - 1])
		}
		{ wall[++n] = $1; cpu[n] = $2 }
		END {
			printf "%.0f\n", (cpu_at(from + len) - \
				cpu_at(from)) / 1e9 * HZ
		}' "$T/clock"
}
get() { # get SECONDS FILE [CURL OPTIONS...], in the background
	local seconds=$1 file=$2
	shift 2
	exec curl -sS --fail "$@" -o "$file" \
		"$url/debug/pprof/profile?seconds=$seconds"
}

# --- two at once, and one that disconnects ---
asked=$(date +%s%N)
background get 2 "$T/two.pb.gz"
two=$pid
background get 3 "$T/three.pb.gz"
three=$pid
background get 30 "$T/gone.pb.gz" --max-time 1
gone=$pid
wait "$gone"
is "a client gives up after a second" $? 28
wait "$two"
is "two seconds are answered" $? 0
wait "$three"
is "three seconds are answered" $? 0
is "two seconds are two seconds" "$(duration "$T/two.pb.gz")" 2000000000
is "three seconds are three seconds" "$(duration "$T/three.pb.gz")" 3000000000
# The profile begins at the request, not with a window; a slow machine may need a
# minute to get there.
late=$(($(begins "$T/three.pb.gz") - asked))
num "three seconds begin when asked for, not before" "$late" '>=' -50000000
num "three seconds begin when asked for, not later" "$late" '<=' 60000000000
# 1666 and 2499 on an idle machine. While the load runs without interruption its
# samples are as regular as the clock; a fifth is allowed for CPU time taken by a
# hypervisor, and for the edges.
plausible() { # plausible NAME FILE
	about "$1: the load's samples" "$(load_of "$2")" "$(due "$2")" 20
}
sleep 0.5
plausible "two seconds" "$T/two.pb.gz"
plausible "three seconds" "$T/three.pb.gz"
nobody_waits() {
	[[ $(metric profd_reporter_http_waiting) == 0 ]]
}
check "whoever went away is not waited for" wait_for 60 nobody_waits
check "profd goes on" kill -0 "$profd"

# --- a client that is killed, not closed; then fifty at once ---
background get 30 "$T/killed.pb.gz"
killed=$pid
clients=()
for i in $(seq 50); do
	background get 2 "$T/many$i.pb.gz"
	clients+=("$pid")
done
sleep 0.5
kill -KILL "$killed"
wait "$killed" 2>/dev/null
failed=0
for pid in "${clients[@]}"; do
	wait "$pid" || failed=$((failed + 1))
done
is "fifty clients are answered" "$failed" 0
check_profile "$T"/*.pb.gz
durations=$(for i in $(seq 50); do duration "$T/many$i.pb.gz"; done | sort -u)
is "each has its two seconds" "$durations" 2000000000
# Five of the fifty: reading all would take most of the time of this test.
for i in 1 13 25 37 50; do
	plausible "client $i" "$T/many$i.pb.gz"
done

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
