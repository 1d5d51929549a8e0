#!/bin/bash
# tests/run itself, with programs made for it: which run at the same time, the report,
# and all ways in which a test can fail.
. "$(dirname "$0")/lib.sh"
unit=$T/b/tests/unit e2e=$T/b/tests/e2e
mkdir -p "$unit" "$e2e"

# program FILE: from standard input, a shell script.
program() {
	{
		echo '#!/bin/bash'
		cat
	} >"$1"
	chmod +x "$1"
}
# tests_run [VARIABLE=VALUE...] PROGRAM...: its output in $out, its status in $rc.
tests_run() {
	local vars=()
	while [[ $1 == *=* ]]; do
		vars+=("$1")
		shift
	done
	out=$(env -u CI -u TESTS -u TEST_TIMEOUT -u RETRY B="$T/b" TABLE="$T/beside" JOBS=2 \
		REAPER="$ROOT/build/tests/reaper" "${vars[@]}" "$ROOT/tests/run" "$@" 2>&1)
	rc=$?
}
# sums TEXT: the last line.
sums() { tail -n 1 <<<"$out"; }
# row NAME: its line of the report, without the seconds.
row() { awk -v t="tests/$1" '$1 == t { NF -= 3; $1 = ""; print substr($0, 2) }' <<<"$out"; }
: >"$T/beside"

# Ten programs, each of which fails and prints three lines one by one.
for i in {0..9}; do
	program "$unit/test_$i" <<-END
		echo 1..1
		echo "not ok 1 - of $i"
		for word in one two three; do echo "# $i \$word"; sleep 0.05; done
	END
done
tests_run "$unit"/test_{9..0}
is "failures at the same time: status" "$rc" 1
is "... they are counted" "$(sums)" \
	"0 passed, 10 failed, 0 skipped"
is "... in the order of the arguments" \
	"$(grep -o '^tests/unit/test_.' <<<"$out" | tr -dc 0-9)" 9876543210
is "... each with its output in one piece" \
	"$(grep -o '^# . [a-z]*' <<<"$out" | cut -c 3-)" \
	"$(for i in {9..0}; do printf '%s\n' "$i one" "$i two" "$i three"; done)"
is "... and named in the end" "$(grep -c '^failed: tests/unit/test_' <<<"$out")" 10

# ends NAME COUNTS: a program, from standard input, and its counts.
failing=() wanted=
ends() {
	program "$unit/test_$1"
	failing+=("$unit/test_$1")
	wanted+="$1 $2 skipped 0 forbidden"$'\n'
}
ends crash '1 ok 1 not ok 0' <<<'echo 1..2; echo "ok 1"; kill -SEGV $$'
ends status '1 ok 1 not ok 0' <<<'echo 1..1; echo "ok 1"; exit 3'
ends short '1 ok 1 not ok 0' <<<'echo 1..2; echo "ok 1"'
ends unplanned '1 ok 1 not ok 0' <<<'echo "ok 1"'
ends silent '0 ok 1 not ok 0' <<<':'
ends hanging '1 ok 1 not ok 0' <<-END
	echo 1..2; echo "ok 1"; echo \$\$ >"$T/hanging"; exec sleep 1000
END
ends deaf '1 ok 1 not ok 0' <<-END
	trap '' TERM; echo 1..2; echo "ok 1"; echo \$\$ >"$T/deaf"
	for i in {1..1000}; do sleep 1; done
END
# All of them, beside a good one.
program "$unit/good" <<<'echo 1..2; echo "ok 1"; echo "ok 2"'
tests_run TEST_TIMEOUT=2 TEST_GRACE=1 "${failing[@]}" "$unit/good"
is "programs that end in other ways: status" "$rc $(sums)" \
	"1 8 passed, 7 failed, 0 skipped"
while read -r name counts; do
	[[ -z $name ]] || is "$name: the row" "$(row "unit/test_$name")" "$counts"
done <<<"$wanted"
is "the other one passes" "$(row unit/good)" "2 ok 0 not ok 0 skipped 0 forbidden"
# gone FILE: no process has the pid in it, or it is a zombie.
gone() { ! grep -qs '^State:[[:space:]]*[^ZX]' "/proc/$(<"$1")/status"; }
check "hanging: it was ended" wait_for 60 gone "$T/hanging"
like "hanging: the report says so" "$out" 'exit status 124'
check "deaf to SIGTERM: it was killed" wait_for 60 gone "$T/deaf"

# --- skipped, or forbidden by the environment ---
program "$unit/skips" <<<'echo 1..2; echo "ok 1"; echo "ok 2 - x # SKIP no x"'
program "$unit/forbids" <<<'echo "1..0 # SKIP this place forbids BPF"'
tests_run "$unit/skips" "$unit/forbids"
is "skipped and forbidden" "$rc $(sums)" \
	"0 1 passed, 0 failed, 1 skipped, 1 forbidden here"
tests_run CI=true "$unit/skips" "$unit/forbids"
is "... are failures with CI=true" "$rc $(sums)" \
	"1 1 passed, 2 failed, 0 skipped"
tests_run TESTS='*good*' "$unit/skips" "$unit/good"
is "a pattern chooses" "$rc $(sums)" \
	"0 2 passed, 0 failed, 0 skipped"
tests_run TESTS='*none*' "$unit/good"
is "nothing chosen is no success" "$rc" 1

# --- second attempts ---
# once FILE: a program whose first attempt is FIRST (standard input), later ones pass.
once() {
	program "$1" <<-END
		echo 1..2
		echo "ok 1"
		if mkdir "$1.ran" 2>/dev/null; then
		$(cat)
		fi
		echo "ok 2 - steady"
	END
}
fails='echo "not ok 2 - the load"; echo "# got: 7, wanted: <= 5"; exit 1'
once "$e2e/once.sh" <<<"$fails"
tests_run "$e2e/once.sh" "$unit/good"
is "fails once: passes in the end" "$rc $(sums)" "0 4 passed, 0 failed, 0 skipped"
is "... its first row says so" "$(awk '$1 == "tests/e2e/once.sh" { print $2, $4, $14 }' \
	<<<"$out")" $'1 1 again\n2 0 '
is "... with the check, what was got and wanted" "$(grep ^unsteady <<<"$out")" \
	"unsteady: tests/e2e/once.sh (the load; got: 7, wanted: <= 5)"
check "... its first log is kept" grep -q '^not ok 2' "$T/b/tests/log/tests_e2e_once.sh.1"
rm -r "$e2e/once.sh.ran"
cd "$T/b" || exit 1
tests_run tests/e2e/once.sh
is "... also with a relative path, as make check gives it" "$rc $(sums)" \
	"0 2 passed, 0 failed, 0 skipped"
cd "$OLDPWD" || exit 1
rm -r "$e2e/once.sh.ran"
tests_run RETRY=0 "$e2e/once.sh"
is "RETRY=0: one attempt" "$rc $(sums)" "1 1 passed, 1 failed, 0 skipped"
program "$e2e/twice.sh" <<<"echo 1..2; echo 'ok 1'; $fails"
tests_run "$e2e/twice.sh"
is "fails twice" "$rc $(sums)" "1 1 passed, 1 failed, 0 skipped"
is "... is named with what failed" "$(grep -A1 ^failed <<<"$out")" \
	$'failed: tests/e2e/twice.sh\n  the load; got: 7, wanted: <= 5'
# final NAME: one attempt only, from standard input.
finals=()
final() {
	once "$e2e/$1.sh"
	finals+=("$e2e/$1.sh")
}
final dies <<<'kill -SEGV $$'
final hangs <<<'exec sleep 1000'
final sanitized <<<'echo "==1==ERROR: AddressSanitizer: x" >&2; exit 1'
tests_run TEST_TIMEOUT=2 TEST_GRACE=1 "${finals[@]}"
is "dies, hangs, has a report of a sanitizer: no second attempt" \
	"$rc $(grep -oE '^tests/e2e/(dies|hangs|sanitized).sh' <<<"$out" | xargs)" \
	"1 tests/e2e/dies.sh tests/e2e/hangs.sh tests/e2e/sanitized.sh"
program "$e2e/reports.sh" <<-'END'
	for i in {1..12}; do echo "not ok $i - follows"; done
	echo "not ok 13 - no sanitizer has reported anything"
	for i in {1..20}; do echo "# frame $i"; done
	echo 1..13
	echo "==1==ERROR: AddressSanitizer: x" >&2
END
tests_run "$e2e/reports.sh"
is "a sanitizer's report is printed whole, and first" \
	"$(sed -n '/^failed/,$p' <<<"$out" | sed -n '2,22p' | tr -d '\n')" \
	"$(printf '  frame %d' {1..20})  follows"
program "$e2e/skips.sh" <<<'echo 1..1; echo "ok 1 # SKIP no x"'
tests_run CI=true "$e2e/skips.sh"
is "skips: no second attempt" "$rc $(grep -c "^tests/e2e/skips.sh" <<<"$out")" "1 1"
once "$unit/once" <<<"$fails"
tests_run "$unit/once"
is "a unit test: no second attempt" "$rc $(sums)" "1 1 passed, 1 failed, 0 skipped"
rm -r "$unit/once.ran"
echo "unit/once alone deadlines" >"$T/beside"
tests_run "$unit/once"
is "... but one that runs alone has" "$rc $(sums)" "0 2 passed, 0 failed, 0 skipped"
: >"$T/beside"
for i in 1 2 3 4; do once "$e2e/shaky_$i.sh" <<<"$fails"; done
tests_run "$e2e"/shaky_[123].sh
is "three unsteady programs pass" "$rc $(sums)" "0 6 passed, 0 failed, 0 skipped"
rm -r "$e2e"/shaky_*.ran
tests_run "$e2e"/shaky_?.sh
is "four do not" "$rc $(sums)" "1 8 passed, 1 failed, 0 skipped"

# --- what is left behind ---
# leaves NAME: from standard input. All wait two seconds for what is left, in one attempt
# and at the same time.
leave=()
leaves() {
	{
		echo 'echo 1..1; echo "ok 1"'
		cat
	} | program "$e2e/$1.sh"
	leave+=("$e2e/$1.sh")
	echo "e2e/$1.sh - waits" >>"$T/beside"
}
leaves child <<<"sleep 1000 & echo \$! >$T/child"
leaves session <<<"setsid -f sh -c 'echo \$\$ >$T/session; exec sleep 1001'"
leaves file <<<'mkdir "$TMPDIR/xyz"'
leaves mount <<<'mkdir "$TMPDIR/mnt"; mount -t tmpfs x "$TMPDIR/mnt"'
# These leave nothing: a child that ends within two seconds, and an orphan.
leaves soon <<<'sleep 1 &'
program "$e2e/orphan.sh" <<-'END'
	echo 1..1
	pid=$(sh -c 'sleep 0.1 >&2 & echo $!')
	for i in {1..100}; do
		[ -e "/proc/$pid" ] || { echo "ok 1"; exit; }
		sleep 0.05
	done
	echo "not ok 1 - it is reaped"
END
tests_run RETRY=0 "${leave[@]}" "$e2e/orphan.sh"
is "four leave something: failures" "$rc $(sums)" "1 6 passed, 4 failed, 0 skipped"
# left NAME WHAT: one failure more, which is named.
left() {
	is "leaves $1: fails" "$(row "e2e/$1.sh")" "1 ok 1 not ok 0 skipped 0 forbidden"
	like "leaves $1: it is named" "$(grep -F -A1 "failed: tests/e2e/$1.sh" <<<"$out")" \
		"nothing is left behind; left: $2"
}
left child '[0-9]+ sleep 1000'
check "... and ended" gone "$T/child"
left session '[0-9]+ sleep 1001'
check "... and ended" gone "$T/session"
left file 'file [^ ]*/xyz'
left mount 'mount [^ ]*/mnt'
check "... and unmounted" [ -z "$(grep /mnt /proc/self/mounts | grep tests)" ]
is "a child that ends within two seconds is none" "$(row e2e/soon.sh)" \
	"1 ok 0 not ok 0 skipped 0 forbidden"
is "orphans are reaped while the program runs" "$(row e2e/orphan.sh)" \
	"1 ok 0 not ok 0 skipped 0 forbidden"
: >"$T/beside"

# --- concurrency ---
# Each records how many of its kind run; two that see each other wait for that.
spy() {
	program "$1" <<-END
		mark=$T/running.$2.\$\$
		: >"\$mark"
		for i in {1..20}; do
			set -- $T/running.$2.*
			echo "$2 \$#" >>"$T/seen"
			set -- $T/running.*
			echo "all \$#" >>"$T/seen"
			sleep 0.02
		done
		rm "\$mark"
		echo 1..1
		echo "ok 1 - \$(trap -p INT)"
	END
}
for i in {0..3}; do
	spy "$unit/light_$i" light
	spy "$e2e/beside_$i.sh" beside
	spy "$e2e/shared_$i.sh" shared
	spy "$e2e/half_$i.sh" half
	spy "$e2e/alone_$i.sh" alone
done
spy "$unit/unlight" alone
echo "unit/unlight alone deadlines" >"$T/beside"
for i in {0..3}; do
	echo "e2e/beside_$i.sh - waits"
	echo "e2e/shared_$i.sh build waits"
	echo "e2e/half_$i.sh half one CPU"
done >>"$T/beside"
tests_run "$unit"/light_* "$unit/unlight" "$e2e"/{beside,shared,half,alone}_*
is "all kinds pass" "$rc $(sums)" "0 21 passed, 0 failed, 0 skipped"
# most KIND: at the same time
most() { awk -v k="$1" '$1 == k && $2 > n { n = $2 } END { print n + 0 }' "$T/seen"; }
is "unit tests: one a CPU" "$(most light)" 2
num "at most two a CPU" "$(most all)" '<=' 4
num "those of the table run at the same time" "$(most beside)" '>=' 2
is "those that share something, one by one" "$(most shared)" 1
is "those that need a CPU, one a CPU" "$(most half)" 2
is "all others alone" "$(most alone) $(awk '$1 == "alone" { getline; print $2 }' \
	"$T/seen" | sort -u)" "1 1"

# --- the table of this repository ---
missing=$(awk '!/^#/ && NF { print $1, NF }' "$ROOT/tests/beside" |
	while read -r name fields; do
		[[ -e $ROOT/tests/$name || -e $ROOT/tests/$name.c ]] || echo "$name"
		((fields >= 3)) || echo "$name: no reason"
	done)
is "tests/beside names tests that are there, each with a reason" "$missing" ""
plan
