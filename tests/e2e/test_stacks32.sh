#!/bin/bash
# 32-bit programs, which have no rows: with frame pointers their stacks are whole; without
# them each ends in a mark, and none that lacks callers counts as complete.
. "$(dirname "$0")/lib.sh"

cat >"$T/c32.c" <<'C'
typedef unsigned int u;
static volatile u s;
__attribute__((noinline)) void leaf32(void)
{
	for (int i = 0; i < 300000000; i++)
		s += i;
}
__attribute__((noinline)) u mid32(u n)
{
	if (n)
		return mid32(n - 1) * 3 + s;
	leaf32();
	return s + 1;
}
__attribute__((noinline)) void top32(void)
{
	s = mid32(4) + s;
}
__asm__(".globl _start\n_start: xor %ebp,%ebp\n call top32\n mov $1,%eax\n"
	"xor %ebx,%ebx\n int $0x80\n");
C
for how in omit-frame-pointer no-omit-frame-pointer; do
	gcc -m32 -O1 -g "-f$how" -nostdlib -static -fno-pie -no-pie "$T/c32.c" \
		-o "$T/$how" 2>"$T/gcc.err" ||
		bail "gcc -m32 works" "$(cat "$T/gcc.err")"
	record "$T/$how.pb.gz" -F 999 -- "$T/$how"
	is "$how: it runs" $? 0
	samples "$T/$how.pb.gz" | grep leaf32@ >"$T/$how.tsv"
	whole "$T/$how.tsv" >"$T/$how.whole"
	diag "$(cat "$T/$how.whole")"
	num "$how: it has samples" "$(total "$T/$how.tsv")" '>=' 50
done
tsv=$T/omit-frame-pointer.tsv
is "without frame pointers no stack is complete" \
	"$(ending "${tsv%.tsv}.whole" whole)" 0
is "... each has a mark" "$(total "$tsv" '\[no frame pointer\]@$')" "$(total "$tsv")"
like "... and is counted" "$(cat "$T/omit-frame-pointer.pb.gz.log")" \
	'incomplete \(.*[0-9]+ no frame pointer'
tsv=$T/no-omit-frame-pointer.tsv
num "with frame pointers 95 % are whole" \
	"$(percent "$(total "$tsv" \
		'leaf32@[^;]*;mid32@.*;top32@[^;]*;_start@[^;]*$')" \
		"$(total "$tsv")")" '>=' 95
plan
