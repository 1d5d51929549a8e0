#!/bin/bash
# The archive: windows at boundaries of the wall clock in directories of days, side files
# that an independent reader compares with their profiles, retention while profd runs,
# a disk without free space, and one that is full in the middle.
. "$(dirname "$0")/lib.sh"

# A tenth of a CPU, so that each window has samples.
background nice -n -20 "$E2E/prog_spin_a" 600000 naps 90 >/dev/null
busy=$pid
written() { (($(metric profd_reporter_windows_written_total) >= $1)); }
is_true() { (($(metric "$1") $2)); }

# --- boundaries, side files ---
start_profd times --window 2 --freq 499
check "windows are written" wait_for 60 written 3
stop_profd
is "profd ends with 0" $? 0
mapfile -t files < <(find "$archive" -name '*.pb.gz' | sort)
num "there are several" "${#files[@]}" '>=' 4

# --- the list of them, without a profd ---
"$PROFD" windows --archive "$archive" --json >"$T/list"
is "profd windows --json: the files, the oldest first" \
	"$(jq -r .file "$T/list")" "$(printf '%s\n' "${files[@]#"$archive"/}")"
is "... with the samples that they have" "$(jq -s 'map(.samples) | add' "$T/list")" \
	"$(for f in "${files[@]}"; do samples "$f"; done | awk '{ n += $1 } END { print n }')"
"$PROFD" windows --archive "$archive" >"$T/table"
is "profd windows: a line each, and a head" "$(wc -l <"$T/table")" $((${#files[@]} + 1))
is "... which ends with the file" "$(awk 'NR > 1 { print $NF }' "$T/table")" \
	"$(jq -r .file "$T/list")"
out=$("$PROFD" windows --archive "$archive" --to 2020-01-01 2>&1)
is "no window: the exit status says so" "$? $out" '1 profd: no window of that time'

odd=0
for f in "${files[@]:1}"; do
	stem=${f##*-????????T????} && ((10#${stem%%Z*} % 2 == 0)) || odd=$((odd + 1))
done
is "all but the first begin at an even second" "$odd" 0
check "each profile and its side file agree" \
	"$E2E_SRC/times_check.py" "${files[@]}"
"$E2E_SRC/times_check.py" "${files[@]}" >"$T/figures"
diag "records, bytes, side file: $(tail -n 2 "$T/figures" | head -n 1)"
num "they have samples" \
	"$(awk '{ n += $1 } END { print n + 0 }' "$T/figures")" '>=' 300
is "the comments are those of files" "$(find "$archive" -name '*.tmp')" ""

# --- an archive of 8 MiB that is nearly full: it keeps to that while writing. On a slow
# machine there are many new windows, which do not need the room of all old ones. ---
dir=$T/keep.archive
mkdir -p "$dir/2026-01-01"
for ((i = 10; i < 60; i++)); do
	head -c 164000 /dev/zero \
		>"$dir/2026-01-01/cpu-h-20260101T0000${i}Z-1s.pb.gz"
	echo x >"$dir/2026-01-01/cpu-h-20260101T0000${i}Z-1s.times.zst"
done
head -c 164000 /dev/zero >"$dir/cpu-h-20251231T000000Z-1s.pb.gz"
echo mine >"$dir/notes"
start_profd keep --window 1 --keep-bytes 8M --keep-age no
check "windows are written" wait_for 60 written 2
most=0
for ((i = 0; i < 40; i++)); do
	n=$(find "$dir" -name 'cpu-*' ! -name '*.tmp' -printf '%s\n' 2>/dev/null |
		awk '{ n += $1 } END { print n + 0 }')
	most=$((n > most ? n : most))
	sleep 0.05
done
num "the archive keeps to its bytes" "$most" '<=' 8388608
is "the window directly in it was removed first" \
	"$(find "$dir" -maxdepth 1 -name 'cpu-*')" ""
like "then those of the oldest day" \
	"$(find "$dir" -name 'cpu-h-20260101*.pb.gz' | sort | head -n 1)" \
	'T0000[1-5][0-9]Z'
is "a file of another name stays" "$(cat "$dir/notes")" mine
is "it is counted" "$(metric profd_reporter_archive_unexpected)" 1
num "removed windows are counted" \
	"$(metric profd_reporter_windows_removed_total)" '>=' 1
like "status: what is there, and what was removed" \
	"$("$PROFD" status --server "unix:$sock")" \
	'archive +[0-9]+ windows since 2026-01-01T00:[0-9:]+Z, [1-7][.][0-9] MiB; removed [1-9][0-9]* windows, '
stop_profd

# --- too old: the whole day, and its directory ---
start_profd keep --window 1 --keep-age 1d
gone() { [[ ! -e $dir/2026-01-01 ]]; }
check "windows that are too old go, and their day" wait_for 60 gone
stop_profd
is "it ends with 0" $? 0

# --- no free space: writing stops, and resumes; processes of a busy host fit ---
mkdir "$T/small"
mount -t tmpfs -o size=128m,mode=755 profd-test "$T/small" && mounted+=("$T/small")
head -c 124000k /dev/zero >"$T/small/ballast"
start_profd free --archive "$T/small" --window 1 --keep-free 10%
check "writing stops" wait_for 60 is_true profd_reporter_archive_stopped '== 1'
like "/healthz: degraded, because any user can cause it" \
	"$(curl -sS "$url/healthz")" '^degraded: .*free'
like "/status says so" "$(ask /status)" $'\nhealth: degraded: [^\n]*free'
num "its samples are counted" \
	"$(metric profd_reporter_samples_unwritten_total)" '>' 0
is "no window is there" "$(find "$T/small" -name 'cpu-*')" ""
rm "$T/small/ballast"
check "writing resumes" wait_for 60 written 1
first=$(find "$T/small" -name '*.pb.gz' | sort | head -n 1)
like "the next profile says what was lost" "$(comments "$first")" \
	'samples of earlier windows, not written: [1-9]'
is "/healthz forgets it" "$(metric profd_reporter_archive_stopped)" 0

# --- full in the middle of writing: no half file, and it goes on ---
stop_profd
start_profd full --archive "$T/small" --window 1 --keep-free no
fill() { head -c 256m /dev/zero >>"$T/small/ballast" 2>/dev/null; }
failed() { fill; is_true profd_reporter_windows_failed_total '>= 2'; }
check "windows fail" wait_for 60 failed
is "no half file" "$(find "$T/small" -name '*.tmp')" ""
whole=0
for f in "$T"/small/*/*.pb.gz; do
	gzip -tq "$f" || whole=1
done
is "every window is whole" "$whole" 0
rm "$T/small/ballast"
n=$(metric profd_reporter_windows_written_total)
check "it goes on" wait_for 60 written $((n + 2))
stop_profd
is "it ends with 0" $? 0
check_profile "$T"/small/*/*.pb.gz
kill -KILL "$busy"
plan
