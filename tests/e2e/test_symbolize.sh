#!/bin/bash
# profd debug symbolize: functions against nm, the order of many addresses, answers
# while more input is to come, JSON, and what is not an address, a file or code.
. "$(dirname "$0")/lib.sh"
prog=$E2E/prog_lives
symbolize() { "$PROFD" debug symbolize "$@"; }

at=$(nm "$prog" | awk '$3 == "main" { print $1 }')
inside=$(printf '%x' $((16#$at + 1)))

# --- one address ---
symbolize "$prog" "$at" "0x$inside" >"$T/out"
is "two addresses are two lines, exit status 0" "$?$(wc -l <"$T/out")" 02
is "the address is in column 1" "$(cut -c 1-18 "$T/out" | tail -n 1 | tr -d ' ')" "0x$inside"
like "the source is in column 21" "$(cut -c 21-34 "$T/out" | head -n 1)" '^(symtab|dwarf) +$'
is "the function is in column 35" "$(cut -c 35- "$T/out" | sed 's/ at .*//' | sort -u)" main
symbolize -j "$prog" "0x$inside" >"$T/json"
is "JSON has the function and its range" \
	"$(jq -r '[.address, .frames[-1].function, .frames[-1].system_name, has("error"), (.size > 1)] | @tsv' "$T/json")" \
	"0x$inside"$'\t'"main"$'\t'"main"$'\t'"false"$'\t'"true"
(cd / && symbolize "${prog#/}" "$at") >"$T/relative"
like "a relative path" "$(cat "$T/relative")" 'main( at .*)?$'

# --- many addresses ---
nm "$prog" | awk '$2 ~ /[tT]/ && $1 != last { print $1; last = $1 }' >"$T/all"
awk '{ for (i = 0; i < 40; i++) print $1 }' "$T/all" | shuf --random-source="$prog" \
	>"$T/many"
num "there are many" "$(wc -l <"$T/many")" '>' 40000
symbolize -j "$prog" <"$T/many" >"$T/json"
is "each has an answer, exit status 0" "$?$(wc -l <"$T/json")" "0$(wc -l <"$T/many")"
is "in the order of the input" "$(jq -r .address "$T/json" | cksum)" \
	"$(sed 's/^0*/0x/' "$T/many" | cksum)"
nm "$prog" | awk '$2 ~ /[tTiWw]/ { print $1, $3 }' >"$T/nm"
jq -r '[(.address | ltrimstr("0x")), .frames[-1].system_name] | @tsv' "$T/json" |
	sort -u >"$T/names"
is "each is a symbol of nm at this address" "$(awk '
	NR == FNR { sub(/^0*/, "", $1); known[$1, $2] = 1; next }
	!(($1, $2) in known)' "$T/nm" "$T/names")" ""

# --- an answer before the end of the input ---
coproc symbolize "$prog"
asked=$COPROC_PID # unset when it has ended
echo "$at" >&"${COPROC[1]}"
read -r -t 60 first <&"${COPROC[0]}"
like "an address is answered before the next is read" "$first" 'main'
exec {COPROC[1]}>&-
wait "$asked"
is "the end of the input is the end" $? 0
printf ' %s\t\n\n\r\n0x%s' "$at" "$inside" | symbolize "$prog" >"$T/out"
is "blanks, empty lines, no newline at the end" "$?$(wc -l <"$T/out")" 02
symbolize "$prog" </dev/null >"$T/out"
is "no address, no answer" "$?$(wc -l <"$T/out")" 00

# --- errors ---
# fails STATUS MESSAGE NAME COMMAND...
fails() {
	local want=$1 message=$2 name=$3 rc
	shift 3
	"$@" >"$T/out" 2>"$T/err" </dev/null
	rc=$?
	is "$name: exit status" "$rc" "$want"
	like "$name: message" "$(cat "$T/err")" "$message"
}
fails 1 '^profd: .*: 2 of 3 addresses are not in its code$' 'outside of code' \
	symbolize "$prog" 1 "$at" ffffffffffffffff
is "outside of code: each has its line" "$(awk '{ print $2 }' "$T/out" | tr '\n' ' ')" \
	"- $(awk 'NR == 2 { print $2 }' "$T/out") - "
fails 1 'No such file' 'a missing file' symbolize "$T/missing" 1
echo text >"$T/text"
fails 1 'not an ELF' 'a text' symbolize "$T/text" 1
fails 1 'not a regular file' 'a directory' symbolize "$T" 1
mkfifo "$T/fifo"
fails 1 'not a regular file' 'a FIFO' timeout 30 "$PROFD" debug symbolize "$T/fifo" 1
head -c 5000 "$prog" >"$T/cut"
symbolize "$T/cut" "$at" >"$T/out"
like "a truncated file has no names" "$?$(cat "$T/out")" '^0.*cut\+0x'
fails 2 "'12g4': must be an address" 'no address' symbolize "$prog" "$at" 12g4
is "no address: nothing is answered" "$(wc -c <"$T/out")" 0
fails 2 "'0x'" 'a prefix only' symbolize "$prog" 0x
fails 2 "'11112222333344445'" 'more than 64 bits' symbolize "$prog" 11112222333344445
fails 2 'needs FILE' 'no file' symbolize
fails 2 'stats is for unwind-table' 'an option of another command' symbolize --stats "$prog" 1
printf '%s\nno address\n%s\n' "$at" "$at" | symbolize "$prog" >"$T/out" 2>"$T/err"
is "a line that is no address ends it" "$?$(wc -l <"$T/out")" 11
like "... and is named" "$(cat "$T/err")" "standard input, line 2: 'no address'"
head -c 300000 /dev/zero | tr '\0' 1 | symbolize "$prog" >"$T/out" 2>"$T/err"
is "a line without end" "$?$(wc -c <"$T/out")" 10
symbolize "$prog" "$at" >/dev/full 2>"$T/err"
is "a full disk" "$?" 1

# --- files of others ---
cp "$PROFD" "$prog" "$T" && chmod 755 "$T" "$T/profd" && chmod 700 "$T/prog_lives"
nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
fails 1 'cannot be opened' "another user's file" \
	"${nobody[@]}" "$T/profd" debug symbolize "$T/prog_lives" "$at"
chmod 755 "$T/prog_lives"
"${nobody[@]}" "$T/profd" debug symbolize "$T/prog_lives" "$at" >"$T/out"
like "a readable file needs no privilege" "$?$(cat "$T/out")" '^00x.*main'
plan
