#!/bin/bash
# Events over HTTP and by profd events: their names, filters, going on after a break, and
# those that only the archive's catalog still has.
. "$(dirname "$0")/lib.sh"

# events QUERY: in $T/body; prints the status.
events() {
	curl -sS --max-time 60 -o "$T/body" -w '%{http_code}' --unix-socket "$sock" \
		"http://x/api/events$1" 2>"$T/curl.err"
}
# lines FILTER: of $T/body, whose events have the keys of processes.
lines() { jq -c "$plain select($1)" "$T/body"; }
profd() { "$PROFD" "$@" --server "unix:$sock"; }
cataloged() {
	[ "$(sqlite3 "file:$archive/catalog.sqlite?mode=ro" "SELECT count(*)
		FROM process WHERE pid = $first AND exit_code = 3 OR
			pid = $changing AND exit_code = 0")" = 2 ]
}

start_profd events --window 2
# What it has not read stays in memory, on a busy host too.
background curl -sN --unix-socket "$sock" "http://x/api/events?follow=1" >"$T/all"
reader=$pid
reads() { /bin/true && [ -s "$T/all" ]; }
check "a reader" wait_for 60 reads
begin=$(date +%s.%N)
sh -c 'echo $$ >"$1"; exit 3' tag-first "$T/first"
first=$(cat "$T/first")
sh -c 'echo $$ >"$1"; echo -n tag-name >/proc/$$/comm' tag-changing "$T/changing"
changing=$(cat "$T/changing")
ended() { grep -F "\"process.pid\":$first," "$T/all" | grep -qF '["end"]'; }
check "the end of a process" wait_for 60 ended

# --- names ---
grep -F "\"process.pid\":$first," "$T/all" | grep -F '["exec"]' >"$T/body"
like "names of OpenTelemetry, and profd's own" \
	"$(jq -c '[."process.pid", ."process.executable.path",
		."process.command_args"[3], ."process.working_directory",
		."process.real_user.id", ."profd.process", ."host.name", .events]' \
		"$T/body")" \
	"^\[$first,\"[^\"]*sh\",\"tag-first\",\"$PWD\",$UID,\"$first-[0-9a-f]+\",\"$(uname -n)\",\[\"exec\"\]\]$"
is "a name for each key" "$(jq -r 'keys[]' "$T/all" |
	grep -vE '^(id|time|time_boot_ns|events|cut|from|to|lost|kinds|count|(host|process|container|k8s|profd)\..+)$')" ""

# --- filters ---
# Of a new process each time: on a busy host memory holds less than a second.
by_pid() {
	sh -c 'echo $$ >"$1"; exit 0' again "$T/again"
	events "?pid=$(cat "$T/again")" >/dev/null
	[ "$(lines '.pid != null' | jq .pid | sort -u)" = "$(cat "$T/again")" ]
}
check "by pid, and no other" wait_for 60 by_pid
is "not of a name" "$(events '?comm=!sh&not-comm=bash')" 200
is "none has it" "$(lines '.comm == "sh" or .comm == "bash"')" ""
is "by types" "$(events '?type=fork,exec')" 200
# Beside a loop of forks some may be missed.
is "no other type" "$(jq -r ".events[]" "$T/body" | grep -vx missed | sort -u |
	tr "\n" " ")" "exec fork "
while read -r what query; do
	is "wrong: $what" "$(events "$query")" 400
done <<-'EOF'
	parameter ?all=1
	type ?type=birth
	type ?type=
	id ?after=-1
	id ?after=x
	follow ?follow=yes
	pid ?pid=x
	time ?from=yesterday
	zone ?from=2026-11-23T14:30
	span ?from=-1m&to=-2m
	both ?from=-1m&after=3
	end ?follow=1&to=-1m
	twice ?from=-1m&from=-2m
	thread ?from=-1m&thread=x
	past ?follow=1&exe=sh
	user ?user=root
EOF

# --- going on ---
events "" >/dev/null
is "numbers rise" "$(jq .id "$T/body" | sort -nu | wc -l)" "$(wc -l <"$T/body")"
# What was read may leave memory at any moment.
goes_on() {
	events "" >/dev/null
	jq .id "$T/body" | tail -n 20 >"$T/ids"
	events "?after=$(head -n 1 "$T/ids")" >/dev/null
	[ "$(jq .id "$T/body" | head -n 19)" = "$(tail -n 19 "$T/ids")" ]
}
check "after one comes the next" wait_for 60 goes_on
events "?after=17" >/dev/null
is "what is of another profd is missed, without a number" "$(head -n 1 "$T/body")" \
	'{"events":["missed"]}'
background curl -sN --unix-socket "$sock" \
	"http://x/api/events?follow=1&comm=prog_spin_*&type=exec,end" >"$T/follow"
following() { (($(metric profd_reporter_http_followers) == 2)); }
check "a follower" wait_for 60 following
"$E2E/prog_spin_a" 0.01 >/dev/null 2>&1 &
spin=$!
kill -KILL "$spin"
wait "$spin" 2>/dev/null
(exec -a x "$E2E/prog_spin_a" 0.01) >/dev/null 2>&1 &
spin=$!
sleep 0.3
kill -KILL "$spin" 2>/dev/null
wait "$spin" 2>/dev/null
seen() { grep -F "\"process.pid\":$spin," "$T/follow" | grep -qF '["end"]'; }
check "it gets what it wants" wait_for 60 seen
is "nothing else" "$(jq -r '."profd.comm"' "$T/follow" | sort -u)" prog_spin_a
kill "$pid" "$reader"

# --- the past ---
check "the catalog has it" wait_for 60 cataloged
# Until the events of the first process have left memory.
gone() {
	for _ in {1..500}; do /bin/true; done
	[ "$(events "?pid=$first")" = 200 ] && [ ! -s "$T/body" ]
}
check "memory has it no more" wait_for 120 gone
for _ in {1..1000}; do /bin/true; done
is "the past" "$(events "?from=$begin&pid=$first")" 200
is "its fork, exec and end" "$(jq -c .events "$T/body" | tr '\n' ' ')" \
	'["fork"] ["exec"] ["exit","reap","end"] '
is "with what it was" "$(lines '.exit_code == 3' | jq -c '[.pid, .args[3], .host,
	.state, .uid, (.cpu_ns > 0)]')" "[$first,\"tag-first\",\"$(uname -n)\",\"reaped\",$UID,true]"
is "changes" "$(events "?from=$begin&pid=$changing&type=rename,cgroup,gap")" 200
is "with what is new" "$(lines true | jq -c '[.events[0], .comm]')" '["rename","tag-name"]'
is "only renames" "$(profd events --from "$begin" --type rename --comm tag-name --json |
	jq -c '[."process.pid", .events[0]]')" "[$changing,\"rename\"]"
is "only ends" "$(events "?from=$begin&type=end&pid=$first")" 200
is "is one line" "$(wc -l <"$T/body")" 1
is "all of it" "$(events "?from=$begin&comm=true&type=exec")" 200
num "in several pages" "$(wc -l <"$T/body")" '>=' 1000
is "each once" "$(jq -r '."profd.process"' "$T/body" | sort | uniq -d | wc -l)" 0
jq -r 'select(.id == null) | .time' "$T/body" >"$T/times"
num "of the catalog" "$(wc -l <"$T/times")" '>=' 1
check "in the order of time" sort -c "$T/times"
is "before and after" "$(events "?from=$begin&to=$(date -d "@${begin%.*}" +%s)&pid=$first")" 400
is "profd events --last" "$(profd events --last 1h --pid "$first" --json |
	jq -c .events | tr '\n' ' ')" '["fork"] ["exec"] ["exit","reap","end"] '
like "as text" "$(profd events --from "$begin" --pid "$first")" 'exec +sh -c echo'
profd events --last 1h --type exec --json | jq -r .time >"$T/times"
num "of all" "$(wc -l <"$T/times")" '>=' 1000
check "in the order of time, too" sort -c "$T/times"
# What only the catalog knows; of the last hour, and up to now.
sh -c 'sh -c "exit 5" tag-late; exit 3' tag-parent
is "the parent, and nothing else" "$(profd events --exit 3 --argv '*tag-*' --json |
	jq -c "$plain [.args[3], .exit_code]" | grep -v null | sort -u | tr '\n' ' ')" \
	'["tag-first",3] ["tag-parent",3] '
like "an end that is a second old" "$(profd events --type exit --argv '*tag-late')" \
	'^[^ ]+ +[0-9]+ +[0-9]+ exit +sh status 5 cpu [^ ]+$'
like "not by -f" "$(profd events -f --exit 3 2>&1)" \
	'400: events in memory have only comm, pid and process: with follow'
# The steps go on while the follower joins.
steps() {
	local n
	for n in {1..600}; do
		/bin/true "step-$n"
		((n % 20)) || sleep 0.1
	done
	: >"$T/stepped"
}
background steps
sleep 1
background curl -sN --unix-socket "$sock" \
	"http://x/api/events?from=$begin&follow=1&type=exec" >"$T/follow"
past() { grep -qF '"tag-first"' "$T/follow"; }
check "a follower gets the past" wait_for 60 past
check "steps" wait_for 60 [ -e "$T/stepped" ]
/bin/true tag-later
now() { grep -qF '"tag-later"' "$T/follow"; }
check "and then the present" wait_for 60 now
is "each once" "$(jq -r '[."profd.process", .time[0:25]] | @tsv' "$T/follow" | sort |
	uniq -d | wc -l)" 0
# Beside a loop of forks it may be told that it was too slow for some.
unread=$(grep -F '"missed"' "$T/follow" | jq -s 'map(.count) | add // 0')
num "without a gap that it is not told" \
	"$(grep -oE '"step-[0-9]+"' "$T/follow" | sort -u | wc -l)" '>=' $((600 - unread))
kill "$pid"
is "after a page the client may be gone" "$(curl -sS --max-time 60 --unix-socket "$sock" \
	"http://x/api/events?from=$begin" | head -n 1 | wc -l)" 1
none() { (($(metric profd_reporter_http_followers) == 0)); }
check "no follower is left" wait_for 60 none
stop_profd
is "profd ends well" $? 0
plan
