#!/bin/bash
# Contents of the stacks of other processes stay in memory: a secret on the stack of a
# program, below it and in its registers is sampled, and afterwards it is in no file of
# profd, no answer, no log, and no core dump.
. "$(dirname "$0")/lib.sh"
prog=$E2E/stacks/secret
export LC_ALL=C # bytes

# 32 new letters; as bytes, as text and as numbers.
secret=$(tr -dc a-z </dev/urandom | head -c 32)
{
	for at in 0 8 16 24; do
		piece=${secret:at:8}
		echo "$piece"
		printf '%s' "$piece" | od -An -v -tx8 | tr -d ' '
		printf '%s' "$piece" | od -An -v -tu8 | tr -d ' '
		printf '%s' "$piece" | od -An -v -tx1 | tr -d ' '
	done
} >"$T/words"
is "what is looked for has a length" \
	"$(awk 'length($0) < 8' "$T/words" | wc -l)/$(wc -l <"$T/words")" 0/16

# plain FILE: as it is, or decompressed.
plain() {
	case $1 in
	*.zst) zstd -q -d -c "$1" ;;
	*.gz) gzip -d -c "$1" ;;
	*) cat "$1" ;;
	esac
}

# leaks FILE...: those with a part of the secret.
leaks() {
	local f
	for f; do
		# shellcheck disable=SC2094 # plain reads only
		if plain "$f" | grep -qaiFf "$T/words" ||
			grep -qaiFf "$T/words" "$f"; then
			echo "$f"
		fi
	done
}

# The search finds it where it is.
printf 'x%sy' "${secret:8:8}" | gzip >"$T/control.gz"
printf '%s' "${secret:16:8}" | od -An -v -tx8 >"$T/control"
is "the search would find it" "$(leaks "$T/control.gz" "$T/control" | wc -l)" 2

start_profd secret --window 1 --log-level debug
printf '%s' "$secret" >"$T/in"
background sh -c "exec \"$prog\" <\"$T/in\""
spy=$pid
background record "$T/record.pb" -F 997 -p "$spy" -d 1
recorder=$pid

# rings PID: address and whether it is excluded from core dumps.
rings() {
	awk '/^[0-9a-f]+-[0-9a-f]+ / { at = $1; ring = /bpf-map|perf_event/ }
		/^VmFlags:/ && ring { print at, / dd( |$)/ }' "/proc/$1/smaps"
}
is "no mapping of a ring is dumped" \
	"$(rings "$profd" | awk '!$2' | wc -l)" 0
num "and there are some" "$(rings "$profd" | wc -l)" '>=' 1

answers=0
for path in '/debug/pprof/profile?seconds=1' /metrics /status /healthz; do
	check "an answer to $path" curl -sS --fail --max-time 60 \
		--unix-socket "$sock" -o "$T/answer" "http://profd$path"
	answers=$((answers + 1))
	# Compressed data, by its first bytes.
	gzip -t "$T/answer" 2>/dev/null && mv "$T/answer" "$T/answer.$answers.gz"
	[[ ! -f $T/answer ]] || mv "$T/answer" "$T/answer.$answers"
done
wait "$recorder"
is "recorded" $? 0

# A core dump of the running profd by a debugger, which excludes mappings that are marked
# so, and includes them if told to. A stack that is being unwound has values in registers,
# so it is made when all samples of the program were handled.
kill -STOP "$spy"
ask '/debug/pprof/profile?seconds=1' >/dev/null
check "a core dump" gdb -nx -batch -p "$profd" \
	-ex "set use-coredump-filter on" -ex "generate-core-file $T/core"
num "the core dump is one" "$(readelf -h "$T/core" 2>/dev/null |
	grep -c CORE)" '==' 1
is "it is not in the core dump" "$(leaks "$T/core")" ""
# ... in which it would be without the mark: of the last samples.
kill -CONT "$spy"
ask '/debug/pprof/profile?seconds=1' >/dev/null
check "a core dump with everything" gdb -nx -batch -p "$profd" \
	-ex "set use-coredump-filter on" -ex "set dump-excluded-mappings on" \
	-ex "generate-core-file $T/core.all"
is "it is in that" "$(leaks "$T/core.all")" "$T/core.all"
rm -f "$T/core" "$T/core.all"

kill -KILL "$spy"
wait "$spy" 2>/dev/null
stop_profd
is "profd ends" $? 0
samples "$T/record.pb" | awk -F '\t' -v p="$prog" '$7 == p' >"$T/own"
diag "$(awk -F '\t' '{ n[$10] += $1 } END { for (s in n) print n[s], s }' \
	"$T/own" | sort -rn | head -3)"
num "it was sampled" "$(total "$T/own" '^st_spin@.*;main@.*;_start@')" '>=' 20
mapfile -t files < <(find "$archive" -type f)
num "there is an archive" "${#files[@]}" '>=' 1
is "the program is in it" "$(for f in "${files[@]}"; do
	plain "$f" | grep -caF st_spin
done | awk '$1 { n++ } END { print (n > 0) }')" 1
is "it is in no file, answer or log" "$(leaks "${files[@]}" "$log" \
	"$T"/answer.* "$T/record.pb" "$T/record.pb.log")" ""
num "and those were some" "$(cat "$log" "$T"/answer.* "$T/record.pb" | wc -c)" \
	'>=' 2000
plan
