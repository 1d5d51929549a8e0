#!/bin/sh
# The host is suspended to memory and wakes up, twice. Meanwhile the boot clock and the
# wall clock continue, CLOCK_MONOTONIC stops, and all CPUs but the first are taken
# offline. That time has no samples afterwards, and is not reported as used or lost;
# processes survive, and everything continues in time.
# PROFD_SOURCE=perf: without BPF.
. /tests/lib.sh
# Seconds, some of which a slow machine may need to suspend: after the alarm nothing
# wakes it.
SLEEP=30

# known PREFIX: the state at one moment, as PREFIX_taken_0, PREFIX_taken_1,
# and in milliseconds PREFIX_busy, of all CPUs, PREFIX_gaps, PREFIX_maps.
known() {
	metrics >"$T/metrics"
	eval "$(awk -v p="$1" '
		/^profd_sampler_taken_total/ { print p "_taken_" n++ "=" $2 }
		/^profd_sampler_busy_seconds_total/ { busy += $2 }
		/^profd_pm_gaps_seconds_total/ { gaps = $2 }
		/^profd_pm_maps_lost_seconds_total/ { maps = $2 }
		END {
			printf "%s_busy=%.0f\n", p, busy * 1000
			printf "%s_gaps=%.0f\n", p, gaps * 1000
			printf "%s_maps=%.0f\n", p, maps * 1000
		}' "$T/metrics")"
}

heard() {
	known again
	[ "$again_maps" -gt "$was_maps" ]
}

# sleep_once NAME
sleep_once() {
	mono=$(mono_ns) boot=$(boot_ns)
	known was
	echo 0 >/sys/class/rtc/rtc0/wakealarm
	echo +$SLEEP >/sys/class/rtc/rtc0/wakealarm
	echo mem >/sys/power/state
	result $? "$1: the host sleeps"
	known woke
	awake=$((($(mono_ns) - mono) / ms))
	until_ok 240 heard
	result $? "$1: what was not heard of CPU 1 is said to be missing"
	again=$((($(mono_ns) - mono) / ms))
	slept=$((($(boot_ns) - boot) / ms - again))
	in_time "$1"
	diag "$1: slept $slept ms; awake for $awake ms, $again ms until CPU 1 was heard"
	num "$1: one clock stood" $slept -ge 5000
	# A sample each HZ-th of a second, and one more where its clock is opened
	# again; a burst after waking up would be of a thousand.
	most=$((awake * HZ / 1000 + 3))
	num "$1: CPU 0 is not sampled for its sleep" \
		$((woke_taken_0 - was_taken_0)) -le $most
	num "$1: nor is CPU 1" $((woke_taken_1 - was_taken_1)) -le $most
	num "$1: no CPU was busy in its sleep" \
		$((woke_busy - was_busy)) -le $((2 * awake + 200))
	# From the last reading before the suspend, and from waking up to the next
	# reading: each at most as long as the host was awake in between; the last
	# reading was a second or two before the clock was read.
	most=$((2 * again + 4000))
	num "$1: its sleep is no loss" $((again_maps - was_maps)) -le $most
	num "$1: nor a gap" $((again_gaps - was_gaps)) -le $most
	goes_on "$1"
}

begin
goes_on "at first"
in_time "at first"
mkfifo "$T/fifo"
lived_from=$(boot_ns)
dash -c 'read -r x; exit 9' <"$T/fifo" &
spanning=$!
exec 3>"$T/fifo"
sleep_once "first"
sleep_once "again"
grew=$(($(boot_ns) - lived_from))
exec 3>&-
wait $spanning
until_ok 240 life $spanning
result $? "who lived before and after is told of"
$whole && num "with its status" "$code" = 9
num "by the clock that went on" $(((exit_boot - start_boot) / ms)) -ge \
	$((grew / ms - 1000))
num "in the wall clock, too" $((end - start - exit_boot + start_boot)) = 0
$whole && num "with what it used, and no more" "$cpu" -lt $((1000 * ms))
ledger
none 'samples lost: ring full' 'lifecycle events lost' \
	'records lost: out of memory' 'records refused: wrong lengths'
finish
# --- all windows, by the wall clock ---
sort -n "$T/windows" | awk -v ns=$((WINDOW * 1000000000)) -v most=$((2 * (WINDOW + 1) * HZ)) '
	NR == 1 { base = $1 }
	{
		d = $1 - base
		k = int(d / ns + 0.5)
		d -= k * ns
		if (d > 1e8 || d < -1e8) print "not in its place:", $0
		if (NR > 1 && k <= last) print "twice:", $0
		if (NR > 1 && k > last + 1) away += k - last - 1
		if ($3 > most) print "a burst:", $0
		if (wrong != "") print wrong
		wrong = $2 != ns ? "not of its length: " $0 : ""
		last = k
	}
	END { print "# " away + 0 " windows were slept through" }' \
	>"$T/wrong"
diag "$(cat "$T/wrong")"
num "windows lie end to end, and are as long as they say" \
	"$(grep -vc "^#" "$T/wrong")" = 0
num "and there are none of its sleep" \
	"$(sed -n 's/^# \([0-9]*\) .*/\1/p' "$T/wrong")" -gt 0
echo "1..$n"
