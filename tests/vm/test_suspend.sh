#!/bin/sh
# The host is suspended to memory and wakes up, twice. Meanwhile the boot clock and
# the wall clock go on, CLOCK_MONOTONIC stands, and all CPUs but the first are
# taken offline. Nothing of that time is sampled afterwards, claimed as used, or as
# lost; what lives then lives on, and everything goes on in time.
# PROFD_SOURCE=perf: without BPF.
. /tests/lib.sh
SLEEP=12

# Busy time of all CPUs that sampling was to account for, in ns.
busy() {
	sum=0
	for i in 0 1; do
		sum=$(metric "profd_sampler_busy_seconds_total{cpu=\"$i\"}" |
			awk -v sum="$sum" '{ printf "%.0f\n", sum + $1 * 1e9 }')
	done
	echo "$sum"
}
doubt() {
	echo $(($(said 'milliseconds in which lifecycle events were lost') + \
		$(said 'milliseconds in which mapping records may be missing')))
}

# sleep_once NAME
sleep_once() {
	was_doubt=$(doubt) was_busy=$(busy)
	was_0=$(sampled 0) was_1=$(sampled 1)
	mono=$(mono_ns) boot=$(boot_ns)
	echo 0 >/sys/class/rtc/rtc0/wakealarm
	echo +$SLEEP >/sys/class/rtc/rtc0/wakealarm
	echo mem >/sys/power/state
	result $? "$1: the host sleeps"
	slept=$(($(boot_ns) - boot - $(mono_ns) + mono))
	got_0=$(sampled 0) got_1=$(sampled 1) now_busy=$(busy)
	awake=$(($(mono_ns) - mono))
	# The alarm was set a moment before, in whole seconds.
	num "$1: one clock stood" $((slept / ms)) -ge $(((SLEEP - 7) * 1000))
	in_time "$1"
	# A sample each HZ-th of a second, and one more where its clock is opened
	# anew; a burst at the waking up would be of a thousand.
	most=$((awake / 1000 * HZ / 1000000 + 3))
	num "$1: CPU 0 is not sampled for its sleep" $((got_0 - was_0)) -le $most
	num "$1: nor is CPU 1" $((got_1 - was_1)) -le $most
	num "$1: no CPU was busy in its sleep" \
		$(((now_busy - was_busy) / ms)) -le $((2 * awake / ms + 200))
	until_ok 240 sampled_more 1 $((got_1 + 10))
	result $? "$1: CPU 1 is sampled again"
	# From the last look before to its sleep, and from its waking up to the
	# first: both for as long as the host was awake in between, at most.
	was_doubt=$(($(doubt) - was_doubt))
	awake=$(($(mono_ns) - mono))
	diag "$1: slept $((slept / ms)) ms, then $was_doubt ms in doubt"
	num "$1: its sleep is no loss" $was_doubt -le $((2 * awake / ms))
	goes_on "$1"
}

begin --source "${PROFD_SOURCE:-bpf}"
goes_on "at first"
in_time "at first"
mkfifo "$T/fifo"
lived_from=$(boot_ns)
dash -c 'read -r x; exit 9' spanning <"$T/fifo" &
exec 3>"$T/fifo"
sleep_once "first"
sleep_once "again"
grew=$(($(boot_ns) - lived_from))
exec 3>&-
wait $!
until_ok 240 life spanning
result $? "who lived before and after is told of"
num "with its status" "$code" = 9
num "by the clock that went on" $(((exit_boot - start_boot) / ms)) -ge \
	$((grew / ms - 1000))
num "in the wall clock, too" $((end - start - exit_boot + start_boot)) = 0
num "with what it used, and no more" "$cpu" -lt $((1000 * ms))
ledger 1000000
none 'samples lost: ring full' 'lifecycle events lost' \
	'records lost: out of memory' 'records refused: wrong lengths'
finish
# --- all windows, by the clock of the border ---
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
