#!/bin/bash
# A disk that fails, for the archive or for its catalog, in each call that profd and
# SQLite make; then certain calls at random. profd lives, says what is wrong in
# /healthz, /status and /metrics, and when the fault has passed it goes on: each window
# on disk is whole and has its rows. Then the catalog is deleted while profd
# runs, and damaged while it does not. FAULT_ROUNDS=300 makes the random part long.
. "$(dirname "$0")/lib.sh"
rounds=${FAULT_ROUNDS:-3}
seed=${FAULT_SEED:-$RANDOM}
diag "FAULT_SEED=$seed"
RANDOM=$seed
real=$PROFD
printf '#!/bin/sh\nexport ASAN_OPTIONS=verify_asan_link_order=0\nexec env LD_PRELOAD="%s" FAULT_DIR="%s" FAULT_RULE="%s" "%s" "$@"\n' \
	"$E2E/libfault.so" "$T/disk.archive" "$T/rule" "$real" >"$T/profd"
chmod +x "$T/profd"
PROFD=$T/profd
rule() { echo "$*" >"$T/rule.new" && mv "$T/rule.new" "$T/rule"; }
ends() { rm -f "$T/rule"; }
health() { curl -sS --max-time 10 "$url/healthz"; }
reads() { sqlite3 -batch "file:$archive/catalog.sqlite?mode=ro" "$1"; }
says() { [[ $(health) =~ $1 ]]; }
more() { (($(metric "$1") > $2)); }
well() {
	[[ ! $(health) =~ archive|catalog ]] &&
		(($(metric profd_reporter_windows_written_total) > written)) &&
		(($(metric profd_reporter_catalog_stopped) == 0))
}

# fault NAME HEALTH RULE...: the reason is given while the fault lasts, not afterwards.
fault() {
	local name=$1 want=$2
	shift 2
	rule "$@"
	check "$name: /healthz says so" wait_for 60 says "$want"
	like "$name: /status, too" "$(ask /status | grep ^health:)" "$want"
	recovers "$name"
}
recovers() {
	ends
	written=$(metric profd_reporter_windows_written_total)
	check "$1: it goes on when that has passed" wait_for 60 well
}

# A tenth of a CPU, so that each window has samples.
background nice -n -20 "$E2E/prog_spin_a" 600000 naps 90 >/dev/null
start_profd disk --window 1
check "a window is written" wait_for 60 more profd_reporter_windows_written_total 0

no_space='No space left on device'
fault "no space" "archive .*$no_space.*catalog .*$no_space" \
	write ENOSPC 0 100000 '*'
is "no space: it was counted" \
	"$(($(metric profd_reporter_windows_failed_total) > 0 &&
	$(metric profd_reporter_catalog_failed_total) > 0))" 1
fault "no new file" "archive .*$no_space" open ENOSPC 0 100000 '*/.'
fault "a window is not on disk" 'archive [^;]*Input/output error' \
	sync EIO 0 100000 '*/#*'
fault "a window gets no temporary name" 'archive [^;]*Input/output error' \
	link EIO 0 100000 '*.pb.gz.*.tmp'
fault "a window gets no name" 'archive [^;]*Input/output error' \
	rename EIO 0 100000 '*.pb.gz'
n=$(metric profd_reporter_windows_failed_total)
fault "the catalog fails" 'catalog [^;]*Input/output error' \
	write EIO 0 100000 '*/catalog*'
fault "the catalog has no space" "catalog [^;]*$no_space" \
	write ENOSPC 0 100000 '*/catalog*'
is "... and windows are written all the same" \
	"$(metric profd_reporter_windows_failed_total)" "$n"
n=$(metric profd_reporter_times_failed_total)
rule link EIO 0 100000 '*.times.zst.*'
check "a side file fails: counted" wait_for 60 more profd_reporter_times_failed_total "$n"
recovers "a side file fails"
n=$(metric profd_reporter_windows_failed_total)
rule write SHORT 0 100000 '*'
written=$(metric profd_reporter_windows_written_total)
check "short writes: windows and rows are written" wait_for 60 well
is "... and none fails" "$(metric profd_reporter_windows_failed_total)" "$n"
recovers "short writes"

# --- certain calls at random ---
operations=(write open sync link rename truncate write,sync,rename
	open,write,sync,link,rename,truncate)
errors=(ENOSPC EIO SHORT)
patterns=('*' '*/catalog*' '*.pb.gz*' '*-wal' '*.times.zst*' '*/#*')
for ((i = 0; i < rounds; i++)); do
	what="${operations[RANDOM % 8]} ${errors[RANDOM % 3]} $((RANDOM % 12)) $((1 + RANDOM % 6))"
	rule "$what" "${patterns[RANDOM % 6]}"
	cp "$T/rule" "$T/what"
	sleep 1.2
	ends
	written=$(metric profd_reporter_windows_written_total)
	wait_for 60 well || break
done
[[ $i == "$rounds" ]]
result $? "$rounds faults at random: it goes on after each" ||
	diag "$(cat "$T/what")"$'\n'"$(health)"$'\n'"$(tail -n 5 "$log")"
diag "$(wc -l <"$T/rule.log") faults: $(cut -d' ' -f 1 "$T/rule.log" | sort | uniq -c |
	tr '\n' ' ')"

# --- the catalog is deleted while profd runs, and damaged while it does not ---
agrees() {
	[[ $(reads "SELECT file FROM window ORDER BY file") == \
		$(cd "$archive" && ls -d 20*/*.pb.gz) ]]
}
check "each window has its row, no row is without one" wait_for 60 agrees
is "the catalog is sound" "$(reads 'PRAGMA integrity_check')" ok
is "nothing was set aside" "$(metric profd_reporter_catalog_set_aside_total)" 0
rm "$archive"/catalog.sqlite*
check "a deleted catalog is made again" wait_for 60 agrees
stop_profd KILL 2>/dev/null
# With an intact log SQLite would repair it.
head -c 200000 /dev/urandom | tee "$archive/catalog.sqlite" \
	>"$archive/catalog.sqlite-wal"
start_profd disk --window 1
check "a damaged catalog is made again" wait_for 60 agrees
is "the damaged one was set aside" "$(metric profd_reporter_catalog_set_aside_total)" 1
stop_profd
is "profd ends with 0" $? 0
is "nothing half is left" "$(find "$archive" -name '*.tmp')" ""
mapfile -t files < <(find "$archive" -name '*.pb.gz' | sort)
for f in "${files[@]}"; do
	[[ ! -e ${f%.pb.gz}.times.zst ]] || echo "$f"
done >"$T/timed"
check "all windows are whole" gzip -tq "${files[@]}"
mapfile -t files <"$T/timed"
check "... and agree with their side files" "$E2E_SRC/times_check.py" "${files[@]}"
plan
