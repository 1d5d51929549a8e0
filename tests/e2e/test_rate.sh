#!/bin/bash
# 4,999 samples a second and CPU, beside programs that keep all CPUs busy: their unwind
# tables are read in time, whatever the rate.
. "$(dirname "$0")/lib.sh"
programs=10

# A program of 3,000 functions in a ring, with a stack of twenty calls, without frame
# pointers: only its tables lead to main. In assembly: a compiler takes ten seconds for it.
awk -v n=3000 'BEGIN {
	print ".text"
	for (i = 0; i < n; i++) {
		room = 72 + i % 7 * 16
		print ".type f" i ", @function\nf" i ":\n.cfi_startproc"
		print "subq $" room ", %rsp\n.cfi_adjust_cfa_offset " room
		print "decl %edi\njs 1f\ncall f" (i * 7 + 1) % n "\njmp 3f"
		print "1: movl $20000, %eax\n2: incq sum(%rip)\ndecl %eax\njnz 2b"
		print "3: addq $" room ", %rsp\n.cfi_adjust_cfa_offset -" room
		print "ret\n.cfi_endproc\n.size f" i ", .-f" i
	}
	print ".local sum\n.comm sum, 8, 8\n.section .data.rel.ro, \"aw\""
	print ".globl table\ntable:"
	for (i = 0; i < n; i++)
		print ".quad f" i
	print ".section .note.GNU-stack, \"\""
}' >"$T/ring.s"
cat >"$T/main.c" <<'END'
extern void (*const table[])(int depth);
int main(void)
{
	for (unsigned i = 0; i < 10000; i++)
		table[i % 3000](20);
	return 0;
}
END
gcc -O1 -fomit-frame-pointer -Wl,--build-id=sha1 -o "$T/ring" "$T/main.c" "$T/ring.s" ||
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
