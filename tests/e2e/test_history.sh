#!/bin/bash
# Processes of a user exec again and again, with long arguments: what profd keeps about
# them has a limit, and so have its answers; data about other processes is complete.
. "$(dirname "$0")/lib.sh"
processes=150
attacker=(setpriv --reuid 65534 --regid 65534 --clear-groups)

chmod 755 "$T"
cat >"$T/again" <<'END'
n=$1 long=$2
if [ "$n" -gt 0 ]; then
	exec sh "$0" $((n - 1)) "$$.$n.${long#*.*.}"
fi
exec sleep 120
END
start_profd history --window 3600
before=$(metric profd_heap_bytes)
background "${attacker[@]}" sh -c '
	long=0.0.$(head -c 100000 /dev/zero | tr "\0" x)
	i=0
	while [ $i -lt "$2" ]; do
		sh "$1" 17 "$long" &
		i=$((i + 1))
		[ $((i % 10)) != 0 ] || sleep 0.1
	done
	wait' sh "$T/again" "$processes"
others() {
	(($(pgrep -u 65534 -c -x sleep) >= processes))
}
check "the processes are there" wait_for 60 others
background sleep 77.125
mine=$pid
sleep 1

ask /processes >"$T/processes"
num "they are all told of" "$(grep -c '"uid":65534' "$T/processes")" '>=' \
	"$processes"
longest=$(awk '{ if (length($0) > n) n = length($0) } END { print n }' \
	"$T/processes")
diag "$(wc -c <"$T/processes") bytes, the longest line has $longest"
num "no line is longer than 32 KiB" "$longest" '<=' 32768
num "and the answer is bounded so" "$(wc -c <"$T/processes")" '<=' \
	$((32768 * $(wc -l <"$T/processes")))
is "each has its images" "$(jq -c 'select(.uid == 65534 and .comm == "sleep") |
	.images | length' "$T/processes" | sort -u)" 16
is "what is left out is marked" "$(jq -c 'select(.uid == 65534 and .comm == "sleep") |
	.images[3].args_cut' "$T/processes" | sort -u)" true
is "others' arguments are whole" "$(jq -c "select(.pid == $mine) |
	[.args, .args_cut]" "$T/processes")" '[["sleep","77.125"],null]'
num "what is remembered is bounded" "$(metric profd_pm_text_bytes)" '<=' \
	$((processes * 24 * 1024))
after=$(metric profd_heap_bytes)
diag "$before bytes of memory before, $after now"
ask /api/events >"$T/events"
num "no event is longer than 32 KiB" "$(awk '{ if (length($0) > n) n = length($0) }
	END { print n }' "$T/events")" '<=' 32768

# Requested without a pause, the table leaves time for other work.
: >"$T/go"
askers=()
for i in 1 2 3; do
	while [[ -e $T/go ]]; do
		ask /processes >/dev/null
	done &
	askers+=("$!")
done
slowest=$(for ((i = 0; i < 12; i++)); do
	nice -n -20 curl -sS --max-time 10 -o /dev/null -w '%{time_total}\n' \
		"$url/healthz"
	sleep 0.1
done | sort -n | tail -n 1)
rm "$T/go"
wait "${askers[@]}"
diag "the slowest of 12 answers of /healthz beside it took $slowest s"
num "/healthz is answered beside it" "$slowest" '<=' 2
stop_profd
is "profd ends with 0" $? 0
plan
