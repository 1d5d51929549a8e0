#!/bin/bash
# Twenty programs with symbols that take very long to demangle, run in a loop by one
# user: stacks of new programs of another user are complete with names all the same.
#
# ATTACK_SECONDS=60 is the intended length; 5 is the default.
. "$(dirname "$0")/lib.sh"
seconds=${ATTACK_SECONDS:-5}
chmod 755 "$T"
mkdir "$T/attack" "$T/victim"

awk -v n=40 -f "$E2E_SRC/slow_names.awk" >"$T/slow.c"
gcc -O1 -Wl,--build-id=none -o "$T/attack/slow" "$T/slow.c" ||
	bail "the hostile program is built"
cat >"$T/attack.sh" <<'END2'
cd "$1" || exit 1
while :; do
	for i in {1..20}; do
		{ cat slow; echo "$i $RANDOM"; } >"slow$i.new"
		chmod 755 "slow$i.new"
		mv -f "slow$i.new" "slow$i"
		"./slow$i"
	done
done
END2
cat >"$T/victim.sh" <<'END2'
end=$((SECONDS + $2)) i=0
while ((SECONDS < end)); do
	"$1/fresh$((i++))" 200
done
echo "$i" >"$1/n"
END2
for ((i = 0; i < seconds * 5; i++)); do
	other_build_id "$E2E/prog_spin_new" "$T/victim/fresh$i" "$i"
done
chown -R 65534 "$T/attack"
chown -R 65533 "$T/victim"
as() {
	local uid=$1
	shift
	exec setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@"
}

background as 65534 bash "$T/attack.sh" "$T/attack"
attack=$pid
sleep 1
start_profd slow --freq 299 --window 3600
(as 65533 bash "$T/victim.sh" "$T/victim" "$seconds") >"$T/victim.out"
took_too_long() { (($(metric profd_symbolize_undemangled_total) >= 20)); }
wait_for 60 took_too_long
kill -KILL "$attack"
wait "$attack" 2>/dev/null
undemangled=$(metric profd_symbolize_undemangled_total)
diag "$(ask /status | grep -E 'worker|quarantined|user stacks|without all')"
diag "undemangled: $undemangled, starts: $(metric profd_symbolize_worker_starts_total)"
num "names took too long, and were counted" "$undemangled" '>=' 20
is "no file was quarantined for that" \
	"$(metric profd_symbolize_quarantined_total)" 0
stop_profd
is "profd ended" $? 0
samples "$(find "$archive" -type f -name '*.pb*' | head -n 1)" >"$T/all"
awk -F '\t' '$7 ~ /fresh[0-9]+$/' "$T/all" >"$T/fresh"
diag "fresh programs run: $(cat "$T/victim/n"), samples: $(total "$T/fresh")"
num "the other user's programs were sampled" "$(total "$T/fresh")" '>=' \
	"$((seconds * 30))"
# Only libraries may have functions without a symbol.
awk -F '\t' '{
	n = split($10, f, ";")
	good = $10 !~ /(^|;)fresh[0-9]+\+0x/ &&
		(f[n] !~ /^\[/ || f[n] ~ /^\[(exec|no user stack)\]/)
	sum[good] += $1
	if (!good)
		print $1, $10
} END { print sum[1] + 0, sum[0] + sum[1] >"/dev/stderr" }' \
	"$T/fresh" >"$T/bad" 2>"$T/share"
read -r good all <"$T/share"
check "99 % of their stacks are whole and named" fine "$good" "$all" 99
diag "$good of $all whole and named"
diag "$(sort "$T/bad" | uniq -c | sort -rn | head -n 5)"
plan
