# shellcheck shell=bash
# lib: functions shared by the end-to-end tests, to be sourced by bash. TAP goes to
# standard output; lines that begin with # explain a failed test. All files are in one
# temporary directory, $T, and all processes that a test starts are ended with it.
#
# Where profd cannot run, these tests fail instead of being skipped, unless the kernel
# forbids what it needs. A test is skipped if other things that it needs are missing.
set -u
E2E_SRC=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=${E2E_SRC%/tests/e2e}
B=${B:-build}
[[ $B == /* ]] || B=$ROOT/$B
E2E=$B/tests/e2e
PROFD=$B/profd
T=$(mktemp -d)
# For compilers: when they are killed, they leave their files.
export TMPDIR=$T
# Debian's go includes pprof; newer versions build it for each new $HOME.
GO=/usr/bin/go
[[ -x $GO ]] || GO=go
PATH=$B/tools:$PATH # promtool
tests=0
started=()
mounted=()

cleanup() {
	local pid dir
	for pid in "${started[@]}"; do
		kill -KILL -- "-$pid" "$pid"
	done
	wait
	for dir in "${mounted[@]}"; do
		umount "$dir"
	done
	rm -rf "$T"
} 2>/dev/null
trap cleanup EXIT
trap 'exit 1' INT TERM

# diag TEXT: prints the first forty lines as comments.
diag() {
	printf '%s\n' "$*" | head -n 40 | cut -c 1-400 | sed 's/^/# /'
}

# result STATUS NAME: reports one test; returns STATUS.
result() {
	tests=$((tests + 1))
	if (($1 == 0)); then
		echo "ok $tests - $2"
		return 0
	fi
	echo "not ok $tests - $2"
	return 1
}

# check NAME COMMAND...: passes if the command succeeds.
check() {
	local name=$1 out rc
	shift
	out=$("$@" 2>&1)
	rc=$?
	result "$rc" "$name" || { diag "exit status $rc: $*"$'\n'"$out"; return 1; }
}

# is NAME GOT WANTED: compares strings. It fails if they differ, as those below do.
is() {
	[[ $2 == "$3" ]]
	result $? "$1" || { diag "got:    $2"$'\n'"wanted: $3"; return 1; }
}

# like NAME GOT REGEX
like() {
	[[ $2 =~ $3 ]]
	result $? "$1" || { diag "got:            $2"$'\n'"does not match: $3"; return 1; }
}

# num NAME A OPERATOR B: compares numbers, fractions too.
num() {
	awk -v a="${2:-nan}" -v op="$3" -v b="$4" '
		function holds() {
			if (op == "==") return a == b
			if (op == "<=") return a <= b
			if (op == ">=") return a >= b
			return op == "<" ? a < b : op == ">" ? a > b : 0
		}
		BEGIN {
			if (a !~ /^-?[0-9.]+([eE][-+]?[0-9]+)?$/)
				exit 1
			a += 0
			b += 0
			exit !holds()
		}'
	result $? "$1" || { diag "got: ${2:-nothing}, wanted: $3 $4"; return 1; }
}

# skip NAME REASON: a test that cannot run here.
skip() {
	tests=$((tests + 1))
	echo "ok $tests - $1 # SKIP $2"
}

# forbids NAME WHAT: likewise, where the kernel does not allow it in a chroot or a
# container: not counted as a fault of the environment.
forbids() {
	skip "$1" "this place forbids $2"
}

# In a chroot, user namespaces may be forbidden.
may_userns() { unshare -U true 2>/dev/null; }
# devpts is not mounted in every chroot.
has_terminals() { script -qec true /dev/null >/dev/null 2>&1; }

# plan: the last call of a test. A report of a sanitizer is a failure of its own: what
# failed after it follows from it.
plan() {
	local reports
	reports=$(grep -s -h -m 1 -A 24 \
		-E 'ERROR: [A-Za-z]*Sanitizer|: runtime error: ' "$T"/*.log "$T"/*.err)
	[[ -z $reports ]] || {
		result 1 "no sanitizer has reported anything"
		diag "$reports"
	}
	echo "1..$tests"
}

# The tests that follow would all fail for the same reason.
bail() {
	result 1 "$1"
	shift
	(($# == 0)) || diag "$@"
	plan
	exit 1
}

forbidden=$("$E2E/prog_place" 2>/dev/null)
if [[ -n $forbidden ]]; then
	echo "$forbidden"
	exit 0
fi
[[ $(id -u) == 0 ]] || bail "runs as root"
[[ -x $PROFD ]] || bail "there is a profd" "$PROFD is not there: make"

# background COMMAND...: its pid in $pid, which is also its process group; the group is
# killed at the end of the test.
background() {
	set -m
	"$@" </dev/null &
	pid=$!
	set +m
	started+=("$pid")
}

# ends_come FILE: until each process that has ended until now has its last event in FILE,
# the output of profd events -f --json. That of a process whose reap the kernel does not
# report comes when the reap is inferred, within six seconds.
ends_come() {
	local until
	sh -c 'exit 77' &
	wait $!
	wait_for 60 exit_came $! "$1"
	with_event exit "$1" >"$T/exited"
	until=$((EPOCHSECONDS + 7))
	while with_event end "$1" | comm -23 "$T/exited" - | grep -q .; do
		((EPOCHSECONDS < until)) || break
		sleep 0.3
	done
}
exit_came() {
	grep -F "\"process.pid\":$1," "$2" | grep -q '"exit"'
}
# with_event NAME FILE: the processes that have it.
with_event() {
	grep -aE "\"events\":\[[^]]*\"$1\"" "$2" | grep -aoE '"profd\.process":"[^"]*"' |
		sort -u
}

# end_group PID: kills what background() started, and its children.
end_group() {
	kill -KILL -- "-$1"
	wait "$1"
} 2>/dev/null

# spin_often: a load for windows that need samples, but not many: without samples they
# are not written. With the highest priority, so that each second has some.
spin_often() {
	while nice -n -20 "$E2E/prog_spin_a" 60; do sleep 0.1; done
}

# wait_for SECONDS COMMAND...: repeats the command until it succeeds.
wait_for() {
	local until=$((EPOCHSECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		((EPOCHSECONDS < until)) || return 1
		sleep 0.05
	done
}

# Prints a free TCP port. Tests that run at the same time choose from different ones,
# by TEST_SLOT.
free_port() {
	local port
	while :; do
		port=$((20000 + RANDOM % 187 * 64 + ${TEST_SLOT:-0} % 64))
		(: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
	done
	echo "$port"
}

# ahead COMMAND...: in a session of its own, before all others. It ends as the subshell
# that it replaces; bash has what it starts in the background ignore SIGINT.
ahead() {
	exec setsid env --default-signal=INT,QUIT bash -c '
		echo -20 2>/dev/null >/proc/self/autogroup
		exec nice -n -20 "$@"' - "$@"
}

# start_profd NAME OPTIONS...: starts a profd with its archive, its socket and a TCP
# port: $archive, $sock, $port, $url; its pid in $profd, its messages in $log. Waits
# until it answers. It has the highest priority, also among sessions, which share the
# CPUs equally (sched_autogroup), so that its results do not depend on how busy the
# machine is; nor on how full its disk.
start_profd() {
	archive=$T/$1.archive sock=$T/$1.sock log=$T/$1.log port=$(free_port)
	url=http://127.0.0.1:$port
	shift
	# Such a test wants one window, and windows end with the hour.
	[[ "$*" != *"--window 3600"* ]] || ((3600 - EPOCHSECONDS % 3600 > 60)) ||
		sleep $((3600 - EPOCHSECONDS % 3600))
	# A sanitizer's own memory would count: queries are refused at the ceiling.
	ahead "$PROFD" run --archive "$archive" --listen "unix:$sock" \
		--listen "127.0.0.1:$port" --cache none --keep-free no \
		${ASAN_OPTIONS:+--memory-max no} "$@" </dev/null >"$log" 2>&1 &
	profd=$!
	started+=("$profd")
	wait_for 60 ask /healthz ||
		bail "profd starts" "$(tail -n 20 "$log")"
}

# stop_profd [SIGNAL]: its exit status. If it is not 0, its last messages are printed.
stop_profd() {
	local rc
	kill "-${1:-TERM}" "$profd"
	wait "$profd"
	rc=$?
	((rc == 0)) || diag "profd ended with $rc:"$'\n'"$(tail -n 12 "$log")"
	return "$rc"
}

# ask PATH: over the unix socket.
ask() {
	curl -sS --fail --max-time 60 --unix-socket "$sock" "http://profd$1"
}

# The begin of a program of jq that reads events: their keys as those of /processes. For
# a few: it takes ten times as long as a program with the keys as they are.
event_names='{
	"host.name": "host", "process.pid": "pid", "process.parent_pid": "ppid",
	"process.executable.path": "exe", "process.command_args": "args",
	"process.working_directory": "cwd", "process.real_user.id": "uid",
	"process.creation.time": "start", "process.exit.time": "exit",
	"process.exit.code": "exit_code", "process.linux.cgroup": "cgroup",
	"container.id": "container", "container.runtime.name": "engine"
	}'
plain='walk(if type == "object" then with_entries(.key |= ('$event_names'[.] //
	ltrimstr("profd."))) else . end) | '

# metric NAME: of the last start_profd, the sum over all label sets.
metric() {
	ask /metrics | awk -v name="$1" '
		$0 !~ /^#/ { n = $1; sub(/\{.*/, "", n) }
		$0 !~ /^#/ && n == name { sum += $NF; seen = 1 }
		END { if (seen) printf "%.0f\n", sum }'
}

# record FILE OPTIONS...: profd record; messages go to FILE.log. With the highest
# priority, so that a command of known CPU time runs without interruption and the
# number of its samples is known: with interruptions it varies like independent draws.
record() {
	local file=$1
	shift
	nice -n -20 "$PROFD" record -o "$file" "$@" >"$file.log" 2>&1
}

# watch FILE OPTIONS... -- COMMAND...: likewise, but the command has normal priority,
# so that profd reads tables in time on a busy machine.
watch() {
	local file=$1 opts=()
	shift
	while [[ $1 != -- ]]; do
		opts+=("$1")
		shift
	done
	shift
	record "$file" "${opts[@]}" -- nice -n 20 "$@"
}

# late FILE: the machine was too busy for profd to read files in time, which the log
# reports and which tests of names do not check.
late() {
	samples "$1" | grep -q '\[tables late\]' ||
		comments "$1" | grep -q 'was late'
}
comments() {
	pprof -comments "$(readable "$1")"
}

# go tool pprof, without the settings of the user; $1 is the report.
pprof() {
	HOME=$T PPROF_TMPDIR=$T PPROF_BINARY_PATH=$T/none \
		"$GO" tool pprof -symbolize=none "$@" 2>>"$T/pprof.err"
}

# check_profile FILE...: one test, by the strict checker.
check_profile() {
	check "strict checker accepts ${*##*/}" "$E2E/pprof_check" "$@"
}

# In a format that `go tool pprof` reads: it does not know zstd.
readable() {
	if [[ $1 == *.zst ]]; then
		zstd -q -d -f -o "${1%.zst}" "$1" && echo "${1%.zst}"
	else
		echo "$1"
	fi
}

# samples FILE...: one line a sample, tab-separated:
#   count ns pid tid comm thread exe process image stack
# The stack is leaf first, "name@file" for each frame, joined by ";". What the strict
# checker refuses, as profiles by others, is read by go tool pprof.
samples() {
	local file
	for file; do
		"$E2E/pprof_samples" "$file" 2>/dev/null ||
			pprof -raw "$(readable "$file")" | awk -f "$E2E_SRC/samples.awk"
	done
}

# mappings FILE: "file build-id" lines.
mappings() {
	pprof -raw "$(readable "$1")" |
		awk -v mode=mappings -f "$E2E_SRC/samples.awk"
}

build_id() {
	readelf -n "$1" 2>/dev/null | awk '/Build ID:/ { print $3 }'
}

# other_build_id FILE COPY DIGITS: copies a program with another build id, which ends
# in these twenty digits, after zeros.
other_build_id() {
	objcopy -O binary --only-section=.note.gnu.build-id "$1" "$T/note" &&
		{ head -c -20 "$T/note" && printf '%020d' "$3"; } >"$T/note2" &&
		objcopy --update-section ".note.gnu.build-id=$T/note2" "$1" "$2"
}

# cpu_ns PID: CPU time of its threads so far.
cpu_ns() {
	awk '{ ns += $1 } END { printf "%.0f\n", ns }' \
		/proc/"$1"/task/*/schedstat
}

# used PID MS: waits until its threads have used this much more CPU time. Then the
# expected number of samples is known, however busy the machine is.
used() {
	wait_for 300 has_used "$1" $(($(cpu_ns "$1") + $2 * 1000000))
}
has_used() {
	(($(cpu_ns "$1") >= $2))
}

# recorder PID: the profd that a `background record` started, in $recorder, as soon as
# it has its perf events.
recorder() {
	wait_for 120 has_events "$1"
}
has_events() {
	recorder=$(pgrep -P "$1" profd) &&
		find "/proc/$recorder/fd" -lname '*perf_event*' | grep -q .
}

# about NAME GOT DUE PERCENT: the number of samples is as expected, within this many
# percent plus five standard deviations.
about() {
	diag "$1: $2 samples, $3 due"
	awk -v got="$2" -v due="$3" -v percent="$4" 'BEGIN {
		off = got > due ? got - due : due - got
		exit !(due > 0 && off <= due * percent / 100 + 5 * sqrt(due)) }'
	result $? "$1"
}

# total TSV [REGEX [COLUMN]]: samples in it, or those with a matching stack (or
# column).
total() {
	awk -F '\t' -v re="${2:-}" -v col="${3:-10}" '
		re == "" || $col ~ re { n += $1 }
		END { print n + 0 }' "$1"
}

# percent PART WHOLE
percent() {
	awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f\n", b ? 100 * a / b : 0 }'
}

# fine GOOD ALL PERCENT: at least that share, less five standard deviations.
fine() {
	awk -v good="$1" -v all="$2" -v percent="$3" 'BEGIN {
		p = 1 - percent / 100
		bad = all - good
		exit !(all > 0 && bad <= p * all + 5 * sqrt(p * all)) }'
}

# whole TSV: how its user stacks end, in samples: "KIND NAME COUNT" lines,
# tab-separated, most frequent first.
#   whole -      complete: the last frame does not give a reason for a missing rest
#   part REASON  incomplete: the reason; [unmapped] for an address without code
#   jit REASON   incomplete, with a frame in anonymous memory
#   jit whole    complete, with a frame in anonymous memory
#   none REASON  no user stack exists: inside execve, or memory was released
#   switch REASON  [another stack], after a function of the Go runtime that changes
#                stacks: nothing more is copied
#   late REASON  tables were late, as may happen on a busy machine
whole() {
	awk -F '\t' '{
		n = split($10, f, ";")
		last = f[n]
		sub(/@[^@]*$/, "", last)
		reason = last ~ /^\[.*\]$/ && f[n] ~ /@$/ ? last : ""
		kind = "part"
		if (reason == "[exec]" || reason == "[no user stack]")
			kind = "none"
		else if (reason == "[tables late]")
			kind = "late"
		else if (reason == "[another stack]" &&
			 f[n - 1] ~ /^(gogo|time\.now|runtime\.[a-z0-9_]+)(\.abi0)?@/)
			kind = "switch"
		else if ($10 ~ /(^|;)\[anon\]|(@|\/)(\[anon\]|\/\/anon)|perf-[0-9]+\.map/)
			kind = "jit"
		if (kind == "part" && $10 ~ /(^|;)\[unmapped\]/)
			reason = "[unmapped] " reason
		if (reason == "" && kind == "part")
			kind = "whole"
		else if (reason == "")
			reason = "whole"
		sum[kind "\t" (reason == "" ? "-" : reason)] += $1
	}
	END {
		for (k in sum)
			print k "\t" sum[k]
	}' "$1" | sort -t $'\t' -k 3,3nr
}

# ending FILE KIND [NAME]: how many, in the output of whole()
ending() {
	awk -F '\t' -v kind="$2" -v name="${3:-}" '
		$1 == kind && (name == "" || $2 == name) { n += $3 }
		END { print n + 0 }' "$1"
}

# rate_of PROFILE WHAT REGEX LEAST: more than LEAST samples are of matching commands.
# How their stacks end is written to $T/rate.whole; $n is how many have a stack.
rate_of() {
	samples "$1" | awk -F '\t' -v comm="$3" '$5 ~ comm' >"$T/rate.tsv"
	n=$(total "$T/rate.tsv")
	whole "$T/rate.tsv" >"$T/rate.whole"
	diag "$n samples of $2; $(tr '\t\n' ' ;' <"$T/rate.whole")"
	num "enough samples of $2" "$n" '>' "$4"
	n=$((n - $(ending "$T/rate.whole" none)))
}
