#!/bin/bash
# The service that a process belongs to: its label, from contexts and environments, of
# processes that publish them, change them, fork, exec, and lie.
. "$(dirname "$0")/lib.sh"

# services WAY: the services that its samples have, one a line.
services() {
	awk -F '\t' -v way="way_$1" '$1 == way && $2 != "" { print $2 }' "$T/ways" | sort -u
}

# has WAY: the number of its stacks.
has() {
	grep -c "^way_$1"$'\t' "$T/ways"
}

f=$T/services.pb.gz
OTEL_SERVICE_NAME='' watch "$f" -F 199 -- "$E2E/prog_services" 15
status=$?
check "its profile is valid" "$E2E/pprof_check" "$f"
# WAY and SERVICE of each stack; it has two ways where one calls the other.
pprof -traces "$f" | awk '
	/^-+\+-+$/ { service = ""; next }
	/^ *service: / { sub(/^ *service: */, ""); service = $0; next }
	match($0, /way_[a-z0-9]+$/) { print substr($0, RSTART) "\t" service }' >"$T/ways"
is "a context in a memfd" "$(services memfd)" by-memfd
if [ "$status" = 77 ]; then
	diag "this kernel has no names of anonymous memory (CONFIG_ANON_VMA_NAME)"
else
	is "record" "$status" 0
	is "a context in named memory" "$(services prctl)" by-prctl
fi
is "an environment" "$(services environ)" "by environ"
is "a context goes before an environment" "$(services both)" by-context
is "a context that changes: as of the end" "$(services change)" after
is "a process that forks" "$(services parent)" parent
is "... its child has no context" "$(services child)" ""
is "a process before its exec" "$(services exec)" old-image
is "... and after" "$(services newimage)" ""
is "a wild pointer: what else is known" "$(services wild)" wild-environ
for lie in huge writing utf8 many flood; do
	num "$lie: it has samples" "$(has "$lie")" ">" 0
	is "... and no service" "$(services "$lie")" ""
done

# --- queries ---
# shown OPTIONS...: the services that a report has, in one line.
shown() {
	"$PROFD" report --by service --rows service "$@" "$f" 2>"$T/err" |
		grep -o 'by-[a-z]*\|after\|parent\|old-image\|wild-environ\|by environ' |
		LC_ALL=C sort -u | paste -sd ' '
}
is "report --rows service" "$(shown)" \
	"after by environ by-context by-memfd$(
		[[ $status = 77 ]] || echo ' by-prctl') old-image parent wild-environ"
is "report --service" "$(shown --service 'by-c*' --service by-memfd)" \
	"by-context by-memfd"
is "report --not-service" "$(shown --not-service 'by*' --not-service after)" \
	"old-image parent wild-environ"

plan
