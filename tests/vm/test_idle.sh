#!/bin/sh
# profd on an idle host: how often its threads and helpers wake up. The emulated CPUs are
# slow, so profd is in its own samples, whose names it reads: a fast host has fewer. A
# timer of ten times a second is above the limit.
# PROFD_SOURCE=perf: without BPF there is such a timer.
. /tests/lib.sh
limit=800
$whole || limit=2000

# wakeups: of all tasks of profd so far, a line each: "PID/task/TID NAME COUNT"
wakeups() {
	for dir in /proc/[0-9]*/task/*; do
		read -r name <"$dir/comm" || continue
		case $name in
		profd* | symbolize-* | maps-reader*) ;;
		*) continue ;;
		esac
		echo "${dir#/proc/} $name $(sed -n \
			's/^voluntary_ctxt_switches:\t//p' "$dir/status")"
	done 2>/dev/null
}

/tests/profd run --archive "$T/archive" --window 60 --freq $HZ --listen "unix:$T/sock" \
	--source "$source" >"$T/log" 2>&1 &
profd=$!
until_ok 240 status
result $? "profd starts"
# Tables and names of what runs are read, and workers without work have ended.
sleep 20
wakeups >"$T/before"
sleep 40
wakeups >"$T/after"
awk '	NR == FNR { n[$1] = $3; next }
	{ new = $3 - n[$1]; sum += new; if (new) print $1, $2, new }
	END { printf "%d\n", sum / 40 * 100 }' "$T/before" "$T/after" >"$T/rate"
diag "$(cat "$T/rate")"
num "wake-ups in 100 s" "$(tail -n 1 "$T/rate")" -le $limit
kill -TERM "$profd"
wait "$profd"
result $? "profd ends well"
diag "$(grep samples "$T/log")"
echo "1..$n"
