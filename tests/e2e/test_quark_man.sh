#!/bin/bash
# The manual pages of libquark are correct: their examples compile against the installed
# files and run, all functions, constants and members are in them, and so are the
# options of the tools.
#
# An example follows a line   .\" example NAME once|loop REGEX
# "once" ends by itself with status 0, "loop" is ended as soon as its output matches;
# meanwhile short processes come and go, as children of this shell.
. "$(dirname "$0")/lib.sh"
cd "$ROOT" || exit 1
pages=(processmanager/quark/man/*.[378])
header=processmanager/quark/quark.h
map=processmanager/quark/libquark.map
top=$T/root/usr/local
san=${SAN:+-fsanitize=$SAN}

make -s install DESTDIR="$T/opt" PREFIX=/opt/q >"$T/install.log" 2>&1
is "quark.pc has the prefix of the installation" \
	"$(head -n 1 "$T/opt/opt/q/lib/pkgconfig/quark.pc")" "prefix=/opt/q"
make -s install DESTDIR="$T/root" PREFIX=/usr/local >"$T/install.log" 2>&1 ||
	bail "libquark is installed" "$(tail -n 20 "$T/install.log")"

# --- the examples --------------------------------------------------------------
# Each into a file of its own, and NAME MODE REGEX into $T/examples.
mkdir "$T/ex"
awk -v dir="$T/ex" '
	/^\.\\" example / {
		name = $3
		print substr($0, index($0, $3))
		next
	}
	name && /^\.Bd -literal/ { out = dir "/" name ".c"; next }
	out && /^\.Ed/ { close(out); out = name = ""; next }
	out { gsub(/\\e/, "\\"); gsub(/\\&/, ""); print >out }
' "${pages[@]}" >"$T/examples"
num "there are examples" "$(grep -c . "$T/examples")" ">=" 10
is "every program in the pages is one of them" \
	"$(cat "${pages[@]}" | grep -c '^int main')" \
	"$(grep -c . "$T/examples")"

# The output of an example is not buffered.
cat >"$T/line.c" <<-'END'
	#include <stdio.h>
	__attribute__((constructor)) static void by_line(void)
	{
		setvbuf(stdout, NULL, _IOLBF, 0);
	}
END

# compile NAME OPTIONS...
compile() {
	local name=$1
	shift
	# shellcheck disable=SC2086 # several words, or none
	gcc -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Werror $san \
		-o "$T/ex/$name" "$T/ex/$name.c" "$T/line.c" "$@"
}

# life FILE REGEX: starts one more short process, then checks the output.
life() {
	/bin/true of a manual page
	grep -qaE "$2" "$1"
}

run_loop() {
	background "$T/ex/$1" >"$T/$1.out" 2>"$T/$1.err"
	wait_for 60 life "$T/$1.out" "$2"
	result $? "example $1 runs" ||
		diag "$(cat "$T/$1.err"; tail -n 20 "$T/$1.out")"
	kill "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
}

run_once() {
	local tries=1200 rc
	background timeout 60 "$T/ex/$1" >"$T/$1.out" 2>"$T/$1.err"
	while kill -0 "$pid" 2>/dev/null && ((--tries > 0)); do
		/bin/true of a manual page
		sleep 0.05
	done
	wait "$pid"
	rc=$?
	((rc == 0)) && grep -qaE "$2" "$T/$1.out"
	result $? "example $1 runs" ||
		diag "exit status $rc" "$(cat "$T/$1.err" "$T/$1.out")"
}

while read -r name mode regex <&3; do
	check "example $name compiles" compile "$name" -I"$top/include" \
		"$top/lib/libquark.a" -lbpf -lelf -lz
	"run_$mode" "$name" "$regex"
done 3<"$T/examples"

check "the header is whole, for strict C" gcc -std=c11 -pedantic -Wall -Wextra \
	-Werror -fsyntax-only -x c "$top/include/quark.h"
check "... and for C++" g++ -std=c++11 -Wall -Wextra -Werror -fsyntax-only \
	-x c++ "$top/include/quark.h"

export PKG_CONFIG_SYSROOT_DIR=$T/root PKG_CONFIG_PATH=$top/lib/pkgconfig
# shellcheck disable=SC2046 # several words
check "as quark(7) says it, with the shared library" compile follow \
	$(pkg-config --cflags --libs quark)
LD_LIBRARY_PATH=$top/lib run_loop follow EXEC

# --- completeness --------------------------------------------------------------
exported=$(sed -n 's/^[[:space:]]*\(quark_[a-z0-9_]*\);.*/\1/p' "$map" | sort)
documented=$(sed -n '/^\.Sh SYNOPSIS/,/^\.Sh DESC/s/^\.Fn \(quark_[a-z0-9_]*\).*/\1/p' \
	"${pages[@]}" | sort)
is "every call has its page, every page its calls" "$documented" "$exported"
is "they are what the shared library exports" \
	"$(nm -D --defined-only "$top/lib/libquark.so.0" | sed 's/@.*//' |
		awk '$3 != "LIBQUARK_0" { print $3 }' | sort)" "$exported"
is "... and the archive" "$(nm -g --defined-only "$top/lib/libquark.a" |
	awk 'NF == 3 { print $3 }' | sort)" "$exported"
for call in $exported; do
	grep -qxE "\.Nm $call( ,)?" "${pages[@]}" || echo "$call"
done >"$T/unnamed"
is "every call is in a NAME section" "$(cat "$T/unnamed")" ""

# missing WORDS...: those that are in no page.
missing() {
	local word
	for word; do
		grep -qwF -e "$word" "${pages[@]}" || echo "$word"
	done
}
mapfile -t constants < <(grep -oE '\b(QQ|QUARK|RAW)_[A-Z0-9_]+\b' "$header" |
	grep -vxE 'QUARK_(H|X_|EV_|F_|RF_|ELT_|ID_CHANGE_)|QQ_|.*_' | sort -u)
num "constants were found" ${#constants[@]} ">" 60
is "every constant is in a page" "$(missing "${constants[@]}")" ""

# Members, by the format of the sources: one tab.
mapfile -t members < <(awk '
	/^struct quark_(socket|packet|file|ptrace|module_load|shm|tty|container|pod|queue_attr|queue_stats|event|process|key|file_ident|rule|rule_field|ruleset|passwd|group|losses) \{/ { on = 1; next }
	/^}/ { on = 0 }
	on {
		sub(/\/\*.*/, "")
		gsub(/\[[^]]*\]/, "")
		if (match($0, /\(\*[a-z_]+\)/)) {
			print substr($0, RSTART + 2, RLENGTH - 3)
			call = 1
		}
		if (call) {
			call = !/;/
			next
		}
		if (/;[[:space:]]*$/ || /^\t\t[a-z_]+;/) {
			sub(/;.*/, "")
			n = split($0, part, /[ \t*,]+/)
			print part[n]
			if (/,/)
				print part[n - 1]
		}
	}' "$header" | grep -E '^[a-z]' | grep -vxE 'pad[0-9]*' | sort -u)
num "members were found" ${#members[@]} ">" 80
is "every member is in a page" "$(missing "${members[@]}")" ""

for page in $(sed -n 's/^\.Xr \(quark[a-z_-]*\) \([0-9]\).*/\1.\2/p' \
	"${pages[@]}" | sort -u); do
	[[ -f processmanager/quark/man/$page ]] || echo "$page"
done >"$T/dangling"
is "every reference has its page" "$(cat "$T/dangling")" ""
for page in "${pages[@]}"; do
	[[ -f $top/share/man/man${page##*.}/${page##*/} ]] || echo "$page"
done >"$T/absent"
is "every page is installed" "$(cat "$T/absent")" ""

# --- the tools -----------------------------------------------------------------
# options TOOL: the options in its page; those that getopt(3) takes.
for tool in quark-btf quark-mon; do
	is "$tool(8) has every option" \
		"$(sed -n 's/^\.It Fl \([A-Za-z]\).*/\1/p' \
			"processmanager/quark/man/$tool.8" | sort | tr -d '\n')" \
		"$(sed -n -e 's/.*getopt(argc, argv, "\([^"]*\)".*/\1/p' \
			-e 's/.* letters\[\] = "\([^"]*\)".*/\1/p' \
			"processmanager/quark/tools/$tool.c" | tr -d ':' |
			grep -o . | sort | tr -d '\n')"
	like "$tool -V" "$("$top/sbin/$tool" -V)" "^$tool [0-9.]+$"
	"$top/sbin/$tool" -h >"$T/help"
	is "$tool -h" "$? $(head -c 6 "$T/help")" "0 usage:"
	"$top/sbin/$tool" -? >"$T/help" 2>&1
	is "$tool with an unknown option" $? 2
done

mon=$top/sbin/quark-mon
"$mon" --help >"$T/help"
is "quark-mon --help" "$? $(head -c 6 "$T/help")" "0 usage:"
is "... says every option" \
	"$(sed -n 's/^  -\([A-Za-z]\) .*/\1/p' "$T/help" | sort | tr -d '\n')" \
	"$(sed -n 's/.* letters\[\] = "\([^"]*\)".*/\1/p' \
		processmanager/quark/tools/quark-mon.c | tr -d ':' |
		grep -o . | sort | tr -d '\n')"
like "quark-mon --version" "$("$mon" --version)" "^quark-mon [0-9.]+$"
printf 'drop on process.exe */true\nallow on any\n' >"$T/rules"
"$mon" -r "$T/rules" 2>"$T/mon.err"
is "quark-mon says where rules are wrong" "$? $(cat "$T/mon.err")" \
	"1 quark-mon: $T/rules: line 2, column 1: pass, drop or poison is missing"
"$mon" -M 2>"$T/mon.err"
is "quark-mon -M is refused" "$? $(wc -l <"$T/mon.err")" "1 1"

# monitor NAME REGEX OPTIONS...: the output of quark-mon matches, and it ends with 0.
monitor() {
	local name=$1 regex=$2
	shift 2
	background "$mon" "$@" >"$T/mon.out" 2>"$T/mon.err"
	wait_for 60 life "$T/mon.out" "$regex"
	result $? "quark-mon $name" || diag "$(tail -n 20 "$T/mon.out")"
	kill -INT "$pid"
	wait "$pid"
	like "... and ends by a signal" "$? $(head -n 1 "$T/mon.err")" \
		"^0 insertions [1-9]"
}

monitor "-P: one event for a short life" "FORK\+EXEC\+EXIT" -P $$
is "... of children of this shell only" \
	"$(sed -n 's/^  PROC.*\(ppid=[0-9]*\) .*/\1/p' "$T/mon.out" | sort -u)" \
	"ppid=$$"
is "... no reap" "$(grep -c '(REAP)' "$T/mon.out")" 0
is "... and no environment" "$(grep -cE '^  ENV' "$T/mon.out")" 0
monitor "-n: every raw event" "\(EXIT\)" -n
is "... nothing joined" "$(grep -cE '^->.*\+' "$T/mon.out")" 0
is "... no reap" "$(grep -c '(REAP)' "$T/mon.out")" 0
monitor "-n -R: reaps too" "\(REAP\)" -n -R
export QUARK_MAN=of_a_test
monitor "-x: the environment" "^  ENV.*QUARK_MAN=of_a_test" -x

# Pending output is printed before the end.
background "$mon" -P $$ >"$T/mon.out" 2>"$T/mon.err"
wait_for 60 life "$T/mon.out" "EXEC"
# All except the rings, which are the mappings of BPF maps.
pss=$(awk '/^[0-9a-f]+-[0-9a-f]+ / { ring = /anon_inode/ }
	/^Pss:/ && !ring { sum += $2 } END { print sum }' "/proc/$pid/smaps")
[[ -n $san ]] || num "it takes less than 12 MiB beside the ring (KiB)" \
	"$pss" "<=" 12288
/bin/echo held at the end >"$T/null"
kill -INT "$pid"
wait "$pid"
is "quark-mon ends well" $? 0
like "... with what was held" "$(grep -a CMDLINE "$T/mon.out" | tail -n 1)" \
	"held, at, the, end"
# The processes of a login by ssh.
cp /bin/sh "$T/sshd"
# shellcheck disable=SC2016 # it is that shell's
background "$T/sshd" -c 'while :; do setsid -w /bin/true; sleep 0.1; done'
monitor "-E -e: lines of JSON" '"entry_meta":."type":"sshd"' -E -e
check "... which jq reads" jq -e . "$T/mon.out"
printf 'poison 1 on process.pid %d\npass on poison 1\ndrop on any\n' $$ \
	>"$T/rules"
monitor "-r: what a rule passes" "FORK\+EXEC\+EXIT" -r "$T/rules"
monitor "-s -C: the cache at both ends" "EXEC" -s -C "$T/dot"
like "... first" "$(head -n 1 "$T/mon.out")" "^->[0-9]+ \(\)"
is "... last" "$(head -n 1 "$T/dot") $(tail -n 1 "$T/dot")" \
	"digraph processes { }"
num "... with processes and parents" "$(grep -c -e '->' "$T/dot")" ">" 1

btf=$top/sbin/quark-btf
"$btf" >"$T/btf" 2>"$T/btf.err"
is "quark-btf finds all that libquark reads" "$? $(cat "$T/btf.err")" "0 "
num "... which is not little" "$(grep -cE '^[a-z_.]+ +[0-9]+$' "$T/btf")" ">=" 50
is "of a file the same" "$("$btf" -f /sys/kernel/btf/vmlinux)" "$(cat "$T/btf")"
like "in bits too" "$("$btf" -b vfsmount.mnt_root task_struct.tgid | tail -n 1)" \
	"^task_struct.tgid +([0-9]+) [0-9]+$"
read -r _ bytes bits < <("$btf" -b task_struct.tgid)
is "... eight a byte" "$bits" $((bytes * 8))
out=$("$btf" task_struct.nothing task_struct.pid 2>"$T/btf.err")
is "one that is missing" "$? $(wc -l <<<"$out") $(cat "$T/btf.err")" \
	"1 1 quark-btf: task_struct.nothing: no such member"
"$btf" -f /nowhere 2>"$T/btf.err"
is "a file that is missing" "$? $(cat "$T/btf.err")" \
	"1 quark-btf: /nowhere: No such file or directory"
"$btf" task_struct.pid 2>"$T/btf.err" >/dev/full
is "output that cannot be written" "$?" 1

plan
