#!/bin/bash
# Ten thousand processes of eight users, each with a context of its own: each is known by
# its own name, and by no other.
. "$(dirname "$0")/lib.sh"
processes=10000

needs cc
cc -O1 -std=gnu11 -D_GNU_SOURCE -I"$ROOT" -o "$T/many" "$TRACES/many.c" ||
	bail "many.c can be compiled"
start_traces many 997
background "$T/many" $processes 8 >"$T/ready"
many=$pid
wait_for 600 grep -q ready "$T/ready"
is "all are there" $? 0
begin=$SECONDS

all_named() { (($(metric profd_services_named_total) >= processes)); }
wait_for 900 all_named
is "all get a name" $? 0
diag "that takes $((SECONDS - begin)) s; named: $(metric profd_services_named_total)," \
	"refused: $(metric profd_services_refused_total)"
# Each has samples since.
sleep 45
kill "$many"
stop_profd
is "profd ends well" $? 0
check "a profile" "$PROFD" fetch --archive "$archive" -q --last 1h -o "$T/many.pb.gz"

# Of each process its service, "-" without one.
pprof -raw "$T/many.pb.gz" | grep ' comm:\[many\]' | sed -E '
	s/.* process:\[([0-9]+)-[^]]*\].* service:\[([^]]*)\].*/\1 \2/
	s/.* process:\[([0-9]+)-.*/\1 -/' | sort -u >"$T/names"
is "none has the name of another" "$(awk '$2 != "many-" $1 && $2 != "-"' "$T/names")" ""
diag "$(wc -l <"$T/names") of $processes processes have samples," \
	"$(grep -c ' many-' "$T/names") a name"
num "those with samples that have their name, of a thousand" \
	$(($(grep -c ' many-' "$T/names") * 1000 / processes)) ">=" 999
plan
