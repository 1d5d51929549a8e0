#!/bin/bash
# What a query makes of its samples: the line of ancestors below each stack, differences
# with the numbers of `go tool pprof -diff_base`, the formats of other programs, and an
# export of windows that answers as the archive does.
. "$(dirname "$0")/lib.sh"

report() { "$PROFD" report --sample-type samples "$@" 2>"$T/err"; }
sum() { report --rows comm --json "$@" | jq -s 'map(.flat) | add // 0'; }
status() { # PATH
	curl -s -o "$T/body" -w '%{http_code}' --max-time 60 --unix-socket "$sock" \
		"http://profd$1"
}
rows() { sed -n '/^ *flat  flat%/,/^$/p' | sed '/^$/d; s/ *$//'; }

# Whoever runs these tests may be below a make, too. A name that no format takes as is.
ln -s "$(command -v make)" "$T/mk_query"
ln -s "$E2E/prog_spin_b" "$T/a;b\"<\\é"
printf '"%s"/a*é 300 >/dev/null\ntrue\n' "$T" >"$T/run"
printf 'all:\n\t@sh "%s"\n' "$T/run" >"$T/Makefile"
start_profd query --window 1 --freq 497
begin=$(date +%s.%N)
"$E2E/prog_spin_a" 200 >/dev/null &
spin=$!
LC_ALL=C env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS "$T/mk_query" -s -f "$T/Makefile" >"$T/make.log" 2>&1
is "the build" "$?$(cat "$T/make.log")" 0
wait "$spin"
middle=$(date +%s.%N)
"$E2E/prog_spin_a" 300 >/dev/null
end=$(date +%s.%N)
first=(--from "$begin" --to "$middle") second=(--from "$middle" --to "$end")

# --- ancestors ---
# folded NAME OPTIONS...: stacks with that function.
folded() { report --format folded --by tree "${@:2}" | grep -F ";$1 "; }
tree() {
	local line
	# Others may run spin_b, too.
	line=$(folded spin_b "${first[@]}" "${@:2}" | grep -m 1 ';mk_query;')
	like "$1: the line of ancestors" "$line" \
		';mk_query;(sh;)+a:b"<\\é;_start;(.*;)?main;middle_b;spin_b [0-9]+$'
	like "$1: the oldest is the first" "$line" '^[^;]+;(.*;)?mk_query;'
	is "$1: the same samples" "$(report --format folded --by tree "${first[@]}" "${@:2}" |
		awk '{ n += $NF } END { print n }')" "$(sum "${first[@]}" "${@:2}")"
	like "$1: between other roots" "$(report --format folded --by comm --by tree \
		--by nix "${first[@]}" "${@:2}" | grep -F ';spin_b ' |
		grep -m 1 ';mk_query;')" \
		'^a:b"<\\é;.*;mk_query;(sh;)+a:b"<\\é;\[no nix\];_start;'
	like "$1: as a tree" "$(report --tree --by tree -n 400 --under mk_query \
		"${first[@]}" "${@:2}")" \
		$'\n +[0-9]+ +[0-9.]+% +[0-9]+  +mk_query\n'
}
# On a busy machine its names may come later.
named() { folded spin_b "${first[@]}" --server "unix:$sock" | grep -q ';mk_query;'; }
wait_for 60 named
tree "of a running profd" --server "unix:$sock"
like "over HTTP" "$(ask "/api/profile?from=$begin&to=$end&by=tree&format=folded" |
	grep -F ';spin_b ')" ';mk_query;(sh;)+a:b"<\\é;_start;'
is "live: no ancestors" "$(status '/debug/pprof/profile?seconds=1&by=tree')" 400
like "... and why" "$(cat "$T/body")" 'by: only of the past: /api/profile'
"$PROFD" fetch --server "unix:$sock" "${first[@]}" --by tree -o "$T/tree.pb.gz" 2>"$T/err"
is "fetch --by tree" $? 0
check_profile "$T/tree.pb.gz"
like "... has them" "$(pprof -traces "$T/tree.pb.gz")" $'\n *sh\n *mk_query\n'
report --by tree "$T/tree.pb.gz"
is "of a file: 2" $? 2
like "... and why" "$(cat "$T/err")" -- '--by tree: only of an archive, not of a FILE'
report --by tree --base "$T/tree.pb.gz" --archive "$archive"
is "against a file: 2" $? 2
like "... and why" "$(cat "$T/err")" 'by tree: only of an archive, not of the FILE of --base'

# --- differences ---
fetch() { "$PROFD" fetch --server "unix:$sock" -q "$@" 2>"$T/err"; }
fetch "${first[@]}" -o "$T/a.pb.gz" && fetch "${second[@]}" -o "$T/b.pb.gz"
is "two profiles" "$?$(cat "$T/err")" 0
# difference NAME WHOSE-OUTPUT OPTION-OF-PPROF...: rows as go tool pprof has them.
difference() {
	rows <"$2" >"$T/ours"
	pprof -top -nodecount=40 -sample_index=samples "${@:3}" -diff_base "$T/a.pb.gz" \
		"$T/b.pb.gz" | rows >"$T/theirs"
	num "$1: rows" "$(wc -l <"$T/ours")" '>=' 3
	check "$1: as go tool pprof has them" diff "$T/ours" "$T/theirs"
}
both=(--sample-type samples --rows function -n 40)
"$PROFD" diff "${both[@]}" "$T/a.pb.gz" "$T/b.pb.gz" >"$T/out" 2>"$T/err"
is "diff of files" "$?$(cat "$T/err")" 0
difference "files" "$T/out"
"$PROFD" diff "${both[@]}" --normalize "$T/a.pb.gz" "$T/b.pb.gz" >"$T/out"
difference "files, normalised" "$T/out" -normalize
"$PROFD" diff "${both[@]}" --server "unix:$sock" "$begin..$middle" "$middle..$end" >"$T/out"
difference "times" "$T/out"
"$PROFD" diff "${both[@]}" --server "unix:$sock" "$T/a.pb.gz" "$middle..$end" >"$T/out"
difference "a file and a time" "$T/out"
report --rows function -n 40 "${second[@]}" --diff "$begin..$middle" --server "unix:$sock" \
	>"$T/out"
difference "report --diff" "$T/out"
report --rows function -n 40 --base "$T/a.pb.gz" "$T/b.pb.gz" --normalize >"$T/out"
difference "report --base --normalize" "$T/out" -normalize
fetch "${second[@]}" --diff "$begin..$middle" -o "$T/diff.pb.gz"
is "fetch --diff" "$?$(cat "$T/err")" 0
check "... go tool pprof has the same rows" diff <(pprof -top -nodecount=40 \
	-sample_index=samples "$T/diff.pb.gz" | rows) <(report --rows function -n 40 \
	"${second[@]}" --diff "$begin..$middle" --server "unix:$sock" | rows)
ask "/api/profile?from=$middle&to=$end&diff=$begin..$middle" >"$T/http.pb.gz"
is "over HTTP" "$(report --rows function --json "$T/http.pb.gz" | sort | md5sum)" \
	"$(report --rows function --json "$T/diff.pb.gz" | sort | md5sum)"
before=$(sum "${second[@]}" --diff "$begin..$middle" --under mk_query --comm 'a;b*' \
	--server "unix:$sock")
is "a process that is in the past only $(cat "$T/err")" "$before" \
	"-$(sum "${first[@]}" --under mk_query --comm 'a;b*' --server "unix:$sock")"
while IFS='|' read -r path text; do
	is "$path: 400" "$(status "/api/profile?$path")" 400
	like "... and why" "$(cat "$T/body")" "$text"
done <<END2
diff=|diff: FROM..TO
diff=1|diff: FROM..TO
diff=..|diff: FROM..TO
diff=1000000001..1000000000|diff: FROM..TO
diff=$begin..noon|diff: FROM..TO
diff=2h..1h&diff=2h..1h|diff: given twice
END2
is "a time without windows: 404" "$(status '/api/profile?last=1h&diff=1000000000..1000000001')" 404
like "... and which" "$(cat "$T/body")" 'no window of that time \(diff\)'
for wrong in "" "$T/a.pb.gz" "$T/a.pb.gz $T/b.pb.gz x"; do
	# shellcheck disable=SC2086
	"$PROFD" diff $wrong 2>"$T/err"
	is "diff ${wrong//$T\//}: 2" $? 2
done
"$PROFD" diff "$T/a.pb.gz" "$T/none" 2>"$T/err"
is "a missing file: 1" $? 1
like "... is named" "$(cat "$T/err")" "$T/none: No such file"
"$PROFD" report --normalize "$T/a.pb.gz" 2>"$T/err"
is "--normalize of nothing: 2" $? 2

# --- formats ---
whole=$(sum "$T/a.pb.gz")
report --format json "$T/a.pb.gz" >"$T/a.json"
is "json: each sample" "$(jq '(.types | map(.type) | index("samples")) as $i |
	[.samples[].values[$i]] | add' "$T/a.json")" "$whole"
is "json: indices of frames and mappings" "$(jq '(.frames | length) as $n |
	(.mappings | length) as $m | ([.samples[].stack[]] | max) == $n - 1 and
	([.frames[].mapping // 0] | max) < $m' "$T/a.json")" true
is "json: a stack, leaf first" "$(jq -r '.frames as $f | .samples[] |
	select(.labels.comm == "a;b\"<\\é") | [$f[.stack[]].function] |
	select(.[0] == "spin_b") | .[0:3] | join(" ")' "$T/a.json" | sort -u)" \
	"spin_b middle_b main"
like "json: what a frame has" "$(jq -c '.mappings as $m | .frames[] |
	select(.function == "spin_b") | [.file, .line, $m[.mapping].file]' "$T/a.json")" \
	'prog_spin.c",[0-9]+,".*prog_spin_b'
is "json: the value of a difference" "$(report --format json "$T/diff.pb.gz" |
	jq '[.samples[] | .values[0]] | add')" "$(($(sum "$T/b.pb.gz") - whole))"
report --format firefox "$T/a.pb.gz" >"$T/a.firefox.json"
check "firefox: as its types have it" python3 "$E2E_SRC/firefox_check.py" "$T/a.firefox.json" \
	"$whole"
like "firefox: a thread" "$(jq -c '.threads[] | [.processName, .name, .isMainThread]' \
	"$T/a.firefox.json" | grep -F '"a;b')" '^\["a;b\\"<\\\\é",.*,true\]$'
report --format speedscope "$T/a.pb.gz" | jq -e '.shared.frames | length > 3' >"$T/out"
is "speedscope" "$(cat "$T/out")" true
for format in json firefox speedscope folded; do
	fetch "${first[@]}" --format "$format" -o "$T/fetch.$format"
	is "fetch --format $format" "$?$(cat "$T/err")" 0
	is "$format over HTTP" "$(status "/api/profile?from=$begin&to=$middle&format=$format&sample_type=cpu")" 200
	# Labels have no order.
	[[ $format != json ]] || jq -S . "$T/body" >"$T/fetch.tmp"
	[[ $format != json ]] || mv "$T/fetch.tmp" "$T/body"
	[[ $format != json ]] || jq -S . "$T/fetch.json" >"$T/fetch.tmp"
	[[ $format != json ]] || mv "$T/fetch.tmp" "$T/fetch.json"
	check "$format: the same" diff <(sort "$T/body") <(sort "$T/fetch.$format")
done
"$PROFD" fetch --server "unix:$sock" -q -d 1 --format folded --by comm -o "$T/live.folded"
is "the next second, folded, by name" $? 0
"$PROFD" fetch --server "unix:$sock" -q -d 1 --by comm -o "$T/live.pb.gz"
is "the next second, by name" $? 0
check_profile "$T/live.pb.gz"
fetch "${first[@]}" --format json -o "$T/x.pb.gz"
is "a name of pprof for another format: 2" $? 2
fetch "${first[@]}" --format json -o "$T/a.json"
is "a file that exists: 1" $? 1
like "... is named" "$(cat "$T/err")" "a.json: exists"

# --- export ---
"$PROFD" export --server "unix:$sock" "${first[@]}" "$T/live" 2>"$T/err"
is "export from a running profd" $? 0
like "... says what" "$(cat "$T/err")" '[1-9][0-9]* windows, [0-9]+ bytes'
stop_profd
is "profd ends with 0" $? 0
tree "of a directory" --archive "$archive"
find "$archive" -type f | sort | xargs md5sum >"$T/before"
"$PROFD" export -q --archive "$archive" --from "$begin" --to "$end" "$T/copy" 2>"$T/err"
is "export from a directory" "$?$(cat "$T/err")" 0
find "$archive" -type f | sort | xargs md5sum | diff "$T/before" - >"$T/out"
is "... leaves the archive as it is" "$(cat "$T/out")" ""
for dir in live copy; do
	tree "of the $dir" --archive "$T/$dir"
done
for ask in "" "--under mk_query" "--exit ok" "--comm prog_spin_a" "--argv *300*"; do
	# shellcheck disable=SC2086
	is "the copy answers as the archive: $ask" \
		"$(sum --from "$begin" --to "$end" $ask --archive "$T/copy")" \
		"$(sum --from "$begin" --to "$end" $ask --archive "$archive")"
done
is "the windows are the same, with their side files" "$(cd "$T/copy" &&
	find . -name 'cpu-*' -type f | sort | while read -r file; do
		cmp "$file" "$archive/$file"
	done)" ""
num "... all of that time" "$(find "$T/copy" -name '*.times.zst' | wc -l)" '>=' 2
is "the catalog is whole" "$(sqlite3 "$T/copy/catalog.sqlite" 'PRAGMA integrity_check;
	SELECT count(*) FROM window_image WHERE image NOT IN (SELECT id FROM image);
	SELECT count(*) FROM process WHERE parent_row NOT IN (SELECT id FROM process)' |
	paste -sd' ')" "ok 0 0"
num "... without processes that have no samples" "$(sqlite3 "$T/copy/catalog.sqlite" \
	'SELECT count(*) FROM process')" '<' "$(sqlite3 "$archive/catalog.sqlite" \
	'SELECT count(*) FROM process')"
"$PROFD" export --archive "$archive" "$T/copy" 2>"$T/err"
is "a directory that is not empty: 1" $? 1
like "... is named" "$(cat "$T/err")" 'copy: is not empty \(--force'
"$PROFD" export --force -q --archive "$archive" "$T/copy" 2>"$T/err"
is "... but with --force" "$?$(cat "$T/err")" 0
tree "of that copy" --archive "$T/copy"
"$PROFD" export --force --archive "$archive" "$archive" 2>"$T/err"
is "into itself: 2" $? 2
"$PROFD" export --archive "$archive" --from 1000000000 --to 1000000001 "$T/nothing" 2>"$T/err"
is "a time without windows: 1" $? 1
like "... and why" "$(cat "$T/err")" 'no window of that time'
"$PROFD" export --archive "$T/none" "$T/nothing2" 2>"$T/err"
is "no archive: 1" $? 1
like "... is named" "$(cat "$T/err")" 'none: No such file'
"$PROFD" export --server 127.0.0.1:1 "$T/x" 2>"$T/err"
is "the archive of another host: 2" $? 2
rm "$T/copy"/catalog.sqlite*
report --by tree --archive "$T/copy" "${first[@]}"
is "ancestors without a catalog: 1" $? 1
like "... and why" "$(cat "$T/err")" 'copy: the archive has no catalog'
"$PROFD" export --archive "$T/copy" "$T/copy2" 2>"$T/err"
is "export without a catalog" $? 0
like "... says so" "$(cat "$T/err")" 'has no catalog'
is "the same samples" "$(sum --archive "$T/copy2")" "$(sum --archive "$T/copy")"
plan
