#!/bin/bash
# A million system calls a second by one user, while processes of another are watched:
# these are complete, what is lost of the storm is counted, and profd samples on.
. "$(dirname "$0")/../e2e/lib.sh"

start_profd watch
background "$PROFD" watch --json --server "unix:$sock" syscall_exit-getppid \
	>"$T/all" 2>"$T/all.err"
# The storm is in its queue, too, which is the same for all users.
background "$PROFD" watch --json --server "unix:$sock" --user root syscall_exit-getuid \
	>"$T/root" 2>"$T/root.err"
check "hooks are attached" wait_for 60 grep -q '"watching"' "$T/all"
check "... and for another user's events" wait_for 60 grep -q '"watching"' "$T/root"
cat >"$T/storm.pl" <<'PL'
my $end = time + shift;
my $n = 0;
while (time < $end) {
	for (1 .. 1000) { getppid; getppid; getppid; getppid; getppid; }
	$n += 5000;
}
my ($user, $system) = times;
print "$n ", $user + $system, "\n";
PL
seconds=20
storms=()
for ((i = 0; i < $(nproc); i++)); do
	setpriv --reuid 65534 --regid 65534 --clear-groups perl -e "$(cat "$T/storm.pl")" \
		"$seconds" >"$T/storm.$i" &
	storms+=($!)
done
# Of another user: each call has an event.
python3 - >"$T/own" <<'PY'
import ctypes, os, time
getuid = ctypes.CDLL(None).getuid
n = 0
for i in range(150):
    for j in range(5):
        getuid()
        n += 1
    time.sleep(0.1)
print(os.getpid(), n)
PY
read -r own n <"$T/own"
wait "${storms[@]}"
sent=$(cat "$T"/storm.[0-9]* | awk '{ n += $1 } END { print n }')
# As fast as these CPUs can: by CPU time, since others may use them, too.
rate=$(cat "$T"/storm.[0-9]* | awk -v cpus="$(nproc)" '
	{ n += $1; cpu += $2 } END { printf "%d", n / cpu * cpus }')
num "calls a second of the storm" "$rate" '>=' "${STORM:-1000000}"
mine() { jq -c "select(.pid == $own and .name == \"syscall_exit-getuid\")" "$T/root" | wc -l; }
complete() { (($(mine) >= n)); }
check "the other user's events are complete" wait_for 60 complete
lost=$(jq -s 'map(.lost["syscall_exit-getppid"] // 0) | add' "$T/all")
seen=$(jq -c 'select(.uid == 65534 and .name == "syscall_exit-getppid")' "$T/all" | wc -l)
num "what was lost is counted" "$lost" '>' 0
# Others call it as well, and so rarely that it does not matter.
num "seen and lost are what was sent" "$((seen + lost - sent))" '<' 1000
num "... and no less" "$((seen + lost))" '>=' "$sent"
echo "# $sent calls in $seconds s, $seen seen, $lost lost; $n of the other user"
is "profd samples" "$(ask /healthz | grep -c '^failing')" 0
stop_profd
is "profd ends well" $? 0
plan
