#!/bin/bash
# A thousand short processes: every fork, exec and exit is seen, in order, and every
# sample taken meanwhile belongs to an image.
. "$(dirname "$0")/lib.sh"
cat >"$T/loop" <<'END'
#!/bin/sh
echo "shell $$"
i=0
while [ $i -lt 1000 ]; do
	/bin/true
	i=$((i + 1))
done
times
END
chmod +x "$T/loop"

counters='forks execs exits reaps unknown gaps'
read_counters() {
	local c
	for c in $counters; do
		metric "profd_pm_${c}_total"
	done | paste -sd ' '
	metric profd_lifecycle_lost_total
}

start_profd lives --window 3600
# A process that ended between attaching and the scan is unknown, which is correct.
sleep 0.5
read_counters >"$T/before"
# quark-mon is an independent witness: events of libquark, a few lines each.
background "$B/quark-mon" -n >"$T/mon" 2>"$T/mon.err"
mon=$pid
background "$PROFD" events -f --json --server "unix:$sock" >"$T/events"
events=$pid
wait_for 60 test -s "$T/mon"
follows() { /bin/true && test -s "$T/events"; }
wait_for 60 follows
record "$T/loop.pb.gz" -F 997 -- "$T/loop"
is "recorded" $? 0
# Events come in the order of time: after the end of the shell all of them are there.
# Reaps are callbacks of the kernel, some milliseconds later, or more.
shell=$(awk '$1 == "shell" { print $2 }' "$T/loop.pb.gz.log")
check "quark-mon saw the end" wait_for 60 grep -q "^->$shell (.*EXIT" "$T/mon"
reaped() {
	(($(metric profd_pm_reaps_total) >= $(awk 'NR == 1 { print $4 }' \
		"$T/before") + 1000))
}
wait_for 60 reaped
ends_come "$T/events"
read_counters >"$T/after"
kill -INT "$mon" "$events"
wait "$mon" "$events"
seen=$(paste -d ' ' "$T/before" "$T/after" | awk '
	NR == 1 { for (i = 1; i <= 6; i++) printf "%d ", $(i + 6) - $i }
	NR == 2 { print $2 - $1 }')
read -r forks execs exits reaps unknown gaps lost <<<"$seen"
diag "forks execs exits reaps unknown gaps lost: $seen"
num "a thousand forks" "$forks" '>=' 1000
num "a thousand execs" "$execs" '>=' 1000
num "a thousand exits" "$exits" '>=' 1000
num "a thousand reaps" "$reaps" '>=' 1000
# PROCESS: of the children of the shell, by the first event.
firsts=$(grep -F "\"process.parent_pid\":$shell," "$T/events" | awk '
	match($0, /"profd.process":"[^"]*"/) {
		process = substr($0, RSTART, RLENGTH)
		if (!seen[process]++ && match($0, /"events":\["[a-z]*"/))
			n[substr($0, RSTART + 11, RLENGTH - 12)]++
	}
	END {
		for (first in n)
			print n[first], first
	}')
is "each of a thousand lives begins with its fork" "$firsts" "1000 fork"
is "no gaps" "$gaps" 0
is "nothing lost" "$lost" 0
stop_profd

# --- the children of the shell in the output of quark-mon ---
awk -v shell="$shell" '
	function end_of_event() {
		if (ppid == shell)
			life[id] = life[id] kind " "
		if (ppid == shell && kind ~ /EXEC/ && exe == "/usr/bin/true")
			life[id] = life[id] "true "
		if (time < last && kind != "")
			backwards++
		if (kind != "")
			last = time
		ppid = exe = ""
	}
	/^->/ {
		end_of_event()
		kind = $2
		gsub(/[()]/, "", kind)
		gsub(/[+]/, " ", kind)
	}
	$1 == "TIME" { time = $2 }
	$1 == "PROC" { ppid = substr($2, 6) }
	$1 == "ID" { id = $2 }
	$1 == "EXE" { exe = $2 }
	END {
		end_of_event()
		for (id in life) {
			sub(/EXIT REAP $/, "EXIT ", life[id])
			n[life[id]]++
		}
		for (l in n)
			print n[l], l
		print "backwards", backwards + 0
	}' "$T/mon" | sort -rn >"$T/lives"
diag "$(head -n 5 "$T/lives")"
is "quark-mon: a thousand lives, each in order" "$(head -n 1 "$T/lives")" \
	"1000 FORK EXEC true EXIT "
is "quark-mon: no other kind of life" "$(wc -l <"$T/lives")" 2
is "quark-mon: time never goes backwards" "$(tail -n 1 "$T/lives")" \
	"backwards 0"
like "quark-mon: nothing lost" "$(cat "$T/mon.err")" ' lost 0 '

# --- every sample of the run ---
check_profile "$T/loop.pb.gz"
samples "$T/loop.pb.gz" >"$T/all"
taken=$(total "$T/all")
is "every sample has an image, of a process, with a name" \
	"$(awk -F '\t' '$9 !~ /^[0-9]+-[0-9a-f]+-[0-9]+$/ || $7 == "" ||
		index($9, $8 "-") != 1 || index($8, $3 "-") != 1' "$T/all" |
		wc -l)" 0
is "the images are those of the run" \
	"$(cut -f 7 "$T/all" | sed 's,.*/,,' |
		grep -cvE '^(dash|bash|sh|true|profd|loop)$')" 0
num "many processes were sampled, each as its own" \
	"$(awk -F '\t' '$7 ~ /true$/ { print $8 }' "$T/all" | sort -u | wc -l)" \
	'>=' 10
# times(1) prints the CPU time of the shell and of its children, user and system:
# 0m1.23s. Expected is that time at 997 Hz, some 600 samples, give or take the error of
# the ticks in these values, and five standard deviations of independent draws. A
# profiler that drops samples of unknown processes keeps a third for such a load.
due=$(awk '/^[0-9]+m[0-9.]+s [0-9]+m[0-9.]+s$/ {
	for (i = 1; i <= 2; i++) {
		split($i, part, "m")
		s += part[1] * 60 + part[2]
	}
} END { printf "%.0f\n", s * 997 }' "$T/loop.pb.gz.log")
diag "$taken samples, $due due by the kernel's accounting"
num "the shell and its children used CPU time" "$due" '>=' 200
num "the samples account for it" "$(awk -v n="$taken" -v due="$due" \
	'BEGIN { print n + 5 * sqrt(due) }')" '>=' $((due * 9 / 10))
plan
