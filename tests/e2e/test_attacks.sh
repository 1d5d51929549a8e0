#!/bin/bash
# All attacks of local users at once, by two users, beside a third user who builds C
# files and runs programs in Python, Go and C. The profile of the third user is as good
# as without attacks: samples for the CPU time, complete stacks with names. profd stays
# within its memory limit, and reports which user was limited in what.
#
# ATTACK_SECONDS=300 is the intended length; 12 is the default. The bounds on samples
# allow for fewer of them: five standard deviations.
# ATTACKS="maps deep" runs only these.
. "$(dirname "$0")/lib.sh"
seconds=${ATTACK_SECONDS:-12} HZ=499
attacks=${ATTACKS:-maps moves paths names forks holes deep dirs slow tricks new \
	history connections hung}
one=65534 other=65533 victim=65532
PYTHON=/usr/bin/python3
chmod 755 "$T"
mkdir "$T/$one" "$T/$other" "$T/$victim" "$T/mnt" "$T/tools"
cp "$E2E_SRC/hold.py" "$T/tools"

# Attackers are process groups; one of the attacks forks as fast as it can.
groups=()
end_attack() {
	local pid
	for pid in "${groups[@]}"; do
		kill -KILL -- "-$pid"
	done
	groups=()
} 2>/dev/null
trap 'end_attack; cleanup' EXIT

# attack UID COMMAND...: in the directory of the user. Not in a session of its own,
# which would get as much CPU time as all others together (sched_autogroup).
attack() {
	local uid=$1
	shift
	set -m
	(cd "$T/$uid" && exec setpriv --reuid "$uid" --regid "$uid" \
		--clear-groups "$@") >/dev/null 2>&1 &
	set +m
	groups+=("$!")
	disown
}

# --- the attacks ---
awk -v n=40 -f "$E2E_SRC/slow_names.awk" >"$T/slow.c"
gcc -O1 -Wl,--build-id=none -o "$T/tools/slow" "$T/slow.c" ||
	bail "the hostile program is built"
# Its names are in twenty files, each of which is another at every turn.
cat >"$T/tools/slow.sh" <<'END'
while :; do
	for i in {1..20}; do
		{ cat "$1"; echo "$i $RANDOM"; } >"slow$i.new"
		chmod 755 "slow$i.new"
		mv -f "slow$i.new" "slow$i"
		"./slow$i"
	done
done
END
cat >"$T/tools/tricks.sh" <<'END'
for ((i = 0; ; i++)); do
	cp "$1" "x$i"
	case $((i % 3)) in
	0) to=/proc/kmsg ;;
	1) to=/etc/shadow ;;
	2) to=$2 ;;
	esac
	ln -s "$to" "link$i"
	"./x$i" $((i % 3 ? 5 : 60)) >/dev/null &
	mv -T "link$i" "x$i"
	wait
	rm -f "x$i"
done
END
cat >"$T/tools/again" <<'END'
n=$1 long=$2
if [ "$n" -gt 0 ]; then
	exec sh "$0" $((n - 1)) "$$.$n.${long#*.*.}"
fi
exec sleep 1000
END
cat >"$T/tools/history.sh" <<'END'
long=0.0.$(head -c 100000 /dev/zero | tr "\0" x)
for ((i = 0; i < 60; i++)); do
	sh "$1" 18 "$long" &
	sleep 0.1
done
wait
END
cat >"$T/tools/hung.sh" <<'END'
for ((i = 0; ; i++)); do
	"$1/x$i" 100 >/dev/null
done
END
mkfifo -m 666 "$T/tools/fifo"
chmod -R a+rX "$T/tools"
for uid in $one $other $victim; do
	chown "$uid" "$T/$uid"
done

# --- the load of the third user ---
files=40
for ((i = 0; i < files; i++)); do
	printf '#include <stdio.h>\nint f%d(int n) { return printf("%%d", n); }\n' \
		"$i" >"$T/$victim/f$i.c"
done
cat >"$T/$victim/loop.py" <<'END'
import sys, time
def inner(n):
    return sum(i * i for i in range(n))
def outer(until):
    while time.process_time() < until:
        inner(1000)
outer(float(sys.argv[1]))
END
# New executables, compiled as they are run; each run takes some 0.3 s of CPU time.
cat >"$T/tools/victim.sh" <<'END'
cd "$1" || exit 1
end=$((SECONDS + $2)) i=0
build() {
	for ((i = 0; SECONDS < end; i++)); do
		gcc -O1 -c -o "f$i.o" "f$((i % $2)).c"
		rm -f "f$i.o"
	done
}
run() {
	for ((i = 0; SECONDS < end; i++)); do
		cp "$1" "new$i"
		"./new$i" 300 >/dev/null
		rm "new$i"
		cp "$2" "go$i"
		"./go$i" 300 >/dev/null
		rm "go$i"
		"$3" loop.py 0.3
	done
}
build "$1" "$3" &
run "$4" "$5" "$6" &
wait
END
chown -R "$victim" "$T/$victim"
cp "$E2E/load_spawn" "$E2E/prog_spin_new" "$E2E/stacks/go_plain" "$E2E/prog_new" \
	"$E2E/prog_storm" "$T/tools"

# --- start of the attacks ---
start_profd attacks --window 60 --freq $HZ
chmod 666 "$sock"
background nice -n -20 "$PROFD" events -f --json --server "unix:$sock" >"$T/events" \
	2>"$T/events.err"
events=$pid
follows() { /bin/true && test -s "$T/events"; }
wait_for 60 follows

storm() {
	attack "$1" "$T/tools/prog_storm" "$2"
}
declare -A who=(
	[maps]=$one [moves]=$other [paths]=$other [names]=$one [forks]=$one
	[holes]=$other [deep]=$other [dirs]=$one
)
for name in $attacks; do
	case $name in
	slow) attack $one bash "$T/tools/slow.sh" "$T/tools/slow" ;;
	tricks)
		attack $other bash "$T/tools/tricks.sh" "$T/tools/prog_spin_new" \
			"$T/tools/fifo"
		;;
	new) attack $other "$T/tools/prog_new" 100 1000 5 "$T/$other" ;;
	history) attack $one bash "$T/tools/history.sh" "$T/tools/again" ;;
	connections)
		attack $other "$PYTHON" "$T/tools/hold.py" "127.0.0.1:$port" \
			flag 1000
		;;
	hung)
		# Mounted by root, like the mount of a dead server.
		mounted+=("$T/mnt")
		background "$E2E/prog_fuse" "$T/mnt" "$E2E/prog_spin_a" \
			>"$T/fuse.log"
		fuse=$pid
		wait_for 20 grep -q mounted "$T/fuse.log" ||
			bail "mounted" "$(cat "$T/fuse.log")"
		attack $one bash "$T/tools/hung.sh" "$T/mnt"
		;;
	*) storm "${who[$name]}" "$name" ;;
	esac
done
sleep 1

# memory: Pss of profd and of the processes that read and open files for it, without
# rings, in KiB: in all, and of each.
memory() {
	local p
	for p in "$profd" $(pgrep -P "$profd"); do
		sed "s/^Pss:/Pss: $(cat "/proc/$p/comm")/" "/proc/$p/smaps"
	done 2>/dev/null | awk '
		/^[0-9a-f]+-[0-9a-f]+ / { ring = /bpf-map|bpf_map|\[perf_event\]/ }
		/^Pss:/ && !ring { kb += $3; of[$2] += $3 }
		END {
			printf "%d", kb
			for (comm in of)
				printf " %s=%d", comm, of[comm]
		}'
}
watch_memory() {
	while :; do
		echo "$(curl -sS -o /dev/null -w '%{http_code}' --max-time 5 \
			--unix-socket "$sock" http://profd/healthz) $(memory)"
		sleep 2
	done
}
background nice -n -19 bash -c "$(declare -f memory watch_memory)
	profd=$profd sock=$sock; watch_memory" >"$T/memory" 2>/dev/null
watcher=$pid

# There are some thirty attackers on two CPUs: the third user has a higher priority,
# so that there are enough samples of that user and the programs end.
before=$(cpu_ns "$profd")
nice -n -15 setpriv --reuid $victim --regid $victim --clear-groups \
	"$T/tools/load_spawn" 1 /bin/bash "$T/tools/victim.sh" "$T/$victim" \
	"$seconds" $files "$T/tools/prog_spin_new" "$T/tools/go_plain" $PYTHON \
	>"$T/said" 2>"$T/said.err" &
spawn=$!
wait $spawn
is "the third user's work is done" $? 0 || diag "$(cat "$T/said.err")"
used=$(percent $(($(cpu_ns "$profd") - before)) $((seconds * 1000000000)))
"$PROFD" status --server "unix:$sock" >"$T/status" 2>"$T/status.err"
is "status answers" $? 0 || diag "$(cat "$T/status.err")"
ask /metrics >"$T/metrics"
end_attack
{
	kill -KILL "$watcher" ${fuse:+"$fuse"}
	wait "$watcher" ${fuse:+"$fuse"}
} 2>/dev/null

ends_come "$T/events"
ended() { grep -F '"events":["end"]' "$T/events" | grep -q "\"process.pid\":$spawn,"; }
check "the end of his work has come" wait_for 60 ended
kill -INT "$events"
wait "$events"
stop_profd
is "profd ends well" $? 0
for f in "$archive"/*/*.pb*; do
	samples "$f"
done >"$T/samples"

# --- the samples of the third user ---
# PROCESS PARENT PID of all ended processes
grep -F '"events":["end"' "$T/events" |
	jq -r '[."profd.process", ."profd.parent" // "", ."process.pid"] | @tsv' >"$T/ends"
# Descendants of load_spawn.
awk -F '\t' -v pid=$spawn '
	{ parent[$1] = $2; if ($3 == pid) root = $1 }
	END {
		for (p in parent) {
			for (q = parent[p]; q in parent && q != root;)
				q = parent[q]
			if (q == root && root != "")
				print p
		}
	}' "$T/ends" >"$T/his"
awk -F '\t' 'NR == FNR { in_it[$1] = 1; next } $8 in in_it' "$T/his" "$T/samples" \
	>"$T/his.samples"
due=$(awk '$1 == "wall" { print $4 }' "$T/said")
n=$(total "$T/his.samples")
taken=$(awk -F '\t' '{ ns += $2 } END { print ns / 1e9 }' "$T/his.samples")
off=$(awk -v t="$taken" -v d="${due:-0}" 'BEGIN { print d ? 100 * (t / d - 1) : 100 }')
diag "$(wc -l <"$T/his") processes of his: $taken s by $n samples, ${due:-no} s by" \
	"the kernel, $off %"
num "there are samples enough" "$n" '>=' $((seconds * 40))
num "his samples are his CPU time" \
	"$(awk -v o="$off" -v n="$n" 'BEGIN {
		print (o < 0 ? -o : o) - 500 / sqrt(n + !n) }')" '<=' 3

# Frames may lack a name only in files without symbols, not in the programs above.
awk -F '\t' '{
	n = split($10, f, ";")
	sub(/@[^@]*$/, "", f[n])
	none = f[n] ~ /^\[(exec|no user stack)\]$/
	own = $10 ~ /(^|;)((new|go)[0-9]+)\+0x/
	kind = none ? "none" : f[n] ~ /^\[.*\]$/ ? f[n] : own ? "unnamed" : "good"
	sum[kind] += $1
}
END { for (k in sum) print k "\t" sum[k] }' "$T/his.samples" | sort -t $'\t' -k 2,2nr \
	>"$T/kinds"
good=$(awk -F '\t' '$1 == "good" { print $2 }' "$T/kinds")
all=$(awk -F '\t' '$1 != "none" { n += $2 } END { print n + 0 }' "$T/kinds")
diag "$(percent "${good:-0}" "$all") % of $all stacks are whole and named:" \
	"$(tr '\t\n' ' ,' <"$T/kinds")"
check "95 % of his stacks are whole and named" fine "${good:-0}" "$all" 95

# --- profd itself ---
cut -d ' ' -f 2- "$T/memory" | sort -n >"$T/memory.sorted"
looks=$(wc -l <"$T/memory.sorted")
read -r median _ < <(sed -n "$((looks / 2 + 1))p" "$T/memory.sorted")
read -r peak each < <(tail -n 1 "$T/memory.sorted")
diag "Pss without rings: $((median / 1024)) MiB, at most $((peak / 1024)) MiB" \
	"($each); $used % of a CPU"
diag "$(grep -E '^profd_(sideband_(lost|rings)|lifecycle_(lost|limited)|sampler_(ring_full|deep_limited)|pump_full|pump_waiting_bytes_max|pm_early_(refused|failed)|reread|symbolize_(undem|open|worker_hung|put))' \
	"$T/metrics" | grep -v ' 0$')"
num "its memory was looked at" "$looks" '>=' $((seconds / 4))
# This includes six hundred executables, two workers, three openers, the catalog, and
# samples that wait for a CPU while others use it: the longer the host lets them wait, the
# more it is. What each part may hold is below.
num "its memory is 96 MiB at most" "$median" '<=' $((96 * 1024))
num "... and never 32 MiB more" "$peak" '<=' $((128 * 1024))
while read -r mib name; do
	num "$name: at most $mib MiB" "$(awk -v name="profd_$name" '
		$1 == name { print $2 }' "$T/metrics")" '<=' $((mib << 20))
done <<'END'
32 trace_tables_bytes
8 trace_waiting_bytes
40 pump_waiting_bytes_max
32 pm_text_bytes
16 symbolize_index_bytes
END
is "it is well, or degraded, all the time" \
	"$(cut -d ' ' -f 1 "$T/memory" | sort -u)" 200

# --- which users were limited ---
# limited UID WHAT
limited() {
	check "status: uid $1 was limited in $2" \
		grep -E "^limited +uid $1, $2, [1-9][0-9]* times" "$T/status"
}
diag "$(grep ^limited "$T/status")"
for name in $attacks; do
	case $name in
	maps | dirs | deep | tricks | new | history | paths | forks) ;;
	moves) limited $other "mapping records" ;;
	holes) limited $other "time to re-read mappings" ;;
	names) limited $one "changes of a process's name" ;;
	slow) limited $one "time to demangle names" ;;
	connections) limited $other "connections over HTTP" ;;
	hung) limited $one "openings that hang" ;;
	esac
done
# While the sum of all mappings is over the limit, a process has 64 records a second,
# and may share its slot of a table with another process.
is "the third user is limited in nothing else" \
	"$(grep "^limited.*uid $victim" "$T/status" | grep -v 'mapping records')" ""
plan
