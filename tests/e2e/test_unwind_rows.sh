#!/bin/bash
# A function in assembly, without unwind information: stacks end there, and with the
# option --unwind-rows they lead on; by the build id of the file, or, if it has none, by
# its file id.
. "$(dirname "$0")/lib.sh"
prog=$E2E/prog_nocfi
mkdir "$T/rows"

# rows_of FILE: the rows of bare_middle, written by hand.
rows_of() {
	local at
	at=0x$(nm "$1" | awk '$3 == "bare_middle" { print $1 }')
	printf '%x %s\n' $((at)) 'rsp+8 u' $((at + 1)) 'rsp+16 c-16' \
		$((at + 2)) 'rsp+24 c-16 rbx=c-24' \
		$((at + 13)) 'rsp+48 c-16 rbx=c-24' \
		$((at + 22)) 'rsp+24 c-16 rbx=c-24' \
		$((at + 23)) 'rsp+16 c-16' $((at + 24)) 'rsp+8 u'
	printf '%x end\n' $((at + 25))
}
# The SHA-256 of the first and the last 4096 bytes and the length, cut to 128 bits.
file_id_of() {
	{
		head -c 4096 "$1"
		tail -c 4096 "$1"
		stat -c %s "$1" | awk '{
			for (i = 0; i < 8; i++) {
				printf "\\x%02x", $1 % 256
				$1 = int($1 / 256)
			}
		}' | xargs -0 printf '%b'
	} | sha256sum | head -c 32
}
# stacks NAME OPTIONS... -- COMMAND...
stacks() {
	local name=$1
	shift
	watch "$T/$name.pb.gz" --freq 499 "$@"
	check_profile "$T/$name.pb.gz"
	samples "$T/$name.pb.gz" >"$T/$name"
	num "$name: the function's callee was sampled" \
		"$(total "$T/$name" '^bare_leaf@')" ">" 100
}
# Samples in the callee of which the caller is known.
through='^bare_leaf@[^;]*;bare_middle@[^;]*;main@'

stacks without -- "$prog" 1
is "without rows they end there" "$(total "$T/without" "$through")" 0
num "... and say so" "$(total "$T/without" '^bare_leaf@.*no unwind info')" ">" 100

rows_of "$prog" >"$T/rows/$(build_id "$prog").rows"
stacks by-build-id --unwind-rows "$T/rows" -- "$prog" 1
late=$(total "$T/by-build-id" '^bare_leaf@.*\[tables late\]')
num "with rows by its build id they lead on" \
	"$(total "$T/by-build-id" "$through")" ">" 0
is "... all of them" \
	$(($(total "$T/by-build-id" "$through") + late)) \
	"$(total "$T/by-build-id" '^bare_leaf@')"

objcopy --remove-section=.note.gnu.build-id "$prog" "$T/nameless"
is "another file has no build id" "$(build_id "$T/nameless")" ""
rm "$T/rows"/*
rows_of "$T/nameless" >"$T/rows/$(file_id_of "$T/nameless").rows"
stacks by-file-id --unwind-rows "$T/rows" -- "$T/nameless" 1
late=$(total "$T/by-file-id" '^bare_leaf@.*\[tables late\]')
num "with rows by its file id they lead on" \
	"$(total "$T/by-file-id" "$through")" ">" 0
is "... all of them" \
	$(($(total "$T/by-file-id" "$through") + late)) \
	"$(total "$T/by-file-id" '^bare_leaf@')"
plan
