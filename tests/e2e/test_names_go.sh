#!/bin/bash
# Names of Go programs from .gopclntab at random addresses, of stripped programs: functions,
# files and lines against `go tool addr2line`, inlined calls against the DWARF of the same
# build as llvm-symbolizer reads it. NAMES_ALL=1 takes more addresses and programs, among
# them Go's own tools, and other versions of Go: NAMES_GO has the paths of their go commands.
. "$(dirname "$0")/lib.sh"

export GOCACHE=$B/go-cache GOFLAGS=-mod=mod GOTOOLCHAIN=local GO111MODULE=on
addresses=300
((${NAMES_ALL:-0})) && addresses=1000
mkdir "$T/go"
cat >"$T/go/go.mod" <<'END'
module names

go 1.18
END
cat >"$T/go/plain.go" <<'END'
package main

import (
	"bytes"
	"fmt"
	"os"
	"sort"
	"strings"
)

type pair struct {
	a string
	b [3]int
	c interface{}
}

type shape interface{ area() int }
type square struct{ side int }

func (s square) area() int { return twice(s.side) * s.side }

func twice(a int) int { return plus(a, a) }
func plus(a, b int) int {
	if a > 100 {
		return a - b
	}
	return a + b
}

func sum(all ...shape) (n int) {
	for _, s := range all {
		n += s.area()
	}
	return plus(n, twice(n))
}

func main() {
	m := map[pair]int{{a: "x"}: 1}
	f := func(k string) int {
		g := func() int { return plus(m[pair{a: k}], len(os.Args)) }
		return g() + twice(len(k))
	}
	defer func() { fmt.Println(recover()) }()
	s := []int{3, 1, 2, f("x"), sum(square{2}, square{3})}
	sort.Slice(s, func(i, j int) bool { return plus(s[i], 1) < twice(s[j]) })
	fmt.Println(s, strings.ToUpper("x"), bytes.Contains([]byte("ab"), []byte("b")))
	generic()
}
END
cat >"$T/go/generic.go" <<'END'
//go:build go1.18
// +build go1.18

package main

import "fmt"

type list[T any] struct {
	value T
	next  *list[T]
}

func (l *list[T]) push(v T) *list[T] { return &list[T]{v, l} }

func max[T int | string | float64](a, b T) T {
	if a > b {
		return a
	}
	return b
}

//go:noinline
func fold[T any](l *list[T], f func(T, T) T) (v T) {
	for ; l != nil; l = l.next {
		v = f(v, l.value)
	}
	return
}

func generic() {
	var a *list[int]
	var b *list[string]
	fmt.Println(fold(a.push(3).push(4), max[int]), fold(b.push("x"), max[string]))
}
END
cat >"$T/go/old.go" <<'END'
//go:build !go1.18
// +build !go1.18

package main

func generic() {}
END
cat >"$T/go/c.go" <<'END'
//go:build cgo && withc
// +build cgo,withc

package main

// static int triple(int a) { return 3 * a; }
import "C"
import "fmt"

func init() { fmt.Println(C.triple(2)) }
END

cat >"$T/compare.py" <<'END'
# compare.py OURS ADDR2LINE DWARF: prints differences, then counts. ADDR2LINE and DWARF
# may be "-". Counted, but no differences:
#  padding    between functions, where `go tool addr2line` has the one before
#  dwarfless  no function in DWARF: the linker's own marks
#  lineless   no line in DWARF: generated functions, in some files of Go 1.26
#  wrapper    DWARF of Go 1.17 lacks a method that is inlined in its generated wrapper
#  unknown    inlined, but by .gopclntab it is not known what: PIE of Go 1.16 and 1.17
import collections, re, sys

ours, addr2line, dwarf = sys.argv[1:]
count = collections.Counter()

def differs(kind, at, us, them):
    count[kind] += 1
    print(f"{kind} {at}: {us} but {them}")

def linked(name):
    """DWARF has the linker's names: with the types of generic functions, with .abi0 at
    functions that take their arguments on the stack, and other dots in Go 1.17."""
    name = re.sub(r"\.abi0$", "", name).replace("·", ".")
    return re.sub(r"\[.*\]", "[...]", name)

def blocks(path):
    """llvm-symbolizer: pairs of lines, an empty line behind each address; it
    resolves relative names of files."""
    for block in open(path).read().split("\n\n"):
        lines = block.strip("\n").split("\n")
        yield [(linked(lines[i]), re.sub(r"^(\./)+", "", lines[i + 1].rsplit(":", 1)[0]))
               for i in range(0, len(lines) - 1, 2)]

outer = chains = None
if addr2line != "-":
    outer = open(addr2line).read().splitlines()
if dwarf != "-":
    chains = list(blocks(dwarf))
for i, line in enumerate(open(ours).read().splitlines()[1:]):
    at, rest = line.split(" ", 1)
    part = rest.split("\t")
    if rest == "none":
        count["padding"] += 1
        continue
    if len(part) < 4:
        differs("unnamed", at, rest, chains and chains[i])
        continue
    chain = [(part[k], f"{part[k + 1] or '??'}:{part[k + 2]}")
             for k in range(0, len(part), 4)]
    count["named"] += 1
    count["inlined"] += len(chain) > 1
    count["generic"] += "[...]" in rest
    if outer:
        us = (chain[-1][0], chain[0][1])
        them = (outer[2 * i], re.sub(r"^:-\d+$", "??:0", outer[2 * i + 1]))
        if us[1] == "??:0" and us != them and us[0] == them[0]:
            count["unknown"] += 1
        elif us != them:
            differs("addr2line", at, us, them)
    if not chains:
        continue
    us, them = [(linked(c[0]), c[1]) for c in chain], chains[i]
    if them[0][0] == "??":
        count["dwarfless"] += 1
    elif us[0][1] == "??:0" and us[0][0] == them[-1][0]:
        count["unknown"] += 1
    elif len(us) == 2 and len(them) == 1 and us[1][1].startswith("<autogenerated>"):
        count["wrapper"] += 1
    elif [c[0] for c in us] != [c[0] for c in them]:
        differs("chain", at, us, them)
    elif us[0][1].startswith("<autogenerated>") and them[0][1].endswith(":0"):
        count["lineless"] += 1
    elif us != them:
        differs("line", at, us, them)
print("counts", " ".join(f"{k}={v}" for k, v in sorted(count.items())), "")
END

# compare NAME FILE TWIN LINER: TWIN and LINER may be -. The result is in $out.
compare() {
	local lines=- dwarf=-
	"$E2E/names_go" "$2" "$addresses" 1 >"$T/ours" || bail "$1 is read"
	sed '1d; s/ .*//; s/^/0x/' "$T/ours" >"$T/at"
	if [[ $4 != - ]]; then
		lines=$T/lines
		"$4" tool addr2line "$2" <"$T/at" >"$lines" || bail "$1: addr2line"
	fi
	if [[ $3 != - ]]; then
		dwarf=$T/dwarf
		llvm-symbolizer --no-demangle --functions --inlines -e "$3" \
			<"$T/at" >"$dwarf" || bail "$1: llvm-symbolizer"
	fi
	out=$(python3 "$T/compare.py" "$T/ours" "$lines" "$dwarf" 2>&1)
	is "$1: functions, inlined calls and lines" "$(grep -v '^counts' <<<"$out")" ""
	num "... at most addresses" "$(count named)" '>' $((addresses * 8 / 10))
	echo "# ${out##*$'\n'}"
}

# count KIND: of the last comparison
count() {
	local n
	n=$(sed -n "s/^counts.* $1=\([0-9]*\) .*/\1/p" <<<"$out")
	echo "${n:-0}"
}

# twins GO NAME FLAGS...: a program, and the same stripped by the linker, compared.
twins() {
	local go=$1 name=$2 file=$T/${2// /_} liner=- text
	shift 2
	text=$(cd "$T/go" && "$go" build -o "$file" "$@" . 2>&1 &&
		"$go" build -o "$file.s" -ldflags '-s -w' "$@" . 2>&1) ||
		bail "$name is built: $text"
	# addr2line takes the start of .text for that of Go's; in 1.19 it does not
	# find the table of a position-independent program.
	[[ $name == *pie* || $name == *cgo* ]] || liner=$go
	compare "$name" "$file.s" "$file" "$liner"
}

# all GO VERSION
all() {
	local pie=(-buildmode=pie)
	twins "$1" "plain $2"
	twins "$1" "trimmed $2" -trimpath
	twins "$1" "unoptimized $2" '-gcflags=all=-N -l'
	twins "$1" "cgo $2" -tags withc
	[[ $2 == go1.1[67]* ]] && return # their inlined calls are not known
	twins "$1" "pie $2" "${pie[@]}"
	twins "$1" "cgo pie $2" "${pie[@]}" -tags withc
}

"$GO" version | sed 's/^/# /'
twins "$GO" plain
num "... some of them inlined" "$(count inlined)" '>' $((addresses / 20))
is "... all of which are known" "$(count unknown)" 0
twins "$GO" pie -buildmode=pie
is "pie: all inlined calls are known" "$(count unknown)" 0
twins "$GO" 'cgo pie' -buildmode=pie -tags withc
is "cgo pie: all inlined calls are known" "$(count unknown)" 0

((${NAMES_ALL:-0})) || {
	plan
	exit
}
for go in "$GO" ${NAMES_GO:-}; do
	version=$("$go" version | sed 's/.*\(go1[^ ]*\).*/\1/')
	all "$go" "$version"
	for tool in "$("$go" env GOROOT)"/{bin,pkg/tool/*}/*; do
		compare "${tool##*/} $version" "$tool" - "$go"
	done
done
plan
