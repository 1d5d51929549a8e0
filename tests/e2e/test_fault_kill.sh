#!/bin/bash
# kill -9 during a storm: a process that survives is the same process and the same
# image to the next profd, in the ledger and in the profiles of both.
. "$(dirname "$0")/lib.sh"

: >"$T/go"
storm() {
	while [[ -e $T/go ]]; do
		"$E2E/prog_lives" 100 1 || return 1
	done
}
background storm >"$T/truth"
storm=$pid

# ids FILE: of running processes: pid, process, image, parent.
ids() {
	"$PROFD" ps --json --server "unix:$sock" |
		jq -r 'select(.state == "alive") |
			[.pid, .process, .image, .parent, .start_boot_ns] | @tsv' |
		sort >"$1"
}
# both_there: both processes run, in their last image
both_there() {
	ids "$T/now"
	(($(grep -cE "^($busy|$sleeper)[[:space:]]" "$T/now") == 2)) &&
		"$PROFD" ps --json --server "unix:$sock" |
		jq -es "any(.[]; .pid == $sleeper and .comm == \"sleep\") and
			any(.[]; .pid == $busy and .comm == \"prog_shares\")"
}

start_profd kill --window 3600
# One profd sees them from their beginning, the other one does not.
background "$E2E/prog_shares" 600 >/dev/null
busy=$pid
# A process with several images, in a session of its own: setsid(1) of a group's leader
# would fork.
setsid sh -c 'exec sleep 600' </dev/null &
sleeper=$!
started+=("$sleeper")
check "both are listed" wait_for 60 both_there
ids "$T/first"
sleep 1
kill -HUP "$profd" # a window is kept
written() { (($(metric profd_reporter_windows_written_total) >= 1)); }
check "a window is written" wait_for 60 written
kill -KILL "$profd"
wait "$profd" 2>/dev/null
before=("$archive"/*/*.pb.gz)
before=${before[0]}

# The archive is taken over by a profd that has seen none of their beginnings.
mv "$T/kill.archive" "$T/again.archive"
before=$T/again.archive/${before#"$archive"/}
start_profd again --window 3600
check "both are listed once more" wait_for 60 both_there
ids "$T/second"
sleep 1
rm "$T/go"
wait "$storm"
is "the storm is done" $? 0
stop_profd
is "it ends well" $? 0

# The same pid with another process is a reused pid.
join -t $'\t' -j 1 "$T/first" "$T/second" |
	awk -F '\t' '$2 != $6 && $5 == $9' >"$T/changed"
is "the same process has the same id" "$(cat "$T/changed")" ""
for pid in "$busy" "$sleeper"; do
	is "process $pid, its image and its parent are the same" \
		"$(grep "^$pid"$'\t' "$T/second")" "$(grep "^$pid"$'\t' "$T/first")"
done
num "they are not alone in this" \
	"$(comm -12 "$T/first" "$T/second" | wc -l)" '>=' 10
after=$(find "$T/again.archive" -name '*.pb.gz' ! -path "$before")
check_profile "$before" "$after"
for f in "$before" "$after"; do
	# Before its exec it is a shell: the first profd may see a sample of that.
	samples "$f" | awk -F '\t' -v p="$busy" '
		$3 == p && $7 ~ /prog_shares$/ { print $8, $9 }' | sort -u
done >"$T/labels"
is "in both profiles its samples have one process and one image" \
	"$(sort -u "$T/labels" | wc -l)" 1
is "... which are the ledger's" "$(sort -u "$T/labels")" \
	"$(awk -F '\t' -v p="$busy" '$1 == p { print $2, $3 }' "$T/first")"
is "... and there are some in both" "$(wc -l <"$T/labels")" 2
plan
