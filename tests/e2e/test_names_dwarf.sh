#!/bin/bash
# Names, inlined calls and lines by DWARF: against llvm-symbolizer at random addresses of
# programs of several compilers and forms of DWARF, of files with separate debug
# information, and what profd makes of damaged or hostile DWARF. With NAMES_ALL=1 also of
# all files of the host that have debug information, and more addresses of each.
. "$(dirname "$0")/lib.sh"
count=${NAMES_COUNT:-400}
oracle() { python3 "$E2E_SRC/names_oracle.py" "$PROFD" "$1" "$count" "${@:2}"; }

# same NAME FILE [OPTION...]: at each address all is as llvm-symbolizer has it.
same() {
	local out
	out=$(oracle "${@:2}")
	diag "$out"
	check "$1: no name, chain or line differs" \
		awk -v lines="$out" 'BEGIN {
			exit lines !~ /same=[0-9]/ || lines ~ /(line|name|chain|answers)[= ]/
		}'
}

cat >"$T/a.cc" <<'END'
#include <algorithm>
#include <vector>
namespace n {
template <class C> struct S {
	C v;
	__attribute__((noinline)) int f(int x)
	{
		std::vector<int> a(x);
		for (int i = 0; i < x; i++)
			a[i] = i * 7 % 13;
		std::sort(a.begin(), a.end());
		return a[x / 2];
	}
};
}
static inline int in2(int x) { return x * 3 + 1; }
static inline int in1(int x)
{
	int s = 0;
	for (int i = 0; i < x; i++)
		s += in2(i);
	return s;
}
int main(int argc, char **argv)
{
	n::S<int> s;
	std::vector<int> m;
	auto f = [&](int x) { return x + (int)m.size(); };
	for (int i = 0; i < argc + 3; i++)
		m.push_back(in1(i) + f(i));
	return s.f(100) + (int)m.size() + in1(argc);
}
END
cd "$T" || exit 1
# NAME COMMAND: what is compiled is compared.
while read -r name command; do
	eval "$command -o $name a.cc" 2>err || {
		check "$name" cat err
		continue
	}
	same "$name" "$name"
done <<'END'
gcc5 g++ -O2 -g
gcc4 g++ -O2 -gdwarf-4
clang5 clang++ -O2 -gdwarf-5
clang4 clang++ -O2 -gdwarf-4
gz g++ -O1 -g -gz
lto g++ -O2 -g -flto
clang64 clang++ -O2 -gdwarf-5 -gdwarf64
sections g++ -O2 -g -ffunction-sections -Wl,--gc-sections
END
cat >r.rs <<'END'
use std::collections::HashMap;
fn main() {
    let mut m: HashMap<String, usize> = HashMap::new();
    for (i, a) in std::env::args().enumerate() {
        *m.entry(a).or_insert(0) += i;
    }
    let mut v: Vec<_> = m.iter().collect();
    v.sort();
    println!("{:?}", v);
}
END
rustc -O -g r.rs -o rust 2>err
same "rust" rust

# --- split DWARF: .dwo files, then a .dwp file, then one of another build ---
# In the middle of each function.
addresses_of()
{
	local at size
	while read -r at size; do
		printf '%#x\n' $((16#$at + size / 2))
	done < <(readelf -sW "$1" | awk '$4 == "FUNC" && $3 > 40 { print $2, $3 }')
}
# chains FILE: how many inlined calls there are.
chains() {
	# shellcheck disable=SC2046 # addresses
	"$PROFD" debug symbolize -j "$1" $(addresses_of "$1") | jq -s '[.[].frames | length - 1] | add'
}
while read -r name compiler options; do
	mkdir "$T/$name"
	cd "$T/$name" || exit 1
	cp ../a.cc .
	# shellcheck disable=SC2086 # options
	"$compiler" -O2 $options -gsplit-dwarf -c a.cc -o a.o && "$compiler" a.o -o p
	same "$name" p
	found=$(chains p)
	num "$name: inlined calls" "$found" '>' 0
	# llvm-dwp 14 cannot read compressed sections, nor dwp 2.40 DWARF 5.
	packed=
	case $options in
	*-gz*) ;;
	*dwarf-4*) dwp -e p -o p.dwp && packed=1 ;;
	*) llvm-dwp -e p -o p.dwp && packed=1 ;;
	esac
	mv a.dwo kept
	if [[ $packed ]]; then
		same "$name, .dwp" p
		is "$name, .dwp: inlined calls" "$(chains p)" "$found"
		for at in 4 60 200; do
			cp p.dwp whole
			head -c $((at * $(stat -c %s whole) / 256)) whole >p.dwp
			num "$name: .dwp cut at $at/256: names" "$(chains p)" '>=' 0
			cp whole p.dwp
		done
		rm p.dwp
	fi
	is "$name without .dwo: names, no inlined calls" "$(chains p)" 0
	# shellcheck disable=SC2086 # options
	"$compiler" -O1 $options -DOTHER=1 -gsplit-dwarf -c a.cc -o b.o
	mv b.dwo a.dwo
	is "$name with another build's .dwo: no inlined calls" "$(chains p)" 0
done <<'END'
split5gcc g++ -gdwarf-5
split4gcc g++ -gdwarf-4
split5clang clang++ -gdwarf-5
split4clang clang++ -gdwarf-4
split5gz g++ -gdwarf-5 -gz
END
cd "$T" || exit 1

# --- separate files ---
objcopy --only-keep-debug gcc5 gcc5.debug
strip gcc5 -o stripped
objcopy --add-gnu-debuglink=gcc5.debug stripped
id=$(readelf -n gcc5 | sed -n 's/.*Build ID: //p')
mkdir -p "ids/.build-id/${id:0:2}"
"$PROFD" debug symbolize -j stripped >without </dev/null
addresses=$(readelf -sW gcc5 | awk '$4 == "FUNC" && $3 > 40 { print "0x" $2 }' | head -n 20)
"$PROFD" debug symbolize -j gcc5 $addresses >own
cp gcc5.debug "ids/.build-id/${id:0:2}/${id:2}.debug"
"$PROFD" debug symbolize -j --debug-dir "$T/ids" stripped $addresses >separate
lines() { jq -c '[.address, [.frames[] | del(.source)]]' "$1"; }
is "a debug file found by build id gives inlined calls and lines" "$(lines separate)" \
	"$(lines own)"
num "... and there are some" "$(grep -c '"line":[1-9]' separate)" '>' 5

# Parts that two debug files share, moved to a third one.
g++ -O1 -g a.cc -o other
for f in gcc5 other; do
	objcopy --only-keep-debug "$f" "$f.dz"
done
dwz -m common.dz -M "$T/common.dz" gcc5.dz other.dz
for f in gcc5 common; do
	id=$(readelf -n "$f.dz" 2>/dev/null | sed -n 's/.*Build ID: //p')
	mkdir -p "dz/.build-id/${id:0:2}"
	cp "$f.dz" "dz/.build-id/${id:0:2}/${id:2}.debug"
done
like "dwz made a third file" "$(readelf -SW gcc5.dz)" 'gnu_debugaltlink'
"$PROFD" debug symbolize -j --debug-dir "$T/dz" stripped $addresses >shared
is "... whose names are found too" "$(lines shared)" "$(lines own)"

# --- hostile ---
# damage SECTION OFFSET BYTES: changes a copy of gcc4.
damage() {
	local at
	cp gcc4 bad
	at=$(readelf -SW bad | sed -n "s/.*\] *$1 *[A-Z]* *[0-9a-f]* *\([0-9a-f]*\) .*/\1/p")
	printf '%b' "$3" | dd of=bad bs=1 seek=$((16#$at + $2)) conv=notrunc status=none
}
for where in ".debug_info 0 \\xff\\xff\\xff\\x7f" ".debug_abbrev 0 \\xff\\xff\\xff\\xff" \
	".debug_line 0 \\xff\\xff\\xff\\xff" ".debug_line 10 \\x00\\x00\\x00\\x00" \
	".debug_info 11 \\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff"; do
	# shellcheck disable=SC2086 # three words
	damage $where
	out=$("$PROFD" debug symbolize bad $addresses 2>&1)
	is "damaged ($where): each function has a name" \
		"$(grep -c '^0x' <<<"$out")/$(grep -c '+0x' <<<"$out")" \
		"$(wc -w <<<"$addresses")/0"
done

if [[ ${NAMES_ALL:-} == 1 ]]; then
	count=1000
	while read -r f; do
		readelf -SW "$f" 2>/dev/null | grep -q ' \.z\?debug_info ' || continue
		same "$f" "$f"
	done < <(find /usr/bin /usr/sbin /usr/local /usr/lib/x86_64-linux-gnu -type f \
		\( -perm /111 -o -name '*.so*' \) 2>/dev/null)
fi
plan
