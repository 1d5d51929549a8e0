#!/bin/bash
# Debug files from a debuginfod server: of commands and of a running profd, from the
# server of elfutils; and servers that are dead, slow, lying, endless or redirecting.
. "$(dirname "$0")/lib.sh"
command -v debuginfod >/dev/null || bail "there is a debuginfod server"
unset DEBUGINFOD_URLS
mkdir -p "$T/served" "$T/bin"
dir=$T/home/.cache/profd/debuginfod
# as_user COMMAND...: with a home of its own; Go builds its tools in the usual one.
as_user() { timeout 60 env -u XDG_CACHE_HOME HOME="$T/home" "$PROFD" "$@"; }

# --- a stripped program, whose debug information only the server has ---
cat >"$T/part.c" <<'C'
#include <stdlib.h>
static inline __attribute__((always_inline)) int part_inlined(int x)
{
	volatile int y = x;
	for (int i = 0; i < 100000; i++)
		y += i;
	return y;
}
static __attribute__((noinline)) int part_hot(int x)
{
	return part_inlined(x) + 1;
}
int main(int argc, char **argv)
{
	unsigned long s = 0;
	for (long n = atol(argv[1]); n; n--)
		s += part_hot(n);
	return s == 1;
}
C
prog=$T/bin/prog_part
gcc -O1 -g "$T/part.c" -o "$prog" || bail "the program is built"
hot=0x$(nm "$prog" | awk '$3 == "part_hot" { print $1 }')
objcopy --only-keep-debug "$prog" "$T/served/part.debug"
strip "$prog"
id=$(readelf -n "$prog" | awk '/Build ID/ { print $3 }')
kept=$dir/.build-id/${id:0:2}/${id:2}.debug

port=$(free_port)
background debuginfod -F -d "$T/db.sqlite" -p "$port" "$T/served" >"$T/server.log" 2>&1
real=http://127.0.0.1:$port
wait_for 60 curl -sf "$real/buildid/$id/debuginfo" -o "$T/truth" ||
	bail "the server has the file" "$(tail "$T/server.log")"
background python3 "$E2E_SRC/debuginfod_lies.py" "$E2E/prog_spin_a" "$real" >"$T/port"
wait_for 60 test -s "$T/port" || bail "the other server starts"
lies=http://127.0.0.1:$(cat "$T/port")

# --- commands ---
# symbolize URL OPTIONS...: messages in $T/err.
symbolize() {
	local url=$1
	shift
	as_user debug symbolize --debuginfod "$url" "$@" "$prog" "$hot" 2>"$T/err"
	# Progress, where the machine is slow.
	sed -i '/waiting for debug files of/d' "$T/err"
}
like "without a server there is no name" \
	"$("$PROFD" debug symbolize "$prog" "$hot")" 'cfi +prog_part\+0x'
out=$(symbolize "$real")
like "with one: the inlined function and its line" "$out" \
	'part_inlined at [^ ]*/part.c:[0-9]+'
like "... and the function" "$out" 'inlined into +part_hot at [^ ]*/part.c:[0-9]+'
is "no message" "$(cat "$T/err")" ""
check "the file is kept" cmp "$kept" "$T/truth"
is "the directory is private" "$(stat -c %a "$dir")" 700
like "it is used without the server" "$(symbolize http://127.0.0.1:1)" part_hot
is "which is not asked" "$(cat "$T/err")" ""
rm -r "$dir"
like "the second of two servers" \
	"$(symbolize "$lies/missing" --debuginfod "$real/")" part_hot
rm -r "$dir"
like "after a redirection" "$(symbolize "$lies/moved")" part_hot

# --- a profile, when the program is gone ---
"$PROFD" record -q -f --cache "$T/c" -o "$T/rec.pb.gz" -- "$prog" 3000 >"$T/err" 2>&1
mv "$prog" "$T/gone"
rm -r "$dir"
as_user symbolize-profile -o "$T/named.pb.gz" --debuginfod "$real" "$T/rec.pb.gz" \
	2>"$T/err"
check "symbolize-profile: the debug file is enough" \
	grep -q part_inlined <(samples "$T/named.pb.gz")
mv "$T/gone" "$prog"

# --- servers that misbehave ---
# wrong NAME PATH MESSAGE: nothing is used or kept.
wrong() {
	rm -rf "$dir"
	like "$1: no name" "$(symbolize "$lies/$2" --debuginfod-size 1M)" \
		'cfi +prog_part\+0x'
	like "$1: the message" "$(cat "$T/err")" "$3"
	is "$1: nothing is kept" "$(find "$dir" -type f)" ""
}
wrong "another file" other '^$'
wrong "garbage" garbage '^$'
wrong "an empty file" empty '^$'
wrong "none" missing '^$'
wrong "an endless file" endless '^$'
wrong "a huge file" huge '^$'
wrong "a file cut short" short 'answers with an error'
wrong "an error" error 'answers with an error'
wrong "redirections without end" loop 'redirects too often'
wrong "a redirection to a file" file 'redirects too often'
began=$SECONDS
rm -r "$dir"
like "a dead server: no name" "$(symbolize http://127.0.0.1:1)" 'cfi +prog_part'
like "a dead server: the message" "$(cat "$T/err")" 'cannot be reached'
num "a dead server: soon" $((SECONDS - began)) '<=' 6
rm -r "$dir"
mkdir -p "$dir"
chmod 777 "$dir"
symbolize "$real" >"$T/out"
like "a directory of others: not used" "$(cat "$T/out")" 'cfi +prog_part'
like "a directory of others: the message" "$(cat "$T/err")" 'debuginfod.*nobody else may write'
rm -r "$dir"
for url in ftp://x x '' 'http://x y'; do
	"$PROFD" debug symbolize --debuginfod "$url" "$prog" "$hot" 2>"$T/err"
	is "--debuginfod '$url': refused" $? 2
done
like "... with what it must be" "$(cat "$T/err")" 'must be http://HOST or https://HOST'

# --- a running profd ---
background "$prog" 100000000
names() {
	"$PROFD" fetch -q -f -d 1 -o "$T/live.pb.gz" --server "unix:$sock" &&
		samples "$T/live.pb.gz" | grep -q part_inlined
}
start_profd slow --cache "$T/cache" --debuginfod "$lies/slow"
# Its names are asked for when it is sampled.
asked() { [[ $(metric profd_symbolize_fetch_pending) -ge 1 ]] && pgrep -P "$profd" profd-fetch; }
check "slow: it is asked" wait_for 60 asked
fetcher=$(pgrep -P "$profd" profd-fetch)
status() { awk -v k="$1:" '$1 == k { print $2 }' "/proc/$fetcher/status"; }
is "slow: the process has no capability" "$(status CapEff)$(status CapPrm)" \
	00000000000000000000000000000000
is "slow: ... a user of its own" "$(status Uid)" $((1879048192 + fetcher))
is "slow: ... and a filter of system calls" "$(status Seccomp)$(status NoNewPrivs)" 21
check "slow: profiles come all the same" \
	"$PROFD" fetch -q -f -d 1 -o "$T/x.pb.gz" --server "unix:$sock"
began=$(date +%s%N)
stop_profd
is "slow: it ends well" $? 0
# The answer would never end.
num "slow: and soon" $((($(date +%s%N) - began) / 1000000000)) '<=' 20
check "slow: the process is gone" wait_for 60 test ! -d "/proc/$fetcher"

start_profd real --cache "$T/cache" --debuginfod "$real"
check "real: the names arrive" wait_for 60 names
num "real: it is counted" "$(metric profd_symbolize_fetch_done_total)" '>=' 1
num "real: with its bytes" "$(metric profd_symbolize_fetch_bytes)" '>=' 1000
check "real: the file is in the cache" \
	test -s "$T/cache/debuginfod/.build-id/${id:0:2}/${id:2}.debug"
stop_profd
is "real: it ends well" $? 0
"$PROFD" run --cache none --debuginfod "$real" 2>"$T/err"
is "without a cache: refused" $? 2
like "... and said why" "$(cat "$T/err")" '--debuginfod needs a directory'
plan
