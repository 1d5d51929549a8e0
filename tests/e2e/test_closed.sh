#!/bin/bash
# profd started with standard descriptors closed, as some supervisors do: it works as with
# /dev/null, the command's exit status is kept, and the command gets its descriptors as
# they were.
. "$(dirname "$0")/lib.sh"

cat >"$T/fds.c" <<'C'
#include <fcntl.h>
/* The exit status: a bit for each standard descriptor that is open. */
int main(void)
{
	int fd, open = 0;

	for (fd = 0; fd < 3; fd++)
		open |= (fcntl(fd, F_GETFD) >= 0) << fd;
	return open;
}
C
gcc -o "$T/fds" "$T/fds.c"
"$PROFD" record -q -F 999 -o "$T/in.pb.gz" -- "$E2E/prog_spin_a" 1

# closed DESCRIPTORS STATUS COMMAND...: with these closed.
closed() {
	local list=$1 status=$2 rc fd redirect=
	shift 2
	for fd in $list; do redirect+=" $fd>&-"; done
	eval "timeout 60 \"\$@\" $redirect"
	rc=$?
	((rc == status)) || echo "exit status $rc, wanted $status"
	((rc == status))
}

# Open is what remains of 0, 1 and 2: 7 less the closed ones' bits.
for how in "0 6" "1 5" "2 3" "0 1 4" "0 2 2" "1 2 1" "0 1 2 0"; do
	fds=${how% *} open=${how##* }
	rm -f "$T/p.pb.gz" "$T/out.pb.gz"
	check "record, without $fds: the command's status and descriptors" \
		closed "$fds" "$open" "$PROFD" record -F 999 -o "$T/p.pb.gz" -- "$T/fds"
	check "... and a profile" test -s "$T/p.pb.gz"
	check "symbolize-profile, without $fds" \
		closed "$fds" 0 "$PROFD" symbolize-profile -o "$T/out.pb.gz" "$T/in.pb.gz"
	check "... and a profile" test -s "$T/out.pb.gz"
	check "debug symbolize, without $fds" \
		closed "$fds" 0 "$PROFD" debug symbolize "$E2E/prog_spin_a" 0x700000
	check "debug unwind-table, without $fds" \
		closed "$fds" 0 "$PROFD" debug unwind-table --stats "$E2E/prog_spin_a"
	check "version, without $fds" closed "$fds" 0 "$PROFD" --version
done
is "what is printed goes where it should" \
	"$("$PROFD" debug symbolize "$E2E/prog_spin_a" 0x700000 <&- 2>&- | grep -c "symtab *spin_a")" 1

rm -rf "$T/x" && mkdir -m 700 "$T/x"
for fds in "0" "0 1 2"; do
	redirect=
	for fd in $fds; do redirect+=" $fd>&-"; done
	eval "timeout --preserve-status -s INT 3 \"\$PROFD\" run --config /dev/null --archive \"\$T/x\" \
		--cache none --listen \"unix:\$T/s\" $redirect"
	is "run, without $fds: ends with 0" $? 0
done 2>"$T/run.log"
is "... and does not abort" "$(grep -ci 'assert\|abort' "$T/run.log")" 0
plan
