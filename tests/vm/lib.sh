# shellcheck shell=sh
# shellcheck disable=SC2034 # its users look at them
# lib: functions shared by tests/vm/test_*.sh, which run the whole profd during events
# that must not happen on a shared machine. To be sourced by dash, in the machine of
# tests/vm/run, which has busybox, date(1), profd, and programs of tests/e2e.
#
# The CPUs are emulated: they are slow and may stop for a while. No test asserts on speed,
# and values that are compared with a clock are compared with readings before and after.
cd /tmp || exit 1
n=0
T=$(mktemp -d)
HZ=99
WINDOW=2
PORT=9099
source=${PROFD_SOURCE:-bpf}
# Plain perf events have no arguments, status, or CPU time.
whole=true
[ "$source" = bpf ] || whole=false
ms=1000000 # nanoseconds

diag() { echo "$*" | head -n 40 | cut -c 1-300 | sed 's/^/# /'; }

# result STATUS NAME
result() {
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
		return
	fi
	echo "not ok $n - $2"
	diag "$(tail -n 5 "$T/log")"
}

# num NAME A OPERATOR B: of test(1)
num() {
	[ "$2" "$3" "$4" ]
	result $? "$1 ($2 $3 $4)"
}

# until_ok SECONDS COMMAND...: repeats it five times a second
until_ok() {
	left=$(($1 * 5))
	shift
	until "$@" >/dev/null 2>&1; do
		left=$((left - 1))
		[ "$left" -gt 0 ] || return 1
		sleep 0.2
	done
}

status() { /tests/profd status --server "unix:$T/sock"; }
# said WORDS: the number after these words in the status of profd, which leaves out
# those that are 0. Nothing if profd does not answer, or has no such words.
said() {
	grep -qF "$1" /tests/profd && status >"$T/status" || return
	awk -v words="$1: " '
		(i = index($0, words)) { n = substr($0, i + length(words)) + 0 }
		END { print n + 0 }' "$T/status"
}
# All metrics at once; the wget of busybox needs files in /etc, and has no unix sockets.
metrics() {
	printf 'GET /metrics HTTP/1.0\r\n\r\n' | nc 127.0.0.1 $PORT | tr -d '\r'
}
# metric NAME{LABELS}
metric() { metrics | sed -n "s/^$1 //p"; }

# --- clocks, in nanoseconds: wall, boot, and the one that stops in a suspend ---
wall_ns() { date +%s%N; }
boot_ns() { awk '{ printf "%.0f\n", $1 * 1e9 }' /proc/uptime; }
mono_ns() { awk '/^now at/ { print $3; exit }' /proc/timer_list; }

# --- the load, and profd ---

# lives: a few processes at a time of every kind, as long as the file exists
lives() {
	while [ -e "$T/go" ]; do
		/tests/prog_lives 12 2 >>"$T/truth"
		sleep 0.5
	done
}

# begin: profd, a client that follows its events, a program that spins on each CPU, and
# processes that begin and end all the time.
begin() {
	/tests/profd run --archive "$T/archive" --window $WINDOW --freq $HZ \
		--listen "unix:$T/sock" --listen 127.0.0.1:$PORT --source "$source" >"$T/log" 2>&1 &
	profd=$!
	until_ok 240 status
	result $? "profd starts"
	/tests/profd events -f --json --server "unix:$T/sock" >"$T/events" &
	follower=$!
	until_ok 240 follows
	result $? "events are followed"
	taskset 1 /tests/prog_shares 100000 >/dev/null &
	one=$!
	taskset 2 /tests/prog_shares 100000 >/dev/null &
	two=$!
	: >"$T/truth"
	: >"$T/go"
	lives &
	load=$!
}
# Earlier events are not sent: the first event shows that the client follows.
follows() { true && dash -c : && [ -s "$T/events" ]; }

# sampled CPU: its samples so far
sampled() { metric "profd_sampler_taken_total{cpu=\"$1\"}"; }
sampled_more() { [ "$(sampled "$1")" -gt "$2" ]; }
windows() { grep -c 'pb.gz: [0-9]* samples' "$T/log"; }
windows_more() { [ "$(windows)" -gt "$1" ]; }
truth() { wc -l <"$T/truth"; }
truth_more() { [ "$(truth)" -gt "$1" ]; }

# goes_on WHEN: more samples of both CPUs, windows and processes come.
goes_on() {
	# Their CPU may have been offline, which resets their affinity.
	taskset -p 1 "$one" >/dev/null
	taskset -p 2 "$two" >/dev/null
	for cpu in 0 1; do
		until_ok 240 sampled_more "$cpu" $(($(sampled "$cpu") + 30))
		result $? "$1: CPU $cpu is sampled"
	done
	until_ok 240 windows_more $(($(windows) + 1))
	result $? "$1: windows close"
	until_ok 240 truth_more $(($(truth) + 12))
	result $? "$1: the load goes on"
	kill -0 "$profd"
	result $? "$1: profd is alive"
}

# --- the data of one process ---

# life PID: from the event at its end, as $code, $start, $end by the wall clock in
# nanoseconds, $start_boot, $exit_boot, $cpu.
life() {
	grep -F "\"process.pid\":$1," "$T/events" | grep -F '"events":["end"]' >"$T/life" ||
		return 1
	code=$(of process.exit.code) cpu=$(of profd.cpu_ns)
	start_boot=$(of profd.start_boot_ns) exit_boot=$(of profd.exit_boot_ns)
	start=$(date -d "$(of process.creation.time)" +%s%N)
	end=$(date -d "$(of process.exit.time)" +%s%N)
}
# The first such member is its own, those of its images follow.
of() {
	awk -v re="\"$1\":\"?[^,\"}]*" 'match($0, re) {
		v = substr($0, RSTART, RLENGTH)
		sub(/^"[^"]*":"?/, "", v)
		print v
		exit
	}' "$T/life"
}

# in_time WHEN: the times of a process are between readings of the clocks around it.
in_time() {
	from=$(wall_ns) from_boot=$(boot_ns)
	dash -c 'exit 7' &
	pid=$!
	wait $pid
	to=$(wall_ns) to_boot=$(boot_ns)
	until_ok 240 life $pid
	result $? "$1: a life is told of"
	$whole && num "$1: with its status" "$code" = 7
	num "$1: it began in time, by the wall clock" \
		$((start - from)) -ge $((-100 * ms))
	num "$1: and ended in time" $((to - end)) -ge $((-100 * ms))
	# /proc/uptime is in hundredths.
	num "$1: it began in time, by the boot clock" \
		$((start_boot - from_boot)) -ge $((-100 * ms))
	num "$1: and ended in time, too" \
		$((to_boot - exit_boot)) -ge $((-100 * ms))
}

# --- the end ---

# From the event at the end of each process: "ARGUMENT PID STATUS CPU_US START EXIT",
# CPU_US "-" where it is not exact. Only processes of the load have such an argument.
ends() {
	grep -F '"events":["end"]' "$T/events" | awk '
		function field(re, skip) {
			if (!match($0, re))
				return ""
			return substr($0, RSTART + skip, RLENGTH - skip)
		}
		{
			args = field("\"process.command_args\":\\[[^]]*\\]", 23)
			if (!match(args, /life-[0-9]+/))
				next
			tag = substr(args, RSTART, RLENGTH)
			code = field("\"process.exit.code\":[0-9]+", 20)
			sig = field("\"profd.signal\":[0-9]+", 15)
			cpu = field("\"profd.cpu_ns\":[0-9]+", 15)
			print tag, field("\"process.pid\":[0-9]+", 14),
				sig == "" ? "exit " code : "signal " sig,
				/"profd.cpu":"exact"/ ? sprintf("%.3f", cpu / 1000) : "-",
				field("\"profd.start_boot_ns\":[0-9]+", 22),
				field("\"profd.exit_boot_ns\":[0-9]+", 21)
		}' >"$T/told"
}
all_told() { ends && [ "$(wc -l <"$T/told")" -ge "$(truth)" ]; }

# ledger: every process is in it once, with the exit status of wait4(2); with no less
# CPU time, and without the time of a suspend, where its reap was reported: on a machine
# that stops for seconds a missing reap is reported, and the figure is missing.
ledger() {
	rm "$T/go"
	wait "$load"
	$whole || return 0
	until_ok 240 all_told
	result $? "of all $(truth) lives the end is told"
	awk '
		NR == FNR { status[$1 " " $2] = $4 " " $5; us[$1 " " $2] = $6; next }
		{
			key = $1 " " $2
			if (!(key in status)) { bad["of nobody"]++; next }
			if (told[key]++) bad["twice"]++
			if ($3 " " $4 != status[key]) bad["another status"]++
			exact += $5 != "-"
			if ($5 != "-" && ($5 < us[key] - 1 || $5 > us[key] + 5e6))
				bad["another CPU time: " $5 " for " us[key]]++
			if ($7 < $6) bad["ends before it began"]++
		}
		END {
			for (key in status) if (!told[key]) bad["missing"]++
			for (b in bad) print b ": " bad[b]
			print "# " exact + 0 " with their exact CPU time"
		}' "$T/truth" "$T/told" >"$T/wrong"
	num "once each, with status and CPU time" "$(grep -vc '^#' "$T/wrong")" = 0
	diag "$(cat "$T/wrong")"
}

# none WORDS...: no losses of these kinds are reported.
none() {
	for words; do
		num "$words" "$(said "$words")" = 0
	done
}

# finish: profd ends with 0, and its windows follow each other without gap, a file each.
finish() {
	kill "$one" "$two"
	kill -TERM "$profd"
	wait "$profd"
	result $? "profd ends well"
	kill -0 "$follower" 2>/dev/null && kill -INT "$follower"
	wait "$follower"
	sed -n 's/^.* \(\/.*pb.gz\): [0-9]* samples$/\1/p' "$T/log" >"$T/written"
	num "each window has a file of its own" \
		"$(sort -u "$T/written" | wc -l)" = "$(wc -l <"$T/written")"
	# shellcheck disable=SC2046 # words on purpose
	/tests/windows $(cat "$T/written") >"$T/windows"
	result $? "which the strict checker accepts"
}
