#!/bin/bash
# Files on FUSE are not read, and each place that gives a reason gives that one: EOPNOTSUPP
# is the number of ENOTSUP, which is the reason of another machine's files.
. "$(dirname "$0")/lib.sh"

mkdir "$T/mnt"
background "$E2E/prog_fuse" "$T/mnt" "$E2E/prog_spin_a" flush >"$T/fuse.log"
fuse=$pid
check "a FUSE file system is mounted" wait_for 20 grep -q mounted "$T/fuse.log"
mounted+=("$T/mnt")
prog=$T/mnt/prog
for command in "unwind-table $prog" "unwind $prog:700000" "symbolize $prog 0x700000"; do
	# shellcheck disable=SC2086
	like "debug ${command%% *}: the reason" \
		"$("$PROFD" debug $command 2>&1 >/dev/null)" \
		"$prog: on a file system that is not read \(FUSE"
done
record "$T/p.pb.gz" -F 999 -- "$prog" 300
samples "$T/p.pb.gz" >"$T/tsv"
num "stacks end in the file that is not read" \
	"$(total "$T/tsv" '\[file not read: prog\]@$')" '>=' 20
is "... not in one without unwind information" \
	"$(total "$T/tsv" '\[no unwind info')" 0
end_group "$fuse"
plan
