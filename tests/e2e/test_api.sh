#!/bin/bash
# What the archive has, over HTTP: windows and processes agree with its files and with
# its catalog, pages hold each of them once, and each wrong parameter is refused by name.
. "$(dirname "$0")/lib.sh"

reads() { sqlite3 -batch "$archive/catalog.sqlite" "$1"; }
# api PATH [CURL OPTIONS...]: to $T/body; prints the status.
api() {
	curl -sS -g -o "$T/body" -w '%{http_code}' --max-time 60 --unix-socket "$sock" \
		"${@:2}" "http://profd$1"
}
body() { jq -r "$1" "$T/body"; }

cat >"$T/build.mk" <<'END'
all: ok bad worse more
ok:
	@sh -c 'exit 0'; i=0; while test $$i -lt 40000; do i=$$((i+1)); done
bad:
	-@sh -c 'exit 3' "$$(printf 'two "words"\n\\')"
worse:
	-@sh -c 'kill -SEGV $$$$'
more:
	@/bin/true 1
	@/bin/true 2
	@/bin/true 3
	@/bin/true 4
	@/bin/true 5
	@/bin/true 6
END
ln -s "$(command -v make)" "$T/mk_api"
start_profd api --window 1
begin=$(date +%s.%N)
"$T/mk_api" -f "$T/build.mk" >"$T/make.log" 2>&1 &
make=$!
wait "$make"
background nice -n -20 "$E2E/prog_spin_a" 60000 naps 40
spin=$pid
sleep 2.5
end=$(date +%s.%N)

# --- processes ---
is "processes below a program" "$(api '/api/processes?under=mk_api&last=1m')" 200
is "... how they ended" "$(body '[.processes[] | select(.argv[0] == "sh") |
	.signal // .exit_code] | sort | map(tostring) | join(" ")')" "0 3 11"
is "... arguments" "$(body '.processes[] | select(.exit_code == 3 and .argv[0] == "sh") | .argv | @json')" \
	'["sh","-c","exit 3","two \"words\"\n\\"]'
is "... there are no more" "$(body .next)" null
api '/api/processes?under=mk_api&last=1m&exit=fail' >/dev/null
is "a term more" "$(body '[.processes[] | .signal // .exit_code] | sort |
	unique | map(tostring) | join(" ")')" "3 11"
api '/api/processes?under=mk_api&last=1m&exit=!fail&comm=sh' >/dev/null
is "a negated one" "$(body '[.processes[].exit_code] | unique | map(tostring) | join(" ")')" "0"
api "/api/processes?exe=$E2E/prog_spin_a&exe=x&last=1m" >/dev/null
is "one that lives" "$(body "[.processes[] | select(.pid == $spin)] | map(.state, .end) |
	map(tostring) | join(\" \")")" "alive null"
api "/api/processes?pid=$spin&to=2000-01-01T00:00:00Z" >/dev/null
is "none of another time" "$(body '.processes | length')" 0
is "a time that ends before it begins" \
	"$(api "/api/processes?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z")" 400

# pages: all processes of before that the host did not start by itself, each once.
pages() {
	local after=
	while :; do
		api "/api/processes?under=mk_api&from=$begin&to=$end&limit=3$after" >/dev/null
		body '.processes[].process'
		[[ $(body .next) != null ]] || break
		after="&after=$(body .next)"
	done
}
api "/api/processes?under=mk_api&from=$begin&to=$end&limit=10000" >/dev/null
body '.processes[].process' >"$T/all"
pages >"$T/pages"
num "pages have all of them" "$(wc -l <"$T/pages")" '>=' 8
is "... each once" "$(sort "$T/pages" | uniq -d)" ""
is "... and they are those of one answer" "$(sort "$T/pages")" "$(sort "$T/all")"

# --- one of them ---
make=$(reads "SELECT process FROM process WHERE pid = $make ORDER BY id DESC LIMIT 1")
is "a process by its id" "$(api "/api/process/$make")" 200
is "... its images" "$(body '.images | length') $(body '.images[1].comm')" "2 mk_api"
is "... its parent is the first ancestor" "$(body .parent)" "$(body '.ancestors[0].process')"
is "... which is this test" "$(body '.ancestors[0].pid')" $$
is "... its children" "$(body '.children | length')" \
	"$(reads "SELECT count(*) FROM process WHERE parent = '$make'")"
is "by its pid" "$(api "/api/process/$spin") $(body .pid)" "200 $spin"
is "... its windows have its samples" "$(body '[.windows[].samples] | add')" \
	"$(reads "SELECT sum(x.samples) FROM window_image x JOIN image i ON i.id = x.image
		JOIN process p ON p.id = i.process WHERE p.pid = $spin AND x.window IN
		($(body '[.windows[].file | @sh] | join(",")' | sed 's/[^,]*/(SELECT id FROM window WHERE file = &)/g'))")"
is "none of that id" "$(api /api/process/1-1)" 404
is "no id" "$(api /api/process/)" 404
is "an id that is none" "$(api "/api/process/%27%20OR%201=1")" 404
is "one with a parameter" "$(api "/api/process/$make?limit=1")" 400

# --- windows ---
api "/api/windows?from=$begin&to=$end" >/dev/null
body '.windows[] | [.file, .bytes, .times_bytes, .samples] | join(" ")' >"$T/windows"
num "windows" "$(wc -l <"$T/windows")" '>=' 2
bad=0
while read -r file bytes times samples; do
	[[ $(stat -c %s "$archive/$file") == "$bytes" &&
		$(stat -c %s "$archive/${file%.pb.gz}.times.zst") == "$times" &&
		$(pprof -raw "$archive/$file" | grep -cE '^ +[0-9]+ +[0-9]+: ') -gt 0 &&
		$samples -gt 0 ]] || bad=$((bad + 1))
done <"$T/windows"
is "... are those on disk" "$bad" 0
api '/api/windows?limit=1' >/dev/null
first=$(body '.windows[0].begin')
api "/api/windows?limit=1&after=$(body .next)" >/dev/null
check "... the newest first" test "$(body '.windows[0].begin')" '<' "$first"

# --- each parameter of each page, wrong ---
is "the description" "$(api /api/openapi.json)" 200
cp "$T/body" "$T/openapi.json"
is "has all pages that are private" "$(body '.paths | keys | map(select(startswith("/api/"))) |
	join(" ")')" "/api/events /api/openapi.json /api/process/{id} /api/process/{id}/timeline /api/process/{id}/why /api/processes /api/profile /api/watch /api/windows"
python3 "$E2E_SRC/api_wrong.py" "$T/openapi.json" "$sock" >"$T/wrong" 2>&1
is "wrong requests are refused by name" $? 0 || cat "$T/wrong"
diag "$(tail -n 1 "$T/wrong")"
is "over TCP they need a token" "$(curl -sS -o /dev/null -w '%{http_code}' "$url/api/processes")" 401
stop_profd
is "profd ends with 0" $? 0
plan
