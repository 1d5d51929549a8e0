#!/bin/bash
# A file system that never answers: programs on it have no names, all others do; the
# mount is reported, and profd ends when it is signalled.
. "$(dirname "$0")/lib.sh"

mkdir "$T/mnt"
mounted+=("$T/mnt")
background "$E2E/prog_fuse" "$T/mnt" "$E2E/prog_spin_a" >"$T/fuse.log"
fuse=$pid
wait_for 60 grep -q mounted "$T/fuse.log" || bail "mounted" "$(cat "$T/fuse.log")"

# hang NAME...: each of them runs on it, and is sampled.
hang() {
	local name
	for name; do
		"$T/mnt/$name" 150 >/dev/null
	done
}
hung() {
	(($(metric profd_symbolize_opener_hung_now) >= $1))
}

start_profd hung --freq 499
hang one two three
check "openings hang" wait_for 60 hung 2
hang four five six seven eight
is "no more than two of a mount" \
	"$(metric profd_symbolize_opener_hung_now)" 2
num "the others are skipped" "$(metric profd_symbolize_open_skipped_total)" \
	'>=' 1

health=$(curl -sS --max-time 60 "$url/healthz")
like "/healthz is not failing, and names the mount" "$health" \
	"^degraded: (.*; )?mount $T/mnt does not answer"
like "... and so does status" "$("$PROFD" status --server "unix:$sock")" \
	"mount $T/mnt does not answer"

# Meanwhile, new programs.
for i in 1 2 3 4 5; do
	other_build_id "$E2E/prog_spin_new" "$T/fresh$i" "$i"
	"$T/fresh$i" 150 >/dev/null
done
start=$(date +%s%N)
stop_profd
num "it ends within 5 s" $((($(date +%s%N) - start) / 1000000)) '<=' 5000
samples "$archive"/*/*.pb.* | awk -F '\t' '$7 ~ /fresh[1-5]$/' >"$T/fresh"
is "all others were sampled" "$(cut -f 7 "$T/fresh" | sort -u | wc -l)" 5
num "... and have names" "$(percent "$(total "$T/fresh" \
	'spin_new@[^;]*;middle_new@[^;]*;main@')" "$(total "$T/fresh")")" '>=' 90
kill -KILL "$fuse"

# A user mounts an overlay over such a file system, in a user namespace: a process that
# closes one of its files hangs, even after SIGKILL. profd does not open them.
chmod 755 "$T"
mkdir -m 1777 "$T/user"
cat >"$T/overlay.sh" <<'END'
cd "$1" && mkdir fuse empty over || exit 1
timeout -s KILL 25 "$2" fuse "$3" flush >log &
for ((i = 0; i < 50; i++)); do
	! grep -q mounted log || break
	sleep 0.1
done
mount -t overlay -o lowerdir=fuse:empty overlay over || exit 1
echo ready
for name in one two three; do over/$name 300 >/dev/null; done
echo done
wait
END
start_profd overlay --freq 499
# Its user is root where /dev/fuse is for root only, but has no privilege outside.
drop=(setpriv --reuid 65534 --regid 65534 --clear-groups)
[[ -n $(find /dev/fuse -perm -6) ]] || drop=()
background "${drop[@]}" unshare -Urm bash "$T/overlay.sh" "$T/user" \
	"$E2E/prog_fuse" "$E2E/prog_spin_a" >"$T/overlay" 2>&1
overlay=$pid
over() { grep -q 'done' "$T/overlay" || ! kill -0 "$overlay"; }
wait_for 60 over
if grep -q 'done' "$T/overlay"; then
	refused() { (($(metric profd_symbolize_open_refused_total) > 0)); }
	check "the files are refused" wait_for 60 refused
	sleep 5 # longer than a file is held open
	check "profd answers" curl -sS -o /dev/null --max-time 60 "$url/healthz"
	is "... and waits nowhere" "$(metric profd_symbolize_opener_hung_now)" 0
else
	forbids "the files are refused" "a user's overlay: $(cat "$T/overlay")"
fi
pkill -KILL -P "$overlay"
stop_profd
plan
