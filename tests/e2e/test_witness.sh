#!/bin/bash
# The ledger of real loads, compared with a witness that stops each of their processes
# by ptrace(2): a storm of shells with pipes, subshells, signals and jobs, and a parallel
# make of C files, with errors. Every process is in it, once, with its parent, all its
# arguments, status and CPU time; and each sample of it has an image that existed.
# STORM=60 (seconds; 2), SHELLS=8 (at a time; 2) and FILES=400 (16) make it long.
. "$(dirname "$0")/lib.sh"
STORM=${STORM:-2} SHELLS=${SHELLS:-2} FILES=${FILES:-16} HZ=499

mkdir "$T/build"
cat >"$T/storm" <<'END'
#!/bin/bash
# One turn: typical work of shells.
turn() {
	local x
	x=$(echo "$1" | tr 0-9 a-j | cat)
	(exit $(($1 % 7)))
	/bin/false "$1"
	sh -c "echo $1 | grep -q x; exit 3"
	sh -c 'kill -TERM $$' "$1"
	(kill -KILL "$BASHPID")
	{ /bin/true "job $1"; } &
	wait $!
	env -i /bin/sh -c '/bin/true; exec /bin/true "a	tab, \"quotes\" and
	a line" "" "behind nothing"' "$x"
	# One that outlives its parent.
	(sleep 0.01 &)
}
end=$((SECONDS + $1))
turns() {
	local i
	for ((i = 0; SECONDS < end; i++)); do
		turn $i
	done
}
for ((n = 0; n < $2; n++)); do
	turns &
done
wait
END
cat >"$T/build/Makefile" <<'END'
O := $(patsubst %.c,%.o,$(wildcard f*.c))
all: prog bad.o
prog: main.o $(O)
	gcc -o $@ $^ && ./prog
	sh -c 'strip -o /dev/null prog | cat'
bad.o: bad.c
%.o: %.c
	@mkdir -p made && gcc -O1 -c -o $@ $< && : > made/$*
END
for ((i = 0; i < FILES; i++)); do
	printf '#include <stdio.h>\nint f%d(int n) { return printf("%%d", n); }\n' \
		$i >"$T/build/f$i.c"
done
echo "int f0(int); int main(void) { return f0(1) - 1; }" >"$T/build/main.c"
echo "int wrong(void) { return nothing; }" >"$T/build/bad.c"
chmod +x "$T/storm"

start_profd witness --window 3600 --freq $HZ
background nice -n -20 "$PROFD" events -f --json --server "unix:$sock" >"$T/events" \
	2>"$T/events.err"
events=$pid
follows() { /bin/true && test -s "$T/events"; }
wait_for 60 follows

began=$EPOCHREALTIME
"$E2E/prog_witness" "$T/storm.json" "$T/storm" "$STORM" "$SHELLS" >"$T/out" 2>&1
is "a storm of shells" $? 0 || diag "$(cat "$T/out")"
middle=$EPOCHREALTIME
(cd "$T/build" && "$E2E/prog_witness" "$T/build.json" make -k -j 2) \
	>"$T/out" 2>&1
is "a build with one error" $? 2 || diag "$(cat "$T/out")"
[[ -x $T/build/prog ]]
result $? "it made what can be made" || diag "$(cat "$T/out")"
rate() { awk -v n="$1" -v s="$2" -v e="$3" 'BEGIN { printf "%.0f", n / (e - s) }'; }
diag "$(wc -l <"$T/storm.json") lives in the storm," \
	"$(rate "$(wc -l <"$T/storm.json")" "$began" "$middle") a second;" \
	"$(wc -l <"$T/build.json") in the build," \
	"$(rate "$(wc -l <"$T/build.json")" "$middle" "$EPOCHREALTIME")"

# A line of a process that begins later shows that all earlier events have come.
ends_come "$T/events"
sh -c 'exit 77' &
last=$!
wait $last
ended() { grep -F '"reap"' "$T/events" | grep -q "\"process.pid\":$last,"; }
check "events come to the end" wait_for 60 ended
kill -INT "$events"
wait "$events"
is "the stream was ended, and well: $(cat "$T/events.err")" $? 0
is "no event went by unread, none was lost" \
	"$(grep -cE '"(missed|gap)"' "$T/events")" 0
# Not "unknown": where BPF is excluded from the first process of the host, a process that
# it forks appears at its exec only, and its mappings come before that.
for c in found vanished nomem; do
	is "profd_pm_$c" "$(metric "profd_pm_${c}_total")" 0
done
stop_profd
is "profd ends well" $? 0

# --- both accounts, in one form ---
# By pid and start in clock ticks; the process id has it in ns, hexadecimal.
jq -r '["W", .pid, .start, .ppid, .status, .cpu_ns, .forks, .wait4_us] +
	[.execs | tojson] | @tsv' "$T/storm.json" "$T/build.json" >"$T/truth"
is "the witness writes JSON" $? 0
jq -r '."profd.process" as $p | select($p) | . as $e | .events[] |
	if . == "fork" then ["F", $p, $e."process.pid", $e."process.parent_pid",
		($e."profd.parent" // "")]
	elif . == "exec" then ["E", $p, ($e."process.command_args" // [] | tojson)]
	elif . == "exit" or . == "reap" then [(if . == "exit" then "X" else
		"R" end), $p, (if $e."profd.signal" then "signal \($e."profd.signal")"
		else "exit \($e."process.exit.code")" end), ($e."profd.cpu" // "none"),
		($e."profd.cpu_ns" // 0)]
	else empty end | @tsv' "$T/events" >"$T/tsv"
is "profd writes JSON" $? 0
awk -F '\t' -v tick="$((1000000000 / $(getconf CLK_TCK)))" -v lives="$T/lives" '
	function hex(s,	i, n) {
		for (i = 1; i <= length(s); i++)
			n = 16 * n + index("0123456789abcdef", substr(s, i, 1)) - 1
		return n
	}
	function ticks(process) {
		sub(/.*-/, "", process)
		return int(hex(process) / tick)
	}
	$1 == "W" { truth[++n] = $0; known[$2 " " $3] = 1; next }
	$1 == "F" {
		k = $3 " " ticks($2)
		if (!(k in known)) next
		of[k] = $2
		forks[$2]++
		ppid[$2] = $4
		if ($5 != "") children[$5]++
	}
	$1 == "E" { execs[$2] = execs[$2] (execs[$2] == "" ? "" : ",") $3 }
	$1 == "X" { exits[$2]++; code[$2] = $3 }
	$1 == "R" { reaps[$2]++; rcode[$2] = $3; how[$2] = $4; ns[$2] = $5 }
	END {
		for (i = 1; i <= n; i++) {
			split(truth[i], t, "\t")
			p = of[t[2] " " t[3]]
			if (p == "") { wrong("not there", i, ""); continue }
			print p >lives
			if (forks[p] != 1) wrong("not one fork", i, p)
			if (exits[p] != 1) wrong("not one exit", i, p)
			if (reaps[p] != 1) wrong("not one reap", i, p)
			if (ppid[p] != t[4]) wrong("another parent", i, ppid[p])
			if (children[p] + 0 != t[7])
				wrong("other children", i, children[p])
			if ("[" execs[p] "]" != t[9])
				wrong("other execs", i, execs[p])
			if (code[p] != t[5]) wrong("another status", i, code[p])
			if (how[p] != "exact") { inferred++; continue }
			if (rcode[p] != t[5])
				wrong("another status at the reap", i, rcode[p])
			exact++
			late += cpu(ns[p] - t[6], i)
			# The value of wait4 includes the children.
			if (t[7] == 0) {
				leaves++
				cpu(ns[p] - t[8] * 1000, i)
			}
		}
		for (b in bad) print "bad:", b, bad[b]
		print "exact", exact + 0, "inferred", inferred + 0, "late", \
			late + 0, "leaves", leaves + 0, "worst", worst / 1000, "us"
	}
	function wrong(what, i, got) {
		if (++bad[what] < 4)
			print what ":", substr(truth[i], 1, 150), "|", \
				substr(got, 1, 150)
	}
	# It is never below the value of the witness, to its microsecond.
	function cpu(d, i) {
		if (d < -1000 || d > 1000000) wrong("another CPU time", i, d)
		if (d > worst) worst = d
		return d > 10000
	}' "$T/truth" "$T/tsv" >"$T/verdict"
diag "$(cat "$T/verdict")"
is "each process once: parent, children, execs, status, CPU time" \
	"$(grep -c '^bad' "$T/verdict")" 0
# As in test_ledger.sh: the dead task may still run on its CPU, and does so more often
# on a busy machine.
num "CPU time to ten microseconds, in 95 % of them" \
	"$(awk '$1 == "exact" { print 100 * $6 / $2 }' "$T/verdict")" '<=' 5
num "the kernel told of 98 % of the reaps, at least" \
	"$(awk '$1 == "exact" { print 100 * $2 / ($2 + $4) }' "$T/verdict")" \
	'>=' 98

# --- the samples ---
for f in "$archive"/*/*.pb.gz; do
	samples "$f"
done >"$T/all"
is "every sample has an image, of a process" \
	"$(awk -F '\t' '$9 !~ /^[0-9]+-[0-9a-f]+-[0-9]+$/ ||
		index($9, $8 "-") != 1 || index($8, $3 "-") != 1' "$T/all" |
		wc -l)" 0
awk -F '\t' 'NR == FNR { life[$1] = 1; next } $8 in life' \
	"$T/lives" "$T/all" >"$T/of"
is "... of which the program is known" \
	"$(awk -F '\t' '$7 == ""' "$T/of" | head -n 5)" ""
# A fork inherits the exec generation, and each exec adds one to it.
awk -F '\t' '
	NR == FNR {
		if ($1 == "F") parent[$2] = $5
		if ($1 == "E") execs[$2]++
		next
	}
	{
		gen = $9
		sub(/.*-/, "", gen)
		if (!($8 in low) || gen < low[$8]) low[$8] = gen + 0
		if (gen > high[$8]) high[$8] = gen + 0
		n += $1
	}
	END {
		for (p in low)
			if (high[p] - low[p] > execs[p])
				print p, low[p], high[p], execs[p]
		print n + 0 >"/dev/stderr"
	}' "$T/tsv" "$T/of" >"$T/generations" 2>"$T/samples"
is "no more images than execs" "$(cat "$T/generations")" ""
# They are stopped and made to wait, but sampled like all others.
num "they were sampled: $(cat "$T/samples")" "$(cat "$T/samples")" '>=' \
	"$(awk -F '\t' -v hz=$HZ '{ ns += $6 } END {
		due = ns * hz / 1e9; print due - 5 * sqrt(due) }' "$T/truth")"
plan
