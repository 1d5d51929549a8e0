#!/bin/bash
# The catalog of the archive, read back with sqlite3: a build with a failing compilation,
# exit statuses, parents, arguments, sums of samples; readers who are members of the
# archive's group, with and without a running profd; kill -9.
. "$(dirname "$0")/lib.sh"

# As a user who is in the group of the archive, and as one who is not.
member() { setpriv --reuid 65534 --regid 0 --clear-groups "$@"; }
stranger() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
reads() { sqlite3 -batch "$archive/catalog.sqlite" "$1"; }
has() { [[ $(reads "$1") == "$2" ]]; }
in_catalog() { (($(metric profd_reporter_catalog_windows_total) >= $1)); }
chmod 755 "$T"

# --- a build: make, sh, gcc, cc1; one file is wrong ---
mkdir "$T/src"
echo 'int main(void) { return 0; }' >"$T/src/good.c"
echo 'int main(void) { return nothing; }' >"$T/src/bad.c"
cat >"$T/src/Makefile" <<'MAKE'
all: good.o bad.o spin
good.o bad.o: %.o: %.c
	exec gcc -c -o $@ "$<"
spin:
	$(SPIN) 1000 & wait $$!; exit 0
MAKE
start_profd build --window 2
make -k -C "$T/src" SPIN="$E2E/prog_spin_a" >"$T/make.log" 2>&1
like "the build fails" "$(cat "$T/make.log")" 'bad.o. Error 1'
{ bash -c "kill -KILL \$\$; : $T"; } 2>/dev/null
bash -c 'exit 77' "two words" $'new\nline' $'\xff'
check "the process that was killed is there" \
	wait_for 60 has "SELECT count(*) FROM process p JOIN image i ON
	i.process = p.id WHERE p.signal = 9 AND i.argv LIKE '%kill -KILL%$T%'" 1
n=$(metric profd_reporter_catalog_windows_total)
check "windows are added" wait_for 60 in_catalog $((n + 2))

tree="WITH RECURSIVE tree(id) AS (SELECT p.id FROM process p JOIN image i ON
	i.process = p.id WHERE i.comm = 'make' AND i.argv LIKE '%$T/src%' UNION SELECT p.id FROM process p
	JOIN tree ON p.parent_row = tree.id)"
is "what make started that failed" "$(reads "$tree SELECT group_concat(comm || ' ' ||
	exit_code, ', ') FROM (SELECT i.comm, p.exit_code FROM tree JOIN process p
	USING(id) JOIN image i ON i.process = p.id WHERE p.exit_code > 0 AND
	i.end_ns = p.end_ns ORDER BY p.start_ns)")" "make 2, gcc 1, cc1 1"
is "arguments of the compilation that failed" "$(reads "$tree SELECT i.argv FROM tree
	JOIN process p USING(id) JOIN image i ON i.process = p.id
	WHERE p.exit_code = 1 AND i.comm = 'gcc' AND i.end_ns = p.end_ns")" \
	'["gcc","-c","-o","bad.o","bad.c"]'
is "its directory" "$(reads "$tree SELECT DISTINCT i.cwd FROM tree JOIN process p
	USING(id) JOIN image i ON i.process = p.id
	WHERE p.exit_code = 1 AND i.comm = 'gcc'")" "$T/src"
is "the shell that became gcc is its first image" "$(reads "$tree SELECT
	group_concat(comm) FROM (SELECT i.comm FROM tree JOIN process p USING(id)
	JOIN image i ON i.process = p.id WHERE p.id = (SELECT process FROM image
	WHERE argv LIKE '%bad.o%' AND comm = 'gcc') ORDER BY i.start_ns)")" "make,sh,gcc"
is "an argument that is not UTF-8" "$(reads "SELECT json_extract(argv, '\$[3]') =
	'two words' AND json_extract(argv, '\$[4]') = 'new' || char(10) || 'line' AND
	json_extract(argv, '\$[5]') = char(65533) FROM process p JOIN image i ON
	i.process = p.id WHERE exit_code = 77 AND i.end_ns = p.end_ns")" 1
used=$(reads "$tree SELECT p.samples || ' ' || p.cpu_ns FROM tree JOIN process p USING(id)
	JOIN image i ON i.process = p.id WHERE i.comm = 'prog_spin_a'")
about "the program that used a second of CPU time" "${used%% *}" \
	"$(awk '{ print $2 / 1e9 * 99 }' <<<"$used")" 5

# --- a user with long arguments ---
setpriv --reuid 65534 --regid 65534 --clear-groups sh -c \
	'for i in $(seq 200); do /bin/true "$i" "$0"; done' \
	"$(head -c 100000 /dev/zero | tr '\0' x)"
check "200 processes have rows, and not all arguments" wait_for 60 \
	has "SELECT count(*) >= 200 FROM image WHERE uid = 65534 AND args_cut" 1
is "their texts are counted as this user's" "$(reads "SELECT bytes = (SELECT sum(
	length(CAST(s AS BLOB)) + 16) FROM (SELECT s, uid FROM text UNION ALL
	SELECT s, uid FROM args) WHERE uid = 65534) FROM text_use WHERE uid = 65534")" 1
num "each has some 4 KiB at most" "$(reads "SELECT max(length(s)) FROM args")" '<' 4300

# --- readers ---
is "a member of the group reads while profd runs" \
	"$(member sqlite3 "$archive/catalog.sqlite" 'SELECT count(*) > 0 FROM window')" 1
member sqlite3 "$archive/catalog.sqlite" 'DELETE FROM process_row' 2>"$T/err"
like "and does not write" "$(cat "$T/err")" 'readonly'
stranger sqlite3 "$archive/catalog.sqlite" 'SELECT 1 FROM window' 2>"$T/err"
like "a user outside does not read" "$(cat "$T/err")" 'unable to open'
stop_profd
is "profd ends with 0" $? 0
is "a member reads while no profd runs" \
	"$(member sqlite3 "$archive/catalog.sqlite" 'SELECT count(*) > 0 FROM window')" 1
is "nothing else was left there" "$(ls "$archive" | grep -v '^20')" \
	$'catalog.sqlite\ncatalog.sqlite-shm\ncatalog.sqlite-wal'

# --- each profile and its rows ---
sums() {
	local f
	for f in "$archive"/20*/*.pb.gz; do
		pprof -raw "$f" | awk -v file="${f#"$archive/"}" '
			/^[^ ].*:$/ { part = $0 }
			part == "Samples:" && $1 ~ /^[0-9]+$/ {
				n += $1
				ns += $2
			}
			END { printf "%s|%d|%.0f\n", file, n, ns }'
	done
}
is "sums of samples are those of the profiles" "$(reads "SELECT file, sum(x.samples),
	sum(x.cpu_ns) FROM window w JOIN window_image x ON x.window = w.id
	GROUP BY file ORDER BY file")" "$(sums)"
is "windows have the bytes of their files" "$(reads "SELECT file, bytes, times_bytes
	FROM window ORDER BY file")" "$(cd "$archive" && for f in 20*/*.pb.gz; do
		echo "$f|$(stat -c %s "$f")|$(stat -c %s "${f%.pb.gz}.times.zst")"
	done)"

# --- kill -9 in the middle, three times ---
for round in 1 2 3; do
	start_profd build --window 1
	background "$E2E/prog_lives" 5000 2 >/dev/null 2>&1
	lives=$pid
	sleep "2.$RANDOM"
	stop_profd KILL 2>/dev/null
	kill -KILL "$lives" 2>/dev/null
done
is "after kill -9 the file is sound" "$(reads 'PRAGMA integrity_check')" ok
again=$(date +%s%N)
start_profd build --window 1
check "the next profd goes on" wait_for 60 in_catalog 1
is "nothing was set aside" "$(metric profd_reporter_catalog_set_aside_total)" 0
stop_profd
is "it ends with 0" $? 0
is "what lived then is not alive any more" "$(reads "SELECT count(*) FROM process
	WHERE state = 'alive' AND seen_ns < $again")" 0
agree="SELECT count(*), sum(samples > 0) FROM window"
files=$(find "$archive" -name '*.pb.gz' | wc -l)
is "each window on disk has a row" "$(reads "$agree")" "$files|$files"

# --- the catalog is deleted: it is made of the windows again ---
sums="SELECT file, w.samples, sum(x.samples), sum(x.cpu_ns) FROM window w JOIN
	window_image x ON x.window = w.id GROUP BY file ORDER BY file"
before=$(reads "$sums")
rm "$archive"/catalog.sqlite*
start_profd build --window 60
rebuilt() { (($(metric profd_reporter_catalog_rebuilt_total) == files)); }
check "all windows are read again" wait_for 60 rebuilt
is "their sums are the same" "$(reads "$sums" | head -n "$files")" "$before"
num "a program is found by its name" "$(reads "SELECT count(DISTINCT p.id) FROM image i
	JOIN process p ON p.id = i.process WHERE i.comm = 'prog_spin_a' AND
	i.exe LIKE '%/prog_spin_a'")" '>=' 1
stop_profd

# --- a full disk: nothing is damaged, and it goes on ---
mkdir "$T/small"
mount -t tmpfs -o size=64m,mode=755 profd-test "$T/small" && mounted+=("$T/small")
# A tenth of a CPU, so that each window has samples.
background nice -n -20 "$E2E/prog_spin_a" 600000 naps 90 >/dev/null
busy=$pid
start_profd full --archive "$T/small" --window 1
archive=$T/small
check "windows are added" wait_for 60 in_catalog 1
failed() {
	head -c 80m /dev/zero >>"$T/small/ballast" 2>/dev/null
	"$E2E/prog_lives" 500 2 >/dev/null
	(($(metric profd_reporter_catalog_stopped) == 1))
}
check "the catalog is not written" wait_for 60 failed
like "/healthz says so" "$(curl -sS "$url/healthz")" 'No space left'
rm "$T/small/ballast"
goes_on() { (($(metric profd_reporter_catalog_stopped) == 0)); }
check "it is written again" wait_for 60 goes_on
agrees() {
	has "SELECT count(*) FROM window" "$(find "$archive" -name '*.pb.gz' | wc -l)"
}
check "no window is missing" wait_for 60 agrees
is "the file is sound" "$(reads 'PRAGMA integrity_check')" ok
is "nothing was set aside there" "$(metric profd_reporter_catalog_set_aside_total)" 0
stop_profd
is "profd ends with 0 there" $? 0
kill -KILL "$busy"
plan
