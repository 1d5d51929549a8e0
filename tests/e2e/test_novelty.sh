#!/bin/bash
# No sample of a new process is lost: loads whose processes run for a few milliseconds.
# Each user stack outside of execve is complete, nothing is dropped, and samples times
# period is the CPU time of wait4(2).
#
# STACKS_ALL=1 runs them at the intended length: 400 files, half a minute of shells, at
# 99 Hz. Otherwise they are short, and sampled more often to have enough samples.
. "$(dirname "$0")/lib.sh"
files=60 lives=3000 freq=499
if [[ ${STACKS_ALL:-} == 1 ]]; then
	files=400 lives=30000 freq=99
fi

cat >"$T/storm" <<'END'
#!/bin/sh
i=0
while [ $i -lt $1 ]; do
	/bin/true
	x=$(echo $i)
	i=$((i + 2))
done
END
cat >"$T/build" <<END
#!/bin/sh
seq $files | xargs -P 2 -I % gcc -O1 -c -o "$T/f%.o" "$T/f%.c"
END
cat >"$T/storms" <<END
#!/bin/sh
"$T/storm" $((lives / 2)) &
"$T/storm" $((lives / 2)) &
wait
END
# CPU time of its children, in seconds, by wait4(2); bash is not included.
cat >"$T/timed" <<'END'
#!/bin/bash
echo "timed $$"
TIMEFORMAT='used %3U %3S %3R'
time "$@"
END
chmod +x "$T"/{storm,storms,build,timed}
for i in $(seq $files); do
	printf '#include <stdio.h>\nint f%d(int n) { return printf("%%d", n); }\n' \
		"$i" >"$T/f$i.c"
done

# novelty NAME: recorded in $T/NAME.pb.gz, with messages in $T/NAME.pb.gz.log
novelty() {
	local name=$1 out=$T/$1.pb.gz log=$T/$1.pb.gz.log self due taken user good n
	check_profile "$out"
	samples "$out" >"$T/$name.all"
	self=$(awk '$1 == "timed" { print $2 }' "$log")
	awk -F '\t' -v self="$self" '$3 != self' "$T/$name.all" >"$T/$name.own"
	whole "$T/$name.own" >"$T/$name.ends"
	good=$(ending "$T/$name.ends" whole)
	user=$((good + $(ending "$T/$name.ends" part) + $(ending "$T/$name.ends" jit)))
	num "$name: enough samples to tell" "$user" '>=' 200
	fine "$good" "$user" 99.5
	result $? "$name: $good of $user user stacks are whole" ||
		diag "$(awk -F '\t' '$10 ~ /(\[[a-z][^];]*\]|\[unmapped\][^;]*)@$/ &&
			$10 !~ /\[(exec|no user stack|tables late)\]@$/ {
			gsub(/@[^;]*\//, "@", $10)
			print $1, $7, $10 }' "$T/$name.own" |
			sed -E 's/^(([^;]*;){0,2})([^;]*;)*(([^;]*;){3}[^;]*)$/\1..;\4/' |
			sort | uniq -c | sort -rn)"
	diag "$name: $(tr '\t\n' ' ,' <"$T/$name.ends")"
	# On a machine that is always busy they may be late; but not most of them.
	num "$name: tables came in time" \
		"$(percent "$(ending "$T/$name.ends" late)" "$user")" '<=' 50
	like "$name: no sample was dropped" "$(grep ' samples, ' "$log")" ', 0 lost'
	is "$name: nothing in the profile says otherwise" \
		"$(pprof -raw "$out" | grep '^Comment: .*\(lost\|refused\|dropped\)')" ""
	# Most processes ran for less than a tick: their only samples are their first.
	n=$(cut -f 8 "$T/$name.own" | sort | uniq -c | awk '$1 <= 2' | wc -l)
	num "$name: processes with one or two samples" "$n" '>=' 50
	due=$(awk '$1 == "used" { printf "%.3f", $2 + $3 }' "$log")
	taken=$(awk -F '\t' '{ ns += $2 } END { printf "%.3f", ns / 1e9 }' \
		"$T/$name.own")
	diag "$name: $taken s by samples, $due s by wait4, in $(awk '
		$1 == "used" { print $4 }' "$log") s, $n processes with 1 or 2 samples"
	# At worst independent draws: the deviation of n samples is the root of n.
	num "$name: the samples account for its CPU time" "$(awk -v t="$taken" \
		-v d="$due" -v n="$(total "$T/$name.own")" 'BEGIN {
		off = (t - d) / d
		off = off < 0 ? -off : off
		print off - 5 / sqrt(n) }')" '<=' 0.02
}

for load in storms build; do
	watch "$T/$load.pb.gz" -F $freq -- "$T/timed" "$T/$load"
	is "$load: recorded" $? 0
	novelty $load
done
awk -v n=$lives '$1 == "used" { printf "# %.0f lives a second\n", n / $4 }' \
	"$T/storms.pb.gz.log"
plan
