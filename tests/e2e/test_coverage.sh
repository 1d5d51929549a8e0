#!/bin/bash
# Coverage: samples times the period equals the CPU time counted by the kernel, within
# two percent and five standard deviations, for a build of small files, a storm of
# shells and a steady load; and for the processes that lived less than 50 ms, which a
# profiler that first has to discover a process does not see at all. Measured by the
# figures of the ledger for each process, and without them: the sum in `go tool pprof`
# against wait4(2) for the whole tree.
#
# COVERAGE_ALL=1 takes 400 files, 30,000 processes and 60 s, at 99 Hz.
. "$(dirname "$0")/lib.sh"
files=40 lives=2000 seconds=2 HZ=499
if [[ ${COVERAGE_ALL:-} == 1 ]]; then
	files=400 lives=30000 seconds=60 HZ=99
fi

cat >"$T/storm" <<'END'
#!/bin/sh
half() {
	i=0
	while [ $i -lt $1 ]; do
		/bin/true
		x=$(echo $i | cat)
		i=$((i + 4))
	done
}
half $(($1 / 2)) &
half $(($1 / 2)) &
wait
END
cat >"$T/build" <<END
#!/bin/sh
seq $files | xargs -P 2 -I % gcc -O1 -c -o "$T/f%.o" "$T/f%.c"
END
# User code, system calls of many kinds, and sleeping in between.
cat >"$T/steady" <<END
#!/bin/sh
"$E2E/prog_shares" $seconds >/dev/null &
timeout $seconds dd if=/dev/zero of=/dev/null bs=4k &
"$E2E/load_small" $seconds 200 &
wait
END
chmod +x "$T"/{storm,build,steady}
for i in $(seq $files); do
	printf '#include <stdio.h>\nint f%d(int n) { return printf("%%d", n); }\n' \
		"$i" >"$T/f$i.c"
done

start_profd coverage --window 3600 --freq $HZ
background nice -n -20 "$PROFD" events -f --json --server "unix:$sock" >"$T/events" \
	2>"$T/events.err"
events=$pid
follows() { /bin/true && test -s "$T/events"; }
wait_for 60 follows

# run NAME COMMAND...: below load_spawn, which prints the result of wait4(2)
run() {
	local name=$1
	shift
	"$E2E/load_spawn" 1 "$@" >"$T/$name.said" 2>"$T/$name.err" &
	echo $! >"$T/$name.pid"
	wait $!
	is "$name: done" $? 0 || diag "$(cat "$T/$name.err")"
	sed -i -n '/^wall/p' "$T/$name.said"
}
run storm "$T/storm" "$lives"
run build "$T/build"
run steady "$T/steady"

ends_come "$T/events"
sh -c 'exit 77' &
last=$!
wait $last
ended() { grep -F '"events":["end"]' "$T/events" | grep -q "\"process.pid\":$last,"; }
check "the ends of all have come" wait_for 60 ended
for c in lifecycle_lost sampler_ring_full trace_nomem trace_bad_records \
	reporter_traces_nomem reporter_traces_late; do
	is "profd_$c" "$(metric "profd_${c}_total")" 0
done
kill -INT "$events"
wait "$events"
stop_profd
is "profd ends well" $? 0
check_profile "$archive"/*/*.pb.gz
for f in "$archive"/*/*.pb.gz; do
	samples "$f"
done >"$T/samples"

# PROCESS PARENT PID CPU_NS SAMPLES LIVED_NS CPU COVERAGE, of all ended processes.
jq -r 'select(.events[0] == "end" and ."profd.cpu_ns" and ."profd.exit_boot_ns") |
	[."profd.process", ."profd.parent" // "", ."process.pid", ."profd.cpu_ns",
		."profd.samples", ."profd.exit_boot_ns" - ."profd.start_boot_ns",
		."profd.cpu", ."profd.coverage" // 0] |
	@tsv' "$T/events" >"$T/ends"
is "each line is JSON" $? 0

# close_to NAME TAKEN DUE SAMPLES: seconds
close_to() {
	num "$1: $2 s by samples, $3 s by the kernel, $(awk -v t="$2" -v d="$3" \
		'BEGIN { printf "%+.2f", (t / d - 1) * 100 }') % of $4 samples" \
		"$(awk -v t="$2" -v d="$3" -v n="$4" 'BEGIN {
		off = t / d - 1
		print (off < 0 ? -off : off) - 5 / sqrt(n) }')" '<=' 0.02
}
# below FILE PID: descendants of the load_spawn with this pid
below() {
	awk -F '\t' -v pid="$2" '
		{ parent[$1] = $2; line[$1] = $0; if ($3 == pid) root = $1 }
		END {
			for (p in parent) {
				for (q = parent[p]; q in parent && q != root;)
					q = parent[q]
				if (q == root && root != "")
					print line[p]
			}
		}' "$1"
}

for name in storm build steady; do
	below "$T/ends" "$(cat "$T/$name.pid")" >"$T/$name.ends"
	read -r n short < <(awk -F '\t' '$6 < 5e7 { s++ } END { print NR, s + 0 }' \
		"$T/$name.ends")
	num "$name: $n processes, $short of them for less than 50 ms" "$n" '>=' 5
	# --- by the ledger ---
	read -r taken due count < <(awk -F '\t' -v hz=$HZ '{ n += $5; ns += $4 }
		END { print n / hz, ns / 1e9, n }' "$T/$name.ends")
	close_to "$name, ledger" "$taken" "$due" "$count"
	if ((short > 100)); then
		read -r taken due count < <(awk -F '\t' -v hz=$HZ '
			$6 < 5e7 { n += $5; ns += $4 }
			END { print n / hz, ns / 1e9, n }' "$T/$name.ends")
		close_to "$name, lives of less than 50 ms" "$taken" "$due" "$count"
	fi
	# The coverage of each line equals it.
	is "$name: the coverage of each is its samples by its CPU time" \
		"$(awk -F '\t' -v hz=$HZ '{
			c = $5 / hz / ($4 / 1e9)
			if (c - $8 > 1e-4 * c || $8 - c > 1e-4 * c) print
		}' "$T/$name.ends" | wc -l)" 0
	# --- by the profile and wait4 ---
	awk -F '\t' 'NR == FNR { in_it[$1] = 1; next } $8 in in_it' \
		"$T/$name.ends" "$T/samples" >"$T/$name.samples"
	is "$name: each process has as many samples in profile and ledger" \
		"$(awk -F '\t' 'NR == FNR { n[$8] += $1; next }
			n[$1] + 0 != $5 { print $1, n[$1] + 0, $5 }' \
			"$T/$name.samples" "$T/$name.ends" | head -n 5)" ""
	due=$(awk '$1 == "wall" { print $4 }' "$T/$name.said")
	taken=$(awk -F '\t' '{ ns += $2 } END { print ns / 1e9 }' \
		"$T/$name.samples")
	close_to "$name, profile and wait4" "$taken" "$due" \
		"$(total "$T/$name.samples")"
done
plan
