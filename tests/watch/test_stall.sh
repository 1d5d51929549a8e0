#!/bin/bash
# A client that does not read for five seconds: what it missed is counted to the last event,
# and another client of the same events misses nothing.
. "$(dirname "$0")/../e2e/lib.sh"

user=64031 # no other process has it
start_profd watch
# watches NAME: a client of that user's signals, to $T/NAME.
watches() {
	background "$PROFD" watch --json --server "unix:$sock" --user "$user" signal_generate \
		>"$T/$1" 2>"$T/$1.err"
	check "$1: hooks are attached" wait_for 60 grep -q '"watching"' "$T/$1"
}
watches quick
watches stalled
stalled=$pid
seen() { grep -c '"name":"signal_generate"' "$T/$1"; }
lost() { jq -s 'map(.lost.signal_generate // 0) | add' "$T/$1"; }

kill -STOP "$stalled"
# More than a client's queue and the buffers of its socket, and fewer in a second than a
# crowded ring leaves to a user.
setpriv --reuid "$user" --regid "$user" --clear-groups perl -e '
	$SIG{USR1} = "IGNORE";
	my $end = time + 6;
	my $n = 0;
	while (time < $end) {
		for (1 .. 150) { kill USR1 => $$; $n++; }
		select undef, undef, undef, 0.05;
	}
	print "$n\n"' >"$T/sent"
sent=$(($(<"$T/sent") + 1)) # and that of its end, to its parent
kill -CONT "$stalled"
# told NAME: it has each event, or knows that it was lost.
told() { (($(seen "$1") + $(lost "$1") >= sent)); }
check "the other one has them all" wait_for 60 told quick
check "the one that stalled knows how many it missed" wait_for 60 told stalled
num "... which are some" "$(lost stalled)" '>' 0
is "... and no more than were sent" "$(($(seen stalled) + $(lost stalled)))" "$sent"
is "the other one has lost none" "$(seen quick) $(lost quick)" "$sent 0"
echo "# $sent sent; $(seen stalled) seen and $(lost stalled) lost by the one that stalled"
stop_profd
is "profd ends well" $? 0
plan
