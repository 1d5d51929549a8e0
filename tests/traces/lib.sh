# shellcheck shell=bash
# lib: what the tests of real tracers share, beside that of the end-to-end tests. Tracers
# come from the registries of their languages, and stay below build/traces.
. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib.sh"
TRACES=$ROOT/tests/traces
ROOM=$B/traces

# needs COMMAND...: programs that are on the PATH.
needs() {
	local command
	for command; do
		command -v "$command" >/dev/null || bail "there is a $command"
	done
}

# get DIRECTORY COMMAND...: has the command fill that directory of the room, once.
get() {
	local dir=$ROOM/$1
	shift
	[[ ! -e $dir/complete ]] || return 0
	mkdir -p "$dir"
	"$@" >"$T/get.log" 2>&1 ||
		bail "the registry has been reached: $*" "$(tail -n 12 "$T/get.log")"
	touch "$dir/complete"
}

# With a high rate, and one window that the end of profd closes.
start_traces() {
	start_profd "$1" --window 3600 -F "$2"
}

# compared NAME LOG...: each sample of the archive of the last profd beside what the
# threads have logged.
compared() {
	local name=$1
	shift
	python3 "$TRACES/compare.py" "$archive" "$@" >"$T/$name.compared" 2>&1
	result $? "$name: archive and logs can be read" || diag "$(cat "$T/$name.compared")"
	diag "$name: $(cat "$T/$name.compared")"
	num "$name: enough samples in spans" "$(of "$name" inside)" ">=" 10000
	is "$name: none has wrong ids" "$(of "$name" wrong)" 0
	num "$name: those that have ids, of a hundred" \
		"$(percent "$(of "$name" with)" "$(of "$name" inside)")" ">=" 99
}
of() {
	sed -n "s/.*\<$2 \([0-9]*\).*/\1/p" "$T/$1.compared"
}
