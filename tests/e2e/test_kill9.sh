#!/bin/bash
# kill -9 while profd writes: no incomplete file ever has a final name, and the next
# start removes what was left. Twenty kills, in four archives at the same time. SIGHUP
# closes a window; profd is killed when its file is created, or within four
# milliseconds after that, and once in each archive at a random time.
. "$(dirname "$0")/lib.sh"
rounds=5

# more_than N DIR: complete windows.
more_than() {
	(($(find "$2" -name '*.gz' | wc -l) > $1))
}

# victim N: kills a profd several times; prints what was left.
victim() {
	local dir=$T/archive$1 log=$T/victim$1.log round pid killer before
	mkdir -p "$dir"
	for ((round = 1; round <= rounds; round++)); do
		nice -n -20 "$PROFD" run --archive "$dir" \
			--listen "unix:$T/sock$1" --window 3600 \
			--keep-free no >>"$log" 2>&1 &
		pid=$!
		wait_for 60 curl -sS --fail --unix-socket "$T/sock$1" \
			http://x/healthz || { kill -KILL "$pid"; return 1; }
		sleep 0.2
		before=$(find "$dir" -name '*.gz' | wc -l)
		kill -HUP "$pid"
		wait_for 60 more_than "$before" "$dir"
		if ((round == 5)); then
			kill -HUP "$pid"
			sleep "0.$((RANDOM % 2))$((RANDOM % 10))"
			kill -KILL "$pid"
		else
			"$E2E/prog_killer" "$(find "$dir" -name "????-??-??" | sort | tail -n 1)" "$pid" \
				$(((round - 1) * (RANDOM % 1500))) >"$T/ready$1" &
			killer=$!
			wait_for 60 grep -q ready "$T/ready$1"
			kill -HUP "$pid"
			wait "$killer" || kill -KILL "$pid"
		fi
		wait "$pid"
		echo "round $round: $(find "$dir" -name 'cpu-*.tmp' | wc -l)" \
			"unfinished, $(find "$dir" -name '*.gz' | wc -l) whole"
	done 2>/dev/null
}

background "$E2E/prog_shares" 600 >/dev/null
victims=()
for v in 1 2 3 4; do
	background victim "$v" >"$T/victim$v.out"
	victims+=("$pid")
done
for pid in "${victims[@]}"; do
	wait "$pid"
	is "profd starts again after each kill" $? 0
done
for v in 1 2 3 4; do
	diag "$(cat "$T/victim$v.out")"
	# One was closed normally, and perhaps the other one too.
	num "archive $v has windows of most rounds" \
		"$(find "$T/archive$v" -name '*.pb.gz' | wc -l)" '>=' \
		$((rounds - 1))
	check_profile "$T/archive$v"/*/*.pb.gz
done

# At least four kills come at the moment at which a file is created.
num "some kills did hit the writing" \
	"$(cat "$T"/victim?.out | grep -c ' [1-9][0-9]* unfinished')" '>=' 1

# --- leftovers, planted ones too, are removed, and nothing else ---
dir=$T/archive1
cp "$(find "$dir" -name '*.pb.gz' | head -n 1)" "$T/whole"
head -c 100 "$T/whole" >"$dir/cpu-host-20260101T000000Z-60s.pb.gz.7.tmp"
echo mine >"$dir/notes.tmp"
before=$(find "$dir" -name '*.pb.gz' | wc -l)
background "$PROFD" run --archive "$dir" --listen "unix:$T/again" \
	2>"$T/again.log"
again=$pid
sock=$T/again
wait_for 60 ask /healthz
is "the next start leaves no unfinished window" \
	"$(find "$dir" -name 'cpu-*.tmp' | wc -l)" 0
num "it says how many it swept" "$(metric profd_reporter_swept_total)" '>=' 1
is "what is not ours stays" "$(cat "$dir/notes.tmp")" mine
is "whole windows stay" "$(find "$dir" -name '*.pb.gz' | wc -l)" "$before"
kill -TERM "$again"
wait "$again"
is "and it ends well" $? 0
check_profile "$dir"/*/*.pb.gz
plan
