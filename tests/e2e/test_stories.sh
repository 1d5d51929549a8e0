#!/bin/bash
# What users ask the archive: which samples are of the processes that failed in a build,
# of a subtree and of a user; of all that a process did, whether profd runs or not; and
# the CPU time of a subtree.
. "$(dirname "$0")/lib.sh"

report() { "$PROFD" report --sample-type samples --json "$@" 2>"$T/err"; }
names() { report --rows comm "$@" | jq -r .name | sort | paste -sd' '; }
count() { report --rows process "$@" | jq -s 'map(.flat) | add // 0'; }

# functions N: a compiler that works long enough for samples. The second file does not
# compile: it is only parsed, and has more of them.
functions() {
	echo '#define A(n) int f##n(int x) { int s = 0; for (int i = 0; i < x; i++) s += i * x ^ n; return s; }'
	seq -f 'A(%.0f)' "$1"
}
mkdir "$T/build"
functions 300 >"$T/build/good.c"
{
	functions 4000
	echo 'int broken('
} >"$T/build/bad.c"
printf 'all: good.o bad.o\n%%.o: %%.c\n\t@i=0; while test $$i -lt 20000; do i=$$((i+1)); done; gcc -O2 -c -o $@ $< 2>/dev/null; exit $$?\n' \
	>"$T/build/Makefile"

# Whoever runs these tests may be below a make, too.
ln -s "$(command -v make)" "$T/mk_stories"
start_profd stories --window 4 --freq 499
begin=$(date +%s.%N)
background nice -n -20 "$E2E/prog_spin_a" 60000 naps 40
other=$pid
LC_ALL=C "$T/mk_stories" -C "$T/build" -k >"$T/make.log" 2>&1 &
make=$!
wait "$make"
is "the build fails" $? 2
setpriv --reuid 4242 --clear-groups "$E2E/prog_spin_b" 150 &
wait $!
sleep 0.5
end=$(date +%s.%N)

# The host may run other builds.
both() {
	local span=(--from "$begin" --to "$end") below=(--under mk_stories --subtree "$make")
	is "what failed below make$1" "$(names "${@:2}" --exit fail "${below[@]}" --not-comm gcc)" \
		"cc1 sh"
	num "... has samples" "$(count "${@:2}" --exit fail "${below[@]}")" '>=' 5
	is "what succeeded$1" "$(names "${@:2}" --not-exit fail "${below[@]}" |
		tr ' ' '\n' | grep -cxE 'cc1|sh')" 2
	is "nothing but descendants$1" "$(names "${@:2}" "${below[@]}" |
		tr ' ' '\n' | grep -vxE 'as|cc1|gcc|sh')" ""
	all=$(count "${@:2}" --subtree "$make")
	is "a subtree: what it started, and itself$1" "$all" \
		"$(($(count "${@:2}" "${below[@]}") + $(count "${@:2}" --pid "$make")))"
	# But for samples whose process is not known: of one that has just ended.
	whole=$(count "${@:2}" "${span[@]}")
	rest=$(($(count "${@:2}" "${span[@]}" --not-subtree "$make") + all))
	num "all but a subtree$1" "$rest" '>=' $((whole - 5))
	num "... and no more$1" "$rest" '<=' "$whole"
	is "a user$1" "$(names "${@:2}" --user 4242)" prog_spin_b
	is "arguments$1" "$(names "${@:2}" --argv '*cc1 *bad.c*' --subtree "$make")" cc1
	is "ps: what failed, and how$1" "$("$PROFD" ps --json "${@:2}" --exit fail "${below[@]}" |
		jq -r '"\(.comm) \(.exit_code)"' | sort | paste -sd,)" \
		"cc1 1,gcc 1,sh 1"
	like "... with CPU time and coverage$1" "$("$PROFD" ps "${@:2}" --argv '*cc1 *bad.c*' \
		"${below[@]}")" 'exit 1 +~?[0-9.]+m?s +[0-9]+ +[0-9]+%±[0-9]+% .*/cc1 '
	like "ps --tree: a process that ended, and what it started$1" \
		"$("$PROFD" ps "${@:2}" "${span[@]}" --tree "$make" | sed -n 2,3p)" \
		"^ *$make .* exit 2 .*mk_stories .*
 *[0-9]+ +$make .*  /bin/sh -c "
	num "the life of a process$1" "$(count "${@:2}" --life "$make" --comm prog_spin_a)" '>' 20
}
wrong() { # OPTIONS...: of ps
	"$PROFD" ps --server "unix:$sock" "$@" >"$T/out" 2>"$T/err"
	echo "$? $(wc -c <"$T/out") $(cat "$T/err")"
}
like "ps: nobody" "$(wrong --comm nobody_is_named_so)" '^1 0 profd: no such process in the archive'
like "ps: a pid that is gone is named" "$(wrong --last 1h 4194304)" \
	'^1 0 profd: no such process'
like "ps: a time that is none" "$(wrong --last soon)" "^2 0 profd ps: --last 'soon': must be"
like "ps: a status that is none" "$(wrong --exit well)" "^2 0 profd ps: --exit 'well': must be"
both "" --server "unix:$sock"
# CPU time by the catalog, and by samples of 1/499 s.
kill -KILL "$other" 2>/dev/null
stop_profd
is "profd ends with 0" $? 0
both ", of the directory" --archive "$archive"
cpu=$(sqlite3 "$archive/catalog.sqlite" "WITH RECURSIVE t(id) AS (
	SELECT id FROM process WHERE pid = $make UNION
	SELECT p.id FROM process p JOIN t ON p.parent_row = t.id)
	SELECT sum(cpu_ns) FROM process WHERE id IN (SELECT id FROM t)")
about "samples of the subtree by its CPU time" "$all" \
	"$(awk -v ns="$cpu" 'BEGIN { print ns * 499 / 1e9 }')" 2

# --- the archive of another host: moved, and a day later ---
mv "$archive" "$T/elsewhere"
is "a moved archive" "$(count --archive "$T/elsewhere" --subtree "$make")" "$all"
rm "$T/elsewhere"/catalog.sqlite*
names --archive "$T/elsewhere" --exit fail
like "without its catalog" "$(cat "$T/err")" 'the archive has no catalog'
num "... labels are enough for others" \
	"$(count --archive "$T/elsewhere" --comm cc1)" '>' 20
plan
