#!/bin/bash
# profd record of a program with much debug information: each hot function has its name
# and lines, in all of its compile units. NAMES_UNITS is the number of these, of 0.4 MiB
# each: 1200 make half a gigabyte, the default 24 MiB.
. "$(dirname "$0")/lib.sh"
units=${NAMES_UNITS:-60}
cd "$T" || exit 1

awk 'BEGIN {
	print "struct s { int a; long b; struct s *next; };"
	print "static inline __attribute__((always_inline)) int in(struct s *s, int x)"
	print "{ return s->a * x + 1; }"
	for (i = 0; i < 700; i++) {
		printf "struct t%d { struct s s; int f%d; char c%d[%d]; };\n", i, i, i, i + 1
		printf "int number_%d(struct t%d *t, int x)\n{\n\tint n%d = x;\n", i, i, i
		printf "\tfor (int k = 0; k < x; k++)\n\t\tn%d += in(&t->s, k);\n", i
		printf "\treturn n%d > %d ? n%d : x;\n}\n", i, i, i
	}
	print "#line 1000 \"hot.c\""
	print "static inline __attribute__((always_inline)) unsigned step(unsigned i)"
	print "{ return i * 7 ^ i >> 3; }"
	print "__attribute__((noinline)) int hot(unsigned n)\n{"
	print "\tvolatile unsigned s = 0;"
	print "\tfor (unsigned i = 0; i < n; i++)\n\t\ts += step(i);\n\treturn s;\n}"
}' >unit.c
gcc -O1 -g -c unit.c -o unit.o || bail "the unit is built"
{
	for ((i = 1; i <= units; i++)); do echo "int u${i}_hot(unsigned);"; done
	echo "int main(void) { volatile int s = 0; for (int r = 0; r < 100000; r++) {"
	for ((i = 1; i <= units; i++)); do echo "s += u${i}_hot(100000);"; done
	echo "} return s; }"
} >main.c
for ((i = 1; i <= units; i++)); do
	objcopy "--prefix-symbols=u${i}_" unit.o "u$i.o" || bail "unit $i is built"
done
gcc -g -o large main.c u*.o || bail "the program is linked"
rm -f u*.o
diag "the program has $(stat -c %s large) bytes"
num "the program is large" "$(stat -c %s large)" '>=' $((units * 400000))

background ./large
large=$pid
began=${EPOCHREALTIME/./}
background record "$T/large.pb.gz" --cache none -F 997 -d 3600 -p "$large"
record=$pid
recorder "$record"
used "$large" 500
kill -INT "$recorder"
wait "$record"
is "it is recorded" $? 0
diag "after $(((${EPOCHREALTIME/./} - began) / 1000)) ms: $(cat large.pb.gz.log)"
pprof -top -lines -unit count -sample_index samples large.pb.gz |
	awk '$1 ~ /^[0-9]+$/ && $0 !~ /\[|main\.c/ { print }' >lines
samples large.pb.gz | awk -F '\t' '$7 ~ /large$/ && $10 ~ /@/' >all
num "samples" "$(total all)" '>=' 200
is "none is without a name" "$(total all 'large[+]0x')" 0
hot=$(total all 'u[0-9]+_hot@')
num "nearly all are in the hot functions" "$(percent "$hot" "$(total all)")" '>=' 90
grep -oE 'u[0-9]+_hot .*' lines | awk '{ print $1 }' | sort -u >seen
num "... of most units" "$(wc -l <seen)" '>=' $((units < 40 ? units * 3 / 4 : 30))
is "each with its line" "$(grep 'u[0-9]*_hot' lines | grep -cvE 'hot\.c:100[1-9]')" 0
is "no sample lacks a name for time" "$(grep -c 'without all names' large.pb.gz.log)" 0
check_profile large.pb.gz
plan
