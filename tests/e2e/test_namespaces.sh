#!/bin/bash
# Names and lines where the path of the file is not valid on the host, or is that of
# another file: processes in pid, mount and user namespaces of their own, a chroot, the root
# of a container that has ended, an overlay, files that exist only inside, have no path at
# all, were deleted or replaced, or are on a file system that has been unmounted.
. "$(dirname "$0")/lib.sh"
spin=$E2E/prog_spin_a
MS=200

# place DIR NUMBER: puts the program there, as another executable.
place() { other_build_id "$spin" "$1/inside$2" "$2"; }

mkdir "$T"/{root,private,lower,upper,work,merged,gone,container,lib}
place "$T" 1
place "$T/root" 2
place "$T/lower" 4
mount -t tmpfs none "$T/gone" && mounted+=("$T/gone")
place "$T/gone" 6
place "$T" 7
cp "$E2E/libplugin.so" "$T/lib/libplugin.so"
cp "$E2E/libswap_a.so" "$T/lib/next"
mount -t overlay overlay \
	-o "lowerdir=$T/lower,upperdir=$T/upper,workdir=$T/work" "$T/merged"
is "there is an overlay" $? 0
mounted+=("$T/merged")

# All of it is one command, recorded with its descendants.
cat >"$T/all" <<END
#!/bin/bash
# pid, mount and user namespace
! unshare -U true 2>/dev/null ||
	unshare -U -r -p -f -m --mount-proc "$T/inside1" $MS
# another root directory; the path is the inner one
chroot "$T/root" /inside2 $MS
# on a file system of its mount namespace only
"$E2E_SRC/own_mounts" bash -c '
	mount -t tmpfs none "$T/private" && cp "$T/note3" "$T/private/inside3" &&
	"$T/private/inside3" $MS'
# from a lower layer
"$T/merged/inside4" $MS
# no path at all
"$E2E/prog_memfd" "$T/note5" $MS
# the file system is unmounted right after the process ends
"$T/gone/inside6" $MS
umount -l "$T/gone"
# the file is deleted soon after the start
"$T/inside7" $MS &
sleep 0.1
rm "$T/inside7"
wait
# a root directory in a mount namespace, both gone with the process
"$E2E_SRC/own_mounts" bash -c '
	mount -t tmpfs none "$T/container" && cp "$T/note9" "$T/container/inside9" &&
	exec chroot "$T/container" /inside9 $MS'
# a library is replaced while it is in use
"$E2E/prog_spin_old" $MS dlopen "$T/lib/libplugin.so" &
until grep -q lib/libplugin.so /proc/\$!/maps; do sleep 0.01; done
mv "$T/lib/next" "$T/lib/libplugin.so"
wait
END
chmod +x "$T/all"
other_build_id "$spin" "$T/note3" 3
other_build_id "$spin" "$T/note5" 5
other_build_id "$spin" "$T/note9" 9
record "$T/all.pb.gz" -F 1997 -- "$T/all"
is "recorded" $? 0
diag "$(cat "$T/all.pb.gz.log")"

samples "$T/all.pb.gz" | awk -F '\t' '$10 ~ /inside|hidden|spin_a/ ||
	$7 ~ /inside|hidden/' >"$T/of"
mappings "$T/all.pb.gz" >"$T/maps"
# case NUMBER WHAT EXE [PATTERN]: 200 ms are 400 samples. Selected by the label exe, which is the
# path as seen by the process.
case_of() {
	awk -F '\t' -v re="$3" '$7 ~ re' "$T/of" >"$T/case"
	num "$2: sampled" "$(total "$T/case")" '>=' 250
	if late "$T/all.pb.gz"; then
		skip "$2: names and build id" "never in time"
		diag "$(comments "$T/all.pb.gz")"
		return
	fi
	num "$2: by name, whole" "$(percent "$(total "$T/case" \
		'^spin_a@[^;]*;middle_a@[^;]*;main@')" \
		"$(total "$T/case")")" '>=' 85
	is "$2: nothing of it without a name" \
		"$(total "$T/case" '(inside[0-9]|hidden)[^;]*[+]0x')" 0
	diag "$(grep -E '(inside[0-9]|hidden)[^;]*[+]0x' "$T/case" | head -n 3)"
	lines_of "$2" "${4:-inside$1*}" spin_a prog_spin.c 'HOT void PASTE(spin_, NAME)'
	# Twenty digits, as bytes.
	like "$2: its build id" "$(grep -E "$3|(inside|hidden)[^ ]* (30){19}3$1$" \
		"$T/maps" | sort -u)" "(inside$1|hidden) (30){19}3$1"
}
# lines_of WHAT EXE FUNCTION SOURCE TEXT: all samples in the function have its file, and a
# line of the seven from that with the text on, by profd itself.
lines_of() {
	local from
	from=$(grep -n "$5" "$E2E_SRC/$4" | tail -n 1 | cut -d : -f 1)
	"$PROFD" report --rows line -w -j -n 1000 --exe "$2" "$T/all.pb.gz" |
		jq -r 'select(.flat > 0).name' | awk -v f="$3" '$1 == f' >"$T/lines"
	diag "$(cat "$T/lines")"
	check "$1: $3 with file and line" awk -v file="/$4" -v from="$from" '
		{ n = split($2, part, ":") }
		NF != 2 || n != 2 || part[1] !~ file "$" || part[2] < from ||
			part[2] > from + 6 { bad = 1 }
		END { exit bad || !NR }' "$T/lines"
}
if may_userns; then
	case_of 1 "pid, mount and user namespace" 'inside1$'
else
	forbids "pid, mount and user namespace" "user namespaces"
fi
case_of 2 "chroot" '^/inside2$'
case_of 3 "a file system that only it has" 'inside3$'
case_of 4 "overlay" 'merged/inside4$'
case_of 5 "memfd" 'memfd:hidden' '*hidden*'
case_of 6 "unmounted" 'gone/inside6$'
case_of 7 "deleted" 'inside7( .deleted.)?$'
case_of 9 "a container's root that is gone" '^/inside9$'
if late "$T/all.pb.gz"; then
	skip "replaced library" "never in time"
else
	lines_of "replaced library" prog_spin_old plugin_spin plugin.c ' void plugin_spin'
fi
# Pids of the host, whatever they are in a namespace.
is "every pid is the host's" "$(awk -F '\t' '$3 < 10' "$T/of" | wc -l)" 0
check_profile "$T/all.pb.gz"

# --- a file system can be unmounted when its last process has ended ---
mkdir "$T/volume"
mount -t tmpfs none "$T/volume" && mounted+=("$T/volume")
place "$T/volume" 8
start_profd namespaces --window 3600 --freq 199
"$T/volume/inside8" $MS &
# On a busy machine profd may open the file only after the process and its root are gone.
has_it() { readlink "/proc/$profd"/fd/* | grep -q inside8; }
check "profd has the file open" wait_for 60 has_it
wait $!
check "unmounted, profd running" wait_for 60 umount "$T/volume"
unnamed=$(metric profd_trace_names_late_total)
stop_profd
is "profd ends well" $? 0
for f in "$archive"/*/*.pb.gz; do
	samples "$f"
done | awk -F '\t' '$7 ~ /inside8$/' >"$T/case"
num "its samples have their names all the same" \
	"$(total "$T/case" '^spin_a@')" '>=' 8
# Except stacks whose names were late, which are counted.
num "none of them is without" "$(total "$T/case" 'inside8[+]0x')" '<=' "$unnamed"
plan
