#!/bin/sh
# A kernel module that is loaded after the kernel's symbols were read, measures its own
# functions, and is unloaded a second later; then another one gets its addresses. Each
# sample in the first one has the name of its function.
# Only the BPF source has events of modules.
. /tests/lib.sh
$whole || {
	echo "ok 1 # SKIP names of modules are found once in ten seconds"
	echo "1..1"
	exit
}
cat >"$T/load" <<'MODULES'
dd if=/dev/zero of=/dev/null bs=64k count=10000
sleep 2
for m in raid6_pq xor; do
	insmod /tests/$m.ko || exit 1
	sed -n "s/ t \([^ ]*\)\t\[$m]$/ $m \1/p" /proc/kallsyms | sort >>$0.text
	sleep 1
	rmmod $m || exit 1
done
MODULES
/tests/profd record --freq 199 -o "$T/p.pb.gz" -- sh "$T/load" >"$T/log" 2>&1
result $? "modules are loaded and unloaded while it records"
diag "$(cat "$T/log")"
/tests/profd report --rows function -n 1000 "$T/p.pb.gz" >"$T/rows" 2>"$T/log"
result $? "it is reported"
diag "$(head -n 25 "$T/rows")"
num "named functions of the first" \
	"$(grep -c ' raid6_[a-z0-9]*_gen_syndrome$' "$T/rows")" -ge 2
# Between its first and last function: not those of its initialization, which are gone
# when that ends.
first=$(grep -m 1 raid6_pq "$T/load.text" | cut -c 1-16)
last=$(grep raid6_pq "$T/load.text" | tail -n 1 | cut -c 1-16)
diag "its functions: $first to $last"
num "addresses of it without a name" "$(sed -n 's/.* \[kernel\]+0x//p' "$T/rows" |
	awk -v first="$first" -v last="$last" '$1 >= first && $1 < last' | wc -l)" -eq 0
# It is there: the other one had its address.
num "the addresses were used again" "$(cut -c 1-13 "$T/load.text" | sort -u | wc -l)" \
	-lt "$(cut -c 1-13,18-22 "$T/load.text" | sort -u | wc -l)"
echo "1..$n"
