#!/bin/bash
# Few descriptors: profd starts, or reports how many it needs. If it can start, it names
# functions of the files that it can hold open, counts those it closes, and keeps
# answering.
. "$(dirname "$0")/lib.sh"
spin=$E2E/prog_spin_a
PROGRAMS=${PROGRAMS:-40}
# The number of descriptors besides executables grows with the CPUs: a clock, its
# program and a ring for each.
LIMIT=$((86 + 4 * ($(getconf _NPROCESSORS_CONF) - 2)))
real=$PROFD

# limited N: from here on profd is started with this limit of descriptors.
limited() {
	printf '#!/bin/sh\nulimit -n %d\nexec "%s" "$@"\n' "$1" "$real" >"$T/profd"
	chmod +x "$T/profd"
	PROFD=$T/profd
}

# --- too few to start: an error, and nothing is left running ---
for n in 12 20 36 $((LIMIT - 8)); do
	limited "$n"
	out=$(timeout 60 "$PROFD" run --archive "$T/few" --listen "unix:$T/few.sock" 2>&1)
	is "$n descriptors: refused" $? 1
	like "$n descriptors: and why" "$out" 'profd: .*Too many open files'
	is "$n descriptors: not by half" "$(grep -c 'no BPF' <<<"$out")" 0
done

# --- enough to run, but not for all executables ---
mkdir "$T/programs"
for i in $(seq $PROGRAMS); do
	other_build_id "$spin" "$T/programs/prog$i" "$i"
done
limited "$LIMIT"
start_profd limited --window 3600 -F 499
is "it has the limit" "$(awk '/Max open files/ { print $4, $5 }' \
	"/proc/$profd/limits")" "$LIMIT $LIMIT"
# Thirty samples of each are expected, of which one is needed.
answers=0 asked=0
for i in $(seq $PROGRAMS); do
	"$T/programs/prog$i" 20 >/dev/null
	asked=$((asked + 1))
	ask /healthz >/dev/null && answers=$((answers + 1))
done
# All of them at once.
spinners=()
for i in $(seq $PROGRAMS); do
	background "$T/programs/prog$i" 40 >/dev/null
	spinners+=("$pid")
done
for pid in "${spinners[@]}"; do
	wait "$pid"
	asked=$((asked + 1))
	ask /healthz >/dev/null && answers=$((answers + 1))
done
is "it answers, every time" "$answers" "$asked"
check "with a profile, too" "$real" fetch --server "unix:$sock" --duration 1 \
	-o "$T/fetched.pb.gz"
num "what it closed for the limit is counted" \
	"$(metric profd_pm_open_closed_total)" '>' 0
num "what it holds open is within it" \
	"$(find "/proc/$profd/fd" -mindepth 1 | wc -l)" '<=' "$LIMIT"
kill -HUP "$profd" # a window closes; its file needs one, too
written() { (($(metric profd_reporter_windows_written_total) >= 1)); }
check "a window is written meanwhile" wait_for 60 written
is "no window is lost" "$(metric profd_reporter_windows_failed_total)" 0
"$T/programs/prog1" 300 >/dev/null
stop_profd
is "it ends well" $? 0
check_profile "$archive"/*/*.pb.gz "$T/fetched.pb.gz"
for f in "$archive"/*/*.pb.gz; do
	samples "$f"
done | awk -F '\t' -v dir="$T/programs/" 'index($7, dir) == 1' >"$T/samples"
num "all were sampled" "$(cut -f 7 "$T/samples" | sort -u | wc -l)" '==' \
	$PROGRAMS
is "a frame has a name, or a place in its file" "$(awk -F '\t' '
	{ n = split($10, f, ";")
	for (i = 1; i <= n; i++) {
		if (f[i] !~ /@[^@]*\/prog[0-9]+$/)
			continue
		at = f[i]
		sub(/@[^@]*$/, "", at)
		if (at !~ /^(spin_a|middle_a|main|prog[0-9]+\+0x[0-9a-f]+)$/ &&
		    at !~ /^[_a-z][A-Za-z0-9_.]*$/)
			print f[i]
	} }' "$T/samples" | sort -u | head -n 3)" ""
# Files are opened when their names are needed.
num "most have all their names" "$(percent "$(total "$T/samples" \
	'(^|;)spin_a@[^;]*;middle_a@')" "$(total "$T/samples" \
	'(^|;)(spin_a|prog[0-9]+\+0x[0-9a-f]+)@')")" '>=' 50
diag "$(total "$T/samples" 'spin_a@') named, $(total "$T/samples" \
	'prog[0-9]+\+0x') by their place"
plan
