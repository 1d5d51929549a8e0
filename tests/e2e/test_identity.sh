#!/bin/bash
# The identity of a file: programs with one build id, or that were changed in the
# middle, copied over, or stripped, have the names of their own file.
. "$(dirname "$0")/lib.sh"
ID=0x$(printf '%040d' 7)

# prog NAME CFLAGS...: spin_NAME, as $T/NAME.
prog() {
	local name=$1
	shift
	"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -I"$ROOT" -O1 -fno-omit-frame-pointer \
		-fno-optimize-sibling-calls -pthread -DNAME="$name" \
		"-Wl,--build-id=$ID" "$@" -o "$T/$name" \
		"$ROOT/tests/e2e/prog_spin.c"
}

# Ten with the same code and build id.
for i in 0 1 2 3 4 5 6 7 8 9; do
	prog "n$i"
done
is "they have one build id" "$(for i in "$T"/n?; do build_id "$i"; done |
	sort -u)" "${ID#0x}"

# The same size, head and tail; another name in the middle.
{
	echo '.section .note.GNU-stack, "", @progbits'
	echo '.data'
	for i in $(seq 3000); do
		echo ".globl some_symbol_to_fill_the_table_$i"
		echo "some_symbol_to_fill_the_table_$i: .byte 0"
	done
} >"$T/fill.s"
prog aaa "$T/fill.s"
sed 's/\(spin\|middle\|child\)_aaa/\1_bbb/g' "$T/aaa" >"$T/bbb"
chmod 755 "$T/bbb"
both() {
	cmp -s <(head -c 4096 "$T/aaa") <(head -c 4096 "$T/bbb") &&
		cmp -s <(tail -c 4096 "$T/aaa") <(tail -c 4096 "$T/bbb")
}
check "head and tail are equal" both
check "the middle is not" bash -c '! cmp -s "$0" "$1"' "$T/aaa" "$T/bbb"

# The stripped one first.
prog whole
strip -o "$T/bare" "$T/whole"

# One path, one inode, two programs.
prog old
prog new
cp "$T/old" "$T/over"
inode=$(stat -c %i "$T/over")
# Equal files with two paths.
mkdir "$T/1" "$T/2"
cp "$T/n0" "$T/1/same"
cp "$T/n0" "$T/2/same"

cat >"$T/all.sh" <<END
cd $T
for i in 0 1 2 3 4 5 6 7 8 9; do ./n\$i 250; done
./bbb 300; ./aaa 300
./bare 300; ./whole 300
./over 300; cp new over; ./over 300
1/same 300; 2/same 300
END
watch "$T/all.pb.gz" --freq 499 -- bash "$T/all.sh"
is "recorded" $? 0
is "the inode is the same" "$(stat -c %i "$T/over")" "$inode"
samples "$T/all.pb.gz" >"$T/all"

# named EXE NAME [PERCENT]: nine of ten samples of EXE are in spin_NAME. (pprof
# itself merges mappings of one build id, so its file names are not checked.)
named() {
	awk -F '\t' -v exe="$T/$1" '$7 == exe' "$T/all" >"$T/one"
	num "$1 has the names of $2" "$(percent "$(total "$T/one" \
		"spin_$2@[^;]*;middle_$2@[^;]*;main@")" "$(total "$T/one")")" \
		'>=' "${3:-90}"
}
for i in 0 1 2 3 4 5 6 7 8 9; do
	named "n$i" "n$i"
done
named bbb bbb
named aaa aaa
named whole whole
named over old 40
named over new 40
named 1/same n0
named 2/same n0
plan
