#!/bin/bash
# speedscope's own importer, in a browser without a window: its table of functions has the
# values of profd report, from its format and from pprof. SPEEDSCOPE is where it is.
. "$(dirname "$0")/../e2e/lib.sh"
: "${SPEEDSCOPE:?}"

# rows FILE TYPE: "SELF NAME" of the 20 rows of speedscope's table, in ms, rounded as there.
rows() {
	printf 'speedscope.loadFileFromBase64("%s", "%s")' "${1##*/}" \
		"$(base64 -w 0 "$1")" >"$T/load.js"
	timeout 120 chromium --headless=new --no-sandbox --disable-gpu \
		--allow-file-access-from-files --user-data-dir="$T/browser" \
		--virtual-time-budget=60000 --dump-dom \
		"file://$SPEEDSCOPE/index.html#view=sandwich&localProfilePath=$T/load.js" \
		>"$T/dom" 2>"$T/browser.log"
	grep -o '<tr[^>]*>.*' "$T/dom" | sed 's/<tr/\n<tr/g' |
		sed -nE 's/(<[^>]*>)+/|/g
			s/^\|[0-9][^|]*\|([0-9.]+(ms|s)) \([^|]*\|([^|]+)\|.*/\1 \3/p' |
		awk '{ self = $1; sub(/^[^ ]* /, ""); ms = self + 0
			if (self !~ /ms$/) ms *= 1000
			printf "%.2f %s\n", ms, $0 }'
}

check "recorded" "$PROFD" record -q -F 499 --cache none -o "$T/in.pb.gz" -- \
	"$E2E/prog_shares" 2
"$PROFD" report --format speedscope -o "$T/out.json" "$T/in.pb.gz"
"$PROFD" report --json --rows function --sample-type cpu "$T/in.pb.gz" >"$T/report"
for f in out.json in.pb.gz; do
	rows "$T/$f" >"$T/rows"
	num "$f: rows" "$(wc -l <"$T/rows")" '>=' 3
	is "$f: those of profd report" "$(while read -r ms name; do
		jq -r --arg n "$name" --argjson ms "$ms" \
			'select(.name == $n) | .flat / 1e6 - $ms |
			fabs < 0.006 + $ms * 0.005' "$T/report" | grep -qx true ||
			echo "$ms $name"
	done <"$T/rows")" ""
done
plan
