#!/bin/bash
# Traces in the archive: a request's CPU time is asked for by its trace, of windows that
# have no label of it.
. "$(dirname "$0")/lib.sh"

# cpu FILE FOCUS...: nanoseconds.
cpu() {
	local file=$1
	shift
	pprof -top -unit=ns -nodecount=50000 -nodefraction=0 -sample_index=cpu "$@" "$file" |
		awk '/^ *flat/ { rows = 1; next }
			rows { sub(/ns$/, "", $1); sum += $1 } END { printf "%.0f\n", sum }'
}
get() { "$PROFD" fetch --server "unix:$sock" -q "$@"; }
# about WHAT HAVE WANT: within a tenth.
about_tenth() {
	num "$1, at least" "$2" ">=" $(($3 * 9 / 10))
	num "$1, at most" "$2" "<=" $(($3 * 11 / 10))
}

red=aa000000000000000000000000000001
blue=bb000000000000000000000000000002
none=dd000000000000000000000000000004

start_profd traces --window 2 -F 997
# Its tracer is found while it works at nothing.
"$E2E/prog_traced" 3 3 >"$T/times" &
tracer=$!
get -d 1 --traces -o "$T/early.pb.gz"
sleep 2.2
check "a live profile by trace" get -d 1 --trace $blue -o "$T/live.pb.gz"
is "... has only that" "$(pprof -tags "$T/live.pb.gz" | grep -c 'aa0000000000000')" 0
num "... and its samples" "$(cpu "$T/live.pb.gz" -focus=blue_request)" ">" 0
wait "$tracer"
is "the program ended well" $? 0
read -r red_ns blue_ns <"$T/times"
like "status has samples with a trace" "$(ask /status)" 'traces: [1-9][0-9]* samples with one'

for how in server archive; do
	where=(--server "unix:$sock")
	[[ $how == server ]] || where=(--archive "$archive")
	if [[ $how == archive ]]; then
		stop_profd
		is "profd ends well" $? 0
	fi
	for one in "$red $red_ns" "$blue $blue_ns"; do
		read -r id ns <<<"$one"
		f=$T/$how.$id.pb.gz
		check "$how: a profile of the past by trace $id" \
			"$PROFD" fetch "${where[@]}" -q --last 5m --trace "$id" -o "$f"
		check "$how: it is valid" "$E2E/pprof_check" "$f"
		about_tenth "$how: it has the CPU time of the request" "$(cpu "$f")" "$ns"
	done
	is "$how: a trace has no samples of the other request" \
		"$(cpu "$T/$how.$red.pb.gz" -focus=blue_request)" 0
	check "$how: by span" "$PROFD" fetch "${where[@]}" -q --last 5m \
		--span b100000000000002 -o "$T/$how.span.pb.gz"
	is "$how: ... it is the same" "$(cpu "$T/$how.span.pb.gz")" "$(cpu "$T/$how.$blue.pb.gz")"
	check "$how: of an unknown trace" "$PROFD" fetch "${where[@]}" -q --last 5m \
		--trace $none -o "$T/$how.none.pb.gz"
	is "$how: ... there is nothing" "$(cpu "$T/$how.none.pb.gz")" 0
	check "$how: all, without traces" "$PROFD" fetch "${where[@]}" -q --last 5m \
		-o "$T/$how.all.pb.gz"
	is "$how: ... they have no label" "$(pprof -tags "$T/$how.all.pb.gz" | grep -c trace_id)" 0
	check "$how: with traces" "$PROFD" fetch "${where[@]}" -q --last 5m --traces \
		-o "$T/$how.traces.pb.gz"
	# While profd runs, the second has what ran since the first.
	[[ $how == server ]] ||
		is "$how: ... they are the same samples" "$(cpu "$T/$how.traces.pb.gz")" \
			"$(cpu "$T/$how.all.pb.gz")"
	is "$how: ... of which those of the trace have its label" \
		"$(cpu "$T/$how.traces.pb.gz" -tagfocus="trace_id=^$red\$")" \
		"$(cpu "$T/$how.$red.pb.gz")"
	like "$how: report has traces as rows' roots" \
		"$("$PROFD" report "${where[@]}" --last 5m --trace $red --by trace_id)" "$red"
done
"$PROFD" report --archive "$archive" --last 5m --trace AA >"$T/out" 2>&1
is "what is no id is refused" $? 2
like "... by what it has to be" "$(cat "$T/out")" "--trace 'AA': must be a trace id, 32 hex"

plan
