#!/bin/bash
# Stacks of code without frame pointers are complete and correct: programs with a known
# chain of calls, built in many ways, and each of their stacks compared with that chain.
# At least 99.5 % have to be correct, of some hundred samples a program, which allows for
# chance.
. "$(dirname "$0")/lib.sh"
S=$E2E/stacks
ld=$(readelf -h /lib64/ld-linux-x86-64.so.2 |
	awk '/Entry point/ { print substr($4, 3) }')
HZ=1997 ms=40

plain="chain recursion alloca tail noreturn async vfork threads"
musl="$plain callback"
glibc="$plain signal altstack callback vdso context"
grep -q '\[vsyscall\]' /proc/self/maps && glibc+=" vsyscall"
shared="$glibc plt dlopen"

# PROGRAM KIND LIBC MODE...: the programs, and the stacks they must have.
programs() {
	cat <<-END
		modes_gcc modes glibc $shared
		modes_clang modes glibc $shared
		modes_static modes glibc $glibc
		modes_static_pie modes glibc $glibc
		modes_stripped modes glibc $shared
		modes_static_stripped modes glibc $glibc
		modes_sectionless modes glibc $shared
		modes_musl modes musl $musl
		modes_musl_static modes musl $musl
		throw_gcc throw glibc in_flight cleanup
		throw_clang throw glibc in_flight cleanup
		rust rust glibc deep sort panic
		go_plain go glibc deep sort
		go_cgo go glibc go c back
	END
}

# sum KIND [NAME]: of $T/chains
sum() {
	awk -F '\t' -v kind="$1" -v name="${2:-}" '
		$1 == kind && (name == "" || $2 == name) { n += $3 }
		END { print n + 0 }' "$T/chains"
}

# stacks_of TSV PROGRAM KIND LIBC: compared with its chains, into $T/chains.
stacks_of() {
	local names=
	if [[ -f $2.twin ]]; then
		names=$T/names
		nm -n "$2.twin" >"$names"
	fi
	awk -v prog="$2" -v kind="$3" -v libc="$4" -v ld="$ld" \
		-v names="$names" -f "$E2E_SRC/stacks/chains.awk" "$1" |
		sort -t $'\t' -k 3,3nr >"$T/chains"
}

# verdict NAME MODE...: two tests on $T/chains. The modes of a Go program share its CPU
# time as its scheduler decides.
verdict() {
	local name=$1 good bad few='' mode
	shift
	good=$(($(sum mode) + $(sum only))) bad=$(sum bad)
	all_good=$((all_good + good)) all_bad=$((all_bad + bad))
	for mode; do
		(($(sum mode "$mode") >= ms * HZ / 5000)) ||
			few+=" $mode: $(sum mode "$mode")"
	done
	is "$name: samples of each kind" "$few" ""
	fine "$good" $((good + bad)) 99.5
	result $? "$name: $good of $((good + bad)) stacks are right" ||
		diag "$(grep -v ^mode "$T/chains")"
	diag "$name: exec $(sum exec)," \
		"ends: $(awk -F '\t' '$1 == "ends" { printf "%s %s, ", $2, $3 }' \
			"$T/chains")"
}

# Two at a time, for a known CPU time each.
programs | awk -v s="$S" -v ms=$ms '{
	# Of Go the goroutine is known only later.
	if ($2 != "modes")
		print s "/" $1, ($2 == "go" ? 400 : 5 * ms)
	else {
		p = $1
		$1 = $2 = $3 = ""
		print s "/" p, ms, $0
	}
}' >"$T/run"
out=$T/stacks.pb.gz
watch "$out" -F $HZ -- xargs -a "$T/run" -P 2 -L 1 env
is "all programs ended well" $? 0 || diag "$(cat "$out.log")"
check_profile "$out"
samples "$out" >"$T/all"

all_good=0 all_bad=0
while read -r prog kind libc modes; do
	stacks_of "$T/all" "$S/$prog" "$kind" "$libc"
	# shellcheck disable=SC2086 # words
	verdict "$prog" $modes
	if [[ $kind == go ]]; then
		# Not in the first samples, of which profd learns that it is of Go.
		lost=$(sum mode lost) found=$(($(sum mode c) + $(sum mode switched)))
		num "$prog: most that left their stack have their goroutine" \
			"$(percent "$found" $((found + lost)))" '>=' 50
	fi
done < <(programs)
num "99.5 % of all $((all_good + all_bad)) stacks" \
	"$(percent $all_good $((all_good + all_bad)))" '>=' 99.5

# An upgrade renames a new file over that of a running program; before profd has seen
# it, and while profd runs. Addresses in the two files differ.
mkdir "$T/up"
cp "$S/libcalled.so" "$T/up/"
upgrade() {
	other_build_id "$S/modes_$1" "$T/up/new" "$2" && mv "$T/up/new" "$T/up/prog"
}
cat >"$T/upgraded" <<END
#!/bin/bash
"$T/up/prog" $((5 * ms)) chain &
echo "middle \$!"
sleep 0.3
mv "$T/up/again" "$T/up/prog"
"$T/up/prog" $((5 * ms)) chain &
echo "last \$!"
wait
END
chmod +x "$T/upgraded"
# Not the programs of another run of this test, which have another path.
id=$((10#$(date +%N) + 100000 * $$))
upgrade gcc "$id"
background "$T/up/prog" 600000 chain
early=$pid
wait_for 60 grep -q "$T/up/libcalled.so" "/proc/$early/maps"
upgrade clang $((id + 1))
other_build_id "$S/modes_gcc" "$T/up/again" $((id + 2))
out=$T/upgrade.pb.gz
background record "$out" -F $HZ -p "$early" -p $$ -d 600
wrapper=$pid
sampling() { # it has its events
	recorder=$(pgrep -P "$wrapper" profd) &&
		find "/proc/$recorder/fd" -lname '*perf_event*' | grep -q .
}
check "upgrade: a recorder" wait_for 120 sampling
recorder=$(pgrep -P "$wrapper" profd)
sleep 1
"$T/upgraded" >"$T/upgraded.log"
is "upgrade: ran" $? 0
kill -TERM "$recorder"
wait "$wrapper"
is "upgrade: recorded" $? 0 || diag "$(cat "$out.log")"
kill -KILL "$early"
wait "$early" 2>/dev/null
samples "$out" | sed "s, (deleted),,g" >"$T/upgrade"
for which in early middle last; do
	pid=$(awk -v w=$which '$1 == w { print $2 }' "$T/upgraded.log")
	awk -F '\t' -v pid="${pid:-$early}" '$3 == pid' "$T/upgrade" >"$T/up.$which"
	stacks_of "$T/up.$which" "$T/up/prog" modes glibc
	verdict "upgrade, $which" chain
done
plan
