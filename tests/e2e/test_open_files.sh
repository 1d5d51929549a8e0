#!/bin/bash
# Executables are held open, so that their functions have names after they were deleted
# and no longer run; --open-files limits how many, within the limit of open files, and
# files that are closed for it are counted.
. "$(dirname "$0")/lib.sh"
N=16

mkdir "$T/made"
for i in $(seq 100 $((99 + N))); do
	other_build_id "$E2E/prog_gone" "$T/made/gone-$i" $((i + 1000 * $$))
done

# start_gone: N different executables that wait for go_gone.
start_gone() {
	local i
	gone=()
	rm -f "$T/go"
	mkfifo "$T/go"
	for i in $(seq 100 $((99 + N))); do
		cp "$T/made/gone-$i" "$T"
		# Its own open waits for the open of the other end.
		background bash -c 'exec "$0" 20 <"$1"' "$T/gone-$i" "$T/go"
		gone+=("$pid")
	done
	exec 8>"$T/go"
	# A program that has not opened it when it is closed would wait for ever.
	for i in "${!gone[@]}"; do
		wait_for 60 runs "${gone[i]}" "$T/gone-$((100 + i))"
	done
}
runs() {
	[[ /proc/$1/exe -ef $2 ]]
}
# They delete themselves, work, and end.
go_gone() {
	exec 8>&-
	wait "${gone[@]}"
}
# Those of them that profd holds open.
held() {
	ls -l "/proc/$profd/fd" 2>/dev/null | grep -c "$T/gone-"
}
is_held() {
	[[ $(held) == "$1" ]]
}
last_window() {
	stop_profd
	samples "$archive"/*/*.pb.gz >"$T/$1"
	check_profile "$archive"/*/*.pb.gz
}

start_profd within --freq 999
start_gone
wait_for 60 is_held $N
is "each is held open" "$(held)" $N
files() {
	"$PROFD" debug files --server "unix:$sock" "$@"
}
# A file is held from its exec on; a moment later it was read, and has its ids.
is_read() {
	(($(files | grep -F "$T/gone-" | grep -c ' yes ') == N))
}
wait_for 60 is_read
line=$(files | grep -F "$T/gone-100")
like "each is listed, by its ids" "$line" \
	"^[0-9a-f]{16} +$(build_id "$T/gone-100") +yes +[1-9]"
has_sizes() { files | grep -qE ' yes +[0-9]+K +yes +[0-9]+K +[a-z]+ [0-9]+'; }
check "with the sizes of tables and symbols, where they were read" wait_for 60 has_sizes
# A pending sample holds mappings, so their number may change.
ids() {
	files "$@" | awk 'NR > 1 { print $1, $2, $NF }'
}
short=${line%% *}
known="$short $(build_id "$T/gone-100") $T/gone-100"
is "a short id leads to the executable" "$(ids "$short")" "$known"
is "... and so does its build id" "$(ids "$(build_id "$T/gone-100")")" "$known"
file_id=$({
	head -c 4096 "$T/gone-100"
	tail -c 4096 "$T/gone-100"
	stat -c %s "$T/gone-100" | awk '{
		for (i = 0; i < 8; i++) {
			printf "\\x%02x", $1 % 256
			$1 = int($1 / 256)
		}
	}' | xargs -0 printf '%b'
} | sha256sum | head -c 32)
is "... and its file id, of which it is the first half" \
	"$(files "$file_id" | tail -n 1 | head -c 16)" "${file_id:0:16}"
is "in JSON too" "$(files --json "$short" | jq -r '.file_id, .path')" \
	"$file_id"$'\n'"$T/gone-100"
check "an id that nobody has is an error" bash -c \
	'! "$0" debug files --server "unix:$1" 0000000000000001' "$PROFD" "$sock"
# Errors, as a server with a quarantined file and one it cannot read has them.
mkdir "$T/www"
{
	echo '{"short_id":"1111111111111111","path":"/bomb","open":true,"mappings":1,' \
		'"rows":"yes","names":"Bad message","rows_bytes":5000,' \
		'"error":"it took too long to read"}'
	echo '{"short_id":"2222222222222222","path":"/big","open":true,"mappings":12,' \
		'"rows":"File too large","names":"none","symbol_bytes":1024}'
} | sed -z 's/, \n*/,/g' >"$T/www/executables"
www=$(free_port)
background python3 -m http.server --bind 127.0.0.1 -d "$T/www" "$www" >"$T/www.log" 2>&1
check "a server answers" wait_for 60 curl -sSf "http://127.0.0.1:$www/executables"
"$PROFD" debug files --server "127.0.0.1:$www" >"$T/table"
is "errors are aligned, and the reason of each is last" "$(cut -c 59- "$T/table")" \
	'OPEN MAPPINGS ROWS     TABLE NAMES  SYMBOLS SOURCES                  PATH
yes         1 yes         5K no           - -                        /bomb (it took too long to read)
yes        12 no           - none        1K -                        /big (File too large)'
is "... and in JSON as they are" \
	"$("$PROFD" debug files -j --server "127.0.0.1:$www" | jq -r .error)" \
	$'it took too long to read\nnull'
kill "$pid"
like "the status says so" "$(ask /status)" 'executables held open: [0-9]+ of at most 512'
go_gone
last_window within.tsv
# Names that come too late on a busy machine are no matter of open files.
too_late() {
	local f
	for f in "$archive"/*/*.pb.gz; do
		! late "$f" || return 0
	done
	return 1
}
for i in 1 2 3 4; do
	too_late && ((SECONDS < 300)) || break
	start_profd "within$i" --freq 999
	start_gone
	wait_for 60 is_held $N
	wait_for 60 is_read
	go_gone
	last_window within.tsv
done
num "they were sampled" "$(total "$T/within.tsv" 'gone_hot@')" ">=" $N
is "deleted and gone, each function has its name" \
	"$(total "$T/within.tsv" 'gone-[0-9]+\+0x')" 0

start_profd beyond --freq 999 --open-files 4
start_gone
# All are seen, because the first of them was closed.
closed() {
	(($(metric profd_pm_open_closed_total) >= N - 4))
}
check "beyond the limit they are closed, and counted" wait_for 60 closed
num "never are more open" "$(metric profd_pm_open_files)" "<=" 4
like "... as the status says" "$(ask /status)" 'executables held open: [0-4] of at most 4'
go_gone
last_window beyond.tsv
num "they are sampled all the same" "$(total "$T/beyond.tsv" 'gone-1[0-9][0-9]' 7)" ">=" $N

# With the limit of open files: a profd that starts with it.
limited() {
	printf '#!/bin/bash\nulimit -S -n %s && ulimit -H -n %s && exec "%s" "$@"\n' \
		"$1" "$2" "$B/profd" >"$T/limited"
	chmod +x "$T/limited"
	PROFD=$T/limited
}
limited 96 96
start_profd limited
like "a low limit of open files is told" "$(cat "$log")" \
	'--open-files 512: the limit of open files leaves room for [1-9][0-9]* '
room=$(sed -n 's/.*leaves room for \([0-9]*\) .*/\1/p' "$log")
like "... and kept" "$(ask /status)" "executables held open: [0-9]+ of at most $room"$'\n'
start_gone
num "with room for clients" "$(find "/proc/$profd/fd" | wc -l)" "<" 96
go_gone
stop_profd
check_profile "$archive"/*/*.pb.gz

limited 96 8192
start_profd raised
is "the soft limit is raised as far as is needed" \
	"$(awk '/^Max open files/ { print $4 }' "/proc/$profd/limits")" 4608
is "... which is no warning" "$(grep -c 'leaves room' "$log")" 0
stop_profd
plan
