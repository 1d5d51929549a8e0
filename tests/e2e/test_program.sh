#!/bin/bash
# The program as used: signals, the ways to record, make run, make install.
. "$(dirname "$0")/lib.sh"

# --- make run and make install, beside the rest: they mostly wait ---
quiet_make() {
	(cd "$ROOT" && env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make "$@")
}
background env RUN_SECONDS=5 bash -c "cd '$ROOT' && env -u MAKEFLAGS \
	-u MAKELEVEL -u MFLAGS make run RUN_DIR='$T/run'" >"$T/run.log" 2>&1
make_run=$pid

# --- SIGHUP closes the window; SIGTERM and SIGINT end profd after writing it ---
background nice -n -20 "$E2E/prog_shares" 600 >/dev/null
load=$pid
windows() {
	find "$archive" -name 'cpu-*.pb.gz' | wc -l
}
has_windows() {
	(($(windows) >= $1))
}
start_profd signals --window 3600
used "$load" 500
is "no window before its time" "$(windows)" 0
kill -HUP "$profd"
check "SIGHUP writes the window" wait_for 60 has_windows 1
used "$load" 500
stop_profd TERM
is "SIGTERM ends with 0" $? 0
is "SIGTERM writes the open window" "$(windows)" 2
check_profile "$archive"/*/*.pb.gz
both=0
for f in "$archive"/*/*.pb.gz; do
	samples "$f" >"$T/tsv"
	((both += $(total "$T/tsv" '(heavy|light)_leaf@')))
	# Half a second of CPU time: 49 samples are expected.
	num "each has its part of the load" \
		"$(total "$T/tsv" '(heavy|light)_leaf@')" '>=' 10
done
is "the socket's file is gone" "$(find "$T" -name signals.sock | wc -l)" 0

start_profd interrupt --window 1
wait_for 60 has_windows 2
stop_profd INT
is "SIGINT ends with 0" $? 0
num "windows of a second come by themselves" "$(windows)" '>=' 3
check_profile "$archive"/*/*.pb.gz

# Ended as soon as they answer, while names are still being looked up; three at once,
# so that some are slower than others.
kill -STOP "$load"
pids=()
for i in 1 2 3; do
	sock=$T/brief$i
	background nice -n -20 "$PROFD" run --archive "$T/brief$i.archive" \
		--listen "unix:$sock" 2>"$T/brief$i.log"
	pids+=("$pid")
done
for i in 1 2 3; do
	sock=$T/brief$i
	wait_for 60 ask /healthz
	kill -TERM "${pids[i - 1]}"
done
for i in 1 2 3; do
	wait "${pids[i - 1]}"
	is "profd ends well right after its start, $i" $? 0
done
check_profile "$T"/brief*.archive/*/*.pb.gz
kill -CONT "$load"

# --- record: processes, the host, until interrupted ---
background nice -n -20 "$E2E/prog_spin_old" 600000 >/dev/null
spin=$pid
background record "$T/pid.pb.gz" -p "$spin" -d 600
by_pid=$pid
background record "$T/host.pb" -a -d 600
by_host=$pid
background record "$T/zstd.pb.zst" -F 997 -- "$E2E/prog_spin_new" 1000
by_freq=$pid
# 49 samples of each are expected, once they sample; ten are required.
recorder "$by_pid" && first=$recorder
recorder "$by_host" && second=$recorder
sleep 1
used "$spin" 500
used "$load" 500
kill -TERM "$first" "$second"
wait "$by_pid"
is "record -p" $? 0
kill -KILL "$spin"
wait "$by_host"
is "record -a" $? 0
wait "$by_freq"
is "record -F 997" $? 0
samples "$T/pid.pb.gz" >"$T/tsv"
is "record -p has that process and no other" "$(cut -f 3 "$T/tsv" | sort -u)" \
	"$spin"
num "record -p has its samples" "$(total "$T/tsv" '^spin_old@')" '>=' 10
samples "$T/host.pb" >"$T/tsv"
num "record -a has the load" "$(total "$T/tsv" '^(heavy|light)_leaf@')" '>=' 10
num "record -a has the process" "$(total "$T/tsv" '^spin_old@')" '>=' 10
samples "$T/zstd.pb.zst" >"$T/tsv"
# A second of CPU time at 997 Hz, not at 99.
num "record -F 997 has ten times as many" "$(total "$T/tsv" '^spin_new@')" \
	'>=' 800
check_profile "$T/pid.pb.gz" "$T/host.pb" "$T/zstd.pb.zst"
like "record says samples, lost, and where" "$(cat "$T/host.pb.log")" \
	'[0-9]+ samples.*lost.*host[.]pb'

# In a shell script a background command ignores SIGINT; env restores it.
background nice -n -20 env --default-signal=INT "$PROFD" record -o "$T/int.pb.gz" -a \
	2>"$T/int.log"
interruptible() {
	find "/proc/$pid/fd" -lname '*perf_event*' | grep -q .
}
wait_for 60 interruptible
sleep 1
used "$load" 500
kill -INT "$pid"
wait "$pid"
is "Ctrl-C ends a recording" $? 0
check_profile "$T/int.pb.gz"
samples "$T/int.pb.gz" >"$T/tsv"
num "and keeps it" "$(total "$T/tsv" '^(heavy|light)_leaf@')" '>=' 10
end_group "$load"

# A command that ignores SIGINT, and the child that a killed one leaves.
stubborn() {
	background env --default-signal=INT "$PROFD" record -o "$T/two.pb.gz" -- \
		bash -c 'trap "" INT; : >"$1"; exec sleep 600' - "$T/two.runs" 2>"$T/two.log"
	wait_for 60 test -e "$T/two.runs"
}
stubborn
kill -INT "$pid"
sleep 0.6
is "a signal is passed on to the command" "$(pgrep -c -P "$pid" sleep)" 1
kill -INT "$pid"
wait "$pid"
is "a second one, within two seconds, kills it" $? 137
check_profile "$T/two.pb.gz"
rm "$T/two.runs"
stubborn
# As by timeout(1).
kill -INT "$pid"
kill -INT "$pid"
sleep 0.6
is "two at once are one" "$(pgrep -c -P "$pid" sleep)" 1
kill -INT "$pid"
wait "$pid"
is "... and a later one kills the command" $? 137

# --- help ---
for cmd in run record fetch status; do
	like "profd $cmd --help" "$("$PROFD" "$cmd" --help)" "profd $cmd"
	is "profd help $cmd" "$("$PROFD" help "$cmd")" "$("$PROFD" "$cmd" -h)"
done
is "profd help" "$("$PROFD" help)" "$("$PROFD" --help)"
is "profd version" "$("$PROFD" version)" "$("$PROFD" --version)"
help=$("$PROFD" debug unwind-table --help)
like "profd debug COMMAND --help: its options" "$help" \
	'Usage: profd debug unwind-table.*--unwind-rows.*--stats.*--full'
is "... and no others" "$(grep -c -e --server -e --json <<<"$help")" 0
like "... of debug files" "$("$PROFD" help debug files)" 'debug files.*--server'
like "... of debug itself: all" "$("$PROFD" debug --help)" '--server.*--stats'
is "profd -V" "$("$PROFD" -V)$("$PROFD" ps -V)" \
	"$("$PROFD" --version)$("$PROFD" --version)"
is "no line of the help is wider than a terminal" "$(for cmd in run record \
	fetch ps events status; do "$PROFD" help $cmd; done | awk 'length > 80')" ""
like "profd --help names the commands" "$("$PROFD" --help)" \
	'run.*record.*fetch.*status'
like "profd --version" "$("$PROFD" --version)" '^profd [0-9]+[.][0-9]+'

# --- make run ---
wait "$make_run"
rc=$?
is "RUN_SECONDS=5 make run ends by itself with 0" "$rc" 0
((rc == 0)) || diag "$(tail -n 20 "$T/run.log")"
said=$(cat "$T/run.log")
like "make run says where the archive is" "$said" "$T/run"
for word in 'go tool pprof' 'profd[^ ]* fetch' 'profd[^ ]* status|curl'; do
	like "make run shows how to look: $word" "$said" "$word"
done
mapfile -t files < <(find "$T/run" -name '*.pb.gz')
num "make run leaves a profile" "${#files[@]}" '>=' 1
check_profile "${files[@]}"

# --- make install ---
check "make install" quiet_make install "DESTDIR=$T/inst" PREFIX=/usr
like "the installed profd runs" "$("$T/inst/usr/bin/profd" --version)" \
	'^profd [0-9]'
for f in usr/bin/profd usr/sbin/quark-mon usr/lib/libquark.so.0 \
	usr/lib/libquark.a usr/include/quark.h usr/lib/pkgconfig/quark.pc \
	etc/profd/profd.conf usr/share/man/man8/profd.8; do
	check "installed: $f" test -s "$T/inst/$f"
done
plan
