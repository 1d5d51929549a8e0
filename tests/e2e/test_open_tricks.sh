#!/bin/bash
# A user who runs a program and replaces it by a link has no effect: the target of the
# link is not opened, by any way in which profd opens the program.
. "$(dirname "$0")/lib.sh"
N=40

chmod 755 "$T"
mkdir -m 1777 "$T/user"
cp "$E2E/prog_spin_a" "$T/canary"
chmod 600 "$T/canary"
mkfifo -m 666 "$T/fifo"
background "$E2E/prog_opened" "$T/canary" >"$T/opened"
wait_for 60 grep -q watching "$T/opened" || bail "watched"

# One short process each, so that some end before their file is opened.
cat >"$T/trick.sh" <<'END'
cd "$1/user" || exit 1
for ((i = 0; i < $2; i++)); do
	cp "$3" "x$i"
	case $((i % 4)) in
	0) to=$1/canary ;;
	1) to=$1/fifo ;;
	2) to=/proc/kmsg ;;
	3) to=/etc/shadow ;;
	esac
	ln -s "$to" "link$i"
	"./x$i" $((i % 3 ? 5 : 60)) >/dev/null &
	mv -T "link$i" "x$i"
	wait
done
END
trick() {
	setpriv --reuid 65534 --regid 65534 --clear-groups \
		bash "$T/trick.sh" "$T" "$N" "$E2E/prog_spin_new"
}

start_profd whole --freq 999
check "a user plays tricks" trick
rm -rf "$T"/user/*
# Without permission for /proc/PID/map_files, by their paths.
stale=$(metric profd_symbolize_open_stale_total)
diag "$(metric profd_symbolize_opened_total) opened, $stale stale"
stop_profd

# start_profd runs $PROFD: as root, but without two capabilities.
cat >"$T/less" <<END
#!/bin/sh
exec setpriv --bounding-set -sys_admin,-checkpoint_restore "$PROFD" "\$@"
END
chmod 755 "$T/less"
PROFD=$T/less start_profd less --freq 999
check "... with less privilege" trick
# By its path, where the link is detected; or earlier, by its process.
looked() {
	(($(metric profd_symbolize_open_stale_total) +
		$(metric profd_pm_early_opened_total) > 0))
}
check "the programs were looked for" wait_for 60 looked
stop_profd
# Another profd on the host does not count.
is "the canary was not opened" "$(grep -c "by $(realpath "$B/profd")\$" "$T/opened")" 0
# It runs until it was checked.
background bash -c 'exec 3<"$1"; sleep 10; :' - "$T/canary"
check "... and it would be seen" wait_for 60 grep -q 'by .*bash$' "$T/opened"
diag "$(sort "$T/opened" | uniq -c)"

# A user mounts an overlay in namespaces, and maps one of its files at the address at
# which the program of another user was mapped. The names of that program stay.
cat >"$T/overlay.sh" <<'END'
cd "$1/user" && mkdir low up work over && cp "$3" low/mine || exit 1
mount -t overlay -o lowerdir=low,upperdir=up,workdir=work,userxattr overlay \
	over || exit 1
exec "$4" "$2" over/mine
END
overlay() {
	setpriv --reuid 65534 --regid 65534 --clear-groups \
		unshare -Urm bash "$T/overlay.sh" "$T" "$@"
}
flipped() { grep -q flipped "$T/flipped" || ! kill -0 "$flip"; }
waits() { [[ $(metric profd_reporter_http_waiting) == 1 ]]; }
cp "$E2E/prog_spin_a" "$T/victim"
start_profd overlay --freq 999
background overlay "$T/victim" "$E2E/prog_spin_b" "$E2E/prog_flip" \
	>"$T/flipped" 2>&1
flip=$pid
wait_for 60 flipped
if grep -q flipped "$T/flipped"; then
	sleep 1 # it is looked for
	background env --default-signal=INT "$PROFD" fetch -q -d 600 --server "unix:$sock" \
		-o "$T/victim.pb.gz"
	fetch=$pid
	wait_for 60 waits
	"$T/victim" 300 >/dev/null
	kill -INT "$fetch"
	wait "$fetch"
	samples "$T/victim.pb.gz" | awk -F '\t' -v exe="$T/victim" '$7 == exe' >"$T/all"
	num "a program has its own names" "$(total "$T/all" 'spin_a@.*/victim')" '>=' 100
	is "... and not those of an overlay" "$(total "$T/all" 'spin_b@')" 0
else
	forbids "a program has its own names" "a user's overlay: $(cat "$T/flipped")"
fi
stop_profd
plan
