#!/bin/bash
# Unwind rows equal the unwind information of files as binutils reads it: every row of
# some programs and libraries that every host has, and of some made here. ROWS_ALL=1
# checks all ELF files below /usr/bin, /usr/sbin and /usr/lib.
. "$(dirname "$0")/lib.sh"

cat >"$T/prog.c" <<'END'
#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int twice(int x) { return x < 2 ? x : twice(x - 1) + twice(x - 2); }
int many(int a, int b, int c, int d, int e, int f, int g, int h)
{
	char *p = alloca((size_t)a + 16), q[300] __attribute__((aligned(64)));
	memset(p, b, (size_t)a);
	snprintf(q, sizeof(q), "%d%d%d%d%d%d", c, d, e, f, g, h);
	if (twice(a) < b)
		abort();
	return q[0] + p[0] + atoi(q);
}
int main(int argc, char **argv)
{
	printf("%d\n", many(argc, 1, 2, 3, 4, 5, 6, atoi(argv[0])));
	return 0;
}
END
cc="-w -x c $T/prog.c"
# Realigned stacks, frames of all sizes, .debug_frame alone and compressed.
made=()
while read -r name compiler flags; do
	# shellcheck disable=SC2086 # flags are many
	$compiler $flags -o "$T/$name" $cc || bail "$name is built"
	made+=("$T/$name")
done <<'END'
gcc_O0 gcc -O0
gcc_O2 gcc -O2
gcc_fp gcc -O1 -fno-omit-frame-pointer -mstackrealign
gcc_cf gcc -O2 -fcf-protection=full -Wl,-z,ibtplt,-z,lazy
clang_O2 clang -O2
clang_O0 clang -O0 -fno-pie -no-pie
lazy gcc -O2 -Wl,-z,lazy
static gcc -O2 -static
static_pie gcc -O2 -static-pie
stripped gcc -O2 -s
debug gcc -O2 -g -fno-asynchronous-unwind-tables -fno-unwind-tables
debug_z gcc -O2 -g -fno-asynchronous-unwind-tables -Wl,--compress-debug-sections=zlib
END
# Those of them that exist.
found=()
for f in /bin/bash /usr/bin/python3 /usr/bin/perl /usr/bin/gcc \
	"$(gcc -print-file-name=libc.so.6)" \
	"$(gcc -print-file-name=libstdc++.so.6)" \
	"$(gcc -print-file-name=ld-linux-x86-64.so.2)"; do
	[[ ! -f $f ]] || found+=("$f")
done
num "programs and libraries to look at" ${#found[@]} '>=' 4

# rows_check FILE...: no difference in any of them; the output in $out.
rows_check() {
	out=$("$E2E/rows_check" "$@" 2>&1)
	result $? "rows are readelf's: ${*##*/}" || diag "$out"
	is "... of all of them" "$(sed -n 's/^files \([0-9]*\) .*/\1/p' <<<"$out")" $#
}

rows_check "${made[@]}"
rows_check "$PROFD"
rows_check "${found[@]}"
num "... which are many rows" \
	"$(sed -n 's/^files.* rows \([0-9]*\) .*/\1/p' <<<"$out")" '>' 50000
num "debug_frame gives rows too" \
	"$("$PROFD" debug unwind-table "$T/debug" | wc -l)" '>' 10
num "a path may be relative" \
	"$(cd "$T" && "$PROFD" debug unwind-table debug | wc -l)" '>' 10
like "... compressed too" "$(readelf -SW "$T/debug_z")" '[.]debug_frame[^\n]* C '

# --- the text ---
# rows_text FILE: for each row of readelf, the row of profd for that address in the
# same form; prints differences and how many were compared.
rows_text() {
	"$PROFD" debug unwind-table "$1" >"$T/ours"
	readelf -wNF "$1" 2>/dev/null | sed 's/r[0-9]* (\([a-z0-9]*\))/\1/g' |
		awk -v ours="$T/ours" -f "$T/text.awk"
}
cat >"$T/text.awk" <<'END'
function at(hex,    lo, hi, mid) {
	lo = 0
	hi = n
	hex = sprintf("%16s", hex)
	while (lo < hi) {
		mid = int((lo + hi) / 2)
		if (addr[mid] <= hex) lo = mid + 1
		else hi = mid
	}
	return lo ? row[lo - 1] : "end"
}
BEGIN {
	while ((getline line < ours) > 0) {
		split(line, w, " ")
		addr[n] = sprintf("%16s", w[1])
		row[n++] = substr(line, length(w[1]) + 2)
	}
}
/ FDE / { fde = 1 }
/ CIE / { fde = 0 }
/LOC  / {
	rbp = ra = 0
	for (i = 3; i <= NF; i++) {
		if ($i == "rbp") rbp = i
		if ($i == "ra") ra = i
	}
}
fde && /^[0-9a-f]+ / && $1 !~ /[.]/ && length($1) == 16 && $3 !~ /^0000/ {
	want = $2 " " (rbp ? $rbp : "u")
	if (ra && $ra != "c-8") want = want " " $ra
	gsub(/exp/, "expr", want)
	sub(/^0+/, "", $1)
	got = at($1)
	sub(/^(plt|deref|sig) /, "expr ", got)
	if (got != want) print $1 ": " got ", not " want
	compared++
}
END { print compared " compared" }
END
for f in "$T/gcc_O2" "$T/gcc_fp" "${found[@]: -1}"; do
	like "unwind-table says of ${f##*/} what readelf does" \
		"$(rows_text "$f")" '^[1-9][0-9]+ compared$'
done
table=$("$PROFD" debug unwind-table "$T/lazy")
like "unwind-table: a PLT" "$table" $'\n[0-9a-f]+ plt u\n'
like "unwind-table: a root" "$table" $'\n[0-9a-f]+ rsp\\+8 u u\n'
like "unwind-table: ends in a gap" "$table" $'\n[0-9a-f]+ end u$'
like "unwind-table: a realigned stack" \
	"$("$PROFD" debug unwind-table "$T/gcc_fp")" ' deref expr'
like "unwind-table: a signal frame" \
	"$("$PROFD" debug unwind-table "$T/static")" $'\n[0-9a-f]+ sig expr expr\n'
stats=$("$PROFD" debug unwind-table --stats "$T/static")
like "unwind-table --stats" "$(tr '\n' ' ' <<<"$stats")" \
	'^rows [0-9]+ rules [0-9]+ bytes [0-9]+ text [0-9]+ bytes-per-MiB [0-9]+ time-ms [0-9.]+ $'
is "... counts the lines" "$(sed -n 's/^rows //p' <<<"$stats")" \
	"$("$PROFD" debug unwind-table "$T/static" | wc -l)"

pc=$(awk '$2 == "deref" { print $1; exit }' < <(
	"$PROFD" debug unwind-table "$T/gcc_fp"))
like "unwind: the full rule" "$("$PROFD" debug unwind "$T/gcc_fp:0x$pc")" \
	"gcc_fp:0x$pc: deref expr"$'\n  cfa  \*\(r[a-z0-9]+[-+][0-9]+\)\n(.*\n)?  rbp  \*\(r'
is "unwind: several, and a gap" \
	"$("$PROFD" debug unwind "$T/lazy:0" "$T/lazy:1")" \
	"$T/lazy:0: end u"$'\n'"$T/lazy:1: end u"

# --- without section headers ---
cp "$T/stripped" "$T/bare"
printf '\0\0\0\0\0\0\0\0' | dd of="$T/bare" bs=1 seek=40 conv=notrunc status=none
printf '\0\0\0\0' | dd of="$T/bare" bs=1 seek=60 conv=notrunc status=none
is "without section headers the rows are the same" \
	"$("$PROFD" debug unwind-table "$T/bare")" \
	"$("$PROFD" debug unwind-table "$T/stripped")"

# --- files that cannot be read ---
# fails NAME STATUS REGEX ARGUMENT...: exit status and message of profd debug.
fails() {
	local name=$1 status=$2 regex=$3
	shift 3
	"$PROFD" debug "$@" >"$T/out" 2>"$T/err"
	is "$name: exit status" $? "$status"
	like "$name: says why" "$(cat "$T/err")" "$regex"
}
fails "no file" 1 'none: No such file' unwind-table "$T/none"
fails "no ELF" 1 'prog.c: not an ELF' unwind-table "$T/prog.c"
fails "a directory" 1 "$T: cannot be opened, or is not a regular" unwind-table "$T"
objcopy --remove-section=.eh_frame "$T/debug" "$T/no_eh" 2>/dev/null
objcopy --remove-section=.debug_frame --remove-section=.eh_frame_hdr \
	"$T/no_eh" "$T/no_cfi" 2>/dev/null
like "no CFI: rows from instructions" \
	"$("$PROFD" debug unwind-table --stats "$T/no_cfi" 2>&1)" 'made-from instructions'
cp "$T/lazy" "$T/arm64"
printf '\267' | dd of="$T/arm64" bs=1 seek=18 conv=notrunc status=none
# segments FILE COPY HOW: its executable segments become plain ones, or empty; with
# "more", the first other segment becomes an empty executable one, at 2^40.
segments() {
	python3 - "$@" <<'END'
import struct, sys
d = bytearray(open(sys.argv[1], "rb").read())
at, n = struct.unpack_from("<Q", d, 32)[0], struct.unpack_from("<H", d, 56)[0]
how = sys.argv[3]
for o in range(at, at + 56 * n, 56):
    kind, flags = struct.unpack_from("<II", d, o)
    if how == "more" and kind == 0x6474e551:  # PT_GNU_STACK
        struct.pack_into("<IIQQQQQQ", d, o, 1, 5, 0, 1 << 40, 1 << 40, 0, 0, 1)
    elif kind == 1 and flags & 1 and how == "plain":
        struct.pack_into("<I", d, o + 4, 4)
    elif kind == 1 and flags & 1 and how == "empty":
        struct.pack_into("<QQ", d, o + 32, 0, 0)
open(sys.argv[2], "wb").write(d)
END
}
for how in plain empty more; do
	segments "$E2E/prog_nocfi" "$T/segments_$how" "$how"
done
fails "no executable segment" 1 'segments_plain: the unwind information does not belong to an' \
	unwind-table "$T/segments_plain"
fails "an empty executable segment alone" 1 'segments_empty: the unwind information' \
	unwind-table "$T/segments_empty"
is "an empty executable segment beside the real one" \
	"$("$PROFD" debug unwind-table "$T/segments_more")" \
	"$("$PROFD" debug unwind-table "$E2E/prog_nocfi")"
fails "another machine" 1 'arm64: not for x86-64' unwind-table "$T/arm64"
fails "no word" 2 'unwind-table, unwind, symbolize or files' ""
fails "another word" 2 "unknown 'x'" x
fails "no FILE" 2 'needs one FILE' unwind-table
fails "two FILEs" 2 'needs one FILE' unwind-table a b
fails "no PC" 2 "'a': must be FILE:PC" unwind a
fails "a PC that is none" 2 "'a:1g': must be FILE:PC" unwind a:1g

# A length in the middle of .eh_frame that leads out of the section.
read -r where < <(readelf -wNf "$T/static" | awk '/ FDE / && ++n == 20 { print $1 }')
start=$(readelf -SW "$T/static" | sed -n 's/.* \.eh_frame  *PROGBITS *[0-9a-f]* *\([0-9a-f]*\).*/\1/p')
cp "$T/static" "$T/broken"
printf '\377\377\377\177' | dd of="$T/broken" bs=1 conv=notrunc status=none \
	seek=$((0x$start + 0x$where))
fails "a broken file" 1 \
	"[.]eh_frame, offset 0x$(printf %x $((0x$where))) .of the file 0x[0-9a-f]+.: an entry that leads beyond its section; the table is partial" \
	unwind-table "$T/broken"
num "... has rows up to the damage" "$(wc -l <"$T/out")" '>=' 20
num "... and not all" "$(wc -l <"$T/out")" '<' \
	"$("$PROFD" debug unwind-table "$T/static" | wc -l)"

# --- rows by hand ---
# Printed in full and read back, the table is the same: of files with every kind of
# rule.
mkdir "$T/rows"
id_of() {
	readelf -n "$1" | sed -n 's/.*Build ID: //p'
}
# same_rules FILE OTHER: what has a rule in one has the same in the other, which may have
# rows made from instructions where the first has none.
same_rules() {
	python3 - "$@" <<'END'
import bisect
import sys

first, other = ([(int(row[0], 16), row[1]) for row in
                 (line.split(" ", 1) for line in open(name))] for name in sys.argv[1:])
starts = [row[0] for row in other]
wrong = [row for row in first if not row[1].startswith("end") and
         other[bisect.bisect(starts, row[0]) - 1][1] != row[1]]
print(len(wrong), "differ:", wrong[:3])
sys.exit(bool(wrong))
END
}
for f in "$T/lazy" "$T/gcc_fp" "$T/static" "$(gcc -print-file-name=libc.so.6)"; do
	by_hand=$T/rows/$(id_of "$f").rows
	"$PROFD" debug unwind-table --full "$f" >"$by_hand"
	objcopy --remove-section=.eh_frame --remove-section=.debug_frame \
		--remove-section=.eh_frame_hdr "$f" "$T/nothing" 2>/dev/null
	"$PROFD" debug unwind-table --full --unwind-rows "$T/rows" "$T/nothing" \
		>"$T/back" 2>"$T/err"
	result $? "${f##*/}: rows are read back" || diag "$(cat "$T/err")"
	check "... all of them" same_rules "$by_hand" "$T/back"
	num "... which are many" "$(wc -l <"$T/back")" '>' 10
	rm "$by_hand"
done
main=$(nm "$T/lazy" | sed -n 's/^0*\([0-9a-f]*\) T main$/\1/p')
printf '# by hand\n%s r10+24 c-32 c-16\n%x end\n' "$main" $((0x$main + 4)) \
	>"$T/rows/$(id_of "$T/lazy").rows"
"$PROFD" debug unwind-table --unwind-rows "$T/rows" "$T/lazy" >"$T/mixed"
like "rows by hand go before the file's" "$(cat "$T/mixed")" \
	$'\n'"$main r10[+]24 c-32 c-16"$'\n'
"$PROFD" debug unwind-table "$T/lazy" >"$T/own"
elsewhere=0
while read -r _ at _; do
	((0x$at >= 0x$main && 0x$at <= 0x$main + 4)) || elsewhere=$((elsewhere + 1))
done < <(diff "$T/own" "$T/mixed" | grep '^[<>]')
is "... and nowhere else" "$elsewhere" 0
num "... where something is different" "$(diff "$T/own" "$T/mixed" | wc -l)" '>' 1
like "... one address" \
	"$("$PROFD" debug unwind --unwind-rows "$T/rows" "$T/lazy:$main")" \
	'r10[+]24 c-32 c-16'
printf '1000 rsp+8\n' >"$T/rows/$(id_of "$T/lazy").rows"
fails "a mistake in rows by hand" 1 \
	"rows/$(id_of "$T/lazy")[.]rows:1:11: no rule for rbp" \
	unwind-table --unwind-rows "$T/rows" "$T/lazy"
rm "$T/rows/"*
printf '1000 end\n' >"$T/rows/abc.rows"
fails "a name that is no build id" 1 'rows/abc.rows: the name is not BUILDID' \
	unwind-table --unwind-rows "$T/rows" "$T/lazy"
fails "no directory" 1 'none: No such file' \
	unwind-table --unwind-rows "$T/none" "$T/lazy"

# --- known functions of C libraries ---
libc=$(gcc -print-file-name=libc.so.6)
num "clone's parent has a caller, its child has none" \
	"$("$PROFD" debug unwind-table --full "$libc" |
		grep -c ' rsp+8 u expr:7700067000302e1e$')" '>=' 1
# The address after the last instruction of a signal frame, which does not return.
end=$(readelf -wNf "$libc" 2>/dev/null | awk '
	/ CIE/ { signal = 0 }
	/Augmentation: +"zRS"/ { signal = 1 }
	/ FDE / && signal { sub(/.*[.][.]/, ""); sub(/^0+/, ""); print; exit }')
like "behind a system call that does not come back" \
	"$("$PROFD" debug unwind "$libc:$end")" ': sig expr expr'
like "... and no further" \
	"$("$PROFD" debug unwind "$libc:$(printf %x $((0x$end + 1)))")" ': end u$'
loader=$(gcc -print-file-name=ld-linux-x86-64.so.2)
entry=$(readelf -h "$loader" | sed -n 's/.*Entry point address: *0x//p')
like "the dynamic linker's first instruction is a root" \
	"$("$PROFD" debug unwind "$loader:$entry")" ': rsp[+]8 u u'
init=$(readelf -SW "$T/gcc_O2" | sed -n 's/.* \.init  *PROGBITS *0*\([0-9a-f]*\) .*/\1/p')
like "_init, to its last instruction" \
	"$("$PROFD" debug unwind-table "$T/gcc_O2")" \
	"(^|"$'\n'")$init rsp[+]8 u"$'\n'"[0-9a-f]+ rsp[+]16 u"$'\n'"[0-9a-f]+ rsp[+]8 u"$'\n'"[0-9a-f]+ end u"

# --- an entry stub without unwind information ---
gcc -nostdlib -static -fno-asynchronous-unwind-tables -o "$T/stub" -x c - <<'END'
__asm__(".globl _start\n_start: xor %rbp, %rbp\nmov %rsp, %rdi\ncall begin\n");
void begin(long *sp) { for (;;) __asm__ volatile("" :: "r"(sp)); }
END
entry=$(readelf -h "$T/stub" | sed -n 's/.*Entry point address: *0x//p')
fails "no CFI and an entry stub" 1 'stub: no unwind information' \
	unwind-table "$T/stub"
gcc -nostdlib -static -o "$T/stub_cfi" -x c - <<'END'
__asm__(".globl _start\n_start: xor %rbp, %rbp\nmov %rsp, %rdi\ncall begin\n"
	".fill 100, 1, 0x90\n");
void begin(long *sp) { for (;;) __asm__ volatile("" :: "r"(sp)); }
END
entry=$(readelf -h "$T/stub_cfi" | sed -n 's/.*Entry point address: *0x//p')
is "an entry stub without CFI is a root" \
	"$("$PROFD" debug unwind-table "$T/stub_cfi" | grep -A1 "^$entry ")" \
	"$entry rsp+8 u u"$'\n'"$(printf %x $((0x$entry + 64))) end u"
rows_check "$T/stub_cfi"

# As in musl: nothing marks the callers of main and of threads as the ends of stacks, but
# the value that they return goes straight to exit and pthread_exit.
cat >"$T/musl.c" <<'END'
__asm__(".globl _start, exit, pthread_exit, to_main, to_thread, no_main\n"
	".type exit, @function\n.type pthread_exit, @function\n"
	"_start: xor %rbp, %rbp\nmov %rsp, %rdi\ncall _start_c\n.fill 80, 1, 0x90\n"
	"_start_c: jmp __libc_start_main\n.fill 80, 1, 0x90\n"
	"exit: jmp exit\n.fill 80, 1, 0x90\n"
	"pthread_exit: jmp pthread_exit\n.fill 80, 1, 0x90\n"
	"push %rbx\nto_main: call *%rbx\nmov %eax, %edi\ncall exit\n"
	".fill 80, 1, 0x90\n__libc_start_main: ret\n.fill 600, 1, 0x90\n"
	"to_thread: call *(%rbx)\nmov %rax, %rdi\ncall pthread_exit\n"
	"no_main: call *%rbx\nmov %ebx, %edi\ncall exit\n"
	"restorer: mov $15, %eax\nsyscall\n"
	".fill 80, 1, 0x90\n");
void begin(long *sp) { for (;;) __asm__ volatile("" :: "r"(sp)); }
END
gcc -nostdlib -static -O1 -o "$T/musl" "$T/musl.c" ||
	bail "a program like musl's is built"
strip -o "$T/musl.s" "$T/musl"
# root_at FILE SYMBOL: "root" if the byte before the return address of the call there
# is a root.
root_at() {
	local at
	at=$(nm "$T/musl" | sed -n "s/^0*\([0-9a-f]*\) [tT] $2\$/\1/p")
	"$PROFD" debug unwind "$1:$(printf %x $((0x$at + 1)))" |
		sed -n 's/.*: rsp+8 u u$/root/p; s/.*: end u$/gap/p'
}
is "main is called from a root" "$(root_at "$T/musl" to_main)" root
is "a thread too" "$(root_at "$T/musl" to_thread)" root
is "... where something else is returned not" \
	"$(root_at "$T/musl" no_main)" gap
at=$(nm "$T/musl" | sed -n 's/^0*\([0-9a-f]*\) t restorer$/\1/p')
like "where signal handlers return to" \
	"$("$PROFD" debug unwind-table --full "$T/musl")" \
	$'\n'"$at sig:[*]rsp[+]160 [*]rsp[+]120 [*]rsp[+]168 .* r15=[*]rsp[+]96"$'\n'"$(printf %x $((0x$at + 8))) end u"
is "stripped: main is called from a root" "$(root_at "$T/musl.s" to_main)" root
is "... of threads nobody knows" "$(root_at "$T/musl.s" to_thread)" gap

if [[ -n ${ROWS_ALL:-} ]]; then
	find /usr/bin /usr/sbin /usr/lib/ -xdev -type f -print0 |
		xargs -0 -n 2000 "$E2E/rows_check" >"$T/all" 2>&1
	sums=$(awk '
		/^files [0-9]/ { for (i = 1; i < NF; i += 2) sum[$i] += $(i + 1) }
		END { for (k in sum) printf "%s %d\n", k, sum[k] }' "$T/all")
	echo "# $(tr '\n' ' ' <<<"$sums")"
	is "every file below /usr/bin, /usr/sbin, /usr/lib: differences" \
		"$(sed -n 's/^differences //p' <<<"$sums")" 0 ||
		diag "$(grep -v '^files ' "$T/all")"
	num "... files" "$(sed -n 's/^files //p' <<<"$sums")" '>' 100
fi
plan
