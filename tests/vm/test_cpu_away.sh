#!/bin/sh
# CPU 1 goes offline for some seconds and comes back, then for a moment only, while
# processes begin and end and both CPUs are busy: each process is reported with its
# status, gaps in listening are reported, and both CPUs are sampled again.
# PROFD_SOURCE=perf: without BPF.
. /tests/lib.sh
online=/sys/devices/system/cpu/cpu1/online

# Losses of mappings, or of all records, on a CPU that came online without a listener.
gaps() {
	if [ "$source" = perf ]; then
		said 'gaps in perf records: mappings, events may be missing'
	else
		said 'mapping records lost'
	fi
}
gaps_more() { [ "$(gaps)" -gt "$1" ]; }
listed() { metric 'profd_sampler_missed{cpu="1"}' | grep .; }

# away NAME SECONDS
away() {
	was_gaps=$(gaps) was_truth=$(truth)
	echo 0 >$online
	result $? "$1: CPU 1 goes"
	if [ "$2" -gt 0 ]; then
		got=$(sampled 0)
		sleep "$2"
		until_ok 240 sampled_more 0 $((got + 30))
		result $? "$1: CPU 0 is sampled meanwhile"
		# The contents of its ring come first, a second later at most.
		got=$(sampled 1)
		until_ok 240 truth_more $((was_truth + 12))
		result $? "$1: lives go on"
		num "$1: CPU 1 is not" "$(sampled 1)" = "$got"
		in_time "$1, meanwhile"
	fi
	echo 1 >$online
	result $? "$1: CPU 1 comes"
	goes_on "$1"
	in_time "$1, afterwards"
	until_ok 240 gaps_more "$was_gaps"
	result $? "$1: what was not heard there is said to be missing"
	listed >/dev/null
	result $? "$1: and what was not sampled is counted"
}

begin
goes_on "at first"
away "for seconds" 4
away "for a moment" 0
ledger
none 'samples lost: ring full' 'lifecycle events lost' \
	'records lost: out of memory' 'records refused: wrong lengths'
finish
# shellcheck disable=SC2126 # of windows, not of words
num "windows say it, too" "$(grep -cE 'mapping records lost: |gaps in perf records: ' \
	"$T/windows")" -gt 0
echo "1..$n"
