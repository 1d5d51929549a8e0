#!/bin/bash
# Unwind rows of Go programs: those of .gopclntab, which stripped programs have too,
# against .debug_frame of the same build as binutils reads it; with C linked in, as a
# position-independent program and as a library; and without section headers.
. "$(dirname "$0")/lib.sh"

export GOCACHE=$B/go-cache GOFLAGS=-mod=mod GOTOOLCHAIN=local GO111MODULE=on
mkdir "$T/go"
cat >"$T/go/go.mod" <<'END'
module rows
go 1.18
END
cat >"$T/go/plain.go" <<'END'
package main

import (
	"fmt"
	"os"
	"sort"
)

//go:noinline
func deep(n int, big [40]int) int {
	if n == 0 {
		return big[3]
	}
	big[n%40]++
	return deep(n-1, big) + big[7]
}

func main() {
	defer func() { fmt.Println(recover()) }()
	s := []int{3, 1, 2}
	done := make(chan int)
	go func() { done <- deep(len(os.Args), [40]int{}) }()
	sort.Slice(s, func(i, j int) bool { return s[i] < s[j] })
	panic(<-done + s[0])
}
END
cat >"$T/go/with_c.go" <<'END'
package main

/*
static int twice(int a) { return 2 * a; }
*/
import "C"
import "fmt"

//export Call
func Call() {}

func main() { fmt.Println(C.twice(21)) }
END

# build NAME SOURCE FLAGS...: a program, and the same one stripped.
made=()
build() {
	local name=$1 source=$2 out
	shift 2
	out=$(cd "$T/go" && "$GO" build "$@" -o "$T/$name" "$source" 2>&1 &&
		strip -o "$T/$name.s" "$T/$name" 2>&1) ||
		bail "$name is built: $out"
	made+=("$T/$name")
}
build plain plain.go
# One is stripped by Go's linker.
out=$(cd "$T/go" && "$GO" build -ldflags '-s -w' -o "$T/plain.s" plain.go 2>&1) ||
	bail "plain.s is built: $out"
build pie plain.go -buildmode=pie
build noopt plain.go '-gcflags=all=-N -l'
build cgo with_c.go
build cgo_pie with_c.go -buildmode=pie
build library with_c.go -buildmode=c-shared
"$GO" version | sed 's/^/# /'

out=$("$E2E/rows_check" "${made[@]}" 2>&1)
result $? "CFA and return address are .debug_frame's, at every row" ||
	diag "$out"
sum() {
	sed -n "s/^files .* $1 \([0-9]*\).*/\1/p" <<<"$out"
}
is "... of all of them" "$(sed -n 's/^files \([0-9]*\) .*/\1/p' <<<"$out")" \
	${#made[@]}
num "... which are many rows" "$(sum rows)" '>' 50000
num "... and rbp is known where .debug_frame has no word of it" \
	"$(sum go-rbp)" '>' 10000

# rows FILE: its table.
rows() {
	"$PROFD" debug unwind-table "$1"
}
for f in "${made[@]}"; do
	name=${f##*/}
	rows "$f" >"$T/whole" 2>"$T/err"
	is "$name: nothing is damaged" "$(cat "$T/err")" ""
	rows "$f.s" >"$T/stripped" 2>&1
	check "$name: stripped, the rows are the same" \
		cmp "$T/whole" "$T/stripped"
	cp "$f.s" "$T/bare"
	printf '\0\0\0\0\0\0\0\0' |
		dd of="$T/bare" bs=1 seek=40 conv=notrunc status=none
	printf '\0\0\0\0' |
		dd of="$T/bare" bs=1 seek=60 conv=notrunc status=none
	rows "$T/bare" >"$T/none" 2>&1
	check "$name: without section headers too" cmp "$T/whole" "$T/none"
done

# Ends of stacks: functions that the Go runtime marks as the top of one, or that change
# to another.
roots=$("$PROFD" debug unwind-table "$T/plain" | awk '$4 == "u" { print $1 }' |
	addr2line -f -e "$T/plain" | sed -n '1~2p' | sed 's/\.abi0$//' | sort -u)
for name in runtime.goexit runtime.mstart runtime.rt0_go runtime.mcall \
	runtime.systemstack runtime.morestack runtime.asmcgocall \
	_rt0_amd64_linux; do
	check "a stack ends in $name" grep -qxF "$name" <<<"$roots"
done
# functions VALUE: of the return address
functions() {
	"$PROFD" debug unwind-table --full "$T/plain" |
		awk -v value="$1" '$4 ~ "^" value "(:|$)" { print $1 }' |
		addr2line -f -e "$T/plain" | sed -n '1~2p' |
		sed 's/\.abi0$//' | grep -E '^runtime\.(goexit|mstart|rt0_go|mcall|systemstack|morestack|asmcgocall)$' |
		sort -u | xargs
}
is "... which is its beginning" "$(functions u)" \
	"runtime.goexit runtime.mstart runtime.rt0_go"
is "... or goes on elsewhere" "$(functions elsewhere)" \
	"runtime.asmcgocall runtime.mcall runtime.morestack runtime.systemstack"
is "... and in nothing but the runtime and what it jumps to" \
	"$(grep -vE '^(runtime\..*|_rt0_amd64.*|gogo|time\.now)$' <<<"$roots")" ""

# --- damage ---
start=$(readelf -SW "$T/plain.s" |
	sed -n 's/.* \.gopclntab  *PROGBITS *[0-9a-f]* *\([0-9a-f]*\) .*/\1/p')
# broken NAME AT BYTES REGEX: the message for a table with these bytes there.
broken() {
	cp "$T/plain.s" "$T/broken"
	printf '%b' "$3" | dd of="$T/broken" bs=1 conv=notrunc status=none \
		seek=$((0x$start + $2))
	"$PROFD" debug unwind-table "$T/broken" >"$T/out" 2>"$T/err"
	is "$1: exit status" $? 1
	like "$1: says where" "$(cat "$T/err")" "$4"
}
broken "another version" 0 '\0' \
	'[.]gopclntab, offset 0x0 .of the file 0x[0-9a-f]*.: a header of no known version; the table is partial'
broken "more functions than there are" 10 '\077' \
	'[.]gopclntab, offset 0x'
list=$(od -An -t u8 -j $((0x$start + 64)) -N 8 "$T/plain.s" | tr -d ' ')
broken "a function that leads nowhere" $((list + 8 * 100 + 4)) \
	'\377\377\377\177' \
	'[.]gopclntab, offset 0x[0-9a-f]* .of the file 0x[0-9a-f]*.: a function that leads beyond its table; the table is partial'
num "... has rows up to the damage" "$(wc -l <"$T/out")" '>=' 100
num "... and not all" "$(wc -l <"$T/out")" '<' \
	"$(wc -l < <(rows "$T/plain.s"))"
plan
