#!/bin/bash
# A program spins for a second, then executes another one with functions at the same
# addresses, which spins for a second. Each sample belongs to the image that ran. The
# same with an exec by a thread that is not the leader.
. "$(dirname "$0")/lib.sh"
a=$E2E/prog_spin_a b=$E2E/prog_spin_b

address() {
	nm "$1" | awk -v name="$2" '$3 == name { print $1 }'
}
is "both programs spin at one address" \
	"$(address "$a" spin_a)" "$(address "$b" spin_b)"

background record "$T/exec.pb.gz" -F 997 -- "$a" 1000 exec "$b" 1000
first=$pid
background record "$T/thread.pb.gz" -F 997 -- "$a" 1000 thread "$b" 1000
second=$pid
wait "$first"
is "exec: recorded" $? 0
wait "$second"
is "exec from a thread: recorded" $? 0
check_profile "$T/exec.pb.gz" "$T/thread.pb.gz"

# distinct TSV REGEX COLUMN: the values of a column, where the stack matches.
distinct() {
	awk -F '\t' -v re="$2" -v col="$3" '$10 ~ re { print $col }' "$1" |
		sort -u | paste -sd ' '
}

for how in exec thread; do
	samples "$T/$how.pb.gz" >"$T/$how"
	# 997 each, for a second of CPU time. With interruptions the number varies by
	# 32 (one standard deviation) at worst: six of these are allowed.
	for name in a b; do
		num "$how: spin_$name has its second" \
			"$(total "$T/$how" "(^|;)spin_$name@")" '>=' 800
		num "$how: spin_$name has no more than its second" \
			"$(total "$T/$how" "(^|;)spin_$name@")" '<=' 1200
	done
	old=$(distinct "$T/$how" '(^|;)spin_a@' 9)
	new=$(distinct "$T/$how" '(^|;)spin_b@' 9)
	like "$how: one image ran spin_a" "$old" '^[0-9]+-[0-9a-f]+-[0-9]+$'
	is "$how: the image of spin_b is the next generation" \
		"$new" "${old%-*}-$((${old##*-} + 1))"
	is "$how: both have one process" \
		"$(distinct "$T/$how" '(^|;)spin_[ab]@' 8)" "${old%-*}"
	like "$how: the first image is called prog_spin_a" \
		"$(distinct "$T/$how" '(^|;)spin_a@' 7)" '^[^ ]*prog_spin_a$'
	like "$how: the second image is called prog_spin_b" \
		"$(distinct "$T/$how" '(^|;)spin_b@' 7)" '^[^ ]*prog_spin_b$'
	# By image, whatever the frame: code of the other image is never in it.
	is "$how: nothing of b under the image of a" \
		"$(awk -F '\t' -v i="$old" '$9 == i' "$T/$how" |
			grep -cE '(_b@|prog_spin_b)')" 0
	is "$how: nothing of a under the image of b" \
		"$(awk -F '\t' -v i="$new" '$9 == i' "$T/$how" |
			grep -cE '(_a@|prog_spin_a)')" 0
	is "$how: no stack holds code of both" \
		"$(total "$T/$how" '_a@.*_b@|_b@.*_a@')" 0
	# The thread that is not the leader has no name.
	num "$how: main is in 99 % of spin_b" "$(percent \
		"$(total "$T/$how" '(^|;)spin_b@.*;main@')" \
		"$(total "$T/$how" '(^|;)spin_b@')")" '>=' 99
done
num "exec: main is in 99 % of spin_a" "$(percent \
	"$(total "$T/exec" '(^|;)spin_a@.*;main@')" \
	"$(total "$T/exec" '(^|;)spin_a@')")" '>=' 99
is "thread: main is in no spin_a" \
	"$(total "$T/thread" '(^|;)spin_a@.*;main@')" 0

pid_of() {
	distinct "$T/$1" "(^|;)spin_$2@" "$3"
}
is "exec: the leader execs" "$(pid_of exec a 3)" "$(pid_of exec a 4)"
num "thread: another thread execs" \
	"$(pid_of thread a 4)" '>' "$(pid_of thread a 3)"
is "thread: it has the leader's id afterwards" \
	"$(pid_of thread b 4)" "$(pid_of thread a 3)"
for name in a b; do
	like "the mapping of prog_spin_$name has its build id" \
		"$(mappings "$T/exec.pb.gz")" \
		"$E2E/prog_spin_$name $(build_id "$E2E/prog_spin_$name")"
done
plan
