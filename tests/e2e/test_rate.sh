#!/bin/bash
# 4,999 samples a second and CPU, beside programs that keep all CPUs busy: their unwind
# tables are read in time, whatever the rate.
. "$(dirname "$0")/lib.sh"
programs=10

# A program of 3,000 functions in a ring, with a stack of twenty calls, without frame
# pointers: only its tables lead to main.
awk -v n=3000 'BEGIN {
	print "volatile unsigned long sum;"
	for (i = 0; i < n; i++)
		printf "int f%d(int depth, char *p);\n", i
	for (i = 0; i < n; i++) {
		printf "__attribute__((noinline)) int f%d(int d, char *p)\n", i
		printf "{ char b[64 + %d]; b[d] = *p;\n", i % 7 * 16
		print "if (!d) { for (int i = 0; i < 20000; i++) sum += i;"
		printf "return *b; } return f%d(d - 1, b) + b[d]; }\n",
			(i * 7 + 1) % n
	}
	printf "int (*const all[])(int, char *) = {"
	for (i = 0; i < n; i++)
		printf "f%d,", i
	print "};\nint main(void) { char c = 1;"
	print "for (unsigned i = 0; i < 10000; i++)"
	printf "all[i %% %d](20, &c);\nreturn 0; }\n", n
}' >"$T/ring.c"
gcc -O1 -g0 -fomit-frame-pointer -fno-optimize-sibling-calls \
	-Wl,--build-id=sha1 -o "$T/ring" "$T/ring.c" ||
	bail "the program is built"
for ((i = 0; i < programs; i++)); do
	other_build_id "$T/ring" "$T/ring$i" "$((RANDOM))$i"
done
# lane FIRST: half of them, one after the other.
lane() {
	while :; do
		for ((i = $1; i < programs; i += 2)); do
			"$T/ring$i"
		done
	done
}
background lane 0
lanes=("$pid")
background lane 1
lanes+=("$pid")
sleep 1

# With normal priority, as by default. How many stacks are whole depends on what else
# runs, which a recording at a usual rate shows.
check "a recording at 199 Hz" "$PROFD" record -a -d 4 -F 199 -o "$T/usual.pb.gz"
check "a recording at 4,999 Hz" "$PROFD" record -a -d 4 -F 4999 \
	-o "$T/rate.pb.gz"
end_group "${lanes[0]}"
end_group "${lanes[1]}"
rate_of "$T/usual.pb.gz" "the programs at 199 Hz" '^ring' 200
usual=$(percent "$(ending "$T/rate.whole" whole)" "$n")
# 97 % of each on an idle machine; with a bug by which a drain did not end, 73 to 84 %
# at 4,999 Hz.
rate_of "$T/rate.pb.gz" "the programs" '^ring' 5000
whole=$(percent "$(ending "$T/rate.whole" whole)" "$n")
diag "$usual % of the stacks are whole at 199 Hz, $whole % at 4,999 Hz"
num "their stacks are as whole as at 199 Hz, but for 7 %" "$whole" '>=' \
	"$(awk -v n="$usual" 'BEGIN { print n * 0.93 }')"
plan
