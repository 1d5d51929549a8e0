#!/bin/bash
# --source perf: samples without BPF. Plain perf events give the same data as BPF, as far
# as they have it; and a user without any privilege can record a command.
. "$(dirname "$0")/lib.sh"
a=$E2E/prog_spin_a b=$E2E/prog_spin_b
# Two runs at the same time would restore the settings of each other.
exec {lock}</sys/kernel
flock "$lock"
sysctl=/proc/sys/kernel/perf_event_paranoid
paranoid=$(<"$sysctl")
limit=/proc/sys/kernel/perf_event_mlock_kb
kb=$(<"$limit")
trap 'echo "$paranoid" >"$sysctl"; echo "$kb" >"$limit"; cleanup' EXIT
echo 2 >"$sysctl"

# distinct TSV REGEX COLUMN: the values of a column, where the stack matches.
distinct() {
	awk -F '\t' -v re="$2" -v col="$3" '$10 ~ re { print $col }' "$1" |
		sort -u | paste -sd ' '
}

# perf FILE OPTIONS...: records, up to five times while data is late.
perf() {
	local file=$1
	shift
	in_time "$file" record "$file" --source "${source:-perf}" "$@"
}
# in_time FILE COMMAND...: FILE.tsv has the samples of FILE, FILE.raw the comments, too.
in_time() {
	local file=$1 rc
	shift
	for _ in 1 2 3 4 5; do
		"$@"
		rc=$?
		pprof -raw "$file" >"$file.raw"
		awk -f "$E2E_SRC/samples.awk" "$file.raw" >"$file.tsv"
		grep -q '\[tables late\]' "$file.tsv" ||
			grep -q '^Comment: .*was late' "$file.raw" || break
	done
	return "$rc"
}

# --- shares: as in test_shares.sh, but also for a program that is interrupted, whose
# samples are independent draws: five deviations of 1.5 points are allowed. As many
# samples as of ten seconds at 99 Hz ---
perf "$T/shares.pb.gz" -F 495 -- "$E2E/prog_shares" 2
is "record --source perf passes the exit status on" $? 0
check_profile "$T/shares.pb.gz"
awk -F '\t' '$7 ~ /prog_shares$/' "$T/shares.pb.gz.tsv" >"$T/own"
taken=$(total "$T/own")
num "samples for most of two seconds" "$taken" '>=' 830
num "no more samples than seconds" "$taken" '<=' 1150
heavy=$(percent "$(total "$T/own" '^heavy_leaf@')" "$taken")
light=$(percent "$(total "$T/own" '^light_leaf@')" "$taken")
num "the heavy function has at least 65 %" "$heavy" '>=' 62
num "the heavy function has at most 75 %" "$heavy" '<=' 78
num "the light function has at least 25 %" "$light" '>=' 22
num "the light function has at most 35 %" "$light" '<=' 38
whole="(^|;)(heavy|light)_leaf@[^;]*prog_shares"
for level in $(seq 29 -1 2); do
	whole+=$(printf ';f%02d@[^;]*prog_shares' "$level")
done
whole+=";main@[^;]*prog_shares"
num "99 % of them have all of the thirty levels, in order" \
	"$(percent "$(total "$T/own" "$whole")" "$taken")" '>=' 99
like "the profile says where it comes from" "$(cat "$T/shares.pb.gz.raw")" \
	$'Comment: [^\n]*perf events: the whole host.*process ids'
like "so does the last line" "$(tail -n 1 "$T/shares.pb.gz.log")" \
	'^profd: [0-9]+ samples.*perf events: process ids'

# --- the same stacks as BPF for the same program ---
stacks() {
	awk -F '\t' '$10 ~ /^(heavy|light)_leaf@/ { print $10 }' "$1.tsv" | sort -u
}
source=bpf perf "$T/bpf.pb.gz" -F 495 -- "$E2E/prog_shares" 0.4
is "record --source bpf" $? 0
is "BPF has nothing to say of itself" \
	"$(grep '^Comment: ' "$T/bpf.pb.gz.raw" | grep -c 'perf events')" 0
num "there are stacks to compare" "$(stacks "$T/bpf.pb.gz" | wc -l)" '>=' 2
is "the stacks of both sources are the same" "$(stacks "$T/shares.pb.gz")" \
	"$(stacks "$T/bpf.pb.gz")"

# --- kernel frames below user frames, and none above: as in test_dd.sh ---
perf "$T/dd.pb.gz" -F 495 -- timeout 0.6 dd if=/dev/zero of=/dev/null
is "the status of timeout(1) is passed on" $? 124
check_profile "$T/dd.pb.gz"
awk -F '\t' '$7 ~ /dd$/' "$T/dd.pb.gz.tsv" >"$T/dd"
kernel='@[[]kernel.kallsyms[]]'
call="(do_syscall_64|entry_SYSCALL_64[a-z_]*)$kernel"
awk -F '\t' -v c="$call" '$10 ~ c' "$T/dd" >"$T/calls"
calls=$(total "$T/calls")
num "dd's system calls are seen" "$calls" '>=' 10
order="^([^;]*$kernel;)+([^;]*@[^;[]*(;|\$))+"
num "user frames stand above the system call in 99 % of them" \
	"$(percent "$(total "$T/calls" "$order")" "$calls")" '>=' 99
is "no kernel frame stands above a user frame" \
	"$(total "$T/dd" "@/[^;]*;([^;]*;)*[^;]*$kernel")" 0
is "no kernel frame without a name" \
	"$(cut -f 10 "$T/dd" | tr ';' '\n' | grep "$kernel" |
		grep -cE '^(0x|.*\+0x)')" 0

# --- exec: as in test_exec.sh, two programs at one address ---
for how in exec thread; do
	perf "$T/$how.pb.gz" -F 495 -- "$a" 200 "$how" "$b" 200
	is "$how: recorded" $? 0
	check_profile "$T/$how.pb.gz"
	mv "$T/$how.pb.gz.tsv" "$T/$how"
	# 99 samples are due of each.
	for name in a b; do
		num "$how: spin_$name has its time" \
			"$(total "$T/$how" "(^|;)spin_$name@")" '>=' 49
		num "$how: spin_$name has no more than its time" \
			"$(total "$T/$how" "(^|;)spin_$name@")" '<=' 149
		like "$how: the image of spin_$name is called so" \
			"$(distinct "$T/$how" "(^|;)spin_$name@" 7)" \
			"^[^ ]*prog_spin_$name\$"
	done
	old=$(distinct "$T/$how" '(^|;)spin_a@' 9)
	new=$(distinct "$T/$how" '(^|;)spin_b@' 9)
	like "$how: one image ran spin_a" "$old" '^[0-9]+-[0-9a-f]+-[0-9]+$'
	is "$how: the image of spin_b is the next generation" \
		"$new" "${old%-*}-$((${old##*-} + 1))"
	is "$how: nothing of b under the image of a" \
		"$(awk -F '\t' -v i="$old" '$9 == i' "$T/$how" |
			grep -cE '(_b@|prog_spin_b)')" 0
	is "$how: nothing of a under the image of b" \
		"$(awk -F '\t' -v i="$new" '$9 == i' "$T/$how" |
			grep -cE '(_a@|prog_spin_a)')" 0
done
num "thread: another thread execs" "$(distinct "$T/thread" '(^|;)spin_a@' 4)" \
	'>' "$(distinct "$T/thread" '(^|;)spin_a@' 3)"
is "thread: it has the leader's id afterwards" \
	"$(distinct "$T/thread" '(^|;)spin_b@' 4)" \
	"$(distinct "$T/thread" '(^|;)spin_a@' 3)"

# --- a thousand short processes, with a running profd ---
start_profd lives --source perf
like "the log says that it is perf events" "$(cat "$log")" 'perf events'
like "status says so, too" "$(ask /status)" 'source.*perf events'
scanned=$(metric profd_pm_scanned_total)
num "what was there before is known" "$scanned" '>=' 10
forks=$(metric profd_pm_forks_total) execs=$(metric profd_pm_execs_total)
exits=$(metric profd_pm_exits_total) unknown=$(metric profd_pm_unknown_total)
for ((i = 0; i < 1000; i++)); do
	/bin/true
done
saw_all() {
	(($(metric profd_pm_exits_total) >= exits + 1000))
}
wait_for 60 saw_all
if [[ $(metric profd_perf_gaps_total) == 0 ]]; then
	num "every fork was seen" "$(metric profd_pm_forks_total)" '>=' \
		"$((forks + 1000))"
	num "every exec was seen" "$(metric profd_pm_execs_total)" '>=' \
		"$((execs + 1000))"
	num "every exit was seen" "$(metric profd_pm_exits_total)" '>=' \
		"$((exits + 1000))"
	is "no process was a stranger" "$(metric profd_pm_unknown_total)" \
		"$unknown"
else
	num "what was lost is said" \
		"$(metric profd_sampler_ring_full_total)" '>=' 1
fi
is "no record had wrong lengths" "$(metric profd_sideband_bad_total)" 0
kill -HUP "$profd"
stop_profd
is "it ends with 0" $? 0
check_profile "$archive"/*/*.pb.gz
for f in "$archive"/*/*.pb.gz; do
	samples "$f"
done >"$T/lives"
num "the short lives were sampled" "$(total "$T/lives" '/true$' 7)" '>=' 20
is "nothing of bash runs in an image of true" \
	"$(awk -F '\t' '$7 ~ /\/true$/' "$T/lives" | grep -c '@[^;]*/bash')" 0
is "every sample has a process" \
	"$(awk -F '\t' '$8 == ""' "$T/lives" | wc -l)" 0

# --- chosen automatically where BPF cannot be loaded, with a message ---
# without_bpf OPTIONS...: record's.
without_bpf() {
	nice -n -20 setpriv --bounding-set -bpf,-sys_admin "$PROFD" record "$@" \
		>"$T/auto.log" 2>&1
}
in_time "$T/auto.pb.gz" without_bpf -o "$T/auto.pb.gz" -F 495 -- "$E2E/prog_shares" 0.3
is "without CAP_BPF a command is recorded" $? 0
like "and it is said why, and how" "$(cat "$T/auto.log")" \
	'perf events: the whole host.*no BPF.*CAP_BPF'
check_profile "$T/auto.pb.gz"
num "it has its samples" "$(total "$T/auto.pb.gz.tsv" "$whole")" '>=' 90
"$PROFD" record --source bpf -o "$T/x.pb.gz" -q -- true
is "BPF goes on being there" $? 0

# --- a user without privilege ---
chmod 755 "$T"
mkdir -m 777 "$T/user"
cp "$PROFD" "$E2E/prog_shares" "$a" "$b" "$T/user"
user() {
	(cd "$T/user" && setpriv --reuid 65534 --regid 65534 --clear-groups \
		--inh-caps=-all "$@")
}
# user_profd ARGUMENTS...: its messages are in $T/user.log.
user_profd() {
	user ./profd "$@" >"$T/user.log" 2>&1
}
in_time "$T/user/own.pb.gz" user_profd record -F 495 -o own.pb.gz -- ./prog_shares 0.6
is "a user may record a command of his own" $? 0
like "what he sees is said in one line" "$(cat "$T/user.log")" \
	$'profd: perf events: user code of what was asked for only[^\n]*no BPF'
is "that line, the command's and the last are all" \
	"$(wc -l <"$T/user.log")" 3
check_profile "$T/user/own.pb.gz"
mv "$T/user/own.pb.gz.tsv" "$T/tsv"
taken=$(total "$T/tsv")
num "it has its samples" "$taken" '>=' 150
num "99 % of them have all of the thirty levels, in order" \
	"$(percent "$(total "$T/tsv" "$whole")" "$taken")" '>=' 99
is "none of them is in the kernel" "$(total "$T/tsv" "$kernel")" 0
is "all are the command's" "$(distinct "$T/tsv" . 7)" "$T/user/prog_shares"
like "the mapping has the file and the build id" \
	"$(mappings "$T/user/own.pb.gz")" \
	"$T/user/prog_shares $(build_id "$E2E/prog_shares")"

# Programs that the kernel hides from perf events of this user.
cp "$E2E/prog_spin_a" "$T/user/setuid" && chmod 4755 "$T/user/setuid"
cp "$E2E/prog_spin_a" "$T/user/unreadable" && chmod 711 "$T/user/unreadable"
for hidden in setuid unreadable; do
	user ./profd record -F 999 -f -o hidden.pb.gz -- "./$hidden" 200 \
		>"$T/user.log" 2>&1
	like "a program that is $hidden: the missing samples are explained" \
		"$(cat "$T/user.log")" 'no samples of the [0-9]+ ms.*setuid.*not read'
	is "... and not as those of a command without CPU time" \
		"$(grep -c 'used no CPU time' "$T/user.log")" 0
done
user ./profd record -F 999 -f -o hidden.pb.gz -- \
	sh -c './setuid 200; exit 3' >"$T/user.log" 2>&1
is "a child that is setuid: the status is the command's" $? 3
like "... and it is explained" "$(cat "$T/user.log")" 'perf events do not see'
user ./profd record -F 999 -f -o hidden.pb.gz -- true >"$T/user.log" 2>&1
is "a command without CPU time is none of these" \
	"$(grep -c 'do not see' "$T/user.log")" 0

in_time "$T/user/exec.pb.gz" user_profd record -F 495 -o exec.pb.gz -q -- sh -c \
	'exec >/dev/null; ./prog_spin_a 100 &
		./prog_spin_a 100 exec ./prog_spin_b 100; wait'
is "quiet: nothing is said" "$?$(cat "$T/user.log")" 0
mv "$T/user/exec.pb.gz.tsv" "$T/tsv"
for name in a b; do
	num "what a command starts is in it: spin_$name" \
		"$(total "$T/tsv" "(^|;)spin_$name@")" '>=' 20
	like "spin_$name is its own image's" \
		"$(distinct "$T/tsv" "(^|;)spin_$name@" 7)" \
		"^[^ ]*prog_spin_$name\$"
done
is "two processes ran spin_a" \
	"$(distinct "$T/tsv" '(^|;)spin_a@' 3 | wc -w)" 2

# It spins in a second thread, which was there before.
background user ./prog_spin_a 60000 thread ./prog_spin_b 1
wait_for 60 pgrep -n -u 65534 -f prog_spin_a
spin=$(pgrep -n -u 65534 -f prog_spin_a)
threads() {
	[[ $(find "/proc/$spin/task" -mindepth 1 -maxdepth 1 | wc -l) == 2 ]]
}
wait_for 60 threads
in_time "$T/user/pid.pb.gz" user_profd record -F 495 -o pid.pb.gz -d 1 -p "$spin"
is "a user may record a process of his own" $? 0
mv "$T/user/pid.pb.gz.tsv" "$T/tsv"
num "it has its samples" "$(total "$T/tsv" '(^|;)spin_a@')" '>=' 10
is "and no other" "$(distinct "$T/tsv" . 3)" "$spin"
num "of its second thread" "$(distinct "$T/tsv" '(^|;)spin_a@' 4)" '>' "$spin"
kill "$spin"

# The kernel gives a user 64 KiB of ring a CPU now, with its first page.
echo 68 >"$limit"
(ulimit -l 0 && user ./profd record -F 495 -o small.pb.gz -- ./prog_shares 0.2) \
	>"$T/user.log" 2>&1
is "with a small ring a command is recorded" $? 0
like "with less of its stacks, as is said" "$(cat "$T/user.log")" \
	'stacks up to 8192 bytes'
check_profile "$T/user/small.pb.gz"
echo 16 >"$limit"
(ulimit -l 0 && user ./profd record -o x.pb.gz -- ./prog_shares 0.2) \
	>"$T/user.log" 2>&1
is "with none it is not" $? 1
like "and the limit is named" "$(cat "$T/user.log")" \
	'^profd: ring of a perf event .*perf_event_mlock_kb'
echo "$kb" >"$limit"

# refused NAME REGEX COMMAND...: one line, status 1.
refused() {
	local name=$1 regex=$2 rc
	shift 2
	user timeout 60 "$@" >"$T/out" 2>"$T/err"
	rc=$?
	is "$name: status, lines" "$rc $(wc -l <"$T/err")" "1 1"
	like "$name: says what is missing" "$(cat "$T/err")" "$regex"
}
refused "a process of another user" 'perf_event_paranoid is 2.*CAP_PERFMON' \
	./profd record -o x.pb.gz -p 1 -d 1
refused "the whole host" 'CAP_BPF.*CAP_PERFMON' \
	./profd record -o x.pb.gz -a -d 1
refused "the whole host by perf events" 'CAP_PERFMON.*perf_event_paranoid' \
	./profd record --source perf -o x.pb.gz -a -d 1
refused "run" 'CAP_BPF.*CAP_PERFMON' ./profd run --archive "$T/user/archive" \
	--listen "unix:$T/user/sock"
refused "BPF, and nothing else" 'CAP_BPF' \
	./profd record --source bpf -o x.pb.gz -- true
plan
