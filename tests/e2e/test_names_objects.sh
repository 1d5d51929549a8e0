#!/bin/bash
# Relocatable files in debug symbolize and symbolize-profile: names, inlined calls and lines
# of .o files by several compilers against llvm-symbolizer and addr2line; addresses by
# function and section; compressed files, debug files, and what is refused. With NAMES_ALL=1
# also all kernel modules below /lib/modules and the directories in NAMES_KO.
. "$(dirname "$0")/lib.sh"
symbolize() { "$PROFD" debug symbolize "$@"; }

# same NAME FILE...: all is as the others have it, but for what is explained there.
same() {
	local out
	out=$(python3 "$E2E_SRC/names_objects.py" "$PROFD" "${@:2}")
	diag "$out"
	check "$1: no name, chain or line differs" awk -v lines="$out" 'BEGIN {
		exit lines !~ / (same|nolines)=[0-9]/ || lines ~ / (llvm|addr2line|answers)[= ]/
	}'
}

cat >"$T/a.cc" <<'END'
#include <algorithm>
#include <vector>
__thread int per_thread;
template <class C> struct S {
	C v;
	__attribute__((noinline)) int f(int x)
	{
		std::vector<int> a(x);
		for (int i = 0; i < x; i++)
			a[i] = i * 7 % 13 + per_thread++;
		std::sort(a.begin(), a.end());
		return a[x / 2];
	}
};
static inline int in2(int x) { return x * 3 + 1; }
static inline int in1(int x)
{
	int s = 0;
	for (int i = 0; i < x; i++)
		s += in2(i);
	return s;
}
__attribute__((section(".init.text"))) int at_start(int x) { return in1(x); }
int many(int n)
{
	S<int> s;
	std::vector<int> m;
	for (int i = 0; i < n + 3; i++)
		m.push_back(in1(i));
	return s.f(100) + (int)m.size() + in1(n);
}
END
cat >"$T/m.c" <<'END'
static inline int twice(int x) { return x * x; }
__attribute__((noinline)) int work(int x) { return twice(x) + 1; }
__attribute__((noinline)) static int hidden(int x) { return work(x) / 3; }
__attribute__((section(".init.text"))) int start(int x) { return hidden(x) + 2; }
END
cd "$T" || exit 1

# --- compilers ---
while read -r name command; do
	eval "$command -c -o $name.o a.cc" 2>err || {
		check "$name" cat err
		continue
	}
	same "$name" "$name.o"
done <<'END'
gcc5 g++ -O2 -g
gcc4 g++ -O2 -gdwarf-4 -ffunction-sections
clang5 clang++ -O2 -gdwarf-5 -ffunction-sections
clang4 clang++ -O2 -gdwarf-4
gz g++ -O1 -g -gz -ffunction-sections
plain g++ -O2 -ffunction-sections
END
ld -r -z muldefs -o joined.o gcc5.o clang4.o
is "two files joined: both functions have lines" \
	"$(symbolize -j joined.o _Z4manyi+8 _Z8at_starti+8 | grep -c '"line":[1-9]')" 2

# --- addresses ---
gcc -g -O2 -c m.c && ld -r --build-id=sha1 -o m.ko m.o || bail "gcc and ld"
# functions COMMAND...: the functions that it prints.
functions() { "$@" | cut -c 35- | sed 's/ at .*//' | tr '\n' ' '; }
work=$(nm m.ko | awk '$3 == "work" { print $1 }')
is "an address of .text is that of addr2line" "$(functions symbolize m.ko "$work")" \
	"$(addr2line -fie m.ko "$work" | sed -n 'p;n' | tr '\n' ' ')"
is "functions and sections by name" \
	"$(functions symbolize m.ko work hidden+1 .init.text start+0x2 .text)" \
	"twice work hidden start start $(functions symbolize m.ko 0)"
is "... of standard input" "$(printf 'work\nstart+1\n' | functions symbolize m.ko)" \
	"twice work start "
is "... of an executable" "$(functions symbolize "$E2E/prog_lives" main+0)" "main "
# fails STATUS MESSAGE NAME COMMAND...
fails() {
	local want=$1 message=$2 name=$3 rc
	shift 3
	"$@" >out 2>err </dev/null
	rc=$?
	is "$name: exit status" "$rc" "$want"
	like "$name: message" "$(cat err)" "$message"
}
fails 1 'm.ko: nothing: no such function or section' 'no such name' symbolize m.ko work nothing
is "no such name: nothing is answered" "$(wc -c <out)" 0
fails 1 'work\+1000: the offset is beyond its end' 'an offset that is too large' \
	symbolize m.ko work+1000
fails 2 "'work\+x': must be an address" 'an offset that is no number' symbolize m.ko work+x
fails 1 '1 of 2 addresses are not in its code' 'behind the code' symbolize m.ko work 100000
fails 1 'vdso.*only addresses' 'a name in the vDSO' symbolize '[vdso]' clock_gettime
printf 'static int same(void) { return 1; }\nint (*a)(void) = same;\n' >s1.c
sed 's/\*a/*b/' s1.c >s2.c
gcc -O0 -c s1.c s2.c && ld -r -o s.o s1.o s2.o
fails 1 'same: several functions have that name' 'an ambiguous name' symbolize s.o same
fails 1 'relocatable and compressed files' 'unwind-table' "$PROFD" debug unwind-table m.ko

# --- compressed ---
symbolize m.ko work start hidden >plain
xz -k --check=crc32 m.ko && gzip -k m.ko && zstd -q m.ko
for z in m.ko.xz m.ko.gz m.ko.zst; do
	is "$z: all is the same" "$(symbolize $z work start hidden)" "$(cat plain)"
	head -c 300 $z >cut.ko
	fails 1 'cut.ko: its compressed contents are damaged' "$z, truncated" symbolize cut.ko 0
done
head -c 200000000 /dev/zero | gzip -1 >bomb.ko.gz
fails 1 'bomb.ko.gz: File too large' 'a bomb' symbolize bomb.ko.gz 0

# --- debug files ---
id=$(build_id m.ko)
mkdir -p "dir/.build-id/${id:0:2}"
objcopy --only-keep-debug m.ko "dir/.build-id/${id:0:2}/${id:2}.debug"
objcopy --strip-debug m.ko stripped.ko
is "stripped: names only" "$(functions symbolize stripped.ko work start)" "work start "
is "a debug file by build id gives the rest" \
	"$(symbolize --debug-dir "$T/dir" stripped.ko work start hidden)" "$(cat plain)"
is "... and is enough" \
	"$(symbolize "dir/.build-id/${id:0:2}/${id:2}.debug" work start hidden)" "$(cat plain)"
cp "dir/.build-id/${id:0:2}/${id:2}.debug" m.ko.debug
objcopy --strip-debug --remove-section=.note.gnu.build-id m.ko linked.ko
objcopy --add-gnu-debuglink=m.ko.debug linked.ko
is "a debug file by .gnu_debuglink" "$(symbolize linked.ko work start hidden)" "$(cat plain)"

# --- a profile with a mapping of a module ---
# Beyond what the shell can count with.
python3 - "$work" "$T/m.ko.xz" "$id" >profile.txt <<'END'
import sys
base = 0xffffffffc0100000
print("""sample_type { type: 1 unit: 2 }
sample { location_id: 7 value: 3 }
mapping { id: 9 memory_start: %d memory_limit: %d filename: 3 build_id: 4 }
location { id: 7 mapping_id: 9 address: %d }
string_table: ["", "cpu", "nanoseconds", "%s", "%s"]""" %
      (base, base + 0x10000, base + int(sys.argv[1], 16) + 2, sys.argv[2], sys.argv[3]))
END
protoc --proto_path="$ROOT/reporter" --encode=perftools.profiles.Profile profile.proto \
	<profile.txt >profile.pb
"$PROFD" symbolize-profile -q profile.pb -o named.pb.gz
like "symbolize-profile names it" "$(zcat named.pb.gz | strings)" '(^|
)work(
|$)'

# --- relocations that are not known ---
cat >unknown.py <<'END'
import struct, subprocess, sys
data = bytearray(open(sys.argv[1], "rb").read())
for line in subprocess.run(["readelf", "-SW", sys.argv[1]], capture_output=True,
                           text=True).stdout.splitlines():
    if ".rela.debug_info" in line:
        at = int(line.split("RELA")[1].split()[1], 16)
        struct.pack_into("<I", data, at + 8, 9)
open(sys.argv[2], "wb").write(data)
END
python3 unknown.py m.o unknown.o
fails 1 'debug information is not used: relocations of type 9 are not known' \
	'an unknown relocation' symbolize unknown.o work start
is "an unknown relocation: names are those of symbols" "$(cut -c 35- out | tr '\n' ' ')" \
	"work start "

if [[ ${NAMES_ALL:-} == 1 ]]; then
	# shellcheck disable=SC2086 # directories
	mapfile -t modules < <(find /lib/modules ${NAMES_KO:-} -name '*.ko' 2>/dev/null)
	((${#modules[@]} == 0)) || same "${#modules[@]} modules" "${modules[@]}"
fi
plan
