#!/bin/bash
# The commands except for the profiles they make: which files are overwritten, early
# ends, which processes and events are printed, in which order, and that control
# sequences in names of processes do not reach a terminal.
. "$(dirname "$0")/lib.sh"

start_profd commands --window 3600
profd() { "$PROFD" "$@" --server "unix:$sock"; }

# --- which files are replaced ---
echo mine >"$T/x.pb.gz"
echo mine >"$T/r.pb.gz.tmp"
"$PROFD" record -o "$T/x.pb.gz" -- true 2>"$T/err"
is "record does not replace what is no profile" "$?$(cat "$T/x.pb.gz")" 1mine
like "and says how it would" "$(cat "$T/err")" 'x.pb.gz.*not a profile.*--force'
profd fetch -d 1 -o "$T/x.pb.gz" 2>"$T/err"
is "nor does fetch" "$?$(cat "$T/x.pb.gz")" 1mine
"$PROFD" record -q -f -o "$T/x.pb.gz" -- true
is "record --force does" $? 0
check_profile "$T/x.pb.gz"
profd fetch -q -d 1 -o "$T/x.pb.gz"
is "a profile is replaced" $? 0
check_profile "$T/x.pb.gz"
"$PROFD" record -q -o "$T/r.pb.gz" -- true
is "a file X.tmp of the user's is not touched" "$(cat "$T/r.pb.gz.tmp")" mine

# --- an early end ---
# early NAME SIGNAL SERVER
early() {
	local began=$EPOCHSECONDS rc
	background env --default-signal="$2" "$PROFD" fetch -d 600 --server "$3" \
		-o "$T/$1.pb.gz" 2>"$T/$1.err"
	wait_for 60 waits 1
	sleep 0.5
	kill "-$2" "$pid"
	wait "$pid"
	rc=$?
	is "fetch, $1: a signal ends it with 0" "$rc" 0
	num "in time" $((EPOCHSECONDS - began)) '<=' 60
	like "and says so" "$(cat "$T/$1.err")" "ended early.*$1.pb.gz"
	check_profile "$T/$1.pb.gz"
}
waits() { [[ $(metric profd_reporter_http_waiting) == "$1" ]]; }
early unix INT "unix:$sock"
wait_for 60 waits 0
early tcp TERM "127.0.0.1:$port"
wait_for 60 waits 0
# No profile is collected for a client that was killed.
background "$PROFD" fetch -d 600 --server "unix:$sock" -o "$T/killed.pb.gz" \
	2>/dev/null
check "fetch waits" wait_for 60 waits 1
kill -KILL "$pid"
wait "$pid" 2>/dev/null
check "who was killed is not waited for" wait_for 60 waits 0
is "nothing was written by that one" "$(find "$T" -name 'killed.pb.gz' | wc -l)" 0
rm -f "$T"/killed.pb.gz.*

# --- messages at the end of a recording ---
background sleep 1000
"$PROFD" record -o "$T/idle.pb.gz" -p "$pid" -d 1 2>"$T/err"
like "no samples: it is said" "$(cat "$T/err")" 'no samples.*(-F|more)'
sh -c "sleep 30 & echo \$! >'$T/left'; exec '$PROFD' record -o '$T/self.pb.gz' -p \$\$ -d 1" 2>"$T/err"
is "record -p of itself: refused" "$?" 1
sh -c "'$PROFD' record -o '$T/shell.pb.gz' -p \$\$ -d 2 -F 999 -q; :"
samples "$T/shell.pb.gz" >"$T/tsv"
is "record -p of its shell: profd is not in it" \
	"$(total "$T/tsv" '^(profd|exe|profd-symbolize)$' 5)" 0
"$PROFD" record -o "$T/left.pb.gz" -- sh -c 'sleep 20 & echo $! >>"$0"' \
	"$T/left" 2>"$T/err"
like "who still runs is said" "$(cat "$T/err")" '1 of the processes.*run.*: [0-9]+'
xargs kill <"$T/left"
"$PROFD" record -F 999 -o "$T/sum.pb.gz" -- make -s -C / -f /dev/null \
	--eval='all:;@for i in 1 2 3 4 5 6 7 8 9; do cat /proc/*/maps >/dev/null; done' \
	2>"$T/err"
samples "$T/sum.pb.gz" >"$T/tsv"
said=$(grep -oE '[0-9]+ incomplete' "$T/err")
awk -F '\t' '{ n = split($10, f, ";")
	if (f[n] ~ /^\[.*\]@$/ && f[n] !~ /\+0x/) s[f[n]] += $1 }
	END { for (why in s) print s[why], why }' "$T/tsv" >"$T/reasons"
is "incomplete stacks: as many as have a reason" "${said%% *}" \
	"$(awk '{ s += $1 } END { print s }' "$T/reasons")" ||
	diag "$(grep '^profd:' "$T/err")" "$(cat "$T/reasons")"
lost=$(comments "$T/sum.pb.gz" | sed -n 's/^\(samples\|records\) \(lost\|refused\).*: //p' |
	awk '{ n += $1 } END { print n + 0 }')
like "lost: as the profile's comments have it" "$(cat "$T/err")" " $lost lost"
if has_terminals; then
	# Each has a terminal of its own.
	script -qec "stty cols 100; '$PROFD' record -o '$T/tty1.pb.gz' -- sleep 2.5" \
		/dev/null >"$T/tty1" &
	ttys=($!)
	script -qec "stty cols 100; '$PROFD' record -a -d 3 -o '$T/tty2.pb.gz'" \
		/dev/null >"$T/tty2" &
	ttys+=($!)
	script -qec "'$PROFD' fetch --server 'unix:$sock' -d 2 -o '$T/tty3.pb.gz'" \
		/dev/null >"$T/tty3"
	wait "${ttys[@]}"
	is "no progress beside a command" "$(grep -c $'\r.*s, ' "$T/tty1")" 0
	like "progress of record -d" "$(cat "$T/tty2")" '1 s left, [0-9]+ samples'
	like "progress of fetch" "$(cat "$T/tty3")" '1 s left'
else
	forbids "progress" "pseudo terminals"
fi

# --- names with control characters ---
# ESC, C1's CSI, a right-to-left override, an isolate, in UTF-8; independent of the locale
evil=$'x\033[2J\xc2\x9b31m\xe2\x80\xaeabc\xe2\x81\xa6'
background bash -c "exec -a '$evil' sleep 30"
slept=$pid
named() { profd ps "$slept" | grep -q abc; }
check "it is listed" wait_for 60 named
profd ps "$slept" >"$T/ps"
profd events --pid "$slept" >"$T/events"
outputs="ps events"
if has_terminals; then
	script -qec "'$PROFD' ps --json $slept --server 'unix:$sock'" /dev/null \
		>"$T/json"
	outputs+=" json"
fi
for f in $outputs; do
	is "$f: nothing to obey" "$(tr -d '\r' <"$T/$f" |
		grep -cP '\x1b|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]')" 0
done
like "ps: it is escaped" "$(cat "$T/ps")" 'x\\033\[2J\\u\{9b\}31m\\u\{202e\}abc'

# --- a line of megabytes ---
# Eighteen execs, each with arguments of 100,000 bytes.
# shellcheck disable=SC2016
again='n=$1; a=$2; [ "$n" = 0 ] && { sleep 30; exit; }
exec sh -c "$0" "$0" $((n - 1)) "$a"'
background sh -c "$again" "$again" 18 "$(head -c 100000 /dev/zero | tr '\0' x)"
long=$pid
seen() { profd ps "$long" | grep -q xxx; }
check "ps: a process with long arguments" wait_for 60 seen
check "events, too" profd events
check "and as JSON" profd ps --json "$long"

# --- selection and order ---
profd ps >"$T/ps"
profd ps --json >"$T/json"
num "ps: most CPU time first" "$(jq -s --argjson pid "$(awk 'NR == 2 { print $1 }' "$T/ps")" '
	(map(.cpu_ns // 0) | max) as $max |
	map(select(.pid == $pid))[0].cpu_ns / $max' "$T/json")" '>=' 0.8
check "ps --sort pid" sort -nc <(profd ps --sort pid | awk 'NR > 1 { print $1 }')
is "ps: no kernel threads" "$(jq -c 'select(.kernel_thread)' "$T/json" | wc -l)" 0
num "ps --all has them" \
	"$(profd ps --all --json | jq -c 'select(.kernel_thread)' | wc -l)" '>=' 1
profd ps --sort start >"$T/ps"
# If midnight was a moment ago, processes that started before it started yesterday. The
# time has no fraction, so wait for the next second.
sleep 1.5
midnight() { date -u '+LOC%H:%M:%S'; }
TZ=$(midnight) profd ps "$slept" >"$T/ps"
like "ps: START is a day, of one that is not of today" "$(tail -n 1 "$T/ps")" \
	' [A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}:[0-9]{2} +alive '
like "ps: ... and a time, of one that is" \
	"$(TZ=LOC$(($(date -u +%-H) - 12)) profd ps "$slept")" \
	' [0-9]{2}:[0-9]{2}:[0-9]{2} +alive '
# Of a process that has just started: a busy host's events are in memory for some seconds.
background sleep 30
recent=$pid
sleep 1.5
like "events: of a time before today, with the day" \
	"$(TZ=$(midnight) profd events --last 1h --pid "$recent" | head -n 1)" \
	'^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:'
worker=$(pgrep -P "$profd" -x profd-symbolize | head -n 1)
like "ps: the user of the symbolize worker is profd's" \
	"$(profd ps "$worker" | tail -n 1)" "^ *$worker +$profd +profd "
is "ps --sort start: the youngest first" "$(sed -n 's/^ *[0-9]* *[0-9]* *[^ ]* *\([0-9:-]*\) .*/\1/p' "$T/ps" |
	grep : | sort -rc && echo sorted)" sorted
profd ps "$slept" 4194304 >"$T/ps" 2>"$T/err"
is "ps PID: who is not there is an error" "$?$(wc -l <"$T/ps")" 12
like "which is named" "$(cat "$T/err")" '4194304'
is "ps PID: who is there" "$(awk 'NR == 2 { print $1 }' "$T/ps")" "$slept"
if has_terminals; then
	script -qec "stty cols 72; '$PROFD' ps --server 'unix:$sock'" /dev/null |
		tr -d '\r' >"$T/ps"
	num "ps: cut to the terminal" "$(LC_ALL=C.UTF-8 wc -L <"$T/ps")" '<=' 72
	# Columns are as wide as the host's processes need, so this is of one.
	script -qec "stty cols 72; '$PROFD' ps --server 'unix:$sock' $slept" /dev/null |
		tr -d '\r' >"$T/ps"
	num "ps: and the command has a good part of it" \
		"$(awk 'NR == 1 { print 72 - index($0, "COMMAND") }' "$T/ps")" '>=' 10
	script -qec "stty cols 72; '$PROFD' ps --wide --server 'unix:$sock'" /dev/null \
		>"$T/ps"
	num "ps --wide: not cut" "$(awk 'length > n { n = length } END { print n }' "$T/ps")" '>=' 80
else
	forbids "ps: the width of a terminal" "pseudo terminals"
fi

# Those in memory are of less than a second on a busy host: the archive has the others.
ended() {
	sh -c '/bin/true; /bin/true'
	sleep 0.2
	profd events --type end | grep -q ' true '
}
check "ends are there" wait_for 60 ended
profd events --json | jq -r '.time_boot_ns // empty' >"$T/times"
check "events: in the order of time" sort -nc "$T/times"
is "events --type: no other" \
	"$(profd events --type fork,exec --json | jq -r '.events[]' | sort -u | tr '\n' ' ')" \
	"exec fork "
sleep 0.2 &
brief=$!
wait "$brief"
brief_ended() { profd events --last 1m --pid "$brief" --type end | grep -q .; }
check "a process that has just ended" wait_for 60 brief_ended
is "events --pid: no other" \
	"$(profd events --last 1m --pid "$brief" --json | jq -r '."process.pid" // empty' | sort -u)" "$brief"
is "events --comm: no other" \
	"$(profd events --last 5m --comm 'tru?' --json | jq -r '."profd.comm" // empty' | sort -u)" true
is "events --since: none of the future" \
	"$(profd events --since 2222-01-01 --type end | wc -l)" 0
num "events --since: those since" \
	"$(profd events --since 5m --type end | wc -l)" '>=' 1
like "a type that is none" "$(profd events --type birth 2>&1)" 'birth.*fork'
# --- status ---
profd status >"$T/status"
for line in '^health +(ok|degraded: .*)$' '^sampling +99 Hz' '^coverage +[0-9.]+ % of' \
	'^user stacks +' '^losses +'; do
	check "status: $line" grep -qE "$line" "$T/status"
done
is "status: what matters first" "$(head -n 3 "$T/status" | cut -d ' ' -f 1 | tr '\n' ' ')" \
	"health sampling coverage "
is "status: health is not a loss" "$(grep -c health "$T/status")" 1
is "status: counts of zero are one line" \
	"$(grep -cE ' 0$' "$T/status")$(grep -c '^zero ' "$T/status")" 01
is "status --json is an object" \
	"$(profd status --json | jq -r '(.health.state | type), (.sampling.samples | type)' | tr '\n' ' ')" \
	"string number "

stop_profd
is "profd ends with 0" $? 0
plan
