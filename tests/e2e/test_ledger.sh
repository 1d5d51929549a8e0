#!/bin/bash
# The ledger: of every process that a load started, sampled or not, the events of
# a running profd say what the load's own wait4(2) says: once, with arguments,
# parent, status, and CPU time to ten microseconds. LIVES=120000 WORKERS=4 makes a
# minute of it.
. "$(dirname "$0")/lib.sh"
LIVES=${LIVES:-3000}
WORKERS=${WORKERS:-2}
GIANTS=${GIANTS:-6}

start_profd ledger --window 600
profd() { "$PROFD" "$@" --server "unix:$sock"; }
background "$PROFD" events -f --json --server "unix:$sock" >"$T/events" \
	2>"$T/events.err"
events=$pid
# Events of before it asked are not sent: the first that comes tells it follows.
follows() { /bin/true && test -s "$T/events"; }
wait_for 10 follows

"$E2E/prog_lives" "$LIVES" "$WORKERS" "$GIANTS" >"$T/truth"
is "the load is done" $? 0
is "so many lives" "$(wc -l <"$T/truth")" "$LIVES"

# A reap is told when the kernel frees the process; one that is never told is
# inferred four seconds after the exit.
seen_all() {
	(($(jq -r 'select(.events[0] == "reap") | .process' "$T/events" |
		wc -l) >= LIVES)) && ((++quiet > 1))
}
quiet=0
wait_for 30 seen_all
sleep 5
kill -INT "$events"
wait "$events"
is "the stream was ended, and well" $? 0
is "nothing to complain of" "$(cat "$T/events.err")" ""

# --- the truth, and what the events say ---
jq -r '
	select(.process) | . as $e | .events[] |
	if . == "fork" then ["F", $e.process, $e.pid, $e.ppid, $e.parent]
	elif . == "exec" then ["E", $e.process] +
		(($e.args // []) | if length > 1 then [.[1], .[0]] else ["", ""] end)
	elif . == "exit" then ["X", $e.process, ($e.exit_code // -1),
		($e.signal // 0)]
	elif . == "reap" then ["R", $e.process, ($e.exit_code // -1),
		($e.signal // 0), ($e.cpu // "none"), ($e.cpu_ns // 0)]
	else empty end | @tsv' "$T/events" >"$T/tsv"
is "every line is JSON" $? 0
is "no event went by unread, none was lost" \
	"$(grep -cE '"(missed|gap)"' "$T/events")" 0
# Counts what is wrong, by kind of error; prints one line for each kind.
awk -F '\t' '
	NR == FNR { split($0, t, " "); name[t[1]] = $0; next }
	$1 == "F" { forks[$2]++; pid[$2] = $3; ppid[$2] = $4 }
	$1 == "E" && $3 ~ /^life-/ {
		if ($4 == "/bin/true") again[$2]++
		else { of[$3] = $2; execs[$3]++ }
	}
	$1 == "X" { exits[$2]++; code[$2] = $3; sig[$2] = $4 }
	$1 == "R" { reaps[$2]++; rcode[$2] = $3; rsig[$2] = $4; how[$2] = $5
		ns[$2] = $6 }
	END {
		for (tag in name) {
			split(name[tag], t, " ")
			p = of[tag]
			if (execs[tag] != 1) { bad["not one exec"]++; continue }
			if (forks[p] != 1) bad["not one fork"]++
			if (exits[p] != 1) bad["not one exit"]++
			if (reaps[p] != 1) bad["not one reap"]++
			if (pid[p] != t[2]) bad["another pid"]++
			if (ppid[p] != t[3]) bad["another parent"]++
			want = t[4] == "exit" ? t[5] " 0" : "-1 " t[5]
			if (code[p] " " sig[p] != want) {
				bad["another status"]++
				print "status:", name[tag], p, code[p], sig[p]
			}
			if (how[p] != "exact") { inferred++; continue }
			if (rcode[p] " " rsig[p] != want)
				bad["another status at the reap"]++
			d = ns[p] / 1000 - t[6]
			if (d < 0) d = -d
			if (d > 1000) {
				bad["another CPU time"]++
				print "off:", name[tag], ns[p]
			}
			if (d > 10) late++
			if (d > worst) worst = d
			exact++
		}
		for (b in bad) print "bad:", b, bad[b]
		print "exact", exact + 0, "inferred", inferred + 0, "late", \
			late + 0, "worst", worst + 0, "us"
	}' "$T/truth" "$T/tsv" >"$T/verdict"
diag "$(cat "$T/verdict")"
is "once each, with arguments, parent, status and CPU time" \
	"$(grep -c '^bad' "$T/verdict")" 0
# wait4(2) reads while the dead may still be on its way out of the CPU, and what it
# uses there is missing in its figure. Never seen but on a machine with much else
# to do.
num "CPU time to ten microseconds, in 99.5 % of them" \
	"$(awk '$1 == "exact" { print 100 * $6 / $2 }' "$T/verdict")" '<=' 0.5
# The kernel tells of no reap while a thread of the host's first process is
# current (seen on 6.18, and only where BPF is shut out of it).
num "the kernel told of 98 % of the reaps, at least" \
	"$(awk '$1 == "exact" { print 100 * $2 / ($2 + $4) }' "$T/verdict")" \
	'>=' 98

# --- what is said of processes that live, and died a moment ago ---
sleep 1000 &
sleeper=$!
sh -c 'exit 7' &
wait $!
listed() { profd ps --json --all | jq -es "any(.[]; .pid == $sleeper)"; }
check "a process is listed" wait_for 10 listed
profd ps --json --all >"$T/all"
profd ps --json >"$T/living"
is "ps --json: every line is an object with a pid" \
	"$(jq -r 'select(.pid | type != "number")' "$T/all" | wc -l)" 0
is "its arguments" \
	"$(jq -c "select(.pid == $sleeper) | .args" "$T/living")" \
	'["sleep","1000"]'
is "its parent" "$(jq "select(.pid == $sleeper) | .ppid" "$T/living")" $$
is "it lives" "$(jq -r "select(.pid == $sleeper) | .state" "$T/living")" alive
is "no dead without --all" \
	"$(jq -r 'select(.state != "alive")' "$T/living" | wc -l)" 0
kill -KILL $sleeper
wait $sleeper 2>/dev/null
dead() {
	profd ps --all --json | jq -es "any(.[]; .pid == $sleeper and
		.signal_name == \"KILL\")" || (($(profd events --json |
		jq -s "map(select(.pid == $sleeper and .signal == 9)) |
		length") > 0))
}
check "its death says the signal" wait_for 10 dead
profd ps >"$T/table"
is "ps: a line each, and a heading" \
	"$(awk 'NR > 1 && $1 !~ /^[0-9]+$/' "$T/table" | wc -l)" 0
profd ps --tree >"$T/tree"
is "ps --tree: nobody is left out" "$(wc -l <"$T/tree")" \
	"$(sort -u "$T/tree" | wc -l)"
like "ps --tree: profd below this test" "$(cat "$T/tree")" "profd run"

# --- what the manager itself counts ---
for c in unknown found vanished nomem; do
	is "profd_pm_$c" "$(metric "profd_pm_${c}_total")" 0
done
is "no gap" "$(metric profd_pm_gaps_total)" 0
stop_profd
is "profd ends well" $? 0
plan
