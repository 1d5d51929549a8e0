#!/bin/bash
# Lines and inlined calls. 100,000 addresses of a program of 200 MB, compiled with -O2 -g:
# bench_symbols.c has what is measured, and beside what. And the time from the exec of a
# program of 50 MB to a name and a line of one of its frames, beside that of other programs
# for one address. BENCH_LINES has the units of both programs, of some 1.5 MB each.
. "$(dirname "$0")/lib.sh"
dir=$B/tests/bench
units=(${BENCH_LINES:-130 32})

# make_program FILE UNITS: units differ in a name of equal length in the assembly, so that
# the compiler runs once.
make_program() {
	local i n parts=0
	[[ ! -s $1 ]] || return 0
	for i in $(seq 16); do
		parts+=" + part<$i>().add(x)"
	done
	sed "s/UNIT/u0000/; s/PARTS/$parts/" "$E2E_SRC/names_unit.cc" >"$T/unit.cc"
	g++ -O2 -g -S -o "$T/unit.s" "$T/unit.cc" || return 1
	for ((i = 1; i <= $2; i++)); do
		n=$(printf 'u%04d' "$i")
		sed "s/u0000/$n/g" "$T/unit.s" >"$T/one.s"
		as -o "$T/$n.o" "$T/one.s" || return 1
	done
	cat >"$T/main.cc" <<-'SOURCE'
		namespace u0001 { int run(int x); }
		namespace u0002 { int run(int x); }
		int main()
		{
			for (int i = 0;; i++)
				if (u0001::run(i % 50) + u0002::run(i % 50) < 0)
					return 1;
		}
	SOURCE
	g++ -O2 -g -o "$1" "$T/main.cc" "$T"/u*.o && rm -f "$T"/u*.o
}

named() {
	ask /executables | grep -F "/first_line\"" | grep -q '"sources":{"[a-z ]*":[1-9]'
}

# first_line PROGRAM: ms from the exec of a copy, which is new to profd.
first_line() {
	local begin
	cp "$1" "$T/first_line"
	sync "$T/first_line"
	start_profd first --symbol-memory 64M
	sleep 2
	begin=$(date +%s%N)
	background "$T/first_line"
	until named; do
		sleep 0.02
		(($(date +%s%N) - begin < 20000000000)) || break
	done
	calc "($(date +%s%N) - $begin) / 1e6"
	kill "$pid"
	wait "$pid" 2>/dev/null
	stop_profd
}

# one_address COMMAND...: ms, or nothing if it is missing.
one_address() {
	local begin
	PATH=$PATH:/tmp/blazecli/bin
	command -v "$1" >/dev/null || return
	begin=$(date +%s%N)
	timeout 60 "$@" >/dev/null 2>&1
	calc "($(date +%s%N) - $begin) / 1e6"
}

make_program "$dir/lines_large" "${units[0]}" &&
	make_program "$dir/lines_small" "${units[1]}" || exit 1
figure lines_bytes "$(stat -c %s "$dir/lines_large")" bytes
"$dir/bench_symbols" "$dir/lines_large" lines >&3

figure first_line_bytes "$(stat -c %s "$dir/lines_small")" bytes
ms=() llvm=() eu=() blaze=()
at=0x$(nm "$dir/lines_small" | awk '/ _ZN5u00013runEi$/ { print $1 }')
for ((round = 0; round < ROUNDS; round++)); do
	ms+=("$(first_line "$dir/lines_small")")
	llvm+=("$(one_address llvm-symbolizer --obj="$dir/lines_small" "$at")")
	eu+=("$(one_address eu-addr2line -fi -e "$dir/lines_small" "$at")")
	blaze+=("$(one_address blazecli symbolize elf --path "$dir/lines_small" "$at")")
done
figure first_line "$(median "${ms[@]}")" "ms from exec to a named frame" null \
	"llvm-symbolizer, one address" "$(median "${llvm[@]}")" \
	"eu-addr2line, one address" "$(median "${eu[@]}")" \
	"blazecli, one address" "$(median "${blaze[@]}")"
