#!/bin/bash
# Errors are one line that names the subject, and an exit status: 2 for usage, 127 for
# a command that does not exist, the status of the command, 1 for the rest. Old kernels
# and missing BTF have unit tests (tests/unit).
. "$(dirname "$0")/lib.sh"

# fails NAME STATUS REGEX COMMAND...: prints one matching line on standard error.
fails() {
	local name=$1 status=$2 regex=$3 rc lines
	shift 3
	timeout 60 "$@" >"$T/out" 2>"$T/err" </dev/null
	rc=$?
	lines=$(wc -l <"$T/err")
	if [[ $rc == "$status" && $lines == 1 && $(cat "$T/err") =~ $regex ]]
	then
		result 0 "$name"
		return
	fi
	result 1 "$name"
	diag "status $rc, wanted $status, $lines lines on standard error," \
		"wanted one with: $regex"$'\n'"$(cat "$T/err")"
}

run=("$PROFD" run --archive "$T/archive" --listen "unix:$T/sock")
rec=("$PROFD" record -o "$T/x.pb.gz")

# --- usage ---
fails "no command" 2 'command' "$PROFD"
fails "an unknown command" 2 'frobnicate' "$PROFD" frobnicate
for cmd in run record fetch status; do
	fails "$cmd: unknown option" 2 '--frobnicate' "$PROFD" "$cmd" \
		--frobnicate
done
fails "an unknown command, nearly one" 2 "'recrod'.*is it record" "$PROFD" recrod
fails "an option of another command" 2 "'-F'.*run and record" "$PROFD" fetch -F 9
fails "an option as it was called once" 2 '--seconds.*is it --duration' \
	"$PROFD" fetch --seconds 9
fails "a process id that is none" 2 "'self'.*process id" "$PROFD" ps self
fails "unknown option before the command" 2 '--frobnicate' \
	"$PROFD" --frobnicate
fails "a frequency that is no number" 2 "--freq.*'?many" \
	"${run[@]}" --freq many
fails "a frequency out of range" 2 '--freq.*1000000' "${run[@]}" --freq 1000000
fails "a frequency of zero" 2 '(-F|--freq).*0' "${rec[@]}" -F 0 -- true
fails "a window of zero" 2 '--window.*0' "${run[@]}" --window 0
fails "a duration that is none" 2 '(-d|--duration).*soon' \
	"${rec[@]}" -a -d soon
fails "a pid that is none" 2 '(-p|--pid).*init' "${rec[@]}" -p init -d 1
fails "a source that is none" 2 '--source.*dtrace.*auto bpf perf' \
	"${rec[@]}" --source dtrace -- true
fails "an option without its value" 2 '--freq' "${run[@]}" --freq
fails "nothing to record" 2 'record' "${rec[@]}"
fails "a file of unknown kind" 2 'x[.]svg' \
	"$PROFD" record -o "$T/x.svg" -- true
fails "a listen address that is none" 2 '(--listen|nowhere).*nowhere' \
	"$PROFD" run --archive "$T/archive" --listen nowhere
fails "fetch: seconds that are none" 2 '--duration.*x' \
	"$PROFD" fetch --duration x -o "$T/x.pb.gz"

# --- a configuration file ---
printf 'freq = 99\nwindw = 60\n' >"$T/bad.conf"
fails "configuration: an unknown key, with its line" 2 'bad[.]conf.*2.*windw' \
	"$PROFD" run --config "$T/bad.conf"
printf 'freq = often\n' >"$T/bad2.conf"
fails "configuration: a bad value" 2 'bad2[.]conf.*freq.*often' \
	"$PROFD" run --config "$T/bad2.conf"
fails "configuration: not there" 1 'none[.]conf' \
	"$PROFD" run --config "$T/none.conf"

# --- privilege ---
for cap in bpf perfmon; do
	fails "without CAP_${cap^^}" 1 "CAP_${cap^^}" \
		setpriv --bounding-set "-$cap,-sys_admin" "${run[@]}" --source bpf
done
fails "without any capability: record" 1 'CAP_BPF.*CAP_PERFMON' \
	setpriv --bounding-set -all "${rec[@]}" --source bpf -- true
fails "as another user" 1 'CAP_BPF|ermission' \
	setpriv --reuid 65534 --regid 65534 --clear-groups "${run[@]}"

# --- a kernel without BTF, which libbpf reports as "No such process" ---
: >"$T/nothing"
fails "BTF that is none: what is missing, and what goes without" 1 \
	'/sys/kernel/btf/vmlinux.*CONFIG_DEBUG_INFO_BTF.*--source perf' \
	"$E2E_SRC/own_mounts" sh -c 'mount --bind "$1" /sys/kernel/btf/vmlinux && shift &&
		exec "$@"' - "$T/nothing" "${rec[@]}" --source bpf -- true
fails "no sysfs" 1 '/sys/kernel/btf/vmlinux.*No such file.*/sys' \
	"$E2E_SRC/own_mounts" sh -c 'mount -t tmpfs none /sys && exec "$@"' - \
	"${rec[@]}" --source bpf -- true

# --- the archive ---
fails "an archive below a file" 1 '/dev/null/archive' \
	"$PROFD" run --archive /dev/null/archive --listen "unix:$T/sock"
mkdir "$T/ro"
mount -t tmpfs -o ro,size=64k,mode=755 profd-test "$T/ro" && mounted+=("$T/ro")
fails "an archive on a read-only file system" 1 "$T/ro/archive.*[Rr]ead-only" \
	"$PROFD" run --archive "$T/ro/archive" --listen "unix:$T/sock"
fails "an archive that is read-only itself" 1 "$T/ro.*[Rr]ead-only" \
	"$PROFD" run --archive "$T/ro" --listen "unix:$T/sock"

start_profd busy
fails "an archive in use" 1 "$archive.*in use by profd, process $profd .*--archive" \
	"$PROFD" run --archive "$archive" --listen "unix:$T/sock2"
fails "a TCP address in use" 1 "127.0.0.1:$port.*in use" \
	"$PROFD" run --archive "$T/a2" --listen "127.0.0.1:$port"
fails "a socket in use" 1 "$sock.*in use.*--listen" \
	"$PROFD" run --archive "$T/a3" --listen "unix:$sock"
fails "an address beyond loopback" 1 '0[.]0[.]0[.]0.*loopback' \
	"$PROFD" run --archive "$T/a4" --listen "0.0.0.0:$(free_port)"
check "whoever had it still answers" ask /healthz
stop_profd
fails "nobody there to fetch from" 1 "$sock" \
	"$PROFD" fetch --server "unix:$sock" --duration 1 -o "$T/x.pb.gz"
fails "nobody there: debug files" 1 "$sock.*is profd running there" \
	"$PROFD" debug files --server "unix:$sock"
is "... and no heading of a table" "$(cat "$T/out")" ""
fails "nobody there to ask" 1 "$sock" "$PROFD" status --server "unix:$sock"

# A socket that another user may not connect to.
start_profd closed
chmod 711 "$T"
cp "$PROFD" "$T/profd.copy"
fails "not allowed to ask: not taken for a profd that does not run" 1 \
	"$sock: Permission denied: only .*group" setpriv --reuid 65534 --regid 65534 \
	--clear-groups "$T/profd.copy" status --server "unix:$sock"
stop_profd

# The socket file of a killed profd is replaced.
start_profd stale
kill -KILL "$profd"
wait "$profd" 2>/dev/null
background "$PROFD" run --archive "$archive" --listen "unix:$sock" \
	2>"$T/stale2.log"
check "a stale socket is replaced" wait_for 60 ask /healthz
kill -TERM "$pid"
wait "$pid"

# The archive becomes full during the run: profd reports it and continues.
mkdir "$T/full"
mount -t tmpfs -o size=64k,mode=755 profd-test "$T/full" && mounted+=("$T/full")
start_profd full --archive "$T/full" --window 1
head -c 64k /dev/zero >"$T/full/ballast" 2>/dev/null
wait_for 60 grep -q 'No space' "$log"
like "archive full: the log names the file" "$(cat "$log")" \
	"$T/full(/[-0-9]*)?(/cpu-[^ ]*)?: No space left"
is "archive full: no half file" \
	"$(find "$T/full" -name 'cpu-*.tmp' | wc -l)" 0
check "archive full: profd goes on" ask /status
is "archive full: /healthz says so" \
	"$(curl -sS -o /dev/null -w "%{http_code}" "$url/healthz")" 503
stop_profd
is "archive full: the last window is lost, and the status says so" $? 1
rm -f "$T/full/ballast"
for f in "$T"/full/*/*.pb.gz; do
	[[ ! -e $f ]] || check_profile "$f"
done

# --- record: its file and its command ---
fails "an output file in no directory" 1 '/none/x[.]pb[.]gz.*No such' \
	"$PROFD" record -o "$T/none/x.pb.gz" -- true
fails "an output file on a read-only file system" 1 "$T/ro/x.*[Rr]ead-only" \
	"$PROFD" record -o "$T/ro/x.pb.gz" -- true
fails "a command that is not there" 127 'no-such-command.*(No such|not found)' \
	"${rec[@]}" -- no-such-command
: >"$T/plain"
fails "a command that cannot be run" 126 "$T/plain.*[Pp]ermission" \
	"${rec[@]}" -- "$T/plain"
fails "a pid that is not there" 1 '4194303' "${rec[@]}" -p 4194303 -d 1
rm -f "$T/x.pb.gz"
"${rec[@]}" -- sh -c 'exit 7' >/dev/null 2>&1
is "the command's status is passed on" $? 7
"${rec[@]}" -- sh -c 'kill -TERM $$' >/dev/null 2>&1
is "a command that died of SIGTERM: 128 + 15" $? 143
"${rec[@]}" -- sh -c 'kill -SEGV $$' >/dev/null 2>&1
is "a command that died of SIGSEGV: 128 + 11" $? 139
check_profile "$T/x.pb.gz"
"${rec[@]}" -q -- true >"$T/out" 2>"$T/err"
is "quiet: nothing is printed" "$?$(cat "$T/out" "$T/err")" 0
plan
