#!/bin/bash
# Functions that nothing names are one function each: of a stripped program, of which
# the same one with symbols tells where they begin; and of the machine's programs, by
# their unwind information as binutils reads it.
. "$(dirname "$0")/lib.sh"

cat >"$T/hot.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
static __attribute__((noinline)) unsigned int first(unsigned int n)
{
	unsigned int x = 1, i;
	for (i = 0; i < n; i++) {
		x = x * 1664525 + i;
		x ^= x >> 7;
		if (x % 97 == 5)
			x += i * i;
	}
	return x;
}
static __attribute__((noinline)) unsigned int second(unsigned int n)
{
	unsigned int x = 7, i;
	for (i = 0; i < n; i++) {
		x = (x << 3) ^ (x >> 5) ^ i;
		if (x % 89 == 3)
			x *= i | 1;
	}
	return x;
}
int main(int argc, char **argv)
{
	unsigned int i, x = 0, n = 1000000 * (unsigned int)argc / 2;
	for (i = 0; i < (unsigned int)atoi(argv[1]); i++)
		x += first(n) + second(n);
	return printf("%u\n", x) < 0;
}
END
gcc -O2 -g -Wl,--build-id=sha1 -o "$T/twin" "$T/hot.c" &&
	strip -o "$T/hot" "$T/twin" || bail "the programs are built"
# Rounds in 0.7 s of CPU time.
TIMEFORMAT=%U
took=$({ time "$T/hot" 20 >"$T/out"; } 2>&1)
rounds=$(awk -v took="$took" 'BEGIN { print int(0.7 * 20 / (took + 0.001)) + 1 }')

# start NAME: the address of a function, as profd prints it.
start() {
	nm "$T/twin" | awk -v name="$1" '$3 == name {
		sub(/^0+/, "", $1)
		print $1 }'
}
want=$(printf 'hot+0x%s\n' "$(start first)" "$(start second)" | sort)

record "$T/hot.pb.gz" -F 997 -- "$T/hot" "$rounds"
is "recorded" $? 0
top=$(pprof -top -nodecount=1000 "$T/hot.pb.gz")
is "two rows have the time of two functions" "$(awk '
	$2 + 0 >= 2 && $6 ~ /^hot\+0x/ { print $6 }' <<<"$top" | sort)" "$want"
samples "$T/hot.pb.gz" >"$T/samples"
all=$(total "$T/samples" 'hot\+0x')
num "they were sampled" "$all" '>=' 300
num "nearly always" "$(percent "$(total "$T/samples" \
	"^($(paste -sd '|' <<<"${want//+/[+]}"))@")" "$all")" '>=' 90
# Every name of the program is the start of a function.
names=$(awk -F '\t' '{
	n = split($10, f, ";")
	for (i = 1; i <= n; i++)
		if (f[i] ~ /^hot\+0x/) {
			sub(/@.*/, "", f[i])
			print f[i]
		} }' "$T/samples" | sort -u)
starts=$(nm "$T/twin" | awk 'tolower($2) == "t" {
	sub(/^0+/, "", $1)
	print "hot+0x" $1 }' | sort -u)
is "all its names are starts of functions" \
	"$(comm -23 <(echo "$names") <(echo "$starts"))" ""
is "addr2line has the same functions" "$(sed 's/.*+//' <<<"$want" |
	addr2line -f -s -e "$T/twin" | grep -v : | sort | xargs)" "first second"
# The locations keep the sampled addresses.
pprof -raw "$T/hot.pb.gz" >"$T/raw"
num "their addresses are those sampled" "$(awk -v name="hot+0x$(start first)" '
	$4 == name || $5 == name { print $2 }' "$T/raw" | sort -u | wc -l)" '>=' 5
check_profile "$T/hot.pb.gz"

# has_functions FILE PROGRAM: of its mapping, as protoc reads it.
has_functions() {
	zcat "$1" | protoc -I "$ROOT/reporter" \
		--decode=perftools.profiles.Profile profile.proto | awk -v path="$2" '
		/^mapping {/ { m = 1; file = has = 0 }
		m && /^  filename:/ { file = $2 }
		m && /^  has_functions: true/ { has = 1 }
		m && /^}/ { m = 0; with[file] = has }
		/^string_table:/ {
			if ($2 == "\"" path "\"") print with[n] + 0
			n++ }'
}
is "its mapping has no functions" \
	"$(has_functions "$T/hot.pb.gz" "$T/hot")" 0

# As a person calls it: pprof symbolizes by itself what has no functions.
plain_pprof() {
	HOME=$T PPROF_TMPDIR=$T "$GO" tool pprof -top -nodecount=1000 "$1" \
		2>>"$T/pprof.err"
}
rows() {
	awk '$2 + 0 >= 2 && $6 ~ /^(hot|first|second)/ { print $6 }' | sort
}
is "pprof, with the stripped file: the same rows" \
	"$(plain_pprof "$T/hot.pb.gz" | rows)" "$want"
mv "$T/hot" "$T/stripped"
cp "$T/twin" "$T/hot"
is "pprof, with the file of the same build id that has symbols: their names" \
	"$(plain_pprof "$T/hot.pb.gz" | rows | xargs)" "first second"
record "$T/twin.pb.gz" -F 997 -- "$T/hot" "$((rounds / 4 + 1))"
is "with symbols: recorded" $? 0
is "with symbols: its mapping has functions" \
	"$(has_functions "$T/twin.pb.gz" "$T/hot")" 1
check_profile "$T/twin.pb.gz"

# --- programs of the machine -------------------------------------------------
cat >"$T/mix" <<'END'
(i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done) &
python3 -c '
x = {}
for i in range(450000): x[i % 977] = str(i) + "x"' &
wait
END
record "$T/mix.pb.gz" -F 1997 -- bash "$T/mix"
is "programs of the machine: recorded" $? 0
check_profile "$T/mix.pb.gz"

# names FILE: "FILE ADDRESS NAME" of its locations without a name, sorted.
names() {
	pprof -raw "$1" | awk '
		/^Locations/ { locations = 1; next }
		/^Mappings/ { locations = 0; mappings = 1; next }
		locations && $4 ~ /\+0x[0-9a-f]+$/ {
			sub(/M=/, "", $3)
			map[n] = $3; address[n] = $2; name[n++] = $4 }
		mappings { path[$1 + 0] = $3 }
		END { for (i = 0; i < n; i++)
			print path[map[i]], address[i], name[i] }' | sort
}
# frames FILE: "FILE START END" of the functions of its .eh_frame, but for those of PLTs.
frames() {
	{
		readelf -SW "$1" | awk '/ [.]plt/ {
			sub(/.*\]/, "")
			print "plt", $3 }'
		readelf --debug-dump=frames "$1" 2>/dev/null
	} | awk -v file="$1" '
		$1 == "plt" { sub(/^0+/, "", $2); plt[$2] = 1 }
		/ FDE / {
			sub(/.*pc=0*/, "")
			sub(/\.\.0*/, " ")
			if (!($1 in plt)) print file, $1, $2 }'
}
names "$T/mix.pb.gz" | grep '^/' >"$T/names"
cut -d ' ' -f 1 "$T/names" | sort -u | while read -r file; do
	frames "$file"
done >"$T/frames"
num "programs of the machine: some functions have no name" \
	"$(wc -l <"$T/names")" '>=' 50
is "programs of the machine: each such name is the start of a function" "$(awk '
	function hex(s, v, i) {
		sub(/^0x/, "", s)
		for (i = 1; i <= length(s); i++)
			v = v * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1
		return v
	}
	FILENAME ~ /frames$/ {
		k = $1 " " n[$1]++
		start[k] = hex($2)
		end[k] = hex($3)
		next
	}
	{
		at = hex($2)
		want = at
		for (i = 0; i < n[$1]; i++) {
			k = $1 " " i
			if (start[k] <= at && at < end[k])
				want = start[k]
		}
		sub(/.*\+0x/, "", $3)
		if (hex($3) != want)
			print
	}' "$T/frames" "$T/names")" ""
num "programs of the machine: fewer rows than addresses" \
	"$(cut -d ' ' -f 3 "$T/names" | sort -u | wc -l)" '<' \
	"$(($(wc -l <"$T/names") * 3 / 4))"
plan
