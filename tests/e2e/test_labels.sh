#!/bin/bash
# Identity, location and origin of processes: containers, pods, units, entry leaders, in
# the labels of a profile and in the ledger, with real control groups; the summary of
# each ended process; slow readers and hostile names.
. "$(dirname "$0")/lib.sh"
profd() { "$PROFD" "$@" --server "unix:$sock"; }
ID=3f1b6e0c9d2a47580e1f2a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f
ID2=aaaaaaaa9d2a47580e1f2a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f
POD=c0ffee00_1234_4abc_8def_0123456789ab

# --- control groups, below a new one in each hierarchy ---
hierarchy() { # TYPE [CONTROLLER]
	awk -v type="$1" -v want="${2:-}" '$3 == type &&
		(want == "" || ("," $4 ",") ~ ("," want ",")) {
			print $2; exit }' /proc/self/mounts
}
ours=profd-test-$$
v2=$(hierarchy cgroup2)
v1=$(hierarchy cgroup memory)
if [[ -z $v2 ]]; then
	v2=$T/cgroup2
	mkdir "$v2" && mount -t cgroup2 none "$v2" && mounted+=("$v2")
fi
remove_groups() {
	local dir i
	for dir in "$v2/$ours" ${v1:+"$v1/$ours"}; do
		[[ -d $dir ]] || continue
		# Processes in it end after a while.
		for ((i = 0; i < 100; i++)); do
			find "$dir" -depth -type d -exec rmdir {} + 2>/dev/null
			[[ -d $dir ]] || break
			sleep 0.1
		done
	done
}
trap 'kill -KILL "${spinners[@]}" 2>/dev/null; remove_groups; cleanup' EXIT

# spin NAME GROUP...: a busy process that was moved to the group before its exec, as
# container engines do. Its pid in pid_of[NAME].
declare -A pid_of
spinners=()
spin() {
	local name=$1
	shift
	mkdir -p "$@"
	(
		for dir in "$@"; do
			echo "$BASHPID" >"$dir/cgroup.procs"
		done
		exec nice -n -20 "$BASH" -c 'while :; do :; done' "$name"
	) &
	pid_of[$name]=$!
	spinners+=($!)
	# Samples before the last exec belong to other images: no profile starts before it.
	await spins $!
	# Until there is a profile that it is to be in.
	kill -STOP $!
}
# spins PID: bash, and not nice, has the loop.
spins() {
	tr '\0' ' ' <"/proc/$1/cmdline" | grep -q '^[^ ]*bash -c while'
}

# await COMMAND...: a minute, for commands that take time.
await() {
	local end=$((SECONDS + 60))
	until "$@" >/dev/null 2>&1; do
		((SECONDS < end)) || return 1
		sleep 0.1
	done
}

# told TEXT: the events with this text, on a host that may be busy.
told() {
	grep -aF "$1" "$T/events"
}

start_profd labels --window 3600
background nice -n -20 "$PROFD" events -f --json --server "unix:$sock" >"$T/events" \
	2>"$T/events.err"
events=$pid
follows() { /bin/true && test -s "$T/events"; }
await follows

g=$v2/$ours
spin docker "$g/system.slice/docker-$ID.scope"
spin kube "$g/kubepods.slice/kubepods-besteffort-pod$POD.slice/cri-containerd-$ID.scope"
spin podman "$g/machine.slice/libpod-$ID.scope/container"
spin lxc "$g/lxc.payload.web"
spin unit "$g/system.slice/web.service"
spin none "$g"
expected="
docker docker $ID - docker-$ID.scope
kube containerd $ID $POD cri-containerd-$ID.scope
podman podman $ID - libpod-$ID.scope
lxc lxc web - -
unit - - - web.service
none - - - -"
if [[ -n $v1 ]]; then
	spin old "$v1/$ours/docker/$ID"
	# Hybrid: version 2 has the group of the engine, version 1 that of the container.
	spin hybrid "$g/system.slice/docker.service" "$v1/$ours/docker/$ID2"
	expected+="
old docker $ID - -
hybrid docker $ID2 - -"
else
	diag "version 1 is not there: one hierarchy only"
fi

# --- a process that is moved while it runs ---
spin moved "$g/system.slice/before.service"
# It has samples in both groups if a profile includes both: it ends when all have used
# CPU time for some samples, and this one after it was moved.
background env --default-signal=INT "$PROFD" fetch --server "unix:$sock" \
	--duration 3600 -o "$T/all.pb.gz" 2>"$T/all.log"
fetch=$pid
collects() { (($(metric profd_reporter_http_waiting) > 0)); }
await collects
for pid in "${spinners[@]}"; do
	kill -CONT "$pid"
	used "$pid" 100
	kill -STOP "$pid"
done
mkdir -p "$g/lxc.payload.late"
echo "${pid_of[moved]}" >"$g/lxc.payload.late/cgroup.procs"
kill -CONT "${pid_of[moved]}"
used "${pid_of[moved]}" 100
kill -STOP "${pid_of[moved]}"
kill -INT "$fetch"
wait "$fetch"
is "a profile is fetched" $? 0
diag "$(cat "$T/all.log")"
check_profile "$T/all.pb.gz"

# labels PROFILE: "pid KEY:[VALUE]..." lines, one a sample.
labels() {
	pprof -raw "$1" | awk '
		/^Locations/ { exit }
		/^Samples:/ { on = 1; getline; next }
		!on { next }
		/^ +[0-9]+ +[0-9]+:/ { if (text) print text; text = ""; next }
		{ gsub(/^ +| +$/, ""); text = text " " $0 }
		END { if (text) print text }' |
		awk '{ match($0, / pid:\[[0-9]+\]/)
			print substr($0, RSTART + 6, RLENGTH - 7) $0 }'
}
labels "$T/all.pb.gz" >"$T/labels"
# value LINES KEY: its values, "-" for none.
value() {
	grep -oE " $2:\[[^]]*\]" <<<"$1" | sort -u | sed 's/.*\[\(.*\)\]/\1/' |
		paste -sd' ' | sed 's/^$/-/'
}
profd ps --json >"$T/ps"
while read -r name engine container pod unit; do
	[[ -n $name ]] || continue
	pid=${pid_of[$name]}
	is "ledger, $name" "$(jq -r "select(.pid == $pid) |
		[.engine, .container, .pod, .unit] | map(. // \"-\") |
		join(\" \")" "$T/ps")" "$engine $container $pod $unit"
	lines=$(grep "^$pid " "$T/labels")
	is "labels, $name" "$(value "$lines" container) $(value "$lines" pod) $(
		value "$lines" unit)" "$container $pod $unit"
done <<<"$expected"
lines=$(grep "^${pid_of[moved]} " "$T/labels")
is "who was moved has samples from where it was" \
	"$(value "$(grep -v late <<<"$lines")" unit)" before.service
is "and from where it went" \
	"$(value "$(grep -v before <<<"$lines")" container)" late
is "by one name each" "$(value "$lines" image | wc -w)" 1
is "the ledger has where it is" "$(jq -r "select(.pid == ${pid_of[moved]}) |
	.container" "$T/ps")" late
moves() {
	told "\"process.pid\":${pid_of[moved]}," | jq -es 'any(.[]; (.events |
		index("cgroup")) and .["container.id"] == "late")'
}
check "an event says that it was moved" await moves
profd ps --wide >"$T/table"
like "ps: where people look for it" "$(grep -w "${pid_of[docker]}" "$T/table")" \
	"docker:${ID:0:12} "
like "ps: a unit" "$(grep -w "${pid_of[unit]}" "$T/table")" " web.service "
kill -KILL "${spinners[@]}"
wait "${spinners[@]}" 2>/dev/null

# --- entry leaders ---
# entry PROGRAM: a shell of that name, which starts another one in a session of its own,
# which starts a child. Prints the pids of the two.
entry() {
	cp "$BASH" "$T/$1"
	"$T/$1" -c 'setsid "$BASH_2" -c "echo \$\$ >$1; sleep 1000 & echo \$! >>$1
		wait" & wait' "$1" "$T/$1.pids" &
	started+=($!)
	spinners+=($!)
	await test -s "$T/$1.pids"
	await eval '(($(wc -l <"$T/'"$1"'.pids") == 2))'
	# shellcheck disable=SC2046
	spinners+=($(cat "$T/$1.pids"))
}
export BASH_2=$BASH
came() { jq -r "select(.pid == $1) | \"\(.entry) \(.entry_pid)\"" "$T/ps"; }
for name in sshd containerd-shim-runc-v2 cron; do
	entry "$name"
done
known() {
	profd ps --all --json >"$T/ps"
	(($(jq "select(.pid == $(tail -n 1 "$T/cron.pids")) | .pid" "$T/ps"))) &&
		jq -es "any(.[]; .pid == $(tail -n 1 "$T/cron.pids") and
			.comm == \"sleep\")" "$T/ps"
}
await known
{
	read -r leader
	read -r child
} <"$T/sshd.pids"
is "a session below sshd" "$(came "$leader")" "sshd $leader"
is "what it starts" "$(came "$child")" "sshd $leader"
{
	read -r leader
	read -r child
} <"$T/containerd-shim-runc-v2.pids"
is "a container's first process" "$(came "$leader")" "container $leader"
is "what runs in it" "$(came "$child")" "container $leader"
{
	read -r leader
	read -r child
} <"$T/cron.pids"
is "a job of cron's is its parent's" "$(came "$child")" "$(came $$)"
is "kernel threads" "$(jq -r 'select(.kernel_thread) | .entry' "$T/ps" |
	sort -u)" kthread
session=$(cat "$T/cron.pids" | head -n 1)
is "a session made after the exec of its shell" \
	"$(jq "select(.pid == $session) | .session" "$T/ps")" "$session"
kill -KILL "${spinners[@]}" 2>/dev/null

# --- the summary of each process at its end ---
# A process of which the kernel reports the reap late, on a busy host, has no figures: its
# reap was inferred. So there are more until a hundred have the kernel's account.
lives=0
live() {
	local i
	for i in {1..100}; do
		/bin/true "tag-$((++lives))"
	done
	await ended
	(($(told '["end"]' | grep '"tag-[0-9]*"' | grep -c '"profd.cpu":"exact"') >= 100))
}
sh -c 'exec sh -c "exec sh -c \"exit 3\""' &
wait $!
last=$!
ended() {
	# Not the ends of this grep itself, whose argument has no number.
	(($(told '["end"]' | grep -c '"tag-[0-9]*"') >= lives)) &&
		told "\"process.pid\":$last," | grep -qF '["end"]'
}
await live
result $? "the ends are told, with the kernel's account"
told '["end"]' >"$T/all"
is "each once" "$(grep -ao '"profd.process":"[^"]*"' "$T/all" | sort | uniq -d | wc -l)" 0
# The host may have many more, and jq is slow.
grep -aF -e '"tag-' -e "\"process.pid\":$last," "$T/all" | jq -c "$plain ." >"$T/ends"
jq -c 'select(.args[1]? // "" | test("^tag-[0-9]+$"))' "$T/ends" >"$T/tags"
diag "$(jq -c 'select(tostring | test("tag-")) |
	select(.args[1]? // "" | test("^tag-[0-9]+$") | not)' "$T/ends")" \
	"$(jq -r '.args[1]' "$T/tags" | sort | uniq -d)"
is "all lives" "$(jq -r '.args[1]' "$T/tags" | sort -u | wc -l)" "$lives"
is "with samples and exit" "$(jq -c 'select(.samples == null or .exit_code != 0 or
	.start_boot_ns >= .exit_boot_ns) |
	[.args[1], .samples, .exit_code, .exit_boot_ns - .start_boot_ns]' "$T/tags")" ""
is "with CPU time, or without an account" "$(jq -c 'select((.cpu == "exact" and
	(.cpu_ns == null or .user_ns == null)) or (.cpu == null) != (.cpu_ns == null)) |
	[.args[1], .cpu, .cpu_ns, .user_ns]' "$T/tags")" ""
is "all that a process was" "$(grep -F "\"pid\":$last," "$T/ends" | jq -c "
	[.exit_code, .execs, [.images[1:][].args[2]]]")" \
	'[3,3,["exec sh -c \"exec sh -c \\\"exit 3\\\"\"","exec sh -c \"exit 3\"","exit 3"]]'

# --- hostile names ---
nasty=$'\xff\xfe\n\e[2J\x9b"\\'
(exec -a "$nasty" sleep 1000) &
spinners+=($!)
bad=$!
mkfifo "$T/never"
# Without a child, which would outlive it.
"$BASH" -c 'read -r <"$0"' "$T/never" "$(head -c 100000 /dev/zero | tr '\0' a)" &
spinners+=($!)
long=$!
(
	exec 9<>"$T/never"
	printf '\xc3\x28\n\e' >/proc/self/comm
	mkdir -p "$T/"$'dir\n\xe9' && cd "$T/"$'dir\n\xe9' && read -r <&9
) &
spinners+=($!)
renamed=$!
there() {
	profd ps --json >"$T/ps" &&
		jq -es "any(.[]; .pid == $long and .args_cut) and
			any(.[]; .pid == $bad and .comm == \"sleep\") and
			any(.[]; .pid == $renamed and (.cwd // \"\" |
				test(\"dir\")))" "$T/ps"
}
check "they are all there" await there
is "every line is JSON" "$(jq -c 'type' "$T/ps" | sort -u)" '"object"'
check "and UTF-8" iconv -f UTF-8 -t UTF-8 -o /dev/null "$T/ps"
is "what is no UTF-8 is replaced" "$(jq -r "select(.pid == $bad) | .args[0]" \
	"$T/ps")" $'\xef\xbf\xbd\xef\xbf\xbd\n\e[2J\xef\xbf\xbd"\\'
profd ps --wide >"$T/table"
is "a terminal obeys nothing of it" \
	"$(LC_ALL=C grep -caP '[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' "$T/table")" 0
like "arguments that were cut" \
	"$(grep "^ *$long " "$T/table" | tail -c 20)" 'a \.\.\.$'
kill -KILL "${spinners[@]}" 2>/dev/null

# --- slow readers ---
for i in {1..31}; do
	curl -sN --unix-socket "$sock" "http://profd/api/events?follow=1" \
		>/dev/null 2>&1 &
	started+=($!)
	followers+=($!)
done
full() { (($(metric profd_reporter_http_followers) == 32)); }
check "32 may follow" await full
curl -s --unix-socket "$sock" -w '%{http_code}' -o "$T/refused" \
	"http://profd/api/events?follow=1" >"$T/code"
is "one more may not" "$(cat "$T/code")" 503
is "and is told why" "$(cat "$T/refused")" "too many clients follow events"
is "profd events says so, too" "$(profd events -f 2>&1)" \
	"profd: unix:$sock: 503: too many clients follow events"
kill -KILL "${followers[@]}"
wait "${followers[@]}" 2>/dev/null
alone() { (($(metric profd_reporter_http_followers) == 1)); }
check "who hangs up is forgotten" await alone
kill -INT "$events"
wait "$events"
is "the stream was ended, and well" $? 0
is "by a whole line" "$(tail -c 1 "$T/events" | od -An -c | tr -d ' ')" '\n'
is "nothing to complain of" "$(cat "$T/events.err")" ""
stop_profd
is "profd ends well" $? 0

# --- the same without BPF, as far as it is known ---
start_profd perf --window 3600 --source perf
background nice -n -20 "$PROFD" events -f --json --server "unix:$sock" >"$T/events" \
	2>"$T/events.err"
events=$pid
await follows
spin docker2 "$g/docker-$ID.scope"
kill -CONT "${pid_of[docker2]}" # its container is known by its samples
/bin/true tag-perf
seen() { profd ps --json >"$T/ps" &&
	jq -es "any(.[]; .pid == ${pid_of[docker2]} and .container)" "$T/ps"; }
check "perf: a process is listed" await seen
kill -STOP "${pid_of[docker2]}"
is "perf: its container" \
	"$(jq -r "select(.pid == ${pid_of[docker2]}) | .container" "$T/ps")" "$ID"
sh -c 'exit 5' &
wait $!
last=$!
over() { told "\"process.pid\":$last," | grep -F '["end"]'; }
check "perf: the end of a process is told" await over
is "perf: its fork and exit" "$(told "\"process.pid\":$last," | jq -r '.events[]' |
	grep -cE '^(fork|exit)$')" 2
is "perf: no status is invented" "$(told "\"process.pid\":$last," |
	jq -c "$plain"'[.exit_code, .signal, .reap]' | sort -u)" '[null,null,null]'
kill -INT "$events"
wait "$events"
stop_profd
is "perf: profd ends well" $? 0
plan
