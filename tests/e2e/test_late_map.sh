#!/bin/bash
# profd record names the code of a process that writes its perf map as it ends, as
# java -XX:+DumpPerfMapAtExit does: what was sampled before, too. Code without a name is one
# function.
. "$(dirname "$0")/lib.sh"
jit=$E2E/prog_jit

# late NAME COMMAND...: records the command; its samples are in $T/NAME.tsv.
late() {
	local name=$1
	shift
	record "$T/$name.pb.gz" -F 997 -- "$@"
	samples "$T/$name.pb.gz" >"$T/$name.tsv"
}
# One that was sampled under two names would show here.
jit_of() {
	total "$T/$1.tsv" "(^|;)$2@.*;main@"
}

late end "$jit" 0:%late_a:400 1:%late_b:200 2:-:200
pid=$(awk -F '\t' '/late_a@/ { print $3; exit }' "$T/end.tsv")
rm -f "/tmp/perf-$pid.map"
all=$(jit_of end '(late_a|late_b|\[anon\])')
num 'the code has samples' "$all" '>=' 400
num 'the first function has its half' "$(jit_of end late_a)" '>=' $((all * 35 / 100))
num 'the second one a quarter' "$(jit_of end late_b)" '>=' $((all * 15 / 100))
num 'what has no line is one function' "$(jit_of end '\[anon\]')" '>=' $((all * 15 / 100))
is 'no name has an address' "$(total "$T/end.tsv" 'anon\][+]')" 0

# The process ends before the recording, and in a mount namespace of its own.
cat >"$T/inside" <<END
exec 3<"$jit" 4<"$E2E/prog_spin_a"
mount -t tmpfs none /tmp
cat <&3 >/tmp/prog_jit
cat <&4 >/tmp/prog_spin
chmod 755 /tmp/prog_*
/tmp/prog_jit 0:%late_c:300
/tmp/prog_spin 500
END
late inside unshare -m bash "$T/inside"
num 'so has that of a process which ended earlier' "$(jit_of inside late_c)" '>=' 150
is '... all of it' "$(jit_of inside '\[anon\]')" 0

# A map of an earlier process with this pid.
late old "$jit" 0:^late_d:300
pid=$(awk -F '\t' '/main@/ { print $3; exit }' "$T/old.tsv")
rm -f "/tmp/perf-$pid.map"
is 'a map that is older than the process is none' "$(jit_of old late_d)" 0
num '... its code has no name' "$(jit_of old '\[anon\]')" '>=' 150
plan
