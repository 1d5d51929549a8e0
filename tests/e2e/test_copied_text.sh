#!/bin/bash
# Programs that put a copy of their code in its place, as those do that want it in large
# pages: names and stacks are as before, also if profd comes later. Memory with other code
# is no copy, and has no names.
. "$(dirname "$0")/lib.sh"
prog=$E2E/stacks/text
inner='text_inner@[^;]*/text;text_outer@[^;]*/text;main@[^;]*/text;'

# inside TSV: the samples in the moved code.
inside() {
	total "$1" 'text_inner@|\[anon\]'
}

# moved NAME TSV: all that is in the moved code.
moved() {
	local all
	all=$(inside "$2")
	num "$1: there are samples" "$all" '>=' 100
	fine "$(total "$2" "$inner.*;_start@[^;]*\$")" "$all" 99
	result $? "$1: they have names, and are whole" || diag "$(whole "$2")"
}

for how in over moved; do
	record "$T/$how.pb.gz" -F 999 -- "$prog" $how 600
	samples "$T/$how.pb.gz" >"$T/tsv"
	moved "$how" "$T/tsv"

	background "$prog" $how 60000 >"$T/$how.log"
	wait_for 60 grep -q ready "$T/$how.log"
	# On a busy machine it has a part of a CPU.
	for seconds in 1 4 16 64; do
		record "$T/later.pb.gz" -F 999 -d $seconds -p "$pid"
		samples "$T/later.pb.gz" >"$T/tsv"
		(($(inside "$T/tsv") < 100)) || break
	done
	end_group "$pid"
	moved "$how, found later" "$T/tsv"
done

record "$T/other.pb.gz" -F 999 -- "$prog" other 600
samples "$T/other.pb.gz" >"$T/tsv"
num "other code: there are samples" "$(total "$T/tsv" '\[anon\]')" '>=' 100
is "... and it has no name of the file's" "$(total "$T/tsv" 'text_inner@')" 0
plan
