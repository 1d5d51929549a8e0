#!/bin/bash
# record --traces: samples have the trace and span that their thread worked at.
. "$(dirname "$0")/lib.sh"

# cpu FILE FOCUS...: nanoseconds.
cpu() {
	local file=$1
	shift
	pprof -top -unit=ns -nodecount=1000 -sample_index=cpu "$@" "$file" |
		awk '/^ *flat/ { rows = 1; next }
			rows { sub(/ns$/, "", $1); sum += $1 } END { printf "%.0f\n", sum }'
}

red=aa000000000000000000000000000001
blue=bb000000000000000000000000000002
f=$T/traces.pb.gz
record "$f" -F 997 --traces -- "$E2E/prog_traced" 3
is "profd record --traces" $? 0
check "its profile is valid" "$E2E/pprof_check" "$f"

all=$(cpu "$f" -focus=red_request)
with=$(cpu "$f" -focus=red_request -tagfocus="trace_id=^$red\$")
num "the first request has samples" "$all" ">" 500000000
# The first second or so is before its tracer was found.
num "most of its CPU time has its trace" $((with * 100 / all)) ">=" 50
is "and its span" "$(cpu "$f" -focus=red_request -tagfocus='span_id=^a100000000000001$')" "$with"
num "so has the second's" "$(cpu "$f" -focus=blue_request -tagfocus="trace_id=^$blue\$")" ">" 0
is "none has the other's" "$(cpu "$f" -focus=red_request -tagfocus="trace_id=^$blue\$")" 0
is "nor the other way round" "$(cpu "$f" -focus=blue_request -tagfocus="trace_id=^$red\$")" 0
is "outside of requests there is none" "$(cpu "$f" -focus=no_request -tagfocus=trace_id=.)" 0
num "a child of fork has samples" "$(cpu "$f" -focus=child_request)" ">" 500000000
is "and inherits no trace" "$(cpu "$f" -focus=child_request -tagfocus=trace_id=.)" 0
own=cc000000000000000000000000000003
num "one with a context of its own has its trace" \
	"$(cpu "$f" -focus=own_request -tagfocus="trace_id=^$own\$")" ">" \
	$(($(cpu "$f" -focus=own_request) / 2))
is "... and no other" "$(cpu "$f" -focus=own_request -tagfocus='trace_id=^(aa|bb)')" 0
like "a comment has their number" "$(comments "$f")" 'samples with a trace: [1-9]'

# --- without the option ---
f=$T/none.pb.gz
record "$f" -F 997 -- "$E2E/prog_traced" 1.5
is "profd record" $? 0
is "has no traces" "$(pprof -tags "$f" | grep -c 'trace_id\|span_id')" 0

plan
