#!/bin/bash
# RLIMIT_FSIZE: a write beyond it is an error as any other. profd lives, says so and counts
# it; its command gets SIGXFSZ as it would without profd. Neither an error nor SIGKILL
# leaves a temporary file.
. "$(dirname "$0")/lib.sh"
mkdir "$T/d"

# limited KIB FILE COMMAND...: its output goes through a pipe, which has no limit.
limited() {
	local kib=$1 out=$2
	shift 2
	(
		ulimit -f "$kib"
		"$@" 2>&1
		echo "status $?"
	) | cat >"$out"
}
empty() { is "$1: nothing is left" "$(ls -A "$T/d")" ""; }
rec=("$PROFD" record -F 999 -o "$T/d/p.pb")

limited 0 "$T/rec.log" "${rec[@]}" -- "$E2E/prog_spin_a" 200
like "record: the error names the file" "$(cat "$T/rec.log")" \
	"$T/d/p.pb: File too large.status 1"
empty "record"

cat >"$T/big.sh" <<'S'
head -c 3000 /dev/zero >"$1"
echo "$?" | cat >/dev/fd/9
exit 3
S
limited 2 "$T/cmd.log" "${rec[@]}" -- bash "$T/big.sh" "$T/big" 9>"$T/signal"
is "the command has the signal's default action" "$(cat "$T/signal")" 153
(
	trap '' XFSZ
	limited 2 "$T/cmd.log" "${rec[@]}" -- bash "$T/big.sh" "$T/big" 9>"$T/signal"
)
is "... or it is ignored, as it was" "$(cat "$T/signal")" 1
rm -f "$T/d/"*

# Workers, which put tables into memory files, have a higher limit of their own.
limited 1000 "$T/rec.log" "${rec[@]}" -- "$E2E/prog_spin_a" 300
samples "$T/d/p.pb" >"$T/p.tsv"
num "stacks are whole below a limit of 1 MB" \
	"$(total "$T/p.tsv" 'spin_a.*;main@.*_start@')" '>' \
	"$(($(total "$T/p.tsv") / 2))"

limited 0 "$T/sym.log" "$PROFD" symbolize-profile -o "$T/d/q.pb" "$T/d/p.pb"
like "symbolize-profile: an error" "$(cat "$T/sym.log")" \
	"$T/d/q.pb: File too large.status 1"
rm "$T/d/p.pb"
empty "symbolize-profile"

# --- SIGKILL ---
background "${rec[@]}" -- sleep 60
recorder=$pid
has_command() { pgrep -P "$recorder" sleep; }
check "a recording runs" wait_for 60 has_command
kill -KILL "$recorder"
wait "$recorder" 2>/dev/null
empty "a killed recording"

# --- profd run ---
real=$PROFD
printf '#!/bin/bash\nulimit -f 1\nexec "%s" "$@" > >(exec cat >"%s") 2>&1\n' \
	"$real" "$T/run.out" >"$T/profd"
chmod +x "$T/profd"
# A tenth of a CPU, so that each window has samples.
background nice -n -20 "$E2E/prog_spin_a" 600000 naps 90 >/dev/null
PROFD=$T/profd start_profd limit --window 1
says() { [[ $(curl -sS --max-time 10 "$url/healthz") =~ $1 ]]; }
check "run: /healthz says so" wait_for 60 says 'archive .*File too large'
is "... with 503" "$(curl -s -o /dev/null -w '%{http_code}' "$url/healthz")" 503
num "... it is counted" "$(metric profd_reporter_windows_failed_total)" '>' 0
"$real" fetch --server "unix:$sock" -d 1 -o "$T/d/f.pb" >"$T/fetch.log" 2>&1
is "... profiles are still served" $? 0
rm -f "$T/d/f.pb"
limited 0 "$T/fetch.log" "$real" fetch --server "unix:$sock" -d 1 -o "$T/d/f.pb"
like "fetch: an error" "$(cat "$T/fetch.log")" "f.pb: File too large.status 1"
empty "fetch"
stop_profd
num "run ends by itself" $? '<=' 1
is "run: no window, no temporary file" \
	"$(find "$archive" -name '*.pb*' -o -name '*.tmp' -o -name '*.zst*')" ""
plan
