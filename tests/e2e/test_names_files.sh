#!/bin/bash
# Functions, inlined calls and lines at random addresses, against llvm-symbolizer and
# eu-addr2line where there is DWARF, against symbol tables elsewhere: of a few files. With
# NAMES_ALL=1 of all files of the host that have debug information, of 300 others, of
# those with debug packages as if these were not installed, and of a larger program built
# by each compiler that is installed. That takes some minutes. names_files.py has the
# causes of differences. NAMES_COUNT: addresses of each file.
. "$(dirname "$0")/lib.sh"
count=${NAMES_COUNT:-300}
all=${NAMES_ALL:-0}
((all)) && count=${NAMES_COUNT:-1000}
for LLVM_SYMBOLIZER in llvm-symbolizer{-19,}; do
	command -v "$LLVM_SYMBOLIZER" >/dev/null && break
done
export LLVM_SYMBOLIZER

# compare NAME MOST [-d DIR] FILE...: at most one address in MOST has a name or a line
# that differs from what the others agree on; 0: none has.
compare() {
	local name=$1 most=$2 where=() rc
	shift 2
	if [[ $1 == -d ]]; then
		where=(-d "$2")
		shift 2
	fi
	# xargs starts one process for as many files as fit.
	printf '%s\n' "$@" | xargs -d '\n' python3 "$E2E_SRC/names_files.py" "$PROFD" \
		"$count" "${where[@]}" >"$T/out" 2>&1
	rc=$?
	is "$name: all addresses are answered" $rc 0
	((rc == 0)) || tail "$T/out" | sed 's/^/# /'
	sed -n '/^files /,$p' "$T/out" | sed 's/^/# /'
	num "$name: names and lines" "$(awk -v most="$most" '
		/^files / {
			for (i = 3; i <= NF; i++) {
				split($i, part, "=")
				total += part[2]
				if (part[1] ~ /^(profd:|nm:other)/)
					wrong += part[2]
			}
		}
		END { print total ? most ? wrong * most / total : wrong + 0 : "none" }' \
		"$T/out")" '<=' "$((most > 0))"
}

compare "a few files" 0 /lib/x86_64-linux-gnu/lib{c,stdc++,z}.so.[16] "$PROFD"
((all)) || {
	plan
	exit
}

# --- programs by compilers ---
cd "$T" || exit 1
parts=0
for i in 1 2 3 4 5 6 7 8; do
	parts+=" + part<$i>().add(x)"
done
sed "s/UNIT/unit/; s/PARTS/$parts/" "$E2E_SRC/names_unit.cc" >unit.cc
echo 'int main(int argc, char **) { return unit::run(argc); }' >>unit.cc
cat >main.rs <<'RUST'
use std::collections::{BTreeMap, HashMap};
fn main() {
    let mut m: HashMap<String, usize> = HashMap::new();
    let mut t: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (i, a) in std::env::args().enumerate() {
        *m.entry(a.clone()).or_insert(0) += i;
        t.entry(a.len()).or_default().push(a);
    }
    let mut v: Vec<_> = m.iter().collect();
    v.sort();
    println!("{:?} {:?}", v, t);
}
RUST
built=()
# build NAME COMPILER ARGUMENT...: if it is installed.
build() {
	command -v "$2" >/dev/null || {
		diag "no $2"
		return
	}
	if "${@:2}" -o "$T/$1" >err 2>&1; then
		built+=("$T/$1")
	else
		diag "$1 is not built: $(<err)"
	fi
}
for cc in g++ clang++-14 clang++-19; do
	for dwarf in 4 5; do
		build "$cc.$dwarf" $cc -O2 -g "-gdwarf-$dwarf" unit.cc
		build "$cc.$dwarf.lto" $cc -O2 -g "-gdwarf-$dwarf" -flto unit.cc \
			$([[ $cc == clang++-19 ]] && echo -fuse-ld=lld-19)
	done
	build "$cc.gz" $cc -O2 -g -gz unit.cc
	build "$cc.O0" $cc -g unit.cc
	build "$cc.O3" $cc -O3 -g unit.cc
done
build clang++-19.zstd clang++-19 -O2 -g -gz=zstd unit.cc
build rust.4 rustc -O -g -C dwarf-version=4 main.rs
build rust.5 rustc -O -g -C dwarf-version=5 main.rs
build rust.v0 rustc -O -g -C symbol-mangling-version=v0 main.rs
for f in g++.4 g++.5 clang++-14.4; do
	cp "$f" "$f.dwz" && dwz "$f.dwz" 2>/dev/null && built+=("$T/$f.dwz")
	objcopy --compress-debug-sections=zstd "$f" "$f.zstd" 2>/dev/null &&
		built+=("$T/$f.zstd")
done
compare "programs by compilers" 10000 "${built[@]}"

# --- files of the host ---
dwarf=() plain=() debug=()
while read -r f; do
	sections=$(readelf -nSW "$f" 2>/dev/null) || continue
	[[ $sections == *.text* && $sections != *.gopclntab* ]] || continue
	id=$(sed -n 's/.*Build ID: //p' <<<"$sections")
	if [[ -n $id && -e /usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug ]]; then
		debug+=("$f")
	elif [[ $sections == *debug_info* ]]; then
		dwarf+=("$f")
	else
		plain+=("$f")
	fi
done < <(find /usr/bin /usr/sbin /usr/libexec /usr/local /usr/lib -type f \
	\( -perm /111 -o -name '*.so*' \) 2>/dev/null)
compare "files with DWARF or its debug file" 10000 "${dwarf[@]}" "${debug[@]}"
mapfile -t plain < <(printf '%s\n' "${plain[@]}" | shuf -n 300 --random-source=/dev/zero)
compare "files without DWARF" 0 "${plain[@]}"
mkdir "$T/empty"
compare "files whose debug file is not there" 0 -d "$T/empty" "${debug[@]}"
plan
