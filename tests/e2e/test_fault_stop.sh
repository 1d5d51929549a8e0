#!/bin/bash
# profd is stopped for five seconds, as by a debugger, a frozen cgroup or a host that
# swaps, during a storm of short processes and during a steady load: no lifecycle event
# is lost, samples without room are counted, samples that were taken have names, and
# afterwards everything works as before. In the last two cases two seconds are enough: the
# rings are full much earlier.
. "$(dirname "$0")/lib.sh"
STOP=${STOP:-5} STOP_FULL=${STOP_FULL:-2}
# Processes a second, on the whole host, without lost events: 8 MiB of ring for five
# seconds are 838 bytes for each; an exec takes some 210, the other events 225.
BUDGET=2000
a=$E2E/prog_spin_a b=$E2E/prog_spin_b

# of STATUS WORDS: the number after these words.
of() {
	awk -v name="$2: " 'index($0, name) == 1 { print $NF + 0 }' "$1"
}

# forks STATUS
forks() {
	sed -n 's/^lifecycle: \([0-9]*\) forks.*/\1/p' "$1"
}

# stop_it NAME SECONDS: the status before and after, in $T/before and $T/after.
stop_it() {
	local began
	ask /status >"$T/before"
	began=$(cut -d ' ' -f 1 /proc/uptime)
	kill -STOP "$profd"
	sleep "$2"
	kill -CONT "$profd"
	check "$1: it answers again" wait_for 60 ask /status
	sleep 1
	ask /status >"$T/after"
	rate=$(awk -v n=$(($(forks "$T/after") - $(forks "$T/before"))) \
		-v from="$began" '{ printf "%.0f\n", n / ($1 - from) }' /proc/uptime)
	diag "$1: $rate lives a second; $(grep lost: "$T/after" | paste -sd ';')"
}

# read_samples: of the whole archive, into $T/samples.
read_samples() {
	check_profile "$archive"/*/*.pb.gz
	for f in "$archive"/*/*.pb.gz; do
		samples "$f"
	done >"$T/samples"
}

# The two programs have their functions at the same addresses, so that a sample of
# the wrong image is detected.
no_other_frames() {
	is "$1: no frame of another image" "$(awk -F '\t' '
		($7 ~ /prog_spin_a$/ && $10 ~ /_b@/) ||
		($7 ~ /prog_spin_b$/ && $10 ~ /_a@/)' "$T/samples" | wc -l)" 0
}

follow() {
	background nice -n -20 "$PROFD" events -f --json --type exit \
		--server "unix:$sock" >"$T/events"
	follower=$pid
	follows() { /bin/true && test -s "$T/events"; }
	wait_for 60 follows
}

unfollow() {
	kill -INT "$follower"
	wait "$follower"
}

storm() {
	while [[ -e $T/go ]]; do
		"$E2E/prog_lives" 200 "$1" || return 1
		sleep 0.1 # a calm machine would do more than the ring holds
	done
}

execs() {
	while [[ -e $T/go ]]; do
		"$a" 20 exec "$b" 20
		sleep 0.03
	done
}

# missing FILE N: each process is in it once, with pid and exit status, except N and those
# that the follower was told it did not read in time, as beside a loop of forks.
missing() {
	local unread
	unread=$(grep -F '"missed"' "$T/events" | jq -s 'map(.count) | add // 0')
	awk '{ print $2 "\t" ($4 == "exit" ? $5 "\t0" : "-1\t" $5) }' "$1" |
		sort >"$T/wanted"
	# Of these pids only: jq is slow, and the host may have many others.
	cut -f 1 "$T/wanted" | sed 's/.*/"process.pid":&,/' >"$T/pids"
	grep -F -f "$T/pids" "$T/events" |
		jq -r 'select(."profd.process" and (.events | index("exit"))) |
		[."profd.process", ."process.pid", (."process.exit.code" // -1),
			(."profd.signal" // 0)] | @tsv' \
			2>/dev/null | sort -u | cut -f 2- | sort >"$T/ends"
	(($(comm -13 "$T/ends" "$T/wanted" | wc -l) <= $2 + unread))
}

# most TSV: samples in spin_a of the process of prog_spin_a with most samples.
most() {
	awk -F '\t' '$7 ~ /prog_spin_a$/ && $10 ~ /spin_a@/ { n[$3] += $1 }
		END { for (p in n) if (n[p] > most) most = n[p]
			print most + 0 }' "$1"
}

# --- in a storm ---
start_profd storm --window 3600
follow
: >"$T/go"
background storm 1 >"$T/truth"
lives=$pid
background execs >/dev/null
execs=$pid
sleep 1
stop_it storm "$STOP"
rm "$T/go"
wait "$lives"
is "storm: the load is done" $? 0
wait "$execs"
lost=$(of "$T/after" 'lifecycle events lost')
((rate > BUDGET)) || is "storm: no event is lost" "$lost" 0
check "storm: all $(wc -l <"$T/truth") lives, and how they ended, but for $lost" \
	wait_for 60 missing "$T/truth" "$lost"
unfollow
# New processes are seen as before.
"$a" 500 >/dev/null
stop_profd
is "storm: it ends well" $? 0
read_samples
no_other_frames storm
num "storm: who came afterwards is sampled and named" "$(most "$T/samples")" \
	'>=' 40

# --- with tiny rings: all kinds of records are lost ---
start_profd least --window 3600 --ring-size 512K -F 999
follow
: >"$T/go"
background storm 4 >"$T/truth"
lives=$pid
background execs >/dev/null
execs=$pid
sleep 1
stop_it least "$STOP_FULL"
rm "$T/go"
wait "$lives" "$execs"
for kind in 'samples lost: ring full' 'lifecycle events lost' \
	'mapping records lost'; do
	num "least: $kind" "$(of "$T/after" "$kind")" '>' 0
done
check "least: all lives, and how they ended, but for what is lost" \
	wait_for 60 missing "$T/truth" "$(of "$T/after" 'lifecycle events lost')"
# A second later it is correct again, unless more records are lost.
for try in 1 2 3 4 5; do
	sleep 1
	ask /status >"$T/before"
	"$E2E/prog_lives" 100 1 >"$T/quiet"
	"$a" 500 >/dev/null
	missing "$T/quiet" 0 || wait_for 60 missing "$T/quiet" 0
	ask /status >"$T/after"
	[[ $(of "$T/after" 'lifecycle events lost') != \
		$(of "$T/before" 'lifecycle events lost') ]] || break
	diag "least: lost some once more ($try)"
done
check "least: a second later all lives, and how they ended" \
	missing "$T/quiet" $(($(of "$T/after" 'lifecycle events lost') - \
		$(of "$T/before" 'lifecycle events lost')))
"$PROFD" ps --json --server "unix:$sock" >"$T/ps"
# No process of the storm is left in the ledger, and running ones are in it.
ghosts() {
	"$PROFD" ps --json --server "unix:$sock" |
		jq -r 'select(.state == "alive") | .pid' |
		while read -r pid; do
			[[ -e /proc/$pid ]] || echo "$pid"
		done | wc -l
}
few_ghosts() { (($(ghosts) <= 5)); } # who ended while it was asked
check "least: no process is left that is gone" wait_for 60 few_ghosts
unfollow
stop_profd
is "least: it ends well" $? 0
read_samples
no_other_frames least
num "least: who came afterwards is sampled and named" "$(most "$T/samples")" \
	'>=' 100
like "least: the profile says what is lost" \
	"$(pprof -comments "$(readable "$(echo "$archive"/*/*.pb.gz)")")" \
	'samples lost: ring full: [1-9].*lifecycle events lost: [1-9]'

# --- in a steady load, at a rate at which not all samples find room ---
HZ=1999 SHARES=2
start_profd steady --window 3600 -F $HZ
background "$E2E/prog_shares" $SHARES >/dev/null
one=$pid
background "$E2E/prog_shares" $SHARES >/dev/null
two=$pid
: >"$T/go"
background execs >/dev/null
execs=$pid
sleep 0.5
stop_it steady "$STOP_FULL"
rm "$T/go"
wait "$one" "$two" "$execs"
ask /status >"$T/after"
full=$(of "$T/after" 'samples lost: ring full')
num "steady: some samples found no room" "$full" '>' 0
num "steady: and each that did has come through" \
	"$(($(metric profd_sampler_taken_total) - $(ask /metrics |
		awk '/^profd_pump_records_total.*sample/ { print $2 }')))" \
	'<=' $((HZ / 2))
stop_profd
is "steady: it ends well" $? 0
read_samples
no_other_frames steady
# CPU time is exact; a tick during disabled interrupts is late, and sometimes
# dropped.
due=$((2 * SHARES * HZ))
awk -F '\t' -v one="$one" -v two="$two" '$3 == one || $3 == two' "$T/samples" \
	>"$T/shares"
taken=$(total "$T/shares")
diag "steady: $taken of $due samples, $full lost on the host"
num "steady: not more than there were" "$taken" '<=' $((due * 102 / 100))
num "steady: what is missing is counted" $((taken + full + $(of "$T/after" \
	'samples missing against busy CPU time x Hz'))) '>=' $((due * 97 / 100))
heavy=$(percent "$(total "$T/shares" '(^|;)heavy_leaf@')" "$(total "$T/shares" \
	'(^|;)(heavy|light)_leaf@')")
num "steady: shares are as ever: 65 %, at least, of heavy" "$heavy" '>=' 65
num "steady: ... and 75 % at most" "$heavy" '<=' 75
plan
