#!/bin/bash
# A host with an incomplete /proc, or without one: profd runs, reports once what will be
# missing, and all other data is correct. The observed processes are not affected: only
# profd has a mount namespace of its own.
. "$(dirname "$0")/lib.sh"
spin=$E2E/prog_spin_a lives=$E2E/prog_lives
LIVES=${LIVES:-100}
real=$PROFD

# in_ns COMMANDS... : from here on profd is started after these commands, in a mount
# namespace of its own.
in_ns() {
	printf '#!/bin/sh\nexec "%s/own_mounts" sh -c '\''%s\n%s\n%s'\'' "%s" "$@"\n' \
		"$E2E_SRC" 'set -e' "$1" 'exec "$0" "$@"' "$real" >"$T/profd"
	chmod +x "$T/profd"
	PROFD=$T/profd
}

# Two new names, which are not known from elsewhere: one program that runs before
# profd does, one that is started later.
other_build_id "$spin" "$T/before" 1
other_build_id "$spin" "$T/after" 2
other_build_id "$spin" "$T/note" 3

# used PID NS: it has used this much CPU time.
used() { (($(cpu_ns "$1") >= $2)); }

# ended N: at least so many ends of processes are reported.
ended() {
	grep -aFf "$T/pids" "$T/events" |
		jq -r "$plain"'select(.process and (.events | index("exit"))) |
			[.pid, (.exit_code // -1), (.signal // 0)] | @tsv' \
			2>/dev/null | sort -u >"$T/ends"
	(($(comm -13 "$T/ends" "$T/wanted" | wc -l) <= $1))
}

# too_late: how many samples and frames waited for tables and names in vain.
too_late() {
	echo $(($(metric profd_trace_stack_late_total) +
		$(metric profd_trace_names_late_total)))
}

# in_time TRIES: repeats the load, in a window of its own, until profd had its tables and
# names in time, which on a busy machine it may not. $T/windows has that window. Only
# meanwhile does the earlier process run.
in_time() {
	local i late=1 from
	for ((i = 0; i < $1 && late; i++)); do
		find "$archive" -name '*.pb.gz' | sort >"$T/old"
		late=$(too_late) from=$(cpu_ns "$before")
		kill -CONT "$before"
		"$T/after" 334 >/dev/null
		"$E2E/prog_memfd" "$T/note" 167 >/dev/null
		wait_for 300 used "$before" $((from + 250000000))
		kill -STOP "$before"
		kill -HUP "$profd"
		wait_for 60 newer
		late=$(($(too_late) - late))
	done
	((late == 0)) || diag "$late samples and frames in vain"
}
newer() {
	find "$archive" -name '*.pb.gz' | sort >"$T/new"
	comm -13 "$T/old" "$T/new" >"$T/windows"
	[[ -s $T/windows ]]
}

# run NAME: a profd and a load; the checks that are the same in all cases.
run() {
	local name=$1 before events lost
	background nice -n -20 "$T/before" 600000 naps 20 >/dev/null
	before=$pid
	sleep 0.2 # past its start: it spins
	kill -STOP "$before"
	start_profd "$name" --freq 297 --window 3600 --cache "$T/cache"
	background nice -n -20 "$real" events -f --json --type exit \
		--server "unix:$sock" >"$T/events"
	events=$pid
	follows() { /bin/true && test -s "$T/events"; }
	wait_for 60 follows
	"$lives" "$LIVES" 2 >"$T/truth"
	is "$name: the load is done" $? 0
	awk '{ print $2 "\t" ($4 == "exit" ? $5 "\t0" : "-1\t" $5) }' \
		"$T/truth" | sort -u >"$T/wanted"
	sed 's/\t.*//; s/.*/"process.pid":&,/' "$T/wanted" >"$T/pids"
	wait_for 60 ended 0
	# On a busy machine some events may be lost, which is reported.
	ask /status >"$T/status"
	lost=$(awk -F ': ' '/^(lifecycle events|mapping records) lost/ {
		n += $2 } END { print n + 0 }' "$T/status")
	((lost == 0)) || diag "$name: $(grep lost: "$T/status")"
	check "$name: all lives and how they ended, but for $lost" ended "$lost"
	"$real" ps --json --server "unix:$sock" >"$T/ps"
	is "$name: who was there before is listed" \
		"$(jq "select(.pid == $before) | .pid" "$T/ps")" "$before"
	like "$name: files are read" "$(cat "$T/status")" \
		'symbolize worker: (process|idle)'
	# Without /proc some are never read.
	if [[ $name == none ]] || ((SECONDS > 300)); then in_time 1; else in_time 5; fi
	kill -KILL "$before" "$events"
	wait "$before" "$events" 2>/dev/null
	stop_profd
	is "$name: profd ends well" $? 0
	check_profile "$archive"/*/*.pb.gz
	while read -r f; do
		samples "$f"
	done <"$T/windows" >"$T/samples"
	awk -F '\t' -v p="$before" '$3 == p' "$T/samples" >"$T/of_before"
	awk -F '\t' '$7 ~ /\/after$/' "$T/samples" >"$T/of_after"
	awk -F '\t' '$7 ~ /hidden/' "$T/samples" >"$T/of_memfd"
	num "$name: who was there before is sampled" "$(total "$T/of_before")" \
		'>=' 30
	num "$name: so is who came" "$(total "$T/of_after")" '>=' 60
	num "$name: and who has no file" "$(total "$T/of_memfd")" '>=' 25
}

# named FILE: share of its samples in user code that have all names.
named() {
	awk -F '\t' '$10 !~ /^\[|@\[kernel/' "$1" >"$1.user"
	percent "$(total "$1.user" '^spin_a@[^;]*;middle_a@[^;]*;main@')" \
		"$(total "$1.user")"
}

usual='spin_a@.*;middle_a@.*;main@'

# --- no /proc at all ---
in_ns 'umount -l /proc'
run none
is "none: it is said once" \
	"$(grep -c 'missing /proc: it is not mounted' "$log")" 1
like "none: and in the status" "$(cat "$T/status")" \
	'missing: /proc: it is not mounted'
num "none: who came has names" "$(named "$T/of_after")" '>=' 95
# A sample taken while the process is killed may have kernel frames only.
is "none: mappings of before are not known, and that is said" \
	"$(awk -F '\t' '$10 !~ /\[mapping lost\]/ { n = split($10, f, ";")
		for (i = 1; i <= n; i++)
			if (f[i] !~ /@\[kernel|^\[/)
				print f[i]
	}' "$T/of_before")" ""
num "none: of nearly all" "$(total "$T/of_before" '\[mapping lost\]')" '>=' \
	$(($(total "$T/of_before") - 5))
is "none: nothing is guessed of them" "$(total "$T/of_before" "$usual")" 0
is "none: nor of who has no file" "$(total "$T/of_memfd" "$usual")" 0
is "none: whose frames have a place, at least" \
	"$(awk -F '\t' '$10 !~ /^\[|@\[kernel/' "$T/of_memfd" |
		grep -cv 'hidden[^;@]*+0x')" 0
num "none: kernel code has addresses" \
	"$(total "$T/samples" '\[kernel\]\+0x[0-9a-f]+@\[kernel')" '>' 0
# But for BPF programs: the side-band has their names.
is "none: and no names" "$(awk -F '\t' '{ n = split($10, f, ";")
	for (i = 1; i <= n; i++)
		if (f[i] ~ /@\[kernel/ && f[i] !~ /^(\[kernel\]\+0x|bpf_prog_)/)
			print f[i]
	}' "$T/samples" | wc -l)" 0
like "none: that missing samples are not counted is said" "$(cat "$T/status")" \
	'the number of missing samples'
out=$("$PROFD" run --source perf --archive "$T/perf" --listen "unix:$T/perf.sock" 2>&1)
is "none: perf events cannot do without" $? 1
like "none: and say so" "$out" '^profd: /proc/self/ns/pid: No such file'

# BPF shows that it is another pid namespace, without /proc too.
cat >"$T/nested" <<END
#!/bin/sh
exec "$E2E_SRC/own_mounts" unshare -p -f sh -c 'umount -l /proc
	exec "\$0" "\$@"' "$real" "\$@"
END
chmod +x "$T/nested"
out=$("$T/nested" run --source bpf --archive "$T/n" --listen "unix:$T/n.sock" 2>&1)
is "none, in a pid namespace: refused" $? 1
like "none, in a pid namespace: and why" "$out" 'inside a pid namespace'

# --- processes only ---
in_ns 'mount -t proc -o subset=pid proc /proc'
run subset
is "subset: it is said once" "$(grep -c 'missing /proc: .*subset=pid' "$log")" 1
num "subset: who came has names" "$(named "$T/of_after")" '>=' 95
num "subset: who was there too" "$(named "$T/of_before")" '>=' 95
num "subset: who has no file too" "$(named "$T/of_memfd")" '>=' 95

# --- hidepid: hidden, except from processes that may trace them ---
in_ns 'mount -t proc -o hidepid=2 proc /proc'
run hidden
is "hidden from others: nothing is missing" "$(grep -c missing "$log")" 0
num "hidden from others: who came has names" "$(named "$T/of_after")" '>=' 95
num "hidden from others: who was there too" "$(named "$T/of_before")" '>=' 95
num "hidden from others: who has no file too" "$(named "$T/of_memfd")" '>=' 95

# --- hidden from profd, too; its group could see all of them, unless it is 0 ---
in_ns 'mount -t proc -o hidepid=2 proc /proc
exec setpriv --regid 65534 --clear-groups --bounding-set -sys_ptrace \
	--inh-caps -sys_ptrace "$0" "$@"'
run blind
is "hidden from profd: it is said once" \
	"$(grep -c 'missing /proc: .*hidden' "$log")" 1
is "hidden from profd: and which capability is missing" \
	"$(grep -c 'missing CAP_SYS_PTRACE' "$log")" 1
num "hidden from profd: who came has names" "$(named "$T/of_after")" '>=' 95
is "hidden from profd: earlier processes: nothing is guessed" \
	"$(total "$T/of_before" "$usual")" 0
num "hidden from profd: and that is said of nearly all" \
	"$(total "$T/of_before" '\[mapping lost\]')" '>=' \
	$(($(total "$T/of_before") - 5))

# --- a user with the capabilities of profd(8), as the unit file has it ---
in_ns 'mount -t proc -o hidepid=2 proc /proc
caps=+bpf,+perfmon,+sys_ptrace,+syslog,+dac_read_search
exec setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps "$caps" \
	--ambient-caps "$caps" --bounding-set "-all,$caps" "$0" "$@"'
chmod 755 "$T"
mkdir "$T/user.archive" && chown 65534:65534 "$T/user.archive"
chmod 1777 "$T" # its socket
run user
is "a user: nothing is missing" "$(grep missing "$log")" ""
num "a user: who came has names" "$(named "$T/of_after")" '>=' 95
# The file is opened by its path, which the kernel reports as seen from the root of the
# host; map_files is not permitted for this user.
if [[ $("$E2E_SRC/own_mounts" readlink /proc/$$/exe) == $(readlink /proc/$$/exe) ]]
then
	num "a user: who was there too" "$(named "$T/of_before")" '>=' 95
else
	forbids "a user: who was there too" \
		"paths in another mount namespace: it is a chroot"
fi
plan
