#!/bin/bash
# What watching costs redis-server, and beside it empty hooks, strace and perf trace of the
# same calls; of a null call and a read of one byte also what strace and perf trace cost:
# for the others see bench_watch.c. Ratios are to nothing attached, in the same run;
# requests/s also have those who read the events on these CPUs, CPU time is redis-server's.
. "$(dirname "$0")/lib.sh"
prog=$B/tests/bench/bench_watch

perf_traces() {
	perf trace -o "$T/perf.trace" -e getppid -- "$prog" call getppid 2>&1 &&
		grep -q getppid "$T/perf.trace"
} >"$T/perf.out"
tracers=strace
if perf_traces; then tracers+=" perf_trace"; else diag "no perf trace: $(cat "$T/perf.out")"; fi

for call in getppid read; do
	bare=$("$prog" call "$call")
	for tracer in $tracers; do
		case $tracer in
		strace) ns=$(strace -o /dev/null -e trace=$call "$prog" call $call) ;;
		*) ns=$(perf trace -o /dev/null -e $call -- "$prog" call $call) ;;
		esac
		figure "watch_${call}_$tracer" "$(calc "$ns / $bare")" ratio null ns "$ns" \
			bare_ns "$bare"
	done
done

if ! command -v redis-server >/dev/null; then
	diag "no redis-server"
	exit 0
fi
at=$(free_port)
background redis-server --port "$at" --bind 127.0.0.1 --dir "$T" --save '' >"$T/redis"
redis=$pid
wait_for 30 redis-cli -p "$at" ping || exit 1
start_profd watch

# watches ARGS...: of redis-server.
watches() {
	background "$PROFD" watch --json --server "unix:$sock" --pid "$redis" "$@" >"$T/on"
	wait_for 60 grep -q '"watching"' "$T/on"
}
# on STATE: what it needs runs, as $pid.
on() {
	case $1 in
	nothing) background sleep 3600 ;;
	other) watches syscall_exit-vhangup ;;
	watched) watches syscall_exit-read syscall_exit-write ;;
	slower) watches --slower 1s syscall_exit-read syscall_exit-write ;;
	empty)
		background "$prog" hooks >"$T/on"
		wait_for 30 grep -q ready "$T/on"
		;;
	strace)
		background strace -f -o /dev/null -e trace=read,write -p "$redis" 2>"$T/on"
		wait_for 30 grep -q attached "$T/on"
		;;
	perf_trace)
		background perf trace -o /dev/null -e read,write -p "$redis"
		sleep 2
		;;
	esac
}
ticks() {
	awk '{ print $14 + $15 }' "/proc/$redis/stat"
}
# once STATE: adds to rps[STATE] and us[STATE].
once() {
	local n=40000 from
	[[ " $tracers " != *" $1 "* ]] || n=4000
	on "$1" || { diag "$1 does not run"; return 0; }
	from=$(ticks)
	rps[$1]+=" $(redis-benchmark -p "$at" -n $n -c 4 --csv -t get |
		awk -F '"' '$2 == "GET" { print $4 }')"
	us[$1]+=" $(calc "($(ticks) - $from) * 10000 / $n")"
	lost[$1]=$(grep -c '"lost"' "$T/on" 2>/dev/null)
	kill -INT "$pid"
	wait "$pid"
} 2>/dev/null

declare -A rps us lost
for ((r = 0; r < ROUNDS; r++)); do
	for state in nothing other watched slower empty $tracers; do
		once $state
	done
done
# shellcheck disable=SC2086 # words on purpose
bare=$(median ${rps[nothing]}) bare_us=$(median ${us[nothing]})
for state in nothing other watched slower empty $tracers; do
	# shellcheck disable=SC2086
	v=$(median ${rps[$state]}) v_us=$(median ${us[$state]})
	[[ -n $v ]] || continue
	figure "watch_redis_$state" "$(calc "$bare / $v")" ratio null rps "$v" \
		cpu_us_per_request "$v_us" cpu_ratio "$(calc "$v_us / $bare_us")" \
		lines_with_losses "${lost[$state]:-0}"
done
