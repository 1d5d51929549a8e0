#!/bin/bash
# The wall clock is stepped, by an hour forth and back, by an hour back and forth, and
# by a few seconds, which then occur twice: windows follow each other without gap, none
# is missing or duplicated, no file replaces another, and reported times are those of
# the current clock.
. "$(dirname "$0")/lib.sh"
WINDOW=1
export TZ=UTC
real=$PROFD
printf '#!/bin/sh\nexport ASAN_OPTIONS=verify_asan_link_order=0\nexec env LD_PRELOAD="%s" CLOCK_OFFSET="%s" "%s" "$@"\n' \
	"$E2E/libclock.so" "$T/offset" "$real" >"$T/profd"
chmod +x "$T/profd"
PROFD=$T/profd
step() { echo "$1" >"$T/offset.new" && mv "$T/offset.new" "$T/offset"; }

step 0
start_profd clock --window $WINDOW
# Of its own shells only: another program may fork all the time.
background nice -n -20 "$real" events -f --json --comm sh --server "unix:$sock" \
	>"$T/events"
follower=$pid
follows() { sh -c 'exit 0' && test -s "$T/events"; }
wait_for 60 follows
windows() { (($(grep -c 'pb.gz: [0-9]* samples' "$log") >= $1)); }
# A tenth of a CPU, so that each window has samples.
background nice -n -20 "$E2E/prog_spin_a" 600000 naps 90 >/dev/null
busy=$pid

# told TAG: start, end, and nanoseconds between them, of the shell with this argument.
told() {
	grep -aF "$1" "$T/events" |
		jq -r --arg tag "$1" "$plain"'select(.events == ["end"] and
			.args[0] == "sh" and .args[3] == $tag) |
			[.start, .exit, .exit_boot_ns - .start_boot_ns] | @tsv' \
			2>/dev/null | grep .
}

# Multiples of the window, on which the check below relies.
offsets=(0 3600 0 -3600 0 -4 -8)
sh -c 'sleep 4; exit 0' "spanning-$$" &
spanning=$!
"$real" fetch --server "unix:$sock" --duration 4 -o "$T/fetched.pb.gz" &
fetch=$!
n=0
for i in "${!offsets[@]}"; do
	offset=${offsets[i]}
	step "$offset"
	from=$(date +%s.%N)
	sh -c 'exit 0' "clock-$$-$i"
	to=$(date +%s.%N)
	wait_for 60 told "clock-$$-$i"
	result $? "offset $offset: the life is told of"
	read -r _ ended _ < <(told "clock-$$-$i")
	at=$(date -d "$ended" +%s.%N)
	check "offset $offset: in the clock of the moment ($at)" \
		awk -v at="$at" -v from="$from" -v to="$to" -v off="$offset" \
		'BEGIN { exit !(at >= from + off - 0.5 && at <= to + off + 0.5) }'
	# A window has begun at this offset; at every second one, one has ended there, too.
	n=$(grep -c 'pb.gz: [0-9]* samples' "$log")
	wait_for 120 windows $((n + 1 + i % 2))
	result $? "offset $offset: windows are written"
done
wait "$spanning"
wait "$fetch"
is "a profile is fetched across a step" $? 0
wait_for 60 told "spanning-$$"
# All times in one line are of one clock.
read -r began ended ns < <(told "spanning-$$")
check "who lived across a step has lived as long as it did" \
	awk -v a="$(date -d "$began" +%s.%N)" -v b="$(date -d "$ended" +%s.%N)" \
	-v ns="$ns" 'BEGIN { d = b - a - ns / 1e9
		exit !(ns >= 4e9 && d < 0.001 && d > -0.001) }'
is "nothing in the ledger ends before it began" "$(jq -r "$plain"'select(.exit_boot_ns and
	.start_boot_ns and .exit_boot_ns < .start_boot_ns) | .pid' "$T/events" |
	wc -l)" 0
kill -INT "$follower"
wait "$follower" 2>/dev/null
stop_profd
is "it ends well" $? 0
# Not before: a window without samples is not written.
kill -KILL "$busy"
wait "$busy" 2>/dev/null

# --- the archive ---
sed -n 's/^.* \(\/.*pb.gz\): [0-9]* samples$/\1/p' "$log" >"$T/written"
is "each window has a file of its own" "$(sort -u "$T/written" | wc -l)" \
	"$(wc -l <"$T/written")"
is "and no file is anything else" "$(find "$archive" -name '*.pb.gz' | wc -l)" \
	"$(wc -l <"$T/written")"
# Several windows are written at a time: the order is that of boot time, which no step
# changes. None overlaps, none is missing.
"$E2E_SRC/boot_check.py" "$T/sorted" <"$T/written" >"$T/boot"
is "windows lie end to end in boot time" "$(cat "$T/boot")" ""
num "seconds came twice" "$(grep -c -- '-[0-9]*s-1.pb.gz' "$T/written")" '>' 0
while read -r file; do
	zcat "$file" | protoc --proto_path="$ROOT/reporter" \
		--decode=perftools.profiles.Profile profile.proto |
		awk -v file="${file##*/}" '
		/^time_nanos:/ { time = $2 / 1e9 }
		/^duration_nanos:/ { printf "%.6f %.6f %s\n", time, $2 / 1e9, file }'
done <"$T/sorted" >"$T/windows"
is "all can be read" "$(wc -l <"$T/windows")" "$(wc -l <"$T/written")"
# The first window ends at a whole second, and the k-th begins k windows after that;
# the difference is the clock.
awk -v window=$WINDOW -v offsets="${offsets[*]}" -v total="$(wc -l <"$T/windows")" '
	function near(a, b) { return a - b < 0.5 && b - a < 0.5 }
	BEGIN { n = split(offsets, off, " "); at = 1 }
	NR == 1 {
		base = $1 + $2 - window
		next
	}
	{
		d = $1 - base - window * (NR - 1)
		while (at <= n && !near(d, off[at]))
			at++
		if (at > n) {
			print "not where it belongs:", $0, d
			exit
		}
		if (NR > 1 && NR < total && !near($2, window))
			print "not of its length:", $0
	}' "$T/windows" >"$T/wrong"
is "windows lie end to end, none missing, none twice" "$(cat "$T/wrong")" ""
# --- a query by wall time: of a second that the clock had twice it has both ---
mapfile -t files <"$T/written"
ask_span() { # FROM TO
	"$real" report --sample-type samples --json --rows comm --archive "$archive" \
		--from "$1" --to "$2" 2>"$T/err" | jq -s 'map(.flat) | add // 0'
}
all=$(ask_span 1000000000 4000000000)
is "all times: each sample once" "$all" \
	"$("$E2E_SRC/past_check.py" 1000000000 4000000000 "${files[@]}")"
like "... and it says that some are of the same time" "$(cat "$T/err")" \
	'of a time that the clock had twice: both are in'
read -r from to < <(awk '{ n[int($1 + 0.5)]++ }
	END { for (t in n) if (n[t] > 1) { print t, t + 1; exit } }' "$T/windows")
num "a second that came twice has samples" "$(ask_span "$from" "$to")" '>' 0
is "... those of both" "$(ask_span "$from" "$to")" \
	"$("$E2E_SRC/past_check.py" "$from" "$to" "${files[@]}")"
check_profile "$archive"/*/*.pb.gz "$T/fetched.pb.gz"
is "the fetched profile has its length" \
	"$(pprof -raw "$T/fetched.pb.gz" | sed -n 's/^Duration: //p')" 4s
plan
