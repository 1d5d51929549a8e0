#!/bin/bash
# A user executes files that take next to nothing on disk, and much to read: a new one
# each 0.3 s. Another user's profile is as good as in the same time without them, no file
# of his or of the host is quarantined, and they cost profd a part of a CPU.
#
# BOMBS_SECONDS=60 for a longer attack.
. "$(dirname "$0")/lib.sh"
seconds=${BOMBS_SECONDS:-6} HZ=499
one=65534 victim=65532
PYTHON=/usr/bin/python3
chmod 755 "$T"
mkdir "$T/$one" "$T/$victim" "$T/tools"

cat >"$T/bomb.c" <<'END'
#include <time.h>
static __attribute__((noinline)) int spin(int n) { return n * 7 + 1; }
int main(void)
{
	volatile int n = 0;
	while (clock() < CLOCKS_PER_SEC / 10)
		n = spin(n);
	return 0;
}
END
gcc -g -gz=none -O1 -o "$T/bomb" "$T/bomb.c" &&
	$PYTHON "$E2E_SRC/bombs.py" strings "$T/bomb" "$T/tools/strings" &&
	$PYTHON "$E2E_SRC/bombs.py" link "$T/bomb" "$T/tools/link" $((1 << 40)) ||
	bail "the bombs are built"
num "a bomb takes little on disk, in KiB" \
	"$(du -k "$T/tools/strings" | cut -f 1)" '<=' 128
cat >"$T/tools/bombs.sh" <<'END'
cp --sparse=always "$1/link.debug" link.debug
for ((i = 0; ; i++)); do
	for kind in strings link; do
		cp --sparse=always "$1/$kind" "$kind$i"
		"./$kind$i"
		rm "$kind$i"
	done
	sleep 0.1
done
END
cat >"$T/$victim/loop.py" <<'END'
import sys, time
def inner(n):
    return sum(i * i for i in range(n))
while time.process_time() < float(sys.argv[1]):
    inner(1000)
END
cat >"$T/tools/victim.sh" <<'END'
cd "$1" || exit 1
for ((i = 0, end = SECONDS + $2; SECONDS < end; i++)); do
	cp "$3" "new$i"
	"./new$i" 100 >/dev/null
	rm "new$i"
	"$4" loop.py 0.2
done
END
cp "$E2E/load_spawn" "$E2E/prog_spin_new" "$T/tools"
chmod -R a+rX "$T/tools"
chown -R $one "$T/$one"
chown -R $victim "$T/$victim"

start_profd bombs --window 60 --freq $HZ
chmod 666 "$sock"
background nice -n -20 "$PROFD" events -f --json --server "unix:$sock" \
	>"$T/events" 2>/dev/null
events=$pid
follows() { /bin/true && test -s "$T/events"; }
wait_for 60 follows

# his NAME: his work; its process is $spawn_NAME.
his() {
	nice -n -15 setpriv --reuid $victim --regid $victim --clear-groups \
		"$T/tools/load_spawn" 1 /bin/bash "$T/tools/victim.sh" \
		"$T/$victim" "$seconds" "$T/tools/prog_spin_new" $PYTHON \
		>"$T/$1.said" 2>&1 &
	eval "spawn_$1=$!"
	wait $!
	is "his work is done: $1" $? 0
}
# Milliseconds of CPU time of profd's helpers.
helpers() {
	ask /metrics | awk '$1 == "profd_helper_cpu_seconds_total" {
		printf "%d", 1000 * $2 }'
}

his before
h0=$(helpers)
set -m
(cd "$T/$one" && exec setpriv --reuid $one --regid $one --clear-groups \
	bash "$T/tools/bombs.sh" "$T/tools") >/dev/null 2>&1 &
bombs=$!
set +m
disown
sleep 1
begin=$EPOCHREALTIME
his beside
cost=$(awk -v a="$h0" -v b="$(helpers)" -v t="${EPOCHREALTIME/,/.}" -v f="${begin/,/.}" \
	'BEGIN { printf "%.1f", (b - a) / 10 / (t - f + 1) }')
kill -KILL -- "-$bombs"
"$PROFD" status --server "unix:$sock" >"$T/status"
"$PROFD" status --json --server "unix:$sock" >"$T/status.json"
ask /metrics >"$T/metrics"
ends_come "$T/events"
ended() { /bin/true; for p in $spawn_before $spawn_beside; do
	grep -F '"events":["end"]' "$T/events" | grep -q "\"process.pid\":$p," || return 1
done; }
check "the end of his work has come" wait_for 60 ended
kill -INT "$events"
wait "$events"
stop_profd
is "profd ends well" $? 0
for f in "$archive"/*/*.pb*; do
	samples "$f"
done >"$T/samples"
grep -F '"events":["end"' "$T/events" |
	jq -r '[."profd.process", ."profd.parent" // "", ."process.pid"] | @tsv' >"$T/ends"

# good PID: sets good and all: samples of its descendants.
good() {
	awk -F '\t' -v pid="$1" '
		{ parent[$1] = $2; if ($3 == pid) root = $1 }
		END {
			for (p in parent) {
				for (q = parent[p]; q in parent && q != root;)
					q = parent[q]
				if (q == root && root != "")
					print p
			}
		}' "$T/ends" >"$T/his"
	read -r good all < <(awk -F '\t' '
		NR == FNR { his[$1] = 1; next }
		!($8 in his) { next }
		{
			n = split($10, f, ";")
			sub(/@[^@]*$/, "", f[n])
			if (f[n] ~ /^\[(exec|no user stack)\]$/)
				next
			all += $1
			if (f[n] !~ /^\[.*\]$/ && $10 !~ /(^|;)new[0-9]+\+0x/)
				good += $1
		}
		END { print good + 0, all + 0 }' "$T/his" "$T/samples")
}
good "$spawn_before"
good_before=$good all_before=$all
good "$spawn_beside"
diag "before: $(percent "$good_before" "$all_before") % of $all_before;" \
	"beside: $(percent "$good" "$all") % of $all; helpers: $cost % of a CPU"
diag "$(grep -E '^(quarantin|limited|CPU time)' "$T/status")"
diag "$(grep -E '^profd_(quarantined|symbolize_(worker|quar|names_w))' "$T/metrics" |
	grep -v ' 0$')"
num "there are samples enough" "$all" '>=' $((seconds * 40))
check "99 % of his stacks are whole and named, as before" fine \
	"$((good * all_before / (good_before + !good_before)))" "$all" 99
is "no file of his, or of the host, is quarantined" \
	"$(jq -r --arg dir "$T/$one/" '.quarantined[]?.path |
		select(startswith($dir) | not)' "$T/status.json")" ""
num "the bombs cost less than half a CPU, in percent" "$cost" '<' 45
plan
