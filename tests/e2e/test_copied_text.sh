#!/bin/bash
# Programs that put a copy of their code in its place, as those do that want it in large
# pages: names and stacks are as before, also if profd comes later. Memory with other code
# is no copy, and has no names.
. "$(dirname "$0")/lib.sh"
prog=$E2E/stacks/text
inner='text_inner@[^;]*/text;text_outer@[^;]*/text;main@[^;]*/text;'

# moved NAME TSV: all that is in the moved code.
moved() {
	local all
	all=$(total "$2" 'text_inner@|\[anon\]')
	num "$1: there are samples" "$all" '>=' 100
	fine "$(total "$2" "$inner.*;_start@[^;]*\$")" "$all" 99
	result $? "$1: they have names, and are whole" || diag "$(whole "$2")"
}

for how in over moved; do
	record "$T/$how.pb.gz" -F 999 -- "$prog" $how 600
	samples "$T/$how.pb.gz" >"$T/tsv"
	moved "$how" "$T/tsv"

	background "$prog" $how 6000 >"$T/$how.log"
	wait_for 60 grep -q ready "$T/$how.log"
	record "$T/later.pb.gz" -F 999 -d 1 -p "$pid"
	end_group "$pid"
	samples "$T/later.pb.gz" >"$T/tsv"
	moved "$how, found later" "$T/tsv"
done

record "$T/other.pb.gz" -F 999 -- "$prog" other 600
samples "$T/other.pb.gz" >"$T/tsv"
num "other code: there are samples" "$(total "$T/tsv" '\[anon\]')" '>=' 100
is "... and it has no name of the file's" "$(total "$T/tsv" 'text_inner@')" 0
plan
