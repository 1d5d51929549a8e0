#!/bin/bash
# What one gets by language: of programs of the languages that are here, the share of
# stacks that are whole, and of their frames that have names. The table goes into README.
# make check-languages runs it; what is not here is said, and is no failure.
. "$(dirname "$0")/../e2e/lib.sh"
S=$E2E/stacks
ms=3000

cat >"$T/Load.java" <<'END'
import java.util.*;
public class Load {
	static int sort(int n) {
		Integer[] v = new Integer[n];
		for (int i = 0; i < n; i++) v[i] = i * 7919 % 10007;
		Arrays.sort(v, (a, b) -> b - a);
		return v[n / 2];
	}
	static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
	public static void main(String[] a) {
		long end = System.nanoTime() + Long.parseLong(a[0]) * 1000000L, s = 0;
		while (System.nanoTime() < end) s += sort(5000) + fib(20);
		System.out.println(s);
	}
}
END
cat >"$T/load.js" <<'END'
function sort(n) {
	const v = [];
	for (let i = 0; i < n; i++) v.push(i * 7919 % 10007);
	v.sort((a, b) => b - a);
	return v[n >> 1];
}
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
const end = Date.now() + Number(process.argv[2]);
let s = 0;
while (Date.now() < end) s += sort(5000) + fib(20) + JSON.stringify({ s }).length;
END
cat >"$T/load.py" <<'END'
import json, re, sys, time
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
end = time.time() + int(sys.argv[1]) / 1000
while time.time() < end:
    fib(15)
    sorted(json.loads(json.dumps([i * 7919 % 10007 for i in range(999)])))
    re.sub("a+", "b", "xaay" * 99)
END
cat >"$T/i386.c" <<'END'
static volatile unsigned int sink;
__attribute__((noinline)) static unsigned int leaf32(unsigned int n)
{ unsigned int v = n; for (int i = 0; i < 999; i++) { v = v * 69069 + 1; sink = v; } return v; }
__attribute__((noinline)) static unsigned int middle32(unsigned int n)
{ unsigned int s = 0; for (int i = 0; i < 10; i++) s += leaf32(n + i); return s; }
void _start(void)
{ for (int i = 0; i < 150000; i++) sink += middle32(i);
  __asm__ volatile("int $0x80" : : "a"(1), "b"(0)); }
END

# LANGUAGE	WHAT IT NEEDS	COMMAND...
languages() {
	cat <<-END
		C, C++ (glibc)	$S/throw_gcc	$S/throw_gcc $((ms / 4))
		Rust	$S/rust	$S/rust $ms
		Go	$S/go_plain	$S/go_plain $ms
		Go with C (cgo)	$S/go_cgo	$S/go_cgo $ms
		Java, \`-XX:+PreserveFramePointer -XX:+DumpPerfMapAtExit\`	java	java -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit $T/Load.java $ms
		Java as it is	java	java $T/Load.java $ms
		node, \`--perf-basic-prof\`	node	node --perf-basic-prof $T/load.js $ms
		node as it is	node	node $T/load.js $ms
		Python (its C code)	python3	python3 $T/load.py $ms
		C (musl)	$S/modes_musl	$S/modes_musl $((ms / 4)) chain recursion alloca tail
		C, i386, with frame pointers	$T/i386	$T/i386
		C, i386, without	$T/i386_none	$T/i386_none
	END
}

flags=(-m32 -O1 -nostdlib -static -fno-pie -no-pie)
gcc "${flags[@]}" -fno-omit-frame-pointer "$T/i386.c" -o "$T/i386" 2>/dev/null
gcc "${flags[@]}" -fomit-frame-pointer "$T/i386.c" -o "$T/i386_none" 2>/dev/null

# row NAME TSV: the table's. Kernel frames, marks and samples without user code do not count.
row() {
	awk -F '\t' -v name="$1" '{
		n = split($10, f, ";")
		user = 0
		for (i = 1; i <= n; i++) {
			if (f[i] ~ /@(\[kernel|\[bpf|\[module)/ || f[i] ~ /\]@$/)
				continue
			user++
			frames += $1
			if (f[i] !~ /\+0x[0-9a-f]+@/ && f[i] !~ /^\[anon\]/)
				named += $1
		}
		if (f[n] ~ /^\[(exec|no user stack)\]@$/ || !user)
			next
		all += $1
		whole += f[n] ~ /\]@$/ ? 0 : $1
	} END {
		if (all && frames)
			printf "| %s | %.1f %% | %.1f %% | %d |\n", name,
				100 * whole / all, 100 * named / frames, all
	}' "$2"
}

cd "$T" || exit 1 # node writes a log there
table=$T/table
printf '| language | whole stacks | named frames | samples |\n|---|---|---|---|\n' >"$table"
while IFS=$'\t' read -r name needs command; do
	if ! command -v "$needs" >/dev/null; then
		diag "not here: $name ($needs)"
		continue
	fi
	# shellcheck disable=SC2086 # words
	record "$T/one.pb.gz" -F 499 -- $command >/dev/null
	rc=$?
	is "$name: it runs" $rc 0 || diag "$(cat "$T/one.pb.gz.log")"
	samples "$T/one.pb.gz" >"$T/tsv"
	line=$(row "$name" "$T/tsv")
	like "$name: it has samples" "$line" ' [0-9]{2,} \|$'
	diag "$(whole "$T/tsv")"
	echo "$line" >>"$table"
done < <(languages)
sed 's/^/# /' "$table"
plan
