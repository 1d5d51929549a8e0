#!/bin/bash
# The answers of /healthz, /status and /metrics while windows cannot be written, and
# afterwards; and that signals neither lose a window nor close many.
. "$(dirname "$0")/lib.sh"
# A tenth of a CPU, so that each window has samples.
background nice -n -20 "$E2E/prog_spin_a" 600000 naps 90 >/dev/null

code() {
	curl -sS -o "$T/health" -w '%{http_code}' --max-time 60 "$url/healthz"
}
is_code() {
	[[ $(code) == "$1" ]]
}
# becomes NAME CODE [REGEX]: within a few windows of a second.
becomes() {
	check "$1: /healthz becomes $2" wait_for 60 is_code "$2"
	[[ -z ${3:-} ]] || like "$1: it says why" "$(cat "$T/health")" "$3"
}

# --- profd run as a child of timeout(1): two signals at once ---
background timeout 5 "$PROFD" run --archive "$T/twice" --window 3600 \
	--listen "unix:$T/twice.sock" 2>"$T/twice.log"
twice=$pid

# --- an archive that disappears and comes back ---
start_profd health --window 1
becomes "at first" 200
like "it is ok, or says what is missing" "$(cat "$T/health")" \
	'^(ok|degraded: .+)$'
rm -rf "$archive"
check "an archive that was removed is made again" \
	wait_for 60 test -e "$archive/.lock"
becomes "an archive that was removed" 200
# profd may write into the directory while it is removed.
in_its_place() { rm -rf "$archive" 2>/dev/null; : >"$archive"; } 2>/dev/null
check "a file is put in the archive's place" wait_for 60 in_its_place
becomes "a file in the archive's place" 503 "$archive.*Not a directory"
like "/status says so" "$(ask /status)" $'\nhealth: failing: [^\n]*Not a dir'
like "/metrics says so" "$(ask /metrics)" \
	$'\nprofd_health\{state="failing"\} 1'
is "/status?format=json says so" \
	"$(ask '/status?format=json' | jq -r .health.state)" failing
check "profd goes on" kill -0 "$profd"
rm "$archive"
becomes "the way is free again" 200
mkdir "$T/full"
# The catalog has a row of each process of the host.
mount -t tmpfs -o size=64m,mode=755 profd-test "$T/full" && mounted+=("$T/full")
stop_profd

start_profd full --archive "$T/full" --window 1
head -c 64M /dev/zero >"$T/full/ballast" 2>/dev/null
becomes "a full disk" 503 'No space left'
rm "$T/full/ballast"
becomes "room again" 200

# --- formats for programs ---
curl -sS "$url/metrics" >"$T/metrics"
check "promtool accepts /metrics" promtool check metrics <"$T/metrics"
like "process_cpu_seconds_total" "$(cat "$T/metrics")" \
	$'\nprocess_cpu_seconds_total [0-9.]*[1-9]'
for name in process_resident_memory_bytes \
	process_virtual_memory_bytes process_open_fds process_max_fds \
	profd_build_info; do
	num "$name" "$(metric "$name")" '>' 0
done
num "process_open_fds is right" "$(metric process_open_fds)" '<=' \
	"$(find "/proc/$profd/fd" | wc -l)"
num "process_start_time_seconds is right" \
	$(($(date +%s) - $(metric process_start_time_seconds))) '<=' 120
ask '/status?format=json' >"$T/json"
is "/status?format=json: numbers are numbers" \
	"$(jq -r '[.sampling.hz, .since, .coverage, .sampling.samples,
		.losses["samples lost: ring full"], .metrics.profd_pm_exes] |
		map(type) | unique | join(" ")' "$T/json")" number
rm "$sock"
becomes "its socket was removed" 503 "$sock"

# --- signals ---
sock=
url=http://127.0.0.1:$port
kill -KILL "$profd"
wait "$profd" 2>/dev/null
start_profd hups --window 3600
begin=$SECONDS
for ((i = 0; i < 2000; i++)); do
	kill -HUP "$profd"
done
sleep 2
files=$(find "$archive" -name '*.pb.gz' | wc -l)
num "2,000 SIGHUPs: a window a second at most" "$files" '<=' \
	$((SECONDS - begin + 2))
num "one at least" "$files" '>=' 1
# Two signals of one kind may arrive as one; these do not.
kill -TERM "$profd"
kill -INT "$profd"
wait "$profd"
is "a second signal at once loses no window: profd ends with 0" $? 0
empty=0
for f in "$archive"/*/*.pb.gz; do
	samples "$f" >"$T/tsv"
	(($(total "$T/tsv") > 0)) || empty=$((empty + 1))
done
is "none is empty" "$empty" 0
check_profile "$archive"/*/*.pb.gz

wait "$twice"
is "timeout ended it" $? 124
is "two signals at once are one" "$(grep -c 'ended at once' "$T/twice.log")" 0
# A command that takes time to exit is not killed by two signals at once, which count as
# one.
cat >"$T/slow_end" <<-END
	#!/bin/bash
	trap 'sleep 1; echo ended; exit 7' TERM
	echo begun
	while :; do :; done
END
chmod +x "$T/slow_end"
background "$PROFD" record -q -o "$T/twice.pb.gz" -- "$T/slow_end" >"$T/twice.out"
record_twice=$pid
wait_for 60 grep -q begun "$T/twice.out"
kill -TERM "$record_twice"
kill -TERM "$record_twice"
wait "$record_twice"
is "record has the status of its command" $? 7
is "... which ended as it wanted" "$(cat "$T/twice.out")" $'begun\nended'
check_profile "$T/twice"/*/*.pb.gz
samples "$T/twice"/*/*.pb.gz >"$T/tsv"
num "the open window was written" \
	"$(total "$T/tsv" '(^|;)spin_a@')" '>=' 10
plan
