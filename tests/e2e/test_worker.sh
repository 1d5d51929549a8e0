#!/bin/bash
# The symbolize worker is killed again and again while new executables appear: names are
# complete all the same. It has no privilege, and ends with profd.
. "$(dirname "$0")/lib.sh"
programs=10

# The child of profd; nothing while there is none.
worker() {
	pgrep -P "$profd" profd-symbolize | head -n 1
}

gone() {
	[[ ! -e /proc/$1 ]]
}

for ((i = 1; i <= programs; i++)); do
	other_build_id "$E2E/prog_spin_new" "$T/storm$i" "$i"
done
# storm: each of them after the other.
cat >"$T/storm.sh" <<END
for ((i = 1; i <= $programs; i++)); do
	nice -n 20 $T/storm\$i 300
done
END
background record "$T/storm.pb.gz" -- bash "$T/storm.sh"
shell=$pid
wait_for 60 pgrep -P "$shell"
profd=$(pgrep -P "$shell")
kills=0
while kill -0 "$shell" 2>/dev/null; do
	sleep 0.5
	pid=$(worker) && kill -KILL "$pid" && kills=$((kills + 1))
done
wait "$shell"
is "recorded" $? 0
num "it was killed meanwhile" "$kills" '>=' 3
samples "$T/storm.pb.gz" | awk -F '\t' '$7 ~ /storm[0-9]+$/' >"$T/storm"
is "all programs were sampled" \
	"$(cut -f 7 "$T/storm" | sort -u | wc -l)" "$programs"
num "all of their work has its names" "$(percent "$(total "$T/storm" \
	'^spin_new@[^;]*;middle_new@[^;]*;main@')" \
	"$(total "$T/storm" 'storm[0-9]')")" '>=' 95
diag "$(cut -f 10 "$T/storm" | sort | uniq -c | sort -rn | head -n 5)"

# --- its privileges ---
start_profd still
like "status names the symbolize worker" "$(ask /status)" \
	"symbolize worker: process $(worker), user id [0-9]+, no capabilities"
fields=$(grep -E '^(CapEff|Seccomp|NoNewPrivs):' "/proc/$(worker)/status")
like "no capability" "$fields" "CapEff:"$'\t'"0000000000000000"
like "no new privileges" "$fields" "NoNewPrivs:"$'\t'"1"
like "a system call filter" "$fields" "Seccomp:"$'\t'"2"
is "nothing was quarantined" "$(metric profd_symbolize_quarantined_total)" 0
is "nothing it said was refused" \
	"$(metric profd_symbolize_worker_lies_total)" 0

# --- the end ---
last=$(worker)
kill -KILL "$profd"
wait "$profd" 2>/dev/null
check "it ends with profd" wait_for 60 gone "$last"
plan
