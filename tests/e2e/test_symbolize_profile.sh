#!/bin/bash
# profd symbolize-profile: a profile of a stripped program gets names from files with its
# build id only, keeps all else, and is read by other tools.
. "$(dirname "$0")/lib.sh"
symbolize() { "$PROFD" symbolize-profile "$@"; }
decode() {
	zcat "$1" | protoc --proto_path="$ROOT/reporter" \
		--decode=perftools.profiles.Profile profile.proto
}
# hot FILE: functions at the top of the stacks, if the program's, without addresses.
hot() {
	samples "$1" | cut -f 10 | sed 's/;.*//; s/+0x.*@/+@/' | grep '/bin/prog$' |
		sort -u | tr '\n' ' '
}

full=$T/full prog=$T/bin/prog
mkdir "$T/bin" "$T/debug"
cat >"$T/prog.c" <<'END'
volatile unsigned long sum;
__attribute__((noinline)) static void spin_here(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		sum += i;
}
int main(void)
{
	for (int i = 0; i < 50; i++)
		spin_here(10000000);
	return 0;
}
END
gcc -O1 -g -Wl,--build-id=sha1 -o "$full" "$T/prog.c" || bail "gcc compiles"
strip -o "$prog" "$full"
id=$(build_id "$full")

record "$T/in.pb.gz" -- "$prog"
like "the stripped program has no name" "$(hot "$T/in.pb.gz")" '^(prog\+@[^ ]* )+$'

# --- the file at its path ---
cp "$full" "$prog"
symbolize "$T/in.pb.gz" -o "$T/out.pb.gz" 2>"$T/err"
is "a file with its build id: exit status" $? 0
like "... names its functions" "$(hot "$T/out.pb.gz")" '^spin_here@[^ ]* $'
like "... which are counted" "$(cat "$T/err")" '[1-9][0-9]* of [1-9][0-9]* locations'
check_profile "$T/out.pb.gz"
is "samples and labels stay" "$(samples "$T/out.pb.gz" | cut -f 1-9)" \
	"$(samples "$T/in.pb.gz" | cut -f 1-9)"
is "comments stay" "$(comments "$T/out.pb.gz")" "$(comments "$T/in.pb.gz")"
decode "$T/out.pb.gz" >"$T/out.txt"
is "protoc reads it" "$?" 0
is "addresses stay" "$(grep address "$T/out.txt")" "$(decode "$T/in.pb.gz" | grep address)"

# --- forms ---
symbolize -q "$T/out.pb.gz" -o "$T/again.pb" 2>"$T/err"
is "-q: no message" "$?$(cat "$T/err")" 0
gzip -f "$T/again.pb"
is "a second time nothing changes" "$(decode "$T/again.pb.gz" | cksum)" \
	"$(cksum <"$T/out.txt")"
zcat "$T/in.pb.gz" | zstd -q >"$T/in.pb.zst"
symbolize -q "$T/in.pb.zst" -o - | cat >"$T/pipe.pb.gz"
is "zstd in, a pipe out" "$(decode "$T/pipe.pb.gz" | cksum)" "$(cksum <"$T/out.txt")"
cp "$T/in.pb.gz" "$T/same.pb.gz"
ln -s same.pb.gz "$T/link.pb.gz"
symbolize -q "$T/same.pb.gz" -o "$T/link.pb.gz" 2>"$T/err"
is "another name of IN is refused" "$?$(cmp "$T/same.pb.gz" "$T/in.pb.gz")" 1
like "... and says so" "$(cat "$T/err")" 'the same file as'
symbolize -q "$T/same.pb.gz" -o "$T/same.pb.gz"
is "the same name replaces it" "$(decode "$T/same.pb.gz" | cksum)" "$(cksum <"$T/out.txt")"

# --- other files ---
other_build_id "$full" "$prog" 1
symbolize "$T/in.pb.gz" -o "$T/other.pb.gz" 2>"$T/err"
is "another build id: exit status" $? 0
like "... is never used" "$(hot "$T/other.pb.gz")" '^(prog\+@[^ ]* )+$'
like "... is named" "$(cat "$T/err")" 'bin/prog: the file has another build id'
like "... is counted" "$(cat "$T/err")" '1 with another build id'
mkdir -p "$T/debug/.build-id/${id:0:2}"
cp "$full" "$T/debug/.build-id/${id:0:2}/${id:2}"
symbolize -q --debug-dir "$T/debug" "$T/in.pb.gz" -o "$T/other.pb.gz"
like "found by its build id" "$(hot "$T/other.pb.gz")" '^spin_here@[^ ]* $'
rm "$prog"
symbolize -q --debug-dir "$T/debug" "$T/in.pb.gz" -o "$T/gone.pb.gz"
like "... if the program is gone" "$(hot "$T/gone.pb.gz")" '^spin_here@[^ ]* $'
objcopy --only-keep-debug "$full" "$T/only.debug"
mkdir -p "$T/only/.build-id/${id:0:2}"
cp "$T/only.debug" "$T/only/.build-id/${id:0:2}/${id:2}.debug"
symbolize -q --debug-dir "$T/only" "$T/in.pb.gz" -o "$T/gone.pb.gz"
like "... by its debug file alone" "$(hot "$T/gone.pb.gz")" '^spin_here@[^ ]* $'
symbolize "$T/in.pb.gz" -o "$T/gone.pb.gz" 2>"$T/err"
like "no file at all is reported" "$?$(cat "$T/err")" '^0.*bin/prog: no file with its build id'
mkdir -p "$T/root$T/bin" && cp "$full" "$T/root$prog"
symbolize -q --debug-dir "$T/root" "$T/in.pb.gz" -o "$T/gone.pb.gz"
like "found at its path below a directory" "$(hot "$T/gone.pb.gz")" '^spin_here@[^ ]* $'
mkfifo "$prog"
symbolize -q "$T/in.pb.gz" -o "$T/gone.pb.gz"
is "a FIFO at its path is not opened" $? 0

# --- another tool's profile: addresses of a mapping that starts elsewhere ---
at=$(nm "$full" | awk '$3 == "spin_here" { print $1 }')
cat >"$T/foreign.txt" <<END
sample_type { type: 1 unit: 2 }
sample { location_id: 7 value: 3 }
mapping { id: 9 memory_start: $((0x555500001000)) memory_limit: $((0x555500002000))
  file_offset: 4096 filename: 3 build_id: 4 }
location { id: 7 mapping_id: 9 address: $((0x555500000000 + 16#$at + 2)) }
string_table: ["", "cpu", "nanoseconds", "$T/root$prog", "$id"]
END
protoc --proto_path="$ROOT/reporter" --encode=perftools.profiles.Profile \
	profile.proto <"$T/foreign.txt" >"$T/foreign.pb"
symbolize -q "$T/foreign.pb" -o "$T/foreign.pb.gz"
like "a profile of another tool" "$(pprof -raw "$T/foreign.pb.gz")" 'M=1 spin_here'
like "its mapping has functions then" "$(pprof -raw "$T/foreign.pb.gz")" "$id \[FN"

# --- errors ---
# fails STATUS MESSAGE NAME COMMAND...
fails() {
	local want=$1 message=$2 name=$3 rc
	shift 3
	"$@" >"$T/stdout" 2>"$T/err"
	rc=$?
	is "$name: exit status" "$rc" "$want"
	like "$name: message" "$(cat "$T/err")" "$message"
}
fails 2 'needs IN and -o OUT' 'no output' symbolize "$T/in.pb.gz"
fails 2 'must end in' 'a strange suffix' symbolize "$T/in.pb.gz" -o "$T/x"
fails 1 'No such file' 'no input' symbolize "$T/none.pb.gz" -o "$T/x.pb.gz"
fails 1 'not a profile' 'a text' symbolize "$T/prog.c" -o "$T/x.pb.gz"
head -c 500 "$T/in.pb.gz" >"$T/cut.pb.gz"
fails 1 'cut off' 'a truncated profile' symbolize "$T/cut.pb.gz" -o "$T/x.pb.gz"
fails 1 '256 MiB' 'an endless input' symbolize /dev/zero -o "$T/x.pb.gz"
fails 1 'not a profile' 'an output that is no profile' \
	symbolize "$T/in.pb.gz" -o "$T/bin/../text.pb.gz" \
	<<<"$(echo mine >"$T/text.pb.gz")"
is "it stays" "$(cat "$T/text.pb.gz")" mine
fails 1 'No such file' 'no such directory' symbolize "$T/in.pb.gz" -o "$T/no/x.pb.gz"
is "no output after errors" "$(ls "$T"/x* 2>/dev/null)" ""
plan
