#!/bin/bash
# The ceiling of --memory-max: a user runs many large executables, all different, whose
# tables and names do not fit. profd and its workers stay below the ceiling, no sample is
# lost by that, status, health and metrics report it, and the caches grow again
# afterwards. The same load without a ceiling needs more, which shows that it is one.
#
# MEMORY_ALL=1 runs 300 executables in place of 48.
. "$(dirname "$0")/lib.sh"
count=48 HZ=199 functions=60000
[[ -z ${MEMORY_ALL:-} ]] || count=300
chmod 755 "$T"
mkdir "$T/user"

# Functions with rows and names of their own, called one after the other.
awk -v n=$functions 'BEGIN {
	print ".text"
	for (i = 0; i < n; i++) {
		f = "a_function_of_the_load_" i
		print ".type " f ", @function\n" f ":\n.cfi_startproc\npushq %rbx"
		print ".cfi_adjust_cfa_offset 8\nmovl $9, %ebx\n1: decl %ebx\njnz 1b"
		print "popq %rbx\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc"
		print ".size " f ", .-" f
	}
	print ".section .data.rel.ro, \"aw\"\n.globl table\ntable:"
	for (i = 0; i < n; i++)
		print ".quad a_function_of_the_load_" i
	print ".section .note.GNU-stack, \"\""
}' >"$T/big.s"
cat >"$T/main.c" <<END2
#include <time.h>
extern void (*const table[])(void);
int main(void)
{
	while (clock() < CLOCKS_PER_SEC * 15 / 100)
		for (int i = 0; i < $functions; i++)
			table[i]();
	return 0;
}
END2
as -o "$T/big.o" "$T/big.s" && gcc -O1 -c -o "$T/main.o" "$T/main.c" ||
	bail "the load is built"
for ((i = 0; i < count; i++)); do
	# Another file: other names, other addresses, another build id.
	printf '.globl other_%d\nother_%d:\n.cfi_startproc\n.skip %d, 0x90\nret\n.cfi_endproc\n.section .note.GNU-stack, ""\n' \
		"$i" "$i" $((i * 16 + 16)) | as -o "$T/o.o" - &&
		gcc -o "$T/user/large$i" "$T/main.o" "$T/o.o" "$T/big.o" ||
		bail "the load is built"
done
chown -R 65534 "$T/user"

# load: four at a time, as another user. Prints its CPU time in ms.
load() {
	(
		printf '%s\n' "$T"/user/large* | xargs -P 4 -n 1 setpriv --reuid 65534 \
			--regid 65534 --clear-groups nice -n 5
		times
	) | awk 'END { gsub(/[ms]/, " "); print int(($1 * 60 + $2) * 1000) }'
}
# Anonymous memory of profd and of the processes it started, in KiB.
anonymous() {
	awk '/^RssAnon:/ { n += $2 } END { print n + 0 }' /proc/"$profd"/status \
		$(pgrep -P "$profd" | sed 's,.*,/proc/&/status,') 2>/dev/null
}
watch_anonymous() {
	while :; do
		anonymous
		sleep 0.1
	done
}
# run_load NAME OPTIONS...: $ms of CPU time, $idle and $peak of memory.
run_load() {
	local name=$1 watcher
	start_profd "$@" -F $HZ --window 3600
	wait_for 60 quiet
	idle=$(anonymous)
	background watch_anonymous >"$T/$name.memory"
	watcher=$pid
	ms=$(load)
	status=$(ask /status) health=$(ask /healthz)
	kill "$watcher"
	peak=$(sort -n "$T/$name.memory" | tail -n 1)
	diag "$name: $((idle / 1024)) MiB before, at most $((peak / 1024)) MiB, $ms ms"
}
quiet() { [[ $(metric profd_trace_waiting) == 0 ]]; }

# Caches are to be cut when 16 MiB of them are filled; the tables alone are 25 MiB. On a
# host with debug packages reading that of libc takes 13 MiB for a moment.
start_profd probe -F $HZ --window 3600
wait_for 60 quiet
max=$((($(anonymous) / 1024 + 16) * 10 / 7))
stop_profd
if [[ -n ${MEMORY_ALL:-} ]]; then
	run_load free --memory-max no
	num "without a ceiling the load needs more" "$peak" '>' $((max * 1024))
	stop_profd
fi

run_load low --memory-max ${max}M
num "below the ceiling" "$peak" '<=' $((max * 1024))
num "the highest that profd measured" "$(metric profd_memory_highest_bytes)" '<=' \
	$((max << 20))
num "caches were cut" "$(metric profd_memory_shed_total)" '>' 0
like "status reports it" "$status" "memory: [0-9]+ of at most $max MiB: caches are cut"
like "and health" "$health" "degraded: (.*; )?memory: [0-9]+ of $max MiB, caches cut"
like "and the log" "$(cat "$log")" "memory: [0-9]+ of $max MiB are in use"

# --- the profile ---
kill -HUP "$profd"
windows=()
written() {
	mapfile -t windows < <(find "$archive" -name 'cpu-*.pb.gz' | sort)
	((${#windows[@]} > 0))
}
wait_for 60 written || bail "a window is written" "$(tail "$log")"
for f in "${windows[@]}"; do
	samples "$f"
done >"$T/all.tsv"
awk -F '\t' '$5 ~ /^(large|xargs|setpriv|nice)/' "$T/all.tsv" >"$T/load.tsv"
about "its samples are those of its CPU time" "$(total "$T/load.tsv")" \
	$((ms * HZ / 1000)) 2
awk -F '\t' '$5 ~ /^large/ && $10 ~ /main@/' "$T/load.tsv" >"$T/main.tsv"
num "most stacks have all names" "$(percent \
	"$(total "$T/main.tsv" 'a_function_of_the_load_[0-9]+@.*;main@')" \
	"$(total "$T/main.tsv")")" '>' 80
is "no record was lost" "$(metric profd_sampler_ring_full_total)" 0

# --- afterwards ---
# What else the host runs has names, too: perhaps the caches stay cut, but less.
grown() {
	awk '/caches have their usual size/ { now = 1 }
		/caches are cut to 1/ { split($0, part, "cut to 1/"); now = part[2] + 0 }
		now > worst { worst = now }
		now && now < worst { grown = 1 }
		END { exit !grown }' "$log"
}
check "the caches grow again, and the log says so" wait_for 120 grown
plan
