#!/bin/bash
# Pids that are reused at once, by other programs: no sample, no mapping and no exit is
# attributed to another process with the same pid. The same while profd is stopped
# during dozens of reuses, and by perf events, which have no key but the pid.
# LIVES=2000 makes a longer run.
. "$(dirname "$0")/lib.sh"
LIVES=${LIVES:-210}
MS=10 HZ=997

# The programs of each kind of process: "FUNCTION PROGRAM" for each of its images.
cat >"$T/kinds" <<'END'
0 spin_a prog_spin_a
1 spin_b prog_spin_b
2 forked_spin prog_reuse
3 spin_a prog_spin_a spin_b prog_spin_b
4 spin_old,plugin_spin prog_spin_old
5 killed_spin prog_reuse
6 spin_new prog_spin_new spin_old prog_spin_old
END

# --- profiles: what may occur together in a sample ---------------------------------
# consistent NAME: every sample of the processes in $T/NAME.of, which begin with the
# process: the functions are those of the image in the labels; and no process is of two
# kinds. Lines "bad: WHAT COUNT", and the number of samples.
cat >"$T/consistent.awk" <<'END'
NR == FNR {
	for (i = 2; i <= NF; i += 2) {
		n = split($i, f, ",")
		for (j = 1; j <= n; j++)
			of[f[j]] = of[f[j]] " " $(i + 1)
		kinds[$(i + 1)] = kinds[$(i + 1)] " " $1
	}
	progs[$1] = $3 " " $5
	next
}
{
	exe = $7
	sub(/.*\//, "", exe)
	n = split($10, frame, ";")
	for (i = 1; i <= n; i++) {
		name = frame[i]
		sub(/@.*/, "", name)
		file = frame[i]
		sub(/^.*\//, "", file)
		if (name in of) {
			marked += $1
			if (index(of[name] " ", " " exe " ") == 0)
				bad["a function of another program"] += $1
		}
		if (file ~ /^prog_(spin|reuse)/ && file != exe)
			bad["code of another program"] += $1
		if (file ~ /^libplugin/ && exe != "prog_spin_old")
			bad["a library of another program"] += $1
		if (name ~ /^\[(unmapped|mapping lost)\]/)
			unmapped += $1
	}
	all += $1
}
END {
	for (b in bad)
		print "bad:", b, bad[b]
	print "samples", all + 0, "marked", marked + 0, "unmapped", \
		unmapped + 0
}
END
# profile: the archive of a profd that has ended
profile() {
	local f
	for f in "$archive"/*/*.pb.gz; do
		samples "$f"
	done
}

# --- by BPF: profiles and ledger --------------------------------------------------
follows() { /bin/true && test -s "$T/events"; }
# The kernel reports a reap when it frees the process; otherwise one is inferred four
# seconds after the exit. Eight more processes were started to find numbers.
reaped() {
	(($(grep -F '"events":["reap"]' "$T/events" | grep -oE '"process.pid":[0-9]+' |
		grep -cxFf "$T/pids") >= LIVES + 28 + 8))
}
# attempt NUMBER: processes while profd runs, and while it is stopped; results in
# $lost (events) and $full (samples), or $failed.
attempt() {
	local i
	start_profd "reuse$1" --window 3600 --freq $HZ --cache "$T/cache"
	background nice -n -20 "$PROFD" events -f --json --server "unix:$sock" \
		>"$T/events" 2>"$T/events.err"
	events=$pid
	wait_for 60 follows
	failed=
	"$E2E/prog_reuse" "$E2E" "$LIVES" $MS >"$T/truth" 2>"$T/truth.err" ||
		failed="$(cat "$T/truth.err")"
	# Not for long, or other load fills the rings.
	kill -STOP "$profd"
	"$E2E/prog_reuse" "$E2E" 28 $MS >"$T/truth2" 2>"$T/truth.err" ||
		failed="$(cat "$T/truth.err")"
	kill -CONT "$profd"
	cut -d ' ' -f 2 "$T/truth" "$T/truth2" | sort -u |
		sed 's/.*/"process.pid":&/' >"$T/pids"
	for ((i = 0; i < 30; i++)); do
		! reaped || break
		sleep 1
	done
	lost=$(metric profd_lifecycle_lost_total)
	full=$(metric profd_sampler_ring_full_total)
	unexpected=
	# Not "unknown": see test_ledger.sh.
	for c in found vanished; do
		[[ $(metric "profd_pm_${c}_total") == 0 ]] ||
			unexpected="$unexpected $c"
	done
	kill -INT "$events"
	wait "$events"
	stop_profd
	ended=$?
	diag "attempt $1: lost $lost events, $full samples"
}

# Other load may make more events than fit into the rings while profd is stopped.
for ((n = 1; n <= 4; n++)); do
	attempt $n
	[[ $lost != 0 ]] || break
done
is "lives of four pids" "$failed" ""
is "so many lives" "$(cat "$T/truth" "$T/truth2" | wc -l)" $((LIVES + 28))
is "profd ends well" "$ended" 0
is "no event was lost" "$lost" 0
is "no process found or vanished" "$unexpected" ""
profile >"$T/all"

# The process of each start, by the order of the forks of its pid and parent.
jq -r "$plain"'
	select(.process) | . as $e | .events[] |
	if . == "fork" then ["F", $e.process, $e.pid, $e.ppid]
	elif . == "exec" then ["E", $e.process,
		([($e.args // [])[] | select(startswith("life-"))][0] // "-"),
		(($e.exe // "") | sub(".*/"; ""))]
	elif . == "exit" or . == "reap" then [(if . == "exit" then "X" else
		"R" end), $e.process, ($e.exit_code // -1), ($e.signal // 0),
		($e.cpu // "none"), ($e.cpu_ns // 0)]
	else empty end | @tsv' "$T/events" >"$T/tsv"
is "every line is JSON" $? 0
awk -v lives="$T/lives" '
	FILENAME ~ /kinds$/ { progs[$1] = $3 ($5 == "" ? "" : " " $5); next }
	FILENAME ~ /truth2?$/ {
		life[++n] = $0
		at = $2 " " $3
		# The very first fork was to find a number.
		turn[n] = ++turns[at] + 1
		next
	}
	$1 == "F" { p = $3 " " $4; nth[p, ++seen[p]] = $2; forks[$2]++; next }
	$1 == "E" { execs[$2] = execs[$2] " " $3 ":" $4; next }
	$1 == "X" { exits[$2]++; x[$2] = $3 " " $4; next }
	$1 == "R" { reaps[$2]++; r[$2] = $3 " " $4; how[$2] = $5; ns[$2] = $6 }
	END {
		for (i = 1; i <= n; i++) {
			split(life[i], t, " ")
			p = nth[t[2] " " t[3], turn[i]]
			if (p == "") { bad["a life without a fork"]++; continue }
			print p, t[4], t[7] >lives
			if (forks[p] != 1) bad["two forks, one process"]++
			if (exits[p] != 1) bad["not one exit"]++
			if (reaps[p] != 1) {
				bad["not one reap"]++
				print "reaps:", life[i], p, reaps[p] + 0
			}
			want = ""
			k = progs[t[4]] ~ /reuse/ ? 0 : split(progs[t[4]], prog, " ")
			for (j = 1; j <= k; j++)
				want = want " life-" t[1] ":" prog[j]
			got = execs[p]
			if (got != want) {
				bad["other execs"]++
				print "execs:", life[i], "|" got "|" want
			}
			want = t[5] == "exit" ? t[6] " 0" : "-1 " t[6]
			if (x[p] != want) bad["another exit"]++
			if (how[p] != "exact") { inferred++; continue }
			if (r[p] != want) bad["another status at the reap"]++
			d = ns[p] / 1000 - t[7]
			if (d < -1000 || d > 1000) {
				bad["another CPU time"]++
				print "off:", life[i], ns[p]
			}
			exact++
		}
		for (at in turns)
			if (seen[at] != turns[at] + 1)
				bad["forks that nobody asked for"]++
		for (b in bad) print "bad:", b, bad[b]
		print n + 0, "lives", exact + 0, "exact", inferred + 0, "inferred"
	}' "$T/kinds" "$T/truth" "$T/truth2" "$T/tsv" >"$T/verdict"
diag "$(cat "$T/verdict")"
is "the ledger: execs, exit, reap and CPU time of each life are its own" \
	"$(grep -c '^bad' "$T/verdict")" 0

# The samples of these processes, with kind and process; and those with their pids only.
awk -F '\t' -v OFS='\t' -v others="$T/others" '
	FILENAME ~ /lives$/ { split($0, t, " "); kind[t[1]] = t[2]; next }
	FILENAME ~ /truth2?$/ { split($0, t, " "); pids[t[2]] = 1; next }
	FILENAME ~ /tsv$/ { if ($1 == "F") born[$2] = 1; next }
	$8 in kind { print $0, kind[$8]; next }
	$3 in pids && !($8 in born) { print >others }
' "$T/lives" "$T/truth" "$T/truth2" "$T/tsv" "$T/all" >"$T/of"
touch "$T/others"
is "no sample of these pids has a process that was never born" \
	"$(wc -l <"$T/others")" 0 || diag "$(cat "$T/others")"
awk -F '\t' -f "$T/consistent.awk" <(tr ' ' '\t' <"$T/kinds") "$T/of" >"$T/verdict"
diag "$(cat "$T/verdict")"
is "each sample: functions, files, image of one program" \
	"$(grep -c '^bad' "$T/verdict")" 0
# By the kind of process, which is not in the labels.
is "each sample: functions of the kind that this life was" "$(awk -F '\t' '
	NR == FNR { may[$1] = "," $2 "," $4 ","; next }
	{
		n = split($10, frame, ";")
		for (i = 1; i <= n; i++) {
			name = frame[i]
			sub(/@.*/, "", name)
			if (name ~ /^(spin_(a|b|old|new)|[a-z]+_spin)$/ &&
			    index(may[$11], "," name ",") == 0)
				print $11, name, $8
		}
	}' <(tr ' ' '\t' <"$T/kinds") "$T/of" | sort | uniq -c)" ""
is "the first program is one generation, the next the one behind it" \
	"$(awk -F '\t' '
	{ exe = $7; sub(/.*\//, "", exe); gen = $9; sub(/.*-/, "", gen) }
	exe == "prog_reuse" { base = gen; next }
	{ want[$11] = 1; seen[$11 " " exe " " gen] = 1 }
	END {
		for (s in seen) {
			split(s, t, " ")
			next_one = t[1] == 3 && t[2] == "prog_spin_b" ||
				t[1] == 6 && t[2] == "prog_spin_old"
			if (t[3] != base + 1 + next_one) print s, base
		}
	}' "$T/of")" ""
# For each kind the expected number, by its CPU time; except lost samples.
for kind in 0 1 2 3 4 5 6; do
	due=$(awk -v k=$kind -v hz=$HZ '$2 == k { us += $3 }
		END { print us * hz / 1e6 }' "$T/lives")
	got=$(awk -F '\t' -v k=$kind '$11 == k { n += $1 } END { print n + 0 }' \
		"$T/of")
	num "kind $kind: $got samples of $due, within five deviations of dice" \
		"$(awk -v g="$got" -v d="$due" -v full="$full" 'BEGIN {
		off = full && g < d ? 0 : (g - d) ^ 2
		print off / (d > 0 ? d : 1) }')" '<=' 25
done

# --- by perf events: labels and functions, consistent -----------------------------
start_profd perf --window 3600 --freq $HZ --source perf --cache "$T/cache"
"$E2E/prog_reuse" "$E2E" 70 $MS >"$T/truth" 2>"$T/truth.err"
is "perf events: lives of four pids" $? 0 || diag "$(cat "$T/truth.err")"
stop_profd
profile >"$T/all"
awk -F '\t' 'NR == FNR { split($0, t, " "); pids[t[2]] = 1; next }
	$3 in pids' "$T/truth" "$T/all" >"$T/of"
awk -F '\t' -f "$T/consistent.awk" <(tr ' ' '\t' <"$T/kinds") "$T/of" >"$T/verdict"
diag "$(cat "$T/verdict")"
is "perf events: functions, files, image of one program" \
	"$(grep -c '^bad' "$T/verdict")" 0
num "perf events: most of what there was" "$(awk '$1 == "samples" {
	print $4 }' "$T/verdict")" '>=' \
	"$(awk -v hz=$HZ '{ us += $7 } END { print us * hz / 2e6 }' "$T/truth")"
plan
